/* SPDX-License-Identifier: BSD-2-Clause */
/* Callers' credentials, and operations for them without waiting. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/posix_fixture.h"

/* Memory also takes time. */
static void frees_much(const struct vfs_op *now, struct vfs_node *n)
{
	struct vfs_setattr shrink = { .set = VFS_SET_SIZE, .size = 8 };
	size_t len = VFS_LONG + 4096;
	struct iovec iov = { calloc(1, len), len };

	ck_assert_int_eq(DO(posix_write, now, n,
			    .write = { .iov = &iov, .niov = 1 }), (int64_t)len);
	free(iov.iov_base);
	assert_err(DO(posix_remove, now, w.root, .name = name_of("f")), EAGAIN);
	assert_err(DO(posix_setattr, now, n, .set = &shrink), EAGAIN);
	assert_ok(DO(posix_setattr, &w.who, n, .set = &shrink));
}

TEST_LOOP(calls_that_must_not_wait_do_what_memory_has, 0, WORLDS)
{
	const struct vfs_op now = { .cred = &w.cred, .nonblock = true };
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_attr attr, dir_attr;
	struct iovec iov = { (char [8]){ 0 }, 8 };
	struct vfs_node *n, *m;
	struct vfs_handle h;
	bool eof;
	int64_t got;
	int err;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	h = handle_of(n);
	ck_assert_int_eq(write_str(n, 0, "01234567", NULL), 8);
	assert_ok(DO(posix_getattr, &now, n, .attr = &attr));
	got = GET(eof, eof, posix_read, &now, n,
		  .read = { .iov = &iov, .niov = 1 });
	if (got != -EAGAIN) {		/* a file system without RWF_NOWAIT */
		ck_assert_int_eq(got, 8);
		ck_assert(eof);
	}
	assert_ok(GET(out, m, posix_open_handle, &now, NULL,
		      .open = { .fs = w.fs, .handle = &h }));
	vfs_node_put(m);
	/* Another process's rename can be in the way of the name cache. */
	for (int i = 0; i < 1000; i++) {
		err = GET(out, m, posix_lookup, &now, w.root,
			  .name = name_of("f"), .attr = &attr,
			  .lookup.dir_attr = &dir_attr);
		if (err != -EAGAIN)
			break;
	}
	assert_ok(err);
	vfs_node_put(m);
	err = GET(out, m, posix_create, &now, w.root, .name = name_of("g"),
		  .create = &how);
	/* The table of files is on a disk, wherever the files are. */
	if (world_on_tmpfs() && !to_posix_fs(w.fs)->table) {
		assert_ok(err);
		vfs_node_put(m);
		assert_ok(DO(posix_remove, &now, w.root, .name = name_of("g")));
		frees_much(&now, n);
	} else {
		assert_err(err, EAGAIN);
		assert_err(try_lookup(w.root, "g"), ENOENT);
		ck_assert_int_eq(DO(posix_write, &now, n,
				    .write = { .iov = &iov, .niov = 1,
					       .stable = VFS_FILE_SYNC }),
				 world_on_tmpfs() ? 8 : -EAGAIN);
		assert_err(DO(posix_remove, &now, w.root, .name = name_of("f")),
			   EAGAIN);
	}
	vfs_node_put(n);
	world_restart();
	err = GET(out, m, posix_open_handle, &now, NULL,
		  .open = { .fs = w.fs, .handle = &h });
	if (world_on_tmpfs() && !to_posix_fs(w.fs)->table) {
		assert_ok(err);
		vfs_node_put(m);
	} else {
		assert_err(err, EAGAIN);
	}
	world_close();
}

