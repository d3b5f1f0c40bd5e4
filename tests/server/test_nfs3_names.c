/* SPDX-License-Identifier: BSD-2-Clause */
/* LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD, REMOVE, RMDIR, RENAME, LINK. */
#include "tests/server/nfs_client.h"

#include "tests/unit/runner.h"

#define READ_ONLY "/mem 127.0.0.1(ro,insecure,no_root_squash)\n"

static char long_name[257];
static nfs_fh3 dir, file;

static void setup(void)
{
	nfs_setup();
	memset(long_name, 'n', 256);
	dir = nfs_make_dir(top, "dir");
	file = nfs_make_file(top, "file", "data");
}

/* The argument's wcc data was whole. */
static bool wcc;

static int lookup(nfs_fh3 at, const char *name, nfs_fh3 *fh)
{
	LOOKUP3args a = { .what = { at, (char *)(uintptr_t)name } };
	LOOKUP3res r;

	nfs_call(&root, lookup, &a, &r);
	if (r.status == NFS3_OK) {
		ck_assert(r.LOOKUP3res_u.resok.obj_attributes
			  .attributes_follow);
		ck_assert(r.LOOKUP3res_u.resok.dir_attributes
			  .attributes_follow);
		*fh = r.LOOKUP3res_u.resok.object;
	} else {
		ck_assert(r.LOOKUP3res_u.resfail.dir_attributes
			  .attributes_follow);
	}
	return r.status;
}

static int create(struct nfs_client *c, nfs_fh3 at, const char *name,
		  createmode3 mode, const char *verf)
{
	CREATE3args a = { .where = { at, (char *)(uintptr_t)name },
			  .how = { .mode = mode } };
	CREATE3res r;

	if (mode == EXCLUSIVE)
		memcpy(a.how.createhow3_u.verf, verf, NFS3_CREATEVERFSIZE);
	nfs_call(c, create, &a, &r);
	if (r.status == NFS3_OK) {
		ck_assert(r.CREATE3res_u.resok.obj.handle_follows);
		ck_assert(r.CREATE3res_u.resok.obj_attributes
			  .attributes_follow);
		wcc = nfs_full_wcc(&r.CREATE3res_u.resok.dir_wcc);
	} else {
		ck_assert(r.CREATE3res_u.resfail.dir_wcc.after
			  .attributes_follow);
	}
	return r.status;
}

static int mkdir_at(struct nfs_client *c, nfs_fh3 at, const char *name)
{
	MKDIR3args a = { .where = { at, (char *)(uintptr_t)name } };
	MKDIR3res r;

	nfs_call(c, mkdir, &a, &r);
	wcc = r.status == NFS3_OK &&
	      nfs_full_wcc(&r.MKDIR3res_u.resok.dir_wcc);
	return r.status;
}

static int symlink_at(nfs_fh3 at, const char *name, const char *target)
{
	SYMLINK3args a = { .where = { at, (char *)(uintptr_t)name } };
	SYMLINK3res r;

	a.symlink.symlink_data = (char *)(uintptr_t)target;
	nfs_call(&root, symlink, &a, &r);
	wcc = r.status == NFS3_OK &&
	      nfs_full_wcc(&r.SYMLINK3res_u.resok.dir_wcc);
	return r.status;
}

static int mknod_at(nfs_fh3 at, const char *name, ftype3 type)
{
	MKNOD3args a = { .where = { at, (char *)(uintptr_t)name },
			 .what = { .type = type } };
	MKNOD3res r;

	if (type == NF3CHR || type == NF3BLK) {
		a.what.mknoddata3_u.chr_device.spec.specdata1 = 8;
		a.what.mknoddata3_u.chr_device.spec.specdata2 = 1;
	}
	nfs_call(&root, mknod, &a, &r);
	wcc = r.status == NFS3_OK &&
	      nfs_full_wcc(&r.MKNOD3res_u.resok.dir_wcc);
	return r.status;
}

