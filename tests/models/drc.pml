/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rule of the duplicate request cache (rpc/drc_rule.c) in all orders of
 * events.
 *
 * A client does OPS operations one after the other.  Their calls have equal
 * keys, which is the worst case.  It sends a call again on the same connection,
 * or gives the connection up and sends the call on a newer one; after an answer
 * it goes on there, or on a newer connection.  It gives up by a close, by a
 * reset, or because the network was cut, which the server does not learn.  The
 * server reads connections in any order, and a call runs for any time.
 *
 * Asserted: an operation runs once; an answer is that of the operation that the
 * client waits for; a call does not run after its operation was answered.
 *
 * rpc/drc_rule.h lists what the rule gets wrong.  So these stay out: a client
 * that leaves an answer unread and keeps the connection open, or loses it
 * silently; one that resets a connection and then uses its xids again; copies on
 * a connection that cross the reply (LATE lets them in); two clients.  Packets of
 * a newer connection do not overtake those of an older one that is not cut.
 */
#define CONNS	3	/* by turn; the client opens so many, or fewer */
#ifndef OPENED
#define OPENED	3
#endif
#ifndef OPS
#define OPS	2
#endif
#define SYN	253
#define FIN	254
#define RST	255

c_decl {
\#include "rpc/drc_rule.c"
}

/* The client. */
byte op;		/* the operation that it wants, from 0 */
byte conn;		/* where */
byte conns = 1;		/* so many were opened */
bool sent;		/* the call, on this connection */
bool again;		/* ... twice */
bool open[CONNS];	/* by the client */
bool unread[CONNS];	/* it ended with a reply unread */
bool served[CONNS];	/* an operation was answered there */

/* The network.  Calls and replies are numbers of operations. */
bool cut[CONNS];
chan up[CONNS] = [4] of { byte };
chan down[CONNS] = [3] of { byte };

/* In the kernels: what was not read yet. */
chan calls[CONNS] = [3] of { byte };
chan replies[CONNS] = [3] of { byte };
byte nsent[CONNS];	/* replies to a connection, */
byte nacked[CONNS];	/* and how many the peer acknowledged */
bool fin[CONNS];	/* the peer's FIN, or reset, came */
bool rst[CONNS];
typedef since { bool heard[CONNS] }
since a_heard[CONNS];	/* [a].heard[b]: a's peer, since b was accepted */

/* The server. */
bool accepted[CONNS];
bool closed[CONNS];	/* by the server */
bool came[CONNS];	/* a call */
byte epoch, seen;	/* as in transport/fate.h; all calls have one hash */
byte asked[CONNS];
bool left[CONNS];
byte running[CONNS];	/* the operation + 1 of a call that runs; one for each
			 * connection */
byte waiting[CONNS];	/* a call that waits there: for which connection's, + 1 */
byte order[CONNS];	/* of those that wait, the newest has most */
byte kept[CONNS];	/* the operation + 1 of a reply that is remembered */
byte position[CONNS];	/* of that reply */
byte runs[OPS];
bool answered[OPS];	/* the client has read the answer */

/* What the C code is asked, and answers. */
byte asking;		/* the connection */
bool recent;
byte verdict;
byte found;

