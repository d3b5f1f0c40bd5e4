/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - RDMA devices that the test controls: verbs.
 */
#include "tests/fake/verbs_fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/fake/verbs_fake_impl.h"

#define CQ_SIZE		1024

struct fake_comp {
	struct ibv_comp_channel channel;
	struct ibv_cq	*cq;		/* the only one */
};

struct fake_cq {
	struct ibv_cq	cq;
	struct ibv_wc	wc[CQ_SIZE];
	unsigned	head, tail;
	bool		armed;
	unsigned	events;		/* read and not acknowledged */
	unsigned	qps;
};

struct fake fake;

struct fake_device fake_devices[FAKE_DEVICES];
static unsigned nplugged;
static struct fake_device *slots[2];

struct fake_device *fake_device_of(struct ibv_context *ctx)
{
	return container_of(ctx, struct fake_device, context);
}

struct fake_device *fake_device_in(unsigned slot)
{
	return slots[slot];
}

void fake_lock(void)
{
	pthread_mutex_lock(&fake.lock);
}

void fake_unlock(void)
{
	pthread_mutex_unlock(&fake.lock);
}

bool fake_fails(void)
{
	bool fails;

	fake_lock();
	fails = ++fake.calls == fake.fail_call;
	fake_unlock();
	errno = ENOMEM;
	return fails;
}

void fake_count(int n)
{
	fake_lock();
	fake.objects += (unsigned)n;
	fake_unlock();
}

static struct fake_cq *cq_of(struct ibv_cq *cq)
{
	return (struct fake_cq *)cq;
}

/* The lock is held. */
static void push(struct fake_cq *cq, uint64_t wr_id, enum ibv_wc_status status,
		 uint32_t len, uint32_t invalidated)
{
	static const uint64_t one = 1;
	struct ibv_wc *wc = &cq->wc[cq->tail++ % CQ_SIZE];

	FAKE_CHECK(cq->tail - cq->head <= (unsigned)cq->cq.cqe);
	memset(wc, 0x5a, sizeof(*wc));	/* invalid fields */
	wc->wr_id = wr_id;
	wc->status = status;
	if (status == IBV_WC_SUCCESS) {
		wc->byte_len = len;
		wc->wc_flags = invalidated ? IBV_WC_WITH_INV : 0;
		wc->invalidated_rkey = invalidated;
	}
	if (cq->armed) {
		cq->armed = false;
		FAKE_CHECK(write(cq->cq.channel->fd, &one, sizeof(one)) > 0);
	}
}

static void send_done(struct fake_qp *qp, enum ibv_wc_status status)
{
	while (qp->sends_done < qp->nsends) {
		struct fake_wr *wr = &qp->sends[qp->sends_done++ % FAKE_QUEUE];

		if (!wr->signaled)
			continue;
		push(cq_of(qp->qp.send_cq), wr->wr_id, status, 0, 0);
		return;
	}
	FAKE_CHECK(false);
}

void fake_send_done(enum ibv_wc_status status)
{
	fake_lock();
	send_done(fake.qp, status);
	fake_unlock();
}

void fake_unsignaled_failed(enum ibv_wc_status status)
{
	struct fake_qp *qp = fake.qp;
	struct fake_wr *wr;

	fake_lock();
	FAKE_CHECK(qp->sends_done < qp->nsends);
	wr = &qp->sends[qp->sends_done++ % FAKE_QUEUE];
	FAKE_CHECK(!wr->signaled);
	push(cq_of(qp->qp.send_cq), wr->wr_id, status, 0, 0);
	fake_unlock();
}

void fake_recv_done(enum ibv_wc_status status, uint32_t len,
		    uint32_t invalidated)
{
	struct fake_qp *qp = fake.qp;

	fake_lock();
	FAKE_CHECK(qp->recvs_done < qp->nrecvs);
	push(cq_of(qp->qp.recv_cq), qp->recvs[qp->recvs_done++ % FAKE_QUEUE],
	     status, len, invalidated);
	fake_unlock();
}

void fake_stray_done(uint64_t wr_id)
{
	fake_lock();
	push(cq_of(fake.qp->qp.send_cq), wr_id, IBV_WC_SUCCESS, 0, 0);
	fake_unlock();
}

