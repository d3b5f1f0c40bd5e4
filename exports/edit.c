/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of a set of exports, rule by rule. */
#include "exports/export_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exports/words.h"
#include "lib/fail.h"
#include "lib/rcu.h"

/* ---- a copy */

static int copy_clients(struct export *to, const struct export *from)
{
	int err = 0;

	for (unsigned i = 0; i < from->nclients && !err; i++) {
		struct client c = from->clients[i];

		c.text = strdup(c.text);
		c.where = strdup(c.where);
		if (c.text && c.where) {
			err = export_add_client(to, &c);
			continue;
		}
		free(c.text);
		free(c.where);
		err = -ENOMEM;
	}
	return err;
}

static char *copy_text(const char *text, bool *failed)
{
	char *copy = text ? strdup(text) : NULL;

	*failed |= text && !copy;
	return copy;
}

static int copy_export(struct export_set *set, const struct export *from)
{
	const size_t size = from->backend->options_size + 1;
	struct export e = *from, *to;
	bool failed = false;
	int err;

	e.path = copy_text(from->path, &failed);
	e.prefix = copy_text(from->prefix, &failed);
	e.where = copy_text(from->where, &failed);
	e.fsid_where = copy_text(from->fsid_where, &failed);
	e.mountpoint = copy_text(from->mountpoint, &failed);
	e.options = malloc(size);
	if (e.options)
		memcpy(e.options, from->options, size);
	e.clients = NULL;
	e.nclients = 0;
	e.tree = NULL;
	err = export_set_append(set, &e, &to);
	if (err)
		return err;
	/* The set frees the unfinished copy. */
	return failed || !e.options ? -ENOMEM : copy_clients(to, from);
}

int export_set_copy(struct export_table *t, struct export_set **out)
{
	struct export_set *now = export_current(t), *set = NULL;
	char *why = NULL;
	int err = export_set_alloc(&set);

	for (unsigned i = 0; now && i < now->nexports && !err; i++)
		err = copy_export(set, now->exports[i]);
	if (!err)
		err = export_set_finish(set, &why);
	free(why);
	export_set_put(now);
	if (err)
		export_set_put(set);
	else
		*out = set;
	return err;
}

/* ---- a rule */

/* The export of @text, a word.  0; -ENOENT or -EINVAL and *@err. */
static int find_path_export(const struct export_set *set, const char *text,
			    struct export **out, char **err)
{
	struct words *w = calloc(1, sizeof(*w));
	int ret;

	if (!w)
		return -ENOMEM;
	w->name = "path";
	w->p = text;
	w->end = text + strlen(text);
	w->err = err;
	ret = words_next(w);
	if (ret == 0 || (ret > 0 && w->p != w->end)) {
		ret = fail_with(err, "'%s' is not one path", text);
	} else if (ret > 0) {
		*out = export_set_find(set, w->word);
		ret = *out ? 0 : -ENOENT;
		if (ret)
			fail_with(err, "'%s' is not exported", w->word);
	}
	free(w);
	return ret;
}

/* The index of the client of @e that equals @c; -1: not found. */
static int place_of_client(const struct export *e, const struct client *c)
{
	for (unsigned i = 0; i < e->nclients; i++)
		if (client_same(&e->clients[i], c))
			return (int)i;
	return -1;
}

/* The same; -ENOENT and *@err. */
static int find_client(const struct export *e, const struct client *c,
		       char **err)
{
	int i = place_of_client(e, c);

	if (i >= 0)
		return i;
	fail_with(err, "'%s' has no rule for the client '%s'", e->path,
		    c->text);
	return -ENOENT;
}

static void drop_emptied(struct export_set *set, const struct export *e)
{
	unsigned i = 0;

	while (set->exports[i] != e)
		i++;
	export_set_drop(set, i);
}

int export_set_remove(struct export_set *set, const char *path,
		      const char *client, char **err)
{
	struct client c = { .text = NULL };
	const char *wrong;
	struct export *e;
	int ret;

	*err = NULL;
	ret = find_path_export(set, path, &e, err);
	if (ret < 0)
		return ret;
	if (client) {
		c.text = strdup(client);
		wrong = c.text ? client_parse(&c) : "needs memory";
		ret = wrong ? fail_with(err, "client '%s' %s", client,
					  wrong) : find_client(e, &c, err);
		free(c.text);
		if (ret < 0)
			return ret;
		export_drop_client(e, (unsigned)ret);
	}
	if (!client || e->nclients == 0)
		drop_emptied(set, e);
	return export_set_finish(set, err);
}

static void subtract_export(struct export_set *set, const struct export *gone,
			    const struct export_set *stays)
{
	const struct export *other = export_set_find(stays, gone->path);
	struct export *e = export_set_find(set, gone->path);

	for (unsigned i = e ? e->nclients : 0; i-- > 0;) {
		const struct client *c = &e->clients[i];

		if (place_of_client(gone, c) >= 0 &&
		    (!other || place_of_client(other, c) < 0))
			export_drop_client(e, i);
	}
	if (e && e->nclients == 0)
		drop_emptied(set, e);
}

int export_set_subtract(struct export_set *set, const struct export_set *gone,
			const struct export_set *stays, char **err)
{
	*err = NULL;
	for (unsigned i = 0; i < gone->nexports; i++)
		subtract_export(set, gone->exports[i], stays);
	return export_set_finish(set, err);
}

