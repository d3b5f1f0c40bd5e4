/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: listings, mount points, callers, calls that don't wait. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "tests/unit/positions.h"
#include "tests/unit/posix_fixture.h"
#include "vfs/posix/cache.h"
#include "vfs/posix/ops.h"
#include "vfs/posix/mounts.h"

#define MANY 10000

/* One page of a listing. */
struct page {
	int	 room;
	int	 taken;
	uint64_t cookie;		/* of the last taken */
	bool	 plus;
	int	 incomplete;		/* plus, without attributes or handle */
	char	 name[256];		/* of the last one */
	uint8_t	*seen;			/* by number */
	bool	 remove;		/* each file, as rm -r does */
};

static bool take(void *arg, const struct vfs_dirent *d)
{
	struct page *p = arg;

	if (p->taken == p->room)
		return false;
	ck_assert_uint_gt(d->cookie, 0);
	ck_assert_uint_le(d->cookie, INT64_MAX);
	ck_assert_uint_gt(d->fileid, 0);
	snprintf(p->name, sizeof(p->name), "%.*s", (int)d->name.len,
		 d->name.s);
	if (p->seen && p->name[0] == 'e')
		p->seen[atoi(p->name + 1)]++;
	if (p->plus && strcmp(p->name, "..") != 0 &&
	    (!d->has_attr || !d->has_handle))
		p->incomplete++;
	if (d->has_attr)
		ck_assert_uint_eq(d->attr.fileid, d->fileid);
	p->taken++;
	p->cookie = d->cookie;
	return true;
}

static bool read_page(struct vfs_node *dir, struct page *p)
{
	uint64_t verf = 0;
	bool eof = false;

	p->taken = 0;
	assert_ok(GET(eof, eof, posix_readdir, &w.who, dir,
		      .readdir = { .cookie = p->cookie, .plus = p->plus,
				   .emit = take, .arg = p }));
	ck_assert_uint_eq(verf, 0);
	ck_assert(eof || p->taken > 0);
	return eof;
}

static void fill(int n)
{
	char path[64];

	for (int i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "e%d", i);
		close(open(local(path), O_CREAT | O_WRONLY, 0644));
	}
}

static int count_all(const uint8_t *seen, int n, int want)
{
	int other = 0;

	for (int i = 0; i < n; i++)
		other += seen[i] != want;
	return other;
}

TEST_LOOP(ten_thousand_entries_come_once_each_in_small_pages, 0, WORLDS)
{
	struct page p = { .room = 17, .seen = calloc(MANY, 1) };

	world_open(_i, NULL);
	fill(MANY);
	while (!read_page(w.root, &p))
		;
	ck_assert_int_eq(count_all(p.seen, MANY, 1), 0);
	free(p.seen);
	world_close();
}

TEST_LOOP(counted_cookies_do_where_positions_are_no_numbers, 0, WORLDS)
{
	struct page p = { .room = 7, .seen = calloc(1000, 1) };
	struct page q;

	world_open(_i, NULL);
	fill(1000);
	to_posix_fs(w.fs)->ordinals = true;
	while (!read_page(w.root, &p))
		;
	ck_assert_int_eq(count_all(p.seen, 1000, 1), 0);
	q = (struct page){ .room = 500, .seen = calloc(1000, 1) };
	while (!read_page(w.root, &q))
		;
	ck_assert_int_eq(count_all(q.seen, 1000, 1), 0);
	free(p.seen);
	free(q.seen);
	world_close();
}

TEST_LOOP(removing_what_was_listed_misses_nothing, 0, WORLDS)
{
	const struct posix_options options = { .async = true };
	struct page p = { .room = 50, .seen = calloc(2000, 1) };
	uint8_t *done = calloc(2000, 1);
	char name[16];
	bool eof;

	world_open(_i, &options);
	if (!positions_last(w.dir)) {
		printf("skipped: this file system's positions are counts\n");
		world_close();
		return;
	}
	fill(2000);
	do {
		eof = read_page(w.root, &p);
		for (int i = 0; i < 2000; i++) {
			if (!p.seen[i] || done[i])
				continue;
			snprintf(name, sizeof(name), "e%d", i);
			must_remove(w.root, name, false);
			done[i] = 1;
		}
	} while (!eof);
	ck_assert_int_eq(count_all(done, 2000, 1), 0);
	free(p.seen);
	free(done);
	world_close();
}

