/* SPDX-License-Identifier: BSD-2-Clause */
/* Flow: credits, Receives, queues, the begin and end of connections. */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "lib/stats.h"
#include "tests/server/rdma_peer.h"
#include "tests/unit/runner.h"

static struct rig rig;
static uint8_t mem[1 << 20];

static uint64_t stat(const char *name)
{
	return stats_sum_by_name(name);
}

static bool all_held(void *arg)
{
	return rig_held(&rig) == *(unsigned *)arg;
}

static void wait_held(unsigned n)
{
	wait_until(all_held, &n);
}

static bool none_left(void *arg)
{
	return rig.listener->ops->count(rig.listener) == 0;
}

static void enter(struct peer *peer)
{
	peer_open(peer, &rig, NULL);
	peer_wait_up(peer);
}

/* A responder and one peer. */
static void open_one(const struct rig_options *o, struct peer *peer)
{
	rig_open(&rig, o);
	enter(peer);
}

static void close_one(struct peer *peer)
{
	peer_close(peer);
	rig_close(&rig);
}

TEST(as_many_credits_are_granted_as_are_asked_for)
{
	static const unsigned credits[] = { 0, 1, 7, 300 };

	for (size_t i = 0; i < ARRAY_SIZE(credits); i++) {
		struct rig_options o = { .rdma.credits = credits[i] };
		struct peer peer;

		open_one(&o, &peer);
		for (int n = 0; n < 20; n++)
			peer_check_alive(&peer);
		ck_assert_uint_eq(peer.hdr.credits,
				  credits[i] ? credits[i] : 128);
		close_one(&peer);
	}
}

TEST(a_device_with_short_queues_has_fewer_credits)
{
	struct rig_options o = { .fabric.passive.max_recv = 21 };
	struct peer peer;

	open_one(&o, &peer);
	peer_check_alive(&peer);
	ck_assert_uint_eq(peer.hdr.credits, 10);
	close_one(&peer);
}

/* RFC 8166 section 3.3.3: 1 KiB, whatever the options say. */
TEST(a_kilobyte_is_taken_in_any_case)
{
	struct rig_options o = { .rdma.inline_size = 100 };
	struct peer peer;

	open_one(&o, &peer);
	peer_begin(&peer, 5, 1, RPCRDMA_MSG);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 5, OP_SUM, 1);
	peer_put(&peer, 1024 - 28 - 16);
	peer_put_zeros(&peer, (1024 - 28 - 16) / 4);
	ck_assert_uint_eq(xdr_out_len(&peer.out), 1024);
	peer_send(&peer);
	peer_take(&peer);
	ck_assert_uint_eq(peer_word(&peer, 1), 1024 - 28 - 16);
	close_one(&peer);
}

TEST(connections_are_shared_out_among_pollers)
{
	struct rig_options o = { .two_pollers = true };
	struct peer peer[4];

	rig_open(&rig, &o);
	for (int i = 0; i < 4; i++) {
		enter(&peer[i]);
	}
	for (int round = 0; round < 10; round++)
		for (int i = 0; i < 4; i++)
			peer_check_alive(&peer[i]);
	for (int i = 0; i < 4; i++)
		peer_close(&peer[i]);
	rig_close(&rig);
}

TEST(all_credits_may_be_used_at_once)
{
	struct peer peer;

	open_one(NULL, &peer);
	for (int round = 0; round < 5; round++) {
		for (uint32_t i = 0; i < 128; i++)
			peer_call(&peer, i, OP_HOLD, 0);
		wait_held(128);
		rig_release(&rig);
		for (uint32_t i = 0; i < 128; i++)
			peer_take(&peer);
	}
	peer_check_alive(&peer);
	close_one(&peer);
}

