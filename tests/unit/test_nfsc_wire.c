/* SPDX-License-Identifier: BSD-2-Clause */
/* gannet-nfs over TCP: records, and calls that are sent again. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tools/nfs/nfs.h"
#include "lib/util.h"
#include "lib/xdr.h"
#include "tests/server/record_stream.h"
#include "tests/unit/runner.h"

enum { MAX_CALLS = 8, DATA_MAX = 300000, RESULTS = 24 + 8 + 12 };

struct call {
	uint32_t xid, procedure, count;
};

/*
 * A server that takes the NULL of each connection, and @batch READs, and
 * answers the last of them first, in fragments and writes of the lengths here.
 */
static struct server {
	int	  listener;
	uint16_t  port;
	pthread_t thread;
	unsigned  batch;
	size_t	  fragment, piece;
	unsigned  spoil;	/* connections whose first reply is no record */
	uint32_t  spoilt;	/* the mark that comes instead */
	unsigned  mute;		/* connections whose calls have no reply */

	struct call seen[MAX_CALLS];
	unsigned  nseen, connections;
} srv;

static uint8_t record[RESULTS + DATA_MAX + 4];
static uint8_t data[MAX_CALLS][DATA_MAX];

/* 0: the connection has ended. */
static bool take_call(int fd, struct call *call)
{
	struct rpc_header h;
	uint8_t bytes[1024];
	struct xdr_in x;

	xdr_in_init(&x, bytes, record_receive(fd, bytes, sizeof(bytes)));
	if (rpc_header_decode(&x, &h) != RPC_HEADER_CALL)
		return false;
	call->xid = h.xid;
	call->procedure = h.proc;
	if (call->procedure != 0) {
		xdr_get_opaque(&x, NFS3_FHSIZE);
		xdr_get_u64(&x);
		call->count = xdr_get_u32(&x);
	}
	return xdr_ok(&x);
}

static void send_piecewise(int fd, const uint8_t *p, size_t len)
{
	for (size_t n; len > 0; p += n, len -= n) {
		n = MIN(len, srv.piece);
		if (send(fd, p, n, MSG_NOSIGNAL) != (ssize_t)n)
			return;
	}
}

static void send_record(int fd, const uint8_t *p, size_t len)
{
	do {
		size_t n = MIN(len, srv.fragment);
		uint8_t mark[RECORD_MARK_SIZE];

		record_put_mark(mark, n);
		if (n < len)
			mark[0] = 0;	/* more follow */
		send_piecewise(fd, mark, sizeof(mark));
		send_piecewise(fd, p, n);
		p += n;
		len -= n;
	} while (len > 0);
}

static void answer(int fd, const struct call *call)
{
	struct xdr_out x;

	xdr_out_init(&x, record, sizeof(record));
	rpc_header_accepted(&x, call->xid, RPC_SUCCESS);
	if (call->procedure != 0) {
		xdr_put_u32(&x, 0);
		xdr_put_bool(&x, false);
		xdr_put_u32(&x, call->count);
		xdr_put_bool(&x, true);
		xdr_put_u32(&x, call->count);
		memset(xdr_reserve(&x, (call->count + 3) & ~3u),
		       (int)call->count & 0xff, call->count);
	}
	send_record(fd, record, xdr_out_len(&x));
}

static void serve(int fd)
{
	unsigned first = srv.nseen;
	struct call null;

	if (!take_call(fd, &null))
		return;
	answer(fd, &null);
	while (srv.nseen - first < srv.batch &&
	       take_call(fd, &srv.seen[srv.nseen]))
		srv.nseen++;
	if (srv.connections < srv.mute) {
		srv.connections++;
	} else if (srv.connections++ < srv.spoil) {
		srv.spoilt = htonl(srv.spoilt);
		send_piecewise(fd, (const uint8_t *)&srv.spoilt, 4);
	} else {
		for (unsigned i = srv.nseen; i-- > first; )
			answer(fd, &srv.seen[i]);
	}
	take_call(fd, &null);			/* until the client closes */
}