static int remove_at(struct nfs_client *c, nfs_fh3 at, const char *name)
{
	REMOVE3args a = { .object = { at, (char *)(uintptr_t)name } };
	REMOVE3res r;

	nfs_call(c, remove, &a, &r);
	wcc = nfs_full_wcc(&r.REMOVE3res_u.resok.dir_wcc);
	return r.status;
}

static int rmdir_at(nfs_fh3 at, const char *name)
{
	RMDIR3args a = { .object = { at, (char *)(uintptr_t)name } };
	RMDIR3res r;

	nfs_call(&root, rmdir, &a, &r);
	wcc = nfs_full_wcc(&r.RMDIR3res_u.resok.dir_wcc);
	return r.status;
}

static int rename_at(nfs_fh3 from, const char *old, nfs_fh3 to,
		     const char *new)
{
	RENAME3args a = { .from = { from, (char *)(uintptr_t)old },
			  .to = { to, (char *)(uintptr_t)new } };
	RENAME3res r;

	nfs_call(&root, rename, &a, &r);
	wcc = nfs_full_wcc(&r.RENAME3res_u.resok.fromdir_wcc) &&
	      nfs_full_wcc(&r.RENAME3res_u.resok.todir_wcc);
	return r.status;
}

static int link_at(nfs_fh3 fh, nfs_fh3 at, const char *name)
{
	LINK3args a = { .file = fh,
			.link = { at, (char *)(uintptr_t)name } };
	LINK3res r;

	nfs_call(&root, link, &a, &r);
	wcc = nfs_full_wcc(&r.LINK3res_u.resok.linkdir_wcc) &&
	      r.LINK3res_u.resok.file_attributes.attributes_follow;
	return r.status;
}

START_TEST(lookup_finds_what_is_there)
{
	nfs_fh3 fh;

	ck_assert_int_eq(lookup(top, "file", &fh), NFS3_OK);
	ck_assert(nfs_same_fh(fh, file));
	ck_assert_int_eq(lookup(top, "none", &fh), NFS3ERR_NOENT);
	ck_assert_int_eq(lookup(file, "x", &fh), NFS3ERR_NOTDIR);
}
END_TEST

START_TEST(dot_is_the_directory_and_dotdot_its_parent)
{
	nfs_fh3 fh;

	ck_assert_int_eq(lookup(dir, ".", &fh), NFS3_OK);
	ck_assert(nfs_same_fh(fh, dir));
	ck_assert_int_eq(lookup(dir, "..", &fh), NFS3_OK);
	ck_assert(nfs_same_fh(fh, top));
	ck_assert_int_eq(lookup(file, ".", &fh), NFS3ERR_NOTDIR);
	ck_assert_int_eq(lookup(file, "..", &fh), NFS3ERR_NOTDIR);
}
END_TEST

START_TEST(dotdot_stops_at_the_root_of_the_export)
{
	nfs_fh3 fh;

	ck_assert_int_eq(lookup(top, "..", &fh), NFS3_OK);
	ck_assert(nfs_same_fh(fh, top));
}
END_TEST

/* RFC 1813 section 3.2, clauses 1, 4 and 5. */
START_TEST(names_that_no_file_can_have_are_refused)
{
	static const char *const bad[] = { "", "a/b", "/" };
	nfs_fh3 fh;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		const char *n = bad[i];

		ck_assert_int_eq(lookup(top, n, &fh), NFS3ERR_ACCES);
		ck_assert_int_eq(create(&root, top, n, UNCHECKED, NULL),
				 NFS3ERR_ACCES);
		ck_assert_int_eq(mkdir_at(&root, top, n), NFS3ERR_ACCES);
		ck_assert_int_eq(symlink_at(top, n, "t"), NFS3ERR_ACCES);
		ck_assert_int_eq(mknod_at(top, n, NF3FIFO), NFS3ERR_ACCES);
		ck_assert_int_eq(remove_at(&root, top, n), NFS3ERR_ACCES);
		ck_assert_int_eq(rmdir_at(top, n), NFS3ERR_ACCES);
		ck_assert_int_eq(rename_at(top, n, top, "x"), NFS3ERR_ACCES);
		ck_assert_int_eq(rename_at(top, "file", top, n),
				 NFS3ERR_ACCES);
		ck_assert_int_eq(link_at(file, top, n), NFS3ERR_ACCES);
	}
}
END_TEST

