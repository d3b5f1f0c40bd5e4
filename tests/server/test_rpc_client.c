/* SPDX-License-Identifier: BSD-2-Clause */
/* Outgoing calls, to sockets of this test. */
#include "rpc/client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "lib/stats.h"
#include "rpc/auth.h"
#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"
#include "wire/getport.h"

#define PROG	100021u

static struct rpc_client *client;
static int sock;			/* the host's */
static struct sockaddr_storage at;	/* and its address */

/* A call's end. */
struct end {
	sem_t	 done;
	int	 err;
	uint32_t word;			/* the first of the results */
};

static struct end ends[4];

/* A message that came to the host. */
struct got {
	struct rpc_header h;
	struct rpc_call	  call;		/* its cred */
	uint32_t	  args[8];	/* as they came */
	struct sockaddr_storage from;
	socklen_t	  from_len;
	uint8_t		  data[1024];
};

static void done(void *arg, int err, struct xdr_in *results)
{
	struct end *e = arg;

	e->err = err;
	e->word = err ? 0 : xdr_get_u32(results);
	sem_post(&e->done);
}

static int bound(int family, int type, struct sockaddr_storage *out)
{
	struct sockaddr_storage ss = { .ss_family = (sa_family_t)family };
	socklen_t len = sizeof(ss);
	int fd = socket(family, type | SOCK_CLOEXEC, 0);

	if (family == AF_INET)
		((struct sockaddr_in *)&ss)->sin_addr.s_addr =
			htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)&ss)->sin6_addr = in6addr_loopback;
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&ss, sizeof(ss)), 0);
	*out = (struct sockaddr_storage){ 0 };
	getsockname(fd, (struct sockaddr *)out, &len);
	return fd;
}

static uint16_t port_of(const struct sockaddr_storage *ss)
{
	return ntohs(((const struct sockaddr_in *)ss)->sin_port);
}

static void create(const struct rpc_client_config *config)
{
	ck_assert_int_eq(rpc_client_create(config, &client), 0);
	for (unsigned i = 0; i < 4; i++)
		sem_init(&ends[i].done, 0, 0);
}

static void start_udp(void)
{
	sock = bound(AF_INET, SOCK_DGRAM, &at);
	create(NULL);
}

static void start_tcp(void)
{
	sock = bound(AF_INET, SOCK_STREAM, &at);
	listen(sock, 5);
	create(NULL);
}

static void stop(void)
{
	if (client)
		rpc_client_destroy(client);
	close(sock);
}

static struct rpc_client_to to_host(int proto)
{
	return (struct rpc_client_to){
		.addr = at, .proto = proto, .prog = PROG, .vers = 4,
		.proc = 10, .timeout_ms = 20000, .resend_ms = 20,
	};
}

static void call(struct end *e, const struct rpc_client_to *to)
{
	const uint32_t args[2] = { htonl(1), htonl(2) };

	ck_assert_int_eq(rpc_client_call(client, to, args, sizeof(args), done,
					 e), 0);
}

static int result(struct end *e)
{
	wait_sem(&e->done);
	return e->err;
}

static void parse(struct got *g, size_t len)
{
	struct xdr_in x;

	xdr_in_init(&x, g->data, len);
	ck_assert_int_eq(rpc_header_decode(&x, &g->h), RPC_HEADER_CALL);
	ck_assert_int_eq(rpc_auth_verify(rpc_flavors, &g->h, &g->call),
			 RPC_AUTH_OK);
	for (unsigned i = 0; i < 8 && xdr_left(&x); i++)
		g->args[i] = xdr_get_u32(&x);
}

static void get_datagram(int fd, struct got *g)
{
	ssize_t n;

	*g = (struct got){ .from_len = sizeof(g->from) };
	n = recvfrom(fd, g->data, sizeof(g->data), 0,
		     (struct sockaddr *)&g->from, &g->from_len);
	ck_assert_int_gt(n, 0);
	parse(g, (size_t)n);
}

static void get_record(int fd, struct got *g)
{
	*g = (struct got){ 0 };
	parse(g, record_receive(fd, g->data, sizeof(g->data)));
}

