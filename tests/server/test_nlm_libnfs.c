/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock manager as libnfs's encoders and decoders see it: NULL, TEST, LOCK,
 * CANCEL and UNLOCK of version 4.
 *
 * libnfs has no call for the others: GRANTED, the messages and their results
 * (6 to 15), SM_NOTIFY, SHARE, UNSHARE, NM_LOCK and FREE_ALL, and none for
 * versions 1 and 3.  test_nlm and test_nlm_wait make those by nlm_client.
 */
#include "tests/server/nfs_client.h"

#include <nfsc/libnfs-raw-nlm.h>

#include "tests/unit/runner.h"

static struct nfs_client c;
static nfs_fh3 file;

static void start_with(const struct harness_config *config)
{
	nfs_setup_with(config);
	file = nfs_make_file(top, "file", "");
	nfs_client_open(&c, srv.port, NLM_PROGRAM, NLM_V4, 0);
}

static void start(void)
{
	start_with(&(struct harness_config){ 0 });
}

static void stop(void)
{
	nfs_client_close(&c);
	nfs_teardown();
}

/* Bytes 10 to 12, of the process @svid. */
static nlm4_lock part(u_int svid)
{
	return (nlm4_lock){
		.caller_name = (char *)"libnfs",
		.fh = { { file.data.data_len, file.data.data_val } },
		.oh = (char *)"me", .svid = svid, .l_offset = 10, .l_len = 3,
	};
}

static nlmstat4 test(u_int svid, nlm4_holder *holder)
{
	struct NLM4_TESTargs args = { .exclusive = 1, .lock = part(svid) };
	NLM4_TESTres res;

	ck_assert_int_eq(nfs_try(&c, rpc_nlm4_test_async, &args, &res),
			 RPC_STATUS_SUCCESS);
	if (holder)
		*holder = res.reply.nlm4_testreply_u.lock.holder;
	return res.reply.status;
}

static nlmstat4 lock_as(struct NLM4_LOCKargs args)
{
	NLM4_LOCKres res;

	ck_assert_int_eq(nfs_try(&c, rpc_nlm4_lock_async, &args, &res),
			 RPC_STATUS_SUCCESS);
	return res.status;
}

static nlmstat4 lock(u_int svid, bool block)
{
	return lock_as((struct NLM4_LOCKargs){
		.block = block, .exclusive = 1, .lock = part(svid) });
}

static nlmstat4 reclaim(u_int svid)
{
	return lock_as((struct NLM4_LOCKargs){
		.exclusive = 1, .lock = part(svid), .reclaim = 1 });
}

static nlmstat4 cancel(u_int svid)
{
	struct NLM4_CANCargs args = { .block = 1, .exclusive = 1,
				      .lock = part(svid) };
	NLM4_CANCres res;

	ck_assert_int_eq(nfs_try(&c, rpc_nlm4_cancel_async, &args, &res),
			 RPC_STATUS_SUCCESS);
	return res.status;
}

static nlmstat4 unlock(u_int svid)
{
	struct NLM4_UNLOCKargs args = { .lock = part(svid) };
	NLM4_UNLOCKres res;

	ck_assert_int_eq(nfs_try(&c, rpc_nlm4_unlock_async, &args, &res),
			 RPC_STATUS_SUCCESS);
	return res.status;
}

TEST_CASE(.setup = start, .teardown = stop);

TEST(null_is_answered)
{
	struct nfs_wait w = { .c = &c, .keep = nfs_keep_none };

	ck_assert_int_eq(rpc_nlm4_null_async(c.rpc, nfs_done, &w), 0);
	ck_assert_int_eq(nfs_wait(&w), RPC_STATUS_SUCCESS);
}

TEST(a_lock_is_denied_to_others_until_it_is_unlocked)
{
	nlm4_holder holder;

	ck_assert_int_eq(lock(1, false), NLM4_GRANTED);
	ck_assert_int_eq(lock(2, false), NLM4_DENIED);
	ck_assert_int_eq(test(1, NULL), NLM4_GRANTED);
	ck_assert_int_eq(test(2, &holder), NLM4_DENIED);
	ck_assert_uint_eq(holder.exclusive, 1);
	ck_assert_uint_eq(holder.svid, 1);
	ck_assert_uint_eq(holder.l_offset, 10);
	ck_assert_uint_eq(holder.l_len, 3);
	ck_assert_int_eq(unlock(1), NLM4_GRANTED);
	ck_assert_int_eq(test(2, NULL), NLM4_GRANTED);
	ck_assert_int_eq(lock(2, false), NLM4_GRANTED);
}

TEST(an_unlock_of_nothing_is_granted)
{
	ck_assert_int_eq(unlock(1), NLM4_GRANTED);
	ck_assert_int_eq(lock(1, false), NLM4_GRANTED);
	ck_assert_int_eq(unlock(2), NLM4_GRANTED);
	ck_assert_int_eq(lock(2, false), NLM4_DENIED);
}

TEST(a_cancelled_waiter_does_not_get_the_lock)
{
	ck_assert_int_eq(lock(1, false), NLM4_GRANTED);
	ck_assert_int_eq(lock(2, true), NLM4_BLOCKED);
	ck_assert_int_eq(cancel(2), NLM4_GRANTED);
	ck_assert_int_eq(unlock(1), NLM4_GRANTED);
	ck_assert_int_eq(lock(3, false), NLM4_GRANTED);
}

/* XNFS has no other answer for it. */
TEST(a_cancel_of_nothing_is_granted)
{
	ck_assert_int_eq(cancel(2), NLM4_GRANTED);
	ck_assert_int_eq(lock(1, false), NLM4_GRANTED);
	ck_assert_int_eq(cancel(2), NLM4_GRANTED);
	ck_assert_int_eq(lock(2, false), NLM4_DENIED);
}

TEST(each_procedure_refuses_a_handle_that_is_none)
{
	file.data.data_len = 5;
	ck_assert_int_eq(test(1, NULL), NLM4_STALE_FH);
	ck_assert_int_eq(lock(1, false), NLM4_STALE_FH);
	ck_assert_int_eq(cancel(1), NLM4_STALE_FH);
	ck_assert_int_eq(unlock(1), NLM4_STALE_FH);
}

TEST(a_reclaim_without_a_grace_period_is_refused)
{
	ck_assert_int_eq(reclaim(1), NLM4_DENIED_GRACE_PERIOD);
}

static void start_grace(void)
{
	start_with(&(struct harness_config){ .nlm.grace_s = 600 });
}

TEST_CASE(.setup = start_grace, .teardown = stop);

TEST(only_reclaims_are_granted_in_the_grace_period)
{
	ck_assert_int_eq(test(1, NULL), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_int_eq(lock(1, false), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_int_eq(cancel(1), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_int_eq(unlock(1), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_int_eq(reclaim(1), NLM4_GRANTED);
	ck_assert_int_eq(reclaim(2), NLM4_DENIED);
}
