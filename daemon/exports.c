/* SPDX-License-Identifier: BSD-2-Clause */
/* exports - reads the exports that the options name. */
#include "daemon/exports.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/dropins.h"
#include "daemon/kept.h"
#include "lib/log.h"
#include "lib/util.h"

#define DEFAULT_EXPORTS	SYSCONFDIR "/gannet/exports"

static int parse_file(const struct options *o, struct export_table *t,
		      const char *name, struct export_set **set, char **err)
{
	FILE *f = fopen(name, "re");
	int ret = f ? export_set_parse(t, name, f, set, err) : -errno;
	const char *hint = ret == -ENOENT && o->exports_files->n == 0 ?
		"; name a directory with --export, or a file with "
		"--exports-file" : "";

	if (ret && !*err && asprintf(err, "%s: %s%s", name, strerror(-ret),
				     hint) < 0)
		*err = NULL;
	if (f)
		fclose(f);
	return ret;
}

/* The set of exports that files are read into. */
struct reading {
	const struct options	 *o;
	struct export_table	 *t;
	struct export_set	**set;
	char			**err;
};

static int parse_drop_in(void *arg, const char *name)
{
	struct reading *r = arg;

	return parse_file(r->o, r->t, name, r->set, r->err);
}

/* All files *.exports of the directory; there may be none. */
static int parse_dir(const struct options *o, struct export_table *t,
		     const char *dir, struct export_set **set, char **err)
{
	struct reading r = { o, t, set, err };
	int n = drop_ins(dir, ".exports", parse_drop_in, &r);

	if (n < 0 && !*err && asprintf(err, "%s: %s", dir, strerror(-n)) < 0)
		*err = NULL;
	if (n == 0 && o->exports_files->n + o->exports->n > 1)
		log_info("%s: there is no file *.exports in this directory",
			 dir);
	return MIN(n, 0);
}

static bool is_dir(const char *name)
{
	struct stat st;

	return stat(name, &st) == 0 && S_ISDIR(st.st_mode);
}

/* The system's file and directory; either may be missing. */
static int parse_defaults(const struct options *o, struct export_table *t,
			 struct export_set **set, char **err)
{
	bool has_dir = is_dir(DEFAULT_EXPORTS ".d");
	int ret = 0;

	if (!has_dir || access(DEFAULT_EXPORTS, F_OK) == 0)
		ret = parse_file(o, t, DEFAULT_EXPORTS, set, err);
	if (!ret && has_dir)
		ret = parse_dir(o, t, DEFAULT_EXPORTS ".d", set, err);
	/* Neither has any: the error of a file that is missing. */
	if (!ret && !*set)
		ret = parse_file(o, t, DEFAULT_EXPORTS, set, err);
	return ret;
}

/* Rules that gannetctl was told to keep: those of @kept, or if that is NULL of
 * the file. */
static int parse_kept(const struct options *o, struct export_table *t,
		      FILE *kept, struct export_set **set, char **err)
{
	char *name = kept_name(o);
	int ret = name ? 0 : -ENOMEM;

	if (name && kept)
		ret = export_set_parse(t, name, kept, set, err);
	else if (name && access(name, F_OK) == 0)
		ret = parse_file(o, t, name, set, err);
	free(name);
	return ret;
}

static int read_sources(const struct options *o, struct export_table *t,
			FILE *kept, struct export_set **set, char **err)
{
	int ret = 0;

	for (unsigned i = 0; i < o->exports_files->n && !ret; i++) {
		const char *name = o->exports_files->v[i];

		ret = is_dir(name) ? parse_dir(o, t, name, set, err) :
				     parse_file(o, t, name, set, err);
	}
	if (o->exports_files->n == 0 && o->exports->n == 0)
		ret = parse_defaults(o, t, set, err);
	for (unsigned i = 0; i < o->exports->n && !ret; i++)
		ret = export_set_add(t, "--export", o->exports->v[i],
				     set, err);
	if (!ret)
		ret = parse_kept(o, t, kept, set, err);
	/* Perhaps a directory that was to be exported. */
	if (!ret && !*set) {
		ret = -ENOENT;
		if (asprintf(err, "%s: there is no file *.exports in this "
			     "directory; --export offers a directory",
			     o->exports_files->v[0]) < 0)
			*err = NULL;
	}
	return ret;
}

static void warn_note(void *arg, const char *text)
{
	outcome_warn(arg, text);
}

static void count_client(void *arg, const char *path, const char *client,
			 bool everyone)
{
	(*(unsigned *)arg)++;
}

int exports_try(const struct options *o, struct export_table *t, FILE *kept,
		struct export_set **out, char **why)
{
	struct export_set *set = NULL;
	int err;

	*why = NULL;
	err = read_sources(o, t, kept, &set, why);
	if (!err)
		*out = set;
	else if (set)
		export_set_free(set);
	return err;
}

int exports_publish(const struct options *o, struct export_table *t,
		    struct outcome *out)
{
	struct export_set *set = NULL;
	char *text = NULL;
	unsigned n = 0;
	int err;

	err = read_sources(o, t, NULL, &set, &text);
	if (!err) {
		export_set_notes(set, warn_note, out);
		err = export_table_publish(t, set, &text);
	} else if (set) {
		export_set_free(set);
	}
	if (err) {
		outcome_error(out, text ? text : strerror(-err));
		goto done;
	}
	export_walk(t, count_client, &n);
	export_check_names(t, o->check);
	if (n == 0 && asprintf(&text, "%s: there is no export in it; add a "
			       "line 'DIR CLIENT(OPTIONS)...'",
			       o->exports_files->n ? o->exports_files->v[0] :
			       DEFAULT_EXPORTS) >= 0)
		outcome_warn(out, text);
done:
	free(text);
	return err;
}

int exports_check(const struct options *o, const struct backends *backends)
{
	const struct export_config config = {
		.backend = &posix_vfs_ops, .backends = backends,
		.manage_gids = o->manage_gids, .check = true,
	};
	struct export_table *t;
	bool mounted = true;
	int err = export_table_create(&config, &t);

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
