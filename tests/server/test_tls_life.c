/* SPDX-License-Identifier: BSD-2-Clause */
/* How a connection under TLS shares its poller, and how it ends. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/server/tls_rig.h"
#include "tests/unit/runner.h"
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
	atomic_store(&full, true);
	rig.srv.tcp->ops->stop(rig.srv.tcp);
	EVENTUALLY(atomic_load(&denied) > 1);
	atomic_store(&full, false);
	ck_assert_int_le(SSL_read(c.ssl, &b, 1), 0);
	ck_assert_int_eq(SSL_get_shutdown(c.ssl), SSL_RECEIVED_SHUTDOWN);
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
