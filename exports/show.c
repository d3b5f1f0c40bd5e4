/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints a table as the text of exports(5) that says the same. */
#include "exports/children.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "lib/rcu.h"

static bool is_plain(unsigned char c)
{
	return c > ' ' && c != '"' && c != '\\' && c != '#' && c != 0x7f;
}

void export_print_word(const char *s, FILE *out)
{
	for (; *s; s++)
		if (is_plain((unsigned char)*s))
			fputc(*s, out);
		else
			fprintf(out, "\\%03o", (unsigned char)*s);
}

static void print_fsid_option(const struct fsid_option *fsid, FILE *out)
{
	if (fsid->fsid == fsid->id) {
		fprintf(out, ",fsid=%" PRIu32, fsid->id);
		return;
	}
	fprintf(out, ",fsid=");
	for (unsigned i = 0; i < sizeof(fsid->uuid); i++)
		fprintf(out, "%s%02x", i && i % 4 == 0 ? "-" : "",
			fsid->uuid[i]);
}

static void print_mountpoint(const struct export *e, FILE *out)
{
	fprintf(out, ",mountpoint");
	if (strcmp(e->mountpoint, e->path) == 0)
		return;
	fputc('=', out);
	export_print_word(e->mountpoint, out);
}

/* False: @e has no file system.  *@fsid: its number for clients, unless their
 * rule has another one. */
static bool get_fsid(struct export_table *t, const struct export *e,
		     uint64_t *fsid)
{
	struct export_tree *tree;
	bool mounted;

	rcu_enter();
	tree = tree_of_export(t, e);
	mounted = tree && tree->mounted;
	if (mounted)
		*fsid = tree->fs->fsid;
	rcu_exit();
	return mounted;
}

/* False: it is not mounted. */
static bool show_state(struct export_table *t, const struct export *e,
		       FILE *out)
{
	struct child *child = e->mountpoint ?
			      children_find(t->children, e->id) : NULL;
	int err = child ? children_open(t->children, child) : 0;
	uint64_t fsid;
	char *why;

	if (e->id_taken) {
		fprintf(out, ", and is not exported: another export has its "
			"file system id\n");
		return true;
	}
	if (get_fsid(t, e, &fsid)) {
		fprintf(out, ", with the fsid 0x%016" PRIx64, fsid);
	} else if (!e->mountpoint || err == -ETIMEDOUT) {
		why = e->tree ? tree_failure(e->tree) : NULL;
		if (why)
			fprintf(out, ", and is not exported now: %s\n", why);
		else
			fprintf(out, ", and does not answer\n");
		free(why);
		return false;
	} else {
		fprintf(out, ", and is not exported now");
	}
	if (e->mountpoint) {
		fprintf(out, err == -ENODEV ? ": nothing is mounted on " :
			", while something is mounted on ");
		export_print_word(e->mountpoint, out);
	}
	fputc('\n', out);
	return true;
}

void export_print_rule(const struct export *e, unsigned i, FILE *out)
{
	struct fsid_option fsid = e->clients[i].fsid;

	if (!fsid.given && e->has_fsid) {
		fsid = (struct fsid_option){ true, e->id, { 0 }, e->fsid };
		memcpy(fsid.uuid, e->uuid, sizeof(fsid.uuid));
	}
	export_print_word(e->prefix, out);
	export_print_word(e->path, out);
	fputc('\t', out);
	export_print_word(e->clients[i].text, out);
	fputc('(', out);
	export_opts_print(&e->clients[i].opts, out);
	if (fsid.given)
		print_fsid_option(&fsid, out);
	if (e->mountpoint)
		print_mountpoint(e, out);
	export_max_print(&e->clients[i].opts.max, out);
	fprintf(out, ")\n");
}

static bool show_export(struct export_table *t, const struct export *e,
			FILE *out)
{
	bool answers;

	fprintf(out, "# ");
	export_print_word(e->path, out);
	fprintf(out, " is of the kind %s", e->backend->name);
	answers = show_state(t, e, out);
	for (unsigned i = 0; i < e->nclients; i++)
		export_print_rule(e, i, out);
	return answers;
}

bool export_set_show(struct export_table *t, const struct export_set *set,
		     FILE *out)
{
	bool answers = true;

	for (unsigned i = 0; i < set->nexports; i++)
		answers &= show_export(t, set->exports[i], out);
	return answers;
}
