/* SPDX-License-Identifier: BSD-2-Clause */
/* kept - the exports that gannetctl(8) was told to keep. */
#include "daemon/change/change.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/file.h"

#define NAME	"gannetctl.exports"

char *kept_name(const struct options *o)
{
	char *name;

	return asprintf(&name, "%s/" NAME, o->state_dir) < 0 ? NULL : name;
}

int kept_read(const struct options *o, struct export_table *t,
	      struct export_set **set, char **why)
{
	char *name = kept_name(o);
	int err = -ENOMEM;
	FILE *f;

	*set = NULL;
	*why = NULL;
	if (!name)
		return err;
	f = fopen(name, "re");
	if (f)
		err = export_set_parse(t, name, f, set, why);
	else
		err = errno == ENOENT ? 0 : -errno;
	if (f)
		fclose(f);
	free(name);
	return err;
}

int kept_text(const struct export_set *set, char **text, size_t *len)
{
	FILE *f;

	*text = NULL;
	f = open_memstream(text, len);
	if (!f)
		return -ENOMEM;
	fprintf(f, "# Rules that gannetctl exports --keep was given.  gannetd "
		"reads them after all\n# others, and writes this file again at "
		"the next such change.\n");
	if (set)
		export_set_print(set, f);
	if (fclose(f) == 0)
		return 0;
	free(*text);
	*text = NULL;
	return -ENOMEM;
}

int kept_write(const struct options *o, const char *text, size_t len)
{
	int dir = open(o->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = dir < 0 ? -errno : file_replace(dir, NAME, text, len);

	if (!err && fsync(dir) < 0)
		err = -errno;
	if (dir >= 0)
		close(dir);
	return err;
}
