/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sq - the send queue of a connection.
 *
 * Operation: a chain is posted whole when all of it fits, with one op on its
 * last step.  Reads go out as far as the read depth allows, a batch at a time.
 * Only a chain that is longer than the queue itself is cut.  A chain without
 * room is parked, first in first out; Reads that only wait for read depth don't
 * hold up replies.
 *
 * Errors: a failed chain is done when all its posted steps are done; its other
 * steps are not posted.
 */
#include "transport/rpcrdma/sq.h"

#include <errno.h>

#include "lib/stats.h"
#include "lib/util.h"

STAT(rdma_chains_parked, "chains that waited for room in a send queue");
STAT(rdma_reads_parked, "Read chains that waited for read depth");

void rpcrdma_sq_init(struct rpcrdma_sq *sq, struct fabric_conn *fc,
		     unsigned depth)
{
	*sq = (struct rpcrdma_sq){ .fc = fc, .depth = depth, .room = depth };
	pthread_mutex_init(&sq->lock, NULL);
}

void rpcrdma_sq_fini(struct rpcrdma_sq *sq)
{
	pthread_mutex_destroy(&sq->lock);
}

static void fifo_append(struct rpcrdma_fifo *f, struct rpcrdma_chain *c)
{
	c->next = NULL;
	if (f->head)
		f->tail->next = c;
	else
		f->head = c;
	f->tail = c;
}

static struct rpcrdma_fifo *fifo_of(struct rpcrdma_sq *sq,
				    struct rpcrdma_chain *c)
{
	return c->reads ? &sq->reads : &sq->sends;
}

static struct rpcrdma_batch *free_batch(struct rpcrdma_chain *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(c->batch); i++)
		if (c->batch[i].steps == 0)
			return &c->batch[i];
	return NULL;
}

/* Returns how many steps of @c the send queue has room for.  If they are Reads,
 * at least one has read depth. */
static unsigned postable(const struct rpcrdma_sq *sq,
			 const struct rpcrdma_chain *c)
{
	unsigned reads;

	if (c->reads) {
		reads = MIN((unsigned)sq->read_room, c->left);
		return MIN(reads, sq->room);
	}
	if (c->left <= sq->depth)
		return sq->room >= c->left ? c->left : 0;
	return sq->room == sq->depth ? sq->depth : 0;
}

static void batch_done(struct fabric_op *op, int status, uint32_t len);

/* Posts the next @n steps of @c.  0 or -errno: nothing was posted. */
static int sq_post(struct rpcrdma_sq *sq, struct rpcrdma_chain *c, unsigned n)
{
	struct rpcrdma_batch *b = free_batch(c);
	struct fabric_wr *first = c->next_wr;
	struct fabric_wr *last = first;
	struct fabric_wr *rest;
	int err;

	for (unsigned i = 1; i < n; i++)
		last = last->next;
	rest = last->next;
	last->next = NULL;
	last->op = &b->op;
	b->op.done = batch_done;
	b->chain = c;
	b->steps = n;
	b->reads = c->reads ? n : 0;
	sq->room -= n;
	sq->read_room -= (int)b->reads;
	c->next_wr = rest;
	c->left -= n;
	c->in_flight++;
	err = fabric_post(sq->fc, first);
	if (err < 0) {
		sq->room += n;
		sq->read_room += (int)b->reads;
		c->in_flight--;
		b->steps = 0;
	}
	return err;
}

/* Returns the next chain to post from and sets the number of steps; NULL: no
 * chain can be posted. */
static struct rpcrdma_chain *pick(struct rpcrdma_sq *sq, unsigned *n)
{
	struct rpcrdma_chain *send = sq->sends.head;
	struct rpcrdma_chain *read = sq->reads.head;

	/* Reads that wait for read depth let others pass. */
	if (read && (sq->read_room <= 0 || !free_batch(read)))
		read = NULL;
	if (send && (!read || send->turn < read->turn))
		read = send;
	*n = read ? postable(sq, read) : 0;
	return *n > 0 ? read : NULL;
}

/* Unparks @c, which is the first parked chain of its kind. */
static void sq_pop(struct rpcrdma_sq *sq, struct rpcrdma_chain *c)
{
	fifo_of(sq, c)->head = c->next;
}

