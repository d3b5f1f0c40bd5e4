/* SPDX-License-Identifier: BSD-2-Clause */
/* Which calls are retransmissions: the rule, alone and in the cache. */
#include "tests/unit/drc_fixture.h"

/* ---- the rule */

#define R	.running = true
#define SAME	.same = true
#define ACKED	.acked = true
#define RECENT	.recent = true
#define HEARD	.heard = true
#define LEFT	.left_over = true
#define END(e)	.end = XPRT_##e
#define SINCE(t) .since = (t)

/* The cases of drc_rule.h, each with the facts that don't matter to it. */
static const struct {
	struct drc_facts f;
	enum drc_case	 is;
} rules[] = {
	{ { SAME, R }, DRC_AGAIN_SAME },
	{ { SAME, R, HEARD }, DRC_AGAIN_SAME },
	{ { SAME }, DRC_AGAIN_SAME },
	{ { SAME, HEARD }, DRC_AGAIN_SAME },
	{ { SAME, END(BROKEN) }, DRC_AGAIN_SAME },
	{ { SAME, ACKED }, DRC_NEW_TAKEN },
	{ { SAME, ACKED, HEARD }, DRC_NEW_TAKEN },
	{ { SAME, ACKED, RECENT }, DRC_NEW_TAKEN },
	{ { ACKED }, DRC_NEW_TAKEN },
	{ { ACKED, HEARD }, DRC_NEW_TAKEN },
	{ { R, HEARD }, DRC_NEW_SIBLING },
	{ { HEARD }, DRC_NEW_SIBLING },
	{ { R }, DRC_AGAIN_SILENT },
	{ { 0 }, DRC_AGAIN_SILENT },
	{ { RECENT }, DRC_AGAIN_SILENT },
	{ { END(ORDERLY), ACKED }, DRC_NEW_CLOSED },
	{ { END(ORDERLY), ACKED, RECENT }, DRC_NEW_CLOSED },
	{ { END(ORDERLY), R }, DRC_AGAIN_CLOSED },
	{ { END(ORDERLY), R, HEARD }, DRC_AGAIN_CLOSED },
	{ { END(ORDERLY) }, DRC_AGAIN_CLOSED },
	{ { END(ORDERLY), HEARD }, DRC_AGAIN_CLOSED },
	{ { END(BROKEN), R }, DRC_AGAIN_BROKEN },
	{ { END(BROKEN), R, HEARD }, DRC_AGAIN_BROKEN },
	{ { END(BROKEN) }, DRC_AGAIN_BROKEN },
	{ { END(BROKEN), RECENT }, DRC_AGAIN_BROKEN },
	{ { END(BROKEN), HEARD }, DRC_AGAIN_BROKEN },
	{ { END(BROKEN), ACKED, RECENT }, DRC_AGAIN_UNREAD },
	{ { END(BROKEN), ACKED, RECENT, HEARD }, DRC_AGAIN_UNREAD },
	{ { END(BROKEN), ACKED }, DRC_NEW_BROKEN },
	{ { END(BROKEN), ACKED, HEARD }, DRC_NEW_BROKEN },
	/* Until when. */
	{ { END(ORDERLY), SINCE(DRC_CLOSED_MS) }, DRC_AGAIN_CLOSED },
	{ { END(ORDERLY), SINCE(DRC_CLOSED_MS + 1) }, DRC_NEW_CLOSED },
	{ { END(BROKEN), SINCE(DRC_BROKEN_MS) }, DRC_AGAIN_BROKEN },
	{ { END(BROKEN), SINCE(DRC_BROKEN_MS + 1) }, DRC_NEW_BROKEN },
	{ { END(BROKEN), ACKED, RECENT, SINCE(DRC_UNREAD_MS) },
	  DRC_AGAIN_UNREAD },
	{ { END(BROKEN), ACKED, RECENT, SINCE(DRC_UNREAD_MS + 1) },
	  DRC_NEW_BROKEN },
	{ { END(ORDERLY), R, SINCE(UINT64_MAX) }, DRC_AGAIN_CLOSED },
	{ { END(BROKEN), R, SINCE(UINT64_MAX) }, DRC_AGAIN_BROKEN },
	/* A client's left-over call. */
	{ { LEFT, HEARD }, DRC_LEFT_OVER },
	{ { LEFT, ACKED }, DRC_LEFT_OVER },
	{ { LEFT, R }, DRC_LEFT_OVER },
	{ { LEFT, END(ORDERLY), ACKED }, DRC_LEFT_OVER },
	{ { LEFT, END(BROKEN) }, DRC_LEFT_OVER },
	{ { LEFT, SAME }, DRC_AGAIN_SAME },
	/* A call that runs has no reply to be acknowledged. */
	{ { R, ACKED, SAME }, DRC_AGAIN_SAME },
	{ { R, ACKED, END(ORDERLY) }, DRC_AGAIN_CLOSED },
	{ { R, ACKED, END(BROKEN) }, DRC_AGAIN_BROKEN },
};