/* An answer of one word; a record with its mark at @out. */
static size_t answer_to(uint8_t *out, uint32_t xid, uint32_t stat,
			uint32_t word)
{
	struct xdr_out x;

	xdr_out_init(&x, out, 64);
	xdr_reserve(&x, RECORD_MARK_SIZE);
	rpc_header_accepted(&x, xid, stat);
	xdr_put_u32(&x, word);
	return record_end(&x);
}

static void put_datagram(int fd, const struct got *g, uint32_t xid,
			 uint32_t stat, uint32_t word)
{
	uint8_t out[64];
	size_t n = answer_to(out, xid, stat, word);

	ck_assert_int_gt(sendto(fd, out + 4, n - 4, 0,
				(const struct sockaddr *)&g->from,
				g->from_len), 0);
}

static void put_record(int fd, uint32_t xid, uint32_t word)
{
	uint8_t out[64];
	size_t n = answer_to(out, xid, RPC_SUCCESS, word);

	ck_assert_int_eq(send(fd, out, n, MSG_NOSIGNAL), (ssize_t)n);
}

TEST_CASE(.setup = start_udp, .teardown = stop);

TEST(a_call_over_udp_is_answered)
{
	struct rpc_client_to to = to_host(IPPROTO_UDP);
	struct got g;

	call(&ends[0], &to);
	get_datagram(sock, &g);
	ck_assert_uint_eq(g.h.prog, PROG);
	ck_assert_uint_eq(g.h.vers, 4);
	ck_assert_uint_eq(g.h.proc, 10);
	ck_assert_uint_eq(g.args[1], 2);
	ck_assert_int_eq(g.call.cred.flavor, RPC_AUTH_SYS);
	ck_assert_uint_eq(g.call.cred.uid, geteuid());
	put_datagram(sock, &g, g.h.xid, RPC_SUCCESS, 77);
	ck_assert_int_eq(result(&ends[0]), 0);
	ck_assert_uint_eq(ends[0].word, 77);
}

TEST(the_port_is_reserved_where_it_may_be)
{
	struct rpc_client_to to = to_host(IPPROTO_UDP);
	struct got g;

	call(&ends[0], &to);
	get_datagram(sock, &g);
	if (geteuid() == 0)
		ck_assert_uint_lt(port_of(&g.from), 1024);
}

TEST(a_call_is_sent_again_with_the_same_xid)
{
	struct rpc_client_to to = to_host(IPPROTO_UDP);
	struct got g, again;

	call(&ends[0], &to);
	get_datagram(sock, &g);
	get_datagram(sock, &again);
	ck_assert_uint_eq(g.h.xid, again.h.xid);
	get_datagram(sock, &again);
	put_datagram(sock, &g, g.h.xid, RPC_SUCCESS, 1);
	ck_assert_int_eq(result(&ends[0]), 0);
	ck_assert_uint_ge(stats_sum_by_name("client_resends"), 2);
}

TEST(an_answer_counts_only_with_its_address_and_xid)
{
	struct rpc_client_to to = to_host(IPPROTO_UDP);
	struct sockaddr_storage other;
	int fd = bound(AF_INET, SOCK_DGRAM, &other);
	struct got g;

	to.resend_ms = 60000;
	call(&ends[0], &to);
	get_datagram(sock, &g);
	put_datagram(fd, &g, g.h.xid, RPC_SUCCESS, 1);
	put_datagram(sock, &g, g.h.xid + 1, RPC_SUCCESS, 2);
	sendto(sock, "short", 5, 0, (void *)&g.from, g.from_len);
	put_datagram(sock, &g, g.h.xid, 99, 3);
	put_datagram(sock, &g, g.h.xid, RPC_SUCCESS, 4);
	ck_assert_int_eq(result(&ends[0]), 0);
	ck_assert_uint_eq(ends[0].word, 4);
	ck_assert_uint_eq(stats_sum_by_name("client_bad_answers"), 3);
	close(fd);
}

TEST(errors_of_the_server_are_told)
{
	static const struct { uint32_t stat; int err; } rows[] = {
		{ RPC_PROG_UNAVAIL, -EPROTONOSUPPORT },
		{ RPC_PROC_UNAVAIL, -EOPNOTSUPP },
		{ RPC_PROG_MISMATCH, -EPROTONOSUPPORT },
		{ RPC_GARBAGE_ARGS, -EINVAL },
		{ RPC_SYSTEM_ERR, -EIO },
	};
	struct rpc_client_to to = to_host(IPPROTO_UDP);
	struct got g;

	to.resend_ms = 60000;
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		call(&ends[0], &to);
		get_datagram(sock, &g);
		put_datagram(sock, &g, g.h.xid, rows[i].stat, 0);
		ck_assert_int_eq(result(&ends[0]), rows[i].err);
	}
}