TEST_LOOP(cookies_outlive_a_restart, 0, WORLDS)
{
	struct page p = { .room = 100, .seen = calloc(1000, 1) };

	world_open(_i, NULL);
	fill(1000);
	for (int i = 0; i < 5; i++)
		ck_assert(!read_page(w.root, &p));
	world_restart();
	while (!read_page(w.root, &p))
		;
	ck_assert_int_eq(count_all(p.seen, 1000, 1), 0);
	free(p.seen);
	world_close();
}

TEST_LOOP(plus_gives_attributes_and_handles_that_open, 0, WORLDS)
{
	struct page p = { .room = 1000, .plus = true,
			  .seen = calloc(100, 1) };
	struct vfs_node *n;
	struct vfs_handle h;

	world_open(_i, NULL);
	fill(100);
	ck_assert(read_page(w.root, &p));
	ck_assert_int_eq(p.incomplete, 0);
	n = must_lookup(w.root, "e42");
	h = handle_of(n);
	vfs_node_put(n);
	world_restart();
	assert_ok(try_open(&h));
	free(p.seen);
	world_close();
}

TEST_LOOP(several_readers_do_not_disturb_each_other, 0, WORLDS)
{
	struct page p[6] = { 0 };
	bool eof[6] = { 0 };
	int left = 6;

	world_open(_i, NULL);
	fill(500);
	for (int i = 0; i < 6; i++)
		p[i] = (struct page){ .room = 3 + i,
				      .seen = calloc(500, 1) };
	while (left > 0)
		for (int i = 0; i < 6; i++) {
			if (eof[i])
				continue;
			eof[i] = read_page(w.root, &p[i]);
			left -= eof[i];
		}
	for (int i = 0; i < 6; i++) {
		ck_assert_int_eq(count_all(p[i].seen, 500, 1), 0);
		free(p[i].seen);
	}
	world_close();
}

/* A later listing does not get entries that an earlier one read ahead. */
TEST_LOOP(a_listing_has_all_that_was_there_when_it_began, 0, WORLDS)
{
	enum { FILES = 400, MORE = 20 };
	static uint8_t seen[FILES + MORE];

	world_open(_i, NULL);
	fill(FILES);
	for (int n = FILES; n < FILES + MORE; n++) {
		struct page a = { .room = 20 };
		struct page b = { .room = 20, .seen = seen };

		memset(seen, 0, sizeof(seen));
		read_page(w.root, &a);
		fill(n + 1);
		read_page(w.root, &b);
		if (a.cookie != b.cookie)	/* it came among the first */
			continue;
		read_page(w.root, &a);
		while (!read_page(w.root, &b))
			;
		ck_assert_int_eq(count_all(seen, n + 1, 1), 0);
	}
	world_close();
}

TEST_LOOP(a_cookie_that_can_not_be_is_refused, 0, WORLDS)
{
	struct page p = { .room = 1 };

	world_open(_i, NULL);
	assert_err(DO(posix_readdir, &w.who, w.root,
		      .readdir = { .emit = take, .arg = &p,
				   .cookie = 1ull << 63 }),
		   EBADE);
	world_close();
}

/* A mount point, shown as an empty directory; returns its handle. */
static struct vfs_handle check_covered(const char *name)
{
	struct vfs_node *n = must_lookup(w.root, name);
	const struct vfs_ops *ops = n->fs->ops;
	struct vfs_make dir = { .type = VFS_DIR };
	struct page p = { .room = 100 };
	struct vfs_handle h;
	struct vfs_attr attr;

	ops->handle(n, &h);
	assert_ok(DO(ops->getattr, &w.who, n, .attr = &attr));
	ck_assert_int_eq(attr.type, VFS_DIR);
	assert_ok(DO(ops->readdir, &w.who, n,
		     .readdir = { .emit = take, .arg = &p }));
	ck_assert_int_eq(p.taken, 2);
	assert_err(DO(ops->lookup, &w.who, n, .name = name_of("f")), ENOENT);
	assert_err(DO(ops->make, &w.who, n, .name = name_of("d"),
		      .make = &dir), EACCES);
	vfs_node_put(n);
	assert_ok(try_open(&h));
	return h;
}

