/* SPDX-License-Identifier: BSD-2-Clause */
/* The duplicate request cache. */
#include "rpc/drc.h"

#include <arpa/inet.h>
#include <stdlib.h>

#include "lib/stats.h"
#include "tests/unit/runner.h"

static struct drc *drc;
static struct drc_key key;
static struct drc_entry *entry;
static uint8_t reply[MSG_HEAD_SIZE];
static uint32_t reply_len;

static void set_addr(struct drc_key *k, const char *text, uint16_t port)
{
	struct sockaddr_storage ss = { 0 };
	struct sockaddr_in *in = (void *)&ss;
	struct sockaddr_in6 *in6 = (void *)&ss;

	if (inet_pton(AF_INET, text, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		in->sin_port = htons(port);
	} else {
		ck_assert_int_eq(inet_pton(AF_INET6, text, &in6->sin6_addr), 1);
		in6->sin6_family = AF_INET6;
		in6->sin6_port = htons(port);
	}
	drc_key_addr(k, (struct sockaddr *)&ss);
}

static void start(void)
{
	ck_assert_int_eq(drc_create(1 << 20, &drc), 0);
	memset(&key, 0, sizeof(key));
	set_addr(&key, "192.0.2.7", 801);
	key.xid = 1;
	key.prog = 100003;
	key.vers = 3;
	key.proc = 8;
	key.len = 120;
	key.sum = 42;
}

static void stop(void)
{
	drc_destroy(drc);
}

static enum drc_verdict lookup(const struct drc_key *k)
{
	struct drc_ask ask = { .reply = reply };
	enum drc_verdict verdict = drc_lookup(drc, k, &ask);

	reply_len = ask.len;
	entry = ask.entry;
	return verdict;
}

static void answer(const struct drc_key *k, const void *bytes, uint32_t len)
{
	ck_assert_int_eq(lookup(k), DRC_NEW);
	drc_done(drc, entry, bytes, len);
}

static size_t entries(void)
{
	size_t n, bytes;

	drc_usage(drc, &n, &bytes);
	return n;
}

START_TEST(a_duplicate_in_progress_is_recognized)
{
	struct drc_entry *first;

	ck_assert_int_eq(lookup(&key), DRC_NEW);
	first = entry;
	ck_assert_int_eq(lookup(&key), DRC_IN_PROGRESS);
	ck_assert_int_eq(lookup(&key), DRC_IN_PROGRESS);
	drc_done(drc, first, "abcd", 4);
	ck_assert_int_eq(lookup(&key), DRC_REPLAY);
}
END_TEST

/* Asks as @who, who may wait; returns who waited before. */
static void *ask_as(void *who)
{
	struct drc_ask ask = { .call = who, .reply = reply };

	ck_assert_int_eq(drc_lookup(drc, &key, &ask), DRC_IN_PROGRESS);
	ck_assert_ptr_null(ask.entry);
	return ask.older;
}

START_TEST(the_newest_duplicate_waits_for_the_end)
{
	static uint8_t large[900];
	char a, b;

	for (key.xid = 0; key.xid < 2; key.xid++) {
		ck_assert_int_eq(lookup(&key), DRC_NEW);
		ck_assert_ptr_null(ask_as(&a));
		ck_assert_ptr_eq(ask_as(&b), &a);
		ck_assert_ptr_eq(drc_done(drc, entry, large, key.xid ?
					  sizeof(large) : 4), &b);
		ck_assert_int_eq(lookup(&key), DRC_REPLAY);
	}
	ck_assert_uint_eq(stats_sum_by_name("drc_displaced"), 2);
	/* Nobody waits for the next one with the same entry. */
	drc_age(drc, DRC_AGE + 2);
	key.xid = 0;
	ck_assert_int_eq(lookup(&key), DRC_NEW);
	ck_assert_ptr_null(drc_done(drc, entry, "abcd", 4));
}
END_TEST

START_TEST(a_duplicate_takes_over_what_came_to_nothing)
{
	struct drc_entry *first;
	char a, b;

	ck_assert_int_eq(lookup(&key), DRC_NEW);
	first = entry;
	ck_assert_ptr_null(ask_as(&a));
	ck_assert_ptr_eq(drc_forget(drc, first), &a);
	/* It runs, and is in progress like the first. */
	ck_assert_ptr_null(ask_as(&b));
	ck_assert_ptr_eq(drc_forget(drc, first), &b);
	ck_assert_ptr_null(drc_forget(drc, first));
	ck_assert_uint_eq(entries(), 0);
	ck_assert_int_eq(lookup(&key), DRC_NEW);
	drc_forget(drc, entry);
}
END_TEST

START_TEST(a_finished_call_gets_its_first_reply_byte_for_byte)
{
	uint8_t bytes[MSG_HEAD_SIZE];

	/* Around the size that lies in the entry itself, and at the limit. */
	static const uint32_t sizes[] = { 4, 24, 351, 352, 353, 700,
					  MSG_HEAD_SIZE };

	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (uint32_t k = 0; k < sizes[i]; k++)
			bytes[k] = (uint8_t)(k * 31 + i);
		key.xid = i;
		answer(&key, bytes, sizes[i]);
		for (int again = 0; again < 2; again++) {
			ck_assert_int_eq(lookup(&key), DRC_REPLAY);
			ck_assert_uint_eq(reply_len, sizes[i]);
			ck_assert_mem_eq(reply, bytes, sizes[i]);
		}
	}
}
END_TEST

