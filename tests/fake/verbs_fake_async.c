/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - RDMA devices that the test controls: their own events.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "tests/fake/verbs_fake_impl.h"

static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;

/* A pipe for each file: its other end is told when it is closed. */
void fake_async_init(struct fake_device *d)
{
	int cmd[2], async[2];

	FAKE_CHECK(pipe(cmd) == 0 && pipe(async) == 0);
	d->cmd_end = cmd[0];
	d->context.cmd_fd = cmd[1];
	d->context.async_fd = async[0];
	d->async_end = async[1];
}

void fake_async_tell(struct fake_device *d)
{
	FAKE_CHECK(write(d->async_end, "", 1) == 1);
}

static bool is_closed(int end)
{
	struct pollfd fd = { .fd = end };

	return poll(&fd, 1, 0) == 1 && fd.revents & (POLLHUP | POLLERR);
}

unsigned fake_held(void)
{
	unsigned n = 0;

	fake_lock();
	for (unsigned i = 0; i < FAKE_DEVICES; i++)
		if (fake_devices[i].gone && fake_devices[i].opened)
			n += !is_closed(fake_devices[i].cmd_end) +
			     !is_closed(fake_devices[i].async_end);
	fake_unlock();
	return n;
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

static bool is_of_queue(enum ibv_event_type type)
{
	switch (type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_PATH_MIG:
		return true;
	default:
		return false;
	}
}

void fake_async(enum ibv_event_type type)
{
	struct ibv_async_event ev = { .event_type = type };
	struct fake_device *d = fake_device_in(0);

	fake_lock();
	FAKE_CHECK(d->nqueued < FAKE_ASYNCS);
	ev.element.port_num = 1;
	if (type == IBV_EVENT_CQ_ERR)
		ev.element.cq = fake.qp->qp.send_cq;
	else if (is_of_queue(type))
		ev.element.qp = &fake.qp->qp;
	d->queued[d->nqueued++] = ev;
	fake_async_tell(d);
	fake_unlock();
}

bool fake_asyncs_over(void)
{
	bool over = true;

	fake_lock();
	for (unsigned i = 0; i < FAKE_DEVICES; i++)
		over &= fake_devices[i].nqueued == 0 &&
			!fake_devices[i].taking;
	fake_unlock();
	return over;
}

int ibv_get_async_event(struct ibv_context *ctx, struct ibv_async_event *ev)
{
	struct fake_device *d = fake_device_of(ctx);
	char one;

	if (read(ctx->async_fd, &one, 1) != 1)
		return -1;
	fake_lock();
	if (d->nqueued == 0) {		/* purged meanwhile, or none come */
		errno = d->gone ? EIO : EAGAIN;
		fake_unlock();
		return -1;
	}
	*ev = d->queued[0];
	memmove(&d->queued[0], &d->queued[1],
		--d->nqueued * sizeof(d->queued[0]));
	FAKE_CHECK(!d->taking);
	d->taking = true;
	d->unacked = queue_of(ev);
	fake_unlock();
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *ev)
{
	struct fake_device *d = fake_devices;

	fake_lock();
	while (!d->taking || d->unacked != queue_of(ev))
		FAKE_CHECK(++d < fake_devices + FAKE_DEVICES);
	d->taking = false;
	d->unacked = NULL;
	pthread_cond_broadcast(&acked);
	fake_unlock();
}

static void purge(struct fake_device *d, const void *queue)
{
	unsigned n = 0;

	for (unsigned i = 0; i < d->nqueued; i++)
		if (queue_of(&d->queued[i]) != queue)
			d->queued[n++] = d->queued[i];
	d->nqueued = n;
	while (d->unacked == queue)
		pthread_cond_wait(&acked, &fake.lock);
}

void fake_async_purge(const void *queue)
{
	fake_lock();
	for (unsigned i = 0; i < FAKE_DEVICES; i++)
		purge(&fake_devices[i], queue);
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
