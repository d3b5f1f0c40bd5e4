/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host that restarts, or is restored to an older state (nlm/host.c), in all
 * orders of events.
 *
 * It has two processes, which have the same numbers after each start, and lock
 * two bytes.  Its status monitor's state grows at each restart, or goes back
 * when the host is restored; LOCK has it.  A notice of each start can come at
 * any time from then on, and any number of times.  A LOCK that has come waits as
 * long as it likes, also while its host restarts.  The network loses the others
 * then, as TCP does.
 *
 * Asserted: a byte that a living process was granted stays its own; and when the
 * host's last start was noticed, a LOCK has come since the last notice, and no
 * process waits, no byte is held by a process from before.
 *
 * Left out: what is held, if the state is one that the host had before: the two
 * can't be told apart.
 *
 * -DSTARTS=n: restarts; -DPROCESSES=n: 1 or 2; -DLATE: a LOCK can come after its
 * host has restarted, as over UDP; -DONCE: notices of earlier starts can't;
 * -DUNKNOWN: those can, even if the server does not know of the start; -DWAITS:
 * another lock can be in the way of a LOCK, also of one for a byte that its owner
 * has (as if the LOCK were for more bytes); it waits, is granted, and is undone by
 * a CANCEL, or since its process is gone.
 */
#ifndef STARTS
#define STARTS 2
#endif
#ifndef PROCESSES
#define PROCESSES 2
#endif
#define FIRST 3
#define GRANTED 0
#define BLOCKED 3

c_decl {
\#include "tests/models/restart_server.c"
\#define HAS_JOB model_has_job(&now.srv)
\#define IS_GRANTED model_is_granted(&now.srv, now.i, now.j)
\#define HAS_WAITS model_has_waits(&now.srv)
}
c_state "struct model_server srv" "Global"

byte state = FIRST;
byte starts = STARTS;
byte noticed;			/* the state that a notice brings, */
byte told = 1 << FIRST;		/* ... of these */
byte used = 1 << FIRST;		/* states that the host had */
bit again;			/* it had this one before */
bit heard;			/* a notice of this start has come */
bit asked;			/* and a LOCK after the last notice */
byte has[4];			/* process o, byte b: [2 * o + b] */
bit sent[2];			/* a LOCK is at the server, */
bit alive[2];			/* ... of a process that is there, */
bit fresh[2];			/* ... which came after the last notice */
bit hears[2];			/* the first step is done */
byte bytes[2];			/* that it is for */
bit foreign;			/* another lock is in the way of a LOCK */
bit waits[4];			/* as has: the process waits for the byte */
byte late[2];			/* 1 + byte of a LOCK in the network, */
byte late_state[2];
byte newest;			/* state that the server knows of */
byte i, j, ok;

inline check()
{
	c_code { now.newest = now.srv.newest; };
	c_code [ model_is_right(&now.srv, now.has) ] { ; };
	if
	:: heard && asked && !again && !sent[0] && !sent[1] &&
	   c_expr { !HAS_JOB && !HAS_WAITS } ->
#ifndef LATE
		c_code [ model_is_clean(&now.srv, now.has) ] { ; }
#else
		skip
#endif
	:: else
	fi
}

#ifdef UNKNOWN
#define MAY_COME(s)	(told & 1 << s)
#else
#define MAY_COME(s)	((told & 1 << s) && (s == state || newest >= s))
#endif

inline choose_notice()
{
	if
	:: MAY_COME(1) -> noticed = 1
	:: MAY_COME(2) -> noticed = 2
	:: MAY_COME(3) -> noticed = 3
	:: MAY_COME(4) -> noticed = 4
	:: MAY_COME(5) -> noticed = 5
	fi
}

inline note_notice()
{
	fresh[0] = 0; fresh[1] = 0; asked = 0;
	if :: noticed == state -> heard = 1 :: else fi;
	noticed = 0
}

inline send(o)
{
	!sent[o] && o < PROCESSES && !waits[2 * o] && !waits[2 * o + 1] ->
	if :: bytes[o] = 0 :: bytes[o] = 1 fi;
	sent[o] = 1; alive[o] = 1; fresh[o] = heard;
	i = o;
	c_code { model_comes(&now.srv, now.i, now.bytes[now.i], now.state); };
	i = 0
}

