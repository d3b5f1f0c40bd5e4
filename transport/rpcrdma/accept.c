/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accept - makes a connection ready and accepts the peer.
 *
 * All Receives are posted before the peer gets the answer: it may call at once,
 * and a Linux client does not tolerate RNR.
 */
#include "transport/rpcrdma/conn.h"

#include <errno.h>
#include <string.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/rpcrdma/call.h"
#include "transport/rpcrdma/listen.h"
#include "transport/rpcrdma/proto.h"

STAT(rdma_accepts, "connections accepted");
STAT(rdma_accept_failures, "connections refused for lack of resources");

static int set_up(struct rpcrdma_conn *conn)
{
	struct fabric_conn *fc = conn->fc;
	struct fabric_queues q = {
		.send_wr = conn->sq.depth,
		.recv_wr = 2 * conn->credits,
		.send_sge = conn->max_sge,
	};
	int err;

	err = rpcrdma_device_get(fc->dev, conn->xprt.pool, &conn->device);
	if (err < 0)
		return err;
	rpcrdma_listener_keep(conn->listener, fc->dev);
	err = fabric_mr_create(fc->dev, conn->memory, conn->memory_len,
			       FABRIC_LOCAL, &conn->mr);
	if (err < 0)
		return err;
	rpcrdma_recv_init(conn);
	rpcrdma_call_init(conn);
	err = fabric_setup(fc, conn->xprt.loop, &q);
	return err < 0 ? err : rpcrdma_recv_refill(conn, true);
}

/* Our side of RFC 8797 section 4. */
static int start(struct rpcrdma_conn *conn)
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
	/* Peers have nothing to read here. */
	return fabric_start(fc, data, len, 0);
}

/* True if the connection was closed before the start. */
static bool given_up(struct rpcrdma_conn *conn)
{
	bool up;

	mutex_lock(&conn->lock);
	up = conn->state != CONN_ACCEPTING;
	mutex_unlock(&conn->lock);
	return up;
}

static void refuse(struct rpcrdma_conn *conn, int err)
{
	if (err < 0) {
		stat_inc(rdma_accept_failures);
		log_limited(LOG_LEVEL_WARN, "%s: can't accept: %s",
			    conn->xprt.name, strerror(-err));
	}
	fabric_reject(conn->fc);
	conn->fc = NULL;
	xprt_put(&conn->xprt);
}

void rpcrdma_accept(struct loop_task *t)
{
	struct rpcrdma_conn *conn = container_of(t, struct rpcrdma_conn, task);
	bool closing;
	int err = 0;

	if (given_up(conn) || (err = set_up(conn)) < 0) {
		refuse(conn, err);
		return;
	}
	stat_inc(rdma_accepts);
	err = start(conn);
	mutex_lock(&conn->lock);
	conn->started = true;
	closing = conn->state == CONN_CLOSING;
	mutex_unlock(&conn->lock);
	if (closing || err < 0)
		fabric_close(conn->fc);
}
