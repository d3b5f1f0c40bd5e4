/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client_ports - ports of programs as rpcbinds told them, a bounded number and
 * for a bounded time.  Pure.
 *
 * One thread at a time.  Times are ns of CLOCK_MONOTONIC.
 */
#pragma once

#include <netinet/in.h>

#include "rpc/client.h"

#define CLIENT_PORTS	64
#define CLIENT_PORTS_MS	30000

/* All zero: empty. */
struct client_ports {
	struct client_port {
		struct in6_addr	host;
		uint32_t	scope;
		int		proto;
		uint32_t	prog, vers;
		uint16_t	port;		/* 0: unused */
		uint64_t	since;
	} list[CLIENT_PORTS];
};

/* The port of @to's program at its host, or 0. */
uint16_t client_ports_find(const struct client_ports *p,
			   const struct rpc_client_to *to, uint64_t now);
/* The oldest one goes if the list is full. */
void client_ports_add(struct client_ports *p, const struct rpc_client_to *to,
		      uint16_t port, uint64_t now);
void client_ports_drop(struct client_ports *p, const struct rpc_client_to *to);
