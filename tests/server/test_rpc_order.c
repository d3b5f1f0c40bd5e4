/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of one key take effect in the order in which they came. */
#include "rpc/rpc.h"

#include <errno.h>

#include "lib/stats.h"
#include "lib/thread.h"
#include "tests/server/fake_program.h"
#include "tests/unit/runner.h"
#include "transport/fate.h"

#define PROG	0x20000002u
#define ONCE	1u		/* through the cache of replies */
#define PLAIN	2u
#define BACK	3u
#define COME_AGAIN 0xbacc

/* A call, by its arguments. */
struct wish {
	uint32_t key, number;
	uint32_t held;		/* it waits until the test resumes it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock: */
static struct wish effects[8192];
static unsigned neffects;
static struct rpc_call *held[8];
static unsigned nheld;

static bool get_wish(struct xdr_in *x, void *args)
{
	struct wish *w = args;

	w->key = xdr_get_u32(x);
	w->number = xdr_get_u32(x);
	w->held = xdr_get_u32(x);
	return xdr_ok(x);
}

static uint64_t key_of(struct rpc_call *call)
{
	return ((struct wish *)rpc_args(call))->key;
}

static bool forget(struct rpc_call *call)
{
	bool found = false;

	mutex_lock(&lock);
	for (unsigned i = 0; i < nheld && !found; i++) {
		found = held[i] == call;
		if (found)
			held[i] = held[--nheld];
	}
	mutex_unlock(&lock);
	return found;
}

static int go_on(struct rpc_call *call)
{
	return 0;
}

static int wait_if_held(struct rpc_call *call)
{
	const struct wish *w = rpc_args(call);

	if (!w->held)
		return 0;
	ck_assert(rpc_call_suspend(call, "the test", forget, go_on));
	mutex_lock(&lock);
	held[nheld++] = call;
	mutex_unlock(&lock);
	return RPC_PENDING;
}

static int take_effect(struct rpc_call *call)
{
	mutex_lock(&lock);
	effects[neffects++] = *(struct wish *)rpc_args(call);
	mutex_unlock(&lock);
	return 0;
}

static int end(struct rpc_call *call, int err)
{
	if (err == -ETIMEDOUT)
		*(uint32_t *)rpc_res(call) = COME_AGAIN;
	return err == -ETIMEDOUT ? 0 : err;
}

static void put_result(struct xdr_out *x, const void *res)
{
	xdr_put_u32(x, *(const uint32_t *)res);
}

#define ROW(n, fl) { \
	.name = n, .decode = get_wish, .encode = put_result, .end = end, \
	.steps = { wait_if_held, rpc_need_worker, take_effect }, \
	.args_size = sizeof(struct wish), .res_size = 4, \
	.flags = RPC_PROC_ORDERED | (fl), \
}

static const struct rpc_proc procs[] = {
	[ONCE] = ROW("ONCE", RPC_PROC_CACHED), [PLAIN] = ROW("PLAIN", 0),
	[BACK] = ROW("BACK", RPC_PROC_GIVES_BACK),
};
static const struct rpc_version versions[] = { { 1, 4, procs } };
static struct rpc_program program = {
	.name = "ordered", .prog = PROG, .nversions = 1,
	.versions = versions, .order = key_of, .sends_back = true,
};

static struct pool *pool;
static struct rpc_server *server;
static struct fake_xprt conns[4];

static void start(void)
{
	struct rpc_server_config config = { .nworkers = 4,
					    .drc_bytes = 1 << 20 };

	neffects = nheld = 0;
	ck_assert_int_eq(pool_create(64u << 20, &pool), 0);
	config.pool = pool;
	ck_assert_int_eq(rpc_server_create(&config, &server), 0);
	ck_assert_int_eq(rpc_server_add(server, &program), 0);
	for (unsigned i = 0; i < 4; i++) {
		fake_xprt_init(&conns[i], rpc_server_sink(server), pool,
			       "192.0.2.7", (uint16_t)(801 + i));
		conns[i].x.fate = xprt_fate_create(&conns[i].x, 0);
	}
}

static void stop(void)
{
	EVENTUALLY(rpc_busy() == 0);
	for (unsigned i = 0; i < 4; i++)
		xprt_fate_put(conns[i].x.fate);
	rpc_server_destroy(server);
	pool_destroy(pool);
}

TEST_CASE(.setup = start, .teardown = stop);

static struct fake_call *ask(struct fake_xprt *conn, uint32_t proc,
			     struct wish w)
{
	uint32_t words[] = { 1000 + w.number, 0, 2, PROG, 1, proc, 0, 0, 0, 0,
			     w.key, w.number, w.held };

