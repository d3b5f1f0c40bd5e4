/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of verbs_fake. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#include "lib/util.h"
#include "tests/fake/verbs_fake.h"

#define FAKE_CHECK(cond) do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond); \
			abort(); \
		} \
	} while (0)

#define FAKE_ASYNCS	16
#define FAKE_DEVICES	40

/* A device, from when it is plugged in on. */
struct fake_device {
	struct ibv_device	device;
	struct ibv_context	context;
	bool			gone;
	/* The driver's ends of the process's files for the device: of
	 * context.cmd_fd, and of context.async_fd. */
	int			cmd_end;
	int			async_end;
	bool			opened;	/* by librdmacm */
	bool			dead;	/* closed with its last id */
	bool			closed;
	/* Its own events, verbs_fake_async.c. */
	struct ibv_async_event	queued[FAKE_ASYNCS];
	unsigned		nqueued;
	bool			taking;	/* one is not acknowledged */
	const void		*unacked; /* the queue that it names */
};

extern struct fake_device fake_devices[FAKE_DEVICES];

struct fake_device *fake_device_of(struct ibv_context *ctx);
/* The device in the slot, or NULL. */
struct fake_device *fake_device_in(unsigned slot);

void fake_async_init(struct fake_device *d);
/* Makes the device's events readable. */
void fake_async_tell(struct fake_device *d);
/* Like ibv_destroy_qp(): waits until taken events are acknowledged, and removes
 * the rest. */
void fake_async_purge(const void *queue);

struct fake_channel {
	struct rdma_event_channel channel;	/* first */
	struct fake_event *events;		/* oldest first */
	unsigned	ids;
};

struct fake_event {
	struct rdma_cm_event	event;		/* first */
	struct fake_event	*next;
	uint8_t			private_data[64];
};

struct fake_id {
	struct rdma_cm_id	id;		/* first */
	unsigned		unacked;
	bool			own_channel;
	struct fake_id		*next;		/* of all */
	struct rdma_cm_id	*peer;		/* at the other end */
	unsigned		ord;		/* that it asked with */
};

struct fake_event *fake_event_new(struct rdma_cm_id *id,
				  enum rdma_cm_event_type type, int status);
/* With the lock: @channel has the event. */
void fake_event_list(struct rdma_event_channel *channel, struct fake_event *ev);
/* The same, without. */
void fake_event_put(struct rdma_event_channel *channel, struct fake_event *ev);
/* With the lock, as rdma_migrate_id() does: waits for the id's events that were
 * taken. */
void fake_event_wait_acked(const struct fake_id *id);
/* With the lock: moves the id's events to @to; NULL: frees them. */
void fake_event_take(struct rdma_cm_id *id, struct rdma_event_channel *to);

/* All ids that are bound to the device hear that it is gone. */
void fake_cm_unplugged(const struct fake_device *d);
void fake_lock(void);
void fake_unlock(void);
/* The wire, verbs_fake_wire.c.  With the lock, all of these. */
void fake_wire_add(struct fake_qp *qp);
void fake_wire_del(struct fake_qp *qp);
/* Some work or a Receive was posted. */
void fake_wire_kick(void);
/* No more Reads are in flight than was agreed. */
void fake_wire_check_reads(const struct fake_qp *qp);
/* Finds the bytes at @addr, which are elsewhere in a dma-buf.  NULL: no key of
 * the domain covers that memory for that access. */
uint8_t *fake_mr_at(struct ibv_pd *pd, uint32_t key, const void *addr,
		    size_t len, int access);
/* Gives the window its key and its memory. */
void fake_mw_bind(struct ibv_pd *pd, const struct fake_wr *wr);
struct ibv_mw *fake_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int fake_dealloc_mw(struct ibv_mw *mw);
/* The next step, or the next Receive, succeeds. */
void fake_send_completes(struct fake_qp *qp);
void fake_recv_completes(struct fake_qp *qp, uint32_t len);

/* Counts a fallible call; true, with errno set, when it is to fail. */
bool fake_fails(void);
/* So many objects more, or less. */
void fake_count(int n);