TEST(a_peer_that_overruns_loses_its_connection_and_no_other)
{
	struct rig_options o = { .rdma.credits = 4 };
	uint64_t before = stat("rdma_overruns"), early;
	struct peer good, bad;

	rig_open(&rig, &o);
	peer_open(&good, &rig, NULL);
	peer_open(&bad, &rig, NULL);
	peer_wait_up(&good);
	peer_wait_up(&bad);
	for (uint32_t i = 0; i < 4; i++)
		peer_call(&bad, i, OP_HOLD, 0);
	wait_held(4);
	peer_check_alive(&good);
	early = stat("rdma_early_calls");
	peer_call(&bad, 5, OP_SUM, 0);
	peer_wait_down(&bad);
	ck_assert_uint_eq(bad.nmsgs, 0);
	ck_assert_uint_ge(stat("rdma_overruns"), before + 1);
	peer_check_alive(&good);
	rig_release(&rig);			/* undelivered replies */
	peer_close(&bad);
	close_one(&good);
	ck_assert_uint_eq(stat("rdma_early_calls"), early);
}

TEST(calls_before_established_are_kept_and_replayed)
{
	struct rig_options o = { .fabric.late_established = 5 };
	struct peer peer;

	open_one(&o, &peer);
	for (uint32_t i = 0; i < 5; i++)
		peer_call(&peer, i, OP_SUM, 0);
	for (uint32_t i = 0; i < 5; i++) {
		peer_take(&peer);
		ck_assert_uint_eq(peer.hdr.xid, i);
	}
	ck_assert_uint_ge(stat("rdma_early_calls"), 1);
	close_one(&peer);
}

TEST(a_requester_has_one_credit_before_the_first_reply)
{
	struct rig_options o = { .rdma.credits = 8 };
	struct rpcrdma_requester *r;
	static struct exchange x[20];

	rig_open(&rig, &o);
	rig_connect(&rig, NULL, &r);
	for (uint32_t i = 0; i < 20; i++) {
		exchange_init(&x[i], i, OP_HOLD, 0);
		exchange_start(r, &x[i]);
	}
	wait_held(1);
	ck_assert_uint_eq(rig.taken, 1);
	rig_release(&rig);
	wait_held(8);				/* then the granted number */
	ck_assert_uint_eq(rig.taken, 9);
	rig_release(&rig);
	wait_held(8);
	rig_release(&rig);
	wait_held(3);
	rig_release(&rig);
	for (uint32_t i = 0; i < 20; i++) {
		ck_assert_int_eq(exchange_wait(&x[i]), 0);
		exchange_fini(&x[i]);
	}
	rpcrdma_requester_destroy(r);
	rig_close(&rig);
}

TEST(a_peer_without_a_receive_loses_its_connection)
{
	struct peer_options po = { .nrecvs = 1 };
	struct loop_fabric_counts counts;
	struct peer peer;

	rig_on_loop();
	rig_open(&rig, NULL);
	peer_open(&peer, &rig, &po);
	peer_wait_up(&peer);
	for (uint32_t i = 0; i < 3; i++)
		peer_call(&peer, i, OP_HOLD, 0);
	wait_held(3);
	rig_release(&rig);
	peer_wait_down(&peer);
	loop_fabric_count(&rig.fabric, &counts);
	ck_assert_uint_eq(counts.rnr, 1);
	close_one(&peer);
}

TEST(a_peer_that_lets_us_read_nothing_is_refused)
{
	struct peer_options po = { .no_reads = true };
	struct peer peer;

	rig_open(&rig, NULL);
	peer_open(&peer, &rig, &po);
	ck_assert_int_eq(peer_wait_down(&peer), -ECONNREFUSED);
	close_one(&peer);
}

/* One of three is refused, and can come when another has gone. */
static void two_at_most(const struct rig_options *o, const char *counter)
{
	uint64_t before = stat(counter);
	struct peer peer[3];

	rig_open(&rig, o);
	for (int i = 0; i < 2; i++) {
		enter(&peer[i]);
	}
	peer_open(&peer[2], &rig, NULL);
	ck_assert_int_eq(peer_wait_down(&peer[2]), -ECONNREFUSED);
	ck_assert_uint_eq(stat(counter), before + 1);
	peer_check_alive(&peer[0]);
	peer_check_alive(&peer[1]);
	for (int i = 0; i < 3; i++)
		peer_close(&peer[i]);
	wait_until(none_left, NULL);
	enter(&peer[0]);
	peer_close(&peer[0]);
	rig_close(&rig);
}

TEST(more_connections_than_may_be_are_refused)
{
	struct rig_options o = { .max_conns = 2 };

	two_at_most(&o, "rdma_refused_full");
}

