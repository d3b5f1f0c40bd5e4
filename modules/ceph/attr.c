/* SPDX-License-Identifier: BSD-2-Clause */
/* attr - attributes, access checks, and the limits and usage of the file
 * system. */
#include "modules/ceph/ceph.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>

#define SET_OWNER	(VFS_SET_UID | VFS_SET_GID)
#define SET_GIVEN	(VFS_SET_ATIME | VFS_SET_MTIME)
#define SET_NOW		(VFS_SET_ATIME_NOW | VFS_SET_MTIME_NOW)
/* CephFS keeps no count of inodes that are free. */
#define FILES_FREE	((uint64_t)1 << 40)

int cfs_getattr(struct vfs_op *op)
{
	struct ceph_statx sx;
	struct cfs_call c;
	int err = cfs_begin_stat(&c, op, &sx);

	if (err < 0)
		return err;
	cfs_attr(&sx, op->attr);
	return cfs_end(&c, 0);
}

/* As READ and WRITE will decide: RFC 1813 section 3.3.4. */
static int access_wants(enum vfs_type type, uint32_t bit)
{
	bool is_dir = type == VFS_DIR;

	switch (bit) {
	case VFS_ACCESS_READ:
		return CFS_R;
	case VFS_ACCESS_LOOKUP:
		return is_dir ? CFS_X : 0;
	case VFS_ACCESS_MODIFY:
	case VFS_ACCESS_EXTEND:
		return is_dir ? CFS_W | CFS_X : CFS_W;
	case VFS_ACCESS_DELETE:
		return is_dir ? CFS_W | CFS_X : 0;
	case VFS_ACCESS_EXECUTE:
		return is_dir ? 0 : CFS_X;
	default:
		return 0;
	}
}

int cfs_access(struct vfs_op *op)
{
	struct ceph_statx sx;
	struct cfs_perm p;
	struct cfs_call c;
	int err = cfs_begin_stat(&c, op, &sx);

	if (err < 0)
		return err;
	err = cfs_perm_load(&c, op->cred, &sx, &p);
	if (err == 0) {
		op->access.granted = 0;
		for (uint32_t bit = 1; bit <= VFS_ACCESS_EXECUTE; bit <<= 1) {
			int want = access_wants(c.node->type,
						op->access.want & bit);

			if (cfs_is_fixed(c.node) && want & CFS_W)
				continue;
			if (want && cfs_perm_has(&p, want))
				op->access.granted |= bit;
		}
		if (op->attr)
			cfs_attr(&sx, op->attr);
	}
	return cfs_end(&c, err);
}

/* ---- SETATTR */

/* 0: @op's caller is allowed to set all of @set. */
static int may_set_all(struct cfs_call *c, const struct vfs_op *op,
		       const struct ceph_statx *sx,
		       const struct vfs_setattr *set)
{
	const struct vfs_cred *cred = op->cred;
	bool root = cred->uid == 0;
	bool owner = root || cred->uid == sx->stx_uid;
	struct cfs_perm p;
	int err;

	if (set->set & VFS_SET_UID && !root &&
	    !(owner && set->uid == sx->stx_uid))
		return -EPERM;
	if (set->set & VFS_SET_GID && !root &&
	    !(owner && (set->gid == sx->stx_gid ||
			cfs_in_group(cred, set->gid))))
		return -EPERM;
	if (set->set & (VFS_SET_MODE | SET_GIVEN) && !owner)
		return -EPERM;
	if (set->set & SET_NOW && !owner) {
		err = cfs_perm_load(c, cred, sx, &p);
		if (err < 0)
			return err;
		if (!cfs_perm_has(&p, CFS_W))
			return -EACCES;
	}
	if (!(set->set & VFS_SET_SIZE))
		return 0;
	if (!S_ISREG(sx->stx_mode))
		return S_ISDIR(sx->stx_mode) ? -EISDIR : -EINVAL;
	if (set->size > INT64_MAX)
		return -EFBIG;
	return cfs_check_io(c, cred, sx, CFS_W);
}

/* The mode after the change, without set-id bits that would make a program run
 * as somebody else. */
static uint32_t changed_mode(const struct vfs_cred *cred,
			 const struct ceph_statx *sx,
			 const struct vfs_setattr *set)
{
	uint32_t mode = sx->stx_mode & 07777;
	uint32_t gid = set->set & VFS_SET_GID ? set->gid : sx->stx_gid;

	if (set->set & VFS_SET_SIZE && cred->uid != 0)
		mode &= mode & 010 ? ~06000u : ~04000u;
	if (set->set & VFS_SET_MODE)
		mode = set->mode & 07777;
	if (set->set & SET_OWNER && !S_ISDIR(sx->stx_mode))
		mode &= ~06000u;
	if (set->set & VFS_SET_MODE && cred->uid != 0 &&
	    !cfs_in_group(cred, gid))
		mode &= ~02000u;
	return mode;
}

