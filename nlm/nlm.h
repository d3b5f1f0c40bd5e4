/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nlm - the network lock manager: program 100021, versions 1, 3 and 4 (XNFS,
 * X/Open C702), on an export table.
 *
 * Locks are advisory ranges of owners: a client's address and name, its
 * process's number and handle.  They are kept in memory, and by backends that
 * have locks themselves (struct vfs_ops), so that local processes see them.
 * They end with the server: clients reclaim them in the grace period after its
 * start.
 */
#pragma once

#include <stdio.h>

#include "exports/export.h"
#include "rpc/host.h"
#include "rpc/lock_view.h"
#include "rpc/rpc.h"

struct nsm;
struct rpc_client;

/* Grace periods for which a reclaim that can't be granted yet has no answer:
 * longer than a cluster takes to recover, and no client waits for ever. */
#define NLM_PATIENCE	4

/* The status monitor's part, that locks need.  Any thread; must not wait. */
struct nlm_monitor {
	struct nsm *nsm;
	/* Calls @done when the host will be told of our restart, and we of the
	 * host's: with 0 or -errno, once, on any thread, perhaps at once. */
	void (*monitor)(struct nsm *nsm, const struct rpc_host *host,
			void (*done)(void *arg, int err), void *arg);
	/* Forgets the call of monitor() with @arg.  True: it is not called
	 * back. */
	bool (*forget)(struct nsm *nsm, void *arg);
	/* Called with a lock that nlm_restarted() takes.  Addresses of IPv4
	 * are as ::ffff:a.b.c.d. */
	void (*unmonitor)(struct nsm *nsm, const struct rpc_host *host);
	/* The machine's rpc.statd said that @name has restarted; it comes back
	 * by nlm_restarted(). */
	void (*notified)(struct nsm *nsm, const char *name, uint32_t state);
};

struct nlm_config {
	struct export_table *exports;	/* borrowed: outlives the program */
	struct rpc_server *server;	/* borrowed: gives it workers */
	/* The share of the workers for calls that first have to ask a name
	 * service of their caller.  Borrowed; NULL: the common share. */
	struct work_class *names;
	struct rpc_client *client;	/* for call-backs; borrowed; NULL: none
					 * are made */
	struct nlm_monitor monitor;	/* a NULL function is not called */
	/* From nlm_create() on, and longer while reclaims can't be granted yet,
	 * NLM_PATIENCE times that at most; in an export that is mounted later,
	 * from its mount on. */
	unsigned grace_s;
	/* The most locks, waiters and shares of each kind, in all and of one
	 * client; 0: 65536 and 8192. */
	unsigned max_locks, max_host_locks;
	/* Of waiters; 0: 8192. */
	unsigned max_waits;
	/* Of locks and waiters of one file; 0: 32768 and 2048. */
	unsigned max_file_locks, max_file_waits;
	/* The most calls that wait for the status monitor; 0: 256.  At most a
	 * quarter of these are calls over UDP that keep their places, though
	 * others need them, for asking_ms; 0: 20 s. */
	unsigned max_asking;
	uint32_t asking_ms;
	/* Of results of lock messages on their way, and the time for each to
	 * find the host; 0: 32, and 3 s. */
	unsigned max_answering;
	uint32_t answer_ms;
	/* The first pause between two call-backs for a granted lock; then
	 * doubled, up to 30 s.  0: 1 s. */
	uint32_t call_back_ms;
	/* The time for the answer to each.  0: 10 s, and 3 s over UDP. */
	uint32_t told_ms;
	/* A host without locks is forgotten, and its monitoring ends, after so
	 * long; 0: 2 minutes. */
	uint32_t idle_ms;
};

/* Sets *@out to the program, which nlm_destroy() frees; @config is copied.
 * Starts a thread.  0; -ENOMEM; or another -errno: no thread. */
int  nlm_create(const struct nlm_config *config, struct rpc_program **out);
/* struct program_row.ending.  Any thread; doesn't wait. */
void nlm_ending(struct rpc_program *prog);
/* Drops all locks and ends the thread.  All calls have ended; shares of workers
 * and the RPC client must still exist. */
void nlm_stop(struct rpc_program *prog);
/* After nlm_stop(). */
void nlm_destroy(struct rpc_program *prog);
/* The host @name at @addr has restarted, and its status monitor is in @state
 * now: its earlier locks and waiters end, at whichever address of the server it
 * got them; 0: all end.  Its LOCKs on their way have to be repeated.  Without a
 * name no lock ends, but LOCKs of all hosts at @addr have to be repeated.  Any
 * thread; doesn't wait. */
void nlm_restarted(struct rpc_program *prog, const char *name,
		   const struct sockaddr *addr, uint32_t state);

/* struct program_row.release.  Any thread; doesn't wait. */
void nlm_release(struct rpc_program *prog, const struct in6_addr *addr,
		 const char *name, struct lock_totals *ended);

/*
 * Sets *@totals, and calls @fn for @max waits, locks and shares at most, in
 * this order.  Any thread.  Calls that lock wait meanwhile: @fn must only take
 * notes.
 */
void nlm_walk(struct rpc_program *prog, unsigned max, lock_view_fn *fn,
	      void *arg, struct lock_totals *totals);
/* Writes a line for each of them, 200 at most. */
void nlm_list(struct rpc_program *prog, FILE *out);
