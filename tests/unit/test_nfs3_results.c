/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of NFS version 3 on the wire: RFC 1813 section 3.3, word for word. */
#include "nfs3/proc.h"

#include <stdarg.h>

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

/*
 * A result on the wire is its status, then the fields in @form: a file handle
 * (h), attributes (a), both with the flag that they follow (H, A), wcc_data
 * (W), or one word of the arguments after it (w).
 */
static void looks(void (*put)(struct xdr_out *, const void *), const void *res,
		  const char *form, ...)
{
	va_list words;

	xdr_out_init(&out, wire, sizeof(wire));
	put(&out, res);
	ck_assert(!out.bad);
	xdr_in_init(&in, wire, xdr_out_len(&out));
	expect(*(const enum nfsstat3 *)res);
	va_start(words, form);
	for (; *form; form++) {
		if (strchr("HA", *form))
			expect(1);
		switch (*form) {
		case 'h': case 'H':
			expect_fh();
			break;
		case 'a': case 'A':
			expect_fattr();
			break;
		case 'W':
			expect_wcc();
			break;
		default:
			expect(va_arg(words, uint32_t));
		}
	}
	va_end(words);
	ck_assert_uint_eq(xdr_left(&in), 0);
}

TEST(getattr_result)
{
	struct nfs3_attr_res r = { .attr = POST_ATTR };

	looks(nfs3_put_getattr, &r, "a");
	r.status = NFS3ERR_STALE;
	looks(nfs3_put_getattr, &r, "");
}

TEST(wcc_result)
{
	struct nfs3_wcc_res r = { .wcc = WCC };

	looks(nfs3_put_wcc, &r, "W");
	r.status = NFS3ERR_NOT_SYNC;
	looks(nfs3_put_wcc, &r, "W");
	memset(&r.wcc, 0, sizeof(r.wcc));
	looks(nfs3_put_wcc, &r, "ww", 0, 0);
}

TEST(lookup_result)
{
	struct nfs3_lookup_res r = { .fh = FH, .attr = POST_ATTR,
				     .dir_attr = POST_ATTR };

	looks(nfs3_put_lookup, &r, "hAA");
	r.status = NFS3ERR_NOENT;
	looks(nfs3_put_lookup, &r, "A");
}

TEST(access_result)
{
	struct nfs3_access_res r = { .attr = POST_ATTR, .access = 0x15 };

	looks(nfs3_put_access, &r, "Aw", 0x15);
	r.status = NFS3ERR_IO;
	looks(nfs3_put_access, &r, "A");
}

TEST(readlink_result_ends_with_the_length_of_the_body)
{
	struct nfs3_readlink_res r = { .attr = POST_ATTR, .len = 99 };

	looks(nfs3_put_readlink, &r, "Aw", 99);
	r.status = NFS3ERR_INVAL;
	looks(nfs3_put_readlink, &r, "A");
}

TEST(read_result_ends_with_the_length_of_the_body)
{
	struct nfs3_read_res r = { .attr = POST_ATTR, .count = 4097,
				   .eof = true };

	looks(nfs3_put_read, &r, "Awww", 4097, 1, 4097);
	r.status = NFS3ERR_ACCES;
	looks(nfs3_put_read, &r, "A");
}

TEST(write_result)
{
	struct nfs3_write_res r = { .wcc = WCC, .count = 5,
				    .committed = VFS_FILE_SYNC,
				    .verf = 0x100000002ull };

	looks(nfs3_put_write, &r, "Wwwww", 5, 2, 1, 2);
	r.status = NFS3ERR_NOSPC;
	looks(nfs3_put_write, &r, "W");
}

TEST(create_result)
{
	struct nfs3_create_res r = { .fh = FH, .attr = POST_ATTR,
				     .dir_wcc = WCC };

	looks(nfs3_put_create, &r, "HAW");
	r.status = NFS3ERR_EXIST;
	looks(nfs3_put_create, &r, "W");
}

TEST(rename_result)
{
	struct nfs3_rename_res r = { .from_wcc = WCC, .to_wcc = WCC };

	looks(nfs3_put_rename, &r, "WW");
	r.status = NFS3ERR_XDEV;
	looks(nfs3_put_rename, &r, "WW");
}

TEST(link_result)
{
	struct nfs3_link_res r = { .attr = POST_ATTR, .dir_wcc = WCC };

	looks(nfs3_put_link, &r, "AW");
	r.status = NFS3ERR_MLINK;
	looks(nfs3_put_link, &r, "AW");
}

