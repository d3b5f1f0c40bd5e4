/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: an error means that nothing was done, or that the disk
 * failed; and no data is called stable with an error. */
#include <sys/stat.h>

#include "tests/unit/posix_fixture.h"
#include "tests/unit/sync_faults.h"

/* With the system's handles, and with the table; never as if in memory. */
static void mount_disk(void)
{
	struct posix_fs *fs = to_posix_fs(w.fs);

	fs->ram = false;
	fs->sync_names = true;
	memset(&sync_faults, 0, sizeof(sync_faults));
}

static void open_world(int i)
{
	world_open(i * 2, NULL);
	mount_disk();
}

/* Two directories whose nodes are not open, and a file in each. */
static void fresh_dirs(int i, struct vfs_node **a, struct vfs_node **b)
{
	open_world(i);
	assert_ok(mkdir(local("a"), 0755));
	assert_ok(mkdir(local("b"), 0755));
	assert_ok(close(open(local("a/f"), O_CREAT | O_WRONLY, 0600)));
	assert_ok(mkdir(local("a/d"), 0755));
	*a = must_lookup(w.root, "a");
	*b = must_lookup(w.root, "b");
}

static void close_dirs(struct vfs_node *a, struct vfs_node *b)
{
	vfs_node_put(a);
	vfs_node_put(b);
	world_close();
}

static bool is_there(const char *path)
{
	return faccessat(AT_FDCWD, local(path), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int make(struct vfs_node *dir, const char *name, enum vfs_type type)
{
	struct vfs_make what = { .type = type, .target = "to",
				 .target_len = 2 };
	struct vfs_node *n;
	int err = GET(out, n, posix_make, &w.who, dir, .name = name_of(name),
		      .make = &what);

	if (err == 0)
		vfs_node_put(n);
	return err;
}

static int create(struct vfs_node *dir, const char *name)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *n;
	int err = GET(out, n, posix_create, &w.who, dir, .name = name_of(name),
		      .create = &how);

	if (err == 0)
		vfs_node_put(n);
	return err;
}

static int move(struct vfs_node *from, const char *name, struct vfs_node *to,
		const char *to_name)
{
	return DO(posix_rename, &w.who, from, .name = name_of(name),
		  .to = { .dir = to, .name = name_of(to_name) });
}

static int set_mode(struct vfs_node *n, uint32_t mode)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = mode };

	return DO(posix_setattr, &w.who, n, .set = &set);
}

TEST_LOOP(without_memory_for_the_sync_nothing_is_done, 0, 2)
{
	struct vfs_node *a, *b, *f;

	fresh_dirs(_i, &a, &b);
	f = must_lookup(w.root, "b");
	sync_faults.open_errno = ENOMEM;
	assert_err(DO(posix_remove, &w.who, a, .name = name_of("f")), ENOMEM);
	ck_assert(is_there("a/f"));
	assert_err(DO(posix_remove, &w.who, a, .name = name_of("d"),
		      .is_dir = true), ENOMEM);
	ck_assert(is_there("a/d"));
	assert_err(move(a, "f", a, "g"), ENOMEM);
	assert_err(move(a, "f", b, "g"), ENOMEM);
	ck_assert(is_there("a/f"));
	assert_err(create(b, "new"), ENOMEM);
	assert_err(make(b, "new", VFS_DIR), ENOMEM);
	assert_err(make(b, "new", VFS_LNK), ENOMEM);
	assert_err(make(b, "new", VFS_FIFO), ENOMEM);
	ck_assert(!is_there("b/new"));
	assert_err(set_mode(f, 0700), ENOMEM);
	ck_assert_uint_eq(attr_of(f).mode, 0755);
	/* The source's is open, the target's can't be opened. */
	sync_faults.open_errno = 0;
	assert_ok(create(a, "x"));
	sync_faults.open_errno = ENOMEM;
	assert_err(move(a, "x", b, "x"), ENOMEM);
	ck_assert(is_there("a/x") && !is_there("b/x"));
	sync_faults.open_errno = 0;
	assert_ok(move(a, "x", b, "x"));
	vfs_node_put(f);
	close_dirs(a, b);
}

