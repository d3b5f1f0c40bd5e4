/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * drc_rule - is a call with a known key a retransmission?  Pure.
 *
 * An xid alone does not tell: clients count xids from a constant, from the
 * clock, or from a random number for each connection.  So the same user can
 * well send the same xid with the same arguments and mean a new call ("CREATE
 * f, REMOVE f, CREATE f, REMOVE f" by a tool that is started twice).  The
 * connection that the first reply went to does tell.  A client sends a call
 * again only if it has no reply; so a call is new if the client is known to
 * have the reply, or to be still alive and waiting on the other connection.
 *
 * E is the earlier call, answered or running; A is its connection; B is the
 * connection of the call with an equal key.
 *
 * 	A	E's reply		the call is
 * 	------------------------------------------------------------------
 * 	= B	E runs, or not acked	sent again (Linux, libnfs: 60 s)
 * 	= B	acked			new
 * 	alive	acked			new
 * 	alive	runs, or not acked;	new: nconnect's sibling, another
 * 		A was heard since B	program, another host behind a NAT
 * 		was accepted
 * 	alive	the same, not heard	sent again: A is half-open, the client
 * 					lost it and we don't know yet
 * 	closed	acked			new: the client read all and closed
 * 	closed	runs, or not acked	sent again: it gave up waiting.  For
 * 					DRC_CLOSED_MS after the end
 * 	broken	runs, or not acked	sent again.  For DRC_BROKEN_MS
 * 	broken	acked in A's last	sent again: a client that ends with
 * 		second			replies unread resets the connection.
 * 					For DRC_UNREAD_MS
 * 	broken	acked earlier		new
 * 	any	A was accepted after B,	left over: the client left B and has
 * 		and B was closed or	sent the call again on A, which was read
 * 		silent since		first.  B is closed
 *
 * "Acked": the peer's TCP acknowledged all of the reply; its RDMA device has
 * it; or, on an iWARP adapter, which can't tell, a later call proves by its
 * credits that the client took it (transport/rpcrdma/conn.c).  "Closed": the
 * peer sent a FIN or DREQ before anything else ended the connection.  "Broken":
 * all else, also that we closed it, idle or stopping, even if a FIN came in
 * answer.
 *
 * Cases that the rule gets wrong, with the result:
 *  - The peer's TCP has the reply but its program does not read it for more
 *    than a second, and then loses the connection: the call runs twice.  (The
 *    time in which we had no processor to learn of the loss counts, too.)  So
 *    does a call whose reply is lost behind a proxy that ends TCP (haproxy,
 *    ssh): its ack is not the client's.
 *  - The same without a loss: the program shuts its side down with the reply
 *    unread, and closes the connection after our FIN, so that no reset comes
 *    (200 ms later, or sooner where connections end by the hundred:
 *    transport/stream/tcp.h, UNREAD); or it keeps A open, unread, and sends the
 *    call again on B.  Linux reads what came before it connects again.  Nothing
 *    on the wire tells these from a program that has read its reply and starts
 *    again, with the same xids.
 *  - A client sends the call again on its connection while the reply is on its
 *    way, or the server reads both copies so late that the first is answered,
 *    and acknowledged, before the second is read: the call runs twice.  A
 *    client with the same xids again can then take the second reply for that of
 *    its next call.
 *  - On an iWARP adapter a client has more calls outstanding than the last one
 *    asked for, against RFC 8166 section 3.3.1; or it forgot calls (of a
 *    process that was killed) and sent others before the replies to them came.
 *    As many of the last replies as are too many seem proven, and if they were
 *    lost, their calls run twice.
 *  - On an iWARP adapter the last replies of a connection, as many as its
 *    client has credits, are never proven.  A program that uses the same xids
 *    again gets them within DRC_CLOSED_MS after the end (the adapter does not
 *    tell a reset from a close), or on another connection next to it, at any
 *    time.  One that asks for a single credit is spared all but the last.
 *  - A program that resets its connections and uses the same xids again within
 *    DRC_UNREAD_MS gets the old reply to a call of the last second before.  So
 *    does a program that was killed with a call unanswered, counts its xids
 *    from a constant, and sends the same call again within DRC_CLOSED_MS; or,
 *    if it lost its power, within DRC_BROKEN_MS.
 *  - Two programs behind one address, the second of which connected within
 *    DRC_SLACK_MS: the second is taken for the first, if everything is equal
 *    and at the same moment.  On RDMA, where nothing is heard in between, at
 *    any time while E is under way, or not acked.
 *  - A living client is taken for one that left B, if its call lay unread for
 *    more than DRC_SLACK_MS while another program connected and sent the same,
 *    or if it closes only its side of B.  B is closed, so such a client learns
 *    it and sends again: nothing is lost or runs twice.
 *  - A call that an old connection still holds unread (reading was paused)
 *    long after it was answered on a newer one runs when it is read, if the
 *    network was cut and we haven't heard of the old one's end.  drc.h has the
 *    case that we have.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>

#include "transport/fate.h"

/* The kernel's clocks that say when a peer was heard have ticks of up to ten
 * milliseconds. */
#define DRC_SLACK_MS	20
/* "A's last second", up to the moment when we learned of its end.  A thousand;
 * tests set more, for their threads and ours can be late. */
extern _Atomic unsigned drc_recent_ms;
/* A call can be sent again for this long after the end of its connection.  A
 * client that closed or reset the connection is alive: it connects again at
 * once, or backs off for seconds.  A client that lost it might not reach us for
 * a long time. */
#define DRC_CLOSED_MS	120000
#define DRC_BROKEN_MS	3600000
#define DRC_UNREAD_MS	30000

struct drc_facts {
	bool		running;	/* E has no reply yet */
	bool		same;		/* A is B */
	bool		acked;		/* the peer has E's reply */
	bool		recent;		/* it was sent in A's last second */
	bool		heard;		/* A's peer, since B was accepted */
	bool		left_over;	/* B is older than A, and has ended or
					 * been silent since */
	enum xprt_end	end;		/* A's, */
	uint64_t	since;		/* and so many ms ago */
};

/* The meaning of an equal key, by case.  Each case has a counter. */
enum drc_case {
	/* The call is sent again. */
	DRC_AGAIN_SAME,		/* on the connection itself */
	DRC_AGAIN_SILENT,	/* A is alive, we think, but silent */
	DRC_AGAIN_CLOSED,
	DRC_AGAIN_BROKEN,
	DRC_AGAIN_UNREAD,	/* acked, but perhaps not read */
	/* The call is new. */
	DRC_NEW_SIBLING,	/* A is alive and waits for E itself */
	DRC_NEW_TAKEN,		/* A is alive; its client has the reply */
	DRC_NEW_CLOSED,
	DRC_NEW_BROKEN,
	/* The client seems to have given the call up. */
	DRC_LEFT_OVER,
};

enum drc_case drc_rule(const struct drc_facts *f);

static inline bool drc_is_again(enum drc_case c)
{
	return c <= DRC_AGAIN_UNREAD;
}
