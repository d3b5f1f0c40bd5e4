/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * requester BACK ROWS < CELLS: tests libgannet-rpcrdma as matrix tests the
 * kernel's client.  The server exports the directory BACK.  CELLS are lines
 *
 *	WAY URL SIZE INLINE SERVER-INLINE
 *
 * in which an INLINE of zero stands for no private data (RFC 8797).  A result
 * is a line on standard output, and a row of the table in ROWS.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/nfs/nfs.h"
#include "tests/lab/fscheck/fscheck.h"
#include "tests/lab/matrix.h"

struct line {
	char	 way[32], url[512];
	unsigned size, inline_size, server_inline;
};

struct cell_run {
	const struct line   *line;
	struct nfsc_session *s;
	struct nfs3_fh	     root, file;
	uint32_t	     rsize, wsize;	/* as the server takes them */
	size_t		     len;	/* of the file */
	unsigned char	    *buf;
};

static int back_dir;
static const char name[] = "cell";

static bool does(struct cell_run *r, struct nfsc_op *op)
{
	int err = session_do(r->s, op);

	if (err < 0 || op->status != 0)
		printf("# operation %d: %d, %s\n", op->kind, err,
		       nfsc_status_name(op->status));
	return err == 0 && op->status == 0;
}

/* More than two WRITEs. */
static bool writes(struct cell_run *r)
{
	struct nfsc_op op = { .kind = NFS_OP_CREATE, .fh = r->root,
			      .name = name, .mode = 0644 };

	MUST(does(r, &op));
	MUST(op.obj.len > 0);
	r->file = op.obj;
	pattern(r->buf, r->len, 0, r->line->size);
	for (size_t at = 0; at < r->len; at += op.got) {
		op = (struct nfsc_op){
			.kind = NFS_OP_WRITE, .fh = r->file, .offset = at,
			.data = r->buf + at, .count = r->wsize,
		};
		if (op.count > r->len - at)
			op.count = (uint32_t)(r->len - at);
		MUST(does(r, &op));
		MUST(op.got > 0);
	}
	op = (struct nfsc_op){ .kind = NFS_OP_COMMIT, .fh = r->file };
	MUST(does(r, &op));
	MUST(has_file(back_dir, name, r->len, r->line->size));
	return true;
}

static bool reads(struct cell_run *r)
{
	struct nfsc_op op = { .kind = NFS_OP_NULL };

	memset(r->buf, 0, r->len);
	for (size_t at = 0; !op.eof; at += op.got) {
		op = (struct nfsc_op){
			.kind = NFS_OP_READ, .fh = r->file, .offset = at,
			.data = r->buf + at, .count = r->rsize,
		};
		MUST(does(r, &op));
		MUST(op.eof || op.got > 0);
		MUST(op.got <= r->len - at);
		MUST(op.eof == (at + op.got == r->len));
	}
	MUST(is_pattern(r->buf, r->len, 0, r->line->size));
	return true;
}

/* The names of one reply; the cookie of the last in @op. */
static bool takes_names(struct nfsc_op *op, bool seen[CELL_LIST])
{
	for (const struct nfsc_entry *e = op->entries; e; e = e->next) {
		unsigned i = (unsigned)strtoul(e->name, NULL, 10);

		op->cookie = e->cookie;
		if (e->name[0] == '.')
			continue;
		MUST(i < CELL_LIST && !seen[i]);
		MUST(strcmp(e->name, cell_list_name(i)) == 0);
		seen[i] = true;
	}
	return true;
}

/* In replies as long as the transfers. */
static bool lists(struct cell_run *r)
{
	struct nfsc_op op = { .kind = NFS_OP_LOOKUP, .fh = r->root,
			      .name = "list" };
	bool seen[CELL_LIST] = { false };

	MUST(does(r, &op));
	op = (struct nfsc_op){ .kind = NFS_OP_READDIRPLUS, .fh = op.obj,
			       .count = r->rsize };
	while (!op.eof) {
		bool taken;

		MUST(does(r, &op));
		MUST(op.entries || op.eof);
		taken = takes_names(&op, seen);
		nfsc_entries_free(op.entries);
		op.entries = NULL;
		MUST(taken);
	}
	for (unsigned i = 0; i < CELL_LIST; i++)
		MUST(seen[i]);
	return true;
}

