/* SPDX-License-Identifier: BSD-2-Clause */
/* The Read-Read transfer model (RFC 5666 section 3.8): replies that lie in the
 * responder's memory, and the requester that reads them. */
#include <errno.h>
#include <string.h>

#include "lib/stats.h"
#include "tests/server/rdma_peer.h"
#include "tests/unit/runner.h"
#include "transport/rpcrdma/conn.h"
#include "transport/rpcrdma/device.h"

enum { MIB = 1 << 20, LONG = 100001, CREDITS = 4 };

static struct rig rig;
static struct peer peer;
static uint8_t mem[MIB + 4096];
static struct fabric_mr *sink;

#define stat stats_sum_by_name

/* Counters, and how far they have come. */
static uint64_t base[3];
static const char *const counters[] = {
	"rdma_exposed", "rdma_done_taken", "rdma_expose_late",
};

static uint64_t since(unsigned i)
{
	return stat(counters[i]) - base[i];
}

static bool no_buffer_is_out(void *arg)
{
	size_t taken, out;

	pool_usage(rig.pool, &taken, &out);
	return out == 0;
}

static const struct rig_options on = {
	.rdma.read_read = true, .rdma.credits = CREDITS,
};

static void open_rig(const struct rig_options *o)
{
	for (unsigned i = 0; i < ARRAY_SIZE(counters); i++)
		base[i] = stat(counters[i]);
	rig_open(&rig, o);
}

static void open_all(const struct rig_options *o)
{
	open_rig(o);
	peer_open(&peer, &rig, NULL);
	peer_wait_up(&peer);
	sink = peer_register(&peer, mem, sizeof(mem), FABRIC_READ_SINK);
}

static void close_all(void)
{
	fabric_mr_destroy(sink);
	peer_close(&peer);
	rig_close(&rig);
}

/* ---- a peer of the responder */

/* Asks for a reply of LONG bytes and more, and takes its header. */
static void ask(uint32_t xid, uint32_t op)
{
	peer_call(&peer, xid, op, LONG);
	peer_take(&peer);
	ck_assert_uint_eq(peer.hdr.xid, xid);
}

static void ask_exposed(uint32_t xid, uint32_t op)
{
	ask(xid, op);
	ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_NOMSG);
	ck_assert_uint_eq(peer.hdr.nreads, 1);
	ck_assert_uint_eq(peer.hdr.read[0].position, 0);
	ck_assert_uint_eq(peer.hdr.nwrites, 0);
	ck_assert(!peer.hdr.has_reply);
	ck_assert_uint_eq(peer.msg.len, peer.hdr.len);
}

static void done(uint32_t xid)
{
	peer_begin(&peer, xid, 1, RPCRDMA_DONE);
	peer_send(&peer);
}

struct access {
	struct fabric_op op;
	sem_t done;
	int status;
};

static void access_done(struct fabric_op *op, int status, uint32_t len)
{
	struct access *a = container_of(op, struct access, op);

	a->status = status;
	sem_post(&a->done);
}

/* One Read, or Write, of the responder's memory; its status. */
static int reach(struct peer *p, enum fabric_opcode opcode,
		 struct rpcrdma_segment seg, uint8_t *at)
{
	struct access a = { .op.done = access_done };
	struct fabric_sge sge = { at, seg.length, sink->lkey };
	struct fabric_wr wr = {
		.opcode = opcode, .op = &a.op, .sge = &sge, .nsge = 1,
		.handle = seg.handle, .offset = seg.offset,
	};

	sem_init(&a.done, 0, 0);
	ck_assert_int_eq(fabric_post(p->fc, &wr), 0);
	wait_sem(&a.done);
	sem_destroy(&a.done);
	return a.status;
}

/* A Send With Invalidate, of no bytes.  It can complete before it is
 * refused. */
static void invalidate(struct peer *p, uint32_t handle)
{
	struct access a = { .op.done = access_done };
	struct fabric_wr wr = {
		.opcode = FABRIC_SEND_INV, .op = &a.op, .invalidate = handle,
	};

	sem_init(&a.done, 0, 0);
	ck_assert_int_eq(fabric_post(p->fc, &wr), 0);
	wait_sem(&a.done);
	sem_destroy(&a.done);
}

/* Reads the reply into mem, and returns its length. */
static uint32_t read_all(void)
{
	struct rpcrdma_segment seg;
	uint32_t at = 0;

	for (uint32_t i = 0; i < peer.hdr.read[0].nsegs; i++) {
		seg = rpcrdma_chunk_segment(&peer.hdr.read[0], i);
		ck_assert_int_eq(reach(&peer, FABRIC_READ, seg, mem + at), 0);
		at += seg.length;
	}
	return at;
}

