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
#include <unistd.h>

#include "lib/stats.h"

STAT(nfs3_write_mismatch, "WRITEs whose count is not the length of the data");

/* A READ longer than this queries the file's size first: a short file must not
 * hold a large buffer until its reply is gone. */
#define READ_SIZED	(64u << 10)
/* A READ of this size or more is worth a pipe. */
#define READ_PIPED	(64u << 10)
/* A worker runs a copied READ or a WRITE longer than this: it takes as long as
 * many short calls, and the poller sends or receives meanwhile. */
#define READ_LONG	(128u << 10)
#define WRITE_LONG	(64u << 10)

NFS3_STEP(readlink_room)
{
	return rpc_body_get(call, VFS_PATH_MAX + 1);
}

NFS3_STEP(readlink)
{
	struct nfs3_readlink_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	int n;

	op->vfs.attr = &r->attr.attr;
	op->vfs.readlink.text = (char *)rpc_body(call)->data;
	op->vfs.readlink.size = VFS_PATH_MAX + 1;
	n = nfs3_do(op, op->ops->readlink);
	if (n < 0)
		return n;
	/* It was cut, and would lead elsewhere. */
	if (n > VFS_PATH_MAX)
		return -ENAMETOOLONG;
	r->attr.has = true;
	r->len = (uint32_t)n;
	rpc_body_set(call, r->len, NULL, 0);
	return 0;
}

/* Cuts the count to the file's size, but not to 0: a file that has grown before
 * it is read would return no bytes without being at its end. */
NFS3_STEP(read_size)
{
	struct nfs3_read_args *a = rpc_args(call);
	struct nfs3_read_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	uint64_t size;
	int err;

	a->count = MIN(a->count, op->nfs->rtmax);
	if (a->offset > (uint64_t)INT64_MAX - a->count)
		a->count = a->offset > INT64_MAX ? 0 : INT64_MAX - a->offset;
	if (a->count <= READ_SIZED)
		return 0;
	op->vfs.attr = &r->attr.attr;
	err = nfs3_do(op, op->ops->getattr);
	if (err < 0)
		return err;
	size = r->attr.attr.size;
	if (a->offset >= size)
		a->count = 1;
	else if (size - a->offset < a->count)
		a->count = (uint32_t)(size - a->offset);
	return 0;
}

/* Reads through a pipe, without a copy in user memory, if the backend and the
 * transport can.  A pipe has as many places as PIPE_MAX has pages: data that
 * begins inside a page would take one more. */
NFS3_STEP(read_piped)
{
	const struct nfs3_read_args *a = rpc_args(call);
	struct nfs3_read_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	struct pipe *pipe;
	int n;

	if (!op->ops->read_pipe || a->count < READ_PIPED ||
	    a->count > PIPE_MAX ||
	    a->offset % (uint64_t)sysconf(_SC_PAGESIZE))
		return 0;
	pipe = rpc_body_pipe(call);
	if (!pipe)
		return 0;
	op->vfs.attr = &r->attr.attr;
	op->vfs.read.off = a->offset;
	op->vfs.read.count = a->count;
	op->vfs.read.pipe = pipe->wr;
	n = nfs3_do(op, op->ops->read_pipe);
	if (n == -EOPNOTSUPP)
		rpc_body_drop_pipe(call);
	if (n < 0)
		return n == -EOPNOTSUPP ? 0 : n;
	r->attr.has = true;
	r->eof = op->vfs.eof;
	r->count = call->bytes = (uint32_t)n;
	if (n > 0)
		rpc_body_set_pipe(call, r->count);
	return RPC_DONE;
}

NFS3_STEP(read_room)
{
	const struct nfs3_read_args *a = rpc_args(call);

	if (!call->may_wait && a->count > READ_LONG)
		return -EAGAIN;
	return a->count > 0 ? rpc_body_get(call, a->count) : 0;
}

NFS3_STEP(read)
{
	const struct nfs3_read_args *a = rpc_args(call);
	struct nfs3_read_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	int n;

	op->iov.iov_base = a->count > 0 ? rpc_body(call)->data : NULL;
	op->iov.iov_len = a->count;
	op->vfs.attr = &r->attr.attr;
	/* No file reaches further: reading there finds its end. */
	op->vfs.read.off = MIN(a->offset, (uint64_t)INT64_MAX);
	op->vfs.read.iov = &op->iov;
	op->vfs.read.niov = 1;
	n = nfs3_do(op, op->ops->read);
	if (n < 0)
		return n;
	r->attr.has = true;
	r->eof = op->vfs.eof;
	r->count = call->bytes = (uint32_t)n;
	if (n > 0)
		rpc_body_set(call, r->count, NULL, 0);
	return 0;
}

