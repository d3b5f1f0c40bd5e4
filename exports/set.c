/* SPDX-License-Identifier: BSD-2-Clause */
/* One snapshot of the export table, as a data structure. */
#include "exports/export_priv.h"
#include "lib/fail.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *mount_reason(const char *path, int err)
{
	switch (err) {
	case -ENOENT:
		if (path[strlen(path) - 1] == ')')
			return "there is no such directory; options stand "
			       "behind a client, as in '*(rw)'";
		return "there is no such directory";
	case -ENOTDIR:
		return "it is not a directory";
	case -EACCES:
		return "this server may not open it";
	case -EXDEV:
		return "its path leads out of what is mounted there";
	default:
		return strerror(-err);
	}
}

int export_cannot(char **err, const char *where, const char *path, int ret,
		  const char *why)
{
	fail_with(err, "%s: '%s' can't be exported: %s", where, path,
		    why ? why : mount_reason(path, ret));
	return ret;
}

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

static void entry_fini(const struct entry *e)
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
	if (e->export)
		export_put(e->export);
}

void export_set_put(struct export_set *set)
{
	if (!set || !ref_put(&set->ref))
		return;
	for (unsigned i = 0; i < set->nentries; i++) {
		entry_fini(set->entries[i]);
		free(set->entries[i]);
	}
	for (unsigned i = 0; i < set->nnotes; i++) {
		free(set->notes[i].where);
		free(set->notes[i].text);
	}
	free(set->notes);
	free(set->entries);
	free(set->by_id);
	free(set->names);
	free(set);
}

void export_set_free(struct export_set *set)
{
	export_set_put(set);
}

void export_entry_drop_client(struct entry *e, unsigned i)
{
	client_fini(&e->clients[i]);
	memmove(&e->clients[i], &e->clients[i + 1],
		(--e->nclients - i) * sizeof(*e->clients));
}

void export_set_drop_entry(struct export_set *set, unsigned i)
{
	entry_fini(set->entries[i]);
	free(set->entries[i]);
	memmove(&set->entries[i], &set->entries[i + 1],
		(--set->nentries - i) * sizeof(struct entry *));
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

struct entry *export_set_find(const struct export_set *set, const char *path)
{
	for (unsigned i = 0; i < set->nentries; i++)
		if (strcmp(set->entries[i]->path, path) == 0)
			return set->entries[i];
	return NULL;
}

int export_set_add_entry(struct export_set *set, const struct entry *e,
			 struct entry **out)
{
	struct entry **entries, *copy = malloc(sizeof(*copy));

	entries = reallocarray(set->entries, set->nentries + 1,
			       sizeof(*entries));
	if (entries)
		set->entries = entries;
	if (!copy || !entries) {
		free(copy);
		entry_fini(e);
		return -ENOMEM;
	}
	*copy = *e;
	set->entries[set->nentries++] = copy;
	*out = copy;
	return 0;
}

/* Behind those of its kind, before those that have less precedence. */
int export_entry_add_client(struct entry *e, const struct client *c)
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

/* Numbers the clients that only a resolver can tell. */
static int index_names(struct export_set *set)
{
	unsigned n = 0;

	for (unsigned i = 0; i < set->nentries; i++)
		n += set->entries[i]->nclients;
	free(set->names);
	set->nnames = 0;
	set->names = calloc(n + 1, sizeof(*set->names));
	if (!set->names)
		return -ENOMEM;
	for (unsigned i = 0; i < set->nentries; i++) {
		struct entry *e = set->entries[i];

		for (unsigned j = 0; j < e->nclients; j++) {
			struct client *c = &e->clients[j];

			if (c->by_address || c->kind == CLIENT_ANYONE)
				continue;
			c->name_index = set->nnames;
			set->names[set->nnames++] = c;
		}
	}
	return 0;
}

static uint64_t rate_of(uint64_t rate)
{
	return rate == NO_RATE ? 0 : rate;
}

/* Tells each rule the limits of its export. */
static void spread_limits(struct entry *e)
{
	const struct rates max = { rate_of(e->max.ops), rate_of(e->max.bytes) };

	for (unsigned i = 0; i < e->nclients; i++) {
		struct export_opts *opts = &e->clients[i].opts;

		opts->max = max;
		opts->limited = rates_any(&max) ||
				rates_any(&opts->client_max);
	}
}

int export_set_finish(struct export_set *set, char **err)
{
	int ret = ids_index(set, err), err_names = index_names(set);

	for (unsigned i = 0; i < set->nentries; i++)
		spread_limits(set->entries[i]);
	return ret < 0 ? ret : err_names;
}