static void *run(void *arg)
{
	int fd;

	while ((fd = accept(srv.listener, NULL, NULL)) >= 0) {
		serve(fd);
		close(fd);
	}
	return NULL;
}

static struct nfsc_session *s;
static struct nfsc_op ops[MAX_CALLS];

static void start(unsigned batch, size_t fragment, size_t piece)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct nfsc_config c = { .depth = batch, .retries = 3 };
	struct nfsc_url url = { .transport = NFS_TCP, .host = "127.0.0.1" };
	socklen_t len = sizeof(at);

	srv.batch = batch;
	srv.fragment = fragment;
	srv.piece = piece;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	srv.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(srv.listener, (struct sockaddr *)&at, len), 0);
	ck_assert_int_eq(listen(srv.listener, 5), 0);
	getsockname(srv.listener, (struct sockaddr *)&at, &len);
	url.port = ntohs(at.sin_port);
	pthread_create(&srv.thread, NULL, run, NULL);
	ck_assert_int_eq(nfsc_session_open(&url, &c, &s), 0);
}

static void stop(void)
{
	session_close(s);
	shutdown(srv.listener, SHUT_RDWR);
	pthread_join(srv.thread, NULL);
	close(srv.listener);
}

/* The host "several" has 127.0.0.2 and 127.0.0.1; others are addresses. */
int getaddrinfo(const char *host, const char *port,
		const struct addrinfo *hints, struct addrinfo **out)
{
	static const char *const both[] = { "127.0.0.1", "127.0.0.2" };
	unsigned n = strcmp(host, "several") == 0 ? 2 : 1;

	(void)hints;
	*out = NULL;
	for (unsigned i = 0; i < n; i++) {
		struct addrinfo *ai = calloc(1, sizeof(*ai));
		struct sockaddr_in *in = calloc(1, sizeof(*in));

		in->sin_family = AF_INET;
		in->sin_port = htons((uint16_t)(port ? atoi(port) : 0));
		ck_assert_int_eq(inet_pton(AF_INET, n == 2 ? both[i] : host,
					   &in->sin_addr), 1);
		ai->ai_family = AF_INET;
		ai->ai_addr = (struct sockaddr *)in;
		ai->ai_addrlen = sizeof(*in);
		ai->ai_next = *out;
		*out = ai;
	}
	return 0;
}

void freeaddrinfo(struct addrinfo *ai)
{
	struct addrinfo *next;

	for (; ai; ai = next) {
		next = ai->ai_next;
		free(ai->ai_addr);
		free(ai);
	}
}

/* Each READ has another length, and its bytes have that value. */
static void read_all(unsigned n, uint32_t count)
{
	for (unsigned i = 0; i < n; i++) {
		ops[i] = (struct nfsc_op){
			.kind = NFS_OP_READ, .fh = { .len = 4 },
			.count = count + i, .data = data[i],
		};
		ck_assert_int_eq(session_submit(s, &ops[i]), 0);
	}
	for (unsigned i = 0; i < n; i++) {
		struct nfsc_op *op = session_wait(s);
		const uint8_t *p = op->data;
		uint32_t k = 0;

		ck_assert_int_eq(op->err, 0);
		ck_assert_uint_eq(op->got, op->count);
		/* Each assertion writes to a file: one for all bytes. */
		while (k < op->got && p[k] == (op->count & 0xff))
			k++;
		ck_assert_uint_eq(k, op->got);
	}
}

static const struct {
	size_t	 fragment, piece;
	uint32_t count;
} cuts[] = {
	{ DATA_MAX * 2, DATA_MAX * 2, 1 },
	{ DATA_MAX * 2, DATA_MAX * 2, 290000 },
	{ DATA_MAX * 2, 3, 9000 },
	{ DATA_MAX * 2, 8191, 200000 },
	{ 4, 1, 501 },
	{ 8192, 5000, 100000 },
	{ 60000, 70000, 290001 },
	{ 9001, 9005, 100003 },
};

