/* SPDX-License-Identifier: BSD-2-Clause */
/* LOOKUP, CREATE, MKDIR, SYMLINK, MKNOD; and valid and invalid names. */
#include "tests/server/nfs_names.h"

#include "tests/unit/runner.h"

static char long_name[257];
static nfs_fh3 dir, file;

static void setup(void)
{
	nfs_setup();
	memset(long_name, 'n', 256);
	dir = nfs_make_dir(top, "dir");
	file = nfs_make_file(top, "file", "data");
}

TEST_CASE(.setup = setup, .teardown = nfs_teardown);

TEST(lookup_finds_what_is_there)
{
	nfs_fh3 fh;

	ck_assert_int_eq(try_lookup(top, "file", &fh), NFS3_OK);
	ck_assert(nfs_same_fh(fh, file));
	ck_assert_int_eq(try_lookup(top, "none", &fh), NFS3ERR_NOENT);
	ck_assert_int_eq(try_lookup(file, "x", &fh), NFS3ERR_NOTDIR);
}

TEST(dot_is_the_directory_and_dotdot_its_parent)
{
	nfs_fh3 fh;

	ck_assert_int_eq(try_lookup(dir, ".", &fh), NFS3_OK);
	ck_assert(nfs_same_fh(fh, dir));
	ck_assert_int_eq(try_lookup(dir, "..", &fh), NFS3_OK);
	ck_assert(nfs_same_fh(fh, top));
	ck_assert_int_eq(try_lookup(file, ".", &fh), NFS3ERR_NOTDIR);
	ck_assert_int_eq(try_lookup(file, "..", &fh), NFS3ERR_NOTDIR);
}

TEST(dot_takes_permission_to_search)
{
	LOOKUP3args a = { .what = { dir, "." } };
	SETATTR3args sa = { .object = dir };
	SETATTR3res sr;
	LOOKUP3res r;

	nfs_call(&user, lookup, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	sa.new_attributes.mode.set_it = 1;
	sa.new_attributes.mode.set_mode3_u.mode = 0744;
	nfs_call(&root, setattr, &sa, &sr);
	nfs_call(&user, lookup, &a, &r);
	ck_assert_int_eq(r.status, NFS3ERR_ACCES);
}

TEST(dotdot_stops_at_the_root_of_the_export)
{
	nfs_fh3 fh;

	ck_assert_int_eq(try_lookup(top, "..", &fh), NFS3_OK);
	ck_assert(nfs_same_fh(fh, top));
}

static void all_refuse(const char *n, nfsstat3 status)
{
	nfs_fh3 fh;

	ck_assert_int_eq(try_lookup(top, n, &fh), status);
	ck_assert_int_eq(try_create(&root, top, n, UNCHECKED, NULL), status);
	ck_assert_int_eq(try_mkdir(&root, top, n), status);
	ck_assert_int_eq(try_symlink(top, n, "t"), status);
	ck_assert_int_eq(try_mknod(top, n, NF3FIFO), status);
	ck_assert_int_eq(try_remove(&root, top, n), status);
	ck_assert_int_eq(try_rmdir(top, n), status);
	ck_assert_int_eq(try_rename(top, n, top, "x"), status);
	ck_assert_int_eq(try_rename(top, "file", top, n), status);
	ck_assert_int_eq(try_link(file, top, n), status);
}

/* RFC 1813 section 3.2, clauses 1, 4 and 5. */
TEST(names_that_no_file_can_have_are_refused)
{
	all_refuse("", NFS3ERR_ACCES);
	all_refuse("a/b", NFS3ERR_ACCES);
	all_refuse("/", NFS3ERR_ACCES);
}

TEST(names_may_have_255_bytes)
{
	const char *n = long_name + 1;
	nfs_fh3 fh;

	all_refuse(long_name, NFS3ERR_NAMETOOLONG);
	ck_assert_int_eq(try_create(&root, top, n, GUARDED, NULL), NFS3_OK);
	ck_assert_int_eq(try_lookup(top, n, &fh), NFS3_OK);
}

TEST(other_dots_are_names_like_any)
{
	static const char *const names[] = { ".a", "a.", "...", "\xff\n" };
	nfs_fh3 fh;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *n = names[i];

		ck_assert_int_eq(try_mkdir(&root, top, n), NFS3_OK);
		ck_assert_int_eq(try_lookup(top, n, &fh), NFS3_OK);
		ck_assert_int_eq(try_rename(top, n, top, "x"), NFS3_OK);
		ck_assert_int_eq(try_rename(top, "x", top, n), NFS3_OK);
		ck_assert_int_eq(try_rmdir(top, n), NFS3_OK);
	}
}

TEST(dots_are_no_names_for_new_things)
{
	for (const char *n = ".."; *n; n++) {
		ck_assert_int_eq(try_create(&root, dir, n, UNCHECKED, NULL),
				 NFS3ERR_EXIST);
		ck_assert_int_eq(try_mkdir(&root, dir, n), NFS3ERR_EXIST);
		ck_assert_int_eq(try_symlink(dir, n, "t"), NFS3ERR_EXIST);
		ck_assert_int_eq(try_mknod(dir, n, NF3FIFO), NFS3ERR_EXIST);
		ck_assert_int_eq(try_link(file, dir, n), NFS3ERR_EXIST);
		ck_assert_int_eq(try_remove(&root, dir, n), NFS3ERR_ACCES);
		ck_assert_int_eq(try_rename(dir, n, dir, "x"), NFS3ERR_INVAL);
		ck_assert_int_eq(try_rename(top, "file", dir, n),
				 NFS3ERR_INVAL);
	}
	ck_assert_int_eq(try_rmdir(dir, "."), NFS3ERR_INVAL);
	ck_assert_int_eq(try_rmdir(dir, ".."), NFS3ERR_EXIST);
}