TEST_CASE(.setup = start, .teardown = stop);

TEST_LOOP(the_rule_says_which_calls_are_sent_again, 0, ARRAY_SIZE(rules))
{
	ck_assert_int_eq(drc_rule(&rules[_i].f), rules[_i].is);
}

TEST(nothing_is_sent_again_that_its_client_surely_has)
{
	for (unsigned bits = 0; bits < 64; bits++)
		for (int end = XPRT_ALIVE; end <= XPRT_BROKEN; end++) {
			struct drc_facts f = {
				.running = bits & 1, .same = bits & 2,
				.acked = bits & 4, .recent = bits & 8,
				.heard = bits & 16, .end = end,
			};
			bool again = drc_is_again(drc_rule(&f));

			if (f.acked && !f.running && end != XPRT_BROKEN)
				ck_assert(!again);
			/* A call whose reply was not read is never run twice,
			 * unless it might be another client's. */
			if (!f.acked && (f.same || end != XPRT_ALIVE))
				ck_assert(again);
		}
}

/* ---- the same, through the cache */

/* Two calls; the second is the one that asks again. */
static void answer_two(void)
{
	answer("abcd", 4);
	call.key.xid++;
	answer("efgh", 4);
}

/* a's peer acknowledged so much when a ended; the next call comes on b. */
static void end_and_move(uint64_t acked, enum xprt_end end)
{
	a.view.acked = acked;
	xprt_fate_end(a.x.fate, end);
	come_on(&b);
}

TEST(a_reply_is_for_the_client_that_does_not_have_it)
{
	/* Sent, not acknowledged. */
	answer("abcd", 4);
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	ck_assert_ptr_nonnull(ask.sent);
	atomic_store(ask.sent, 20);
	a.view.acked = 19;
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 30);
	a.view.acked = 30;
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	ck_assert_uint_eq(entries(), 0);
	ck_assert_uint_eq(stats_sum_by_name("drc_again_same"), 2);
	ck_assert_uint_eq(stats_sum_by_name("drc_new_taken"), 1);
}

TEST(a_connection_that_never_repeats_has_its_replies)
{
	answer("abcd", 4);
	call.may_resend = false;
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	ck_assert_uint_eq(stats_sum_by_name("drc_new_taken"), 1);
}

TEST(after_a_reset_unacknowledged_replies_are_sent_again)
{
	answer("abcd", 4);
	a.view.acked = 9;
	xprt_fate_end(a.x.fate, XPRT_BROKEN);
	xprt_age(DRC_BROKEN_MS / 1000 - 10);
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	ck_assert_mem_eq(reply, "abcd", 4);
	/* The reply is b's now, and b has it. */
	atomic_store(ask.sent, 5);
	b.view.acked = 5;
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	ck_assert_uint_eq(stats_sum_by_name("drc_again_broken"), 1);
}

