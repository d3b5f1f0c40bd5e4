/* SPDX-License-Identifier: BSD-2-Clause */
/* Keys and certificates for the tests of TLS, of two CAs. */
#include <assert.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/tls_client.h"

/* The serial number on the CA's list. */
#define REVOKED	4

struct authority {
	EVP_PKEY *key;
	X509	 *cert;
};

static void add_ext(X509 *cert, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509_EXTENSION *ext;

	X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
	ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	assert(ext);
	X509_add_ext(cert, ext, -1);
	X509_EXTENSION_free(ext);
}

static const struct tls_pki_cert usual = {
	.san = "DNS:localhost,IP:127.0.0.1", .from = -3600, .until = 90 * 86400,
};

/* A certificate of @key's for @cn; of @ca, or NULL: self-signed, a CA's. */
static X509 *certify(EVP_PKEY *key, const char *cn, long serial,
		     const struct authority *ca, const struct tls_pki_cert *c)
{
	X509 *cert = X509_new();
	X509_NAME *name = X509_get_subject_name(cert);
	bool issues = !ca || (c->key_use && strstr(c->key_use, "keyCertSign"));

	X509_set_version(cert, X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(cert), serial);
	X509_gmtime_adj(X509_getm_notBefore(cert), c->from);
	X509_gmtime_adj(X509_getm_notAfter(cert), c->until);
	X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
				   (const uint8_t *)cn, -1, -1, 0);
	X509_set_issuer_name(cert, ca ? X509_get_subject_name(ca->cert) : name);
	X509_set_pubkey(cert, key);
	add_ext(cert, ca ? ca->cert : cert, NID_basic_constraints,
		issues ? "critical,CA:TRUE" : "critical,CA:FALSE");
	if (ca && c->san)
		add_ext(cert, ca->cert, NID_subject_alt_name, c->san);
	if (ca && c->use)
		add_ext(cert, ca->cert, NID_ext_key_usage, c->use);
	if (ca && c->key_use)
		add_ext(cert, ca->cert, NID_key_usage, c->key_use);
	if (!X509_sign(cert, ca ? ca->key : key, EVP_sha256()))
		abort();
	return cert;
}

static struct authority make_ca(const char *cn)
{
	struct authority ca = { .key = EVP_EC_gen("P-256") };

	ca.cert = certify(ca.key, cn, 1, NULL, &usual);
	return ca;
}

static void free_ca(struct authority *ca)
{
	EVP_PKEY_free(ca->key);
	X509_free(ca->cert);
}

/* Either can be NULL. */
static void put_pem(const char *path, X509 *cert, EVP_PKEY *key)
{
	FILE *f = fopen(path, "w");

	assert(f);
	/* gannetd warns of keys that others can read. */
	assert(!key || fchmod(fileno(f), 0600) == 0);
	if (cert)
		PEM_write_X509(f, cert);
	if (key)
		PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
	fclose(f);
}

/* Both in one file. */
static void issue(const struct authority *ca, const char *cn, long serial,
		  const char *path)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = certify(key, cn, serial, ca, &usual);

	put_pem(path, cert, key);
	X509_free(cert);
	EVP_PKEY_free(key);
}

/* The server's. */
static void issue_server(const struct authority *ca, const struct tls_pki *p,
			 const char *cn, const struct tls_pki_cert *c)
{
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = certify(key, cn, 2, ca, c);

	put_pem(p->cert, cert, NULL);
	put_pem(p->key, NULL, key);
	X509_free(cert);
	EVP_PKEY_free(key);
}

/* A list of the certificate @serial, which goes to the end of @path. */
static void put_crl(const struct authority *ca, long serial,
		    const struct tls_pki_cert *c, const char *path)
{
	ASN1_INTEGER *number = ASN1_INTEGER_new();
	ASN1_TIME *t = ASN1_TIME_new();
	X509_REVOKED *r = X509_REVOKED_new();
	X509_CRL *crl = X509_CRL_new();
	FILE *f = fopen(path, "a");

	assert(f);
	X509_CRL_set_version(crl, 1);
	X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->cert));
	X509_gmtime_adj(t, c->from);
	X509_CRL_set1_lastUpdate(crl, t);
	ASN1_INTEGER_set(number, serial);
	X509_REVOKED_set_serialNumber(r, number);
	X509_REVOKED_set_revocationDate(r, t);
	X509_gmtime_adj(t, c->until);
	X509_CRL_set1_nextUpdate(crl, t);
	X509_CRL_add0_revoked(crl, r);
	X509_CRL_sort(crl);
	X509_CRL_sign(crl, ca->key, EVP_sha256());
	PEM_write_X509_CRL(f, crl);
	fclose(f);
	X509_CRL_free(crl);
	ASN1_TIME_free(t);
	ASN1_INTEGER_free(number);
}

static void set_path(const struct tls_pki *p, char path[64], const char *name)
{
	snprintf(path, 64, "%s/%s", p->dir, name);
}