void fake_send_completes(struct fake_qp *qp)
{
	struct fake_wr *wr = &qp->sends[qp->sends_done++ % FAKE_QUEUE];

	if (wr->signaled)
		push(cq_of(qp->qp.send_cq), wr->wr_id, IBV_WC_SUCCESS, 0, 0);
}

void fake_recv_completes(struct fake_qp *qp, uint32_t len)
{
	push(cq_of(qp->qp.recv_cq), qp->recvs[qp->recvs_done++ % FAKE_QUEUE],
	     IBV_WC_SUCCESS, len, 0);
}

/* Everything completes in error, the unsignaled as well. */
static void flush(struct fake_qp *qp)
{
	for (; qp->sends_done < qp->nsends; qp->sends_done++)
		push(cq_of(qp->qp.send_cq),
		     qp->sends[qp->sends_done % FAKE_QUEUE].wr_id,
		     IBV_WC_WR_FLUSH_ERR, 0, 0);
	for (; qp->recvs_done < qp->nrecvs; qp->recvs_done++)
		push(cq_of(qp->qp.recv_cq),
		     qp->recvs[qp->recvs_done % FAKE_QUEUE],
		     IBV_WC_WR_FLUSH_ERR, 0, 0);
}

/* True: this work request is refused. */
static bool refused(unsigned *n)
{
	return fake.post_errno && ++*n == fake.post_at;
}

/* True: the user library does not know this work request. */
static bool unknown(const struct ibv_send_wr *wr)
{
	return fake.lib_lacks >> wr->opcode & 1 ||
	       (fake.lib_no_inline && wr->send_flags & IBV_SEND_INLINE);
}

static void take_bytes(const struct fake_qp *qp, struct fake_wr *out,
		       const struct ibv_send_wr *wr)
{
	size_t n = 0;

	FAKE_CHECK(wr->opcode == IBV_WR_SEND ||
		   wr->opcode == IBV_WR_RDMA_WRITE);	/* as siw */
	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		FAKE_CHECK(n + sge->length <= qp->attr.cap.max_inline_data);
		memcpy(out->bytes + n, (void *)(uintptr_t)sge->addr,
		       sge->length);
		n += sge->length;
	}
}

static int post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;
	unsigned n = 0;
	int err = 0;

	fake_lock();
	fake.posts++;
	fake.poster = pthread_self();
	for (; wr; wr = wr->next) {
		struct fake_wr *out = &qp->sends[qp->nsends % FAKE_QUEUE];

		if (refused(&n)) {
			*bad = wr;
			err = fake.post_forgets ? 0 : fake.post_errno;
			break;
		}
		if (unknown(wr)) {
			*bad = wr;
			err = fake.lib_errno;
			break;
		}
		FAKE_CHECK(wr->num_sge <= MIN(4,
				(int)qp->attr.cap.max_send_sge));
		FAKE_CHECK(wr->opcode != IBV_WR_RDMA_READ ||
			   wr->num_sge <= MAX(fake.attr.max_sge_rd, 1));
		fake.inlined += !!(wr->send_flags & IBV_SEND_INLINE);
		out->in_line = wr->send_flags & IBV_SEND_INLINE;
		if (out->in_line)
			take_bytes(qp, out, wr);
		out->wr_id = wr->wr_id;
		out->opcode = wr->opcode;
		out->signaled = wr->send_flags & IBV_SEND_SIGNALED;
		out->nsge = (unsigned)wr->num_sge;
		if (out->nsge > 0)
			memcpy(out->sge, wr->sg_list,
			       out->nsge * sizeof(out->sge[0]));
		if (wr->opcode == IBV_WR_BIND_MW) {
			out->mw = wr->bind_mw.mw;
			out->bind = wr->bind_mw.bind_info;
			out->lkey = out->bind.mr->lkey;
		}
		out->remote_addr = wr->wr.rdma.remote_addr;
		out->rkey = wr->opcode == IBV_WR_SEND_WITH_INV ?
			    wr->invalidate_rkey :
			    wr->opcode == IBV_WR_BIND_MW ?
			    wr->bind_mw.rkey : wr->wr.rdma.rkey;
		qp->nsends++;
		FAKE_CHECK(qp->nsends - qp->sends_done <= FAKE_QUEUE);
		FAKE_CHECK(qp->nsends - qp->sends_done <=
			   qp->attr.cap.max_send_wr);
	}
	if (fake.wired) {
		fake_wire_check_reads(qp);
		fake_wire_kick();
	}
	fake.post_at -= MIN(fake.post_at, n);
	if (qp->error && !fake.keeps_work)
		flush(qp);
	fake_unlock();
	return err;
}

