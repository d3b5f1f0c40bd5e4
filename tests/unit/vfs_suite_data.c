/* SPDX-License-Identifier: BSD-2-Clause */
/* Any backend: contents of files, their sizes and times. */
#include "tests/unit/vfs_suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GIB	((uint64_t)1 << 30)

static bool is_zero(const uint8_t *p, size_t len)
{
	while (len > 0)
		if (p[--len])
			return false;
	return true;
}

START_TEST(data_written_at_any_offset_is_read)
{
	static const uint64_t offs[] = { 0, 1, 4095, 4096, 16383, 16384,
					 65535, 100000, 1 << 20 };
	static uint8_t out[50000], in[50000];
	struct vfs_node *f = vt_file(vt.root, "f");
	bool eof;

	for (unsigned i = 0; i < sizeof(offs) / sizeof(offs[0]); i++) {
		struct iovec iov[3] = { { out, 1 }, { out + 1, 0 },
					{ out + 1, sizeof(out) - 1 } };

		for (size_t j = 0; j < sizeof(out); j++)
			out[j] = (uint8_t)(j * 31 + i);
		ck_assert_int_eq(DO(vt.ops->write, &vt.who, f,
				    .write = { .off = offs[i], .iov = iov,
					       .niov = 3 }), sizeof(out));
		iov[0] = (struct iovec){ in, 777 };
		iov[1] = (struct iovec){ in + 777, sizeof(in) - 777 };
		memset(in, 0, sizeof(in));
		ck_assert_int_eq(GET(eof, eof, vt.ops->read, &vt.who, f,
				     .read = { .off = offs[i], .iov = iov,
					       .niov = 2 }), sizeof(in));
		ck_assert_int_eq(memcmp(in, out, sizeof(in)), 0);
		ck_assert(eof == (offs[i] + sizeof(in) == vt_attr(f).size));
	}
	vfs_node_put(f);
}
END_TEST

START_TEST(reads_end_where_the_file_does)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	char buf[16];
	bool eof = true;

	vt_write(f, 0, "0123456789");
	ck_assert_int_eq(vt_read(f, 0, buf, 9, &eof), 9);
	ck_assert(!eof);
	ck_assert_int_eq(vt_read(f, 0, buf, 10, &eof), 10);
	ck_assert(eof);
	ck_assert_int_eq(vt_read(f, 8, buf, 16, &eof), 2);
	ck_assert(eof);
	ck_assert_int_eq(vt_read(f, 10, buf, 16, &eof), 0);
	ck_assert(eof);
	ck_assert_int_eq(vt_read(f, UINT64_MAX >> 1, buf, 16, &eof), 0);
	ck_assert(eof);
	ck_assert_int_eq(vt_read(f, UINT64_MAX, buf, 16, &eof), 0);
	ck_assert(eof);
	ck_assert_int_eq(vt_read(f, 3, buf, 0, &eof), 0);
	vfs_node_put(f);
}
END_TEST

START_TEST(holes_are_zeros_and_take_no_room)
{
	static uint8_t buf[100000];
	struct vfs_node *f = vt_file(vt.root, "f");
	bool eof;

	vt_write(f, 5 * GIB + 3, "far");
	vt_write(f, 1000000, "near");
	ck_assert_uint_eq(vt_attr(f).size, 5 * GIB + 6);
	if (!vt.params->used_is_size)
		ck_assert_uint_lt(vt_attr(f).used, 1 << 20);
	memset(buf, 0xff, sizeof(buf));
	ck_assert_int_eq(vt_read(f, 950000, buf, sizeof(buf), &eof),
			 sizeof(buf));
	ck_assert(!eof);
	ck_assert(is_zero(buf, 50000));
	ck_assert_int_eq(memcmp(buf + 50000, "near", 4), 0);
	ck_assert(is_zero(buf + 50004, sizeof(buf) - 50004));
	memset(buf, 0xff, sizeof(buf));
	ck_assert_int_eq(vt_read(f, 5 * GIB - 10, buf, 100, &eof), 16);
	ck_assert(is_zero(buf, 13));
	ck_assert_int_eq(memcmp(buf + 13, "far", 3), 0);
	ck_assert(eof);
	vfs_node_put(f);
}
END_TEST

