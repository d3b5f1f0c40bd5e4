/* SPDX-License-Identifier: BSD-2-Clause */
/* READDIR and READDIRPLUS. */
#include "tests/server/nfs_client.h"

#include <stdio.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/module_vfs.h"
#include "tests/unit/runner.h"

#define NFILES		300
/* dir_attributes, cookieverf, end of list, eof. */
#define FRAME		(88 + 8 + 4 + 4)

static nfs_fh3 dir;

static void setup(void)
{
	char name[32];

	nfs_setup();
	dir = nfs_make_dir(top, "dir");
	for (int i = 0; i < NFILES; i++) {
		snprintf(name, sizeof(name), "file%.*d", 1 + i % 5, i);
		nfs_make_file(dir, name, "");
	}
}

static READDIR3res list(nfs_fh3 fh, uint64_t cookie, const char *verf,
			uint32_t count)
{
	READDIR3args a = { .dir = fh, .cookie = cookie, .count = count };
	READDIR3res r;

	if (verf)
		memcpy(a.cookieverf, verf, sizeof(a.cookieverf));
	nfs_call(&root, readdir, &a, &r);
	return r;
}

static READDIRPLUS3res list_plus(nfs_fh3 fh, uint64_t cookie,
				 const char *verf, uint32_t dircount,
				 uint32_t maxcount)
{
	READDIRPLUS3args a = { .dir = fh, .cookie = cookie,
			       .dircount = dircount, .maxcount = maxcount };
	READDIRPLUS3res r;

	if (verf)
		memcpy(a.cookieverf, verf, sizeof(a.cookieverf));
	nfs_call(&root, readdirplus, &a, &r);
	return r;
}

static size_t padded(size_t len)
{
	return (len + 3) & ~(size_t)3;
}

/* In XDR; the bytes that dircount counts. */
static size_t entry_size(const char *name)
{
	return 4 + 8 + 4 + padded(strlen(name)) + 8;
}

static size_t plus_size(const entryplus3 *e)
{
	size_t size = entry_size(e->name) + 4 + 4;

	if (e->name_attributes.attributes_follow)
		size += 84;
	if (e->name_handle.handle_follows)
		size += 4 + padded(e->name_handle.post_op_fh3_u.handle.data
				   .data_len);
	return size;
}

static unsigned seen_dots, seen_files;

static void see(const char *name, uint64_t fileid, uint64_t cookie)
{
	ck_assert_uint_ne(fileid, 0);
	ck_assert_uint_gt(cookie, 0);
	ck_assert_uint_lt(cookie, 1ull << 63);
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		seen_dots++;
	else
		seen_files++;
}

TEST_CASE(.setup = setup, .teardown = nfs_teardown);

TEST_LOOP(readdir_lists_everything_within_count, 0, 6)
{
	static const uint32_t counts[] = { 140, 200, 1000, 4096, 1 << 20,
					   UINT32_MAX };
	uint32_t count = counts[_i];
	char verf[NFS3_COOKIEVERFSIZE] = { 0 };
	READDIR3resok *ok;
	uint64_t cookie = 0;
	READDIR3res r;

	do {
		size_t size = FRAME;

		r = list(dir, cookie, verf, count);
		ok = &r.READDIR3res_u.resok;
		ck_assert_int_eq(r.status, NFS3_OK);
		ck_assert(ok->dir_attributes.attributes_follow);
		for (entry3 *e = ok->reply.entries; e; e = e->nextentry) {
			size += entry_size(e->name);
			see(e->name, e->fileid, e->cookie);
			cookie = e->cookie;
		}
		ck_assert_uint_le(size, count);
		ck_assert(ok->reply.entries || ok->reply.eof);
		memcpy(verf, ok->cookieverf, sizeof(verf));
	} while (!ok->reply.eof);
	ck_assert_uint_eq(seen_dots, 2);
	ck_assert_uint_eq(seen_files, NFILES);
}

