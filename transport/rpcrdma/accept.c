/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accept - a connection from its making to its end.
 *
 * Operation: the listener makes it; its loop makes its queues and posts all
 * Receives before the peer gets the answer, because it can call at once, and a
 * Linux client does not tolerate RNR.  Calls run from
 * rpcrdma_conn_established() to rpcrdma_conn_closed(); the last reference frees
 * it all, on the loop.
 *
 * Errors: a connection that can't be set up is refused.  After the start only
 * rpcrdma_conn_closed() ends it.
 */
#include "transport/rpcrdma/conn.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/clients.h"
#include "transport/rpcrdma/credits.h"
#include "transport/rpcrdma/expose.h"
#include "transport/rpcrdma/listen.h"
#include "transport/rpcrdma/proto.h"
#include "transport/rpcrdma/store.h"

STAT(rdma_accepts, "connections accepted");
STAT(rdma_accept_failures, "connections refused for lack of resources");
STAT(rdma_closes, "connections closed from this side");
STAT(rdma_closed_by_peer, "connections that their peers closed");
STAT(rdma_errors, "connections that ended with an error");
STAT(rdma_no_calls, "connections closed because a message was not a call");

#define DEFAULT_CREDITS	128u

enum { DEFAULT_INLINE = 4096, STEPS_PER_CREDIT = 8,
       DEFAULT_IDLE_MS = 360000, DEFAULT_STALL_MS = 60000,
       DEFAULT_SHORT_MS = 5000, DEFAULT_EXPOSE_MS = 10000,
       DEFAULT_EXPOSE_BYTES = 64 << 20 };

void rpcrdma_options_fill(struct rpcrdma_options *o)
{
	if (o->credits == 0)
		o->credits = DEFAULT_CREDITS;
	/* The Receive for an RDMA_DONE can't go, which can come at any time
	 * (slots.h): with the Read-Read model the grant stays as it is. */
	if (o->read_read && o->first_credits > 0)
		o->credits = MIN(o->credits, DEFAULT_CREDITS);
	if (o->read_read || o->first_credits == 0)
		o->first_credits = o->credits;
	if (o->inline_size == 0)
		o->inline_size = DEFAULT_INLINE;
	o->inline_size = MAX(o->inline_size, RPCRDMA_INLINE_MIN);
	o->inline_size = MIN(o->inline_size, RPCRDMA_INLINE_MAX) / 1024 * 1024;
	if (o->send_queue == 0)
		o->send_queue = STEPS_PER_CREDIT *
				MIN(o->credits, DEFAULT_CREDITS);
	if (o->idle_ms == 0)
		o->idle_ms = DEFAULT_IDLE_MS;
	if (o->stall_ms == 0)
		o->stall_ms = DEFAULT_STALL_MS;
	if (o->short_ms == 0)
		o->short_ms = DEFAULT_SHORT_MS;
	if (o->expose_ms == 0)
		o->expose_ms = DEFAULT_EXPOSE_MS;
	if (o->expose_bytes == 0)
		o->expose_bytes = DEFAULT_EXPOSE_BYTES;
}

/* Logs what the two sides exchanged (RFC 8797 section 4). */
static void tell_rdma_start(struct rpcrdma_conn *conn,
		       const struct fabric_info *info)
{
	struct rpcrdma_private peer;
	bool has = rpcrdma_private_decode(info->private_data,
					  info->private_len, &peer);

	xprt_life_begin(&conn->xprt, " by %s %s: Sends of %u bytes to the "
			"client, of %u from it, %u to %u credits, %s private "
			"data, %s invalidation, %u Reads at a time",
			conn->xprt.via, conn->fc->dev->name,
			atomic_load(&conn->send_inline),
			conn->recv_inline,
			conn->credits.min, conn->credits.max,
			has ? "with" : "no",
			conn->may_invalidate ? "remote" : "no remote",
			info->read_depth);
}

static void tell_rdma_end(struct rpcrdma_conn *conn, int err)
{
	const struct xprt_sums sums = {
		.calls = conn->proof.calls, .received = conn->proof.received,
		.sent = conn->proof.sent,
	};

	if (err == 0)
		xprt_life_why(&conn->xprt, "the server closed it");
	xprt_life_end(&conn->xprt, err == -ECONNRESET ? 0 : err, &sums);
}

static void rpcrdma_conn_established(struct fabric_conn *fc)
{
	struct rpcrdma_conn *conn = fc->upper;

	tell_rdma_start(conn, &fc->info);
	rpcrdma_sq_set_read_depth(&conn->sq, fc->info.read_depth);
	atomic_store(&conn->watch.active, loop_now(conn->xprt.loop));
	if (rpcrdma_conn_advance(conn, CONN_STARTED, CONN_LIVE))
		rpcrdma_recv_pump(conn);
}

