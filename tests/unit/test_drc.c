/* SPDX-License-Identifier: BSD-2-Clause */
/* The duplicate request cache: calls in progress, keys, sums. */
#include "tests/unit/drc_fixture.h"

TEST_CASE(.setup = start, .teardown = stop);

/* ---- calls in progress */

TEST(a_duplicate_in_progress_is_recognized)
{
	struct drc_call *first;

	ck_assert_int_eq(lookup(), DRC_NEW);
	first = asked();
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	done(first, "abcd", 4);
	place(10);
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 20);
}

TEST(the_newest_duplicate_waits_for_the_end)
{
	static uint8_t large[900];
	struct drc_call *first, *second;

	for (call.key.xid = 0; call.key.xid < 2; call.key.xid++) {
		ck_assert_int_eq(lookup(), DRC_NEW);
		first = asked();
		ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
		ck_assert_ptr_null(ask.older);
		second = asked();
		ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
		ck_assert_ptr_eq(ask.older, second);
		ck_assert_ptr_eq(done(first, large, call.key.xid ?
				      sizeof(large) : 4), asked());
		place(10);
		ck_assert_int_eq(lookup(), DRC_REPLAY);
		atomic_store(ask.sent, 20);
	}
	ck_assert_uint_eq(stats_sum_by_name("drc_displaced"), 2);
}

/* Several programs of a host can send the same call; each waits for an
 * answer. */
TEST(duplicates_of_several_connections_all_wait)
{
	struct drc_call *first, *second, *third;
	struct wire c, d;

	wire_init(&c);
	wire_init(&d);
	ck_assert_int_eq(lookup(), DRC_NEW);
	first = asked();
	come_on(&b);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	ck_assert_ptr_null(ask.older);
	second = asked();
	come_on(&c);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	ck_assert_ptr_null(ask.older);
	third = asked();
	/* It came to nothing: one runs, and the other waits for that. */
	ck_assert_ptr_eq(drc_forget(drc, first), third);
	ck_assert_ptr_eq(third->waiting, second);
	/* No client waits where a connection has ended. */
	xprt_fate_end(b.x.fate, XPRT_ORDERLY);
	come_on(&d);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	ck_assert_ptr_eq(ask.older, second);
	ck_assert_ptr_eq(done(third, "abcd", 4), asked());
	ck_assert_ptr_null(asked()->waiting);
	place(10);
	wire_fini(&c);
	wire_fini(&d);
}

TEST(a_duplicate_takes_over_a_forgotten_call)
{
	struct drc_call *first, *second;

	ck_assert_int_eq(lookup(), DRC_NEW);
	first = asked();
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	second = asked();
	ck_assert_ptr_eq(drc_forget(drc, first), second);
	/* It runs, and is in progress like the first. */
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	ck_assert_ptr_eq(drc_forget(drc, second), asked());
	forget();
	ck_assert_uint_eq(entries(), 0);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
}

TEST(an_unkept_call_leaves_no_entry)
{
	call.keep = false;
	ck_assert_int_eq(lookup(), DRC_NEW);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	ck_assert_ptr_eq(drc_forget(drc, &calls[0]), asked());
	forget();
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	ck_assert_uint_eq(entries(), 0);
}

TEST(a_call_in_progress_does_not_age)
{
	struct drc_call *first;

	ck_assert_int_eq(lookup(), DRC_NEW);
	first = asked();
	xprt_age(10 * DRC_BROKEN_MS / 1000);
	ck_assert_int_eq(lookup(), DRC_IN_PROGRESS);
	done(first, "abcd", 4);
	place(10);
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 20);
}

/* ---- keys and replies */

TEST(a_finished_call_gets_its_first_reply_byte_for_byte)
{
	static const uint32_t sizes[] = { 4, 24, 351, 352, 353, 700,
					  MSG_HEAD_SIZE };
	uint8_t bytes[MSG_HEAD_SIZE];

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (uint32_t k = 0; k < sizes[i]; k++)
			bytes[k] = (uint8_t)(k * 31 + i);
		call.key.xid = i;
		answer(bytes, sizes[i]);
		for (int again = 0; again < 2; again++) {
			ck_assert_int_eq(lookup(), DRC_REPLAY);
			ck_assert_uint_eq(ask.len, sizes[i]);
			ck_assert_mem_eq(reply, bytes, sizes[i]);
			atomic_store(ask.sent, 10);
		}
	}
}

TEST(the_port_matters_for_datagrams_only)
{
	struct drc_key k = call.key;

	set_addr(&k, "::ffff:192.0.2.7", 978, false);
	ck_assert_mem_eq(&k, &call.key, sizeof(k));
	set_addr(&k, "192.0.2.7", 978, true);
	ck_assert_uint_eq(k.port, htons(978));
	set_addr(&k, "2001:db8::7", 978, true);
	ck_assert_uint_eq(k.port, htons(978));
	ck_assert_uint_eq(k.scope, 0);
	set_addr(&k, "fe80::7", 978, false);
	ck_assert_uint_eq(k.port, 0);
	ck_assert_uint_eq(k.scope, 3);
}

