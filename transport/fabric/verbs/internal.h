/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files of the verbs provider.
 *
 * A connection belongs to one loop from setup on.  Its completion queue has a
 * separate completion channel, and its CM events come through the event channel
 * of that loop (rdma_migrate_id), so everything about it happens on the loop's
 * thread, except post and close.
 */
#pragma once

#include <errno.h>

#include <rdma/rdma_cma.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "transport/fabric/fabric.h"

/* InfiniBand's private data in a connect request; other fabrics have more. */
#define VERBS_MAX_PRIVATE	56u

struct verbs_provider {
	const struct fabric_ops	*ops;		/* verbs.c's */
	/* Guards the lists, and the counts of loops in them. */
	pthread_mutex_t		lock;
	struct cds_list_head	devices;	/* and of each its conns */
	struct cds_list_head	loops;
	int			connect_ms;	/* set before the first
						 * connect */
};

/*
 * A device is used by its connections, and by threads that register memory.
 * When it is gone and no longer used, its watcher frees its remaining
 * resources; the struct stays, because registrations of the upper layer name
 * it.
 */
struct verbs_dev {
	struct fabric_device	dev;
	struct verbs_provider	*provider;	/* borrowed */
	struct cds_list_head	link;
	/* librdmacm's, kept open by hold; NULL once it is over (the provider's
	 * lock). */
	struct ibv_context	*ctx;
	struct rdma_cm_id	*hold;	/* until ctx is NULL */
	struct ibv_pd		*pd;
	struct ibv_cq		*filler;	/* siw only, see device.c */
	bool			iwarp;
	bool			post_on_loop;	/* see posts_by_system_call() */
	/* Abilities of the device and, once its library was asked, of that
	 * (post.c, window.c). */
	atomic_bool		remote_inv;
	atomic_bool		no_windows;
	atomic_uint		inline_max;	/* bytes to ask for, see
						 * queue.c */

	/* The provider's lock, from here on. */
	struct cds_list_head	conns;	/* with a queue pair */
	struct cds_list_head	mrs;
	struct cds_list_head	domains;
	unsigned		users;
	bool			ends;	/* the provider does */

	/* See async.c. */
	pthread_t		watcher;
	bool		      (*release)(struct verbs_dev *dev);
	int			wake_fd;
};

/* Of one connection, see domain.c. */
struct verbs_domain {
	struct ibv_pd		*pd;	/* NULL: the device is gone */
	/* The provider's lock. */
	unsigned		refs;
	struct cds_list_head	link;	/* on dev->domains while pd */
};

struct verbs_mr {
	struct fabric_mr	mr;
	struct verbs_domain	*domain;	/* counted; NULL: the dev's */
	struct ibv_mr		*ibv;	/* NULL: the device is gone, */
	struct ibv_mw		*mw;	/* or it is this window */
	struct cds_list_head	link;	/* provider's lock; not a window's */
};

/*
 * The CM's side of a loop, shared by the listeners and connections on it, and
 * the completion queues that it polls while it spins: queues with recent
 * completions ("hot").  The others wake it through their channels.
 */
struct verbs_loop {
	struct verbs_provider	*provider;	/* borrowed */
	struct loop		*loop;		/* borrowed */
	struct cds_list_head	link;
	unsigned		refs;		/* provider's lock */
	unsigned		number;		/* the lowest that was free */
	struct rdma_event_channel *channel;
	struct loop_fd		fd;
	struct loop_task	task;		/* to be destroyed there */

	/* The loop's thread only. */
	struct loop_source	source;		/* added while any are hot */
	struct cds_list_head	hot;
};

/* A copy of an event, after it was acknowledged. */
struct verbs_event {
	enum rdma_cm_event_type	type;
	int			status;
	struct rdma_cm_id	*id;		/* CONNECT_REQUEST: new */
	struct rdma_conn_param	param;
	uint8_t			private_data[256];
};

/* An id's context points to this part of a listener or a connection. */
struct verbs_end {
	void (*event)(struct verbs_end *end, const struct verbs_event *ev);
	/* A connection: accepted, or asked; its id stays on its loop from then
	 * on.  Events before that are dropped. */
	bool started;
};

/*
 * The wr_ids that the device has of one queue, in the order of posting.  One
 * thread at a time fills it (the connection's lock); the loop's empties it.
 */