c_code {
/* As in rpc/drc.c: */
enum { RUN, WAIT, REPLAY, DROP };

static enum xprt_end end_of(int c)
{
	return now.rst[c] ? XPRT_BROKEN : now.fin[c] ? XPRT_ORDERLY :
	       XPRT_ALIVE;
}

static int is_left_over(int b, int a)
{
	return a > b && (end_of(b) != XPRT_ALIVE ||
			 !now.a_heard[b].heard[a]);
}

static enum drc_case judge(int b, int a, int runs)
{
	struct drc_facts f = {
		.running = runs,
		.same = a == b,
		.acked = !runs && now.nacked[a] >= now.position[a],
		.recent = now.recent || (!runs && !now.answered[now.kept[a] - 1]),
		.heard = now.a_heard[a].heard[b],
		.left_over = is_left_over(b, a),
		.end = end_of(a),
	};

	return drc_rule(&f);
}

static void find_reply(int b, int *reply, int *left_over)
{
	int own = 0;

	for (int i = 0; i <= CONNS && !own && !*left_over; i++) {
		int a = i ? i - 1 : b;		/* that one alone decides */
		enum drc_case c;

		if (!now.kept[a] || (i && a == b))
			continue;
		own = a == b;
		c = judge(b, a, 0);
		if (drc_is_again(c) && *reply < 0)
			*reply = a;
		*left_over = c == DRC_LEFT_OVER;
		if (!drc_is_again(c) && c != DRC_NEW_SIBLING && !*left_over)
			now.kept[a] = 0;
	}
}

static void find_call(int b, int *first, int *left_over)
{
	for (int a = 0; a < CONNS && !*left_over; a++) {
		enum drc_case c;

		if (!now.running[a])
			continue;
		c = judge(b, a, 1);
		if (drc_is_again(c) && (*first < 0 || a == b))
			*first = a;
		*left_over = c == DRC_LEFT_OVER;
	}
}

/* The newest one that waits for the call of @first, or -1. */
static int newest_waiting(int first)
{
	int newest = -1;

	for (int w = 0; w < CONNS; w++)
		if (now.waiting[w] == first + 1 &&
		    (newest < 0 || now.order[w] > now.order[newest]))
			newest = w;
	return newest;
}

static int is_alone(void)
{
	int n = 0;

	for (int a = 0; a < CONNS; a++)
		n += now.accepted[a];
	return n == 1;
}

static int was_unread(int b)
{
	int newer = 0;

	for (int a = b + 1; a < CONNS; a++)
		newer |= now.came[a];
	if (newer && !now.left[b] && now.seen >= now.asked[b]) {
		now.asked[b] = ++now.epoch;
		now.left[b] = end_of(b) != XPRT_ALIVE;
	}
	return newer && now.left[b];
}

static void ask(void)
{
	int b = now.asking, reply = -1, first = -1, left_over = 0, newest;

	if (!is_alone()) {
		left_over = was_unread(b);
		now.seen = now.epoch;
	}
	if (!left_over)
		find_reply(b, &reply, &left_over);
	if (reply < 0 && !left_over)
		find_call(b, &first, &left_over);
	newest = first < 0 ? -1 : newest_waiting(first);
	now.verdict = left_over ? DROP : reply >= 0 ? REPLAY :
		      newest >= 0 && is_left_over(b, newest) ? DROP :
		      first >= 0 ? WAIT : RUN;
	now.found = reply >= 0 ? reply : first >= 0 ? first : 0;
}

/* The newest one keeps the reply, and so does each whose client waits there
 * itself. */
static int keeps(int c, int r)
{
	int newest = newest_waiting(r);

	if (newest < 0)
		return c == r;
	return c == newest ||
	       (end_of(c) == XPRT_ALIVE && now.a_heard[c].heard[newest]);
}
}

/* Sends the operation @o + 1 on @c. */
inline reply(c, o)
{
	nsent[c]++;
	if
	:: closed[c] -> skip
	:: else -> down[c]!o
	fi
}

inline read_call(c)
{
	d_step {
		calls[c]?o;
		came[c] = true;
		asking = c;
		c_code { ask(); };
		if
		:: verdict == 0 ->
			assert(runs[o] == 0);
			assert(!answered[o]);
			runs[o]++;
			running[c] = o + 1
		:: verdict == 1 ->
			/* Of those on a connection the newest waits. */
			if
			:: found != c ->
				waiting[c] = found + 1;
				i = 0;
				order[c] = 0;
				do
				:: i < CONNS ->
					if
					:: i != c && waiting[i] &&
					   order[i] >= order[c] ->
						order[c] = order[i] + 1
					:: else
					fi;
					i++
				:: else -> break
				od
			:: else -> skip
			fi
		:: verdict == 2 ->
			o = kept[found];
			kept[found] = 0;
			kept[c] = o;
			position[c] = nsent[c] + 1;
			reply(c, o - 1)
		:: verdict == 3 ->
			closed[c] = true
		fi;
		o = 0; i = 0; asking = 0; verdict = 0; found = 0; recent = 0
	}
}

/* The call of @c has run. */
inline finish(c)
{
	d_step {
		o = running[c];
		asking = c;
		i = 0;
		do
		:: i < CONNS ->
			if
			:: i == c || waiting[i] == c + 1 ->
				c_code { now.found = keeps(now.i, now.asking); };
				if
				:: found ->
					kept[i] = o;
					position[i] = nsent[i] + 1
				:: else -> skip
				fi;
				reply(i, o - 1)
			:: else -> skip
			fi;
			i++
		:: else -> break
		od;
		i = 0;
		do
		:: i < CONNS ->
			if
			:: waiting[i] == c + 1 -> waiting[i] = 0; order[i] = 0
			:: else -> skip
			fi;
			i++
		:: else -> break
		od;
		running[c] = 0;
		o = 0; i = 0; asking = 0; found = 0
	}
}

