/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every status that RFC 1813 section 3.3 lists for a procedure reaches a
 * client, from a backend that fails; and with it the attributes of the call's
 * object.
 */
#include "tests/server/nfs_client.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/stats.h"
#include "lib/thread.h"
#include "rpc/rpc.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/late_vfs.h"
#include "tests/unit/runner.h"

static nfs_fh3 file, dir, lnk;
/* Did the last call bring all the attributes it has room for? */
static bool attrs;

static void setup(void)
{
	nfs_setup();
	file = nfs_make_file(top, "file", "some data");
	dir = nfs_make_dir(top, "dir");
	lnk = nfs_make_link(top, "link", "target");
}

/* The attributes of a failed reply, for each shape of reply. */
static bool has(const post_op_attr *a)
{
	return a->attributes_follow;
}

#define ATTR(type, field)	has(&(r.type##3res_u).resfail.field)
#define AFTER(type, field)	has(&(r.type##3res_u).resfail.field.after)

/* Calls @proc with the arguments that follow, and returns its status.  attrs
 * tells whether the reply of a call that failed has the attributes of @has. */
#define CALL(proc, PROC, has, ...) \
	static int call_##proc(void) \
	{ \
		PROC##3args a = { __VA_ARGS__ }; \
		PROC##3res r; \
		nfs_call(&root, proc, &a, &r); \
		attrs = (has); \
		return r.status; \
	}

CALL(getattr, GETATTR, true, .object = file)
CALL(setattr, SETATTR, AFTER(SETATTR, obj_wcc), .object = file)
CALL(lookup, LOOKUP, ATTR(LOOKUP, dir_attributes), .what = { top, "file" })
CALL(access, ACCESS, ATTR(ACCESS, obj_attributes),
     .object = file, .access = 0x3f)
CALL(readlink, READLINK, ATTR(READLINK, symlink_attributes), .symlink = lnk)
CALL(read, READ, ATTR(READ, file_attributes), .file = file, .count = 100)
CALL(write, WRITE, AFTER(WRITE, file_wcc),
     .file = file, .count = 4, .data = { 4, "abcd" })
CALL(create, CREATE, AFTER(CREATE, dir_wcc), .where = { top, "new" })
CALL(mkdir, MKDIR, AFTER(MKDIR, dir_wcc), .where = { top, "new" })
CALL(symlink, SYMLINK, AFTER(SYMLINK, dir_wcc),
     .where = { top, "new" }, .symlink.symlink_data = "to")
CALL(mknod, MKNOD, AFTER(MKNOD, dir_wcc),
     .where = { top, "new" }, .what = { .type = NF3FIFO })
CALL(remove, REMOVE, AFTER(REMOVE, dir_wcc), .object = { top, "file" })
CALL(rmdir, RMDIR, AFTER(RMDIR, dir_wcc), .object = { top, "dir" })
CALL(rename, RENAME, AFTER(RENAME, fromdir_wcc) && AFTER(RENAME, todir_wcc),
     .from = { top, "file" }, .to = { dir, "moved" })
CALL(link, LINK, ATTR(LINK, file_attributes) && AFTER(LINK, linkdir_wcc),
     .file = file, .link = { dir, "second" })
CALL(readdir, READDIR, ATTR(READDIR, dir_attributes), .dir = top, .count = 4096)
CALL(readdirplus, READDIRPLUS, ATTR(READDIRPLUS, dir_attributes),
     .dir = top, .dircount = 1000, .maxcount = 4096)
CALL(fsstat, FSSTAT, ATTR(FSSTAT, obj_attributes), .fsroot = top)
CALL(fsinfo, FSINFO, ATTR(FSINFO, obj_attributes), .fsroot = top)
CALL(pathconf, PATHCONF, ATTR(PATHCONF, obj_attributes), .object = top)
CALL(commit, COMMIT, AFTER(COMMIT, file_wcc), .file = file)

/* Any of its errors, and the one that no nfsstat3 fits. */
#define FAULT_SERVER	ENOTRECOVERABLE
#define BASIC		ESTALE, EBADMSG, FAULT_SERVER
#define MAKE		BASIC, EIO, EACCES, EEXIST, ENOTDIR, ENOSPC, EROFS, \
			ENAMETOOLONG, EDQUOT, EOPNOTSUPP

