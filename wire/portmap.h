/* SPDX-License-Identifier: BSD-2-Clause */
/* portmap - the port mapper's arguments and results (RFC 1833), in both
 * directions.  Pure. */
#pragma once

#include "lib/xdr.h"

#define RPCBIND_UADDR_MAX	64

enum {
	PMAP_NULL = 0, PMAP_SET = 1, PMAP_UNSET = 2, PMAP_GETPORT = 3,
	PMAP_DUMP = 4,
	RPCB_GETADDR = 3, RPCB_DUMP = 4, RPCB_GETTIME = 6,
	RPCB_GETVERSADDR = 9, RPCB_GETADDRLIST = 11,
};

/* struct pmap and struct rpcb.  Views lie in the message. */
struct portmap_args {
	uint32_t	prog, vers;
	uint32_t	proto, port;	/* version 2 */
	struct xdr_view	netid;		/* versions 3 and 4 */
	struct xdr_view	addr, owner;
};

bool portmap_get_pmap(struct xdr_in *x, void *args);
bool portmap_get_rpcb(struct xdr_in *x, void *args);
void portmap_put_pmap(struct xdr_out *x, const struct portmap_args *a);
void portmap_put_rpcb(struct xdr_out *x, const struct portmap_args *a);

struct portmap_res {
	uint32_t	word;		/* a port, a time, FALSE */
	char		uaddr[RPCBIND_UADDR_MAX];
};

void portmap_put_word(struct xdr_out *x, const void *res);
void portmap_put_uaddr(struct xdr_out *x, const void *res);
