/* SPDX-License-Identifier: BSD-2-Clause */
/* tls_rig - the harness with TLS, and one call of NFS to ask it. */
#pragma once

#include "tests/server/harness.h"
#include "tests/server/tls_client.h"

/* One test's. */
struct tls_rig {
	struct tls_pki pki;
	struct harness srv;
	struct nfs3_fh top;		/* of /mem, until another is set */
};

extern struct tls_rig rig;

/* Makes keys; starts nothing. */
void tls_rig_setup(void);
/* The server was started. */
void tls_rig_teardown(void);
/* Exports /mem, /tls, /mtls and /any (xprtsec=none:tls).  @limits can be NULL,
 * and a handshake has a minute unless they say otherwise; @trusts: the server
 * has a trust store. */
void tls_rig_start(const struct tcp_tls *limits, bool trusts);

/* GETATTR of rig.top. */
void tls_rig_post(struct tls_client *c);
/* Waits for a reply.  The status; -errno of a call that was not run. */
int tls_rig_status(struct tls_client *c);
int tls_rig_ask(struct tls_client *c);

/* Begins TLS between @c and a connection without a poller, whose socket takes
 * little, and has taken @clear bytes.  Returns that one, and its socket in
 * *@fd. */
struct tls_conn *tls_rig_pair(struct tls_client *c, int *fd, uint64_t clear);
