/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locks (nlm/) of two clients in all orders of events.
 *
 * Each client is a host as Linux is one, with one owner, a process that has two
 * threads.  The first locks one or both of two bytes, as shared or exclusive; it
 * waits if need be, asks again while it waits, may be interrupted, which sends
 * CANCEL, or killed, which sends UNLOCK behind the LOCK.  The second one locks
 * and unlocks bytes meanwhile.  Calls come once each, in order; call-backs and
 * their answers may be lost.
 *
 * Asserted: see tests/models/nlm_server.c.
 *
 * Left out: a call-back that comes after the server has given it up, and after
 * the client's next LOCK of the same bytes: it looks like the answer to that.
 * What a process believes whose own threads race for the same bytes is its own
 * affair: one takes them while the other's LOCK or UNLOCK of them is under way.
 *
 * -DLOCKS=n -DPOLLS=n: of each first thread; -DSECONDS=n: calls of each second
 * one; -DTELLS=n: call-backs for a grant; -DSHARED: locks may be shared;
 * -DONE: the second client has one thread, and is neither interrupted nor killed;
 * -DOVERTAKE: calls of an owner may overtake each other.
 */
#ifndef LOCKS
#define LOCKS 1
#endif
#ifndef POLLS
#define POLLS 0
#endif
#ifndef SECONDS
#define SECONDS 1
#endif
#define GRANTED 0
#define DENIED 1
#define BLOCKED 3
#define SILENT 255

c_decl {
\#include "tests/models/nlm_server.c"
\#define TO_TELL model_to_tell(&now.srv)
\#define TOLD_OF_0 (model_calls(&now.srv, 0) != NULL)
\#define TOLD_OF_1 (model_calls(&now.srv, 1) != NULL)
}
c_state "struct model_server srv" "Global"

mtype = { LOCK, TRY, CANCEL, UNLOCK };
mtype = { IDLE, SENT, WAITS, CANCELS };

/* Of a client: */
mtype st[2] = IDLE;	/* its first thread, */
byte mask[2];		/* ... the bytes that it wants, */
bit ex[2];		/* ... exclusive */
bit told[2];		/* ... the call-back came before the reply */
bit gone[2];		/* ... and it was killed */
byte gen[2];		/* number of its LOCK */
byte other[2];		/* the bytes of the second one's call */
bit raced[2];		/* ... are those that the first one wants */
byte racy[2];
byte has[4];		/* of client o, byte b: [2 * o + b], 1: shared */
byte locks[2] = LOCKS;
byte polls[2] = POLLS;
byte seconds[2];

/* A call's bytes, exclusive, number; its status. */
chan req[2] = [3] of { mtype, byte, bit, byte };
chan rep[2] = [3] of { mtype, byte, bit, byte, byte };
/* The bytes, grant and number of a call-back; its answer. */
chan tell[2] = [2] of { byte, byte, byte };
chan answer[2] = [2] of { byte, byte, byte };

#define EMPTY(c) (len(c[0]) == 0 && len(c[1]) == 0)
#define QUIET (EMPTY(req) && EMPTY(rep) && EMPTY(tell) && EMPTY(answer) && \
	       st[0] == IDLE && st[1] == IDLE)

inline check()
{
	c_code [ model_is_right(&now.srv, now.has, now.racy) ] { ; };
	if
	:: QUIET && c_expr { !now.srv.wait[0].used } ->
		c_code [ model_is_clean(&now.srv, now.has, now.racy) ] { ; }
	:: else
	fi
}

inline set_has(o, m, v)
{
	if :: (m & 1) -> has[2 * o] = v :: else fi;
	if :: (m & 2) -> has[2 * o + 1] = v :: else fi
}

inline take(o)
{
	if :: raced[o] -> racy[o] = racy[o] | 1 :: else fi;
	set_has(o, mask[o], 1 + ex[o]);
	st[o] = IDLE; mask[o] = 0; ex[o] = 0; told[o] = 0; raced[o] = 0
}

inline give_up(o)
{
	if :: raced[o] -> racy[o] = racy[o] | 1 :: else fi;
	st[o] = IDLE; mask[o] = 0; ex[o] = 0; told[o] = 0; raced[o] = 0
}

