/* SPDX-License-Identifier: BSD-2-Clause */
/* The table from errno to nfsstat3: RFC 1813 sections 2.6 and 3.3. */
#include "nfs3/proc.h"

#include <errno.h>

#include "lib/stats.h"
#include "tests/unit/runner.h"

/* The ERRORS of section 3.3, each with the errno that means it. */
#define COMMON	{ ESTALE, NFS3ERR_STALE }, \
		{ EBADMSG, NFS3ERR_BADHANDLE }, \
		{ ENOTRECOVERABLE, NFS3ERR_SERVERFAULT }
#define MAKE	COMMON, { EIO, NFS3ERR_IO }, { EACCES, NFS3ERR_ACCES }, \
		{ EEXIST, NFS3ERR_EXIST }, { ENOTDIR, NFS3ERR_NOTDIR }, \
		{ ENOSPC, NFS3ERR_NOSPC }, { EROFS, NFS3ERR_ROFS }, \
		{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG }, \
		{ EDQUOT, NFS3ERR_DQUOT }, { EOPNOTSUPP, NFS3ERR_NOTSUPP }

static const struct { int err; enum nfsstat3 status; }
listed[NFS3_NPROC][24] = {
	[NFSPROC3_GETATTR] = { COMMON, { EIO, NFS3ERR_IO } },
	[NFSPROC3_SETATTR] = {
		COMMON, { EPERM, NFS3ERR_PERM }, { EIO, NFS3ERR_IO },
		{ EACCES, NFS3ERR_ACCES }, { EINVAL, NFS3ERR_INVAL },
		{ ENOSPC, NFS3ERR_NOSPC }, { EROFS, NFS3ERR_ROFS },
		{ EDQUOT, NFS3ERR_DQUOT }, { EDOM, NFS3ERR_NOT_SYNC },
	},
	[NFSPROC3_LOOKUP] = {
		COMMON, { EIO, NFS3ERR_IO }, { ENOENT, NFS3ERR_NOENT },
		{ EACCES, NFS3ERR_ACCES }, { ENOTDIR, NFS3ERR_NOTDIR },
		{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG },
	},
	[NFSPROC3_ACCESS] = { COMMON, { EIO, NFS3ERR_IO } },
	[NFSPROC3_READLINK] = {
		COMMON, { EIO, NFS3ERR_IO }, { EINVAL, NFS3ERR_INVAL },
		{ EACCES, NFS3ERR_ACCES }, { EOPNOTSUPP, NFS3ERR_NOTSUPP },
	},
	[NFSPROC3_READ] = {
		COMMON, { EIO, NFS3ERR_IO }, { ENXIO, NFS3ERR_NXIO },
		{ EACCES, NFS3ERR_ACCES }, { EINVAL, NFS3ERR_INVAL },
	},
	[NFSPROC3_WRITE] = {
		COMMON, { EIO, NFS3ERR_IO }, { EACCES, NFS3ERR_ACCES },
		{ EFBIG, NFS3ERR_FBIG }, { EDQUOT, NFS3ERR_DQUOT },
		{ ENOSPC, NFS3ERR_NOSPC }, { EROFS, NFS3ERR_ROFS },
		{ EINVAL, NFS3ERR_INVAL },
	},
	[NFSPROC3_CREATE] = { MAKE },
	[NFSPROC3_MKDIR] = { MAKE },
	[NFSPROC3_SYMLINK] = { MAKE },
	[NFSPROC3_MKNOD] = { MAKE, { EPROTOTYPE, NFS3ERR_BADTYPE } },
	[NFSPROC3_REMOVE] = {
		COMMON, { ENOENT, NFS3ERR_NOENT }, { EIO, NFS3ERR_IO },
		{ EACCES, NFS3ERR_ACCES }, { ENOTDIR, NFS3ERR_NOTDIR },
		{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG },
		{ EROFS, NFS3ERR_ROFS },
	},
	[NFSPROC3_RMDIR] = {
		COMMON, { ENOENT, NFS3ERR_NOENT }, { EIO, NFS3ERR_IO },
		{ EACCES, NFS3ERR_ACCES }, { EINVAL, NFS3ERR_INVAL },
		{ EEXIST, NFS3ERR_EXIST }, { ENOTDIR, NFS3ERR_NOTDIR },
		{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG },
		{ EROFS, NFS3ERR_ROFS }, { ENOTEMPTY, NFS3ERR_NOTEMPTY },
		{ EOPNOTSUPP, NFS3ERR_NOTSUPP },
	},
	[NFSPROC3_RENAME] = {
		COMMON, { ENOENT, NFS3ERR_NOENT }, { EIO, NFS3ERR_IO },
		{ EACCES, NFS3ERR_ACCES }, { EEXIST, NFS3ERR_EXIST },
		{ EXDEV, NFS3ERR_XDEV }, { ENOTDIR, NFS3ERR_NOTDIR },
		{ EISDIR, NFS3ERR_ISDIR }, { EINVAL, NFS3ERR_INVAL },
		{ ENOSPC, NFS3ERR_NOSPC }, { EROFS, NFS3ERR_ROFS },
		{ EMLINK, NFS3ERR_MLINK },
		{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG },
		{ ENOTEMPTY, NFS3ERR_NOTEMPTY }, { EDQUOT, NFS3ERR_DQUOT },
		{ EOPNOTSUPP, NFS3ERR_NOTSUPP },
	},
	[NFSPROC3_LINK] = {
		COMMON, { EIO, NFS3ERR_IO }, { EACCES, NFS3ERR_ACCES },
		{ EEXIST, NFS3ERR_EXIST }, { EXDEV, NFS3ERR_XDEV },
		{ ENOTDIR, NFS3ERR_NOTDIR }, { EINVAL, NFS3ERR_INVAL },
		{ ENOSPC, NFS3ERR_NOSPC }, { EROFS, NFS3ERR_ROFS },
		{ EMLINK, NFS3ERR_MLINK },
		{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG },
		{ EDQUOT, NFS3ERR_DQUOT }, { EOPNOTSUPP, NFS3ERR_NOTSUPP },
	},
	[NFSPROC3_READDIR] = {
		COMMON, { EIO, NFS3ERR_IO }, { EACCES, NFS3ERR_ACCES },
		{ ENOTDIR, NFS3ERR_NOTDIR }, { EBADE, NFS3ERR_BAD_COOKIE },
		{ EMSGSIZE, NFS3ERR_TOOSMALL },
	},
	[NFSPROC3_READDIRPLUS] = {
		COMMON, { EIO, NFS3ERR_IO }, { EACCES, NFS3ERR_ACCES },
		{ ENOTDIR, NFS3ERR_NOTDIR }, { EBADE, NFS3ERR_BAD_COOKIE },
		{ EMSGSIZE, NFS3ERR_TOOSMALL },
		{ EOPNOTSUPP, NFS3ERR_NOTSUPP },
	},
	[NFSPROC3_FSSTAT] = { COMMON, { EIO, NFS3ERR_IO } },
	[NFSPROC3_FSINFO] = { COMMON },
	[NFSPROC3_PATHCONF] = { COMMON },
	[NFSPROC3_COMMIT] = { COMMON, { EIO, NFS3ERR_IO } },
};