START_TEST(the_port_does_not_matter)
{
	answer(&key, "abcd", 4);
	set_addr(&key, "192.0.2.7", 977);
	ck_assert_int_eq(lookup(&key), DRC_REPLAY);
	set_addr(&key, "::ffff:192.0.2.7", 978);
	ck_assert_int_eq(lookup(&key), DRC_REPLAY);
}
END_TEST

START_TEST(every_other_part_of_the_key_matters)
{
	struct drc_key k;

	answer(&key, "abcd", 4);
#define DIFFERS(change) do { \
		k = key; \
		change; \
		ck_assert_int_eq(lookup(&k), DRC_NEW); \
		drc_forget(drc, entry); \
	} while (0)
	DIFFERS(k.xid++);
	DIFFERS(k.uid++);
	DIFFERS(k.gid++);
	DIFFERS(k.prog++);
	DIFFERS(k.vers++);
	DIFFERS(k.proc++);
	DIFFERS(k.len++);
	DIFFERS(k.sum++);
	DIFFERS(k.sum ^= 1ull << 63);
	DIFFERS(k.scope++);
	DIFFERS(set_addr(&k, "192.0.2.8", 801));
	DIFFERS(set_addr(&k, "2001:db8::7", 801));
#undef DIFFERS
	ck_assert_int_eq(lookup(&key), DRC_REPLAY);
}
END_TEST

START_TEST(a_forgotten_call_runs_again)
{
	ck_assert_int_eq(lookup(&key), DRC_NEW);
	drc_forget(drc, entry);
	ck_assert_uint_eq(entries(), 0);
	ck_assert_int_eq(lookup(&key), DRC_NEW);
	drc_forget(drc, entry);
}
END_TEST

/* Is it two seconds before its time, and again as long after that use? */
static bool is_believed(void)
{
	answer(&key, "abcd", 4);
	for (int i = 0; i < 2; i++) {
		drc_age(drc, DRC_AGE - 2);
		if (lookup(&key) == DRC_REPLAY)
			continue;
		drc_forget(drc, entry);
		return false;
	}
	return true;
}

START_TEST(an_entry_is_believed_for_120_seconds_after_its_last_use)
{
	bool believed = false;

	/* The machine may stand still for two seconds, but not each time. */
	for (int i = 0; i < 5 && !believed; i++)
		believed = is_believed();
	ck_assert(believed);
	drc_age(drc, DRC_AGE + 2);
	ck_assert_int_eq(lookup(&key), DRC_NEW);
	drc_forget(drc, entry);
}
END_TEST

/* Another thread's clock may be a tick ahead: who looked at it first and came
 * second must not run the call again. */
