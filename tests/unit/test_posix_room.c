/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptors that an export can take, also while its disk hangs. */
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/unit/posix_fixture.h"

#define LIMIT	640
/* An export takes two thirds of the descriptors for files, and one. */
#define STOPS	211

/* ---- the disk, in place of the C library's calls */

static atomic_bool disk_hangs;

int fsync(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	WAIT_WHILE(S_ISREG(st.st_mode) && atomic_load(&disk_hangs));
	return 0;
}

int fdatasync(int fd)
{
	return fsync(fd);
}

int syncfs(int fd)
{
	WAIT_WHILE(atomic_load(&disk_hangs));
	return fcntl(fd, F_GETFD) < 0 ? -1 : 0;
}

/* ---- exports */

/* Before the first descriptor is counted. */
static void open_world(int i)
{
	const struct rlimit few = { LIMIT, LIMIT };

	assert_ok(setrlimit(RLIMIT_NOFILE, &few));
	world_open(i, NULL);
}

static long nfds(void)
{
	return to_posix_fs(w.fs)->cache.nfds;
}

/* Makes the file, whose data a sweep has to sync before it closes it. */
static int write_unstable(struct vfs_node *dir, const char *kind, int i)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	enum vfs_stable stable = VFS_UNSTABLE;
	struct vfs_node *n;
	char name[32];
	int err;

	snprintf(name, sizeof(name), "%s%d", kind, i);
	err = GET(out, n, posix_create, &w.who, dir, .name = name_of(name),
		  .create = &how);
	if (err < 0)
		return err;
	if (n) {
		ck_assert_int_eq(write_str(n, 0, "x", &stable), 1);
		vfs_node_put(n);
	}
	return 0;
}

/* Returns how many files could be written before one was refused. */
static int write_all(const char *kind)
{
	int err = 0, i;

	for (i = 0; i < LIMIT && err == 0; i++)
		err = write_unstable(w.root, kind, i);
	assert_err(err, ETIMEDOUT);
	return i - 1;
}

/* Another export of the process, on a directory of @i's world. */
static struct vfs_fs *mount_other(struct vfs_node **root)
{
	struct vfs_config config = w.config;
	char *path = strdup(local("other"));
	struct vfs_fs *fs;

	assert_ok(mkdir(path, 0777));
	config.path = path;
	assert_ok(posix_vfs_ops.mount(&config, &fs));
	assert_ok(fs->ops->root(fs, root));
	free(path);
	return fs;
}

static void unmount_other(struct vfs_fs *fs, struct vfs_node *root)
{
	vfs_node_put(root);
	fs->ops->unmount(fs);
}

/* As for connections. */
static void open_null(int n)
{
	int fd[LIMIT];

	for (int i = 0; i < n; i++) {
		fd[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
		ck_assert_int_ge(fd[i], 0);
	}
	while (n--)
		close(fd[n]);
}

TEST_LOOP(a_disk_that_hangs_takes_no_descriptors_from_others, 0, WORLDS)
{
	struct vfs_node *root, *held[40];
	struct vfs_fs *other;
	char name[16];
	int n;

	open_world(_i);
	if (world_on_tmpfs()) {		/* it has no disk */
		world_close();
		return;
	}
	atomic_store(&disk_hangs, true);
	n = write_all("a");
	ck_assert_int_ge(n, LIMIT / 8);
	/* The root's descriptor, and the table's, come off the files' share. */
	ck_assert_int_le(nfds(), STOPS);
	ck_assert_int_ge(nfds(), STOPS - 8);
	/* Once it is known to hang nothing is gained by trying on. */
	ck_assert_int_eq(write_all("b"), 0);
	other = mount_other(&root);
	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		held[i] = must_create(root, name);
	}
	open_null(LIMIT * 3 / 8);
	for (int i = 0; i < 40; i++)
		vfs_node_put(held[i]);
	atomic_store(&disk_hangs, false);
	EVENTUALLY(write_unstable(w.root, "b", 0) == 0);
	unmount_other(other, root);
	world_close();
}

/* Each export that hangs leaves some for the next. */
TEST(several_disks_that_hang_leave_descriptors_for_another)
{
	struct vfs_node *root, *n;
	struct world all[3];
	struct vfs_fs *other;
	bool skip;

	open_world(0);
	skip = world_on_tmpfs();
	atomic_store(&disk_hangs, !skip);
	for (int i = 0; i < 3 && !skip; i++) {
		if (i > 0)
			world_open(0, NULL);
		write_all("a");
		all[i] = w;
	}
	if (!skip) {
		other = mount_other(&root);
		n = must_create(root, "f");
		vfs_node_put(n);
		atomic_store(&disk_hangs, false);
		unmount_other(other, root);
		for (int i = 0; i < 2; i++) {
			w = all[i];
			world_close();
		}
		w = all[2];
	}
	world_close();
}

/* However late the sweep gets a processor. */
TEST_LOOP(a_disk_that_works_refuses_no_file, 0, WORLDS)
{
	atomic_store(&posix_room_ms, 60000);
	open_world(_i);
	for (int i = 0; i < 4 * LIMIT; i++)
		assert_ok(write_unstable(w.root, "a", i));
	ck_assert_int_le(nfds(), STOPS);
	world_close();
}

int main(void)
{
	return world_run();
}