static int post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;
	unsigned n = 0;
	int err = 0;

	fake_lock();
	for (; wr; wr = wr->next) {
		if (refused(&n)) {
			*bad = wr;
			err = fake.post_errno;
			break;
		}
		qp->recv_sge[qp->nrecvs % FAKE_QUEUE] = *wr->sg_list;
		qp->recvs[qp->nrecvs++ % FAKE_QUEUE] = wr->wr_id;
		FAKE_CHECK(qp->nrecvs - qp->recvs_done <=
			   qp->attr.cap.max_recv_wr);
		FAKE_CHECK(qp->nrecvs - qp->recvs_done <= FAKE_QUEUE);
	}
	if (fake.wired)
		fake_wire_kick();
	if (qp->error && !fake.keeps_work)
		flush(qp);
	fake_unlock();
	return err;
}

static int poll_cq(struct ibv_cq *ibcq, int max, struct ibv_wc *wc)
{
	struct fake_cq *cq = cq_of(ibcq);
	int n = 0;

	fake_lock();
	while (n < max && cq->head != cq->tail)
		wc[n++] = cq->wc[cq->head++ % CQ_SIZE];
	fake_unlock();
	return n;
}

static int req_notify_cq(struct ibv_cq *ibcq, int solicited)
{
	struct fake_cq *cq = cq_of(ibcq);
	struct fake_qp *qp;

	fake_lock();
	qp = fake.qp;
	/* Complete just before it is armed: then no event reports it. */
	if (fake.eager && qp && qp->sends_done < qp->nsends)
		send_done(qp, IBV_WC_SUCCESS);
	cq->armed = true;
	fake_unlock();
	return 0;
}

void fake_plug(unsigned slot)
{
	struct fake_device *d = &fake_devices[nplugged++];

	FAKE_CHECK(nplugged <= FAKE_DEVICES);
	fake_lock();
	*d = (struct fake_device){ 0 };
	snprintf(d->device.name, sizeof(d->device.name), "fake%u", slot);
	d->device.transport_type = fake.transport;
	d->context.device = &d->device;
	d->context.num_comp_vectors = fake.vectors;
	fake_async_init(d);
	d->context.ops.poll_cq = poll_cq;
	d->context.ops.req_notify_cq = req_notify_cq;
	d->context.ops.post_send = post_send;
	d->context.ops.post_recv = post_recv;
	d->context.ops.alloc_mw = fake_alloc_mw;
	d->context.ops.dealloc_mw = fake_dealloc_mw;
	slots[slot] = d;
	fake_unlock();
}

void fake_unplug(unsigned slot, bool silent)
{
	struct fake_device *d = slots[slot];

	fake_lock();
	d->gone = true;
	slots[slot] = NULL;
	fake_unlock();
	if (silent)
		fake_async_tell(d);
	else
		fake_cm_unplugged(d);
}

void fake_init(void)
{
	memset(&fake, 0, sizeof(fake));
	pthread_mutex_init(&fake.lock, NULL);
	fake.attr = (struct ibv_device_attr){
		.max_qp_wr = 1000, .max_cqe = 4000, .max_sge = 16,
		.max_sge_rd = 8, .max_qp_rd_atom = 16,
		.max_qp_init_rd_atom = 12,
		.device_cap_flags = IBV_DEVICE_MEM_MGT_EXTENSIONS,
		.vendor_id = 0x2c9,
	};
	fake.inline_max = fake.inline_grant = 1024;
	fake.vectors = 1;
	nplugged = 0;
	fake_plug(0);
	fake_plug(1);
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	if (fake_fails())
		return ENOMEM;
	ctx->device->transport_type = fake.transport;
	ctx->num_comp_vectors = fake.vectors;
	*attr = fake.attr;
	return 0;
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel;

	if (fake_fails())
		return NULL;
	channel = calloc(1, sizeof(struct fake_comp));
	channel->context = ctx;
	channel->fd = eventfd(0, EFD_SEMAPHORE);
	fake_count(1);
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	FAKE_CHECK(channel->refcnt == 0);
	close(channel->fd);
	fake_count(-1);
	free(channel);
	return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe,
			     void *cq_context,
			     struct ibv_comp_channel *channel, int vector)
{
	struct fake_cq *cq;

