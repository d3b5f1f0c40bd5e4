/* SPDX-License-Identifier: BSD-2-Clause */
/* TLS of gannetd, confined: its settings, and files that change. */
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/util.h"
#include "tests/server/ctl_run.h"
#include "tests/server/tls_client.h"
#include "tests/unit/runner.h"

#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define MEM	"--export", "mem:/m 127.0.0.1(rw,insecure)"
#define TLS	"--tls-cert", pki.cert, "--tls-key", pki.key

static struct daemon_run d;
static struct tls_pki pki;

static void setup(void)
{
	tls_pki_make(&pki);
	daemon_prepare(&d);
}

static void teardown(void)
{
	daemon_clean(&d);
	tls_pki_remove(&pki);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* NULL of NFS. */
static int ask(struct tls_client *c)
{
	tls_client_begin(c, 100003, 3, 0);
	return tls_client_call(c);
}

/* True if the server's certificate is @cn's. */
static bool is_named(struct tls_client *c, const char *cn)
{
	X509 *cert = SSL_get0_peer_certificate(c->ssl);
	char name[32];

	X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName,
				  name, sizeof(name));
	return strcmp(name, cn) == 0;
}

/* True if a new connection gets that certificate. */
static bool serves(const char *cn)
{
	struct tls_client c;
	bool ok = tls_client_start(&c, d.tcp_port, NULL) && ask(&c) == 0 &&
		  is_named(&c, cn);

	tls_client_close(&c);
	return ok;
}

TEST(a_reload_exchanges_the_certificate)
{
	struct tls_client c;

	ck_assert(daemon_start(&d, ARGS(MEM, TLS, "--tls-ca", pki.ca,
					"--tls-crl", pki.crl)));
	ck_assert(daemon_logged(&d, "TLS: serving with the certificate in "));
	ck_assert(tls_client_start(&c, d.tcp_port, NULL));
	ck_assert_int_eq(ask(&c), 0);
	ck_assert(is_named(&c, "server"));
	tls_pki_renew(&pki, "renewed");
	ck_assert(serves("server"));
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "configuration and exports read again"));
	ck_assert(serves("renewed"));
	ck_assert_int_eq(ask(&c), 0);
	tls_client_close(&c);
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
}

/* RFC 9289 section 6.1. */
TEST(the_log_tells_what_each_connection_chose)
{
	const struct tls_client_config proven = { .cert = pki.host };
	struct tls_client c;

	ck_assert(daemon_start(&d, ARGS(MEM, TLS, "--tls-ca", pki.ca,
					"--log-level", "debug")));
	ck_assert(tls_client_start(&c, d.tcp_port, NULL));
	ck_assert(daemon_logged(&d, "TLS begins, without a trusted "));
	tls_client_close(&c);
	ck_assert(tls_client_start(&c, d.tcp_port, &proven));
	ck_assert(daemon_logged(&d, "TLS begins, with a trusted "));
	tls_client_close(&c);
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
}

TEST(a_mistake_in_a_file_changes_nothing)
{
	FILE *f;

	ck_assert(daemon_start(&d, ARGS(MEM, TLS)));
	f = fopen(pki.cert, "w");
	fputs("no certificate\n", f);
	fclose(f);
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "configuration and exports unchanged"));
	ck_assert(daemon_has_logged(&d, pki.cert));
	ck_assert(serves("server"));
	daemon_end(&d, SIGTERM);
}

