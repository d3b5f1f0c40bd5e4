/* SPDX-License-Identifier: BSD-2-Clause */
/* mounts - of mounts at one place the last one covers the others. */
#include "lib/mounts.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "lib/hash.h"

#define POINT_SIZE	4096

static bool is_octal(const char *p)
{
	return p[0] >= '0' && p[0] <= '3' && p[1] >= '0' && p[1] <= '7' &&
	       p[2] >= '0' && p[2] <= '7';
}

void mounts_decode(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && is_octal(s + 1)) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 |
				       (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

static bool is_at_or_below(const char *path, const char *top, size_t len)
{
	return len == 1 || (strncmp(path, top, len) == 0 &&
			    (path[len] == '/' || path[len] == '\0'));
}

/* The length of the part of a source that names the server or the pool of its
 * file system: "HOST" of "HOST:/PATH", "//HOST" of "//HOST/SHARE", and "POOL"
 * of "POOL/SET" on ZFS.  0: it names none. */
static size_t shared_part(const char *type, const char *source)
{
	const char *end = strstr(source, ":/");

	if (strncmp(source, "//", 2) == 0)
		return 2 + strcspn(source + 2, "/");
	if (strcmp(type, "zfs") == 0)
		return strcspn(source, "/");
	return end ? (size_t)(end - source) : 0;
}

static uint64_t device_of_line(const char *line)
{
	unsigned major, minor;

	return sscanf(line, "%*s %*s %u:%u", &major, &minor) == 2 ?
	       makedev(major, minor) : 0;
}

/* Of a line.  Such file systems have a number each, and hang together. */
static uint64_t place_of_line(const char *line)
{
	uint64_t dev = device_of_line(line);
	const char *rest = strstr(line, " - ");
	char type[64], source[256];

	if (dev && major(dev) == 0 && rest &&
	    sscanf(rest, " - %63s %255s", type, source) == 2 &&
	    shared_part(type, source) > 0) {
		source[shared_part(type, source)] = '\0';
		return hash_text(hash_text(0, type), source);
	}
	return dev;
}

/* Returns @of of the line of the file system where @path lies. */
static uint64_t search(FILE *list, const char *path,
		       uint64_t (*of)(const char *line))
{
	char *line = NULL, point[POINT_SIZE];
	size_t size = 0, most = 0, len;
	uint64_t found = 0;

	while (getline(&line, &size, list) > 0) {
		if (sscanf(line, "%*s %*s %*s %*s %4095s", point) != 1)
			continue;
		mounts_decode(point);
		len = strlen(point);
		if (len < most || !is_at_or_below(path, point, len))
			continue;
		most = len;
		found = of(line);
	}
	free(line);
	return found;
}

static uint64_t search_own(const char *path, uint64_t (*of)(const char *line))
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	uint64_t found = f ? search(f, path, of) : 0;

	if (f)
		fclose(f);
	return found;
}

uint64_t mounts_place_in(FILE *list, const char *path)
{
	return search(list, path, place_of_line);
}

uint64_t mounts_device_in(FILE *list, const char *path)
{
	return search(list, path, device_of_line);
}

uint64_t mounts_place(const char *path)
{
	return search_own(path, place_of_line);
}

uint64_t mounts_device(const char *path)
{
	return search_own(path, device_of_line);
}
