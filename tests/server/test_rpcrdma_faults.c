/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults: every kind of call at once, in adversarial orders, with failures
 * at every step.  Whatever happens, each request ends, each good result is
 * right, and all memory comes back (rig_close() checks that).
 */
#include <errno.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "tests/server/rdma_peer.h"
#include "tests/unit/runner.h"

enum { KINDS = 6, REQUESTS = 48, ROOM = 40000 };

static struct rig rig;
static struct exchange x[REQUESTS];
static uint8_t mem[REQUESTS][ROOM];
static uint8_t reply_mem[REQUESTS][ROOM];

static uint32_t length_of(uint32_t i)
{
	return 1 + i * 577;
}

/* The i-th request; its kind is i % KINDS. */
static void prepare(uint32_t i)
{
	struct rpcrdma_request *q = &x[i].request;
	uint32_t len = length_of(i);

	for (uint32_t b = 0; b < len; b++)
		mem[i][b] = i % KINDS < 3 ? pattern(b) : 0xee;
	switch (i % KINDS) {
	case 0:						/* WRITE-like */
	case 1:						/* a long call */
	case 2:						/* an echo */
		exchange_init(&x[i], i, i % KINDS == 2 ? OP_ECHO : OP_SUM, 1);
		exchange_put(&x[i], len);
		q->nreads = 1;
		q->read[0].position = DATA_POSITION;
		q->read[0].mem = rpcrdma_memory_at(mem[i], len);
		q->long_call = i % KINDS == 1;
		break;
	case 3:						/* READ-like */
		exchange_init(&x[i], i, OP_READ, len);
		q->nwrites = 1;
		q->write[0] = rpcrdma_memory_at(mem[i], ROOM);
		break;
	case 4:						/* READDIR-like */
		exchange_init(&x[i], i, OP_LONG, len);
		break;
	default:					/* GETATTR-like */
		exchange_init(&x[i], i, OP_SUM, 0);
		return;
	}
	q->reply = rpcrdma_memory_at(reply_mem[i], ROOM);
}

static void check_pattern(const uint8_t *data, uint32_t len)
{
	for (uint32_t b = 0; b < len; b++)
		if (data[b] != pattern(b))
			ck_abort_msg("byte %u of %u is wrong", b, len);
}

static uint32_t pattern_sum(uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t b = 0; b < len; b++)
		sum += pattern(b);
	return sum;
}

static void check_result(uint32_t i)
{
	uint32_t len = length_of(i);

	ck_assert_uint_eq(exchange_word(&x[i], 0), i);
	switch (i % KINDS) {
	case 0:
	case 1:
		ck_assert_uint_eq(exchange_word(&x[i], 1), len);
		ck_assert_uint_eq(exchange_word(&x[i], 2), pattern_sum(len));
		break;
	case 3:
		ck_assert_uint_eq(x[i].request.written[0], len);
		check_pattern(mem[i], len);
		break;
	case 2:
	case 4:
		ck_assert_uint_eq(exchange_word(&x[i], 1), len);
		check_pattern(x[i].reply + 8, len);
		break;
	default:
		break;
	}
}

/* All requests on one connection; returns how many succeeded. */
static unsigned run_all(const struct rpcrdma_requester_options *ro,
			bool break_midway)
{
	struct rpcrdma_requester *r;
	unsigned good = 0;

	rig_connect(&rig, ro, &r);
	for (uint32_t i = 0; i < REQUESTS; i++) {
		prepare(i);
		exchange_start(r, &x[i]);
	}
	if (break_midway) {
		exchange_wait(&x[REQUESTS / 4]);
		sem_post(&x[REQUESTS / 4].done);
		rig_break(&rig, r);
	}
	for (uint32_t i = 0; i < REQUESTS; i++) {
		int err = exchange_wait(&x[i]);

		ck_assert(err == 0 || err == -ENOTCONN);
		if (err == 0)
			check_result(i);
		good += err == 0;
		exchange_fini(&x[i]);
	}
	rpcrdma_requester_destroy(r);
	return good;
}

