/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * expose - the Read-Read transfer model (RFC 5666 sections 3.8 and 5.1), where
 * the options ask for it.
 *
 * Operation: a reply that fits nowhere stays where it lies; its pieces are
 * registered separately, for reading, each with its handle.  The Send tells the
 * handles, and the peer reads and says RDMA_DONE.
 *
 * Ownership: a call keeps its slot until its Send is done and its memory is out
 * of reach, by RDMA_DONE, by the sweep, or by the connection's end, whichever
 * comes first.  So a peer has at most as many replies exposed as credits, and a
 * listener that stops waits for the ones that are still to be read.
 *
 * An RDMA_DONE takes no credit, so each that can come has a Receive (slots.h):
 * as many are owed as replies were exposed.  One whose reply was taken back by
 * the sweep stays owed, since it can still come; a peer that owes one for each
 * credit gets no further Read chunks.
 *
 * Errors: the fabric refuses a Read of a reply that was taken back, and ends
 * the connection.  An RDMA_DONE for nothing is dropped.
 */
#include "transport/rpcrdma/expose.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/clock.h"
#include "lib/stats.h"
#include "transport/rpcrdma/listen.h"

STAT(rdma_exposed, "replies exposed as Read chunks");
STAT(rdma_exposed_bytes, "bytes of replies exposed as Read chunks");
STAT(rdma_expose_refused, "replies not exposed: too many or too large");
STAT(rdma_expose_late, "exposed replies taken back without an RDMA_DONE");
STAT(rdma_done_taken, "RDMA_DONE messages for exposed replies");
STAT(rdma_done_late, "RDMA_DONE messages for replies that were already taken "
		     "back");
STAT(rdma_done_unknown, "RDMA_DONE messages for no exposed reply");

struct exposure {
	struct fabric_mr *mr[EXPOSE_SEGS];
	unsigned	  nmrs;
	uint32_t	  len;
	uint64_t	  since;
	bool		  open;		/* registered for the peer */
	bool		  sending;
};

struct rpcrdma_exposures {
	struct rpcrdma_conn *conn;	/* borrowed: has us */
	unsigned	     max;	/* entries: one a call, by its place */
	pthread_mutex_t	     lock;	/* guards the rest */
	unsigned	     nopen;
	unsigned	     owed;	/* RDMA_DONEs that can come */
	struct exposure	     entry[];
};

size_t rpcrdma_expose_bytes(unsigned credits)
{
	return sizeof(struct rpcrdma_exposures) +
	       credits * sizeof(struct exposure);
}

struct rpcrdma_exposures *rpcrdma_expose_create(struct rpcrdma_conn *conn)
{
	unsigned max = conn->store->nslots;
	struct rpcrdma_exposures *x = calloc(1, rpcrdma_expose_bytes(max));

	if (!x)
		return NULL;
	x->conn = conn;
	x->max = max;
	pthread_mutex_init(&x->lock, NULL);
	return x;
}

void rpcrdma_expose_destroy(struct rpcrdma_exposures *x)
{
	if (!x)
		return;
	pthread_mutex_destroy(&x->lock);
	free(x);
}

static struct rpcrdma_call *exposed_call(struct rpcrdma_exposures *x,
				    const struct exposure *e)
{
	return &x->conn->store->calls[e - x->entry];
}

static struct exposure *exposure_of(struct rpcrdma_call *call)
{
	struct rpcrdma_conn *conn = rpcrdma_call_conn(call);

	return &conn->exposures->entry[call - conn->store->calls];
}

/* Counts @len bytes of the listener's.  False: too many. */
static bool charge_exposed(struct rpcrdma_exposures *x, uint32_t len)
{
	struct rpcrdma_listener *l = x->conn->listener;
	size_t used = atomic_fetch_add(&l->exposed, len);

	if (used + len <= l->options.expose_bytes)
		return true;
	atomic_fetch_sub(&l->exposed, len);
	return false;
}

/* Ends the registrations. 0 or -errno: the peer can still read some. */
static int unregister_pieces(struct exposure *e)
{
	int one, err = 0;

	while (e->nmrs > 0) {
		one = fabric_mr_destroy(e->mr[--e->nmrs]);
		err = one < 0 ? one : err;
	}
	return err;
}

/* The same; if the peer can still read some, no other data is put there, and
 * the connection ends. */
static void take_pieces_back(struct rpcrdma_exposures *x, struct exposure *e)
{
	struct msg *msg = &exposed_call(x, e)->msg;
	int err = unregister_pieces(e);

	if (err == 0)
		return;
	if (msg->body)
		msg->body->lost = true;
	rpcrdma_conn_close(x->conn, err);
}

static int register_pieces(struct rpcrdma_exposures *x, struct exposure *e,
			   const struct rpcrdma_gather *g,
			   struct rpcrdma_segment *seg)
{
	int err;

	for (unsigned i = 0; i < g->n; i++) {
		err = fabric_mr_create_for(x->conn->fc, g->piece[i].addr,
					   g->piece[i].len, FABRIC_REMOTE_READ,
					   &e->mr[i]);
		if (err < 0) {
			take_pieces_back(x, e);
			return err;
		}
		e->nmrs++;
		seg[i] = (struct rpcrdma_segment){
			.handle = e->mr[i]->rkey, .length = g->piece[i].len,
			.offset = (uintptr_t)g->piece[i].addr,
		};
	}
	return 0;
}

