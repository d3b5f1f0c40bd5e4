/* SPDX-License-Identifier: BSD-2-Clause */
/* exports - reads the exports that the options name. */
#include "daemon/change/change.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/util.h"

/* The set of exports that files and arguments are read into. */
struct reading {
	const struct options *o;
	struct export_table  *t;
	struct export_set    *set;
	unsigned	      n;	/* files and arguments */
	int		      err;	/* the first; 0 */
	char		     *why;	/* all, a line each */
};

/* The next text was read with @err.  Takes @why.  More mistakes can follow. */
static void note_text(struct reading *r, int err, char *why)
{
	char *before = r->why;

	r->n++;
	if (!r->err)
		r->err = err;
	if (!before)
		r->why = why;
	else if (why && asprintf(&r->why, "%s\n%s", before, why) < 0)
		r->why = NULL;
	if (before && why) {
		free(before);
		free(why);
	}
}

static void parse_file(struct reading *r, const char *name)
{
	FILE *f = fopen(name, "re");
	char *why = NULL;
	int err = f ? export_set_parse(r->t, name, f, &r->set, &why) : -errno;
	const char *hint = err == -ENOENT && r->o->exports_files->n == 0 ?
		"; name a directory with --export, or a file with "
		"--exports-file" : "";

	if (err && !why && asprintf(&why, "%s: %s%s", name, strerror(-err),
				    hint) < 0)
		why = NULL;
	note_text(r, err, why);
	if (f)
		fclose(f);
}

static int parse_drop_in(void *arg, const char *name)
{
	parse_file(arg, name);
	return 0;
}

/* All files *.exports of the directory, perhaps none. */
static void parse_dir(struct reading *r, const char *dir)
{
	int n = drop_ins(dir, ".exports", parse_drop_in, r);
	char *why = NULL;

	if (n < 0) {
		if (asprintf(&why, "%s: %s", dir, strerror(-n)) < 0)
			why = NULL;
		note_text(r, n, why);
	}
	if (n == 0 && r->o->exports_files->n + r->o->exports->n > 1)
		log_info("%s: there is no file *.exports in this directory",
			 dir);
}