static const struct proc {
	const char	*name;
	int		 (*call)(void);
	enum fault_op	 op;
	int		 errs[24];
} procs[] = {
	{ "GETATTR", call_getattr, FAULT_GETATTR, { BASIC, EIO } },
	{ "SETATTR", call_setattr, FAULT_SETATTR,
	  { BASIC, EPERM, EIO, EACCES, EINVAL, ENOSPC, EROFS, EDQUOT,
	    EDOM } },
	{ "LOOKUP", call_lookup, FAULT_LOOKUP,
	  { BASIC, EIO, ENOENT, EACCES, ENOTDIR, ENAMETOOLONG } },
	{ "ACCESS", call_access, FAULT_ACCESS, { BASIC, EIO } },
	{ "READLINK", call_readlink, FAULT_READLINK,
	  { BASIC, EIO, EINVAL, EACCES, EOPNOTSUPP } },
	{ "READ", call_read, FAULT_READ,
	  { BASIC, EIO, ENXIO, EACCES, EINVAL } },
	{ "WRITE", call_write, FAULT_WRITE,
	  { BASIC, EIO, EACCES, EFBIG, EDQUOT, ENOSPC, EROFS, EINVAL } },
	{ "CREATE", call_create, FAULT_CREATE, { MAKE } },
	{ "MKDIR", call_mkdir, FAULT_MAKE, { MAKE } },
	{ "SYMLINK", call_symlink, FAULT_MAKE, { MAKE } },
	{ "MKNOD", call_mknod, FAULT_MAKE, { MAKE, EPROTOTYPE } },
	{ "REMOVE", call_remove, FAULT_REMOVE,
	  { BASIC, ENOENT, EIO, EACCES, ENOTDIR, ENAMETOOLONG, EROFS } },
	{ "RMDIR", call_rmdir, FAULT_REMOVE,
	  { BASIC, ENOENT, EIO, EACCES, EINVAL, EEXIST, ENOTDIR, ENAMETOOLONG,
	    EROFS, ENOTEMPTY, EOPNOTSUPP } },
	{ "RENAME", call_rename, FAULT_RENAME,
	  { BASIC, ENOENT, EIO, EACCES, EEXIST, EXDEV, ENOTDIR, EISDIR,
	    EINVAL, ENOSPC, EROFS, EMLINK, ENAMETOOLONG, ENOTEMPTY, EDQUOT,
	    EOPNOTSUPP } },
	{ "LINK", call_link, FAULT_LINK,
	  { BASIC, EIO, EACCES, EEXIST, EXDEV, ENOTDIR, EINVAL, ENOSPC, EROFS,
	    EMLINK, ENAMETOOLONG, EDQUOT, EOPNOTSUPP } },
	{ "READDIR", call_readdir, FAULT_READDIR,
	  { BASIC, EIO, EACCES, ENOTDIR, EBADE, EMSGSIZE } },
	{ "READDIRPLUS", call_readdirplus, FAULT_READDIR,
	  { BASIC, EIO, EACCES, ENOTDIR, EBADE, EMSGSIZE, EOPNOTSUPP } },
	{ "FSSTAT", call_fsstat, FAULT_STATFS, { BASIC, EIO } },
	{ "FSINFO", call_fsinfo, FAULT_LIMITS, { BASIC } },
	{ "PATHCONF", call_pathconf, FAULT_LIMITS, { BASIC } },
	{ "COMMIT", call_commit, FAULT_COMMIT, { BASIC, EIO } },
};

static const struct { int err, status; } means[] = {
	{ ESTALE, NFS3ERR_STALE },
	{ EBADMSG, NFS3ERR_BADHANDLE },
	{ FAULT_SERVER, NFS3ERR_SERVERFAULT },
	{ EPERM, NFS3ERR_PERM },
	{ ENOENT, NFS3ERR_NOENT },
	{ EIO, NFS3ERR_IO },
	{ ENXIO, NFS3ERR_NXIO },
	{ EACCES, NFS3ERR_ACCES },
	{ EEXIST, NFS3ERR_EXIST },
	{ EXDEV, NFS3ERR_XDEV },
	{ ENOTDIR, NFS3ERR_NOTDIR },
	{ EISDIR, NFS3ERR_ISDIR },
	{ EINVAL, NFS3ERR_INVAL },
	{ EFBIG, NFS3ERR_FBIG },
	{ ENOSPC, NFS3ERR_NOSPC },
	{ EROFS, NFS3ERR_ROFS },
	{ EMLINK, NFS3ERR_MLINK },
	{ ENAMETOOLONG, NFS3ERR_NAMETOOLONG },
	{ ENOTEMPTY, NFS3ERR_NOTEMPTY },
	{ EDQUOT, NFS3ERR_DQUOT },
	{ EDOM, NFS3ERR_NOT_SYNC },
	{ EBADE, NFS3ERR_BAD_COOKIE },
	{ EOPNOTSUPP, NFS3ERR_NOTSUPP },
	{ EMSGSIZE, NFS3ERR_TOOSMALL },
	{ EPROTOTYPE, NFS3ERR_BADTYPE },
	{ ETIMEDOUT, NFS3ERR_JUKEBOX },
};

