/* SPDX-License-Identifier: BSD-2-Clause */
/* listener - who listens at a port of this machine. */
#ifndef GANNET_RPC_LISTENER_H
#define GANNET_RPC_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * True if somebody listens at @port of this network name space, over @proto
 * (IPPROTO_TCP or IPPROTO_UDP), and @trusts each user that does.  Else *@wrong
 * is a user that it does not trust, or (uid_t)-1: nobody listens, or the kernel
 * does not tell.  Any thread; asks the kernel only.
 */
bool rpc_listener_check(int proto, uint16_t port, bool (*trusts)(uid_t uid),
			uid_t *wrong);

#endif