TEST_LOOP(replies_come_in_any_order_however_they_are_cut, 0, ARRAY_SIZE(cuts))
{
	start(4, cuts[_i].fragment, cuts[_i].piece);
	read_all(4, cuts[_i].count);
	stop();
}

/* Longer than any reply; a fragment without an end; no reply to a call. */
static const uint32_t spoilt[] = { 0xffffffffu, 0x7fffffffu, 0x80000000u };

TEST_LOOP(calls_keep_their_xids_when_a_connection_is_given_up,
	  0, ARRAY_SIZE(spoilt))
{
	srv.spoil = 1;
	srv.spoilt = spoilt[_i];
	start(4, 10000, 10000);
	read_all(4, 1000);
	stop();
	ck_assert_uint_eq(srv.connections, 2);
	ck_assert_uint_eq(srv.nseen, 8);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_uint_eq(srv.seen[i].xid, srv.seen[4 + i].xid);
		ck_assert_uint_eq(srv.seen[i].count, 1000 + i);
		ck_assert_uint_eq(srv.seen[4 + i].count, 1000 + i);
	}
}

TEST(a_server_is_dialled_as_often_as_was_asked)
{
	srv.spoil = 100;
	srv.spoilt = 0xffffffffu;
	start(1, 10000, 10000);
	ops[0] = (struct nfsc_op){ .kind = NFS_OP_READ, .fh = { .len = 4 },
				   .count = 1, .data = data[0] };
	ck_assert_int_eq(session_submit(s, &ops[0]), 0);
	ck_assert_ptr_eq(session_wait(s), &ops[0]);
	/* This is the reason: the server has reset no connection. */
	ck_assert_int_eq(ops[0].err, -EBADMSG);
	stop();
	ck_assert_uint_eq(srv.connections, 1 + 3);
}

/* The default of a minute would be the test's duration. */
TEST(a_caller_that_has_waited_has_the_session_wait_no_longer)
{
	srv.mute = 1;
	start(1, 10000, 10000);
	ops[0] = (struct nfsc_op){ .kind = NFS_OP_READ, .fh = { .len = 4 },
				   .count = 1, .data = data[0] };
	ck_assert_int_eq(session_submit(s, &ops[0]), 0);
	ck_assert_ptr_null(session_look(s));
	session_redial(s);
	ck_assert_ptr_eq(session_wait(s), &ops[0]);
	ck_assert_int_eq(ops[0].err, 0);
	stop();
	ck_assert_uint_eq(srv.connections, 2);
}

/* Takes one connection, and sends bytes that are no record. */
static void *say_hello(void *arg)
{
	static const char hello[] = "220 mail.example.org ESMTP\r\n";
	int listener = *(int *)arg, fd = accept(listener, NULL, NULL);
	char byte;

	send(fd, hello, strlen(hello), MSG_NOSIGNAL);
	while (recv(fd, &byte, 1, 0) > 0)
		;
	close(fd);
	return NULL;
}

TEST(an_address_of_another_service_is_skipped)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct nfsc_url url = { .transport = NFS_TCP, .host = "several" };
	struct nfsc_config c = { .depth = 4, .retries = 3 };
	struct nfsc_session *other;
	socklen_t len = sizeof(at);
	pthread_t thread;
	int listener;

	start(4, 10000, 10000);
	read_all(4, 1000);
	session_close(s);
	getsockname(srv.listener, (struct sockaddr *)&at, &len);
	url.port = ntohs(at.sin_port);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1);
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&at, len), 0);
	ck_assert_int_eq(listen(listener, 5), 0);
	pthread_create(&thread, NULL, say_hello, &listener);
	ck_assert_int_eq(nfsc_session_open(&url, &c, &other), 0);
	pthread_join(thread, NULL);
	close(listener);
	s = other;
	read_all(4, 1000);
	stop();
}
