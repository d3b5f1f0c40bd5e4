/* SPDX-License-Identifier: BSD-2-Clause */
/* data - READ, WRITE and COMMIT. */
#include "modules/ceph/ceph.h"

#include <errno.h>
#include <limits.h>

#define FIXED_WAIT_S	1

/* 0 if the call's node is a file that has data. */
static int check_has_data(const struct ceph_statx *sx)
{
	if (S_ISREG(sx->stx_mode))
		return 0;
	return S_ISDIR(sx->stx_mode) ? -EISDIR : -EINVAL;
}

/* Returns the bytes read of the part of @args behind @done: an error counts
 * only if no byte was read. */
static int64_t read_rest(struct cfs_call *c, struct Fh *fh,
			 const struct vfs_read *args, int64_t done)
{
	int64_t at = 0, r;

	for (int i = 0; i < args->niov; i++) {
		int64_t len = (int64_t)args->iov[i].iov_len;
		int64_t from = MAX(done - at, 0);

		at += len;
		while (from < len) {
			r = ceph_ll_read(c->cm, fh, (int64_t)args->off + done,
				(uint64_t)(len - from),
				(char *)args->iov[i].iov_base + from);
			if (r <= 0)
				return done > 0 ? done : r;
			from += r;
			done += r;
		}
	}
	return done;
}

static uint64_t iov_bytes(const struct iovec *iov, int niov)
{
	uint64_t len = 0;

	for (int i = 0; i < niov; i++)
		len += iov[i].iov_len;
	return len;
}

static int64_t read_data(struct cfs_call *c, const struct vfs_op *op)
{
	struct Fh *fh;
	int64_t n = cfs_open(c, false, &fh);

	if (n < 0)
		return n;
	/* The library can stop at the end of an object. */
	n = ceph_ll_readv(c->cm, fh, op->read.iov, op->read.niov,
			  (int64_t)op->read.off);
	if (n > 0)
		n = read_rest(c, fh, &op->read, n);
	cfs_close(c);
	return n;
}

/* Waits a second at most for a place among the READs in snapshots, and not at
 * all while none of them ends. */
static bool begin_fixed(struct cfs_fs *fs)
{
	const struct timespec until = cfs_time_in(FIXED_WAIT_S);

	if (sem_trywait(&fs->fixed_reads) == 0)
		return true;
	if (atomic_load(&fs->fixed_hung))
		return false;
	if (sem_clockwait(&fs->fixed_reads, CLOCK_MONOTONIC, &until) == 0)
		return true;
	atomic_store(&fs->fixed_hung, true);
	return false;
}

/* In a snapshot.  The library can hang without reading the data
 * (doc/cephfs.md), and the export's other calls also need workers.  -ETIMEDOUT:
 * many wait. */
static int64_t read_fixed(struct cfs_call *c, const struct vfs_op *op)
{
	struct cfs_fs *fs = c->client->fs;
	int64_t n;

	if (!begin_fixed(fs))
		return -ETIMEDOUT;
	n = read_data(c, op);
	atomic_store(&fs->fixed_hung, false);
	sem_post(&fs->fixed_reads);
	return n;
}

int cfs_read(struct vfs_op *op)
{
	struct ceph_statx sx;
	struct cfs_call c;
	int64_t n = 0;
	int err = cfs_begin_stat(&c, op, &sx);

	if (err < 0)
		return err;
	err = check_has_data(&sx);
	if (err == 0)
		err = cfs_check_io(&c, op->cred, &sx, CFS_R);
	if (err == 0 && op->read.off < sx.stx_size) {
		n = cfs_is_fixed(c.node) ? read_fixed(&c, op) :
					   read_data(&c, op);
		err = n < 0 ? (int)n : cfs_stat(&c, &sx);
	}
	if (err == 0) {
		/* The file can have become shorter by now.  And a read that an
		 * error cut short has not reached the end. */
		op->eof = (n == 0 &&
			   iov_bytes(op->read.iov, op->read.niov) > 0) ||
			  op->read.off + (uint64_t)n >= sx.stx_size;
		if (op->attr)
			cfs_attr(&sx, op->attr);
	}
	return cfs_end(&c, err < 0 ? err : (int)n);
}

/* The mode without the bits that a write by @cred clears. */
static uint16_t written_mode(const struct vfs_cred *cred, uint32_t mode)
{
	uint32_t drop = mode & 010 ? 06000 : 04000;

	return (uint16_t)(mode & (cred->uid == 0 ? 07777 : 07777 & ~drop));
}

