/* SPDX-License-Identifier: BSD-2-Clause */
/* tls - TLS of a client's TCP connections (RFC 9289). */
#pragma once

#include "tools/nfs/nfs.h"
#include "transport/tls/tls.h"

/*
 * For config.tls: servers have to be proven by a CA in the file @ca, or by one
 * of the system's; the file @cert, with its key in @key, proves this client.
 * Each can be NULL, the latter two both.  0, or -errno with the reason in *@why
 * (malloced, perhaps NULL).  Waits for the disk.
 */
int nfsc_tls_create(const struct tls_files *files, struct nfsc_tls **out,
		    char **why);
/* No connection is left.  NULL is ignored. */
void nfsc_tls_destroy(struct nfsc_tls *t);
/* As config.tls->secure(), but -EOPNOTSUPP if the server offers no TLS; sets
 * *@peer to what it showed, also if that is not enough. */
int nfsc_tls_look(const struct nfsc_tls *t, struct nfsc_wire *w,
		  const struct rpc_procedure *null, const char *host,
		  struct tls_peer *peer);