/* The call that is in what, m, x, n. */
inline serve(o)
{
	if
	:: what == LOCK -> c_code {
		Pserver->s = model_lock(&now.srv, Pserver->o, Pserver->m,
					Pserver->x, true); }
	:: what == TRY -> c_code {
		Pserver->s = model_lock(&now.srv, Pserver->o, Pserver->m,
					Pserver->x, false); }
	:: what == CANCEL -> c_code {
		Pserver->s = model_cancel(&now.srv, Pserver->o, Pserver->m,
					  Pserver->x); }
	:: what == UNLOCK -> c_code {
		Pserver->s = model_unlock(&now.srv, Pserver->o,
					  Pserver->m); }
	fi;
	rep[o]!what, m, x, n, s;
	what = LOCK; m = 0; x = 0; n = 0; s = 0;
	check()
}

proctype server(byte o)
{
	mtype what = LOCK;
	byte m, n, s, g, t;
	bit x;

	do
	:: atomic {
		nfull(rep[o]) ->
#ifdef OVERTAKE
		if
		:: req[o]??LOCK, m, x, n -> what = LOCK
		:: req[o]??TRY, m, x, n -> what = TRY
		:: req[o]??CANCEL, m, x, n -> what = CANCEL
		:: req[o]??UNLOCK, m, x, n -> what = UNLOCK
		fi;
		serve(o)
#else
		req[o]?<what, m, x, n>;
		c_code { Pserver->s = model_awaits(&now.srv, Pserver->o,
						   Pserver->m); };
		if
		:: s == 0 -> req[o]?what, m, x, n; serve(o)
		:: else -> what = LOCK; m = 0; x = 0; n = 0; s = 0
		fi
#endif
	   }
	/* The answer to a call-back. */
	:: atomic {
		answer[o]?s, g, t -> c_code {
			model_over(&now.srv, Pserver->o, Pserver->g,
				   Pserver->t, Pserver->s); };
		s = 0; g = 0; t = 0; check()
	   }
	/* None came. */
	:: atomic {
		len(tell[o]) == 0 && len(answer[o]) == 0 &&
		(o == 0 -> c_expr { TOLD_OF_0 } : c_expr { TOLD_OF_1 }) ->
		c_code { model_silent(&now.srv, Pserver->o); };
		check()
	   }
	od
}

/* The thread that calls clients back; and the network, which loses. */
proctype caller()
{
	byte i, o, m, g, t;

	do
	:: atomic {
		c_expr { TO_TELL } ->
		c_code { model_tell(&now.srv); };
		i = 0;
		do
		:: c_expr { Pcaller->i < ntold } ->
			c_code {
				Pcaller->o = told[Pcaller->i].owner;
				Pcaller->g = told[Pcaller->i].grant;
				Pcaller->t = told[Pcaller->i].try;
				Pcaller->m = told_mask(&now.srv, Pcaller->i);
			};
			if
			:: nfull(tell[o]) -> tell[o]!m, g, t
			:: full(tell[o])
			fi;
			i++
		:: else -> break
		od;
		i = 0; o = 0; m = 0; g = 0; t = 0; check()
	   }
	:: atomic { tell[0]?m, g, t -> m = 0; g = 0; t = 0; check() }
	:: atomic { tell[1]?m, g, t -> m = 0; g = 0; t = 0; check() }
	:: atomic { answer[0]?m, g, t -> m = 0; g = 0; t = 0; check() }
	:: atomic { answer[1]?m, g, t -> m = 0; g = 0; t = 0; check() }
	od
}

inline choose_bytes()
{
	if :: m = 1 :: m = 2 :: m = 3 fi;
#ifdef SHARED
	if :: x = 0 :: x = 1 fi
#else
	x = 1
#endif
}

#ifdef ONE
#define MAY(o)	(o == 0)
#else
#define MAY(o)	1
#endif

