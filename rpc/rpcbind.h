/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpcbind - registers our programs with this machine's rpcbind (RFC 1833).
 *
 * Netids are "tcp", "tcp6", "udp", "udp6" and, for RPC-over-RDMA, "rdma" and
 * "rdma6" (RFC 8166 section 9; RFC 5665).
 *
 * Every function blocks, for RPCBIND_TIMEOUT seconds a step at most: call them
 * at start and end only.  SIGPIPE has to be ignored or blocked.
 */
#ifndef GANNET_RPC_RPCBIND_H
#define GANNET_RPC_RPCBIND_H

#include <stdint.h>
#include <sys/socket.h>

#define RPCBIND_TIMEOUT	2

struct rpcbind;		/* a connection; one thread at a time */

/*
 * Connects to @at, or to the rpcbind of this machine when it is NULL: by its
 * socket, which tells it who we are, else by loopback.  -ECONNREFUSED: none
 * runs.
 */
int rpcbind_open(const struct sockaddr *at, socklen_t len,
		 struct rpcbind **out);
void rpcbind_close(struct rpcbind *rb);

/*
 * Says that @vers of @prog is served on @netid at @addr.  A mapping that was
 * there before (of a server that was killed) is replaced.  0; -EACCES:
 * rpcbind does not let us; or another -errno, after which the connection is
 * of no more use.
 */
int rpcbind_set(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		const char *netid, const struct sockaddr *addr);

/*
 * Removes that mapping. -ENOENT: another server has replaced it, and it stays.
 */
int rpcbind_unset(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		  const char *netid, const struct sockaddr *addr);

/* "192.0.2.7.8.1": an address as RFC 5665 section 5.2.3.3 writes it.
 * Returns @out. */
#define RPCBIND_UADDR_MAX	64
char *rpcbind_uaddr(const struct sockaddr *addr, char *out);

#endif