TEST(more_connections_of_one_peer_than_may_be_are_refused)
{
	struct rig_options o = { .max_peer_conns = 2 };

	two_at_most(&o, "rdma_refused_peer");
}

TEST(connections_keep_within_their_memory)
{
	static struct rpcrdma_budget budget;
	struct rig_options o = { .rdma.budget = &budget };
	struct peer peer;
	size_t one;

	budget.max = 1u << 30;
	open_one(&o, &peer);
	one = atomic_load(&budget.used);
	/* The queues of iWARP in user space are also the process's memory. */
	ck_assert_uint_ge(one, rpcrdma_conn_bytes(&o.rdma, 0) +
			  (rig.iwarp ? 128u << 10 : 0));
	close_one(&peer);
	ck_assert_uint_eq(atomic_load(&budget.used), 0);
	budget.max = 3 * one - 1;
	two_at_most(&o, "rdma_refused_memory");
	ck_assert_uint_eq(atomic_load(&budget.used), 0);
}

TEST(an_idle_connection_is_closed_and_a_busy_one_is_not)
{
	/* Enough to send a call, whatever else the machine does. */
	struct rig_options o = { .rdma.idle_ms = 3000 };
	uint64_t before = stat("rdma_idle_closed");
	struct peer busy, idle;

	open_one(&o, &busy);
	peer_call(&busy, 1, OP_HOLD, 0);
	wait_held(1);
	for (int i = 0; i < 2; i++) {
		enter(&idle);
		peer_check_alive(&idle);
		peer_wait_down(&idle);
		peer_close(&idle);
		ck_assert_uint_eq(stat("rdma_idle_closed"), before + 1 +
				  (uint64_t)i);
	}
	rig_release(&rig);
	peer_take(&busy);
	ck_assert_uint_eq(busy.hdr.xid, 1);
	peer_wait_down(&busy);
	close_one(&busy);
}

/* The peer has no Receive, or does not answer a Read, for ever. */
TEST_LOOP(a_connection_on_which_nothing_completes_is_closed, 0, 2)
{
	struct rig_options o = { .rdma.stall_ms = 100 };
	uint64_t before = stat("rdma_stalled");
	struct fabric_mr *mr;
	struct peer peer;

	/* The peer's Send is the first. */
	o.fabric.stall_nth = 2;
	rig_on_loop();
	open_one(&o, &peer);
	mr = peer_register(&peer, mem, 4000, FABRIC_REMOTE_READ);
	peer_begin(&peer, 1, 1, RPCRDMA_MSG);
	if (_i)
		peer_put_read(&peer, DATA_POSITION, mr, 0, 4000);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 1, OP_SUM, (uint32_t)_i);
	if (_i)
		peer_put(&peer, 4000);
	peer_send(&peer);
	peer_wait_down(&peer);
	ck_assert_uint_eq(stat("rdma_stalled"), before + 1);
	fabric_mr_destroy(mr);
	peer_close(&peer);
	wait_until(none_left, NULL);
	rig_close(&rig);
}

static void got_one(struct pool_request *r, struct buf *b)
{
	buf_put(b);
}

/* The same, soon, once a call waits for memory, and not before. */
TEST(a_connection_that_keeps_memory_others_want_is_closed)
{
	struct rig_options o = { .rdma.short_ms = 100 };
	struct pool_request w = { .ready = got_one };
	uint64_t before = stat("rdma_stalled");
	struct buf *all = NULL, *b;
	struct peer peer;

	o.fabric.stall_nth = 2;
	rig_on_loop();
	open_one(&o, &peer);
	peer_begin(&peer, 1, 1, RPCRDMA_MSG);
	peer_put_zeros(&peer, 3);
	peer_put_call(&peer, 1, OP_SUM, 0);
	peer_send(&peer);
	ck_assert(HOLDS_FOR(400, stat("rdma_stalled") == before));
	for (; (b = pool_alloc(rig.pool, 1)); all = b)
		b->next = all;
	ck_assert_ptr_null(pool_request(rig.pool, 1, &w));
	peer_wait_down(&peer);
	ck_assert_uint_eq(stat("rdma_stalled"), before + 1);
	pool_cancel(rig.pool, &w);
	for (; all; all = b) {
		b = all->next;
		buf_put(all);
	}
	peer_close(&peer);
	wait_until(none_left, NULL);
	rig_close(&rig);
}

