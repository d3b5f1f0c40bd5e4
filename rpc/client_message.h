/* SPDX-License-Identifier: BSD-2-Clause */
/* client_message - the bytes of our calls. */
#pragma once

#include "rpc/client.h"
#include "rpc/rpc.h"

/* The caller, as our credentials name it. */
struct client_identity {
	char	 machine[RPC_MAX_MACHINE + 1];
	uint32_t uid, gid;
};

/* This process. */
void client_identity_init(struct client_identity *id);

/* Room for all before the arguments, the record's mark included. */
#define CLIENT_HEADER_MAX	384

/* Writes a call into CLIENT_HEADER_MAX + @len bytes at @out; returns its
 * length, with the mark. */
size_t client_message_put(uint8_t *out, const struct client_identity *id,
			  const struct rpc_client_to *to, uint32_t xid,
			  const void *args, size_t len);
