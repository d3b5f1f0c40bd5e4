/* SPDX-License-Identifier: BSD-2-Clause */
/* list - ls and stat. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/nfs/tool.h"
#include "lib/util.h"

static const char *const types[] = {
	"?", "regular file", "directory", "block device", "character device",
	"symbolic link", "socket", "fifo",
};

const char tool_types[] = "?fdbclsp";

static uint32_t type_of(const struct vfs_attr *a)
{
	return a->type < ARRAY_SIZE(types) ? a->type : 0;
}

static void mode_text(const struct vfs_attr *a, char out[11])
{
	strcpy(out, "?rwxrwxrwx");
	out[0] = a->type == VFS_REG ? '-' : tool_types[type_of(a)];
	for (int i = 0; i < 9; i++)
		if (!(a->mode & (0400u >> i)))
			out[i + 1] = '-';
	if (a->mode & 04000)
		out[3] = a->mode & 0100 ? 's' : 'S';
	if (a->mode & 02000)
		out[6] = a->mode & 0010 ? 's' : 'S';
	if (a->mode & 01000)
		out[9] = a->mode & 0001 ? 't' : 'T';
}

static void time_text(const struct timespec *t, char out[40])
{
	time_t secs = t->tv_sec;
	struct tm tm;
	size_t n;

	localtime_r(&secs, &tm);
	n = strftime(out, 24, "%F %T", &tm);
	snprintf(out + n, 40 - n, ".%09u", (unsigned)(t->tv_nsec % 1000000000));
	strftime(out + n + 10, 30 - n, " %z", &tm);
}

static void put_lengthy(FILE *f, const struct nfs3_attr *attr, bool human)
{
	const struct vfs_attr *a = &attr->attr;
	char mode[11], when[40], size[24];

	if (!attr->has) {
		fprintf(f, "?????????? %42s", "");
		return;
	}
	mode_text(a, mode);
	time_text(&a->mtime, when);
	when[16] = '\0';
	fprintf(f, "%s %3u %-6u %-6u ", mode, a->nlink, a->uid, a->gid);
	if (human)
		tool_human(a->size, size);
	else
		snprintf(size, sizeof(size), "%llu",
			 (unsigned long long)a->size);
	if (a->type == VFS_CHR || a->type == VFS_BLK)
		snprintf(size, sizeof(size), "%u,%4u", a->rdev_major,
			 a->rdev_minor);
	fprintf(f, "%12s %s ", size, when);
}

static int put_target(struct tool *t, const struct nfsc_entry *e)
{
	char target[NFS_PATH_MAX];
	size_t len;
	int err = tool_read_link(t, &e->attr, &e->fh, target, &len);

	if (len > 0) {
		fputs(" -> ", t->o->out);
		tool_put_bytes(t->o->out, target, len);
	}
	return err;
}

static int print_entry(struct tool *t, const struct nfsc_entry *e)
{
	int err = 0;

	if (t->o->json)
		return json_put_object(t, &(struct json_object){
			.name = e->name, .len = e->len, .attr = &e->attr,
			.fh = &e->fh });
	if (t->o->lengthy)
		put_lengthy(t->o->out, &e->attr, t->o->human);
	tool_put_bytes(t->o->out, e->name, e->len);
	if (t->o->lengthy)
		err = put_target(t, e);
	fputc('\n', t->o->out);
	return err < 0 ? tool_complain(e->name, err, 0) : TOOL_OK;
}

static int list_dir(struct tool *t, const struct tool_object *obj)
{
	struct listing l;
	int err, worst = tool_list(t, &obj->fh, t->text, &l);

	for (size_t i = 0; i < l.n && worst != TOOL_UNREACHABLE; i++) {
		err = t->o->lengthy || t->o->json ?
			tool_look_up(t, &obj->fh, l.e[i]) : 0;
		err = err < 0 ? tool_complain(l.e[i]->name, err, 0) :
				print_entry(t, l.e[i]);
		worst = MAX(worst, err);
	}
	listing_free(&l);
	return worst;
}

static int list_one(struct tool *t, const struct tool_object *obj)
{
	size_t len = strlen(obj->name);
	struct nfsc_entry *e = calloc(1, sizeof(*e) + len + 1);
	int err;

	if (!e)
		return tool_complain(t->text, -ENOMEM, 0);
	e->attr = obj->attr;
	e->fh = obj->fh;
	e->len = (uint32_t)len;
	memcpy(e->name, obj->name, len + 1);
	err = print_entry(t, e);
	free(e);
	return err;
}

int tool_ls(const char *url, const struct tool_options *o)
{
	struct tool_object obj;
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	err = tool_find(&t, &obj, !o->lengthy && !o->itself, false);
	if (err == TOOL_OK)
		err = obj.attr.attr.type == VFS_DIR && !o->itself ?
			list_dir(&t, &obj) : list_one(&t, &obj);
	tool_close(&t);
	return err;
}

static void print_fh(FILE *f, const struct nfs3_fh *fh)
{
	fprintf(f, "Handle: %u bytes ", fh->len);
	for (uint32_t i = 0; i < fh->len; i++)
		fprintf(f, "%02x", fh->data[i]);
	fputc('\n', f);
}

static void put_stat(struct tool *t, const struct tool_object *obj)
{
	const struct vfs_attr *a = &obj->attr.attr;
	char mode[11], at[40], mt[40], ct[40];
	FILE *f = t->o->out;

	mode_text(a, mode);
	time_text(&a->atime, at);
	time_text(&a->mtime, mt);
	time_text(&a->ctime, ct);
	fputs("  Name: ", f);
	tool_put_name(f, obj->name);
	fprintf(f, "\n  Type: %s\n  Size: %llu\n  Used: %llu\n",
		types[type_of(a)], (unsigned long long)a->size,
		(unsigned long long)a->used);
	if (a->type == VFS_CHR || a->type == VFS_BLK)
		fprintf(f, "Device: %u,%u\n", a->rdev_major, a->rdev_minor);
	fprintf(f, "  Mode: %04o %s\n Links: %u\n   Uid: %u\n   Gid: %u\n",
		a->mode & 07777, mode, a->nlink, a->uid, a->gid);
	fprintf(f, "  Fsid: %llx\nFileid: %llu\n",
		(unsigned long long)obj->attr.fsid,
		(unsigned long long)a->fileid);
	fprintf(f, "Access: %s\nModify: %s\nChange: %s\n", at, mt, ct);
	print_fh(f, &obj->fh);
}

int tool_stat(const char *url, const struct tool_options *o)
{
	struct tool_object obj;
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	err = tool_find(&t, &obj, false, false);
	if (err == TOOL_OK && o->json)
		err = json_put_object(&t, &(struct json_object){
			.name = obj.name, .len = strlen(obj.name),
			.attr = &obj.attr, .fh = &obj.fh, .handle = true });
	else if (err == TOOL_OK)
		put_stat(&t, &obj);
	tool_close(&t);
	return err;
}
