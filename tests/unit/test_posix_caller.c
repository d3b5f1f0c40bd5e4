/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The posix backend on a file system that decides at each open, by its caller.
 *
 * It is an ordinary one whose open() this program takes the place of: modes let
 * everyone do everything, and open() only lets in whom the test allows.
 * Needs root, who can act as others.
 */
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/thread.h"
#include "tests/unit/posix_fixture.h"

#define ALICE	1001
#define BOB	1002
#define FIRST	2000			/* of the users of threads */

static struct vfs_cred alice = { .uid = ALICE, .gid = ALICE, .gids_id = 1 };
static struct vfs_cred bob = { .uid = BOB, .gid = BOB, .gids_id = 2 };
static const struct vfs_op as_alice = { .cred = &alice };
static const struct vfs_op as_bob = { .cred = &bob };

/* The users whom open() lets in. */
static _Atomic bool lets_alice, lets_bob;
static _Atomic bool in_force;
static _Atomic unsigned opens, server_opens;

static bool is_let_in(uid_t uid)
{
	if (uid == ALICE)
		return lets_alice;
	if (uid == BOB)
		return lets_bob;
	return uid >= FIRST && uid % 2 == 0;
}

/* In place of the C library's. */
int open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;
	uid_t uid;

	va_start(ap, flags);
	if (flags & (O_CREAT | __O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	if (in_force && !(flags & O_PATH) &&
	    strncmp(path, "/proc/self/fd/", 14) == 0) {
		uid = (uid_t)setfsuid((uid_t)-1);
		opens++;
		server_opens += uid == 0;
		if (!is_let_in(uid)) {
			errno = EACCES;
			return -1;
		}
	}
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ... under _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return open(path, flags);
}

/* World @i as such a file system, with "f" and "d" for everyone.  False: this
 * process can't act as others. */
static bool begin(int i, uint64_t idle_ms)
{
	struct posix_options options = { .idle_ms = idle_ms };
	struct posix_fs *fs;

	in_force = false;
	lets_alice = true;
	lets_bob = false;
	opens = server_opens = 0;
	world_open(i, &options);
	fs = to_posix_fs(w.fs);
	if (!fs->privileged) {
		printf("skipped: may not act as others\n");
		world_close();
		return false;
	}
	vfs_node_put(must_create(w.root, "f"));
	assert_ok(chmod(local("f"), 0666));
	assert_ok(mkdir(local("d"), 0777));
	assert_ok(chmod(local("d"), 0777));
	assert_ok(chmod(local(""), 0777));
	world_restart();
	fs = to_posix_fs(w.fs);
	fs->as_caller = fs->remote = true;
	fs->ram = false;
	in_force = true;
	return true;
}

static void end(void)
{
	in_force = false;
	posix_cred_server(NULL);
	world_close();
}

static int read_as(const struct vfs_op *who, struct vfs_node *n)
{
	char data[8];
	struct iovec iov = { data, sizeof(data) };

	return DO(posix_read, who, n, .read = { .iov = &iov, .niov = 1 });
}

static int write_as(const struct vfs_op *who, struct vfs_node *n,
		    enum vfs_stable stable)
{
	struct iovec iov = { (char [4]){ "abc" }, 4 };

	return DO(posix_write, who, n,
		  .write = { .iov = &iov, .niov = 1, .stable = stable });
}

static int cut_as(const struct vfs_op *who, struct vfs_node *n, uint64_t size)
{
	struct vfs_setattr set = { .set = VFS_SET_SIZE, .size = size };

	return DO(posix_setattr, who, n, .set = &set);
}

static int pipe_as(const struct vfs_op *who, struct vfs_node *n)
{
	int ends[2], got;

	assert_ok(pipe(ends));
	got = DO(posix_read_pipe, who, n,
		 .read = { .count = 4, .pipe = ends[1] });
	close(ends[0]);
	close(ends[1]);
	return got;
}

static bool take_entry(void *arg, const struct vfs_dirent *e)
{
	(void)arg;
	(void)e;
	return true;
}

static int list_as(const struct vfs_op *who, struct vfs_node *dir, bool plus)
{
	return DO(posix_readdir, who, dir,
		  .readdir = { .emit = take_entry, .plus = plus });
}

static struct vfs_node *look_up(const char *name)
{
	struct vfs_node *n;

	assert_ok(GET(out, n, posix_lookup, &as_alice, w.root,
		      .name = name_of(name)));
	return n;
}

TEST_LOOP(each_caller_opens_the_file, 0, WORLDS)
{
	struct vfs_node *n;

	if (!begin(_i, 0))
		return;
	n = look_up("f");
	/* First the caller with the right, then the one without, twice. */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(write_as(&as_alice, n, VFS_UNSTABLE), 4);
		ck_assert_int_eq(read_as(&as_alice, n), 4);
		ck_assert_int_eq(pipe_as(&as_alice, n), 4);
		assert_ok(DO(posix_commit, &as_alice, n));
		assert_ok(cut_as(&as_alice, n, 4));

		assert_err(read_as(&as_bob, n), EACCES);
		assert_err(pipe_as(&as_bob, n), EACCES);
		assert_err(write_as(&as_bob, n, VFS_UNSTABLE), EACCES);
		assert_err(write_as(&as_bob, n, VFS_FILE_SYNC), EACCES);
		assert_err(cut_as(&as_bob, n, 0), EACCES);
		assert_err(DO(posix_commit, &as_bob, n), EACCES);
	}
	/* Each has separate descriptors once both have the right. */
	lets_bob = true;
	ck_assert_int_eq(read_as(&as_bob, n), 4);
	ck_assert_uint_eq(server_opens, 0);
	vfs_node_put(n);
	end();
}