TEST_LOOP(allowed_statuses_pass_unchanged, 1, NFS3_NPROC)
{
	for (size_t i = 0; listed[_i][i].err; i++) {
		enum nfsstat3 want = listed[_i][i].status;

		ck_assert_int_eq(nfs3_status(_i, -listed[_i][i].err), want);
		ck_assert(nfs3_status_allowed(_i, want));
	}
}

#define PROMISE(errno_, status_) { errno_, NFS3ERR_##status_ },

static const struct { int err; enum nfsstat3 status; } promised[] = {
	VFS_ERRORS(PROMISE)
};

TEST_LOOP(an_errno_becomes_what_the_backends_are_promised, 1, NFS3_NPROC)
{
	for (size_t i = 0; i < ARRAY_SIZE(promised); i++) {
		enum nfsstat3 got = nfs3_status(_i, -promised[i].err);

		if (nfs3_status_allowed(_i, promised[i].status))
			ck_assert_int_eq(got, promised[i].status);
		for (size_t j = 0; j < i; j++)
			ck_assert_int_ne(promised[j].err, promised[i].err);
	}
}

TEST_LOOP(no_errno_gets_a_status_that_is_not_allowed, 1, NFS3_NPROC)
{
	ck_assert_int_eq(nfs3_status(_i, 0), NFS3_OK);
	for (int err = 1; err < 200; err++) {
		enum nfsstat3 status = nfs3_status(_i, -err);

		ck_assert_int_ne(status, NFS3_OK);
		ck_assert_msg(nfs3_status_allowed(_i, status),
			      "errno %d gives %d", err, status);
	}
}

