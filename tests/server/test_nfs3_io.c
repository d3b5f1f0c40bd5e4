/* SPDX-License-Identifier: BSD-2-Clause */
/* READ, WRITE, COMMIT, READLINK. */
#include "tests/server/nfs_client.h"

#include <errno.h>
#include <poll.h>

#include "lib/stats.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/late_vfs.h"
#include "tests/server/module_vfs.h"
#include "tests/unit/runner.h"

#define MIB	(1u << 20)

static char data[4 * MIB];

static void setup(void)
{
	nfs_setup();
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i * 7 + (i >> 9));
}

static READ3res do_read(nfs_fh3 fh, uint64_t offset, uint32_t count)
{
	READ3args a = { .file = fh, .offset = offset, .count = count };
	READ3res r;

	root.used = 0;		/* keep only the last reply */
	nfs_call(&root, read, &a, &r);
	return r;
}

static WRITE3res do_write(nfs_fh3 fh, uint64_t offset, uint32_t count,
			  stable_how stable)
{
	WRITE3args a = { .file = fh, .offset = offset, .count = count,
			 .stable = stable, .data = { count, data } };
	WRITE3res r;

	nfs_call(&root, write, &a, &r);
	return r;
}

/* Reads @count at @offset: it is @len bytes of data at the same place. */
static void expect_data(nfs_fh3 fh, uint64_t offset, uint32_t count,
			uint32_t len, bool eof)
{
	READ3res r = do_read(fh, offset, count);
	READ3resok *ok = &r.READ3res_u.resok;

	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_uint_eq(ok->count, len);
	ck_assert_uint_eq(ok->data.data_len, len);
	ck_assert_int_eq(ok->eof, eof);
	ck_assert(ok->file_attributes.attributes_follow);
	if (len)
		ck_assert_mem_eq(ok->data.data_val, data + offset, len);
}

/* The handle lies in root's buffer; a copy does not. */
static nfs_fh3 own(nfs_fh3 fh)
{
	static char copies[4][NFS3_FHSIZE];
	static unsigned n;

	memcpy(copies[n], fh.data.data_val, fh.data.data_len);
	fh.data.data_val = copies[n++];
	return fh;
}

static nfs_fh3 a_file(void)
{
	return own(nfs_make_file(top, "f", ""));
}

TEST_CASE(.setup = setup, .teardown = nfs_teardown);

TEST_LOOP(data_of_any_size_is_read_as_written, 0, 10)
{
	static const uint32_t sizes[] = { 0, 1, 3, 4, 5, 4095, 4096, 65537,
					  MIB - 1, MIB };
	uint32_t size = sizes[_i];
	nfs_fh3 fh = a_file();
	WRITE3res w = do_write(fh, 0, size, FILE_SYNC);

	ck_assert_int_eq(w.status, NFS3_OK);
	ck_assert_uint_eq(w.WRITE3res_u.resok.count, size);
	ck_assert_int_eq(w.WRITE3res_u.resok.committed, FILE_SYNC);
	ck_assert(nfs_full_wcc(&w.WRITE3res_u.resok.file_wcc));
	ck_assert_uint_eq(nfs_attr(fh).size, size);
	expect_data(fh, 0, MIB, size, true);
	expect_data(fh, 0, size, size, true);
	if (size) {
		expect_data(fh, 0, size - 1, size - 1, false);
		expect_data(fh, size - 1, 2, 1, true);
	}
	expect_data(fh, size, 10, 0, true);
}

TEST(nothing_is_behind_the_end)
{
	nfs_fh3 fh = a_file();

	do_write(fh, 0, 10, FILE_SYNC);
	expect_data(fh, 10, 1, 0, true);
	expect_data(fh, 1000, MIB, 0, true);
	expect_data(fh, INT64_MAX, MIB, 0, true);
	expect_data(fh, 1ull << 63, MIB, 0, true);
	expect_data(fh, UINT64_MAX, UINT32_MAX, 0, true);
	/* count 0 is no end unless it is at one. */
	expect_data(fh, 5, 0, 0, false);
	expect_data(fh, 10, 0, 0, true);
}

