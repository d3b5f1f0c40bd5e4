/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * handshakes - the workers that compute TLS handshakes, before the first call.
 *
 * They are a separate share: handshakes wait for handshakes only.  In it
 * clients take turns, as calls do (rpc/work.h).
 */
#pragma once

#include "rpc/rpc.h"
#include "transport/stream/stream.h"

struct rpc_handshakes;

/* Of at most @max workers.  NULL: no memory. */
struct rpc_handshakes *rpc_handshakes_create(struct rpc_server *server,
					     unsigned max);
/* No listener is left.  Due before rpc_server_destroy(); NULL is ignored. */
void rpc_handshakes_destroy(struct rpc_handshakes *hs);
/* tcp_tls.submit: @arg is the handshakes. */
int rpc_handshakes_submit(void *arg, struct tcp_job *job);