TEST(a_silent_host_costs_the_time_out)
{
	struct rpc_client_to to = to_host(IPPROTO_UDP);

	to.timeout_ms = 100;
	call(&ends[0], &to);
	ck_assert_int_eq(result(&ends[0]), -ETIMEDOUT);
	ck_assert_uint_eq(stats_sum_by_name("client_timeouts"), 1);
}

TEST(a_port_without_a_listener_is_told_at_once)
{
	struct rpc_client_to to = to_host(IPPROTO_UDP);
	struct sockaddr_storage gone;
	int fd = bound(AF_INET, SOCK_DGRAM, &gone);

	/* It keeps its port, and receives only its own calls. */
	connect(fd, (struct sockaddr *)&gone, sizeof(struct sockaddr_in));
	to.addr = gone;
	call(&ends[0], &to);
	ck_assert_int_eq(result(&ends[0]), -ECONNREFUSED);
	close(fd);
	/* Another socket, of which this is only the number. */
	fd = bound(AF_INET, SOCK_STREAM, &gone);
	to.addr = gone;
	to.proto = IPPROTO_TCP;
	call(&ends[0], &to);
	ck_assert_int_eq(result(&ends[0]), -ECONNREFUSED);
	close(fd);
}

TEST(calls_are_made_from_the_address_that_is_asked_for)
{
	struct rpc_client_to to = to_host(IPPROTO_UDP);
	struct sockaddr_in from = { .sin_family = AF_INET };
	struct got g;

	inet_pton(AF_INET, "127.0.0.9", &from.sin_addr);
	memcpy(&to.from, &from, sizeof(from));
	call(&ends[0], &to);
	get_datagram(sock, &g);
	ck_assert_uint_eq(((struct sockaddr_in *)&g.from)->sin_addr.s_addr,
			  from.sin_addr.s_addr);
}

TEST(the_end_cancels_what_waits)
{
	struct rpc_client_to to = to_host(IPPROTO_UDP);

	call(&ends[0], &to);
	to.proto = IPPROTO_TCP;
	call(&ends[1], &to);
	rpc_client_destroy(client);
	client = NULL;
	ck_assert_int_eq(result(&ends[0]), -ECANCELED);
	ck_assert(result(&ends[1]) == -ECANCELED ||
		  ends[1].err == -ECONNREFUSED);
}

TEST(calls_are_bounded_in_all_and_for_a_host)
{
	const struct rpc_client_config config = { .max_calls = 3,
						  .max_host_calls = 2 };
	struct rpc_client_to to = to_host(IPPROTO_UDP);
	int other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	rpc_client_destroy(client);
	create(&config);
	for (unsigned i = 0; i < 3; i++)
		call(&ends[i], &to);
	ck_assert_int_eq(result(&ends[2]), -EBUSY);
	call(&ends[3], &to);
	ck_assert_int_eq(result(&ends[3]), -EBUSY);
	/* Two calls to this host wait; one to another host still can. */
	((struct sockaddr_in *)&to.addr)->sin_addr.s_addr =
		htonl(INADDR_LOOPBACK + 1);
	ck_assert_int_eq(bind(other, (struct sockaddr *)&to.addr,
			      sizeof(struct sockaddr_in)), 0);
	call(&ends[2], &to);
	ck_assert_int_eq(rpc_client_call(client, &to, NULL, 0, done, &ends[3]),
			 -EBUSY);
	close(other);
}

TEST(arguments_are_bounded)
{
	static const uint8_t args[RPC_CLIENT_ARGS_MAX + 4];
	struct rpc_client_to to = to_host(IPPROTO_UDP);

	ck_assert_int_eq(rpc_client_call(client, &to, args, sizeof(args), done,
					 &ends[0]), -EMSGSIZE);
	to.addr.ss_family = AF_UNIX;
	ck_assert_int_eq(rpc_client_call(client, &to, args, 4, done, &ends[0]),
			 -EAFNOSUPPORT);
}

