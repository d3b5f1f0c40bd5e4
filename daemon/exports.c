/* SPDX-License-Identifier: BSD-2-Clause */
/* exports - reads the exports that the options name. */
#include "daemon/exports.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_EXPORTS	SYSCONFDIR "/gannet/exports"

static int parse_file(const struct options *o, struct export_table *t,
		      const char *name, struct export_set **set, char **err)
{
	FILE *f = fopen(name, "re");
	const char *why = "";
	struct stat st;
	int ret = 0;

	if (!f || fstat(fileno(f), &st) < 0)
		ret = -errno;
	else if (S_ISDIR(st.st_mode))
		ret = -EISDIR;
	else
		ret = export_set_parse(t, name, f, set, err);
	if (ret == -EISDIR)
		why = "; expected an exports file (--export offers a "
		      "directory)";
	else if (ret == -ENOENT && o->nexports_files == 0)
		why = "; name a directory with --export, or a file with "
		      "--exports-file";
	if (ret && !*err && asprintf(err, "%s: %s%s", name, strerror(-ret),
				     why) < 0)
		*err = NULL;
	if (f)
		fclose(f);
	return ret;
}

int exports_read(const struct options *o, struct export_table *t,
		 struct export_set **set, char **err)
{
	int ret = 0;

	for (unsigned i = 0; i < o->nexports_files && !ret; i++)
		ret = parse_file(o, t, o->exports_files[i], set, err);
	if (o->nexports_files == 0 && o->nexports == 0)
		ret = parse_file(o, t, DEFAULT_EXPORTS, set, err);
	for (unsigned i = 0; i < o->nexports && !ret; i++)
		ret = export_set_add(t, o->exports[i], set, err);
	return ret;
}

const char *exports_first_file(const struct options *o)
{
	return o->nexports_files ? o->exports_files[0] : DEFAULT_EXPORTS;
}
