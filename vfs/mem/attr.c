/* SPDX-License-Identifier: BSD-2-Clause */
/* Attributes of a node, its permissions, and its times. */
#include "vfs/mem/mem.h"

#define NS	1000000000ll
/* Times further away than this are kept as this (about the year 2262). */
#define MAX_SEC	(INT64_MAX / NS - 1)

static struct timespec to_timespec(int64_t ns)
{
	struct timespec ts = { ns / NS, ns % NS };

	if (ts.tv_nsec < 0) {
		ts.tv_nsec += NS;
		ts.tv_sec--;
	}
	return ts;
}

static int64_t from_timespec(struct timespec ts)
{
	if (ts.tv_sec > MAX_SEC)
		ts.tv_sec = MAX_SEC;
	if (ts.tv_sec < -MAX_SEC)
		ts.tv_sec = -MAX_SEC;
	return ts.tv_sec * NS + ts.tv_nsec;
}

int64_t mem_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return from_timespec(ts);
}

void mem_touch_ctime(struct mem_node *n)
{
	n->ctime = MAX(mem_now(), n->ctime + 1);
}

void mem_touch_mtime(struct mem_node *n)
{
	mem_touch_ctime(n);
	n->mtime = n->ctime;
}

static bool in_group(const struct vfs_cred *cred, uint32_t gid)
{
	if (cred->gid == gid)
		return true;
	for (uint32_t i = 0; i < cred->ngids; i++)
		if (cred->gids[i] == gid)
			return true;
	return false;
}

int mem_permit(const struct vfs_cred *cred, const struct mem_node *n,
	       uint32_t want)
{
	uint32_t have = n->mode;

	if (cred->uid == 0) {
		have = MEM_R | MEM_W;
		if (n->type == VFS_DIR || n->mode & 0111)
			have |= MEM_X;
	} else if (cred->uid == n->uid) {
		have >>= 6;
	} else if (in_group(cred, n->gid)) {
		have >>= 3;
	}
	return (have & want) == want ? 0 : -EACCES;
}

int mem_permit_io(const struct vfs_cred *cred, const struct mem_node *n,
		  uint32_t want)
{
	return cred->uid == n->uid ? 0 : mem_permit(cred, n, want);
}

int mem_permit_unlink(const struct vfs_cred *cred, const struct mem_node *dir,
		      const struct mem_node *child)
{
	int err = mem_permit(cred, dir, MEM_W | MEM_X);

	if (err < 0)
		return err;
	if (dir->mode & 01000 && cred->uid != 0 && cred->uid != dir->uid &&
	    cred->uid != child->uid)
		return -EPERM;
	return 0;
}

static uint64_t used(const struct mem_node *n)
{
	if (n->type == VFS_REG)
		return n->data.npages * MEM_PAGE;
	if (n->type == VFS_DIR)
		return n->dir.cap * sizeof(struct mem_order) +
		       n->dir.nbuckets * sizeof(struct mem_entry *);
	return 0;
}

void mem_attr_fill(const struct mem_node *n, struct vfs_attr *attr)
{
	attr->type = n->type;
	attr->mode = n->mode;
	attr->nlink = atomic_load_explicit(&n->nlink, memory_order_relaxed);
	attr->uid = n->uid;
	attr->gid = n->gid;
	attr->size = n->type == VFS_DIR ? used(n) : n->size;
	attr->used = used(n);
	attr->rdev_major = n->rdev_major;
	attr->rdev_minor = n->rdev_minor;
	attr->fileid = n->slot + 1;
	attr->atime = to_timespec(atomic_load_explicit(&n->atime,
						memory_order_relaxed));
	attr->mtime = to_timespec(n->mtime);
	attr->ctime = to_timespec(n->ctime);
}

void mem_wcc_before(const struct mem_node *n, struct vfs_wcc *wcc)
{
	if (!wcc)
		return;
	wcc->has_before = true;
	wcc->before_size = n->type == VFS_DIR ? used(n) : n->size;
	wcc->before_mtime = to_timespec(n->mtime);
	wcc->before_ctime = to_timespec(n->ctime);
}

void mem_wcc_after(const struct mem_node *n, struct vfs_wcc *wcc)
{
	if (!wcc)
		return;
	wcc->has_after = true;
	mem_attr_fill(n, &wcc->after);
}

int mem_attr_get(const struct vfs_op *op, struct mem_node *n,
		 struct vfs_attr *attr)
{
	int err = mem_rdlock(op, n);

	if (err < 0)
		return err;
	mem_attr_fill(n, attr);
	mem_unlock(n);
	return 0;
}

int mem_getattr(struct vfs_op *op)
{
	return mem_attr_get(op, mem_node(op->node), op->attr);
}

/* As READ and WRITE will decide: RFC 1813 section 3.3.4. */
static uint32_t access_needs(enum vfs_type type, uint32_t bit)
{
	switch (bit) {
	case VFS_ACCESS_READ:
		return MEM_R;
	case VFS_ACCESS_LOOKUP:
		return type == VFS_DIR ? MEM_X : 0;
	case VFS_ACCESS_MODIFY:
	case VFS_ACCESS_EXTEND:
		return type == VFS_DIR ? MEM_W | MEM_X : MEM_W;
	case VFS_ACCESS_DELETE:
		return type == VFS_DIR ? MEM_W | MEM_X : 0;
	case VFS_ACCESS_EXECUTE:
		return type == VFS_DIR ? 0 : MEM_X;
	default:
		return 0;
	}
}

