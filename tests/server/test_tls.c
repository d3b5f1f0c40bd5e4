/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC-with-TLS over TCP (RFC 9289): its way in, its data, peers that lie. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/server/tls_rig.h"
#include "tests/unit/runner.h"
#include "wire/nfs3.h"

#define MIB		(1u << 20)
#define AUTH_BADCRED	(-EACCES)	/* as rpc_header_reply() tells it */

static struct nfs3_fh file;
static uint8_t *data;

static void setup(void)
{
	tls_rig_setup();
	data = malloc(MIB);
	for (size_t i = 0; i < MIB; i++)
		data[i] = (uint8_t)(i * 7 + (i >> 9));
}

static void teardown(void)
{
	tls_rig_teardown();
	free(data);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* ---- calls of NFS */

static void begin(struct tls_client *c, uint32_t proc)
{
	tls_client_begin(c, NFS3_PROGRAM, NFS3_VERSION, proc);
}

static void put_fh(struct tls_client *c, const struct nfs3_fh *fh)
{
	xdr_put_opaque(&c->out, fh->data, fh->len);
}

static void create(struct tls_client *c)
{
	begin(c, NFSPROC3_CREATE);
	put_fh(c, &rig.top);
	xdr_put_string(&c->out, "file");
	for (int i = 0; i < 7; i++)
		xdr_put_u32(&c->out, 0);	/* UNCHECKED, no attributes */
	tls_client_post(c);
	ck_assert_int_eq(tls_rig_status(c), NFS3_OK);
	ck_assert_uint_eq(xdr_get_u32(&c->in), 1);
	file = harness_get_fh(&c->in);
}

static void write_at(struct tls_client *c, uint64_t offset, uint32_t len)
{
	begin(c, NFSPROC3_WRITE);
	put_fh(c, &file);
	xdr_put_u64(&c->out, offset);
	xdr_put_u32(&c->out, len);
	xdr_put_u32(&c->out, 0);		/* UNSTABLE */
	xdr_put_opaque(&c->out, data, len);
	tls_client_post(c);
	ck_assert_int_eq(tls_rig_status(c), NFS3_OK);
}

/* Reads and compares. */
static void read_at(struct tls_client *c, uint64_t offset, uint32_t len)
{
	struct xdr_view got;

	begin(c, NFSPROC3_READ);
	put_fh(c, &file);
	xdr_put_u64(&c->out, offset);
	xdr_put_u32(&c->out, len);
	tls_client_post(c);
	ck_assert_int_eq(tls_rig_status(c), NFS3_OK);
	ck_assert_uint_eq(xdr_get_u32(&c->in), 1);
	for (int i = 0; i < 21; i++)
		xdr_get_u32(&c->in);		/* attributes */
	ck_assert_uint_eq(xdr_get_u32(&c->in), len);
	xdr_get_u32(&c->in);			/* eof */
	got = xdr_get_opaque(&c->in, MIB);
	ck_assert_uint_eq(got.len, len);
	ck_assert_mem_eq(got.data, data, len);
}

/* ---- an honest client */

TEST(calls_of_all_sizes_go_over_tls)
{
	static const uint32_t lens[] = { 1, 1000, 4096, 16383, 16384, 16385,
					 65536, 200001, MIB };
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	create(&c);
	for (unsigned i = 0; i < ARRAY_SIZE(lens); i++) {
		write_at(&c, 0, lens[i]);
		read_at(&c, 0, lens[i]);
	}
	ck_assert_uint_eq(stats_sum_by_name("tls_begun"), 1);
	tls_client_close(&c);
}

TEST(many_calls_at_once_go_over_tls)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	create(&c);
	write_at(&c, 0, MIB);
	/* Replies of 100 MiB: the socket is full again and again. */
	for (int i = 0; i < 100; i++) {
		begin(&c, NFSPROC3_READ);
		put_fh(&c, &file);
		xdr_put_u64(&c.out, 0);
		xdr_put_u32(&c.out, MIB);
		c.xid = 77;
		*(uint32_t *)(void *)(c.buf + 4) = htonl(77);
		tls_client_post(&c);
	}
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(tls_rig_status(&c), NFS3_OK);
	read_at(&c, 0, MIB);
	tls_client_close(&c);
}

TEST(records_of_a_byte_are_taken)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	create(&c);
	c.record = 1;
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	write_at(&c, 0, 5000);
	c.record = 0;
	read_at(&c, 0, 5000);
	tls_client_close(&c);
}