/* Combinations that have found different orders of events. */
static void vary(struct rig_options *o, struct rpcrdma_requester_options *ro,
		 uint32_t seed)
{
	*o = (struct rig_options){
		.fabric.seed = seed,
		.fabric.late_established = seed % 3 == 0 ? 1 : 0,
		.async = seed & 1,
		.one_loop = seed & 2,
		.two_pollers = seed % 3 == 1,
		.rdma.credits = seed % 5 == 0 ? 3 : 0,
		.rdma.first_credits = seed % 4 == 1 ? 2 : 0,
		.rdma.send_queue = seed % 4 == 0 ? 2 + seed % 29 : 0,
		.fabric.passive.max_sge = seed % 7 == 0 ? 1 : 0,
		.fabric.passive.open_sinks = seed % 6 < 3,
	};
	*ro = (struct rpcrdma_requester_options){
		.segment_size = seed % 3 ? 700 + seed * 97 % 9000 : 0,
		.no_private = seed % 8 == 5,
		.read_depth = 1 + seed % 9,
	};
	/* With 1024 bytes only long segments fit. */
	if (ro->no_private || (ro->segment_size && ro->segment_size < 2000))
		ro->segment_size = 2000;
}

TEST_CASE(.timeout = 120);

TEST(every_order_of_completions_gives_the_right_results)
{
	struct rpcrdma_requester_options ro;
	struct loop_fabric_counts counts;
	struct rig_options o;

	for (uint32_t seed = 1; seed <= 40; seed++) {
		vary(&o, &ro, seed);
		rig_open(&rig, &o);
		ck_assert_uint_eq(run_all(&ro, false), REQUESTS);
		rig_count(&rig, &counts);
		ck_assert_uint_eq(counts.rnr, 0);
		ck_assert_uint_eq(counts.too_long, 0);
		ck_assert_uint_eq(counts.refused, 0);
		rig_close(&rig);
	}
}

TEST(a_failure_of_any_operation_ends_in_order)
{
	struct rpcrdma_requester_options ro;
	struct rig_options o;
	unsigned good = 0;

	for (unsigned nth = 1; nth <= 120; nth += nth < 40 ? 1 : 7) {
		vary(&o, &ro, nth);
		o.fabric.fail_nth = nth;
		rig_open(&rig, &o);
		good += run_all(&ro, false);
		/* All others are served, and so is the peer when it comes
		 * back. */
		ck_assert_uint_eq(run_all(&ro, false), REQUESTS);
		rig_close(&rig);
	}
	ck_assert_uint_gt(good, 0);
}

TEST(a_break_before_any_operation_flushes_everything)
{
	struct rpcrdma_requester_options ro;
	struct rig_options o;

	for (unsigned nth = 1; nth <= 120; nth += nth < 40 ? 1 : 7) {
		vary(&o, &ro, nth + 1000);
		o.fabric.break_nth = nth;
		rig_open(&rig, &o);
		run_all(&ro, false);
		ck_assert_uint_eq(run_all(&ro, false), REQUESTS);
		rig_close(&rig);
	}
}

TEST(a_break_at_any_time_flushes_everything)
{
	struct rpcrdma_requester_options ro;
	struct rig_options o;

	for (uint32_t seed = 1; seed <= 30; seed++) {
		vary(&o, &ro, seed * 31);
		rig_open(&rig, &o);
		run_all(&ro, true);
		ck_assert_uint_eq(run_all(&ro, false), REQUESTS);
		rig_close(&rig);
	}
}

TEST(a_break_while_calls_are_held_loses_only_replies)
{
	struct rpcrdma_requester *r;

	rig_on_loop();
	for (int async = 0; async < 2; async++) {
		struct rig_options o = { .async = async };

		rig_open(&rig, &o);
		rig_connect(&rig, NULL, &r);
		/* The first reply brings more than one credit. */
		exchange_init(&x[0], 1, OP_SUM, 0);
		exchange_start(r, &x[0]);
		ck_assert_int_eq(exchange_wait(&x[0]), 0);
		exchange_fini(&x[0]);
		for (uint32_t i = 0; i < 10; i++) {
			exchange_init(&x[i], i, OP_HOLD, 0);
			exchange_start(r, &x[i]);
		}
		while (rig_held(&rig) < 10)
			sched_yield();
		loop_fabric_break(&rig.fabric);
		for (uint32_t i = 0; i < 10; i++) {
			ck_assert_int_eq(exchange_wait(&x[i]), -ENOTCONN);
			exchange_fini(&x[i]);
		}
		rpcrdma_requester_destroy(r);
		rig_release(&rig);
		rig_close(&rig);
	}
}

static void *free_listener(void *arg)
{
	rig.listener->ops->free(rig.listener);
	return NULL;
}

TEST(freeing_the_listener_waits_for_calls_that_are_held)
{
	struct rpcrdma_requester *r;
	pthread_t thread;

	rig_open(&rig, NULL);
	rig_connect(&rig, NULL, &r);
	exchange_init(&x[0], 1, OP_HOLD, 0);
	exchange_start(r, &x[0]);
	while (rig_held(&rig) < 1)
		sched_yield();
	ck_assert_int_eq(pthread_create(&thread, NULL, free_listener, NULL),
			 0);
	ck_assert_int_eq(exchange_wait(&x[0]), -ENOTCONN);
	exchange_fini(&x[0]);
	rig_release(&rig);
	pthread_join(thread, NULL);
	rpcrdma_requester_destroy(r);
	rig.listener = NULL;
	rig_close(&rig);
}

