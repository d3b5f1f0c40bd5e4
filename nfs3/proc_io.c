/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * READLINK, READ, WRITE, COMMIT: the procedures that move data.
 *
 * Data is never copied here.  READ and READLINK have the backend fill the
 * reply's body, a registered buffer; WRITE passes on the pieces that the data
 * arrived in.
 */
#include "nfs3/proc.h"

#include <errno.h>
#include <limits.h>

#include "lib/stats.h"

STAT(nfs3_write_mismatch, "WRITEs whose count is not the length of the data");

/* A READ longer than this asks for the file's size first, so that a short
 * file does not hold a large buffer until its reply is gone. */
#define READ_SIZED	(64u << 10)
/* A READ of this size or more is worth a pipe, which takes whole pages. */
#define READ_PIPED	(128u << 10)
#define PIPE_ALIGN	4096
/* A worker runs a copied READ or a WRITE longer than this: it takes as long as
 * many short calls, and the poller sends or receives meanwhile. */
#define READ_LONG	(128u << 10)
#define WRITE_LONG	(64u << 10)

NFS3_PROC(readlink)
{
	const struct nfs3_fh_args *a = args;
	struct nfs3_readlink_res *r = res;
	struct nfs3_op op;
	struct buf *body = NULL;
	int err;

	err = nfs3_begin(&op, call, a->fh);
	if (err == 0) {
		body = rpc_body_alloc(call, VFS_PATH_MAX + 1);
		if (!body)
			op.no_buffer = true;
	}
	if (body) {
		err = op.ops->readlink(&op.ctx, op.node, (char *)body->data,
				       VFS_PATH_MAX + 1, &r->attr.attr);
		r->attr.has = err >= 0;
	}
	if (err > 0) {
		r->len = (uint32_t)err;
		rpc_body_set(call, r->len, NULL, 0);
		err = 0;
	}
	return nfs3_end_attr(&op, err, &r->status, &r->attr);
}

/* Returns how many of the bytes asked for the file may have. */
static int read_size(struct nfs3_op *op, const struct nfs3_read_args *a,
		     uint32_t *count)
{
	struct vfs_attr attr;
	int err;

	*count = MIN(a->count, op->nfs->rtmax);
	if (a->offset > (uint64_t)INT64_MAX - *count)
		*count = a->offset > INT64_MAX ? 0 : INT64_MAX - a->offset;
	if (*count <= READ_SIZED)
		return 0;
	err = op->ops->getattr(&op->ctx, op->node, &attr);
	if (err < 0)
		return err;
	if (a->offset >= attr.size)
		*count = 0;
	else if (attr.size - a->offset < *count)
		*count = (uint32_t)(attr.size - a->offset);
	return 0;
}

/* Reads through a pipe, without a copy in user memory. -EOPNOTSUPP: the backend
 * or the transport can't. */
static int read_pipe(struct nfs3_op *op, uint64_t offset, uint32_t count,
		     struct nfs3_read_res *r)
{
	struct pipe *pipe;
	int64_t n;

	if (!op->ops->read_pipe || count < READ_PIPED || count > PIPE_MAX ||
	    offset % PIPE_ALIGN)
		return -EOPNOTSUPP;
	pipe = rpc_body_pipe(op->call);
	if (!pipe)
		return -EOPNOTSUPP;
	n = op->ops->read_pipe(&op->ctx, op->node, offset, count, pipe->wr,
			       &r->eof, &r->attr.attr);
	if (n < 0)
		return (int)n;
	r->attr.has = true;
	r->count = (uint32_t)n;
	if (n > 0)
		rpc_body_set_pipe(op->call, r->count);
	return 0;
}

static int do_read(struct nfs3_op *op, const struct nfs3_read_args *a,
		   struct nfs3_read_res *r)
{
	/* No file reaches further: reading there finds its end. */
	uint64_t offset = MIN(a->offset, (uint64_t)INT64_MAX);
	struct iovec iov = { NULL, 0 };
	struct buf *body = NULL;
	uint32_t count;
	int64_t n;

	n = read_size(op, a, &count);
	if (n < 0)
		return (int)n;
	n = read_pipe(op, offset, count, r);
	if (n != -EOPNOTSUPP)
		return (int)n;
	if (op->ctx.nonblock && count > READ_LONG)
		return -EAGAIN;
	if (count > 0) {
		body = rpc_body_alloc(op->call, count);
		if (!body) {
			op->no_buffer = true;
			return 0;
		}
		iov.iov_base = body->data;
		iov.iov_len = MIN(count, body->size);
	}
	n = op->ops->read(&op->ctx, op->node, offset, &iov, 1, &r->eof,
			  &r->attr.attr);
	if (n < 0)
		return (int)n;
	r->attr.has = true;
	r->count = (uint32_t)n;
	if (n > 0)
		rpc_body_set(op->call, r->count, NULL, 0);
	return 0;
}

