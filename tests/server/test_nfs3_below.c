/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Directories that something is mounted on, in an export without crossmnt: the
 * server shows the directory below the mount, if it may copy mounts and open
 * handles.
 *
 * Each test needs a mount namespace, and most need root outside of a user
 * namespace, as handles are opened.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/thread.h"
#include "tests/server/mount_space.h"
#include "tests/server/nfs_names.h"
#include "tests/unit/runner.h"
#include "vfs/helper.h"
#include "vfs/posix/attr.h"

static char state[64], exports_text[512];
static struct harness_config config = {
	.backend = &posix_vfs_ops, .state_dir = state, .exports = exports_text,
};
static pid_t helper;

static void set_exports(const char *backend, const char *options)
{
	snprintf(exports_text, sizeof(exports_text),
		 "%s:%s/e 127.0.0.1(rw,insecure,no_root_squash%s)\n"
		 "mem:/mem 127.0.0.1(rw,insecure)\n",
		 backend, space_base, options);
}

static void begin(const char *backend, const char *options)
{
	set_exports(backend, options);
	space_serve(&config);
}

static void mount_on(const char *path)
{
	ck_assert_int_eq(mount("none", space_at(path), "tmpfs", 0, NULL), 0);
}

static void run(const char *commands)
{
	char text[512];

	snprintf(text, sizeof(text), "cd %s && %s", space_base, commands);
	ck_assert_int_eq(system(text), 0);
}

/* A directory "m" with a file and directories, below a mount with another. */
static void setup(void)
{
	snprintf(state, sizeof(state), "%s/state", space_base);
	/* A test that failed leaves them. */
	run("{ umount -l e; rm -rf e state; } 2>/dev/null; "
	    "mkdir state e && mount -t tmpfs none e && cd e && "
	    "mkdir -p m/low/deep d && echo low > m/f && echo low > f");
	mount_on("m");
	ck_assert_int_eq(mkdir(space_at("m/high"), 0755), 0);
	helper = 0;
}

static void teardown(void)
{
	nfs_teardown();
	helper_use(HELPER_BARE, -1, 0);
	if (helper)
		ck_assert_int_eq(waitpid(helper, NULL, 0), helper);
	run("umount -l e && rm -r e state");
}

/* Looks up "a/b" from the top. */
static nfs_fh3 walk_to(const char *path)
{
	char text[256], *rest = text, *name;
	nfs_fh3 at = top;

	snprintf(text, sizeof(text), "%s", path);
	while ((name = strsep(&rest, "/")))
		ck_assert_int_eq(try_lookup(at, name, &at), NFS3_OK);
	return at;
}

/* True if this process may open handles, as root may; a user who is root in a
 * name space may not. */
static bool opens_handles(void)
{
	union {
		struct file_handle h;
		char space[sizeof(struct file_handle) + MAX_HANDLE_SZ];
	} k = { .h.handle_bytes = MAX_HANDLE_SZ };
	int id, fd, top_fd = open(space_at(""), O_RDONLY | O_DIRECTORY);

	ck_assert_int_ge(top_fd, 0);
	ck_assert_int_eq(name_to_handle_at(top_fd, "f", &k.h, &id, 0), 0);
	fd = open_by_handle_at(top_fd, &k.h, O_PATH);
	ck_assert(fd >= 0 || errno == EPERM);
	close(top_fd);
	if (fd < 0) {
		printf("skipped: may not open handles\n");
		return false;
	}
	close(fd);
	return true;
}

/* False: this server can't show it. */
static bool begin_below(void)
{
	helper = space_helper();
	begin("posix", "");
	return opens_handles();
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(the_directory_below_a_mount_is_shown)
{
	nfs_fh3 m;

	if (!begin_below())
		return;
	m = walk_to("m");
	ck_assert_uint_eq(nfs_attr(m).fsid, nfs_attr(top).fsid);
	ck_assert_int_eq(nfs_exists(m, "high"), NFS3ERR_NOENT);
	ck_assert(nfs_same_fh(walk_to("m/low/deep/.."), walk_to("m/low")));
	ck_assert(nfs_same_fh(walk_to("m/low/.."), m));
	ck_assert(nfs_same_fh(walk_to("m/.."), top));
}

/* Any other answer would show a different directory for a moment. */
TEST(a_late_helper_gives_no_other_directory)
{
	int ends[2];
	nfs_fh3 m;

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    ends), 0);
	helper_use(HELPER_BARE, ends[0], 10);
	begin("posix", "");
	if (!opens_handles())
		return;
	ck_assert_int_eq(try_lookup(top, "m", &m), NFS3ERR_JUKEBOX);
	/* A helper that is gone stays so. */
	close(ends[1]);
	ck_assert_int_eq(try_lookup(top, "m", &m), NFS3_OK);
	ck_assert_uint_eq(nfs_attr(m).mode & 07777, 0555);
}

