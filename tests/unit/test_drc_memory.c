/* SPDX-License-Identifier: BSD-2-Clause */
/* The duplicate request cache: how long replies stay, in how much memory. */
#include "tests/unit/drc_fixture.h"

#include <stdio.h>

TEST_CASE(.setup = start, .teardown = stop);

TEST(a_datagrams_reply_lives_120_seconds_after_its_last_use)
{
	bool believed = false;

	come_on(NULL);
	/* The machine can stand still for two seconds, but not each time. */
	for (int i = 0; i < 5 && !believed; i++, call.key.xid++) {
		answer("abcd", 4);
		believed = true;
		for (int k = 0; k < 2 && believed; k++) {
			xprt_age(DRC_AGE_MS / 1000 - 2);
			believed = lookup() == DRC_REPLAY;
			if (!believed)
				forget();
		}
	}
	ck_assert(believed);
	call.key.xid--;
	xprt_age(DRC_AGE_MS / 1000 + 2);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
}

/* Another thread's clock can be a tick ahead.  A thread that read its clock
 * first and came second must not run the call again. */
TEST(an_entry_of_a_moment_ahead_is_believed)
{
	for (uint32_t ahead = 1; ahead < 10; ahead++) {
		call.key.xid = ahead;
		xprt_age((int)ahead);
		answer("abcd", 4);
		xprt_age(-(int)ahead);
		ck_assert_int_eq(lookup(), DRC_REPLAY);
		atomic_store(ask.sent, 10);
	}
	/* Nor does a new call make room by them. */
	xprt_age(30);
	for (call.key.xid = 100; call.key.xid < 600; call.key.xid++)
		answer("abcd", 4);
	xprt_age(-30);
	for (call.key.xid = 1000; call.key.xid < 1500; call.key.xid++)
		answer("abcd", 4);
	ck_assert_uint_eq(entries(), 9 + 500 + 500);
}

/* A live connection holds the replies of its last seconds; a broken one leaves
 * its unacknowledged replies for an hour. */
TEST(replies_that_arrived_are_given_up_as_new_ones_come)
{
	for (call.key.xid = 0; call.key.xid < 1000; call.key.xid++)
		answer("abcd", 4);
	ck_assert_uint_eq(entries(), 1000);
	xprt_age(10);
	for (; call.key.xid < 2000; call.key.xid++)
		answer("abcd", 4);
	ck_assert_uint_eq(entries(), 2000);	/* not acknowledged */
	a.view.acked = 10;
	xprt_age(10);
	come_on(&b);
	for (; call.key.xid < 4000; call.key.xid++)
		answer("abcd", 4);
	/* Two go for each that comes, in the shard of that one. */
	ck_assert_uint_lt(entries(), 2200);
	xprt_fate_end(b.x.fate, XPRT_BROKEN);
	xprt_age(DRC_BROKEN_MS / 1000 - 20);
	come_on(&a);
	for (; call.key.xid < 6000; call.key.xid++)
		answer("abcd", 4);
	call.key.xid = 2000;
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 10);
	xprt_age(30);
	call.key.xid = 2001;
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	ck_assert_uint_eq(stats_sum_by_name("drc_evicted"), 0);
}

TEST(a_full_cache_gives_up_what_arrived_first)
{
	static const uint8_t large[900];
	size_t n, bytes;

	a.view.acked = 10;
	for (call.key.xid = 0; call.key.xid < 20000; call.key.xid++) {
		answer(large, call.key.xid % 3 ? 100 : sizeof(large));
		lookup();		/* its fate becomes known */
		forget();
		drc_usage(drc, &n, &bytes);
		ck_assert_uint_le(bytes, BYTES);
	}
	ck_assert_uint_eq(stats_sum_by_name("drc_lost"), 0);
	ck_assert_uint_eq(stats_sum_by_name("drc_no_room"), 0);
}

TEST(memory_is_bounded_and_what_is_lost_is_counted)
{
	static const uint8_t large[900];
	size_t n, bytes;

	for (call.key.xid = 0; call.key.xid < 20000; call.key.xid++) {
		answer(large, call.key.xid % 3 ? 100 : sizeof(large));
		drc_usage(drc, &n, &bytes);
		ck_assert_uint_le(bytes, BYTES);
	}
	ck_assert_uint_gt(stats_sum_by_name("drc_evicted"), 10000);
	ck_assert_uint_eq(stats_sum_by_name("drc_lost"),
			  stats_sum_by_name("drc_evicted"));
	call.key.xid = 0;
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	call.key.xid = 19999;
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 10);
	/* Two minutes later nothing was promised. */
	n = stats_sum_by_name("drc_lost");
	xprt_fate_end(a.x.fate, XPRT_BROKEN);
	xprt_age(DRC_AGE_MS / 1000 + 2);
	come_on(&b);
	for (call.key.xid = 30000; call.key.xid < 30100; call.key.xid++)
		answer(large, 100);
	ck_assert_uint_eq(stats_sum_by_name("drc_lost"), n);
}

