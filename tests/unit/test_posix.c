/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: files, attributes, names. */
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "tests/unit/posix_fixture.h"

#include <sys/syscall.h>

/* In place of the C library's: counts the backend's calls, and makes them fail
 * on demand, as they do after a disk lost written data. */
static int fsyncs, fdatasyncs, sync_error;

static int sync_by(long call, int fd)
{
	if (sync_error) {
		errno = sync_error;
		return -1;
	}
	return (int)syscall(call, fd);
}

int fsync(int fd)
{
	fsyncs++;
	return sync_by(SYS_fsync, fd);
}

int fdatasync(int fd)
{
	fdatasyncs++;
	return sync_by(SYS_fdatasync, fd);
}

TEST_LOOP(written_data_is_read, 0, WORLDS)
{
	struct vfs_node *n;
	struct stat st;
	char buf[64];
	bool eof;

	world_open(_i, NULL);
	n = must_create(w.root, "file");
	ck_assert_int_eq(write_str(n, 0, "hello, world", NULL), 12);
	ck_assert_int_eq(read_str(n, 0, buf, &eof), 12);
	ck_assert_str_eq(buf, "hello, world");
	ck_assert(eof);
	ck_assert_int_eq(read_str(n, 7, buf, &eof), 5);
	ck_assert_str_eq(buf, "world");
	ck_assert_int_eq(attr_of(n).size, 12);
	assert_ok(stat(local("file"), &st));
	ck_assert_int_eq(st.st_size, 12);
	ck_assert_int_eq(st.st_mode & 07777, 0644);
	ck_assert_int_eq(attr_of(n).fileid, st.st_ino);
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(writes_are_at_least_as_stable_as_asked, 0, WORLDS)
{
	struct vfs_wcc wcc;
	struct vfs_node *n;
	enum vfs_stable how;
	uint64_t verf;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	for (int ask = VFS_UNSTABLE; ask <= VFS_FILE_SYNC; ask++) {
		how = ask;
		ck_assert_int_eq(write_str(n, 0, "abc", &how), 3);
		ck_assert_int_ge((int)how, ask);
	}
	verf = w.fs->verf;
	assert_ok(DO(posix_commit, &w.who, n, .wcc = &wcc));
	ck_assert(wcc.has_before && wcc.has_after);
	ck_assert_int_eq(w.fs->verf, verf);
	ck_assert(!to_posix(n)->dirty);
	how = VFS_UNSTABLE;
	ck_assert_int_eq(write_str(n, 0, "abc", &how), 3);
	ck_assert_int_eq(to_posix(n)->dirty, !world_on_tmpfs());
	vfs_node_put(n);
	world_restart();
	ck_assert_int_ne(w.fs->verf, verf);
	world_close();
}

/* RFC 1813 section 3.3.21: "any metadata associated with the file must be
 * flushed".  Other clients know by the times that their caches are old. */
TEST_LOOP(commit_makes_times_durable_as_well_as_data, 0, WORLDS)
{
	enum vfs_stable how = VFS_UNSTABLE;
	struct vfs_node *n;
	int before;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "abc", &how), 3);
	before = fsyncs;
	assert_ok(DO(posix_commit, &w.who, n));
	ck_assert_int_eq(fsyncs - before, !world_on_tmpfs());
	assert_ok(DO(posix_commit, &w.who, n,
		     .commit = { .off = 1, .count = 1 }));
	ck_assert_int_eq(fsyncs - before, 2 * !world_on_tmpfs());
	vfs_node_put(n);
	world_close();
}

/* The system tells of lost data once: the next sync succeeds. */
TEST_LOOP(data_lost_on_its_way_to_disk_is_asked_for_again, 0, WORLDS)
{
	static const int errors[] = { EIO, ENOSPC, EDQUOT };
	enum vfs_stable how = VFS_UNSTABLE;
	struct vfs_node *n;
	uint64_t verf;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		ck_assert_int_eq(write_str(n, 0, "abc", &how), 3);
		verf = w.fs->verf;
		sync_error = errors[i];
		if (world_on_tmpfs()) {
			assert_ok(DO(posix_commit, &w.who, n));
			ck_assert_uint_eq(w.fs->verf, verf);
		} else {
			assert_err(DO(posix_commit, &w.who, n), errors[i]);
			ck_assert_uint_ne(w.fs->verf, verf);
		}
		sync_error = 0;
		verf = w.fs->verf;
		assert_ok(DO(posix_commit, &w.who, n));
		ck_assert_uint_eq(w.fs->verf, verf);
	}
	vfs_node_put(n);
	world_close();
}

