/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * copy - a file's bytes, many blocks under way at a time.
 *
 * Operation: blocks are a ring.  A get starts them in order and writes each out
 * when all before it are there, so the local side can be a pipe.  A put writes
 * UNSTABLE and commits now and then; when the server's verifier says that it
 * might have lost something (RFC 1813 section 3.3.7), everything since the last
 * COMMIT is read and sent again.  A pipe, which can't be read again, is written
 * FILE_SYNC.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "tools/nfs/tool.h"
#include "lib/util.h"

#define COMMIT_EVERY	(1ull << 30)
enum { BLOCK_MAX = 1 << 20, BLOCK_MIN = 512, SMALL = 64 << 10, PATIENCE = 10,
       RESTARTS = 10 };

struct block {
	struct nfsc_op op;
	uint64_t at;		/* in the file */
	uint32_t len;		/* asked */
	uint32_t have;		/* done of it */
	unsigned jukebox;
	bool	 busy;		/* the session has it */
	bool	 end;		/* get: the file ends here */
	uint8_t	*mem;
};

struct ring {
	struct tool  *t;
	struct nfs3_fh fh;
	enum nfsc_kind kind;
	uint32_t size;		/* of a block */
	unsigned n;
	unsigned busy;
	struct block *b;
	uint8_t	*mem;
	void	*kept;		/* of the session, for mem */
	/* put: all writes since the last COMMIT were done by one server? */
	bool	 stable;
	bool	 have_verf;
	bool	 unstable;	/* something needs a COMMIT */
	bool	 lost;
	uint64_t verf;
	/* get: the file was changed since its attributes were asked for; */
	const struct nfs3_attr *was;
	bool	 changed;
	bool	 asked;		/* READs came with attributes */
};

/* Small files have small rings: as many as jobs are copied at a time, and their
 * memory takes time to register. */
void copy_ring_size(const struct tool *t, uint32_t max, uint64_t bytes,
		    uint32_t *size, unsigned *n)
{
	uint32_t most = t->o->block ? t->o->block : BLOCK_MAX;

	max = MAX(max, (uint32_t)BLOCK_MIN);
	most = MIN(most, max);
	*size = most;
	if (bytes < most)
		*size = MIN(most, (uint32_t)(bytes / SMALL + 1) * SMALL);
	*n = MAX(t->o->config.depth, 1u);
	if (bytes / *size < *n)
		*n = (unsigned)(bytes / *size) + 1;
}

/* For a file of so many bytes, as far as is known; UINT64_MAX: it is not. */
static int ring_init(struct ring *r, struct tool *t, const struct nfs3_fh *fh,
		     enum nfsc_kind kind, uint64_t bytes)
{
	memset(r, 0, sizeof(*r));
	r->t = t;
	r->fh = *fh;
	r->kind = kind;
	copy_ring_size(t, kind == NFS_OP_READ ? t->limits.rtmax :
		       t->limits.wtmax, bytes, &r->size, &r->n);
	r->b = calloc(r->n, sizeof(*r->b));
	r->mem = mmap(NULL, (size_t)r->n * r->size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!r->b || r->mem == MAP_FAILED) {
		free(r->b);
		return tool_complain(t->text, -ENOMEM, 0);
	}
	r->kept = session_keep(t->s, r->mem, (size_t)r->n * r->size, kind);
	for (unsigned i = 0; i < r->n; i++) {
		r->b[i].mem = r->mem + (size_t)i * r->size;
		r->b[i].op.arg = &r->b[i];
	}
	return TOOL_OK;
}

/* Starts the rest of a block. */
static int launch(struct ring *r, struct block *b)
{
	int err;

	b->op.kind = r->kind;
	b->op.fh = r->fh;
	b->op.offset = b->at + b->have;
	b->op.count = b->len - b->have;
	b->op.data = b->mem + b->have;
	b->op.kept = r->kept;
	b->op.stable = r->stable;
	err = session_submit(r->t->s, &b->op);
	if (err < 0)
		return tool_complain(r->t->text, err, 0);
	b->busy = true;
	r->busy++;
	return TOOL_OK;
}

static void note_write(struct ring *r, const struct nfsc_op *op)
{
	if (op->stored)
		return;
	r->unstable = true;
	if (r->have_verf && r->verf != op->verf)
		r->lost = true;
	r->have_verf = true;
	r->verf = op->verf;
}

/* The server says this after it has read. */
static void note_read(struct ring *r, const struct nfs3_attr *is)
{
	const struct vfs_attr *a = &r->was->attr, *b = &is->attr;

	if (!is->has)
		return;
	r->asked = true;
	if (a->size != b->size || a->mtime.tv_sec != b->mtime.tv_sec ||
	    a->mtime.tv_nsec != b->mtime.tv_nsec)
		r->changed = true;
}