/* "PREFIX/PATH TEXT", malloced; NULL: no memory. */
static char *line_for(const struct export *e, const char *text)
{
	char *line = NULL;
	size_t len;
	FILE *f = open_memstream(&line, &len);

	if (!f)
		return NULL;
	export_print_word(e->prefix, f);
	export_print_word(e->path, f);
	fprintf(f, " %s", text);
	if (fclose(f) == 0)
		return line;
	free(line);
	return NULL;
}

/* Without a sec=, @now would turn a Kerberos rule into one of AUTH_SYS. 0, or
 * -EINVAL and *@err. */
static int check_flavors(const struct export_sec *was,
			 const struct export_sec *now, char **err)
{
	char text[SEC_TEXT_MAX];

	if (now->given || (was->n == 1 && was->main == RPC_AUTH_SYS))
		return 0;
	sec_text(was, text);
	return fail_with(err, "the rule has sec=%s, and would have sec=sys "
			 "without it: name the flavors that are meant", text);
}

/* @new has the one export with the one client that was given. */
static int take_rule(struct export *e, const struct export_set *new, char **err)
{
	const struct export *n = new->nexports == 1 ? new->exports[0] : NULL;
	struct client *to;
	char *text, *where;
	struct export_opts was;
	int i;

	if (!n || n->nclients != 1)
		return fail_with(err, "expected one CLIENT(OPTIONS)");
	i = find_client(e, n->clients, err);
	if (i < 0)
		return i;
	to = &e->clients[i];
	if ((n->has_fsid && n->id != (to->opts.has_id ? to->opts.id : e->id)) ||
	    (n->mountpoint && (!e->mountpoint ||
			       strcmp(n->mountpoint, e->mountpoint) != 0)))
		return fail_with(err, "fsid= and mountpoint= are those of "
				   "the export, and can't change here");
	if (check_flavors(&to->opts.sec, &n->clients->opts.sec, err) < 0)
		return -EINVAL;
	if (to->opts.least > n->clients->opts.least &&
	    !n->clients->opts.least_given)
		return fail_with(err, "the rule has xprtsec=, and would serve "
				 "calls in clear without it: name what is "
				 "meant");
	/* A limit that is not given stays, as the export's other options do. */
	if (n->max.ops != NO_RATE)
		e->max.ops = n->max.ops;
	if (n->max.bytes != NO_RATE)
		e->max.bytes = n->max.bytes;
	text = strdup(n->clients->text);
	where = strdup(n->clients->where);
	if (!text || !where) {
		free(text);
		free(where);
		return -ENOMEM;
	}
	free(to->text);
	free(to->where);
	to->text = text;
	to->where = where;
	was = to->opts;
	to->opts = n->clients->opts;
	to->opts.has_id = was.has_id;
	to->opts.id = was.id;
	to->opts.fsid = was.fsid;
	return 0;
}

int export_set_change(struct export_table *t, const char *name,
		      const char *path, const char *text,
		      struct export_set *set, char **err)
{
	struct export_set *new = NULL;
	struct export *e;
	char *line;
	int ret;

	*err = NULL;
	ret = find_path_export(set, path, &e, err);
	if (ret < 0)
		return ret;
	line = line_for(e, text);
	ret = line ? export_set_add(t, name, line, &new, err) : -ENOMEM;
	if (ret == 0)
		ret = take_rule(e, new, err);
	if (ret == 0)
		ret = export_set_finish(set, err);
	free(line);
	export_set_put(new);
	return ret;
}

/* ---- all rules */

void export_set_print(const struct export_set *set, FILE *out)
{
	for (unsigned i = 0; i < set->nexports; i++)
		for (unsigned k = 0; k < set->exports[i]->nclients; k++)
			export_print_rule(set->exports[i], k, out);
}

static void tell_rules_of(const struct export *e,
		       void (*fn)(void *arg, const struct export_rule *rule),
		       void *arg)
{
	bool away = e->id_taken || (e->tree && !e->tree->mounted);
	bool moved = !away && e->tree && tree_has_moved(e->tree);
	char *why = NULL;

	if (e->id_taken)
		why = strdup("another export has its file system id");
	else if (away)
		why = tree_failure(e->tree);
	for (unsigned i = 0; i < e->nclients; i++) {
		struct export_rule rule = {
			e->path, e->clients[i].text, "", &e->clients[i].opts,
			e->clients[i].where, e->backend->name, away, why,
			e->mountpoint != NULL, moved,
		};
		char *options = NULL;
		size_t len;
		FILE *f = open_memstream(&options, &len);

		if (f) {
			export_opts_print(rule.opts, f);
			export_max_print(&rule.opts->max, f);
			if (fclose(f) == 0)
				rule.options = options;
		}
		fn(arg, &rule);
		free(options);
	}
	free(why);
}

void export_walk_rules(struct export_table *t,
		       void (*fn)(void *arg, const struct export_rule *rule),
		       void *arg)
{
	struct export_set *set = export_current(t);

	for (unsigned i = 0; set && i < set->nexports; i++)
		tell_rules_of(set->exports[i], fn, arg);
	export_set_put(set);
}
