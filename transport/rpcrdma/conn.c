/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * conn - a connection: its memory, its state, and its end.
 *
 * Ownership: counted.  The fabric's side holds one reference until closed();
 * each call in use and the pump's task hold one each.  The last put, on any
 * thread, sends the connection to its loop to be freed.
 *
 * Errors: every error starts an asynchronous close.
 */
#include "transport/rpcrdma/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/rpcrdma/call.h"
#include "transport/rpcrdma/listen.h"

STAT(rdma_closes, "connections closed from this side");
STAT(rdma_closed_by_peer, "connections that their peers closed");
STAT(rdma_errors, "connections that ended with an error");
STAT(rdma_idle_closed, "idle connections closed");
STAT(rdma_no_calls, "connections closed because a message was not a call");
STAT(rdma_stalled, "connections closed because nothing completed");

/* With the lock.  The only place where the state changes. */
static void set_state(struct rpcrdma_conn *conn, enum rpcrdma_state state)
{
	static const uint8_t from[] = {
		[CONN_LIVE] = 1 << CONN_ACCEPTING,
		[CONN_CLOSING] = 1 << CONN_ACCEPTING | 1 << CONN_LIVE,
		[CONN_DRAINED] = 1 << CONN_CLOSING,
	};

	assert(from[state] & 1 << conn->state);
	conn->state = state;
}

bool rpcrdma_conn_is_live(struct rpcrdma_conn *conn)
{
	bool live;

	mutex_lock(&conn->lock);
	live = conn->state == CONN_LIVE;
	mutex_unlock(&conn->lock);
	return live;
}

void rpcrdma_conn_close(struct rpcrdma_conn *conn, int err)
{
	bool started = false;

	mutex_lock(&conn->lock);
	if (conn->state < CONN_CLOSING) {
		set_state(conn, CONN_CLOSING);
		started = conn->started;
	}
	mutex_unlock(&conn->lock);
	if (!started)
		return;
	if (err < 0)
		log_limited(LOG_LEVEL_DEBUG, "%s: closing: %s",
			    conn->xprt.name, strerror(-err));
	fabric_close(conn->fc);
}

void rpcrdma_conn_drain(struct rpcrdma_conn *conn)
{
	bool idle;

	mutex_lock(&conn->lock);
	conn->draining = true;
	idle = conn->busy_calls == 0;
	mutex_unlock(&conn->lock);
	if (idle)
		rpcrdma_conn_close(conn, 0);
}

static bool stalled(struct rpcrdma_conn *conn, uint64_t now)
{
	const struct rpcrdma_options *o = &conn->listener->options;
	uint64_t done;
	bool busy = rpcrdma_sq_busy(&conn->sq, &done);
	unsigned held = MAX(atomic_load(&conn->unanswered), 1u);

	return watchdog_stalled(&conn->stalled, now, done, busy,
				o->stall_ms) ||
	       watchdog_slow(&conn->slow, now, done,
			     busy && pool_is_short(conn->xprt.pool) ? held : 0,
			     o->short_ms);
}

void rpcrdma_conn_sweep(struct rpcrdma_conn *conn)
{
	uint64_t now = loop_now(conn->listener->env.loops[0]);
	uint32_t idle_ms = conn->listener->options.idle_ms;
	bool live, busy;

	mutex_lock(&conn->lock);
	live = conn->state == CONN_LIVE;
	busy = conn->busy_calls > 0;
	mutex_unlock(&conn->lock);
	if (!live)
		return;
	if (stalled(conn, now)) {
		stat_inc(rdma_stalled);
		log_limited(LOG_LEVEL_INFO, "%s: closing: nothing completes",
			    conn->xprt.name);
		rpcrdma_conn_close(conn, -ETIMEDOUT);
	} else if (busy) {
		atomic_store(&conn->active, now);
	} else if (loop_passed(now, atomic_load(&conn->active), idle_ms)) {
		stat_inc(rdma_idle_closed);
		rpcrdma_conn_close(conn, 0);
	}
}

static void pump(struct loop_task *t)
{
	struct rpcrdma_conn *conn = container_of(t, struct rpcrdma_conn,
						 pump_task);

	mutex_lock(&conn->lock);
	conn->pump_due = false;
	mutex_unlock(&conn->lock);
	rpcrdma_recv_pump(conn);
	xprt_put(&conn->xprt);
}

void rpcrdma_conn_want_pump(struct rpcrdma_conn *conn)
{
	if (conn->pump_due || conn->state != CONN_LIVE)
		return;
	/* A message waits only if every call is in use.  Receives need not be
	 * posted before the next message comes. */
	if (conn->busy_calls + 1 < conn->credits)
		return;
	conn->pump_due = true;
	xprt_get(&conn->xprt);
	loop_post(conn->xprt.loop, &conn->pump_task, pump);
}

/* Grants fewer credits while memory is short, but never 0 (RFC 8166 section
 * 3.3.1). */
