/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crash - runs gannetd for a client that knows what the server owes it, ends it
 * suddenly, and checks that all of it is there.
 */
#pragma once

#include "tests/crash/wire.h"
#include "tests/server/daemon_run.h"

#define CRASH_SLOTS	48
#define CRASH_WIRES	8

struct crash {
	/* Set by the test. */
	bool	 iwarp;			/* else TCP */
	bool	 table;			/* handles by the table */
	bool	 handles_may_go;	/* an end can cost handles */
	bool	 errors;		/* the disk failed: calls can fail */
	int	 may[4];		/* statuses that they can have */
	bool	 state_apart;		/* on another file system */
	bool	 keeps_old;		/* a RENAME without success can leave
					 * the old name beside the new one */
	const char *options;		/* of the posix backend: ",async" */

	struct daemon_run d;
	char	 dir[80];		/* has state/ and export/ */
	struct model_fh root;
	struct slot slots[CRASH_SLOTS];
	struct wire wire[CRASH_WIRES];
	pid_t	 relay;			/* of iWARP; 0: none */
	int	 relay_in;		/* ends it when closed */

	uint64_t seed;
	unsigned long ends;		/* of gannetd */
	unsigned long acks, doubts;	/* operations */
	unsigned long refused;		/* with a status of c->may */
	unsigned long later;		/* with JUKEBOX */
	unsigned long checked;		/* objects and names looked for */
	unsigned long lost_handles;
	unsigned long again;		/* EXCLUSIVE CREATEs sent again */
	unsigned long both;		/* RENAMEs that left both names */
};

/* Names where things go, and makes export/ there.  @dir NULL: d.dir. */
void crash_prepare(struct crash *c, const char *dir);
/* Connects to the server that listens on @port. */
void crash_connect(struct crash *c, uint16_t port);
/* Makes the directories below c->root, if they are not there. */
void crash_make_dirs(struct crash *c);
/* Starts gannetd and connects. */
void crash_start(struct crash *c);
/* Works for @us microseconds. */
void crash_work(struct crash *c, unsigned us);
/* Stops sending, and waits for the answers to all calls. */
void crash_settle(struct crash *c, unsigned us);
/* Kills gannetd; the replies that it sent still count. */
void crash_kill(struct crash *c);
/* Counts @status if it is in c->may, and returns true. */
bool crash_may_refuse(struct crash *c, int status);
/* Checks acknowledged state while gannetd runs. */
void crash_pause(struct crash *c);
/* Disconnects: calls without an answer are in doubt. */
void crash_disconnect(struct crash *c);
/* Looks for all that is owed; fails the test when something is missing. */
void crash_check(struct crash *c);
void crash_report(const struct crash *c, const char *what);
/* A number from the environment. */
unsigned crash_setting(const char *name, unsigned otherwise);