struct verbs_slot {
	void			*id;
	int			status;		/* VERBS_PENDING: not known */
	int			error;		/* an earlier step's error,
						 * or 0 */
	bool			invalidates;	/* a Send With Invalidate */
};

#define VERBS_PENDING	1

struct verbs_ring {
	struct verbs_slot	*slot;
	unsigned		mask;
	atomic_uint		head;
	atomic_uint		tail;
};

/* The posted work. */
struct verbs_posts {
	/* Serialises posts among themselves and with the queue pair's end. */
	pthread_mutex_t		lock;
	bool			dead;		/* refuses all posts */
	unsigned		inline_max;	/* a Send this short goes with
						 * its work request */
	struct verbs_ring	sends;		/* of struct fabric_op */
	struct verbs_ring	recvs;		/* of struct fabric_recv */
	struct verbs_ring	chains;		/* to be posted by the loop */
	struct loop_task	task;
	bool			posting;	/* the flush task is on its
						 * way */
};

/* The completion queue.  The loop's thread only. */
struct verbs_poll {
	struct ibv_comp_channel	*channel;
	struct ibv_cq		*cq;
	struct loop_fd		fd;
	unsigned		unacked;	/* events of cq */
	bool			gathering;	/* handling a batch: its
						 * posts go out together, at
						 * the end */
	bool			hot;
	unsigned		idle;		/* empty polls in a row */
	struct cds_list_head	hot_link;
};

struct verbs_conn {
	struct fabric_conn	conn;
	struct verbs_end	end;
	struct verbs_provider	*provider;	/* borrowed */
	struct verbs_dev	*dev;		/* borrowed */
	struct cds_list_head	dev_link;	/* on dev->conns, or empty */
	struct verbs_domain	*domain;	/* counted; NULL: the dev's */
	struct verbs_loop	*vl;		/* counted; has id's channel */
	struct rdma_cm_id	*id;		/* NULL once closed */
	bool			passive;
	atomic_bool		closing;	/* the thread that sets it
						 * closes */
	int			err;		/* set by that thread */
	struct loop_task	task;
	void			(*stop)(struct loop_task *t);	/* conn.c's */

	struct verbs_posts	posts;

	/* The loop's thread only. */
	bool			live;		/* established */
	bool			over;		/* closed() was called */
	bool			abandoned;	/* its task frees it */
	bool			gone;		/* the CM said so: don't wait */
	bool			lingering;	/* asked the peer, waiting */
	struct loop_timer	timer;		/* handshake, then linger */
	struct verbs_poll	poll;
};

static inline struct verbs_conn *verbs_conn(struct fabric_conn *c)
{
	return container_of(c, struct verbs_conn, conn);
}

/* Starts the end, for the reason @err.  Any thread, any number of times. */
static inline void verbs_conn_fail(struct verbs_conn *c, int err)
{
	if (atomic_exchange(&c->closing, true))
		return;
	c->err = err;
	loop_post(c->conn.loop, &c->task, c->stop);
}

/* -errno of a call that failed and set it, never 0. */
static inline int verbs_errno(void)
{
	return errno > 0 ? -errno : -EIO;
}

/* device.c */
enum verbs_id_use {
	VERBS_ID_REQUEST,	/* a peer's, on a loop's channel */
	VERBS_ID_ACTIVE,	/* ours, with a separate channel */
	VERBS_ID_LISTENS,
};

/*
 * Returns the device that @id is bound to, for a new user; makes a new one's
 * struct.  0 or -errno; -ERESTART: no other id could hold the new device, so it
 * took @id, which does not listen, and the next one will be served.
 */
int verbs_dev_get(struct verbs_provider *p, struct rdma_cm_id *id,
		  enum verbs_id_use use, struct verbs_dev **out);
/* Begins a use, even of a device that goes.  False: it is over. */
bool verbs_dev_use(struct verbs_dev *dev);
/* Ends a use. */
void verbs_dev_put(struct verbs_dev *dev);
void verbs_dev_destroy(struct verbs_dev *dev);

/* mr.c */
int verbs_mr_create(struct fabric_device *dev, void *addr, size_t len,
		    unsigned access, struct fabric_mr **out);
int verbs_mr_create_for(struct fabric_conn *c, void *addr, size_t len,
			unsigned access, struct fabric_mr **out);