static uint32_t word_at(uint32_t at)
{
	uint32_t word;

	memcpy(&word, mem + at, 4);
	return be32toh(word);
}

static bool is_pattern(const uint8_t *at, uint32_t len)
{
	for (uint32_t i = 0; i < len; i++)
		if (at[i] != pattern(i))
			return false;
	return true;
}

TEST_CASE(.timeout = 30);

TEST(a_long_reply_is_read_from_the_responders_memory)
{
	static const uint32_t ops[] = { OP_LONG, OP_READ };
	uint32_t len;

	open_all(&on);
	for (uint32_t i = 0; i < 2; i++) {
		ask_exposed(5 + i, ops[i]);
		len = read_all();
		/* The xid, the length, the data with its pad, END_WORD. */
		ck_assert_uint_eq(len, 8 + LONG + 3 + 4 * i);
		ck_assert_uint_eq(word_at(0), 5 + i);
		ck_assert_uint_eq(word_at(4), LONG);
		ck_assert(is_pattern(mem + 8, LONG));
		if (i)
			ck_assert_uint_eq(word_at(len - 4), END_WORD);
		done(5 + i);
	}
	peer_check_alive(&peer);
	ck_assert_uint_eq(since(0), 2);
	ck_assert_uint_eq(since(1), 2);
	close_all();
}

TEST(rdma_done_gives_the_memory_back_and_closes_it)
{
	struct rpcrdma_segment seg;

	open_all(&on);
	ask_exposed(5, OP_LONG);
	seg = rpcrdma_chunk_segment(&peer.hdr.read[0], 1);
	ck_assert_uint_eq(seg.length, LONG);
	ck_assert_int_eq(reach(&peer, FABRIC_READ, seg, mem), 0);
	ck_assert(!no_buffer_is_out(NULL));
	done(5);
	peer_check_alive(&peer);
	ck_assert(no_buffer_is_out(NULL));
	ck_assert_int_lt(reach(&peer, FABRIC_READ, seg, mem), 0);
	peer_wait_down(&peer);
	close_all();
}

TEST(an_exposed_reply_can_not_be_written)
{
	open_all(&on);
	ask_exposed(5, OP_LONG);
	/* A Write can complete before it is refused. */
	reach(&peer, FABRIC_WRITE,
	      rpcrdma_chunk_segment(&peer.hdr.read[0], 0), mem);
	peer_wait_down(&peer);
	close_all();
}

TEST(no_byte_beside_the_reply_can_be_read)
{
	struct rpcrdma_segment seg;

	for (int i = 0; i < 2; i++) {
		open_all(&on);
		ask_exposed(5, OP_LONG);
		seg = rpcrdma_chunk_segment(&peer.hdr.read[0], 1);
		if (i)
			seg.offset--;
		else
			seg.length++;
		ck_assert_int_lt(reach(&peer, FABRIC_READ, seg, mem), 0);
		peer_wait_down(&peer);
		close_all();
	}
}

TEST(no_other_connection_can_read_a_reply)
{
	struct rpcrdma_segment seg;
	static struct peer other;

	open_all(&on);
	ask_exposed(5, OP_LONG);
	seg = rpcrdma_chunk_segment(&peer.hdr.read[0], 1);
	peer_open(&other, &rig, NULL);
	peer_wait_up(&other);
	ck_assert_int_lt(reach(&other, FABRIC_READ, seg, mem), 0);
	peer_wait_down(&other);
	peer_close(&other);
	peer_open(&other, &rig, NULL);
	peer_wait_up(&other);
	invalidate(&other, seg.handle);
	peer_wait_down(&other);
	peer_close(&other);
	ck_assert_uint_eq(read_all(), 8 + LONG + 3);
	close_all();
}

TEST(each_reply_has_handles_of_its_own)
{
	uint32_t seen[3 * CREDITS], n = 0;
	struct rpcrdma_chunk *chunk = &peer.hdr.read[0];

	open_all(&on);
	for (uint32_t xid = 1; xid <= CREDITS; xid++) {
		ask_exposed(xid, OP_LONG);
		for (uint32_t i = 0; i < chunk->nsegs; i++, n++) {
			seen[n] = rpcrdma_chunk_segment(chunk, i).handle;
			for (uint32_t k = 0; k < n; k++)
				ck_assert_uint_ne(seen[k], seen[n]);
		}
	}
	ck_assert_uint_eq(n, 3 * CREDITS);
	for (uint32_t xid = 1; xid <= CREDITS; xid++)
		done(xid);
	peer_check_alive(&peer);
	close_all();
}