/* A pipe without a writer hangs whoever opens it, as a disk can. */
TEST(a_reload_does_not_wait_for_a_hung_file)
{
	char kept[80];
	int fd;

	ck_assert(daemon_start(&d, ARGS(MEM, TLS)));
	snprintf(kept, sizeof(kept), "%s.kept", pki.cert);
	ck_assert_int_eq(rename(pki.cert, kept), 0);
	ck_assert_int_eq(mkfifo(pki.cert, 0600), 0);
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "TLS goes on with what was read before"));
	ck_assert(daemon_logged(&d, "configuration and exports read again"));
	ck_assert(serves("server"));
	ctl_says(&d, "reload", 0, ": TLS goes on with what was read before\n");
	ck_assert_ptr_nonnull(strstr(ctl_out, "warning: TLS: the file system "
				     "of "));
	/* It answers, but not with a certificate. */
	fd = open(pki.cert, O_WRONLY);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(rename(kept, pki.cert), 0);
	tls_pki_renew(&pki, "renewed");
	kill(d.pid, SIGHUP);
	EVENTUALLY(serves("renewed"));
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
}

static void write_settings(const char *config, const char *cert,
			   const char *more)
{
	FILE *f = fopen(config, "w");

	fprintf(f, "[server]\ntls-cert = %s\ntls-key = %s\n%s\n", cert,
		pki.key, more);
	fclose(f);
}

TEST(a_reload_to_another_file_that_hangs_changes_nothing)
{
	char config[128], other[128];
	int fd;

	snprintf(config, sizeof(config), "%s/gannet.conf", d.dir);
	snprintf(other, sizeof(other), "%s/other", d.dir);
	ck_assert_int_eq(mkfifo(other, 0600), 0);
	write_settings(config, pki.cert, "");
	ck_assert(daemon_start(&d, ARGS(MEM, "--config", config)));
	write_settings(config, other, "");
	kill(d.pid, SIGHUP);
	ck_assert(daemon_logged(&d, "configuration and exports unchanged"));
	ck_assert(daemon_has_logged(&d, "does not answer"));
	ck_assert(!daemon_has_logged(&d, "TLS goes on"));
	ck_assert(serves("server"));
	fd = open(other, O_WRONLY);
	ck_assert_int_ge(fd, 0);
	close(fd);
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
}

TEST(a_reload_begins_and_ends_tls)
{
	char config[128];
	struct tls_client c;
	FILE *f;

	snprintf(config, sizeof(config), "%s/gannet.conf", d.dir);
	f = fopen(config, "w");
	fclose(f);
	ck_assert(daemon_start(&d, ARGS(MEM, "--config", config)));
	tls_client_open(&c, d.tcp_port);
	ck_assert(!tls_client_probe(&c));
	tls_client_close(&c);
	f = fopen(config, "w");
	fprintf(f, "[server]\ntls-cert = %s\ntls-key = %s\n", pki.cert,
		pki.key);
	fclose(f);
	kill(d.pid, SIGHUP);
	EVENTUALLY(serves("server"));
	f = fopen(config, "w");
	fclose(f);
	kill(d.pid, SIGHUP);
	EVENTUALLY(!serves("server"));
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
}

TEST(exports_can_demand_tls_where_there_is_tls)
{
	const char *export = "mem:/m 127.0.0.1(rw,insecure,xprtsec=tls)";
	const char *mutual = "mem:/m 127.0.0.1(rw,insecure,xprtsec=mtls)";

	ck_assert(!daemon_start(&d, ARGS("--check", "--export", export)));
	ck_assert_int_ne(WEXITSTATUS(d.status), 0);
	ck_assert(!daemon_start(&d, ARGS("--check", TLS, "--export", export)));
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	ck_assert(!daemon_start(&d, ARGS("--check", TLS, "--export", mutual)));
	ck_assert_int_ne(WEXITSTATUS(d.status), 0);
	ck_assert(!daemon_start(&d, ARGS("--check", TLS, "--tls-ca", pki.ca,
					 "--export", mutual)));
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
}