TEST_LOOP(a_link_is_not_made_without_memory_for_its_sync, 0, 2)
{
	struct vfs_node *a, *b, *f;

	fresh_dirs(_i, &a, &b);
	f = must_lookup(a, "f");
	sync_faults.open_errno = ENOMEM;
	assert_err(DO(posix_link, &w.who, f,
		      .to = { .dir = b, .name = name_of("l") }), ENOMEM);
	ck_assert(!is_there("b/l"));
	sync_faults.open_errno = 0;
	assert_ok(DO(posix_link, &w.who, f,
		     .to = { .dir = b, .name = name_of("l") }));
	vfs_node_put(f);
	close_dirs(a, b);
}

TEST_LOOP(rename_syncs_both_directories_even_if_one_fails, 0, 2)
{
	struct vfs_node *a, *b;

	fresh_dirs(_i, &a, &b);
	sync_faults_lose((ino_t)attr_of(a).fileid);
	assert_err(move(a, "f", b, "f"), EIO);
	ck_assert_int_eq(sync_faults.dirs, 2);
	sync_faults_lose((ino_t)attr_of(b).fileid);
	assert_err(move(a, "d", b, "d"), EIO);
	ck_assert_int_eq(sync_faults.dirs, 4);
	close_dirs(a, b);
}

/* A repeated SETATTR would meet its own change, which its guard excludes. */
TEST_LOOP(no_client_is_told_to_come_again_for_attributes_that_it_set, 0, 2)
{
	static const int again[] = { EINTR, EAGAIN, ENOMEM, ENOBUFS };
	struct vfs_setattr set = { .set = VFS_SET_MODE, .guarded = true };
	struct vfs_node *a, *b;

	fresh_dirs(_i, &a, &b);
	for (unsigned i = 0; i < ARRAY_SIZE(again); i++) {
		sync_faults.dir_errno = again[i];
		set.mode = 0700 + i;
		set.guard = attr_of(a).ctime;
		assert_err(DO(posix_setattr, &w.who, a, .set = &set), EIO);
		ck_assert_uint_eq(attr_of(a).mode, set.mode);
	}
	sync_faults.dir_errno = 0;
	close_dirs(a, b);
}

TEST_LOOP(no_client_is_told_to_come_again_for_a_part_that_it_set, 0, 2)
{
	static const int again[] = { EINTR, EAGAIN, ENOMEM, ENOBUFS };
	struct vfs_setattr set = { .set = VFS_SET_MODE | VFS_SET_MTIME_NOW,
				   .guarded = true };
	struct vfs_node *a, *b;

	fresh_dirs(_i, &a, &b);
	for (unsigned i = 0; i < ARRAY_SIZE(again); i++) {
		sync_faults.times_errno = again[i];
		set.mode = 0700 + i;
		set.guard = attr_of(a).ctime;
		assert_err(DO(posix_setattr, &w.who, a, .set = &set), EIO);
		ck_assert_uint_eq(attr_of(a).mode, set.mode);
	}
	/* While nothing is done the client can come again. */
	sync_faults.times_errno = ENOMEM;
	set.set = VFS_SET_MTIME_NOW;
	set.guard = attr_of(a).ctime;
	assert_err(DO(posix_setattr, &w.who, a, .set = &set), ENOMEM);
	sync_faults.times_errno = 0;
	close_dirs(a, b);
}

/* It would find the name gone. */
TEST_LOOP(no_client_is_told_to_come_again_for_what_was_done, 0, 2)
{
	static const int again[] = { EINTR, EAGAIN, ENOMEM, ENOBUFS };
	struct vfs_node *a, *b;
	char name[8];

	fresh_dirs(_i, &a, &b);
	for (unsigned i = 0; i < ARRAY_SIZE(again); i++) {
		snprintf(name, sizeof(name), "%u", i);
		sync_faults.dir_errno = again[i];
		assert_err(create(a, name), EIO);
		assert_err(move(a, name, b, name), EIO);
		assert_err(DO(posix_remove, &w.who, b, .name = name_of(name)),
			   EIO);
		assert_err(make(a, name, VFS_LNK), EIO);
	}
	sync_faults.dir_errno = 0;
	close_dirs(a, b);
}