static bool finds_sizes(struct cell_run *r)
{
	struct nfsc_op op = { .kind = NFS_OP_FSINFO, .fh = r->root };
	uint32_t size = r->line->size;

	MUST(does(r, &op));
	r->rsize = size < op.limits.rtmax ? size : op.limits.rtmax;
	r->wsize = size < op.limits.wtmax ? size : op.limits.wtmax;
	return true;
}

static const char *work(struct cell_run *r)
{
	const char *failed = NULL;

	r->len = 2 * (size_t)r->line->size + 3;
	/* A READ over the end has room. */
	r->buf = malloc(r->len + r->line->size);
	if (!finds_sizes(r))
		failed = "finds sizes";
	else if (!writes(r))
		failed = "writes";
	else if (!reads(r))
		failed = "reads";
	else if (!lists(r))
		failed = "lists";
	free(r->buf);
	return failed;
}

/* RFC 8797: the smaller size; without private data the least. */
static bool agrees(const struct line *l, const struct gannet_rpcrdma_info *info)
{
	unsigned want = l->inline_size ? l->inline_size : 1024;

	if (want > l->server_inline)
		want = l->server_inline;
	MUST(info->send_inline == want && info->recv_inline == want);
	return true;
}

static const char *run_cell(struct cell_run *r,
			    struct gannet_rpcrdma_info *info)
{
	const struct line *l = r->line;
	const struct nfsc_config c = {
		.depth = 1, .inline_size = l->inline_size,
		.no_private = l->inline_size == 0,
	};
	struct nfsc_mount m;
	const char *why, *failed;
	struct nfsc_url url;

	if (nfsc_url_parse(l->url, &url, &why) < 0)
		return "has a URL";
	if (nfsc_mount(&url, &c, &m) < 0)
		return "mounts";
	if (nfsc_session_open(&url, &c, &r->s) < 0)
		return "connects";
	r->root = m.root;
	failed = work(r);
	r->s->ops->rdma(r->s, info);
	if (!failed && !agrees(l, info))
		failed = "agrees on the inline size";
	session_close(r->s);
	nfsc_unmount(&url, &c, &m);
	return failed;
}

static void run_line(FILE *rows, const struct line *l)
{
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };
	struct cell_run r = { .line = l };
	char offered[16] = "none";
	const char *failed;

	unlinkat(back_dir, name, 0);
	failed = run_cell(&r, &info);
	if (l->inline_size)
		snprintf(offered, sizeof(offered), "%u", l->inline_size);
	printf("%s - %s: %u bytes, inline %s, the server's %u%s%s\n",
	       failed ? "not ok" : "ok", l->way, l->size, offered,
	       l->server_inline, failed ? ": it " : "", failed ? failed : "");
	fflush(stdout);
	fprintf(rows, "gannet %s\t%u\t%u/%u\t%s:%u\t%u/%u\t-\t%s\n",
		l->way, l->size, r.rsize, r.wsize, offered, l->server_inline,
		info.send_inline, info.recv_inline, failed ? failed : "ok");
	fflush(rows);
}

int main(int argc, char **argv)
{
	struct line l;
	FILE *rows;

	if (argc != 3) {
		fprintf(stderr, "requester BACK ROWS < CELLS\n");
		return 2;
	}
	back_dir = open(argv[1], O_RDONLY | O_DIRECTORY);
	rows = fopen(argv[2], "a");
	if (!rows || !cell_make_list(back_dir, "list")) {
		perror("requester");
		return 2;
	}
	while (scanf("%31s %511s %u %u %u", l.way, l.url, &l.size,
		     &l.inline_size, &l.server_inline) == 5)
		run_line(rows, &l);
	return 0;
}
