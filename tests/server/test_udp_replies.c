/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Replies over UDP.  A datagram's source can be forged, so a server whose
 * replies are longer than its calls is a weapon against third parties.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/stats.h"
#include "mountd/mountd.h"
#include "nsm/nsm.h"
#include "portmap/portmap.h"
#include "tests/server/fake_xprt.h"
#include "tests/server/harness.h"
#include "tests/unit/runner.h"
#include "wire/header.h"
#include "wire/portmap.h"

#define SHARES		40
#define STRANGER	"203.0.113.9"
#define STRANGER6	"2001:db8:9:9:9:9:9:9"
#define FRIEND		"192.0.2.7"
/* A short call for a long IPv6 address has a reply that is so much longer. */
#define LONGER		16
/* Bytes of arguments that are tried, from none. */
#define ARGS_MAX	160

enum { MOUNT_DUMP = 2, MOUNT_EXPORT = 5 };

static char state_dir[] = "/tmp/gannet-udp-XXXXXX";
static struct rpc_program *portmap;
static struct nsm *nsm;
static struct harness srv;

/* A server with long lists, as the daemon has its programs. */
static void setup(void)
{
	struct harness_config config = { .state_dir = state_dir };
	struct nsm_config nc = { .state_dir = state_dir };
	char *exports = NULL;
	size_t len;
	FILE *f = open_memstream(&exports, &len);

	ck_assert_ptr_nonnull(mkdtemp(state_dir));
	for (unsigned i = 0; i < SHARES; i++)
		fprintf(f, "/a-long-name-of-a-share-%u " FRIEND "(rw) "
			"192.0.2.8(ro) 192.0.2.9(ro)\n", i);
	fclose(f);
	config.exports = exports;
	harness_start(&srv, &config);
	free(exports);
	nc.client = srv.client;
	ck_assert_int_eq(nsm_create(&nc, &nsm), 0);
	portmap = portmap_create();
	ck_assert_int_eq(rpc_server_add(srv.server, nsm_program(nsm)), 0);
	ck_assert_int_eq(rpc_server_add(srv.server, portmap), 0);
	for (unsigned i = 0; i < SHARES; i++)
		ck_assert_int_eq(portmap_add(portmap, 100003, i, "tcp",
			(struct sockaddr *)&srv.tcp->local), 0);
}

static void teardown(void)
{
	char command[64];

	EVENTUALLY(rpc_busy() == 0);
	nsm_stop(nsm);
	harness_stop(&srv);
	nsm_destroy(nsm);
	portmap_destroy(portmap);
	snprintf(command, sizeof(command), "rm -rf %s", state_dir);
	ck_assert_int_eq(system(command), 0);
}

TEST_CASE(.setup = setup, .teardown = teardown);

struct exchange {
	uint32_t call_len, reply_len;	/* without a reply: 0 */
	int status;			/* as rpc_header_reply() */
};

/* Calls without credentials, which are shortest, with @len bytes of @args. */
static struct exchange call_with(const char *from, bool datagram,
				 const uint32_t row[3], const void *args,
				 uint32_t len)
{
	const uint32_t head[10] = { 7, 0, 2, row[0], row[1], row[2] };
	struct fake_xprt *conn = calloc(1, sizeof(*conn));
	struct exchange e;
	struct fake_call *c;
	uint8_t wire[512];
	struct xdr_out x;
	struct xdr_in in;
	uint32_t xid;

	fake_xprt_init(conn, rpc_server_sink(srv.server), srv.pool, from, 801);
	conn->x.datagram = datagram;
	/* The longest address. */
	conn->x.local = conn->x.peer;
	if (conn->x.peer.ss_family == AF_INET6)
		memset(&((struct sockaddr_in6 *)&conn->x.local)->sin6_addr,
		       0xee, 16);
	xdr_out_init(&x, wire, sizeof(wire));
	for (unsigned i = 0; i < ARRAY_SIZE(head); i++)
		xdr_put_u32(&x, head[i]);
	xdr_put_fixed(&x, args, len);
	e.call_len = (uint32_t)xdr_out_len(&x);
	c = fake_send(conn, wire, e.call_len);
	fake_wait(c);
	e.reply_len = c->len;
	xdr_in_init(&in, c->reply, c->len);
	e.status = c->len ? rpc_header_reply(&in, &xid, NULL) : 0;
	fake_free(c);
	free(conn);
	return e;
}

static struct exchange call(const char *from, bool datagram,
			    const uint32_t row[3], uint32_t len)
{
	static const uint8_t zeros[ARGS_MAX];

	return call_with(from, datagram, row, zeros, len);
}

static unsigned tried;

static void try_proc(const struct rpc_program *prog,
		     const struct rpc_version *version, uint32_t proc,
		     struct rpc_proc_counts *n, void *arg)
{
	const uint32_t row[] = { prog->prog, version->vers, proc };

	for (uint32_t len = 0; len <= ARGS_MAX; len += 4) {
		struct exchange e = call(STRANGER, true, row, len);

		ck_assert_msg(e.reply_len <= e.call_len,
			      "%s %u %s: a call of %u bytes, a reply of %u",
			      prog->name, version->vers,
			      version->procs[proc].name, e.call_len,
			      e.reply_len);
	}
	tried++;
}

TEST(no_reply_to_a_stranger_over_udp_is_longer_than_its_call)
{
	rpc_server_walk_procs(srv.server, try_proc, NULL);
	ck_assert_uint_gt(tried, 100);
}

/* The port mapper answers anyone. */
TEST(an_address_over_udp_is_a_little_longer_than_its_question_at_most)
{
	static const uint32_t procs[] = { RPCB_GETADDR, RPCB_GETVERSADDR };
	struct sockaddr_in6 any = { .sin6_family = AF_INET6,
				    .sin6_port = htons(65535) };
	const uint32_t args[5] = { htonl(100003), htonl(3) };

	ck_assert_int_eq(portmap_add(portmap, 100003, 3, "udp6",
				     (struct sockaddr *)&any), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(procs); i++) {
		const uint32_t row[] = { 100000, 4, procs[i] };
		struct exchange e = call_with(STRANGER6, true, row, args,
					      sizeof(args));

		ck_assert_int_eq(e.status, 0);
		ck_assert_uint_gt(e.reply_len, 60);
		ck_assert_uint_le(e.reply_len, e.call_len + LONGER);
	}
}

static const uint32_t versions[] = { 1, 2, 3 };

/* Not even for a host that is allowed: an attacker names it as the source. */
TEST_LOOP(mounts_and_exports_are_listed_over_tcp_only, 0, ARRAY_SIZE(versions))
{
	static const uint32_t procs[] = { MOUNT_DUMP, MOUNT_EXPORT };
	uint64_t before = stats_sum_by_name("rpc_long_udp");

	for (unsigned i = 0; i < ARRAY_SIZE(procs); i++) {
		const uint32_t row[] = { MOUNT_PROGRAM, versions[_i],
					 procs[i] };

		ck_assert_int_eq(call(FRIEND, true, row, 0).status, -EACCES);
		ck_assert_int_eq(call(STRANGER, false, row, 0).status, 0);
	}
	ck_assert_uint_eq(stats_sum_by_name("rpc_long_udp") - before,
			  ARRAY_SIZE(procs));
}