static bool is_time(struct timespec t)
{
	return t.tv_nsec >= 0 && t.tv_nsec < 1000000000;
}

/* Fills in the times, and their bits of @mask.  The library knows no "now". */
static int put_times(const struct vfs_setattr *set, struct ceph_statx *to,
		     int *mask)
{
	struct timespec now;

	if ((set->set & VFS_SET_ATIME && !is_time(set->atime)) ||
	    (set->set & VFS_SET_MTIME && !is_time(set->mtime)))
		return -EINVAL;
	clock_gettime(CLOCK_REALTIME, &now);
	if (set->set & (VFS_SET_ATIME | VFS_SET_ATIME_NOW)) {
		to->stx_atime = set->set & VFS_SET_ATIME ? set->atime : now;
		*mask |= CEPH_SETATTR_ATIME;
	}
	if (set->set & (VFS_SET_MTIME | VFS_SET_MTIME_NOW)) {
		to->stx_mtime = set->set & VFS_SET_MTIME ? set->mtime : now;
		*mask |= CEPH_SETATTR_MTIME;
	}
	return 0;
}

/* All of @set in one request: it happens whole or not at all. */
static int set_at_once(struct cfs_call *c, struct Inode *in,
		       const struct vfs_cred *cred, const struct ceph_statx *sx,
		       const struct vfs_setattr *set)
{
	uint32_t mode = changed_mode(cred, sx, set);
	struct ceph_statx to = { .stx_mode = (uint16_t)mode,
				 .stx_uid = set->uid, .stx_gid = set->gid,
				 .stx_size = set->size };
	int mask = 0, err;

	/* -1 is no owner. */
	if ((set->set & VFS_SET_UID && set->uid == UINT32_MAX) ||
	    (set->set & VFS_SET_GID && set->gid == UINT32_MAX))
		return -EINVAL;
	if (mode != (sx->stx_mode & 07777u) && !S_ISLNK(sx->stx_mode))
		mask |= CEPH_SETATTR_MODE;
	if (set->set & VFS_SET_UID)
		mask |= CEPH_SETATTR_UID;
	if (set->set & VFS_SET_GID)
		mask |= CEPH_SETATTR_GID;
	if (set->set & VFS_SET_SIZE)
		mask |= CEPH_SETATTR_SIZE;
	err = put_times(set, &to, &mask);
	if (err < 0 || (!mask && !set->set))
		return err;
	/* Even a mode that is there already makes a new ctime. */
	if (!mask && !S_ISLNK(sx->stx_mode))
		mask = CEPH_SETATTR_MODE;
	return mask ? ceph_ll_setattr(c->cm, in, &to, mask, c->root) : 0;
}

static bool fits_guard(const struct vfs_setattr *set,
		       const struct ceph_statx *sx)
{
	/* nfstime3 has 32 bits of seconds. */
	return !set->guarded ||
	       ((uint32_t)set->guard.tv_sec == (uint32_t)sx->stx_ctime.tv_sec &&
		set->guard.tv_nsec == sx->stx_ctime.tv_nsec);
}

/*
 * The metadata server cuts a file's objects itself, and skips missing ones.  If
 * the library sends data to such an object after that, as when an OSD restarts,
 * the object is longer than the file (Ceph 16.2).  The data is hidden until the
 * file grows and is cut again behind it: then clients read it.  So the
 * library's data is written first.  If that fails, the new verifier tells
 * clients.
 */
static void write_before_cut(struct cfs_call *c)
{
	(void)cfs_sync_data(c);
}

/* The caller has the node's turn. */
static int check_and_set(struct cfs_call *c, struct vfs_op *op)
{
	const struct vfs_setattr *set = op->set;
	struct ceph_statx sx;
	int err = cfs_stat(c, &sx);

	if (err == 0) {
		cfs_wcc_before(&sx, op->wcc);
		if (!fits_guard(set, &sx))
			err = -EDOM;
		else if (cfs_is_fixed(c->node) && set->set)
			err = -EROFS;
	}
	if (err == 0)
		err = may_set_all(c, op, &sx, set);
	if (err == 0 && set->set & VFS_SET_SIZE && set->size < sx.stx_size)
		write_before_cut(c);
	return err < 0 ? err : set_at_once(c, c->in, op->cred, &sx, set);
}

/* Before a file is cut, writes most of its data while WRITEs and other SETATTRs
 * go on: an OSD can be away for long. */
