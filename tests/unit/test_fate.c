/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a connection ended, and which side ended it: over TCP, and over RDMA on
 * the loop fabric and on iWARP in user space.
 */
#include "transport/fate.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>

#include "lib/log.h"
#include "lib/util.h"
#include "tests/unit/runner.h"
#include "tests/unit/stream_fixture.h"
#include "transport/fabric/iwarp/iwarp.h"
#include "tests/loop/loop.h"
#include "transport/rpcrdma/listen.h"
#include "transport/rpcrdma/requester.h"
#include "transport/rpcrdma/rpcrdma.h"
#include "transport/stream/tcp.h"

static void setup(void)
{
	log_threshold = LOG_LEVEL_ERR;
	fx_start(16);
}

/* Returns the fate of the connection whose call was kept, and drops the call's
 * hold on that connection. */
static struct xprt_fate *fate_of_kept(void)
{
	struct xprt_fate *f;

	EVENTUALLY(fx.kept);
	f = xprt_fate_get(fx.kept->fate);
	xprt_put(fx.kept);
	fx.kept = NULL;
	return f;
}

static bool has_ended(struct xprt_fate *f)
{
	bool over;

	mutex_lock(&f->lock);
	over = !f->xprt;
	mutex_unlock(&f->lock);
	return over;
}

static void ends(struct xprt_fate *f, enum xprt_end how)
{
	struct xprt_view v;

	EVENTUALLY(has_ended(f));
	xprt_fate_look(f, &v);
	ck_assert_int_eq(v.end, how);
	xprt_fate_put(f);
}

/* ---- TCP */

static void reset(int fd)
{
	struct linger now = { 1, 0 };

	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &now,
				    sizeof(now)), 0);
	close(fd);
}

/* A connection with one call answered. */
static struct xprt_fate *answered(const struct tcp_options *o, int *fd)
{
	struct xprt_fate *f;

	fx_listen(o);
	*fd = fx_connect();
	fx_send_call(*fd, 1, FX_KEEP, 0, FX_CALL_MIN);
	ck_assert_uint_eq(fx_recv_echo(*fd), 1);
	f = fate_of_kept();
	return f;
}

TEST_CASE(.setup = setup, .teardown = fx_stop);

TEST(a_peer_that_closes_ends_in_order)
{
	struct xprt_fate *f;
	int fd;

	f = answered(NULL, &fd);
	close(fd);
	ends(f, XPRT_ORDERLY);
}

TEST(a_peer_that_closes_its_side_and_reads_on_ends_in_order)
{
	struct xprt_fate *f;
	int fd;

	f = answered(NULL, &fd);
	fx_send_call(fd, 2, FX_HOLD, 0, FX_CALL_MIN);
	EVENTUALLY(fx_held() == 1);
	shutdown(fd, SHUT_WR);
	fx_settle();
	ck_assert(!has_ended(f));
	fx_release(true);
	ck_assert_uint_eq(fx_recv_echo(fd), 2);
	ends(f, XPRT_ORDERLY);
	close(fd);
}

/* Data that is sent to a closed peer is answered with a reset. */
TEST(a_peer_that_closes_before_its_replies_come_breaks)
{
	struct xprt_fate *f;
	int fd;

	f = answered(NULL, &fd);
	fx_send_call(fd, 2, FX_HOLD, 0, FX_CALL_MIN);
	fx_send_call(fd, 3, FX_HOLD, 0, FX_CALL_MIN);
	EVENTUALLY(fx_held() == 2);
	close(fd);
	fx_settle();
	fx_release(true);
	ends(f, XPRT_BROKEN);
}

TEST_LOOP(a_peer_that_resets_breaks, 0, 2)
{
	struct xprt_fate *f;
	int fd;

	f = answered(NULL, &fd);
	if (_i) {
		fx_send_call(fd, 2, FX_HOLD, 0, FX_CALL_MIN);
		EVENTUALLY(fx_held() == 1);
	}
	reset(fd);
	ends(f, XPRT_BROKEN);
	fx_release(true);
}

