/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs and their completions.
 *
 * The wr_id of a step is the address of its op, and of a Receive that of its
 * fabric_recv; a step without an op has no wr_id and is not signaled; its
 * completion comes only if it fails.  Each queue also has a ring of the wr_ids
 * that the device has.  So an op is done exactly once, and in order, whatever
 * the device does.  The device can still have ops when the queue pair is
 * destroyed: on some devices, work posted while the peer went away; or the rest
 * of a chain that it took in part.  Those are done then, as flushed, when the
 * device no longer touches their memory.
 *
 * siw completes a Send as soon as TCP has it, even when a Read before it
 * still waits for its data; that completion waits in the ring for its turn.
 */
#include "transport/fabric/verbs/ring.h"

#include <fcntl.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "lib/util.h"

/* Completions to take from one connection before the next has its turn. */
#define POLL_BATCH	16
/* After so many empty polls the connection arms its channel instead. */
#define HOT_ROUNDS	256
/* No reply is shorter than 56 bytes. */
#define INLINE_MIN	64u
/* Events are acknowledged in batches, because that takes a mutex. */
#define ACK_BATCH	64

STAT(verbs_flushed, "work requests flushed by the end of a connection");
STAT(verbs_failed, "work requests that failed");
STAT(verbs_stray, "completions of unknown work requests");
STAT(verbs_cq_failed, "completion queues that failed");
STAT(verbs_inline_refused, "queue pairs created with less inline data after a "
     "device had refused more");

static int op_status(enum ibv_wc_status status)
{
	switch (status) {
	case IBV_WC_SUCCESS:
		return 0;
	case IBV_WC_WR_FLUSH_ERR:
		return -ECANCELED;
	case IBV_WC_REM_ACCESS_ERR:
	case IBV_WC_REM_INV_REQ_ERR:
	case IBV_WC_REM_OP_ERR:
		return -EREMOTEIO;
	case IBV_WC_LOC_LEN_ERR:
		return -EMSGSIZE;
	default:
		return -EIO;
	}
}

static void work_failed(struct verbs_conn *c, const struct ibv_wc *wc,
			int status)
{
	if (status == -ECANCELED) {
		stat_inc(verbs_flushed);
		/* On InfiniBand and RoCE only our own close flushes after the
		 * peer's: this is neither. */
		status = c->dev->iwarp ? -ECONNRESET : -ECONNABORTED;
	} else {
		stat_inc(verbs_failed);
		log_limited(LOG_LEVEL_INFO, "rdma: work failed: %s (0x%x)",
			    ibv_wc_status_str(wc->status), wc->vendor_err);
	}
	verbs_conn_fail(c, status);
}

static void verbs_queue_recv_done(struct fabric_recv *recv,
				  const struct ibv_wc *wc, int status)
{
	if (!status) {
		recv->has_invalidated = wc->wc_flags & IBV_WC_WITH_INV;
		if (recv->has_invalidated)
			recv->invalidated = wc->invalidated_rkey;
	}
	recv->op->done(recv->op, status, status ? 0 : wc->byte_len);
}

/* Does the sends whose turn it is; at the end, all of them. */
static void sends_done(struct verbs_conn *c, bool end)
{
	struct verbs_slot *slot;
	struct fabric_op *op;
	int status;

	while ((slot = verbs_ring_head(&c->posts.sends)) != NULL &&
	       (end || slot->status != VERBS_PENDING)) {
		status = slot->status == VERBS_PENDING ? -ECANCELED
						       : slot->status;
		if (slot->error)
			status = slot->error;
		op = verbs_ring_take(&c->posts.sends);
		op->done(op, status, 0);
	}
}

/* A step without an op failed: the next op reports that. */
static void note_error(struct verbs_conn *c, int status)
{
	struct verbs_slot *head = verbs_ring_head(&c->posts.sends);

	if (head && status && status != -ECANCELED)
		head->error = status;
}

/* Notes the status of a send.  False: @wc is not a send's. */
static bool note_send(struct verbs_conn *c, const void *id, int status)
{
	struct verbs_slot *head = verbs_ring_head(&c->posts.sends);
	bool known;

	if (likely(head && head->id == id && head->status == VERBS_PENDING)) {
		head->status = status;
		return true;
	}
	/* A failing post can take back the entries behind this one. */
	mutex_lock(&c->posts.lock);
	known = verbs_ring_note(&c->posts.sends, id, status);
	mutex_unlock(&c->posts.lock);
	return known;
}

