/* SPDX-License-Identifier: BSD-2-Clause */
/* ./gannet-nfs over TLS: against ./gannetd, and a server that lies. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/cut_relay.h"
#include "tests/server/tls_client.h"
#include "tests/server/tls_liar.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

static struct tls_pki pki;

static void setup(void)
{
	tls_pki_make(&pki);
}

static void teardown(void)
{
	tls_pki_remove(&pki);
}

TEST_CASE(.setup = setup, .teardown = teardown, .timeout = 120);

#define CA "--tls-ca", pki.ca

/* gannetd with TLS, and an export of it with this xprtsec=. */
static void start_tls(const char *protection)
{
	char opts[80], settings[400];

	snprintf(settings, sizeof(settings), "[server]\ntls-cert = %s\n"
		 "tls-key = %s\ntls-ca = %s\ntls-crl = %s\n", pki.cert,
		 pki.key, pki.ca, pki.crl);
	snprintf(opts, sizeof(opts), "rw,insecure,no_root_squash,xprtsec=%s",
		 protection);
	start_both(WAY_TCP, opts, settings);
}

static void says(const char *want)
{
	ck_assert_msg(strstr(err, want), "no '%s' in %s", want, err);
	/* One line. */
	ck_assert_ptr_eq(strchr(err, '\n'), err + strlen(err) - 1);
}

static void reports(const char *want)
{
	ck_assert_msg(strstr(out, want), "no '%s' in %s%s", want, out, err);
}

TEST(files_move_over_tls)
{
	static const size_t sizes[] = { 0, 1, 16384, 1048577, 5000003 };
	const char *from, *back;

	start_tls("tls");
	from = path(d.dir, "from");
	back = path(d.dir, "back");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		make_file(from, sizes[i]);
		ck_assert_msg(TOOL("put", CA, from, url("f")) == 0, "%s", err);
		same(from, path(export, "f"));
		ck_assert_msg(TOOL("get", CA, url("f"), back) == 0, "%s", err);
		same(from, back);
		ck_assert_str_eq(err, "");
	}
	ck_assert_int_eq(TOOL("cat", CA, url("f")), 0);
	same(from, outfile);
	ck_assert_int_eq(TOOL("mv", CA, url("f"), url("g")), 0);
	ck_assert_int_eq(TOOL("mkdir", CA, url("dir")), 0);
	ck_assert_int_eq(TOOL("ls", CA, url("")), 0);
	ck_assert_str_eq(out, "dir\ng\n");
	ck_assert_int_eq(TOOL("mount-check", CA, url("")), 0);
	reports("TCP with TLS");
	reports(",xprtsec=tls ");
	stop();
}

TEST(a_tree_is_copied_both_ways)
{
	enum { FILES = 40 };
	char tree[200], there[200], back[200], name[16];

	start_tls("tls");
	snprintf(tree, sizeof(tree), "%s/tree", d.dir);
	snprintf(there, sizeof(there), "%s/t", export);
	snprintf(back, sizeof(back), "%s/back", d.dir);
	ck_assert_int_eq(mkdir(tree, 0755), 0);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		make_file(path(tree, name), (size_t)i * 70001);
	}
	ck_assert_msg(TOOL("cp", "-r", CA, "--checksum", tree, url("t")) == 0,
		      "%s", err);
	ck_assert_msg(TOOL("cp", "-r", CA, url("t"), back) == 0, "%s", err);
	for (int i = 0; i < FILES; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		same(path(tree, name), path(there, name));
		same(path(tree, name), path(back, name));
	}
	stop();
}

TEST(copies_survive_cut_connections)
{
	struct relay r = { .cut_after = 3000000, .cuts = 4 };
	const char *from, *back;

	start_tls("tls");
	from = path(d.dir, "from");
	back = path(d.dir, "back");
	make_file(from, 20000001);
	relay_start(&r, WAY_TCP);
	ck_assert_msg(TOOL("put", CA, from, url("x")) == 0, "%s", err);
	same(from, path(export, "x"));
	atomic_store(&r.connections, 0);
	ck_assert_msg(TOOL("get", CA, url("x"), back) == 0, "%s", err);
	same(from, back);
	relay_stop(&r);
	stop();
}