TEST(a_read_is_cut_to_rtmax)
{
	nfs_fh3 fh = a_file();

	do_write(fh, 0, MIB, FILE_SYNC);
	do_write(fh, MIB, 8192, FILE_SYNC);
	ck_assert_uint_eq(nfs_attr(fh).size, MIB + 8192);
	expect_data(fh, 0, UINT32_MAX, MIB, false);
	expect_data(fh, 0, MIB + 1, MIB, false);
}

TEST(a_short_file_takes_no_large_buffer)
{
	nfs_fh3 fh = a_file();
	unsigned calls;

	do_write(fh, 0, 10, FILE_SYNC);
	calls = fault_calls(FAULT_GETATTR);
	expect_data(fh, 0, MIB, 10, true);
	/* Twice where a worker finishes a poller's work, for the time of last
	 * access is due after a write. */
	ck_assert_uint_gt(fault_calls(FAULT_GETATTR), calls);
	ck_assert_uint_le(fault_calls(FAULT_GETATTR), calls + 2);
	ck_assert_uint_eq(fault_read_room(), 10);
	calls = fault_calls(FAULT_GETATTR) - 1;
	/* Small ones don't ask. */
	expect_data(fh, 0, 4096, 10, true);
	ck_assert_uint_eq(fault_calls(FAULT_GETATTR), calls + 1);
	ck_assert_uint_eq(fault_read_room(), 4096);
	expect_data(fh, 3, MIB, 7, true);
	ck_assert_uint_eq(fault_read_room(), 7);
}

/* Clients take no data and no end for an error. */
TEST(a_read_of_a_file_that_grows_brings_data_or_the_end)
{
	READ3res r = { .status = NFS3ERR_IO };
	nfs_fh3 fh = a_file();
	READ3args a = { .file = fh, .offset = 5, .count = MIB };
	struct nfs_client reader;
	struct nfs_wait w = { .c = &reader, .res = &r, .size = sizeof(r),
			      .keep = nfs_keep_read };
	unsigned calls = fault_calls(FAULT_READ);

	nfs_client_open(&reader, srv.port, NFS_PROGRAM, NFS_V3, 0);
	do_write(fh, 0, 5, FILE_SYNC);
	fault_hold(FAULT_READ, true);
	ck_assert_int_eq(rpc_nfs3_read_async(reader.rpc, nfs_done, &a, &w), 0);
	ck_assert_int_eq(rpc_service(reader.rpc, POLLOUT), 0);
	/* Its size is known, and its data not read yet. */
	EVENTUALLY(fault_calls(FAULT_READ) == calls + 1);
	do_write(fh, 5, 5, FILE_SYNC);
	fault_hold(FAULT_READ, false);
	ck_assert_int_eq(nfs_wait(&w), RPC_STATUS_SUCCESS);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert(r.READ3res_u.resok.count > 0 || r.READ3res_u.resok.eof);
	nfs_client_close(&reader);
}

TEST(holes_read_as_zeros)
{
	nfs_fh3 fh = a_file();
	READ3res r;

	do_write(fh, 5ull << 30, 1, FILE_SYNC);
	ck_assert_uint_eq(nfs_attr(fh).size, (5ull << 30) + 1);
	r = do_read(fh, 4ull << 30, 8192);
	ck_assert_uint_eq(r.READ3res_u.resok.count, 8192);
	for (int i = 0; i < 8192; i++)
		ck_assert_int_eq(r.READ3res_u.resok.data.data_val[i], 0);
}

TEST(only_files_are_read_and_written)
{
	nfs_fh3 lnk = own(nfs_make_link(top, "l", "x"));

	ck_assert_int_eq(do_read(top, 0, 10).status, NFS3ERR_INVAL);
	ck_assert_int_eq(do_read(lnk, 0, 10).status, NFS3ERR_INVAL);
	ck_assert_int_eq(do_write(top, 0, 10, UNSTABLE).status, NFS3ERR_INVAL);
	ck_assert_int_eq(do_write(lnk, 0, 0, UNSTABLE).status, NFS3ERR_INVAL);
}