inline hear(o)
{
	sent[o] && !hears[o] ->
	hears[o] = 1; i = o;
	c_code { model_hear(&now.srv, now.i); };
	if :: fresh[o] -> asked = 1 :: else fi;
	i = 0; check()
}

inline lock(o)
{
	sent[o] && hears[o] ->
	if :: choose_notice() :: skip fi;
#ifdef WAITS
	if :: foreign = 0 :: foreign = 1 fi;
#endif
	i = o;
	c_code { now.ok = model_lock(&now.srv, now.i, now.noticed,
				     now.foreign); };
	if
	:: ok == GRANTED && alive[o] -> has[2 * o + bytes[o]] = 1
	:: ok == BLOCKED && alive[o] -> waits[2 * o + bytes[o]] = 1
	:: else
	fi;
	if :: noticed -> note_notice() :: else fi;
	sent[o] = 0; alive[o] = 0; fresh[o] = 0; hears[o] = 0; bytes[o] = 0;
	foreign = 0; ok = 0; i = 0; check()
}

/* The waiters have their locks; a notice can come meanwhile. */
inline grant()
{
	c_expr { HAS_WAITS } ->
	if :: choose_notice() :: skip fi;
	c_code { model_grant(&now.srv, now.noticed); };
	if :: noticed -> note_notice() :: else fi;
	check()
}

/* The call-back for the byte b: whoever waits for it has it. */
inline answer(o, b)
{
	i = o; j = b;
	if
	:: c_expr { IS_GRANTED } ->
		ok = waits[2 * o + b];
		c_code { model_answer(&now.srv, now.i, now.j, now.ok); };
		if :: ok -> has[2 * o + b] = 1; waits[2 * o + b] = 0 :: else fi;
		ok = 0
	:: else
	fi;
	i = 0; j = 0; check()
}

/* The process is interrupted while it waits. */
inline cancel(o, b)
{
	waits[2 * o + b] && !sent[o] ->
	i = o; j = b;
	c_code { now.ok = model_cancel(&now.srv, now.i, now.j); };
	if
	:: ok ->
		has[2 * o + b] = 0;
		c_code { model_unlock(&now.srv, now.i, now.j); }
	:: else
	fi;
	waits[2 * o + b] = 0; i = 0; j = 0; ok = 0; check()
}

inline leave_late(o)
{
	late_state[o] = state;
	if :: late[o] = 1 :: late[o] = 2 :: late[o] = 0; late_state[o] = 0 fi
}

inline start()
{
	starts--;
#ifdef LATE
	leave_late(0);
#endif
	if
	:: state++
	:: state > 1 -> state--
	:: state > 2 -> state = state - 2
	:: state = state
	fi;
	again = (used & 1 << state) != 0;
	used = used | 1 << state;
#ifdef ONCE
	told = 0;
#endif
	told = told | 1 << state;
	has[0] = 0; has[1] = 0; has[2] = 0; has[3] = 0;
	waits[0] = 0; waits[1] = 0; waits[2] = 0; waits[3] = 0;
	alive[0] = 0; alive[1] = 0; fresh[0] = 0; fresh[1] = 0;
	heard = 0; asked = 0; check()
}

inline come_late(o)
{
	late[o] && !sent[o] ->
	bytes[o] = late[o] - 1; sent[o] = 1; i = o;
	c_code { model_comes(&now.srv, now.i, now.bytes[now.i],
			     now.late_state[now.i]); };
	late[o] = 0; late_state[o] = 0; i = 0
}

active proctype world()
{
end:
	do
	:: atomic { send(0) }
	:: atomic { send(1) }
	:: atomic { hear(0) }
	:: atomic { hear(1) }
	:: atomic { lock(0) }
	:: atomic { lock(1) }
	:: atomic {
		choose_notice();
		c_code { model_notice(&now.srv, now.noticed); };
		note_notice(); check()
	   }
	:: atomic {
		c_expr { HAS_JOB } ->
		c_code { model_job(&now.srv); };
		check()
	   }
	:: atomic { starts > 0 -> start() }
#ifdef WAITS
	:: atomic { grant() }
	:: atomic { answer(0, 0) }
	:: atomic { answer(0, 1) }
	:: atomic { cancel(0, 0) }
	:: atomic { cancel(0, 1) }
#endif
#ifdef LATE
	:: atomic { come_late(0) }
#endif
	od
}
