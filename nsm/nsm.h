/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nsm - the status monitor's part of locking: program 100024 version 1 (XNFS,
 * X/Open C702, chapter 11).
 *
 * A lock ends with its holder, and with the server that granted it.  So the
 * server keeps a list of the hosts that have locks, in a file.  When it starts
 * it tells them, and they claim their locks again; when one of them starts it
 * tells the server, which drops its locks.
 *
 * We keep the list and tell the hosts in any case: the machine's rpc.statd does
 * it when the machine starts, not when this server does.  The news from hosts
 * comes to the machine's one monitor: to rpc.statd if it runs when we start,
 * which then also monitors each host of ours, and calls the lock manager back
 * (nsm_notified()); else to the program that is made here.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rpc/client.h"
#include "rpc/host.h"
#include "rpc/rpc.h"

#define NSM_PROG	100024u

struct nsm;

/* The host @name at @addr has restarted, its state is @state now.  News of a
 * host that is not on the list are passed on each time that they come, since
 * its locks can be on their way; @name is NULL if such news have no name.  Any
 * thread; must not wait. */
typedef void nsm_restarted_fn(void *ctx, const char *name,
			      const struct sockaddr *addr, uint32_t state);
/* @err is 0, or -errno: the host has no lock then. */
typedef void nsm_done_fn(void *arg, int err);

struct nsm_config {
	const char *state_dir;		/* has the list, the file "nsm" */
	struct rpc_client *client;	/* borrowed */
	/* The address to tell hosts from of which it is not known which one
	 * they call; family 0: any. */
	struct sockaddr_storage from;
	/* Look for rpc.statd at the machine's rpcbind. */
	bool	 use_statd;
	/* The most hosts, in all and with one address; 0: 4096 and 64. */
	unsigned max_hosts, max_addr_hosts;
	/* The grace period, in which attempts don't get rarer, and hosts of the
	 * last server stay on the list, told or not: if this server ends before
	 * they have claimed their locks, the next one has to tell them
	 * again. */
	uint32_t grace_ms;
	/* Time for telling hosts, and the first and the longest time between
	 * two attempts; 0: 15 minutes, 2 s, and 1 minute. */
	uint32_t tell_ms, first_ms, retry_ms;
	/* The time that a host waits for an rpc.statd that is busy, or is not
	 * there; 0: 10 s. */
	uint32_t statd_ms;
};

/*
 * Reads the list, raises the state number, and looks for rpc.statd, for two
 * seconds at most.  @config is copied.  Starts a thread.  0 or -errno: of the
 * list's file, -ENOMEM, no thread.  nsm_stop() and nsm_destroy() free *@out.
 */
int nsm_create(const struct nsm_config *config, struct nsm **out);
/* Before nsm_tell() and before the program has calls. */
void nsm_on_restart(struct nsm *n, nsm_restarted_fn *fn, void *ctx);
/* Begins to tell the hosts of the last server that this one has started.  Call
 * it when locks are served. */
void nsm_tell(struct nsm *n);
/* Ends the thread, which makes calls.  The client must still be there. */
void nsm_stop(struct nsm *n);
/* After nsm_stop(), and after the client is gone: calls back all waiters with
 * -ECANCELED, and frees @n. */
void nsm_destroy(struct nsm *n);

/* The program; it lives as long as @n. */
struct rpc_program *nsm_program(struct nsm *n);
/* True if the machine has no other monitor: rpcbind is to know the program. */
bool nsm_is_own(const struct nsm *n);

/*
 * Makes sure that the host is on the list, on the disk, and that rpc.statd has
 * it where that runs.  It is told of our restart from @who->local, by which it
 * knows this server.  @done is called once, on any thread, perhaps before this
 * returns; at once for a host that is there.  Its errors: -EINVAL (a name that
 * no host has), -EDQUOT, -ENOSPC and others of the disk, -EACCES (rpc.statd
 * refused it), errors of rpc_client_call(), -ECANCELED.  Any thread; doesn't
 * wait.
 */
void nsm_monitor(struct nsm *n, const struct rpc_host *who, nsm_done_fn *done,
		 void *arg);
/*
 * Forgets the call of nsm_monitor() with @arg, whose caller no longer wants a
 * lock.  True: it is not called back.  False: it is, or has been.  Any thread;
 * doesn't wait.
 */
bool nsm_forget(struct nsm *n, void *arg);
/* The host has no lock left.  Any thread; doesn't wait. */
void nsm_unmonitor(struct nsm *n, const struct rpc_host *who);

/*
 * rpc.statd has called the lock manager back: the host @name, as we named it to
 * statd, has restarted.  The caller has made sure that it comes from this
 * machine.  Any thread; doesn't wait.
 */
void nsm_notified(struct nsm *n, const char *name, uint32_t state);

/* Identifies this start of the server; odd. */
uint32_t nsm_state(struct nsm *n);
/* Counts the hosts that had locks when the last server ended, and the lines of
 * the list that make no sense. */
unsigned nsm_hosts_before(const struct nsm *n);