proctype client(byte o)
{
	byte m, n, s, g, t;
	bit x;

	do
	:: atomic {
		st[o] == IDLE && !gone[o] && locks[o] > 0 && nfull(req[o]) ->
		locks[o]--; gen[o]++;
		choose_bytes();
		mask[o] = m; ex[o] = x; st[o] = SENT; raced[o] = other[o] & m;
		req[o]!LOCK, m, x, gen[o];
		m = 0; x = 0; check()
	   }
	:: atomic {
		rep[o]?LOCK, m, x, n, s ->
		if
		:: st[o] == SENT && n == gen[o] ->
			if
			:: s == GRANTED || told[o] -> take(o)
			:: s == BLOCKED && !told[o] -> st[o] = WAITS
			:: else -> give_up(o)
			fi
		:: else
		fi;
		m = 0; x = 0; n = 0; s = 0; check()
	   }
	/* A call-back: whoever waits for these bytes has them. */
	:: atomic {
		tell[o]?m, g, t ->
		if
		:: st[o] == WAITS && mask[o] == m -> take(o); s = GRANTED
		:: st[o] == SENT && mask[o] == m -> told[o] = 1; s = GRANTED
		:: st[o] == CANCELS && mask[o] == m -> s = GRANTED
		:: else -> s = DENIED
		fi;
		if
		:: nfull(answer[o]) -> answer[o]!s, g, t
		:: full(answer[o])
		fi;
		m = 0; g = 0; t = 0; s = 0; check()
	   }
	/* It still waits, and asks again. */
	:: atomic {
		st[o] == WAITS && polls[o] > 0 && nfull(req[o]) ->
		polls[o]--; st[o] = SENT;
		req[o]!LOCK, mask[o], ex[o], gen[o]; check()
	   }
	/* It is killed while the LOCK is under way. */
	:: atomic {
		MAY(o) && st[o] == SENT && nfull(req[o]) ->
		set_has(o, mask[o], 0);
		req[o]!UNLOCK, mask[o], 1, 0;
		give_up(o); gone[o] = 1; check()
	   }
	:: atomic {
		MAY(o) && st[o] == SENT && nfull(req[o]) ->
		st[o] = CANCELS; gone[o] = 1;
		req[o]!CANCEL, mask[o], ex[o], gen[o]; check()
	   }
	/* It is interrupted while it waits. */
	:: atomic {
		MAY(o) && st[o] == WAITS && nfull(req[o]) ->
		st[o] = CANCELS; req[o]!CANCEL, mask[o], ex[o], gen[o];
		check()
	   }
	:: atomic {
		nfull(req[o]) -> rep[o]?CANCEL, m, x, n, s;
		if
		:: s == DENIED ->
			if :: (other[o] & m) -> racy[o] = racy[o] | 1 :: else fi;
			set_has(o, m, 0); req[o]!UNLOCK, m, 1, 0
		:: else
		fi;
		if :: st[o] == CANCELS -> give_up(o) :: else fi;
		m = 0; x = 0; n = 0; s = 0; check()
	   }
	/* The second thread: n of its calls is 1. */
	:: atomic {
		seconds[o] > 0 && other[o] == 0 && !gone[o] && nfull(req[o]) ->
		choose_bytes();
		seconds[o]--; other[o] = m; raced[o] = mask[o] & m;
		if
		:: req[o]!TRY, m, x, 1
		:: set_has(o, m, 0); req[o]!UNLOCK, m, 1, 1
		fi;
		m = 0; x = 0; check()
	   }
	:: atomic {
		rep[o]?TRY, m, x, n, s ->
		if :: s == GRANTED && !gone[o] -> set_has(o, m, 1 + x)
		   :: s == GRANTED && gone[o] -> racy[o] = racy[o] | 2
		   :: else fi;
		other[o] = 0;
		if :: st[o] == WAITS -> raced[o] = 0 :: else fi;
		m = 0; x = 0; n = 0; s = 0; check()
	   }
	:: atomic {
		rep[o]?UNLOCK, m, x, n, s ->
		if
		:: n == 1 -> other[o] = 0;
			if :: st[o] == WAITS -> raced[o] = 0 :: else fi
		:: else
		fi;
		m = 0; x = 0; n = 0; s = 0; check()
	   }
	od
}

init
{
	atomic {
		seconds[0] = SECONDS;
#ifndef ONE
		seconds[1] = SECONDS;
#endif
		run server(0); run server(1); run caller();
		run client(0); run client(1)
	}
}
