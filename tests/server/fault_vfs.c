/* SPDX-License-Identifier: BSD-2-Clause */
/* fault_vfs - a backend with faults. */
#include "tests/server/fault_vfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "tests/server/late_vfs.h"
#include "tests/server/module_vfs.h"
#include "tests/unit/pause.h"
#include "vfs/posix/posix.h"

#define POSIX_DIR	"GANNET_TEST_POSIX_DIR"

struct vfs_ops fault_vfs_ops;
static const struct vfs_ops *base;

static struct {
	atomic_int	err[FAULT_NOPS];
	atomic_bool	blocks[FAULT_NOPS];
	atomic_uint	calls[FAULT_NOPS];
	atomic_uint	write_max;
	atomic_uint	write_left;	/* writes before one fails; 0: none */
	atomic_int	write_err;
	atomic_int	once[FAULT_NOPS];
	atomic_uint	read_max;
	atomic_int	tear;		/* bytes, or -1: no */
	atomic_bool	write_back, bump, bare;
	atomic_int	committed;	/* enum vfs_stable, or -1: the truth */
	atomic_int	committed_then;
	atomic_uint	length;		/* of long names; 0: as they are */
	atomic_size_t	read_room;
	atomic_bool	hold[FAULT_NOPS];
	atomic_uint	delay[FAULT_NOPS];
	atomic_uint	keep[FAULT_NOPS];
	struct vfs_op	*kept[256];	/* hold_lock guards it */
	atomic_uint	nkept;
	atomic_uint	storm;
	atomic_ullong	random;
} f;

static pthread_mutex_t hold_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t hold_less = PTHREAD_COND_INITIALIZER;

static void wait_held(enum fault_op op)
{
	mutex_lock(&hold_lock);
	while (atomic_load(&f.hold[op]))
		pthread_cond_wait(&hold_less, &hold_lock);
	mutex_unlock(&hold_lock);
}

void fault_hold(enum fault_op op, bool hold)
{
	mutex_lock(&hold_lock);
	atomic_store(&f.hold[op], hold);
	pthread_cond_broadcast(&hold_less);
	mutex_unlock(&hold_lock);
}

void fault_storm(unsigned permille)
{
	atomic_store(&f.storm, permille);
}

/* True if the storm hits; sets a number of 0 to 15 for its kind. */
static int struck(void)
{
	uint64_t v = atomic_fetch_add(&f.random, 0x9e3779b97f4a7c15u);

	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	if ((v >> 40) % 1000 >= atomic_load(&f.storm))
		return -1;
	return (int)(v >> 32 & 15);
}

static int storm_error(void)
{
	static const int errs[] = { EIO, ENOSPC, EDQUOT, ETIMEDOUT };
	int i = struck();

	return i < 0 ? 0 : errs[i % 4];
}

/* @err of an operation that is over, or an error that hides that it is done. */
static int after(int err)
{
	int i = err ? -1 : struck();

	return i < 0 ? err : -EIO;
}

static bool is_to_keep(enum fault_op which)
{
	unsigned n = atomic_load(&f.keep[which]);

	while (n && !atomic_compare_exchange_weak(&f.keep[which], &n, n - 1))
		;
	return n;
}

static int check(struct vfs_op *op, enum fault_op which)
{
	unsigned delay = atomic_load(&f.delay[which]);
	int err = atomic_load(&f.err[which]);

	/* A thread that doesn't know that it must not wait closes the files
	 * that it lets go of, and a close can wait. */
	if (op->nonblock && !thread_must_not_wait) {
		fprintf(stderr, "a call that must not wait is on a thread that "
			"does not know\n");
		abort();
	}
	if ((atomic_load(&f.hold[which]) || delay) && op->nonblock)
		return -EAGAIN;
	atomic_fetch_add(&f.calls[which], 1);
	if (is_to_keep(which) && vfs_op_give(op)) {
		mutex_lock(&hold_lock);
		f.kept[f.nkept++] = op;
		mutex_unlock(&hold_lock);
		return VFS_PENDING;
	}
	if (delay)		/* as a slow disk */
		pause_on_purpose(delay);
	if (atomic_load(&f.hold[which]))
		wait_held(which);
	if (err == 0 && op->nonblock && atomic_load(&f.blocks[which]))
		err = EAGAIN;
	if (err == 0)
		err = atomic_exchange(&f.once[which], 0);
	if (err == 0)
		err = storm_error();
	return -err;
}