/* Of 8 MiB it is 2 MiB, and half of that for an address; of 64 KiB each. */
TEST(a_quarter_of_the_memory_is_for_tls)
{
	char config[128];
	struct tls_client c[17];

	snprintf(config, sizeof(config), "%s/gannet.conf", d.dir);
	write_settings(config, pki.cert, "memory = 8");
	ck_assert(daemon_start(&d, ARGS(MEM, "--config", config)));
	for (int i = 0; i < 17; i++)
		ck_assert_msg(tls_client_start(&c[i], d.tcp_port, NULL) ==
			      (i < 16), "%d", i);
	ck_assert(daemon_logged(&d, "TLS refused: connections under TLS have "
				"all the memory that they can have"));
	write_settings(config, pki.cert, "memory = 16");
	kill(d.pid, SIGHUP);
	EVENTUALLY(serves("server"));
	for (int i = 0; i < 17; i++)
		tls_client_close(&c[i]);
	daemon_end(&d, SIGTERM);
}

/* As SECURITY.md has them. */
TEST(handshakes_have_their_bounds_and_end)
{
	static const unsigned fit[] = { 64, 64, 64, 1 };
	static struct tls_client c[ARRAY_SIZE(fit)][65];
	unsigned k, i, wrong = 0;
	uint8_t b;

	ck_assert(daemon_start(&d, ARGS(MEM, TLS)));
	for (k = 0; k < ARRAY_SIZE(fit); k++)
		for (i = 0; i <= fit[k]; i++) {
			tls_client_open_from(&c[k][i], d.tcp_port,
					     INADDR_LOOPBACK + k);
			wrong += tls_client_probe(&c[k][i]) != (i < fit[k]);
		}
	/* Unless the machine is so slow that the first one has ended. */
	if (recv(c[0][0].fd, &b, 1, MSG_DONTWAIT) < 0)
		ck_assert_uint_eq(wrong, 0);
	/* After ten seconds. */
	ck_assert(tls_client_is_left(&c[0][0]));
	for (k = 0; k < ARRAY_SIZE(fit); k++)
		for (i = 0; i <= fit[k]; i++)
			tls_client_close(&c[k][i]);
	daemon_end(&d, SIGTERM);
}

/* Puts there a certificate of these times, in days from now. */
static void exchange(int from, int until)
{
	tls_pki_exchange(&pki, &(struct tls_pki_cert){
			 .san = "DNS:localhost", .from = from * 86400L,
			 .until = until * 86400L });
}

/* Where a machine is slower than a reload is patient, that keeps what was read
 * before. */
static bool reload_says(const char *text)
{
	return ctl(&d, "reload") == 0 && strstr(ctl_out, text);
}

TEST(files_that_are_about_to_fail_are_warned_of)
{
	exchange(-1, 20);
	ck_assert_int_eq(chmod(pki.key, 0604), 0);
	ck_assert(!daemon_start(&d, ARGS("--check", MEM, TLS)));
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	ck_assert(daemon_has_logged(&d, "TLS: the certificate in "));
	ck_assert(daemon_start(&d, ARGS(MEM, TLS)));
	ck_assert(daemon_logged(&d, "server.pem ends at 20"));
	ck_assert(daemon_logged(&d, "TLS: every user of this machine may read "
				"the key "));
	ck_assert(serves("localhost"));
	exchange(-2, -1);
	ck_assert_int_eq(chmod(pki.key, 0622), 0);
	EVENTUALLY(reload_says("warning: TLS: the certificate in "));
	ck_assert_ptr_nonnull(strstr(ctl_out, "server.pem has expired at 20"));
	ck_assert_ptr_nonnull(strstr(ctl_out, "warning: TLS: every user of "
				     "this machine may change the key "));
	exchange(1, 90);
	ck_assert_int_eq(chmod(pki.key, 0640), 0);
	EVENTUALLY(reload_says("server.pem is not valid before 20"));
	ck_assert_ptr_null(strstr(ctl_out, "every user"));
	exchange(-1, 31);
	EVENTUALLY(reload_says("") && !strstr(ctl_out, "warning"));
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
}