/* As a kernel before 5.12 takes RESOLVE_CACHED; for this thread. */
static void refuse_openat2(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { ARRAY_SIZE(code), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		abort();
}

static void look_up_refused(void *arg)
{
	const struct vfs_op now = { .cred = &w.cred, .nonblock = true };

	thread_changes_cred = true;
	refuse_openat2();
	*(int *)arg = DO(posix_lookup, &now, w.root, .name = name_of("f"));
}

TEST_LOOP(look_ups_wait_where_the_kernel_has_none_that_do_not, 0, WORLDS)
{
	pthread_t thread;
	int err = 0;

	world_open(_i, NULL);
	vfs_node_put(must_create(w.root, "f"));
	assert_ok(thread_start(&thread, "old", look_up_refused, &err));
	pthread_join(thread, NULL);
	if (!world_on_tmpfs())		/* there all of them may wait */
		assert_err(err, EAGAIN);
	world_close();
}

TEST_LOOP(callers_are_who_they_say_groups_included, 0, WORLDS)
{
	static const uint32_t gids[] = { 7, 2001 };
	struct vfs_cred alice = { .uid = 1001, .gid = 1001, .ngids = 2,
				  .gids_id = 1, .gids = gids };
	struct vfs_cred nobody = { .uid = UINT32_MAX, .gid = UINT32_MAX };
	struct vfs_node *n;
	struct stat st;
	char buf[64];

	world_open(_i, NULL);
	if (!to_posix_fs(w.fs)->privileged) {
		printf("skipped: may not act as others\n");
		world_close();
		return;
	}
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	assert_ok(chown(local("f"), 0, 2001));
	assert_ok(chmod(local("f"), 0040));
	w.who.cred = &alice;
	ck_assert_int_eq(read_str(n, 0, buf, NULL), 4);
	alice.ngids = 1;
	alice.gids_id = 2;
	assert_err(read_str(n, 0, buf, NULL), EACCES);
	vfs_node_put(must_create(w.root, "mine"));
	assert_ok(stat(local("mine"), &st));
	ck_assert_uint_eq(st.st_uid, 1001);
	ck_assert_uint_eq(st.st_gid, 1001);
	/* -1 is no user's number: the thread must not act as its last
	 * caller. */
	w.who.cred = &nobody;
	assert_err(read_str(n, 0, buf, NULL), EACCES);
	assert_err(try_lookup(w.root, "mine"), EACCES);
	w.who.cred = &w.cred;
	vfs_node_put(n);
	world_close();
}

static struct vfs_cred carol = { .uid = 1003, .gid = 1003 };

/* Look-up, ACCESS and READ of "f" as carol, without waiting. */
struct asking {
	int		 lookup, access;
	int64_t		 read;
	uint32_t	 granted;
	struct vfs_node	*node;		/* of "f" */
	bool		 changes_cred;
};

static void ask_as_carol(void *arg)
{
	const struct vfs_op now = { .cred = &carol, .nonblock = true };
	struct asking *a = arg;
	struct iovec iov = { (char [8]){ 0 }, 8 };
	struct vfs_node *n = NULL;

	thread_changes_cred = a->changes_cred;
	a->lookup = GET(out, n, posix_lookup, &now, w.root,
			.name = name_of("f"));
	vfs_node_put(n);
	a->access = GET(access.granted, a->granted, posix_access, &now, a->node,
			.access.want = VFS_ACCESS_READ);
	a->read = DO(posix_read, &now, a->node,
		     .read = { .iov = &iov, .niov = 1 });
}

static void ask_on_another_thread(struct asking *a)
{
	pthread_t thread;

	ck_assert_int_eq(thread_start(&thread, "poller", ask_as_carol, a), 0);
	pthread_join(thread, NULL);
}

static void create_as_carol(void *arg)
{
	const struct vfs_op now = { .cred = &carol, .nonblock = true };
	const struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_wcc wcc;

	*(int *)arg = DO(posix_create, &now, w.root, .name = name_of("g"),
			 .create = &how, .wcc = &wcc);
}

/* A change that a poller leaves to a worker does not overlap with others. */
TEST_LOOP(a_change_left_to_a_worker_overlaps_with_none, 0, WORLDS)
{
	const struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_wcc wcc = { 0 };
	struct vfs_node *n;
	pthread_t thread;
	int err = 0;

	world_open(_i, NULL);
	if (!to_posix_fs(w.fs)->privileged) {
		printf("skipped: may not act as others\n");
		world_close();
		return;
	}
	assert_ok(thread_start(&thread, "poller", create_as_carol, &err));
	pthread_join(thread, NULL);
	assert_err(err, EAGAIN);
	assert_ok(GET(out, n, posix_create, &w.who, w.root,
		      .name = name_of("g"), .create = &how, .wcc = &wcc));
	ck_assert(wcc.has_before && wcc.has_after);
	vfs_node_put(n);
	world_close();
}

/* The kernel refuses RDMA devices to a thread that ever changed them. */
TEST_LOOP(calls_that_must_not_wait_never_change_credentials, 0, WORLDS)
{
	struct asking a = { 0 };
	uint64_t before;

	world_open(_i, NULL);
	if (!to_posix_fs(w.fs)->privileged) {
		printf("skipped: may not act as others\n");
		world_close();
		return;
	}
	a.node = must_create(w.root, "f");
	ck_assert_int_eq(write_str(a.node, 0, "text", NULL), 4);
	assert_ok(chmod(local("f"), 0444));
	assert_ok(chmod(local(""), 0755));
	world_settle("");
	world_settle("f");
	before = stats_sum_by_name("posix_cred_switch");
	ask_on_another_thread(&a);
	assert_err(a.lookup, EAGAIN);
	assert_err(a.access, EAGAIN);
	assert_err(a.read, EAGAIN);
	ck_assert_uint_eq(stats_sum_by_name("posix_cred_switch"), before);

	/* A thread that can act as carol asks, and the answers are kept. */
	w.who.cred = &carol;
	assert_ok(GET(access.granted, a.granted, posix_access, &w.who, a.node,
		      .access.want = VFS_ACCESS_READ));
	assert_ok(GET(access.granted, a.granted, posix_access, &w.who, w.root,
		      .access.want = VFS_ACCESS_LOOKUP));
	before = stats_sum_by_name("posix_cred_switch");
	ask_on_another_thread(&a);
	ck_assert(a.lookup == 0 || a.lookup == -EAGAIN);
	if (world_on_tmpfs())
		assert_ok(a.lookup);
	assert_ok(a.access);
	ck_assert_uint_eq(a.granted, VFS_ACCESS_READ);
	ck_assert(a.read == 4 || a.read == -EAGAIN);
	ck_assert_uint_eq(stats_sum_by_name("posix_cred_switch"), before);

	/* A poller without a device does not need the mark. */
	posix_cred_server(to_posix_fs(w.fs));
	assert_ok(chmod(local("f"), 0440));
	a.changes_cred = true;
	ask_on_another_thread(&a);
	if (world_on_tmpfs()) {
		assert_ok(a.access);
		ck_assert_uint_eq(a.granted, 0);
		ck_assert_uint_eq(stats_sum_by_name("posix_cred_switch"),
				  before + 1);
	}
	w.who.cred = &w.cred;
	vfs_node_put(a.node);
	world_close();
}

/* Each user's first look-up of a name asks the kernel, as that user. */
TEST_LOOP(look_ups_of_many_users_change_no_credentials, 0, WORLDS)
{
	struct vfs_cred user = { 0 };
	uint64_t before = 0;

	world_open(_i, NULL);
	if (!to_posix_fs(w.fs)->privileged) {
		printf("skipped: may not act as others\n");
		world_close();
		return;
	}
	vfs_node_put(must_create(w.root, "f"));
	assert_ok(chmod(local(""), 0755));
	world_settle("");
	w.who.cred = &user;
	for (int round = 0; round < 3; round++) {
		if (round == 1)
			before = stats_sum_by_name("posix_cred_switch");
		for (uint32_t i = 1; i <= 32; i++) {
			user.uid = user.gid = 5000 + i;
			assert_ok(try_lookup(w.root, "f"));
		}
	}
	ck_assert_uint_eq(stats_sum_by_name("posix_cred_switch"), before);
	/* More than are remembered cost time, and are answered all the same. */
	for (uint32_t i = 1; i <= 200; i++) {
		user.uid = user.gid = 5000 + i;
		assert_ok(try_lookup(w.root, "f"));
	}
	/* A change drops the remembered answers of all users. */
	posix_cred_server(to_posix_fs(w.fs));
	assert_ok(chmod(local(""), 0700));
	for (uint32_t i = 1; i <= 200; i++) {
		user.uid = user.gid = 5000 + i;
		assert_err(try_lookup(w.root, "f"), EACCES);
	}
	w.who.cred = &w.cred;
	world_close();
}

/* The file that a WRITE of another thread ends on when this one closes the next
 * file. */
static _Thread_local struct posix_node *written;

int close(int fd)
{
	if (written)
		atomic_store(&written->dirty, true);
	written = NULL;
	return (int)syscall(SYS_close, fd);
}

TEST_LOOP(a_caller_stays_itself_while_room_is_made_for_its_file, 0, WORLDS)
{
	const struct vfs_op as_carol = { .cred = &carol };
	const struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *n;
	struct posix_fs *fs;

	world_open(_i, NULL);
	fs = to_posix_fs(w.fs);
	if (!fs->privileged) {
		printf("skipped: may not act as others\n");
		world_close();
		return;
	}
	/* As ext4, whose journal is asked with each sync, as the server. */
	fs->ram = false;
	fs->sync_names = fs->ext4 = true;
	assert_ok(chmod(local(""), 0755));
	vfs_node_put(must_create(w.root, "first"));
	n = must_create(w.root, "second");
	vfs_node_put(n);
	/* Both are let go of together. */
	atomic_fetch_add(&fs->cache.tick, 8);
	fs->cache.max_fds = 1;
	written = to_posix(n);
	assert_err(DO(posix_create, &as_carol, w.root, .name = name_of("g"),
		      .create = &how), EACCES);
	ck_assert_ptr_null(written);
	ck_assert_int_lt(access(local("g"), F_OK), 0);
	world_close();
}

static bool may_change(struct vfs_node *n)
{
	const struct vfs_op as_carol = { .cred = &carol };
	uint32_t granted = 0;

	assert_ok(GET(access.granted, granted, posix_access, &as_carol, n,
		      .access.want = VFS_ACCESS_MODIFY));
	return granted & VFS_ACCESS_MODIFY;
}

TEST_LOOP(files_may_be_written_again_after_a_remount, 0, WORLDS)
{
	struct vfs_node *n;

	world_open(_i, NULL);
	if (!to_posix_fs(w.fs)->privileged || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", local(""), "tmpfs", 0, "mode=777") < 0) {
		printf("skipped: may not mount, or act as others\n");
		world_close();
		return;
	}
	world_restart();
	vfs_node_put(must_create(w.root, "f"));
	assert_ok(chmod(local("f"), 0666));
	world_restart();		/* it is not open to be written */
	n = must_lookup(w.root, "f");
	world_settle("f");
	assert_ok(mount(NULL, local(""), NULL, MS_REMOUNT | MS_RDONLY, NULL));
	ck_assert(!may_change(n));
	posix_cred_server(to_posix_fs(w.fs));
	assert_ok(mount(NULL, local(""), NULL, MS_REMOUNT, NULL));
	ck_assert(may_change(n));
	posix_cred_server(to_posix_fs(w.fs));
	vfs_node_put(n);
	assert_ok(umount2(local(""), MNT_DETACH));
	world_close();
}

int main(void)
{
	return world_run();
}
