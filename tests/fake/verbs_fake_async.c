/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - one RDMA device that does what the test says: its own events.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/fake/verbs_fake_impl.h"

static struct ibv_async_event queued[FAKE_ASYNCS];
static unsigned nqueued;
static bool taking;		/* one is not acknowledged */
static const void *unacked;	/* the queue that it names */
static int fd = -1;
static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;

void fake_async_init(struct ibv_context *ctx)
{
	if (fd >= 0)
		close(fd);
	fd = eventfd(0, EFD_SEMAPHORE);
	ctx->async_fd = fd;
	nqueued = 0;
	taking = false;
	unacked = NULL;
}

static const void *queue_of(const struct ibv_async_event *ev)
{
	switch (ev->event_type) {
	case IBV_EVENT_CQ_ERR:
		return ev->element.cq;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
		return ev->element.qp;
	default:
		return NULL;
	}
}

void fake_async(enum ibv_event_type type)
{
	struct ibv_async_event ev = { .event_type = type };

	fake_lock();
	FAKE_CHECK(nqueued < FAKE_ASYNCS);
	ev.element.port_num = 1;
	if (type == IBV_EVENT_CQ_ERR)
		ev.element.cq = fake.qp->qp.send_cq;
	else if (type != IBV_EVENT_DEVICE_FATAL &&
		 type != IBV_EVENT_PORT_ERR && type != IBV_EVENT_PORT_ACTIVE)
		ev.element.qp = &fake.qp->qp;
	queued[nqueued++] = ev;
	FAKE_CHECK(eventfd_write(fd, 1) == 0);
	fake_unlock();
}

bool fake_asyncs_over(void)
{
	bool over;

	fake_lock();
	over = nqueued == 0 && !taking;
	fake_unlock();
	return over;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *ev)
{
	eventfd_t n;

	if (eventfd_read(fd, &n))
		return -1;
	fake_lock();
	if (nqueued == 0) {		/* purged meanwhile */
		fake_unlock();
		errno = EAGAIN;
		return -1;
	}
	*ev = queued[0];
	memmove(&queued[0], &queued[1], --nqueued * sizeof(queued[0]));
	FAKE_CHECK(!taking);
	taking = true;
	unacked = queue_of(ev);
	fake_unlock();
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *ev)
{
	fake_lock();
	FAKE_CHECK(unacked == queue_of(ev));
	taking = false;
	unacked = NULL;
	pthread_cond_broadcast(&acked);
	fake_unlock();
}

void fake_async_purge(const void *queue)
{
	unsigned n = 0;

	fake_lock();
	for (unsigned i = 0; i < nqueued; i++)
		if (queue_of(&queued[i]) != queue)
			queued[n++] = queued[i];
	nqueued = n;
	while (unacked == queue)
		pthread_cond_wait(&acked, &fake.lock);
	fake_unlock();
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
	return "event";
}

int rdma_notify(struct rdma_cm_id *id, enum ibv_event_type type)
{
	FAKE_CHECK(id->qp && type == IBV_EVENT_COMM_EST);
	fake_lock();
	fake.notified++;
	fake_unlock();
	return 0;
}