/* After the first connection there is a server without TLS, or with another's
 * certificate. */
TEST_LOOP(a_new_connection_is_as_strict, 0, 2)
{
	struct tls_pki other;
	struct tls_liar l = { .lie = _i ? LIE_NO_ALPN : LIE_NO_VERIFIER,
			      .pki = _i ? &other : &pki };
	struct relay r = { .cut_after = 300000, .cuts = 1 };
	const char *from;

	tls_pki_make(&other);
	start_tls("tls");
	tls_liar_start(&l);
	r.then = l.port;
	relay_start(&r, WAY_TCP);
	from = path(d.dir, "from");
	make_file(from, 5000003);
	ck_assert_int_ne(TOOL("put", CA, "--retries=2", from, url("x")), 0);
	ck_assert_msg(strstr(err, _i ? "the certificate of 127.0.0.1 is " :
			     "127.0.0.1 offers none"), "%s", err);
	ck_assert_uint_gt(atomic_load(&r.connections), 1);
	ck_assert_uint_eq(atomic_load(&l.clear), 0);
	relay_stop(&r);
	tls_liar_stop(&l);
	stop();
	tls_pki_remove(&other);
}

TEST(bench_runs_over_tls)
{
	start_tls("tls");
	ck_assert_msg(TOOL("bench", CA, "--ops=40", "--size=2M", "--verify",
			   "--connections=2", "-d", "4", "--entries=100",
			   "seqwrite", "seqread", "getattr", "create",
			   "readdirplus", url("")) == 0, "%s", err);
	ck_assert_int_eq(TOOL("bench", CA, "--discard", url("")), 2);
	stop();
}

TEST(doctor_names_the_fault)
{
	struct tls_pki_cert c = { "DNS:localhost,IP:127.0.0.1", NULL, -9, 3600,
				  NULL };
	char host[400];

	tls_pki_exchange(&pki, &c);
	start_tls("tls");
	ck_assert_msg(TOOL("doctor", CA, url("")) == 0, "%s", out);
	reports(",xprtsec=tls ");
	reports("a certificate for localhost, 127.0.0.1, until 20");
	reports(" of the CA 'CN=a CA'\n");
	reports("poor  tls          the certificate ends in 0 days\n");
	reports("ok    tls          the server is proven\n");
	ck_assert_ptr_null(strstr(out, "rdma+"));
	snprintf(host, sizeof(host), "tcp://127.0.0.1:%u", d.tcp_port);
	ck_assert_int_eq(TOOL("doctor", CA, host), 0);
	snprintf(host, sizeof(host), " --tls-ca=%s\n", pki.ca);
	ck_assert_ptr_nonnull(strstr(out, "\nNext: gannet-nfs doctor tcp://"));
	reports(host);
	/* Without --tls, by the CAs of this system. */
	ck_assert_int_eq(TOOL("doctor", url("")), 1);
	reports("      tls          not proven: TLS: the certificate of ");
	reports("To mend: try --tls: 127.0.0.1 has TLS, and can demand it "
		"(xprtsec=tls) for ");
	ck_assert_int_eq(TOOL("doctor", "--tls", url("")), 1);
	reports("To mend: mend the TLS of 127.0.0.1, or what this machine "
		"knows about it: TLS: the certificate of 127.0.0.1 is of the "
		"CA 'CN=a CA'");
	stop();
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("doctor", CA, url("")), 1);
	reports("TLS: 127.0.0.1 offers none");
	ck_assert_int_eq(TOOL("doctor", url("")), 0);
	reports(" has none\n");
	stop();
}

TEST(doctor_tells_a_failed_handshake_from_no_tls)
{
	struct tls_liar l = { .lie = LIE_OTHER_ALPN, .pki = &pki };
	char where[80];

	start(WAY_TCP);
	tls_liar_start(&l);
	snprintf(where, sizeof(where), "tcp://127.0.0.1:%u/e?mountport=%u",
		 l.port, l.port);
	ck_assert_int_ne(TOOL("doctor", where), 0);
	reports("      tls          no certificate came: TLS: 127.0.0.1 has "
		"none for NFS (it refuses ALPN");
	tls_liar_stop(&l);
	stop();
}

