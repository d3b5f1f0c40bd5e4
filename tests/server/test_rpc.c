/* SPDX-License-Identifier: BSD-2-Clause */
/* The RPC server: every form of reply, byte for byte (RFC 5531 section 9). */
#include "rpc/rpc.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/stats.h"
#include "tests/server/rpc_fixture.h"

TEST_CASE(.setup = start, .teardown = stop);

TEST(null_is_answered_on_the_poller)
{
	call_words(7, 0, 2, TEST_PROG, 4, TEST_NULL, NOAUTH);
	ck_assert(pthread_equal(c->thread, pthread_self()));
	expect(7, OK);
}

TEST(another_rpc_version_is_rpc_mismatch_2_2)
{
	call_words(8, 0, 3, TEST_PROG, 4, TEST_NULL, NOAUTH);
	expect(8, 1, 1, 0, 2, 2);
}

TEST(an_unknown_program_is_prog_unavail)
{
	call_words(9, 0, 2, TEST_PROG + 1, 4, TEST_NULL, NOAUTH);
	expect(9, 1, 0, 0, 0, 1);
}

TEST(an_unknown_version_is_prog_mismatch_with_the_range)
{
	call_words(10, 0, 2, TEST_PROG, 3, TEST_NULL, NOAUTH);
	expect(10, 1, 0, 0, 0, 2, 2, 4);
	call_words(11, 0, 2, TEST_PROG, 5, TEST_NULL, NOAUTH);
	expect(11, 1, 0, 0, 0, 2, 2, 4);
}

TEST(an_unknown_procedure_or_a_gap_is_proc_unavail)
{
	call_words(12, 0, 2, TEST_PROG, 4, TEST_NPROC, NOAUTH);
	expect(12, 1, 0, 0, 0, 3);
	call_words(13, 0, 2, TEST_PROG, 4, TEST_GAP, NOAUTH);
	expect(13, 1, 0, 0, 0, 3);
	call_words(14, 0, 2, TEST_PROG, 4, UINT32_MAX, NOAUTH);
	expect(14, 1, 0, 0, 0, 3);
}

TEST(undecodable_arguments_are_garbage_args)
{
	call_words(15, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 5, 0);
	expect(15, 1, 0, 0, 0, 4);
}

TEST(bytes_after_the_arguments_are_ignored)
{
	call_words(16, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 4, 77, 1, 2, 3);
	expect(16, OK, 4, 77);
}

TEST(a_failure_is_system_err)
{
	call_words(17, 0, 2, TEST_PROG, 4, TEST_ACT, NOAUTH, ACT_FAIL);
	expect(17, 1, 0, 0, 0, 5);
	ck_assert_uint_eq(stats_sum_by_name("rpc_system_err"), 1);
}

TEST(results_that_do_not_fit_are_system_err)
{
	call_words(18, 0, 2, TEST_PROG, 4, TEST_HUGE, NOAUTH);
	expect(18, 1, 0, 0, 0, 5);
	ck_assert_uint_eq(stats_sum_by_name("rpc_reply_overflow"), 1);
}

TEST(a_record_that_is_no_call_is_rejected)
{
	call_words(19, 1, 0, 0, 0, 0);
	ck_assert(c->rejected);
	expect_dropped("rpc_not_call");
	call_words(20, 0);
	ck_assert(c->rejected);
	expect_dropped("rpc_short");
	/* The header of a call, cut short. */
	call_words(21, 0, 2, TEST_PROG, 4);
	ck_assert(c->rejected);
	fake_free(c);
	ck_assert_uint_eq(stats_sum_by_name("rpc_short"), 2);
}

TEST(a_procedure_that_blocks_moves_to_a_worker)
{
	call_words(30, 0, 2, TEST_PROG, 4, TEST_BLOCKS, NOAUTH);
	ck_assert(!pthread_equal(c->thread, pthread_self()));
	ck_assert_uint_eq(stats_sum_by_name("rpc_would_block"), 1);
	expect(30, OK, 2);
}

