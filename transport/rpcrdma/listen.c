/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen - the listener: limits, accepting, and the end.
 *
 * Ownership: connections borrow their listener, which is not freed before
 * the last of them is gone.
 */
#include "transport/rpcrdma/listen.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/rpcrdma/conn.h"
#include "transport/rpcrdma/expose.h"
#include "transport/rpcrdma/proto.h"
#include "transport/rpcrdma/store.h"

STAT(rdma_refused_full, "connections refused: too many");
STAT(rdma_refused_peer, "connections refused: too many of one peer");
STAT(rdma_refused_memory, "connections refused: not enough memory");
STAT(rdma_refused_depth, "connections refused: the peer allows no RDMA Reads");
STAT(rdma_refused_stopping, "connections refused: the listener is stopping");

/* The memory of a connection of @fc's, at its first grant. */
static size_t bytes_of(const struct rpcrdma_listener *l,
		       const struct fabric_conn *fc)
{
	const struct fabric_queues q = rpcrdma_conn_queues(&l->options,
							   &fc->dev->limits);

	return l->conn_bytes + fabric_conn_bytes(fc, &q);
}

static bool charge(struct rpcrdma_listener *l, size_t bytes)
{
	struct rpcrdma_budget *b = l->options.budget;

	if (!rpcrdma_budget_take(b, bytes))
		return false;
	if (b)
		atomic_fetch_add(&b->conns, 1);
	return true;
}

static void leave(struct rpcrdma_listener *l, const struct sockaddr *peer,
		  size_t bytes)
{
	struct rpcrdma_budget *b = l->options.budget;

	rpcrdma_budget_give(b, bytes);
	if (b)
		atomic_fetch_sub(&b->conns, 1);
	xprt_gate_leave(&l->gate, peer);
}

static const struct sockaddr *peer_of(const struct fabric_conn *fc)
{
	return (const struct sockaddr *)&fc->info.peer;
}

/* Counts one more connection, if the limit allows.  0 or -errno. */
static int rpcrdma_listener_admit(struct rpcrdma_listener *l,
				  const struct fabric_conn *fc)
{
	int err;

	/* A server that can't post Reads can't serve a WRITE. */
	if (fc->info.read_depth == 0)
		return -EPROTO;
	err = xprt_gate_enter(&l->gate, peer_of(fc));
	if (!err && !charge(l, bytes_of(l, fc))) {
		xprt_gate_leave(&l->gate, peer_of(fc));
		err = -ENOMEM;
	}
	return err;
}

static void rpcrdma_listener_refuse(struct fabric_conn *fc, int err)
{
	const char *why;
	char addr[XPRT_ADDR_TEXT];

	switch (err) {
	case -EPROTO:
		stat_inc(rdma_refused_depth);
		why = "it lets us read nothing";
		break;
	case -ESHUTDOWN:
		stat_inc(rdma_refused_stopping);
		why = "the server ends or drains";
		break;
	case -EUSERS:
		stat_inc(rdma_refused_full);
		why = "there are too many connections";
		break;
	case -EDQUOT:
		stat_inc(rdma_refused_peer);
		why = "there are too many connections from there";
		break;
	default:
		stat_inc(rdma_refused_memory);
		why = "no memory for more connections";
		break;
	}
	log_limited(LOG_LEVEL_WARN, "rdma %s: refused, %s",
		    xprt_addr_text(peer_of(fc), addr, sizeof(addr)), why);
	fabric_reject(fc);
}

/* With the lock: keeps a device with its registrations, also one that is gone:
 * forget_gone() takes it.  False: it is kept already. */
static bool rpcrdma_listener_keep(struct rpcrdma_listener *l,
				  struct rpcrdma_device *d)
{
	for (unsigned i = 0; i < l->ndevices; i++)
		if (l->device[i] == d)
			return false;
	if (l->ndevices == ARRAY_SIZE(l->device))
		return false;
	l->device[l->ndevices++] = d;
	return true;
}

/* Takes a kept device that is gone, or NULL: all are there. */
static struct rpcrdma_device *take_gone(struct rpcrdma_listener *l)
{
	struct rpcrdma_device *d = NULL;

	mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->ndevices && !d; i++) {
		if (!atomic_load(&l->device[i]->dev->gone))
			continue;
		d = l->device[i];
		l->device[i] = l->device[--l->ndevices];
	}
	mutex_unlock(&l->lock);
	return d;
}