static const struct {
	enum nfs3_procnum proc;
	int err;
	enum nfsstat3 status;
} nearest[] = {
	{ NFSPROC3_READ, EISDIR, NFS3ERR_INVAL },
	{ NFSPROC3_WRITE, EISDIR, NFS3ERR_INVAL },
	{ NFSPROC3_CREATE, EISDIR, NFS3ERR_EXIST },
	{ NFSPROC3_SETATTR, EFBIG, NFS3ERR_INVAL },
	{ NFSPROC3_SETATTR, EOPNOTSUPP, NFS3ERR_INVAL },
	{ NFSPROC3_LOOKUP, EINVAL, NFS3ERR_ACCES },
	{ NFSPROC3_MKDIR, EMLINK, NFS3ERR_NOSPC },
	{ NFSPROC3_MKDIR, ENOENT, NFS3ERR_STALE },
	{ NFSPROC3_RMDIR, EBUSY, NFS3ERR_ACCES },
	{ NFSPROC3_GETATTR, EREMOTE, NFS3ERR_STALE },
	{ NFSPROC3_FSINFO, EIO, NFS3ERR_SERVERFAULT },
	{ NFSPROC3_REMOVE, ENOSPC, NFS3ERR_IO },
	{ NFSPROC3_READDIR, EOPNOTSUPP, NFS3ERR_IO },
	{ NFSPROC3_CREATE, ENOKEY, NFS3ERR_PERM },
	{ NFSPROC3_READ, ENOKEY, NFS3ERR_ACCES },
	/* Sent although not listed. */
	{ NFSPROC3_COMMIT, ENOSPC, NFS3ERR_NOSPC },
	{ NFSPROC3_COMMIT, EDQUOT, NFS3ERR_DQUOT },
	{ NFSPROC3_MKNOD, EPERM, NFS3ERR_PERM },
	{ NFSPROC3_REMOVE, EISDIR, NFS3ERR_ISDIR },
	{ NFSPROC3_GETATTR, EACCES, NFS3ERR_ACCES },
	{ NFSPROC3_PATHCONF, ETIMEDOUT, NFS3ERR_JUKEBOX },
	{ NFSPROC3_WRITE, ENOMEM, NFS3ERR_JUKEBOX },
};

TEST(other_statuses_become_the_nearest_allowed)
{
	for (size_t i = 0; i < ARRAY_SIZE(nearest); i++)
		ck_assert_int_eq(nfs3_status(nearest[i].proc, -nearest[i].err),
				 nearest[i].status);
}

TEST(failures_are_counted_by_status)
{
	uint64_t status = stats_sum_by_name("nfs3err_XDEV");

	nfs3_status_count(NFS3ERR_XDEV);
	ck_assert_uint_eq(stats_sum_by_name("nfs3err_XDEV"), status + 1);
}