static void count_end(int err)
{
	if (err == 0) {
		stat_inc(rdma_closes);
	} else if (err == -ECONNRESET) {
		stat_inc(rdma_closed_by_peer);
	} else {
		stat_inc(rdma_errors);
	}
}

static void rpcrdma_conn_closed(struct fabric_conn *fc, int err)
{
	struct rpcrdma_conn *conn = fc->upper;

	xprt_fate_end(conn->xprt.fate, err == -ECONNRESET ? XPRT_ORDERLY :
							    XPRT_BROKEN);
	count_end(err);
	tell_rdma_end(conn, err);
	atomic_store(&conn->state, CONN_CLOSING);
	rpcrdma_sq_kill(&conn->sq);
	if (conn->exposures)
		rpcrdma_expose_kill(conn->exposures);
	rpcrdma_pull_cancel(conn);
	xprt_put(&conn->xprt);
}

static int rpcrdma_xprt_reply(struct msg *m)
{
	return rpcrdma_reply_send(rpcrdma_call_of(m));
}

static void rpcrdma_xprt_drop(struct msg *m)
{
	rpcrdma_call_drop(rpcrdma_call_of(m));
}

/*
 * RFC 8166 section 4.5.4: a responder that can send neither a reply nor an
 * RDMA_ERROR closes the connection, by which the peer learns it.
 */
static void rpcrdma_xprt_reject(struct msg *m)
{
	stat_inc(rdma_no_calls);
	rpcrdma_conn_close(rpcrdma_conn_of(m->xprt), -EBADMSG);
	rpcrdma_call_drop(rpcrdma_call_of(m));
}

/* Frees the connection's parts, but not the struct. */
static void rpcrdma_conn_fini(struct rpcrdma_conn *conn)
{
	xprt_fate_put(conn->xprt.fate);
	rpcrdma_credits_fini(conn);
	rpcrdma_sq_fini(&conn->sq);
	rpcrdma_slots_fini(&conn->slots);
	rpcrdma_expose_destroy(conn->exposures);
}

static void rpcrdma_conn_destroy(struct loop_task *t)
{
	struct rpcrdma_conn *conn = container_of(t, struct rpcrdma_conn, task);

	xprt_client_leave(&conn->xprt);
	if (conn->fc) {
		/* The connection might have ended before its start. */
		xprt_fate_end(conn->xprt.fate, XPRT_BROKEN);
		fabric_free(conn->fc);
	}
	rpcrdma_conn_fini(conn);
	conn->listener->gone(conn);
	free(conn);
}

static void free_xprt(struct xprt *x)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_of(x);

	loop_post(x->loop, &conn->task, rpcrdma_conn_destroy);
}

/* All that was granted is in use. */
static bool rpcrdma_xprt_is_full(struct xprt *x)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_of(x);

	return atomic_load(&conn->slots.busy) >= rpcrdma_conn_grant(conn);
}

/*
 * Both sides take messages of 1 KiB before they know each other's limits (RFC
 * 5666 section 6.1), so a smaller limit counts as that.  A call whose Reads are
 * under way is finished even if the peer has stopped waiting.
 */
void rpcrdma_configure(struct xprt *x, const struct rpcrdma_limits *theirs,
		       struct rpcrdma_limits *ours)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_of(x);
	uint32_t reply = MAX(theirs->reply, RPCRDMA_INLINE_MIN);
	unsigned reads = MAX(theirs->reads, 1u);

	atomic_store(&conn->send_inline, MIN(reply, conn->inline_size));
	atomic_store(&conn->no_reads, theirs->reads == 0);
	rpcrdma_sq_set_read_depth(&conn->sq,
				  MIN(reads, conn->fc->info.read_depth));
	*ours = (struct rpcrdma_limits){ .call = conn->inline_size,
					 .reply = conn->inline_size,
					 .reads = conn->reads_taken };
}

static void rpcrdma_xprt_tell(struct xprt *x, struct xprt_facts *f)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_of(x);

	f->provider = conn->fc->ops->name;
	f->credits = rpcrdma_conn_grant(conn);
	f->send_inline = atomic_load(&conn->send_inline);
	f->recv_inline = conn->recv_inline;
}

static void rpcrdma_xprt_end(struct xprt *x)
{
	rpcrdma_conn_drain(rpcrdma_conn_of(x));
}