TEST(after_a_reset_calls_of_its_last_second_are_answered_again)
{
	atomic_store(&drc_recent_ms, 60000);
	answer_two();
	end_and_move(10, XPRT_BROKEN);
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 1);
	ck_assert_uint_eq(stats_sum_by_name("drc_again_unread"), 1);
}

TEST_LOOP(nothing_is_answered_again_long_after_the_end, 0, 3)
{
	atomic_store(&drc_recent_ms, 60000);
	answer_two();
	a.view.acked = _i == 2 ? 10 : 9;
	xprt_fate_end(a.x.fate, _i == 0 ? XPRT_ORDERLY : XPRT_BROKEN);
	xprt_age((int)(_i == 0 ? DRC_CLOSED_MS : _i == 1 ? DRC_BROKEN_MS :
		       DRC_UNREAD_MS) / 1000 - 5);
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	place(1);
	atomic_store(ask.sent, 1);
	xprt_age(10);
	call.key.xid--;
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
}

TEST(after_a_reset_earlier_calls_are_run)
{
	atomic_store(&drc_recent_ms, 1000);
	answer("abcd", 4);
	a.view.acked = 10;
	xprt_age(3);
	xprt_fate_end(a.x.fate, XPRT_BROKEN);
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	ck_assert_uint_eq(stats_sum_by_name("drc_new_broken"), 1);
}

TEST(after_an_orderly_end_acknowledged_calls_are_run)
{
	answer_two();
	place(10);
	end_and_move(10, XPRT_ORDERLY);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	ck_assert_uint_eq(stats_sum_by_name("drc_new_closed"), 1);
}

TEST(a_reply_that_was_lost_is_never_acknowledged)
{
	ck_assert_int_eq(lookup(), DRC_NEW);
	done(asked(), "abcd", 4);
	place(XPRT_LOST);
	a.view.acked = UINT64_MAX - 1;
	xprt_fate_end(a.x.fate, XPRT_ORDERLY);
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 1);
	ck_assert_uint_eq(stats_sum_by_name("drc_again_closed"), 1);
}

/* Its connection can note where the reply ended while b holds the reply. */
TEST(a_reply_still_on_its_way_is_copied_for_another_connection)
{
	_Atomic uint64_t *first;

	ck_assert_int_eq(lookup(), DRC_NEW);
	done(asked(), "abcd", 4);
	first = sent;
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	ck_assert_ptr_nonnull(ask.sent);
	ck_assert_ptr_ne(ask.sent, first);
	ck_assert_uint_eq(entries(), 2);
	atomic_store(ask.sent, 7);
	/* Nothing frees the first before it is noted. */
	xprt_age(10);
	call.key.sum++;
	for (unsigned i = 0; i < 300; i++, call.key.xid++)
		answer("abcd", 4);
	atomic_store(first, 3);
}

TEST(a_connection_heard_since_waits_for_its_reply_itself)
{
	answer("abcd", 4);
	call.key.proc++;
	ck_assert_int_eq(lookup(), DRC_NEW);
	a.view.heard = b.x.fate->born + DRC_SLACK_MS + 1;
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_NEW);
	call.key.proc--;
	ck_assert_int_eq(lookup(), DRC_NEW);
	ck_assert_uint_eq(stats_sum_by_name("drc_new_sibling"), 2);
	/* Each is still there for its own client. */
	ck_assert_uint_eq(entries(), 4);
	come_on(&a);
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 11);
	for (unsigned i = 1; i < 4; i++)
		drc_forget(drc, &calls[i]);
}

