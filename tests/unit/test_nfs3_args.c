/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments of NFS version 3 off the wire: RFC 1813 section 3.3. */
#include "nfs3/proc.h"

#include "tests/unit/runner.h"

static uint8_t wire[4096];
static struct xdr_out out;

static void begin(void)
{
	xdr_out_init(&out, wire, sizeof(wire));
}

static void put_fh(void)
{
	xdr_put_opaque(&out, "handle7", 7);
}

static void put_where(const char *name)
{
	put_fh();
	xdr_put_opaque(&out, name, (uint32_t)strlen(name));
}

/* sattr3 with everything in it. */
static void put_sattr(void)
{
	xdr_put_bool(&out, true);
	xdr_put_u32(&out, 06755);
	xdr_put_bool(&out, true);
	xdr_put_u32(&out, 1001);
	xdr_put_bool(&out, true);
	xdr_put_u32(&out, 1002);
	xdr_put_bool(&out, true);
	xdr_put_u64(&out, 1ull << 40);
	xdr_put_u32(&out, SET_TO_CLIENT_TIME);
	xdr_put_u32(&out, 0xfedcba98);
	xdr_put_u32(&out, 999999999);
	xdr_put_u32(&out, SET_TO_SERVER_TIME);
}

static void check_sattr(const struct vfs_setattr *s)
{
	ck_assert_uint_eq(s->set, VFS_SET_MODE | VFS_SET_UID | VFS_SET_GID |
			  VFS_SET_SIZE | VFS_SET_ATIME | VFS_SET_MTIME_NOW);
	ck_assert_uint_eq(s->mode, 06755);
	ck_assert_uint_eq(s->uid, 1001);
	ck_assert_uint_eq(s->gid, 1002);
	ck_assert_uint_eq(s->size, 1ull << 40);
	ck_assert_int_eq(s->atime.tv_sec, 0xfedcba98);
	ck_assert_int_eq(s->atime.tv_nsec, 999999999);
}

static void check_view(struct xdr_view v, const char *s)
{
	ck_assert_uint_eq(v.len, strlen(s));
	ck_assert_mem_eq(v.data, s, v.len);
}

static bool decode_len(bool (*get)(struct xdr_in *, void *), void *args,
		       size_t len)
{
	struct xdr_in x;

	xdr_in_init(&x, wire, len);
	return get(&x, args);
}

/* Decodes the whole input, and checks that no shorter input is taken. */
static void decode(bool (*get)(struct xdr_in *, void *), void *args)
{
	size_t len = xdr_out_len(&out);

	ck_assert(!out.bad);
	for (size_t i = 0; i < len; i++)
		ck_assert_msg(!decode_len(get, args, i), "%zu of %zu bytes", i,
			      len);
	ck_assert(decode_len(get, args, len));
}

/* Arguments that were decoded become the same bytes again, except the data of a
 * WRITE. */
static void encode(enum nfs3_procnum proc, const void *args)
{
	uint8_t again[sizeof(wire)];
	struct xdr_out x;

	xdr_out_init(&x, again, sizeof(again));
	nfs3_put_args(&x, proc, args);
	ck_assert(!x.bad);
	ck_assert_uint_eq(xdr_out_len(&x), proc == NFSPROC3_WRITE ?
			  xdr_out_len(&out) - 8 : xdr_out_len(&out));
	ck_assert_mem_eq(again, wire, xdr_out_len(&x));
}

TEST(handle_only)
{
	struct nfs3_fh_args a;

	begin();
	put_fh();
	decode(nfs3_get_fh, &a);
	encode(NFSPROC3_GETATTR, &a);
	check_view(a.fh, "handle7");
}

TEST(longest_handle_is_taken_a_longer_one_is_not)
{
	static const uint8_t fh[NFS3_FHSIZE + 4];
	struct nfs3_fh_args a;

	begin();
	xdr_put_opaque(&out, fh, NFS3_FHSIZE);
	decode(nfs3_get_fh, &a);
	encode(NFSPROC3_GETATTR, &a);
	begin();
	xdr_put_opaque(&out, fh, NFS3_FHSIZE + 1);
	ck_assert(!decode_len(nfs3_get_fh, &a, xdr_out_len(&out)));
	begin();
	xdr_put_u32(&out, UINT32_MAX);
	ck_assert(!decode_len(nfs3_get_fh, &a, xdr_out_len(&out)));
}