TEST_LOOP(readdirplus_lists_everything_within_both_counts, 0, 5)
{
	static const struct { uint32_t dircount, maxcount; } counts[] = {
		{ 512, 400 }, { 100, 4096 }, { 1000, 8192 },
		{ 1 << 20, 1 << 20 }, { UINT32_MAX, UINT32_MAX },
	};
	char verf[NFS3_COOKIEVERFSIZE] = { 0 };
	READDIRPLUS3resok *ok;
	uint64_t cookie = 0;
	READDIRPLUS3res r;

	do {
		size_t size = FRAME, dirsize = 0;

		r = list_plus(dir, cookie, verf, counts[_i].dircount,
			      counts[_i].maxcount);
		ok = &r.READDIRPLUS3res_u.resok;
		ck_assert_int_eq(r.status, NFS3_OK);
		ck_assert(ok->dir_attributes.attributes_follow);
		for (entryplus3 *e = ok->reply.entries; e; e = e->nextentry) {
			size += plus_size(e);
			dirsize += entry_size(e->name);
			see(e->name, e->fileid, e->cookie);
			cookie = e->cookie;
		}
		ck_assert_uint_le(size, counts[_i].maxcount);
		ck_assert_uint_le(dirsize, counts[_i].dircount);
		ck_assert(ok->reply.entries || ok->reply.eof);
		memcpy(verf, ok->cookieverf, sizeof(verf));
	} while (!ok->reply.eof);
	ck_assert_uint_eq(seen_dots, 2);
	ck_assert_uint_eq(seen_files, NFILES);
}

TEST(readdirplus_knows_the_files)
{
	READDIRPLUS3res r = list_plus(dir, 0, NULL, 4096, 1 << 16);
	entryplus3 *e = r.READDIRPLUS3res_u.resok.reply.entries;
	unsigned n = 0;

	ck_assert_int_eq(r.status, NFS3_OK);
	for (; e; e = e->nextentry, n++) {
		fattr3 *attr = &e->name_attributes.post_op_attr_u.attributes;
		fattr3 now;

		/* Only mem knows that ".." is in the export. */
		if ((fault_on_posix() || module_vfs()) &&
		    strcmp(e->name, "..") == 0)
			continue;
		ck_assert(e->name_attributes.attributes_follow);
		ck_assert(e->name_handle.handle_follows);
		now = nfs_attr(e->name_handle.post_op_fh3_u.handle);
		ck_assert_uint_eq(now.fileid, e->fileid);
		ck_assert_uint_eq(attr->fileid, e->fileid);
		ck_assert_uint_eq(attr->fsid, now.fsid);
		ck_assert_int_eq(attr->type, now.type);
	}
	ck_assert_uint_gt(n, 3);
}

TEST(readdirplus_may_know_only_names)
{
	READDIRPLUS3res r;
	entryplus3 *e;

	fault_bare_readdir(true);
	r = list_plus(dir, 0, NULL, 4096, 4096);
	ck_assert_int_eq(r.status, NFS3_OK);
	e = r.READDIRPLUS3res_u.resok.reply.entries;
	ck_assert_ptr_nonnull(e);
	for (; e; e = e->nextentry) {
		ck_assert(!e->name_attributes.attributes_follow);
		ck_assert(!e->name_handle.handle_follows);
	}
}

static const unsigned too_long[] = { 256, 600, 4000 };

/* As on NTFS and FUSE: a stock client that gets such a name lists nothing. */
TEST_LOOP(names_that_no_client_takes_are_left_out, 0, ARRAY_SIZE(too_long))
{
	uint64_t count = stats_sum_by_name("nfs3_long_names"), cookie = 0;
	nfs_fh3 odd = nfs_make_dir(top, "odd");
	unsigned listed = 0, calls = 0;
	bool eof = false;
	READDIR3res r;
	char name[32];

	for (int i = 0; i < 40; i++) {
		snprintf(name, sizeof(name), i % 3 && i < 37 ? "%d" : "long%d",
			 i);
		nfs_make_file(odd, name, "");
	}
	fault_lengthen(too_long[_i]);
	for (; !eof && calls < 100; calls++) {
		READDIRPLUS3res p = list_plus(odd, cookie, NULL, 300, 4096);

		ck_assert_int_eq(p.status, NFS3_OK);
		eof = p.READDIRPLUS3res_u.resok.reply.eof;
		for (entryplus3 *e = p.READDIRPLUS3res_u.resok.reply.entries;
		     e; e = e->nextentry, listed++) {
			ck_assert_uint_le(strlen(e->name), 3);
			cookie = e->cookie;
		}
	}
	ck_assert(eof);
	ck_assert_uint_eq(listed, 2 + 24);
	ck_assert_uint_ge(stats_sum_by_name("nfs3_long_names"), count + 16);
	/* The longest that there can be is listed. */
	fault_lengthen(255);
	r = list(odd, 0, NULL, 32768);
	fault_lengthen(0);
	ck_assert_int_eq(r.status, NFS3_OK);
	listed = 0;
	for (entry3 *e = r.READDIR3res_u.resok.reply.entries; e;
	     e = e->nextentry)
		listed += strlen(e->name) == 255;
	ck_assert_uint_eq(listed, 16);
}

