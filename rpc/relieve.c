/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * relieve - frees the resources of calls that wait behind hung ones.
 *
 * An export has separate workers, so its disk stops no other export.  But all
 * exports share the memory for data, the calls that a connection may have in
 * progress, and the places of datagrams, and a call holds these while it waits
 * for a worker.  So if the calls of a client hang, the calls behind them are
 * sent back to the client: calls that hold memory, for themselves or for their
 * replies, while other clients wait for it; calls of a connection that has no
 * room for another call; and datagrams always, since their clients send them
 * again anyway.  A datagram that undoes another call, as UNLOCK does, goes only
 * where a call of a connection would: its client might not live to send it
 * again.  Calls that hang with a worker keep their resources: the number of
 * workers bounds these.
 */
#include "rpc/rpc.h"

#include "lib/thread.h"
#include "rpc/call.h"

STAT(rpc_sent_back, "calls sent back (JUKEBOX over NFS) because calls before "
     "them hung and other clients needed their memory");

static struct rpc_slot *waiting_slot(struct work_item *item)
{
	return container_of(item, struct rpc_slot, priv.work);
}

static bool holds_shared(struct work_item *item, void *arg)
{
	const struct rpc_slot *slot = waiting_slot(item);
	const bool *is_short = arg;

	/* A job lies in another's memory.  The operation of a resumed call is
	 * done, and its client must hear of that. */
	return !item->is_job && slot->priv.wait != RPC_WAIT_OVER &&
	       rpc_call_obstructs(slot, *is_short);
}

static void send_back(struct rpc_slot *slot)
{
	stat_inc(rpc_sent_back);
	rpc_call_send_back(slot, !slot->call.msg->xprt->datagram);
}

void rpc_server_relieve(struct rpc_server *server)
{
	bool is_short = pool_is_short(server->pool);
	bool before = thread_must_not_wait;
	struct work_item *item, *next;

	item = work_pool_take_hung(server->work, holds_shared, &is_short);
	/* A call can drop the last reference to a file whose close would also
	 * hang: the backend leaves that to a separate thread. */
	thread_must_not_wait = true;
	for (; item; item = next) {
		next = item->next;
		send_back(waiting_slot(item));
	}
	rpc_suspended_relieve(server, is_short);
	thread_must_not_wait = before;
}
