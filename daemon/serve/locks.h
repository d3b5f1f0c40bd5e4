/* SPDX-License-Identifier: BSD-2-Clause */
/* locks - the programs of locking, and the parts that they share: the client
 * for calls to other hosts, and the list of hosts that have locks. */
#pragma once

#include "daemon/settings/settings.h"
#include "nsm/nsm.h"
#include "rpc/program.h"
#include "transport/xprt.h"

/* All zero: none. */
struct locks {
	struct rpc_client *client;
	struct nsm	  *nsm;
	struct xprt_listener *call_backs;	/* NULL: not needed */
	unsigned grace_s;
};

/* The state directory is ours.  0, or -errno after the reason was logged;
 * locks_stop() and locks_free() are due in any case. */
int locks_start(const struct options *o, struct locks *l);
/*
 * Listens for the call-backs of rpc.statd, which come to 127.0.0.1 over UDP,
 * also if the server is bound to another address.  @env is borrowed until
 * locks_unlisten(); the programs are at @local.
 */
void locks_listen(struct locks *l, const struct options *o,
		  const struct xprt_env *env,
		  const struct sockaddr_storage *local);
/* Waits for their end. */
void locks_unlisten(struct locks *l);
/* No call runs now: makes no calls from now on, and ends the threads. */
void locks_stop(struct locks *l);
/* The programs are gone. */
void locks_free(struct locks *l);

extern const struct program_row nsm_row, nlm_row;
