/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json - what is listed as JSON: an object on each line, in ASCII.
 *
 * A name is bytes, and JSON's strings are Unicode.  If a name is not UTF-8, or
 * has control characters above U+007F, its string is for the eye, and its
 * base64 is the name.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/nfs/tool.h"
#include "lib/util.h"

static const char *const types[] = {
	NULL, "file", "directory", "block", "character", "link", "socket",
	"fifo",
};

/* The character at @s, which has @n bytes: 2 to 4 of UTF-8. */
static uint32_t code_point(const uint8_t *s, size_t n)
{
	uint32_t c = s[0] & (0x7fu >> n);

	for (size_t i = 1; i < n; i++)
		c = c << 6 | (s[i] & 0x3f);
	return c;
}

static void put_unicode(FILE *f, uint32_t c)
{
	if (c > 0xffff) {
		c -= 0x10000;
		fprintf(f, "\\u%04x", 0xd800 | c >> 10);
		c = 0xdc00 | (c & 0x3ff);
	}
	fprintf(f, "\\u%04x", c);
}

/* False: it is not UTF-8, and has U+FFFD where it is not. */
static bool put_string(FILE *f, const char *text, size_t len)
{
	const uint8_t *s = (const uint8_t *)text;
	bool good = true;

	putc('"', f);
	for (size_t i = 0, n; i < len; i += n) {
		n = s[i] < 0x80 ? 1 : text_utf8_len(s + i, len - i);
		if (n == 0) {
			put_unicode(f, 0xfffd);
			good = false;
			n = 1;
		} else if (n > 1) {
			put_unicode(f, code_point(s + i, n));
		} else if (s[i] < ' ' || s[i] == 0x7f) {
			put_unicode(f, s[i]);
		} else {
			if (s[i] == '"' || s[i] == '\\')
				putc('\\', f);
			putc(s[i], f);
		}
	}
	putc('"', f);
	return good;
}

static void put_base64(FILE *f, const char *text, size_t len)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		"abcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *s = (const uint8_t *)text;

	for (size_t i = 0; i < len; i += 3) {
		size_t n = MIN(len - i, (size_t)3);
		uint32_t w = (uint32_t)s[i] << 16;

		w |= n > 1 ? (uint32_t)s[i + 1] << 8 : 0;
		w |= n > 2 ? s[i + 2] : 0;
		for (size_t k = 0; k < 4; k++)
			putc(k <= n ? digits[w >> (18 - 6 * k) & 63] : '=', f);
	}
}

static void put_text(FILE *f, const char *key, const char *text, size_t len)
{
	fprintf(f, "\"%s\":", key);
	if (put_string(f, text, len))
		return;
	fprintf(f, ",\"%s_base64\":\"", key);
	put_base64(f, text, len);
	putc('"', f);
}

static void put_time(FILE *f, const char *key, const struct timespec *t)
{
	time_t secs = t->tv_sec;
	char text[24];
	struct tm tm;

	gmtime_r(&secs, &tm);
	strftime(text, sizeof(text), "%FT%T", &tm);
	fprintf(f, ",\"%s\":\"%s.%09uZ\"", key, text,
		(unsigned)(t->tv_nsec % 1000000000));
}

static void put_attributes(FILE *f, const struct nfs3_attr *attr)
{
	const struct vfs_attr *a = &attr->attr;
	const char *type = a->type < ARRAY_SIZE(types) ? types[a->type] : NULL;

	if (!attr->has)
		return;
	if (type)
		fprintf(f, ",\"type\":\"%s\"", type);
	fprintf(f, ",\"mode\":\"%04o\",\"links\":%u,\"uid\":%u,\"gid\":%u,"
		"\"size\":%llu,\"used\":%llu", a->mode & 07777, a->nlink,
		a->uid, a->gid, (unsigned long long)a->size,
		(unsigned long long)a->used);
	if (a->type == VFS_CHR || a->type == VFS_BLK)
		fprintf(f, ",\"device\":[%u,%u]", a->rdev_major,
			a->rdev_minor);
	fprintf(f, ",\"fsid\":\"%llx\",\"fileid\":\"%llu\"",
		(unsigned long long)attr->fsid, (unsigned long long)a->fileid);
	put_time(f, "atime", &a->atime);
	put_time(f, "mtime", &a->mtime);
	put_time(f, "ctime", &a->ctime);
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

static int put_whole_path(FILE *f, const struct walk_at *at)
{
	char *text = NULL;
	size_t len = 0;
	FILE *mem = open_memstream(&text, &len);

	if (mem) {
		put_path(mem, at);
		fclose(mem);
	}
	if (!text)
		return TOOL_FAILED;
	put_text(f, "path", text, len);
	putc(',', f);
	free(text);
	return TOOL_OK;
}

int json_put_object(struct tool *t, const struct json_object *o)
{
	char target[NFS_PATH_MAX];
	FILE *f = t->o->out;
	int err = TOOL_OK;
	size_t len;

	putc('{', f);
	if (o->path)
		err = put_whole_path(f, o->path);
	put_text(f, "name", o->name, o->len);
	put_attributes(f, o->attr);
	len = tool_read_link(t, o->attr, o->fh, target);
	if (len > 0) {
		putc(',', f);
		put_text(f, "target", target, len);
	}
	if (o->handle) {
		fputs(",\"handle\":\"", f);
		for (uint32_t i = 0; i < o->fh->len; i++)
			fprintf(f, "%02x", o->fh->data[i]);
		putc('"', f);
	}
	fputs("}\n", f);
	return err;
}

void json_put_space(FILE *f, const struct vfs_statfs *s)
{
	fprintf(f, "{\"size\":%llu,\"free\":%llu,\"available\":%llu,"
		"\"files\":%llu,\"files_free\":%llu,"
		"\"files_available\":%llu}\n",
		(unsigned long long)s->tbytes, (unsigned long long)s->fbytes,
		(unsigned long long)s->abytes, (unsigned long long)s->tfiles,
		(unsigned long long)s->ffiles, (unsigned long long)s->afiles);
}
