/* SPDX-License-Identifier: BSD-2-Clause */
/* The port mapper: its answers to each caller, and their size. */
#include "portmap/portmap.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "lib/stats.h"
#include "tests/server/fake_xprt.h"
#include "tests/unit/runner.h"
#include "wire/getport.h"
#include "wire/header.h"
#include "wire/portmap.h"

#define NFS	100003u

static struct rpc_program *portmap;
static struct rpc_server *server;
static struct pool *pool;
static bool datagram;			/* calls come by UDP */
static uint8_t reply[16384];
static uint32_t reply_len;

static struct sockaddr *any(sa_family_t family, uint16_t port)
{
	static struct sockaddr_storage ss;

	ss = (struct sockaddr_storage){ .ss_family = family };
	((struct sockaddr_in *)&ss)->sin_port = htons(port);
	return (struct sockaddr *)&ss;
}

static void setup(void)
{
	struct rpc_server_config config = { .nworkers = 1 };

	ck_assert_int_eq(pool_create(64u << 20, &pool), 0);
	config.pool = pool;
	ck_assert_int_eq(rpc_server_create(&config, &server), 0);
	portmap = portmap_create();
	ck_assert_ptr_nonnull(portmap);
	ck_assert_int_eq(rpc_server_add(server, portmap), 0);
	portmap_add(portmap, NFS, 3, "tcp", any(AF_INET, 2049));
	portmap_add(portmap, NFS, 3, "tcp6", any(AF_INET6, 2049));
	portmap_add(portmap, 100005, 3, "udp", any(AF_INET, 20048));
	portmap_add(portmap, NFS, 3, "rdma", any(AF_INET, 20049));
}

static void teardown(void)
{
	EVENTUALLY(rpc_busy() == 0);
	rpc_server_destroy(server);
	portmap_destroy(portmap);
	pool_destroy(pool);
}

/* A call from @from to 192.0.2.1 or 2001:db8::1; its reply is in the static
 * memory.  Returns the status, or -1 if it was denied. */
static int call(const char *from, uint32_t vers, uint32_t proc,
		const struct xdr_out *args)
{
	const struct rpc_header h = { .xid = 7, .prog = RPCBIND_PROGRAM,
				      .vers = vers, .proc = proc };
	struct fake_xprt *conn = calloc(1, sizeof(*conn));
	struct fake_call *c;
	uint8_t wire[512];
	struct xdr_out x;
	uint32_t xid;
	struct xdr_in in;

	fake_xprt_init(conn, rpc_server_sink(server), pool, from, 801);
	conn->x.datagram = datagram;
	memcpy(&conn->x.local, any(conn->x.peer.ss_family, 111),
	       sizeof(conn->x.local));
	if (conn->x.peer.ss_family == AF_INET)
		inet_pton(AF_INET, "192.0.2.1",
			  &((struct sockaddr_in *)&conn->x.local)->sin_addr);
	xdr_out_init(&x, wire, sizeof(wire));
	rpc_header_call(&x, &h, &(struct rpc_auth_sys){ .machine = "c1" });
	if (args)
		xdr_put_fixed(&x, args->start, (uint32_t)xdr_out_len(args));
	c = fake_send(conn, wire, (uint32_t)xdr_out_len(&x));
	fake_wait(c);
	ck_assert_uint_le(c->len, sizeof(reply));
	reply_len = c->len;
	memcpy(reply, c->reply, c->len);
	fake_free(c);
	free(conn);
	xdr_in_init(&in, reply, reply_len);
	return rpc_header_reply(&in, &xid, NULL);
}

static uint32_t word(unsigned i)
{
	uint32_t w;

	ck_assert_uint_le(24 + 4 * i + 4, reply_len);
	memcpy(&w, reply + 24 + 4 * i, 4);
	return ntohl(w);
}

static uint32_t getport(uint32_t prog, uint32_t vers, uint32_t proto)
{
	uint8_t args[16];
	struct xdr_out x;

	xdr_out_init(&x, args, sizeof(args));
	xdr_put_u32(&x, prog);
	xdr_put_u32(&x, vers);
	xdr_put_u32(&x, proto);
	xdr_put_u32(&x, 0);
	ck_assert_int_eq(call("192.0.2.7", 2, PMAP_GETPORT, &x), 0);
	return word(0);
}

