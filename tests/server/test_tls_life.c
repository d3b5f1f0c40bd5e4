/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection under TLS shares its poller, and how it ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/server/tls_rig.h"
#include "tests/unit/runner.h"
#include "transport/stream/tcp.h"
#include "wire/nfs3.h"

#define MIB		(1u << 20)
#define BURST		16

TEST_CASE(.setup = tls_rig_setup, .teardown = tls_rig_teardown);

static atomic_bool full;
static atomic_uint denied;

/* The server's, which OpenSSL calls: no room if a test says so. */
ssize_t send(int fd, const void *data, size_t len, int flags)
{
	if (atomic_load(&full) && flags & MSG_DONTWAIT) {
		atomic_fetch_add(&denied, 1);
		errno = EAGAIN;
		return -1;
	}
	return sendto(fd, data, len, flags, NULL, 0);
}

static atomic_bool deaf;

/* ... nothing comes if a test says so. */
ssize_t recv(int fd, void *data, size_t len, int flags)
{
	if (atomic_load(&deaf) && flags & MSG_DONTWAIT) {
		errno = EAGAIN;
		return -1;
	}
	return recvfrom(fd, data, len, flags, NULL, NULL);
}

static void create(struct tls_client *c, struct nfs3_fh *file)
{
	tls_client_begin(c, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_CREATE);
	xdr_put_opaque(&c->out, rig.top.data, rig.top.len);
	xdr_put_string(&c->out, "file");
	for (int i = 0; i < 7; i++)
		xdr_put_u32(&c->out, i == 3);	/* UNCHECKED, with a size */
	xdr_put_u32(&c->out, 0);
	tls_client_post(c);
	ck_assert_int_eq(tls_rig_status(c), NFS3_OK);
	ck_assert_uint_eq(xdr_get_u32(&c->in), 1);
	*file = harness_get_fh(&c->in);
}

static void write_mib(struct tls_client *c, const struct nfs3_fh *file)
{
	static uint8_t data[MIB];

	memset(data, 7, sizeof(data));
	tls_client_begin(c, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_WRITE);
	xdr_put_opaque(&c->out, file->data, file->len);
	xdr_put_u64(&c->out, 0);
	xdr_put_u32(&c->out, MIB);
	xdr_put_u32(&c->out, 0);
	xdr_put_opaque(&c->out, data, MIB);
	tls_client_post(c);
	ck_assert_int_eq(tls_rig_status(c), NFS3_OK);
}

/* READs of 1 MiB, all sent before the first reply is read. */
static void read_burst(struct tls_client *c, const struct nfs3_fh *file)
{
	for (int i = 0; i < BURST; i++) {
		tls_client_begin(c, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_READ);
		xdr_put_opaque(&c->out, file->data, file->len);
		xdr_put_u64(&c->out, 0);
		xdr_put_u32(&c->out, MIB);
		/* They come in any order. */
		c->xid = 77;
		*(uint32_t *)(void *)(c->buf + 4) = htonl(77);
		tls_client_post(c);
	}
	for (int i = 0; i < BURST; i++) {
		ck_assert_int_eq(tls_rig_status(c), NFS3_OK);
		ck_assert_uint_gt(c->in.end - c->in.p, MIB);
		ck_assert_int_eq(c->in.end[-1], 7);
	}
}

/* The client is fast enough at some time, whatever else the machine does. */
TEST(a_poller_leaves_a_fast_client_for_others)
{
	struct nfs3_fh file;
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	create(&c, &file);
	write_mib(&c, &file);
	EVENTUALLY((read_burst(&c, &file),
		    stats_sum_by_name("tls_turns") > 2));
	tls_client_close(&c);
}

/* RFC 8446 section 6.1. */
TEST(the_end_of_tls_waits_for_room)
{
	struct tls_client c;
	uint8_t b;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	atomic_store(&denied, 0);
	atomic_store(&full, true);
	rig.srv.tcp->ops->stop(rig.srv.tcp);
	EVENTUALLY(atomic_load(&denied) > 1);
	atomic_store(&full, false);
	ck_assert_int_le(SSL_read(c.ssl, &b, 1), 0);
	ck_assert_int_eq(SSL_get_shutdown(c.ssl), SSL_RECEIVED_SHUTDOWN);
	tls_client_close(&c);
}

/* Answers to KeyUpdates that find no room hold the receiver. */
TEST(a_client_that_takes_no_answers_is_served_when_it_does)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	atomic_store(&denied, 0);
	atomic_store(&full, true);
	for (int i = 0; i < 3; i++) {
		ck_assert(SSL_key_update(c.ssl, SSL_KEY_UPDATE_REQUESTED));
		ck_assert_int_eq(SSL_do_handshake(c.ssl), 1);
	}
	tls_rig_post(&c);
	EVENTUALLY(atomic_load(&denied) > 1);
	atomic_store(&full, false);
	ck_assert_int_eq(tls_rig_status(&c), NFS3_OK);
	tls_client_close(&c);
}