/* The pool might be registering a new region with its devices. */
static void forget_now(struct rpcrdma_job *job)
{
	struct rpcrdma_listener *l = container_of(job, struct rpcrdma_listener,
						  forget);
	struct rpcrdma_device *d;

	atomic_store(&l->forgetting, false);
	while ((d = take_gone(l)))
		rpcrdma_device_put(d);
}

static bool keeps_gone(struct rpcrdma_listener *l)
{
	bool some = false;

	mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->ndevices; i++)
		some |= atomic_load(&l->device[i]->dev->gone);
	mutex_unlock(&l->lock);
	return some;
}

/* Forgets the devices that are gone.  Nothing is registered with them. */
static void forget_gone(struct rpcrdma_listener *l)
{
	if (!keeps_gone(l) || atomic_exchange(&l->forgetting, true))
		return;
	l->forget.run = forget_now;
	rpcrdma_registrar_do(&l->registrar, &l->forget);
}

static void rpcrdma_listener_gone(struct rpcrdma_conn *conn)
{
	struct rpcrdma_listener *l = conn->listener;
	struct rpcrdma_device *d = conn->device;
	bool kept;

	mutex_lock(&l->lock);
	cds_list_del(&conn->link);
	kept = d && rpcrdma_listener_keep(l, d);
	mutex_unlock(&l->lock);
	if (d && !kept)
		rpcrdma_device_put(d);
	forget_gone(l);
	leave(l, (struct sockaddr *)&conn->xprt.peer, conn->bytes);
}

/* Connections take the loops in turn. */
static struct loop *choose_loop(struct rpcrdma_listener *l)
{
	struct loop *loop = NULL;

	mutex_lock(&l->lock);
	if (!l->stopping)
		loop = l->env.loops[l->next_loop++ % l->env.nloops];
	mutex_unlock(&l->lock);
	return loop;
}

static void request(struct fabric_listener *fl, struct fabric_conn *fc)
{
	struct rpcrdma_listener *l = fl->upper;
	struct loop *loop = choose_loop(l);
	struct rpcrdma_conn *conn;
	bool stopping;
	int err;

	err = loop ? rpcrdma_listener_admit(l, fc) : -ESHUTDOWN;
	if (err) {
		rpcrdma_listener_refuse(fc, err);
		return;
	}
	err = rpcrdma_conn_create(l, fc, loop, &conn);
	if (err) {
		leave(l, peer_of(fc), bytes_of(l, fc));
		rpcrdma_listener_refuse(fc, err);
		return;
	}
	conn->bytes = bytes_of(l, fc);
	mutex_lock(&l->lock);
	cds_list_add_tail(&conn->link, &l->conns);
	stopping = l->stopping;
	mutex_unlock(&l->lock);
	/* rpcrdma_listener_stop() might have walked the list before. */
	if (stopping)
		rpcrdma_conn_close(conn, 0);
	loop_post(conn->xprt.loop, &conn->task, rpcrdma_accept);
}

/* With the lock: counts and returns the next connection after @at; NULL: not
 * found.  The last reference of other users can be gone already. */
static struct rpcrdma_conn *next_conn(struct rpcrdma_listener *l,
				      struct cds_list_head *at)
{
	struct rpcrdma_conn *conn;

	for (at = at->next; at != &l->conns; at = at->next) {
		conn = cds_list_entry(at, struct rpcrdma_conn, link);
		if (ref_get_unless_zero(&conn->xprt.ref))
			return conn;
	}
	return NULL;
}

/* Does @fn to each connection, without the lock. */
static void for_each_conn(struct rpcrdma_listener *l,
			  void (*fn)(struct rpcrdma_conn *conn))
{
	struct rpcrdma_conn *conn, *next;

	mutex_lock(&l->lock);
	conn = next_conn(l, &l->conns);
	mutex_unlock(&l->lock);
	for (; conn; conn = next) {
		fn(conn);
		mutex_lock(&l->lock);
		next = next_conn(l, &conn->link);
		mutex_unlock(&l->lock);
		xprt_put(&conn->xprt);
	}
}

static void sweep_conn(struct rpcrdma_conn *conn)
{
	rpcrdma_conn_sweep(conn);
	if (conn->exposures)
		rpcrdma_expose_sweep(conn->exposures,
				     loop_now(conn->listener->env.loops[0]));
}

static void rpcrdma_listener_sweep(struct loop_timer *t)
{
	struct rpcrdma_listener *l = container_of(t, struct rpcrdma_listener,
						  sweep);
	uint32_t ms;

	for_each_conn(l, sweep_conn);
	forget_gone(l);
	ms = MIN(l->options.idle_ms, l->options.stall_ms);
	ms = MIN(ms, l->options.short_ms);
	ms = MIN(ms, l->options.expose_ms) / 4 + 1;
	loop_timer_set(l->env.loops[0], t, ms);
}