TEST_LOOP(mount_points_in_the_tree_are_not_entered, 0, WORLDS)
{
	struct page p = { .room = 100, .plus = true };
	struct vfs_handle h;
	struct vfs_node *d;

	world_open(_i, NULL);
	d = must_mkdir(w.root, "mnt");
	vfs_node_put(d);
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", local("mnt"), "tmpfs", 0, NULL) < 0) {
		printf("skipped: may not mount\n");
		world_close();
		return;
	}
	/* The open descriptor would see the old mount table. */
	world_restart();
	assert_ok(mkdir(local("mnt/f"), 0755));
	h = check_covered("mnt");
	ck_assert(read_page(w.root, &p));
	ck_assert_int_eq(p.incomplete, 1);
	assert_err(DO(posix_remove, &w.who, w.root, .name = name_of("mnt"),
		      .is_dir = true), EBUSY);
	assert_ok(umount(local("mnt")));
	assert_err(try_open(&h), ESTALE);
	assert_ok(try_lookup(w.root, "mnt"));
	world_settle("");
	assert_ok(try_lookup(w.root, "mnt"));
	assert_ok(mount("none", local("mnt"), "tmpfs", 0, NULL));
	check_covered("mnt");
	assert_ok(umount(local("mnt")));
	assert_ok(try_lookup(w.root, "mnt"));
	world_close();
}

/*
 * A FUSE file system at @path that answers nothing while the process lives that
 * is returned, ten seconds at most: then each call into it fails, and so does
 * the test.  The calls of a process that holds it itself never end.  0: not
 * here.
 */