	if (fake_fails())
		return NULL;
	if (cqe < 1 || cqe > fake.attr.max_cqe) {
		errno = EINVAL;
		return NULL;
	}
	cq = calloc(1, sizeof(*cq));
	cq->cq.context = ctx;
	cq->cq.channel = channel;
	cq->cq.cq_context = cq_context;
	cq->cq.cqe = cqe;
	fake_lock();
	fake.cq_depth = (unsigned)cqe;
	fake.cq_vector = vector;
	fake_unlock();
	FAKE_CHECK(vector >= 0 && vector < MAX(fake.vectors, 1));
	if (channel) {
		channel->refcnt++;
		((struct fake_comp *)channel)->cq = &cq->cq;
	}
	fake_count(1);
	return &cq->cq;
}

int ibv_destroy_cq(struct ibv_cq *ibcq)
{
	struct fake_cq *cq = cq_of(ibcq);

	fake_async_purge(ibcq);
	FAKE_CHECK(cq->qps == 0);
	FAKE_CHECK(cq->events == 0);
	if (ibcq->channel)
		ibcq->channel->refcnt--;
	fake_count(-1);
	free(cq);
	return 0;
}

/* Each channel has one queue, as in the provider. */
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **cq_context)
{
	uint64_t n;

	if (read(channel->fd, &n, sizeof(n)) < 0)
		return -1;
	*cq = ((struct fake_comp *)channel)->cq;
	*cq_context = (*cq)->cq_context;
	cq_of(*cq)->events++;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned n)
{
	FAKE_CHECK(n <= cq_of(cq)->events);
	cq_of(cq)->events -= n;
}

const char *ibv_wc_status_str(enum ibv_wc_status status)
{
	return "status";
}

int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
		   struct ibv_qp_init_attr *attr)
{
	struct fake_qp *qp;

	if (fake_fails())
		return -1;
	FAKE_CHECK(id->verbs == pd->context);
	if (fake.no_qps || attr->cap.max_inline_data > fake.inline_max ||
	    attr->cap.max_send_wr > (unsigned)fake.attr.max_qp_wr ||
	    attr->cap.max_recv_wr > (unsigned)fake.attr.max_qp_wr ||
	    attr->cap.max_send_sge > (unsigned)fake.attr.max_sge) {
		fake_lock();
		fake.qps_refused++;
		fake_unlock();
		errno = EINVAL;
		return -1;
	}
	attr->cap.max_inline_data = MIN(attr->cap.max_inline_data,
					fake.inline_grant);
	qp = calloc(1, sizeof(*qp));
	qp->qp.context = pd->context;
	qp->qp.pd = pd;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->attr = *attr;
	qp->rnr_timer = -1;
	cq_of(attr->send_cq)->qps++;
	id->qp = &qp->qp;
	fake_lock();
	fake.qp = qp;
	if (fake.wired)
		fake_wire_add(qp);
	fake_unlock();
	fake_count(1);
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	fake_async_purge(id->qp);
	cq_of(id->qp->send_cq)->qps--;
	fake_lock();
	if (fake.wired)
		fake_wire_del((struct fake_qp *)id->qp);
	fake.qps_destroyed++;
	if (fake.qp == (struct fake_qp *)id->qp)
		fake.qp = NULL;
	fake_unlock();
	free(id->qp);
	id->qp = NULL;
	fake_count(-1);
}

int ibv_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct fake_qp *qp = (struct fake_qp *)ibqp;

	fake_lock();
	if (mask & IBV_QP_MIN_RNR_TIMER)
		qp->rnr_timer = attr->min_rnr_timer;
	if ((mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_ERR) {
		qp->error = true;
		if (!fake.keeps_work)
			flush(qp);
	}
	fake_unlock();
	return 0;
}