static void set_mode_fails(void *dir)
{
	assert_err(set_mode(dir, 0700), EIO);
}

/* A file that can't be opened is synced with its file system, and an error that
 * one thread gets can concern data that another thread's change lost. */
TEST_LOOP(a_change_without_fsync_that_meets_a_failed_sync_is_no_success, 0, 4)
{
	struct vfs_node *dir[2];
	pthread_t thread[2];

	fresh_dirs(_i / 2, &dir[0], &dir[1]);
	if (_i % 2)
		sync_faults.dir_errno = EINVAL;
	else
		sync_faults.open_errno = EACCES;
	sync_faults.hold_failed = true;
	sync_faults.whole_once = EIO;
	assert_ok(thread_start(&thread[0], "first", set_mode_fails, dir[0]));
	EVENTUALLY(sync_faults.wholes == 1);
	assert_ok(thread_start(&thread[1], "second", set_mode_fails, dir[1]));
	EVENTUALLY(world_sync_waits());
	sync_faults.hold_failed = false;
	for (int i = 0; i < 2; i++)
		assert_ok(pthread_join(thread[i], NULL));
	sync_faults.open_errno = sync_faults.dir_errno = 0;
	close_dirs(dir[0], dir[1]);
}

/* The parent is open, the new directory can't be. */
TEST_LOOP(an_error_in_opening_for_a_sync_is_an_error_of_the_disk, 0, 2)
{
	struct vfs_make what = { .type = VFS_DIR,
				 .attr = { .set = VFS_SET_MTIME } };
	struct vfs_node *a, *b;
	uint64_t verf;

	fresh_dirs(_i, &a, &b);
	assert_ok(create(a, "x"));
	verf = w.fs->verf;
	sync_faults.open_errno = EIO;
	assert_err(DO(posix_make, &w.who, a, .name = name_of("new"),
		      .make = &what), EIO);
	sync_faults.open_errno = 0;
	ck_assert_uint_ne(w.fs->verf, verf);
	/* In doubt, the parent's sync asked the whole file system. */
	ck_assert_int_eq(sync_faults.wholes, 1);
	close_dirs(a, b);
}

/* For a GUARDED CREATE or a MKDIR that is a lock, EXIST is another's. */
TEST_LOOP(no_client_is_told_to_come_again_for_a_name_that_it_made, 0, 2)
{
	static const struct vfs_setattr times = { .set = VFS_SET_MTIME };
	struct vfs_make dir = { .type = VFS_DIR, .attr = times };
	struct vfs_create file = { .how = VFS_CREATE_GUARDED, .attr = times };
	struct vfs_node *a, *b;

	fresh_dirs(_i, &a, &b);
	sync_faults.times_errno = ENOMEM;
	assert_err(DO(posix_make, &w.who, a, .name = name_of("1"),
		      .make = &dir), EIO);
	assert_err(DO(posix_create, &w.who, a, .name = name_of("2"),
		      .create = &file), EIO);
	ck_assert(is_there("a/1") && is_there("a/2"));
	sync_faults.times_errno = 0;
	close_dirs(a, b);
}

/*
 * A WRITE of three bytes of which @bytes go in before @err.
 */
static int64_t write_until(struct vfs_node *n, int bytes, int err,
			   enum vfs_stable *how)
{
	int64_t done;

	sync_faults.write_bytes = bytes;
	sync_faults.write_errno = err;
	done = write_str(n, 0, "abc", how);
	sync_faults.write_errno = 0;
	return done;
}