TEST(a_program_that_is_not_for_udp_denies_datagrams)
{
	test_program.no_udp = true;
	call_words(39, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 0);
	expect(39, OK, 0);
	conn.x.datagram = true;
	call_words(40, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 0);
	expect(40, 1, 1, 1, 5);
	/* Procedure 0 needs none (RFC 5531 section 12.1). */
	call_words(41, 0, 2, TEST_PROG, 4, TEST_NULL, NOAUTH);
	expect(41, OK);
	conn.x.datagram = test_program.no_udp = false;
}

TEST(bad_credentials_are_auth_error)
{
	call_words(42, 0, 2, TEST_PROG, 4, TEST_NULL, 1, 4, 0, 0, 0);
	expect(42, 1, 1, 1, 1);
	call_words(43, 0, 2, TEST_PROG, 4, TEST_ECHO, 6, 0, 0, 0, 0);
	expect(43, 1, 1, 1, 2);
	call_words(44, 0, 2, TEST_PROG, 4, TEST_ECHO, 0, 0, 1, 0, 0);
	expect(44, 1, 1, 1, 3);
	ck_assert_uint_eq(stats_sum_by_name("rpc_denied"), 3);
}

/* AUTH_SYS: stamp, machine "host", uid 5, gid 6, gids 7 8. */
#define SYSAUTH	1, 32, 0, 4, 0x686f7374, 5, 6, 2, 7, 8, 0, 0

TEST(null_may_come_with_auth_sys)
{
	call_words(45, 0, 2, TEST_PROG, 4, TEST_NULL, SYSAUTH);
	expect(45, OK);
}

static void expect_body(uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		ck_assert_uint_eq(c->reply[c->head_len + i],
				  (uint8_t)(i * 7 + 1));
}

TEST(a_ddp_body_is_followed_by_its_pad_and_the_tail)
{
	for (uint32_t len = 1; len < 9; len++) {
		uint32_t pad = -len & 3, at = 32 + len + pad;

		call_words(50, 0, 2, TEST_PROG, 4, TEST_BODY, NOAUTH, len, 2);
		ck_assert(c->body_ddp);
		ck_assert_uint_eq(c->head_len, 32);
		ck_assert_uint_eq(c->body_len, len);
		ck_assert_uint_eq(c->tail_len, pad + 8);
		ck_assert_uint_eq(reply_word(c, 6), 0xbbbb);
		/* The length is the last word before the body. */
		ck_assert_uint_eq(reply_word(c, 7), len);
		expect_body(len);
		for (uint32_t i = 0; i < pad; i++)
			ck_assert_uint_eq(c->reply[32 + len + i], 0);
		ck_assert_uint_eq(reply_word(c, at / 4), 0xaaaa0001);
		ck_assert_uint_eq(reply_word(c, at / 4 + 1), 0xaaaa0002);
		fake_free(c);
	}
}

TEST(a_body_that_is_not_ddp_has_neither_length_nor_pad)
{
	call_words(51, 0, 2, TEST_PROG, 4, TEST_LIST, NOAUTH, 60000, 1);
	ck_assert(!c->body_ddp);
	ck_assert_uint_eq(c->head_len, 28);
	ck_assert_uint_eq(c->body_len, 60000);
	ck_assert_uint_eq(c->tail_len, 4);
	expect_body(60000);
	ck_assert_uint_eq(reply_word(c, (28 + 60000) / 4), 0xaaaa0001);
	fake_free(c);
	/* The next call has none of it. */
	call_words(51, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 0);
	expect(51, OK, 0);
}

TEST(an_empty_body_leaves_head_and_tail)
{
	call_words(52, 0, 2, TEST_PROG, 4, TEST_BODY, NOAUTH, 0, 1);
	ck_assert(!c->body_ddp);
	ck_assert_uint_eq(c->body_len, 0);
	expect(52, OK, 0xbbbb, 0, 0xaaaa0001);
}

/* The step that would block runs on the worker; the one before it does not run
 * again there. */
TEST(a_call_that_moves_takes_along_what_it_holds)
{
	call_words(70, 0, 2, TEST_PROG, 4, TEST_BLOCKS, NOAUTH);
	expect(70, OK, 2);
	call_words(71, 0, 2, TEST_PROG, 4, TEST_ACT, NOAUTH, ACT_FAIL);
	fake_free(c);
	ck_assert_uint_eq(test_held, 2);
	ck_assert_uint_eq(test_put, 2);
}