/* Has the peer of @r ask for this read depth (RFC 5666 section 6). */
static void configure_reads(struct rpcrdma_requester *r, uint32_t reads)
{
	const struct rpcrdma_limits theirs = { 4096, 4096, reads };
	struct rpcrdma_limits ours;
	struct exchange x;

	exchange_init(&x, 99, OP_KEEP, 0);
	exchange_start(r, &x);
	ck_assert_int_eq(exchange_wait(&x), 0);
	exchange_fini(&x);
	rpcrdma_configure(rig.xprt, &theirs, &ours);
}

/* Twenty WRITE-like calls of many segments each, all at once.  @later: the
 * depth that the peer asks for then; 0: it does not. */
static void many_reads(const struct rig_options *o, unsigned depth,
		       uint32_t later)
{
	struct rpcrdma_requester_options ro = { .segment_size = 1500,
						.read_depth = depth };
	struct rpcrdma_requester *r;
	static struct exchange x[20];

	rig_open(&rig, o);
	rig_connect(&rig, &ro, &r);
	if (later)
		configure_reads(r, later);
	for (uint32_t i = 0; i < 20; i++) {
		exchange_init(&x[i], i, OP_SUM, 1);
		exchange_put(&x[i], 40000);
		x[i].request.nreads = 1;
		x[i].request.read[0].position = DATA_POSITION;
		x[i].request.read[0].mem =
			rpcrdma_memory_at(mem + i * 40000, 40000);
		exchange_start(r, &x[i]);
	}
	for (uint32_t i = 0; i < 20; i++) {
		ck_assert_int_eq(exchange_wait(&x[i]), 0);
		ck_assert_uint_eq(exchange_word(&x[i], 1), 40000);
		ck_assert_uint_eq(exchange_word(&x[i], 2), 40000 * (i + 1));
		exchange_fini(&x[i]);
	}
	rpcrdma_requester_destroy(r);
}

static void fill_mem(void)
{
	for (size_t i = 0; i < sizeof(mem); i++)
		mem[i] = (uint8_t)(i / 40000 + 1);
}

TEST(read_depth_is_kept_and_used)
{
	static const unsigned depths[] = { 1, 2, 16 };
	struct loop_fabric_counts counts;

	rig_on_loop();
	fill_mem();
	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		many_reads(NULL, depths[i], 0);
		loop_fabric_count(&rig.fabric, &counts);
		ck_assert_uint_eq(counts.deepest_reads, depths[i]);
		rig_close(&rig);
	}
}

/* As the peer asks, but at most the connection's own. */
TEST(a_read_depth_that_changes_is_kept_and_used)
{
	static const uint32_t depths[][3] = {
		{ 16, 2, 2 }, { 16, 1, 1 }, { 4, UINT32_MAX, 4 },
	};
	struct loop_fabric_counts counts;

	rig_on_loop();
	fill_mem();
	for (size_t i = 0; i < ARRAY_SIZE(depths); i++) {
		many_reads(NULL, depths[i][0], depths[i][1]);
		loop_fabric_count(&rig.fabric, &counts);
		ck_assert_uint_eq(counts.deepest_reads, depths[i][2]);
		rig_close(&rig);
	}
}

TEST(a_tiny_send_queue_only_makes_chains_wait)
{
	struct loop_fabric_counts counts;

	rig_on_loop();
	fill_mem();
	for (unsigned depth = 1; depth < 40; depth += 6) {
		struct rig_options o = { .rdma.send_queue = depth };

		o.fabric.seed = depth;
		o.async = true;
		many_reads(&o, 16, 0);
		loop_fabric_count(&rig.fabric, &counts);
		ck_assert_uint_le(counts.deepest_queue, MAX(depth, 20u));
		rig_close(&rig);
	}
}

