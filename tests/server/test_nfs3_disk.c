/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Disks that do less than they were asked, as clients see them: short reads,
 * torn writes, data that is lost after it was written.
 */
#include "tests/server/nfs_client.h"

#include <errno.h>

#include "tests/server/fault_vfs.h"
#include "tests/unit/runner.h"

#define LEN	(1u << 20)

static char old[LEN], new[LEN];
static nfs_fh3 file;

static WRITE3res write_as(struct nfs_client *who, const char *data,
			  uint32_t count, stable_how how)
{
	WRITE3args a = { .file = file, .count = count, .stable = how,
		.data = { count, (char *)(uintptr_t)data } };
	WRITE3res r;

	nfs_call(who, write, &a, &r);
	return r;
}

static COMMIT3res commit_as(struct nfs_client *who)
{
	COMMIT3args a = { .file = file };
	COMMIT3res r;

	nfs_call(who, commit, &a, &r);
	return r;
}

static READ3res read_at(uint64_t offset, uint32_t count)
{
	READ3args a = { .file = file, .offset = offset, .count = count };
	READ3res r;

	nfs_call(&root, read, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	ck_assert_uint_eq(r.READ3res_u.resok.count,
			  r.READ3res_u.resok.data.data_len);
	return r;
}

static void setup(void)
{
	static char copy[NFS3_FHSIZE];

	nfs_setup();
	for (size_t i = 0; i < LEN; i++) {
		old[i] = (char)(i * 7 + (i >> 9));
		new[i] = (char)~old[i];
	}
	file = nfs_make_file(top, "f", "");
	memcpy(copy, file.data.data_val, file.data.data_len);
	file.data.data_val = copy;
	ck_assert_int_eq(write_as(&root, old, LEN, FILE_SYNC).status, NFS3_OK);
}

static const uint32_t limits[] = { 1, 1000, 4096, 65536 };

TEST_CASE(.setup = setup, .teardown = nfs_teardown);

TEST_LOOP(a_short_read_brings_what_there_is_and_no_end, 0, ARRAY_SIZE(limits))
{
	READ3res r;

	fault_read(limits[_i]);
	for (uint32_t at = 0; at < 8 * limits[_i];
	     at += r.READ3res_u.resok.count) {
		root.used = 0;
		r = read_at(at, LEN - at);
		ck_assert_uint_gt(r.READ3res_u.resok.count, 0);
		ck_assert_uint_le(r.READ3res_u.resok.count, limits[_i]);
		ck_assert(!r.READ3res_u.resok.eof);
		ck_assert_mem_eq(r.READ3res_u.resok.data.data_val, old + at,
				 r.READ3res_u.resok.count);
	}
	r = read_at(LEN - 1, 10);
	ck_assert_uint_eq(r.READ3res_u.resok.count, 1);
	ck_assert(r.READ3res_u.resok.eof);
}

/* The file has @n bytes of the new data, then the old. */
static void expect_new(uint32_t n)
{
	READ3res r;

	root.used = 0;
	r = read_at(0, LEN);
	ck_assert_uint_eq(r.READ3res_u.resok.count, LEN);
	ck_assert_mem_eq(r.READ3res_u.resok.data.data_val, new, n);
	ck_assert_mem_eq(r.READ3res_u.resok.data.data_val + n, old + n,
			 LEN - n);
}

TEST_LOOP(a_torn_write_is_an_error_and_can_be_done_again, 0, ARRAY_SIZE(limits))
{
	fault_tear(limits[_i]);
	ck_assert_int_eq(write_as(&root, new, 100000, FILE_SYNC).status,
			 NFS3ERR_IO);
	expect_new(limits[_i]);
	ck_assert_int_eq(write_as(&root, new, 100000, FILE_SYNC).status,
			 NFS3_OK);
	expect_new(100000);
}

/* Two clients wrote; the first that asks hears of the loss, and the other
 * sees another verifier. */
TEST_LOOP(an_error_reported_once_is_seen_by_all, 0, 2)
{
	struct nfs_client second;
	WRITE3res w[2], third;
	COMMIT3res c;

	nfs_client_open(&second, srv.port, NFS_PROGRAM, NFS_V3, 0);
	w[0] = write_as(&root, new, 1000, UNSTABLE);
	w[1] = write_as(&second, new, 1000, UNSTABLE);
	ck_assert_mem_eq(w[0].WRITE3res_u.resok.verf,
			 w[1].WRITE3res_u.resok.verf, NFS3_WRITEVERFSIZE);
	fault_write_back();
	/* By a COMMIT, and by a stable WRITE. */
	if (_i == 0)
		ck_assert_int_eq(commit_as(&second).status, NFS3ERR_IO);
	else
		ck_assert_int_eq(write_as(&second, new, 10,
					  DATA_SYNC).status, NFS3ERR_IO);
	c = commit_as(&root);
	ck_assert_int_eq(c.status, NFS3_OK);
	ck_assert_mem_ne(c.COMMIT3res_u.resok.verf, w[0].WRITE3res_u.resok.verf,
			 NFS3_WRITEVERFSIZE);
	/* It is over. */
	third = write_as(&second, new, 1000, UNSTABLE);
	ck_assert_mem_eq(third.WRITE3res_u.resok.verf,
			 commit_as(&second).COMMIT3res_u.resok.verf,
			 NFS3_WRITEVERFSIZE);
	nfs_client_close(&second);
}