static pid_t mount_hung(const char *path)
{
	char opts[96], mounted = 0;
	int fds[2], fd;
	pid_t pid;

	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		alarm(10);
		fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
		snprintf(opts, sizeof(opts), "fd=%d,rootmode=40000,user_id=0,"
			 "group_id=0", fd);
		if (fd < 0 || mount("none", path, "fuse", 0, opts) < 0 ||
		    write(fds[1], "", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(fds[1]);
	mounted = read(fds[0], &mounted, 1) == 1;
	close(fds[0]);
	return mounted ? pid : 0;
}

TEST_LOOP(mount_points_that_hang_stop_neither_lookup_nor_listing, 0, WORLDS)
{
	struct page p = { .room = 100, .plus = true };
	struct timespec begun, now;
	pid_t holder;

	world_open(_i, NULL);
	vfs_node_put(must_mkdir(w.root, "mnt"));
	world_settle("");
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) {
		printf("skipped: may not mount\n");
		world_close();
		return;
	}
	world_restart();
	assert_ok(try_lookup(w.root, "mnt"));
	holder = mount_hung(local("mnt"));
	if (holder) {
		clock_gettime(CLOCK_MONOTONIC, &begun);
		assert_ok(try_lookup(w.root, "mnt"));
		ck_assert(read_page(w.root, &p));
		ck_assert_int_eq(p.incomplete, 1);
		clock_gettime(CLOCK_MONOTONIC, &now);
		ck_assert_int_lt(now.tv_sec - begun.tv_sec, 8);
		kill(holder, SIGKILL);
		assert_ok(umount2(local("mnt"), MNT_DETACH));
	} else {
		printf("skipped: no FUSE\n");
	}
	world_close();
}

static bool is_kept(struct vfs_node *dir, const char *name,
		    struct vfs_handle *h)
{
	struct stat st;

	assert_ok(posix_stat(to_posix(dir), &st));
	return posix_dentry_find(to_posix_fs(w.fs), to_posix(dir), &st, name,
				 h);
}

TEST_LOOP(a_caller_that_found_a_name_may_search_without_asking, 0, WORLDS)
{
	const struct vfs_op now = { .cred = &w.cred, .nonblock = true };
	struct vfs_node *d, *n;
	struct vfs_attr attr;
	struct stat st;
	int err = -EAGAIN;

	world_open(_i, NULL);
	d = must_mkdir(w.root, "d");
	vfs_node_put(must_create(d, "a"));
	world_settle("d");
	assert_ok(posix_stat(to_posix(d), &st));
	/* Another process's rename can be in the way of the name cache. */
	for (int i = 0; i < 1000 && err == -EAGAIN; i++)
		err = GET(out, n, posix_lookup, &now, d, .name = name_of("a"),
			  .attr = &attr);
	assert_ok(err);
	vfs_node_put(n);
	ck_assert_int_eq(posix_granted(&now, to_posix(d), &st, POSIX_X),
			 POSIX_X);
	assert_ok(chmod(local("d"), 0711));
	assert_ok(posix_stat(to_posix(d), &st));
	if (!world_on_tmpfs())
		assert_err(posix_granted(&now, to_posix(d), &st, POSIX_X),
			   EAGAIN);
	vfs_node_put(d);
	world_close();
}

TEST_LOOP(kept_names_follow_every_change, 0, WORLDS)
{
	struct vfs_cred bob = { .uid = 1002, .gid = 1002 };
	struct vfs_node *n, *d;
	struct vfs_handle h, file;

	world_open(_i, NULL);
	d = must_mkdir(w.root, "d");
	vfs_node_put(must_create(d, "a"));
	vfs_node_put(must_create(d, "b"));
	world_settle("d");
	n = must_lookup(d, "a");
	file = handle_of(n);
	vfs_node_put(n);
	ck_assert(is_kept(d, "a", &h));
	ck_assert(posix_handle_same(&h, &file));
	assert_ok(try_lookup(d, "a"));

	if (to_posix_fs(w.fs)->privileged) {
		assert_ok(chmod(local("d"), 0700));
		w.who.cred = &bob;
		assert_err(try_lookup(d, "a"), EACCES);
		w.who.cred = &w.cred;
		posix_cred_server(to_posix_fs(w.fs));
		world_settle("d");
		assert_ok(try_lookup(d, "a"));
		ck_assert(is_kept(d, "a", &h));
		w.who.cred = &bob;
		assert_err(try_lookup(d, "a"), EACCES);
		w.who.cred = &w.cred;
		posix_cred_server(to_posix_fs(w.fs));
	}
	assert_ok(rename(local("d/b"), local("d/a")));
	ck_assert(!is_kept(d, "a", &h));
	n = must_lookup(d, "a");
	h = handle_of(n);
	ck_assert(!posix_handle_same(&h, &file));
	vfs_node_put(n);
	assert_ok(unlink(local("d/a")));
	assert_err(try_lookup(d, "a"), ENOENT);
	vfs_node_put(d);
	world_close();
}

/* As the kernel keeps access control lists. */
struct acl {
	uint32_t version;
	struct {
		uint16_t tag, perm;
		uint32_t id;
	} e[5];
};

TEST_LOOP(access_control_lists_count, 0, WORLDS)
{
	const struct acl acl = { 2, {
		{ 1, 6, UINT32_MAX }, { 2, 4, 1001 }, { 4, 0, UINT32_MAX },
		{ 0x10, 4, UINT32_MAX }, { 0x20, 0, UINT32_MAX },
	} };
	struct vfs_cred alice = { .uid = 1001, .gid = 1001 };
	struct vfs_cred bob = { .uid = 1002, .gid = 1002 };
	struct vfs_node *n;
	char buf[64];

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	if (!to_posix_fs(w.fs)->privileged ||
	    setxattr(local("f"), "system.posix_acl_access", &acl, sizeof(acl),
		     0) < 0) {
		printf("skipped: no callers, or no lists\n");
		vfs_node_put(n);
		world_close();
		return;
	}
	for (int i = 0; i < 3; i++) {
		w.who.cred = &alice;
		ck_assert_int_eq(read_str(n, 0, buf, NULL), 4);
		assert_err(write_str(n, 0, "t", NULL), EACCES);
		w.who.cred = &bob;
		assert_err(read_str(n, 0, buf, NULL), EACCES);
		world_settle("f");	/* the next answers are kept */
	}
	posix_cred_server(to_posix_fs(w.fs));
	assert_ok(removexattr(local("f"), "system.posix_acl_access"));
	assert_ok(chmod(local("f"), 0600));
	w.who.cred = &alice;
	assert_err(read_str(n, 0, buf, NULL), EACCES);
	vfs_node_put(n);
	w.who.cred = &w.cred;
	world_close();
}

TEST(mounts_made_one_after_the_other_are_told_apart)
{
	struct statx one = { .stx_mask = STATX_MNT_ID, .stx_mnt_id = 100,
			     .stx_dev_minor = 50, .stx_ino = 1 };
	struct statx two = one;

	two.stx_mnt_id++;
	two.stx_dev_minor++;
	ck_assert_uint_ne(posix_mark(&one), posix_mark(&two));
}

int main(void)
{
	return world_run();
}
