/* SPDX-License-Identifier: BSD-2-Clause */
/* listener - who listens at a port of this machine. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

enum rpc_listener {
	RPC_LISTENER_NONE,
	RPC_LISTENER_TRUSTED,
	RPC_LISTENER_WRONG,
	RPC_LISTENER_UNKNOWN,		/* the kernel does not tell */
};

/*
 * Tells who listens at the port of @at, in this network name space, over @proto
 * (IPPROTO_TCP or IPPROTO_UDP): users that @trusts, or a wrong one, *@wrong.  A
 * socket of IPv6 counts for an IPv4 address if no socket of IPv4 has the port:
 * it can take both.  A datagram socket counts also while it has a peer, since
 * it can leave that at any time.  Any thread; asks the kernel only.
 */
enum rpc_listener rpc_listener_check(int proto,
				     const struct sockaddr_storage *at,
				     bool (*trusts)(uid_t uid), uid_t *wrong);