TEST(a_reply_longer_than_the_send_queue_is_cut)
{
	struct rig_options o = { .rdma.send_queue = 5, .rdma.credits = 8 };
	struct rpcrdma_requester_options ro = { .segment_size = 1000,
						.credits = 8 };
	uint64_t before = stat("rdma_chains_parked");
	struct rpcrdma_requester *r;
	static struct exchange x[8];

	rig_open(&rig, &o);
	rig_connect(&rig, &ro, &r);
	for (uint32_t i = 0; i < 8; i++) {
		exchange_init(&x[i], i, OP_READ, 50000);
		x[i].request.nwrites = 1;
		x[i].request.write[0] =
			rpcrdma_memory_at(mem + i * 60000, 60000);
		exchange_start(r, &x[i]);
	}
	for (uint32_t i = 0; i < 8; i++) {
		ck_assert_int_eq(exchange_wait(&x[i]), 0);
		ck_assert_uint_eq(x[i].request.written[0], 50000);
		for (uint32_t b = 0; b < 50000; b++)
			if (mem[i * 60000 + b] != pattern(b))
				ck_abort_msg("byte %u is wrong", b);
		exchange_fini(&x[i]);
	}
	/* Each waited at least once: none has room for all its steps. */
	ck_assert_uint_ge(stat("rdma_chains_parked"), before + 8);
	rpcrdma_requester_destroy(r);
	rig_close(&rig);
}

TEST(long_headers_leave_their_neighbours_alone)
{
	struct rig_options o = { .rdma.send_queue = 1, .async = true,
				 .fabric.seed = 5 };
	struct rpcrdma_requester_options ro = { .segment_size = 100 };
	struct rpcrdma_requester *r;
	static struct exchange x[32];

	rig_open(&rig, &o);
	rig_connect(&rig, &ro, &r);
	for (uint32_t i = 0; i < 32; i++) {
		exchange_init(&x[i], i, OP_READ, 101 | 200u << 24);
		x[i].request.nwrites = 1;
		x[i].request.write[0] =
			rpcrdma_memory_at(mem + i * 10000, 6000);
		exchange_start(r, &x[i]);
	}
	for (uint32_t i = 0; i < 32; i++) {
		ck_assert_int_eq(exchange_wait(&x[i]), 0);
		ck_assert_uint_eq(x[i].request.reply_len, 8 + 201 * 4);
		for (uint32_t n = 2; n < 203; n++)
			ck_assert_uint_eq(exchange_word(&x[i], n), END_WORD);
		exchange_fini(&x[i]);
	}
	rpcrdma_requester_destroy(r);
	rig_close(&rig);
}

/* ---- drain */

TEST(drain_answers_what_was_taken_and_takes_no_more)
{
	struct peer peer, late;

	open_one(NULL, &peer);
	for (uint32_t i = 0; i < 10; i++)
		peer_call(&peer, i, OP_HOLD, 0);
	wait_held(10);
	rig.listener->ops->stop(rig.listener);
	peer_call(&peer, 11, OP_SUM, 0);	/* too late */
	if (!rig.iwarp) {	/* there, TCP refuses it */
		peer_open(&late, &rig, NULL);
		ck_assert_int_eq(peer_wait_down(&late), -ECONNREFUSED);
		peer_close(&late);
	}
	ck_assert_uint_eq(rig.listener->ops->count(rig.listener), 1);
	rig_release(&rig);
	for (uint32_t i = 0; i < 10; i++) {
		peer_take(&peer);
		ck_assert_uint_lt(peer.hdr.xid, 10);
	}
	peer_wait_down(&peer);
	ck_assert_uint_eq(peer.nmsgs, 10);
	ck_assert_uint_eq(rig.taken, 10);
	wait_until(none_left, NULL);
	close_one(&peer);
}

TEST(drain_closes_idle_connections_at_once)
{
	struct peer peer[3];

	rig_open(&rig, NULL);
	for (int i = 0; i < 3; i++) {
		enter(&peer[i]);
	}
	rig.listener->ops->stop(rig.listener);
	rig.listener->ops->stop(rig.listener);
	for (int i = 0; i < 3; i++)
		peer_wait_down(&peer[i]);
	wait_until(none_left, NULL);
	for (int i = 0; i < 3; i++)
		peer_close(&peer[i]);
	rig_close(&rig);
}