/* The client left a, and sent the call again on b, which was read first. */
TEST_LOOP(a_call_that_was_left_behind_is_dropped, 0, 2)
{
	come_on(&b);
	answer("abcd", 4);
	b.view.acked = 10;
	come_on(&a);
	a.view.heard = b.x.fate->born;
	call.key.xid++;
	ck_assert_int_eq(lookup(), DRC_NEW);	/* another */
	call.key.xid--;
	a.view.heard = 1;		/* but nothing since b was accepted */
	ck_assert_int_eq(lookup(), DRC_DROP);
	a.view.heard = b.x.fate->born + 1;
	xprt_fate_end(a.x.fate, _i ? XPRT_ORDERLY : XPRT_BROKEN);
	ck_assert_int_eq(lookup(), DRC_DROP);
	ck_assert_uint_eq(stats_sum_by_name("drc_left_over"), 2);
	/* A reply that went to b is no longer a's. */
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_NEW);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	come_on(&a);
	ck_assert_int_eq(lookup(), DRC_DROP);
	drc_forget(drc, &calls[1]);
	drc_forget(drc, &calls[4]);
	drc_forget(drc, &calls[5]);
}

/* The client left connection a, with an unread WRITE, and went on with b.  Its
 * second try ran there, and the cache keeps no WRITE. */
TEST_LOOP(nothing_runs_that_a_dead_connection_held_unread, 0, 4)
{
	call.keep = _i & 1;
	if (_i & 2)
		a.view.end = XPRT_BROKEN;
	else
		xprt_fate_end(a.x.fate, XPRT_ORDERLY);
	call.key.xid++;
	ck_assert_int_eq(lookup(), DRC_NEW);	/* no call came since */
	forget();
	call.key.xid++;
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	come_on(&a);
	ck_assert_int_eq(lookup(), DRC_DROP);
	ck_assert_uint_eq(stats_sum_by_name("drc_left_over"), 1);
	/* Another client of the same address, on a connection that lives. */
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
}

/* The same, and the client has closed b as well: nothing is left of b. */
TEST_LOOP(nothing_runs_that_was_left_for_a_connection_now_gone, 0, 2)
{
	call.keep = _i;
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	wire_fini(&b);
	a.view.end = XPRT_ORDERLY;
	come_on(&a);
	ck_assert_int_eq(lookup(), DRC_DROP);
	ck_assert_uint_eq(stats_sum_by_name("drc_left_over"), 1);
	wire_init(&b);
}

/* As before, but the connection was looked at a moment before its end. */
TEST_LOOP(an_end_is_known_whenever_it_matters, 0, 2)
{
	struct wire c;

	call.keep = false;
	for (unsigned i = 0; i < 50; i++) {
		wire_init(&c);
		come_on(&c);		/* newer than a and b */
		ck_assert_int_eq(lookup(), DRC_NEW);
		forget();
		come_on(_i ? &a : &b);
		ck_assert_int_eq(lookup(), DRC_NEW);
		forget();
		wire_fini(&c);
	}
	(_i ? &a : &b)->view.end = XPRT_ORDERLY;
	wire_init(&c);
	come_on(&c);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	come_on(_i ? &a : &b);
	ck_assert_int_eq(lookup(), DRC_DROP);
	ck_assert_int_eq(lookup(), DRC_DROP);
	wire_fini(&c);
}

/* Each look is a system call.  Two connections take turns. */
TEST(an_older_connection_is_looked_at_only_where_a_call_may_be_a_copy)
{
	call.keep = false;
	for (call.key.xid = 100; call.key.xid < 1100; call.key.xid++) {
		come_on(call.key.xid & 1 ? &a : &b);
		ck_assert_int_eq(lookup(), DRC_NEW);
		forget();
	}
	ck_assert_uint_lt(nlooks, 100);
	nlooks = 0;
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	come_on(&a);
	ck_assert_int_eq(lookup(), DRC_NEW);
	ck_assert_uint_eq(nlooks, 1);
	forget();
}

/* A client that closes its side waits for the answers, whichever client
 * comes. */