/* Fails @c: its remaining steps are not posted.  True if it is done now. */
static bool sq_fail(struct rpcrdma_sq *sq, struct rpcrdma_chain *c, int err)
{
	if (fifo_of(sq, c)->head == c)
		sq_pop(sq, c);
	if (c->status == 0)
		c->status = err;
	c->left = 0;
	return c->in_flight == 0;
}

/* Posts the chains that have room; puts failed chains on @failed. */
static void sq_advance(struct rpcrdma_sq *sq, struct rpcrdma_fifo *failed)
{
	struct rpcrdma_chain *c;
	unsigned n;
	int err;

	while ((c = pick(sq, &n))) {
		err = sq_post(sq, c, n);
		if (err < 0) {
			if (sq_fail(sq, c, err))
				fifo_append(failed, c);
		} else if (c->left == 0) {
			sq_pop(sq, c);
		}
	}
}

static void sq_call_done(struct rpcrdma_fifo *list)
{
	struct rpcrdma_chain *c, *next;

	for (c = list->head; c; c = next) {
		next = c->next;
		c->done(c, c->status);
	}
}

static void batch_done(struct fabric_op *op, int status, uint32_t len)
{
	struct rpcrdma_batch *b = container_of(op, struct rpcrdma_batch, op);
	struct rpcrdma_chain *c = b->chain;
	struct rpcrdma_sq *sq = c->sq;
	struct rpcrdma_fifo over = { NULL, NULL };

	mutex_lock(&sq->lock);
	sq->done++;
	sq->room += b->steps;
	sq->read_room += (int)b->reads;
	b->steps = 0;
	c->in_flight--;
	if (status < 0 || c->status < 0) {
		if (sq_fail(sq, c, status))
			fifo_append(&over, c);
	} else if (c->left == 0 && c->in_flight == 0) {
		fifo_append(&over, c);
	}
	sq_advance(sq, &over);
	mutex_unlock(&sq->lock);
	sq_call_done(&over);
}

void rpcrdma_sq_set_read_depth(struct rpcrdma_sq *sq, unsigned depth)
{
	mutex_lock(&sq->lock);
	sq->read_room += (int)depth - (int)sq->read_depth;
	sq->read_depth = depth;
	mutex_unlock(&sq->lock);
}

int rpcrdma_sq_submit(struct rpcrdma_sq *sq, struct rpcrdma_chain *chain)
{
	struct rpcrdma_fifo failed = { NULL, NULL };
	struct rpcrdma_chain *c, **at;
	int err = 0;

	chain->sq = sq;
	chain->status = 0;
	chain->in_flight = 0;
	chain->batch[0].steps = chain->batch[1].steps = 0;
	mutex_lock(&sq->lock);
	if (sq->dead) {
		mutex_unlock(&sq->lock);
		return -ENOTCONN;
	}
	chain->turn = sq->turn++;
	fifo_append(fifo_of(sq, chain), chain);
	sq_advance(sq, &failed);
	/* A chain that fails at once was not taken. */
	for (at = &failed.head; (c = *at); at = &c->next) {
		if (c == chain) {
			err = c->status;
			*at = c->next;
			break;
		}
	}
	if (err == 0 && chain->left > 0) {
		if (chain->reads)
			stat_inc(rdma_reads_parked);
		else
			stat_inc(rdma_chains_parked);
	}
	mutex_unlock(&sq->lock);
	sq_call_done(&failed);
	return err;
}

bool rpcrdma_sq_busy(struct rpcrdma_sq *sq, uint64_t *done)
{
	bool busy;

	mutex_lock(&sq->lock);
	busy = sq->room < sq->depth;
	*done = sq->done;
	mutex_unlock(&sq->lock);
	return busy;
}

void rpcrdma_sq_kill(struct rpcrdma_sq *sq)
{
	struct rpcrdma_fifo over = { NULL, NULL };
	struct rpcrdma_fifo *kinds[] = { &sq->sends, &sq->reads };
	struct rpcrdma_chain *c;

	mutex_lock(&sq->lock);
	sq->dead = true;
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		while ((c = kinds[i]->head))
			if (sq_fail(sq, c, -ENOTCONN))
				fifo_append(&over, c);
	mutex_unlock(&sq->lock);
	sq_call_done(&over);
}