/* Keeps the first @len bytes of the data. */
static void trim(struct nfs3_write_args *a, uint32_t len)
{
	size_t left = len;
	int i;

	a->len = len;
	for (i = 0; i < a->niov && left > 0; i++) {
		a->iov[i].iov_len = MIN(a->iov[i].iov_len, left);
		left -= a->iov[i].iov_len;
	}
	a->niov = i;
}

/* Drops the first @len bytes, which are written. */
static void skip(struct nfs3_write_args *a, uint32_t len)
{
	size_t left = len;
	int n = 0;

	while (n < a->niov && left >= a->iov[n].iov_len)
		left -= a->iov[n++].iov_len;
	a->niov -= n;
	memmove(a->iov, a->iov + n, (size_t)a->niov * sizeof(a->iov[0]));
	if (left > 0) {
		a->iov[0].iov_base = (uint8_t *)a->iov[0].iov_base + left;
		a->iov[0].iov_len -= left;
	}
	a->offset += len;
	a->len -= len;
}

NFS3_STEP(write_check)
{
	struct nfs3_write_args *a = rpc_args(call);
	struct nfs3_write_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	uint32_t len = MIN(a->len, op->nfs->wtmax);

	if (a->count != a->len) {
		stat_inc(nfs3_write_mismatch);
		return -EINVAL;
	}
	if (!call->may_wait && len > WRITE_LONG)
		return -EAGAIN;
	if (a->offset > (uint64_t)INT64_MAX - len)
		return -EFBIG;
	trim(a, len);
	op->vfs.write.stable = a->stable;
	r->committed = VFS_FILE_SYNC;
	/* Read the verifier before writing: after a write-back error in
	 * between, the client sees another verifier at COMMIT and sends the
	 * data again. */
	r->verf = atomic_load(&op->exp->fs->verf);
	return 0;
}

/* Writes once, and adds the result to the whole's. */
static int write_some(struct nfs3_op *op, struct nfs3_write_args *a,
		      struct nfs3_write_res *r)
{
	static const struct iovec nothing = { NULL, 0 };
	int n;

	op->vfs.write.off = a->offset;
	op->vfs.write.iov = a->niov ? a->iov : &nothing;
	op->vfs.write.niov = MAX(a->niov, 1);
	op->vfs.wcc = &r->wcc.wcc;
	n = nfs3_do(op, op->ops->write);
	if (n == VFS_PENDING)
		return n;
	/* Between two writes of a call another client can change the file
	 * without a visible change of its times: so the result of such a call
	 * leaves out the earlier attributes. */
	if (r->count > 0)
		r->wcc.wcc.has_before = false;
	if (n <= 0)
		return n;
	r->committed = MIN(r->committed, op->vfs.write.stable);
	r->count += (uint32_t)n;
	skip(a, (uint32_t)n);
	return n;
}

/* Writes until all is written or the backend fails.  A worker goes on behind
 * the bytes that the poller wrote. */
NFS3_STEP(write)
{
	struct nfs3_write_args *a = rpc_args(call);
	struct nfs3_write_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	int n;

	for (;;) {
		n = write_some(op, a, r);
		if (n == 0 && a->len > 0)
			n = -EIO;
		if (n <= 0 || a->len == 0)
			return MIN(n, 0);
		op->vfs.write.stable = a->stable;
	}
}

/* An end after the first bytes, however it came, makes a short write, not an
 * error (section 3.3.7): JUKEBOX says that nothing was done. */
int nfs3_end_write(struct rpc_call *call, int err)
{
	const struct nfs3_write_res *r = rpc_res(call);

	call->way = ACCOUNT_WRITTEN;
	call->bytes = r->count;
	return nfs3_end_wcc(call, r->count > 0 ? 0 : err);
}

/* COMMIT changes no data.  A read-only export serves it for data that was
 * written before the export became read-only. */
NFS3_STEP(commit)
{
	const struct nfs3_commit_args *a = rpc_args(call);
	struct nfs3_commit_res *r = rpc_res(call);
	struct nfs3_op *op = nfs3_op(call);
	/* A range past the largest file: to the end, as count 0. */
	bool past = a->offset > (uint64_t)INT64_MAX - a->count;
	int err;

	op->vfs.commit.off = past ? 0 : a->offset;
	op->vfs.commit.count = past ? 0 : a->count;
	op->vfs.wcc = &r->wcc.wcc;
	err = nfs3_do(op, op->ops->commit);
	if (err == VFS_PENDING)
		return err;
	/* Read the verifier after the sync: if another thread got a
	 * write-back error meanwhile, it has changed, and the client
	 * sends the lost data again. */
	r->verf = atomic_load(&op->exp->fs->verf);
	return err;
}