TEST(every_other_part_of_the_key_matters)
{
	struct drc_key k = call.key;

	answer("abcd", 4);
#define DIFFERS(change) do { \
		change; \
		ck_assert_int_eq(lookup(), DRC_NEW); \
		forget(); \
		call.key = k; \
	} while (0)
	DIFFERS(call.key.xid++);
	DIFFERS(call.key.uid++);
	DIFFERS(call.key.gid++);
	DIFFERS(call.key.flavor--);
	DIFFERS(call.key.prog++);
	DIFFERS(call.key.vers++);
	DIFFERS(call.key.proc++);
	DIFFERS(call.key.len++);
	DIFFERS(call.key.sum++);
	DIFFERS(call.key.sum ^= 1ull << 63);
	DIFFERS(call.key.scope++);
	DIFFERS(call.key.port++);
	DIFFERS(set_addr(&call.key, "192.0.2.8", 801, false));
	DIFFERS(set_addr(&call.key, "2001:db8::7", 801, false));
#undef DIFFERS
	ck_assert_int_eq(lookup(), DRC_REPLAY);
	atomic_store(ask.sent, 1);
}

TEST(a_forgotten_call_runs_again)
{
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
	ck_assert_uint_eq(entries(), 0);
	ck_assert_int_eq(lookup(), DRC_NEW);
	forget();
}

static uint64_t sum_cut(const uint8_t *data, uint32_t len,
			uint32_t one, uint32_t two)
{
	struct xdr_seg segs[3] = {
		{ data, one }, { data + one, two - one },
		{ data + two, len - two },
	};
	struct xdr_in x;

	xdr_in_init_segs(&x, segs, 3);
	return drc_sum(&x, DRC_SUM_MAX);
}

TEST(the_sum_does_not_depend_on_segments)
{
	uint8_t data[1200];
	uint64_t sum;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	for (uint32_t len = 0; len <= sizeof(data); len += 60) {
		sum = sum_cut(data, len, 0, 0);
		for (uint32_t i = 0; i <= len; i += 4)
			for (uint32_t k = i; k <= len; k += 36)
				ck_assert_uint_eq(sum_cut(data, len, i, k),
						  sum);
	}
}

TEST(the_sum_sees_every_bit_up_to_its_bound)
{
	uint8_t data[DRC_SUM_MAX + 8] = { 0 };
	uint64_t sum = sum_cut(data, sizeof(data), 0, 0);

	for (unsigned i = 0; i < sizeof(data); i++)
		for (unsigned bit = 0; bit < 8; bit++) {
			data[i] ^= (uint8_t)(1 << bit);
			if (i < DRC_SUM_MAX)
				ck_assert_uint_ne(sum_cut(data, sizeof(data),
							  0, 0), sum);
			else
				ck_assert_uint_eq(sum_cut(data, sizeof(data),
							  0, 0), sum);
			data[i] ^= (uint8_t)(1 << bit);
		}
}

/*
 * Threads send the same calls, each several times.  Every call runs once at a
 * time, and once it is done everyone gets that reply.
 */
#define CALLS	3000
#define SENDERS	4

static atomic_uint running[CALLS], ran[CALLS];
static atomic_int waiting;

/* A waiter is back, if @who is one. */
static bool back(const void *who)
{
	if (who)
		atomic_fetch_sub(&waiting, 1);
	return who;
}

static void finish(struct drc_call *c, uint32_t i)
{
	struct drc_call *next;

	ck_assert_uint_eq(atomic_fetch_add(&running[i], 1), 0);
	atomic_fetch_add(&ran[i], 1);
	atomic_fetch_sub(&running[i], 1);
	if (i % 5) {
		next = drc_done(drc, c, &i, sizeof(i));
		if (c->sent)
			atomic_store(c->sent, i + 1);
		for (c = next; c; c = next) {
			next = c->waiting;
			if (c->sent)
				atomic_store(c->sent, i + 1);
			back(c);
		}
		return;
	}
	for (; c; c = next) {
		next = drc_forget(drc, c);
		back(next);
	}
}

static void send_all(void *arg)
{
	struct drc_call *mine = calloc(CALLS, sizeof(*mine));
	uint8_t out[MSG_HEAD_SIZE];
	struct drc_ask mine_ask = { .reply = out };
	uint32_t word;

	for (uint32_t i = 0; i < CALLS; i++) {
		struct drc_call *c = &mine[i];

		*c = call;
		c->key.xid = i;
		c->fate = ((struct wire *)arg)->x.fate;
		switch (drc_lookup(drc, c, &mine_ask)) {
		case DRC_NEW:
			finish(c, i);
			break;
		case DRC_REPLAY:
			ck_assert_uint_eq(mine_ask.len, sizeof(word));
			memcpy(&word, out, sizeof(word));
			ck_assert_uint_eq(word, i);
			if (mine_ask.sent)
				atomic_store(mine_ask.sent, i + 1);
			break;
		case DRC_IN_PROGRESS:
			atomic_fetch_add(&waiting, 1);
			back(mine_ask.older);
			break;
		case DRC_DROP:
			ck_abort_msg("dropped");
		}
	}
	/* Other threads can still go through the waiting calls. */
	EVENTUALLY(atomic_load(&waiting) == 0);
	free(mine);
}

TEST(threads_that_send_the_same_calls_run_each_once)
{
	pthread_t threads[SENDERS];
	struct wire *wires[] = { &a, &b };

	drc_destroy(drc);
	ck_assert_int_eq(drc_create(8 << 20, &drc), 0);
	for (int i = 0; i < SENDERS; i++)
		ck_assert_int_eq(thread_start(&threads[i], "sender", send_all,
					      wires[i % 2]), 0);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < CALLS; i++)
		if (i % 5)
			ck_assert_uint_eq(ran[i], 1);
	ck_assert_int_eq(atomic_load(&waiting), 0);
}
