/* SPDX-License-Identifier: BSD-2-Clause */
/* tls_files - the files of TLS that the settings name. */
#include "daemon/settings/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/errand.h"
#include "lib/fail.h"
#include "lib/util.h"

/* Of tls_files. */
enum { CERT, KEY, CA, CRL, FILES };

/* The reading of files, whose disk can hang: it can outlive the options. */
struct reading {
	struct errand errand;
	char	*names[FILES];
	struct tls_config *config;
	char	*why;
};

static int run_reading(struct errand *e)
{
	struct reading *r = container_of(e, struct reading, errand);
	const struct tls_files files = {
		.cert = r->names[CERT], .key = r->names[KEY],
		.ca = r->names[CA], .crl = r->names[CRL],
	};

	return tls_config_read(&files, &r->config, &r->why);
}

static void reading_free(struct reading *r)
{
	for (int i = 0; i < FILES; i++)
		free(r->names[i]);
	free(r->why);
	free(r);
}

static void drop_reading(struct errand *e)
{
	struct reading *r = container_of(e, struct reading, errand);

	tls_config_free(r->config);
	reading_free(r);
}

/* NULL: no memory. */
static struct reading *reading_create(const char *const *names)
{
	struct reading *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	for (int i = 0; i < FILES; i++) {
		r->names[i] = names[i] ? strdup(names[i]) : NULL;
		if (names[i] && !r->names[i]) {
			reading_free(r);
			return NULL;
		}
	}
	r->errand = (struct errand){ .path = r->names[CERT],
				     .run = run_reading, .drop = drop_reading };
	return r;
}

/* As options_tls(), of the files @names; the reason is without a prefix. */
static int read_until(const char *const *names, uint64_t until,
		      struct tls_config **out, char **why)
{
	struct reading *r = reading_create(names);
	int err;

	if (!r)
		return -ENOMEM;
	err = errand_begin(&r->errand);
	if (err) {
		reading_free(r);
	} else {
		err = errand_await(&r->errand, until);
		if (err != -ETIMEDOUT) {
			*out = r->config;
			*why = r->why;
			r->why = NULL;
			reading_free(r);
		}
	}
	if (err == -ETIMEDOUT)
		fail_with(why, "the file system of %s, or of another file of "
			  "TLS, does not answer", names[CERT]);
	return err;
}

/* Puts the lines of @text to *@out, each with the prefix "TLS: ". */
static void name_subject(char *text, char **out)
{
	char *line, *named;

	while ((line = strsep(&text, "\n"))) {
		fail_with(&named, "TLS: %s", line);
		fail_too(out, named);
	}
}

int options_tls(const struct options *o, uint64_t until,
		struct tls_config **out, char **why)
{
	const char *const names[FILES] = { o->tls_cert, o->tls_key, o->tls_ca,
					   o->tls_crl };
	char *text = NULL;
	int err;

	*out = NULL;
	*why = NULL;
	if (!o->tls_cert != !o->tls_key)
		return fail_with(why, "tls-cert and tls-key: one needs the "
				 "other");
	if (!o->tls_cert && (o->tls_ca || o->tls_crl))
		return fail_with(why, "tls-ca and tls-crl need tls-cert");
	if (o->tls_crl && !o->tls_ca)
		return fail_with(why, "tls-crl needs tls-ca");
	if (!o->tls_cert)
		return 0;
	err = read_until(names, until, out, &text);
	if (err && !text)
		text = strdup(strerror(-err));
	name_subject(text, why);
	free(text);
	return err;
}

static bool names_agree(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

bool options_tls_same(const struct options *a, const struct options *b)
{
	return names_agree(a->tls_cert, b->tls_cert) &&
	       names_agree(a->tls_key, b->tls_key) &&
	       names_agree(a->tls_ca, b->tls_ca) &&
	       names_agree(a->tls_crl, b->tls_crl);
}

enum rpc_protection options_protection(const struct options *o)
{
	return !o->tls_cert ? RPC_CLEAR : o->tls_ca ? RPC_MTLS : RPC_TLS;
}
