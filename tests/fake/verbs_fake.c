/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - one RDMA device that does what the test says: verbs.
 */
#include "tests/fake/verbs_fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/fake/verbs_fake_impl.h"

#define CQ_SIZE		1024

struct fake_cq {
	struct ibv_cq	cq;
	struct ibv_wc	wc[CQ_SIZE];
	unsigned	head, tail;
	bool		armed;
	unsigned	events;		/* read and not acknowledged */
	unsigned	qps;
};

struct fake fake;

static struct ibv_device device = { .name = "fake0" };
static struct ibv_context context = { .device = &device };

struct ibv_context *fake_context(void)
{
	return &context;
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
	memset(wc, 0x5a, sizeof(*wc));	/* what is not valid */
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
		FAKE_CHECK(wr->num_sge <= 4);
		out->wr_id = wr->wr_id;
		out->opcode = wr->opcode;
		out->signaled = wr->send_flags & IBV_SEND_SIGNALED;
		out->nsge = (unsigned)wr->num_sge;
		memcpy(out->sge, wr->sg_list,
		       out->nsge * sizeof(out->sge[0]));
		out->remote_addr = wr->wr.rdma.remote_addr;
		out->rkey = wr->opcode == IBV_WR_SEND_WITH_INV ?
			    wr->invalidate_rkey : wr->wr.rdma.rkey;
		qp->nsends++;
		FAKE_CHECK(qp->nsends - qp->sends_done <= FAKE_QUEUE);
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
		qp->recvs[qp->nrecvs++ % FAKE_QUEUE] = wr->wr_id;
	}
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
	struct fake_qp *qp = fake.qp;

	fake_lock();
	/* Just before it is armed, so that no event tells of it. */
	if (fake.eager && qp && qp->sends_done < qp->nsends)
		send_done(qp, IBV_WC_SUCCESS);
	cq->armed = true;
	fake_unlock();
	return 0;
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
	fake_async_init(&context);
	context.ops.poll_cq = poll_cq;
	context.ops.req_notify_cq = req_notify_cq;
	context.ops.post_send = post_send;
	context.ops.post_recv = post_recv;
}

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	if (fake_fails())
		return ENOMEM;
	device.transport_type = fake.transport;
	*attr = fake.attr;
	return 0;
}

const char *ibv_get_device_name(struct ibv_device *dev)
{
	return dev->name;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct ibv_pd *pd;

	if (fake_fails())
		return NULL;
	pd = calloc(1, sizeof(*pd));
	pd->context = ctx;
	fake_count(1);
	return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	fake_count(-1);
	free(pd);
	return 0;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t len,
			  int access)
{
	struct ibv_mr *mr;

	if (fake_fails())
		return NULL;
	if (fake.no_relaxed && (access & IBV_ACCESS_RELAXED_ORDERING)) {
		errno = EINVAL;
		return NULL;
	}
	mr = calloc(1, sizeof(*mr));
	mr->addr = addr;
	mr->length = len;
	mr->lkey = 0x11;
	mr->rkey = 0x22;
	/* Remembered here for ibv_dereg_mr(). */
	mr->handle = (unsigned)access;
	fake_lock();
	fake.mr_access = (unsigned)access;
	if (access & IBV_ACCESS_REMOTE_WRITE) {
		fake.open_mrs++;
		fake.opened++;
		fake.open_addr = addr;
		fake.open_len = len;
	}
	fake_unlock();
	fake_count(1);
	return mr;
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t len,
				uint64_t iova, unsigned access)
{
	return ibv_reg_mr(pd, addr, len, (int)access);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	fake_lock();
	if (mr->handle & IBV_ACCESS_REMOTE_WRITE)
		fake.open_mrs--;
	fake_unlock();
	fake_count(-1);
	free(mr);
	return 0;
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel;

	if (fake_fails())
		return NULL;
	channel = calloc(1, sizeof(*channel));
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
	cq = calloc(1, sizeof(*cq));
	cq->cq.context = ctx;
	cq->cq.channel = channel;
	cq->cq.cq_context = cq_context;
	cq->cq.cqe = cqe;
	fake.cq_depth = (unsigned)cqe;
	if (channel)
		channel->refcnt++;
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

/* There is one queue to a channel, as the provider has it. */
int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **cq_context)
{
	uint64_t n;

	if (read(channel->fd, &n, sizeof(n)) < 0)
		return -1;
	*cq = fake.qp->qp.send_cq;
	*cq_context = (*cq)->cq_context;
	FAKE_CHECK((*cq)->channel == channel);
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
	qp = calloc(1, sizeof(*qp));
	qp->qp.context = pd->context;
	qp->qp.qp_context = attr->qp_context;
	qp->qp.send_cq = attr->send_cq;
	qp->qp.recv_cq = attr->recv_cq;
	qp->attr = *attr;
	qp->rnr_timer = -1;
	cq_of(attr->send_cq)->qps++;
	id->qp = &qp->qp;
	fake.qp = qp;
	fake_count(1);
	return 0;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	fake_async_purge(id->qp);
	cq_of(id->qp->send_cq)->qps--;
	fake_lock();
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