TEST(setattr)
{
	struct nfs3_setattr_args a;

	begin();
	put_fh();
	put_sattr();
	xdr_put_bool(&out, true);
	xdr_put_u32(&out, 5);
	xdr_put_u32(&out, 6);
	decode(nfs3_get_setattr, &a);
	encode(NFSPROC3_SETATTR, &a);
	check_sattr(&a.attr);
	ck_assert(a.attr.guarded);
	ck_assert_int_eq(a.attr.guard.tv_sec, 5);
	ck_assert_int_eq(a.attr.guard.tv_nsec, 6);
}

TEST(setattr_of_nothing)
{
	struct nfs3_setattr_args a;

	begin();
	put_fh();
	for (int i = 0; i < 7; i++)
		xdr_put_u32(&out, 0);
	decode(nfs3_get_setattr, &a);
	encode(NFSPROC3_SETATTR, &a);
	ck_assert_uint_eq(a.attr.set, 0);
	ck_assert(!a.attr.guarded);
}

TEST(bits_beyond_the_mode_are_left_out)
{
	struct nfs3_setattr_args a;

	begin();
	put_fh();
	xdr_put_bool(&out, true);
	xdr_put_u32(&out, 0106755);
	for (int i = 0; i < 6; i++)
		xdr_put_u32(&out, 0);
	decode(nfs3_get_setattr, &a);
	ck_assert_uint_eq(a.attr.mode, 06755);
}

/* Each of the seven discriminants of SETATTR, one past its last value. */
TEST_LOOP(unknown_discriminants_are_garbage, 0, 7)
{
	static const uint32_t past[7] = { 2, 2, 2, 2, 3, 3, 2 };
	struct nfs3_setattr_args a;

	begin();
	put_fh();
	for (int i = 0; i < 7; i++)
		xdr_put_u32(&out, (uint32_t)_i == (uint32_t)i ? past[i] : 0);
	ck_assert(!decode_len(nfs3_get_setattr, &a, xdr_out_len(&out)));
}

TEST(dirop)
{
	struct nfs3_dirop_args a;

	begin();
	put_where("name");
	decode(nfs3_get_dirop, &a);
	encode(NFSPROC3_LOOKUP, &a);
	check_view(a.fh, "handle7");
	check_view(a.name, "name");
}

/* It has a status, NAMETOOLONG, which GARBAGE_ARGS would hide. */
TEST(a_long_name_is_decoded)
{
	static const uint8_t name[1000];
	struct nfs3_dirop_args a;

	begin();
	put_fh();
	xdr_put_opaque(&out, name, sizeof(name));
	decode(nfs3_get_dirop, &a);
	encode(NFSPROC3_LOOKUP, &a);
	ck_assert_uint_eq(a.name.len, sizeof(name));
}

TEST(access_args)
{
	struct nfs3_access_args a;

	begin();
	put_fh();
	xdr_put_u32(&out, 0x3f);
	decode(nfs3_get_access, &a);
	encode(NFSPROC3_ACCESS, &a);
	ck_assert_uint_eq(a.access, 0x3f);
}

TEST(read_args)
{
	struct nfs3_read_args a;

	begin();
	put_fh();
	xdr_put_u64(&out, 5ull << 30);
	xdr_put_u32(&out, 1 << 20);
	decode(nfs3_get_read, &a);
	encode(NFSPROC3_READ, &a);
	ck_assert_uint_eq(a.offset, 5ull << 30);
	ck_assert_uint_eq(a.count, 1 << 20);
}

static void put_write_head(uint32_t stable)
{
	put_fh();
	xdr_put_u64(&out, 1ull << 33);
	xdr_put_u32(&out, 5);
	xdr_put_u32(&out, stable);
}