/* As many replies that were lost with their connection, of one address. */
TEST(one_address_takes_nothing_from_another)
{
	for (call.key.xid = 0; call.key.xid < 100; call.key.xid++)
		answer("abcd", 4);
	xprt_fate_end(a.x.fate, XPRT_BROKEN);
	come_on(&b);
	set_addr(&call.key, "192.0.2.99", 1, false);
	for (; call.key.xid < 20000; call.key.xid++)
		answer("abcd", 4);
	ck_assert_uint_gt(stats_sum_by_name("drc_evicted"), 10000);
	set_addr(&call.key, "192.0.2.7", 1, false);
	for (call.key.xid = 0; call.key.xid < 100; call.key.xid++) {
		ck_assert_int_eq(lookup(), DRC_REPLAY);
		atomic_store(ask.sent, 1);
	}
}

static void expect_replays(const char *addr)
{
	set_addr(&call.key, addr, 1, false);
	for (call.key.xid = 0; call.key.xid < 100; call.key.xid++) {
		ck_assert_int_eq(lookup(), DRC_REPLAY);
		atomic_store(ask.sent, 1);
	}
}

/* So does no host with any number of addresses in its /64; but neither does a
 * host of a LAN take from all others there. */
TEST(no_number_of_addresses_takes_from_another)
{
	char text[64];

	set_addr(&call.key, "2001:db8::7", 801, false);
	for (call.key.xid = 0; call.key.xid < 100; call.key.xid++)
		answer("abcd", 4);
	set_addr(&call.key, "192.0.2.7", 801, false);
	for (call.key.xid = 0; call.key.xid < 100; call.key.xid++)
		answer("abcd", 4);
	xprt_fate_end(a.x.fate, XPRT_BROKEN);
	come_on(&b);
	for (; call.key.xid < 20000; call.key.xid++) {
		snprintf(text, sizeof(text), "2001:db8:1::%x", call.key.xid);
		set_addr(&call.key, text, 1, false);
		answer("abcd", 4);
	}
	ck_assert_uint_gt(stats_sum_by_name("drc_evicted"), 10000);
	expect_replays("2001:db8::7");
	expect_replays("192.0.2.7");
}

TEST(one_address_takes_nothing_from_another_of_its_network)
{
	const char *lan[] = { "2001:db8::1", "2001:db8::2", "2001:db8::3",
			      "2001:db8::4" };
	unsigned kept = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(lan); i++) {
		set_addr(&call.key, lan[i], 801, false);
		for (call.key.xid = 0; call.key.xid < 100; call.key.xid++)
			answer("abcd", 4);
	}
	xprt_fate_end(a.x.fate, XPRT_BROKEN);
	come_on(&b);
	set_addr(&call.key, "2001:db8::99", 801, false);
	for (; call.key.xid < 20000; call.key.xid++)
		answer("abcd", 4);
	for (unsigned i = 0; i < ARRAY_SIZE(lan); i++) {
		set_addr(&call.key, lan[i], 801, false);
		call.key.xid = 0;
		if (lookup() == DRC_REPLAY) {
			atomic_store(ask.sent, 1);
			kept++;
		} else {
			forget();
		}
	}
	/* One of sixteen shares the writer's. */
	ck_assert_uint_ge(kept, 2);
}

/* Replies on their way: more than fit. */
static _Atomic uint64_t *away[8000];

static unsigned send_away(void)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(away); i++) {
		call.key.xid = i;
		ck_assert_int_eq(lookup(), DRC_NEW);
		done(asked(), "abcd", 4);
		away[i] = sent;
		kept += sent != NULL;
	}
	ck_assert_uint_eq(stats_sum_by_name("drc_no_room"),
			  ARRAY_SIZE(away) - kept);
	ck_assert_uint_lt(kept, ARRAY_SIZE(away));
	return kept;
}

static void arrive(void)
{
	for (unsigned i = 0; i < ARRAY_SIZE(away); i++)
		if (away[i])
			atomic_store(away[i], i + 1);
}

TEST(replies_on_their_way_leave_another_address_its_room)
{
	for (call.key.xid = 0; call.key.xid < 600; call.key.xid++)
		answer("abcd", 4);
	set_addr(&call.key, "192.0.2.99", 1, false);
	send_away();
	set_addr(&call.key, "192.0.2.7", 801, false);
	for (call.key.xid = 30000; call.key.xid < 30050; call.key.xid++)
		answer("abcd", 4);
	for (call.key.xid = 30000; call.key.xid < 30050; call.key.xid++)
		ck_assert_int_eq(lookup(), DRC_REPLAY);
	arrive();
}

TEST(replies_on_their_way_are_never_freed)
{
	ck_assert_uint_eq(send_away(), entries());
	ck_assert_uint_eq(stats_sum_by_name("drc_evicted"), 0);
	arrive();
}

TEST(there_is_always_room_for_calls_in_progress)
{
	for (call.key.xid = 0; call.key.xid < ARRAY_SIZE(calls);
	     call.key.xid++)
		ck_assert_int_eq(lookup(), DRC_NEW);
	ck_assert_uint_eq(entries(), ARRAY_SIZE(calls));
	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		drc_forget(drc, &calls[i]);
}

TEST(without_memory_only_calls_in_progress_are_known)
{
	struct drc *none = drc;

	ck_assert_int_eq(drc_create(0, &drc), 0);
	ck_assert_int_eq(lookup(), DRC_NEW);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	done(&calls[0], "abcd", 4);
	ck_assert_ptr_null(sent);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	drc_destroy(drc);
	drc = none;
}
