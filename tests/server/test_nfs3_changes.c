/* SPDX-License-Identifier: BSD-2-Clause */
/* REMOVE, RMDIR, RENAME, LINK; and callers that may change nothing. */
#include "tests/server/nfs_names.h"

#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"

#define READ_ONLY "/mem 127.0.0.1(ro,insecure,no_root_squash)\n"

static nfs_fh3 dir, file;

static void setup(void)
{
	nfs_setup();
	dir = nfs_make_dir(top, "dir");
	file = nfs_make_file(top, "file", "data");
}

TEST_CASE(.setup = setup, .teardown = nfs_teardown);

TEST(remove_removes_what_is_no_directory)
{
	ck_assert_int_eq(try_remove(&user, top, "file"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_remove(&root, top, "dir"), NFS3ERR_ISDIR);
	ck_assert_int_eq(try_remove(&root, top, "none"), NFS3ERR_NOENT);
	ck_assert_int_eq(try_remove(&root, file, "x"), NFS3ERR_NOTDIR);
	ck_assert_int_eq(try_remove(&root, top, "file"), NFS3_OK);
	ck_assert(nfs_wcc);
	ck_assert_int_eq(nfs_exists(top, "file"), NFS3ERR_NOENT);
}

TEST(rmdir_removes_empty_directories)
{
	nfs_make_file(dir, "in", "");
	ck_assert_int_eq(try_rmdir(top, "dir"), NFS3ERR_NOTEMPTY);
	ck_assert_int_eq(try_rmdir(top, "file"), NFS3ERR_NOTDIR);
	ck_assert_int_eq(try_rmdir(top, "none"), NFS3ERR_NOENT);
	ck_assert_int_eq(try_remove(&root, dir, "in"), NFS3_OK);
	ck_assert_int_eq(try_rmdir(top, "dir"), NFS3_OK);
	ck_assert(nfs_wcc);
	ck_assert_int_eq(nfs_exists(top, "dir"), NFS3ERR_NOENT);
}

TEST(rename_moves_and_replaces)
{
	nfs_fh3 fh;

	ck_assert_int_eq(try_rename(top, "file", dir, "moved"), NFS3_OK);
	ck_assert(nfs_wcc);
	ck_assert_int_eq(try_lookup(dir, "moved", &fh), NFS3_OK);
	ck_assert(nfs_same_fh(fh, file));
	ck_assert_int_eq(nfs_exists(top, "file"), NFS3ERR_NOENT);
	nfs_make_file(top, "other", "x");
	ck_assert_int_eq(try_rename(dir, "moved", top, "other"), NFS3_OK);
	ck_assert_uint_eq(nfs_attr(file).size, 4);
	ck_assert_int_eq(try_rename(top, "other", top, "other"), NFS3_OK);
	ck_assert_int_eq(try_link(file, top, "second"), NFS3_OK);
	ck_assert_int_eq(try_rename(top, "other", top, "second"), NFS3_OK);
	ck_assert_int_eq(nfs_exists(top, "other"), NFS3_OK);
}

TEST(rename_refuses_what_can_not_be)
{
	nfs_make_dir(dir, "sub");
	nfs_make_dir(top, "empty");
	ck_assert_int_eq(try_rename(top, "none", top, "x"), NFS3ERR_NOENT);
	ck_assert_int_eq(try_rename(top, "file", top, "dir"), NFS3ERR_ISDIR);
	ck_assert_int_eq(try_rename(top, "dir", top, "file"), NFS3ERR_NOTDIR);
	ck_assert_int_eq(try_rename(top, "empty", top, "dir"),
			 NFS3ERR_NOTEMPTY);
	ck_assert_int_eq(try_rename(top, "dir", dir, "x"), NFS3ERR_INVAL);
	ck_assert_int_eq(try_rename(file, "x", top, "y"), NFS3ERR_NOTDIR);
}

TEST(link_adds_a_name)
{
	ck_assert_int_eq(try_link(file, dir, "second"), NFS3_OK);
	ck_assert(nfs_wcc);
	ck_assert_uint_eq(nfs_attr(file).nlink, 2);
	ck_assert_int_eq(try_link(file, dir, "second"), NFS3ERR_EXIST);
	ck_assert_int_eq(try_link(file, file, "x"), NFS3ERR_NOTDIR);
	ck_assert_int_ne(try_link(dir, top, "x"), NFS3_OK);
}

TEST(two_exports_are_two_devices)
{
	struct nfs3_fh other;
	nfs_fh3 fh;

	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure,no_root_squash)\n"
			"/other 127.0.0.1(rw,insecure,no_root_squash)\n");
	harness_root(&srv, "/other", &other);
	fh.data.data_val = (char *)other.data;
	fh.data.data_len = other.len;
	ck_assert_int_eq(try_rename(top, "file", fh, "x"), NFS3ERR_XDEV);
	ck_assert_int_eq(try_link(file, fh, "x"), NFS3ERR_XDEV);
	ck_assert_uint_ne(nfs_attr(fh).fsid, nfs_attr(top).fsid);
}

