/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Read-Read transfer model (RFC 5666 section 3.8), the requester's side,
 * with the responder.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "tools/rpcrdma/client.h"
#include "lib/stats.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

enum { MIB = 1 << 20, LONG = 100001, NMANY = 150, SMALL = 20000 };

static struct rig rig;
static struct rpcrdma_requester *requester;
static const struct rpcrdma_requester_options reads = { .read_read = true };
static uint8_t mem[MIB + 4096];

#define stat stats_sum_by_name

static void open_both(const struct rig_options *o,
		      const struct rpcrdma_requester_options *ro)
{
	static const struct rig_options on = { .rdma.read_read = true };

	rig_open(&rig, o ? o : &on);
	rig_connect(&rig, ro ? ro : &reads, &requester);
}

static void close_both(void)
{
	rpcrdma_requester_destroy(requester);
	rig_close(&rig);
}

static void start(struct exchange *x, uint32_t xid, uint32_t op, uint32_t len,
		  struct rpcrdma_memory room)
{
	exchange_init(x, xid, op, len);
	x->request.reply = room;
	exchange_start(requester, x);
}

static bool is_pattern(const uint8_t *at, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (at[i] != pattern(i))
			return false;
	return true;
}

/* Checks a reply of @len bytes, to OP_LONG or OP_READ. */
static void check(const struct exchange *x, uint32_t len)
{
	ck_assert_int_eq(x->request.status, 0);
	ck_assert_uint_eq(exchange_word(x, 1), len);
	ck_assert(is_pattern(x->reply + 8, len));
}

static void learn(void *arg)
{
	rpcrdma_requester_info(requester, arg);
}

static unsigned fetched(void)
{
	struct rpcrdma_requester_info info;

	loop_call(rig.client, learn, &info);
	return info.fetched;
}

static bool no_buffer_is_out(void *arg)
{
	size_t taken, out;

	pool_usage(rig.pool, &taken, &out);
	return out == 0;
}

TEST_CASE(.timeout = 60);

TEST(long_replies_are_read_and_acknowledged)
{
	static const uint32_t lens[] = { 10, 4000, 4060, 4064, 4100, LONG,
					 MIB };
	uint64_t exposed = stat("rdma_exposed");
	uint64_t done = stat("rdma_done_taken");
	struct exchange x;
	unsigned n = 0;

	open_both(NULL, NULL);
	for (uint32_t i = 0; i < ARRAY_SIZE(lens); i++) {
		start(&x, 7 + i, i % 2 ? OP_LONG : OP_READ, lens[i],
		      rpcrdma_memory_at(mem, sizeof(mem)));
		ck_assert_int_eq(exchange_wait(&x), 0);
		check(&x, lens[i]);
		n += x.request.nomsg;
		exchange_fini(&x);
	}
	ck_assert_uint_ge(n, 3);
	ck_assert_uint_eq(fetched(), n);
	ck_assert_uint_eq(stat("rdma_exposed"), exposed + n);
	EVENTUALLY(stat("rdma_done_taken") == done + n);
	wait_until(no_buffer_is_out, NULL);
	close_both();
}

/* Many at once, with few credits, read depth and room in the queue. */
static void many(const struct rig_options *o,
		 const struct rpcrdma_requester_options *ro)
{
	static struct exchange x[NMANY];
	static uint8_t rooms[NMANY][SMALL + 100];
	uint64_t refused = stat("rdma_expose_refused");

	open_both(o, ro);
	for (uint32_t i = 0; i < NMANY; i++)
		start(&x[i], i, i % 3 ? OP_LONG : OP_READ,
		      (i * 997) % SMALL + 1,
		      rpcrdma_memory_at(rooms[i], sizeof(rooms[i])));
	for (uint32_t i = 0; i < NMANY; i++) {
		exchange_wait(&x[i]);
		check(&x[i], (i * 997) % SMALL + 1);
		exchange_fini(&x[i]);
	}
	ck_assert_uint_gt(fetched(), NMANY / 2);
	ck_assert_uint_eq(stat("rdma_expose_refused"), refused);
	wait_until(no_buffer_is_out, NULL);
	close_both();
}

TEST(many_replies_are_read_at_once)
{
	struct rig_options o = { .rdma.read_read = true };
	struct rpcrdma_requester_options ro = reads;

	many(&o, &ro);
	o.async = true;
	o.rdma.credits = 3;
	many(&o, &ro);
	ro.credits = 2;
	many(&o, &ro);
}

TEST(no_more_reads_are_in_flight_than_the_responder_allows)
{
	struct rig_options o = { .rdma.read_read = true };
	struct loop_fabric_counts counts;
	struct exchange x[8];

	rig_on_loop();
	o.fabric.active.max_read_depth = 2;
	open_both(&o, NULL);
	for (uint32_t i = 0; i < 8; i++)
		start(&x[i], i, OP_LONG, 5000 + i,
		      rpcrdma_memory_at(mem + 10000 * i, 10000));
	for (uint32_t i = 0; i < 8; i++) {
		exchange_wait(&x[i]);
		check(&x[i], 5000 + i);
		exchange_fini(&x[i]);
	}
	rig_count(&rig, &counts);
	ck_assert_uint_le(counts.deepest_reads, 2);
	close_both();
}