/* Calls a procedure with struct rpcb; its result as a string. */
static const char *rpcb(const char *from, uint32_t proc, uint32_t vers,
			const char *netid)
{
	static char text[128];
	uint8_t args[128];
	struct xdr_out x;
	uint32_t len;

	xdr_out_init(&x, args, sizeof(args));
	xdr_put_u32(&x, NFS);
	xdr_put_u32(&x, vers);
	xdr_put_opaque(&x, netid, (uint32_t)strlen(netid));
	xdr_put_opaque(&x, "", 0);
	xdr_put_opaque(&x, "", 0);
	ck_assert_int_eq(call(from, 4, proc, &x), 0);
	len = word(0);
	ck_assert_uint_lt(len, sizeof(text));
	memcpy(text, reply + 28, len);
	text[len] = '\0';
	return text;
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(getport_tells_the_port_of_the_protocol)
{
	ck_assert_uint_eq(getport(NFS, 3, IPPROTO_TCP), 2049);
	ck_assert_uint_eq(getport(NFS, 3, IPPROTO_UDP), 0);
	ck_assert_uint_eq(getport(100005, 3, IPPROTO_UDP), 20048);
	ck_assert_uint_eq(getport(100021, 4, IPPROTO_TCP), 0);
	/* The program itself says which versions it has. */
	ck_assert_uint_eq(getport(NFS, 4, IPPROTO_TCP), 2049);
	ck_assert_uint_eq(getport(NFS, 3, 99), 0);
	portmap_clear(portmap);
	ck_assert_uint_eq(getport(NFS, 3, IPPROTO_TCP), 0);
}

TEST(getaddr_tells_the_address_that_was_asked)
{
	ck_assert_str_eq(rpcb("192.0.2.7", RPCB_GETADDR, 3, "tcp"),
			 "192.0.2.1.8.1");
	ck_assert_str_eq(rpcb("192.0.2.7", RPCB_GETADDR, 3, "rdma"),
			 "192.0.2.1.78.81");
	ck_assert_str_eq(rpcb("192.0.2.7", RPCB_GETADDR, 3, ""),
			 "192.0.2.1.8.1");
	ck_assert_str_eq(rpcb("2001:db8::7", RPCB_GETADDR, 3, ""),
			 "::.8.1");
	ck_assert_str_eq(rpcb("192.0.2.7", RPCB_GETADDR, 4, "tcp"),
			 "192.0.2.1.8.1");
	ck_assert_str_eq(rpcb("192.0.2.7", RPCB_GETVERSADDR, 4, "tcp"), "");
	ck_assert_str_eq(rpcb("192.0.2.7", RPCB_GETADDR, 3, "nonsense"), "");
	ck_assert_str_eq(rpcb("192.0.2.7", RPCB_GETADDR, 3,
			      "a name much too long for a netid"), "");
}

TEST(lists_have_every_mapping)
{
	/* true, program, version, protocol, port. */
	ck_assert_int_eq(call("192.0.2.7", 2, PMAP_DUMP, NULL), 0);
	ck_assert_uint_eq(word(1), NFS);
	ck_assert_uint_eq(word(3), IPPROTO_TCP);
	ck_assert_uint_eq(word(9), 20048);
	ck_assert_uint_eq(word(10), 0);
	ck_assert_uint_eq(reply_len, 24 + 11 * 4);
	ck_assert_int_eq(call("192.0.2.7", 4, RPCB_DUMP, NULL), 0);
	ck_assert_uint_eq(word(0), 1);
	ck_assert_uint_eq(word(1), NFS);
	ck_assert_mem_eq(reply + 24 + 16, "tcp", 3);
}

TEST(nobody_can_register)
{
	uint8_t args[16] = { 0 };
	struct xdr_out x = { .p = args + 16, .start = args };

	ck_assert_int_eq(call("127.0.0.1", 2, PMAP_SET, &x), 0);
	ck_assert_uint_eq(word(0), 0);
	ck_assert_int_eq(call("127.0.0.1", 2, PMAP_UNSET, &x), 0);
	ck_assert_uint_eq(word(0), 0);
	ck_assert_uint_eq(getport(NFS, 3, IPPROTO_TCP), 2049);
	ck_assert_uint_eq(stats_sum_by_name("portmap_refused"), 2);
}

/* CALLIT and its like call a program for another host. */
TEST(nothing_is_called_for_others)
{
	static const struct { uint32_t vers, proc; } rows[] = {
		{ 2, 5 }, { 3, 5 }, { 4, 5 }, { 4, 10 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		ck_assert_int_eq(call("192.0.2.7", rows[i].vers, rows[i].proc,
				      NULL), -EOPNOTSUPP);
}

TEST(procedures_for_one_machine_are_not_served)
{
	static const struct { uint32_t vers, proc; } rows[] = {
		{ 3, 7 }, { 3, 8 }, { 4, 7 }, { 4, 8 }, { 4, 12 },
	};

	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		ck_assert_int_eq(call("192.0.2.7", rows[i].vers, rows[i].proc,
				      NULL), -EOPNOTSUPP);
}

TEST(no_answer_over_udp_is_longer_than_its_call)
{
	datagram = true;
	ck_assert_uint_eq(getport(NFS, 3, IPPROTO_TCP), 2049);
	ck_assert_uint_le(reply_len, 28);
	ck_assert_str_eq(rpcb("192.0.2.7", RPCB_GETADDR, 3, "tcp"),
			 "192.0.2.1.8.1");
	ck_assert_uint_le(reply_len, 64);
	ck_assert_int_eq(call("192.0.2.7", 2, PMAP_DUMP, NULL), -EACCES);
	ck_assert_int_eq(call("192.0.2.7", 3, RPCB_DUMP, NULL), -EACCES);
	ck_assert_int_eq(call("192.0.2.7", 4, RPCB_GETADDRLIST, NULL),
			 -EACCES);
	ck_assert_uint_eq(stats_sum_by_name("rpc_long_udp"), 3);
}

TEST(mappings_are_bounded)
{
	for (unsigned i = 4; i < PORTMAP_MAX; i++)
		ck_assert_int_eq(portmap_add(portmap, i, 1, "tcp",
					     any(AF_INET6, 1)), 0);
	ck_assert_int_eq(portmap_add(portmap, 1, 1, "tcp", any(AF_INET, 1)),
			 -ENOSPC);
	/* The longest list also fits. */
	ck_assert_int_eq(call("192.0.2.7", 4, RPCB_DUMP, NULL), 0);
}
