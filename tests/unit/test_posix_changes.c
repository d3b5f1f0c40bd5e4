/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of one file that meet: through two threads, nodes or exports. */
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/posix_fixture.h"

/* The backend's chmod(2), which waits for a second one while it is told to. */
static atomic_bool meet;
static atomic_int here;

int chmod(const char *path, mode_t mode)
{
	if (atomic_load(&meet)) {
		atomic_fetch_add(&here, 1);
		/* A second one, if it does not wait, comes in this time. */
		(void)HOLDS_FOR(300, atomic_load(&here) < 2);
	}
	return fchmodat(AT_FDCWD, path, mode, 0);
}

/* The backend's reads: when one finds the end of "f", it grows. */
static atomic_bool grows;

static ssize_t grow(ssize_t n)
{
	int fd;

	if (n != 0 || !atomic_exchange(&grows, false))
		return n;
	fd = open(local("f"), O_WRONLY | O_APPEND);
	ck_assert_int_eq(write(fd, "67890", 5), 5);
	close(fd);
	return n;
}

ssize_t preadv2(int fd, const struct iovec *iov, int niov, off_t off,
		int flags)
{
	return grow(syscall(SYS_preadv2, fd, iov, niov, off, 0, flags));
}

ssize_t splice(int in, off_t *in_at, int out, off_t *out_at, size_t len,
	       unsigned flags)
{
	return grow(syscall(SYS_splice, in, in_at, out, out_at, len, flags));
}

struct guarded {
	struct vfs_node *n;
	struct vfs_setattr set;
	int err;
};

static void set_guarded(void *arg)
{
	struct guarded *g = arg;

	g->err = DO(posix_setattr, &w.who, g->n, .set = &g->set);
}

/* A mount of the same directory, as a second export of it has. */
static struct vfs_fs *mount_again(void)
{
	struct vfs_config config = w.config;
	struct vfs_fs *fs;

	config.state_dir = NULL;
	assert_ok(posix_vfs_ops.mount(&config, &fs));
	return fs;
}

static struct vfs_node *look_up_in(struct vfs_fs *fs, const char *name)
{
	struct vfs_node *root, *n;

	assert_ok(fs->ops->root(fs, &root));
	n = must_lookup(root, name);
	vfs_node_put(root);
	return n;
}

/* Both see the ctime that they were told to expect, unless one waits. */
TEST_LOOP(one_of_two_setattrs_with_the_same_guard_is_done, 0, WORLDS)
{
	struct vfs_fs *second;
	struct guarded g[2];
	struct vfs_attr attr;
	pthread_t t[2];

	world_open(_i, NULL);
	second = mount_again();
	vfs_node_put(must_create(w.root, "f"));
	world_restart();		/* drops the open file */
	g[0].n = must_lookup(w.root, "f");
	g[1].n = look_up_in(second, "f");
	attr = attr_of(g[0].n);
	for (unsigned i = 0; i < 2; i++) {
		g[i].set = (struct vfs_setattr){
			.set = VFS_SET_MODE, .mode = 0640 + i,
			.guarded = true, .guard = attr.ctime,
		};
		g[i].err = 1;
	}
	world_settle("f");		/* the clock of ctime ticks */
	atomic_store(&meet, true);
	for (unsigned i = 0; i < 2; i++)
		assert_ok(thread_start(&t[i], "setter", set_guarded, &g[i]));
	for (unsigned i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	atomic_store(&meet, false);
	ck_assert_int_eq(MIN(g[0].err, g[1].err), -EDOM);
	ck_assert_int_eq(MAX(g[0].err, g[1].err), 0);
	ck_assert_uint_eq(attr_of(g[0].n).mode,
			  g[0].err == 0 ? g[0].set.mode : g[1].set.mode);
	vfs_node_put(g[0].n);
	vfs_node_put(g[1].n);
	second->ops->unmount(second);
	world_close();
}

/* A client that was given the other's change as its own "before" would keep its
 * cached data of the file. */
TEST_LOOP(a_change_by_another_export_leaves_no_attributes_of_before, 0, WORLDS)
{
	struct posix_change one, other;
	struct vfs_wcc wcc, other_wcc;
	struct vfs_fs *second;
	struct vfs_node *a, *b;

	world_open(_i, NULL);
	second = mount_again();
	a = must_mkdir(w.root, "d");
	b = look_up_in(second, "d");
	ck_assert_ptr_ne(a, b);

	assert_ok(posix_change_begin(&one, to_posix(a), &wcc));
	assert_ok(posix_change_begin(&other, to_posix(b), &other_wcc));
	posix_change_end(&other);
	posix_change_end(&one);
	ck_assert(!wcc.has_before && wcc.has_after);
	ck_assert(!other_wcc.has_before && other_wcc.has_after);

	assert_ok(posix_change_begin(&one, to_posix(a), &wcc));
	posix_change_end(&one);
	assert_ok(posix_change_begin(&other, to_posix(b), &other_wcc));
	posix_change_end(&other);
	ck_assert(wcc.has_before && other_wcc.has_before);
	vfs_node_put(a);
	vfs_node_put(b);
	second->ops->unmount(second);
	world_close();
}

/* No data before the end that the reply tells of would be an error. */
TEST_LOOP(a_file_that_grows_behind_a_read_is_read_on, 0, WORLDS)
{
	struct vfs_node *n;
	char out[64];
	bool eof;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "12345", NULL), 5);
	atomic_store(&grows, true);
	ck_assert_int_eq(read_str(n, 5, out, &eof), 5);
	ck_assert_str_eq(out, "67890");
	ck_assert(eof);
	atomic_store(&grows, true);
	ck_assert_int_eq(read_str(n, 0, out, &eof), 15);
	ck_assert_str_eq(out, "123456789067890");
	ck_assert(eof);
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(a_file_that_grows_behind_a_pipe_is_read_instead, 0, WORLDS)
{
	struct vfs_node *n;
	int fd[2];
	bool eof;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "12345", NULL), 5);
	ck_assert_int_eq(pipe2(fd, O_NONBLOCK | O_CLOEXEC), 0);
	atomic_store(&grows, true);
	assert_err(DO(posix_read_pipe, &w.who, n,
		      .read = { .off = 5, .count = 4096, .pipe = fd[1] }),
		   EOPNOTSUPP);
	ck_assert_int_eq(GET(eof, eof, posix_read_pipe, &w.who, n,
			     .read = { .off = 5, .count = 4096,
				       .pipe = fd[1] }), 5);
	ck_assert(eof);
	close(fd[0]);
	close(fd[1]);
	vfs_node_put(n);
	world_close();
}

