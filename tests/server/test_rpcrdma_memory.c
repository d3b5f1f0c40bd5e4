/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory: its lack, and the amount that a connection takes. */
#include <errno.h>

#include "lib/stats.h"
#include "tests/server/rdma_peer.h"
#include "tests/unit/runner.h"

static struct rig rig;
static uint8_t mem[1 << 20];

static uint64_t stat(const char *name)
{
	return stats_sum_by_name(name);
}

static bool none_left(void *arg)
{
	return rig.listener->ops->count(rig.listener) == 0;
}

static struct buf *hog[64];

/* Takes all large buffers. */
static unsigned take_all(void)
{
	unsigned n = 0;

	while (n < ARRAY_SIZE(hog) &&
	       (hog[n] = pool_alloc(rig.pool, POOL_BUF_MAX)))
		n++;
	ck_assert_uint_lt(n, ARRAY_SIZE(hog));
	return n;
}

static bool has_waited(void *arg)
{
	return stat("rdma_pool_waits") >= *(uint64_t *)arg;
}

static void give_all(unsigned n)
{
	while (n > 0)
		buf_put(hog[--n]);
}

static void start_large_write(struct rpcrdma_requester *r, struct exchange *x,
			      uint32_t xid)
{
	exchange_init(x, xid, OP_SUM, 1);
	exchange_put(x, sizeof(mem));
	x->request.nreads = 1;
	x->request.read[0].position = DATA_POSITION;
	x->request.read[0].mem = rpcrdma_memory_at(mem, sizeof(mem));
	exchange_start(r, x);
}

TEST(without_memory_calls_wait_and_credits_shrink)
{
	struct rig_options o = { .pool_bytes = 48u << 20 };
	uint64_t waits = stat("rdma_pool_waits") + 3;
	struct rpcrdma_requester *r;
	static struct exchange x[4];
	unsigned n;

	rig_open(&rig, &o);
	rig_connect(&rig, NULL, &r);
	/* More than one credit comes with the first reply. */
	exchange_init(&x[3], 40, OP_SUM, 0);
	exchange_start(r, &x[3]);
	ck_assert_int_eq(exchange_wait(&x[3]), 0);
	exchange_fini(&x[3]);
	n = take_all();
	for (uint32_t i = 0; i < 3; i++)
		start_large_write(r, &x[i], i);
	wait_until(has_waited, &waits);
	/* Others are served, with fewer credits. */
	exchange_init(&x[3], 41, OP_SUM, 0);
	exchange_start(r, &x[3]);
	ck_assert_int_eq(exchange_wait(&x[3]), 0);
	exchange_fini(&x[3]);
	give_all(n);
	for (uint32_t i = 0; i < 3; i++) {
		ck_assert_int_eq(exchange_wait(&x[i]), 0);
		ck_assert_uint_eq(exchange_word(&x[i], 1), sizeof(mem));
		exchange_fini(&x[i]);
	}
	rpcrdma_requester_destroy(r);
	rig_close(&rig);
}

/* Of so many credits, checks the number granted while a call waits for
 * memory. */
static void check_short_grant(unsigned credits, unsigned granted)
{
	struct rig_options o = { .pool_bytes = 48u << 20,
				 .rdma.credits = credits };
	uint64_t waits = stat("rdma_pool_waits") + 1;
	struct fabric_mr *mr;
	struct peer peer;
	unsigned n;

	rig_open(&rig, &o);
	peer_open(&peer, &rig, NULL);
	peer_wait_up(&peer);
	n = take_all();
	mr = peer_register(&peer, mem, sizeof(mem), FABRIC_REMOTE_READ);
	peer_begin(&peer, 1, 1, RPCRDMA_MSG);
	peer_put_read(&peer, DATA_POSITION, mr, 0, sizeof(mem));
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 1, OP_SUM, 1);
	peer_put(&peer, sizeof(mem));
	peer_send(&peer);
	wait_until(has_waited, &waits);
	peer_check_alive(&peer);
	ck_assert_uint_eq(peer.hdr.credits, granted);
	give_all(n);
	peer_take(&peer);
	ck_assert_uint_eq(peer.hdr.xid, 1);
	ck_assert_uint_eq(peer.hdr.credits, credits);
	fabric_mr_destroy(mr);
	peer_close(&peer);
	rig_close(&rig);
}

