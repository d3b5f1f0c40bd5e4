/* SPDX-License-Identifier: BSD-2-Clause */
/* server - the basis of TLS connections: rules, certificate, trust store. */
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/fail.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "transport/gate.h"
#include "transport/tls/internal.h"
#include "transport/tls/tls.h"

struct tls_server {
	/* Guards @ctx; connections have their own references. */
	pthread_mutex_t	 lock;
	SSL_CTX		*ctx;		/* NULL: no TLS */
	struct xprt_gate conns;		/* in units of TLS_CONN_BYTES */
};

struct tls_config {
	SSL_CTX		*ctx;
};

const uint8_t tls_sunrpc[] = "\6sunrpc";

/* OpenSSL calls this only for clients that name protocols.  RFC 9289 section 5
 * obliges every client to name this one, but Linux's tlshd names none. */
static int select_alpn(SSL *ssl, const unsigned char **out,
		       unsigned char *len, const unsigned char *in,
		       unsigned int nin, void *arg)
{
	unsigned char *found;

	if (SSL_select_next_proto(&found, len, tls_sunrpc, TLS_SUNRPC_LEN, in,
				  nin) != OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*out = found;
	return SSL_TLSEXT_ERR_OK;
}

/* Without a trust store a certificate is asked for (RFC 9289 section 4.2), and
 * proves nothing. */
static int pass_anyone(X509_STORE_CTX *ctx, void *arg)
{
	return 1;
}

bool tls_has_use(X509 *cert, const char *use)
{
	EXTENDED_KEY_USAGE *uses = X509_get_ext_d2i(cert, NID_ext_key_usage,
						    NULL, NULL);
	bool found = false;
	char oid[32];

	for (int i = 0; i < sk_ASN1_OBJECT_num(uses) && !found; i++) {
		OBJ_obj2txt(oid, sizeof(oid), sk_ASN1_OBJECT_value(uses, i), 1);
		found = strcmp(oid, use) == 0;
	}
	EXTENDED_KEY_USAGE_free(uses);
	return found;
}

/* id-kp-rpcTLSClient (RFC 9289 section 5.2.1). */
#define RPC_CLIENT	"1.3.6.1.5.5.7.3.33"

/* OpenSSL wants a certificate to be for HTTP's clients if it says what it is
 * for.  It has checked that CAs are CAs before. */
static bool is_for_rpc(X509 *cert, bool is_hosts)
{
	return tls_has_use(cert, RPC_CLIENT) &&
	       (!is_hosts ||
		X509_get_key_usage(cert) & X509v3_KU_DIGITAL_SIGNATURE);
}

/* Of a chain's fault.  A host's certificate needs a list, an authority's is
 * looked up if there is one. */
static int pass_some(int ok, X509_STORE_CTX *ctx)
{
	bool is_hosts = X509_STORE_CTX_get_error_depth(ctx) == 0, passes;

	if (ok)
		return ok;
	switch (X509_STORE_CTX_get_error(ctx)) {
	case X509_V_ERR_INVALID_PURPOSE:
		passes = is_for_rpc(X509_STORE_CTX_get_current_cert(ctx),
				    is_hosts);
		break;
	case X509_V_ERR_UNABLE_TO_GET_CRL:
		passes = !is_hosts;
		break;
	default:
		passes = false;
	}
	if (passes)
		X509_STORE_CTX_set_error(ctx, X509_V_OK);
	return passes;
}

/* Never asks at the terminal. */
static int no_pass_phrase(char *buf, int size, int rwflag, void *arg)
{
	return -1;
}

int tls_bad_file(const char *what, const char *path, char **why)
{
	unsigned long e = ERR_peek_error();
	const char *text = ERR_reason_error_string(e);
	int err = ERR_SYSTEM_ERROR(e) ? -ERR_GET_REASON(e) : -EINVAL;

	if (ERR_SYSTEM_ERROR(e))
		text = strerror(-err);
	fail_with(why, "%s %s: %s", what, path, text ? text : "not usable");
	ERR_clear_error();
	return err;
}

int tls_read_own(SSL_CTX *ctx, const struct tls_files *f, char **why)
{
	SSL_CTX_set_default_passwd_cb(ctx, no_pass_phrase);
	if (SSL_CTX_use_certificate_chain_file(ctx, f->cert) != 1)
		return tls_bad_file("the certificate", f->cert, why);
	if (SSL_CTX_use_PrivateKey_file(ctx, f->key, SSL_FILETYPE_PEM) != 1)
		return tls_bad_file("the key", f->key, why);
	if (SSL_CTX_check_private_key(ctx) != 1)
		return tls_bad_file("not the certificate's key:", f->key, why);
	return 0;
}

/* The lists of @path, for the store of @ctx. */
static int read_crl(SSL_CTX *ctx, const char *path, char **why)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	X509_LOOKUP *l = X509_STORE_add_lookup(store, X509_LOOKUP_file());

	if (!l || X509_load_crl_file(l, path, X509_FILETYPE_PEM) < 1)
		return tls_bad_file("the revocation list", path, why);
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK |
			     X509_V_FLAG_CRL_CHECK_ALL);
	return 0;
}

