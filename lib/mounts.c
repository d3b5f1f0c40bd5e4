/* SPDX-License-Identifier: BSD-2-Clause */
/* mounts - each is on another one, and covers the files below its place there,
 * even mounts, which stay in the list. */
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

/* A mount at or above a path. */
struct mounted {
	unsigned id, on;	/* its number, and that of the mount below it */
	size_t	 len;		/* of its place */
	uint64_t what;		/* is asked for */
};

static const struct mounted *mount_below(const struct mounted *m, size_t n,
					 const struct mounted *of)
{
	for (size_t i = 0; i < n; i++)
		if (m[i].id == of->on && &m[i] != of)
			return &m[i];
	return NULL;
}

/* The mount that a walk along the path comes to next from @at, or first, if
 * that is NULL.  It does not come to the mounts that this one covers. */
static const struct mounted *mount_next(const struct mounted *m, size_t n,
					const struct mounted *at)
{
	const struct mounted *next = NULL;

	for (size_t i = 0; i < n; i++)
		if (mount_below(m, n, &m[i]) == at &&
		    (!next || m[i].len <= next->len))
			next = &m[i];
	return next;
}

/* Adds the mount of @line to *@m, if it is at or above @path.  False: no
 * memory. */
static bool remember_mount(const char *line, const char *path,
			   uint64_t (*of)(const char *line), struct mounted **m,
			   size_t *n)
{
	struct mounted new, *more;
	char point[POINT_SIZE];

	if (sscanf(line, "%u %u %*s %*s %4095s", &new.id, &new.on, point) != 3)
		return true;
	mounts_decode(point);
	new.len = strlen(point);
	if (!is_at_or_below(path, point, new.len))
		return true;
	new.what = of(line);
	more = reallocarray(*m, *n + 1, sizeof(*more));
	if (!more)
		return false;
	more[(*n)++] = new;
	*m = more;
	return true;
}

/* Returns @of of the line of the file system where @path lies; 0 also without
 * memory. */
static uint64_t search(FILE *list, const char *path,
		       uint64_t (*of)(const char *line))
{
	const struct mounted *at = NULL, *next;
	struct mounted *m = NULL;
	char *line = NULL;
	size_t size = 0, n = 0;
	uint64_t found = 0;
	bool whole = true;

	while (whole && getline(&line, &size, list) > 0)
		whole = remember_mount(line, path, of, &m, &n);
	while (whole && (next = mount_next(m, n, at))) {
		at = next;
		found = at->what;
	}
	free(line);
	free(m);
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