TEST(reading_takes_permission)
{
	READ3args a = { .count = 10 };
	SETATTR3args sa = { 0 };
	SETATTR3res sr;
	READ3res r;

	a.file = sa.object = a_file();
	sa.new_attributes.mode.set_it = 1;
	nfs_call(&root, setattr, &sa, &sr);
	ck_assert_int_eq(sr.status, NFS3_OK);
	nfs_call(&user, read, &a, &r);
	ck_assert_int_eq(r.status, NFS3ERR_ACCES);
	ck_assert(r.READ3res_u.resfail.file_attributes.attributes_follow);
}

TEST(a_write_past_all_files_is_too_big)
{
	nfs_fh3 fh = a_file();

	ck_assert_int_eq(do_write(fh, INT64_MAX, 1, UNSTABLE).status,
			 NFS3ERR_FBIG);
	ck_assert_int_eq(do_write(fh, UINT64_MAX, 10, UNSTABLE).status,
			 NFS3ERR_FBIG);
	ck_assert_uint_eq(nfs_attr(fh).size, 0);
}

TEST(a_count_that_is_not_the_length_is_refused)
{
	nfs_fh3 fh = a_file();
	WRITE3args a = { .file = fh, .count = 5, .data = { 4, data } };
	uint64_t seen = stats_sum_by_name("nfs3_write_mismatch");
	WRITE3res r;

	nfs_call(&root, write, &a, &r);
	ck_assert_int_eq(r.status, NFS3ERR_INVAL);
	a.count = 3;
	nfs_call(&root, write, &a, &r);
	ck_assert_int_eq(r.status, NFS3ERR_INVAL);
	ck_assert_uint_eq(stats_sum_by_name("nfs3_write_mismatch"), seen + 2);
	ck_assert_uint_eq(nfs_attr(fh).size, 0);
}

/* RFC 1813 section 3.3.19, also when it is longer than the part of a call that
 * is kept (transport/xprt.h).  Only a record of TCP can be longer than any
 * message. */
TEST_LOOP(a_write_is_cut_to_wtmax, 0, getenv("HARNESS_FABRIC") ? 1 : 4)
{
	static const uint32_t lens[] = { MIB + 8192, MIB + MIB / 5,
					 2 * MIB + 1, 4 * MIB };
	nfs_fh3 fh = a_file();
	WRITE3res r = do_write(fh, 0, lens[_i], FILE_SYNC);

	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_uint_eq(r.WRITE3res_u.resok.count, MIB);
	ck_assert_uint_eq(nfs_attr(fh).size, MIB);
	expect_data(fh, 0, MIB, MIB, true);
	/* The connection is fine. */
	r = do_write(fh, MIB, 10, FILE_SYNC);
	ck_assert_int_eq(r.status, NFS3_OK);
}

TEST(writing_nothing_changes_nothing)
{
	nfs_fh3 fh = a_file();
	fattr3 before = nfs_attr(fh);
	WRITE3res r = do_write(fh, 100, 0, FILE_SYNC);
	fattr3 after = nfs_attr(fh);

	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_uint_eq(r.WRITE3res_u.resok.count, 0);
	ck_assert_mem_eq(&before.mtime, &after.mtime, sizeof(after.mtime));
	ck_assert_uint_eq(after.size, 0);
}

TEST(a_write_is_at_least_as_stable_as_asked)
{
	nfs_fh3 fh = a_file();

	for (stable_how how = UNSTABLE; how <= FILE_SYNC; how++) {
		WRITE3res r = do_write(fh, 0, 10, how);

		ck_assert_int_eq(r.status, NFS3_OK);
		ck_assert_int_ge(r.WRITE3res_u.resok.committed, how);
	}
}

