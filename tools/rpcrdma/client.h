/* SPDX-License-Identifier: BSD-2-Clause */
/* client - the private part of <gannet/rpcrdma.h>. */
#pragma once

#include <gannet/rpcrdma.h>

#include <pthread.h>
#include <stdatomic.h>

#include "lib/loop.h"
#include "transport/fabric/fabric.h"
#include "transport/rpcrdma/requester.h"

/* The sizes of the first versions of the caller's structs. */
#define SIZE_UP_TO(type, last) \
	(offsetof(struct type, last) + sizeof(((struct type *)0)->last))
#define OPTIONS_FIRST	SIZE_UP_TO(gannet_rpcrdma_options, cache_bytes)
#define CALL_FIRST	SIZE_UP_TO(gannet_rpcrdma_call, sends)
#define DMABUF_FIRST	SIZE_UP_TO(gannet_rpcrdma_dmabuf, use)

/* As gannet_rpcrdma_connect(), on a fabric that is borrowed until the client
 * is closed. */
int client_connect(const struct fabric *fabric, const struct sockaddr *addr,
		   const struct gannet_rpcrdma_options *options,
		   struct gannet_rpcrdma **out);

/* Makes the fabric that the options name; @destroy undoes it. */
int client_fabric(const struct gannet_rpcrdma_options *options,
		  struct fabric *out, void (**destroy)(struct fabric *f));

enum client_state {
	CLIENT_DOWN,		/* no requester, or not yet */
	CLIENT_UP,
	CLIENT_DEAD,		/* it gave up, or was closed */
};

struct client_call {
	struct rpcrdma_request	    q;
	struct gannet_rpcrdma	   *c;		/* borrowed: outlives it */
	/* Borrowed until its done(); NULL: that was called. */
	struct gannet_rpcrdma_call *user;
	bool			    cancelled;	/* not to be sent again, */
	bool			    once;	/* once it was sent */
	struct cds_list_head	    link;	/* in waiting or given */
};

struct gannet_rpcrdma_region {
	struct rpcrdma_region	region;
	struct gannet_rpcrdma	*c;	/* borrowed: outlives it */
	unsigned		use;
	struct fabric_dmabuf	dmabuf;	/* its fd is ours; -1: none */
	atomic_uint		calls;	/* chunks of calls in progress */
	struct cds_list_head	link;
};

struct gannet_rpcrdma {
	struct fabric		 fabric;
	void			 (*fabric_destroy)(struct fabric *f);
	struct sockaddr_storage	 addr;
	struct gannet_rpcrdma_options options;
	struct loop		*loop;
	pthread_t		 manager;
	atomic_uint		 xid;
	/* POLLED: wakes the thread that drives the loop. */
	struct loop_task	 poke;
	struct loop_task	 cancel;

	pthread_cond_t		 wake;
	/* Guards the rest.  May be held while a requester's is taken. */
	pthread_mutex_t		 lock;
	enum client_state	 state;
	int			 err;		/* why it is dead */
	bool			 closing;
	bool			 was_up;	/* at least once */
	bool			 ended;		/* the manager has */
	bool			 poked;
	bool			 cancelling;
	/* The requester's events: they can come before its creation has
	 * returned. */
	bool			 connected;
	bool			 lost;
	int			 lost_err;
	struct rpcrdma_requester *r;		/* while it is up */
	unsigned		 failures;	/* in a row */
	struct cds_list_head	 waiting;
	struct cds_list_head	 given;		/* in the order of sending */
	struct cds_list_head	 regions;
	struct gannet_rpcrdma_info info;
	uint64_t		 gone_invalidated; /* with requesters */
	uint64_t		 gone_discarded;
	uint64_t		 gone_registered;
	uint64_t		 gone_reused;
};

/*
 * Checks a struct of the caller's that says it has @size bytes: @first is how
 * many it had in its first version, @known how many it has in ours.  0, -EINVAL
 * or -E2BIG: it has something that we don't know.
 */
int client_check_size(const void *s, size_t size, size_t first, size_t known);
/* Fills in call->q from call->user.  0, -EINVAL or -EMSGSIZE. */
int client_take_call(struct client_call *call);
/* Counts the uses of regions. */
void client_count_calls(const struct gannet_rpcrdma_call *u, int calls);
/* At the end, when no region is registered. */
void client_free_regions(struct gannet_rpcrdma *c);

static inline bool client_is_polled(const struct gannet_rpcrdma *c)
{
	return c->options.flags & GANNET_RPCRDMA_POLLED;
}

/* Runs @fn(@arg) on the loop; the caller is not the manager. */
static inline void client_on_loop(struct gannet_rpcrdma *c,
				  void (*fn)(void *arg), void *arg)
{
	if (client_is_polled(c))
		loop_enter(c->loop, fn, arg);
	else
		loop_call(c->loop, fn, arg);
}

/* With the lock: gives the requester all that wait, in their order. */
void client_give_waiting(struct gannet_rpcrdma *c);
/* On the loop: fails the waiting calls, permanently. */
void client_fail_waiting(void *c);
/* On the loop: brings c->info up to date. */
void client_learn(void *c);
/* The manager, a separate thread. */
void client_manage(void *c);
