/* SPDX-License-Identifier: BSD-2-Clause */
/* Outgoing calls without an answer, which need none, or are not sent again. */
#include "rpc/client.h"

#include <netinet/in.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"
#include "wire/header.h"

#define CALLS	40u

static struct rpc_client *client;
static struct rpc_client_to to;
static int sock;
static sem_t sent;

static void start(int type)
{
	struct rpc_client_config config = { .max_calls = 4,
					    .max_host_calls = 4 };
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t len = sizeof(at);

	sock = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(bind(sock, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(getsockname(sock, (struct sockaddr *)&at, &len), 0);
	to = (struct rpc_client_to){
		.proto = type == SOCK_DGRAM ? IPPROTO_UDP : IPPROTO_TCP,
		.prog = 100021, .vers = 4, .proc = 12, .one_way = true,
		.timeout_ms = 60000,
	};
	memcpy(&to.addr, &at, sizeof(at));
	config.rpcbind_port = ntohs(at.sin_port);
	sem_init(&sent, 0, 0);
	ck_assert_int_eq(rpc_client_create(&config, &client), 0);
}

static void stop(void)
{
	rpc_client_destroy(client);
	close(sock);
}

static void done(void *arg, int err, struct xdr_in *results)
{
	ck_assert_int_eq(err, 0);
	ck_assert_ptr_null(results);
	sem_post(&sent);
}

/* More calls than places, one after the other. */
static void make_calls(void)
{
	for (uint32_t i = 0; i < CALLS; i++) {
		ck_assert_int_eq(rpc_client_call(client, &to, &i, sizeof(i),
						 done, NULL), 0);
		wait_sem(&sent);
	}
}

static void check_call(const uint8_t *data, size_t len, uint32_t number)
{
	struct rpc_header h;
	struct xdr_in x;

	xdr_in_init(&x, data, len);
	ck_assert_int_eq(rpc_header_decode(&x, &h), RPC_HEADER_CALL);
	ck_assert_uint_eq(h.proc, 12);
	ck_assert_uint_eq(xdr_get_u32(&x), ntohl(number));
}

static void start_udp(void)
{
	start(SOCK_DGRAM);
}

static void start_tcp(void)
{
	start(SOCK_STREAM);
	ck_assert_int_eq(listen(sock, 1), 0);
}

TEST_CASE(.setup = start_udp, .teardown = stop);

TEST(one_way_calls_over_udp_are_over_when_they_were_sent)
{
	uint8_t data[512];
	ssize_t n;

	make_calls();
	for (uint32_t i = 0; i < CALLS; i++) {
		n = recv(sock, data, sizeof(data), 0);
		ck_assert_int_gt(n, 0);
		check_call(data, (size_t)n, i);
	}
	ck_assert_int_eq(recv(sock, data, sizeof(data), MSG_DONTWAIT), -1);
}

static void note_end(void *arg, int err, struct xdr_in *results)
{
	int *end = arg;

	*end = err;
	sem_post(&sent);
}

/* Returns how a call to @port ends that is sent once. */
static int call_once(in_port_t port, uint32_t timeout_ms)
{
	int end;

	to.one_way = false;
	to.once = true;
	to.timeout_ms = timeout_ms;
	((struct sockaddr_in *)&to.addr)->sin_port = port;
	ck_assert_int_eq(rpc_client_call(client, &to, NULL, 0, note_end, &end),
			 0);
	wait_sem(&sent);
	return end;
}

/* The lock manager takes a refusal for that of the lock if no call-back has
 * come before. */
TEST(a_call_that_is_sent_once_says_whether_it_may_have_come)
{
	struct sockaddr_in at = *(struct sockaddr_in *)&to.addr;

	/* There is an rpcbind, which does not answer. */
	ck_assert_int_eq(call_once(0, 100), -EHOSTUNREACH);
	/* The socket takes datagrams from itself alone.  The kernel refuses the
	 * call's, as a firewall could refuse an earlier one. */
	ck_assert_int_eq(connect(sock, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(call_once(at.sin_port, 60000), -ECONNRESET);
}

TEST_CASE(.setup = start_tcp, .teardown = stop);

TEST(one_way_calls_over_tcp_are_over_when_they_were_sent)
{
	uint8_t data[512];
	int fd;

	make_calls();
	fd = accept(sock, NULL, NULL);
	for (uint32_t i = 0; i < CALLS; i++)
		check_call(data, record_receive(fd, data, sizeof(data)), i);
	close(fd);
}