uint32_t rpcrdma_conn_grant(struct rpcrdma_conn *conn)
{
	if (atomic_load_explicit(&conn->nparked, memory_order_relaxed) == 0)
		return conn->credits;
	return MAX(conn->credits / 4, 1u);
}

static void established(struct fabric_conn *fc)
{
	struct rpcrdma_conn *conn = fc->upper;
	bool live;

	rpcrdma_sq_set_read_depth(&conn->sq, fc->info.read_depth);
	atomic_store(&conn->active, loop_now(conn->xprt.loop));
	mutex_lock(&conn->lock);
	live = conn->state == CONN_ACCEPTING;
	if (live)
		set_state(conn, CONN_LIVE);
	mutex_unlock(&conn->lock);
	if (live)
		rpcrdma_recv_pump(conn);
}

static void count_end(const struct rpcrdma_conn *conn, int err)
{
	if (err == 0) {
		stat_inc(rdma_closes);
	} else if (err == -ECONNRESET) {
		stat_inc(rdma_closed_by_peer);
	} else {
		stat_inc(rdma_errors);
		log_limited(LOG_LEVEL_DEBUG, "%s: ended: %s", conn->xprt.name,
			    strerror(-err));
	}
}

/*
 * Tells whether the peer got a reply.  On InfiniBand and RoCE, and on the loop
 * fabric, a completed Send is in the peer's memory: all replies end at position
 * 1, which is always acknowledged.  iWARP in user space asks its socket.
 *
 * On an iWARP adapter a completed Send proves nothing, nor does the next
 * Receive: its message may have crossed the reply.  There the position of a
 * reply is its number in the order of sending, and credits prove it.  A
 * requester sends a call only if with it no more are outstanding than that call
 * asks for and we grant (RFC 8166 section 3.3.1).  So when it sent its nth
 * call, which asks for r, it had taken n - min(r, credits) replies or more.
 * They are our first ones, as a Receive takes Sends in order.
 */
static bool asks_fabric(const struct rpcrdma_conn *conn)
{
	return conn->fc->ops->look != NULL;
}

void rpcrdma_conn_called(struct rpcrdma_conn *conn, uint32_t asked)
{
	uint64_t n = ++conn->ncalls, known;
	uint32_t out = MAX(asked, 1u);

	out = MIN(out, conn->credits);
	/* A call that asks for more than the last one proves less. */
	known = atomic_load_explicit(&conn->taken, memory_order_relaxed);
	if (n > known + out)
		atomic_store_explicit(&conn->taken, n - out,
				      memory_order_relaxed);
}

uint64_t rpcrdma_conn_position(struct rpcrdma_conn *conn)
{
	if (asks_fabric(conn))
		return fabric_sent(conn->fc);
	return conn->fc->dev->limits.sends_unproven ? conn->nreplies : 1;
}

static uint64_t acknowledged(struct rpcrdma_conn *conn)
{
	return conn->fc->dev->limits.sends_unproven ?
	       atomic_load_explicit(&conn->taken, memory_order_relaxed) : 1;
}

static void look(struct xprt *x, struct xprt_view *v)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_of(x);

	if (asks_fabric(conn))
		fabric_look(conn->fc, v);
	else
		v->acked = acknowledged(conn);
}

static void closed(struct fabric_conn *fc, int err)
{
	struct rpcrdma_conn *conn = fc->upper;

	xprt_fate_end(conn->xprt.fate, err == -ECONNRESET ? XPRT_ORDERLY :
							    XPRT_BROKEN);
	count_end(conn, err);
	mutex_lock(&conn->lock);
	if (conn->state < CONN_CLOSING)
		set_state(conn, CONN_CLOSING);
	set_state(conn, CONN_DRAINED);
	mutex_unlock(&conn->lock);
	rpcrdma_sq_kill(&conn->sq);
	rpcrdma_pull_cancel(conn);
	xprt_put(&conn->xprt);
}

/* ---- xprt_ops */

static int reply(struct msg *m)
{
	return rpcrdma_reply_send(rpcrdma_call_of(m));
}

static void drop(struct msg *m)
{
	rpcrdma_call_drop(rpcrdma_call_of(m));
}

/*
 * RFC 8166 section 4.5.4: a responder that can send neither a reply nor an
 * RDMA_ERROR closes the connection, so that the peer learns it.
 */
static void reject(struct msg *m)
{
	stat_inc(rdma_no_calls);
	rpcrdma_conn_close(rpcrdma_conn_of(m->xprt), -EBADMSG);
	rpcrdma_call_drop(rpcrdma_call_of(m));
}

/* Frees the connection's parts, but not the struct. */
static void fini(struct rpcrdma_conn *conn)
{
	xprt_fate_put(conn->xprt.fate);
	if (conn->memory)
		munmap(conn->memory, conn->memory_len);
	rpcrdma_sq_fini(&conn->sq);
	pthread_mutex_destroy(&conn->lock);
	free(conn->calls);
	free(conn->recvs);
	free(conn->upper);
}

