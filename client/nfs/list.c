/* SPDX-License-Identifier: BSD-2-Clause */
/* list - ls and stat. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/nfs/tool.h"
#include "lib/util.h"

enum { DIR_MIN = 8192, DIR_MAX = 256 << 10 };

static const char *const types[] = {
	"?", "regular file", "directory", "block device", "character device",
	"symbolic link", "socket", "fifo",
};

static uint32_t type_of(const struct nfsc_attr *a)
{
	return a->type < ARRAY_SIZE(types) ? a->type : 0;
}

static void mode_text(const struct nfsc_attr *a, char out[11])
{
	static const char letters[] = "?-dbclsp";

	strcpy(out, "?rwxrwxrwx");
	out[0] = letters[type_of(a)];
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

static void time_text(const struct nfsc_time *t, char out[40])
{
	time_t secs = t->sec;
	struct tm tm;
	size_t n;

	localtime_r(&secs, &tm);
	n = strftime(out, 24, "%F %T", &tm);
	snprintf(out + n, 40 - n, ".%09u", t->nsec % 1000000000u);
	strftime(out + n + 10, 30 - n, " %z", &tm);
}

void tool_put_name(FILE *f, const char *name)
{
	for (; *name; name++)
		if ((unsigned char)*name < ' ' || *name == 0x7f ||
		    *name == '\\')
			fprintf(f, "\\%03o", (unsigned char)*name);
		else
			fputc(*name, f);
}

static void put_lengthy(FILE *f, const struct nfsc_attr *a)
{
	char mode[11], when[40];

	if (!a->valid) {
		fprintf(f, "?????????? %42s", "");
		return;
	}
	mode_text(a, mode);
	time_text(&a->mtime, when);
	when[16] = '\0';
	fprintf(f, "%s %3u %-6u %-6u ", mode, a->nlink, a->uid, a->gid);
	if (a->type == NFS_CHR || a->type == NFS_BLK)
		fprintf(f, "%7u,%4u %s ", a->major, a->minor, when);
	else
		fprintf(f, "%12llu %s ", (unsigned long long)a->size, when);
}

static void put_target(struct tool *t, const struct nfsc_entry *e)
{
	char target[NFS_PATH_MAX];
	struct nfsc_op op = { .kind = NFS_OP_READLINK, .fh = e->fh,
			     .data = target, .count = sizeof(target) - 1 };

	if (e->attr.type != NFS_LNK || e->fh.len == 0 ||
	    session_do(t->s, &op) < 0 || op.status != 0)
		return;
	target[op.got] = '\0';
	fputs(" -> ", t->o->out);
	tool_put_name(t->o->out, target);
}

static void print_entry(struct tool *t, const struct nfsc_entry *e)
{
	if (t->o->lengthy)
		put_lengthy(t->o->out, &e->attr);
	tool_put_name(t->o->out, e->name);
	if (t->o->lengthy)
		put_target(t, e);
	fputc('\n', t->o->out);
}

static int by_name(const void *a, const void *b)
{
	struct nfsc_entry *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

struct listing {
	struct nfsc_entry **e;
	size_t n, room;
};

static int keep_entry(struct listing *l, struct nfsc_entry *e)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 256;
		struct nfsc_entry **more = reallocarray(l->e, room,
						       sizeof(*more));

		if (!more)
			return -1;
		l->e = more;
		l->room = room;
	}
	l->e[l->n++] = e;
	return 0;
}

static bool is_wanted(const struct tool *t, const char *name)
{
	return t->o->all || name[0] != '.';
}

/* Takes the entries of @op; moves it on to those that follow. */
static int keep_page(struct tool *t, struct listing *l, struct nfsc_op *op)
{
	struct nfsc_entry *e = op->entries, *next;
	int err = 0;

	for (; e; e = next) {
		next = e->next;
		op->cookie = e->cookie;
		if (err == 0 && is_wanted(t, e->name))
			err = keep_entry(l, e);
		else
			free(e);
	}
	op->entries = NULL;
	return err;
}

static int read_dir(struct tool *t, const struct nfsc_fh *dir,
		    struct listing *l)
{
	uint32_t size = MAX(t->limits.dtpref, (uint32_t)DIR_MIN);
	struct nfsc_op op = { .kind = NFS_OP_READDIRPLUS, .fh = *dir,
			     .count = MIN(size, (uint32_t)DIR_MAX) };
	uint64_t before;

	do {
		before = op.cookie;
		if (session_do(t->s, &op) < 0 || op.status != 0)
			return tool_complain(t->text, op.err, op.status);
		if (keep_page(t, l, &op) < 0)
			return tool_complain(t->text, -ENOMEM, 0);
		/* A server that gives nothing and no end would never end. */
	} while (!op.eof && op.cookie != before);
	return TOOL_OK;
}

/* READDIRPLUS may leave attributes out, as it does of mount points. */
static void look_up(struct tool *t, const struct nfsc_fh *dir,
		    struct nfsc_entry *e)
{
	struct nfsc_op op = { .kind = NFS_OP_LOOKUP, .fh = *dir,
			      .name = e->name };

	if (e->attr.valid || session_do(t->s, &op) < 0 || op.status != 0)
		return;
	e->fh = op.obj;
	e->attr = op.attr;
}

static int list_dir(struct tool *t, const struct tool_object *obj)
{
	struct listing l = { 0 };
	int err = read_dir(t, &obj->fh, &l);

	if (l.n > 0)
		qsort(l.e, l.n, sizeof(*l.e), by_name);
	for (size_t i = 0; i < l.n; i++) {
		if (err == TOOL_OK && t->o->lengthy)
			look_up(t, &obj->fh, l.e[i]);
		if (err == TOOL_OK)
			print_entry(t, l.e[i]);
		free(l.e[i]);
	}
	free(l.e);
	return err;
}

static int list_one(struct tool *t, const struct tool_object *obj)
{
	size_t len = strlen(obj->name);
	struct nfsc_entry *e = calloc(1, sizeof(*e) + len + 1);

	if (!e)
		return tool_complain(t->text, -ENOMEM, 0);
	e->attr = obj->attr;
	e->fh = obj->fh;
	memcpy(e->name, obj->name, len + 1);
	print_entry(t, e);
	free(e);
	return TOOL_OK;
}

int tool_ls(const char *url, const struct tool_options *o)
{
	struct tool_object obj;
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	err = tool_find(&t, &obj, !o->lengthy, false);
	if (err == TOOL_OK)
		err = obj.attr.type == NFS_DIR ? list_dir(&t, &obj) :
						 list_one(&t, &obj);
	tool_close(&t);
	return err;
}

static void print_fh(FILE *f, const struct nfsc_fh *fh)
{
	fprintf(f, "Handle: %u bytes ", fh->len);
	for (uint32_t i = 0; i < fh->len; i++)
		fprintf(f, "%02x", fh->data[i]);
	fputc('\n', f);
}

static void put_stat(struct tool *t, const struct tool_object *obj)
{
	const struct nfsc_attr *a = &obj->attr;
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
	if (a->type == NFS_CHR || a->type == NFS_BLK)
		fprintf(f, "Device: %u,%u\n", a->major, a->minor);
	fprintf(f, "  Mode: %04o %s\n Links: %u\n   Uid: %u\n   Gid: %u\n",
		a->mode & 07777, mode, a->nlink, a->uid, a->gid);
	fprintf(f, "  Fsid: %llx\nFileid: %llu\n", (unsigned long long)a->fsid,
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
	if (err == TOOL_OK)
		put_stat(&t, &obj);
	tool_close(&t);
	return err;
}