int verbs_mr_create_dmabuf(struct fabric_conn *c,
			   const struct fabric_dmabuf *mem, unsigned access,
			   struct fabric_mr **out);
int verbs_mr_destroy(struct fabric_mr *mr);
/* The device's flags for the REMOTE bits of @access. */
int verbs_remote_access(unsigned access);

/* domain.c */
int verbs_isolate(struct fabric_conn *c);
void verbs_domain_get(struct verbs_dev *dev, struct verbs_domain *d);
void verbs_domain_put(struct verbs_dev *dev, struct verbs_domain *d);

static inline struct ibv_pd *verbs_pd(const struct verbs_dev *dev,
				      const struct verbs_domain *d)
{
	return d ? d->pd : dev->pd;
}

/* window.c */
int verbs_mr_window(struct fabric_mr *mr, struct fabric_conn *c, void *addr,
		    size_t len, unsigned access, struct fabric_mr **out);

/* async.c */
/* Watches for the device's asynchronous events, on a separate thread, until
 * @release is true: that releases the device when it is due. */
int verbs_watch_start(struct verbs_dev *dev,
		      bool (*release)(struct verbs_dev *dev));
/* The provider's lock is held. */
void verbs_watch_wake(struct verbs_dev *dev);
void verbs_watch_stop(struct verbs_dev *dev);

/* cm.c */
/* Counted.  The loop's thread. */
int verbs_loop_get(struct verbs_provider *p, struct loop *loop,
		   struct verbs_loop **out);
/* Any thread. */
void verbs_loop_put(struct verbs_loop *vl);
/* Call it on the loop's thread, or while the loop does not run. */
void verbs_loop_put_here(struct verbs_loop *vl);

/* listen.c */
int verbs_listen(void *provider, const struct sockaddr *addr,
		 struct loop *loop,
		 void (*request)(struct fabric_listener *,
				 struct fabric_conn *),
		 void *upper, struct fabric_listener **out);
void verbs_unlisten(struct fabric_listener *l);

/* conn.c */
/* Takes @id, whose channel is that of @vl (NULL: its own, synchronous).  0 or
 * -errno, with @id still the caller's unless that is -ERESTART: see
 * verbs_dev_get(). */
int verbs_conn_create(struct verbs_provider *p, struct rdma_cm_id *id,
		      struct verbs_loop *vl, struct verbs_conn **out);
/* Takes over the peer's parameters from its request or answer. */
void verbs_conn_learn(struct verbs_conn *c, const struct verbs_event *ev);
int verbs_connect(void *provider, const struct sockaddr *addr,
		  struct fabric_conn **out);
int verbs_setup(struct fabric_conn *conn, struct loop *loop,
		const struct fabric_queues *q);
int verbs_start(struct fabric_conn *conn, const void *private_data,
		unsigned private_len, unsigned read_depth);
void verbs_reject(struct fabric_conn *conn);
void verbs_close(struct fabric_conn *conn);
void verbs_free(struct fabric_conn *conn);

/* queue.c */
/* The completion queue and the rings; the queue pair. */
int verbs_queues_create(struct verbs_conn *c, const struct fabric_queues *q);
/*
 * Ends the queue pair: the device touches no memory afterwards.  Completed ops
 * are done with their status, all others as flushed.
 */
void verbs_queues_stop(struct verbs_conn *c);
/* Frees what create() made; also if that failed or never ran.  No event of the
 * device names the connection afterwards. */
void verbs_queues_destroy(struct verbs_conn *c);
/* For struct verbs_loop's source. */
unsigned verbs_hot_poll(struct loop_source *s);
bool verbs_hot_arm(struct loop_source *s);

/* post.c */
/* True if @err is the error by which a library rejects a request that it does
 * not know. */
bool verbs_is_unknown(int err);
/* The device sends no Send With Invalidate: it gets Sends from now on. */
void verbs_lacks_inv(struct verbs_dev *dev);
int verbs_post(struct fabric_conn *conn, struct fabric_wr *chain);
/* The loop's thread: posts an internal step of the provider, behind the queued
 * ones.  0 or -errno. */
int verbs_post_bind(struct verbs_conn *c, struct ibv_send_wr *wr);
/* The loop's thread: posts the steps that were queued for it. */
void verbs_post_queued(struct verbs_conn *c);
int verbs_post_recv(struct fabric_conn *conn, struct fabric_recv *chain);
