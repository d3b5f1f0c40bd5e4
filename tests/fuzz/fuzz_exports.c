/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any text as an exports file: a table that can be asked and shown, or a
 * message that names a line of it.
 */
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <urcu.h>

#include "exports/export_priv.h"
#include "lib/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static int no_name(const struct addr *a, char *name, size_t size)
{
	snprintf(name, size, "h.example");
	return 0;
}

static int has_addr(const char *name, const struct addr *a)
{
	return 1;
}

static bool in_netgroup(const char *group, const char *host)
{
	return group[0] == 'a';
}

/* Never published, so its paths need not be mounted. */
static struct export_table *the_table(void)
{
	static const struct resolver r = {
		.name = no_name, .has_addr = has_addr,
		.in_netgroup = in_netgroup, .keep_s = 60,
	};
	static struct export_table *table;
	/* Without Kerberos, a rule with it would bring a warning. */
	struct export_config config = { .backend = &mem_vfs_ops,
					.krb5 = true };

	if (!table) {
		rcu_register_thread();
		log_threshold = LOG_LEVEL_ERR;
		if (export_table_create(&config, &table) < 0)
			abort();
		table->resolver = r;
	}
	return table;
}

/* Checks the properties of every accepted set. */
static void check(const struct export_set *set)
{
	for (unsigned i = 0; i < set->nexports; i++) {
		const struct export *e = set->exports[i];

		assert(e->path[0] == '/' && e->nclients > 0);
		assert(export_set_find_id(set, e->id) == e);
		assert(export_set_find(set, e->path) == e);
		for (unsigned j = 1; j < e->nclients; j++)
			assert(e->clients[j - 1].kind <= e->clients[j].kind);
	}
}

/* Asks all names of @set.  Unpublished sets have no numbers: an answer for one
 * must not be taken for another's. */
static void ask(struct export_table *t, const struct export_set *set)
{
	memo_destroy(t->peers);
	if (peers_create(&t->peers) < 0)
		abort();
	for (int i = 0; i < 2; i++)
		peers_resolve(t->peers, &t->resolver, set,
			      &(struct addr){ .family = AF_INET });
}

/* The text of @set, malloced. */
static char *show(struct export_table *t, const struct export_set *set,
		  size_t *len)
{
	char *text;
	FILE *f = open_memstream(&text, len);

	if (!f)
		abort();
	export_set_show(t, set, f);
	fclose(f);
	return text;
}

/* The text of @set says the same, and brings no warning. */
static void check_shown(struct export_table *t, const struct export_set *set)
{
	struct export_set *again = NULL;
	size_t len, len2;
	char *text = show(t, set, &len), *text2, *err;
	FILE *f;

	if (len > 0) {		/* fmemopen() has no empty files */
		f = fmemopen(text, len, "r");
		if (!f || export_set_parse(t, "shown", f, &again, &err) < 0)
			abort();
		fclose(f);
		text2 = show(t, again, &len2);
		assert(len2 == len && memcmp(text, text2, len) == 0);
		assert(again->nnotes == 0);
		free(text2);
		export_set_free(again);
	}
	free(text);
}

static void as_file(struct export_table *t, const uint8_t *data, size_t len)
{
	struct export_set *set = NULL;
	unsigned line;
	char *err;
	FILE *f = fmemopen((void *)(uintptr_t)data, len, "r");
	int ret;

	if (!f)
		abort();
	ret = export_set_parse(t, "f", f, &set, &err);
	fclose(f);
	if (ret == 0) {
		check(set);
		check_shown(t, set);
		ask(t, set);
		export_set_free(set);
	} else {
		assert(err && sscanf(err, "f:%u: ", &line) == 1 && line > 0);
		free(err);
	}
}

static void as_argument(struct export_table *t, const uint8_t *data,
			size_t len)
{
	struct export_set *set = NULL;
	char *arg = strndup((const char *)data, len), *err;

	if (!arg)
		abort();
	if (export_set_add(t, "--export", arg, &set, &err) == 0) {
		check(set);
		export_set_free(set);
	} else {
		assert(err && strncmp(err, "--export: ", 10) == 0);
		free(err);
	}
	free(arg);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;	/* fmemopen() has no empty files */
	as_file(the_table(), data, len);
	as_argument(the_table(), data, len);
	return 0;
}
