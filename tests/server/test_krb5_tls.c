/* SPDX-License-Identifier: BSD-2-Clause */
/* Kerberos inside TLS: an export that demands both, of ./gannetd with a keytab
 * and certificates, for ./gannet-nfs and a client of the test's own. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/krb5/kdc.h"
#include "tests/server/ctl_json.h"
#include "tests/server/gss_client.h"
#include "tests/server/tls_client.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"
#include "wire/nfs3.h"
#include "wire/record.h"

static struct kdc kdc;
static struct tls_pki pki;

/* The URLs' host is the service's, and gannet-nfs has a ticket for it. */
static void name_host(void)
{
	char *at = strstr(base, "127.0.0.1");

	ck_assert_ptr_nonnull(at);
	memcpy(at, "localhost", 9);
	kdc_login(&kdc, "host/localhost");
}

static void setup(void)
{
	char settings[sizeof(d.settings)];
	size_t len;

	tls_pki_make(&pki);
	kdc_start(&kdc, "aes256-cts-hmac-sha1-96");
	kdc_settings(&kdc, "server.keytab", settings, sizeof(settings));
	len = strlen(settings);
	len += (size_t)snprintf(settings + len, sizeof(settings) - len,
				"tls-cert = %s\ntls-key = %s\ntls-ca = %s\n",
				pki.cert, pki.key, pki.ca);
	ck_assert_uint_lt(len, sizeof(settings));
	start_both(WAY_TCP, "rw,insecure,no_root_squash,sec=krb5p,xprtsec=mtls",
		   settings);
	name_host();
}

static void teardown(void)
{
	stop();
	kdc_stop(&kdc);
	tls_pki_remove(&pki);
}

TEST_CASE(.setup = setup, .teardown = teardown, .timeout = 120);

#define SEC	"--sec=krb5p"
#define TLS	"--tls-ca", pki.ca
#define MTLS	TLS, "--tls-cert", pki.host, "--tls-key", pki.host

static uint64_t counted(const char *name)
{
	json_t *r = ctl_json(&d, "stats");
	json_int_t n = json_integer_value(
		json_object_get(json_object_get(r, "counters"), name));

	json_decref(r);
	return (uint64_t)n;
}

static void says(const char *want)
{
	ck_assert_msg(strstr(err, want) != NULL, "no '%s' in %s", want, err);
}

TEST(gannet_nfs_moves_files_with_both_and_with_neither_alone)
{
	const char *from = path(d.dir, "from"), *back = path(d.dir, "back");
	uint64_t unprotected;

	make_file(from, 5000003);
	ck_assert_msg(TOOL("put", SEC, MTLS, from, url("f")) == 0, "%s", err);
	same(from, path(export, "f"));
	ck_assert_msg(TOOL("get", SEC, MTLS, url("f"), back) == 0, "%s", err);
	same(from, back);
	ck_assert_uint_eq(counted("export_unprotected"), 0);
	/* Kerberos, but no certificate; nor TLS. */
	ck_assert_int_eq(TOOL("get", SEC, TLS, url("f"), back), 1);
	says("it can demand TLS (--tls, --tls-cert)");
	unprotected = counted("export_unprotected");
	ck_assert_uint_gt(unprotected, 0);
	ck_assert_int_eq(TOOL("get", SEC, url("f"), back), 1);
	says("it can demand TLS (--tls, --tls-cert)");
	ck_assert_uint_gt(counted("export_unprotected"), unprotected);
	/* A certificate, but not this flavor. */
	ck_assert_int_eq(TOOL("get", MTLS, url("f"), back), 1);
	says("takes only sec=krb5p for ");
	ck_assert_int_eq(TOOL("get", "--sec=krb5i", MTLS, url("f"), back), 1);
	says("takes only sec=krb5p for ");
	ck_assert_msg(TOOL("doctor", SEC, MTLS, url("")) == 0, "%s", out);
}

/* ---- the test's own client, which goes on after MNT whatever that says */