TEST_CASE(.setup = start_tcp, .teardown = stop);

TEST(calls_over_tcp_share_a_connection)
{
	struct rpc_client_to to = to_host(IPPROTO_TCP);
	struct got g[2];
	int fd;

	call(&ends[0], &to);
	call(&ends[1], &to);
	fd = accept(sock, NULL, NULL);
	get_record(fd, &g[0]);
	get_record(fd, &g[1]);
	put_record(fd, g[1].h.xid, 1);
	put_record(fd, g[0].h.xid, 0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(result(&ends[i]), 0);
		ck_assert_uint_eq(ends[i].word, i);
	}
	close(fd);
}

TEST(an_answer_may_come_byte_by_byte)
{
	struct rpc_client_to to = to_host(IPPROTO_TCP);
	struct got g;
	uint8_t out[64];
	size_t n;
	int fd;

	call(&ends[0], &to);
	fd = accept(sock, NULL, NULL);
	get_record(fd, &g);
	n = answer_to(out, g.h.xid, RPC_SUCCESS, 5);
	for (size_t i = 0; i < n; i++)
		send(fd, out + i, 1, MSG_NOSIGNAL);
	ck_assert_int_eq(result(&ends[0]), 0);
	ck_assert_uint_eq(ends[0].word, 5);
	close(fd);
}

TEST(a_lost_connection_is_made_again_for_its_calls)
{
	struct rpc_client_to to = to_host(IPPROTO_TCP);
	struct got g, again;
	int fd;

	call(&ends[0], &to);
	fd = accept(sock, NULL, NULL);
	get_record(fd, &g);
	close(fd);
	fd = accept(sock, NULL, NULL);
	get_record(fd, &again);
	ck_assert_uint_eq(g.h.xid, again.h.xid);
	put_record(fd, g.h.xid, 6);
	ck_assert_int_eq(result(&ends[0]), 0);
	/* It has served: the next one is made without a wait. */
	to.resend_ms = 60000;
	call(&ends[0], &to);
	get_record(fd, &g);
	close(fd);
	fd = accept(sock, NULL, NULL);
	get_record(fd, &g);
	put_record(fd, g.h.xid, 7);
	ck_assert_int_eq(result(&ends[0]), 0);
	close(fd);
}

TEST(a_malformed_record_ends_the_connection)
{
	struct rpc_client_to to = to_host(IPPROTO_TCP);
	struct got g;
	int fd;

	call(&ends[0], &to);
	fd = accept(sock, NULL, NULL);
	get_record(fd, &g);
	send(fd, "\x80\xff\xff\xff", 4, MSG_NOSIGNAL);
	ck_assert_int_eq(recv(fd, &g, 1, 0), 0);
	close(fd);
	fd = accept(sock, NULL, NULL);
	get_record(fd, &g);
	put_record(fd, g.h.xid, 8);
	ck_assert_int_eq(result(&ends[0]), 0);
	ck_assert_uint_eq(stats_sum_by_name("client_bad_records"), 1);
	close(fd);
}

TEST(a_connection_that_answers_nothing_is_not_used_again)
{
	struct rpc_client_to to = to_host(IPPROTO_TCP);
	struct got g;
	int dead, fd;

	to.timeout_ms = 100;
	call(&ends[0], &to);
	dead = accept(sock, NULL, NULL);
	ck_assert_int_eq(result(&ends[0]), -ETIMEDOUT);
	to.timeout_ms = 20000;
	call(&ends[0], &to);
	fd = accept(sock, NULL, NULL);
	get_record(fd, &g);
	put_record(fd, g.h.xid, 9);
	ck_assert_int_eq(result(&ends[0]), 0);
	close(dead);
	close(fd);
}

TEST_CASE(.teardown = stop);

/* Returns its port. */
static uint16_t start_rpcbind(int family, int type)
{
	struct rpc_client_config config = { 0 };

	sock = bound(family, type, &at);
	config.rpcbind_port = port_of(&at);
	create(&config);
	((struct sockaddr_in *)&at)->sin_port = 0;
	return config.rpcbind_port;
}

