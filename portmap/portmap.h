/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * portmap - tells clients our programs' ports: program 100000, versions 2, 3
 * and 4 (RFC 1833), for machines without an rpcbind.
 *
 * It knows the programs of this process, and no others can be registered: SET
 * and UNSET answer FALSE.  It calls no program on behalf of clients (CALLIT,
 * BCAST and INDIRECT are unavailable), and lists are for TCP only: long answers
 * must not go to a forged address.
 */
#pragma once

#include "rpc/program.h"
#include "rpc/rpc.h"

#define PORTMAP_MAX	128		/* mappings */

/* An empty one, freed by portmap_destroy().  NULL: no memory. */
struct rpc_program *portmap_create(void);
/* All its calls have ended. */
void portmap_destroy(struct rpc_program *prog);

/*
 * Says in the port mapper @prog that version @vers of program @number is served
 * at @addr over @netid (RFC 5665 section 5.2.3), which is copied; for a
 * wildcard the answer is the address that the query came to.  0; -ENOSPC:
 * PORTMAP_MAX are there, or @netid is too long.  Calls can come meanwhile, but
 * one thread adds.
 */
int portmap_add(struct rpc_program *prog, uint32_t number, uint32_t vers,
		const char *netid, const struct sockaddr *addr);
/* Forgets all mappings; add none later. */
void portmap_clear(struct rpc_program *prog);

extern const struct program_row portmap_row;
