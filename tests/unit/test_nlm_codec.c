/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and results of the lock manager, as bytes. */
#include "nlm/proc.h"

#include <errno.h>

#include "tests/unit/runner.h"

/* nlm_lockargs: cookie "ck", block, exclusive, "host", handle "fh", owner "o",
 * svid 258, offset, length, reclaim, state 3. */
#define HEAD \
	0, 0, 0, 2, 'c', 'k', 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, \
	0, 0, 0, 4, 'h', 'o', 's', 't', 0, 0, 0, 2, 'f', 'h', 0, 0, \
	0, 0, 0, 1, 'o', 0, 0, 0, 0, 0, 1, 2
#define TAIL	0, 0, 0, 1, 0, 0, 0, 3

static const uint8_t lock1[] = { HEAD, 0, 0, 0, 16, 0, 0, 0, 32, TAIL };
static const uint8_t lock4[] = { HEAD, 0, 0, 0, 1, 0, 0, 0, 16,
				 0, 0, 0, 2, 0, 0, 0, 32, TAIL };

static bool decode(bool (*get)(struct xdr_in *, void *), const uint8_t *data,
		   size_t len, struct nlm_args *a)
{
	struct xdr_in x;

	xdr_in_init(&x, data, len);
	return get(&x, a);
}

static void check_lock(const struct nlm_args *a)
{
	ck_assert_uint_eq(a->cookie.len, 2);
	ck_assert_mem_eq(a->cookie.data, "ck", 2);
	ck_assert_mem_eq(a->name.data, "host", 4);
	ck_assert_mem_eq(a->fh.data, "fh", 2);
	ck_assert_mem_eq(a->oh.data, "o", 1);
	ck_assert(a->block && a->exclusive && a->reclaim);
	ck_assert_uint_eq(a->svid, 258);
	ck_assert_uint_eq(a->state, 3);
}

TEST(lock_arguments_have_32_or_64_bits)
{
	struct nlm_args a;

	ck_assert(decode(nlm_get_lock1, lock1, sizeof(lock1), &a));
	check_lock(&a);
	ck_assert_uint_eq(a.off, 16);
	ck_assert_uint_eq(a.len, 32);
	ck_assert(decode(nlm_get_lock4, lock4, sizeof(lock4), &a));
	check_lock(&a);
	ck_assert_uint_eq(a.off, (1ull << 32) + 16);
	ck_assert_uint_eq(a.len, (2ull << 32) + 32);
}

static const struct {
	uint32_t proc;
	bool (*get[2])(struct xdr_in *x, void *args);
} procs[] = {
	{ NLM_TEST, { nlm_get_test1, nlm_get_test4 } },
	{ NLM_LOCK, { nlm_get_lock1, nlm_get_lock4 } },
	{ NLM_CANCEL, { nlm_get_cancel1, nlm_get_cancel4 } },
	{ NLM_UNLOCK, { nlm_get_unlock1, nlm_get_unlock4 } },
	{ NLM_GRANTED, { nlm_get_test1, nlm_get_test4 } },
	{ NLM_LOCK_MSG, { nlm_get_lock1, nlm_get_lock4 } },
	{ NLM_UNLOCK_MSG, { nlm_get_unlock1, nlm_get_unlock4 } },
	{ NLM_GRANTED_MSG, { nlm_get_test1, nlm_get_test4 } },
	{ NLM_SHARE, { nlm_get_share, nlm_get_share } },
	{ NLM_UNSHARE, { nlm_get_share, nlm_get_share } },
	{ NLM_NM_LOCK, { nlm_get_lock1, nlm_get_lock4 } },
};

/* Of each procedure, as this server and its clients have them. */
TEST_LOOP(arguments_are_read_as_they_were_written, 0, ARRAY_SIZE(procs))
{
	const struct nlm_args a = {
		.cookie = xdr_text("ck"), .name = xdr_text("host"),
		.fh = xdr_text("fh"), .oh = xdr_text("o"), .svid = 258,
		.off = 16, .len = 32, .block = true, .exclusive = true,
		.reclaim = true, .state = 3, .mode = 2, .access = 1,
	};
	uint8_t bytes[2][128];
	struct nlm_args b, cut;
	struct xdr_out x;

	for (int wide = 0; wide < 2; wide++) {
		xdr_out_init(&x, bytes[0], sizeof(bytes[0]));
		nlm_put_args(&x, &a, procs[_i].proc, wide);
		ck_assert(decode(procs[_i].get[wide], bytes[0],
				 xdr_out_len(&x), &b));
		ck_assert(!decode(procs[_i].get[wide], bytes[0],
				  xdr_out_len(&x) - 1, &cut));
		xdr_out_init(&x, bytes[1], sizeof(bytes[1]));
		nlm_put_args(&x, &b, procs[_i].proc, wide);
		ck_assert_mem_eq(bytes[0], bytes[1], xdr_out_len(&x));
	}
}

