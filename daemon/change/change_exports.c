/* SPDX-License-Identifier: BSD-2-Clause */
/* change_exports - the changes of the exports that gannetctl(8) asks for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/change/change.h"
#include "daemon/watch/report.h"
#include "lib/log.h"
#include "rpc/limit.h"

/* Where a rule comes from that holds until a reload. */
#define ORIGIN	"gannetctl"

/* One change of a set.  0 or -errno and *@why. */
typedef int edit_fn(struct export_table *t, const char *name,
		    const json_t *options, struct export_set **set,
		    char **why);

/* A change under way. */
struct editing {
	const struct options *o;
	struct export_table *t;
	const json_t	*options;	/* of the request */
	edit_fn		*edit;
	const char	*name;		/* of the origin */
	char		*kept_as;	/* the path of the file, or NULL */
	struct export_set *set;		/* to be published */
	struct export_set *kept;	/* in the file; NULL: none */
	struct export_set *start;	/* of the next start; NULL: not kept */
	char		*old, *new;	/* the file's text; NULL: not kept */
	size_t		 old_len, new_len;
	char		*why;
};

static const char *option_text(const json_t *options, const char *key)
{
	return json_string_value(json_object_get(options, key));
}

static int missing(char **why, const char *key)
{
	if (asprintf(why, "expected the option '%s', a text", key) < 0)
		*why = NULL;
	return -EINVAL;
}

static int edit_add(struct export_table *t, const char *name,
		    const json_t *options, struct export_set **set, char **why)
{
	const char *line = option_text(options, "line");

	return line ? export_set_add(t, name, line, set, why) :
		      missing(why, "line");
}

static int edit_remove(struct export_table *t, const char *name,
		       const json_t *options, struct export_set **set,
		       char **why)
{
	const char *path = option_text(options, "path");

	return path ? export_set_remove(*set, path,
					option_text(options, "client"), why) :
		      missing(why, "path");
}

static int edit_set(struct export_table *t, const char *name,
		    const json_t *options, struct export_set **set, char **why)
{
	const char *path = option_text(options, "path");
	const char *client = option_text(options, "client");

	if (!path || !client)
		return missing(why, path ? "client" : "path");
	return export_set_change(t, name, path, client, *set, why);
}

/* Makes e->new of the file with the change. */
static int edit_kept(struct editing *e)
{
	char *text;
	FILE *f;
	int err = kept_read(e->o, e->t, &e->kept, &e->why);

	if (!err)
		err = kept_text(e->kept, &e->old, &e->old_len);
	if (err)
		return err;
	err = e->kept || e->edit == edit_add ?
	      e->edit(e->t, e->name, e->options, &e->kept, &e->why) : -ENOENT;
	if (err == -ENOENT) {
		free(e->why);
		return asprintf(&e->why, "no such rule is kept in %s: change "
				"the file that it comes from, or leave out "
				"--keep", e->kept_as) < 0 ? -ENOMEM : err;
	}
	if (!err)
		err = kept_text(e->kept, &e->new, &e->new_len);
	if (err)
		return err;
	/* Kept rules must not make a start fail. */
	f = fmemopen(e->new, e->new_len, "r");
	err = f ? exports_try(e->o, e->t, f, &e->start, &e->why) : -errno;
	if (f)
		fclose(f);
	if (err && e->why) {
		text = e->why;
		if (asprintf(&e->why, "not kept, since a start would fail: %s",
			     text) < 0)
			e->why = NULL;
		free(text);
	}
	return err;
}

/* Takes out the rules kept until now, except rules that another file has. */
static int remove_kept(struct editing *e)
{
	struct export_set *was = NULL;
	int err = kept_read(e->o, e->t, &was, &e->why);

	if (was && !err)
		err = export_set_subtract(e->set, was, e->start, &e->why);
	if (was)
		export_set_free(was);
	return err;
}

static int edit_now(struct editing *e)
{
	int err = export_set_copy(e->t, &e->set);

	if (!err && e->kept_as && e->edit == edit_remove)
		return remove_kept(e);
	if (!err)
		err = e->edit(e->t, e->name, e->options, &e->set, &e->why);
	/* It was taken out for this run before. */
	if (err != -ENOENT || !e->kept_as)
		return err;
	free(e->why);
	e->why = NULL;
	return 0;
}

static void warn_of_edit(void *out, const char *text)
{
	outcome_warn(out, text);
}

static void tell_late(void *out, const char *text)
{
	outcome_logged(out, text);
}

static int publish_edit(struct editing *e, struct outcome *out)
{
	struct rules before = rules_of(e->t);
	int err = e->new ? kept_write(e->o, e->new, e->new_len) : 0;

	if (err) {
		free(e->why);
		if (asprintf(&e->why, "%s can't be written: %s", e->kept_as,
			     strerror(-err)) < 0)
			e->why = NULL;
		goto done;
	}
	export_set_notes(e->set, warn_of_edit, out);
	export_set_late(e->set, tell_late, out);
	err = export_table_publish(e->t, e->set, &e->why);
	e->set = NULL;
	if (err && e->new && kept_write(e->o, e->old, e->old_len) < 0)
		outcome_warn(out, "what was kept before could not be written "
			     "again");
	if (!err) {
		rules_tell(&before, e->t, out);
		export_check_names(e->t, false);
	}
done:
	rules_free(&before);
	return err;
}

/* Without the name in front of each line: gannetctl says its own. */
static void tell_mistake(const struct editing *e, int err, struct outcome *out)
{
	size_t len = strlen(e->name), size;
	char *all = e->why, *line, *text = NULL;
	FILE *f = all ? open_memstream(&text, &size) : NULL;

	while (f && (line = strsep(&all, "\n"))) {
		if (strncmp(line, e->name, len) == 0 && line[len] == ':')
			line += len + 2;
		log_err("gannetctl: exports not changed: %s", line);
		fprintf(f, "%s%s", line, all ? "\n" : "");
	}
	if (f && fclose(f) == 0) {
		out->error = text;
		return;
	}
	free(text);
	log_err("gannetctl: exports not changed: %s", strerror(-err));
	out->error = strdup(strerror(-err));
}

int change_rules(const struct report *r, const struct control_call *call,
		 enum change_kind kind, struct outcome *out)
{
	static edit_fn *const edits[] = {
		[CHANGE_ADD] = edit_add, [CHANGE_REMOVE] = edit_remove,
		[CHANGE_SET] = edit_set,
	};
	const struct options by = tune_exports(r->o, *r->now);
	struct editing e = {
		.o = &by, .t = r->exports,
		.options = control_call_options(call), .edit = edits[kind],
		.name = ORIGIN,
	};
	int err = 0;

	if (json_is_true(json_object_get(e.options, "keep"))) {
		e.kept_as = kept_name(e.o);
		e.name = e.kept_as ? : ORIGIN;
		err = e.kept_as ? edit_kept(&e) : -ENOMEM;
	}
	if (!err)
		err = edit_now(&e);
	if (!err)
		err = publish_edit(&e, out);
	if (err)
		tell_mistake(&e, err, out);
	else
		rpc_limits_changed(r->rpc);
	if (e.set)
		export_set_free(e.set);
	if (e.kept)
		export_set_free(e.kept);
	if (e.start)
		export_set_free(e.start);
	free(e.kept_as);
	free(e.old);
	free(e.new);
	free(e.why);
	return err;
}
