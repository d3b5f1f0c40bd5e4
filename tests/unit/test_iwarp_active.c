/* SPDX-License-Identifier: BSD-2-Clause */
/* The iWARP fabric as a listener sees it that speaks bytes: an active end. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/iwarp_raw.h"
#include "tests/unit/runner.h"

static struct raw raw;
static uint8_t data[128];

TEST_CASE(.timeout = 30);

TEST(an_active_end_asks_and_speaks_first)
{
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .read_depth = 32 });
	raw.greet = true;
	fd = raw_call(&raw);
	raw_expect_hex(fd, REQ_KEY "1002000c" "00000020" "f6ab0e1801010303");
	raw_put_hex(fd, REP_KEY "1002000c" "00100000" "f6ab0e1801000303");
	wait_sem(&raw.established);
	ck_assert_uint_eq(raw.info.read_depth, 16);
	ck_assert_uint_eq(raw.depths.ird, 16);
	ck_assert_uint_eq(raw.depths.ord, 0);
	raw_get(fd, data, 32);
	ck_assert_mem_eq(data + 20, "hello", 5);
	close(fd);
	raw_close(&raw);
}

/* RFC 5044 section 4.4: unless an administrator says otherwise. */
TEST(an_active_end_asks_for_crcs)
{
	int fd;

	raw_open_as(&raw, &(struct iwarp_options){ .read_depth = 32 });
	raw.greet = true;
	fd = raw_call(&raw);
	raw_expect_hex(fd, REQ_KEY "5002000c" "00000020" "f6ab0e1801010303");
	raw_put_hex(fd, REP_KEY "1002000c" "00100000" "f6ab0e1801000303");
	wait_sem(&raw.established);
	raw_get(fd, data, 32);
	ck_assert_mem_eq(data + 20, "hello", 5);
	ck_assert_mem_ne(data + 28, "\0\0\0\0", 4);
	close(fd);
	raw_close(&raw);
}

/* RFC 6581 section 10: revision 2 is for its depths. */
TEST(an_active_end_of_revision_1_asks_for_nothing_enhanced)
{
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .revision = 1,
						.rtr = IWARP_RTR_WRITE });
	raw.greet = true;
	fd = raw_call(&raw);
	raw_expect_hex(fd, REQ_KEY "00010008" "f6ab0e1801010303");
	raw_put_hex(fd, REP_KEY "00010000");
	wait_sem(&raw.established);
	ck_assert(!raw.depths.told);
	raw_get(fd, data, 32);
	ck_assert_mem_eq(data + 20, "hello", 5);
	close(fd);
	raw_close(&raw);
}

/* The peer answers with @hex; returns the error of closed(). */
static int answered(const struct iwarp_options *o, const char *hex,
		    enum term code)
{
	int fd;

	raw_open(&raw, o);
	fd = raw_call(&raw);
	raw_get(fd, data, 32);
	raw_put_hex(fd, hex);
	if (code != TERM_NONE)
		raw_expect_term(fd, code, false);
	else
		raw_expect_gone(fd);
	close(fd);
	wait_sem(&raw.closed);
	raw_close(&raw);
	ck_assert_int_lt(sem_trywait(&raw.established), 0);
	return raw.err;
}

TEST(an_active_end_refuses_malformed_replies)
{
	struct iwarp_options o = { .rtr = IWARP_RTR_WRITE };

	ck_assert_int_eq(answered(NULL, REQ_KEY, TERM_NONE), -EPROTO);
	ck_assert_int_eq(answered(NULL, REP_KEY "30020004" "00100005",
				  TERM_NONE), -ECONNREFUSED);
	/* A reject also carries its depths. */
	ck_assert(raw.last_depths.told);
	ck_assert_uint_eq(raw.last_depths.ird, 16);
	ck_assert_uint_eq(raw.last_depths.ord, 5);
	ck_assert_int_eq(answered(NULL, REP_KEY "10020004" "00100000" "00",
				  TERM_NONE), -EPROTO);
	ck_assert_int_eq(answered(NULL, REP_KEY "10020004" "00100001",
				  TERM_MPA_IRD), -ENOSPC);
	ck_assert_int_eq(answered(&o, REP_KEY "10020004" "80104000",
				  TERM_MPA_RTR), -ENOTSUP);
}

TEST(an_active_end_has_a_time_limit)
{
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .handshake_ms = 500 });
	fd = raw_call(&raw);
	wait_sem(&raw.closed);
	ck_assert_int_eq(raw.err, -ETIMEDOUT);
	close(fd);
	raw_close(&raw);
}

TEST(an_rtr_comes_first)
{
	int fd;

	raw_open(&raw, &(struct iwarp_options){ .rtr = IWARP_RTR_EITHER,
						.read_depth = 16 });
	raw.greet = true;
	fd = raw_call(&raw);
	raw_expect_hex(fd, REQ_KEY "1002000c" "8000c010" "f6ab0e1801010303");
	raw_put_hex(fd, REP_KEY "10020004" "80108000");
	raw_expect_hex(fd, "000ec140" "00000001" "0000000000000000"
		       "00000000");
	raw_get(fd, data, 32);
	ck_assert_mem_eq(data + 20, "hello", 5);
	close(fd);
	wait_sem(&raw.closed);
	/* A Read is waited for. */
	fd = raw_call(&raw);
	raw_get(fd, data, 32);
	raw_put_hex(fd, REP_KEY "10020004" "80104000");
	raw_get(fd, data, 52);
	ck_assert_uint_eq(data[3], 0x41);
	ck_assert_mem_eq(data + 32, "\0\0\0\0", 4);
	raw_put_hex(fd, "000ec142" "00000000" "0000000000000000" "00000000");
	raw_get(fd, data, 32);
	ck_assert_mem_eq(data + 20, "hello", 5);
	close(fd);
	raw_close(&raw);
}