/* A WRITE as RDMA delivers it: the data comes from a chunk. */
TEST(arguments_in_segments_are_whole)
{
	static const uint32_t head[] = { 80, 0, 2, TEST_PROG, 4, TEST_WRITE,
					 NOAUTH, 9, 10 };
	static const uint8_t data[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0 };
	uint32_t wire[ARRAY_SIZE(head)];
	struct xdr_seg segs[] = {
		{ (uint8_t *)wire, sizeof(wire) }, { data, 8 }, { data + 8, 4 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(head); i++)
		wire[i] = htobe32(head[i]);
	c = fake_send_segs(&conn, segs, 3);
	fake_wait(c);
	expect(80, OK, 55);
}

/* The inline part of a call that ends with a word, a length, and more. */
static bool chunk_ok(uint32_t proc, uint32_t item, uint32_t len,
		     uint32_t position)
{
	uint32_t w[] = { 1, 0, 2, TEST_PROG, 4, proc, NOAUTH, 9, item, 1, 2 };
	struct xprt_sink *sink = rpc_server_sink(server);

	for (unsigned i = 0; i < ARRAY_SIZE(w); i++)
		w[i] = htobe32(w[i]);
	return sink->read_chunk_ok(sink, w, len, position);
}

/* RFC 8267 section 4.1: only arguments that the binding names can come in a
 * chunk. */
TEST(a_read_chunk_holds_only_the_last_argument)
{
	for (uint32_t item = 0; item < 70000; item = item * 3 + 1)
		ck_assert(chunk_ok(TEST_WRITE, item, 48, 48));
	ck_assert(chunk_ok(TEST_WRITE, POOL_PAYLOAD_MAX, 48, 48));
	ck_assert(chunk_ok(TEST_WRITE, 10, 50, 48));	/* its pad */
	ck_assert(!chunk_ok(TEST_WRITE, POOL_PAYLOAD_MAX + 1, 48, 48));
	ck_assert(!chunk_ok(TEST_WRITE, UINT32_MAX, 48, 48));
	ck_assert(!chunk_ok(TEST_WRITE, 10, 48, 52));	/* behind the end */
	ck_assert(!chunk_ok(TEST_WRITE, 10, 56, 52));	/* in the data */
	ck_assert(!chunk_ok(TEST_WRITE, 0, 52, 52));	/* behind the data */
	ck_assert(!chunk_ok(TEST_WRITE, 10, 48, 44));	/* at the length */
	ck_assert(!chunk_ok(TEST_WRITE, 10, 46, 46));
	for (uint32_t at = 0; at < 48; at++)		/* before that */
		ck_assert(!chunk_ok(TEST_WRITE, 10, 48, at));
	ck_assert(!chunk_ok(TEST_ECHO, 10, 48, 48));
	ck_assert(!chunk_ok(TEST_GAP, 10, 48, 48));
}

/* The duplicate request cache, through the server. */

#define ACT(xid, what) \
	(uint32_t[]){ xid, 0, 2, TEST_PROG, 4, TEST_ACT, NOAUTH, what }, 11

TEST(a_duplicate_gets_the_first_reply_on_any_connection)
{
	struct fake_call *first, *again;
	struct fake_xprt other;

	fake_xprt_init(&other, rpc_server_sink(server), pool, "192.0.2.7", 44);
	for (uint32_t what = 0; what <= ACT_LARGE; what += ACT_LARGE) {
		first = send_words(&conn, ACT(90 + what, what));
		fake_wait(first);
		again = send_words(&other, ACT(90 + what, what));
		ck_assert(fake_over(again));	/* no worker was needed */
		ck_assert(!again->dropped);
		ck_assert_uint_eq(first->len, again->len);
		ck_assert_mem_eq(first->reply, again->reply, first->len);
		fake_free(first);
		fake_free(again);
	}
	ck_assert_uint_eq(test_acts, 2);
	ck_assert_uint_eq(stats_sum_by_name("drc_hits"), 2);
}

TEST(a_duplicate_of_a_call_in_progress_is_answered_with_it)
{
	struct fake_call *first, *second, *third;
	struct fake_xprt other;

	fake_xprt_init(&other, rpc_server_sink(server), pool, "192.0.2.7", 44);
	test_gate_shut();
	first = send_words(&conn, ACT(91, ACT_WAIT));
	test_gate_wait(1);
	second = send_words(&other, ACT(91, ACT_WAIT));
	ck_assert(!fake_over(second));
	/* Only the newest of a connection waits. */
	third = send_words(&other, ACT(91, ACT_WAIT));
	fake_wait(second);
	ck_assert(second->dropped);
	fake_free(second);
	ck_assert_uint_eq(stats_sum_by_name("drc_in_progress"), 2);
	ck_assert(!fake_over(third));
	test_gate_open();
	fake_wait(first);
	fake_wait(third);
	ck_assert(!first->dropped);
	ck_assert(!third->dropped);
	ck_assert_uint_eq(first->len, third->len);
	ck_assert_mem_eq(first->reply, third->reply, first->len);
	fake_free(first);
	fake_free(third);
	ck_assert_uint_eq(test_acts, 1);
}

TEST(a_duplicate_takes_over_from_a_call_that_failed)
{
	struct fake_call *first, *again;

	test_gate_shut();
	first = send_words(&conn, ACT(91, ACT_WAIT_FAIL));
	test_gate_wait(1);
	again = send_words(&conn, ACT(91, ACT_WAIT_FAIL));
	ck_assert(!fake_over(again));
	test_gate_open();
	fake_free(first);
	fake_free(again);
	ck_assert_uint_eq(test_acts, 2);
	ck_assert_uint_eq(stats_sum_by_name("drc_taken_over"), 1);
}

/* Two users of one program can send the same words. */
TEST(another_users_call_is_another_call)
{
	for (uint32_t i = 0; i < 6; i++)
		fake_free(send_words(&conn, (uint32_t[]){ 91, 0, 2, TEST_PROG,
			4, TEST_ACT, 1, 20, 0, 0, i < 2 ? 500 : 501,
			i < 4 ? 100 : 101, 0, 0, 0, ACT_COUNT }, 16));
	ck_assert_uint_eq(test_acts, 3);
	/* User "nobody" and root; the pad makes both as long. */
	for (uint32_t i = 0; i < 2; i++) {
		fake_free(send_words(&conn, (uint32_t[]){ 92, 0, 2, TEST_PROG,
			4, TEST_ACT, 0, 0, 0, 0, ACT_COUNT, 0, 0, 0, 0, 0 },
			16));
		fake_free(send_words(&conn, (uint32_t[]){ 92, 0, 2, TEST_PROG,
			4, TEST_ACT, 1, 20, 0, 0, 0, 0, 0, 0, 0, ACT_COUNT },
			16));
	}
	ck_assert_uint_eq(test_acts, 5);
}

/* nconnect: connections of one client use the same xid for other calls. */
TEST(the_same_xid_with_other_arguments_is_another_call)
{
	struct fake_call *first = send_words(&conn, ACT(92, ACT_COUNT));
	struct fake_call *other = send_words(&conn, ACT(92, ACT_LARGE));

	fake_free(first);
	fake_free(other);
	ck_assert_uint_eq(test_acts, 2);
}

TEST(a_call_that_was_not_answered_with_results_runs_again)
{
	for (unsigned i = 1; i <= 2; i++) {
		fake_free(send_words(&conn, ACT(93, ACT_FAIL)));
		/* A reply with a body is not remembered either. */
		fake_free(send_words(&conn, ACT(95, ACT_BODY)));
		ck_assert_uint_eq(test_acts, 2 * i);
	}
}

TEST(an_uncached_procedure_runs_again)
{
	for (unsigned i = 0; i < 2; i++) {
		call_words(96, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 0);
		expect(96, OK, 0);
	}
	ck_assert_uint_eq(stats_sum_by_name("drc_hits"), 0);
}

TEST(a_class_bounds_the_workers_of_its_calls)
{
	uint32_t w[] = { 97, 0, 2, TEST_PROG, 4, TEST_SLOW, NOAUTH };
	struct fake_call *slow[5];
	struct work_class *class;

	test_class = work_class_create(server, "slow", 1);
	test_gate_shut();
	for (unsigned i = 0; i < 5; i++)
		slow[i] = send_words(&conn, w, ARRAY_SIZE(w));
	test_gate_wait(1);
	ck_assert_uint_eq(rpc_busy(), 5);
	/* The other workers are free for the rest. */
	class = test_class;
	test_class = NULL;
	call_words(98, 0, 2, TEST_PROG, 4, TEST_BLOCKS, NOAUTH);
	expect(98, OK, 2);
	test_gate_open();
	for (unsigned i = 0; i < 5; i++)
		fake_free(slow[i]);
	EVENTUALLY(rpc_busy() == 0);
	work_class_destroy(class);
}

static struct rpc_proc_counts *test_counts[TEST_NPROC];

static void take_counters(const struct rpc_program *prog,
			  const struct rpc_version *version, uint32_t proc,
			  struct rpc_proc_counts *n, void *arg)
{
	ck_assert_ptr_eq(prog, &test_program);
	if (version->vers == 4)
		test_counts[proc] = n;
}

static struct account_sum counted(unsigned proc)
{
	struct account_sum sum;

	rpc_server_walk_procs(server, take_counters, NULL);
	rpc_proc_sum(test_counts[proc], &sum);
	return sum;
}

static uint64_t counted_over(unsigned proc, enum rpc_way way)
{
	struct account_sum sum = { 0 };

	rpc_server_walk_procs(server, take_counters, NULL);
	account_sum(&test_counts[proc]->by[way], &sum);
	return sum.calls;
}

TEST(each_procedure_is_counted)
{
	for (unsigned i = 0; i < 3; i++) {
		call_words(99, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 0);
		fake_free(c);
	}
	call_words(99, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 500);
	fake_free(c);
	call_words(99, 0, 2, TEST_PROG, 4, TEST_SLOW, NOAUTH);
	fake_free(c);
	call_words(99, 0, 2, TEST_PROG, 2, TEST_NULL, NOAUTH);
	fake_free(c);
	ck_assert_uint_eq(counted(TEST_ECHO).calls, 4);
	ck_assert_uint_eq(counted(TEST_ECHO).failed, 1);
	ck_assert_uint_gt(counted(TEST_ECHO).ns, 0);
	ck_assert_uint_eq(counted(TEST_SLOW).calls, 1);
	ck_assert_uint_eq(counted(TEST_NULL).calls, 0);
}

TEST(calls_are_counted_by_their_transport)
{
	call_words(99, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 0);
	fake_free(c);
	conn.x.rdma = true;
	call_words(99, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 0);
	fake_free(c);
	conn.x.rdma = false;
	conn.x.datagram = true;
	for (unsigned i = 0; i < 2; i++) {
		call_words(99, 0, 2, TEST_PROG, 4, TEST_ECHO, NOAUTH, 0);
		fake_free(c);
	}
	conn.x.datagram = false;
	ck_assert_uint_eq(counted_over(TEST_ECHO, RPC_WAY_TCP), 1);
	ck_assert_uint_eq(counted_over(TEST_ECHO, RPC_WAY_RDMA), 1);
	ck_assert_uint_eq(counted_over(TEST_ECHO, RPC_WAY_UDP), 2);
}

TEST(invalid_programs_are_refused)
{
	static const struct rpc_proc wide = {
		.name = "wide", .args_size = RPC_ARGS_SIZE + 1,
	};
	/* Borrowed by the server until the fixture ends it. */
	static struct rpc_version v[2] = { { .vers = 2 }, { .vers = 1 } };
	static struct rpc_program p = { .prog = 5, .nversions = 2,
					.versions = v };

	ck_assert_int_eq(rpc_server_add(server, &p), -EINVAL);
	v[1] = (struct rpc_version){ 3, 1, &wide };
	ck_assert_int_eq(rpc_server_add(server, &p), -EINVAL);
	p.nversions = 1;
	ck_assert_int_eq(rpc_server_add(server, &p), 0);
	ck_assert_int_eq(rpc_server_add(server, &p), -EEXIST);
}
