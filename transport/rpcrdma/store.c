/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * store - the memory of calls and Receives, a number at a time.
 *
 * The Receives' buffers and the heads of replies are one registration.
 */
#include "transport/rpcrdma/store.h"

#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "transport/rpcrdma/listen.h"

bool rpcrdma_budget_take(struct rpcrdma_budget *b, size_t bytes)
{
	size_t used, max;

	if (!b)
		return true;
	max = b->max;
	used = atomic_load(&b->used);
	do {
		if (used > max || bytes > max - used)
			return false;
	} while (!atomic_compare_exchange_weak(&b->used, &used, used + bytes));
	return true;
}

void rpcrdma_budget_give(struct rpcrdma_budget *b, size_t bytes)
{
	if (b)
		atomic_fetch_sub(&b->used, bytes);
}

static size_t registered_size(const struct rpcrdma_extent *t)
{
	return (size_t)t->recvs * t->inline_size +
	       (size_t)t->slots * (CALL_HEADER + MSG_HEAD_SIZE);
}

/* The upper layer's bytes in each call: aligned for any type. */
static size_t upper_size(const struct rpcrdma_extent *t)
{
	return ALIGN_UP(t->msg_upper, sizeof(max_align_t));
}

size_t rpcrdma_store_bytes(const struct rpcrdma_extent *t)
{
	return sizeof(struct rpcrdma_store) + registered_size(t) +
	       t->slots * (sizeof(struct rpcrdma_call) + upper_size(t)) +
	       t->recvs * sizeof(struct rpcrdma_recv);
}

static void free_store(struct rpcrdma_store *s)
{
	if (s->memory)
		munmap(s->memory, s->memory_len);
	free(s->calls);
	free(s->recvs);
	free(s->upper);
	free(s);
}

struct rpcrdma_store *rpcrdma_store_create(const struct rpcrdma_extent *t)
{
	struct rpcrdma_store *s = calloc(1, sizeof(*s));
	void *memory;

	if (!s)
		return NULL;
	s->nslots = t->slots;
	s->nrecvs = t->recvs;
	s->upper_size = upper_size(t);
	s->calls = calloc(t->slots, sizeof(*s->calls));
	s->recvs = calloc(t->recvs, sizeof(*s->recvs));
	s->upper = calloc(t->slots, MAX(s->upper_size, 1u));
	s->memory_len = registered_size(t);
	memory = mmap(NULL, s->memory_len, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory != MAP_FAILED)
		s->memory = memory;
	if (s->calls && s->recvs && s->upper && s->memory)
		return s;
	free_store(s);
	return NULL;
}

static void add_recvs(struct rpcrdma_conn *conn, struct rpcrdma_store *s)
{
	for (unsigned i = s->nrecvs; i-- > 0; ) {
		struct rpcrdma_recv *r = &s->recvs[i];

		r->op.done = conn->recv_done;
		r->conn = conn;
		r->store = s;
		r->buf = s->memory + (size_t)i * conn->inline_size;
		r->wr.op = &r->op;
		r->wr.sge = (struct fabric_sge){ .addr = r->buf,
						 .len = conn->inline_size,
						 .lkey = s->mr->lkey };
		rpcrdma_slots_add_recv(&conn->slots, r);
	}
}

int rpcrdma_store_register(struct rpcrdma_conn *conn, struct rpcrdma_store *s)
{
	return fabric_mr_create_for(conn->fc, s->memory, s->memory_len,
				    FABRIC_LOCAL, &s->mr);
}

void rpcrdma_store_open(struct rpcrdma_conn *conn, struct rpcrdma_store *s)
{
	mutex_lock(&conn->slots.lock);
	add_recvs(conn, s);
	rpcrdma_call_init(conn, s);
	conn->slots.capacity += s->nslots;
	mutex_unlock(&conn->slots.lock);
}

void rpcrdma_store_destroy(struct rpcrdma_conn *conn, struct rpcrdma_store *s)
{
	if (!s)
		return;
	if (s->mr)
		fabric_mr_destroy(s->mr);
	rpcrdma_budget_give(conn->listener->options.budget, s->bytes);
	free_store(s);
}

int rpcrdma_store_post(struct rpcrdma_conn *conn, bool all)
{
	struct rpcrdma_recv *first = rpcrdma_slots_refill(&conn->slots, all);

	return first ? fabric_post_recv(conn->fc, &first->wr) : 0;
}
