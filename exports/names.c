/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hosts and netgroups of an export table that the name service does not
 * know.
 *
 * The name service can be slow, and the server must not wait for it.  So a job
 * of the crew asks.  It has a copy of the names, because the table can go away
 * meanwhile.
 */
#include "exports/export_priv.h"

#include <stdlib.h>
#include <string.h>

#include "lib/crew.h"
#include "lib/hash.h"
#include "lib/log.h"
#include "lib/util.h"

/* Stop asking the name service after this many names in a row without an
 * answer: each costs a time-out. */
#define PATIENCE	3

struct name_list {
	struct crew_job	job;
	struct resolver r;
	unsigned	n;
	struct name {
		char *text;
		char *where;
		bool  netgroup;
	} names[];
};

static void name_list_free(struct name_list *l)
{
	for (unsigned i = 0; i < l->n; i++) {
		free(l->names[i].text);
		free(l->names[i].where);
	}
	free(l);
}

static bool name_list_has(const struct name_list *l, const char *text)
{
	for (unsigned i = 0; i < l->n; i++)
		if (strcmp(l->names[i].text, text) == 0)
			return true;
	return false;
}

static struct name_list *copy_names(const struct export_set *set,
				    const struct resolver *r)
{
	struct name_list *l = calloc(1, sizeof(*l) +
				     set->nnames * sizeof(l->names[0]));

	if (!l)
		return NULL;
	l->r = *r;
	for (unsigned i = 0; i < set->nnames; i++) {
		const struct client *c = set->names[i];
		struct name *name = &l->names[l->n];

		if (c->kind == CLIENT_WILDCARD || name_list_has(l, c->text))
			continue;
		name->netgroup = c->kind == CLIENT_NETGROUP;
		name->text = strdup(c->text);
		name->where = strdup(c->where);
		l->n++;
		if (!name->text || !name->where) {
			name_list_free(l);
			return NULL;
		}
	}
	return l;
}

/* 1, 0, or -1: can't tell now. */
static int name_is_known(const struct name_list *l, const struct name *name)
{
	if (name->netgroup)
		return l->r.in_netgroup(name->text + 1, NULL);
	return l->r.has_addr(name->text, NULL);
}

static uint64_t ask_names(struct crew_job *job)
{
	struct name_list *l = container_of(job, struct name_list, job);
	unsigned silent = 0;

	for (unsigned i = 0; i < l->n && silent < PATIENCE; i++) {
		const struct name *name = &l->names[i];
		int known = name_is_known(l, name);

		silent = known < 0 ? silent + 1 : 0;
		if (known == 0)
			log_warn("%s: %s '%s' is not known, so no address "
				 "matches it", name->where, name->netgroup ?
				 "netgroup" : "host", name->text);
		else if (known < 0)
			log_warn("%s: host '%s' can't be looked up now%s",
				 name->where, name->text, silent == PATIENCE ?
				 ", nor may the names behind it be" : "");
	}
	name_list_free(l);
	return CREW_GONE;
}

void names_check(const struct export_set *set, const struct resolver *r,
		 bool wait)
{
	struct name_list *l = copy_names(set, r);

	if (!l)
		return;
	if (wait || crew_job_init(&l->job, ask_names, "names") < 0) {
		ask_names(&l->job);
		return;
	}
	/* Each change of exports makes one, and all wait for one service. */
	l->job.place = hash_text(0, "names");
	crew_run(&l->job);
}
