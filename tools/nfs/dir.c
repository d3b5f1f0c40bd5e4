/* SPDX-License-Identifier: BSD-2-Clause */
/* dir - a directory's names: read whole, sorted, shown. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nfs/say.h"
#include "tools/nfs/tool.h"
#include "lib/util.h"

enum {
	DIR_MIN = 8192, DIR_MAX = 256 << 10,
	NAMES_MAX = 1 << 24,	/* of one directory: a lie has no end */
	NAME_UNIT = 256,	/* a longer name counts as several */
};

static int by_name(const void *a, const void *b)
{
	struct nfsc_entry *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static int keep_entry(struct listing *l, struct nfsc_entry *e)
{
	if (l->n == l->room) {
		size_t room = l->room ? 2 * l->room : 256;
		struct nfsc_entry **more = reallocarray(l->e, room,
						       sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->e = more;
		l->room = room;
	}
	l->e[l->n++] = e;
	return 0;
}

/* Takes the entries of @op; advances it to the entries that follow.  Names that
 * are left out also count: they can go on forever as well. */
static int keep_page(struct tool *t, struct listing *l, struct nfsc_op *op)
{
	struct nfsc_entry *e = op->entries, *next;
	int err = 0;

	for (; e; e = next) {
		next = e->next;
		op->cookie = e->cookie;
		l->listed += 1 + e->len / NAME_UNIT;
		if (err == 0 && (t->o->all || e->name[0] != '.'))
			err = keep_entry(l, e);
		else
			free(e);
	}
	op->entries = NULL;
	return err == 0 && l->listed > NAMES_MAX ? -EOVERFLOW : err;
}

static int complain_list(const struct tool *t, const char *what, int err,
			 uint32_t status)
{
	return t->silent ? TOOL_FAILED : tool_complain(what, err, status);
}

/* Nothing more comes, the same again, or too much: perhaps names are
 * missing. */
static int complain_endless(const struct tool *t, const char *what, int err)
{
	if (t->silent)
		return TOOL_FAILED;
	fputs("gannet-nfs: ", say_stream());
	tool_put_name(say_stream(), what);
	if (err == -EOVERFLOW)
		fprintf(say_stream(), ": the server lists more than %d names "
			"in this directory\n", NAMES_MAX);
	else
		fputs(": the server's list of names has no end\n",
		      say_stream());
	return TOOL_FAILED;
}

int tool_list(struct tool *t, const struct nfs3_fh *dir, const char *what,
	      struct listing *l)
{
	uint32_t size = MAX(t->limits.dtpref, (uint32_t)DIR_MIN);
	struct nfsc_op op = { .kind = NFS_OP_READDIRPLUS, .fh = *dir,
			     .count = MIN(size, (uint32_t)DIR_MAX) };
	uint64_t before, mark = 0, pages = 0;
	int err = TOOL_OK;

	memset(l, 0, sizeof(*l));
	do {
		before = op.cookie;
		if (session_do(t->s, &op) < 0 || op.status != 0)
			err = complain_list(t, what, op.err, op.status);
		else if ((err = keep_page(t, l, &op)) == -EOVERFLOW)
			err = complain_endless(t, what, err);
		else if (err < 0)
			err = complain_list(t, what, err, 0);
		else if (!op.eof && (op.cookie == before || op.cookie == mark))
			err = complain_endless(t, what, 0);
		/* A circle of any length comes by the mark. */
		pages++;
		if ((pages & (pages - 1)) == 0)
			mark = op.cookie;
	} while (err == TOOL_OK && !op.eof);
	if (l->n > 0)
		qsort(l->e, l->n, sizeof(*l->e), by_name);
	return err;
}

void listing_free(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->e[i]);
	free(l->e);
}

int tool_look_up(struct tool *t, const struct nfs3_fh *dir,
		 struct nfsc_entry *e)
{
	struct nfsc_op op = { .kind = NFS_OP_LOOKUP, .fh = *dir,
			      .name = e->name };

	if ((e->attr.has && e->fh.len > 0) || strlen(e->name) != e->len ||
	    strchr(e->name, '/') || session_do(t->s, &op) < 0 ||
	    op.status != 0)
		return op.err;
	e->fh = op.obj;
	if (op.attr.has)
		e->attr = op.attr;
	return 0;
}

int tool_read_link(struct tool *t, const struct nfs3_attr *attr,
		   const struct nfs3_fh *fh, char target[NFS_PATH_MAX],
		   size_t *len)
{
	struct nfsc_op op = { .kind = NFS_OP_READLINK, .fh = *fh,
			      .data = target, .count = NFS_PATH_MAX };

	*len = 0;
	if (!attr->has || attr->attr.type != VFS_LNK || fh->len == 0 ||
	    session_do(t->s, &op) < 0)
		return op.err;
	if (op.status == 0)
		*len = op.got;
	return 0;
}
