/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fate - a connection's fate: its acknowledged position, and its end.
 *
 * The duplicate request cache needs it to judge the replies that it remembers.
 * A fate is counted and outlives its connection.
 *
 * A position is a place in what a connection sends, in a measure of the
 * transport's own (bytes, say).  The peer has a reply when it has
 * acknowledged the position of the reply's end.
 *
 * Times are milliseconds of CLOCK_MONOTONIC.  Any thread, everything.
 */
#ifndef GANNET_TRANSPORT_FATE_H
#define GANNET_TRANSPORT_FATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/thread.h"

struct xprt;
struct xprt_host;

/* The position of a reply that was not sent: the peer never has it. */
#define XPRT_LOST	UINT64_MAX

enum xprt_end {
	XPRT_ALIVE,		/* or no end was seen yet */
	XPRT_ORDERLY,		/* the peer closed it in order */
	XPRT_BROKEN,		/* reset, timed out, a rule was broken, or we
				 * were the first to close: test_fate has all
				 * the ways */
};

/* The state of a connection, now or at its end. */
struct xprt_view {
	enum xprt_end	 end;
	uint64_t	 acked;		/* up to this position */
	uint64_t	 heard;		/* when the peer was heard last; 0: this
					 * transport can't tell */
	uint64_t	 ended;		/* time of the end; now, if it was just
					 * found */
};

struct xprt_fate {
	struct ref	 ref;
	uint64_t	 born;		/* since when the peer has had it */
	uint64_t	 turn;		/* the how manieth was accepted */
	struct xprt_host *host;		/* counted: the peer's */
	/* The newest known state; it only advances. */
	_Atomic uint64_t acked;
	atomic_bool	 left;		/* xprt_fate_called() said so */

	/* Guards the fields below; held while look() asks the transport. */
	pthread_mutex_t	 lock;
	struct xprt	*xprt;		/* borrowed; NULL: it has ended */
	struct xprt_view last;		/* valid then */
};

/* Of a connection, with @x->peer set, that its peer has had for @ms
 * milliseconds; NULL: no memory. */
struct xprt_fate *xprt_fate_create(struct xprt *x, uint32_t ms);
void xprt_fate_put(struct xprt_fate *f);

static inline struct xprt_fate *xprt_fate_get(struct xprt_fate *f)
{
	ref_get(&f->ref);
	return f;
}

/* Fills in the present state.  Asks the transport, perhaps by a system call. */
void xprt_fate_look(struct xprt_fate *f, struct xprt_view *v);
/* Fills in the newest known state, without asking. */
void xprt_fate_known(struct xprt_fate *f, struct xprt_view *v);
/*
 * Notes that a call came on the connection, whose calls come one after the
 * other.  True if the peer has left it: it has ended it, as far as the
 * transport can tell, and a call has come on a newer connection of the same
 * host.
 *
 * Exact for calls that are noted in some order, as equal ones are under a lock
 * of the duplicate request cache: the transport is asked whenever a call of
 * another of the host's connections was noted since it was asked last.  While
 * the host uses several connections by turns that is a system call for each
 * call on the older ones.
 */
bool xprt_fate_called(struct xprt_fate *f);
/*
 * The transport's: the connection ends, @how, or worse if look() says so.
 * Called before what look() needs goes away; only the first call counts.
 */
void xprt_fate_end(struct xprt_fate *f, enum xprt_end how);

uint64_t xprt_now_ms(void);
/* For tests: advances the clock by @seconds. */
void xprt_age(int seconds);

#endif