static int read_trusted(SSL_CTX *ctx, const struct tls_files *f, char **why)
{
	STACK_OF(X509_NAME) *names;

	if (!f->ca) {
		SSL_CTX_set_cert_verify_callback(ctx, pass_anyone, NULL);
		return 0;
	}
	if (SSL_CTX_load_verify_file(ctx, f->ca) != 1)
		return tls_bad_file("the trust store", f->ca, why);
	names = SSL_load_client_CA_file(f->ca);
	if (!names)
		return tls_bad_file("the trust store", f->ca, why);
	SSL_CTX_set_client_CA_list(ctx, names);
	/* For tls_is_mutual(). */
	SSL_CTX_set_app_data(ctx, names);
	return f->crl ? read_crl(ctx, f->crl, why) : 0;
}

/* Elliptic curves, and what newer libraries build on them.  The finite fields
 * that OpenSSL takes by itself cost the server a tenth of a second, and a
 * client nothing.  A list is refused if one of it is not known. */
static bool set_groups(SSL_CTX *ctx)
{
	char newest[] = "X25519MLKEM768:X25519:P-256:P-384:P-521";
	char usual[] = "X25519:P-256:P-384:P-521";
	char fips[] = "P-256:P-384:P-521";
	bool ok = SSL_CTX_set1_groups_list(ctx, newest) == 1 ||
		  SSL_CTX_set1_groups_list(ctx, usual) == 1 ||
		  SSL_CTX_set1_groups_list(ctx, fips) == 1;

	ERR_clear_error();
	return ok;
}

void tls_set_modes(SSL_CTX *ctx)
{
	/* A call that receives ends behind each record, of any kind. */
	SSL_CTX_clear_mode(ctx, SSL_MODE_AUTO_RETRY);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE |
			 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
			 SSL_MODE_RELEASE_BUFFERS);
}

/* Sets the rules of the head of tls.h. */
static bool set_rules(SSL_CTX *ctx)
{
	SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
			    SSL_OP_CIPHER_SERVER_PREFERENCE);
	tls_set_modes(ctx);
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_alpn_select_cb(ctx, select_alpn, NULL);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, pass_some);
	/* OpenSSL hashes a list for each certificate of a chain before it
	 * checks a signature, so a forged chain has to be short. */
	SSL_CTX_set_verify_depth(ctx, TLS_LESSER_MAX);
	return set_groups(ctx) &&
	       SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
	       SSL_CTX_set_num_tickets(ctx, 0) == 1 &&
	       SSL_CTX_set_max_early_data(ctx, 0) == 1 &&
	       SSL_CTX_set_recv_max_early_data(ctx, 0) == 1;
}