static void write_ahead(struct cfs_call *c, const struct vfs_setattr *set)
{
	struct ceph_statx sx;

	if (set->set & VFS_SET_SIZE && c->node->type == VFS_REG &&
	    !cfs_is_fixed(c->node) && cfs_stat(c, &sx) == 0 &&
	    set->size < sx.stx_size)
		write_before_cut(c);
}

int cfs_setattr(struct vfs_op *op)
{
	bool sizes = op->set->set & VFS_SET_SIZE;
	struct cfs_call c;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	write_ahead(&c, op->set);
	/* No other SETATTR of this server comes between a guard's check and
	 * the change. */
	err = cfs_turn_take(c.node);
	if (err < 0)
		return cfs_end(&c, err);
	err = sizes ? cfs_size_take(c.node, true) : 0;
	if (err == 0) {
		err = check_and_set(&c, op);
		if (sizes)
			cfs_size_give(c.node);
	}
	cfs_turn_give(c.node);
	if (err == 0 && op->set->set)
		err = cfs_sync_change(&c, c.in);
	return cfs_end(&c, cfs_after(&c, op->wcc, err));
}

/* The caller owns the file; only root can give it to another user.  The mode
 * was set when the file was created, except the set-id bits. */
int cfs_set_new(struct cfs_call *c, const struct vfs_op *op, struct Inode *in,
		struct ceph_statx *sx, const struct vfs_setattr *given)
{
	struct vfs_setattr set = *given;
	uint32_t wanted = set.mode & 06000;
	int err;

	set.guarded = false;
	if (op->cred->uid != 0) {
		set.set &= ~(uint32_t)VFS_SET_UID;
		if (set.set & VFS_SET_GID && !cfs_in_group(op->cred, set.gid))
			set.set &= ~(uint32_t)VFS_SET_GID;
	}
	if (set.set & VFS_SET_UID && set.uid == sx->stx_uid)
		set.set &= ~(uint32_t)VFS_SET_UID;
	if (set.set & VFS_SET_GID && set.gid == sx->stx_gid)
		set.set &= ~(uint32_t)VFS_SET_GID;
	if (!S_ISREG(sx->stx_mode) || set.size == 0)
		set.set &= ~(uint32_t)VFS_SET_SIZE;
	if (set.set & VFS_SET_SIZE && set.size > INT64_MAX)
		return -EFBIG;
	/* A default ACL can have cleared some of the other bits. */
	set.mode = (sx->stx_mode & 07777) | wanted;
	if (!(wanted & ~(uint32_t)sx->stx_mode) || S_ISLNK(sx->stx_mode))
		set.set &= ~(uint32_t)VFS_SET_MODE;
	if (!set.set)
		return 0;
	err = set_at_once(c, in, op->cred, sx, &set);
	if (err == 0)
		err = cfs_sync_change(c, in);
	if (err == 0)
		err = ceph_ll_getattr(c->cm, in, sx, CFS_WANT, 0, c->root);
	return err;
}

/* ---- the file system */

static int tell_attr(struct cfs_call *c, const struct vfs_op *op)
{
	struct ceph_statx sx;
	int err = op->attr ? cfs_stat(c, &sx) : 0;

	if (err == 0 && op->attr)
		cfs_attr(&sx, op->attr);
	return err;
}

int cfs_statfs(struct vfs_op *op)
{
	struct vfs_statfs *to = op->statfs;
	struct statvfs st;
	struct cfs_call c;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	/* This includes the quota of the exported directory. */
	err = ceph_ll_statfs(c.cm, c.in, &st);
	if (err == 0)
		err = tell_attr(&c, op);
	if (err == 0)
		*to = (struct vfs_statfs){
			.tbytes = st.f_blocks * st.f_frsize,
			.fbytes = st.f_bfree * st.f_frsize,
			.abytes = st.f_bavail * st.f_frsize,
			.tfiles = st.f_files + FILES_FREE,
			.ffiles = FILES_FREE,
			.afiles = FILES_FREE,
		};
	return cfs_end(&c, err);
}

int cfs_limits(struct vfs_op *op)
{
	struct cfs_call c;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	*op->limits = (struct vfs_limits){
		/* The file system's own limit can change at any time; the
		 * library refuses larger files. */
		.max_file_size = INT64_MAX,
		.time_delta = { 0, 1 },
		.name_max = VFS_NAME_MAX,
		.link_max = UINT32_MAX,
		.no_trunc = true,
		.case_preserving = true,
		.symlinks = true,
		.hard_links = true,
		.homogeneous = true,
		.can_set_time = true,
		.chown_restricted = true,
	};
	return cfs_end(&c, tell_attr(&c, op));
}