/* However many files are open, with whatever in them. */
TEST_LOOP(the_end_waits_for_no_disk, 0, WORLDS)
{
	enum vfs_stable how;
	struct vfs_node *n;
	char name[16];
	uint64_t verf;
	int syncs;

	world_open(_i, NULL);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		n = must_create(w.root, name);
		how = VFS_UNSTABLE;
		ck_assert_int_eq(write_str(n, 0, "abc", &how), 3);
		vfs_node_put(n);
	}
	verf = w.fs->verf;
	syncs = fsyncs + fdatasyncs;
	world_restart();
	ck_assert_int_eq(fsyncs + fdatasyncs, syncs);
	ck_assert_uint_ne(w.fs->verf, verf);
	world_close();
}

/* A file system that is full for @n, which has little room. */
static void fill_up(struct vfs_node *n)
{
	static char block[65536];
	struct iovec iov = { block, sizeof(block) };
	uint64_t off = 0;
	int64_t got;

	do {
		got = DO(posix_write, &w.who, n,
			 .write = { .off = off, .iov = &iov, .niov = 1 });
		if (got > 0)
			off += got;
		ck_assert_uint_lt(off, 10 << 20);
	} while (got > 0);
	assert_err(got, ENOSPC);
	ck_assert_uint_eq(attr_of(n).size, off);
}

TEST_LOOP(write_reports_a_full_disk, 0, WORLDS)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *n;

	world_open(_i, NULL);
	if (unshare(CLONE_NEWNS) < 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", local(""), "tmpfs", 0,
		  "size=1m,nr_inodes=4,mode=777") < 0) {
		printf("skipped: may not mount\n");
		world_close();
		return;
	}
	world_restart();
	n = must_create(w.root, "f");
	fill_up(n);
	assert_ok(DO(posix_commit, &w.who, n));
	must_remove(w.root, "f", false);
	vfs_node_put(n);
	n = must_create(w.root, "again");
	ck_assert_int_eq(write_str(n, 0, "abc", NULL), 3);
	vfs_node_put(n);
	for (int i = 0; i < 2; i++)
		vfs_node_put(must_create(w.root, i ? "b" : "a"));
	assert_err(DO(posix_create, &w.who, w.root,
		      .name = name_of("c"), .create = &how), ENOSPC);
	assert_ok(umount2(local(""), MNT_DETACH));
	world_close();
}

TEST_LOOP(the_tree_has_one_fsid_across_restarts, 0, WORLDS)
{
	uint64_t fsid;

	world_open(_i, NULL);
	fsid = w.fs->fsid;
	world_restart();
	ck_assert_int_eq(w.fs->fsid, fsid);
	world_close();
}

TEST_LOOP(attributes_around_a_change_tell_it, 0, WORLDS)
{
	struct vfs_node *n;
	struct vfs_attr old;
	struct vfs_wcc wcc;
	struct iovec iov = { (char []){ "xyz" }, 3 };
	struct vfs_create guarded = { .how = VFS_CREATE_GUARDED };

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	old = attr_of(n);
	ck_assert_int_eq(DO(posix_write, &w.who, n,
			    .write = { .off = 5, .iov = &iov, .niov = 1 },
			    .wcc = &wcc), 3);
	ck_assert(wcc.has_before && wcc.has_after);
	ck_assert_int_eq(wcc.before_size, 0);
	ck_assert_int_eq(wcc.before_ctime.tv_nsec, old.ctime.tv_nsec);
	ck_assert_int_eq(wcc.after.size, 8);
	vfs_node_put(n);

	/* On failure too. */
	assert_err(DO(posix_create, &w.who, w.root, .name = name_of("f"),
		      .create = &guarded, .wcc = &wcc), EEXIST);
	ck_assert(wcc.has_before && wcc.has_after);
	assert_err(DO(posix_remove, &w.who, w.root, .name = name_of("g"),
		      .wcc = &wcc), ENOENT);
	ck_assert(wcc.has_before && wcc.has_after);
	world_close();
}

