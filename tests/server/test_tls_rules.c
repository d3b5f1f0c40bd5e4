/* SPDX-License-Identifier: BSD-2-Clause */
/* Certificates of TLS, and the demands of exports on a connection. */
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/server/tls_rig.h"
#include "tests/unit/runner.h"
#include "wire/nfs3.h"

TEST_CASE(.setup = tls_rig_setup, .teardown = tls_rig_teardown);

/* ---- certificates */

TEST(certificates_are_exchanged_without_a_restart)
{
	struct tls_files files = tls_pki_files(&rig.pki);
	struct tls_client before, after;
	struct tls_config *config;
	char *why = NULL, name[32];
	X509 *cert;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&before, rig.srv.port, NULL));
	tls_pki_renew(&rig.pki, "renewed");
	ck_assert_int_eq(tls_config_read(&files, &config, &why), 0);
	tls_server_use(rig.srv.tls, config);
	ck_assert(tls_client_start(&after, rig.srv.port, NULL));
	cert = SSL_get0_peer_certificate(after.ssl);
	X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName,
				  name, sizeof(name));
	ck_assert_str_eq(name, "renewed");
	ck_assert_int_eq(tls_rig_ask(&before), NFS3_OK);
	ck_assert_int_eq(tls_rig_ask(&after), NFS3_OK);
	tls_server_use(rig.srv.tls, NULL);
	ck_assert_int_eq(tls_rig_ask(&before), NFS3_OK);
	tls_client_close(&before);
	tls_client_close(&after);
	tls_client_open(&after, rig.srv.port);
	ck_assert(!tls_client_probe(&after));
	ck_assert_int_eq(tls_rig_ask(&after), NFS3_OK);
	tls_client_close(&after);
}

TEST(a_mistake_in_a_file_is_named)
{
	struct tls_files good, files;
	struct tls_config *config;
	char *why;

	tls_rig_start(NULL, true);
	good = files = tls_pki_files(&rig.pki);
	files.key = rig.pki.host;
	ck_assert_int_eq(tls_config_read(&files, &config, &why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, rig.pki.host));
	free(why);
	files = good;
	files.cert = "/nowhere";
	ck_assert_int_eq(tls_config_read(&files, &config, &why), -ENOENT);
	ck_assert_str_eq(why, "the certificate /nowhere: No such file or "
			 "directory");
	free(why);
	files = good;
	files.ca = rig.pki.key;
	ck_assert_int_eq(tls_config_read(&files, &config, &why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, rig.pki.key));
	free(why);
	files = good;
	files.crl = rig.pki.cert;
	ck_assert_int_eq(tls_config_read(&files, &config, &why), -EINVAL);
	ck_assert_ptr_nonnull(strstr(why, rig.pki.cert));
	free(why);
	files = good;
	files.key = "/tmp";
	ck_assert_int_eq(tls_config_read(&files, &config, &why), -EISDIR);
	ck_assert_str_eq(why, "the key /tmp: Is a directory");
	free(why);
}

/* Handshakes read a list whole, and a reload waits for two seconds. */
TEST(a_list_has_a_bound)
{
	struct tls_files files;
	struct tls_config *config;
	char *why;

	tls_rig_start(NULL, true);
	files = tls_pki_files(&rig.pki);
	ck_assert_int_eq(truncate(files.crl, 4 << 20), 0);
	ck_assert_int_eq(tls_config_read(&files, &config, &why), 0);
	tls_config_free(config);
	ck_assert_int_eq(truncate(files.crl, (4 << 20) + 1), 0);
	ck_assert_int_eq(tls_config_read(&files, &config, &why), -EFBIG);
	ck_assert_ptr_nonnull(strstr(why, "has more than 4 MiB"));
	ck_assert_ptr_nonnull(strstr(why, files.crl));
	free(why);
}

static bool is_served(const char *cert)
{
	const struct tls_client_config config = { .cert = cert };
	struct tls_client c;
	bool served;

	served = tls_client_start(&c, rig.srv.port, &config) &&
		 tls_rig_ask(&c) == NFS3_OK;
	tls_client_close(&c);
	return served;
}

TEST(a_certificate_of_another_ca_ends_the_handshake)
{
	tls_rig_start(NULL, true);
	ck_assert(is_served(NULL));
	ck_assert(is_served(rig.pki.host));
	ck_assert(!is_served(rig.pki.stranger));
	EVENTUALLY(stats_sum_by_name("tls_failed") == 1);
	ck_assert(!is_served(rig.pki.revoked));
	EVENTUALLY(stats_sum_by_name("tls_failed") == 2);
}

/* True if the host's certificate ends no handshake, and proves the host. */
static bool is_trusted(void)
{
	const struct tls_client_config config = { .cert = rig.pki.host };
	struct tls_client c;
	bool ok;

	harness_root(&rig.srv, "/mtls", &rig.top);
	ok = tls_client_start(&c, rig.srv.port, &config) &&
	     tls_rig_ask(&c) == NFS3_OK;
	tls_client_close(&c);
	return ok;
}