START_TEST(names_may_have_255_bytes)
{
	const char *n = long_name;
	nfs_fh3 fh;

	ck_assert_int_eq(lookup(top, n, &fh), NFS3ERR_NAMETOOLONG);
	ck_assert_int_eq(create(&root, top, n, UNCHECKED, NULL),
			 NFS3ERR_NAMETOOLONG);
	ck_assert_int_eq(mkdir_at(&root, top, n), NFS3ERR_NAMETOOLONG);
	ck_assert_int_eq(symlink_at(top, n, "t"), NFS3ERR_NAMETOOLONG);
	ck_assert_int_eq(mknod_at(top, n, NF3FIFO), NFS3ERR_NAMETOOLONG);
	ck_assert_int_eq(remove_at(&root, top, n), NFS3ERR_NAMETOOLONG);
	ck_assert_int_eq(rmdir_at(top, n), NFS3ERR_NAMETOOLONG);
	ck_assert_int_eq(rename_at(top, n, top, "x"), NFS3ERR_NAMETOOLONG);
	ck_assert_int_eq(rename_at(top, "file", top, n), NFS3ERR_NAMETOOLONG);
	ck_assert_int_eq(link_at(file, top, n), NFS3ERR_NAMETOOLONG);
	n++;
	ck_assert_int_eq(create(&root, top, n, GUARDED, NULL), NFS3_OK);
	ck_assert_int_eq(lookup(top, n, &fh), NFS3_OK);
}
END_TEST

START_TEST(dots_are_no_names_for_new_things)
{
	for (const char *n = ".."; *n; n++) {
		ck_assert_int_eq(create(&root, dir, n, UNCHECKED, NULL),
				 NFS3ERR_EXIST);
		ck_assert_int_eq(mkdir_at(&root, dir, n), NFS3ERR_EXIST);
		ck_assert_int_eq(symlink_at(dir, n, "t"), NFS3ERR_EXIST);
		ck_assert_int_eq(mknod_at(dir, n, NF3FIFO), NFS3ERR_EXIST);
		ck_assert_int_eq(link_at(file, dir, n), NFS3ERR_EXIST);
		ck_assert_int_eq(remove_at(&root, dir, n), NFS3ERR_ACCES);
		ck_assert_int_eq(rename_at(dir, n, dir, "x"), NFS3ERR_INVAL);
		ck_assert_int_eq(rename_at(top, "file", dir, n),
				 NFS3ERR_INVAL);
	}
	ck_assert_int_eq(rmdir_at(dir, "."), NFS3ERR_INVAL);
	ck_assert_int_eq(rmdir_at(dir, ".."), NFS3ERR_EXIST);
}
END_TEST