TEST_LOOP(overlapping_changes_give_no_attributes_of_before, 0, WORLDS)
{
	struct posix_change a, b;
	struct vfs_wcc wa, wb;

	world_open(_i, NULL);
	assert_ok(posix_change_begin(&a, to_posix(w.root), &wa));
	assert_ok(posix_change_begin(&b, to_posix(w.root), &wb));
	posix_change_end(&a);
	posix_change_end(&b);
	ck_assert(!wa.has_before && wa.has_after);
	ck_assert(!wb.has_before && wb.has_after);
	assert_ok(posix_change_begin(&a, to_posix(w.root), &wa));
	posix_change_end(&a);
	ck_assert(wa.has_before && wa.has_after);
	world_close();
}

TEST_LOOP(setattr_sets_what_is_asked_and_nothing_else, 0, WORLDS)
{
	struct vfs_setattr set = {
		.set = VFS_SET_MODE | VFS_SET_SIZE | VFS_SET_MTIME,
		.mode = 0640, .size = 100,
		.mtime = { 1000000000, 123456789 },
	};
	struct vfs_node *n;
	struct vfs_attr a, b;
	struct vfs_wcc wcc;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	a = attr_of(n);
	assert_ok(DO(posix_setattr, &w.who, n, .set = &set, .wcc = &wcc));
	b = attr_of(n);
	ck_assert_int_eq(b.mode, 0640);
	ck_assert_int_eq(b.size, 100);
	ck_assert_int_eq(b.mtime.tv_sec, 1000000000);
	ck_assert_int_eq(b.mtime.tv_nsec, 123456789);
	ck_assert_int_eq(b.atime.tv_sec, a.atime.tv_sec);
	ck_assert_int_eq(wcc.before_size, 0);
	ck_assert_int_eq(wcc.after.size, 100);

	set = (struct vfs_setattr){ .set = VFS_SET_MTIME_NOW | VFS_SET_ATIME,
				    .atime = { 5, 6 } };
	assert_ok(DO(posix_setattr, &w.who, n, .set = &set));
	b = attr_of(n);
	ck_assert_int_gt(b.mtime.tv_sec, 1000000000);
	ck_assert_int_eq(b.atime.tv_sec, 5);
	ck_assert_int_eq(b.mode, 0640);
	set = (struct vfs_setattr){ .set = VFS_SET_ATIME,
				    .atime = { 5, UTIME_NOW } };
	assert_err(DO(posix_setattr, &w.who, n, .set = &set), EINVAL);
	set = (struct vfs_setattr){ .set = VFS_SET_UID, .uid = UINT32_MAX };
	assert_err(DO(posix_setattr, &w.who, n, .set = &set), EINVAL);
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(mode_changes_reach_files_that_cannot_be_opened, 0, WORLDS)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = 0000 };
	struct vfs_node *n, *fifo;
	struct vfs_make what = { .type = VFS_FIFO };
	struct vfs_handle h;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	assert_ok(DO(posix_setattr, &w.who, n, .set = &set));
	h = handle_of(n);
	vfs_node_put(n);
	world_restart();
	n = must_open(&h);
	set.mode = 0444;
	assert_ok(DO(posix_setattr, &w.who, n, .set = &set));
	ck_assert_int_eq(attr_of(n).mode, 0444);
	vfs_node_put(n);
	assert_ok(GET(out, fifo, posix_make, &w.who, w.root,
		      .name = name_of("p"), .make = &what));
	set.set |= VFS_SET_MTIME;
	set.mtime.tv_sec = 77;
	assert_ok(DO(posix_setattr, &w.who, fifo, .set = &set));
	ck_assert_int_eq(attr_of(fifo).mode, 0444);
	ck_assert_int_eq(attr_of(fifo).mtime.tv_sec, 77);
	vfs_node_put(fifo);
	world_close();
}

