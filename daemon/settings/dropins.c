/* SPDX-License-Identifier: BSD-2-Clause */
/* dropins - the files of a directory whose names end alike. */
#include "daemon/settings/settings.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool ends_in(const char *name, const char *suffix)
{
	size_t len = strlen(name), n = strlen(suffix);

	return name[0] != '.' && len >= n && !strcmp(name + len - n, suffix);
}

int drop_ins(const char *dir, const char *suffix,
	     int (*fn)(void *arg, const char *path), void *arg)
{
	struct dirent **list = NULL;
	int n = scandir(dir, &list, NULL, alphasort);
	int ret = n < 0 ? -errno : 0;
	char *path;

	for (int i = 0; i < n; i++) {
		if (ret >= 0 && ends_in(list[i]->d_name, suffix)) {
			int err = -ENOMEM;

			if (asprintf(&path, "%s/%s", dir,
				     list[i]->d_name) >= 0) {
				err = fn(arg, path);
				free(path);
			}
			ret = err < 0 ? err : ret + 1;
		}
		free(list[i]);
	}
	free(list);
	return ret;
}
