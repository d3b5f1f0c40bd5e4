/* SPDX-License-Identifier: BSD-2-Clause */
/* client - the basis of a client's TLS connections, and what a server shows. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>

#include "lib/fail.h"
#include "lib/thread.h"
#include "transport/tls/internal.h"
#include "transport/tls/tls.h"

struct tls_client {
	SSL_CTX	*ctx;
};

/* Of a handshake: kept with its SSL, which frees it. */
struct shown {
	X509	*cert;		/* owned; NULL: none came */
	int	 depth;		/* of the certificate that is refused */
	int	 alert;		/* that the server sent; 0: none */
};

/* The place of a struct shown in an SSL; negative: no memory. */
static int place = -1;

static void free_shown(void *parent, void *ptr, CRYPTO_EX_DATA *ad, int idx,
		       long argl, void *argp)
{
	struct shown *shown = ptr;

	if (shown)
		X509_free(shown->cert);
	free(shown);
}

static void make_place(void)
{
	place = SSL_get_ex_new_index(0, NULL, NULL, NULL, free_shown);
}

/* A certificate that lists its uses has to list servers of TLS, or of RPC (RFC
 * 9289 section 5.2.1.1); OpenSSL says that one without a list has all. */
static bool serves_rpc(X509 *cert)
{
	return X509_get_extended_key_usage(cert) &
	       (XKU_SSL_SERVER | XKU_ANYEKU) ||
	       tls_has_use(cert, "1.3.6.1.5.5.7.3.34");
}

/* RFC 8446 section 4.4.2.2: the server's own key has to sign. */
static bool signs(X509 *cert)
{
	return X509_get_key_usage(cert) & X509v3_KU_DIGITAL_SIGNATURE;
}

/* After the chain was found good: the first certificate of it that is not for
 * this; negative: each is. */
static int find_other_use(X509_STORE_CTX *ctx)
{
	STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(ctx);

	if (!signs(sk_X509_value(chain, 0)))
		return 0;
	for (int i = 0; i < sk_X509_num(chain); i++)
		if (!serves_rpc(sk_X509_value(chain, i)))
			return i;
	return -1;
}

/* Verifies the chain and the name, and keeps the certificate. */
static int verify_server(X509_STORE_CTX *ctx, void *arg)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(ctx,
				SSL_get_ex_data_X509_STORE_CTX_idx());
	struct shown *shown = SSL_get_ex_data(ssl, place);
	X509 *cert = X509_STORE_CTX_get0_cert(ctx);
	int ok, other;

	if (!shown->cert && cert && X509_up_ref(cert) == 1)
		shown->cert = cert;
	/* OpenSSL's purpose of servers refuses the key usages of RPC. */
	X509_VERIFY_PARAM_set_purpose(X509_STORE_CTX_get0_param(ctx),
				      X509_PURPOSE_ANY);
	ok = X509_verify_cert(ctx);
	other = ok == 1 ? find_other_use(ctx) : -1;
	shown->depth = X509_STORE_CTX_get_error_depth(ctx);
	if (other < 0)
		return ok;
	shown->depth = other;
	X509_STORE_CTX_set_error(ctx, X509_V_ERR_INVALID_PURPOSE);
	return 0;
}

static void take_alert(const SSL *ssl, int where, int what)
{
	struct shown *shown = SSL_get_ex_data(ssl, place);
	int alert = what & 0xff;

	if (where & SSL_CB_READ && where & SSL_CB_ALERT &&
	    alert != SSL_AD_CLOSE_NOTIFY && alert != SSL_AD_USER_CANCELLED)
		shown->alert = alert;
}

static bool set_client_rules(SSL_CTX *ctx)
{
	tls_set_modes(ctx);
	SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_cert_verify_callback(ctx, verify_server, NULL);
	SSL_CTX_set_info_callback(ctx, take_alert);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
	       SSL_CTX_set_alpn_protos(ctx, tls_sunrpc, TLS_SUNRPC_LEN) == 0;
}

static int read_files(SSL_CTX *ctx, const struct tls_files *f, char **why)
{
	int err = f->cert ? tls_read_own(ctx, f, why) : 0;

	if (err)
		return err;
	if (f->ca && SSL_CTX_load_verify_file(ctx, f->ca) != 1)
		return tls_bad_file("the trust store", f->ca, why);
	return f->ca || SSL_CTX_set_default_verify_paths(ctx) == 1 ? 0 :
	       -ENOMEM;
}

int tls_client_create(const struct tls_files *files, struct tls_client **out,
		      char **why)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct tls_client *c = calloc(1, sizeof(*c));
	int err = -ENOMEM;

	*why = NULL;
	pthread_once(&once, make_place);
	ERR_clear_error();
	if (!c)
		return err;
	c->ctx = SSL_CTX_new(TLS_client_method());
	if (place >= 0 && c->ctx && set_client_rules(c->ctx))
		err = read_files(c->ctx, files, why);
	ERR_clear_error();
	if (err)
		tls_client_destroy(c);
	else
		*out = c;
	return err;
}

void tls_client_destroy(struct tls_client *c)
{
	if (c)
		SSL_CTX_free(c->ctx);
	free(c);
}

