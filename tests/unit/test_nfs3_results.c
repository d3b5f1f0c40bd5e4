/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of NFS version 3 on the wire: RFC 1813 section 3.3, word for word. */
#include "nfs3/proc.h"

#include "tests/unit/runner.h"

static uint8_t wire[4096];
static struct xdr_out out;

static const struct vfs_attr some_attr = {
	.type = VFS_CHR, .mode = 0640, .nlink = 2, .uid = 3, .gid = 4,
	.size = 1ull << 32 | 5, .used = 1ull << 33 | 6,
	.rdev_major = 7, .rdev_minor = 8, .fileid = 1ull << 34 | 9,
	.atime = { 10, 11 }, .mtime = { 12, 13 }, .ctime = { 14, 15 },
};

/* The words of fattr3, in order. */
static const uint32_t fattr_words[NFS3_FATTR_SIZE / 4] = {
	4, 0640, 2, 3, 4, 1, 5, 2, 6, 7, 8, 0x11, 0x22, 4, 9,
	10, 11, 12, 13, 14, 15,
};
#define SOME_FSID	0x1100000022ull

static struct xdr_in in;

static void encode(void (*put)(struct xdr_out *, const void *),
		   const void *res)
{
	xdr_out_init(&out, wire, sizeof(wire));
	put(&out, res);
	ck_assert(!out.bad);
	xdr_in_init(&in, wire, xdr_out_len(&out));
}

static void expect(uint32_t v)
{
	ck_assert_uint_eq(xdr_get_u32(&in), v);
	ck_assert(xdr_ok(&in));
}

static void expect_fattr(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(fattr_words); i++)
		expect(fattr_words[i]);
}

static void expect_post_attr(void)
{
	expect(1);
	expect_fattr();
}

static void expect_wcc(void)
{
	static const uint32_t before[] = { 1, 0, 20, 21, 22, 23, 24 };

	for (size_t i = 0; i < ARRAY_SIZE(before); i++)
		expect(before[i]);
	expect_post_attr();
}

static void expect_end(void)
{
	ck_assert_uint_eq(xdr_left(&in), 0);
}

#define POST_ATTR { .has = true, .attr = some_attr, .fsid = SOME_FSID }
#define WCC { .wcc = { .has_before = true, .has_after = true, \
		       .before_size = 20, .before_mtime = { 21, 22 }, \
		       .before_ctime = { 23, 24 }, .after = some_attr }, \
	      .fsid = SOME_FSID }
#define FH { .len = 5, .data = "abcde" }

static void expect_fh(void)
{
	struct xdr_view fh = xdr_get_opaque(&in, NFS3_FHSIZE);

	ck_assert_uint_eq(fh.len, 5);
	ck_assert_mem_eq(fh.data, "abcde", 5);
}

TEST(getattr_result)
{
	struct nfs3_attr_res r = { .attr = POST_ATTR };

	encode(nfs3_put_getattr, &r);
	expect(NFS3_OK);
	expect_fattr();
	expect_end();
	r.status = NFS3ERR_STALE;
	encode(nfs3_put_getattr, &r);
	expect(NFS3ERR_STALE);
	expect_end();
}

TEST(wcc_result)
{
	struct nfs3_wcc_res r = { .wcc = WCC };

	for (int i = 0; i < 2; i++) {
		encode(nfs3_put_wcc, &r);
		expect(r.status);
		expect_wcc();
		expect_end();
		r.status = NFS3ERR_NOT_SYNC;
	}
	memset(&r.wcc, 0, sizeof(r.wcc));
	encode(nfs3_put_wcc, &r);
	expect(NFS3ERR_NOT_SYNC);
	expect(0);
	expect(0);
	expect_end();
}

TEST(lookup_result)
{
	struct nfs3_lookup_res r = { .fh = FH, .attr = POST_ATTR,
				     .dir_attr = POST_ATTR };

	encode(nfs3_put_lookup, &r);
	expect(NFS3_OK);
	expect_fh();
	expect_post_attr();
	expect_post_attr();
	expect_end();
	r.status = NFS3ERR_NOENT;
	encode(nfs3_put_lookup, &r);
	expect(NFS3ERR_NOENT);
	expect_post_attr();
	expect_end();
}

TEST(access_result)
{
	struct nfs3_access_res r = { .attr = POST_ATTR, .access = 0x15 };

	encode(nfs3_put_access, &r);
	expect(NFS3_OK);
	expect_post_attr();
	expect(0x15);
	expect_end();
	r.status = NFS3ERR_IO;
	encode(nfs3_put_access, &r);
	expect(NFS3ERR_IO);
	expect_post_attr();
	expect_end();
}

TEST(readlink_result_ends_with_the_length_of_the_body)
{
	struct nfs3_readlink_res r = { .attr = POST_ATTR, .len = 99 };

	encode(nfs3_put_readlink, &r);
	expect(NFS3_OK);
	expect_post_attr();
	expect(99);
	expect_end();
	r.status = NFS3ERR_INVAL;
	encode(nfs3_put_readlink, &r);
	expect(NFS3ERR_INVAL);
	expect_post_attr();
	expect_end();
}

TEST(read_result_ends_with_the_length_of_the_body)
{
	struct nfs3_read_res r = { .attr = POST_ATTR, .count = 4097,
				   .eof = true };

	encode(nfs3_put_read, &r);
	expect(NFS3_OK);
	expect_post_attr();
	expect(4097);
	expect(1);
	expect(4097);
	expect_end();
	r.status = NFS3ERR_ACCES;
	encode(nfs3_put_read, &r);
	expect(NFS3ERR_ACCES);
	expect_post_attr();
	expect_end();
}