START_TEST(an_entry_of_a_moment_ahead_is_believed)
{
	for (uint32_t ahead = 1; ahead < 10; ahead++) {
		key.xid = ahead;
		drc_age(drc, ahead);
		answer(&key, "abcd", 4);
		drc_age(drc, -ahead);
		ck_assert_int_eq(lookup(&key), DRC_REPLAY);
	}
	/* Nor does a new call make room by them. */
	drc_age(drc, 30);
	for (key.xid = 100; key.xid < 600; key.xid++)
		answer(&key, "abcd", 4);
	drc_age(drc, -30u);
	for (key.xid = 1000; key.xid < 1500; key.xid++)
		answer(&key, "abcd", 4);
	ck_assert_uint_eq(entries(), 9 + 500 + 500);
}
END_TEST

START_TEST(a_call_in_progress_does_not_age)
{
	struct drc_entry *first;

	ck_assert_int_eq(lookup(&key), DRC_NEW);
	first = entry;
	drc_age(drc, 10 * DRC_AGE);
	ck_assert_int_eq(lookup(&key), DRC_IN_PROGRESS);
	drc_done(drc, first, "abcd", 4);
	ck_assert_int_eq(lookup(&key), DRC_REPLAY);
}
END_TEST

START_TEST(old_entries_are_given_up_as_new_ones_come)
{
	for (key.xid = 0; key.xid < 1000; key.xid++)
		answer(&key, "abcd", 4);
	ck_assert_uint_eq(entries(), 1000);
	drc_age(drc, DRC_AGE + 2);
	for (; key.xid < 2000; key.xid++)
		answer(&key, "abcd", 4);
	/* Two go for each that comes, in the shard of that one. */
	ck_assert_uint_lt(entries(), 1200);
	ck_assert_uint_eq(stats_sum_by_name("drc_evicted"), 0);
}
END_TEST

START_TEST(memory_is_bounded_and_the_least_recently_used_goes)
{
	static const uint8_t large[900];
	size_t n, bytes;
	struct drc_key hot = key;

	hot.xid = 1 << 30;
	answer(&hot, "abcd", 4);
	for (key.xid = 0; key.xid < 20000; key.xid++) {
		answer(&key, large, key.xid % 3 ? 100 : sizeof(large));
		if (key.xid % 8 == 0)
			ck_assert_int_eq(lookup(&hot), DRC_REPLAY);
		drc_usage(drc, &n, &bytes);
		ck_assert_uint_le(bytes, 1 << 20);
	}
	ck_assert_uint_gt(stats_sum_by_name("drc_evicted"), 10000);
	key.xid = 0;
	ck_assert_int_eq(lookup(&key), DRC_NEW);
	drc_forget(drc, entry);
	key.xid = 19999;
	ck_assert_int_eq(lookup(&key), DRC_REPLAY);
}
END_TEST

START_TEST(calls_in_progress_are_never_evicted)
{
	struct drc_entry *running[4096];
	unsigned n = 0, uncached = 0;

	for (key.xid = 0; key.xid < ARRAY_SIZE(running); key.xid++) {
		if (lookup(&key) == DRC_NEW)
			running[n++] = entry;
		else
			uncached++;
	}
	ck_assert_uint_gt(uncached, 0);
	ck_assert_uint_eq(stats_sum_by_name("drc_full"), uncached);
	for (unsigned i = 0; i < n; i++)
		drc_done(drc, running[i], "abcd", 4);
	ck_assert_uint_eq(entries(), n);
}
END_TEST

START_TEST(without_memory_nothing_is_cached)
{
	struct drc_ask ask = { .reply = reply };
	struct drc *none;

	ck_assert_int_eq(drc_create(0, &none), 0);
	ck_assert_int_eq(drc_lookup(none, &key, &ask), DRC_UNCACHED);
	ck_assert_ptr_null(ask.entry);
	drc_destroy(none);
}
END_TEST

static uint64_t sum_cut(const uint8_t *data, uint32_t len, uint32_t a,
			uint32_t b)
{
	struct xdr_seg segs[3] = {
		{ data, a }, { data + a, b - a }, { data + b, len - b },
	};
	struct xdr_in x;

	xdr_in_init_segs(&x, segs, 3);
	return drc_sum(&x);
}