TEST(readdir_result_ends_before_the_entries)
{
	struct nfs3_readdir_res r = { .dir_attr = POST_ATTR,
				      .verf = 0x300000004ull };

	looks(nfs3_put_readdir, &r, "Aww", 3, 4);
	r.status = NFS3ERR_BAD_COOKIE;
	looks(nfs3_put_readdir, &r, "A");
}

TEST(fsstat_result)
{
	struct nfs3_fsstat_res r = { .attr = POST_ATTR,
				     .st = { 1, 2, 3, 4, 5, 6 } };

	looks(nfs3_put_fsstat, &r, "Awwwwwwwwwwwww",
	      0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0);
	r.status = NFS3ERR_IO;
	looks(nfs3_put_fsstat, &r, "A");
}

TEST(fsinfo_result)
{
	struct nfs3_fsinfo_res r = {
		.attr = POST_ATTR, .rtmax = 1 << 20,
		.rtpref = 1 << 20, .wtmax = 1 << 19, .wtpref = 1 << 19,
		.dtpref = 1 << 16,
		.limits = { .max_file_size = 1ull << 50,
			    .time_delta = { 0, 1 }, .hard_links = true,
			    .symlinks = true, .homogeneous = true,
			    .can_set_time = true },
	};

	looks(nfs3_put_fsinfo, &r, "Awwwwwwwwwwww", 1 << 20, 1 << 20, 4096,
	      1 << 19, 1 << 19, 4096, 1 << 16, 1 << 18, 0, 0, 1, 0x1b);
	memset(&r.limits, 0, sizeof(r.limits));
	looks(nfs3_put_fsinfo, &r, "Awwwwwwwwwwww", 1 << 20, 1 << 20, 4096,
	      1 << 19, 1 << 19, 4096, 1 << 16, 0, 0, 0, 0, 0);
	r.status = NFS3ERR_STALE;
	looks(nfs3_put_fsinfo, &r, "A");
}

TEST(pathconf_result)
{
	struct nfs3_pathconf_res r = {
		.attr = POST_ATTR,
		.limits = { .link_max = 32, .name_max = 255, .no_trunc = true,
			    .case_preserving = true },
	};

	looks(nfs3_put_pathconf, &r, "Awwwwww", 32, 255, 1, 0, 0, 1);
	r.status = NFS3ERR_STALE;
	looks(nfs3_put_pathconf, &r, "A");
}

TEST(commit_result)
{
	struct nfs3_commit_res r = { .wcc = WCC, .verf = 0x500000006ull };

	looks(nfs3_put_commit, &r, "Www", 5, 6);
	r.status = NFS3ERR_IO;
	looks(nfs3_put_commit, &r, "W");
}

/* The results of each procedure, filled in. */
static union nfs3_res some_result(enum nfs3_procnum proc)
{
	switch (proc) {
	case NFSPROC3_GETATTR:
		return (union nfs3_res){ .getattr.attr = POST_ATTR };
	case NFSPROC3_SETATTR:
	case NFSPROC3_REMOVE:
	case NFSPROC3_RMDIR:
		return (union nfs3_res){ .wcc.wcc = WCC };
	case NFSPROC3_LOOKUP:
		return (union nfs3_res){ .lookup = {
			.fh = FH, .attr = POST_ATTR, .dir_attr = POST_ATTR } };
	case NFSPROC3_WRITE:
		return (union nfs3_res){ .write = {
			.wcc = WCC, .count = 31, .committed = VFS_DATA_SYNC,
			.verf = 1ull << 35 } };
	case NFSPROC3_RENAME:
		return (union nfs3_res){ .rename = {
			.from_wcc = WCC, .to_wcc = WCC } };
	case NFSPROC3_LINK:
		return (union nfs3_res){ .link = {
			.attr = POST_ATTR, .dir_wcc = WCC } };
	case NFSPROC3_COMMIT:
		return (union nfs3_res){ .commit = {
			.wcc = WCC, .verf = 1ull << 36 } };
	case NFSPROC3_CREATE:
	case NFSPROC3_MKDIR:
	case NFSPROC3_SYMLINK:
	case NFSPROC3_MKNOD:
		return (union nfs3_res){ .create = {
			.dir_wcc = WCC, .fh = FH, .attr = POST_ATTR } };
	default:
		break;
	}
	/* The others have the attributes of the file first. */
	return (union nfs3_res){ .getattr.attr = POST_ATTR };
}

