/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reload - a thread that reads the exports again when it is asked to.
 *
 * The exports file may lie on a disk that hangs.  The main thread goes on
 * meanwhile, and ends the process when it is told to.
 */
#ifndef GANNET_DAEMON_RELOAD_H
#define GANNET_DAEMON_RELOAD_H

struct reloader;

/* Starts the thread; it calls @fn(@arg) to reload. 0 or -errno. */
int reloader_start(void (*fn)(void *arg), void *arg, struct reloader **out);
/* Asks for a reload and returns at once.  Requests during a reload cause one
 * more, when it has ended. */
void reloader_ask(struct reloader *r);
/* Waits for the reload under way and ends the thread.  NULL is fine. */
void reloader_stop(struct reloader *r);

#endif
