/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap - shows calls and replies, whole, to one who looks on.
 *
 * A message is shown as the RPC layer has it: chunks are in their places, so it
 * is the same over every transport.  Without a tap a call costs one comparison.
 */
#ifndef GANNET_RPC_TAP_H
#define GANNET_RPC_TAP_H

#include "rpc/header.h"
#include "rpc/rpc.h"

/*
 * Both functions run on the thread that has the call, in an RCU section: they
 * must not wait, nor keep a pointer of what they are shown.
 */
struct rpc_tap {
	/*
	 * A call arrived: @m->call.  @h is NULL if there is no header of a call
	 * that can be read; else @args stands before the arguments, as they
	 * came.  True: the tap wants the reply, too.
	 */
	bool (*call)(struct rpc_tap *tap, const struct msg *m,
		     const struct rpc_header *h, const struct xdr_in *args);
	/* The reply of such a call goes to the transport: @m's head, body and
	 * tail.  A body in a pipe can't be read. */
	void (*reply)(struct rpc_tap *tap, const struct msg *m);
	uint32_t number;	/* rpc_server_tap()'s: of this use */
};

/*
 * Makes @tap, which is borrowed, the server's only one; NULL: there is none
 * from now on, and none runs any more when it returns.  One thread at a time,
 * registered with RCU, not in a section of it.  Waits.
 */
void rpc_server_tap(struct rpc_server *server, struct rpc_tap *tap);

#endif
