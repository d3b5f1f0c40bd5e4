/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store - the memory of calls and Receives, a number at a time, and the budget
 * that it is taken from.
 */
#pragma once

#include "transport/rpcrdma/call.h"

/* The numbers that a store's memory follows from. */
struct rpcrdma_extent {
	unsigned slots;
	unsigned recvs;
	uint32_t inline_size;
	size_t	 msg_upper;	/* the upper layer's bytes in each call */
};

/* Returns the bytes of such a store. */
size_t rpcrdma_store_bytes(const struct rpcrdma_extent *t);
/* Makes a store, without anything in it.  NULL: no memory. */
struct rpcrdma_store *rpcrdma_store_create(const struct rpcrdma_extent *t);
/* Registers the store's memory for @conn.  Any thread.  0 or -errno. */
int rpcrdma_store_register(struct rpcrdma_conn *conn,
			   struct rpcrdma_store *store);
/* Adds the slots and Receives of a store that is registered.  On the poller. */
void rpcrdma_store_open(struct rpcrdma_conn *conn,
			struct rpcrdma_store *store);
/* Frees the unused store, and returns its bytes to the budget of @conn.  NULL
 * is nothing. */
void rpcrdma_store_destroy(struct rpcrdma_conn *conn,
			   struct rpcrdma_store *store);
/* Posts the free Receives, if enough are free or @all.  On the poller.  0 or
 * -errno. */
int rpcrdma_store_post(struct rpcrdma_conn *conn, bool all);

/* Takes bytes.  False: not so many are left; a NULL @b has no bound.  Any
 * thread. */
bool rpcrdma_budget_take(struct rpcrdma_budget *b, size_t bytes);
void rpcrdma_budget_give(struct rpcrdma_budget *b, size_t bytes);
