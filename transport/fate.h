/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fate - a connection's fate: its acknowledged position, and its end.
 *
 * The duplicate request cache needs it to judge the replies that it remembers.
 * A fate is counted and outlives its connection.
 *
 * A position is a place in a connection's output, in the transport's measure
 * (bytes, say).  The peer has a reply when it has acknowledged the position of
 * the reply's end.
 *
 * Times are milliseconds of CLOCK_MONOTONIC.  Any thread, everything.
 */
#pragma once

#include <netinet/in.h>
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

/* An address, with xprt_addr_hash() of it and of its network. */
struct xprt_hashes {
	struct in6_addr	 addr;
	uint64_t	 host;
	uint64_t	 network;
};

struct xprt_fate {
	struct ref	 ref;
	uint64_t	 born;		/* since when the peer has had it */
	uint64_t	 turn;		/* its number in the order of accepts */
	struct xprt_host *host;		/* counted: the peer's */
	const struct xprt_hashes *hashes;	/* host's */
	/* The newest known state; it only advances. */
	_Atomic uint64_t acked;
	_Atomic uint64_t asked;		/* the epoch of xprt_fate_ask() */
	atomic_bool	 left;		/* its answer */

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
 * Has the client left the connection for a newer one of its host?  If it sent a
 * call again there, and that copy came first, the call must not run here.  The
 * transport knows, for the price of a system call, but was it asked since the
 * copy came?  An epoch tells: note xprt_fate_epoch() with each call, and ask
 * where an equal one was noted in the epoch of the last question, or later.
 */

/* True if this is the only fate of its host, and no call has come on a newer
 * one that is gone: then no call has a copy on another connection. */
bool xprt_fate_is_alone(const struct xprt_fate *f);
/* Notes that a call came on the connection.  True if one has come on a newer
 * connection of the same host. */
bool xprt_fate_called(struct xprt_fate *f);
/* Returns the number of questions so far, about any connection. */
uint64_t xprt_fate_epoch(void);
/* Asks the transport, perhaps by a system call: has the peer ended the
 * connection?  Notes the answer in @f->left, and first the epoch that begins
 * now in @f->asked. */
void xprt_fate_ask(struct xprt_fate *f);
/*
 * The transport's: the connection ends, @how, or worse if look() says so.
 * Called while look() still works; only the first call counts.
 */
void xprt_fate_end(struct xprt_fate *f, enum xprt_end how);

uint64_t xprt_now_ms(void);
/* For tests: advances the clock by @seconds. */
void xprt_age(int seconds);