TEST(keys_are_changed_in_between)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	create(&c);
	for (int i = 0; i < 10; i++) {
		ck_assert(SSL_key_update(c.ssl, i % 2 ?
					 SSL_KEY_UPDATE_REQUESTED :
					 SSL_KEY_UPDATE_NOT_REQUESTED));
		write_at(&c, 0, 100000);
		read_at(&c, 0, 100000);
	}
	tls_client_close(&c);
}

TEST(answers_that_are_not_taken_hold_the_receiver)
{
	char got[8], text[] = "hello";
	const struct iovec iov = { got, sizeof(got) };
	struct tls_client c;
	struct tls_conn *conn;
	ssize_t n = -EAGAIN;
	int fd;

	tls_rig_start(NULL, true);
	conn = tls_rig_pair(&c, &fd, 0);
	while (n == -EAGAIN) {
		ck_assert(SSL_key_update(c.ssl, SSL_KEY_UPDATE_REQUESTED));
		ck_assert_int_eq(SSL_do_handshake(c.ssl), 1);
		n = tls_recv(conn, &iov, 1);
	}
	ck_assert_int_eq(n, -EBUSY);
	ck_assert_int_eq(tls_recv(conn, &iov, 1), -EBUSY);
	ck_assert_int_eq(SSL_write(c.ssl, text, sizeof(text)), sizeof(text));
	/* The client takes them. */
	for (int i = 0; i < 100000 && n < 0; i++) {
		ck_assert_int_eq(SSL_read(c.ssl, got, 1), -1);
		n = tls_recv(conn, &iov, 1);
	}
	ck_assert_int_eq(n, sizeof(text));
	ck_assert_mem_eq(got, text, sizeof(text));
	tls_conn_destroy(conn);
	tls_client_close(&c);
	close(fd);
}

/* OpenSSL answers a KeyUpdate by the time of the next one. */
TEST(a_record_that_was_begun_is_sent_before_keys_change)
{
	static uint8_t record[TLS_RECORD_MAX];
	const struct iovec from = { record, sizeof(record) };
	char got[8];
	const struct iovec iov = { got, sizeof(got) };
	struct tls_client c;
	struct tls_conn *conn;
	ssize_t n = -EBUSY;
	int fd;

	tls_rig_start(NULL, true);
	conn = tls_rig_pair(&c, &fd, 0);
	while (tls_send(conn, &from, 1, SIZE_MAX, false) > 0)
		;
	for (int i = 0; i < 3; i++) {
		ck_assert(SSL_key_update(c.ssl, SSL_KEY_UPDATE_REQUESTED));
		ck_assert_int_eq(SSL_do_handshake(c.ssl), 1);
	}
	ck_assert_int_eq(SSL_write(c.ssl, "hello", 6), 6);
	ck_assert_int_eq(tls_recv(conn, &iov, 1), -EAGAIN);
	ck_assert_int_eq(tls_recv(conn, &iov, 1), n);
	for (int i = 0; i < 100000 && n < 0; i++) {
		SSL_read(c.ssl, record, sizeof(record));
		tls_send(conn, &from, 1, SIZE_MAX, false);
		n = tls_recv(conn, &iov, 1);
	}
	ck_assert_int_eq(n, 6);
	tls_conn_destroy(conn);
	tls_client_close(&c);
	close(fd);
}

TEST(a_record_that_was_begun_is_received_to_its_end)
{
	static const size_t want[] = { 4, 100, 100 }, lens[] = { 4, 6, 10 };
	uint8_t got[100];
	struct tls_client c;
	struct tls_conn *conn;
	int fd;

	tls_rig_start(NULL, true);
	conn = tls_rig_pair(&c, &fd, 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(SSL_write(c.ssl, data, 10), 10);
	for (unsigned i = 0; i < ARRAY_SIZE(want); i++) {
		const struct iovec iov = { got, want[i] };

		ck_assert_int_eq(tls_recv(conn, &iov, 1), lens[i]);
		ck_assert_int_eq(tls_pending(conn), i == 0);
	}
	tls_conn_destroy(conn);
	tls_client_close(&c);
	close(fd);
}

/* Nor can data come early: those are sent with a resumption. */
TEST(no_session_can_be_resumed)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	ck_assert(!SSL_SESSION_is_resumable(SSL_get0_session(c.ssl)));
	tls_client_close(&c);
}

TEST(the_clients_end_of_tls_ends_the_connection)
{
	uint64_t cut = stats_sum_by_name("tls_cut");
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	tls_rig_post(&c);
	/* The reply to the call before still comes. */
	SSL_shutdown(c.ssl);
	ck_assert_int_eq(tls_rig_status(&c), NFS3_OK);
	ck_assert_int_eq(SSL_read(c.ssl, c.buf, 1), 0);
	ck_assert_int_eq(SSL_get_shutdown(c.ssl) & SSL_RECEIVED_SHUTDOWN,
			 SSL_RECEIVED_SHUTDOWN);
	EVENTUALLY(xprt_gate_count(rig.srv.tcp->gate) == 0);
	tls_client_close(&c);
	ck_assert_uint_eq(stats_sum_by_name("tls_cut"), cut);
}