TEST(write_args)
{
	struct nfs3_write_args a;

	begin();
	put_write_head(VFS_DATA_SYNC);
	xdr_put_opaque(&out, "bytes", 5);
	decode(nfs3_get_write, &a);
	encode(NFSPROC3_WRITE, &a);
	ck_assert_uint_eq(a.offset, 1ull << 33);
	ck_assert_uint_eq(a.count, 5);
	ck_assert_int_eq(a.stable, VFS_DATA_SYNC);
	ck_assert_uint_eq(a.len, 5);
	ck_assert_int_eq(a.niov, 1);
	ck_assert_mem_eq(a.iov[0].iov_base, "bytes", 5);
}

TEST(unknown_stable_how_is_garbage)
{
	struct nfs3_write_args a;

	begin();
	put_write_head(3);
	xdr_put_opaque(&out, "bytes", 5);
	ck_assert(!decode_len(nfs3_get_write, &a, xdr_out_len(&out)));
}

/* As Read chunks bring it (RFC 8166 section 3.4.4). */
TEST(write_data_in_pieces_is_not_copied)
{
	static const uint8_t one[8] = "8 bytes", two[4] = "45";
	struct nfs3_write_args a;
	struct xdr_seg segs[3];
	struct xdr_in x;

	begin();
	put_write_head(0);
	xdr_put_u32(&out, 10);
	segs[0] = (struct xdr_seg){ wire, (uint32_t)xdr_out_len(&out) };
	segs[1] = (struct xdr_seg){ one, 8 };
	segs[2] = (struct xdr_seg){ two, 4 };
	xdr_in_init_segs(&x, segs, 3);
	ck_assert(nfs3_get_write(&x, &a));
	ck_assert_uint_eq(a.len, 10);
	ck_assert_int_eq(a.niov, 2);
	ck_assert_ptr_eq(a.iov[0].iov_base, one);
	ck_assert_ptr_eq(a.iov[1].iov_base, two);
	ck_assert_uint_eq(a.iov[1].iov_len, 2);
}

TEST(create_unchecked_and_guarded)
{
	struct nfs3_create_args a;

	for (uint32_t mode = UNCHECKED; mode <= GUARDED; mode++) {
		begin();
		put_where("new");
		xdr_put_u32(&out, mode);
		put_sattr();
		decode(nfs3_get_create, &a);
		encode(NFSPROC3_CREATE, &a);
		ck_assert_int_eq(a.how.how, mode == UNCHECKED ?
				 VFS_CREATE_UNCHECKED : VFS_CREATE_GUARDED);
		check_view(a.where.name, "new");
		check_sattr(&a.how.attr);
	}
}

TEST(create_exclusive)
{
	struct nfs3_create_args a;

	begin();
	put_where("new");
	xdr_put_u32(&out, EXCLUSIVE);
	xdr_put_u64(&out, 0x0123456789abcdef);
	decode(nfs3_get_create, &a);
	encode(NFSPROC3_CREATE, &a);
	ck_assert_int_eq(a.how.how, VFS_CREATE_EXCLUSIVE);
	ck_assert_uint_eq(a.how.verf, 0x0123456789abcdef);
	ck_assert_uint_eq(a.how.attr.set, 0);
}

TEST(unknown_createmode_is_garbage)
{
	struct nfs3_create_args a;

	begin();
	put_where("new");
	xdr_put_u32(&out, 3);
	put_sattr();
	ck_assert(!decode_len(nfs3_get_create, &a, xdr_out_len(&out)));
}

TEST(mkdir_args)
{
	struct nfs3_make_args a;

	begin();
	put_where("dir");
	put_sattr();
	decode(nfs3_get_mkdir, &a);
	encode(NFSPROC3_MKDIR, &a);
	ck_assert_uint_eq(a.type, VFS_DIR);
	check_sattr(&a.what.attr);
}

TEST(symlink_args)
{
	struct nfs3_make_args a;

	begin();
	put_where("link");
	put_sattr();
	xdr_put_opaque(&out, "to/here", 7);
	decode(nfs3_get_symlink, &a);
	encode(NFSPROC3_SYMLINK, &a);
	ck_assert_uint_eq(a.type, VFS_LNK);
	check_sattr(&a.what.attr);
	ck_assert_uint_eq(a.what.target_len, 7);
	ck_assert_mem_eq(a.what.target, "to/here", 7);
}

