/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CM's events: one event channel for each loop that has listeners or
 * connections.
 *
 * An event is copied and acknowledged before it is handled: the handler can
 * destroy the id.  Events of a connection that is not started are dropped: it
 * has no loop to end on yet, and fabric_start() fails if its peer is gone.
 *
 * Only the thread that reads a channel destroys the ids on it, apart from
 * requests that were never set up: the kernel reports no events of those.
 */
#include "transport/fabric/verbs/internal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/stats.h"

STAT(verbs_cm_events, "connection manager events");

/* False: no event. */
static bool verbs_cm_take_event(struct verbs_loop *vl)
{
	struct rdma_cm_event *cm;
	struct verbs_event ev;
	struct verbs_end *end;
	const void *data;
	bool started;

	if (rdma_get_cm_event(vl->channel, &cm)) {
		if (errno != EAGAIN && errno != EINTR)
			log_limited(LOG_LEVEL_WARN, "rdma: can't read an "
						    "event: %s",
				    strerror(errno));
		return false;
	}
	stat_inc(verbs_cm_events);
	ev.type = cm->event;
	ev.status = cm->status;
	ev.id = cm->id;
	ev.param = cm->param.conn;
	data = ev.param.private_data;
	if (!data)
		ev.param.private_data_len = 0;
	if (ev.param.private_data_len)
		memcpy(ev.private_data, data, ev.param.private_data_len);
	ev.param.private_data = ev.private_data;
	/* A new id begins with its listener's context. */
	end = cm->id->context;
	/* Until the event is acknowledged the id stays on this loop
	 * (rdma_migrate_id(3)).  Another thread can free its connection
	 * afterwards. */
	started = end->started;
	rdma_ack_cm_event(cm);
	if (started)
		end->event(end, &ev);
	return true;
}

static void verbs_cm_ready(struct loop_fd *f, uint32_t events)
{
	struct verbs_loop *vl = container_of(f, struct verbs_loop, fd);

	/* The poll is level triggered: events left over wake us again. */
	for (unsigned i = 0; i < 16 && verbs_cm_take_event(vl); i++)
		;
}

/* With the lock: the lowest number that no loop has. */
static unsigned free_number(struct verbs_provider *p)
{
	struct verbs_loop *vl;
	unsigned n = 0;
	bool taken;

	do {
		taken = false;
		cds_list_for_each_entry(vl, &p->loops, link)
			taken |= vl->number == n;
		n += taken;
	} while (taken);
	return n;
}

static int verbs_cm_create(struct verbs_provider *p, struct loop *loop,
			   struct verbs_loop **out)
{
	struct verbs_loop *vl = calloc(1, sizeof(*vl));
	int err = -ENOMEM;

	if (!vl)
		goto fail;
	vl->channel = rdma_create_event_channel();
	if (!vl->channel) {
		err = verbs_errno();
		goto fail_free;
	}
	vl->fd = (struct loop_fd){ verbs_cm_ready, vl->channel->fd, EPOLLIN };
	if (fcntl(vl->fd.fd, F_SETFL, O_NONBLOCK)) {
		err = verbs_errno();
		goto fail_channel;
	}
	err = loop_fd_add(loop, &vl->fd);
	if (err)
		goto fail_channel;
	vl->provider = p;
	vl->loop = loop;
	vl->refs = 1;
	vl->number = free_number(p);
	vl->source.poll = verbs_hot_poll;
	vl->source.arm = verbs_hot_arm;
	CDS_INIT_LIST_HEAD(&vl->hot);
	*out = vl;
	return 0;

fail_channel:
	rdma_destroy_event_channel(vl->channel);
fail_free:
	free(vl);
fail:
	return err;
}

int verbs_loop_get(struct verbs_provider *p, struct loop *loop,
		   struct verbs_loop **out)
{
	struct verbs_loop *vl;
	int err = 0;

	mutex_lock(&p->lock);
	cds_list_for_each_entry(vl, &p->loops, link)
		if (vl->loop == loop) {
			vl->refs++;
			goto found;
		}
	err = verbs_cm_create(p, loop, &vl);
	if (err)
		goto out;
	cds_list_add(&vl->link, &p->loops);
found:
	*out = vl;
out:
	mutex_unlock(&p->lock);
	return err;
}

/* True when it was the last one. */
static bool verbs_cm_drop(struct verbs_loop *vl)
{
	struct verbs_provider *p = vl->provider;
	bool last;

	mutex_lock(&p->lock);
	last = --vl->refs == 0;
	if (last)
		cds_list_del(&vl->link);
	mutex_unlock(&p->lock);
	return last;
}

static void verbs_cm_destroy(struct verbs_loop *vl)
{
	assert(cds_list_empty(&vl->hot));
	loop_fd_del(vl->loop, &vl->fd);
	rdma_destroy_event_channel(vl->channel);
	free(vl);
}

static void destroy_there(struct loop_task *t)
{
	verbs_cm_destroy(container_of(t, struct verbs_loop, task));
}

void verbs_loop_put_here(struct verbs_loop *vl)
{
	if (verbs_cm_drop(vl))
		verbs_cm_destroy(vl);
}

void verbs_loop_put(struct verbs_loop *vl)
{
	if (!verbs_cm_drop(vl))
		return;
	if (vl->loop == loop_current)
		verbs_cm_destroy(vl);
	else
		loop_post(vl->loop, &vl->task, destroy_there);
}