TEST(another_address_is_another_client)
{
	static struct wire half[100], other[3000];

	call.keep = false;
	for (unsigned i = 0; i < ARRAY_SIZE(half); i++) {
		wire_init_from(&half[i], 0x0a000000 + i);
		half[i].view.end = XPRT_ORDERLY;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(other); i++) {
		wire_init_from(&other[i], 0x0b000000 + i);
		set_addr(&call.key, "192.0.2.9", 801, false);
		call.key.addr[14] = i >> 8;
		call.key.addr[15] = i;
		come_on(&other[i]);
		ck_assert_int_eq(lookup(), DRC_NEW);
		forget();
	}
	for (unsigned i = 0; i < ARRAY_SIZE(half); i++) {
		set_addr(&call.key, "10.0.0.0", 801, false);
		call.key.addr[15] = i;
		come_on(&half[i]);
		ck_assert_int_eq(lookup(), DRC_NEW);
		forget();
		wire_fini(&half[i]);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(other); i++)
		wire_fini(&other[i]);
}

TEST(an_older_connection_that_lives_is_served)
{
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	come_on(&a);
	call.key.xid++;
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
}

/* Over RDMA nothing tells when a peer was last heard: a's end can be on its
 * way. */
TEST(without_a_time_heard_the_older_connection_counts_as_abandoned)
{
	come_on(&b);
	answer("abcd", 4);
	b.view.acked = 10;
	come_on(&a);
	a.view.heard = 0;
	ck_assert_int_eq(lookup(), DRC_DROP);
	ck_assert_uint_eq(stats_sum_by_name("drc_left_over"), 1);
}

TEST(a_silent_connection_may_be_lost)
{
	struct drc_call *first;

	answer("abcd", 4);
	call.key.proc++;
	ck_assert_int_eq(lookup(), DRC_NEW);
	first = asked();
	a.view.heard = b.x.fate->born;
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	call.key.proc--;
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 11);
	ck_assert_uint_eq(stats_sum_by_name("drc_again_silent"), 2);
	ck_assert_ptr_eq(done(first, "efgh", 4), &calls[2]);
	place(12);
}

TEST(the_reply_of_a_call_that_waited_is_its_connections)
{
	struct drc_call *first;

	ck_assert_int_eq(lookup(), DRC_NEW);
	first = asked();
	xprt_fate_end(a.x.fate, XPRT_BROKEN);
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	ck_assert_ptr_eq(done(first, "abcd", 4), asked());
	place(10);
	b.view.acked = 9;
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 20);
	b.view.acked = 20;
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
}

TEST(a_call_sent_again_on_its_connection_is_remembered_once)
{
	struct drc_call *first;

	ck_assert_int_eq(lookup(), DRC_NEW);
	first = asked();
	a.view.heard = a.x.fate->born + DRC_SLACK_MS + 1;
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	ck_assert_ptr_eq(done(first, "abcd", 4), asked());
	place(10);
	ck_assert_ptr_null(first->sent);
	ck_assert_uint_eq(entries(), 1);
}

/* Two programs of one host send the same call and get the same reply; each can
 * lose its connection before it has read that. */
TEST_LOOP(each_connection_that_waits_acknowledges_for_itself, 0, 2)
{
	struct wire late[2];
	struct drc_call *first, *second;
	bool itself = _i;

	ck_assert_int_eq(lookup(), DRC_NEW);
	first = asked();
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	second = asked();
	wire_init(&late[0]);
	wire_init(&late[1]);
	b.view.heard = late[0].x.fate->born + (itself ? DRC_SLACK_MS + 1 : 0);
	come_on(&late[0]);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	ck_assert_ptr_eq(done(first, "abcd", 4), asked());
	place(10);
	ck_assert_ptr_null(first->sent);
	ck_assert_int_eq(second->sent != NULL, itself);
	if (itself)
		atomic_store(second->sent, 10);
	ck_assert_uint_eq(entries(), itself ? 2 : 1);
	late[0].view.acked = 10;
	b.view.acked = 9;
	xprt_fate_end(b.x.fate, XPRT_BROKEN);
	/* The newest connection has the reply: a call there is new, whatever
	 * others wait for. */
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	come_on(&late[1]);
	ck_assert_int_eq(lookup(), itself ? DRC_REPLAY : DRC_NEW);
	if (itself)
		atomic_store(ask.sent, 1);
	else
		forget();
	wire_fini(&late[0]);
	wire_fini(&late[1]);
}
