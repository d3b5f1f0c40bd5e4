/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/posix/mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

static bool find_number(const char *options, const char *name, uint32_t *out)
{
	const char *at = strstr(options, name);

	if (at)
		*out = (uint32_t)strtoul(at + strlen(name), NULL, 10);
	return at;
}

/* The options of the file system: FUSE's say whose it is. */
static void parse_options(const char *options, struct posix_mounted *out)
{
	out->read_only = strncmp(options, " ro", 3) == 0 &&
			 strchr(", \n", options[3]);
	out->has_user = strncmp(out->type, "fuse", 4) == 0 &&
			find_number(options, "user_id=", &out->user) &&
			find_number(options, "group_id=", &out->group);
	out->others = !out->has_user || strstr(options, "allow_other");
}

/* "36 35 98:0 /root /point rw,noatime master:1 - type source options"; blanks
 * in a field are written as \040.  The source can be empty. */
bool posix_mounted_parse(const char *line, struct posix_mounted *out)
{
	const char *rest = strstr(line, " - ");
	unsigned long long id;
	unsigned above, major, minor;

	if (!rest || sscanf(line, "%llu %u %u:%u /", &id, &above, &major,
			    &minor) != 4 ||
	    sscanf(rest, " - %63[^ ]", out->type) != 1)
		return false;
	out->id = id;
	out->dev = makedev(major, minor);
	parse_options(strrchr(rest, ' '), out);
	return true;
}

/* Calls @fits for each mount until it returns true.  -1: no list of mounts. */
static int search_list(bool (*fits)(const struct posix_mounted *m,
				    uint64_t what),
		       uint64_t what, struct posix_mounted *out)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	bool found = false;
	char *line = NULL;
	size_t size = 0;

	if (!f)
		return -1;
	while (!found && getline(&line, &size, f) > 0)
		found = posix_mounted_parse(line, out) && fits(out, what);
	free(line);
	fclose(f);
	return found;
}

static bool has_id(const struct posix_mounted *m, uint64_t id)
{
	return m->id == id;
}

static bool has_dev(const struct posix_mounted *m, uint64_t dev)
{
	return m->dev == dev;
}

bool posix_mounted_by_id(uint64_t id, struct posix_mounted *out)
{
	return id && search_list(has_id, id, out) == 1;
}

bool posix_mounted_by_dev(dev_t dev, struct posix_mounted *out)
{
	return search_list(has_dev, dev, out) == 1;
}

bool posix_mounted_is_there(uint64_t id)
{
	struct posix_mounted m;

	return !id || search_list(has_id, id, &m) != 0;
}
