/* SPDX-License-Identifier: BSD-2-Clause */
/* certify_data - the rows about files and directories. */
#include "tools/bench/certify.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	LENGTH = 1 << 20, BLOCK_MAX = 32 << 10, BLOCK_MIN = 512,
	SEEN_MS = 1000, FILES = 1000000, DIRS = 500000, LIST_COUNT = 64 << 10,
};

static double ms_since(uint64_t start)
{
	return (double)(clock_ns() - start) / NS_PER_MS;
}

/* Bytes that another place, or another @turn, does not have. */
static void fill_bytes(uint8_t *mem, unsigned turn)
{
	uint32_t x = 2654435761u * (turn + 1);

	for (size_t i = 0; i < LENGTH; i++) {
		x = x * 1664525 + 1013904223;
		mem[i] = (uint8_t)(x >> 24);
	}
}

/* All of the file's LENGTH bytes, one way; 0, -errno or with op->status. */
static int move_file(struct certify *c, struct nfsc_session *s,
		    enum nfsc_kind kind, uint8_t *mem, struct nfsc_op *op)
{
	const struct nfs3_fsinfo_res *l = &c->target.t->limits;
	uint32_t most = kind == NFS_OP_READ ? l->rtmax : l->wtmax;
	uint32_t at = 0, block = MIN(most, (uint32_t)BLOCK_MAX);

	block = MAX(block, (uint32_t)BLOCK_MIN);
	while (at < LENGTH) {
		*op = (struct nfsc_op){
			.kind = kind, .fh = c->file, .offset = at,
			.count = MIN(block, LENGTH - at), .data = mem + at,
			.stable = true,
		};
		if (session_do(s, op) < 0 || op->status != 0)
			return op->err;
		if (op->got == 0)
			return -EIO;
		at += op->got;
		/* The file is longer than that. */
		if (kind == NFS_OP_READ && op->eof && at < LENGTH)
			return -ENODATA;
	}
	return 0;
}

/* Writes by one client, reads by @reader, and compares; the time that the
 * reading took goes to @ms. */
static enum judgement pass_data(struct certify *c, struct nfsc_session *reader,
				unsigned turn, double *ms)
{
	uint8_t *mem = malloc(2 * LENGTH);
	enum judgement j = PASSED;
	struct nfsc_op op = { 0 };
	uint64_t start;
	int err;

	if (!mem)
		return certify_error(c, "memory", -ENOMEM, 0);
	fill_bytes(mem, turn);
	err = move_file(c, c->target.t->s, NFS_OP_WRITE, mem, &op);
	start = clock_ns();
	if (err < 0 || op.status != 0) {
		j = certify_error(c, "WRITE", err, op.status);
	} else {
		err = move_file(c, reader, NFS_OP_READ, mem + LENGTH, &op);
		*ms = ms_since(start);
		if (err < 0 || op.status != 0)
			j = certify_error(c, "READ", err, op.status);
		else if (memcmp(mem, mem + LENGTH, LENGTH) != 0)
			j = certify_say(c, FAILED, "what was read is not what "
					"was written");
	}
	free(mem);
	return j;
}

enum judgement certify_write_read(struct certify *c)
{
	double ms;
	enum judgement j = pass_data(c, c->target.t->s, 0, &ms);

	return j == PASSED ? certify_say(c, j, "1 MiB, by this client, in no "
					 "pod; reading took %.1f ms", ms) : j;
}

enum judgement certify_seen(struct certify *c)
{
	double ms;
	enum judgement j = pass_data(c, c->other, 1, &ms);

	if (j != PASSED)
		return j;
	return certify_say(c, ms <= SEEN_MS ? PASSED : FAILED, "1 MiB after "
			   "%.1f ms, by two clients of this machine; a mount "
			   "may have caches of its own", ms);
}

static bool is_later(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec != b->tv_sec ? a->tv_sec > b->tv_sec :
					a->tv_nsec > b->tv_nsec;
}

enum judgement certify_attributes(struct certify *c)
{
	static char byte[1] = "+";
	struct nfsc_op get = { .kind = NFS_OP_GETATTR, .fh = c->file };
	struct nfsc_op put = { .kind = NFS_OP_WRITE, .fh = c->file,
			       .offset = 2 * LENGTH, .count = 1, .data = byte,
			       .stable = true };
	struct nfs3_attr before;
	uint64_t start;

