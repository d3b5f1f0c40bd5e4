/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fate - did the peer get what a connection sent, and how did that one end?
 *
 * The duplicate request cache asks this of replies of the past.  A fate is
 * counted and outlives its connection.
 *
 * A position is a place in what a connection sends, in a measure of the
 * transport's own (bytes, say).  The peer has a reply when it has
 * acknowledged the position of the reply's end.
 *
 * Times are milliseconds of CLOCK_MONOTONIC.  Any thread, everything.
 */
#ifndef GANNET_TRANSPORT_FATE_H
#define GANNET_TRANSPORT_FATE_H

#include <stdint.h>

#include "lib/thread.h"

struct xprt;

/* The position of a reply that was not sent: the peer never has it. */
#define XPRT_LOST	UINT64_MAX

enum xprt_end {
	XPRT_ALIVE,		/* or nothing is known to the contrary */
	XPRT_ORDERLY,		/* the peer closed it, as when all is done */
	XPRT_BROKEN,		/* reset, timed out, a rule was broken, or we
				 * were the first to close: test_fate has all
				 * the ways */
};

/* A connection as it is now, or was at its end. */
struct xprt_view {
	enum xprt_end	 end;
	uint64_t	 acked;		/* up to this position */
	uint64_t	 heard;		/* when its peer was heard last; 0: this
					 * transport can't tell */
	uint64_t	 ended;		/* when; now, if it was just found */
};

struct xprt_fate {
	struct ref	 ref;
	uint64_t	 born;		/* since when the peer has had it */
	uint64_t	 turn;		/* the how manieth was accepted */
	/* As far as was seen: grows. */
	_Atomic uint64_t acked;
	_Atomic uint64_t looked;	/* when the transport was asked last */

	/* Guards what follows; the transport is asked with it held. */
	pthread_mutex_t	 lock;
	struct xprt	*xprt;		/* borrowed; NULL: it has ended */
	struct xprt_view last;		/* valid then */
};

/* Of a connection that its peer has had for @ms milliseconds; NULL: no
 * memory. */
struct xprt_fate *xprt_fate_create(struct xprt *x, uint32_t ms);
void xprt_fate_put(struct xprt_fate *f);

static inline struct xprt_fate *xprt_fate_get(struct xprt_fate *f)
{
	ref_get(&f->ref);
	return f;
}

/* How things are.  Asks the transport (a system call, perhaps). */
void xprt_fate_look(struct xprt_fate *f, struct xprt_view *v);
/* The same without asking: how it is as far as is known. */
void xprt_fate_known(struct xprt_fate *f, struct xprt_view *v);
/*
 * The transport's: the connection ends, @how, or worse if look() says so.
 * Called before what look() needs goes away; only the first call counts.
 */
void xprt_fate_end(struct xprt_fate *f, enum xprt_end how);

uint64_t xprt_now_ms(void);
/* For tests: as if @seconds had gone by. */
void xprt_age(int seconds);

#endif