TEST(lock_arguments_are_written_as_they_are_read)
{
	struct nlm_args a;
	struct xdr_out x;
	uint8_t bytes[128];

	ck_assert(decode(nlm_get_lock4, lock4, sizeof(lock4), &a));
	xdr_out_init(&x, bytes, sizeof(bytes));
	nlm_put_args(&x, &a, NLM_LOCK, true);
	ck_assert_uint_eq(xdr_out_len(&x), sizeof(lock4));
	ck_assert_mem_eq(bytes, lock4, sizeof(lock4));
	ck_assert(decode(nlm_get_lock1, lock1, sizeof(lock1), &a));
	xdr_out_init(&x, bytes, sizeof(bytes));
	nlm_put_args(&x, &a, NLM_LOCK_MSG, false);
	ck_assert_uint_eq(xdr_out_len(&x), sizeof(lock1));
	ck_assert_mem_eq(bytes, lock1, sizeof(lock1));
}

TEST(every_truncation_is_rejected)
{
	struct nlm_args a;

	for (size_t len = 0; len < sizeof(lock4); len++)
		ck_assert(!decode(nlm_get_lock4, lock4, len, &a));
	for (size_t len = 0; len < sizeof(lock1); len++)
		ck_assert(!decode(nlm_get_lock1, lock1, len, &a));
}

static int span_of(uint64_t off, uint64_t len, struct nlm_span *at)
{
	const struct nlm_args a = { .off = off, .len = len };

	return nlm_span_of(&a, at);
}

TEST(a_range_without_length_and_one_that_wraps_go_to_the_end)
{
	struct nlm_span at;

	ck_assert_int_eq(span_of(5, 0, &at), 0);
	ck_assert_uint_eq(at.end, NLM_EOF);
	ck_assert_int_eq(span_of(5, UINT64_MAX, &at), 0);
	ck_assert_uint_eq(at.end, NLM_EOF);
	ck_assert_int_eq(span_of(NLM_EOF, 1, &at), 0);
	ck_assert_uint_eq(at.start, NLM_EOF);
	ck_assert_uint_eq(at.end, NLM_EOF);
	ck_assert_int_eq(span_of(NLM_EOF + 1, 1, &at), -EFBIG);
	ck_assert_int_eq(span_of(3, 4, &at), 0);
	ck_assert_uint_eq(at.end, 6);
}

TEST(a_holder_follows_denied_only)
{
	static const uint8_t denied[] = {
		0, 0, 0, 1, 'c', 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1,
		0, 0, 0, 9, 0, 0, 0, 2, 'o', 'h', 0, 0,
		255, 255, 255, 255, 0, 0, 0, 0,
	};
	struct nlm_res r = {
		.status = NLM4_DENIED, .cookie = { (const uint8_t *)"c", 1 },
		.exclusive = true, .svid = 9, .oh_len = 2, .oh = "oh",
		.off = 1ull << 40, .len = 7,
	};
	uint8_t bytes[64];
	struct xdr_out x;

	xdr_out_init(&x, bytes, sizeof(bytes));
	nlm_put_test1(&x, &r);
	ck_assert_uint_eq(xdr_out_len(&x), sizeof(denied));
	ck_assert_mem_eq(bytes, denied, sizeof(denied));
	r.status = NLM4_GRANTED;
	xdr_out_init(&x, bytes, sizeof(bytes));
	nlm_put_test4(&x, &r);
	ck_assert_uint_eq(xdr_out_len(&x), 12);
}

TEST(versions_1_and_3_have_the_first_five_statuses)
{
	ck_assert_uint_eq(nlm_status1(NLM4_DENIED_GRACE_PERIOD),
			  NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlm_status1(NLM4_DEADLCK), NLM4_DENIED);
	ck_assert_uint_eq(nlm_status1(NLM4_STALE_FH), NLM4_DENIED_NOLOCKS);
}

TEST(calls_that_are_sent_back_come_again)
{
	ck_assert_uint_eq(nlm_status(-ECANCELED), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlm_status(-ETIMEDOUT), NLM4_DENIED_GRACE_PERIOD);
	ck_assert_uint_eq(nlm_status(-EIO), NLM4_FAILED);
}

TEST(shares_are_two_bits_each)
{
	uint8_t bytes[] = {
		0, 0, 0, 0, 0, 0, 0, 1, 'h', 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0, 0,
	};
	struct nlm_args a;

	ck_assert(decode(nlm_get_share, bytes, sizeof(bytes), &a));
	ck_assert_uint_eq(a.mode, 3);
	ck_assert_uint_eq(a.access, 1);
	bytes[23] = 4;
	ck_assert(!decode(nlm_get_share, bytes, sizeof(bytes), &a));
}