static int check_tls_file(const char *what, const char *path, char **why)
{
	struct stat st;

	/* Without an answer, reading has the reason. */
	if (!path || stat(path, &st))
		return 0;
	if (S_ISDIR(st.st_mode)) {
		fail_with(why, "%s %s: %s", what, path, strerror(EISDIR));
		return -EISDIR;
	}
	if (st.st_size <= TLS_FILE_MAX)
		return 0;
	fail_with(why, "%s %s has more than %u MiB", what, path,
		  TLS_FILE_MAX >> 20);
	return -EFBIG;
}

static int check_files(const struct tls_files *f, char **why)
{
	int err = check_tls_file("the certificate", f->cert, why);

	if (!err)
		err = check_tls_file("the key", f->key, why);
	if (!err)
		err = check_tls_file("the trust store", f->ca, why);
	if (!err)
		err = check_tls_file("the revocation list", f->crl, why);
	return err;
}

int tls_config_read(const struct tls_files *files, struct tls_config **out,
		    char **why)
{
	struct tls_config *config = calloc(1, sizeof(*config));
	int err = -ENOMEM;

	*why = NULL;
	ERR_clear_error();
	if (!config)
		return err;
	config->ctx = SSL_CTX_new(TLS_server_method());
	if (config->ctx && set_rules(config->ctx)) {
		err = check_files(files, why);
		if (!err)
			err = tls_read_own(config->ctx, files, why);
		if (!err)
			err = read_trusted(config->ctx, files, why);
	}
	ERR_clear_error();
	if (err) {
		tls_config_free(config);
		return err;
	}
	tls_note_files(config->ctx, files, why);
	*out = config;
	return 0;
}

void tls_config_free(struct tls_config *config)
{
	if (config)
		SSL_CTX_free(config->ctx);
	free(config);
}

struct tls_server *tls_server_create(void)
{
	struct tls_server *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	pthread_mutex_init(&s->lock, NULL);
	xprt_gate_init(&s->conns, UINT_MAX, 0);
	s->conns.spares = true;
	return s;
}

void tls_server_limit(struct tls_server *s, size_t bytes)
{
	unsigned max = (unsigned)MIN(bytes / TLS_CONN_BYTES, (size_t)UINT_MAX);

	xprt_gate_limit(&s->conns, MAX(max, 1u), MAX(max / 2, 1u));
}

int tls_server_enter(struct tls_server *s, const struct sockaddr *peer)
{
	return xprt_gate_enter(&s->conns, peer);
}

void tls_server_leave(struct tls_server *s, const struct sockaddr *peer)
{
	xprt_gate_leave(&s->conns, peer);
}

void tls_server_use(struct tls_server *s, struct tls_config *config)
{
	SSL_CTX *old;

	mutex_lock(&s->lock);
	old = s->ctx;
	s->ctx = config ? config->ctx : NULL;
	mutex_unlock(&s->lock);
	SSL_CTX_free(old);
	free(config);
}

bool tls_server_has_config(struct tls_server *s)
{
	bool has;

	mutex_lock(&s->lock);
	has = s->ctx;
	mutex_unlock(&s->lock);
	return has;
}

void tls_server_destroy(struct tls_server *s)
{
	if (!s)
		return;
	SSL_CTX_free(s->ctx);
	xprt_gate_fini(&s->conns);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

int tls_server_ssl(struct tls_server *s, SSL **out)
{
	int err = -EOPNOTSUPP;

	*out = NULL;
	mutex_lock(&s->lock);
	if (s->ctx) {
		*out = SSL_new(s->ctx);
		err = *out ? 0 : -ENOMEM;
	}
	mutex_unlock(&s->lock);
	return err;
}

bool tls_is_mutual(SSL *ssl)
{
	return SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl)) &&
	       SSL_get0_peer_certificate(ssl) &&
	       SSL_get_verify_result(ssl) == X509_V_OK;
}

const char *tls_reason(const SSL *ssl)
{
	unsigned long e = ERR_peek_error();

	if (ERR_GET_REASON(e) == SSL_R_CERTIFICATE_VERIFY_FAILED)
		return X509_verify_cert_error_string(
			SSL_get_verify_result(ssl));
	return ERR_reason_error_string(e);
}
