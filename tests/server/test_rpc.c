/* SPDX-License-Identifier: BSD-2-Clause */
/* The RPC server: every form of reply, byte for byte (RFC 5531 section 9). */
#include "rpc/rpc.h"

#include <stdlib.h>

#include "lib/stats.h"
#include "tests/server/fake_xprt.h"
#include "tests/server/fake_program.h"
#include "tests/unit/runner.h"

static struct pool *pool;
static struct rpc_server *server;
static struct fake_xprt conn;
static struct fake_call *c;

static void start(void)
{
	struct rpc_server_config config = {
		.nworkers = 3,
		.drc_bytes = 1 << 20,
	};

	ck_assert_int_eq(pool_create(64u << 20, &pool), 0);
	config.pool = pool;
	ck_assert_int_eq(rpc_server_create(&config, &server), 0);
	ck_assert_int_eq(rpc_server_add(server, &test_program), 0);
	fake_xprt_init(&conn, rpc_server_sink(server), pool, "192.0.2.7", 801);
}

static void stop(void)
{
	ck_assert_int_eq(rpc_server_drain(server, 5000), 0);
	rpc_server_destroy(server);
	pool_destroy(pool);
}

/* Sends a call of the words given, waits, and leaves it in c. */
#define call_words(...) do { \
		uint32_t w_[] = { __VA_ARGS__ }; \
		c = send_words(&conn, w_, ARRAY_SIZE(w_)); \
		fake_wait(c); \
	} while (0)

/* The reply is exactly these words. */
#define expect(...) do { \
		uint32_t e_[] = { __VA_ARGS__ }; \
		ck_assert(!c->dropped); \
		ck_assert_uint_eq(c->len, sizeof(e_)); \
		for (unsigned i_ = 0; i_ < ARRAY_SIZE(e_); i_++) \
			ck_assert_uint_eq(reply_word(c, i_), e_[i_]); \
		fake_free(c); \
	} while (0)

#define expect_dropped(stat) do { \
		ck_assert(c->dropped); \
		ck_assert_uint_eq(stats_sum_by_name(stat), 1); \
		fake_free(c); \
	} while (0)

#define NOAUTH	0, 0, 0, 0
#define OK	1, 0, 0, 0, 0

START_TEST(null_is_answered_on_the_poller)
{
	call_words(7, 0, 2, TEST_PROG, 4, TEST_NULL, NOAUTH);
	ck_assert(pthread_equal(c->thread, pthread_self()));
	expect(7, OK);
}
END_TEST

START_TEST(another_rpc_version_is_rpc_mismatch_2_2)
{
	call_words(8, 0, 3, TEST_PROG, 4, TEST_NULL, NOAUTH);
	expect(8, 1, 1, 0, 2, 2);
}
END_TEST

START_TEST(an_unknown_program_is_prog_unavail)
{
	call_words(9, 0, 2, TEST_PROG + 1, 4, TEST_NULL, NOAUTH);
	expect(9, 1, 0, 0, 0, 1);
}
END_TEST

START_TEST(an_unknown_version_is_prog_mismatch_with_the_range)
{
	call_words(10, 0, 2, TEST_PROG, 3, TEST_NULL, NOAUTH);
	expect(10, 1, 0, 0, 0, 2, 2, 4);
	call_words(11, 0, 2, TEST_PROG, 5, TEST_NULL, NOAUTH);
	expect(11, 1, 0, 0, 0, 2, 2, 4);
}
END_TEST

START_TEST(an_unknown_procedure_or_a_gap_is_proc_unavail)
{
	call_words(12, 0, 2, TEST_PROG, 4, TEST_NPROC, NOAUTH);
	expect(12, 1, 0, 0, 0, 3);
	call_words(13, 0, 2, TEST_PROG, 4, TEST_GAP, NOAUTH);
	expect(13, 1, 0, 0, 0, 3);
	call_words(14, 0, 2, TEST_PROG, 4, UINT32_MAX, NOAUTH);
	expect(14, 1, 0, 0, 0, 3);
}
END_TEST

START_TEST(undecodable_arguments_are_garbage_args)
{
	call_words(15, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 5, 0);
	expect(15, 1, 0, 0, 0, 4);
}
END_TEST

START_TEST(bytes_after_the_arguments_are_ignored)
{
	call_words(16, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 4, 77, 1, 2, 3);
	expect(16, OK, 4, 77);
}
END_TEST

START_TEST(a_failure_is_system_err)
{
	call_words(17, 0, 2, TEST_PROG, 4, TEST_ACT, NOAUTH, ACT_FAIL);
	expect(17, 1, 0, 0, 0, 5);
	ck_assert_uint_eq(stats_sum_by_name("rpc_system_err"), 1);
}
END_TEST

START_TEST(results_that_do_not_fit_are_system_err)
{
	call_words(18, 0, 2, TEST_PROG, 4, TEST_HUGE, NOAUTH);
	expect(18, 1, 0, 0, 0, 5);
	ck_assert_uint_eq(stats_sum_by_name("rpc_reply_overflow"), 1);
}
END_TEST

START_TEST(what_is_not_a_call_is_dropped)
{
	call_words(19, 1, 0, 0, 0, 0);
	expect_dropped("rpc_not_call");
	call_words(20, 0);
	expect_dropped("rpc_short");
}
END_TEST

START_TEST(a_procedure_that_blocks_moves_to_a_worker)
{
	call_words(30, 0, 2, TEST_PROG, 4, TEST_BLOCKS, NOAUTH);
	ck_assert(!pthread_equal(c->thread, pthread_self()));
	ck_assert_uint_eq(stats_sum_by_name("rpc_would_block"), 1);
	expect(30, OK, 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rpc");
	TCase *t = tcase_create("replies");

	tcase_add_checked_fixture(t, start, stop);
	tcase_add_test(t, null_is_answered_on_the_poller);
	tcase_add_test(t, another_rpc_version_is_rpc_mismatch_2_2);
	tcase_add_test(t, an_unknown_program_is_prog_unavail);
	tcase_add_test(t, an_unknown_version_is_prog_mismatch_with_the_range);
	tcase_add_test(t, an_unknown_procedure_or_a_gap_is_proc_unavail);
	tcase_add_test(t, undecodable_arguments_are_garbage_args);
	tcase_add_test(t, bytes_after_the_arguments_are_ignored);
	tcase_add_test(t, a_failure_is_system_err);
	tcase_add_test(t, results_that_do_not_fit_are_system_err);
	tcase_add_test(t, what_is_not_a_call_is_dropped);
	tcase_add_test(t, a_procedure_that_blocks_moves_to_a_worker);
	suite_add_tcase(s, t);
	return run_suite(s);
}