/* Linux's mountd is another program than its NFS server. */
TEST(doctor_finds_a_mount_service_without_tls)
{
	struct tls_liar l = { .lie = LIE_NO_VERIFIER, .pki = &pki };
	char where[400];

	start_tls("tls");
	tls_liar_start(&l);
	snprintf(where, sizeof(where), "%s?mountport=%u", base, l.port);
	ck_assert_int_eq(TOOL("doctor", CA, where), 1);
	reports("ok    tls          the server is proven\n");
	reports("To mend: let the MOUNT service (mountd) of 127.0.0.1 have "
		"TLS");
	ck_assert_uint_eq(atomic_load(&l.clear), 0);
	tls_liar_stop(&l);
	stop();
}

TEST(a_certificate_proves_the_client)
{
	start_tls("mtls");
	ck_assert_msg(TOOL("ls", CA, "--tls-cert", pki.host, "--tls-key",
			   pki.host, url("")) == 0, "%s", err);
	ck_assert_int_eq(TOOL("ls", CA, url("")), 1);
	says("it can demand TLS (--tls, --tls-cert)");
	/* Of another CA. */
	ck_assert_int_eq(TOOL("ls", CA, "--tls-cert", pki.stranger,
			      "--tls-key", pki.stranger, url("")), 1);
	says("refuses this client, perhaps its certificate (alert: ");
	ck_assert_int_eq(TOOL("ls", CA, "--tls-cert", pki.revoked,
			      "--tls-key", pki.revoked, url("")), 1);
	says("alert: certificate revoked");
	ck_assert_int_eq(TOOL("ls", CA, "--tls-cert", pki.host, url("")), 2);
	ck_assert_int_eq(TOOL("doctor", CA, url("")), 1);
	reports("To mend: try --tls-cert and --tls-key: 127.0.0.1 has TLS, "
		"and can demand a certificate of this client ");
	stop();
}

TEST(an_export_that_demands_tls_says_so)
{
	start_tls("tls");
	ck_assert_int_eq(TOOL("ls", url("")), 1);
	says("it can demand TLS (--tls, --tls-cert)");
	stop();
}

TEST(a_certificate_of_an_unknown_ca_is_named)
{
	start_tls("tls");
	ck_assert_int_eq(TOOL("ls", "--tls", url("")), 1);
	says("is of the CA 'CN=a CA', which this system does not have: "
	     "--tls-ca names its file");
	ck_assert_int_eq(TOOL("ls", "--tls-ca", pki.stranger, url("")), 1);
	says("is of the CA 'CN=a CA', which ");
	says(pki.stranger);
	ck_assert_int_eq(TOOL("ls", "--tls-ca", "/nowhere", url("")), 1);
	says("the trust store /nowhere: No such file or directory");
	stop();
}

static const struct {
	struct tls_pki_cert cert;
	const char *says;	/* NULL: it is good */
} certs[] = {
	{ { "DNS:localhost,DNS:*.example", NULL, -9, 3600, NULL },
	  "is for other names: localhost, *.example" },
	{ { "IP:127.0.0.2,IP:::1", NULL, -9, 3600, NULL },
	  "is for other names: 127.0.0.2, ::1" },
	{ { NULL, NULL, -9, 3600, NULL },
	  "is for other names: it has none (SAN)" },
	{ { "IP:127.0.0.1", NULL, -7200, -3600, NULL }, "has expired at 20" },
	{ { "IP:127.0.0.1", NULL, 3600, 7200, NULL }, "compare the clocks" },
	{ { "IP:127.0.0.1", "clientAuth", -9, 3600, NULL },
	  "is not trusted: " },
	{ { "IP:127.0.0.1", NULL, -9, 3600, "keyAgreement" },
	  "is not trusted: " },
	{ { "IP:127.0.0.1", NULL, -9, 3600, "digitalSignature" }, NULL },
	{ { "IP:127.0.0.1", "1.3.6.1.5.5.7.3.34", -9, 3600, NULL }, NULL },
	{ { "IP:127.0.0.1", "serverAuth", -9, 3600, NULL }, NULL },
};

