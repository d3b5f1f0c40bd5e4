/* SPDX-License-Identifier: BSD-2-Clause */
/* dir - a directory's names: read whole, sorted, shown. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/nfs/tool.h"
#include "lib/util.h"

enum {
	DIR_MIN = 8192, DIR_MAX = 256 << 10,
	NAMES_MAX = 1 << 24,	/* of one directory: a lie has no end */
};

/* Bytes of the UTF-8 character at @s, or 0: it is none, or a control one. */
static size_t utf8_len(const uint8_t *s, size_t left)
{
	size_t n = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;

	if (s[0] < 0xc2 || s[0] > 0xf4 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	/* C1 controls; and what is too long, a surrogate, or beyond Unicode. */
	if ((s[0] == 0xc2 && s[1] < 0xa0) || (s[0] == 0xe0 && s[1] < 0xa0) ||
	    (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
	    (s[0] == 0xf4 && s[1] > 0x8f))
		return 0;
	return n;
}

void tool_put_bytes(FILE *f, const char *name, size_t len)
{
	const uint8_t *s = (const uint8_t *)name;

	for (size_t i = 0, n; i < len; i += n) {
		n = s[i] < 0x80 ? 1 : utf8_len(s + i, len - i);
		if (s[i] < ' ' || s[i] == 0x7f || s[i] == '\\' || n == 0) {
			fprintf(f, "\\%03o", s[i]);
			n = 1;
		} else {
			fwrite(s + i, 1, n, f);
		}
	}
}

void tool_put_name(FILE *f, const char *name)
{
	tool_put_bytes(f, name, strlen(name));
}

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
	return l->n < NAMES_MAX ? 0 : -EOVERFLOW;
}

/* Takes the entries of @op; moves it on to those that follow. */
static int keep_page(struct tool *t, struct listing *l, struct nfsc_op *op)
{
	struct nfsc_entry *e = op->entries, *next;
	int err = 0;

	for (; e; e = next) {
		next = e->next;
		op->cookie = e->cookie;
		if (err == 0 && (t->o->all || e->name[0] != '.'))
			err = keep_entry(l, e);
		else
			free(e);
	}
	op->entries = NULL;
	return err;
}

/* Nothing more comes, or the same again: names may be missing. */
static int complain_endless(const char *what)
{
	fputs("gannet-nfs: ", stderr);
	tool_put_name(stderr, what);
	fputs(": the server's list of names has no end\n", stderr);
	return TOOL_FAILED;
}

int tool_list(struct tool *t, const struct nfsc_fh *dir, const char *what,
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
			err = tool_complain(what, op.err, op.status);
		else if ((err = keep_page(t, l, &op)) < 0)
			err = tool_complain(what, err, 0);
		else if (!op.eof && (op.cookie == before || op.cookie == mark))
			err = complain_endless(what);
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

void tool_look_up(struct tool *t, const struct nfsc_fh *dir,
		  struct nfsc_entry *e)
{
	struct nfsc_op op = { .kind = NFS_OP_LOOKUP, .fh = *dir,
			      .name = e->name };

	if ((e->attr.valid && e->fh.len > 0) || strlen(e->name) != e->len ||
	    strchr(e->name, '/') || session_do(t->s, &op) < 0 ||
	    op.status != 0)
		return;
	e->fh = op.obj;
	if (op.attr.valid)
		e->attr = op.attr;
}
