/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of the loop fabric. */
#pragma once

#include <pthread.h>

#include <urcu/list.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "tests/loop/loop.h"

enum side { PASSIVE, ACTIVE };

struct provider;

struct device {
	struct fabric_device base;
	struct provider	*p;		/* borrowed */
	enum side	 side;
	/* Read-locked while memory is copied; registrations change under
	 * the write lock. */
	pthread_rwlock_t mr_lock;
	struct mr	**mrs;		/* by slot */
	unsigned	 nslots;
	uint32_t	 generation;
};

struct mr {
	struct fabric_mr base;
	unsigned	 access;
	unsigned	 slot;
	bool		 invalidated;
	const struct fabric_conn *only;	/* NULL: any; never followed */
};

struct provider {
	struct loop_fabric_options options;
	struct device	 device[2];

	/* Guards the fields below.  Taken last. */
	pthread_mutex_t	 lock;
	struct loop_fabric_counts counts;
	struct cds_list_head listeners;
	struct cds_list_head links;
	uint64_t	 random;	/* for work outside of the ends */
	uint64_t	 nends;		/* that were made */
	uint16_t	 next_port;
};

enum end_state {
	END_NEW,		/* no queues */
	END_SETUP,		/* the owner can post Receives */
	END_ASKING,		/* active: waits for the answer */
	END_LIVE,
	END_BROKEN,		/* everything is flushed */
};

/* A step that was posted. */
struct slot {
	struct fabric_wr *wr;		/* borrowed until executed */
	struct fabric_op *op;
	int		  status;
	bool		  is_read;
	bool		  reading;	/* executed, except the rest */
	uint64_t	  moved;	/* bytes of the Read */
};

/* A Receive that was posted, then completed. */
struct landing {
	struct fabric_recv *recv;
	int		    status;
	uint32_t	    len;
};

/* One end of a connection; its link's lock guards it. */
struct end {
	struct fabric_conn   base;
	struct link	    *link;	/* counted */
	enum side	     side;
	enum end_state	     state;
	struct fabric_queues queues;
	int		     err;	/* the error that broke it */
	bool		     live_due;	/* established() is to be called */
	bool		     gone;	/* closed() was called */
	bool		     stalled;	/* executes no further steps */
	bool		     kicked;	/* task is posted */
	bool		     freed;	/* as soon as the task is over */
	struct loop_task     task;
	void		     (*run)(struct loop_task *t);	/* end.c's */
	uint64_t	     random;	/* 0: nothing is left to chance */
	unsigned	     quiet;	/* turns before it is established */
	unsigned	     withheld;	/* turns before Sends complete */
	struct staged	    *staged;	/* Writes of the peer */
	unsigned	     received;	/* Receives that were delivered */
	unsigned	     reads;	/* in flight */

	/* Rings: retired <= executed <= posted, running counts. */
	struct slot	    *sq;
	unsigned	     sq_retired;
	unsigned	     sq_executed;
	unsigned	     sq_posted;
	struct landing	    *rq;
	unsigned	     rq_delivered;
	unsigned	     rq_completed;
	unsigned	     rq_posted;

	struct cds_list_head pending;	/* passive: waits for request() */
};

struct link {
	struct ref	     ref;
	struct provider	    *p;		/* borrowed */
	/* Guards both ends.  Taken before mr_lock and the provider's. */
	pthread_mutex_t	     lock;
	struct end	    *end[2];	/* can be NULL */
	struct cds_list_head node;	/* in provider->links */
};

struct listener {
	struct fabric_listener base;
	struct provider	    *p;		/* borrowed */
	struct cds_list_head node;
	struct cds_list_head pending;	/* ends; the provider's lock */
	struct loop_task     task;
	bool		     kicked;
};

/* mr.c */
int loop_mr_create(struct fabric_device *dev, void *addr, size_t len,
		   unsigned access, struct fabric_mr **out);
int loop_mr_destroy(struct fabric_mr *mr);
void loop_mr_bind(struct fabric_mr *mr, struct fabric_conn *c);
int loop_mr_window(struct fabric_mr *mr, struct fabric_conn *c, void *addr,
		   size_t len, unsigned access, struct fabric_mr **out);
/* True if the local memory belongs to a registration that allows the access. */
bool loop_mr_local_ok(struct device *d, const struct fabric_sge *sge,
		      unsigned access);
/* Returns the memory that the peer of @c can access, or NULL.  The caller holds
 * the lock of the device's registrations. */
void *loop_mr_remote(const struct fabric_conn *c, uint32_t handle,
		     uint64_t offset, uint64_t len, unsigned access);
/* Without it.  False: the peer of @c has no such handle. */
bool loop_mr_invalidate(const struct fabric_conn *c, uint32_t handle);

/* end.c */
int loop_end_create(struct link *link, enum side side, struct end **out);
int loop_end_setup(struct fabric_conn *c, struct loop *loop,
		   const struct fabric_queues *q);
int loop_end_post(struct fabric_conn *c, struct fabric_wr *chain);
int loop_end_post_recv(struct fabric_conn *c, struct fabric_recv *chain);
void loop_end_close(struct fabric_conn *c);
void loop_end_free(struct fabric_conn *c);
void loop_link_put(struct link *link);

/* A number below @below, by xorshift64*.  The caller has @state alone. */
static inline unsigned loop_roll(uint64_t *state, unsigned below)
{
	uint64_t x = *state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	*state = x;
	return (unsigned)((x * 0x2545f4914f6cdd1dull) >> 33) % below;
}

/* chance.c.  With the link's lock. */
/* True once in @one_in; never if that is 0, or without a seed. */
bool loop_chance(struct end *e, unsigned one_in);
void loop_chance_init(struct end *e);
/* Keeps the data of a Write, which is allowed, for later; false: it is to be
 * written now. */
bool loop_write_stage(struct end *e, const struct fabric_wr *wr, uint32_t len);
/* Lets a piece of such data be seen. */
void loop_write_show(struct end *e);
/* Writes all that comes before this Receive. */
void loop_write_finish(struct end *e, unsigned recv);
void loop_write_forget(struct end *e);
/* Moves some bytes of a Read.  0 or -EREMOTEIO. */
int loop_read_some(struct end *e, struct slot *s);

/* exec.c.  With the link's lock, except the last. */
void loop_end_kick(struct end *e);
void loop_link_break(struct link *link, int passive_err, int active_err);
/* Carries out the oldest step. */
void loop_end_execute(struct end *e);
/* Moves the next piece of each Read that is under way. */
void loop_end_read_on(struct end *e);
void loop_violation(struct provider *p, const char *what);
