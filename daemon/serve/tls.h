/* SPDX-License-Identifier: BSD-2-Clause */
/* tls - TLS of the server, with a certificate once the settings name one. */
#pragma once

#include "daemon/settings/settings.h"
#include "rpc/handshakes.h"
#include "rpc/rpc.h"
#include "transport/stream/stream.h"

/* Zeroed before the start. */
struct tls_part {
	struct tls_server	*server;
	struct rpc_handshakes	*handshakes;
	struct tcp_tls		 options;
	struct tcp_options	 tcp;		/* for listeners */
};

/* The most memory of connections, besides that for data. */
static inline size_t tls_part_memory(const struct options *o)
{
	return o->memory / 4;
}

/* 0, or -errno after the reason was logged; stop it after both. */
int tls_part_start(struct tls_part *t, const struct options *o,
		   struct rpc_server *rpc);
/* No listener is left; due before rpc_server_destroy(). */
void tls_part_stop(struct tls_part *t);