START_TEST(truncated_data_reads_as_zeros)
{
	static const uint64_t sizes[] = { 5, 4096, 16384, 20000, 99999 };
	static uint8_t buf[100000];
	struct iovec iov = { buf, sizeof(buf) };
	struct vfs_node *f = vt_file(vt.root, "f");
	bool eof;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		memset(buf, 'x', sizeof(buf));
		ck_assert_int_eq(DO(vt.ops->write, &vt.who, f,
				    .write = { .iov = &iov, .niov = 1 }),
				 sizeof(buf));
		ck_assert_int_eq(vt_set_size(f, sizes[i]), 0);
		ck_assert_uint_eq(vt_attr(f).size, sizes[i]);
		ck_assert_int_eq(vt_set_size(f, sizeof(buf)), 0);
		ck_assert_int_eq(vt_read(f, 0, buf, sizeof(buf), &eof),
				 sizeof(buf));
		ck_assert_uint_eq(buf[sizes[i] - 1], 'x');
		ck_assert(is_zero(buf + sizes[i], sizeof(buf) - sizes[i]));
	}
	ck_assert_int_eq(vt_set_size(f, 0), 0);
	ck_assert_uint_eq(vt_attr(f).used, 0);
	vfs_node_put(f);
}
END_TEST

START_TEST(sizes_have_a_limit)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct iovec iov = { (void *)(uintptr_t)"x", 1 };
	struct vfs_limits l;
	int err;

	ck_assert_int_eq(DO(vt.ops->limits, &vt.who, f, .limits = &l), 0);
	ck_assert_int_eq(DO(vt.ops->write, &vt.who, f,
			    .write = { .off = l.max_file_size, .iov = &iov,
				       .niov = 1 }), -EFBIG);
	ck_assert_int_eq(DO(vt.ops->write, &vt.who, f,
			    .write = { .off = INT64_MAX, .iov = &iov,
				       .niov = 1 }), -EFBIG);
	ck_assert_int_eq(DO(vt.ops->write, &vt.who, f,
			    .write = { .off = UINT64_MAX, .iov = &iov,
				       .niov = 1 }), -EFBIG);
	if (l.max_file_size < INT64_MAX)
		ck_assert_int_eq(vt_set_size(f, l.max_file_size + 1),
				 -EFBIG);
	err = vt_set_size(f, UINT64_MAX);
	ck_assert(err == -EFBIG || err == -EINVAL);
	ck_assert_uint_eq(vt_attr(f).size, 0);
	vfs_node_put(f);
}
END_TEST

START_TEST(only_files_hold_data)
{
	static const enum vfs_type other[] = { VFS_LNK, VFS_FIFO };
	struct vfs_node *d = vt_dir(vt.root, "d"), *n;
	struct iovec iov = { (void *)(uintptr_t)"x", 1 };
	char buf[4];
	bool eof;

	ck_assert_int_eq(vt_read(d, 0, buf, 4, &eof), -EISDIR);
	ck_assert_int_eq(DO(vt.ops->write, &vt.who, d,
			    .write = { .iov = &iov, .niov = 1 }), -EISDIR);
	ck_assert_int_eq(vt_set_size(d, 0), -EISDIR);
	ck_assert_int_eq(DO(vt.ops->commit, &vt.who, d), -EISDIR);
	vfs_node_put(d);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(vt_make(&vt.who, vt.root, i ? "p" : "l",
					 other[i], i ? NULL : "t"), 0);
		n = vt_find(vt.root, i ? "p" : "l");
		ck_assert_int_eq(vt_read(n, 0, buf, 4, &eof), -EINVAL);
		ck_assert_int_eq(DO(vt.ops->write, &vt.who, n,
				    .write = { .iov = &iov, .niov = 1 }),
				 -EINVAL);
		if (other[i] != VFS_LNK)
			ck_assert_int_eq(DO(vt.ops->readlink, &vt.who, n,
					    .readlink = { .text = buf,
							  .size = 4 }),
					 -EINVAL);
		vfs_node_put(n);
	}
}
END_TEST