TEST_LOOP(data_before_an_error_of_the_disk_is_not_acknowledged, 0, 2)
{
	static const int errors[] = { EIO, EROFS, ENXIO, EUCLEAN, ESTALE };
	static const enum vfs_stable stable[] = { VFS_UNSTABLE, VFS_DATA_SYNC,
						  VFS_FILE_SYNC };
	struct vfs_node *n;
	uint64_t verf;

	open_world(_i);
	n = must_create(w.root, "f");
	for (unsigned i = 0; i < ARRAY_SIZE(errors) * 3 * 2; i++) {
		enum vfs_stable how = stable[i % 3];

		sync_faults.whole_errno = 0;
		assert_ok(DO(posix_commit, &w.who, n));
		verf = w.fs->verf;
		assert_err(write_until(n, i / 3 % 2 * 2, errors[i / 6], &how),
			   errors[i / 6]);
		ck_assert_uint_ne(w.fs->verf, verf);
		/* And the file system is in doubt. */
		sync_faults.whole_errno = EROFS;
		assert_err(DO(posix_commit, &w.who, n), EROFS);
	}
	sync_faults.whole_errno = 0;
	vfs_node_put(n);
	world_close();
}

/* The table of refusals in vfs/posix/sync.c. */
TEST_LOOP(a_refusal_is_no_error_of_the_disk, 0, 2)
{
	static const int errors[] = { ENOSPC, EDQUOT, EFBIG, EPERM, EACCES,
				      ETXTBSY, EAGAIN, EOPNOTSUPP, EINVAL,
				      ENOMEM };
	enum vfs_stable how;
	struct vfs_node *n;
	uint64_t verf;

	open_world(_i);
	n = must_create(w.root, "f");
	verf = w.fs->verf;
	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		how = VFS_UNSTABLE;
		assert_err(write_until(n, 0, errors[i], &how), errors[i]);
		how = VFS_FILE_SYNC;
		ck_assert_int_eq(write_until(n, 2, errors[i], &how), 2);
		ck_assert_int_eq(how, VFS_FILE_SYNC);
	}
	ck_assert_uint_eq(w.fs->verf, verf);
	ck_assert_int_eq(sync_faults.wholes, 0);
	vfs_node_put(n);
	world_close();
}

/* When the system syncs a file without room, the error can concern older data,
 * and no other call gets to know of it then. */
TEST_LOOP(no_room_on_a_file_that_the_system_syncs_is_an_error, 0, 2)
{
	static const int errors[] = { ENOSPC, EDQUOT };
	enum vfs_stable how;
	struct vfs_node *n;
	uint64_t verf;

	open_world(_i);
	n = must_create(w.root, "f");
	for (unsigned i = 0; i < ARRAY_SIZE(errors) * 2; i++) {
		sync_faults.chattr_s = i % 2;
		sync_faults.mount_sync = !(i % 2);
		verf = w.fs->verf;
		how = VFS_UNSTABLE;
		assert_err(write_until(n, 2, errors[i / 2], &how),
			   errors[i / 2]);
		ck_assert_uint_ne(w.fs->verf, verf);
	}
	vfs_node_put(n);
	world_close();
}

/* As a reload does that removes an export and adds it again. */
TEST_LOOP(a_doubt_outlives_the_exports, 0, 2)
{
	struct vfs_node *a;

	open_world(_i);
	vfs_node_put(must_mkdir(w.root, "a"));
	sync_faults.whole_errno = EROFS;
	sync_faults_lose((ino_t)attr_of(w.root).fileid);
	assert_err(set_mode(w.root, 0755), EIO);
	world_restart();
	mount_disk();
	sync_faults.whole_errno = EROFS;
	a = must_lookup(w.root, "a");
	assert_err(set_mode(a, 0755), EROFS);
	sync_faults.whole_errno = 0;
	assert_ok(set_mode(a, 0755));
	sync_faults.whole_errno = EROFS;
	assert_ok(set_mode(a, 0755));	/* and the doubt has ended */
	vfs_node_put(a);
	world_close();
}

int main(void)
{
	return world_run();
}
