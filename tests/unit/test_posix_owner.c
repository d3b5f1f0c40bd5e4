/* SPDX-License-Identifier: BSD-2-Clause */
/* A server that is only the owner of the files it serves. */
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/posix_fixture.h"

static void put(struct vfs_node *n)
{
	vfs_node_put(n);
}

static int set_mode(struct vfs_node *n, uint32_t mode)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = mode };

	return DO(posix_setattr, &w.who, n, .set = &set);
}

static struct vfs_node *create(const char *name, enum vfs_create_how how,
			       uint32_t mode)
{
	struct vfs_create c = { .how = how, .verf = 0x123456789abcdef };
	struct vfs_node *n;

	if (how != VFS_CREATE_EXCLUSIVE)
		c.attr = (struct vfs_setattr){ .set = VFS_SET_MODE,
					       .mode = mode };
	assert_ok(GET(out, n, posix_create, &w.who, w.root,
		      .name = name_of(name), .create = &c));
	if (how == VFS_CREATE_EXCLUSIVE)
		assert_ok(set_mode(n, mode));
	return n;
}

/* A moment with another mode would show in the ctime. */
TEST_LOOP(a_mode_that_was_set_is_never_another_for_a_moment, 0, WORLDS)
{
	struct vfs_attr before, after;
	struct vfs_handle h;
	struct vfs_node *n;
	char buf[64];

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	h = handle_of(n);
	assert_ok(set_mode(n, 0));
	put(n);
	world_restart();		/* descriptors do not outlive it */
	n = must_open(&h);
	before = attr_of(n);
	assert_err(write_str(n, 0, "text", NULL), EACCES);
	assert_err(read_str(n, 0, buf, NULL), EACCES);
	after = attr_of(n);
	ck_assert_uint_eq(after.mode, 0);
	ck_assert(posix_same_time(&before.ctime, &after.ctime));
	assert_ok(set_mode(n, 0600));
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	put(n);
	world_close();
}

/* As cp, tar, git and install do. */
TEST_LOOP(a_file_created_read_only_is_written, 0, WORLDS)
{
	static const enum vfs_create_how how[] = {
		VFS_CREATE_UNCHECKED, VFS_CREATE_GUARDED, VFS_CREATE_EXCLUSIVE,
	};
	static const uint32_t mode[] = { 0444, 0555, 0, 0200, 0400 };
	enum vfs_stable unstable;
	struct vfs_node *n;
	char name[16], buf[64];

	world_open(_i, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(how) * ARRAY_SIZE(mode); i++) {
		snprintf(name, sizeof(name), "f%u", i);
		n = create(name, how[i % 3], mode[i / 3]);
		unstable = VFS_UNSTABLE;
		ck_assert_int_eq(write_str(n, 0, "abc", &unstable), 3);
		assert_ok(DO(posix_commit, &w.who, n));
		ck_assert_int_eq(read_str(n, 0, buf, NULL), 3);
		ck_assert_uint_eq(attr_of(n).mode, mode[i / 3]);
		put(n);
	}
	n = create("i", VFS_CREATE_GUARDED, 0600);
	ck_assert_int_eq(write_str(n, 0, "abc", NULL), 3);
	assert_ok(set_mode(n, 0555));
	ck_assert_int_eq(write_str(n, 3, "def", NULL), 3);
	put(n);
	world_close();
}

TEST_LOOP(a_file_is_opened_before_its_mode_forbids_that, 0, WORLDS)
{
	struct vfs_node *n;
	char buf[64];

	world_open(_i, NULL);
	put(must_create(w.root, "f"));
	world_restart();
	n = must_lookup(w.root, "f");
	assert_ok(set_mode(n, 0444));
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	assert_ok(set_mode(n, 0));
	ck_assert_int_eq(read_str(n, 0, buf, NULL), 4);
	assert_ok(DO(posix_commit, &w.who, n));
	put(n);
	world_close();
}

/* Another call can look up the name before CREATE makes its node. */
TEST_LOOP(a_node_that_was_found_first_gets_the_descriptor, 0, WORLDS)
{
	struct vfs_node *n, *b;
	struct posix_node *m;
	struct stat st;
	int fd;

	world_open(_i, NULL);
	fd = open(local("f"), O_CREAT | O_RDWR, 0444);
	ck_assert_int_ge(fd, 0);
	n = must_lookup(w.root, "f");
	assert_ok(posix_node_adopt(to_posix_fs(w.fs), fd, true, &st, &m));
	b = &m->node;
	ck_assert_ptr_eq(n, b);
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	put(b);
	put(n);
	world_close();
}

static long cached(void)
{
	struct posix_cache *c = &to_posix_fs(w.fs)->cache;
	long n;

	mutex_lock(&c->lock);
	n = c->count;
	mutex_unlock(&c->lock);
	return n;
}

TEST_LOOP(a_file_that_can_not_be_reopened_stays_open_longer, 0, WORLDS)
{
	const struct posix_options options = { .idle_ms = 100 };
	struct vfs_handle h;
	struct vfs_node *n;

	world_open(_i, &options);
	n = create("closed", VFS_CREATE_GUARDED, 0444);
	h = handle_of(n);
	put(n);
	put(must_create(w.root, "plain"));
	EVENTUALLY(cached() < 2);
	n = must_open(&h);
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	put(n);
	EVENTUALLY(cached() == 0);	/* but not for ever */
	world_close();
}