static void append_file(const char *to, const char *from)
{
	FILE *f = fopen(to, "a"), *in = fopen(from, "r");
	int c;

	ck_assert(f && in);
	while ((c = getc(in)) != EOF)
		putc(c, f);
	fclose(in);
	fclose(f);
}

TEST(a_chain_that_is_about_to_end_is_warned_of)
{
	exchange(-1, 20);
	ck_assert_int_eq(rename(pki.cert, pki.stranger), 0);
	tls_pki_renew(&pki, "server");
	ck_assert(daemon_start(&d, ARGS(MEM, TLS)));
	daemon_end(&d, SIGTERM);
	ck_assert(!daemon_has_logged(&d, "ends at"));
	daemon_clean(&d);
	daemon_prepare(&d);
	append_file(pki.cert, pki.stranger);
	ck_assert(daemon_start(&d, ARGS(MEM, TLS)));
	ck_assert(daemon_logged(&d, "TLS: a certificate of the chain in "));
	daemon_end(&d, SIGTERM);
}

/* A list is warned of in the last third of its time, since many have few
 * days. */
TEST(a_trust_store_that_is_about_to_end_is_warned_of)
{
	static const struct {
		int from, until;	/* days from now */
		const char *ca, *list;
	} rows[] = {
		{ -1, 31, NULL, NULL }, { -1, 20, "ends at 20", NULL },
		{ -20, 5, "ends at 20", "ends at 20" },
		{ -2, -1, "has expired at 20", "has expired at 20" },
		{ 1, 90, "is not valid before 20", "is not valid before 20" },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		char ca[160], list[160];

		tls_pki_age(&pki, rows[i].from * 86400L, rows[i].until *
			    86400L);
		snprintf(ca, sizeof(ca), "TLS: the authority /CN=a CA in %s %s",
			 pki.ca, rows[i].ca ? : "");
		snprintf(list, sizeof(list), "TLS: the list of /CN=a CA in %s "
			 "%s", pki.crl, rows[i].list ? : "");
		ck_assert(!daemon_start(&d, ARGS("--check", MEM, TLS,
						 "--tls-ca", pki.ca,
						 "--tls-crl", pki.crl)));
		ck_assert_int_eq(WEXITSTATUS(d.status), 0);
		ck_assert_msg(daemon_has_logged(&d, ca) == !!rows[i].ca,
			      "%u", i);
		ck_assert_msg(daemon_has_logged(&d, list) == !!rows[i].list,
			      "%u", i);
		daemon_clean(&d);
		daemon_prepare(&d);
	}
}

/* Without tls-crl the server does not use the lists in tls-ca. */
TEST(a_list_that_nobody_is_looked_up_in_is_not_warned_of)
{
	tls_pki_age(&pki, -2 * 86400L, -86400L);
	append_file(pki.ca, pki.crl);
	ck_assert(!daemon_start(&d, ARGS("--check", MEM, TLS, "--tls-ca",
					 pki.ca)));
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	ck_assert(daemon_has_logged(&d, "TLS: the authority /CN=a CA in "));
	ck_assert(!daemon_has_logged(&d, "the list of"));
}

TEST(settings_that_need_others_say_so)
{
	ck_assert(!daemon_start(&d, ARGS(MEM, "--tls-cert", pki.cert)));
	ck_assert(daemon_has_logged(&d, "tls-cert and tls-key"));
	ck_assert(!daemon_start(&d, ARGS(MEM, "--tls-ca", pki.ca)));
	ck_assert(daemon_has_logged(&d, "tls-ca and tls-crl need tls-cert"));
	ck_assert(!daemon_start(&d, ARGS(MEM, TLS, "--tls-crl", pki.crl)));
	ck_assert(daemon_has_logged(&d, "tls-crl needs tls-ca"));
	ck_assert(!daemon_start(&d, ARGS(MEM, "--tls-cert", pki.cert,
					 "--tls-key", pki.host)));
	ck_assert(daemon_has_logged(&d, pki.host));
}