	return send_words(conn, words, ARRAY_SIZE(words));
}

static unsigned count(const unsigned *n)
{
	unsigned got;

	mutex_lock(&lock);
	got = *n;
	mutex_unlock(&lock);
	return got;
}

static void resume(void)
{
	struct rpc_call *call;

	EVENTUALLY(count(&nheld) > 0);
	mutex_lock(&lock);
	call = held[--nheld];
	mutex_unlock(&lock);
	rpc_call_resume(call);
}

/* The reply's result; frees the call. */
static uint32_t result(struct fake_call *c)
{
	uint32_t r;

	fake_wait(c);
	ck_assert(!c->dropped);
	r = reply_word(c, 6);
	fake_free(c);
	return r;
}

static void is_dropped(struct fake_call *c)
{
	ck_assert(fake_over(c) && c->dropped);
	fake_free(c);
}

static void breaks(struct fake_xprt *conn)
{
	xprt_fate_end(conn->x.fate, XPRT_BROKEN);
	rpc_server_relieve(server);
}

#define EXPECT_EFFECTS(...) do { \
		uint32_t e_[] = { __VA_ARGS__ }; \
		ck_assert_uint_eq(count(&neffects), ARRAY_SIZE(e_)); \
		for (unsigned i_ = 0; i_ < ARRAY_SIZE(e_); i_++) \
			ck_assert_uint_eq(effects[i_].number, e_[i_]); \
	} while (0)

TEST(calls_of_one_key_wait_for_the_first_and_others_do_not)
{
	struct fake_call *c[5];

	for (uint32_t i = 0; i < 4; i++)
		c[i] = ask(&conns[i % 2], i % 3 ? PLAIN : ONCE,
			   (struct wish){ 1, i, i == 0 });
	c[4] = ask(&conns[0], ONCE, (struct wish){ 2, 4, 0 });
	ck_assert_uint_eq(result(c[4]), 0);
	EXPECT_EFFECTS(4);
	EVENTUALLY(rpc_busy() == 4);
	resume();
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(result(c[i]), 0);
	EXPECT_EFFECTS(4, 0, 1, 2, 3);
	/* The key is free again. */
	c[0] = ask(&conns[0], ONCE, (struct wish){ 1, 5, 0 });
	ck_assert_uint_eq(result(c[0]), 0);
}

TEST(each_call_holds_back_those_behind_it)
{
	struct fake_call *c[3];

	for (uint32_t i = 0; i < 3; i++)
		c[i] = ask(&conns[0], ONCE, (struct wish){ 1, i, i < 2 });
	resume();
	ck_assert_uint_eq(result(c[0]), 0);
	EVENTUALLY(count(&nheld) == 1);
	EXPECT_EFFECTS(0);
	ck_assert(!fake_over(c[2]));
	resume();
	ck_assert_uint_eq(result(c[1]), 0);
	ck_assert_uint_eq(result(c[2]), 0);
	EXPECT_EFFECTS(0, 1, 2);
}

TEST(a_call_that_goes_with_its_connection_lets_the_next_one_go)
{
	struct fake_call *first, *second;

	first = ask(&conns[0], ONCE, (struct wish){ 1, 1, true });
	second = ask(&conns[1], ONCE, (struct wish){ 1, 2, 0 });
	breaks(&conns[0]);
	is_dropped(first);
	ck_assert_uint_eq(result(second), 0);
	EXPECT_EFFECTS(2);
}

TEST(a_waiting_call_runs_in_its_turn_though_its_connection_has_ended)
{
	struct fake_call *c[4];

	for (uint32_t i = 0; i < 4; i++)
		c[i] = ask(&conns[i == 1], PLAIN, (struct wish){ 1, i, !i });
	breaks(&conns[1]);
	rpc_server_relieve(server);
	resume();
	for (unsigned i = 0; i < 4; i++)
		ck_assert_uint_eq(result(c[i]), 0);
	EXPECT_EFFECTS(0, 1, 2, 3);
}

static bool is_full_now(struct xprt *x)
{
	return true;
}

/* UNLOCK behind a LOCK that hangs. */
TEST(a_datagram_that_gives_back_is_dropped_only_for_its_place)
{
	struct xprt_ops full = *conns[1].x.ops;
	struct fake_call *c[4];

	for (unsigned i = 1; i < 3; i++)
		conns[i].x.datagram = true;
	full.is_full = is_full_now;
	conns[2].x.ops = &full;
	c[0] = ask(&conns[0], PLAIN, (struct wish){ 1, 0, true });
	c[1] = ask(&conns[1], PLAIN, (struct wish){ 1, 1, 0 });
	c[2] = ask(&conns[1], BACK, (struct wish){ 1, 2, 0 });
	c[3] = ask(&conns[2], BACK, (struct wish){ 1, 3, 0 });
	for (unsigned i = 0; i < 2; i++)
		rpc_server_relieve(server);
	is_dropped(c[1]);
	is_dropped(c[3]);
	resume();
	ck_assert_uint_eq(result(c[0]), 0);
	ck_assert_uint_eq(result(c[2]), 0);
	EXPECT_EFFECTS(0, 2);
}