/* RFC 9289 section 5.2.1; 34 is a server's. */
TEST(a_certificate_can_be_for_clients_of_rpc_alone)
{
	static const struct {
		const char *key, *extended;
		bool	    ok;
	} uses[] = {
		{ NULL, "1.3.6.1.5.5.7.3.33", true },
		{ "digitalSignature", "1.3.6.1.5.5.7.3.33", true },
		{ "keyEncipherment", "1.3.6.1.5.5.7.3.33", false },
		{ NULL, "clientAuth", true },
		{ NULL, "serverAuth,1.3.6.1.5.5.7.3.33", true },
		{ NULL, "1.3.6.1.5.5.7.3.34", false },
		{ NULL, "serverAuth", false },
		{ NULL, "codeSigning,1.3.6.1.5.5.7.3.34", false },
	};

	tls_rig_start(NULL, true);
	for (unsigned i = 0; i < ARRAY_SIZE(uses); i++) {
		tls_pki_use(&rig.pki, uses[i].key, uses[i].extended);
		ck_assert_msg(is_trusted() == uses[i].ok, "%u", i);
	}
}

TEST(a_host_can_issue_no_certificate)
{
	tls_rig_start(NULL, true);
	ck_assert(is_trusted());
	tls_pki_forge(&rig.pki);
	ck_assert(!is_trusted());
	tls_pki_use(&rig.pki, NULL, "1.3.6.1.5.5.7.3.33");
	ck_assert(is_trusted());
	tls_pki_forge(&rig.pki);
	ck_assert(!is_trusted());
}

/* The server reads its files again. */
static void read_again(void)
{
	struct tls_files files = tls_pki_files(&rig.pki);
	struct tls_config *config;
	char *why;

	ck_assert_int_eq(tls_config_read(&files, &config, &why), 0);
	free(why);
	tls_server_use(rig.srv.tls, config);
}

TEST(an_authority_can_be_revoked)
{
	tls_rig_start(NULL, true);
	tls_pki_delegate(&rig.pki, false, false);
	read_again();
	ck_assert(!is_trusted());
	tls_pki_delegate(&rig.pki, false, true);
	read_again();
	ck_assert(is_trusted());
	tls_pki_delegate(&rig.pki, true, true);
	read_again();
	ck_assert(!is_trusted());
	/* Without the CA's own list. */
	ck_assert_int_eq(unlink(rig.pki.crl), 0);
	tls_pki_delegate(&rig.pki, false, true);
	read_again();
	ck_assert(is_trusted());
}

/* A forged chain costs as many hashes of a list as it has certificates. */
TEST(a_chain_of_authorities_has_a_bound)
{
	tls_rig_start(NULL, true);
	tls_pki_descend(&rig.pki, 4);
	read_again();
	ck_assert(is_trusted());
	tls_pki_descend(&rig.pki, 5);
	read_again();
	ck_assert(!is_trusted());
}

TEST(without_a_trust_store_a_certificate_proves_nothing)
{
	tls_rig_start(NULL, false);
	ck_assert(is_served(NULL));
	ck_assert(is_served(rig.pki.host));
	ck_assert(is_served(rig.pki.stranger));
	ck_assert(!is_trusted());
}

/* RFC 9289 section 5 and RFC 8446 section 9.1: every peer has the first. */
TEST(a_client_can_have_a_single_suite)
{
	static const char *const suites[] = {
		"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",
		"TLS_CHACHA20_POLY1305_SHA256",
	};

	tls_rig_start(NULL, true);
	for (unsigned i = 0; i < ARRAY_SIZE(suites); i++) {
		const struct tls_client_config config = { .suites = suites[i] };
		struct tls_client c;

		ck_assert(tls_client_start(&c, rig.srv.port, &config));
		ck_assert_str_eq(SSL_get_cipher_name(c.ssl), suites[i]);
		ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
		tls_client_close(&c);
	}
}

/* The verdict of gannet-nfs' TLS on this server's certificate, for @host. */
static enum tls_verdict judge(const char *host)
{
	const struct tls_files files = { .ca = rig.pki.ca };
	struct tls_client *client, c;
	struct tls_conn *conn;
	struct tls_peer peer;
	const char *reason;
	uint32_t events;
	char *why;
	int err;

	ck_assert_int_eq(tls_client_create(&files, &client, &why), 0);
	tls_client_open(&c, rig.srv.port);
	ck_assert(tls_client_probe(&c));
	ck_assert_int_eq(tls_conn_dial(client, c.fd, host, &conn), 0);
	while ((err = tls_handshake(conn, &events, &reason)) == -EAGAIN)
		poll(&(struct pollfd){ c.fd, (short)events, 0 }, 1, -1);
	tls_conn_peer(conn, &peer);
	ck_assert_int_eq(err == 0, peer.verdict == TLS_TRUSTED);
	tls_conn_destroy(conn);
	tls_client_destroy(client);
	tls_client_close(&c);
	return peer.verdict;
}