static const struct xprt_ops rpcrdma_xprt_ops = {
	.name = "rdma",
	.reply = rpcrdma_xprt_reply,
	.drop = rpcrdma_xprt_drop,
	.look = rpcrdma_conn_look,
	.is_full = rpcrdma_xprt_is_full,
	.tell = rpcrdma_xprt_tell,
	.end = rpcrdma_xprt_end,
	.reject = rpcrdma_xprt_reject,
	.free = free_xprt,
};

/* The numbers that a connection's memory follows from. */
struct extent {
	unsigned first;		/* credits, and at most: */
	unsigned max;
	unsigned others;	/* Receives in addition to those for calls */
};

static struct extent extent_of(const struct rpcrdma_options *o,
			       unsigned max_recv)
{
	struct extent t;

	t.max = MIN(o->credits, max_recv / (o->read_read ? 3 : 2));
	t.max = MAX(t.max, 1u);
	t.first = MIN(o->first_credits, t.max);
	t.others = o->read_read ? t.max : 0;
	return t;
}

/* The first store of a connection. */
static struct rpcrdma_extent store_of(const struct rpcrdma_options *o,
				      const struct extent *t, size_t msg_upper)
{
	return (struct rpcrdma_extent){
		.slots = t->first, .recvs = 2 * t->first + t->others,
		.inline_size = o->inline_size, .msg_upper = msg_upper,
	};
}

static int alloc_contexts(struct rpcrdma_conn *conn, const struct extent *t)
{
	const struct rpcrdma_options *o = &conn->listener->options;
	struct rpcrdma_extent first = store_of(o, t,
					       conn->xprt.sink->msg_upper);
	struct rpcrdma_store *s = rpcrdma_store_create(&first);

	if (!s)
		return -ENOMEM;
	conn->store = conn->credits.newest = s;
	if (o->read_read) {
		conn->reads_taken = MIN(EXPOSE_READS,
				conn->fc->dev->limits.max_resp_depth);
		conn->exposures = rpcrdma_expose_create(conn);
		if (!conn->exposures)
			return -ENOMEM;
	}
	return 0;
}

/* Takes the parameters that the client sent (RFC 8797 section 4). */
static void agree(struct rpcrdma_conn *conn, struct fabric_conn *fc)
{
	struct rpcrdma_private peer;

	rpcrdma_private_decode(fc->info.private_data, fc->info.private_len,
			       &peer);
	atomic_init(&conn->send_inline, MIN(conn->inline_size,
					    peer.recv_size));
	conn->recv_inline = MIN(conn->inline_size, peer.send_size);
	conn->may_invalidate = peer.remote_inv && fc->info.remote_inv;
	conn->max_sge = rpcrdma_conn_queues(&conn->listener->options,
					    &fc->dev->limits).send_sge;
}

int rpcrdma_conn_create(struct rpcrdma_listener *l, struct fabric_conn *fc,
			struct loop *loop, struct rpcrdma_conn **out)
{
	const struct fabric_limits *limits = &fc->dev->limits;
	struct rpcrdma_conn *conn = calloc(1, sizeof(*conn));
	struct extent extent = extent_of(&l->options, limits->max_recv);
	const struct fabric_queues q = rpcrdma_conn_queues(&l->options,
							   limits);

	if (!conn)
		return -ENOMEM;
	xprt_init(&conn->xprt, &rpcrdma_xprt_ops, l->env.sink, loop,
		  l->env.pool, (const struct sockaddr *)&fc->info.peer,
		  (const struct sockaddr *)&fc->info.local);
	conn->xprt.any_port = fc->info.any_port;
	conn->xprt.rdma = true;
	conn->xprt.via = fc->dev->ops->name;
	conn->listener = l;
	conn->fc = fc;
	conn->inline_size = l->options.inline_size;
	rpcrdma_sq_init(&conn->sq, fc, q.send_wr);
	rpcrdma_slots_init(&conn->slots, extent.others);
	conn->credits.min = extent.first;
	conn->credits.max = extent.max;
	CDS_INIT_LIST_HEAD(&conn->parked);
	agree(conn, fc);
	conn->xprt.fate = xprt_fate_create(&conn->xprt, 0);
	if (!conn->xprt.fate || alloc_contexts(conn, &extent) < 0) {
		rpcrdma_conn_fini(conn);
		free(conn);
		return -ENOMEM;
	}
	fc->upper = conn;
	fc->established = rpcrdma_conn_established;
	fc->closed = rpcrdma_conn_closed;
	*out = conn;
	return 0;
}

struct fabric_queues rpcrdma_conn_queues(const struct rpcrdma_options *o,
					 const struct fabric_limits *limits)
{
	struct extent t = extent_of(o, limits->max_recv);
	unsigned depth = MIN(o->send_queue, limits->max_wr);

	return (struct fabric_queues){
		.send_wr = MAX(depth, 1u),
		.recv_wr = 2 * t.max + t.others,
		.send_sge = MIN(limits->max_sge, 4u),
	};
}