TEST(a_peer_with_replies_unread_breaks)
{
	struct xprt_fate *f;
	char byte;
	int fd;

	f = answered(NULL, &fd);
	fx_send_call(fd, 2, FX_ECHO, 0, FX_CALL_MIN);
	ck_assert_int_eq(recv(fd, &byte, 1, MSG_PEEK), 1);
	close(fd);
	ends(f, XPRT_BROKEN);
}

/* On the loop of the only connection, whose sweep alone reads it. */
static void lose_tcp_patience(void *arg)
{
	struct tcp_listener *l = container_of(arg, struct tcp_listener, base);

	l->o.idle_ms = 1;
}

/* When we close first, the peer's end is unknown: it can close in turn, reset,
 * or never say anything. */
TEST_LOOP(a_connection_that_we_close_breaks, 0, 6)
{
	struct tcp_options o = { .linger_ms = 200 };
	struct xprt_fate *f;
	int fd;

	f = answered(&o, &fd);
	if (_i % 2)
		loop_call(fx.loops[0], lose_tcp_patience, fx.l);
	else
		fx.l->ops->stop(fx.l);
	ck_assert(fx_ended(fd));
	switch (_i / 2) {
	case 0:			/* it lingers out */
		break;
	case 1:
		close(fd);
		break;
	default:
		reset(fd);
		break;
	}
	ends(f, XPRT_BROKEN);
	if (_i / 2 == 0)
		close(fd);
}

TEST_LOOP(a_connection_that_we_give_up_breaks, 0, 4)
{
	struct tcp_options o = { .stall_ms = 200 };
	struct xprt_fate *f;
	int fd;

	f = answered(&o, &fd);
	switch (_i) {
	case 0:
		fx_send(fd, "GET / HTTP/1.1\r\n\r\n", 18);
		break;
	case 1:
		fx_send_call(fd, 2, FX_REJECT, 0, FX_CALL_MIN);
		break;
	case 2:
		fx_send(fd, "\x80\0\0\x10half", 8);
		break;
	default:
		fx_unlisten();
		break;
	}
	ends(f, XPRT_BROKEN);
	close(fd);
}

/* ... whatever it does at the same time. */
TEST(a_peer_that_sends_garbage_and_closes_breaks)
{
	struct xprt_fate *f;
	int fd, one = 1;

	f = answered(NULL, &fd);
	setsockopt(fd, IPPROTO_TCP, TCP_CORK, &one, sizeof(one));
	fx_send(fd, "GET / HTTP/1.1\r\n\r\n", 18);
	close(fd);		/* in one segment */
	ends(f, XPRT_BROKEN);
}

/* ---- RDMA */

static struct fabric fabric;
static struct loop *client;
static sem_t connected, done;

static void connect_done(void *arg)
{
	sem_post(&connected);
}

static void request_done(struct rpcrdma_request *q)
{
	sem_post(&done);
}

static struct rpcrdma_requester *open_rdma(bool iwarp,
					   const struct rpcrdma_options *o,
					   struct xprt_fate **f)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct rpcrdma_requester_options ro = { .connected = connect_done };
	struct loop_fabric_options loop = { 0 };
	static struct rpcrdma_request q;
	static uint8_t call[4 + 64];
	struct rpcrdma_requester *r;

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	addr.sin_port = htons(iwarp ? 0 : 20049);
	ck_assert_int_eq(iwarp ? iwarp_fabric_create(NULL, &fabric) :
				 loop_fabric_create(&loop, &fabric), 0);
	ck_assert_int_eq(rpcrdma_listen(&fabric, &fx.env,
					(struct sockaddr *)&addr, o, &fx.l),
			 0);
	ck_assert_int_eq(loop_create("client", &client), 0);
	ck_assert_int_eq(loop_start(client), 0);
	sem_init(&connected, 0, 0);
	sem_init(&done, 0, 0);
	ck_assert_int_eq(rpcrdma_requester_create(&fabric,
			(struct sockaddr *)&fx.l->local, client, &ro, &r), 0);
	sem_wait(&connected);
	fx_call(call, 1, FX_KEEP, 0, FX_CALL_MIN);
	q.call = call + 4;
	q.call_len = FX_CALL_MIN;
	q.done = request_done;
	rpcrdma_requester_call(r, &q);
	sem_wait(&done);
	ck_assert_int_eq(q.status, 0);
	*f = fate_of_kept();
	return r;
}

