/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections, from a peer's request or our own to their end.
 *
 * The end comes in two steps, both on the loop: stop() tells the peer and
 * refuses further posts, verbs_conn_finish() destroys the queue pair, gives all
 * ops back and calls closed().  They follow at once on InfiniBand and RoCE,
 * where a Send that completed has arrived.  On iWARP it has only been handed to
 * TCP, so verbs_conn_finish() waits a short time for the peer to close as well.
 * If we asked the peer, it also waits for the answer: rdma_destroy_id() would
 * sleep until it comes.
 */
#include "transport/fabric/verbs/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "transport/addr.h"

#define HANDSHAKE_MS	60000
#define LINGER_MS	2000
/* Drivers give up an iWARP connect after 10 s (siw) or sooner. */
#define ANSWER_MS	15000
/*
 * 0.64 ms: the delay after which a peer that found no Receive sends again.  The
 * CM leaves it at 0, which stands for 655 ms.
 */
#define MIN_RNR_TIMER	12

STAT(verbs_established, "RDMA connections established");
STAT(verbs_handshake_failed, "RDMA connections that were never established");
STAT(verbs_device_removed, "RDMA connections lost with their device");

/* Puts the connection on the device's list, to fail when the device does.  0 or
 * -ENODEV: the device is gone, and has failed those on the list. */
static int join_device(struct verbs_conn *c)
{
	bool gone;

	mutex_lock(&c->provider->lock);
	gone = c->dev->dev.gone;
	if (!gone)
		cds_list_add_tail(&c->dev_link, &c->dev->conns);
	mutex_unlock(&c->provider->lock);
	return gone ? -ENODEV : 0;
}

static void leave_device(struct verbs_conn *c)
{
	mutex_lock(&c->provider->lock);
	cds_list_del_init(&c->dev_link);
	mutex_unlock(&c->provider->lock);
}

/* Everything but the memory. */
static void verbs_conn_release(struct verbs_conn *c)
{
	leave_device(c);
	verbs_queues_destroy(c);
	if (c->id) {
		rdma_destroy_id(c->id);
		verbs_dev_put(c->dev);
	}
	c->id = NULL;
	if (c->vl)
		verbs_loop_put(c->vl);
	c->vl = NULL;
}

static void verbs_conn_finish(struct verbs_conn *c)
{
	loop_timer_cancel(c->conn.loop, &c->timer);
	verbs_queues_stop(c);
	verbs_conn_release(c);
	c->over = true;
	c->conn.closed(&c->conn, c->err);
}

static void finish_task(struct loop_task *t)
{
	verbs_conn_finish(container_of(t, struct verbs_conn, task));
}

static void reject_here(struct verbs_conn *c)
{
	rdma_reject(c->id, NULL, 0);
	verbs_free(&c->conn);
}

/* Until then others can still register memory for it. */
static void verbs_conn_destroy(struct verbs_conn *c)
{
	if (c->domain)
		verbs_domain_put(c->dev, c->domain);
	pthread_mutex_destroy(&c->posts.lock);
	free(c);
}

static void stop_task(struct loop_task *t)
{
	struct verbs_conn *c = container_of(t, struct verbs_conn, task);
	bool connecting = c->end.started && !c->live && !c->passive;
	bool posting;

	if (c->abandoned) {
		verbs_conn_destroy(c);
		return;
	}
	mutex_lock(&c->posts.lock);
	c->posts.dead = true;
	posting = c->posts.posting;
	mutex_unlock(&c->posts.lock);
	if (posting) {		/* that task is before us then */
		loop_post(c->conn.loop, &c->task, stop_task);
		return;
	}
	loop_timer_cancel(c->conn.loop, &c->timer);
	/* An error means that the peer is gone already: the same result. */
	if (!c->dev->iwarp || !connecting)
		rdma_disconnect(c->id);
	if (c->dev->iwarp && !c->gone && (c->live || connecting)) {
		c->lingering = true;
		loop_timer_set(c->conn.loop, &c->timer,
			       c->live ? LINGER_MS : ANSWER_MS);
	} else {
		verbs_conn_finish(c);
	}
}

void verbs_close(struct fabric_conn *conn)
{
	verbs_conn_fail(verbs_conn(conn), 0);
}

static void verbs_conn_timed_out(struct loop_timer *t)
{
	struct verbs_conn *c = container_of(t, struct verbs_conn, timer);

	if (c->lingering) {
		verbs_conn_finish(c);
	} else {
		stat_inc(verbs_handshake_failed);
		verbs_conn_fail(c, -ETIMEDOUT);
	}
}