TEST(a_directory_of_such_names_alone_has_an_end)
{
	nfs_fh3 odd = nfs_make_dir(top, "odd");
	READDIR3res r;

	nfs_make_file(odd, "long1", "");
	fault_lengthen(600);
	r = list(odd, 0, NULL, 4096);
	fault_lengthen(0);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert(r.READDIR3res_u.resok.reply.eof);
	ck_assert_ptr_null(r.READDIR3res_u.resok.reply.entries->nextentry
			   ->nextentry);
}

/* A text that is cut is another one. */
TEST(a_link_of_more_text_than_a_path_has_is_not_cut)
{
	READLINK3args a = { .symlink = nfs_make_link(top, "l", "there") };
	READLINK3res r;

	fault_lengthen(4096);
	nfs_call(&root, readlink, &a, &r);
	fault_lengthen(0);
	ck_assert_int_ne(r.status, NFS3_OK);
}

TEST(the_smallest_count_is_that_of_one_entry)
{
	uint32_t one = FRAME + entry_size(".");
	READDIR3res r = list(dir, 0, NULL, one);
	READDIRPLUS3res p;
	size_t plus;

	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_str_eq(r.READDIR3res_u.resok.reply.entries->name, ".");
	ck_assert_ptr_null(r.READDIR3res_u.resok.reply.entries->nextentry);
	ck_assert(!r.READDIR3res_u.resok.reply.eof);
	r = list(dir, 0, NULL, one - 1);
	ck_assert_int_eq(r.status, NFS3ERR_TOOSMALL);
	ck_assert(r.READDIR3res_u.resfail.dir_attributes.attributes_follow);
	for (uint32_t count = 0; count < FRAME; count += 13)
		ck_assert_int_eq(list(dir, 0, NULL, count).status,
				 NFS3ERR_TOOSMALL);

	/* dircount never makes it too small, maxcount does. */
	p = list_plus(dir, 0, NULL, 0, 4096);
	ck_assert_int_eq(p.status, NFS3_OK);
	ck_assert_ptr_null(p.READDIRPLUS3res_u.resok.reply.entries->nextentry);
	plus = FRAME + plus_size(p.READDIRPLUS3res_u.resok.reply.entries);
	p = list_plus(dir, 0, NULL, 4096, plus);
	ck_assert_int_eq(p.status, NFS3_OK);
	p = list_plus(dir, 0, NULL, 4096, plus - 1);
	ck_assert_int_eq(p.status, NFS3ERR_TOOSMALL);
}

TEST(dircount_is_used_to_the_last_byte)
{
	uint32_t dots = entry_size(".") + entry_size("..");
	READDIRPLUS3res r = list_plus(dir, 0, NULL, dots, 4096);
	entryplus3 *e = r.READDIRPLUS3res_u.resok.reply.entries;

	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_str_eq(e->nextentry->name, "..");
	ck_assert_ptr_null(e->nextentry->nextentry);
	r = list_plus(dir, 0, NULL, dots - 1, 4096);
	ck_assert_ptr_null(r.READDIRPLUS3res_u.resok.reply.entries->nextentry);
}