static void close_rdma(bool iwarp, struct rpcrdma_requester *r)
{
	if (r)
		rpcrdma_requester_destroy(r);
	fx_unlisten();
	loop_stop(client);
	loop_destroy(client);
	if (iwarp)
		iwarp_fabric_destroy(&fabric);
	else
		loop_fabric_destroy(&fabric);
}

TEST_LOOP(over_rdma_a_peer_that_closes_ends_in_order, 0, 2)
{
	struct rpcrdma_requester *r;
	struct xprt_fate *f;

	r = open_rdma(_i, NULL, &f);
	rpcrdma_requester_destroy(r);
	ends(f, XPRT_ORDERLY);
	close_rdma(_i, NULL);
}

/* On the loop of the sweeps, the only ones to read it. */
static void lose_patience(void *arg)
{
	struct rpcrdma_listener *l = container_of(arg, struct rpcrdma_listener,
						  base);

	l->options.idle_ms = 1;
}

/* It is stopped, or idle: but not before the call has come. */
TEST_LOOP(over_rdma_a_connection_that_we_close_breaks, 0, 4)
{
	struct rpcrdma_options often = { .short_ms = 200 };
	struct rpcrdma_requester *r;
	struct xprt_fate *f;

	r = open_rdma(_i % 2, &often, &f);
	if (_i / 2)
		loop_call(fx.loops[0], lose_patience, fx.l);
	else
		fx.l->ops->stop(fx.l);
	ends(f, XPRT_BROKEN);
	close_rdma(_i % 2, r);
}

/* The end of the one connection that is connected to @local. */
static int socket_from(const struct sockaddr_storage *local)
{
	const struct sockaddr_in *at = (const void *)local;
	struct sockaddr_in own;

	for (int fd = 3; fd < 1000; fd++) {
		socklen_t len = sizeof(own);

		if (getpeername(fd, (struct sockaddr *)&own, &len) == 0 &&
		    own.sin_port == at->sin_port)
			return fd;
	}
	ck_abort_msg("no socket");
}

TEST(over_iwarp_a_peer_that_resets_breaks)
{
	const struct sockaddr nowhere = { .sa_family = AF_UNSPEC };
	struct rpcrdma_requester *r;
	struct xprt_fate *f;
	int fd;

	r = open_rdma(true, NULL, &f);
	fd = socket_from(&fx.l->local);
	ck_assert_int_eq(connect(fd, &nowhere, sizeof(nowhere)), 0);
	rpcrdma_requester_destroy(r);
	ends(f, XPRT_BROKEN);
	close_rdma(true, NULL);
}

/* The end comes in one segment with the bytes that are no FPDU. */
TEST(over_iwarp_a_peer_that_breaks_a_rule_breaks)
{
	struct rpcrdma_requester *r;
	struct xprt_fate *f;
	int fd, one = 1;

	r = open_rdma(true, NULL, &f);
	fd = socket_from(&fx.l->local);
	setsockopt(fd, IPPROTO_TCP, TCP_CORK, &one, sizeof(one));
	ck_assert_int_eq(send(fd, "\0\1garbage, and more", 20, 0), 20);
	shutdown(fd, SHUT_WR);
	ends(f, XPRT_BROKEN);
	close_rdma(true, r);
}

TEST(a_link_that_breaks_is_no_orderly_end)
{
	struct rpcrdma_requester *r;
	struct xprt_fate *f;

	r = open_rdma(false, NULL, &f);
	loop_fabric_break(&fabric);
	ends(f, XPRT_BROKEN);
	close_rdma(false, r);
}