/* The peer is gone: verbs_conn_finish() no longer has to wait for it. */
static void verbs_conn_peer_gone(struct verbs_conn *c, int err)
{
	c->gone = true;
	if (!c->live)
		stat_inc(verbs_handshake_failed);
	verbs_conn_fail(c, err);
	if (c->lingering) {
		c->lingering = false;
		loop_timer_cancel(c->conn.loop, &c->timer);
		loop_post(c->conn.loop, &c->task, finish_task);
	}
}

void verbs_conn_learn(struct verbs_conn *c, const struct verbs_event *ev)
{
	struct fabric_info *info = &c->conn.info;

	info->private_len = MIN((unsigned)ev->param.private_data_len,
				(unsigned)sizeof(info->private_data));
	memcpy(info->private_data, ev->private_data, info->private_len);
	/*
	 * The CM has swapped the peer's two depths: its responder depth is our
	 * initiator depth here, on both sides.
	 */
	info->read_depth = MIN((unsigned)ev->param.initiator_depth,
			       c->dev->dev.limits.max_read_depth);
}

static void set_rnr_timer(struct verbs_conn *c)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = MIN_RNR_TIMER };

	/* Not vital, and iWARP has nothing like it. */
	if (!c->dev->iwarp &&
	    ibv_modify_qp(c->id->qp, &attr, IBV_QP_MIN_RNR_TIMER))
		log_debug("rdma: the RNR timer keeps its default");
}

static void verbs_conn_established(struct verbs_conn *c,
				   const struct verbs_event *ev)
{
	if (c->lingering && !c->live) {		/* too late */
		rdma_disconnect(c->id);
		loop_timer_set(c->conn.loop, &c->timer, LINGER_MS);
	}
	if (c->live || atomic_load(&c->closing))
		return;
	stat_inc(verbs_established);
	c->live = true;
	loop_timer_cancel(c->conn.loop, &c->timer);
	if (!c->passive) {
		verbs_conn_learn(c, ev);
		set_rnr_timer(c);
	}
	c->conn.established(&c->conn);
}

static void conn_event(struct verbs_end *end, const struct verbs_event *ev)
{
	struct verbs_conn *c = container_of(end, struct verbs_conn, end);

	switch (ev->type) {
	case RDMA_CM_EVENT_ESTABLISHED:
		verbs_conn_established(c, ev);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		verbs_conn_peer_gone(c, -ECONNRESET);
		break;
	case RDMA_CM_EVENT_REJECTED:
		verbs_conn_peer_gone(c, -ECONNREFUSED);
		break;
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
		verbs_conn_peer_gone(c, ev->status < 0 ? ev->status :
							 -EHOSTUNREACH);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		/* The route has changed: the peer has to connect again. */
		verbs_conn_peer_gone(c, -ENETUNREACH);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		stat_inc(verbs_device_removed);
		verbs_conn_peer_gone(c, -ENODEV);
		break;
	default:		/* TIMEWAIT_EXIT, and events of newer kernels */
		break;
	}
}

int verbs_conn_create(struct verbs_provider *p, struct rdma_cm_id *id,
		      struct verbs_loop *vl, struct verbs_conn **out)
{
	struct verbs_conn *c;
	struct verbs_dev *dev;
	int err;

	err = verbs_dev_get(p, id, vl ? VERBS_ID_REQUEST : VERBS_ID_ACTIVE,
			    &dev);
	if (err)
		return err;
	c = calloc(1, sizeof(*c));
	if (!c) {
		verbs_dev_put(dev);
		return -ENOMEM;
	}
	if (vl) {
		mutex_lock(&p->lock);
		vl->refs++;
		mutex_unlock(&p->lock);
	}
	pthread_mutex_init(&c->posts.lock, NULL);
	c->provider = p;
	c->dev = dev;
	c->vl = vl;
	c->id = id;
	CDS_INIT_LIST_HEAD(&c->dev_link);
	c->stop = stop_task;
	c->end.event = conn_event;
	c->timer.fire = verbs_conn_timed_out;
	id->context = &c->end;
	c->conn.ops = p->ops;
	c->conn.dev = &dev->dev;
	c->conn.info.any_port = true;
	c->conn.info.read_depth = dev->dev.limits.max_read_depth;
	c->conn.info.remote_inv = atomic_load(&dev->remote_inv);
	xprt_addr_copy(&c->conn.info.local, rdma_get_local_addr(id));
	xprt_addr_copy(&c->conn.info.peer, rdma_get_peer_addr(id));
	*out = c;
	return 0;
}