TEST(rdma_done_waits_for_no_credit_and_takes_none)
{
	open_all(&on);
	for (uint32_t round = 0; round < 3; round++) {
		for (uint32_t i = 0; i < CREDITS; i++)
			ask_exposed(10 * round + i, OP_LONG);
		/* No call has a place now: this one waits for an RDMA_DONE. */
		peer_call(&peer, 77, OP_SUM, 0);
		for (uint32_t i = 0; i < CREDITS; i++)
			done(10 * round + i);
		peer_take(&peer);
		ck_assert_uint_eq(peer.hdr.xid, 77);
	}
	peer_check_alive(&peer);
	ck_assert_uint_eq(since(1), 3 * CREDITS);
	close_all();
}

static sem_t stalled, go_on;

static void stall(struct loop_task *t)
{
	sem_post(&stalled);
	wait_sem(&go_on);
}

/* Each has a Receive that is posted before it comes. */
TEST(calls_and_rdma_dones_may_come_all_at_once)
{
	struct loop_task task;

	sem_init(&stalled, 0, 0);
	sem_init(&go_on, 0, 0);
	open_all(&on);
	for (uint32_t i = 0; i < CREDITS - 1; i++)
		ask_exposed(i, OP_LONG);
	/* Their Receives come back, and need not be posted at once. */
	for (uint32_t i = 0; i <= CREDITS; i++)
		peer_check_alive(&peer);
	loop_post(rig.server, &task, stall);
	wait_sem(&stalled);
	for (uint32_t i = 0; i < CREDITS - 1; i++)
		done(i);
	for (uint32_t i = 0; i < CREDITS; i++)
		peer_call(&peer, 70 + i, OP_SUM, 0);
	sem_post(&go_on);
	for (uint32_t i = 0; i < CREDITS; i++)
		peer_take(&peer);
	ck_assert_uint_eq(since(1), CREDITS - 1);
	close_all();
	sem_destroy(&go_on);
	sem_destroy(&stalled);
}

TEST(rdma_done_for_nothing_is_counted_and_costs_nothing)
{
	uint64_t before = stat("rdma_done_unknown");

	open_all(&on);
	ask_exposed(5, OP_LONG);
	for (uint32_t i = 0; i < 50; i++) {
		done(100 + i);
		peer_check_alive(&peer);
	}
	ck_assert_uint_eq(stat("rdma_done_unknown"), before + 50);
	ck_assert(!no_buffer_is_out(NULL));
	done(5);
	done(5);
	peer_check_alive(&peer);
	ck_assert_uint_eq(since(1), 1);
	ck_assert_uint_eq(stat("rdma_done_unknown"), before + 51);
	close_all();
}

/* RFC 5666 has nothing behind the procedure; RFC 8166 no so short message. */
TEST(rdma_done_may_have_empty_lists)
{
	open_all(&on);
	ask_exposed(5, OP_LONG);
	peer_begin(&peer, 5, 1, RPCRDMA_DONE);
	peer_put_zeros(&peer, 3);
	peer_send(&peer);
	peer_check_alive(&peer);
	ck_assert(no_buffer_is_out(NULL));
	close_all();
}

static bool all_late(void *arg)
{
	return since(2) == CREDITS;
}

TEST(a_reply_that_nobody_fetches_is_taken_back)
{
	struct rig_options o = on;
	uint64_t before = stat("rdma_done_late");

	o.rdma.expose_ms = 50;
	open_all(&o);
	for (uint32_t i = 0; i < CREDITS; i++)
		ask_exposed(i, OP_LONG);
	wait_until(all_late, NULL);
	wait_until(no_buffer_is_out, NULL);
	/* The peer can owe one RDMA_DONE for each Receive. */
	ask(CREDITS, OP_LONG);
	ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_ERROR);
	for (uint32_t i = 0; i < CREDITS; i++)
		done(i);
	peer_check_alive(&peer);
	ck_assert_uint_eq(stat("rdma_done_late"), before + CREDITS);
	ask_exposed(CREDITS, OP_LONG);
	close_all();
}

TEST(the_end_of_the_connection_takes_everything_back)
{
	open_all(&on);
	for (uint32_t i = 0; i < CREDITS; i++)
		ask_exposed(i, OP_LONG);
	fabric_close(peer.fc);
	peer_wait_down(&peer);
	wait_until(no_buffer_is_out, NULL);
	ck_assert_uint_eq(since(1) + since(2), 0);
	close_all();
}