static void ask_quota(void *err)
{
	struct helper_message m = { .task = HELPER_QUOTA };

	atomic_store((atomic_int *)err, helper_ask(&m, 0, NULL));
}

TEST(a_hung_quota_does_not_hold_up_what_a_mount_covers)
{
	struct pollfd asked = { .events = POLLIN };
	atomic_int err = 0;
	pthread_t thread;
	int ends[2];

	if (!begin_below())
		return;
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    ends), 0);
	helper_use(HELPER_QUOTA, ends[0], 60000);
	ck_assert_int_eq(thread_start(&thread, "quota", ask_quota, &err), 0);
	asked.fd = ends[1];
	ck_assert_int_eq(poll(&asked, 1, 60000), 1);
	walk_to("m/low/deep");
	ck_assert_int_eq(atomic_load(&err), 0);	/* it still waits */
	close(ends[1]);
	pthread_join(thread, NULL);
	ck_assert_int_eq(atomic_load(&err), -ESRCH);
	helper_use(HELPER_QUOTA, -1, 0);
}

static int count_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

TEST(each_look_up_leads_there)
{
	struct stat st;
	nfs_fh3 m;
	int before;

	if (!begin_below())
		return;
	m = space_keep(walk_to("m"));
	before = count_descriptors();
	for (int i = 0; i < 50; i++) {
		/* Names are not kept while the directory changes. */
		ck_assert_int_eq(chmod(space_at(""), i % 2 ? 0755 : 0777), 0);
		ck_assert(nfs_same_fh(walk_to("m"), m));
		ck_assert(nfs_same_fh(walk_to("m/low/.."), m));
	}
	ck_assert_int_lt(count_descriptors(), before + 20);
	EVENTUALLY(stat(space_at(""), &st) == 0 && posix_settled(&st));
	ck_assert(nfs_same_fh(walk_to("m"), m));
	kill(helper, SIGKILL);
	ck_assert(nfs_same_fh(walk_to("m"), m));
}

TEST(the_directory_below_a_mount_can_be_changed)
{
	nfs_fh3 m;
	struct stat st;

	if (!begin_below())
		return;
	m = space_keep(walk_to("m"));
	ck_assert_int_eq(try_mkdir(&root, m, "new"), NFS3_OK);
	ck_assert_int_eq(try_rename(m, "f", top, "moved"), NFS3_OK);
	ck_assert_int_eq(try_rename(top, "moved", m, "back"), NFS3_OK);
	ck_assert_int_eq(try_rename(walk_to("m/low"), "deep", m, "deep"),
			 NFS3_OK);
	ck_assert(nfs_same_fh(walk_to("m/deep/.."), m));
	ck_assert_int_eq(try_rmdir(top, "m"), NFS3ERR_ACCES);
	/* Nothing that the server has open keeps the mount. */
	ck_assert_int_eq(umount(space_at("m")), 0);
	ck_assert_int_eq(stat(space_at("m/new"), &st), 0);
	ck_assert_int_eq(stat(space_at("m/back"), &st), 0);
	ck_assert(nfs_same_fh(walk_to("m"), m));
	ck_assert_uint_eq(nfs_attr(m).fileid, (stat(space_at("m"), &st),
					       st.st_ino));
}

/* The node of "m" is made on the way up. */
TEST(a_covered_way_up_stays_in_one_mount)
{
	nfs_fh3 low, m;

	if (!begin_below())
		return;
	low = space_keep(walk_to("m/low"));
	nfs_teardown();
	begin("posix", "");
	ck_assert_int_eq(try_lookup(low, "..", &m), NFS3_OK);
	ck_assert_int_eq(try_rename(m, "f", top, "moved"), NFS3_OK);
}

TEST(a_mount_made_read_only_is_so_below)
{
	nfs_fh3 m;

	if (!begin_below())
		return;
	m = space_keep(walk_to("m"));
	ck_assert_int_eq(try_mkdir(&root, m, "new"), NFS3_OK);
	ck_assert_int_eq(mount(NULL, space_at(""), NULL, MS_REMOUNT | MS_BIND |
			       MS_RDONLY, NULL), 0);
	ck_assert_int_eq(try_mkdir(&root, m, "more"), NFS3ERR_ROFS);
	ck_assert_int_eq(try_mkdir(&root, walk_to("m/low"), "more"),
			 NFS3ERR_ROFS);
}

/* The answer of the real helper for @path. */
static int bare_copy(const char *path, int *copy)
{
	struct helper_message m = { .task = HELPER_BARE };
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), err;

	ck_assert_int_ge(fd, 0);
	err = helper_ask(&m, fd, copy);
	close(fd);
	return err;
}