/* The server can't look for the file in there, but need not forget it. */
TEST_LOOP(a_file_renamed_in_an_unreadable_directory_is_found_later, 0, WORLDS)
{
	struct vfs_node *dir, *n;
	struct vfs_handle h;

	world_open(_i, NULL);
	dir = must_mkdir(w.root, "d");
	n = must_create(dir, "f");
	h = handle_of(n);
	put(n);
	put(dir);
	world_restart();
	assert_ok(rename(local("d/f"), local("d/g")));
	assert_ok(chmod(local("d"), 0300));
	assert_err(try_open(&h), ESTALE);
	assert_ok(chmod(local("d"), 0700));
	put(must_open(&h));
	world_close();
}

static int set_mtime(struct vfs_node *n)
{
	struct vfs_setattr set = { .set = VFS_SET_MTIME,
				   .mtime = { .tv_sec = 5 } };

	return DO(posix_setattr, &w.who, n, .set = &set);
}

static struct vfs_node *make(struct vfs_node *dir, const char *name,
			     enum vfs_type type)
{
	struct vfs_make what = { .type = type, .target = "to",
				 .target_len = 2 };
	struct vfs_node *n;

	assert_ok(GET(out, n, posix_make, &w.who, dir, .name = name_of(name),
		      .make = &what));
	return n;
}

/* Files made there are synced with their file system, which needs a descriptor,
 * but the root can't be opened. */
TEST_LOOP(names_are_made_in_a_root_that_can_only_be_written, 0, WORLDS)
{
	struct vfs_node *n, *dir;

	world_prepare(_i, NULL);
	assert_ok(chmod(w.dir, 0300));
	world_mount();
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	put(n);
	dir = must_mkdir(w.root, "d");
	n = make(w.root, "l", VFS_LNK);
	assert_ok(set_mtime(n));
	put(n);
	assert_ok(DO(posix_rename, &w.who, w.root, .name = name_of("f"),
		     .to = { .dir = dir, .name = name_of("f") }));
	must_remove(w.root, "l", false);
	must_remove(dir, "f", false);
	put(dir);
	must_remove(w.root, "d", true);
	assert_ok(chmod(w.dir, 0700));
	world_close();
}

/* Only tmpfs is without a sync. */
TEST_LOOP(below_a_closed_root_changes_are_synced_or_refused, 0, WORLDS)
{
	struct vfs_node *dir, *n;
	struct vfs_handle h;

	world_prepare(_i, NULL);
	assert_ok(mkdir(local("d"), 0700));
	assert_ok(chmod(w.dir, 0100));
	world_mount();
	dir = must_lookup(w.root, "d");
	n = make(dir, "l", VFS_LNK);
	assert_ok(set_mtime(n));
	h = handle_of(n);
	put(n);
	put(dir);
	world_restart();
	n = must_open(&h);
	if (!world_on_tmpfs()) {
		struct vfs_attr before = attr_of(n), after;

		assert_err(set_mtime(n), EACCES);
		after = attr_of(n);
		ck_assert(posix_same_time(&before.ctime, &after.ctime));
	}
	put(n);
	assert_ok(chmod(w.dir, 0700));
	world_close();
}

/* True if a descriptor of this process is open on the inode.  By name, as other
 * threads close theirs meanwhile. */
static bool is_held(uint64_t ino)
{
	struct stat root, st;
	bool held = false;
	char name[32];

	assert_ok(stat(w.dir, &root));
	for (int fd = 3; fd < 1024 && !held; fd++) {
		snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
		held = stat(name, &st) == 0 && st.st_ino == ino &&
		       st.st_dev == root.st_dev;
	}
	return held;
}

/* The root has no descriptor to sync the file system by, and a file's must not
 * take its place: that would keep the space, and a program from being run. */
TEST_LOOP(below_a_closed_root_no_file_that_was_removed_is_held, 0, WORLDS)
{
	const struct posix_options options = { .idle_ms = 100 };
	struct vfs_node *dir, *n;
	uint64_t ino;

	world_prepare(_i, &options);
	assert_ok(mkdir(local("d"), 0700));
	assert_ok(close(open(local("d/f"), O_CREAT | O_WRONLY, 0700)));
	assert_ok(chmod(w.dir, 0100));
	world_mount();
	dir = must_lookup(w.root, "d");
	n = must_lookup(dir, "f");
	ino = attr_of(n).fileid;
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	assert_ok(set_mtime(n));
	ck_assert(is_held(ino));
	put(n);
	must_remove(dir, "f", false);
	EVENTUALLY(!is_held(ino));
	put(dir);
	assert_ok(chmod(w.dir, 0700));
	world_close();
}

/* Root's test continues as a user without privileges. */
static int run_as_user(void)
{
	if (geteuid() == 0 &&
	    (setresgid(1000, 1000, 1000) < 0 ||
	     setresuid(1000, 1000, 1000) < 0 ||
	     prctl(PR_SET_DUMPABLE, 1) < 0))	/* /proc/self stays its own */
		return EXIT_FAILURE;
	return run_tests();
}

int main(void)
{
	int status = -1;
	pid_t pid;

	world_base();
	if (geteuid() == 0)
		world_base_give(1000);
	pid = fork();
	if (pid == 0)
		exit(run_as_user());
	if (pid > 0)
		waitpid(pid, &status, 0);
	world_base_remove();
	return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