TEST_LOOP(completions_may_come_late_and_interleaved, 1, 9)
{
	struct rig_options o = { .rdma.read_read = true, .async = true };

	rig_on_loop();
	o.fabric.seed = (uint32_t)_i;
	o.rdma.credits = (unsigned)_i;
	o.fabric.passive.open_sinks = _i % 2;
	many(&o, NULL);
}

TEST(a_reply_longer_than_its_place_fails_the_call_alone)
{
	uint64_t done = stat("rdma_done_taken");
	struct exchange x;

	open_both(NULL, NULL);
	for (uint32_t room = 0; room < 3; room++) {
		start(&x, 3, OP_LONG, LONG, rpcrdma_memory_at(mem,
			room == 2 ? LONG + 11 : room));
		ck_assert_int_eq(exchange_wait(&x), room == 2 ? 0 : -EMSGSIZE);
		exchange_fini(&x);
	}
	ck_assert_uint_eq(fetched(), 1);
	EVENTUALLY(stat("rdma_done_taken") == done + 3);
	wait_until(no_buffer_is_out, NULL);
	close_both();
}

TEST(a_responder_without_the_model_refuses_the_call)
{
	static const struct rig_options off;
	struct exchange x;

	open_both(&off, NULL);
	start(&x, 3, OP_LONG, LONG, rpcrdma_memory_at(mem, MIB));
	ck_assert_int_eq(exchange_wait(&x), -EREMOTEIO);
	ck_assert_uint_eq(x.request.errcode, RPCRDMA_ERR_CHUNK);
	exchange_fini(&x);
	close_both();
}

TEST(a_requester_without_the_model_gets_its_reply_chunk)
{
	static const struct rpcrdma_requester_options plain;
	uint64_t exposed = stat("rdma_exposed");
	struct exchange x;

	open_both(NULL, &plain);
	start(&x, 3, OP_LONG, LONG, rpcrdma_memory_at(mem, MIB));
	ck_assert_int_eq(exchange_wait(&x), 0);
	check(&x, LONG);
	ck_assert_uint_eq(stat("rdma_exposed"), exposed);
	exchange_fini(&x);
	/* And knows no Read chunks of replies. */
	start(&x, 4, OP_LONG, LONG, rpcrdma_memory_at(NULL, 0));
	ck_assert_int_eq(exchange_wait(&x), -EIO);
	exchange_fini(&x);
	close_both();
}

/* ---- the library */

struct one {
	struct gannet_rpcrdma_call call;
	sem_t	 done;
	uint32_t words[3];
	bool	 good;
	uint8_t	 room[SMALL + 100];
};

static void one_done(struct gannet_rpcrdma_call *call)
{
	struct one *o = container_of(call, struct one, call);
	const uint8_t *reply = call->reply;

	o->good = call->status == 0 && call->reply_len == SMALL + 8 &&
		  is_pattern(reply + 8, SMALL);
	sem_post(&o->done);
}

static void one_start(struct gannet_rpcrdma *c, struct one *o)
{
	memset(o, 0, sizeof(*o));
	sem_init(&o->done, 0, 0);
	o->words[0] = htonl(gannet_rpcrdma_xid(c));
	o->words[1] = htonl(OP_LONG);
	o->words[2] = htonl(SMALL);
	o->call.size = sizeof(o->call);
	o->call.msg = o->words;
	o->call.msg_len = sizeof(o->words);
	o->call.reply_mem.addr = o->room;
	o->call.reply_mem.len = sizeof(o->room);
	o->call.done = one_done;
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o->call), 0);
}

TEST(cuts_while_replies_are_read_lose_no_call)
{
	const struct rig_options ro = { .rdma.read_read = true, .async = true };
	const struct gannet_rpcrdma_options co = {
		.size = sizeof(co),
		.flags = GANNET_RPCRDMA_READ_READ, .resends = 1000,
		.reconnects = 1000,
	};
	static struct one one[40];
	struct gannet_rpcrdma *c;

	rig_on_loop();
	rig_open(&rig, &ro);
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, &co, &c), 0);
	for (int round = 0; round < 10; round++) {
		for (size_t i = 0; i < ARRAY_SIZE(one); i++)
			one_start(c, &one[i]);
		wait_sem(&one[2 * round].done);
		sem_post(&one[2 * round].done);
		loop_fabric_break(&rig.fabric);
		for (size_t i = 0; i < ARRAY_SIZE(one); i++) {
			wait_sem(&one[i].done);
			ck_assert_int_eq(one[i].call.status, 0);
			ck_assert(one[i].good);
			sem_destroy(&one[i].done);
		}
	}
	gannet_rpcrdma_close(c);
	rig_close(&rig);
}