TEST(create_unchecked_takes_what_is_there)
{
	CREATE3args a = { .where = { top, "file" } };
	sattr3 *s = &a.how.createhow3_u.obj_attributes;
	CREATE3res r;

	ck_assert_int_eq(try_create(&root, top, "file", UNCHECKED, NULL),
			 NFS3_OK);
	ck_assert_uint_eq(nfs_attr(file).size, 4);
	s->size.set_it = 1;
	nfs_call(&root, create, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert(nfs_same_fh(r.CREATE3res_u.resok.obj.post_op_fh3_u.handle,
			      file));
	ck_assert_uint_eq(nfs_attr(file).size, 0);
	ck_assert_int_eq(try_create(&root, top, "dir", UNCHECKED, NULL),
			 NFS3ERR_EXIST);
}

TEST(create_gives_the_attributes_asked_for)
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
	ck_assert_uint_eq(attr.fsid, nfs_attr(top).fsid);
	ck_assert(nfs_full_wcc(&r.CREATE3res_u.resok.dir_wcc));
}

/* A caller other than root owns the files that it makes, with any owner in the
 * arguments. */
TEST(an_owner_can_not_be_made_up)
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

TEST(create_guarded_makes_only_new_files)
{
	ck_assert_int_eq(try_create(&root, top, "file", GUARDED, NULL),
			 NFS3ERR_EXIST);
	ck_assert_int_eq(try_create(&root, top, "new", GUARDED, NULL), NFS3_OK);
	ck_assert(nfs_wcc);
	ck_assert_int_eq(try_create(&root, file, "new", GUARDED, NULL),
			 NFS3ERR_NOTDIR);
}

TEST(create_exclusive_knows_its_verifier)
{
	ck_assert_int_eq(try_create(&root, top, "x", EXCLUSIVE, "12345678"),
			 NFS3_OK);
	ck_assert_int_eq(try_create(&root, top, "x", EXCLUSIVE, "12345678"),
			 NFS3_OK);
	ck_assert_int_eq(try_create(&root, top, "x", EXCLUSIVE, "12345679"),
			 NFS3ERR_EXIST);
	ck_assert_int_eq(try_create(&root, top, "file", EXCLUSIVE, "12345678"),
			 NFS3ERR_EXIST);
}

TEST(times_and_sizes_that_can_not_be_are_invalid)
{
	CREATE3args ca = { .where = { top, "new" } };
	MKDIR3args ma = { .where = { top, "new" } };
	CREATE3res cr;
	MKDIR3res mr;

	ca.how.createhow3_u.obj_attributes.size.set_it = 1;
	ca.how.createhow3_u.obj_attributes.size.set_size3_u.size = 1ull << 63;
	nfs_call(&root, create, &ca, &cr);
	ck_assert_int_eq(cr.status, NFS3ERR_INVAL);
	ca.how.createhow3_u.obj_attributes.size.set_it = 0;

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

TEST(mkdir_makes_directories)
{
	nfs_fh3 fh;

	ck_assert_int_eq(try_mkdir(&root, top, "new"), NFS3_OK);
	ck_assert(nfs_wcc);
	ck_assert_int_eq(try_lookup(top, "new", &fh), NFS3_OK);
	ck_assert_int_eq(nfs_attr(fh).type, NF3DIR);
	ck_assert_int_eq(try_mkdir(&root, top, "new"), NFS3ERR_EXIST);
	ck_assert_int_eq(try_mkdir(&root, file, "new"), NFS3ERR_NOTDIR);
	ck_assert_int_eq(try_mkdir(&user, top, "another"), NFS3ERR_ACCES);
}

TEST(symlink_makes_links_to_anywhere)
{
	nfs_fh3 fh;

	ck_assert_int_eq(try_symlink(top, "new", "/etc/passwd"), NFS3_OK);
	ck_assert(nfs_wcc);
	ck_assert_int_eq(try_lookup(top, "new", &fh), NFS3_OK);
	ck_assert_int_eq(nfs_attr(fh).type, NF3LNK);
	ck_assert_uint_eq(nfs_attr(fh).size, 11);
	ck_assert_int_eq(try_symlink(top, "new", "t"), NFS3ERR_EXIST);
	ck_assert_int_eq(try_symlink(file, "new", "t"), NFS3ERR_NOTDIR);
	ck_assert_int_eq(try_symlink(top, "empty", ""), NFS3ERR_INVAL);
}

TEST_LOOP(mknod_makes_all_special_files, 0, 4)
{
	static const ftype3 types[] = { NF3BLK, NF3CHR, NF3SOCK, NF3FIFO };
	nfs_fh3 fh;

	ck_assert_int_eq(try_mknod(top, "new", types[_i]), NFS3_OK);
	ck_assert(nfs_wcc);
	ck_assert_int_eq(try_lookup(top, "new", &fh), NFS3_OK);
	ck_assert_int_eq(nfs_attr(fh).type, types[_i]);
	if (_i < 2) {
		ck_assert_uint_eq(nfs_attr(fh).rdev.specdata1, 8);
		ck_assert_uint_eq(nfs_attr(fh).rdev.specdata2, 1);
	}
	ck_assert_int_eq(try_mknod(top, "new", types[_i]), NFS3ERR_EXIST);
}

TEST(mknod_of_other_types_is_refused)
{
	ck_assert_int_eq(try_mknod(top, "new", NF3REG), NFS3ERR_BADTYPE);
	ck_assert_int_eq(try_mknod(top, "new", NF3DIR), NFS3ERR_BADTYPE);
	ck_assert_int_eq(try_mknod(top, "new", NF3LNK), NFS3ERR_BADTYPE);
}
