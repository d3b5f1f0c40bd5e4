/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * audit - the audit stream: a line of JSON for each call that is selected, with
 * who did what to which path.  gannetd(8) has the format.
 *
 * Threads that serve calls put a record into a ring, and never wait: a record
 * that finds no room is dropped and counted, and the stream reports the number.
 * A thread of the audit's own makes lines of the records and writes them.
 * While that fails it tries again each second, and calls are served as ever.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/settings/settings.h"
#include "rpc/lock_view.h"

struct audit;
struct outcome;
struct rpc_audit;

/* Begins the stream that @o asks for, if any.  0, or -errno after the reason
 * was logged. */
int audit_create(const struct options *o, struct audit **out);
/* For the programs, which end before audit_destroy(). */
struct rpc_audit *audit_hook(struct audit *a);
/*
 * Goes on as @o says, and opens the file again, since it can have another name
 * by now; if that fails, for a reason that is logged, the stream stays as it
 * was. NULL @a is fine.  The changer's thread; waits for a grace period of
 * RCU.
 */
void audit_apply(struct audit *a, const struct options *o);
/*
 * Opens the file of the stream that @o asks for again, as logrotate has moved
 * it away, and changes nothing else.  Without such a file it does nothing.  0,
 * or -errno after the reason was logged and written to @out: then the stream
 * stays in the file that it has.  The changer's thread; can wait for the file's
 * disk.
 */
int audit_reopen(struct audit *a, const struct options *o,
		 struct outcome *out);
/* The user @uid of this machine had the locks of the client at @addr ended, or
 * with @name only the locks of its host of that name.  NULL @a is fine.  A
 * thread that is registered with RCU; doesn't wait. */
struct audit_release {
	uid_t			  uid;
	struct in6_addr		  addr;
	const char		 *name;
	struct lock_totals	  ended;
};
void audit_note_release(struct audit *a, const struct audit_release *e);
/* Writes the waiting records, if that is possible now; a write that hangs gets
 * five seconds, and then the rest is lost.  NULL is fine. */
void audit_destroy(struct audit *a);

/* ---- audit_procs.c: names of procedures that the audit can note.  Pure. */

/* The procedures that change names or attributes: bits of rpc/audit.h. */
uint64_t audit_procs_changes(void);
/* Sets *@procs to the bits of names with commas between; "changes" and "all"
 * stand for several.  False: a name is wrong. */
bool audit_procs_parse(const char *text, uint64_t *procs);