void fault_keep(enum fault_op op, unsigned n)
{
	atomic_store(&f.keep[op], n);
}

unsigned fault_keeps(void)
{
	return atomic_load(&f.nkept);
}

static bool fault_cancel(struct vfs_op *op)
{
	bool found = false;

	mutex_lock(&hold_lock);
	for (unsigned i = 0; i < f.nkept && !found; i++)
		if (f.kept[i] == op) {
			f.kept[i] = f.kept[--f.nkept];
			found = true;
		}
	mutex_unlock(&hold_lock);
	return found;
}

void fault_set(enum fault_op op, int err)
{
	atomic_store(&f.err[op], err);
}

void fault_once(enum fault_op op, int err)
{
	atomic_store(&f.once[op], err);
}

void fault_read(uint32_t max)
{
	atomic_store(&f.read_max, max);
}

void fault_tear(uint32_t bytes)
{
	atomic_store(&f.tear, (int)bytes);
}

void fault_write_back(void)
{
	atomic_store(&f.write_back, true);
}

void fault_delay(enum fault_op op, unsigned us)
{
	atomic_store(&f.delay[op], us);
}

void fault_blocks(enum fault_op op, bool blocks)
{
	atomic_store(&f.blocks[op], blocks);
}

void fault_write(uint32_t max, unsigned n, int err)
{
	atomic_store(&f.write_max, max);
	atomic_store(&f.write_err, err);
	atomic_store(&f.write_left, n);
}

void fault_bump_verf(void)
{
	atomic_store(&f.bump, true);
}

unsigned fault_calls(enum fault_op op)
{
	return atomic_load(&f.calls[op]);
}

void fault_bare_readdir(bool bare)
{
	atomic_store(&f.bare, bare);
}

void fault_lengthen(unsigned bytes)
{
	atomic_store(&f.length, bytes);
}

static void never(bool what)
{
	if (what)
		abort();
}

static void check_name(struct vfs_name name)
{
	never(vfs_name_check(name.s, name.len) < 0);
	never(name.len <= 2 && memcmp(name.s, "..", name.len) == 0);
}

static void check_owner(const struct vfs_op *op,
			const struct vfs_setattr *attr)
{
	never(op->cred->uid != 0 &&
	      attr->set & (VFS_SET_UID | VFS_SET_GID));
}

bool fault_on_posix(void)
{
	return base == &posix_vfs_ops;
}

static int fault_mount(const struct vfs_config *config, struct vfs_fs **out)
{
	struct posix_options o = { .async = true };	/* faster */
	struct vfs_config c = *config;
	char dir[4096];
	int err;

	if (fault_on_posix()) {
		snprintf(dir, sizeof(dir), "%s/XXXXXX", getenv(POSIX_DIR));
		if (!mkdtemp(dir) || chmod(dir, 0755) < 0)
			return -errno;
		c.path = dir;
		o.table = getenv("GANNET_TEST_POSIX_TABLE");
		c.options = &o;
	}
	if (base == module_vfs()) {
		err = module_vfs_dir(base, &c, dir);
		if (err < 0)
			return err;
	}
	err = base->mount(&c, out);
	if (err == 0)
		(*out)->ops = &fault_vfs_ops;
	return err;
}

static void bump(struct vfs_node *n)
{
	if (atomic_exchange(&f.bump, false))
		atomic_fetch_add(&n->fs->verf, 1);
}

void fault_committed(enum vfs_stable next, enum vfs_stable then)
{
	atomic_store(&f.committed_then, (int)then);
	atomic_store(&f.committed, (int)next);
}

#define FAULTY(name, which) \
static int fault_##name(struct vfs_op *op) \
{ \
	int err = check(op, which); \
	\
	return err ? err : base->name(op); \
}

FAULTY(open_handle, FAULT_OPEN_HANDLE)
FAULTY(getattr, FAULT_GETATTR)
FAULTY(lookup, FAULT_LOOKUP)
static int fault_readlink(struct vfs_op *op)
{
	int err = check(op, FAULT_READLINK);

	if (err || !atomic_load(&f.length))
		return err ? err : base->readlink(op);
	memset(op->readlink.text, 'x', op->readlink.size);
	return (int)op->readlink.size;
}

FAULTY(statfs, FAULT_STATFS)
FAULTY(limits, FAULT_LIMITS)

