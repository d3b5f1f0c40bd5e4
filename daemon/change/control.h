/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control - answers gannetctl(8) at a local socket, in JSON.
 *
 * A connection has one request and one answer, a line each:
 *
 *	{"v": 1, "command": "NAME", "argument": "TEXT", "options": {...}}
 *	{"v": 1, "result": ...} or {"v": 1, "error": "TEXT"}
 *
 * A command that may take long gives its connection to another thread, which
 * answers when the command is done.  A command may also send bytes of its own
 * after its result, by a thread of its own.
 *
 * One thread serves up to 64 connections at once, and gives each a few seconds.
 * When there are more, the user that has most loses its oldest.  By the mode of
 * the socket's file only the server's own user, root and the file's group can
 * connect.
 */
#ifndef GANNET_DAEMON_CONTROL_H
#define GANNET_DAEMON_CONTROL_H

#include <jansson.h>

#define CONTROL_VERSION	1

struct control;

/* A request that is answered later, with its connection. */
struct control_call;

/* A command.  It has @run or @open, which return the result, or NULL and
 * *@wrong, or it has @later; all on the control thread. */
struct control_command {
	const char *name;
	json_t *(*run)(void *arg, const char *argument, const char **wrong);
	/* @options may be NULL. */
	json_t *(*open)(void *arg, const json_t *options, const char **wrong);
	/* After each result of @open: takes the connection @fd, to which the
	 * result was sent; -1: that failed.  Must not wait. */
	void (*stream)(void *arg, int fd);
	/* Takes @call, which another thread ends; @kind is that below.  Must
	 * not wait. */
	void (*later)(void *arg, struct control_call *call, int kind);
	int kind;		/* for @later, which serves several commands */
};

/* Of the request, borrowed until the call ends; either may be NULL. */
const char *control_call_argument(const struct control_call *call);
const json_t *control_call_options(const struct control_call *call);
/* Answers with @result, which it takes, or if that is NULL with @error; without
 * both not at all.  Takes @call.  Any thread; waits two seconds at most. */
void control_call_end(struct control_call *call, json_t *result,
		      const char *error);

/* Looks for the group whose members may ask, before the process is confined:
 * a name service may need more than serving does. */
void control_find_group(void);

/*
 * Makes the socket @path and the thread, which calls the @commands, ended by
 * one without a name, with @arg; both are borrowed.  0 or -errno; -EBUSY:
 * another process answers there; -EEXIST: something else is there.
 */
int control_start(const char *path, const struct control_command *commands,
		  void *arg, struct control **out);
/* Ends the thread and removes the socket.  NULL is fine. */
void control_stop(struct control *c);

#endif