static union nfs3_res rest_of(enum nfs3_procnum proc)
{
	union nfs3_res r = some_result(proc);

	if (proc == NFSPROC3_ACCESS)
		r.access.access = 0x2f;
	if (proc == NFSPROC3_READLINK)
		r.readlink.len = 77;
	if (proc == NFSPROC3_READ) {
		r.read.count = 4097;
		r.read.eof = true;
	}
	if (proc == NFSPROC3_READDIR || proc == NFSPROC3_READDIRPLUS)
		r.readdir.verf = 1ull << 37 | 1;
	if (proc == NFSPROC3_FSSTAT)
		r.fsstat.st = (struct vfs_statfs){ 1ull << 40, 2, 3, 4, 5, 6 };
	if (proc == NFSPROC3_FSINFO) {
		r.fsinfo.rtmax = 1;
		r.fsinfo.rtpref = 2;
		r.fsinfo.wtmax = 3;
		r.fsinfo.wtpref = 4;
		r.fsinfo.dtpref = 5;
		r.fsinfo.limits = (struct vfs_limits){
			.max_file_size = 1ull << 41, .time_delta = { 6, 7 },
			.symlinks = true, .can_set_time = true };
	}
	if (proc == NFSPROC3_PATHCONF)
		r.pathconf.limits = (struct vfs_limits){
			.link_max = 8, .name_max = 9, .no_trunc = true,
			.case_preserving = true };
	return r;
}

static size_t encoded(enum nfs3_procnum proc, const union nfs3_res *r,
		      void *to)
{
	static void (*const put[NFS3_NPROC])(struct xdr_out *, const void *) = {
		[NFSPROC3_GETATTR] = nfs3_put_getattr,
		[NFSPROC3_SETATTR] = nfs3_put_wcc,
		[NFSPROC3_LOOKUP] = nfs3_put_lookup,
		[NFSPROC3_ACCESS] = nfs3_put_access,
		[NFSPROC3_READLINK] = nfs3_put_readlink,
		[NFSPROC3_READ] = nfs3_put_read,
		[NFSPROC3_WRITE] = nfs3_put_write,
		[NFSPROC3_CREATE] = nfs3_put_create,
		[NFSPROC3_MKDIR] = nfs3_put_create,
		[NFSPROC3_SYMLINK] = nfs3_put_create,
		[NFSPROC3_MKNOD] = nfs3_put_create,
		[NFSPROC3_REMOVE] = nfs3_put_wcc,
		[NFSPROC3_RMDIR] = nfs3_put_wcc,
		[NFSPROC3_RENAME] = nfs3_put_rename,
		[NFSPROC3_LINK] = nfs3_put_link,
		[NFSPROC3_READDIR] = nfs3_put_readdir,
		[NFSPROC3_READDIRPLUS] = nfs3_put_readdir,
		[NFSPROC3_FSSTAT] = nfs3_put_fsstat,
		[NFSPROC3_FSINFO] = nfs3_put_fsinfo,
		[NFSPROC3_PATHCONF] = nfs3_put_pathconf,
		[NFSPROC3_COMMIT] = nfs3_put_commit,
	};
	struct xdr_out x;

	xdr_out_init(&x, to, sizeof(wire));
	put[proc](&x, r);
	ck_assert(!x.bad);
	return xdr_out_len(&x);
}

/* With each status of two, results go and come back whole or not at all. */
TEST_LOOP(results_come_back_as_they_went, NFSPROC3_GETATTR, NFS3_NPROC)
{
	const enum nfsstat3 status[] = { NFS3_OK, NFS3ERR_IO };
	enum nfs3_procnum proc = (enum nfs3_procnum)_i;
	uint8_t again[sizeof(wire)];
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(status); i++) {
		union nfs3_res r = rest_of(proc), back;

		r.status = status[i];
		len = encoded(proc, &r, wire);
		for (size_t cut = 0; cut < len; cut++) {
			xdr_in_init(&in, wire, cut);
			ck_assert(!nfs3_get_res(&in, proc, &back));
		}
		xdr_in_init(&in, wire, len);
		ck_assert(nfs3_get_res(&in, proc, &back));
		ck_assert_uint_eq(xdr_left(&in), 0);
		ck_assert_uint_eq(encoded(proc, &back, again), len);
		ck_assert_mem_eq(again, wire, len);
	}
}