int mem_access(struct vfs_op *op)
{
	struct mem_node *n = mem_node(op->node);
	int err = mem_rdlock(op, n);

	if (err < 0)
		return err;
	op->access.granted = 0;
	for (uint32_t bit = 1; bit <= VFS_ACCESS_EXECUTE; bit <<= 1) {
		uint32_t needs = access_needs(n->type, op->access.want & bit);

		if (needs && mem_permit(op->cred, n, needs) == 0)
			op->access.granted |= bit;
	}
	if (op->attr)
		mem_attr_fill(n, op->attr);
	mem_unlock(n);
	return 0;
}

void mem_clear_set_id(const struct vfs_cred *cred, struct mem_node *n)
{
	if (cred->uid != 0)
		n->mode &= n->mode & 010 ? ~06000u : ~04000u;
}

static int resize_node(struct mem_node *n, uint64_t size)
{
	if (size > MEM_MAX_FILE)
		return -EFBIG;
	if (size < n->size)
		mem_data_truncate(mem_fs(n), &n->data, size);
	n->size = size;
	return 0;
}

/* Checks that @cred may set all attributes in @set. */
static int may_set(const struct vfs_cred *cred, const struct mem_node *n,
		   const struct vfs_setattr *set)
{
	bool root = cred->uid == 0;
	bool owner = root || cred->uid == n->uid;

	if (set->set & VFS_SET_UID && !root &&
	    !(owner && set->uid == n->uid))
		return -EPERM;
	if (set->set & VFS_SET_GID && !root &&
	    !(owner && (set->gid == n->gid || in_group(cred, set->gid))))
		return -EPERM;
	if (set->set & (VFS_SET_MODE | VFS_SET_ATIME | VFS_SET_MTIME) &&
	    !owner)
		return -EPERM;
	if (set->set & (VFS_SET_ATIME_NOW | VFS_SET_MTIME_NOW) && !owner &&
	    mem_permit(cred, n, MEM_W) < 0)
		return -EACCES;
	if (set->set & VFS_SET_SIZE) {
		if (n->type == VFS_DIR)
			return -EISDIR;
		if (n->type != VFS_REG)
			return -EINVAL;
		return mem_permit_io(cred, n, MEM_W);
	}
	return 0;
}

static void set_times(struct mem_node *n, const struct vfs_setattr *set,
		      int64_t now)
{
	int64_t atime = now;

	if (set->set & VFS_SET_ATIME)
		atime = from_timespec(set->atime);
	if (set->set & (VFS_SET_ATIME | VFS_SET_ATIME_NOW))
		atomic_store_explicit(&n->atime, atime, memory_order_relaxed);
	if (set->set & VFS_SET_MTIME)
		n->mtime = from_timespec(set->mtime);
	else if (set->set & VFS_SET_MTIME_NOW)
		n->mtime = now;
}

static void set_owner_mode(const struct vfs_cred *cred, struct mem_node *n,
			   const struct vfs_setattr *set)
{
	uint32_t mode = set->set & VFS_SET_MODE ? set->mode & 07777 : n->mode;

	if (set->set & VFS_SET_UID)
		n->uid = set->uid;
	if (set->set & VFS_SET_GID)
		n->gid = set->gid;
	/* A set-id program must not run as another user after a change. */
	if (set->set & (VFS_SET_UID | VFS_SET_GID) && n->type != VFS_DIR)
		mode &= ~06000u;
	if (set->set & VFS_SET_MODE && cred->uid != 0 &&
	    !in_group(cred, n->gid))
		mode &= ~02000u;
	n->mode = mode;
}

int mem_setattr(struct vfs_op *op)
{
	struct mem_node *n = mem_node(op->node);
	const struct vfs_setattr *set = op->set;
	int err = mem_wrlock_op(op, n);

	if (err < 0)
		return err;
	if (op->nonblock && set->set & VFS_SET_SIZE && mem_is_long(n)) {
		mem_unlock(n);
		return -EAGAIN;
	}
	mem_wcc_before(n, op->wcc);
	if (set->guarded && from_timespec(set->guard) != n->ctime)
		err = -EDOM;
	if (err == 0)
		err = may_set(op->cred, n, set);
	if (err == 0 && set->set & VFS_SET_SIZE)
		err = resize_node(n, set->size);
	if (err == 0 && set->set) {
		if (set->set & VFS_SET_SIZE) {
			mem_clear_set_id(op->cred, n);
			mem_touch_mtime(n);
		} else {
			mem_touch_ctime(n);
		}
		set_owner_mode(op->cred, n, set);
		set_times(n, set, n->ctime);
	}
	mem_wcc_after(n, op->wcc);
	mem_unlock(n);
	return err;
}

void mem_attr_init(struct mem_node *n, const struct mem_node *dir,
		   const struct vfs_cred *cred, const struct vfs_setattr *set)
{
	struct vfs_setattr given = *set;

	n->uid = cred->uid;
	n->gid = dir->mode & 02000 ? dir->gid : cred->gid;
	/* Some clients send the ids that they expect: only root chooses. */
	if (cred->uid != 0)
		given.set &= ~(uint32_t)(VFS_SET_UID | VFS_SET_GID);
	if (given.set & VFS_SET_UID)
		n->uid = given.uid;
	if (given.set & VFS_SET_GID)
		n->gid = given.gid;
	given.set &= ~(uint32_t)(VFS_SET_UID | VFS_SET_GID);
	if (!(given.set & VFS_SET_MODE))
		given.mode = 0;
	given.set |= VFS_SET_MODE;
	set_owner_mode(cred, n, &given);
	if (n->type == VFS_DIR && dir->mode & 02000)
		n->mode |= 02000;
	n->ctime = mem_now();
	n->mtime = n->ctime;
	atomic_store_explicit(&n->atime, n->ctime, memory_order_relaxed);
	set_times(n, &given, n->ctime);
}
