/* SPDX-License-Identifier: BSD-2-Clause */
/* An RPC server with the fake program, one fake connection, and checks of a
 * call and its reply. */
#pragma once

#include "lib/stats.h"
#include "tests/server/fake_program.h"
#include "tests/server/fake_xprt.h"
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
	EVENTUALLY(rpc_busy() == 0);
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
