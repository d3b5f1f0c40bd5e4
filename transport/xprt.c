/* SPDX-License-Identifier: BSD-2-Clause */
/* xprt - the common part of all transports. */
#include "transport/xprt.h"

#include <stdio.h>
#include <string.h>

/* No hash: neighbours get separate flows. */
static uint8_t flow_of(const struct sockaddr *peer)
{
	struct in6_addr host = xprt_addr_host(peer);
	uint32_t sum = 0;

	for (unsigned i = 0; i < sizeof(host.s6_addr); i++)
		sum = sum * 31 + host.s6_addr[i];
	return (uint8_t)(1 + sum % (POOL_FLOWS - 1));
}

void xprt_init(struct xprt *x, const struct xprt_ops *ops,
	       struct xprt_sink *sink, struct loop *loop, struct pool *pool,
	       const struct sockaddr *peer, const struct sockaddr *local)
{
	char addr[XPRT_ADDR_TEXT];

	memset(x, 0, sizeof(*x));
	x->ops = ops;
	x->via = ops->name;
	ref_init(&x->ref);
	x->sink = sink;
	x->loop = loop;
	x->pool = pool;
	x->flow = flow_of(peer);
	xprt_addr_copy(&x->peer, peer);
	xprt_addr_copy(&x->local, local);
	snprintf(x->name, sizeof(x->name), "%s %s", ops->name,
		 xprt_addr_text(peer, addr, sizeof(addr)));
}

void msg_add_cut(struct msg *m, uint32_t len)
{
	/* Never written to, so it takes no memory. */
	static uint8_t zeros[MSG_MAX_TAKEN - MSG_MAX_LEN + 4];

	assert(len <= sizeof(zeros) && m->ncall < MSG_MAX_SEGS);
	m->call[m->ncall++] = (struct xdr_seg){ zeros, len };
	m->call_len += len;
}
