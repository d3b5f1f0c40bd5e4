/* SPDX-License-Identifier: BSD-2-Clause */
/* mounts - of mounts at one place the last one covers the others. */
#include "lib/mounts.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

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

uint64_t mounts_place(const char *path)
{
	FILE *f = fopen("/proc/self/mountinfo", "re");
	char *line = NULL, point[POINT_SIZE];
	size_t size = 0, most = 0, len;
	unsigned major, minor;
	uint64_t place = 0;

	while (f && getline(&line, &size, f) > 0) {
		if (sscanf(line, "%*s %*s %u:%u %*s %4095s", &major, &minor,
			   point) != 3)
			continue;
		mounts_decode(point);
		len = strlen(point);
		if (len < most || !is_at_or_below(path, point, len))
			continue;
		most = len;
		place = makedev(major, minor);
	}
	free(line);
	if (f)
		fclose(f);
	return place;
}
