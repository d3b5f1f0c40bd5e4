/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The posix backend on an ext4 that gives up its journal ("mount -o
 * remount,abort", as after an error of the disk) between a WRITE and the call
 * that has to make it durable.  Needs root and a loop device.
 */
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/unit/posix_fixture.h"

static bool run(const char *fmt, const char *a, const char *b)
{
	char command[1400];

	snprintf(command, sizeof(command), fmt, a, b);
	return system(command) == 0;
}

/* World @i on a private file system, made by @mkfs, that writes nothing by
 * itself; false: not possible here. */
static bool open_disk(int i, const char *mkfs)
{
	char image[sizeof(w.state) + 8];

	world_prepare(i * 2, NULL);
	snprintf(image, sizeof(image), "%s/image", w.state);
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    !run("truncate -s 120M %s && %s", image, "true") ||
	    !run("%s %s >/dev/null 2>&1", mkfs, image) ||
	    !run("mount -o loop,commit=600 %s %s 2>/dev/null", image, w.dir)) {
		printf("skipped: %s, or its file system can't be mounted\n",
		       mkfs);
		world_remove();
		return false;
	}
	world_mount();
	return true;
}

static bool open_ext4(int i)
{
	return open_disk(i, "mke2fs -q -F -t ext4");
}

static void close_disk(void)
{
	posix_cred_server(to_posix_fs(w.fs));
	vfs_node_put(w.root);
	w.fs->ops->unmount(w.fs);
	assert_ok(umount2(w.dir, MNT_DETACH));
	world_remove();
}

static void abort_journal(void)
{
	ck_assert(run("mount -o remount,abort %s%s", w.dir, ""));
}

static struct vfs_node *must_link(const char *name)
{
	struct vfs_make what = { .type = VFS_LNK, .target = "to",
				 .target_len = 2 };
	struct vfs_node *n;

	assert_ok(GET(out, n, posix_make, &w.who, w.root, .name = name_of(name),
		      .make = &what));
	return n;
}

TEST_LOOP(an_aborted_journal_makes_commit_fail, 0, 2)
{
	enum vfs_stable how = VFS_UNSTABLE;
	struct vfs_node *n;
	uint64_t verf;

	if (!open_ext4(_i))
		return;
	n = must_create(w.root, "f");
	verf = w.fs->verf;
	ck_assert_int_eq(write_str(n, 0, "abc", &how), 3);
	abort_journal();
	for (int i = 0; i < 3; i++)
		ck_assert_int_lt(DO(posix_commit, &w.who, n), 0);
	ck_assert_uint_ne(w.fs->verf, verf);
	vfs_node_put(n);
	close_disk();
}

TEST_LOOP(an_aborted_journal_makes_names_and_attributes_fail, 0, 2)
{
	struct vfs_setattr set = { .set = VFS_SET_UID, .uid = 7 };
	struct vfs_node *dir, *link;
	struct vfs_make what = { .type = VFS_DIR };

	if (!open_ext4(_i))
		return;
	dir = must_mkdir(w.root, "d");
	link = must_link("l");
	/* Done, but not synced: by a local process. */
	assert_ok(chmod(local("d"), 0700));
	abort_journal();
	ck_assert_int_lt(posix_node_flush(to_posix(dir), NULL), 0);
	ck_assert_int_lt(posix_node_flush(to_posix(link), NULL), 0);
	ck_assert_int_lt(DO(posix_setattr, &w.who, dir, .set = &set), 0);
	ck_assert_int_lt(DO(posix_setattr, &w.who, link, .set = &set), 0);
	ck_assert_int_lt(DO(posix_make, &w.who, dir,
			    .name = name_of("e"), .make = &what), 0);
	vfs_node_put(link);
	vfs_node_put(dir);
	close_disk();
}

/* Nor has a disk died there: other processes can write elsewhere on it. */
TEST_LOOP(in_a_tree_mounted_read_only_there_is_nothing_to_commit, 0, 2)
{
	struct vfs_node *n;
	uint64_t verf;

	if (!open_ext4(_i))
		return;
	vfs_node_put(must_create(w.root, "f"));
	ck_assert(run("mount --bind %s %s", w.dir, w.dir));
	ck_assert(run("mount -o remount,bind,ro %s%s", w.dir, ""));
	world_restart();
	n = must_lookup(w.root, "f");
	verf = w.fs->verf;
	assert_ok(DO(posix_commit, &w.who, n));
	ck_assert_uint_eq(w.fs->verf, verf);
	ck_assert(!posix_disk_doubtful(to_posix_fs(w.fs)->disk));
	posix_fs_failed(to_posix_fs(w.fs));
	assert_ok(DO(posix_commit, &w.who, n));
	vfs_node_put(n);
	assert_ok(umount2(w.dir, MNT_DETACH));
	close_disk();
}

/* Closes all files that are open for writing, and checks that the backend sees
 * the disk as writable. */
static void close_for_remount(void)
{
	world_restart();
	assert_ok(posix_node_flush(to_posix(w.root), NULL));
	ck_assert(!to_posix_fs(w.fs)->read_only);
}

/* The system writes everything before it makes a file system read-only. */
TEST_LOOP(after_a_remount_read_only_there_is_nothing_to_commit, 0, 4)
{
	enum vfs_stable how = VFS_UNSTABLE;
	struct vfs_node *n;
	uint64_t verf;

	if (!open_disk(_i % 2, _i < 2 ? "mke2fs -q -F -t ext4" :
					"mkfs.btrfs -q"))
		return;
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "abc", &how), 3);
	vfs_node_put(n);
	close_for_remount();
	verf = w.fs->verf;
	ck_assert(run("mount -o remount,ro %s%s", w.dir, ""));
	n = must_lookup(w.root, "f");
	for (int i = 0; i < 2; i++)
		assert_ok(DO(posix_commit, &w.who, n));
	ck_assert_uint_eq(w.fs->verf, verf);
	/* Also of the whole file system. */
	posix_fs_failed(to_posix_fs(w.fs));
	assert_ok(DO(posix_commit, &w.who, n));
	vfs_node_put(n);
	close_disk();
}

/* A mount that alone becomes read-only hides an abort from the look at its
 * journal. */
TEST_LOOP(a_mount_that_becomes_read_only_proves_nothing, 0, 2)
{
	struct vfs_node *n;

	if (!open_ext4(_i))
		return;
	vfs_node_put(must_create(w.root, "f"));
	close_for_remount();
	ck_assert(run("mount -o remount,bind,ro %s%s", w.dir, ""));
	n = must_lookup(w.root, "f");
	ck_assert_int_lt(DO(posix_commit, &w.who, n), 0);
	vfs_node_put(n);
	close_disk();
}

int main(void)
{
	return world_run();
}