/* A segment in memory that the peer does not have. */
static void put_nowhere(struct peer *peer, uint32_t len)
{
	peer_put(peer, 0xbad);
	peer_put(peer, len);
	peer_put_zeros(peer, 2);
}

enum bad_chunk { BAD_READ, BAD_WRITE, BAD_REPLY };

static uint32_t bad_len = 5000;

static void put_bad_call(struct peer *peer, enum bad_chunk kind)
{
	peer_begin(peer, 9, 1, RPCRDMA_MSG);
	if (kind == BAD_READ) {
		peer_put(peer, 1);
		peer_put(peer, DATA_POSITION);
		put_nowhere(peer, bad_len);
		peer_put_zeros(peer, 3);
		peer_put_call(peer, 9, OP_SUM, 1);
		peer_put(peer, bad_len);
		return;
	}
	peer_put_zeros(peer, kind == BAD_WRITE ? 1 : 2);
	peer_put(peer, 1);
	peer_put(peer, 1);
	put_nowhere(peer, 6000);
	peer_put_zeros(peer, kind == BAD_WRITE ? 2 : 0);
	peer_put_call(peer, 9, kind == BAD_WRITE ? OP_READ : OP_LONG, bad_len);
}

/* On a separate connection. */
static void send_in_vain(enum bad_chunk kind, bool answered)
{
	struct peer peer;

	peer_open(&peer, &rig, NULL);
	peer_wait_up(&peer);
	put_bad_call(&peer, kind);
	peer_send(&peer);
	if (answered) {
		peer_take_error(&peer, 9, RPCRDMA_ERR_CHUNK);
		peer_check_alive(&peer);
	} else {
		peer_wait_down(&peer);
	}
	peer_close(&peer);
}

/* RFC 8166 section 4.5.3.  iWARP names no call: a frame that was damaged on its
 * way looks the same. */
TEST_LOOP(a_call_that_cost_its_connection_is_refused, BAD_READ, BAD_REPLY + 1)
{
	rig_open(&rig, NULL);
	for (int round = 0; round < 2; round++) {
		send_in_vain(_i, false);
		send_in_vain(_i, !rig.iwarp);
	}
	rig_close(&rig);
}

/* Each caller chooses its xids, and a host can have many clients. */
TEST_LOOP(another_call_of_that_host_with_its_xid_is_carried_out, BAD_READ,
	  BAD_REPLY + 1)
{
	struct peer peer;

	rig_open(&rig, NULL);
	send_in_vain(_i, false);
	peer_open(&peer, &rig, NULL);
	peer_wait_up(&peer);
	peer_call(&peer, 9, OP_ECHO, 0);
	peer_take(&peer);
	ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_MSG);
	peer_close(&peer);
	/* Its chunks are also its own fault. */
	bad_len++;
	send_in_vain(_i, false);
	bad_len--;
	send_in_vain(_i, !rig.iwarp);
	rig_close(&rig);
}

TEST(a_message_that_is_no_call_ends_the_connection)
{
	struct rpcrdma_requester *r;

	rig_open(&rig, NULL);
	rig_connect(&rig, NULL, &r);
	exchange_init(&x[0], 1, OP_REJECT, 0);
	exchange_start(r, &x[0]);
	ck_assert_int_eq(exchange_wait(&x[0]), -ENOTCONN);
	exchange_fini(&x[0]);
	rpcrdma_requester_destroy(r);
	rig_close(&rig);
	ck_assert_uint_eq(stats_sum_by_name("rdma_no_calls"), 1);
}

TEST(calls_that_are_dropped_give_everything_back)
{
	struct rpcrdma_requester *r;

	rig_open(&rig, NULL);
	rig_connect(&rig, NULL, &r);
	exchange_init(&x[0], 1, OP_DROP, 0);
	exchange_start(r, &x[0]);
	while (atomic_load(&rig.taken) < 1)
		sched_yield();
	rpcrdma_requester_close(r);
	ck_assert_int_eq(exchange_wait(&x[0]), -ENOTCONN);
	exchange_fini(&x[0]);
	rpcrdma_requester_destroy(r);
	rig_close(&rig);
}

int main(void)
{
	log_threshold = LOG_LEVEL_ERR;
	return run_tests();
}