/* A backend without locks has nothing in the way. */
static int fault_lock(struct vfs_op *op)
{
	int err = check(op, FAULT_LOCK);

	return err || !base->lock ? err : base->lock(op);
}

static int fault_setattr(struct vfs_op *op)
{
	int err = check(op, FAULT_SETATTR);

	return err ? err : after(base->setattr(op));
}

static int fault_access(struct vfs_op *op)
{
	int err = check(op, FAULT_ACCESS);

	if (err == 0)
		err = base->access(op);
	/* Unrequested attributes have arbitrary values. */
	if (err == 0)
		op->access.granted |= ~op->access.want;
	return err;
}

size_t fault_read_room(void)
{
	return atomic_load(&f.read_room);
}

/* Returns the bytes of @iov. */
static size_t check_range(uint64_t off, const struct iovec *iov, int niov)
{
	size_t sum = 0;

	for (int i = 0; i < niov; i++)
		sum += iov[i].iov_len;
	never(off > INT64_MAX || sum > INT64_MAX - off);
	return sum;
}

/* Runs @fn on at most the first @max bytes at @iov, a member of @op. */
static int on_part(vfs_op_fn *fn, struct vfs_op *op, const struct iovec **iov,
		   int *niov, size_t max)
{
	const struct iovec *all = *iov;
	struct iovec one = { all->iov_base, MIN(max, all->iov_len) };
	int nall = *niov, ret;

	*iov = &one;
	*niov = 1;
	ret = fn(op);
	*iov = all;
	*niov = nall;
	return ret;
}

static int read_part(struct vfs_op *op, uint32_t max)
{
	return on_part(base->read, op, &op->read.iov, &op->read.niov, max);
}

static int write_part(struct vfs_op *op, uint32_t max)
{
	return on_part(base->write, op, &op->write.iov, &op->write.niov, max);
}

/* Returns the limit of a read of @len bytes; 0: all. */
static uint32_t read_limit(size_t len)
{
	uint32_t max = atomic_load(&f.read_max);
	int cut = struck();

	if (cut >= 0)
		max = (uint32_t)(len / 16 * (unsigned)cut + 1);
	return max < len ? max : 0;
}

static int fault_read_op(struct vfs_op *op)
{
	int err = check(op, FAULT_READ);
	const struct vfs_read *r = &op->read;
	uint32_t max = read_limit(r->niov ? r->iov[0].iov_len : 0);

	atomic_store(&f.read_room, check_range(r->off, r->iov, r->niov));
	if (err)
		return err;
	return max ? read_part(op, max) : base->read(op);
}

static int fault_read_pipe(struct vfs_op *op)
{
	int err = check(op, FAULT_READ);
	uint32_t max = read_limit(op->read.count);

	if (err)
		return err;
	if (max)
		op->read.count = max;
	return base->read_pipe(op);
}

/* The next sync reports the lost data, and none after it does. */
static int sync_error(struct vfs_node *n, enum vfs_stable want)
{
	if (want == VFS_UNSTABLE || !atomic_exchange(&f.write_back, false))
		return 0;
	atomic_fetch_add(&n->fs->verf, 1);
	return -EIO;
}

static int write_torn(struct vfs_op *op, uint32_t bytes)
{
	int ret = 0;

	op->write.stable = VFS_FILE_SYNC;
	if (bytes && op->write.iov->iov_len)
		ret = write_part(op, bytes);
	return ret < 0 ? ret : -EIO;
}

static int fault_write_op(struct vfs_op *op)
{
	uint32_t max = atomic_load(&f.write_max);
	unsigned left = atomic_load(&f.write_left);
	int ret, err, torn, tear;

	/* Before a fault is used up: real files can ask for a worker. */
	if (op->nonblock && fault_on_posix())
		return -EAGAIN;
	err = check(op, FAULT_WRITE);
	check_range(op->write.off, op->write.iov, op->write.niov);
	bump(op->node);
	if (err)
		return err;
	if (left && atomic_fetch_sub(&f.write_left, 1) == 1)
		return -atomic_load(&f.write_err);
	tear = atomic_exchange(&f.tear, -1);
	if (tear >= 0)
		return write_torn(op, (uint32_t)tear);
	err = sync_error(op->node, op->write.stable);
	if (err)
		return err;
	torn = struck();
	if (torn >= 0)
		max = (uint32_t)(op->write.iov->iov_len / 16 *
				 (unsigned)torn + 1);
	ret = max ? write_part(op, max) : base->write(op);
	if (torn >= 8 && ret >= 0)
		return -EIO;
	if (atomic_load(&f.committed) >= 0)
		op->write.stable = (enum vfs_stable)
			atomic_exchange(&f.committed,
					atomic_load(&f.committed_then));
	return ret;
}

