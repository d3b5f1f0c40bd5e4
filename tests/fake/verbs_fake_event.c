/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - RDMA devices that the test controls: the CM's events.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "tests/fake/verbs_fake_impl.h"

static pthread_cond_t acked = PTHREAD_COND_INITIALIZER;

struct rdma_event_channel *rdma_create_event_channel(void)
{
	struct fake_channel *ch;

	if (fake_fails())
		return NULL;
	ch = calloc(1, sizeof(*ch));
	ch->channel.fd = eventfd(0, EFD_SEMAPHORE);
	fake_count(1);
	return &ch->channel;
}

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct fake_channel *ch = (struct fake_channel *)channel;

	FAKE_CHECK(ch->ids == 0);
	FAKE_CHECK(!ch->events);
	close(channel->fd);
	fake_count(-1);
	free(ch);
}

void fake_event_list(struct rdma_event_channel *channel, struct fake_event *ev)
{
	static const uint64_t one = 1;
	struct fake_event **p = &((struct fake_channel *)channel)->events;

	while (*p)
		p = &(*p)->next;
	*p = ev;
	FAKE_CHECK(write(channel->fd, &one, sizeof(one)) > 0);
}

void fake_event_put(struct rdma_event_channel *channel, struct fake_event *ev)
{
	fake_lock();
	fake_event_list(channel, ev);
	fake_unlock();
}

static struct fake_id *owner_of(const struct rdma_cm_event *event)
{
	return (struct fake_id *)(event->listen_id ? event->listen_id
						   : event->id);
}

int rdma_get_cm_event(struct rdma_event_channel *channel,
		      struct rdma_cm_event **event)
{
	struct fake_channel *ch = (struct fake_channel *)channel;
	struct fake_event *ev;
	uint64_t n;

	fake_lock();
	ev = ch->events;
	if (ev) {
		FAKE_CHECK(read(channel->fd, &n, sizeof(n)) > 0);
		ch->events = ev->next;
		owner_of(&ev->event)->unacked++;
		*event = &ev->event;
	}
	fake_unlock();
	errno = EAGAIN;
	return ev ? 0 : -1;
}

int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	void (*after)(void) = NULL;

	fake_lock();
	owner_of(event)->unacked--;
	pthread_cond_broadcast(&acked);
	if (!event->listen_id) {
		after = fake.after_ack;
		fake.after_ack = NULL;
	}
	fake_unlock();
	/* A late reader finds nonsense. */
	memset(event, 0x5a, sizeof(struct fake_event));
	free(event);
	if (after)
		after();
	return 0;
}

void fake_event_wait_acked(const struct fake_id *id)
{
	while (id->unacked > 0)
		pthread_cond_wait(&acked, &fake.lock);
}

void fake_event_take(struct rdma_cm_id *id, struct rdma_event_channel *to)
{
	struct fake_channel *ch = (struct fake_channel *)id->channel;
	uint64_t n;

	for (struct fake_event **p = &ch->events; *p;) {
		struct fake_event *ev = *p;

		if (ev->event.id != id) {
			p = &ev->next;
			continue;
		}
		*p = ev->next;
		ev->next = NULL;
		FAKE_CHECK(read(ch->channel.fd, &n, sizeof(n)) > 0);
		if (to)
			fake_event_list(to, ev);
		else
			free(ev);
	}
}

struct fake_event *fake_event_new(struct rdma_cm_id *id,
				  enum rdma_cm_event_type type, int status)
{
	struct fake_event *ev = calloc(1, sizeof(*ev));

	ev->event.id = id;
	ev->event.event = type;
	ev->event.status = status;
	return ev;
}

void fake_event(struct rdma_cm_id *id, enum rdma_cm_event_type type,
		int status)
{
	fake_event_put(id->channel, fake_event_new(id, type, status));
}