START_TEST(create_unchecked_takes_what_is_there)
{
	CREATE3args a = { .where = { top, "file" } };
	sattr3 *s = &a.how.createhow3_u.obj_attributes;
	CREATE3res r;

	ck_assert_int_eq(create(&root, top, "file", UNCHECKED, NULL), NFS3_OK);
	ck_assert_uint_eq(nfs_attr(file).size, 4);
	s->size.set_it = 1;
	nfs_call(&root, create, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert(nfs_same_fh(r.CREATE3res_u.resok.obj.post_op_fh3_u.handle,
			      file));
	ck_assert_uint_eq(nfs_attr(file).size, 0);
	ck_assert_int_eq(create(&root, top, "dir", UNCHECKED, NULL),
			 NFS3ERR_EXIST);
}
END_TEST

START_TEST(create_gives_the_attributes_asked_for)
{
	CREATE3args a = { .where = { top, "new" } };
	sattr3 *s = &a.how.createhow3_u.obj_attributes;
	fattr3 attr;
	CREATE3res r;

	s->mode.set_it = s->uid.set_it = s->size.set_it = 1;
	s->mode.set_mode3_u.mode = 0641;
	s->uid.set_uid3_u.uid = 77;
	s->size.set_size3_u.size = 1000;
	nfs_call(&root, create, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	attr = r.CREATE3res_u.resok.obj_attributes.post_op_attr_u.attributes;
	ck_assert_uint_eq(attr.mode, 0641);
	ck_assert_uint_eq(attr.uid, 77);
	ck_assert_uint_eq(attr.size, 1000);
	ck_assert(nfs_full_wcc(&r.CREATE3res_u.resok.dir_wcc));
}
END_TEST

/* Who is not root makes files of his own, whatever he asks for. */
START_TEST(an_owner_can_not_be_made_up)
{
	CREATE3args a = { .where = { top, "new" } };
	sattr3 *s = &a.how.createhow3_u.obj_attributes;
	SETATTR3args sa = { .object = top };
	SETATTR3res sr;
	CREATE3res r;

	sa.new_attributes.mode.set_it = 1;
	sa.new_attributes.mode.set_mode3_u.mode = 0777;
	nfs_call(&root, setattr, &sa, &sr);
	s->uid.set_it = s->gid.set_it = 1;
	nfs_call(&user, create, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_uint_eq(r.CREATE3res_u.resok.obj_attributes.post_op_attr_u
			  .attributes.uid, USER_UID);
}
END_TEST

START_TEST(create_guarded_makes_only_new_files)
{
	ck_assert_int_eq(create(&root, top, "file", GUARDED, NULL),
			 NFS3ERR_EXIST);
	ck_assert_int_eq(create(&root, top, "new", GUARDED, NULL), NFS3_OK);
	ck_assert(wcc);
	ck_assert_int_eq(create(&root, file, "new", GUARDED, NULL),
			 NFS3ERR_NOTDIR);
}
END_TEST

START_TEST(create_exclusive_knows_its_verifier)
{
	ck_assert_int_eq(create(&root, top, "x", EXCLUSIVE, "12345678"),
			 NFS3_OK);
	ck_assert_int_eq(create(&root, top, "x", EXCLUSIVE, "12345678"),
			 NFS3_OK);
	ck_assert_int_eq(create(&root, top, "x", EXCLUSIVE, "12345679"),
			 NFS3ERR_EXIST);
	ck_assert_int_eq(create(&root, top, "file", EXCLUSIVE, "12345678"),
			 NFS3ERR_EXIST);
}
END_TEST

START_TEST(times_with_too_many_nanoseconds_are_invalid)
{
	CREATE3args ca = { .where = { top, "new" } };
	MKDIR3args ma = { .where = { top, "new" } };
	CREATE3res cr;
	MKDIR3res mr;

	ca.how.createhow3_u.obj_attributes.mtime.set_it = SET_TO_CLIENT_TIME;
	ca.how.createhow3_u.obj_attributes.mtime.set_mtime_u.mtime.nseconds =
		1000000000;
	nfs_call(&root, create, &ca, &cr);
	ck_assert_int_eq(cr.status, NFS3ERR_INVAL);
	ma.attributes.atime.set_it = SET_TO_CLIENT_TIME;
	ma.attributes.atime.set_atime_u.atime.nseconds = UINT32_MAX;
	nfs_call(&root, mkdir, &ma, &mr);
	ck_assert_int_eq(mr.status, NFS3ERR_INVAL);
	ck_assert_int_eq(nfs_exists(top, "new"), NFS3ERR_NOENT);
}
END_TEST

START_TEST(mkdir_makes_directories)
{
	nfs_fh3 fh;

	ck_assert_int_eq(mkdir_at(&root, top, "new"), NFS3_OK);
	ck_assert(wcc);
	ck_assert_int_eq(lookup(top, "new", &fh), NFS3_OK);
	ck_assert_int_eq(nfs_attr(fh).type, NF3DIR);
	ck_assert_int_eq(mkdir_at(&root, top, "new"), NFS3ERR_EXIST);
	ck_assert_int_eq(mkdir_at(&root, file, "new"), NFS3ERR_NOTDIR);
	ck_assert_int_eq(mkdir_at(&user, top, "another"), NFS3ERR_ACCES);
}
END_TEST

START_TEST(symlink_makes_links_to_anywhere)
{
	nfs_fh3 fh;

	ck_assert_int_eq(symlink_at(top, "new", "/etc/passwd"), NFS3_OK);
	ck_assert(wcc);
	ck_assert_int_eq(lookup(top, "new", &fh), NFS3_OK);
	ck_assert_int_eq(nfs_attr(fh).type, NF3LNK);
	ck_assert_uint_eq(nfs_attr(fh).size, 11);
	ck_assert_int_eq(symlink_at(top, "new", "t"), NFS3ERR_EXIST);
	ck_assert_int_eq(symlink_at(file, "new", "t"), NFS3ERR_NOTDIR);
	ck_assert_int_eq(symlink_at(top, "empty", ""), NFS3ERR_INVAL);
}
END_TEST

START_TEST(mknod_makes_all_special_files)
{
	static const ftype3 types[] = { NF3BLK, NF3CHR, NF3SOCK, NF3FIFO };
	nfs_fh3 fh;

	ck_assert_int_eq(mknod_at(top, "new", types[_i]), NFS3_OK);
	ck_assert(wcc);
	ck_assert_int_eq(lookup(top, "new", &fh), NFS3_OK);
	ck_assert_int_eq(nfs_attr(fh).type, types[_i]);
	if (_i < 2) {
		ck_assert_uint_eq(nfs_attr(fh).rdev.specdata1, 8);
		ck_assert_uint_eq(nfs_attr(fh).rdev.specdata2, 1);
	}
	ck_assert_int_eq(mknod_at(top, "new", types[_i]), NFS3ERR_EXIST);
}
END_TEST

START_TEST(mknod_of_other_types_is_refused)
{
	ck_assert_int_eq(mknod_at(top, "new", NF3REG), NFS3ERR_BADTYPE);
	ck_assert_int_eq(mknod_at(top, "new", NF3DIR), NFS3ERR_BADTYPE);
	ck_assert_int_eq(mknod_at(top, "new", NF3LNK), NFS3ERR_BADTYPE);
}
END_TEST

START_TEST(remove_removes_what_is_no_directory)
{
	ck_assert_int_eq(remove_at(&user, top, "file"), NFS3ERR_ACCES);
	ck_assert_int_eq(remove_at(&root, top, "dir"), NFS3ERR_ISDIR);
	ck_assert_int_eq(remove_at(&root, top, "none"), NFS3ERR_NOENT);
	ck_assert_int_eq(remove_at(&root, file, "x"), NFS3ERR_NOTDIR);
	ck_assert_int_eq(remove_at(&root, top, "file"), NFS3_OK);
	ck_assert(wcc);
	ck_assert_int_eq(nfs_exists(top, "file"), NFS3ERR_NOENT);
}
END_TEST

START_TEST(rmdir_removes_empty_directories)
{
	nfs_make_file(dir, "in", "");
	ck_assert_int_eq(rmdir_at(top, "dir"), NFS3ERR_NOTEMPTY);
	ck_assert_int_eq(rmdir_at(top, "file"), NFS3ERR_NOTDIR);
	ck_assert_int_eq(rmdir_at(top, "none"), NFS3ERR_NOENT);
	ck_assert_int_eq(remove_at(&root, dir, "in"), NFS3_OK);
	ck_assert_int_eq(rmdir_at(top, "dir"), NFS3_OK);
	ck_assert(wcc);
	ck_assert_int_eq(nfs_exists(top, "dir"), NFS3ERR_NOENT);
}
END_TEST

START_TEST(rename_moves_and_replaces)
{
	nfs_fh3 fh;

	ck_assert_int_eq(rename_at(top, "file", dir, "moved"), NFS3_OK);
	ck_assert(wcc);
	ck_assert_int_eq(lookup(dir, "moved", &fh), NFS3_OK);
	ck_assert(nfs_same_fh(fh, file));
	ck_assert_int_eq(nfs_exists(top, "file"), NFS3ERR_NOENT);
	nfs_make_file(top, "other", "x");
	ck_assert_int_eq(rename_at(dir, "moved", top, "other"), NFS3_OK);
	ck_assert_uint_eq(nfs_attr(file).size, 4);
	ck_assert_int_eq(rename_at(top, "other", top, "other"), NFS3_OK);
	ck_assert_int_eq(link_at(file, top, "second"), NFS3_OK);
	ck_assert_int_eq(rename_at(top, "other", top, "second"), NFS3_OK);
	ck_assert_int_eq(nfs_exists(top, "other"), NFS3_OK);
}
END_TEST

START_TEST(rename_refuses_what_can_not_be)
{
	nfs_make_dir(dir, "sub");
	nfs_make_dir(top, "empty");
	ck_assert_int_eq(rename_at(top, "none", top, "x"), NFS3ERR_NOENT);
	ck_assert_int_eq(rename_at(top, "file", top, "dir"), NFS3ERR_ISDIR);
	ck_assert_int_eq(rename_at(top, "dir", top, "file"), NFS3ERR_NOTDIR);
	ck_assert_int_eq(rename_at(top, "empty", top, "dir"),
			 NFS3ERR_NOTEMPTY);
	ck_assert_int_eq(rename_at(top, "dir", dir, "x"), NFS3ERR_INVAL);
	ck_assert_int_eq(rename_at(file, "x", top, "y"), NFS3ERR_NOTDIR);
}
END_TEST

START_TEST(link_adds_a_name)
{
	ck_assert_int_eq(link_at(file, dir, "second"), NFS3_OK);
	ck_assert(wcc);
	ck_assert_uint_eq(nfs_attr(file).nlink, 2);
	ck_assert_int_eq(link_at(file, dir, "second"), NFS3ERR_EXIST);
	ck_assert_int_eq(link_at(file, file, "x"), NFS3ERR_NOTDIR);
	ck_assert_int_ne(link_at(dir, top, "x"), NFS3_OK);
}
END_TEST

START_TEST(two_exports_are_two_devices)
{
	struct export_fh other;
	nfs_fh3 fh;

	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure,no_root_squash)\n"
			"/other 127.0.0.1(rw,insecure,no_root_squash)\n");
	harness_root(&srv, "/other", &other);
	fh.data.data_val = (char *)other.data;
	fh.data.data_len = other.len;
	ck_assert_int_eq(rename_at(top, "file", fh, "x"), NFS3ERR_XDEV);
	ck_assert_int_eq(link_at(file, fh, "x"), NFS3ERR_XDEV);
	ck_assert_uint_ne(nfs_attr(fh).fsid, nfs_attr(top).fsid);
}
END_TEST

START_TEST(a_second_handle_is_checked_like_the_first)
{
	char zero[EXPORT_FH_MAX] = { 0 };
	nfs_fh3 bad = { { 32, zero } };
	nfs_fh3 gone = nfs_make_dir(top, "gone");

	ck_assert_int_eq(rmdir_at(top, "gone"), NFS3_OK);
	ck_assert_int_eq(rename_at(top, "file", bad, "x"), NFS3ERR_BADHANDLE);
	ck_assert_int_eq(rename_at(top, "file", gone, "x"), NFS3ERR_STALE);
	ck_assert_int_eq(link_at(file, bad, "x"), NFS3ERR_BADHANDLE);
	ck_assert_int_eq(link_at(file, gone, "x"), NFS3ERR_STALE);
}
END_TEST

START_TEST(a_read_only_export_stays_as_it_is)
{
	SETATTR3args sa = { .object = file };
	SETATTR3res sr;

	harness_publish(&srv, READ_ONLY);
	nfs_call(&root, setattr, &sa, &sr);
	ck_assert_int_eq(sr.status, NFS3ERR_ROFS);
	ck_assert_int_eq(create(&root, top, "x", UNCHECKED, NULL),
			 NFS3ERR_ROFS);
	ck_assert_int_eq(mkdir_at(&root, top, "x"), NFS3ERR_ROFS);
	ck_assert_int_eq(symlink_at(top, "x", "t"), NFS3ERR_ROFS);
	ck_assert_int_eq(mknod_at(top, "x", NF3FIFO), NFS3ERR_ROFS);
	ck_assert_int_eq(remove_at(&root, top, "file"), NFS3ERR_ROFS);
	ck_assert_int_eq(rmdir_at(top, "dir"), NFS3ERR_ROFS);
	ck_assert_int_eq(rename_at(top, "file", top, "x"), NFS3ERR_ROFS);
	ck_assert_int_eq(link_at(file, top, "x"), NFS3ERR_ROFS);
	ck_assert_int_eq(nfs_exists(top, "file"), NFS3_OK);
}
END_TEST

static void add_making(TCase *tc)
{
	tcase_add_test(tc, create_unchecked_takes_what_is_there);
	tcase_add_test(tc, create_gives_the_attributes_asked_for);
	tcase_add_test(tc, an_owner_can_not_be_made_up);
	tcase_add_test(tc, create_guarded_makes_only_new_files);
	tcase_add_test(tc, create_exclusive_knows_its_verifier);
	tcase_add_test(tc, times_with_too_many_nanoseconds_are_invalid);
	tcase_add_test(tc, mkdir_makes_directories);
	tcase_add_test(tc, symlink_makes_links_to_anywhere);
	tcase_add_loop_test(tc, mknod_makes_all_special_files, 0, 4);
	tcase_add_test(tc, mknod_of_other_types_is_refused);
}

static void add_changing(TCase *tc)
{
	tcase_add_test(tc, remove_removes_what_is_no_directory);
	tcase_add_test(tc, rmdir_removes_empty_directories);
	tcase_add_test(tc, rename_moves_and_replaces);
	tcase_add_test(tc, rename_refuses_what_can_not_be);
	tcase_add_test(tc, link_adds_a_name);
	tcase_add_test(tc, two_exports_are_two_devices);
	tcase_add_test(tc, a_second_handle_is_checked_like_the_first);
	tcase_add_test(tc, a_read_only_export_stays_as_it_is);
}

int main(void)
{
	Suite *s = suite_create("nfs3_names");
	TCase *tc = tcase_create("names");

	tcase_add_checked_fixture(tc, setup, nfs_teardown);
	tcase_add_test(tc, lookup_finds_what_is_there);
	tcase_add_test(tc, dot_is_the_directory_and_dotdot_its_parent);
	tcase_add_test(tc, dotdot_stops_at_the_root_of_the_export);
	tcase_add_test(tc, names_that_no_file_can_have_are_refused);
	tcase_add_test(tc, names_may_have_255_bytes);
	tcase_add_test(tc, dots_are_no_names_for_new_things);
	add_making(tc);
	add_changing(tc);
	suite_add_tcase(s, tc);
	return run_suite(s);
}