TEST(an_end_without_a_word_is_noticed)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	shutdown(c.fd, SHUT_WR);
	ck_assert(tls_client_is_left(&c));
	EVENTUALLY(stats_sum_by_name("tls_cut") == 1);
	tls_client_close(&c);
}

/* ---- the way in */

static int ask_again(struct tls_client *c)
{
	const struct rpc_header h = { .xid = ++c->xid, .prog = NFS3_PROGRAM,
				      .vers = NFS3_VERSION, .flavor = 7 };

	xdr_out_init(&c->out, c->buf, TLS_CLIENT_BUF);
	xdr_reserve(&c->out, 4);
	rpc_header_call_signed(&c->out, &h);
	rpc_auth_put(&c->out, RPC_AUTH_NONE, (struct xdr_view){ NULL, 0 });
	return tls_client_call(c);
}

TEST(starttls_inside_tls_is_refused)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	ck_assert_int_eq(ask_again(&c), AUTH_BADCRED);
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	/* Also when new connections get none. */
	tls_server_use(rig.srv.tls, NULL);
	ck_assert_int_eq(ask_again(&c), AUTH_BADCRED);
	tls_client_close(&c);
}

TEST(starttls_behind_other_calls_is_refused)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	tls_client_open(&c, rig.srv.port);
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	ck_assert(!tls_client_probe(&c));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	tls_client_close(&c);
}

TEST(a_server_without_tls_says_so)
{
	struct tls_client c;

	harness_start(&rig.srv, NULL);
	harness_root(&rig.srv, "/mem", &rig.top);
	tls_client_open(&c, rig.srv.port);
	ck_assert(!tls_client_probe(&c));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	tls_client_close(&c);
}

/* The connection ends, and @counter counts it. */
static void expect_end(struct tls_client *c, const char *counter)
{
	ck_assert(tls_client_is_left(c));
	EVENTUALLY(stats_sum_by_name(counter) == 1);
	EVENTUALLY(xprt_gate_count(rig.srv.tcp->gate) == 0);
	tls_client_close(c);
}

TEST(other_versions_are_refused)
{
	const struct tls_client_config config = { .version = TLS1_2_VERSION };
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(!tls_client_start(&c, rig.srv.port, &config));
	expect_end(&c, "tls_failed");
}

TEST(an_exchange_of_keys_that_computes_for_long_is_refused)
{
	const struct tls_client_config config = { .groups = "ffdhe2048" };
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(!tls_client_start(&c, rig.srv.port, &config));
	expect_end(&c, "tls_failed");
}

TEST(other_protocols_are_refused)
{
	const struct tls_client_config config = { .alpn = "http/1.1" };
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(!tls_client_start(&c, rig.srv.port, &config));
	expect_end(&c, "tls_failed");
}

/* As Linux's tlshd. */
TEST(a_client_that_names_no_protocol_is_served)
{
	const struct tls_client_config config = { .alpn = "" };
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, &config));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	tls_client_close(&c);
}

TEST(a_call_in_clear_behind_starttls_ends_the_connection)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	tls_client_open(&c, rig.srv.port);
	ck_assert(tls_client_probe(&c));
	tls_rig_post(&c);
	ck_assert_int_eq(tls_rig_status(&c), -ENOTCONN);
	expect_end(&c, "tls_plain");
}

TEST(bytes_together_with_auth_tls_end_the_connection)
{
	static const size_t pieces[] = { 1, 1000 };

	tls_rig_start(NULL, true);
	for (unsigned i = 0; i < ARRAY_SIZE(pieces); i++) {
		struct tls_client c;
		uint8_t wire[400] = { 0x80, 0, 0, 40, 0, 0, 0, 1 };
		size_t len = 44 + 200;

		/* NULL of NFS, with AUTH_TLS, and the first byte of a
		 * ClientHello. */
		memcpy(wire + 12, "\0\0\0\2\0\1\206\243\0\0\0\3\0\0\0\0"
		       "\0\0\0\7", 20);
		wire[44] = 22;
		tls_client_open(&c, rig.srv.port);
		for (size_t at = 0; at < len; at += pieces[i])
			send(c.fd, wire + at, MIN(pieces[i], len - at),
			     MSG_NOSIGNAL);
		ck_assert(tls_client_is_left(&c));
		tls_client_close(&c);
	}
	/* Byte by byte they can come in time, and are a bad handshake. */
	EVENTUALLY(stats_sum_by_name("tls_plain") +
		   stats_sum_by_name("tls_failed") == 2);
	ck_assert_uint_ge(stats_sum_by_name("tls_plain"), 1);
}

