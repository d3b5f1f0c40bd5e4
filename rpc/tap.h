/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tap - observes whole calls and replies, and how a call spent its time.
 *
 * A message is shown as the RPC layer has it: chunks are in their places, so it
 * is the same over every transport.  Without a tap a call costs a comparison
 * when it comes, one each time that it begins to run, and one for its reply;
 * each part is timed for calls that a tap took only.
 */
#pragma once

#include <netinet/in.h>

#include "rpc/rpc.h"
#include "wire/header.h"

/* Each has room for one tap. */
enum rpc_tap_place { RPC_TAP_CAPTURE, RPC_TAP_TRACE, RPC_TAPS };

/* The parts of a call's time: none overlaps another, and their sum is not more
 * than the whole. */
enum rpc_part {
	RPC_PART_DECODE,	/* until its first step begins; of a duplicate,
				 * with its wait for the call it repeats */
	RPC_PART_WORKER,	/* it waited for a worker */
	RPC_PART_WAIT,		/* it waited for something else: why */
	RPC_PART_BACKEND,	/* operations on files; NFS's only */
	RPC_PART_SEND,		/* the transport took the reply */
	RPC_PARTS,
};

/* A call that is over. */
struct rpc_end {
	const struct rpc_program *prog;	/* NULL: not served */
	const struct rpc_proc	 *proc;	/* NULL: not served */
	/* A literal: of its results, or why it has none. */
	const char		 *status;
	const struct account	 *by_export;	/* NULL: none */
	struct in6_addr		  host;	/* IPv4 as ::ffff:a.b.c.d */
	uint16_t		  port;
	const char		 *via;	/* a literal, as that of struct xprt */
	uint32_t		  xid;
	uint32_t		  call_len, reply_len;	/* bytes */
	uint64_t		  ns;	/* all of its time */
	uint64_t		  part[RPC_PARTS];	/* ns */
	const char		 *why;	/* a literal: its last wait, not for a
					 * worker; or NULL */
};

/*
 * The functions run on the thread that has the call, in an RCU section: they
 * must not block, nor keep a pointer to their arguments.  reply and end can be
 * NULL.
 */
struct rpc_tap {
	/*
	 * A call arrived: @m->call.  @h is NULL if the call has no readable
	 * header; else @args stands before the arguments, as they came.  True:
	 * the tap also wants the reply and the end.
	 */
	bool (*call)(struct rpc_tap *tap, const struct msg *m,
		     const struct rpc_header *h, const struct xdr_in *args);
	/* The reply of such a call goes to the transport: @m's head, body and
	 * tail.  A body in a pipe can't be read. */
	void (*reply)(struct rpc_tap *tap, const struct msg *m);
	/* The transport has the reply; or the call has none. */
	void (*end)(struct rpc_tap *tap, const struct rpc_end *e);
	uint32_t number;	/* rpc_server_tap()'s: of this use */
};

/*
 * Makes @tap, which is borrowed, the only one of its place; NULL: removes the
 * tap, and waits until it has stopped running.  One thread at a time for a
 * place, registered with RCU, not in a section of it.  Waits.
 */
void rpc_server_tap(struct rpc_server *server, enum rpc_tap_place place,
		    struct rpc_tap *tap);