START_TEST(a_write_is_as_stable_as_asked_and_shows_in_its_wcc)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_attr before = vt_attr(f);
	struct iovec iov = { (void *)(uintptr_t)"data", 4 };

	for (enum vfs_stable s = VFS_UNSTABLE; s <= VFS_FILE_SYNC; s++) {
		enum vfs_stable got;
		struct vfs_wcc wcc = { 0 };

		ck_assert_int_eq(GET(write.stable, got, vt.ops->write, &vt.who,
				     f, .write = { .iov = &iov, .niov = 1,
						   .stable = s }, .wcc = &wcc),
				 4);
		ck_assert_int_ge(got, s);
		ck_assert(wcc.has_before && wcc.has_after);
		ck_assert_uint_eq(wcc.before_size, before.size);
		ck_assert_int_eq(wcc.before_ctime.tv_sec,
				 before.ctime.tv_sec);
		ck_assert_int_eq(wcc.before_ctime.tv_nsec,
				 before.ctime.tv_nsec);
		ck_assert_uint_eq(wcc.after.size, 4);
		before = wcc.after;
	}
	vfs_node_put(f);
}
END_TEST

START_TEST(commit_takes_any_range_of_a_file)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_wcc wcc = { 0 };

	vt_write(f, 0, "data");
	ck_assert_int_eq(DO(vt.ops->commit, &vt.who, f, .wcc = &wcc), 0);
	ck_assert(wcc.has_after);
	ck_assert_int_eq(DO(vt.ops->commit, &vt.who, f,
			    .commit = { .off = 1, .count = 2 }), 0);
	ck_assert_int_eq(DO(vt.ops->commit, &vt.who, f,
			    .commit = { .off = 5 * GIB, .count = 100 }), 0);
	vfs_node_put(f);
}
END_TEST

START_TEST(times_can_be_set_to_the_nanosecond)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_setattr set = {
		.set = VFS_SET_ATIME | VFS_SET_MTIME,
		.atime = { 1000000000, 123456789 },
		.mtime = { 4000000000, 999999999 },
	};
	struct vfs_attr a;

	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, f, .set = &set), 0);
	a = vt_attr(f);
	ck_assert_int_eq(a.atime.tv_sec, 1000000000);
	ck_assert_int_eq(a.atime.tv_nsec, 123456789);
	ck_assert_int_eq(a.mtime.tv_sec, 4000000000);
	ck_assert_int_eq(a.mtime.tv_nsec, 999999999);
	set.set = VFS_SET_ATIME_NOW | VFS_SET_MTIME_NOW;
	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, f, .set = &set), 0);
	a = vt_attr(f);
	ck_assert_int_ge(a.mtime.tv_sec, time(NULL) - 60);
	ck_assert_int_le(a.mtime.tv_sec, time(NULL) + 60);
	ck_assert_int_ge(a.atime.tv_sec, time(NULL) - 60);
	vfs_node_put(f);
}
END_TEST

START_TEST(a_guard_must_be_the_ctime)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_setattr set = {
		.set = VFS_SET_MODE, .mode = 0600, .guarded = true,
		.guard = vt_attr(f).ctime,
	};
	struct vfs_wcc wcc = { 0 };

	set.guard.tv_nsec ^= 1;
	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, f, .set = &set,
			    .wcc = &wcc), -EDOM);
	ck_assert(wcc.has_after);
	ck_assert_uint_eq(vt_attr(f).mode, 0644);
	set.guard.tv_nsec ^= 1;
	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, f, .set = &set), 0);
	ck_assert_uint_eq(vt_attr(f).mode, 0600);
	vfs_node_put(f);
}
END_TEST