static int meaning(int err)
{
	for (size_t i = 0; i < ARRAY_SIZE(means); i++)
		if (means[i].err == err)
			return means[i].status;
	ck_abort_msg("errno %d", err);
}

/* @err from @op is @status, with attributes. */
static void expect(const struct proc *p, enum fault_op op, int err, int status)
{
	int got;

	fault_set(op, err);
	got = p->call();
	fault_set(op, 0);
	ck_assert_msg(got == status, "%s: errno %d: status %d, not %d",
		      p->name, err, got, status);
	ck_assert_msg(attrs || op == FAULT_OPEN_HANDLE,
		      "%s: errno %d: no attributes", p->name, err);
}

TEST_CASE(.setup = setup, .teardown = nfs_teardown);

TEST_LOOP(every_status_listed_is_reached, 0, ARRAY_SIZE(procs))
{
	const struct proc *p = &procs[_i];

	for (size_t i = 0; p->errs[i]; i++)
		expect(p, p->op, p->errs[i], meaning(p->errs[i]));
	expect(p, p->op, ETIMEDOUT, NFS3ERR_JUKEBOX);
	/* Nothing was left behind: it works now. */
	ck_assert_int_eq(p->call(), NFS3_OK);
}

static const struct proc *counted;
static struct rpc_proc_counts *counts;	/* of @counted */

static void take_counters(const struct rpc_program *prog,
			  const struct rpc_version *version, uint32_t proc,
			  struct rpc_proc_counts *n, void *arg)
{
	if (prog->prog == NFS_PROGRAM &&
	    !strcmp(version->procs[proc].name, counted->name))
		counts = n;
}

static uint64_t failed_calls(void)
{
	struct account_sum sum;

	rpc_proc_sum(counts, &sum);
	return sum.failed;
}

TEST_LOOP(a_procedure_that_fails_is_counted_as_failed, 0, ARRAY_SIZE(procs))
{
	uint64_t errors;

	counted = &procs[_i];
	rpc_server_walk_procs(srv.server, take_counters, NULL);
	ck_assert_ptr_nonnull(counts);
	errors = failed_calls();
	expect(counted, FAULT_OPEN_HANDLE, ESTALE, NFS3ERR_STALE);
	ck_assert_uint_eq(failed_calls(), errors + 1);
	ck_assert_int_eq(counted->call(), NFS3_OK);
	ck_assert_uint_eq(failed_calls(), errors + 1);
}

#define ERRNO(err, status) err,

static const int contract[] = { VFS_ERRORS(ERRNO) };

/* Every operation can fail with every errno of vfs.h, whatever the procedure
 * makes of it. */
TEST_LOOP(no_errno_of_a_backend_leaves_a_call_without_an_error,
	  0, ARRAY_SIZE(procs))
{
	const struct proc *p = &procs[_i];

	for (size_t i = 0; i < ARRAY_SIZE(contract); i++) {
		if (contract[i] == EAGAIN)
			continue;	/* asks for a worker */
		fault_set(p->op, contract[i]);
		ck_assert_int_ne(p->call(), NFS3_OK);
		ck_assert(attrs);
	}
	fault_set(p->op, 0);
	ck_assert_int_eq(p->call(), NFS3_OK);
}

TEST_LOOP(a_handle_that_can_not_be_opened_is_stale_or_bad, 0, ARRAY_SIZE(procs))
{
	const struct proc *p = &procs[_i];

	expect(p, FAULT_OPEN_HANDLE, ESTALE, NFS3ERR_STALE);
	expect(p, FAULT_OPEN_HANDLE, EBADMSG, NFS3ERR_BADHANDLE);
	expect(p, FAULT_OPEN_HANDLE, ETIMEDOUT, NFS3ERR_JUKEBOX);
}

/* A backend that would block is asked again, on a worker.  The worker goes on
 * from there: it opens no handle a second time. */
TEST_LOOP(a_blocking_operation_runs_on_a_worker, 0, ARRAY_SIZE(procs))
{
	const struct proc *p = &procs[_i];
	uint64_t moved = stats_sum_by_name("rpc_would_block");
	unsigned opened = fault_calls(FAULT_OPEN_HANDLE);
	unsigned handles = p->op == FAULT_RENAME || p->op == FAULT_LINK ? 2 : 1;

	fault_blocks(p->op, true);
	ck_assert_int_eq(p->call(), NFS3_OK);
	fault_blocks(p->op, false);
	if (!late_is())
		ck_assert_uint_eq(stats_sum_by_name("rpc_would_block"),
				  moved + 1);
	ck_assert_uint_eq(fault_calls(FAULT_OPEN_HANDLE), opened + handles);
}

