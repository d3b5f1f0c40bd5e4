/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * limit - calls over the limits of an export wait, without a thread.
 *
 * An export that has limits has one of these: token buckets (lib/bucket.h) of
 * operations and bytes, for all of its clients together and for each, and a
 * queue of waiting calls for each client.  A client is an address.
 */
#pragma once

#include "lib/bucket.h"
#include "rpc/rpc.h"

struct rpc_limit;

/* Counted: put it, before rpc_server_destroy().  NULL: no memory. */
struct rpc_limit *rpc_limit_create(struct rpc_server *server);
void rpc_limit_put(struct rpc_limit *l);

/*
 * For a step that no call passes above its limits: the limits of @all clients
 * of @l together, and of @each client.  @bytes is the most that the call moves;
 * the part that it does not move (see call->bytes) is returned at its end.
 *
 * 0: the call goes on.  RPC_PENDING, for the step to return: it waits, and the
 * step runs again.  -ETIMEDOUT: too many calls of this client wait.
 */
int rpc_call_limit(struct rpc_call *call, struct rpc_limit *l,
		   const struct rates *all, const struct rates *each,
		   uint64_t bytes);
/* True if the call has passed rpc_call_limit(). */
bool rpc_call_has_passed(const struct rpc_call *call);

/* The limits might have changed: each waiting call runs its step again.  Any
 * thread, after the last call has begun with the old limits. */
void rpc_limits_changed(struct rpc_server *server);
/* With @off no call waits, and waiting calls continue.  Any thread. */
void rpc_limits_off(struct rpc_server *server, bool off);
/* Any thread: true between the two. */
bool rpc_limits_are_off(struct rpc_server *server);
/* The waiting calls of @host go on, since its connections end.  Any thread. */
void rpc_limits_let_go(struct rpc_server *server, const struct in6_addr *host);
