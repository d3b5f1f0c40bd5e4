/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * announce - registers our listeners with rpcbind, and unregisters them.
 *
 * One thread.  Blocks for seconds at most when rpcbind does not answer.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "rpc/program.h"
#include "rpc/rpcbind.h"

struct announcement {
	uint32_t		prog, vers;
	const char		*netid;
	struct sockaddr_storage	addr;
	/* The address of another server that had this place, and gets it
	 * back; "": none had it. */
	char			replaced[RPCBIND_UADDR_MAX];
};

struct announcements {
	/* The program that gets the mappings in rpcbind's place, and its row;
	 * NULL: rpcbind gets them.  Borrowed. */
	struct rpc_program	*mapper;
	const struct program_row *row;
	struct announcement    *list;	/* registered with rpcbind */
	unsigned		n;
};

/*
 * Tells rpcbind, or a->mapper, that all versions of @prog are served at @local,
 * a listener of the transport @over (RPC_OVER_...), and remembers it in @a.
 * Logs the mappings that are refused, and other servers' that stay or are
 * replaced.  0; with rpcbind also
 * -ECONNREFUSED: none runs; another -errno: it does not answer.
 */
int announce(struct announcements *a, const struct rpc_program *prog,
	     unsigned over, const struct sockaddr_storage *local);

/* Unregisters everything in @a, and registers the replaced mappings again. */
void announce_withdraw(struct announcements *a);