NFS3_PROC(read)
{
	const struct nfs3_read_args *a = args;
	struct nfs3_read_res *r = res;
	struct nfs3_op op;
	int err;

	err = nfs3_begin(&op, call, a->fh);
	if (err == 0)
		err = do_read(&op, a, r);
	return nfs3_end_attr(&op, err, &r->status, &r->attr);
}

/* Keeps the first @len bytes of @iov; returns how many pieces that is. */
static int trim(struct iovec *iov, int niov, size_t len)
{
	int i;

	for (i = 0; i < niov && len > 0; i++) {
		iov[i].iov_len = MIN(iov[i].iov_len, len);
		len -= iov[i].iov_len;
	}
	return i;
}

/* Drops the first @len bytes. */
static void skip(struct iovec **iov, int *niov, size_t len)
{
	while (*niov > 0 && len >= (*iov)->iov_len) {
		len -= (*iov)->iov_len;
		(*iov)++;
		(*niov)--;
	}
	if (len > 0) {
		(*iov)->iov_base = (uint8_t *)(*iov)->iov_base + len;
		(*iov)->iov_len -= len;
	}
}

/* Adds the result of one backend write to the whole's.  The wcc data spans all
 * of them: before the first, after the last. */
static int64_t write_some(struct nfs3_op *op, const struct nfs3_write_args *a,
			  struct nfs3_write_res *r, const struct iovec *iov,
			  int niov)
{
	enum vfs_stable stable = a->stable;
	struct vfs_wcc wcc = { 0 };
	int64_t n;

	n = op->ops->write(&op->ctx, op->node, a->offset + r->count, iov, niov,
			   &stable, &wcc);
	if (r->count > 0) {
		r->wcc.wcc.has_after = wcc.has_after;
		r->wcc.wcc.after = wcc.after;
	} else {
		r->wcc.wcc = wcc;
	}
	if (n >= 0)
		r->committed = MIN(r->committed, stable);
	return n;
}

/*
 * Writes until all is written or the backend fails.  A failure after the first
 * bytes makes a short write, not an error (section 3.3.7).
 */
static int write_all(struct nfs3_op *op, const struct nfs3_write_args *a,
		     struct nfs3_write_res *r, uint32_t len)
{
	struct iovec pieces[MSG_MAX_SEGS] = { { NULL, 0 } };
	struct iovec *iov = pieces;
	int niov = 1;
	int64_t n;

	if (len > 0) {
		memcpy(pieces, a->iov, a->niov * sizeof(pieces[0]));
		niov = trim(pieces, a->niov, len);
	}
	r->committed = VFS_FILE_SYNC;
	do {
		n = write_some(op, a, r, iov, niov);
		if (n == 0 && len > 0)
			n = -EIO;
		/* Writes all of it again: the same data in the same place. */
		if (n < 0 && nfs3_must_block(op, (int)n))
			return (int)n;
		if (n < 0)
			return r->count > 0 ? 0 : (int)n;
		r->count += (uint32_t)n;
		skip(&iov, &niov, (size_t)n);
	} while (r->count < len);
	return 0;
}

static int do_write(struct nfs3_op *op, const struct nfs3_write_args *a,
		    struct nfs3_write_res *r)
{
	uint32_t len = MIN(a->len, op->nfs->wtmax);

	if (a->count != a->len) {
		stat_inc(nfs3_write_mismatch);
		return -EINVAL;
	}
	if (op->ctx.nonblock && len > WRITE_LONG)
		return -EAGAIN;
	if (a->offset > (uint64_t)INT64_MAX - len)
		return -EFBIG;
	/* Read the verifier before writing: after a write-back error in
	 * between, the client sees another verifier at COMMIT and sends the
	 * data again. */
	r->verf = atomic_load(&op->exp->fs->verf);
	return write_all(op, a, r, len);
}

NFS3_PROC(write)
{
	const struct nfs3_write_args *a = args;
	struct nfs3_write_res *r = res;
	struct nfs3_op op;
	int err;

	err = nfs3_begin_change(&op, call, a->fh);
	if (err == 0)
		err = do_write(&op, a, r);
	return nfs3_end_wcc(&op, err, &r->status, &r->wcc);
}

/* COMMIT changes no data.  A read-only export serves it for data that was
 * written before the export became read-only. */
NFS3_PROC(commit)
{
	const struct nfs3_commit_args *a = args;
	struct nfs3_commit_res *r = res;
	struct nfs3_op op;
	int err;

	err = nfs3_begin(&op, call, a->fh);
	if (err == 0) {
		/* A range past the largest file: to the end, as count 0. */
		bool past = a->offset > (uint64_t)INT64_MAX - a->count;

		err = op.ops->commit(&op.ctx, op.node, past ? 0 : a->offset,
				     past ? 0 : a->count, &r->wcc.wcc);
		/* Read the verifier after the sync: if another thread got a
		 * write-back error meanwhile, it has changed, and the client
		 * sends the lost data again. */
		r->verf = atomic_load(&op.exp->fs->verf);
	}
	return nfs3_end_wcc(&op, err, &r->status, &r->wcc);
}