/* The device itself says that it can't do the step @id. */
static void learn_operation(struct verbs_conn *c, const void *id)
{
	struct verbs_slot *head = verbs_ring_head(&c->posts.sends);

	if (head && head->id == id && head->invalidates)
		verbs_lacks_inv(c->dev);
}

static void complete(struct verbs_conn *c, const struct ibv_wc *wc)
{
	void *id = (void *)(uintptr_t)wc->wr_id;
	int status = op_status(wc->status);
	struct verbs_slot *recv = verbs_ring_head(&c->posts.recvs);

	if (status)		/* no other field of wc is valid */
		work_failed(c, wc, status);
	if (!id) {
		note_error(c, status);
		return;
	}
	if (unlikely(wc->status == IBV_WC_LOC_QP_OP_ERR))
		learn_operation(c, id);
	if (recv && recv->id == id) {
		verbs_ring_take(&c->posts.recvs);
		verbs_queue_recv_done(id, wc, status);
	} else if (note_send(c, id, status)) {
		sends_done(c, false);
	} else {
		stat_inc(verbs_stray);
		verbs_conn_fail(c, -EIO);
	}
}

static unsigned poll_conn(struct verbs_conn *c)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(c->poll.cq, POLL_BATCH, wc);

	if (unlikely(n < 0)) {
		stat_inc(verbs_cq_failed);
		c->gone = true;
		verbs_conn_fail(c, -EIO);
		return 0;
	}
	if (n == 0)
		return 0;
	c->poll.gathering = true;
	for (int i = 0; i < n; i++)
		complete(c, &wc[i]);
	c->poll.gathering = false;
	if (c->dev->post_on_loop)
		verbs_post_queued(c);
	return (unsigned)n;
}

static void heat(struct verbs_conn *c)
{
	struct verbs_loop *vl = c->vl;

	c->poll.idle = 0;
	if (c->poll.hot)
		return;
	if (cds_list_empty(&vl->hot))
		loop_source_add(vl->loop, &vl->source);
	c->poll.hot = true;
	cds_list_add_tail(&c->poll.hot_link, &vl->hot);
}

static void cool(struct verbs_conn *c)
{
	if (!c->poll.hot)
		return;
	c->poll.hot = false;
	cds_list_del(&c->poll.hot_link);
	if (cds_list_empty(&c->vl->hot))
		loop_source_del(c->vl->loop, &c->vl->source);
}

/* Lets the next completion wake the loop.  False when one came meanwhile. */
static bool arm(struct verbs_conn *c)
{
	if (ibv_req_notify_cq(c->poll.cq, 0)) {
		stat_inc(verbs_cq_failed);
		c->gone = true;
		verbs_conn_fail(c, -EIO);
	}
	/* Completions from before the arming do not wake us. */
	if (poll_conn(c) > 0)
		return false;
	cool(c);
	return true;
}

unsigned verbs_hot_poll(struct loop_source *s)
{
	struct verbs_loop *vl = container_of(s, struct verbs_loop, source);
	struct verbs_conn *c, *next;
	unsigned n, sum = 0;

	cds_list_for_each_entry_safe(c, next, &vl->hot, poll.hot_link) {
		n = poll_conn(c);
		sum += n;
		if (n)
			c->poll.idle = 0;
		else if (++c->poll.idle > HOT_ROUNDS && !arm(c))
			sum++;
	}
	return sum;
}

bool verbs_hot_arm(struct loop_source *s)
{
	struct verbs_loop *vl = container_of(s, struct verbs_loop, source);
	struct verbs_conn *c, *next;
	bool work = false;

	cds_list_for_each_entry_safe(c, next, &vl->hot, poll.hot_link)
		work |= !arm(c);
	return work;
}

/* The completion channel: the queue was armed and has something. */
static void notified(struct loop_fd *f, uint32_t events)
{
	struct verbs_conn *c = container_of(f, struct verbs_conn,
					    poll.fd);
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(c->poll.channel, &cq, &context)) {
		if (errno == EAGAIN || errno == EINTR)
			return;
		/* The device is gone: stop watching its channel. */
		stat_inc(verbs_cq_failed);
		loop_fd_del(c->conn.loop, &c->poll.fd);
		c->gone = true;
		verbs_conn_fail(c, -ENODEV);
		return;
	}
	if (++c->poll.unacked >= ACK_BATCH) {
		ibv_ack_cq_events(c->poll.cq, c->poll.unacked);
		c->poll.unacked = 0;
	}
	heat(c);
}