TEST(mknod_of_devices)
{
	struct nfs3_make_args a;

	for (uint32_t type = VFS_BLK; type <= VFS_CHR; type++) {
		begin();
		put_where("node");
		xdr_put_u32(&out, type);
		put_sattr();
		xdr_put_u32(&out, 8);
		xdr_put_u32(&out, 1);
		decode(nfs3_get_mknod, &a);
		encode(NFSPROC3_MKNOD, &a);
		ck_assert_uint_eq(a.type, type);
		check_sattr(&a.what.attr);
		ck_assert_uint_eq(a.what.rdev_major, 8);
		ck_assert_uint_eq(a.what.rdev_minor, 1);
	}
}

TEST(mknod_of_pipes)
{
	struct nfs3_make_args a;

	for (uint32_t type = VFS_SOCK; type <= VFS_FIFO; type++) {
		begin();
		put_where("node");
		xdr_put_u32(&out, type);
		put_sattr();
		decode(nfs3_get_mknod, &a);
		encode(NFSPROC3_MKNOD, &a);
		ck_assert_uint_eq(a.type, type);
		check_sattr(&a.what.attr);
		ck_assert_uint_eq(a.what.rdev_major, 0);
	}
}

TEST_LOOP(mknod_of_other_types_is_void, 0, 6)
{
	static const uint32_t types[] = { 0, VFS_REG, VFS_DIR, VFS_LNK, 8,
					  UINT32_MAX };
	struct nfs3_make_args a;

	begin();
	put_where("node");
	xdr_put_u32(&out, types[_i]);
	decode(nfs3_get_mknod, &a);
	ck_assert_uint_eq(a.type, 0);
}

TEST(rename_args)
{
	struct nfs3_rename_args a;

	begin();
	put_where("old");
	put_where("newer");
	decode(nfs3_get_rename, &a);
	encode(NFSPROC3_RENAME, &a);
	check_view(a.from.name, "old");
	check_view(a.to.fh, "handle7");
	check_view(a.to.name, "newer");
}

TEST(link_args)
{
	struct nfs3_link_args a;

	begin();
	xdr_put_opaque(&out, "file", 4);
	put_where("second");
	decode(nfs3_get_link, &a);
	encode(NFSPROC3_LINK, &a);
	check_view(a.fh, "file");
	check_view(a.link.fh, "handle7");
	check_view(a.link.name, "second");
}

TEST(readdir_args)
{
	struct nfs3_readdir_args a;

	begin();
	put_fh();
	xdr_put_u64(&out, 77);
	xdr_put_u64(&out, 88);
	xdr_put_u32(&out, 4096);
	decode(nfs3_get_readdir, &a);
	encode(NFSPROC3_READDIR, &a);
	ck_assert_uint_eq(a.cookie, 77);
	ck_assert_uint_eq(a.verf, 88);
	ck_assert_uint_eq(a.dircount, UINT32_MAX);
	ck_assert_uint_eq(a.maxcount, 4096);
}

TEST(readdirplus_args)
{
	struct nfs3_readdir_args a;

	begin();
	put_fh();
	xdr_put_u64(&out, 77);
	xdr_put_u64(&out, 88);
	xdr_put_u32(&out, 512);
	xdr_put_u32(&out, 4096);
	decode(nfs3_get_readdirplus, &a);
	encode(NFSPROC3_READDIRPLUS, &a);
	ck_assert_uint_eq(a.dircount, 512);
	ck_assert_uint_eq(a.maxcount, 4096);
}

TEST(commit_args)
{
	struct nfs3_commit_args a;

	begin();
	put_fh();
	xdr_put_u64(&out, 4096);
	xdr_put_u32(&out, 12);
	decode(nfs3_get_commit, &a);
	encode(NFSPROC3_COMMIT, &a);
	ck_assert_uint_eq(a.offset, 4096);
	ck_assert_uint_eq(a.count, 12);
}