static void destroy(struct loop_task *t)
{
	struct rpcrdma_conn *conn = container_of(t, struct rpcrdma_conn, task);

	if (conn->fc) {
		/* The connection may have ended before its start. */
		xprt_fate_end(conn->xprt.fate, XPRT_BROKEN);
		fabric_free(conn->fc);
	}
	if (conn->mr)
		fabric_mr_destroy(conn->mr);
	if (conn->device)
		rpcrdma_device_put(conn->device);
	fini(conn);
	rpcrdma_listener_forget(conn->listener, conn);
	free(conn);
}

static void free_xprt(struct xprt *x)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_of(x);

	loop_post(x->loop, &conn->task, destroy);
}

/* All that was granted is in use. */
static bool is_full(struct xprt *x)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_of(x);
	bool full;

	mutex_lock(&conn->lock);
	full = conn->busy_calls >= rpcrdma_conn_grant(conn);
	mutex_unlock(&conn->lock);
	return full;
}

static const struct xprt_ops rpcrdma_xprt_ops = {
	.name = "rdma",
	.reply = reply,
	.drop = drop,
	.look = look,
	.is_full = is_full,
	.reject = reject,
	.free = free_xprt,
};

/* ---- made in the listener, finished by accept.c */

static size_t memory_size(unsigned credits, uint32_t inline_size)
{
	return (size_t)credits * (2 * (size_t)inline_size + CALL_HEADER +
				  MSG_HEAD_SIZE);
}

/* The upper layer's bytes in each call: aligned for any type. */
static size_t upper_size(size_t msg_upper)
{
	return ALIGN_UP(msg_upper, sizeof(max_align_t));
}

static int alloc_contexts(struct rpcrdma_conn *conn)
{
	void *memory;

	conn->upper_size = upper_size(conn->xprt.sink->msg_upper);
	conn->calls = calloc(conn->credits, sizeof(*conn->calls));
	conn->recvs = calloc(2 * (size_t)conn->credits, sizeof(*conn->recvs));
	conn->upper = calloc(conn->credits, MAX(conn->upper_size, 1u));
	conn->memory_len = memory_size(conn->credits, conn->inline_size);
	memory = mmap(NULL, conn->memory_len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
		conn->memory = memory;
	return conn->calls && conn->recvs && conn->upper && conn->memory ?
	       0 : -ENOMEM;
}

/* Logs the parameters that the two sides exchanged (RFC 8797 section 4). */
static void agree(struct rpcrdma_conn *conn, struct fabric_conn *fc)
{
	struct rpcrdma_private peer;

	rpcrdma_private_decode(fc->info.private_data, fc->info.private_len,
			       &peer);
	conn->send_inline = MIN(conn->inline_size, peer.recv_size);
	conn->may_invalidate = peer.remote_inv && fc->info.remote_inv;
	conn->max_sge = MIN(fc->dev->limits.max_sge, 4u);
}

int rpcrdma_conn_create(struct rpcrdma_listener *l, struct fabric_conn *fc,
			struct loop *loop, struct rpcrdma_conn **out)
{
	const struct fabric_limits *limits = &fc->dev->limits;
	struct rpcrdma_conn *conn = calloc(1, sizeof(*conn));
	unsigned depth;

	if (!conn)
		return -ENOMEM;
	xprt_init(&conn->xprt, &rpcrdma_xprt_ops, l->env.sink, loop,
		  l->env.pool, (const struct sockaddr *)&fc->info.peer,
		  (const struct sockaddr *)&fc->info.local);
	conn->xprt.any_port = fc->info.any_port;
	conn->xprt.rdma = true;
	conn->listener = l;
	conn->fc = fc;
	conn->credits = MIN(l->options.credits, limits->max_recv / 2);
	conn->credits = MAX(conn->credits, 1u);
	conn->inline_size = l->options.inline_size;
	depth = MIN(l->options.send_queue, limits->max_wr);
	rpcrdma_sq_init(&conn->sq, fc, MAX(depth, 1u));
	pthread_mutex_init(&conn->lock, NULL);
	CDS_INIT_LIST_HEAD(&conn->parked);
	agree(conn, fc);
	conn->xprt.fate = xprt_fate_create(&conn->xprt, 0);
	if (!conn->xprt.fate || alloc_contexts(conn) < 0) {
		fini(conn);
		free(conn);
		return -ENOMEM;
	}
	fc->upper = conn;
	fc->established = established;
	fc->closed = closed;
	*out = conn;
	return 0;
}

size_t rpcrdma_conn_bytes(const struct rpcrdma_options *options,
			  size_t msg_upper)
{
	struct rpcrdma_options o = *options;

	rpcrdma_options_fill(&o);
	return sizeof(struct rpcrdma_conn) +
	       memory_size(o.credits, o.inline_size) +
	       o.credits * (sizeof(struct rpcrdma_call) +
			    2 * sizeof(struct rpcrdma_recv) +
			    upper_size(msg_upper));
}