int rpcrdma_expose(struct rpcrdma_call *call, const struct rpcrdma_gather *g,
		   struct rpcrdma_segment seg[EXPOSE_SEGS])
{
	struct rpcrdma_exposures *x = rpcrdma_call_conn(call)->exposures;
	struct exposure *e = exposure_of(call);
	int err = -EDQUOT;

	if (!charge_exposed(x, g->len)) {
		stat_inc(rdma_expose_refused);
		return err;
	}
	mutex_lock(&x->lock);
	if (x->owed < x->max)
		err = register_pieces(x, e, g, seg);
	if (err == 0) {
		e->len = g->len;
		e->since = clock_ns();
		e->open = true;
		e->sending = true;
		x->nopen++;
		x->owed++;
	}
	mutex_unlock(&x->lock);
	if (err < 0) {
		atomic_fetch_sub(&x->conn->listener->exposed, g->len);
		stat_inc(rdma_expose_refused);
		return err;
	}
	stat_inc(rdma_exposed);
	stat_add(rdma_exposed_bytes, g->len);
	return 0;
}

/* With the lock: takes back an open one.  True: its call is to be released. */
static bool close_exposure(struct rpcrdma_exposures *x, struct exposure *e)
{
	take_pieces_back(x, e);
	atomic_fetch_sub(&x->conn->listener->exposed, e->len);
	e->open = false;
	x->nopen--;
	return !e->sending;
}

void rpcrdma_expose_sent(struct rpcrdma_call *call, int status)
{
	struct rpcrdma_exposures *x = rpcrdma_call_conn(call)->exposures;
	struct exposure *e = exposure_of(call);
	bool over;

	mutex_lock(&x->lock);
	e->sending = false;
	if (status < 0 && e->open)
		close_exposure(x, e);
	over = !e->open;
	mutex_unlock(&x->lock);
	if (over)
		rpcrdma_call_release(call);
}

/* With the lock. */
static struct exposure *find_exposure(struct rpcrdma_exposures *x, uint32_t xid)
{
	for (unsigned i = 0; i < x->max; i++)
		if (x->entry[i].open &&
		    exposed_call(x, &x->entry[i])->hdr.xid == xid)
			return &x->entry[i];
	return NULL;
}

/* With the lock: counts an RDMA_DONE.  Returns its reply, or NULL. */
static struct exposure *settle_done(struct rpcrdma_exposures *x, uint32_t xid)
{
	struct exposure *e = find_exposure(x, xid);

	if (e) {
		stat_inc(rdma_done_taken);
		x->owed--;
	} else if (x->owed > x->nopen) {
		stat_inc(rdma_done_late);
		x->owed--;
	} else {
		stat_inc(rdma_done_unknown);
	}
	return e;
}

bool rpcrdma_expose_take(struct rpcrdma_exposures *x, const uint8_t *data,
			 uint32_t len)
{
	struct rpcrdma_call *call = NULL;
	struct exposure *e;
	uint32_t xid;

	if (!rpcrdma_header_is_done(data, len, &xid))
		return false;
	mutex_lock(&x->lock);
	e = settle_done(x, xid);
	if (e) {
		/* Only now the peer has the reply; its Send need not be done,
		 * and so not be counted. */
		xprt_note_sent(&exposed_call(x, e)->msg,
			       MAX(rpcrdma_conn_position(x->conn), 1u));
		if (close_exposure(x, e))
			call = exposed_call(x, e);
	}
	mutex_unlock(&x->lock);
	if (call)
		rpcrdma_call_release(call);
	return true;
}

/* With the lock: the next open one from @i on that is @ms old at @now; NULL:
 * not found. */
static struct exposure *next_old(struct rpcrdma_exposures *x, unsigned i,
				 uint64_t now, uint32_t ms)
{
	for (; i < x->max && x->nopen > 0; i++)
		if (x->entry[i].open &&
		    (ms == 0 || loop_passed(now, x->entry[i].since, ms)))
			return &x->entry[i];
	return NULL;
}

/* Takes back all that are @ms old at @now; 0: all. */
static unsigned close_old(struct rpcrdma_exposures *x, uint64_t now,
			      uint32_t ms)
{
	struct exposure *e;
	unsigned i = 0, n = 0;
	bool release;

	mutex_lock(&x->lock);
	while ((e = next_old(x, i, now, ms))) {
		i = (unsigned)(e - x->entry) + 1;
		n++;
		release = close_exposure(x, e);
		mutex_unlock(&x->lock);
		if (release)
			rpcrdma_call_release(exposed_call(x, e));
		mutex_lock(&x->lock);
	}
	mutex_unlock(&x->lock);
	return n;
}

void rpcrdma_expose_sweep(struct rpcrdma_exposures *x, uint64_t now)
{
	const struct rpcrdma_options *o = &x->conn->listener->options;
	uint32_t ms = pool_is_short(x->conn->xprt.pool) ?
		      MIN(o->expose_ms, o->short_ms) : o->expose_ms;

	stat_add(rdma_expose_late, close_old(x, now, ms));
}

void rpcrdma_expose_kill(struct rpcrdma_exposures *x)
{
	close_old(x, 0, 0);
}