static bool is_dir(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The system's file and directory; either can be missing. */
static void parse_defaults(struct reading *r)
{
	bool has_dir = is_dir(SYSTEM_EXPORTS ".d");

	if (!has_dir || access(SYSTEM_EXPORTS, F_OK) == 0)
		parse_file(r, SYSTEM_EXPORTS);
	if (has_dir)
		parse_dir(r, SYSTEM_EXPORTS ".d");
	/* Neither has any: the error of a file that is missing. */
	if (r->n == 0)
		parse_file(r, SYSTEM_EXPORTS);
}

/* Rules that gannetctl was told to keep: from @kept, or if that is NULL from
 * the file. */
static void parse_kept(struct reading *r, FILE *kept)
{
	char *name = kept_name(r->o), *why = NULL;
	int err;

	if (!name) {
		note_text(r, -ENOMEM, NULL);
	} else if (kept) {
		err = export_set_parse(r->t, name, kept, &r->set, &why);
		note_text(r, err, why);
	} else if (access(name, F_OK) == 0) {
		parse_file(r, name);
	}
	free(name);
}

static void parse_argument(struct reading *r, const char *text)
{
	char *why = NULL;
	int err = export_set_add(r->t, "--export", text, &r->set, &why);

	note_text(r, err, why);
}

/* Reads everything into r->set.  0, or r->err. */
static int read_sources(struct reading *r, FILE *kept)
{
	const struct options *o = r->o;
	char *why = NULL;

	r->err = export_set_create(r->t, &r->set);
	if (r->err)
		return r->err;
	for (unsigned i = 0; i < o->exports_files->n; i++) {
		const char *name = o->exports_files->v[i];

		if (is_dir(name))
			parse_dir(r, name);
		else
			parse_file(r, name);
	}
	if (o->exports_files->n == 0 && o->exports->n == 0)
		parse_defaults(r);
	for (unsigned i = 0; i < o->exports->n; i++)
		parse_argument(r, o->exports->v[i]);
	parse_kept(r, kept);
	/* Perhaps a directory that was to be exported. */
	if (r->n == 0) {
		if (asprintf(&why, "%s: there is no file *.exports in this "
			     "directory; --export offers a directory",
			     o->exports_files->v[0]) < 0)
			why = NULL;
		note_text(r, -ENOENT, why);
	}
	return r->err;
}

static void warn_note(void *arg, const char *text)
{
	outcome_warn(arg, text);
}

static void late_note(void *arg, const char *text)
{
	outcome_logged(arg, text);
}

static void count_client(void *arg, const char *path, const char *client,
			 bool everyone)
{
	(*(unsigned *)arg)++;
}

int exports_try(const struct options *o, struct export_table *t, FILE *kept,
		struct export_set **out, char **why)
{
	struct reading r = { .o = o, .t = t };
	int err = read_sources(&r, kept);

	*why = r.why;
	if (!err)
		*out = r.set;
	else if (r.set)
		export_set_free(r.set);
	return err;
}

/* Publishes r->set, or after a mistake in a text only looks for others. */
static int publish(struct reading *r, struct outcome *out)
{
	char *why = NULL;
	int err;

	if (r->set)
		export_set_notes(r->set, warn_note, out);
	if (r->set && (!r->err || r->o->check)) {
		export_set_late(r->set, late_note, out);
		err = export_table_publish(r->t, r->set, &why);
		note_text(r, err, why);
	} else if (r->set) {
		export_set_free(r->set);
	}
	if (r->err)
		outcome_error(out, r->why ? r->why : strerror(-r->err));
	free(r->why);
	return r->err;
}

int exports_publish(const struct options *o, struct export_table *t,
		    struct outcome *out)
{
	struct reading r = { .o = o, .t = t };
	char *text = NULL;
	unsigned n = 0;

	read_sources(&r, NULL);
	if (publish(&r, out) < 0)
		return r.err;
	export_walk(t, count_client, &n);
	export_check_names(t, o->check);
	if (n == 0 && asprintf(&text, "%s: there is no export in it; add a "
			       "line 'DIR CLIENT(OPTIONS)...'",
			       o->exports_files->n ? o->exports_files->v[0] :
			       SYSTEM_EXPORTS) >= 0)
		outcome_warn(out, text);
	free(text);
	return 0;
}

int exports_start(const struct options *o, struct export_table *t)
{
	int err;

	export_table_lenient(t, true);
	err = exports_publish(o, t, NULL);
	export_table_lenient(t, false);
	return err;
}

int exports_check(const struct options *o, const struct backends *backends,
		  bool krb5)
{
	const struct export_config config = {
		.backend = &posix_vfs_ops, .backends = backends,
		.manage_gids = o->manage_gids, .krb5 = krb5, .check = true,
		.protection = options_protection(o),
	};
	struct export_table *t;
	bool mounted = true;
	struct tls_config *tls;
	char *why;
	int err = options_tls(o, UINT64_MAX, &tls, &why);

	if (err) {
		log_err("%s", why ? why : strerror(-err));
		free(why);
		return err;
	}
	tls_config_free(tls);
	if (why)
		log_lines(LOG_LEVEL_WARN, why);
	free(why);
	err = export_table_create(&config, &t);
	if (err) {
		log_err("cannot check: %s", strerror(-err));
		return err;
	}
	err = exports_publish(o, t, NULL);
	if (!err)
		mounted = export_show(t, stdout);
	if (fflush(stdout) && !err)
		err = -errno;
	if (!mounted)
		_exit(err ? EXIT_FAILURE : EXIT_SUCCESS);
	export_table_destroy(t);
	return err;
}