/* Until @until, in ms.  0 or -errno. */
static int resolve_route(struct rdma_cm_id *id, int64_t until)
{
	int64_t ms = until - (int64_t)clock_ms();

	if (ms <= 0)
		return -ETIMEDOUT;
	return rdma_resolve_route(id, (int)ms) ? verbs_errno() : 0;
}

static int connect_once(struct verbs_provider *p, const struct sockaddr *addr,
			struct fabric_conn **out)
{
	int64_t until = (int64_t)clock_ms() + p->connect_ms;
	struct sockaddr_storage dst;
	struct rdma_cm_id *id;
	struct verbs_conn *c;
	int err = 0;

	xprt_addr_copy(&dst, addr);
	/* Without a channel of ours the id waits for its own events. */
	if (rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP))
		return verbs_errno();
	if (rdma_resolve_addr(id, NULL, (struct sockaddr *)&dst,
			      p->connect_ms))
		err = verbs_errno();
	/* The device is open from here on, so it has to be watched. */
	if (!err)
		err = verbs_conn_create(p, id, NULL, &c);
	if (err) {
		if (err != -ERESTART)
			rdma_destroy_id(id);
		return err;
	}
	err = resolve_route(id, until);
	if (err)
		verbs_free(&c->conn);
	else
		*out = &c->conn;
	return err;
}

int verbs_connect(void *provider, const struct sockaddr *addr,
		  struct fabric_conn **out)
{
	int err = connect_once(provider, addr, out);

	/* The first id might have become the device's. */
	return err == -ERESTART ? connect_once(provider, addr, out) : err;
}

/* Moves the id's events to @loop's channel. */
static int move_id(struct verbs_conn *c, struct loop *loop)
{
	struct verbs_loop *vl;
	int err;

	err = verbs_loop_get(c->provider, loop, &vl);
	if (err)
		return err;
	if (vl != c->vl && rdma_migrate_id(c->id, vl->channel)) {
		err = verbs_errno();
		verbs_loop_put(vl);
		return err;
	}
	if (c->vl)
		verbs_loop_put(c->vl);
	c->vl = vl;
	return 0;
}

int verbs_setup(struct fabric_conn *conn, struct loop *loop,
		const struct fabric_queues *q)
{
	struct verbs_conn *c = verbs_conn(conn);
	int err;

	conn->loop = loop;
	err = move_id(c, loop);
	if (err)
		return err;
	err = verbs_queues_create(c, q);
	if (!err)
		err = join_device(c);
	if (err)
		verbs_queues_destroy(c);
	return err;
}

int verbs_start(struct fabric_conn *conn, const void *private_data,
		unsigned private_len, unsigned read_depth)
{
	struct verbs_conn *c = verbs_conn(conn);
	struct fabric_info *info = &conn->info;
	struct rdma_conn_param param = {
		.private_data = private_data,
		.private_data_len = (uint8_t)MIN(private_len,
						 VERBS_MAX_PRIVATE),
		.responder_resources = (uint8_t)MIN(read_depth,
				conn->dev->limits.max_resp_depth),
		.initiator_depth = (uint8_t)info->read_depth,
		.retry_count = 7,
		.rnr_retry_count = 7,	/* for ever */
	};
	int err;

	loop_timer_set(conn->loop, &c->timer, HANDSHAKE_MS);
	if (c->passive ? rdma_accept(c->id, &param)
		       : rdma_connect(c->id, &param)) {
		err = verbs_errno();
		stat_inc(verbs_handshake_failed);
		verbs_conn_fail(c, err);
		return err;
	}
	c->end.started = true;
	if (c->passive)
		set_rnr_timer(c);
	return 0;
}

static void reject_task(struct loop_task *t)
{
	reject_here(container_of(t, struct verbs_conn, task));
}

void verbs_reject(struct fabric_conn *conn)
{
	struct verbs_conn *c = verbs_conn(conn);

	/* Only the loop can destroy the connection's queues, if it has any. */
	if (c->vl->loop == loop_current)
		reject_here(c);
	else
		loop_post(c->vl->loop, &c->task, reject_task);
}

void verbs_free(struct fabric_conn *conn)
{
	struct verbs_conn *c = verbs_conn(conn);

	verbs_conn_release(c);
	/* From here on no other thread fails it.  If one has, before the start,
	 * its task is on the way. */
	if (atomic_load(&c->closing) && !c->over)
		c->abandoned = true;
	else
		verbs_conn_destroy(c);
}
