/* SPDX-License-Identifier: BSD-2-Clause */
/* One snapshot of the export table, as a data structure. */
#include "exports/export_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rcu.h"

int export_set_alloc(struct export_set **out)
{
	struct export_set *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	ref_init(&set->ref);
	*out = set;
	return 0;
}

static void client_fini(const struct client *c)
{
	free(c->text);
	free(c->where);
}

static void export_fini(const struct export *e)
{
	for (unsigned i = 0; i < e->nclients; i++)
		client_fini(&e->clients[i]);
	free(e->clients);
	free(e->path);
	free(e->prefix);
	free(e->options);
	free(e->where);
	free(e->fsid_where);
	free(e->mountpoint);
	if (e->tree)
		export_put(e->tree);
}

void export_set_put(struct export_set *set)
{
	if (!set || !ref_put(&set->ref))
		return;
	for (unsigned i = 0; i < set->nexports; i++) {
		export_fini(set->exports[i]);
		free(set->exports[i]);
	}
	for (unsigned i = 0; i < set->nnotes; i++) {
		free(set->notes[i].where);
		free(set->notes[i].text);
	}
	free(set->notes);
	free(set->exports);
	free(set->by_id);
	free(set->names);
	free(set);
}

void export_set_free(struct export_set *set)
{
	export_set_put(set);
}

void export_drop_client(struct export *e, unsigned i)
{
	client_fini(&e->clients[i]);
	memmove(&e->clients[i], &e->clients[i + 1],
		(--e->nclients - i) * sizeof(*e->clients));
}

void export_set_drop(struct export_set *set, unsigned i)
{
	export_fini(set->exports[i]);
	free(set->exports[i]);
	memmove(&set->exports[i], &set->exports[i + 1],
		(--set->nexports - i) * sizeof(struct export *));
}

int export_set_note(struct export_set *set, char *where, const char *text)
{
	struct note note = { .where = where, .text = strdup(text) }, *notes;

	for (unsigned i = 0; i < set->nnotes; i++)
		if (note.text && !strcmp(set->notes[i].text, text)) {
			set->notes[i].more++;
			free(note.where);
			free(note.text);
			return 0;
		}
	notes = reallocarray(set->notes, set->nnotes + 1, sizeof(*notes));
	if (notes)
		set->notes = notes;
	if (!where || !note.text || !notes) {
		free(note.where);
		free(note.text);
		return -ENOMEM;
	}
	notes[set->nnotes++] = note;
	return 0;
}

void export_set_notes(const struct export_set *set,
		      void (*fn)(void *arg, const char *text), void *arg)
{
	char *text;

	for (unsigned i = 0; i < set->nnotes; i++) {
		const struct note *n = &set->notes[i];
		int len = n->more ? asprintf(&text, "%s: %s (and %u more)",
					     n->where, n->text, n->more) :
			  asprintf(&text, "%s: %s", n->where, n->text);

		if (len < 0)
			continue;
		fn(arg, text);
		free(text);
	}
}

void export_set_late(struct export_set *set,
		     void (*fn)(void *arg, const char *text), void *arg)
{
	set->late = fn;
	set->late_arg = arg;
}

struct export *export_set_find(const struct export_set *set, const char *path)
{
	for (unsigned i = 0; i < set->nexports; i++)
		if (strcmp(set->exports[i]->path, path) == 0)
			return set->exports[i];
	return NULL;
}

struct export *export_set_find_id(const struct export_set *set, uint32_t id)
{
	unsigned lo = 0, hi = set ? set->nids : 0;

	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;

		if (set->by_id[mid].id == id)
			return set->by_id[mid].export;
		if (set->by_id[mid].id < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

int export_set_append(struct export_set *set, const struct export *e,
		      struct export **out)
{
	struct export **exports, *copy = malloc(sizeof(*copy));

	exports = reallocarray(set->exports, set->nexports + 1,
			       sizeof(*exports));
	if (exports)
		set->exports = exports;
	if (!copy || !exports) {
		free(copy);
		export_fini(e);
		return -ENOMEM;
	}
	*copy = *e;
	set->exports[set->nexports++] = copy;
	*out = copy;
	return 0;
}

/* Behind its kind, before kinds of less precedence. */
int export_add_client(struct export *e, const struct client *c)
{
	struct client *clients;
	unsigned i;

	clients = reallocarray(e->clients, e->nclients + 1, sizeof(*clients));
	if (!clients) {
		client_fini(c);
		return -ENOMEM;
	}
	e->clients = clients;
	for (i = e->nclients; i > 0 && clients[i - 1].kind > c->kind; i--)
		clients[i] = clients[i - 1];
	clients[i] = *c;
	e->nclients++;
	return 0;
}

/* ---- the current one */

struct export_set *export_current(struct export_table *t)
{
	struct export_set *set;

	rcu_enter();
	set = t->current;
	if (set)
		ref_get(&set->ref);
	rcu_exit();
	return set;
}