TEST_LOOP(each_fault_of_a_certificate_is_named, 0, ARRAY_SIZE(certs))
{
	tls_pki_exchange(&pki, &certs[_i].cert);
	start_tls("tls");
	if (certs[_i].says) {
		ck_assert_int_eq(TOOL("ls", CA, url("")), 1);
		says("the certificate of 127.0.0.1 ");
		says(certs[_i].says);
	} else {
		ck_assert_msg(TOOL("ls", CA, url("")) == 0, "%s", err);
	}
	stop();
}

TEST(a_common_name_proves_no_server)
{
	struct tls_pki_cert c = { NULL, NULL, -9, 3600, NULL };
	char where[400];

	tls_pki_exchange(&pki, &c);
	start_tls("tls");
	snprintf(where, sizeof(where), "tcp://localhost:%u%s?mountport=%u",
		 d.tcp_port, export, d.tcp_port);
	ck_assert_int_eq(TOOL("ls", CA, where), 1);
	says("the certificate of localhost is for other names: it has none");
	stop();
}

/* A container can be without. */
static bool has_loopback6(void)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6,
				  .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	bool has = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;

	if (fd >= 0)
		close(fd);
	return has;
}

TEST(a_certificate_has_no_zone_of_an_address)
{
	struct tls_pki_cert c = { "IP:::1", NULL, -9, 3600, NULL };
	char where[80];

	if (!has_loopback6())
		return;
	tls_pki_exchange(&pki, &c);
	start_tls("tls");
	snprintf(where, sizeof(where), "tcp://[::1%%251]:%u/e?mountport=%u",
		 d.tcp_port, d.tcp_port);
	/* That is not exported: MOUNT answered. */
	ck_assert_int_eq(TOOL("ls", CA, where), 1);
	says("MNT3ERR_");
	stop();
}

TEST(a_server_without_tls_gets_nothing_in_clear)
{
	start(WAY_TCP);
	ck_assert_int_eq(TOOL("ls", CA, url("")), 1);
	says("TLS: 127.0.0.1 offers none, and nothing is sent to it in clear");
	stop();
	start(WAY_IWARP);
	ck_assert_int_eq(TOOL("ls", CA, url("")), 2);
	says("RDMA has no TLS");
	stop();
}

static const char *const lies[LIES] = {
	[LIE_DENIED] = "offers none",
	[LIE_NO_VERIFIER] = "offers none",
	[LIE_LONG_VERIFIER] = "offers none",
	[LIE_SYS_VERIFIER] = "offers none",
	[LIE_CLEAR_BEHIND] = "sends other bytes than TLS behind STARTTLS",
	[LIE_CLEAR] = "TLS: ",
	[LIE_MUTE] = "TLS: 127.0.0.1 does not answer the handshake",
	[LIE_CLOSE] = "failed: it closed the connection",
	[LIE_NO_ALPN] = "has none for NFS (it does not agree on ALPN",
	[LIE_OTHER_ALPN] = "has none for NFS (it refuses ALPN",
	[LIE_OLD] = "TLS: ",
	[LIE_MUTUAL] = "demands a certificate of this client: --tls-cert",
};

TEST_LOOP(each_lie_ends_without_a_call_in_clear, 0, LIES)
{
	struct tls_liar l = { .lie = (enum tls_lie)_i, .pki = &pki };
	char where[80];

	start(WAY_TCP);
	tls_liar_start(&l);
	snprintf(where, sizeof(where), "tcp://127.0.0.1:%u/e?mountport=%u",
		 l.port, l.port);
	/* The mute one costs the whole time. */
	ck_assert_int_eq(TOOL("ls", CA, "-t", _i == LIE_MUTE ? "2" : "60",
			      where), 1);
	says(lies[_i]);
	ck_assert_uint_eq(atomic_load(&l.clear), 0);
	tls_liar_stop(&l);
	stop();
}