static int one_over(struct ring *r, struct block *b)
{
	struct nfsc_op *op = &b->op;

	if (op->err == 0 && op->status == NFS_JUKEBOX &&
	    b->jukebox++ < PATIENCE) {
		session_leave(r->t->s);
		nanosleep(&(struct timespec){ .tv_nsec = 200000000 }, NULL);
		session_enter(r->t->s);
		return launch(r, b);
	}
	if (op->err < 0 || op->status != 0)
		return tool_complain(r->t->text, op->err, op->status);
	b->jukebox = 0;
	b->have += op->got;
	if (r->kind == NFS_OP_WRITE)
		note_write(r, op);
	else
		note_read(r, &op->attr);
	if (r->kind == NFS_OP_READ && op->eof)
		b->end = true;
	if (op->got == 0 && !b->end)
		return tool_complain(r->t->text, -EIO, 0);
	if (b->have < b->len && !b->end)
		return launch(r, b);
	return TOOL_OK;
}

/* Takes the next block whose operation is over. */
static int take_block(struct ring *r)
{
	struct nfsc_op *op = session_wait(r->t->s);
	struct block *b = op->arg;

	b->busy = false;
	r->busy--;
	return one_over(r, b);
}

static int settle(struct ring *r, struct block *b)
{
	int err = TOOL_OK;

	while (b->busy && err == TOOL_OK)
		err = take_block(r);
	return err;
}

static void ring_fini(struct ring *r)
{
	/* Operations in flight write to our memory until they end. */
	for (; r->busy > 0; r->busy--)
		session_wait(r->t->s);
	session_release(r->t->s, r->kept);
	munmap(r->mem, (size_t)r->n * r->size);
	free(r->b);
}