START_TEST(statfs_and_limits_make_sense)
{
	struct vfs_statfs st;
	struct vfs_limits l;

	ck_assert_int_eq(DO(vt.ops->statfs, &vt.who, vt.root, .statfs = &st),
			 0);
	ck_assert_uint_gt(st.tbytes, 0);
	ck_assert_uint_le(st.fbytes, st.tbytes);
	ck_assert_uint_le(st.abytes, st.fbytes);
	ck_assert_uint_le(st.ffiles, st.tfiles);
	ck_assert_int_eq(DO(vt.ops->limits, &vt.who, vt.root, .limits = &l), 0);
	ck_assert_uint_ge(l.name_max, 14);
	ck_assert_uint_le(l.name_max, VFS_NAME_MAX);
	ck_assert_uint_ge(l.max_file_size, 6 * GIB);
	ck_assert(l.no_trunc && l.case_preserving && !l.case_insensitive);
}
END_TEST

START_TEST(access_is_what_the_mode_says)
{
	struct vfs_node *f = vt_file(vt.root, "f"), *d = vt_dir(vt.root, "d");
	uint32_t all = 0x3f, got;

	if (vt.params->me.uid == 0)
		goto out;	/* root can do everything */
	vt_chmod(f, 0400);
	ck_assert_int_eq(GET(access.granted, got, vt.ops->access, &vt.who, f,
			     .access.want = all), 0);
	ck_assert_uint_eq(got & ~(uint32_t)VFS_ACCESS_DELETE,
			  VFS_ACCESS_READ);
	vt_chmod(f, 0200);
	ck_assert_int_eq(GET(access.granted, got, vt.ops->access, &vt.who, f,
			     .access.want = all), 0);
	ck_assert_uint_eq(got & ~(uint32_t)VFS_ACCESS_DELETE,
			  VFS_ACCESS_MODIFY | VFS_ACCESS_EXTEND);
	ck_assert_int_eq(GET(access.granted, got, vt.ops->access, &vt.who, f,
			     .access.want = VFS_ACCESS_MODIFY), 0);
	ck_assert_uint_eq(got, VFS_ACCESS_MODIFY);
	vt_chmod(d, 0500);
	ck_assert_int_eq(GET(access.granted, got, vt.ops->access, &vt.who, d,
			     .access.want = all), 0);
	ck_assert_uint_eq(got, VFS_ACCESS_READ | VFS_ACCESS_LOOKUP);
	vt_chmod(d, 0300);
	ck_assert_int_eq(GET(access.granted, got, vt.ops->access, &vt.who, d,
			     .access.want = all), 0);
	ck_assert_uint_eq(got, VFS_ACCESS_LOOKUP | VFS_ACCESS_MODIFY |
			  VFS_ACCESS_EXTEND | VFS_ACCESS_DELETE);
out:
	vfs_node_put(d);
	vfs_node_put(f);
}
END_TEST

void vfs_suite_add_data(TCase *tc)
{
	tcase_add_test(tc, data_written_at_any_offset_is_read);
	tcase_add_test(tc, reads_end_where_the_file_does);
	tcase_add_test(tc, holes_are_zeros_and_take_no_room);
	tcase_add_test(tc, truncated_data_reads_as_zeros);
	tcase_add_test(tc, sizes_have_a_limit);
	tcase_add_test(tc, only_files_hold_data);
	tcase_add_test(tc, a_write_is_as_stable_as_asked_and_shows_in_its_wcc);
	tcase_add_test(tc, commit_takes_any_range_of_a_file);
	tcase_add_test(tc, times_can_be_set_to_the_nanosecond);
	tcase_add_test(tc, a_guard_must_be_the_ctime);
	tcase_add_test(tc, statfs_and_limits_make_sense);
	tcase_add_test(tc, access_is_what_the_mode_says);
}
