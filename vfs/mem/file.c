/* SPDX-License-Identifier: BSD-2-Clause */
/* READ and WRITE of files, and READLINK. */
#include "vfs/mem/mem.h"

#include <string.h>

#define DAY_NS	(24ll * 3600 * 1000000000)

/* As Linux's relatime: once after each change, and once a day.  Readers can do
 * it concurrently. */
static void touch_atime(struct mem_node *n)
{
	int64_t atime = atomic_load_explicit(&n->atime, memory_order_relaxed);
	int64_t now;

	if (atime > n->mtime && atime > n->ctime &&
	    mem_now() - atime < DAY_NS)
		return;
	now = mem_now();
	atomic_store_explicit(&n->atime, MAX(now, n->ctime + 1),
			      memory_order_relaxed);
}

int mem_readlink(struct vfs_op *op)
{
	struct mem_node *n = mem_node(op->node);
	int len = mem_rdlock(op, n);

	if (len < 0)
		return len;
	if (n->type != VFS_LNK) {
		len = -EINVAL;
	} else {
		len = (int)MIN((uint64_t)op->readlink.size, n->size);
		memcpy(op->readlink.text, n->target, len);
	}
	if (op->attr)
		mem_attr_fill(n, op->attr);
	mem_unlock(n);
	return len;
}

/* Returns 0 if I/O on @n is possible, else -errno. */
static int check_file(const struct mem_node *n)
{
	if (n->type == VFS_DIR)
		return -EISDIR;
	return n->type == VFS_REG ? 0 : -EINVAL;
}

static int64_t read_iov(const struct mem_node *n, uint64_t off,
			const struct iovec *iov, int niov)
{
	int64_t done = 0;

	for (int i = 0; i < niov && off < n->size; i++) {
		size_t len = MIN(iov[i].iov_len, n->size - off);

		mem_data_read(&n->data, off, iov[i].iov_base, len);
		off += len;
		done += len;
	}
	return done;
}

int mem_read(struct vfs_op *op)
{
	struct mem_node *n = mem_node(op->node);
	int64_t ret = mem_rdlock(op, n);

	if (ret < 0)
		return (int)ret;
	ret = check_file(n);
	/* A client reads a file to execute it (RFC 1813 section 4.4). */
	if (ret == 0 && mem_permit_io(op->cred, n, MEM_R) < 0)
		ret = mem_permit(op->cred, n, MEM_X);
	if (ret == 0) {
		ret = read_iov(n, op->read.off, op->read.iov, op->read.niov);
		op->eof = op->read.off >= n->size ||
			  op->read.off + ret == n->size;
		touch_atime(n);
	}
	if (op->attr)
		mem_attr_fill(n, op->attr);
	mem_unlock(n);
	return (int)ret;
}

static size_t sum_iov(const struct iovec *iov, int niov)
{
	size_t sum = 0;

	for (int i = 0; i < niov; i++)
		sum += iov[i].iov_len;
	return sum;
}

/* Returns the bytes written, or -ENOSPC without room for the first byte. */
static int64_t write_iov(struct mem_node *n, uint64_t off,
			 const struct iovec *iov, int niov)
{
	int64_t done = 0;

	for (int i = 0; i < niov; i++) {
		size_t put = mem_data_write(mem_fs(n), &n->data, off,
					    iov[i].iov_base, iov[i].iov_len);

		off += put;
		done += put;
		if (put < iov[i].iov_len)
			return done ? done : -ENOSPC;
	}
	return done;
}

int mem_write(struct vfs_op *op)
{
	struct mem_node *n = mem_node(op->node);
	size_t len = sum_iov(op->write.iov, op->write.niov);
	int64_t ret = mem_wrlock_op(op, n);

	if (ret < 0)
		return (int)ret;
	mem_wcc_before(n, op->wcc);
	ret = check_file(n);
	if (ret == 0)
		ret = mem_permit_io(op->cred, n, MEM_W);
	if (ret == 0 && (op->write.off > MEM_MAX_FILE ||
			 len > MEM_MAX_FILE - op->write.off))
		ret = -EFBIG;
	if (ret == 0 && len > 0)
		ret = write_iov(n, op->write.off, op->write.iov,
				op->write.niov);
	if (ret > 0) {
		n->size = MAX(n->size, op->write.off + ret);
		mem_clear_set_id(op->cred, n);
		mem_touch_mtime(n);
	}
	mem_wcc_after(n, op->wcc);
	mem_unlock(n);
	/* Memory is as stable as this file system ever gets. */
	op->write.stable = VFS_FILE_SYNC;
	return (int)ret;
}

int mem_commit(struct vfs_op *op)
{
	struct mem_node *n = mem_node(op->node);
	int err = mem_rdlock(op, n);

	if (err < 0)
		return err;
	mem_wcc_before(n, op->wcc);
	err = check_file(n);
	mem_wcc_after(n, op->wcc);
	mem_unlock(n);
	return err;
}