/* RFC 9289 section 5.2.1: of the SAN alone, whole, and without wildcards.  The
 * zone of an address (RFC 4007 section 11) is this machine's word for a link,
 * and in no certificate. */
static bool expect_name(SSL *ssl, const char *host)
{
	uint8_t address[sizeof(struct in6_addr)];
	char text[INET6_ADDRSTRLEN] = "";
	size_t len = strcspn(host, "%");

	if (len < sizeof(text))
		memcpy(text, host, len);
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_WILDCARDS |
			  X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
	if (inet_pton(AF_INET, host, address) == 1 ||
	    inet_pton(AF_INET6, text, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl),
						     text) == 1;
	return SSL_set1_host(ssl, host) == 1 &&
	       SSL_set_tlsext_host_name(ssl, host) == 1;
}

int tls_client_ssl(struct tls_client *c, const char *host, SSL **out)
{
	struct shown *shown = calloc(1, sizeof(*shown));
	SSL *ssl = shown ? SSL_new(c->ctx) : NULL;

	if (!ssl || SSL_set_ex_data(ssl, place, shown) != 1) {
		SSL_free(ssl);
		free(shown);
		return -ENOMEM;
	}
	if (!*host || !expect_name(ssl, host)) {
		SSL_free(ssl);
		return -EINVAL;
	}
	*out = ssl;
	return 0;
}

/* ---- the server's certificate */

static enum tls_verdict verdict_of(long error, int depth)
{
	switch (error) {
	case X509_V_OK:
		return TLS_TRUSTED;
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
	case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
	case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
	case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
	case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
		return TLS_UNKNOWN_CA;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH:
		return TLS_OTHER_NAME;
	case X509_V_ERR_CERT_HAS_EXPIRED:
		return depth == 0 ? TLS_EXPIRED : TLS_UNTRUSTED;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		return depth == 0 ? TLS_EARLY : TLS_UNTRUSTED;
	default:
		return TLS_UNTRUSTED;
	}
}

/* Nothing, if it does not fit. */
static void append_san(char out[TLS_TEXT_MAX], const char *name, size_t len)
{
	size_t at = strlen(out);

	if (at + len + 3 > TLS_TEXT_MAX)
		return;
	if (at > 0) {
		memcpy(out + at, ", ", 2);
		at += 2;
	}
	memcpy(out + at, name, len);
	out[at + len] = '\0';
}

static void append_address(char out[TLS_TEXT_MAX], const ASN1_OCTET_STRING *ip)
{
	int len = ASN1_STRING_length(ip);
	char text[INET6_ADDRSTRLEN];

	if ((len == 4 || len == 16) &&
	    inet_ntop(len == 4 ? AF_INET : AF_INET6,
		      ASN1_STRING_get0_data(ip), text, sizeof(text)))
		append_san(out, text, strlen(text));
}

static void read_names(X509 *cert, char out[TLS_TEXT_MAX])
{
	GENERAL_NAMES *names = X509_get_ext_d2i(cert, NID_subject_alt_name,
						NULL, NULL);

	for (int i = 0; names && i < sk_GENERAL_NAME_num(names); i++) {
		const GENERAL_NAME *n = sk_GENERAL_NAME_value(names, i);

		if (n->type == GEN_DNS)
			append_san(out, (const char *)
				   ASN1_STRING_get0_data(n->d.dNSName),
				   (size_t)ASN1_STRING_length(n->d.dNSName));
		else if (n->type == GEN_IPADD)
			append_address(out, n->d.iPAddress);
	}
	GENERAL_NAMES_free(names);
}

static void read_issuer(X509 *cert, char out[TLS_TEXT_MAX])
{
	BIO *b = BIO_new(BIO_s_mem());
	int n = 0;

	if (b && X509_NAME_print_ex(b, X509_get_issuer_name(cert), 0,
				    XN_FLAG_RFC2253) > 0)
		n = BIO_read(b, out, TLS_TEXT_MAX - 1);
	out[n > 0 ? n : 0] = '\0';
	BIO_free(b);
}

void tls_peer_read(SSL *ssl, struct tls_peer *out)
{
	const struct shown *shown = SSL_get_ex_data(ssl, place);
	long error = SSL_get_verify_result(ssl);
	const unsigned char *protocol;
	unsigned int len;

	memset(out, 0, sizeof(*out));
	SSL_get0_alpn_selected(ssl, &protocol, &len);
	out->alpn = len == TLS_SUNRPC_LEN - 1 &&
		    memcmp(protocol, tls_sunrpc + 1, len) == 0;
	out->alert = shown->alert;
	out->alert_text = SSL_alert_desc_string_long(shown->alert);
	if (!shown->cert)
		return;
	out->verdict = verdict_of(error, shown->depth);
	out->why = X509_verify_cert_error_string(error);
	out->from = tls_seconds(X509_get0_notBefore(shown->cert));
	out->until = tls_seconds(X509_get0_notAfter(shown->cert));
	read_names(shown->cert, out->names);
	read_issuer(shown->cert, out->issuer);
	ERR_clear_error();
}
