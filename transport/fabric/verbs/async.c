/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events that a device reports by itself: a thread for each device waits for
 * them.
 *
 * Ownership: an event that names a queue keeps it from being destroyed until
 * it is acknowledged (ibv_destroy_qp(3), ibv_destroy_cq(3)), and a connection
 * outlives its queues.
 *
 * Errors: a queue that failed ends its connection, a device that failed ends
 * all of its connections; their peers connect again.  A port that goes down can
 * come back: the device itself gives up when that takes too long.  A device
 * that was unplugged is released when its connections have ended; if it comes
 * back it is a new one.
 */
#include "transport/fabric/verbs/internal.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"

/*
 * A driver that can't take its device away from a process (rxe, siw) waits for
 * the process to close it, and reports nothing.  But the device's file is gone
 * then, so look for it.
 */
#define LOOK_MS		2000

STAT(verbs_async_events, "asynchronous events of RDMA devices");
STAT(verbs_queue_fatal, "RDMA connections whose queues failed");
STAT(verbs_device_fatal, "RDMA devices that failed");
STAT(verbs_devices_gone, "RDMA devices that were unplugged");
STAT(verbs_port_errors, "ports of RDMA devices that went down");
STAT(verbs_port_changes, "changes of the addresses or the subnet manager of "
     "ports of RDMA devices");

static void queue_failed(struct verbs_dev *dev, struct verbs_conn *c,
			 enum ibv_event_type type)
{
	stat_inc(verbs_queue_fatal);
	log_limited(LOG_LEVEL_WARN, "rdma device %s: a connection failed: %s",
		    dev->dev.name, ibv_event_type_str(type));
	verbs_conn_fail(c, -EIO);
}

/* With the provider's lock. */
static void fail_conns(struct verbs_dev *dev)
{
	struct verbs_conn *c;

	cds_list_for_each_entry(c, &dev->conns, dev_link)
		verbs_conn_fail(c, -ENODEV);
}

static void device_failed(struct verbs_dev *dev)
{
	stat_inc(verbs_device_fatal);
	log_err("rdma device %s failed: its connections are closed",
		dev->dev.name);
	mutex_lock(&dev->provider->lock);
	fail_conns(dev);
	mutex_unlock(&dev->provider->lock);
}

static void verbs_device_gone(struct verbs_dev *dev)
{
	mutex_lock(&dev->provider->lock);
	if (!atomic_exchange(&dev->dev.gone, true)) {
		stat_inc(verbs_devices_gone);
		log_warn("rdma device %s is gone", dev->dev.name);
	}
	fail_conns(dev);
	mutex_unlock(&dev->provider->lock);
}

static void verbs_async_take(struct verbs_dev *dev,
			     const struct ibv_async_event *ev)
{
	struct verbs_conn *c;

	stat_inc(verbs_async_events);
	switch (ev->event_type) {
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
		queue_failed(dev, ev->element.qp->qp_context, ev->event_type);
		break;
	case IBV_EVENT_CQ_ERR:
		queue_failed(dev, ev->element.cq->cq_context, ev->event_type);
		break;
	case IBV_EVENT_COMM_EST:
		/* A message came before the CM's last word, which can be lost
		 * (rdma_notify(3)). */
		c = ev->element.qp->qp_context;
		rdma_notify(c->id, ev->event_type);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		device_failed(dev);
		break;
	case IBV_EVENT_PORT_ERR:
		stat_inc(verbs_port_errors);
		log_warn("rdma device %s: port %d is down", dev->dev.name,
			 ev->element.port_num);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		log_info("rdma device %s: port %d is up", dev->dev.name,
			 ev->element.port_num);
		break;
	case IBV_EVENT_GID_CHANGE:
	case IBV_EVENT_LID_CHANGE:
	case IBV_EVENT_PKEY_CHANGE:
	case IBV_EVENT_SM_CHANGE:
	case IBV_EVENT_CLIENT_REREGISTER:
		/* A connection that this breaks fails by itself, and the CM
		 * finds the next one's way. */
		stat_inc(verbs_port_changes);
		log_info("rdma device %s: port %d: %s", dev->dev.name,
			 ev->element.port_num,
			 ibv_event_type_str(ev->event_type));
		break;
	default:
		log_debug("rdma device %s: %s", dev->dev.name,
			  ibv_event_type_str(ev->event_type));
		break;
	}
}

/* Handles one event.  False: the device has stopped sending events. */
static bool verbs_async_take_event(struct verbs_dev *dev)
{
	struct ibv_async_event ev;

	if (ibv_get_async_event(dev->ctx, &ev)) {
		if (errno == EAGAIN || errno == EINTR)
			return true;
		log_warn("rdma device %s: can't read its events: "
			 "%s", dev->dev.name,
			 strerror(errno));
		return false;
	}
	verbs_async_take(dev, &ev);
	ibv_ack_async_event(&ev);
	return true;
}

/* The CM reports of the id that holds the device.  True: the device is gone. */
static bool is_unplugged(struct verbs_dev *dev)
{
	struct rdma_cm_event *ev;
	bool gone;

	if (rdma_get_cm_event(dev->hold->channel, &ev))
		return false;
	gone = ev->event == RDMA_CM_EVENT_DEVICE_REMOVAL;
	rdma_ack_cm_event(ev);
	return gone;
}

static bool has_file(const struct verbs_dev *dev)
{
	return access(dev->ctx->device->dev_path, F_OK) == 0 ||
	       errno != ENOENT;
}

static void verbs_async_watch(void *arg)
{
	struct verbs_dev *dev = arg;
	int look_ms = has_file(dev) ? LOOK_MS : -1;
	struct pollfd fds[] = {
		{ .fd = dev->wake_fd, .events = POLLIN },
		{ .fd = dev->ctx->async_fd, .events = POLLIN },
		{ .fd = dev->hold->channel->fd, .events = POLLIN },
	};
	eventfd_t wakes;
	int n;

	while (!dev->release(dev)) {
		n = poll(fds, ARRAY_SIZE(fds), look_ms);
		if (n < 0)
			continue;	/* interrupted, or short of memory */
		if (n == 0 && !has_file(dev))
			verbs_device_gone(dev);
		if (fds[0].revents)
			eventfd_read(dev->wake_fd, &wakes);
		if (fds[1].revents && !verbs_async_take_event(dev)) {
			fds[1].fd = -1;
			verbs_device_gone(dev);
		}
		if (fds[2].revents && is_unplugged(dev))
			verbs_device_gone(dev);
	}
}

static int set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK))
		return verbs_errno();
	return 0;
}

int verbs_watch_start(struct verbs_dev *dev,
		      bool (*release)(struct verbs_dev *dev))
{
	int err;

	dev->release = release;
	/* Destroying a queue takes its events back, so an event that poll()
	 * announced can be gone. */
	err = set_nonblocking(dev->ctx->async_fd);
	if (!err)
		err = set_nonblocking(dev->hold->channel->fd);
	if (err)
		return err;
	dev->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (dev->wake_fd < 0)
		return verbs_errno();
	err = thread_start(&dev->watcher, "rdma events", verbs_async_watch,
			   dev);
	if (err)
		close(dev->wake_fd);
	return err;
}

void verbs_watch_wake(struct verbs_dev *dev)
{
	eventfd_write(dev->wake_fd, 1);
}

void verbs_watch_stop(struct verbs_dev *dev)
{
	mutex_lock(&dev->provider->lock);
	dev->ends = true;
	verbs_watch_wake(dev);
	mutex_unlock(&dev->provider->lock);
	pthread_join(dev->watcher, NULL);
	close(dev->wake_fd);
}
