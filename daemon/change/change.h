/* SPDX-License-Identifier: BSD-2-Clause */
/* change - changes of a server that runs, by gannetctl(8) or by a reload. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "daemon/settings/settings.h"
#include "exports/export.h"
#include "transport/xprt.h"

/* A request that is answered later, with its connection. */
struct control_call;
struct outcome;
struct report;

/* change - what gannetctl(8) has the server change, on the changer's
 * thread. */

enum change_kind {
	CHANGE_RELOAD,
	CHANGE_REOPEN,		/* the audit stream's file */
	/* Of the exports. */
	CHANGE_ADD, CHANGE_REMOVE, CHANGE_SET,
};

/* Commands, as control_command.later: @report is a struct report, and @kind an
 * enum change_kind. */
void change_later(void *report, struct control_call *call, int kind);

/*
 * change_exports.c: changes the exports as the options of @call say, all or
 * nothing: "line", or "path" and "client", which can be missing to remove all;
 * "keep": also in the state directory, else until a reload.  0, or -errno and
 * the error in @out.  The changer's thread.
 */
int change_rules(const struct report *r, const struct control_call *call,
		 enum change_kind kind, struct outcome *out);

/*
 * outcome - the outcome of a reload or of a change of the exports: for the log,
 * and for gannetctl(8) if it asked.
 *
 * Each function logs; an outcome that is NULL has no other reader.  The thread
 * that reloads, or that of the start.
 */

struct outcome {
	json_t	*settings;
	json_t	*rules;
	json_t	*warnings;
	char	*error;		/* the last; NULL: none, or no memory */
};

void outcome_init(struct outcome *o);
void outcome_fini(struct outcome *o);

/* @text: a line for each. */
void outcome_error(struct outcome *o, const char *text);
void outcome_warn(struct outcome *o, const char *text);
/* Adds each line of @text as a warning; the log has them already.  NULL is
 * ignored. */
void outcome_logged(struct outcome *o, const char *text);
/* The setting of @row was @old and becomes @new: now, or at the next start. */
void outcome_setting(struct outcome *o, const struct option_row *row,
		     const char *old, const char *new);
/* A rule of the exports, as gannetd --check prints it, is new or gone. */
void outcome_rule(struct outcome *o, const char *rule, bool is_new);

/* All of it as gannetctl's result; NULL: no memory. */
json_t *outcome_json(const struct outcome *o);

/*
 * control - answers gannetctl(8) at a local socket, in JSON.
 *
 * A connection has one request and one answer, a line each:
 *
 *	{"v": 1, "command": "NAME", "argument": "TEXT", "options": {...}}
 *	{"v": 1, "result": ...} or {"v": 1, "error": "TEXT"}
 *
 * A command that can take long gives its connection to another thread, which
 * answers when the command is done.  A command can also send bytes after its
 * result, by a separate thread.
 *
 * One thread serves up to 64 connections at once, and gives each a few seconds.
 * Above that, the user that has most loses its oldest.  By the mode of the
 * socket's file only the server's own user, root and the file's group can
 * connect.
 */

#define CONTROL_VERSION	1

struct control;

/* A command.  It has @run or @open, which return the result, or NULL and
 * *@wrong, or it has @later; all on the control thread. */
struct control_command {
	const char *name;
	json_t *(*run)(void *arg, const char *argument, const char **wrong);
	/* @options can be NULL. */
	json_t *(*open)(void *arg, const json_t *options, const char **wrong);
	/* After each result of @open: takes the connection @fd, to which the
	 * result was sent; -1: that failed.  Must not wait. */
	void (*stream)(void *arg, int fd);
	/* Takes @call, which another thread ends; @kind is that below.  Must
	 * not wait. */
	void (*later)(void *arg, struct control_call *call, int kind);
	int kind;		/* for @later, which serves several commands */
};

/* Of the request, borrowed until the call ends, or NULL. */
const json_t *control_call_options(const struct control_call *call);
/* Answers with @result, which it takes, or if that is NULL with @error; without
 * both not at all.  Takes @call.  Any thread; waits two seconds at most. */
void control_call_end(struct control_call *call, json_t *result,
		      const char *error);

/* The user whose command the calling thread, the control thread, runs. */
uid_t control_user(void);

/* Looks for the group whose members may ask, before the process is confined:
 * a name service can need more than serving does. */
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