TEST(a_listener_that_stops_waits_for_what_is_still_to_be_read)
{
	open_all(&on);
	ask_exposed(5, OP_LONG);
	rig.listener->ops->stop(rig.listener);
	ck_assert_uint_eq(read_all(), 8 + LONG + 3);
	done(5);
	peer_wait_down(&peer);
	close_all();
}

static bool one_late(void *arg)
{
	return since(2) == 1;
}

TEST(a_stopped_listener_takes_back_what_nobody_reads)
{
	struct rig_options o = on;

	o.rdma.expose_ms = 50;
	open_all(&o);
	ask_exposed(5, OP_LONG);
	rig.listener->ops->stop(rig.listener);
	peer_wait_down(&peer);
	/* Counted, perhaps after the connection's end. */
	wait_until(one_late, NULL);
	ck_assert(no_buffer_is_out(NULL));
	close_all();
}

TEST(no_more_bytes_are_exposed_than_may_be)
{
	struct rig_options o = on;
	uint64_t before = stat("rdma_expose_refused");

	o.rdma.expose_bytes = 2 * LONG + 100;
	open_all(&o);
	ask_exposed(1, OP_LONG);
	ask_exposed(2, OP_LONG);
	ask(3, OP_LONG);
	ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_ERROR);
	ck_assert_uint_eq(peer.hdr.err, RPCRDMA_ERR_CHUNK);
	ck_assert_uint_eq(stat("rdma_expose_refused"), before + 1);
	done(1);
	ask_exposed(4, OP_LONG);
	done(2);
	done(4);
	peer_check_alive(&peer);
	close_all();
}

/* Also where the reply would fit nowhere else. */
TEST(a_call_with_a_write_or_reply_chunk_gets_no_read_chunk)
{
	struct fabric_mr *mr;

	open_all(&on);
	mr = peer_register(&peer, mem, 64, FABRIC_REMOTE_WRITE);
	for (int i = 0; i < 2; i++) {
		peer_begin(&peer, 9, 1, RPCRDMA_MSG);
		peer_put(&peer, 0);
		if (i)
			peer_put(&peer, 0);
		peer_put_chunk(&peer, mr, 64);
		if (!i)
			peer_put_zeros(&peer, 2);
		peer_put_call(&peer, 9, OP_LONG, LONG);
		peer_send(&peer);
		peer_take_error(&peer, 9, RPCRDMA_ERR_CHUNK);
	}
	ck_assert_uint_eq(since(0), 0);
	fabric_mr_destroy(mr);
	close_all();
}

/* ---- a device that makes one registration, and does not end it */

static const struct fabric_ops *real;
static struct fabric_ops stuck;
static unsigned nmade, nstuck;			/* the loop's */

static int make_one(struct fabric_device *dev, void *addr, size_t len,
		    unsigned access, struct fabric_mr **out)
{
	return nmade++ == 0 ? real->mr_create(dev, addr, len, access, out) :
			      -ENOMEM;
}

static int end_none(struct fabric_mr *mr)
{
	nstuck++;
	real->mr_destroy(mr);
	return -EBUSY;
}

static void make_stuck(void *arg)
{
	struct fabric_device *dev = arg;

	real = dev->ops;
	stuck = *real;
	stuck.mr_create = make_one;
	stuck.mr_destroy = end_none;
	dev->ops = &stuck;
}

static void make_well(void *arg)
{
	struct fabric_device *dev = arg;

	dev->ops = real;
}

TEST(a_part_of_a_reply_that_can_not_be_taken_back_ends_the_connection)
{
	struct fabric_device *dev;

	rig_on_loop();
	open_all(&on);
	peer_call(&peer, 1, OP_KEEP, 0);
	peer_take(&peer);
	dev = rpcrdma_conn_of(rig.xprt)->device->dev;
	loop_call(rig.server, make_stuck, dev);
	peer_call(&peer, 2, OP_LONG, LONG);
	peer_wait_down(&peer);
	loop_call(rig.server, make_well, dev);
	ck_assert_uint_eq(nstuck, 1);
	close_all();
}

TEST(nothing_is_exposed_unless_it_was_asked_for)
{
	open_all(NULL);
	ask(5, OP_LONG);
	ck_assert_uint_eq(peer.hdr.proc, RPCRDMA_ERROR);
	/* iWARP can begin with an empty Read. */
	ck_assert_uint_le(peer.fc->info.read_depth, rig.iwarp);
	ck_assert_uint_eq(since(0), 0);
	close_all();
}
