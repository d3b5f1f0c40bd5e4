/* SPDX-License-Identifier: BSD-2-Clause */
/* report - the server's state in JSON, for gannetctl(8).  The control
 * thread, and that of the pages, which only asks. */
#pragma once

#include <jansson.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "daemon/change/change.h"
#include "daemon/serve/drain.h"
#include "daemon/settings/settings.h"
#include "daemon/watch/audit.h"
#include "daemon/watch/stream.h"
#include "exports/export.h"
#include "rpc/program.h"
#include "transport/pool.h"
#include "transport/rpcrdma/rpcrdma.h"
#include "transport/xprt.h"

/* The parts of the server that are reported; borrowed. */
struct report {
	const struct options	*o;	/* of the start */
	struct rpc_server	*rpc;
	struct export_table	*exports;
	struct pool		*pool;
	struct xprt_clients	*clients;
	struct account_book	*export_accounts;
	struct account_book	*export_backends;
	struct stream		*capture, *trace;	/* NULL: no memory */
	const struct rpcrdma_budget *budget;
	uint64_t		 started;	/* CLOCK_MONOTONIC ns */
	uint64_t		 born;		/* CLOCK_REALTIME ns */
	/* The listener @i and its name; NULL: @i is behind the
	 * last. */
	struct xprt_listener	*(*listener)(void *server, unsigned i,
					     const char **name);
	/* The program @i that is served, and its row; NULL: @i is
	 * behind the last. */
	struct rpc_program	*(*program)(void *server, unsigned i,
					    const struct program_row **row);
	/* Registers the listeners with rpcbind, or unregisters them; with
	 * drain.lock. */
	void			(*announce)(void *server, bool on);
	struct drain		 drain;
	/* Reloads as SIGHUP does; the changer's thread. */
	int			(*reload)(void *server, struct outcome *o);
	struct changer		*changer;
	struct audit		*audit;
	/* The options of the last reload, or NULL; the thread of
	 * @changer. */
	struct options		**now;
	void			*server;
};

/* Asks the program that has locks for them, see struct program_row; *@totals is
 * zero before. */
static inline void report_locks(const struct report *r, unsigned max,
				lock_view_fn *fn, void *arg,
				struct lock_totals *totals)
{
	const struct program_row *row;
	struct rpc_program *prog;

	for (unsigned i = 0; (prog = r->program(r->server, i, &row)); i++)
		if (row->locks)
			row->locks(prog, max, fn, arg, totals);
}

/* The result of gannetctl's @command, which must only ask.  NULL: no result.
 * Any thread that is registered with RCU. */
json_t *report_ask(struct report *r, const char *command,
		   const char *argument);

/* Answers gannetctl(8) from @r, which is borrowed, until control_stop().  NULL:
 * it can't, and the reason was logged; a server without it serves as well. */
struct control *report_start(struct report *r);

/* ---- counters.c: logs all counters, the shares of the workers, and the calls
 * that wait for something else. */

/* @r is borrowed for the call. */
void counters_log(const struct report *r);

/* ---- lock_list.c: who holds and waits for which bytes of which file, in JSON
 * for gannetctl(8), and the end of a client's locks.  The control thread, and
 * that of the pages. */

/* For struct control_command, with a struct report. */
json_t *lock_list(void *report, const char *argument, const char **wrong);
/* @argument: "ADDRESS" or "ADDRESS NAME". */
json_t *lock_release(void *report, const char *argument, const char **wrong);

/* ---- who.c: who does what, in JSON for gannetctl(8): its commands clients,
 * latency and disconnect.  The control thread. */

/* For struct control_command, with a struct report. */
json_t *who_clients(void *report, const char *argument, const char **wrong);
json_t *who_latency(void *report, const char *argument, const char **wrong);
json_t *who_disconnect(void *report, const char *argument, const char **wrong);

/* The address as text, IPv4 in its own form; null for NULL.  Any thread. */
json_t *who_host(const struct in6_addr *host);

/* An address of a client, IPv4 as ::ffff:a.b.c.d; false: @text is not an
 * address. */
bool who_parse_host(const char *text, struct in6_addr *out);

/* ---- pages.c: what --metrics serves over HTTP. */

struct pages;

/* Serves metrics and the status page of @r, which is borrowed until
 * pages_stop(), where the option --metrics says.  NULL: nowhere, or it can't,
 * which was logged and counted; a server without it serves as well. */
struct pages *pages_start(struct report *r);
/* NULL is fine. */
void pages_stop(struct pages *p);

/* ---- json_text.c: bytes as text in JSON.  Any thread. */

/* @text, in which each byte that makes it no UTF-8 stands as \ooo.  NULL: no
 * memory. */
json_t *json_text(const char *text);
