/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * reload - a thread that reads the exports again when it is asked to.
 *
 * To mount a directory or to let go of one may take for ever, when its disk
 * hangs.  The main thread goes on meanwhile, and ends the process when it is
 * told to.
 */
#ifndef GANNET_DAEMON_RELOAD_H
#define GANNET_DAEMON_RELOAD_H

struct reloader;

/* @fn(@arg) is what a reload does.  0 or -errno. */
int reloader_start(void (*fn)(void *arg), void *arg, struct reloader **out);
/* Returns at once.  What is asked for while one is under way happens, once,
 * when that has ended. */
void reloader_ask(struct reloader *r);
/* Waits for the one under way.  NULL is fine. */
void reloader_stop(struct reloader *r);

#endif
