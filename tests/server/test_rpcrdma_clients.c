/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA connections in the table of clients. */
#include "transport/clients.h"

#include <string.h>

#include "tests/server/rdma_peer.h"
#include "tests/unit/runner.h"

static struct rig rig;
static struct xprt_clients *table;
static struct xprt_client_view client;	/* the last walk's, but others */
static struct in6_addr host;
static unsigned nclients;

static void setup(void)
{
	struct rig_options o = { .rdma.inline_size = 8192 };

	table = xprt_clients_create(0, 0);
	ck_assert_ptr_nonnull(table);
	o.clients = table;
	rig_open(&rig, &o);
}

static void teardown(void)
{
	rig_close(&rig);
	xprt_clients_destroy(table);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static void see(const struct xprt_client_view *v, void *arg)
{
	if (!v->host)
		return;
	client = *v;
	host = *v->host;
	nclients++;
}

static void walk(void)
{
	nclients = 0;
	memset(&client, 0, sizeof(client));
	xprt_clients_walk(table, see, NULL);
}

static void enter(struct peer *p)
{
	peer_open(p, &rig, NULL);
	peer_wait_up(p);
}

TEST(a_connection_tells_its_provider_credits_and_inline_sizes)
{
	struct peer peer;

	enter(&peer);
	walk();
	ck_assert_uint_eq(nclients, 1);
	ck_assert_uint_eq(client.nconns, 1);
	ck_assert_str_eq(client.conns[0].transport, "rdma");
	ck_assert_str_eq(client.conns[0].provider,
			 rig.iwarp ? "iwarp" : "loop");
	ck_assert_uint_eq(client.conns[0].credits, 128);
	/* The peer sends no private data (RFC 8797 section 4). */
	ck_assert_uint_eq(client.conns[0].recv_inline, RPCRDMA_INLINE_MIN);
	ck_assert_uint_eq(client.conns[0].send_inline, RPCRDMA_INLINE_MIN);
	peer_close(&peer);
	EVENTUALLY((walk(), client.nconns == 0));
	ck_assert_uint_eq(nclients, 1);
}

TEST(an_inline_size_is_the_smaller_one_of_both_sides)
{
	const struct rpcrdma_private both[] = {
		{ .send_size = 4096, .recv_size = 2048 },
		{ .send_size = 65536, .recv_size = 65536 },
	};
	static const uint32_t from[] = { 4096, 8192 }, to[] = { 2048, 8192 };

	for (size_t i = 0; i < ARRAY_SIZE(both); i++) {
		const struct peer_options o = { .private_data = &both[i] };
		struct peer peer;

		peer_open(&peer, &rig, &o);
		peer_wait_up(&peer);
		walk();
		ck_assert_uint_eq(client.nconns, 1);
		ck_assert_uint_eq(client.conns[0].recv_inline, from[i]);
		ck_assert_uint_eq(client.conns[0].send_inline, to[i]);
		peer_close(&peer);
		EVENTUALLY((walk(), client.nconns == 0));
	}
}

TEST(an_ended_connection_answers_the_calls_in_progress)
{
	struct peer busy, idle, again;

	enter(&busy);
	enter(&idle);
	peer_call(&busy, 1, OP_HOLD, 0);
	EVENTUALLY(rig_held(&rig) == 1);
	walk();
	ck_assert_uint_eq(client.nconns, 2);
	ck_assert_uint_eq(xprt_clients_end(table, &host), 2);
	peer_wait_down(&idle);
	peer_call(&busy, 2, OP_SUM, 0);		/* too late */
	rig_release(&rig);
	peer_take(&busy);
	ck_assert_uint_eq(busy.hdr.xid, 1);
	peer_wait_down(&busy);
	ck_assert_uint_eq(rig.taken, 1);
	enter(&again);
	peer_close(&again);
	peer_close(&idle);
	peer_close(&busy);
}