TEST(the_port_is_asked_for_once)
{
	struct rpc_client_to to;
	struct sockaddr_storage prog;
	struct got g;
	int fd;

	start_rpcbind(AF_INET, SOCK_DGRAM);
	fd = bound(AF_INET, SOCK_DGRAM, &prog);
	to = to_host(IPPROTO_UDP);
	to.resend_ms = 60000;
	for (unsigned i = 0; i < 2; i++) {
		call(&ends[i], &to);
		if (i == 0) {
			get_datagram(sock, &g);
			ck_assert_uint_eq(g.h.prog, RPCBIND_PROGRAM);
			ck_assert_uint_eq(g.h.vers, 2);
			ck_assert_uint_eq(g.h.proc, PMAPPROC_GETPORT);
			ck_assert_uint_eq(g.args[0], PROG);
			ck_assert_uint_eq(g.args[1], 4);
			ck_assert_uint_eq(g.args[2], IPPROTO_UDP);
			put_datagram(sock, &g, g.h.xid, RPC_SUCCESS,
				     port_of(&prog));
		}
		get_datagram(fd, &g);
		put_datagram(fd, &g, g.h.xid, RPC_SUCCESS, i);
		ck_assert_int_eq(result(&ends[i]), 0);
		ck_assert_uint_eq(ends[i].word, i);
	}
	/* An error of the program makes us ask again. */
	call(&ends[0], &to);
	get_datagram(fd, &g);
	put_datagram(fd, &g, g.h.xid, RPC_PROG_UNAVAIL, 0);
	ck_assert_int_eq(result(&ends[0]), -EPROTONOSUPPORT);
	call(&ends[0], &to);
	get_datagram(sock, &g);
	put_datagram(sock, &g, g.h.xid, RPC_SUCCESS, 0);
	ck_assert_int_eq(result(&ends[0]), -ENOENT);
	close(fd);
}

TEST(over_ipv6_the_address_is_asked_for)
{
	struct rpc_client_to to;
	struct got g;
	uint8_t out[128];
	struct xdr_out x;

	start_rpcbind(AF_INET6, SOCK_DGRAM);
	to = to_host(IPPROTO_UDP);
	call(&ends[0], &to);
	get_datagram(sock, &g);
	ck_assert_uint_eq(g.h.vers, 4);
	ck_assert_uint_eq(g.h.proc, RPCBPROC_GETADDR);
	xdr_out_init(&x, out, sizeof(out));
	rpc_header_accepted(&x, g.h.xid, RPC_SUCCESS);
	xdr_put_opaque(&x, "nonsense", 8);
	sendto(sock, out, xdr_out_len(&x), 0, (void *)&g.from, g.from_len);
	ck_assert_int_eq(result(&ends[0]), -EBADMSG);
}

static void hold(void *arg, int err, struct xdr_in *results)
{
	sem_post(&ends[2].done);
	wait_sem(&ends[3].done);
}

/* Keeps the client's thread in a call-back until ends[3].done is posted. */
static void hold_client(void)
{
	struct rpc_client_to to = to_host(IPPROTO_UDP);

	((struct sockaddr_in *)&to.addr)->sin_port = htons(9);
	to.timeout_ms = 1;
	ck_assert_int_eq(rpc_client_call(client, &to, NULL, 0, hold, NULL), 0);
	wait_sem(&ends[2].done);
}

/* An answer makes the client send on a connection that is reset behind it. */
TEST(bytes_of_a_lost_connection_are_not_taken_for_the_next_ones)
{
	const struct linger reset = { 1, 0 };
	uint16_t port = start_rpcbind(AF_INET, SOCK_STREAM);
	struct rpc_client_to to;
	struct got g;
	int fd;

	listen(sock, 5);
	to = to_host(IPPROTO_TCP);
	call(&ends[0], &to);
	fd = accept(sock, NULL, NULL);
	get_record(fd, &g);
	hold_client();
	put_record(fd, g.h.xid, port);
	send(fd, "more", 4, MSG_NOSIGNAL);
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(fd);
	sem_post(&ends[3].done);
	fd = accept(sock, NULL, NULL);
	get_record(fd, &g);
	ck_assert_uint_eq(g.h.prog, PROG);
	put_record(fd, g.h.xid, 7);
	ck_assert_int_eq(result(&ends[0]), 0);
	close(fd);
}