static int write_out(int fd, const uint8_t *mem, size_t len, const char *to)
{
	while (len > 0) {
		ssize_t n = write(fd, mem, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tool_complain_here(to, -errno);
		mem += n;
		len -= (size_t)n;
	}
	return TOOL_OK;
}

static bool is_zero(const uint8_t *mem, size_t len)
{
	return len > 0 && mem[0] == 0 && memcmp(mem, mem + 1, len - 1) == 0;
}

/* A new regular file, for one with holes: blocks of zeros need no room. */
static bool is_sparse(const struct tool_object *obj, int fd)
{
	const struct vfs_attr *a = &obj->attr.attr;
	struct stat st;

	return a->used < a->size && fd >= 0 && fd != STDOUT_FILENO &&
	       fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static int leave_out(int fd, size_t len, const char *to)
{
	off_t at = lseek(fd, (off_t)len, SEEK_CUR);

	/* Its size is right even if this is the last. */
	if (at < 0 || ftruncate(fd, at) < 0)
		return tool_complain_here(to, -errno);
	return TOOL_OK;
}

static int get_start(struct ring *r, struct block *b, uint64_t at)
{
	b->at = at;
	b->len = r->size;
	b->have = 0;
	b->end = false;
	return launch(r, b);
}

/* READs need not come with attributes (RFC 1813 section 3.3.6). */
static int check_at_end(struct ring *r)
{
	struct nfsc_op op = { .kind = NFS_OP_GETATTR, .fh = r->fh };

	if (r->asked)
		return TOOL_OK;
	if (session_do(r->t->s, &op) < 0 || op.status != 0)
		return tool_complain(r->t->text, op.err, op.status);
	note_read(r, &op.attr);
	return TOOL_OK;
}

/* Gives a block away; false: no other is wanted. */
static bool put_out(struct copy_end *to, const struct block *b, bool sparse,
		    int *err)
{
	if (to->fd >= 0)
		*err = sparse && is_zero(b->mem, b->have) ?
			leave_out(to->fd, b->have, to->name) :
			write_out(to->fd, b->mem, b->have, to->name);
	return *err == TOOL_OK &&
	       (!to->take || to->take(to, b->mem, b->have));
}

int copy_get(struct tool *t, struct tool_object *obj, struct copy_end *to)
{
	uint64_t from = to->from, at = from, asked = from;
	struct progress p;
	struct ring r;
	bool end = false, sparse = is_sparse(obj, to->fd);
	int err = ring_init(&r, t, &obj->fh, NFS_OP_READ,
			    obj->attr.attr.size);

	if (err != TOOL_OK)
		return err;
	r.was = &obj->attr;
	progress_init(&p, t->o, to->name, obj->attr.attr.size);
	p.done = p.skipped = from;
	p.whole = to->fd < 0 ? NULL : t->whole;
	p.shown = p.shown && to->fd >= 0;
	for (unsigned i = 0; !end && err == TOOL_OK; i = (i + 1) % r.n) {
		struct block *b = &r.b[i];

		/* Beyond the size only one block is asked for: the file can
		 * have grown meanwhile. */
		while (err == TOOL_OK && asked < at + (uint64_t)r.n * r.size &&
		       (asked < obj->attr.attr.size || asked <= at)) {
			err = get_start(&r, &r.b[(asked - from) / r.size %
						 r.n], asked);
			asked += r.size;
		}
		if (err == TOOL_OK)
			err = settle(&r, b);
		end = b->end;
		if (err == TOOL_OK && !put_out(to, b, sparse, &err))
			end = true;
		at += b->have;
		progress_move(&p, at);
	}
	if (err == TOOL_OK)
		err = check_at_end(&r);
	obj->changed = r.changed;
	to->reached = at;
	progress_fini(&p, err == TOOL_OK);
	ring_fini(&r);
	return err;
}

/* One block of the local file; its length is 0 at the end. */
static int read_in(struct ring *r, struct block *b, int fd, uint64_t at,
		   const char *from)
{
	b->at = at;
	b->len = b->have = 0;
	while (b->len < r->size) {
		ssize_t n = r->stable ?
			read(fd, b->mem + b->len, r->size - b->len) :
			pread(fd, b->mem + b->len, r->size - b->len,
			      (off_t)(at + b->len));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return tool_complain_here(from, -errno);
		if (n == 0)
			break;
		b->len += (uint32_t)n;
	}
	return TOOL_OK;
}

/* COMMITs all that was written; r->lost says whether it must be sent again. */
static int commit(struct ring *r)
{
	struct nfsc_op op = { .kind = NFS_OP_COMMIT, .fh = r->fh };

	for (unsigned i = 0; i < r->n; i++) {
		int err = settle(r, &r->b[i]);

		if (err != TOOL_OK)
			return err;
	}
	if (!r->unstable || r->lost)
		return TOOL_OK;
	if (session_do(r->t->s, &op) < 0 || op.status != 0)
		return tool_complain(r->t->text, op.err, op.status);
	r->lost = op.verf != r->verf;
	return TOOL_OK;
}

/* Data that is sent again was given before. */
static void give_once(struct copy_end *from, const struct block *b,
		      uint64_t *given)
{
	if (from->take && b->at == *given)
		from->take(from, b->mem, b->len);
	*given = MAX(*given, b->at + b->len);
}

/* Writes from @at on, up to a commit's distance; moves @at on. */
static int put_stretch(struct ring *r, struct copy_end *from, uint64_t *at,
		       uint64_t *given, struct progress *p)
{
	uint64_t every = r->t->o->commit_every ? r->t->o->commit_every :
			 COMMIT_EVERY;
	uint64_t end = *at + every;
	int err = TOOL_OK;

	r->have_verf = r->unstable = r->lost = false;
	for (unsigned i = 0; *at < end; i = (i + 1) % r->n) {
		struct block *b = &r->b[i];

		err = settle(r, b);
		if (err == TOOL_OK)
			err = read_in(r, b, from->fd, *at, from->name);
		if (err != TOOL_OK || b->len == 0)
			break;
		give_once(from, b, given);
		err = launch(r, b);
		if (err != TOOL_OK)
			break;
		*at += b->len;
		progress_move(p, *at);
	}
	return err == TOOL_OK ? commit(r) : err;
}

int copy_put(struct tool *t, const struct nfs3_fh *fh, struct copy_end *from)
{
	uint64_t at = from->from, before, given = at;
	unsigned restarts = 0;
	struct progress p;
	struct ring r;
	struct stat st;
	/* A pipe or a device does not tell its size. */
	bool sized = fstat(from->fd, &st) == 0 && S_ISREG(st.st_mode);
	int err = ring_init(&r, t, fh, NFS_OP_WRITE,
			    sized ? from->size : UINT64_MAX);

	if (err != TOOL_OK)
		return err;
	r.stable = strcmp(from->name, "-") == 0 ||
		   lseek(from->fd, 0, SEEK_CUR) < 0;
	progress_init(&p, t->o, from->name, from->size);
	p.done = p.skipped = at;
	p.whole = t->whole;
	do {
		before = at;
		err = put_stretch(&r, from, &at, &given, &p);
		if (err == TOOL_OK && r.lost) {
			/* The server forgot: again, from the last COMMIT. */
			at = before;
			before = UINT64_MAX;
			if (restarts++ == RESTARTS)
				err = tool_complain(t->text, -EIO, 0);
		}
	} while (err == TOOL_OK && at != before);
	progress_fini(&p, err == TOOL_OK);
	ring_fini(&r);
	return err;
}
