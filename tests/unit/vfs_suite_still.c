/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests that change nothing, for trees that can't be changed. */
#include "tests/unit/vfs_suite.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

START_TEST(the_root_is_a_directory_that_its_handle_opens)
{
	struct vfs_node *n;

	ck_assert_int_eq(vt_attr(vt.root).type, VFS_DIR);
	ck_assert_int_eq(vt_reopen(vt.root, &n), 0);
	ck_assert_uint_eq(vt_attr(n).fileid, vt_attr(vt.root).fileid);
	vfs_node_put(n);
	n = vt_find(vt.root, "..");
	ck_assert_uint_eq(vt_attr(n).fileid, vt_attr(vt.root).fileid);
	vfs_node_put(n);
}
END_TEST

START_TEST(malformed_handles_are_refused)
{
	struct vfs_handle h = { .len = 0 };
	int err;

	ck_assert_int_eq(DO(vt.ops->open_handle, &vt.who, NULL,
			    .open = { .fs = vt.fs, .handle = &h }), -EBADMSG);
	h.len = VFS_HANDLE_MAX;
	memset(h.data, 0xa5, sizeof(h.data));
	err = DO(vt.ops->open_handle, &vt.who, NULL,
		 .open = { .fs = vt.fs, .handle = &h });
	ck_assert(err == -EBADMSG || err == -ESTALE);
}
END_TEST

START_TEST(a_name_that_is_not_there_is_not_found)
{
	struct vfs_attr dir_attr;
	struct vfs_op op = VFS_OP(&vt.who, vt.root, .name = vt_name("none"),
				  .lookup.dir_attr = &dir_attr);

	ck_assert_int_eq(vt.ops->lookup(&op), -ENOENT);
	ck_assert(op.lookup.has_dir_attr);
	ck_assert_uint_eq(dir_attr.fileid, vt_attr(vt.root).fileid);
}
END_TEST

struct look {
	unsigned left;			/* entries that still have room */
	unsigned entries;
	uint64_t cookie;
};

/* A file gives its bytes up to its size, then says so. */
static void read_all(struct vfs_node *n)
{
	char byte;
	bool eof;

	for (uint64_t size = vt_attr(n).size, off = 0; off < size; off++) {
		ck_assert_int_eq(vt_read(n, off, &byte, 1, &eof), 1);
		ck_assert(eof == (off + 1 == size));
	}
	ck_assert_int_eq(vt_read(n, vt_attr(n).size, &byte, 1, &eof), 0);
	ck_assert(eof);
}

static void check_entry(const struct vfs_dirent *d)
{
	struct vfs_attr attr;
	struct vfs_node *n;

	ck_assert_int_eq(GET(out, n, vt.ops->lookup, &vt.who, vt.root,
			     .name = d->name, .attr = &attr), 0);
	ck_assert_uint_eq(attr.fileid, d->fileid);
	if (d->has_attr)
		ck_assert_uint_eq(d->attr.fileid, d->fileid);
	if (attr.type != VFS_DIR)
		ck_assert_int_eq(vt_lookup(n, "x"), -ENOTDIR);
	if (attr.type == VFS_REG)
		read_all(n);
	vfs_node_put(n);
	if (!d->has_handle)
		return;
	ck_assert_int_eq(GET(out, n, vt.ops->open_handle, &vt.who, NULL,
			     .open = { .fs = vt.fs, .handle = &d->handle }), 0);
	ck_assert_uint_eq(vt_attr(n).fileid, d->fileid);
	vfs_node_put(n);
}

static bool look_at(void *argp, const struct vfs_dirent *d)
{
	struct look *l = argp;

	if (l->left == 0)
		return false;
	l->left--;
	l->entries++;
	l->cookie = d->cookie;
	if (d->name.s[0] != '.')
		check_entry(d);
	return true;
}

START_TEST(each_entry_of_the_root_is_listed_and_found)
{
	struct look all = { .left = 1000 }, one = { 0 };
	bool eof;

	ck_assert_int_eq(GET(eof, eof, vt.ops->readdir, &vt.who, vt.root,
			     .readdir = { .plus = true, .emit = look_at,
					  .arg = &all }), 0);
	ck_assert(eof);
	ck_assert_uint_ge(all.entries, 2);
	do {
		one.left = 1;
		ck_assert_int_eq(GET(eof, eof, vt.ops->readdir, &vt.who,
				     vt.root, .readdir = { .cookie = one.cookie,
							   .emit = look_at,
							   .arg = &one }), 0);
	} while (!eof);
	ck_assert_uint_eq(one.entries, all.entries);
	ck_assert_int_eq(vt_read(vt.root, 0, &one, 1, &eof), -EISDIR);
}
END_TEST

START_TEST(a_tree_that_cannot_be_changed_says_so)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *n;

	if (!vt.params->read_only)
		return;
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "n", &how, &n), -EROFS);
	ck_assert_int_eq(vt_make(&vt.who, vt.root, "n", VFS_DIR, NULL),
			 -EROFS);
	ck_assert_int_eq(vt_remove(vt.root, "n"), -EROFS);
	ck_assert_int_eq(vt_rename(vt.root, "n", vt.root, "m"), -EROFS);
	ck_assert_int_eq(vt_link(vt.root, vt.root, "n"), -EROFS);
	ck_assert_int_eq(vt_set_size(vt.root, 0), -EROFS);
}
END_TEST

void vfs_suite_add_still(TCase *tc)
{
	tcase_add_test(tc, the_root_is_a_directory_that_its_handle_opens);
	tcase_add_test(tc, malformed_handles_are_refused);
	tcase_add_test(tc, a_name_that_is_not_there_is_not_found);
	tcase_add_test(tc, each_entry_of_the_root_is_listed_and_found);
	tcase_add_test(tc, a_tree_that_cannot_be_changed_says_so);
}