/* A shorter one behind it would be lost to the client, or it would. */
TEST(an_entry_that_does_not_fit_is_not_skipped)
{
	char name[201] = { 0 };
	uint32_t count = FRAME + 4 * entry_size(".");
	nfs_fh3 fh = nfs_make_dir(top, "mixed");
	READDIR3res r;
	entry3 *e;

	if (fault_on_posix() || module_vfs())
		return;		/* in an arbitrary order */
	memset(name, 'x', 200);
	nfs_make_file(fh, "a", "");
	nfs_make_file(fh, name, "");
	nfs_make_file(fh, "b", "");
	r = list(fh, 0, NULL, count);
	e = r.READDIR3res_u.resok.reply.entries->nextentry->nextentry;
	ck_assert_str_eq(e->name, "a");
	ck_assert_ptr_null(e->nextentry);
	ck_assert(!r.READDIR3res_u.resok.reply.eof);
	r = list(fh, e->cookie, r.READDIR3res_u.resok.cookieverf, 4096);
	e = r.READDIR3res_u.resok.reply.entries;
	ck_assert_str_eq(e->name, name);
	ck_assert_str_eq(e->nextentry->name, "b");
}

TEST(an_empty_directory_has_its_dots)
{
	nfs_fh3 empty = nfs_make_dir(top, "empty");
	READDIR3res r = list(empty, 0, NULL, 4096);
	entry3 *e = r.READDIR3res_u.resok.reply.entries;

	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert(r.READDIR3res_u.resok.reply.eof);
	ck_assert_str_eq(e->name, ".");
	ck_assert_uint_eq(e->fileid, nfs_attr(empty).fileid);
	e = e->nextentry;
	ck_assert_str_eq(e->name, "..");
	ck_assert_uint_eq(e->fileid, nfs_attr(top).fileid);
	ck_assert_ptr_null(e->nextentry);
	/* After the last: nothing, and the end again. */
	r = list(empty, e->cookie, r.READDIR3res_u.resok.cookieverf, FRAME);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_ptr_null(r.READDIR3res_u.resok.reply.entries);
	ck_assert(r.READDIR3res_u.resok.reply.eof);
}

TEST(cookies_survive_changes)
{
	READDIR3res r = list(dir, 0, NULL, 1000);
	uint64_t cookie = 0;

	for (entry3 *e = r.READDIR3res_u.resok.reply.entries; e;
	     e = e->nextentry) {
		REMOVE3args a = { .object = { dir, e->name } };
		REMOVE3res rr;

		see(e->name, e->fileid, e->cookie);
		cookie = e->cookie;
		if (*e->name != '.') {
			nfs_call(&root, remove, &a, &rr);
			ck_assert_int_eq(rr.status, NFS3_OK);
		}
	}
	r = list(dir, cookie, r.READDIR3res_u.resok.cookieverf, 1 << 20);
	ck_assert_int_eq(r.status, NFS3_OK);
	for (entry3 *e = r.READDIR3res_u.resok.reply.entries; e;
	     e = e->nextentry)
		see(e->name, e->fileid, e->cookie);
	ck_assert_uint_eq(seen_files, NFILES);
}

TEST(a_cookie_that_never_was_is_bad)
{
	ck_assert_int_eq(list(dir, 1ull << 63, NULL, 4096).status,
			 NFS3ERR_BAD_COOKIE);
	ck_assert_int_eq(list_plus(dir, UINT64_MAX, NULL, 4096, 4096).status,
			 NFS3ERR_BAD_COOKIE);
}

TEST(only_directories_are_listed)
{
	nfs_fh3 fh = nfs_make_file(top, "f", "");

	ck_assert_int_eq(list(fh, 0, NULL, 4096).status, NFS3ERR_NOTDIR);
	ck_assert_int_eq(list_plus(fh, 0, NULL, 4096, 4096).status,
			 NFS3ERR_NOTDIR);
}

TEST(readdirplus_is_refused_where_the_export_says_so)
{
	harness_publish(&srv, "/mem 127.0.0.1(rw,insecure,no_root_squash,"
			"nordirplus)\n");
	ck_assert_int_eq(list_plus(dir, 0, NULL, 4096, 4096).status,
			 NFS3ERR_NOTSUPP);
	ck_assert_int_eq(list(dir, 0, NULL, 4096).status, NFS3_OK);
}

TEST(listing_takes_permission)
{
	SETATTR3args sa = { .object = dir };
	READDIR3args a = { .dir = dir, .count = 4096 };
	SETATTR3res sr;
	READDIR3res r;

	sa.new_attributes.mode.set_it = 1;
	sa.new_attributes.mode.set_mode3_u.mode = 0711;
	nfs_call(&root, setattr, &sa, &sr);
	nfs_call(&user, readdir, &a, &r);
	ck_assert_int_eq(r.status, NFS3ERR_ACCES);
}