static void start_sweep(void *arg)
{
	struct rpcrdma_listener *l = arg;

	l->sweep.fire = rpcrdma_listener_sweep;
	rpcrdma_listener_sweep(&l->sweep);
}

static void stop_sweep(void *arg)
{
	struct rpcrdma_listener *l = arg;

	loop_timer_cancel(l->env.loops[0], &l->sweep);
}

static struct rpcrdma_listener *of(struct xprt_listener *base)
{
	return container_of(base, struct rpcrdma_listener, base);
}

static void stop_conn(struct rpcrdma_conn *conn)
{
	xprt_life_why(&conn->xprt, "the server ends or drains");
	rpcrdma_conn_drain(conn);
}

static void rpcrdma_listener_stop(struct xprt_listener *base)
{
	struct rpcrdma_listener *l = of(base);
	bool first;

	mutex_lock(&l->lock);
	first = !l->stopping;
	l->stopping = true;
	mutex_unlock(&l->lock);
	if (!first)
		return;
	fabric_unlisten(l->fl);
	for_each_conn(l, stop_conn);
}

static void set_stopping(struct rpcrdma_listener *l, bool stopping)
{
	mutex_lock(&l->lock);
	l->stopping = stopping;
	mutex_unlock(&l->lock);
}

static int rpcrdma_listener_start(struct xprt_listener *base)
{
	struct rpcrdma_listener *l = of(base);
	int err;

	set_stopping(l, false);
	err = fabric_listen(l->fabric, (struct sockaddr *)&base->local,
			    l->env.loops[0], request, l, &l->fl);
	if (err)
		set_stopping(l, true);
	return err;
}

static unsigned rpcrdma_listener_count(struct xprt_listener *base)
{
	return xprt_gate_count(&of(base)->gate);
}

static void rpcrdma_listener_destroy(struct rpcrdma_listener *l)
{
	rpcrdma_registrar_stop(&l->registrar);
	for (unsigned i = 0; i < l->ndevices; i++)
		rpcrdma_device_put(l->device[i]);
	xprt_gate_fini(&l->gate);
	rpcrdma_lost_fini(&l->lost);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void abandon(struct rpcrdma_conn *conn)
{
	xprt_life_why(&conn->xprt, "the server ends or drains");
	rpcrdma_conn_close(conn, 0);
}

static void rpcrdma_listener_free(struct xprt_listener *base)
{
	struct rpcrdma_listener *l = of(base);

	rpcrdma_listener_stop(base);
	/* Not before: draining connections need the sweep's bounds of time. */
	loop_call(l->env.loops[0], stop_sweep, l);
	for_each_conn(l, abandon);
	xprt_gate_wait(&l->gate);
	rpcrdma_listener_destroy(l);
}

static const struct xprt_listener_ops rpcrdma_listener_ops = {
	.stop = rpcrdma_listener_stop,
	.start = rpcrdma_listener_start,
	.count = rpcrdma_listener_count,
	.free = rpcrdma_listener_free,
};

int rpcrdma_listen(const struct fabric *fabric, const struct xprt_env *env,
		   const struct sockaddr *addr,
		   const struct rpcrdma_options *options,
		   struct xprt_listener **out)
{
	struct rpcrdma_listener *l = calloc(1, sizeof(*l));
	int err;

	if (!l)
		return -ENOMEM;
	err = rpcrdma_registrar_start(&l->registrar);
	if (err < 0) {
		free(l);
		return err;
	}
	l->base.ops = &rpcrdma_listener_ops;
	l->env = *env;
	l->fabric = fabric;
	l->gone = rpcrdma_listener_gone;
	if (options)
		l->options = *options;
	rpcrdma_options_fill(&l->options);
	pthread_mutex_init(&l->lock, NULL);
	xprt_gate_init(&l->gate, env->max_conns, env->max_peer_conns);
	l->gate.has_fds = true;
	l->base.gate = &l->gate;
	rpcrdma_lost_init(&l->lost);
	l->conn_bytes = rpcrdma_conn_bytes(&l->options, env->sink->msg_upper);
	CDS_INIT_LIST_HEAD(&l->conns);
	err = fabric_listen(fabric, addr, env->loops[0], request, l, &l->fl);
	if (err < 0) {
		rpcrdma_listener_destroy(l);
		return err;
	}
	l->base.local = l->fl->local;
	loop_call(env->loops[0], start_sweep, l);
	*out = &l->base;
	return 0;
}