byte i, o;

/* The peer of @c is heard: since when other connections were accepted. */
inline hear(c)
{
	i = 0;
	do
	:: i < conns -> a_heard[c].heard[i] = accepted[i]; i++
	:: else -> break
	od;
	i = 0
}

/* No newer connection overtakes an older one. */
#define first_up(c)	(((c) < 1 || cut[0] || empty(up[0])) && \
			 ((c) < 2 || cut[1] || empty(up[1])))

inline to_server(c)
{
	c < conns && !cut[c] && nempty(up[c]) && first_up(c) ->
	up[c]?x;
	if
	:: x == SYN -> accepted[c] = true; epoch++; asked[c] = epoch
	:: x == FIN -> fin[c] = true
	:: x == RST -> rst[c] = true
	:: else ->
		hear(c);
		if
		:: !closed[c] && !rst[c] -> calls[c]!x
		:: else -> skip
		fi
	fi;
	x = 0
}

#ifdef LATE
#define no_copies(c)	true
#define may_copy(c)	true
#else
#define may_copy(c)	(empty(down[c]) && empty(replies[c]))
#define no_copies(c)	(!open[c] || (empty(up[c]) && empty(calls[c])))
#endif

inline to_client(c)
{
	c < conns && !cut[c] && nempty(down[c]) && no_copies(c) ->
	down[c]?x;
	if
	:: open[c] -> replies[c]!x; nacked[c]++; hear(c)
	:: !open[c] && !rst[c] -> up[c]!RST
	:: else -> skip
	fi;
	x = 0
}

active proctype network()
{
	byte x;

end:
	do
	:: atomic { to_server(0) }
	:: atomic { to_server(1) }
	:: atomic { to_server(2) }
	:: atomic { to_client(0) }
	:: atomic { to_client(1) }
	:: atomic { to_client(2) }
	:: atomic { conns > 0 && !cut[0] && !unread[0] -> cut[0] = true }
	:: atomic { conns > 1 && !cut[1] && !unread[1] -> cut[1] = true }
	od
}

/* An operation may have been answered long ago. */
inline read_some(c)
{
	nempty(calls[c]) && !closed[c] && !running[c] && !waiting[c] ->
	if
	:: recent = true
	:: recent = false
	fi;
	read_call(c)
}

inline finish_some(c)
{
	running[c] -> finish(c)
}

/* A connection that was reset may lose what was unread. */
inline lose_some(c)
{
	rst[c] && !closed[c] && nempty(calls[c]) -> closed[c] = true
}

active proctype server()
{
end:
	do
	:: atomic { read_some(0) }
	:: atomic { read_some(1) }
	:: atomic { read_some(2) }
	:: atomic { finish_some(0) }
	:: atomic { finish_some(1) }
	:: atomic { finish_some(2) }
	:: atomic { lose_some(0) }
	:: atomic { lose_some(1) }
	:: atomic { lose_some(2) }
	od
}

active proctype client()
{
	byte x;

	open[0] = true;
	up[0]!SYN;
end:
	do
	:: atomic {
		op < OPS && open[conn] && !sent && !again ->
		up[conn]!op; sent = true
	   }
	:: atomic {
		op == OPS - 1 && open[conn] && sent && !again &&
		may_copy(conn) ->
		up[conn]!op; again = true
	   }
	:: atomic {
		nempty(replies[conn]) && open[conn] && sent ->
		replies[conn]?x;
		assert(x == op);
		answered[op] = true; served[conn] = true;
		op++; sent = false; x = 0
	   }
	:: atomic {
		conns < OPENED && op < OPS &&
		(!cut[conn] || empty(replies[conn])) ->
		if
		:: cut[conn] && empty(replies[conn]) -> skip
		:: !cut[conn] && nempty(replies[conn]) ->
			up[conn]!RST; unread[conn] = true
		:: !cut[conn] && empty(replies[conn]) -> up[conn]!FIN
		:: !cut[conn] && empty(replies[conn]) && !served[conn] ->
			up[conn]!RST
		fi;
		open[conn] = false;
		conn = conns; conns++;
		open[conn] = true;
		up[conn]!SYN;
		sent = false; again = false
	   }
	od
}