TEST_LOOP(each_caller_opens_the_directory, 0, WORLDS)
{
	struct vfs_node *d;

	if (!begin(_i, 0))
		return;
	d = look_up("d");
	for (int plus = 0; plus < 2; plus++) {
		assert_ok(list_as(&as_alice, d, plus));
		assert_err(list_as(&as_bob, d, plus), EACCES);
	}
	ck_assert_uint_eq(server_opens, 0);
	vfs_node_put(d);
	end();
}

/* With FILE_SYNC the file is synced, by any caller's descriptor. */
TEST_LOOP(changes_are_synced_without_a_server_that_may_open, 0, WORLDS)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *n;

	if (!begin(_i, 0))
		return;
	n = look_up("f");
	ck_assert_int_eq(write_as(&as_alice, n, VFS_FILE_SYNC), 4);
	vfs_node_put(n);
	assert_ok(GET(out, n, posix_create, &as_alice, w.root,
		      .name = name_of("g"), .create = &how));
	vfs_node_put(n);
	assert_ok(DO(posix_remove, &as_alice, w.root, .name = name_of("g")));
	ck_assert_uint_eq(server_opens, 0);
	end();
}

TEST_LOOP(a_descriptor_serves_its_caller_again, 0, WORLDS)
{
	struct vfs_node *n;
	unsigned before;

	if (!begin(_i, 600000))
		return;
	n = look_up("f");
	ck_assert_int_eq(write_as(&as_alice, n, VFS_UNSTABLE), 4);
	ck_assert_int_eq(read_as(&as_alice, n), 4);
	before = opens;
	for (int i = 0; i < 10; i++) {
		ck_assert_int_eq(write_as(&as_alice, n, VFS_UNSTABLE), 4);
		ck_assert_int_eq(read_as(&as_alice, n), 4);
	}
	ck_assert_uint_eq(opens, before);
	/* Another group makes another caller. */
	alice.gids_id = 77;
	ck_assert_int_eq(read_as(&as_alice, n), 4);
	ck_assert_uint_eq(opens, before + 1);
	alice.gids_id = 1;
	vfs_node_put(n);
	end();
}

TEST_LOOP(a_right_that_is_taken_away_ends, 0, WORLDS)
{
	struct vfs_node *n;

	if (!begin(_i, 40))
		return;
	n = look_up("f");
	ck_assert_int_eq(write_as(&as_alice, n, VFS_UNSTABLE), 4);
	ck_assert_int_eq(read_as(&as_alice, n), 4);
	lets_alice = false;
	EVENTUALLY(read_as(&as_alice, n) == -EACCES);
	EVENTUALLY(write_as(&as_alice, n, VFS_UNSTABLE) == -EACCES);
	vfs_node_put(n);
	end();
}

TEST_LOOP(the_maker_of_a_file_writes_it_whatever_its_mode, 0, WORLDS)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED,
				  .attr = { .set = VFS_SET_MODE,
					    .mode = 0444 } };
	struct vfs_node *n;
	uint32_t last;

	if (!begin(_i, 40))
		return;
	assert_ok(GET(out, n, posix_create, &as_alice, w.root,
		      .name = name_of("g"), .create = &how));
	lets_alice = false;
	/* For longer than another descriptor serves. */
	last = to_posix_fs(w.fs)->cache.tick + 8;
	do {
		ck_assert_int_eq(write_as(&as_alice, n, VFS_UNSTABLE), 4);
		ck_assert_int_eq(read_as(&as_alice, n), 4);
	} while ((int32_t)(last - to_posix_fs(w.fs)->cache.tick) > 0);
	assert_err(read_as(&as_bob, n), EACCES);
	vfs_node_put(n);
	end();
}