static int fault_commit(struct vfs_op *op)
{
	int err = check(op, FAULT_COMMIT);

	never(op->commit.off > INT64_MAX ||
	      op->commit.count > INT64_MAX - op->commit.off);
	bump(op->node);
	if (err == 0)
		err = sync_error(op->node, VFS_FILE_SYNC);
	return err ? err : base->commit(op);
}

static int fault_create(struct vfs_op *op)
{
	int err = check(op, FAULT_CREATE);

	check_name(op->name);
	if (op->create->how != VFS_CREATE_EXCLUSIVE)
		check_owner(op, &op->create->attr);
	return err ? err : base->create(op);
}

static int fault_make(struct vfs_op *op)
{
	int err = check(op, FAULT_MAKE);

	check_name(op->name);
	check_owner(op, &op->make->attr);
	never(op->make->type == VFS_LNK &&
	      vfs_target_check(op->make->target, op->make->target_len) < 0);
	return err ? err : base->make(op);
}

static int fault_remove(struct vfs_op *op)
{
	int err = check(op, FAULT_REMOVE);

	check_name(op->name);
	return err ? err : after(base->remove(op));
}

static int fault_rename(struct vfs_op *op)
{
	int err = check(op, FAULT_RENAME);

	check_name(op->name);
	check_name(op->to.name);
	return err ? err : after(base->rename(op));
}

static int fault_link(struct vfs_op *op)
{
	int err = check(op, FAULT_LINK);

	check_name(op->to.name);
	return err ? err : after(base->link(op));
}

struct bare {
	vfs_emit_fn	*emit;
	void		*arg;
};

static bool emit_bare(void *arg, const struct vfs_dirent *d)
{
	unsigned length = atomic_load(&f.length);
	struct bare *b = arg;
	struct vfs_dirent other = *d;
	char name[4096];

	if (atomic_load(&f.bare))
		other.has_attr = other.has_handle = false;
	if (length && d->name.len > 4 && memcmp(d->name.s, "long", 4) == 0) {
		memset(name, 'x', sizeof(name));
		other.name = (struct vfs_name){ name, length };
	}
	return b->emit(b->arg, &other);
}

static int fault_readdir(struct vfs_op *op)
{
	struct bare b = { op->readdir.emit, op->readdir.arg };
	int err = check(op, FAULT_READDIR);

	if (err)
		return err;
	if (atomic_load(&f.bare) || atomic_load(&f.length)) {
		op->readdir.emit = emit_bare;
		op->readdir.arg = &b;
	}
	return base->readdir(op);
}

void fault_init(void)
{
	memset(&f, 0, sizeof(f));
	atomic_store(&f.committed, -1);
	atomic_store(&f.tear, -1);
	base = module_vfs();
	if (!base)
		base = getenv(POSIX_DIR) ? &posix_vfs_ops : &mem_vfs_ops;
	fault_vfs_ops = *base;
	fault_vfs_ops.name = "fault";
	fault_vfs_ops.mount = fault_mount;
	fault_vfs_ops.open_handle = fault_open_handle;
	fault_vfs_ops.getattr = fault_getattr;
	fault_vfs_ops.setattr = fault_setattr;
	fault_vfs_ops.access = fault_access;
	fault_vfs_ops.lookup = fault_lookup;
	fault_vfs_ops.readlink = fault_readlink;
	fault_vfs_ops.read = fault_read_op;
	if (base->read_pipe)
		fault_vfs_ops.read_pipe = fault_read_pipe;
	fault_vfs_ops.write = fault_write_op;
	fault_vfs_ops.commit = fault_commit;
	fault_vfs_ops.create = fault_create;
	fault_vfs_ops.make = fault_make;
	fault_vfs_ops.remove = fault_remove;
	fault_vfs_ops.rename = fault_rename;
	fault_vfs_ops.link = fault_link;
	fault_vfs_ops.readdir = fault_readdir;
	fault_vfs_ops.statfs = fault_statfs;
	fault_vfs_ops.limits = fault_limits;
	fault_vfs_ops.lock = fault_lock;
	fault_vfs_ops.cancel = fault_cancel;
	late_wrap(&fault_vfs_ops);
}