TEST(partial_writes_go_on_until_all_is_written)
{
	nfs_fh3 fh = a_file();
	WRITE3res r;

	do_write(fh, 0, 5, FILE_SYNC);
	fault_write(1000, 0, 0);
	r = do_write(fh, 0, 10001, FILE_SYNC);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_uint_eq(r.WRITE3res_u.resok.count, 10001);
	/* Another client might have changed the file between two parts. */
	ck_assert(!r.WRITE3res_u.resok.file_wcc.before.attributes_follow);
	ck_assert(r.WRITE3res_u.resok.file_wcc.after.attributes_follow);
	ck_assert_uint_eq(r.WRITE3res_u.resok.file_wcc.after.post_op_attr_u
			  .attributes.size, 10001);
	expect_data(fh, 0, MIB, 10001, true);
}

/* A poller writes the part that it can without waiting, and a worker the rest:
 * nothing is written twice. */
TEST(a_write_that_would_wait_halfway_goes_on_from_there)
{
	uint64_t moved = stats_sum_by_name("rpc_would_block");
	nfs_fh3 fh = a_file();
	unsigned calls;
	WRITE3res r;

	if (late_is() || module_vfs())	/* a poller writes no part */
		return;
	do_write(fh, 0, 5, FILE_SYNC);
	calls = fault_calls(FAULT_WRITE);
	fault_write(1000, fault_on_posix() ? 0 : 4, EAGAIN);
	r = do_write(fh, 0, 8001, UNSTABLE);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_uint_eq(r.WRITE3res_u.resok.count, 8001);
	ck_assert_uint_gt(stats_sum_by_name("rpc_would_block"), moved);
	ck_assert_uint_eq(fault_calls(FAULT_WRITE),
			  calls + 9 + !fault_on_posix());
	ck_assert(!r.WRITE3res_u.resok.file_wcc.before.attributes_follow);
	ck_assert(r.WRITE3res_u.resok.file_wcc.after.attributes_follow);
	expect_data(fh, 0, MIB, 8001, true);
}

TEST(a_write_is_as_stable_as_the_least_of_its_parts)
{
	static const stable_how said[3][2] = {
		{ FILE_SYNC, UNSTABLE }, { UNSTABLE, FILE_SYNC },
		{ DATA_SYNC, DATA_SYNC },
	};
	nfs_fh3 fh = a_file();
	WRITE3res r;

	if (module_vfs())		/* a poller's try takes the first */
		return;
	fault_write(1000, 0, 0);
	for (int i = 0; i < 3; i++) {
		fault_committed((enum vfs_stable)said[i][0],
				(enum vfs_stable)said[i][1]);
		r = do_write(fh, 0, 2000, UNSTABLE);
		ck_assert_int_eq(r.WRITE3res_u.resok.committed,
				 MIN(said[i][0], said[i][1]));
	}
}

TEST(an_error_after_some_data_is_a_short_write)
{
	nfs_fh3 fh = a_file();
	WRITE3res r;

	if (module_vfs())		/* a poller's try counts */
		return;
	fault_write(1000, 4, ENOSPC);
	r = do_write(fh, 0, 10000, FILE_SYNC);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_uint_eq(r.WRITE3res_u.resok.count, 3000);
	fault_write(1000, 1, ENOSPC);
	r = do_write(fh, 3000, 10000, FILE_SYNC);
	ck_assert_int_eq(r.status, NFS3ERR_NOSPC);
}

static COMMIT3res commit_as(struct nfs_client *who, nfs_fh3 fh,
			    uint64_t offset, uint32_t count)
{
	COMMIT3args a = { .file = fh, .offset = offset, .count = count };
	COMMIT3res r;

	nfs_call(who, commit, &a, &r);
	return r;
}

static COMMIT3res do_commit(nfs_fh3 fh, uint64_t offset, uint32_t count)
{
	return commit_as(&root, fh, offset, count);
}

TEST(commit_and_write_have_one_verifier)
{
	nfs_fh3 fh = a_file();
	WRITE3res w = do_write(fh, 0, 10, UNSTABLE);
	COMMIT3res c = do_commit(fh, 0, 0);

	ck_assert_int_eq(c.status, NFS3_OK);
	ck_assert(nfs_full_wcc(&c.COMMIT3res_u.resok.file_wcc));
	ck_assert_mem_eq(w.WRITE3res_u.resok.verf, c.COMMIT3res_u.resok.verf,
			 NFS3_WRITEVERFSIZE);
}

