/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * registrar - a thread that registers memory for pollers.
 *
 * To register memory takes the driver as long as it takes: its pages are found
 * and pinned, and the adapter learns them.  A poller has other connections to
 * serve meanwhile.  Only the thread that has a call makes registrations for
 * that single call.
 */
#pragma once

#include <stdbool.h>

#include "lib/thread.h"

/* In the caller's memory, until run() is called. */
struct rpcrdma_job {
	void (*run)(struct rpcrdma_job *job);	/* on the registrar's thread */
	struct rpcrdma_job *next;
};

struct rpcrdma_registrar {
	pthread_t	    thread;
	/* Guards the rest. */
	pthread_mutex_t	    lock;
	pthread_cond_t	    work;
	struct rpcrdma_job *first;
	struct rpcrdma_job **last;
	bool		    ends;
};

/* 0 or -errno. */
int rpcrdma_registrar_start(struct rpcrdma_registrar *r);
/* Ends it when all jobs are done.  No other thread gives it one. */
void rpcrdma_registrar_stop(struct rpcrdma_registrar *r);
/* Any thread.  Jobs are done one by one, in order. */
void rpcrdma_registrar_do(struct rpcrdma_registrar *r, struct rpcrdma_job *job);
