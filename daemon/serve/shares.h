/* SPDX-License-Identifier: BSD-2-Clause */
/* shares - the workers that the calls of each export may occupy, the queues of
 * those over its limits, and the accounts of its calls and of its backend's
 * operations. */
#ifndef GANNET_DAEMON_SHARES_H
#define GANNET_DAEMON_SHARES_H

#include "exports/export.h"
#include "lib/thread.h"
#include "rpc/rpc.h"

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
/* Frees all shares.  No call runs any more; the RPC server is still there. */
void shares_clear(struct shares *s);
/* The exports are gone. */
void shares_fini(struct shares *s);
/* Frees the shares of exports that are gone. */
void shares_tidy(struct shares *s);

/* For struct export_config, with a struct shares: a new export gets its share
 * before anyone can find it, or uses the common one. */
void share_give(void *shares, struct export_tree *e);
void share_return(void *shares, struct export_tree *e);

#endif
