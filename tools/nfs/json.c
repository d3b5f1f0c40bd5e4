/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json - lists as JSON: an object on each line, in ASCII.
 *
 * A name is bytes, and JSON's strings are Unicode.  If a name is not UTF-8, or
 * has control characters above U+007F, its string is for the eye, and its
 * base64 is the name.
 */
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/nfs/tool.h"
#include "lib/util.h"

enum { BASE64 = sodium_base64_VARIANT_ORIGINAL };

static const char *const types[] = {
	NULL, "file", "directory", "block", "character", "link", "socket",
	"fifo",
};

/* U+FFFD stands for each byte that is not text; *@good: it has no such byte.
 * NULL: no memory. */
static json_t *shown_text(const char *text, size_t len, bool *good)
{
	const uint8_t *s = (const uint8_t *)text;
	char *shown = malloc(3 * len + 1);
	size_t at = 0;
	json_t *j;

	*good = true;
	for (size_t i = 0, n; shown && i < len; i += n) {
		n = s[i] < 0x80 ? 1 : text_utf8_len(s + i, len - i);
		memcpy(shown + at, n ? text + i : "\357\277\275", n ? n : 3);
		at += n ? n : 3;
		*good = *good && n > 0;
		n = MAX(n, (size_t)1);
	}
	j = shown ? json_stringn_nocheck(shown, at) : NULL;
	free(shown);
	return j;
}

static void put_in_text(json_t *o, const char *key, const char *text,
			size_t len)
{
	char more[24], *base64;
	bool good;

	json_object_set_new(o, key, shown_text(text, len, &good));
	base64 = good ? NULL : malloc(sodium_base64_encoded_len(len, BASE64));
	if (!base64)
		return;
	sodium_bin2base64(base64, sodium_base64_encoded_len(len, BASE64),
			  (const uint8_t *)text, len, BASE64);
	snprintf(more, sizeof(more), "%s_base64", key);
	json_object_set_new(o, more, json_string(base64));
	free(base64);
}

/* JSON has numbers of any size, its library none above INT64_MAX. */
static json_t *number(uint64_t n)
{
	return json_integer((json_int_t)MIN(n, (uint64_t)INT64_MAX));
}

static json_t *time_of(const struct timespec *t)
{
	time_t secs = t->tv_sec;
	char text[24];
	struct tm tm;

	gmtime_r(&secs, &tm);
	strftime(text, sizeof(text), "%FT%T", &tm);
	return json_sprintf("%s.%09uZ", text,
			    (unsigned)(t->tv_nsec % 1000000000));
}

static void put_in_attr(json_t *o, const struct nfs3_attr *attr)
{
	const struct vfs_attr *a = &attr->attr;
	const char *type = a->type < ARRAY_SIZE(types) ? types[a->type] : NULL;

	if (!attr->has)
		return;
	if (type)
		json_object_set_new(o, "type", json_string(type));
	json_object_set_new(o, "mode", json_sprintf("%04o", a->mode & 07777));
	json_object_set_new(o, "links", number(a->nlink));
	json_object_set_new(o, "uid", number(a->uid));
	json_object_set_new(o, "gid", number(a->gid));
	json_object_set_new(o, "size", number(a->size));
	json_object_set_new(o, "used", number(a->used));
	if (a->type == VFS_CHR || a->type == VFS_BLK)
		json_object_set_new(o, "device", json_pack("[oo]",
			number(a->rdev_major), number(a->rdev_minor)));
	json_object_set_new(o, "fsid", json_sprintf("%llx",
		(unsigned long long)attr->fsid));
	json_object_set_new(o, "fileid", json_sprintf("%llu",
		(unsigned long long)a->fileid));
	json_object_set_new(o, "atime", time_of(&a->atime));
	json_object_set_new(o, "mtime", time_of(&a->mtime));
	json_object_set_new(o, "ctime", time_of(&a->ctime));
}

/* The names from the top of the walk, as they are. */
static void put_path(FILE *f, const struct walk_at *at)
{
	if (at->up) {
		put_path(f, at->up);
		if (at->up->up || strcmp(at->up->name, "/") != 0)
			putc('/', f);
	}
	fwrite(at->name, 1, at->len, f);
}

static void put_in_path(json_t *o, const struct walk_at *at)
{
	char *text = NULL;
	size_t len = 0;
	FILE *mem = open_memstream(&text, &len);

	if (mem) {
		put_path(mem, at);
		fclose(mem);
	}
	if (text)
		put_in_text(o, "path", text, len);
	free(text);
}

static int end_object(FILE *f, json_t *o)
{
	int err = o ? json_dumpf(o, f, JSON_COMPACT | JSON_ENSURE_ASCII) : -1;

	json_decref(o);
	putc('\n', f);
	return err < 0 ? TOOL_FAILED : TOOL_OK;
}

int json_put_object(struct tool *t, const struct json_object *o)
{
	char target[NFS_PATH_MAX], handle[2 * sizeof(o->fh->data) + 1];
	json_t *j = json_object();
	size_t len;
	int err;

	if (o->path)
		put_in_path(j, o->path);
	put_in_text(j, "name", o->name, o->len);
	put_in_attr(j, o->attr);
	err = tool_read_link(t, o->attr, o->fh, target, &len);
	if (len > 0)
		put_in_text(j, "target", target, len);
	if (o->handle) {
		sodium_bin2hex(handle, sizeof(handle), o->fh->data, o->fh->len);
		json_object_set_new(j, "handle", json_string(handle));
	}
	if (err < 0) {
		end_object(t->o->out, j);
		return tool_complain(o->name, err, 0);
	}
	return end_object(t->o->out, j);
}

int json_put_space(FILE *f, const struct vfs_statfs *s)
{
	return end_object(f, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}",
		"size", number(s->tbytes), "free", number(s->fbytes),
		"available", number(s->abytes), "files", number(s->tfiles),
		"files_free", number(s->ffiles),
		"files_available", number(s->afiles)));
}
