/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pull - reads the Read chunks, before the upper layer sees the call.
 *
 * Operation: one buffer takes all chunks, with one Read for each segment.  When
 * the pool has no buffer the call is parked until it has one.  No thread waits.
 *
 * An iWARP adapter places a Read Response only where the peer might write as
 * well, and tells the peer the sink's handle in each Read Request (RFC 5040
 * section 4.4).  There pull() registers only the sink, just for its Reads and
 * in the connection's own protection domain, and ends that before any code
 * looks at the data.  So checked data can't change later, and no peer reaches
 * another one's data.
 *
 * Errors: a failed Read loses the call and closes the connection; the requester
 * connects again and sends the call again.
 */
#include "transport/rpcrdma/call.h"

#include <errno.h>
#include <string.h>

#include "lib/log.h"
#include "lib/probe.h"
#include "lib/stats.h"

STAT(rdma_read_bytes, "bytes pulled by RDMA Read");
STAT(rdma_read_failures, "RDMA Reads that failed");
STAT(rdma_pool_waits, "calls that waited for a buffer");

/* Registers the sink for its Reads alone, where its region can't be a sink. */
static int open_sink(struct rpcrdma_call *call)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);

	if (conn->device && !conn->fc->dev->limits.open_sinks)
		return 0;
	return fabric_mr_create_for(conn->fc, call->sink->data,
				    call->layout.sink_len, FABRIC_READ_SINK,
				    &call->open_sink);
}

/*
 * Ends that. 0 or -errno: the peer can still write there, so the buffer is
 * never used again.
 */
static int close_sink(struct rpcrdma_call *call)
{
	int err = 0;

	if (!call->open_sink)
		return 0;
	err = fabric_mr_destroy(call->open_sink);
	call->open_sink = NULL;
	if (err < 0)
		call->sink->lost = true;
	return err;
}

bool rpcrdma_pull_end(struct rpcrdma_call *call, int status)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	int err = close_sink(call);

	PROBE(rdma_read_done, &call->msg, conn, call->layout.sink_len, status);
	if (status == 0)
		status = err;
	if (status == 0) {
		stat_add(rdma_read_bytes, call->layout.sink_len);
		return true;
	}
	if (status != -ECANCELED && status != -ENOTCONN) {
		stat_inc(rdma_read_failures);
		xprt_log_limited(&conn->xprt, LOG_LEVEL_WARN,
				 "an RDMA Read failed: %s", strerror(-status));
	}
	rpcrdma_call_failed(call, status);
	rpcrdma_conn_close(conn, status);
	rpcrdma_call_drop(call);
	return false;
}

/* Adds a Read for each segment of the chunk; returns the next free step. */
static unsigned add_reads(struct rpcrdma_call *call, uint32_t i, unsigned n)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	struct rpcrdma_chunk chunk = call->hdr.read[i];
	uint32_t off = call->layout.sink_off[i];
	uint32_t left = call->layout.pull_len[i];
	uint32_t lkey = call->open_sink ? call->open_sink->lkey :
			conn->device->mr[call->sink->region]->lkey;

	while (chunk.nsegs > 0) {
		struct rpcrdma_segment seg = rpcrdma_chunk_take(&chunk);

		seg.length = MIN(seg.length, left);
		if (seg.length == 0)
			continue;
		left -= seg.length;
		call->sge[n] = (struct fabric_sge){
			.addr = call->sink->data + off, .len = seg.length,
			.lkey = lkey };
		call->wr[n] = (struct fabric_wr){
			.next = &call->wr[n + 1],
			.opcode = FABRIC_READ,
			.sge = &call->sge[n],
			.nsge = 1,
			.handle = seg.handle,
			.offset = seg.offset,
		};
		off += seg.length;
		n++;
	}
	/* Zeroes the roundup, which the peer need not send. */
	memset(call->sink->data + off, 0, xdr_pad(call->layout.pull_len[i]));
	return n;
}

static unsigned count_segments(const struct rpcrdma_header *h)
{
	unsigned n = 0;

	for (uint32_t i = 0; i < h->nreads; i++)
		n += h->read[i].nsegs;
	return n;
}

static int post_reads(struct rpcrdma_call *call)
{
	unsigned n = count_segments(&call->hdr);
	int err;

	if (rpcrdma_call_room(call, n, n) < 0)
		return -ENOMEM;
	err = open_sink(call);
	if (err < 0)
		return err;
	n = 0;
	for (uint32_t i = 0; i < call->hdr.nreads; i++)
		n = add_reads(call, i, n);
	call->wr[n - 1].next = NULL;
	call->chain.next_wr = call->wr;
	call->chain.left = n;
	call->chain.reads = true;
	PROBE(rdma_read_posted, &call->msg, call->msg.xprt,
	      call->layout.sink_len, n);
	err = rpcrdma_sq_submit(&rpcrdma_call_conn(call)->sq, &call->chain);
	if (err < 0)
		close_sink(call);
	return err;
}

/* The sink is there. */
static void pull(struct rpcrdma_call *call)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	int err;

	if (!rpcrdma_conn_is_live(conn)) {
		rpcrdma_call_drop(call);
		return;
	}
	err = post_reads(call);
	if (err < 0) {
		rpcrdma_conn_close(conn, err);
		rpcrdma_call_drop(call);
	}
}

static void resume(struct loop_task *t)
{
	struct rpcrdma_call *call = container_of(t, struct rpcrdma_call, task);
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);

	cds_list_del(&call->parked);
	atomic_fetch_sub(&conn->nparked, 1);
	pull(call);
}

static void pull_ready(struct pool_request *r, struct buf *b)
{
	struct rpcrdma_call *call = container_of(r, struct rpcrdma_call, room);

	call->sink = b;
	loop_post(call->msg.xprt->loop, &call->task, resume);
}

void rpcrdma_pull(struct rpcrdma_call *call)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);
	struct buf *b;

	call->room.ready = pull_ready;
	call->room.flow = conn->xprt.flow;
	b = pool_request(conn->xprt.pool, call->layout.sink_len, &call->room);
	if (b) {
		call->sink = b;
		pull(call);
		return;
	}
	/* pull_ready() can have set it; resume() runs on this thread. */
	stat_inc(rdma_pool_waits);
	cds_list_add_tail(&call->parked, &conn->parked);
	atomic_fetch_add(&conn->nparked, 1);
}

void rpcrdma_pull_cancel(struct rpcrdma_conn *conn)
{
	struct rpcrdma_call *call, *next;

	cds_list_for_each_entry_safe(call, next, &conn->parked, parked) {
		if (!pool_cancel(conn->xprt.pool, &call->room))
			continue;	/* resume() follows, and drops the
					 * call */
		cds_list_del(&call->parked);
		atomic_fetch_sub(&conn->nparked, 1);
		rpcrdma_call_drop(call);
	}
}
