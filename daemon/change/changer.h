/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * changer - a thread that reads the exports again, or changes them, when it is
 * asked to.
 *
 * The exports file may lie on a disk that hangs.  The main thread goes on
 * meanwhile, and ends the process when it is told to.
 */
#ifndef GANNET_DAEMON_CHANGER_H
#define GANNET_DAEMON_CHANGER_H

#include <stdbool.h>

struct outcome;
struct changer;

/* Something else for the thread to do, or to leave undone if the server @stops.
 * It is the job's last use. */
struct changer_job {
	struct changer_job *next;
	void (*run)(struct changer_job *job, bool stops);
};

/* Starts the thread; it calls @fn(@arg, NULL) to reload. 0 or -errno. */
int changer_start(int (*fn)(void *arg, struct outcome *o), void *arg,
		   struct changer **out);
/* Asks for a reload and returns at once.  Requests during a reload cause one
 * more, when it has ended. */
void changer_reload(struct changer *r);
/* Gives the thread @job, to be run after those before it.  False: too many
 * wait.  Any thread. */
bool changer_give(struct changer *r, struct changer_job *job);
/* Waits for the reload under way and ends the thread.  NULL is fine. */
void changer_stop(struct changer *r);

#endif