TEST(fewer_credits_are_granted_while_memory_is_short)
{
	check_short_grant(128, 32);
}

TEST(the_last_credit_is_granted_however_short_memory_is)
{
	check_short_grant(2, 1);
}

/* A requester whose write waits for all that was taken, so many. */
static unsigned open_waiting(struct rpcrdma_requester **r, struct exchange *x)
{
	struct rig_options o = { .pool_bytes = 48u << 20 };
	uint64_t waits = stat("rdma_pool_waits") + 1;
	unsigned n;

	rig_open(&rig, &o);
	rig_connect(&rig, NULL, r);
	n = take_all();
	start_large_write(*r, x, 1);
	wait_until(has_waited, &waits);
	return n;
}

TEST(calls_that_wait_for_memory_end_with_their_connection)
{
	struct rpcrdma_requester *r;
	static struct exchange x;
	unsigned n = open_waiting(&r, &x);

	rpcrdma_requester_close(r);
	ck_assert_int_eq(exchange_wait(&x), -ENOTCONN);
	exchange_fini(&x);
	rpcrdma_requester_destroy(r);
	wait_until(none_left, NULL);
	give_all(n);
	rig_close(&rig);
}

static atomic_bool next_called;

static void next_ready(struct pool_request *r, struct buf *b)
{
	buf_put(b);
	atomic_store(&next_called, true);
}

static bool was_called(void *arg)
{
	return atomic_load(&next_called);
}

struct end_and_wake {
	struct rpcrdma_requester *ends;
	struct buf *b;
};

/* On the responder's loop, which learns of both when it is back: first of
 * the end. */
static void end_and_wake(void *arg)
{
	struct end_and_wake *e = arg;

	rig_break(&rig, e->ends);
	buf_put(e->b);
}

/* A call whose connection ended just then passes the buffer on. */
TEST(a_buffer_that_comes_back_is_for_one_that_still_wants_it)
{
	struct rpcrdma_requester *r;
	struct end_and_wake e;
	static struct exchange x;
	struct pool_request next = { .ready = next_ready };
	unsigned n = open_waiting(&r, &x);

	atomic_store(&next_called, false);
	ck_assert_ptr_null(pool_request(rig.pool, POOL_BUF_MAX, &next));
	ck_assert(!atomic_load(&next_called));
	e = (struct end_and_wake){ r, hog[--n] };
	loop_call(rig.server, end_and_wake, &e);
	wait_until(was_called, NULL);
	exchange_wait(&x);
	exchange_fini(&x);
	rpcrdma_requester_destroy(r);
	wait_until(none_left, NULL);
	give_all(n);
	rig_close(&rig);
}

TEST(a_connection_costs_less_than_two_mebibytes)
{
	struct rpcrdma_options o = { .credits = 128 };
	struct loop_fabric_counts one, two;
	struct peer peer[2];

	rig_on_loop();
	/* 3072: the RPC layer's part of each call. */
	ck_assert_uint_lt(rpcrdma_conn_bytes(&o, 3072), 2u << 20);
	rig_open(&rig, NULL);
	peer_open(&peer[0], &rig, NULL);
	peer_wait_up(&peer[0]);
	peer_check_alive(&peer[0]);
	loop_fabric_count(&rig.fabric, &one);
	peer_open(&peer[1], &rig, NULL);
	peer_wait_up(&peer[1]);
	loop_fabric_count(&rig.fabric, &two);
	/* Its only registration; the pool's belong to the device. */
	ck_assert_uint_eq(two.mrs, one.mrs + 2);	/* and the peer's */
	ck_assert_uint_lt(two.passive_bytes - one.passive_bytes,
			  rpcrdma_conn_bytes(&o, 0));
	peer_close(&peer[0]);
	peer_close(&peer[1]);
	/* The pool's stay for later connections. */
	wait_until(none_left, NULL);
	loop_fabric_count(&rig.fabric, &two);
	ck_assert_uint_eq(two.mrs, one.mrs - 2);
	ck_assert_uint_gt(two.mrs, 0);
	rig_close(&rig);
}
