/* SPDX-License-Identifier: BSD-2-Clause */
/* notes - what is wrong with a server's files, though they can be used. */
#include <openssl/x509.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/fail.h"
#include "lib/util.h"
#include "transport/tls/internal.h"
#include "transport/tls/tls.h"

#define SOON	((time_t)30 * 86400)

time_t tls_seconds(const ASN1_TIME *t)
{
	struct tm tm;

	return ASN1_TIME_to_tm(t, &tm) == 1 ? timegm(&tm) : 0;
}

static void note_key(const char *path, char **notes)
{
	struct stat st;
	char *line;

	if (stat(path, &st) || !(st.st_mode & (S_IROTH | S_IWOTH)))
		return;
	fail_with(&line, "every user of this machine may %s the key %s: "
		  "chmod o-rw", st.st_mode & S_IROTH ? "read" : "change",
		  path);
	fail_too(notes, line);
}

/* The subject of a note. */
struct noted {
	const char	*what, *path;
	const ASN1_TIME	*from, *until;
};

/* Where it ends in @soon seconds or fewer, too. */
static void note_time(const struct noted *n, time_t soon, char **notes)
{
	time_t from = tls_seconds(n->from), until = tls_seconds(n->until);
	time_t now = time(NULL), when = from > now ? from : until;
	const char *verb;
	char *line, date[32];
	struct tm tm;

	if (from > now)
		verb = "is not valid before";
	else if (until <= now)
		verb = "has expired at";
	else if (until - now < soon)
		verb = "ends at";
	else
		return;
	gmtime_r(&when, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm);
	fail_with(&line, "%s in %s %s %s", n->what, n->path, verb, date);
	fail_too(notes, line);
}

static void note_cert(X509 *cert, const char *what, const char *path,
		      char **notes)
{
	const struct noted n = { what, path, X509_get0_notBefore(cert),
				 X509_get0_notAfter(cert) };

	note_time(&n, SOON, notes);
}

/* Many lists are for a few days. */
static void note_list(X509_CRL *crl, const char *what, const char *path,
		      char **notes)
{
	const struct noted n = { what, path, X509_CRL_get0_lastUpdate(crl),
				 X509_CRL_get0_nextUpdate(crl) };
	time_t third;

	if (!n.until)
		return;
	third = (tls_seconds(n.until) - tls_seconds(n.from)) / 3;
	note_time(&n, MIN(third, SOON), notes);
}

/* The authorities and lists that clients are judged by. */
static void note_trusted(X509_STORE *store, const struct tls_files *f,
			 char **notes)
{
	STACK_OF(X509_OBJECT) *all = X509_STORE_get0_objects(store);
	char name[TLS_TEXT_MAX], what[TLS_TEXT_MAX + 20];

	for (int i = 0; i < sk_X509_OBJECT_num(all); i++) {
		X509_OBJECT *o = sk_X509_OBJECT_value(all, i);
		X509 *cert = X509_OBJECT_get0_X509(o);
		X509_CRL *crl = X509_OBJECT_get0_X509_CRL(o);

		X509_NAME_oneline(cert ? X509_get_subject_name(cert) :
				  X509_CRL_get_issuer(crl), name, sizeof(name));
		snprintf(what, sizeof(what), "%s %s",
			 cert ? "the authority" : "the list of", name);
		if (cert)
			note_cert(cert, what, f->ca, notes);
		else if (f->crl)
			/* Lists in @f->ca count only then, too. */
			note_list(crl, what, f->crl, notes);
	}
}

void tls_note_files(SSL_CTX *ctx, const struct tls_files *f, char **notes)
{
	STACK_OF(X509) *chain = NULL;

	note_cert(SSL_CTX_get0_certificate(ctx), "the certificate", f->cert,
		  notes);
	SSL_CTX_get0_chain_certs(ctx, &chain);
	for (int i = 0; i < sk_X509_num(chain); i++)
		note_cert(sk_X509_value(chain, i), "a certificate of the chain",
			  f->cert, notes);
	note_trusted(SSL_CTX_get_cert_store(ctx), f, notes);
	note_key(f->key, notes);
}