TEST_LOOP(the_maker_of_a_file_that_is_given_away_is_one_of_the_others, 0,
	  WORLDS)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED,
				  .attr = { .set = VFS_SET_MODE,
					    .mode = 0666 } };
	struct vfs_node *n;

	if (!begin(_i, 40))
		return;
	assert_ok(GET(out, n, posix_create, &as_alice, w.root,
		      .name = name_of("g"), .create = &how));
	lets_alice = false;
	lets_bob = true;
	posix_cred_server(NULL);
	assert_ok(chmod(local("g"), 0666));
	assert_ok(chown(local("g"), BOB, BOB));
	EVENTUALLY(read_as(&as_alice, n) == -EACCES);
	assert_err(write_as(&as_alice, n, VFS_UNSTABLE), EACCES);
	ck_assert_int_eq(write_as(&as_bob, n, VFS_UNSTABLE), 4);
	ck_assert_int_eq(read_as(&as_bob, n), 4);
	vfs_node_put(n);
	end();
}

TEST_LOOP(access_that_is_asked_about_an_open_opens, 0, WORLDS)
{
	const uint32_t want = VFS_ACCESS_READ | VFS_ACCESS_OPEN;
	struct vfs_node *n;
	uint32_t granted;

	if (!begin(_i, 0))
		return;
	n = look_up("f");
	assert_ok(GET(access.granted, granted, posix_access, &as_alice, n,
		      .access.want = want));
	ck_assert_uint_eq(granted, want);
	assert_ok(GET(access.granted, granted, posix_access, &as_bob, n,
		      .access.want = want));
	/* An open refuses even the owner of a file. */
	ck_assert_uint_eq(granted, VFS_ACCESS_OPEN);
	vfs_node_put(n);
	end();
}

TEST_LOOP(the_descriptors_of_many_callers_are_few, 0, WORLDS)
{
	struct vfs_cred cred = { 0 };
	const struct vfs_op op = { .cred = &cred };
	struct vfs_node *n;
	long before;

	if (!begin(_i, 600000))
		return;
	n = look_up("f");
	before = to_posix_fs(w.fs)->cache.nfds;
	for (uint32_t i = 0; i < 200; i++) {
		cred.uid = cred.gid = FIRST + i;
		cred.gids_id = FIRST + i;
		ck_assert_int_eq(read_as(&op, n), i % 2 ? -EACCES : 0);
	}
	ck_assert_int_le(to_posix_fs(w.fs)->cache.nfds, before + 17);
	vfs_node_put(n);
	end();
}

struct reader {
	struct vfs_node *node;
	uint32_t uid;
	int	 wrong;
};

static void read_much(void *arg)
{
	struct reader *r = arg;
	struct vfs_cred cred = { .uid = r->uid, .gid = r->uid,
				 .gids_id = r->uid };
	const struct vfs_op op = { .cred = &cred };
	int right = r->uid % 2 ? -EACCES : 4;

	for (int i = 0; i < 2000; i++) {
		r->wrong += read_as(&op, r->node) != right;
		if (i % 8 == 0)
			r->wrong += write_as(&op, r->node,
					     VFS_UNSTABLE) != right;
	}
}

TEST_LOOP(no_thread_gets_the_descriptor_of_another_caller, 0, WORLDS)
{
	struct reader r[8];
	pthread_t thread[8];

	if (!begin(_i, 8))
		return;
	for (unsigned i = 0; i < 8; i++)
		r[i] = (struct reader){ look_up("f"), FIRST + i, 0 };
	ck_assert_int_eq(write_as(&as_alice, r[0].node, VFS_UNSTABLE), 4);
	for (unsigned i = 0; i < 8; i++)
		assert_ok(thread_start(thread + i, "reader", read_much, r + i));
	for (unsigned i = 0; i < 8; i++) {
		pthread_join(thread[i], NULL);
		ck_assert_int_eq(r[i].wrong, 0);
		vfs_node_put(r[i].node);
	}
	end();
}

int main(void)
{
	if (geteuid() != 0) {
		printf("skipped: only root can act as others\n");
		return 77;
	}
	return world_run();
}