TEST(a_connection_ends_before_its_key_is_worn)
{
	const struct tcp_tls limits = { .max_records = 20 };
	struct tls_client c;
	uint8_t b;

	tls_rig_start(&limits, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	for (int i = 0; i < 19; i++)
		ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	ck_assert_uint_eq(stats_sum_by_name("tls_worn"), 0);
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	ck_assert_int_le(SSL_read(c.ssl, &b, 1), 0);
	ck_assert_int_eq(SSL_get_shutdown(c.ssl), SSL_RECEIVED_SHUTDOWN);
	ck_assert_uint_eq(stats_sum_by_name("tls_worn"), 1);
	tls_client_close(&c);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	tls_client_close(&c);
}

/* ---- what the reply cache is told */

static struct xprt_view seen;

/* On the loop's thread. */
static void look_at_conns(void *arg)
{
	struct tcp_poller *p = arg;
	struct tcp_conn *conn;

	cds_list_for_each_entry(conn, &p->conns, link)
		conn->xprt.ops->look(&conn->xprt, &seen);
}

/* Of the only connection. */
static enum xprt_end end_of_conn(void)
{
	struct tcp_listener *l = container_of(rig.srv.tcp, struct tcp_listener,
					      base);

	seen = (struct xprt_view){ .end = XPRT_ALIVE };
	for (unsigned i = 0; i < l->env.nloops; i++)
		loop_call(l->pollers[i].loop, look_at_conns, &l->pollers[i]);
	return seen.end;
}

/* Any host on the way can send the end of TCP: also before the server has read
 * it, it does not show that the client had its replies. */
TEST(an_end_of_tcp_alone_is_not_in_order)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	ck_assert_int_eq(end_of_conn(), XPRT_ALIVE);
	atomic_store(&deaf, true);
	shutdown(c.fd, SHUT_WR);
	EVENTUALLY(end_of_conn() != XPRT_ALIVE);
	ck_assert_int_eq(seen.end, XPRT_BROKEN);
	atomic_store(&deaf, false);
	tls_client_close(&c);
}

/* Takes all bytes that the socket of @c has; returns their number. */
static uint64_t drain(struct tls_client *c)
{
	uint8_t b[4096];
	uint64_t n = 0;
	ssize_t did;

	while ((did = recvfrom(c->fd, b, sizeof(b), MSG_DONTWAIT, NULL,
			       NULL)) > 0)
		n += (uint64_t)did;
	return n;
}

TEST(no_byte_counts_as_acknowledged_before_its_record)
{
	static const size_t lens[] = { 1, 1, 500, 1, 16384, 1, 1, 16000, 3 };
	enum { CLEAR = 36, N = ARRAY_SIZE(lens) };
	/* Positions where the records end. */
	uint64_t wire[N + 1], plain[N + 1] = { CLEAR }, at;
	static uint8_t data[TLS_RECORD_MAX];
	struct tls_client c;
	struct tls_conn *conn;
	uint8_t b;
	int fd, i = 0;

	tls_rig_start(NULL, true);
	conn = tls_rig_pair(&c, &fd, CLEAR);
	wire[0] = CLEAR + BIO_number_read(SSL_get_rbio(c.ssl));
	for (; i < N; i++) {
		size_t done = 0;

		/* The answer takes bytes, too. */
		if (i % 3 == 1) {
			struct iovec one = { &b, 1 };

			ck_assert(SSL_key_update(c.ssl,
						 SSL_KEY_UPDATE_REQUESTED));
			ck_assert_int_eq(SSL_do_handshake(c.ssl), 1);
			ck_assert_int_eq(tls_recv(conn, &one, 1), -EAGAIN);
		}
		wire[i + 1] = wire[i];
		plain[i + 1] = plain[i] + lens[i];
		while (done < lens[i]) {
			ssize_t n = tls_send(conn, &(struct iovec){
					     data + done, lens[i] - done }, 1,
					     SIZE_MAX, false);

			wire[i + 1] += drain(&c);
			if (n > 0)
				done += (size_t)n;
			/* A record that was not sent whole. */
			ck_assert_uint_le(tls_acked(conn, wire[i + 1]),
					  plain[i] + done);
		}
	}
	ck_assert_uint_eq(tls_acked(conn, wire[N]), plain[N]);
	for (i = 0, at = 0; at <= wire[N]; at++) {
		if (i < N && at == wire[i + 1])
			i++;
		ck_assert_uint_le(tls_acked(conn, at),
				  i || at >= wire[0] ? plain[i] : at);
	}
	tls_conn_destroy(conn);
	tls_client_close(&c);
	close(fd);
}
