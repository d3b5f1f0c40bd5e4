/* SPDX-License-Identifier: BSD-2-Clause */
/* A backend's options in an exports file, from the backend's rows.  Pure. */
#include "lib/fail.h"
#include "vfs/backends.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static const struct vfs_option *find_row(const struct vfs_ops *ops,
					 const char *opt, size_t len)
{
	for (unsigned i = 0; i < ops->noptions; i++)
		if (strlen(ops->options[i].name) == len &&
		    memcmp(ops->options[i].name, opt, len) == 0)
			return &ops->options[i];
	return NULL;
}

/* Appends "name" or "name=" to @buf, and a separator. */
static void add_name(char *buf, size_t size, const struct vfs_ops *ops,
		     unsigned i)
{
	const struct vfs_option *row = &ops->options[i];
	size_t len = strlen(buf);

	snprintf(buf + len, size - len, "%s%s%s",
		 i == 0 ? "" : i + 1 == ops->noptions ? " or " : ", ",
		 row->name, row->type == VFS_FLAG ? "" : "=");
}

static int no_such(const struct vfs_ops *ops, const char *opt, char **err)
{
	char names[256] = "";

	if (ops->noptions == 0)
		return fail_with(err, "%s has no options", ops->name);
	for (unsigned i = 0; i < ops->noptions; i++)
		add_name(names, sizeof(names), ops, i);
	return fail_with(err, "%s has no option '%s'; expected %s",
			   ops->name, opt, names);
}

const char *backend_size_text(char buf[24], uint64_t v)
{
	unsigned i = 0;

	while (i < 3 && v && v % 1024 == 0) {
		v /= 1024;
		i++;
	}
	snprintf(buf, 24, "%llu%.1s", (unsigned long long)v, &"\0kmg"[i]);
	return buf;
}

/* False: not a number, or one past 64 bits. */
static bool parse_number(const char *s, bool is_size, uint64_t *out)
{
	static const char units[] = "kmg";
	const char *unit;
	unsigned shift = 0;
	char *end;

	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	*out = strtoull(s, &end, 10);
	if (is_size && *end) {
		unit = strchr(units, *end | 0x20);
		if (!unit)
			return false;
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
	}
	if (errno || *end || *out > UINT64_MAX >> shift)
		return false;
	*out <<= shift;
	return true;
}

bool backend_parse_size(const char *s, uint64_t *out)
{
	return parse_number(s, true, out);
}

static int set_number(const struct vfs_option *row, const char *opt,
		      const char *value, void *field, char **err)
{
	bool is_size = row->type == VFS_SIZE;
	char min[24], max[24];
	uint64_t v;

	if (parse_number(value, is_size, &v) && v >= row->min &&
	    v <= row->max) {
		memcpy(field, &v, sizeof(v));
		return 0;
	}
	if (!is_size)
		return fail_with(err, "%s: expected a number from %llu to "
				   "%llu", opt, (unsigned long long)row->min,
				   (unsigned long long)row->max);
	if (row->max == UINT64_MAX)
		return fail_with(err, "%s: expected a number, at least %s, "
				   "such as 64m or 2g", opt,
				   backend_size_text(min, row->min));
	return fail_with(err, "%s: expected a number from %s to %s", opt,
			   backend_size_text(min, row->min),
			   backend_size_text(max, row->max));
}

static int set_text(const struct vfs_option *row, const char *opt,
		    const char *value, char *field, char **err)
{
	size_t len = strlen(value);

	if (len < row->min || len > row->max)
		return fail_with(err, "%s: expected %llu to %llu bytes", opt,
				   (unsigned long long)row->min,
				   (unsigned long long)row->max);
	/* All of it: blocks are compared. */
	memset(field, 0, row->max + 1);
	memcpy(field, value, len);
	return 0;
}

static int parse_own(const struct vfs_ops *ops, const char *opt, char *block,
		     char **err)
{
	size_t len = strcspn(opt, "=");
	const struct vfs_option *row = find_row(ops, opt, len);

	if (!row || (opt[len] == '=') != (row->type != VFS_FLAG))
		return no_such(ops, opt, err);
	switch (row->type) {
	case VFS_FLAG:
		*(bool *)(void *)(block + row->offset) = true;
		return 0;
	case VFS_NUMBER:
	case VFS_SIZE:
		return set_number(row, opt, opt + len + 1,
				  block + row->offset, err);
	case VFS_TEXT:
		return set_text(row, opt, opt + len + 1, block + row->offset,
				err);
	}
	return -EINVAL;
}

int backend_options(const struct vfs_ops *ops, const char *text, size_t len,
		    void *block, char **err)
{
	char *copy = strndup(text, len), *next = copy, *opt;
	int ret = copy ? 0 : -ENOMEM;

	*err = NULL;
	while (ret == 0 && len && (opt = strsep(&next, ",")))
		ret = parse_own(ops, opt, block, err);
	free(copy);
	return ret;
}

size_t backend_filter_at(const struct vfs_ops *below)
{
	const size_t align = _Alignof(max_align_t);

	return (below->options_size + align - 1) / align * align;
}

bool backend_same(const struct vfs_ops *a, const void *a_options,
		  const struct vfs_ops *b, const void *b_options)
{
	return a == b && memcmp(a_options, b_options, a->options_size) == 0;
}