TEST(write_result)
{
	struct nfs3_write_res r = { .wcc = WCC, .count = 5,
				    .committed = VFS_FILE_SYNC,
				    .verf = 0x100000002ull };

	encode(nfs3_put_write, &r);
	expect(NFS3_OK);
	expect_wcc();
	expect(5);
	expect(2);
	expect(1);
	expect(2);
	expect_end();
	r.status = NFS3ERR_NOSPC;
	encode(nfs3_put_write, &r);
	expect(NFS3ERR_NOSPC);
	expect_wcc();
	expect_end();
}

TEST(create_result)
{
	struct nfs3_create_res r = { .fh = FH, .attr = POST_ATTR,
				     .dir_wcc = WCC };

	encode(nfs3_put_create, &r);
	expect(NFS3_OK);
	expect(1);
	expect_fh();
	expect_post_attr();
	expect_wcc();
	expect_end();
	r.status = NFS3ERR_EXIST;
	encode(nfs3_put_create, &r);
	expect(NFS3ERR_EXIST);
	expect_wcc();
	expect_end();
}

TEST(rename_result)
{
	struct nfs3_rename_res r = { .from_wcc = WCC, .to_wcc = WCC };

	for (int i = 0; i < 2; i++) {
		encode(nfs3_put_rename, &r);
		expect(r.status);
		expect_wcc();
		expect_wcc();
		expect_end();
		r.status = NFS3ERR_XDEV;
	}
}

TEST(link_result)
{
	struct nfs3_link_res r = { .attr = POST_ATTR, .dir_wcc = WCC };

	for (int i = 0; i < 2; i++) {
		encode(nfs3_put_link, &r);
		expect(r.status);
		expect_post_attr();
		expect_wcc();
		expect_end();
		r.status = NFS3ERR_MLINK;
	}
}

TEST(readdir_result_ends_before_the_entries)
{
	struct nfs3_readdir_res r = { .dir_attr = POST_ATTR,
				      .verf = 0x300000004ull };

	encode(nfs3_put_readdir, &r);
	expect(NFS3_OK);
	expect_post_attr();
	expect(3);
	expect(4);
	expect_end();
	r.status = NFS3ERR_BAD_COOKIE;
	encode(nfs3_put_readdir, &r);
	expect(NFS3ERR_BAD_COOKIE);
	expect_post_attr();
	expect_end();
}

TEST(fsstat_result)
{
	struct nfs3_fsstat_res r = { .attr = POST_ATTR,
				     .st = { 1, 2, 3, 4, 5, 6 } };

	encode(nfs3_put_fsstat, &r);
	expect(NFS3_OK);
	expect_post_attr();
	for (uint32_t i = 1; i <= 6; i++) {
		expect(0);
		expect(i);
	}
	expect(0);
	expect_end();
	r.status = NFS3ERR_IO;
	encode(nfs3_put_fsstat, &r);
	expect(NFS3ERR_IO);
	expect_post_attr();
	expect_end();
}

TEST(fsinfo_result)
{
	struct nfs3_fsinfo_res r = {
		.attr = POST_ATTR, .rtmax = 1 << 20, .wtmax = 1 << 19,
		.dtpref = 1 << 16,
		.limits = { .max_file_size = 1ull << 50,
			    .time_delta = { 0, 1 }, .hard_links = true,
			    .symlinks = true, .homogeneous = true,
			    .can_set_time = true },
	};
	static const uint32_t words[] = {
		1 << 20, 1 << 20, 4096, 1 << 19, 1 << 19, 4096, 1 << 16,
		1 << 18, 0, 0, 1, 0x1b,
	};

	encode(nfs3_put_fsinfo, &r);
	expect(NFS3_OK);
	expect_post_attr();
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		expect(words[i]);
	expect_end();
	memset(&r.limits, 0, sizeof(r.limits));
	encode(nfs3_put_fsinfo, &r);
	ck_assert_uint_eq(wire[xdr_out_len(&out) - 1], 0);
	r.status = NFS3ERR_STALE;
	encode(nfs3_put_fsinfo, &r);
	expect(NFS3ERR_STALE);
	expect_post_attr();
	expect_end();
}

TEST(pathconf_result)
{
	struct nfs3_pathconf_res r = {
		.attr = POST_ATTR,
		.limits = { .link_max = 32, .name_max = 255, .no_trunc = true,
			    .case_preserving = true },
	};

	encode(nfs3_put_pathconf, &r);
	expect(NFS3_OK);
	expect_post_attr();
	expect(32);
	expect(255);
	expect(1);
	expect(0);
	expect(0);
	expect(1);
	expect_end();
	r.status = NFS3ERR_STALE;
	encode(nfs3_put_pathconf, &r);
	expect(NFS3ERR_STALE);
	expect_post_attr();
	expect_end();
}

TEST(commit_result)
{
	struct nfs3_commit_res r = { .wcc = WCC, .verf = 0x500000006ull };

	encode(nfs3_put_commit, &r);
	expect(NFS3_OK);
	expect_wcc();
	expect(5);
	expect(6);
	expect_end();
	r.status = NFS3ERR_IO;
	encode(nfs3_put_commit, &r);
	expect(NFS3ERR_IO);
	expect_wcc();
	expect_end();
}