/* exports - reads the exports that the options name. */

/*
 * Reads all exports files and --export arguments, and makes them the current
 * exports of @t.  Logs warnings, and the reason of an error: then the old
 * exports stay.  0 or -errno; @out, or NULL, tells more.
 */
int exports_publish(const struct options *o, struct export_table *t,
		    struct outcome *out);

/*
 * exports_publish() at the start of the server.  A missing disk keeps no other
 * export from its clients: an export that can't be mounted is logged, and tried
 * until it can.  0, or -errno for a mistake in the texts.
 */
int exports_start(const struct options *o, struct export_table *t);

/*
 * Reads all exports that @o names, with the rules of @kept in the place of the
 * kept ones (see kept), into *@out, and publishes nothing.  0; or -errno and
 * *@why, malloced, or NULL without memory.
 */
int exports_try(const struct options *o, struct export_table *t, FILE *kept,
		struct export_set **out, char **why);

/*
 * Does the same as exports_publish() with a separate table, which keeps
 * nothing, and prints that; see gannetd(8).  Where an export does not answer,
 * prints the others and ends the process.  0, or -errno after the reason was
 * logged.
 */
int exports_check(const struct options *o, const struct backends *backends,
		  bool krb5);

/*
 * kept - the exports that gannetctl(8) was told to keep: an exports file in the
 * state directory, which is read after all others.
 *
 * The state directory is the one place that the server may always write to.
 */

/* The file's path, malloced; NULL: no memory.  Any thread. */
char *kept_name(const struct options *o);

/* Reads the file into *@set, NULL without a file.  0 or -errno and *@why, as
 * export_set_parse().  The changer's thread. */
int kept_read(const struct options *o, struct export_table *t,
	      struct export_set **set, char **why);
/* *@text, malloced, becomes the text of the file with the rules of @set (NULL:
 * none).  0 or -ENOMEM. */
int kept_text(const struct export_set *set, char **text, size_t *len);
/* Writes the file, all or nothing, and syncs it.  0 or -errno.  The thread that
 * reloads. */
int kept_write(const struct options *o, const char *text, size_t len);

/* rules - the rules of the exports before and after a change.  The publisher's
 * thread. */

/* Rules as gannetd --check prints them, in order; v is NULL without memory. */
struct rules {
	char	 *text;
	char	**v;
	size_t	  n;
};

/* Asks no file system.  The changer's thread. */
struct rules rules_of(struct export_table *t);
void rules_free(struct rules *r);
/* Tells @out, or the log alone for NULL, which rules of @t are new since @old,
 * and which have gone. */
void rules_tell(const struct rules *old, struct export_table *t,
		struct outcome *out);

/* tune - applies a changed gannet.conf to a server that runs.  The changer's
 * thread. */

/*
 * Sets the limits of connections in @env as @o has them.  Connections leave
 * half of the descriptors to files: a transport has a quarter at most, and a
 * peer a quarter of that.  Any thread.
 */
void tune_connections(struct xprt_env *env, const struct options *o);

/*
 * Reads gannet.conf, the files of TLS and the exports again, and makes them the
 * current ones: all, or none after a mistake, which is logged.  Logs the
 * changes, at a level that shows them; the caller sets the log's level.  *@now
 * has the options of the last reload, or is NULL before the first, when @start
 * holds; it becomes the new options, for tune_free().  0 or -errno; @out, or
 * NULL, tells more.
 */
int tune_reload(const struct options *start, struct options **now,
		struct export_table *exports, struct tls_server *tls,
		struct outcome *out);
/* The options by which exports are read, and kept: from @now, or if it is NULL
 * from @start; the state directory is that of @start, whose lock the server
 * has.  Borrowed from both. */
struct options tune_exports(const struct options *start,
			    const struct options *now);
/* NULL is fine. */
void tune_free(struct options *o);

/*
 * changer - a thread that reads the exports again, or changes them, on request.
 *
 * The exports file can lie on a disk that hangs.  The main thread goes on
 * meanwhile, and can end the process.
 */

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
/* Gives the thread @job, to be run after earlier jobs.  False: too many wait.
 * Any thread. */
bool changer_give(struct changer *r, struct changer_job *job);
/* Waits for the reload under way and ends the thread.  NULL is fine. */
void changer_stop(struct changer *r);