static int create_cq(struct verbs_conn *c, const struct fabric_queues *q)
{
	struct loop_fd *fd = &c->poll.fd;
	/* A flush completes even unsignaled steps, so make room for all. */
	int depth = (int)(q->send_wr + q->recv_wr);
	/* A loop's connections interrupt one processor; connections of
	 * different loops interrupt different ones. */
	int vectors = MAX(c->id->verbs->num_comp_vectors, 1);
	int vector = (int)(c->vl->number % (unsigned)vectors);

	c->poll.channel = ibv_create_comp_channel(c->id->verbs);
	if (!c->poll.channel || fcntl(c->poll.channel->fd, F_SETFL, O_NONBLOCK))
		return verbs_errno();
	c->poll.cq = ibv_create_cq(c->id->verbs, depth, c, c->poll.channel,
				   vector);
	if (!c->poll.cq || ibv_req_notify_cq(c->poll.cq, 0))
		return verbs_errno();
	*fd = (struct loop_fd){ notified, c->poll.channel->fd, EPOLLIN };
	return loop_fd_add(c->conn.loop, fd);
}

/*
 * ibv_query_device() does not tell how many bytes fit in a work request, and a
 * device that has room for fewer refuses the queue pair.  So ask for half of
 * them, and so on.  The next connection begins with the number that worked.
 */
static int create_qp(struct verbs_conn *c, const struct ibv_qp_init_attr *want)
{
	struct ibv_qp_init_attr attr = *want;
	unsigned most = atomic_load(&c->dev->inline_max);
	unsigned n = most;

	attr.cap.max_inline_data = n;
	while (rdma_create_qp(c->id, verbs_pd(c->dev, c->domain), &attr)) {
		if (n == 0)
			return verbs_errno();
		n = n / 2 < INLINE_MIN ? 0 : n / 2;
		attr = *want;
		attr.cap.max_inline_data = n;
	}
	if (n < most) {
		stat_inc(verbs_inline_refused);
		atomic_store(&c->dev->inline_max, n);
	}
	c->posts.inline_max = MIN(attr.cap.max_inline_data, n);
	return 0;
}

int verbs_queues_create(struct verbs_conn *c, const struct fabric_queues *q)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = c,
		.qp_type = IBV_QPT_RC,
		.cap.max_send_wr = q->send_wr,
		.cap.max_recv_wr = q->recv_wr,
		.cap.max_send_sge = q->send_sge,
		.cap.max_recv_sge = 1,
	};
	int err;

	if (verbs_ring_init(&c->posts.sends, q->send_wr) ||
	    verbs_ring_init(&c->posts.recvs, q->recv_wr) ||
	    (c->dev->post_on_loop &&
	     verbs_ring_init(&c->posts.chains, q->send_wr)))
		return -ENOMEM;
	err = create_cq(c, q);
	if (err)
		return err;
	attr.send_cq = c->poll.cq;
	attr.recv_cq = c->poll.cq;
	return create_qp(c, &attr);
}

static void verbs_queue_flush(struct verbs_conn *c)
{
	struct fabric_recv *recv;

	sends_done(c, true);
	while (verbs_ring_head(&c->posts.recvs)) {
		recv = verbs_ring_take(&c->posts.recvs);
		recv->op->done(recv->op, -ECANCELED, 0);
	}
}

void verbs_queues_stop(struct verbs_conn *c)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	/* Completed ops get their true status. */
	ibv_modify_qp(c->id->qp, &attr, IBV_QP_STATE);
	while (poll_conn(c) > 0)
		;
	rdma_destroy_qp(c->id);
	verbs_queue_flush(c);
}

void verbs_queues_destroy(struct verbs_conn *c)
{
	if (c->id && c->id->qp)
		rdma_destroy_qp(c->id);
	if (c->poll.cq) {
		cool(c);
		if (c->poll.fd.ready)
			loop_fd_del(c->conn.loop, &c->poll.fd);
		ibv_ack_cq_events(c->poll.cq, c->poll.unacked);
		ibv_destroy_cq(c->poll.cq);
	}
	if (c->poll.channel)
		ibv_destroy_comp_channel(c->poll.channel);
	free(c->posts.sends.slot);
	free(c->posts.recvs.slot);
	free(c->posts.chains.slot);
	c->poll.cq = NULL;
	c->poll.channel = NULL;
	c->posts.sends.slot = NULL;
	c->posts.recvs.slot = NULL;
	c->posts.chains.slot = NULL;
}