	if (session_do(c->other, &get) < 0 || get.status != 0)
		return certify_error(c, "GETATTR", get.err, get.status);
	before = get.attr;
	/* A server's clock can have ticks of some milliseconds. */
	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	if (session_do(c->target.t->s, &put) < 0 || put.status != 0)
		return certify_error(c, "WRITE", put.err, put.status);
	start = clock_ns();
	if (session_do(c->other, &get) < 0 || get.status != 0)
		return certify_error(c, "GETATTR", get.err, get.status);
	if (get.attr.attr.size != 2 * LENGTH + 1)
		return certify_say(c, FAILED, "the size is %llu, not %u",
				   (unsigned long long)get.attr.attr.size,
				   2 * LENGTH + 1);
	if (!is_later(&get.attr.attr.mtime, &before.attr.mtime))
		return certify_say(c, FAILED, "the time of the change is "
				   "still the old one");
	return certify_say(c, PASSED, "both after %.1f ms, by two clients of "
			   "this machine; a mount may have caches of its own",
			   ms_since(start));
}

/* Names in the big directory, except "."  and "..", in @n.  0, -errno or with
 * op->status; a list that goes on without end is -ELOOP. */
static int count_names(struct certify *c, struct nfsc_op *op, uint64_t most,
		       uint64_t *n)
{
	struct nfsc_entry *e;
	uint64_t cookie = 0, verf = 0;

	*n = 0;
	do {
		*op = (struct nfsc_op){
			.kind = NFS_OP_READDIRPLUS, .fh = c->target.big,
			.count = LIST_COUNT, .cookie = cookie,
			.cookieverf = verf,
		};
		if (session_do(c->target.t->s, op) < 0 || op->status != 0)
			return op->err;
		verf = op->cookieverf;
		for (e = op->entries; e; e = e->next) {
			cookie = e->cookie;
			*n += nfsc_name_is_good(e->name, e->len);
		}
		if ((!op->entries && !op->eof) || *n > most)
			op->err = -ELOOP;
		nfsc_entries_free(op->entries);
	} while (op->err == 0 && !op->eof && !bench_interrupted());
	return op->err;
}

/* @made by MKDIR or CREATE, with that many names, where @full are asked for. */
static enum judgement judge_many(struct certify *c, enum nfsc_kind made,
				 unsigned want, unsigned full)
{
	struct nfsc_op op = { 0 };
	enum judgement j;
	uint64_t n = 0, start;
	int err;

	if (want == 0)
		return certify_say(c, NOT_JUDGED, "it makes %u of them: "
				   "--entries 1000000 asks for that", full);
	if (target_make_big(&c->target, made, want) != TOOL_OK) {
		j = certify_say(c, FAILED, "they could not be made");
	} else {
		start = clock_ns();
		err = count_names(c, &op, want, &n);
		if (err < 0 || op.status != 0)
			j = certify_error(c, "READDIRPLUS", err, op.status);
		else if (n != want)
			j = certify_say(c, FAILED, "%llu of %u are listed",
					(unsigned long long)n, want);
		else
			j = certify_say(c, want < full ? NOT_JUDGED : PASSED,
					"%u are listed, in %.1f s%s", want,
					ms_since(start) / 1000, want < full ?
					": fewer than the row has" : "");
	}
	if (target_remove_big(&c->target, made) != TOOL_OK)
		j = certify_say(c, FAILED, "they could not be removed");
	return j;
}

enum judgement certify_many_files(struct certify *c)
{
	return judge_many(c, NFS_OP_CREATE, c->target.opt->b.entries, FILES);
}

enum judgement certify_many_dirs(struct certify *c)
{
	return judge_many(c, NFS_OP_MKDIR, c->target.opt->b.entries / 2, DIRS);
}

enum judgement certify_transport(struct certify *c)
{
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };
	struct nfsc_session *s = c->target.t->s;

	if (!s->ops->rdma)
		return certify_say(c, PASSED, "all this went over TCP, as the "
				   "URL has it");
	s->ops->rdma(s, &info);
	return certify_say(c, PASSED, "all this went over RDMA (%s), as the "
			   "URL has it", info.fabric);
}
