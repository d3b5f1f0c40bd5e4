/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * listen - the listener: who may connect, and how all of it ends.
 *
 * Ownership: connections borrow their listener, which is not freed before
 * the last of them is gone.
 */
#include "transport/rpcrdma/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/log.h"
#include "lib/stats.h"

STAT(rdma_refused_full, "connections refused: as many as may be");
STAT(rdma_refused_depth, "connections refused: the peer lets us read nothing");
STAT(rdma_refused_stopping, "connections refused: the listener stops");

enum { DEFAULT_CREDITS = 128, DEFAULT_INLINE = 4096, STEPS_PER_CREDIT = 8 };

void rpcrdma_options_fill(struct rpcrdma_options *o)
{
	if (o->credits == 0)
		o->credits = DEFAULT_CREDITS;
	if (o->inline_size == 0)
		o->inline_size = DEFAULT_INLINE;
	o->inline_size = MAX(o->inline_size, RPCRDMA_INLINE_MIN);
	o->inline_size = MIN(o->inline_size, RPCRDMA_INLINE_MAX) / 1024 * 1024;
	if (o->send_queue == 0)
		o->send_queue = STEPS_PER_CREDIT * o->credits;
}

/* Room for one more?  It is counted at once. */
static bool admit(struct rpcrdma_listener *l, unsigned *loop)
{
	bool ok;

	mutex_lock(&l->lock);
	ok = !l->stopping && l->nconns < l->env.max_conns;
	if (ok) {
		l->nconns++;
		*loop = l->next_loop++ % l->env.nloops;
	} else if (l->stopping) {
		stat_inc(rdma_refused_stopping);
	} else {
		stat_inc(rdma_refused_full);
	}
	mutex_unlock(&l->lock);
	return ok;
}

static void leave(struct rpcrdma_listener *l)
{
	if (--l->nconns == 0)
		pthread_cond_broadcast(&l->gone);
}

void rpcrdma_listener_forget(struct rpcrdma_listener *l,
			     struct rpcrdma_conn *conn)
{
	mutex_lock(&l->lock);
	cds_list_del(&conn->link);
	leave(l);
	mutex_unlock(&l->lock);
}

static void request(struct fabric_listener *fl, struct fabric_conn *fc)
{
	struct rpcrdma_listener *l = fl->upper;
	struct rpcrdma_conn *conn;
	unsigned loop = 0;

	/* A server that may not read can't take a WRITE. */
	if (fc->info.read_depth == 0) {
		stat_inc(rdma_refused_depth);
		fabric_reject(fc);
		return;
	}
	if (!admit(l, &loop)) {
		fabric_reject(fc);
		return;
	}
	if (rpcrdma_conn_create(l, fc, l->env.loops[loop], &conn) < 0) {
		mutex_lock(&l->lock);
		leave(l);
		mutex_unlock(&l->lock);
		fabric_reject(fc);
		return;
	}
	mutex_lock(&l->lock);
	cds_list_add_tail(&conn->link, &l->conns);
	/* It came between: stop() didn't see it. */
	if (l->stopping)
		rpcrdma_conn_close(conn, 0);
	mutex_unlock(&l->lock);
	loop_post(conn->xprt.loop, &conn->task, rpcrdma_accept);
}

void rpcrdma_listener_keep(struct rpcrdma_listener *l,
			   struct fabric_device *dev)
{
	struct rpcrdma_device *d;
	bool known = false;

	mutex_lock(&l->lock);
	for (unsigned i = 0; i < l->ndevices; i++)
		known = known || l->device[i]->dev == dev;
	known = known || l->ndevices == ARRAY_SIZE(l->device);
	if (!known && rpcrdma_device_get(dev, l->env.pool, &d) == 0)
		l->device[l->ndevices++] = d;
	mutex_unlock(&l->lock);
}

static struct rpcrdma_listener *of(struct xprt_listener *base)
{
	return container_of(base, struct rpcrdma_listener, base);
}

static void stop(struct xprt_listener *base)
{
	struct rpcrdma_listener *l = of(base);
	struct rpcrdma_conn *conn;
	bool first;

	mutex_lock(&l->lock);
	first = !l->stopping;
	l->stopping = true;
	mutex_unlock(&l->lock);
	if (!first)
		return;
	fabric_unlisten(l->fl);
	mutex_lock(&l->lock);
	cds_list_for_each_entry(conn, &l->conns, link) {
		/* The last reference may be gone already. */
		if (!ref_get_unless_zero(&conn->xprt.ref))
			continue;
		rpcrdma_conn_drain(conn);
		xprt_put(&conn->xprt);
	}
	mutex_unlock(&l->lock);
}

static unsigned count(struct xprt_listener *base)
{
	struct rpcrdma_listener *l = of(base);
	unsigned n;

	mutex_lock(&l->lock);
	n = l->nconns;
	mutex_unlock(&l->lock);
	return n;
}

static void destroy(struct rpcrdma_listener *l)
{
	for (unsigned i = 0; i < l->ndevices; i++)
		rpcrdma_device_put(l->device[i]);
	pthread_cond_destroy(&l->gone);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static void free_listener(struct xprt_listener *base)
{
	struct rpcrdma_listener *l = of(base);
	struct rpcrdma_conn *conn;

	stop(base);
	mutex_lock(&l->lock);
	cds_list_for_each_entry(conn, &l->conns, link) {
		if (!ref_get_unless_zero(&conn->xprt.ref))
			continue;
		rpcrdma_conn_close(conn, 0);
		xprt_put(&conn->xprt);
	}
	while (l->nconns > 0)
		pthread_cond_wait(&l->gone, &l->lock);
	mutex_unlock(&l->lock);
	destroy(l);
}

static const struct xprt_listener_ops rpcrdma_listener_ops = {
	.stop = stop,
	.count = count,
	.free = free_listener,
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
	l->base.ops = &rpcrdma_listener_ops;
	l->env = *env;
	if (options)
		l->options = *options;
	rpcrdma_options_fill(&l->options);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->gone, NULL);
	CDS_INIT_LIST_HEAD(&l->conns);
	err = fabric_listen(fabric, addr, env->loops[0], request, l, &l->fl);
	if (err < 0) {
		destroy(l);
		return err;
	}
	l->base.local = l->fl->local;
	*out = &l->base;
	return 0;
}