START_TEST(the_sum_does_not_depend_on_segments)
{
	uint8_t data[1200];
	uint64_t sum;

	for (unsigned i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 7 + i / 256);
	for (uint32_t len = 0; len <= sizeof(data); len += 60) {
		sum = sum_cut(data, len, 0, 0);
		for (uint32_t a = 0; a <= len; a += 4)
			for (uint32_t b = a; b <= len; b += 36)
				ck_assert_uint_eq(sum_cut(data, len, a, b),
						  sum);
	}
}
END_TEST

START_TEST(the_sum_sees_every_bit_up_to_its_bound)
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
END_TEST

/*
 * Threads send the same calls, each several times.  Every call runs once at a
 * time, and once it is done everyone gets that reply.
 */
#define CALLS	3000
#define SENDERS	4

static atomic_uint running[CALLS], ran[CALLS];
static atomic_int waiting;

/* Somebody who waited is back, if @who is one. */
static bool back(const void *who)
{
	if (who)
		atomic_fetch_sub(&waiting, 1);
	return who;
}

static void send_all(void *arg)
{
	struct drc_key k = key;
	uint8_t out[MSG_HEAD_SIZE];
	struct drc_ask ask = { .call = out, .reply = out };
	uint32_t word;

	for (uint32_t i = 0; i < CALLS; i++) {
		k.xid = i;
		switch (drc_lookup(drc, &k, &ask)) {
		case DRC_NEW:
			ck_assert_uint_eq(atomic_fetch_add(&running[i], 1), 0);
			atomic_fetch_add(&ran[i], 1);
			atomic_fetch_sub(&running[i], 1);
			if (i % 5)
				back(drc_done(drc, ask.entry, &i, sizeof(i)));
			else
				while (back(drc_forget(drc, ask.entry)))
					;
			break;
		case DRC_REPLAY:
			ck_assert_uint_eq(ask.len, sizeof(word));
			memcpy(&word, out, sizeof(word));
			ck_assert_uint_eq(word, i);
			break;
		case DRC_IN_PROGRESS:
			atomic_fetch_add(&waiting, 1);
			back(ask.older);
			break;
		case DRC_UNCACHED:
			ck_abort_msg("no room");
		}
	}
}

START_TEST(threads_that_send_the_same_calls_run_each_once)
{
	pthread_t threads[SENDERS];

	stop();
	ck_assert_int_eq(drc_create(8 << 20, &drc), 0);
	for (int i = 0; i < SENDERS; i++)
		ck_assert_int_eq(thread_start(&threads[i], "sender", send_all,
					      NULL), 0);
	for (int i = 0; i < SENDERS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < CALLS; i++)
		if (i % 5)
			ck_assert_uint_eq(ran[i], 1);
	ck_assert_uint_eq(entries(), CALLS - CALLS / 5);
	ck_assert_int_eq(atomic_load(&waiting), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("drc");
	TCase *t = tcase_create("drc");

	tcase_add_checked_fixture(t, start, stop);
	tcase_add_test(t, a_duplicate_in_progress_is_recognized);
	tcase_add_test(t, the_newest_duplicate_waits_for_the_end);
	tcase_add_test(t, a_duplicate_takes_over_what_came_to_nothing);
	tcase_add_test(t, a_finished_call_gets_its_first_reply_byte_for_byte);
	tcase_add_test(t, the_port_does_not_matter);
	tcase_add_test(t, every_other_part_of_the_key_matters);
	tcase_add_test(t, a_forgotten_call_runs_again);
	tcase_add_test(t, an_entry_is_believed_for_120_seconds_after_its_last_use);
	tcase_add_test(t, an_entry_of_a_moment_ahead_is_believed);
	tcase_add_test(t, a_call_in_progress_does_not_age);
	tcase_add_test(t, old_entries_are_given_up_as_new_ones_come);
	tcase_add_test(t, memory_is_bounded_and_the_least_recently_used_goes);
	tcase_add_test(t, calls_in_progress_are_never_evicted);
	tcase_add_test(t, without_memory_nothing_is_cached);
	tcase_add_test(t, the_sum_does_not_depend_on_segments);
	tcase_add_test(t, the_sum_sees_every_bit_up_to_its_bound);
	tcase_add_test(t, threads_that_send_the_same_calls_run_each_once);
	suite_add_tcase(s, t);
	return run_suite(s);
}