TEST_LOOP(an_error_that_comes_once_is_answered_once, 0, ARRAY_SIZE(procs))
{
	const struct proc *p = &procs[_i];

	fault_once(p->op, EIO);
	ck_assert_int_ne(p->call(), NFS3_OK);
	ck_assert_int_eq(p->call(), NFS3_OK);
}

#define LATE_US	20000

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

TEST_LOOP(a_late_operation_is_answered_when_it_ends, 0, ARRAY_SIZE(procs))
{
	const struct proc *p = &procs[_i];
	uint64_t before = now_us();

	fault_delay(p->op, LATE_US);
	ck_assert_int_eq(p->call(), NFS3_OK);
	ck_assert(attrs);
	ck_assert_uint_ge(now_us() - before, LATE_US);
}

static void *call_it(void *arg)
{
	const struct proc *p = arg;

	return (void *)(intptr_t)p->call();
}

/* Another client, with another request, is answered meanwhile. */
TEST_LOOP(a_call_that_hangs_stops_no_other, 0, ARRAY_SIZE(procs))
{
	const struct proc *p = &procs[_i];
	READ3args read = { .file = file, .count = 1 };
	GETATTR3args attr = { .object = top };
	unsigned calls = fault_calls(p->op);
	READ3res read_res;
	GETATTR3res attr_res;
	struct nfs_client other;
	pthread_t thread;
	void *status;

	nfs_client_open(&other, srv.port, NFS_PROGRAM, NFS_V3, 0);
	fault_hold(p->op, true);
	ck_assert_int_eq(pthread_create(&thread, NULL, call_it,
					(void *)(uintptr_t)p), 0);
	EVENTUALLY(fault_calls(p->op) > calls);
	for (int i = 0; i < 20; i++)
		if (p->op == FAULT_GETATTR)
			nfs_call(&other, read, &read, &read_res);
		else
			nfs_call(&other, getattr, &attr, &attr_res);
	fault_hold(p->op, false);
	pthread_join(thread, &status);
	ck_assert_int_eq((int)(intptr_t)status, NFS3_OK);
	ck_assert(attrs);
	nfs_client_close(&other);
}

TEST_LOOP(post_op_attributes_may_be_missing, 0, ARRAY_SIZE(procs))
{
	const struct proc *p = &procs[_i];
	int status;

	fault_set(FAULT_GETATTR, EIO);
	fault_set(p->op, EACCES);
	status = p->call();
	ck_assert(status == NFS3ERR_ACCES || status == NFS3ERR_IO);
	if (p->op != FAULT_GETATTR)
		ck_assert(!attrs);
}

/* Lookups tell of a file system that can't be entered; where that is tried. */
static struct vfs_ops plain;
static atomic_bool children;	/* lookups tell of one */
static atomic_uint entered[2];

static int child_lookup(struct vfs_op *op)
{
	int err = plain.lookup(op);

	if (err == 0 && op->lookup.child && atomic_load(&children))
		*op->lookup.child = (struct vfs_child){
			.path = strdup("/gannet-nowhere"), .is_part = true,
		};
	return err;
}

static void child_handle(struct vfs_node *node, struct vfs_handle *out)
{
	if (atomic_load(&children))
		atomic_fetch_add(&entered[thread_must_not_wait], 1);
	plain.handle(node, out);
}

static int child_getattr(struct vfs_op *op)
{
	if (op->nonblock && atomic_load(&children))
		return -EAGAIN;
	return plain.getattr(op);
}

/* The table belongs to the server's threads from its start to its end: a mount
 * that a call tried to enter is unmounted after the call. */
static void setup_children(void)
{
	const struct harness_config config = { .backend = &fault_vfs_ops };

	fault_init();
	plain = fault_vfs_ops;
	fault_vfs_ops.lookup = child_lookup;
	fault_vfs_ops.handle = child_handle;
	fault_vfs_ops.getattr = child_getattr;
	nfs_setup_with(&config);
	file = nfs_make_file(top, "file", "some data");
}

TEST_CASE(.setup = setup_children, .teardown = nfs_teardown);

TEST(another_file_system_is_entered_by_a_worker)
{
	atomic_store(&children, true);
	call_lookup();
	atomic_store(&children, false);
	ck_assert_uint_gt(entered[false], 0);
	ck_assert_uint_eq(entered[true], 0);
}