/* A copy lacks the read-only mounts that protect the files below them, and an
 * intruder in the server can ask for one. */
TEST(nothing_can_be_written_in_the_helpers_copy)
{
	char path[64];
	int copy, err;

	begin("posix", "");
	helper = space_helper();
	run("mkdir e/guarded && echo safe > e/guarded/f && "
	    "mount --bind e/guarded e/guarded && "
	    "mount -o remount,bind,ro e/guarded");
	ck_assert_int_eq(bare_copy(space_at(""), &copy), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d/guarded/f", copy);
	ck_assert_int_lt(open(path, O_WRONLY | O_CLOEXEC), 0);
	ck_assert_int_eq(errno, EROFS);
	ck_assert_int_eq(mkdirat(copy, "new", 0755), -1);
	ck_assert_int_eq(errno, EROFS);
	close(copy);
	/* The mount itself is as it was. */
	run("echo more > e/other");
	/* It has no handles, so a copy would be the only way. */
	err = bare_copy("/proc", &copy);
	ck_assert_int_eq(err, -EOPNOTSUPP);
	ck_assert_int_eq(copy, -1);
}

TEST(handles_of_before_and_after_the_mount_are_the_same)
{
	nfs_fh3 m, low;

	ck_assert_int_eq(umount(space_at("m")), 0);
	if (!begin_below())
		return;
	m = space_keep(walk_to("m"));
	low = space_keep(walk_to("m/low"));
	mount_on("m");
	ck_assert(nfs_same_fh(walk_to("m"), m));
	ck_assert(nfs_same_fh(walk_to("m/low"), low));
	ck_assert(nfs_same_fh(walk_to("m/low/.."), m));
}

TEST(a_mount_below_a_mount_is_not_entered_either)
{
	if (!opens_handles()) {
		begin("posix", "");
		return;
	}
	ck_assert_int_eq(umount(space_at("m")), 0);
	mount_on("m/low");
	mount_on("m");
	helper = space_helper();
	begin("posix", "");
	walk_to("m/low/deep");
	ck_assert(nfs_same_fh(walk_to("m/low/deep/../.."), walk_to("m")));
}

TEST(a_file_below_a_mount_is_shown)
{
	struct stat st;

	if (!begin_below())
		return;
	ck_assert_int_eq(mount("/dev/null", space_at("f"), NULL, MS_BIND, NULL),
			 0);
	ck_assert_int_eq(lstat(space_at("f"), &st), 0);
	ck_assert(S_ISCHR(st.st_mode));
	ck_assert_int_eq(nfs_attr(walk_to("f")).type, NF3REG);
	ck_assert_int_eq(nfs_attr(walk_to("f")).size, 4);
	/* For clients that enter mounts the file below is out of reach. */
	set_exports("posix", ",crossmnt");
	harness_publish(&srv, exports_text);
	ck_assert_int_eq(nfs_exists(top, "f"), NFS3ERR_ACCES);
}

TEST(crossmnt_that_comes_enters_and_leaves_old_handles_alone)
{
	nfs_fh3 m, high;

	if (!begin_below())
		return;
	m = space_keep(walk_to("m"));
	set_exports("posix", ",crossmnt");
	harness_publish(&srv, exports_text);
	high = walk_to("m/high");
	ck_assert_uint_ne(nfs_attr(high).fsid, nfs_attr(m).fsid);
	ck_assert_int_eq(nfs_exists(m, "low"), NFS3_OK);
	ck_assert_int_eq(nfs_exists(m, "high"), NFS3ERR_NOENT);
}

/* As a server without the privilege, which gave out such handles. */
TEST(an_empty_directory_of_before_is_still_there)
{
	nfs_fh3 m;

	begin("posix", "");
	m = space_keep(walk_to("m"));
	ck_assert_int_eq(nfs_exists(m, "low"), NFS3ERR_NOENT);
	nfs_teardown();
	begin_below();
	ck_assert_int_eq(space_status(m), NFS3_OK);
	ck_assert_int_eq(nfs_exists(m, "low"), NFS3ERR_NOENT);
	ck_assert_int_eq(try_mkdir(&root, m, "x"), NFS3ERR_ACCES);
}

TEST(without_handles_of_the_system_it_is_empty)
{
	helper = space_helper();
	begin("posix,table", "");
	ck_assert_int_eq(nfs_exists(walk_to("m"), "low"), NFS3ERR_NOENT);
	ck_assert_int_eq(nfs_exists(walk_to("m"), "high"), NFS3ERR_NOENT);
}

int main(void)
{
	return space_run_tests();
}
