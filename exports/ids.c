/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ids - the numbers by which filehandles name exports.  Pure.
 *
 * An export has the id of its path, or that of fsid=.  As with exportfs(8),
 * each rule of a path can have another fsid=.  A client gets filehandles with
 * the id of its rule, and the export is found by any of these ids.
 */
#include "exports/export_priv.h"
#include "lib/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

/* The same for the same path, whenever and wherever this server runs. */
static uint32_t id_of_path(const struct export *e)
{
	static const uint8_t key[crypto_shorthash_KEYBYTES];
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, (const uint8_t *)e->path,
			 strlen(e->path), key);
	return (uint32_t)hash | 0x80000000;
}

static int compare(const void *a, const void *b)
{
	const struct id_place *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	/* An export that was served stays so. */
	if (x->was_taken != y->was_taken)
		return x->was_taken ? 1 : -1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static unsigned most_ids(const struct export_set *set)
{
	unsigned n = set->nexports;

	for (unsigned i = 0; i < set->nexports; i++)
		n += set->exports[i]->nclients;
	return n;
}

static void add_place(struct export_set *set, unsigned at, uint32_t id)
{
	struct export *e = set->exports[at];

	set->by_id[set->nids++] = (struct id_place){ id, at, e->id_taken, e };
}

static void collect_ids(struct export_set *set)
{
	set->nids = 0;
	for (unsigned i = 0; i < set->nexports; i++) {
		struct export *e = set->exports[i];

		if (!e->has_fsid)
			e->id = id_of_path(e);
		add_place(set, i, e->id);
		for (unsigned k = 0; k < e->nclients; k++)
			if (e->clients[k].opts.has_id)
				add_place(set, i, e->clients[k].opts.id);
	}
	qsort(set->by_id, set->nids, sizeof(*set->by_id), compare);
	for (unsigned i = 0; i < set->nexports; i++)
		set->exports[i]->id_taken = false;
}

/* @e has an id of @owner. */
static int tell_clash(struct export_set *set, const struct export *e,
		      const struct export *owner, char **err)
{
	char *text = NULL, *line = NULL;

	fail_with(&text, "'%s' and '%s' (%s) have the same file system id; "
		    "give one of them another with fsid=%s%s%s", e->path,
		    owner->path, owner->where, set->lenient ? ", until then '" :
		    "", set->lenient ? e->path : "", set->lenient ?
		    "' is not exported" : "");
	if (set->lenient) {
		if (text)
			export_set_note(set, strdup(e->where), text);
	} else if (text) {
		fail_with(&line, "%s: %s", e->where, text);
		fail_too(err, line);
	}
	free(text);
	return set->lenient ? 0 : -EINVAL;
}

/* Of exports with the same id the first has it; the others are not served,
 * since a filehandle can't tell which is meant. */
static int find_clashes(struct export_set *set, char **err)
{
	const struct id_place *owner = set->by_id;
	int ret = 0;

	for (unsigned i = 1; i < set->nids; i++) {
		const struct id_place *p = &set->by_id[i];

		if (p->id != owner->id) {
			owner = p;
			continue;
		}
		if (p->export == owner->export || p->export->id_taken)
			continue;
		p->export->id_taken = true;
		if (!p->was_taken &&
		    tell_clash(set, p->export, owner->export, err) < 0)
			ret = -EINVAL;
	}
	return ret;
}

int ids_index(struct export_set *set, char **err)
{
	unsigned n = 0;
	int ret;

	free(set->by_id);
	set->nids = 0;
	set->by_id = calloc(most_ids(set) + 1, sizeof(*set->by_id));
	if (!set->by_id)
		return -ENOMEM;
	collect_ids(set);
	ret = find_clashes(set, err);
	for (unsigned i = 0; i < set->nids; i++) {
		struct id_place p = set->by_id[i];

		if (!p.export->id_taken &&
		    (n == 0 || set->by_id[n - 1].id != p.id))
			set->by_id[n++] = p;
	}
	set->nids = n;
	return ret;
}