static int create_exclusive(uint64_t verf)
{
	struct vfs_create how = { .how = VFS_CREATE_EXCLUSIVE, .verf = verf };
	struct vfs_node *n;
	int err = GET(out, n, posix_create, &w.who, w.root,
		      .name = name_of("f"), .create = &how);

	if (err == 0)
		vfs_node_put(n);
	return err;
}

/* By the file's times alone. */
TEST_LOOP(an_exclusive_create_is_known_after_a_write_and_a_restart, 0, WORLDS)
{
	const uint64_t verf = 0xfedcba9876543210;
	struct vfs_node *n;

	world_open(_i, NULL);
	assert_ok(create_exclusive(verf));
	world_restart();
	assert_ok(create_exclusive(verf));
	n = must_lookup(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	vfs_node_put(n);
	assert_ok(create_exclusive(verf));
	for (unsigned bit = 0; bit < 64; bit++)
		assert_err(create_exclusive(verf ^ 1ull << bit), EEXIST);
	n = must_lookup(w.root, "f");
	ck_assert_uint_eq(attr_of(n).size, 4);
	vfs_node_put(n);
	world_close();
}

/* As chattr(1); false: not permitted here. */
static bool set_flags(const char *name, int flags)
{
	int fd = open(local(name), O_RDONLY), rc;

	ck_assert_int_ge(fd, 0);
	rc = ioctl(fd, FS_IOC_SETFLAGS, &flags);
	close(fd);
	return rc == 0;
}

/* Though it is open, from when it might be. */
TEST_LOOP(a_file_that_turns_immutable_is_not_written, 0, WORLDS)
{
	static const int flags[] = { FS_APPEND_FL, FS_IMMUTABLE_FL };
	struct vfs_setattr cut = { .set = VFS_SET_SIZE, .size = 1 };
	struct vfs_node *n;
	char text[64];

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	for (unsigned i = 0; i < ARRAY_SIZE(flags); i++) {
		if (!set_flags("f", flags[i])) {
			printf("skipped: no chattr here\n");
			break;
		}
		assert_err(write_str(n, 0, "over", NULL), EPERM);
		assert_err(write_str(n, 4, "more", NULL), EPERM);
		assert_err(DO(posix_setattr, &w.who, n, .set = &cut), EPERM);
		ck_assert_int_eq(read_str(n, 0, text, NULL), 4);
		ck_assert_str_eq(text, "text");
		assert_ok(DO(posix_commit, &w.who, n));
		ck_assert(set_flags("f", 0));
	}
	ck_assert_int_eq(write_str(n, 0, "over", NULL), 4);
	vfs_node_put(n);
	world_close();
}

int main(void)
{
	return world_run();
}