/* RFC 9289 section 5.2.1.  The CN of each is localhost. */
TEST(a_server_is_proven_by_a_whole_name_of_its_kind)
{
	static const struct {
		const char *san, *host;
		bool	    ok;
	} rows[] = {
		{ "DNS:nfs.example.org", "nfs.example.org", true },
		{ "DNS:NFS.Example.ORG", "nfs.example.org", true },
		{ "DNS:a.test,DNS:nfs.example.org", "nfs.example.org", true },
		{ "DNS:*.example.org", "nfs.example.org", false },
		{ "DNS:n*.example.org", "nfs.example.org", false },
		{ "DNS:*", "localhost", false },
		{ "DNS:example.org", "nfs.example.org", false },
		{ "DNS:nfs.example.org", "example.org", false },
		{ "DNS:nfs.example.org", "nfs.example.org.test", false },
		{ "IP:192.0.2.1", "192.0.2.1", true },
		{ "DNS:192.0.2.1", "192.0.2.1", false },
		{ "DNS:*.0.2.1", "192.0.2.1", false },
		{ "IP:2001:db8::1", "2001:db8:0::1", true },
		{ "DNS:2001:db8::1", "2001:db8::1", false },
		{ "IP:192.0.2.1", "localhost", false },
		{ "URI:nfs://localhost/", "localhost", false },
		{ "email:root@localhost", "localhost", false },
		{ NULL, "localhost", false },
	};
	struct tls_pki_cert cert = { .from = -9, .until = 90 * 86400 };
	struct tls_files files = tls_pki_files(&rig.pki);
	struct tls_config *config;
	char *why;

	tls_rig_start(NULL, true);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		cert.san = rows[i].san;
		tls_pki_exchange(&rig.pki, &cert);
		ck_assert_int_eq(tls_config_read(&files, &config, &why), 0);
		tls_server_use(rig.srv.tls, config);
		ck_assert_msg(judge(rows[i].host) == (rows[i].ok ?
			      TLS_TRUSTED : TLS_OTHER_NAME), "%u", i);
	}
}

/* ---- exports */

enum { CLEAR, TLS, MTLS, NWAYS };

/* Connects in one of these ways. */
static void come(struct tls_client *c, int way)
{
	const struct tls_client_config config = {
		.cert = way == MTLS ? rig.pki.host : NULL
	};

	if (way == CLEAR)
		tls_client_open(c, rig.srv.port);
	else
		ck_assert(tls_client_start(c, rig.srv.port, &config));
}

TEST(calls_need_the_protection_that_their_export_demands)
{
	static const struct {
		const char *path;
		int least;
	} rows[] = {
		{ "/mem", CLEAR }, { "/any", CLEAR }, { "/tls", TLS },
		{ "/mtls", MTLS },
	};
	uint64_t refused = 0;

	tls_rig_start(NULL, true);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		for (int way = CLEAR; way < NWAYS; way++) {
			bool ok = way >= rows[i].least;
			struct tls_client c;

			harness_root(&rig.srv, rows[i].path, &rig.top);
			come(&c, way);
			ck_assert_int_eq(tls_rig_ask(&c),
					 ok ? NFS3_OK : -EACCES);
			/* AUTH_ERROR, AUTH_TOOWEAK */
			if (!ok)
				ck_assert_mem_eq(c.buf + 12, "\0\0\0\1\0\0\0\5",
						 8);
			refused += !ok;
			tls_client_close(&c);
		}
	}
	ck_assert_uint_eq(stats_sum_by_name("export_unprotected"), refused);
}

TEST(each_export_can_be_mounted_in_clear)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	tls_client_open(&c, rig.srv.port);
	tls_client_begin(&c, 100005, 3, 1);
	xdr_put_string(&c.out, "/mtls");
	tls_client_post(&c);
	ck_assert_int_eq(tls_rig_status(&c), 0);
	rig.top = harness_get_fh(&c.in);
	ck_assert_int_eq(tls_rig_ask(&c), -EACCES);
	tls_client_close(&c);
}

/* MKDIR of "d" in the export, as the call @xid. */
static int make_directory(struct tls_client *c, uint32_t xid)
{
	c->xid = xid - 1;
	tls_client_begin(c, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_MKDIR);
	xdr_put_opaque(&c->out, rig.top.data, rig.top.len);
	xdr_put_string(&c->out, "d");
	for (int i = 0; i < 6; i++)
		xdr_put_u32(&c->out, 0);	/* no attribute is set */
	tls_client_post(c);
	return tls_rig_status(c);
}

/* Anybody on the way can send the copy, with the client's address. */
TEST(a_copy_with_less_protection_gets_no_reply_to_a_call)
{
	static const struct {
		const char *path;
		int way, less;
	} rows[] = {
		{ "/tls", TLS, CLEAR }, { "/mtls", MTLS, CLEAR },
		{ "/mtls", MTLS, TLS },
	};

	tls_rig_start(NULL, true);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		struct tls_client c, copy;

		harness_root(&rig.srv, rows[i].path, &rig.top);
		come(&c, rows[i].way);
		come(&copy, rows[i].less);
		ck_assert_int_eq(make_directory(&c, 4711 + i),
				 i == 2 ? NFS3ERR_EXIST : NFS3_OK);
		ck_assert_int_eq(make_directory(&copy, 4711 + i), -EACCES);
		tls_client_close(&copy);
		tls_client_close(&c);
	}
}
