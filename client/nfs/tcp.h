/* SPDX-License-Identifier: BSD-2-Clause */
/* tcp - connections of libnfs, for NFS and for MOUNT. */
#ifndef GANNET_CLIENT_NFS_TCP_H
#define GANNET_CLIENT_NFS_TCP_H

#include "client/nfs/nfs.h"

struct rpc_context;

/*
 * Connects to a program of @host, as the configuration's user.  Port 0 asks
 * the host's rpcbind.  0 or -errno.
 */
int nfsc_rpc_connect(const char *host, uint16_t port, int program, int version,
		    const struct nfsc_config *c, struct rpc_context **out);
/* Waits for something to happen and lets it; negative: the connection ended,
 * or nothing came for so long. */
int nfsc_rpc_service(struct rpc_context *rpc, int timeout_ms);

#endif