/* The client must find out that its data might be lost. */
TEST(an_error_while_it_is_written_changes_the_verifier)
{
	nfs_fh3 fh = a_file();
	WRITE3res w;
	COMMIT3res c;

	fault_bump_verf();
	w = do_write(fh, 0, 10, UNSTABLE);
	c = do_commit(fh, 0, 0);
	ck_assert_mem_ne(w.WRITE3res_u.resok.verf, c.COMMIT3res_u.resok.verf,
			 NFS3_WRITEVERFSIZE);
	w = do_write(fh, 0, 10, UNSTABLE);
	fault_bump_verf();
	c = do_commit(fh, 0, 0);
	ck_assert_mem_ne(w.WRITE3res_u.resok.verf, c.COMMIT3res_u.resok.verf,
			 NFS3_WRITEVERFSIZE);
}

/* It has no NFS3ERR_ACCES, RFC 1813 section 3.3.21: an allowed WRITE put the
 * data there. */
TEST(commit_needs_no_permission)
{
	nfs_fh3 fh = a_file();

	do_write(fh, 0, 10, UNSTABLE);
	ck_assert_int_eq(commit_as(&user, fh, 0, 0).status, NFS3_OK);
}

TEST(commit_takes_any_range)
{
	nfs_fh3 fh = a_file();

	do_write(fh, 0, 10, UNSTABLE);
	ck_assert_int_eq(do_commit(fh, 5, 100).status, NFS3_OK);
	ck_assert_int_eq(do_commit(fh, 1000, 0).status, NFS3_OK);
	ck_assert_int_eq(do_commit(fh, UINT64_MAX, UINT32_MAX).status,
			 NFS3_OK);
}

TEST(commit_reports_a_full_disk)
{
	nfs_fh3 fh = a_file();

	fault_set(FAULT_COMMIT, ENOSPC);
	ck_assert_int_eq(do_commit(fh, 0, 0).status, NFS3ERR_NOSPC);
	fault_set(FAULT_COMMIT, EDQUOT);
	ck_assert_int_eq(do_commit(fh, 0, 0).status, NFS3ERR_DQUOT);
}

TEST(a_read_only_export_commits_but_does_not_write)
{
	nfs_fh3 fh = a_file();
	WRITE3res w;

	do_write(fh, 0, 10, UNSTABLE);
	harness_publish(&srv, "/mem 127.0.0.1(ro,insecure,no_root_squash)\n");
	w = do_write(fh, 0, 10, UNSTABLE);
	ck_assert_int_eq(w.status, NFS3ERR_ROFS);
	/* A poller refuses it, and must not wait for attributes. */
	ck_assert(w.WRITE3res_u.resfail.file_wcc.after.attributes_follow ||
		  module_vfs());
	ck_assert_int_eq(do_commit(fh, 0, 0).status, NFS3_OK);
	expect_data(fh, 0, 10, 10, true);
}

TEST_LOOP(readlink_gives_back_what_symlink_was_given, 0, 6)
{
	static const uint32_t sizes[] = { 1, 2, 3, 4, 1023, 3800 };
	char target[4096] = { 0 };
	READLINK3args a;
	READLINK3res r;

	memset(target, 'x', sizes[_i]);
	a.symlink = nfs_make_link(top, "l", target);
	nfs_call(&root, readlink, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_str_eq(r.READLINK3res_u.resok.data, target);
	ck_assert(r.READLINK3res_u.resok.symlink_attributes
		  .attributes_follow);
}

TEST(only_links_are_read_as_such)
{
	READLINK3args a = { .symlink = top };
	READLINK3res r;

	nfs_call(&root, readlink, &a, &r);
	ck_assert_int_eq(r.status, NFS3ERR_INVAL);
	ck_assert(r.READLINK3res_u.resfail.symlink_attributes
		  .attributes_follow);
	a.symlink = a_file();
	nfs_call(&root, readlink, &a, &r);
	ck_assert_int_eq(r.status, NFS3ERR_INVAL);
}
