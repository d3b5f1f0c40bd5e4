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
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "wire/portmap.h"

#define RPCBIND_TIMEOUT	2

struct rpcbind;		/* a connection; one thread at a time */

/*
 * Connects to @at, or to the rpcbind of this machine when it is NULL: by its
 * socket, which tells it our user, else by loopback.  -ECONNREFUSED: none runs.
 */
int rpcbind_open(const struct sockaddr *at, socklen_t len,
		 struct rpcbind **out);
void rpcbind_close(struct rpcbind *rb);

/* A mapping that another server has, or had. */
struct rpcbind_other {
	char	 addr[RPCBIND_UADDR_MAX];
	char	 owner[32];	/* rpcbind's word: "superuser", "unknown" or a
				 * user's id */
	bool	 trusted;	/* root or our user has registered it, and no
				 * other user listens there */
};

/* The result of rpcbind_set(). */
#define RPCBIND_REPLACED	1

/*
 * Registers that @vers of @prog is served on @netid at @addr.  A mapping of
 * another server stays if that is trusted and listens: it is at work.
 * Otherwise it is replaced: its server was killed, or another user of the
 * machine has taken the program's number, or the port of that server.
 *
 * 0; RPCBIND_REPLACED or -EEXIST: rpcbind_other() returns the mapping that was
 * replaced or stays; -EACCES: rpcbind refuses; or another -errno, after which
 * the connection is unusable.
 */
int rpcbind_set(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		const char *netid, const struct sockaddr *addr);
/* Borrowed until the next call. */
const struct rpcbind_other *rpcbind_other(const struct rpcbind *rb);

/* Registers the mapping that rpcbind_set() replaced, at @uaddr, again.  0,
 * -EACCES (also where another user has the address by now) or another
 * -errno. */
int rpcbind_restore(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		    const char *netid, const char *uaddr);

/*
 * Removes that mapping. -ENOENT: another server has replaced it, and it stays.
 */
int rpcbind_unset(struct rpcbind *rb, uint32_t prog, uint32_t vers,
		  const char *netid, const struct sockaddr *addr);

/* "192.0.2.7.8.1": an address as RFC 5665 section 5.2.3.3 writes it.
 * Returns @out. */
char *rpcbind_uaddr(const struct sockaddr *addr, char *out);

enum rpcbind_use {
	RPCBIND_FREE,
	RPCBIND_USED,			/* or that can't be learned (RDMA) */
	RPCBIND_FOREIGN,		/* by a user other than root and ours,
					 * or a socket that does not listen */
};

/*
 * Whether a socket of this machine has the address @uaddr of @netid: a server
 * that is at work keeps its mapping.  Asks the kernel, by taking the address
 * for a moment; makes no call.
 */
enum rpcbind_use rpcbind_use_of(const char *netid, const char *uaddr);