enum { CLEAR, TLS_ALONE, MUTUAL, NWAYS };

static struct caller c;
static struct gss_client g;
static struct kdc_client client;
static struct nfs3_fh top;

/* A context and the root's handle, in clear, as they can be had. */
static void mount_in_clear(void)
{
	memset(&c, 0, sizeof(c));
	c.fd = daemon_connect(d.tcp_port);
	gss_client_open(&g, &c, &kdc_mech);
	g.prog = NFS3_PROGRAM;
	g.vers = NFS3_VERSION;
	kdc_client_open(&client, &kdc, "host/localhost", "nfs@localhost");
	ck_assert_uint_eq(gss_client_init(&g, GSS_INIT, (struct xdr_view){
		client.token.value, (uint32_t)client.token.length }),
		RPC_SUCCESS);
	kdc_client_step(&client, g.init.token.data, g.init.token.len);
	ck_assert(gss_client_take(&g, &client));
	g.service = GSS_PRIVACY;
	gss_client_begin(&g, 100005, 3, 1);
	xdr_put_string(&g.args, export);
	ck_assert_uint_eq(gss_client_send(&g), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&g.res), 0);
	top = harness_get_fh(&g.res);
}

/* Sends the call that @g made, over @t. */
static void post(struct tls_client *t)
{
	uint32_t len = gss_client_make(&g);

	record_put_mark(g.call, len);
	t->xid = c.xid;
	if (t->ssl)
		ck_assert_int_eq(SSL_write(t->ssl, g.call, (int)len + 4),
				 (int)len + 4);
	else
		ck_assert_int_eq(write(t->fd, g.call, len + 4),
				 (ssize_t)len + 4);
}

/* FSSTAT of the root, with the service @service of Kerberos; 0: AUTH_SYS.
 * True if it was run, false: AUTH_TOOWEAK. */
static bool is_served(struct tls_client *t, uint32_t service)
{
	int result;

	if (service) {
		g.service = service;
		gss_client_begin(&g, NFS3_PROGRAM, NFS3_VERSION,
				 NFSPROC3_FSSTAT);
		xdr_put_opaque(&g.args, top.data, top.len);
		post(t);
	} else {
		tls_client_begin(t, NFS3_PROGRAM, NFS3_VERSION,
				 NFSPROC3_FSSTAT);
		xdr_put_opaque(&t->out, top.data, top.len);
		tls_client_post(t);
	}
	result = tls_client_wait(t);
	if (result == 0)
		return true;
	ck_assert_int_eq(result, -EACCES);
	/* AUTH_ERROR, AUTH_TOOWEAK */
	ck_assert_mem_eq(t->buf + 12, "\0\0\0\1\0\0\0\5", 8);
	return false;
}

static void come(struct tls_client *t, int way)
{
	const struct tls_client_config config = {
		.cert = way == MUTUAL ? pki.host : NULL
	};

	if (way == CLEAR)
		tls_client_open(t, d.tcp_port);
	else
		ck_assert(tls_client_start(t, d.tcp_port, &config));
}

TEST(each_half_that_is_missing_is_refused)
{
	mount_in_clear();
	for (int way = CLEAR; way < NWAYS; way++) {
		uint64_t unprotected = counted("export_unprotected");
		uint64_t bad_flavor = counted("export_bad_flavor");
		struct tls_client t;

		come(&t, way);
		for (uint32_t s = 0; s <= GSS_PRIVACY; s++)
			ck_assert_msg(is_served(&t, s) == (way == MUTUAL &&
				      s == GSS_PRIVACY), "%d %u", way, s);
		tls_client_close(&t);
		ck_assert_uint_eq(counted("export_unprotected") - unprotected,
				  way == MUTUAL ? 0 : 4);
		ck_assert_uint_eq(counted("export_bad_flavor") - bad_flavor,
				  way == MUTUAL ? 3 : 0);
	}
	close(c.fd);
	kdc_client_close(&client);
}

int main(void)
{
	return kdc_run_tests();
}