/* A set-id program must not run data that another user wrote into it. */
static int drop_set_id(struct cfs_call *c, const struct vfs_cred *cred,
		       const struct ceph_statx *sx)
{
	struct ceph_statx now, to = { 0 };
	int err;

	if (written_mode(cred, sx->stx_mode) == (sx->stx_mode & 07777))
		return 0;
	err = cfs_turn_take(c->node);
	if (err < 0)
		return err;
	/* A SETATTR might have changed it meanwhile. */
	err = cfs_stat(c, &now);
	if (err == 0) {
		to.stx_mode = written_mode(cred, now.stx_mode);
		err = ceph_ll_setattr(c->cm, c->in, &to, CEPH_SETATTR_MODE,
				      c->root);
	}
	cfs_turn_give(c->node);
	return err;
}

static int64_t write_data(struct cfs_call *c, struct vfs_op *op,
			 const struct ceph_statx *sx)
{
	struct cfs_fs *fs = c->client->fs;
	uint64_t verf = atomic_load(&fs->fs.verf);
	struct Fh *fh;
	int64_t n = drop_set_id(c, op->cred, sx);
	int err;

	if (n == 0)
		n = cfs_open(c, true, &fh);
	if (n < 0)
		return n;
	n = cfs_size_take(c->node, false);
	if (n == 0) {
		n = ceph_ll_writev(c->cm, fh, op->write.iov, op->write.niov,
				   (int64_t)op->write.off);
		cfs_size_give(c->node);
	}
	if (n >= 0 && op->write.stable != VFS_UNSTABLE) {
		/* Where the file has grown, its size is also data. */
		err = cfs_sync(c);
		/* The library might have reported the loss of this data to
		 * another sync, and clients ignore the verifier of a stable
		 * write. */
		if (err == 0 && atomic_load(&fs->fs.verf) != verf)
			err = -ETIMEDOUT;
		if (err < 0)
			n = err;
		op->write.stable = VFS_FILE_SYNC;
	}
	cfs_close(c);
	return n;
}

static int check_write(struct cfs_call *c, const struct vfs_op *op,
		       const struct ceph_statx *sx, uint64_t *len)
{
	int err = check_has_data(sx);

	*len = iov_bytes(op->write.iov, op->write.niov);
	if (err == 0 && cfs_is_fixed(c->node))
		err = -EROFS;
	if (err == 0)
		err = cfs_check_io(c, op->cred, sx, CFS_W);
	if (err == 0 && (op->write.off > INT64_MAX ||
			 *len > (uint64_t)INT64_MAX - op->write.off))
		err = -EFBIG;
	return err;
}

/*
 * Reading the attributes after the write also detects a client that the cluster
 * has shut out: it has dropped its data, and its fsync answers 0, but its
 * getattr fails.
 */
int cfs_write(struct vfs_op *op)
{
	struct ceph_statx sx;
	struct cfs_call c;
	uint64_t len;
	int64_t n = 0;
	int err = cfs_begin_stat(&c, op, &sx);

	if (err < 0)
		return err;
	cfs_wcc_before(&sx, op->wcc);
	err = check_write(&c, op, &sx, &len);
	if (err == 0 && len > 0) {
		n = write_data(&c, op, &sx);
		err = (int)MIN(n, 0);
	}
	if (err == 0)
		err = cfs_stat(&c, &sx);
	if (err == 0 && op->wcc) {
		op->wcc->has_after = true;
		cfs_attr(&sx, &op->wcc->after);
	} else {
		err = cfs_after(&c, op->wcc, err);
	}
	return cfs_end(&c, err < 0 ? err : (int)n);
}

/* As cfs_write(): the attributes show whether the sync was real. */
int cfs_commit(struct vfs_op *op)
{
	struct ceph_statx sx;
	struct cfs_call c;
	int err = cfs_begin_stat(&c, op, &sx);

	if (err < 0)
		return err;
	cfs_wcc_before(&sx, op->wcc);
	err = check_has_data(&sx);
	if (err == 0 && !cfs_is_fixed(c.node))
		err = cfs_sync(&c);
	if (err == 0)
		err = cfs_stat(&c, &sx);
	if (err == 0 && op->wcc) {
		op->wcc->has_after = true;
		cfs_attr(&sx, &op->wcc->after);
	}
	return cfs_end(&c, err);
}
