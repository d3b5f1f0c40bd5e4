/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments and results of rquota, as bytes. */
#include "rquota/proc.h"

#include <errno.h>

#include "tests/unit/runner.h"

#define PATH	0, 0, 0, 6, '/', 'a', '/', 'b', '/', 'c', 0, 0
#define ZEROS	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

static const uint8_t get1[] = { PATH, 0, 0, 1, 2 };
static const uint8_t get2[] = { PATH, 0, 0, 0, 1, 0, 0, 1, 2 };
/* A command, a path, an id (and a type), eight words. */
static const uint8_t set1[] = { 0, 0, 8, 0, PATH, 0, 0, 1, 2, ZEROS, ZEROS };
static const uint8_t set2[] = { 0, 0, 8, 0, PATH, 0, 0, 1, 2, 0, 0, 0, 1,
				ZEROS, ZEROS };

static struct rquota_args a;

static bool decode(bool (*get)(struct xdr_in *, void *), const uint8_t *data,
		   size_t len)
{
	struct xdr_in x;

	memset(&a, 0xee, sizeof(a));
	xdr_in_init(&x, data, len);
	return get(&x, &a) && xdr_left(&x) == 0;
}

TEST(arguments_name_a_path_and_a_user_or_group)
{
	ck_assert(decode(rquota_get1, get1, sizeof(get1)));
	ck_assert_uint_eq(a.path.len, 6);
	ck_assert_mem_eq(a.path.data, "/a/b/c", 6);
	ck_assert_uint_eq(a.type, RQUOTA_USER);
	ck_assert_uint_eq(a.id, 258);
	ck_assert(decode(rquota_get2, get2, sizeof(get2)));
	ck_assert_mem_eq(a.path.data, "/a/b/c", 6);
	ck_assert_uint_eq(a.type, RQUOTA_GROUP);
	ck_assert_uint_eq(a.id, 258);
	ck_assert(decode(rquota_get_set1, set1, sizeof(set1)));
	ck_assert(decode(rquota_get_set2, set2, sizeof(set2)));
}

TEST(every_truncation_is_rejected)
{
	for (size_t len = 0; len < sizeof(get1); len++)
		ck_assert(!decode(rquota_get1, get1, len));
	for (size_t len = 0; len < sizeof(get2); len++)
		ck_assert(!decode(rquota_get2, get2, len));
	for (size_t len = 0; len < sizeof(set1); len++)
		ck_assert(!decode(rquota_get_set1, set1, len));
	for (size_t len = 0; len < sizeof(set2); len++)
		ck_assert(!decode(rquota_get_set2, set2, len));
}

TEST(a_path_has_1024_bytes_at_most)
{
	uint8_t data[4 + 1028 + 8] = { 0, 0, 4, 0 };

	ck_assert(decode(rquota_get1, data, 4 + 1024 + 4));
	data[3] = 1;
	ck_assert(!decode(rquota_get1, data, 4 + 1028 + 4));
}

/* ---- results */

static uint32_t word[16];

static unsigned encode(const struct rquota_res *r)
{
	uint8_t data[sizeof(word)];
	struct xdr_out out;
	struct xdr_in in;
	size_t len;

	xdr_out_init(&out, data, sizeof(data));
	rquota_put(&out, r);
	len = xdr_out_len(&out);
	xdr_in_init(&in, data, len);
	for (size_t i = 0; i < len / 4; i++)
		word[i] = xdr_get_u32(&in);
	return (unsigned)(len / 4);
}

enum { STATUS, BSIZE, ACTIVE, BHARD, BSOFT, BUSED, FHARD, FSOFT, FUSED, BLEFT,
       FLEFT, WORDS };

TEST(results_count_blocks_of_a_kilobyte)
{
	const struct rquota_res r = {
		.status = Q_OK, .now = 1000,
		.quota = {
			.bytes = { 1500, 2048, 4096, 1010 },
			.files = { 3, 2, 4, 1020 },
		},
	};
	const uint32_t want[WORDS] = { 1, 1024, 1, 4, 2, 2, 4, 2, 3, 10, 20 };

	ck_assert_uint_eq(encode(&r), WORDS);
	ck_assert_mem_eq(word, want, sizeof(want));
}

TEST(other_results_are_the_status_alone)
{
	struct rquota_res r = { .status = Q_NOQUOTA };

	ck_assert_uint_eq(encode(&r), 1);
	ck_assert_uint_eq(word[STATUS], 2);
	r.status = Q_EPERM;
	ck_assert_uint_eq(encode(&r), 1);
	ck_assert_uint_eq(word[STATUS], 3);
}

/* A limit stays one, and use below it stays below it or at it. */
TEST(counts_beyond_32_bits_have_larger_blocks)
{
	struct rquota_res r = { .status = Q_OK };

	r.quota.bytes.hard = (uint64_t)UINT32_MAX * 1024;
	encode(&r);
	ck_assert_uint_eq(word[BSIZE], 1024);
	ck_assert_uint_eq(word[BHARD], UINT32_MAX);
	r.quota.bytes.hard++;
	r.quota.bytes.soft = 1;
	r.quota.bytes.used = 4097;
	encode(&r);
	ck_assert_uint_eq(word[BSIZE], 2048);
	ck_assert_uint_eq(word[BHARD], 1u << 31);
	ck_assert_uint_eq(word[BSOFT], 1);
	ck_assert_uint_eq(word[BUSED], 3);
	r.quota.bytes.hard = UINT64_MAX;
	r.quota.files.used = 1ull << 32;
	encode(&r);
	ck_assert_uint_eq(word[BSIZE], 1u << 30);
	ck_assert_uint_eq(word[BHARD], UINT32_MAX);
	ck_assert_uint_eq(word[FUSED], UINT32_MAX);
}

TEST(time_that_is_over_is_negative)
{
	struct rquota_res r = { .status = Q_OK, .now = 2000 };

	r.quota.bytes.ends = 1990;
	r.quota.files.ends = 2000;
	encode(&r);
	ck_assert_uint_eq(word[BLEFT], (uint32_t)-10);
	ck_assert_uint_eq(word[FLEFT], (uint32_t)-1);
	r.quota.bytes.ends = INT64_MAX;
	r.quota.files.ends = 0;
	encode(&r);
	ck_assert_uint_eq(word[BLEFT], INT32_MAX);
	ck_assert_uint_eq(word[FLEFT], 0);
	r.now = 1ll << 40;
	r.quota.bytes.ends = 1;
	r.quota.files.ends = INT64_MIN;	/* a damaged disk's */
	encode(&r);
	ck_assert_uint_eq(word[BLEFT], 1u << 31);
	ck_assert_uint_eq(word[FLEFT], 1u << 31);
}

TEST(errors_are_no_permission_or_no_quota)
{
	ck_assert_int_eq(rquota_status(0), Q_OK);
	ck_assert_int_eq(rquota_status(-EPERM), Q_EPERM);
	ck_assert_int_eq(rquota_status(-EACCES), Q_EPERM);
	ck_assert_int_eq(rquota_status(-ENOENT), Q_NOQUOTA);
	ck_assert_int_eq(rquota_status(-ESRCH), Q_NOQUOTA);
	ck_assert_int_eq(rquota_status(-ETIMEDOUT), Q_NOQUOTA);
}