size_t rpcrdma_conn_bytes(const struct rpcrdma_options *options,
			  size_t msg_upper)
{
	struct rpcrdma_options o = *options;
	struct rpcrdma_extent first;
	struct extent t;

	rpcrdma_options_fill(&o);
	t = extent_of(&o, UINT_MAX);
	first = store_of(&o, &t, msg_upper);
	return sizeof(struct rpcrdma_conn) + rpcrdma_store_bytes(&first) +
	       (o.read_read ? rpcrdma_expose_bytes(t.first) : 0);
}

/*
 * Makes the pool's memory usable on the connection.  If its peer could reach
 * other connections' registrations, it has a separate protection domain, where
 * memory is registered for each call: registering the whole pool for each
 * connection would exceed an adapter's room.
 */
static int get_memory(struct rpcrdma_conn *conn)
{
	const struct fabric_limits *limits = &conn->fc->dev->limits;

	if (limits->domains && (limits->open_sinks || conn->exposures))
		return fabric_isolate(conn->fc);
	return rpcrdma_device_get(conn->fc->dev, conn->xprt.pool,
				  &conn->device);
}

static void register_conn(struct rpcrdma_job *job)
{
	struct rpcrdma_conn *conn = container_of(job, struct rpcrdma_conn, job);

	conn->registered = get_memory(conn);
	if (conn->registered == 0)
		conn->registered = rpcrdma_store_register(conn, conn->store);
	loop_post(conn->xprt.loop, &conn->task, conn->accept);
}

static int set_up(struct rpcrdma_conn *conn)
{
	struct fabric_conn *fc = conn->fc;
	const struct fabric_queues q =
		rpcrdma_conn_queues(&conn->listener->options, &fc->dev->limits);
	int err;

	rpcrdma_recv_init(conn);
	rpcrdma_store_open(conn, conn->store);
	rpcrdma_credits_init(conn);
	err = fabric_setup(fc, conn->xprt.loop, &q);
	return err < 0 ? err : rpcrdma_store_post(conn, true);
}

/* Our side of RFC 8797 section 4. */
static int rpcrdma_conn_start(struct rpcrdma_conn *conn)
{
	struct fabric_conn *fc = conn->fc;
	struct rpcrdma_private p = {
		.remote_inv = fc->info.remote_inv,
		.send_size = conn->inline_size,
		.recv_size = conn->inline_size,
	};
	uint8_t data[RPCRDMA_PRIVATE_LEN];
	unsigned len = sizeof(data);

	rpcrdma_private_encode(&p, data);
	if (fc->dev->limits.max_private < len)
		len = 0;
	return fabric_start(fc, data, len, conn->reads_taken);
}

static void rpcrdma_conn_refuse(struct rpcrdma_conn *conn, int err)
{
	if (err < 0) {
		stat_inc(rdma_accept_failures);
		xprt_log_limited(&conn->xprt, LOG_LEVEL_WARN,
				 "can't accept: %s", strerror(-err));
	}
	fabric_reject(conn->fc);
	conn->fc = NULL;
	xprt_put(&conn->xprt);
}

/* Its memory is registered, or not. */
static void accept_registered(struct loop_task *t)
{
	struct rpcrdma_conn *conn = container_of(t, struct rpcrdma_conn, task);
	int err = 0;

	if (atomic_load(&conn->state) != CONN_ACCEPTING ||
	    (err = conn->registered) < 0 || (err = set_up(conn)) < 0) {
		rpcrdma_conn_refuse(conn, err);
		return;
	}
	stat_inc(rdma_accepts);
	xprt_client_enter(conn->listener->env.clients, &conn->xprt);
	err = rpcrdma_conn_start(conn);
	if (!rpcrdma_conn_advance(conn, CONN_ACCEPTING, CONN_STARTED) ||
	    err < 0)
		fabric_close(conn->fc);
}

void rpcrdma_accept(struct loop_task *t)
{
	struct rpcrdma_conn *conn = container_of(t, struct rpcrdma_conn, task);

	conn->accept = accept_registered;
	conn->job.run = register_conn;
	/* Where nothing is pinned it takes no time. */
	if (atomic_load(&conn->state) != CONN_ACCEPTING)
		rpcrdma_conn_refuse(conn, 0);
	else if (conn->fc->dev->limits.pins)
		rpcrdma_registrar_do(&conn->listener->registrar, &conn->job);
	else
		register_conn(&conn->job);
}