TEST(bytes_in_clear_inside_tls_end_the_connection)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	send(c.fd, data, 1000, MSG_NOSIGNAL);
	expect_end(&c, "tls_bad_records");
}

TEST(a_record_with_a_wrong_bit_ends_the_connection)
{
	struct tls_client c;
	uint8_t bad[100] = { 23, 3, 3, 0, 95 };

	tls_rig_start(NULL, true);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	send(c.fd, bad, sizeof(bad), MSG_NOSIGNAL);
	expect_end(&c, "tls_bad_records");
}

/* ---- handshakes */

TEST(a_silent_handshake_ends)
{
	const struct tcp_tls limits = { .handshake_ms = 200 };
	struct tls_client c;

	tls_rig_start(&limits, true);
	tls_client_open(&c, rig.srv.port);
	/* A busy machine may need so long for the reply alone. */
	if (tls_client_probe(&c))
		send(c.fd, "\26\3\1\2", 4, MSG_NOSIGNAL);
	expect_end(&c, "tls_slow");
}

TEST(handshakes_of_a_client_are_bounded)
{
	const struct tcp_tls limits = { .max = 10, .max_peer = 3,
					.handshake_ms = 600000 };
	struct tls_client c[4], good;

	tls_rig_start(&limits, true);
	tls_client_open(&good, rig.srv.port);
	for (int i = 0; i < 4; i++) {
		tls_client_open(&c[i], rig.srv.port);
		ck_assert_int_eq(tls_client_probe(&c[i]), i < 3);
	}
	ck_assert_uint_eq(stats_sum_by_name("tls_refused"), 1);
	/* Others are served meanwhile, and it is when they have ended. */
	ck_assert_int_eq(tls_rig_ask(&good), NFS3_OK);
	for (int i = 0; i < 4; i++)
		tls_client_close(&c[i]);
	tls_client_close(&good);
	EVENTUALLY(xprt_gate_count(rig.srv.tcp->gate) == 0);
	/* A handshake that is complete no longer has a place. */
	for (int i = 0; i < 4; i++) {
		ck_assert(tls_client_start(&c[i], rig.srv.port, NULL));
		ck_assert_int_eq(tls_rig_ask(&c[i]), NFS3_OK);
	}
	for (int i = 0; i < 4; i++)
		tls_client_close(&c[i]);
}

TEST(the_last_handshakes_are_for_clients_without_one)
{
	const struct tcp_tls limits = { .max = 8, .max_peer = 8,
					.handshake_ms = 600000 };
	struct tls_client c[7];

	tls_rig_start(&limits, true);
	for (int i = 0; i < 7; i++) {
		tls_client_open(&c[i], rig.srv.port);
		ck_assert_int_eq(tls_client_probe(&c[i]), i < 6);
	}
	for (int i = 0; i < 7; i++)
		tls_client_close(&c[i]);
}

/* Begins handshakes that come to nothing, until told to end. */
static void *pester(void *arg)
{
	atomic_bool *over = arg;

	while (!atomic_load(over)) {
		const struct tls_client_config config = { .alpn = "x" };
		struct tls_client c;

		tls_client_start(&c, rig.srv.port, &config);
		tls_client_close(&c);
	}
	return NULL;
}

TEST(a_client_is_served_beside_many_handshakes)
{
	atomic_bool over = false;
	struct tls_client c;
	pthread_t t[3];

	tls_rig_start(NULL, true);
	for (int i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, pester, &over);
	ck_assert(tls_client_start(&c, rig.srv.port, NULL));
	EVENTUALLY(stats_sum_by_name("tls_failed") > 20);
	create(&c);
	write_at(&c, 0, MIB);
	read_at(&c, 0, MIB);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	atomic_store(&over, true);
	for (int i = 0; i < 3; i++)
		pthread_join(t[i], NULL);
	tls_client_close(&c);
}

TEST(the_server_ends_in_the_middle_of_handshakes)
{
	struct tls_client c[3];

	tls_rig_start(NULL, true);
	for (int i = 0; i < 3; i++) {
		tls_client_open(&c[i], rig.srv.port);
		ck_assert(tls_client_probe(&c[i]));
	}
	send(c[0].fd, "\26\3\1\2", 4, MSG_NOSIGNAL);
	harness_stop(&rig.srv);
	for (int i = 0; i < 3; i++)
		tls_client_close(&c[i]);
	tls_rig_start(NULL, true);
}
