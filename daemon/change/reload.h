/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reload - a thread that reads the exports again, or changes them, when it is
 * asked to.
 *
 * The exports file may lie on a disk that hangs.  The main thread goes on
 * meanwhile, and ends the process when it is told to.
 */
#ifndef GANNET_DAEMON_RELOAD_H
#define GANNET_DAEMON_RELOAD_H

#include <stdbool.h>

struct outcome;
struct reloader;

/* Something else for the thread to do, or to leave undone if the server @stops.
 * It is the job's last use. */
struct reloader_job {
	struct reloader_job *next;
	void (*run)(struct reloader_job *job, bool stops);
};

/* Starts the thread; it calls @fn(@arg, NULL) to reload. 0 or -errno. */
int reloader_start(int (*fn)(void *arg, struct outcome *o), void *arg,
		   struct reloader **out);
/* Asks for a reload and returns at once.  Requests during a reload cause one
 * more, when it has ended. */
void reloader_ask(struct reloader *r);
/* Gives the thread @job, to be run after those before it.  False: too many
 * wait.  Any thread. */
bool reloader_give(struct reloader *r, struct reloader_job *job);
/* Waits for the reload under way and ends the thread.  NULL is fine. */
void reloader_stop(struct reloader *r);

#endif
