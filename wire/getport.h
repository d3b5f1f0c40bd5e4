/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * getport - the question for a program's port (RFC 1833), and its answer.
 * Pure.
 *
 * IPv4: GETPORT of version 2, which every port mapper has; IPv6: GETADDR of
 * version 4.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "lib/xdr.h"

#define RPCBIND_PROGRAM	100000u
#define RPCBIND_PORT	111

enum { PMAPPROC_GETPORT = 3, RPCBPROC_GETADDR = 3 };

struct getport {
	sa_family_t family;
	int	 proto;			/* IPPROTO_UDP or IPPROTO_TCP */
	uint32_t prog, vers;
};

/* The version of program 100000 to ask. */
static inline uint32_t getport_version(const struct getport *g)
{
	return g->family == AF_INET6 ? 4 : 2;
}

void getport_put(struct xdr_out *x, const struct getport *g);
/* False: malformed.  *@port is 0 if the program is not registered. */
bool getport_get(struct xdr_in *x, const struct getport *g, uint16_t *port);

/* The port of a universal address (RFC 5665 section 5.2.3.3), which ends with
 * its two bytes.  False: it has none. */
bool getport_uaddr(const char *text, uint32_t len, uint16_t *port);