void tls_pki_make(struct tls_pki *p)
{
	struct authority ca = make_ca("a CA"), other = make_ca("another CA");

	signal(SIGPIPE, SIG_IGN);
	strcpy(p->dir, "/tmp/gannet-tls.XXXXXX");
	if (!mkdtemp(p->dir))
		abort();
	set_path(p, p->ca, "ca.pem");
	set_path(p, p->crl, "crl.pem");
	set_path(p, p->cert, "server.pem");
	set_path(p, p->key, "server.key");
	set_path(p, p->host, "host.pem");
	set_path(p, p->revoked, "revoked.pem");
	set_path(p, p->stranger, "stranger.pem");
	/* With its key, for tls_pki_renew(). */
	put_pem(p->ca, ca.cert, ca.key);
	issue_server(&ca, p, "server", &usual);
	issue(&ca, "host", 3, p->host);
	issue(&ca, "revoked", REVOKED, p->revoked);
	issue(&other, "stranger", 5, p->stranger);
	put_crl(&ca, REVOKED, &usual, p->crl);
	free_ca(&ca);
	free_ca(&other);
}

static struct authority read_ca(const char *path)
{
	struct authority ca = { 0 };
	FILE *f = fopen(path, "r");

	assert(f);
	ca.cert = PEM_read_X509(f, NULL, NULL, NULL);
	ca.key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
	fclose(f);
	return ca;
}

void tls_pki_use(struct tls_pki *p, const char *key_usage,
		 const char *extended_key_usage)
{
	struct authority ca = read_ca(p->ca);
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *cert = certify(key, "host", 7, &ca, &usual);

	if (key_usage)
		add_ext(cert, ca.cert, NID_key_usage, key_usage);
	if (extended_key_usage)
		add_ext(cert, ca.cert, NID_ext_key_usage, extended_key_usage);
	X509_sign(cert, ca.key, EVP_sha256());
	put_pem(p->host, cert, key);
	X509_free(cert);
	EVP_PKEY_free(key);
	free_ca(&ca);
}

void tls_pki_forge(struct tls_pki *p)
{
	struct authority host = read_ca(p->host);
	FILE *f;

	issue(&host, "forged", 8, p->host);
	f = fopen(p->host, "a");
	assert(f);
	PEM_write_X509(f, host.cert);
	fclose(f);
	free_ca(&host);
}

/* An authority's that another one issued. */
static const struct tls_pki_cert lesser = {
	.from = -3600, .until = 90 * 86400, .key_use = "keyCertSign,cRLSign",
};

void tls_pki_delegate(struct tls_pki *p, bool revoked, bool has_list)
{
	struct authority root = read_ca(p->ca);
	struct authority ca = { .key = EVP_EC_gen("P-256") };
	FILE *f;

	ca.cert = certify(ca.key, revoked ? "a revoked CA" : "a lesser CA",
			  revoked ? REVOKED : 9, &root, &lesser);
	issue(&ca, "host", 10, p->host);
	f = fopen(p->host, "a");
	assert(f);
	PEM_write_X509(f, ca.cert);
	fclose(f);
	if (has_list)
		put_crl(&ca, 11, &usual, p->crl);
	free_ca(&ca);
	free_ca(&root);
}

void tls_pki_descend(struct tls_pki *p, int n)
{
	struct authority all[8] = { read_ca(p->ca) };
	char cn[32];
	FILE *f;

	assert(n < 8);
	for (int i = 1; i <= n; i++) {
		/* Its key is in no list of an earlier call's. */
		snprintf(cn, sizeof(cn), "CA %d of %d", i, n);
		all[i].key = EVP_EC_gen("P-256");
		all[i].cert = certify(all[i].key, cn, 20 + i, &all[i - 1],
				      &lesser);
	}
	issue(&all[n], "host", 10, p->host);
	put_crl(&all[n], 11, &usual, p->crl);
	f = fopen(p->host, "a");
	assert(f);
	for (int i = n; i > 0; i--)
		PEM_write_X509(f, all[i].cert);
	fclose(f);
	for (int i = 0; i <= n; i++)
		free_ca(&all[i]);
}

void tls_pki_age(struct tls_pki *p, long from, long until)
{
	const struct tls_pki_cert c = { .from = from, .until = until };
	struct authority ca = read_ca(p->ca);

	X509_free(ca.cert);
	ca.cert = certify(ca.key, "a CA", 1, NULL, &c);
	put_pem(p->ca, ca.cert, ca.key);
	unlink(p->crl);
	put_crl(&ca, REVOKED, &c, p->crl);
	free_ca(&ca);
}

void tls_pki_renew(struct tls_pki *p, const char *cn)
{
	struct authority ca = read_ca(p->ca);

	issue_server(&ca, p, cn, &usual);
	free_ca(&ca);
}

void tls_pki_exchange(struct tls_pki *p, const struct tls_pki_cert *c)
{
	struct authority ca = read_ca(p->ca);

	issue_server(&ca, p, "localhost", c);
	free_ca(&ca);
}

void tls_pki_remove(struct tls_pki *p)
{
	const char *const files[] = { p->ca, p->crl, p->cert, p->key, p->host,
				      p->revoked, p->stranger };

	for (unsigned i = 0; i < sizeof(files) / sizeof(*files); i++)
		unlink(files[i]);
	rmdir(p->dir);
}

struct tls_files tls_pki_files(const struct tls_pki *p)
{
	return (struct tls_files){ .cert = p->cert, .key = p->key,
				   .ca = p->ca, .crl = p->crl };
}