TEST(a_second_handle_is_checked_like_the_first)
{
	char zero[NFS3_FHSIZE] = { 0 };
	nfs_fh3 bad = { { 32, zero } };
	nfs_fh3 gone = nfs_make_dir(top, "gone");

	ck_assert_int_eq(try_rmdir(top, "gone"), NFS3_OK);
	ck_assert_int_eq(try_rename(top, "file", bad, "x"), NFS3ERR_BADHANDLE);
	ck_assert_int_eq(try_rename(top, "file", gone, "x"), NFS3ERR_STALE);
	ck_assert_int_eq(try_link(file, bad, "x"), NFS3ERR_BADHANDLE);
	ck_assert_int_eq(try_link(file, gone, "x"), NFS3ERR_STALE);
}

static uint64_t free_files(void)
{
	FSSTAT3args a = { .fsroot = top };
	FSSTAT3res r;

	nfs_call(&root, fsstat, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	return r.FSSTAT3res_u.resok.ffiles;
}

/* A file is gone with its last name: no call, good or bad, kept it. */
TEST(no_call_holds_on_to_a_file)
{
	uint64_t before = free_files();
	nfs_fh3 d = nfs_make_dir(top, "d"), f, fh;

	if (fault_on_posix())
		return;		/* others also use the file system */
	f = nfs_make_file(d, "f", "data");
	nfs_make_link(d, "l", "x");
	try_mknod(d, "n", NF3FIFO);
	try_lookup(d, ".", &fh);
	try_lookup(d, "f", &fh);
	try_lookup(f, ".", &fh);
	try_rename(d, "f", d, "g");
	try_rename(d, "g", d, ".");
	try_rename(d, "g", f, "x");
	try_link(f, d, "h");
	try_link(f, d, ".");
	try_link(f, f, "x");
	try_create(&root, d, "g", UNCHECKED, NULL);
	try_create(&root, d, "g", GUARDED, NULL);
	for (const char *n = "ghln"; *n; n++)
		ck_assert_int_eq(try_remove(&root, d, (char[]){ *n, 0 }),
				 NFS3_OK);
	ck_assert_int_eq(try_rmdir(top, "d"), NFS3_OK);
	ck_assert_uint_eq(free_files(), before);
}

TEST(a_read_only_export_stays_as_it_is)
{
	SETATTR3args sa = { .object = file };
	SETATTR3res sr;

	harness_publish(&srv, READ_ONLY);
	nfs_call(&root, setattr, &sa, &sr);
	ck_assert_int_eq(sr.status, NFS3ERR_ROFS);
	ck_assert_int_eq(try_create(&root, top, "x", UNCHECKED, NULL),
			 NFS3ERR_ROFS);
	ck_assert_int_eq(try_mkdir(&root, top, "x"), NFS3ERR_ROFS);
	ck_assert_int_eq(try_symlink(top, "x", "t"), NFS3ERR_ROFS);
	ck_assert_int_eq(try_mknod(top, "x", NF3FIFO), NFS3ERR_ROFS);
	ck_assert_int_eq(try_remove(&root, top, "file"), NFS3ERR_ROFS);
	ck_assert_int_eq(try_rmdir(top, "dir"), NFS3ERR_ROFS);
	ck_assert_int_eq(try_rename(top, "file", top, "x"), NFS3ERR_ROFS);
	ck_assert_int_eq(try_link(file, top, "x"), NFS3ERR_ROFS);
	ck_assert_int_eq(nfs_exists(top, "file"), NFS3_OK);
}
