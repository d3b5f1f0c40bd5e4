/* SPDX-License-Identifier: BSD-2-Clause */
/* notes - what is wrong with a server's files, though they can be used. */
#include <openssl/x509.h>
#include <stdio.h>
#include <sys/stat.h>

#include "lib/fail.h"
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

/* @what: the certificate, or one of its chain. */
static void note_time(X509 *cert, const char *what, const char *path,
		      char **notes)
{
	time_t from = tls_seconds(X509_get0_notBefore(cert));
	time_t until = tls_seconds(X509_get0_notAfter(cert));
	time_t now = time(NULL), when = from > now ? from : until;
	const char *verb;
	char *line, date[32];
	struct tm tm;

	if (from > now)
		verb = "is not valid before";
	else if (until <= now)
		verb = "has expired at";
	else if (until - now < SOON)
		verb = "ends at";
	else
		return;
	gmtime_r(&when, &tm);
	strftime(date, sizeof(date), "%Y-%m-%d %H:%M UTC", &tm);
	fail_with(&line, "%s in %s %s %s", what, path, verb, date);
	fail_too(notes, line);
}

void tls_note_files(SSL_CTX *ctx, const struct tls_files *f, char **notes)
{
	STACK_OF(X509) *chain = NULL;

	note_time(SSL_CTX_get0_certificate(ctx), "the certificate", f->cert,
		  notes);
	SSL_CTX_get0_chain_certs(ctx, &chain);
	for (int i = 0; i < sk_X509_num(chain); i++)
		note_time(sk_X509_value(chain, i), "a certificate of the chain",
			  f->cert, notes);
	note_key(f->key, notes);
}
