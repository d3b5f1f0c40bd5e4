/* SPDX-License-Identifier: BSD-2-Clause */
/* client_ports - ports of programs as rpcbinds told them.  Pure. */
#include "rpc/client_ports.h"

#include "lib/loop.h"
#include "lib/util.h"
#include "transport/addr.h"

static uint32_t scope_of(const struct rpc_client_to *to)
{
	return to->addr.ss_family == AF_INET6 ?
	       ((const struct sockaddr_in6 *)&to->addr)->sin6_scope_id : 0;
}

static bool same(const struct client_port *p, const struct rpc_client_to *to)
{
	struct in6_addr host =
		xprt_addr_host((const struct sockaddr *)&to->addr);

	return p->port && p->proto == to->proto && p->prog == to->prog &&
	       p->vers == to->vers && p->scope == scope_of(to) &&
	       memcmp(&p->host, &host, sizeof(host)) == 0;
}

uint16_t client_ports_find(const struct client_ports *p,
			   const struct rpc_client_to *to, uint64_t now)
{
	for (unsigned i = 0; i < CLIENT_PORTS; i++)
		if (same(&p->list[i], to))
			return loop_passed(now, p->list[i].since,
					   CLIENT_PORTS_MS) ?
			       0 : p->list[i].port;
	return 0;
}

void client_ports_drop(struct client_ports *p, const struct rpc_client_to *to)
{
	for (unsigned i = 0; i < CLIENT_PORTS; i++)
		if (same(&p->list[i], to))
			p->list[i] = (struct client_port){ 0 };
}

void client_ports_add(struct client_ports *p, const struct rpc_client_to *to,
		      uint16_t port, uint64_t now)
{
	struct client_port *at = &p->list[0];

	client_ports_drop(p, to);
	for (unsigned i = 1; i < CLIENT_PORTS; i++)
		if (p->list[i].since < at->since)
			at = &p->list[i];
	*at = (struct client_port){
		.host = xprt_addr_host((const struct sockaddr *)&to->addr),
		.scope = scope_of(to), .proto = to->proto, .prog = to->prog,
		.vers = to->vers, .port = port, .since = now,
	};
}
