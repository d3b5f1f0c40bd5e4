/* SPDX-License-Identifier: BSD-2-Clause */
/* serve - the parts of the server between the options and the sockets. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "exports/export.h"
#include "lib/loop.h"
#include "lib/thread.h"
#include "rpc/program.h"
#include "rpc/rpc.h"

/* ---- listen_hint.c: tells an administrator why a port can't be had. */

/* The likely cause of @err, -errno of a listener at @port, in brackets behind
 * a space; "" if none is known.  Any thread; looks for the kernel's NFS server.
 */
const char *listen_hint(int err, unsigned port);

/* True if @err, -errno of a listener, is the kernel's NFS server that has
 * @port: waiting does not help.  Any thread. */
bool listen_kernel_has_port(int err, unsigned port);

/* ---- notify.c: the state of the daemon for the service manager, sd_notify(3).
 * Does nothing without such a manager, or if libsystemd was missing when this
 * was built.  Any thread. */

enum notify_state { NOTIFY_READY, NOTIFY_RELOADING, NOTIFY_STOPPING,
		    NOTIFY_ALIVE, NOTIFY_DRAINING, NOTIFY_SERVING };

void notify(enum notify_state state);

/* The ns between two NOTIFY_ALIVE that the manager's watchdog is content with;
 * UINT64_MAX: the manager has no watchdog. */
uint64_t notify_alive_ns(void);

/* ---- pollers.c: the threads that own connections (doc/threads.md). */

/* All zero: none. */
struct pollers {
	struct loop	**loops;
	unsigned	 n;
};

/* @n of them.  @spin_us: see loop_spin(); @changes_cred: see
 * thread_changes_cred.  0 or -errno, and pollers_stop() is due in any case. */
int pollers_start(struct pollers *p, const char *name, unsigned n,
		  unsigned spin_us, bool changes_cred);
void pollers_stop(struct pollers *p);

/* ---- process.c: the resources that this process uses.  Any thread. */

struct process_usage {
	uint64_t cpu_ns;
	uint64_t resident;	/* bytes */
	uint64_t virtual;	/* bytes */
	uint64_t fds;		/* open, and the limit */
	uint64_t max_fds;
	uint64_t threads;
};

/* Asks the kernel; unknown numbers are 0. */
void process_look(struct process_usage *out);

/* ---- programs.c: the RPC programs that gannetd serves, a row each. */

#define PROGRAMS_MAX	16

/* NULL after the last. */
extern const struct program_row *const program_rows[PROGRAMS_MAX];

/* ---- state.c: the directory of files that outlive a server's process. */

/*
 * Makes @dir and the directories above it, and locks it until *@lock is closed.
 * 0; -EBUSY: another server has locked it; or -errno.
 */
int state_dir_open(const char *dir, int *lock);

/* ---- shares.c: the workers that the calls of each export can occupy, the
 * queues of calls over its limits, and the accounts of its calls and of its
 * backend's operations. */

struct shares {
	struct rpc_server   *rpc;	/* borrowed; set before the first */
	unsigned	     threads;	/* the most workers of a share */
	struct account_book *accounts;	/* by the exports' ids; owned */
	struct account_book *backends;	/* the same */
	pthread_mutex_t	     lock;	/* guards the lists */
	struct cds_list_head list;
	struct cds_list_head limits;
};

/* 0 or -ENOMEM; shares_fini() also then. */
int  shares_init(struct shares *s, unsigned threads);
/* Frees all shares.  No call runs now; the RPC server is still there. */
void shares_clear(struct shares *s);
/* The exports are gone. */
void shares_fini(struct shares *s);
/* Frees the shares of exports that are gone. */
void shares_tidy(struct shares *s);

/* For struct export_config, with a struct shares: a new export gets its share
 * before anyone can find it, or uses the common one. */
void share_give(void *shares, struct export_tree *e);
void share_return(void *shares, struct export_tree *e);
