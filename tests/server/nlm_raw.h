/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nlm_raw - LOCKs that are sent without a wait for their answers, over one
 * connection; an addition to the client of nlm_client.
 *
 * A host is called "new0", "new1" and so on.  A LOCK's byte, its process and
 * its call have the same number.
 */
#pragma once

#include "tests/server/nlm_client.h"

struct nlmr {
	int fd;				/* the connection; the test closes it */
	nfs_fh3 file;
	bool blocks;			/* LOCKs wait */
	uint32_t uid;			/* calls are this user's: root's */
};
extern struct nlmr nlmr;

/* nlmc_start(), a file and the connection. */
void nlmr_start(const struct harness_config *config);
/* Each sends a call.  LOCK is in the host's state 1. */
void nlmr_lock(uint32_t host, uint32_t number);
void nlmr_reclaim(uint32_t host, uint32_t number);
/* Its call's number is @number + 100. */
void nlmr_unlock(uint32_t host, uint32_t number);
/* SHARE that denies others to read; its call's number is @host. */
void nlmr_share(uint32_t host);
/* The status in the reply to the call @xid, one of the next @n. */
#define NLMR_ANY	(~0u)
uint32_t nlmr_status_of(uint32_t xid, unsigned n);
/* The status in the next reply. */
uint32_t nlmr_status(void);