/* LOCK waits; its client connects again and sends it again, then UNLOCK. */
TEST(a_duplicate_in_place_of_a_cancelled_call_is_before_later_calls)
{
	struct fake_call *first, *again, *later;

	first = ask(&conns[0], ONCE, (struct wish){ 1, 1, true });
	again = ask(&conns[1], ONCE, (struct wish){ 1, 1, true });
	later = ask(&conns[1], ONCE, (struct wish){ 1, 2, 0 });
	breaks(&conns[0]);
	is_dropped(first);
	EVENTUALLY(count(&nheld) == 1);
	ck_assert_uint_eq(count(&neffects), 0);
	resume();
	ck_assert_uint_eq(result(again), 0);
	ck_assert_uint_eq(result(later), 0);
	EXPECT_EFFECTS(1, 2);
}

/* A full connection that ends when its calls are taken back. */
static bool is_full_and_ends(struct xprt *x)
{
	xprt_fate_end(x->fate, XPRT_BROKEN);
	return true;
}

TEST(a_duplicate_in_place_of_a_call_that_waited_keeps_its_place)
{
	struct xprt_ops ends = *conns[0].x.ops;
	struct fake_call *c[4];

	ends.is_full = is_full_and_ends;
	conns[0].x.ops = &ends;
	c[0] = ask(&conns[2], ONCE, (struct wish){ 1, 0, true });
	c[1] = ask(&conns[0], ONCE, (struct wish){ 1, 1, 0 });
	c[2] = ask(&conns[1], ONCE, (struct wish){ 1, 1, 0 });
	c[3] = ask(&conns[1], ONCE, (struct wish){ 1, 2, 0 });
	rpc_server_relieve(server);
	rpc_server_relieve(server);
	is_dropped(c[1]);
	resume();
	ck_assert_uint_eq(result(c[0]), 0);
	ck_assert_uint_eq(result(c[2]), 0);
	ck_assert_uint_eq(result(c[3]), 0);
	EXPECT_EFFECTS(0, 1, 2);
}

TEST(calls_beyond_the_bound_come_again_and_have_no_effect)
{
	static struct fake_call *c[RPC_ORDER_MAX + 2];

	for (uint32_t i = 0; i < RPC_ORDER_MAX + 2; i++)
		c[i] = ask(&conns[0], PLAIN, (struct wish){ 1, i, !i });
	ck_assert_uint_eq(result(c[RPC_ORDER_MAX + 1]), COME_AGAIN);
	ck_assert_uint_eq(stats_sum_by_name("rpc_order_full"), 1);
	resume();
	for (unsigned i = 0; i <= RPC_ORDER_MAX; i++)
		ck_assert_uint_eq(result(c[i]), 0);
	ck_assert_uint_eq(count(&neffects), RPC_ORDER_MAX + 1);
	for (uint32_t i = 0; i <= RPC_ORDER_MAX; i++)
		ck_assert_uint_eq(effects[i].number, i);
}

#define EACH	1000u

/* A poller: sends calls of two keys, one of which the other poller shares. */
static void *send_many(void *arg)
{
	struct fake_xprt *conn = arg;
	const uint32_t own = (uint32_t)(conn - conns);
	static struct fake_call *c[4][EACH];

	for (uint32_t i = 0; i < EACH; i++) {
		c[own][i] = ask(conn, PLAIN,
				(struct wish){ i % 2 ? own : 9,
					       own * EACH + i, 0 });
		/* This test is not about the bound. */
		if (i % 32 == 31)
			fake_wait(c[own][i - 31]);
	}
	for (unsigned i = 0; i < EACH; i++)
		ck_assert_uint_eq(result(c[own][i]), 0);
	return NULL;
}

TEST(calls_of_several_pollers_are_in_order_for_each_key)
{
	uint32_t last[16][4] = { { 0 } };
	pthread_t thread[4];

	for (unsigned i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, send_many, &conns[i]);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	ck_assert_uint_eq(count(&neffects), 4 * EACH);
	for (unsigned i = 0; i < neffects; i++) {
		uint32_t *l = &last[effects[i].key][effects[i].number / EACH];

		ck_assert_uint_ge(effects[i].number % EACH, *l);
		*l = effects[i].number % EACH;
	}
}