TEST_LOOP(access_answers_as_the_kernel_does, 0, WORLDS)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = 0500 };
	struct vfs_node *n;
	struct vfs_attr attr;
	uint32_t got;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	assert_ok(DO(posix_setattr, &w.who, n, .set = &set));
	for (int i = 0; i < 3; i++) {
		assert_ok(GET(access.granted, got, posix_access, &w.who, n,
			      .access.want = 0x3f, .attr = &attr));
		if (geteuid() == 0)
			ck_assert_int_eq(got, 0x2d);
		else
			ck_assert_int_eq(got, 0x21);
		ck_assert_int_eq(attr.mode, 0500);
		world_settle("f");	/* the next ones are kept */
	}
	assert_ok(GET(access.granted, got, posix_access, &w.who, n,
		      .access.want = VFS_ACCESS_READ));
	ck_assert_int_eq(got, VFS_ACCESS_READ);
	set.mode = 0644;
	assert_ok(DO(posix_setattr, &w.who, n, .set = &set));
	assert_ok(GET(access.granted, got, posix_access, &w.who, n,
		      .access.want = 0x3f));
	ck_assert_int_eq(got, 0x0d);
	assert_ok(GET(access.granted, got, posix_access, &w.who, w.root,
		      .access.want = 0x3f));
	ck_assert_int_eq(got, 0x1f);
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(symbolic_links_are_kept_as_they_are_and_not_followed, 0, WORLDS)
{
	struct vfs_make what = { .type = VFS_LNK, .target = "../../etc",
				 .target_len = 9 };
	struct vfs_node *n;
	char buf[64];

	world_open(_i, NULL);
	assert_ok(GET(out, n, posix_make, &w.who, w.root, .name = name_of("l"),
		      .make = &what));
	ck_assert_int_eq(attr_of(n).type, VFS_LNK);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(DO(posix_readlink, &w.who, n,
				    .readlink = { .text = buf, .size = 64 }),
				 9);
		ck_assert_mem_eq(buf, "../../etc", 9);
	}
	ck_assert_int_eq(DO(posix_readlink, &w.who, n,
			    .readlink = { .text = buf, .size = 3 }), 3);
	assert_err(try_lookup(n, "passwd"), ENOTDIR);
	vfs_node_put(n);
	n = must_lookup(w.root, "l");
	ck_assert_int_eq(attr_of(n).type, VFS_LNK);
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(special_files_are_made_but_never_opened, 0, WORLDS)
{
	struct vfs_make what = { .type = VFS_SOCK,
				 .attr = { .set = VFS_SET_MODE,
					   .mode = 0620 } };
	struct vfs_node *n;
	int err;

	world_open(_i, NULL);
	assert_ok(GET(out, n, posix_make, &w.who, w.root, .name = name_of("s"),
		      .make = &what));
	ck_assert_int_eq(attr_of(n).type, VFS_SOCK);
	ck_assert_int_eq(attr_of(n).mode, 0620);
	vfs_node_put(n);
	what.type = VFS_CHR;
	what.rdev_major = 1;
	what.rdev_minor = 3;
	err = GET(out, n, posix_make, &w.who, w.root, .name = name_of("c"),
		  .make = &what);
	if (err == 0) {
		ck_assert_int_eq(attr_of(n).rdev_major, 1);
		ck_assert_int_eq(attr_of(n).rdev_minor, 3);
		vfs_node_put(n);
	} else {
		ck_assert_int_ne(geteuid(), 0);
		assert_err(err, EPERM);
	}
	what.type = VFS_REG;
	assert_err(DO(posix_make, &w.who, w.root, .name = name_of("r"),
		      .make = &what), EPROTOTYPE);
	world_close();
}

TEST_LOOP(limits_and_space_are_the_file_systems, 0, WORLDS)
{
	struct vfs_statfs st;
	struct vfs_limits l;

	world_open(_i, NULL);
	assert_ok(DO(w.fs->ops->statfs, &w.who, w.root, .statfs = &st));
	ck_assert_int_ge(st.tbytes, st.fbytes);
	ck_assert_int_ge(st.fbytes, st.abytes);
	assert_ok(DO(w.fs->ops->limits, &w.who, w.root, .limits = &l));
	ck_assert_int_eq(l.name_max, 255);
	ck_assert_int_gt(l.link_max, 1);
	ck_assert_int_ge(l.max_file_size, 1ull << 40);
	ck_assert(l.no_trunc && l.case_preserving && !l.case_insensitive);
	world_close();
}

int main(void)
{
	return world_run();
}
