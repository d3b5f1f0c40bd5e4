/* SPDX-License-Identifier: BSD-2-Clause */
/* tap - see tap.h. */
#include "rpc/tap.h"

#include "lib/rcu.h"
#include "rpc/call.h"

void rpc_server_tap(struct rpc_server *server, struct rpc_tap *tap)
{
	if (tap) {
		/* 0 stands for no tap.  A call that an earlier tap has seen is
		 * none of this one's. */
		if (++server->taps == 0)
			server->taps++;
		tap->number = server->taps;
	}
	/* Pairs with the load of borrow_tap(). */
	atomic_store_explicit(&server->tap, tap, memory_order_release);
	if (!tap)
		rcu_wait();
}

/* In the caller's RCU section. */
static struct rpc_tap *borrow_tap(struct rpc_server *server)
{
	return atomic_load_explicit(&server->tap, memory_order_acquire);
}

void rpc_tap_call(struct rpc_slot *slot, const struct rpc_header *h,
		  const struct xdr_in *args)
{
	struct rpc_tap *tap;

	rcu_enter();
	tap = borrow_tap(slot->call.server);
	if (tap && tap->call(tap, slot->call.msg, h, args))
		slot->priv.tapped = tap->number;
	rcu_exit();
}

void rpc_tap_reply(struct rpc_slot *slot)
{
	struct rpc_tap *tap;

	rcu_enter();
	tap = borrow_tap(slot->call.server);
	if (tap && tap->number == slot->priv.tapped)
		tap->reply(tap, slot->call.msg);
	rcu_exit();
}
