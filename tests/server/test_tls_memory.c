/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of connections under TLS: what each takes, and its bound. */
#include <arpa/inet.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/pem.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/server/tls_rig.h"
#include "tests/unit/runner.h"
#include "wire/nfs3.h"

#define CONNS	8

/* OpenSSL's memory is the client's if this thread took it. */
static _Thread_local bool is_client;
static _Atomic size_t used, most;	/* by the server */

/* Before each piece. */
struct head {
	size_t	len;
	bool	client;
} __attribute__((aligned(16)));

static void count(const struct head *h)
{
	size_t now;

	if (h->client)
		return;
	now = atomic_fetch_add(&used, h->len) + h->len;
	if (now > atomic_load(&most))
		atomic_store(&most, now);
}

static void *take(size_t len, const char *file, int line)
{
	struct head *h = malloc(sizeof(*h) + len);

	if (!h)
		return NULL;
	*h = (struct head){ len, is_client };
	count(h);
	return h + 1;
}

static void give(void *p, const char *file, int line)
{
	struct head *h = p;

	if (!p)
		return;
	h--;
	if (!h->client)
		atomic_fetch_sub(&used, h->len);
	free(h);
}

static void *change(void *p, size_t len, const char *file, int line)
{
	struct head *h = p;
	void *to = take(len, file, line);

	if (to && p)
		memcpy(to, p, MIN(len, h[-1].len));
	if (to)
		give(p, file, line);
	return to;
}

static void setup(void)
{
	is_client = true;
	ck_assert_int_eq(CRYPTO_set_mem_functions(take, change, give), 1);
	tls_rig_setup();
}

TEST_CASE(.setup = setup, .teardown = tls_rig_teardown);

TEST(a_connection_takes_no_more_than_it_is_counted_for)
{
	const struct tls_client_config config = { .cert = rig.pki.host };
	struct tls_client c[CONNS];
	size_t before = 0, each, peak = 0;

	tls_rig_start(NULL, true);
	for (int i = 0; i < CONNS; i++) {
		/* The first one pays for what all share. */
		if (i == 1)
			before = atomic_load(&used);
		atomic_store(&most, atomic_load(&used));
		peak = atomic_load(&used);
		ck_assert(tls_client_start(&c[i], rig.srv.port, &config));
		ck_assert_int_eq(tls_rig_ask(&c[i]), NFS3_OK);
		peak = atomic_load(&most) - peak;
	}
	each = (atomic_load(&used) - before) / (CONNS - 1);
	ck_assert_uint_gt(each, 4096);
	ck_assert_uint_le(each + 2 * (TLS_RECORD_MAX + 1024), TLS_CONN_BYTES);
	ck_assert_uint_le(peak, TLS_CONN_BYTES * 3 / 2);
	for (int i = 0; i < CONNS; i++)
		tls_client_close(&c[i]);
}

/* Puts @bytes of certificates behind the host's. */
static void add_certificates(size_t bytes)
{
	FILE *ca = fopen(rig.pki.ca, "r"), *host = fopen(rig.pki.host, "a");
	X509 *cert;

	ck_assert(ca && host);
	cert = PEM_read_X509(ca, NULL, NULL, NULL);
	ck_assert_ptr_nonnull(cert);
	for (size_t n = 0; n < bytes; n += (size_t)i2d_X509(cert, NULL))
		PEM_write_X509(host, cert);
	X509_free(cert);
	fclose(ca);
	fclose(host);
}

TEST(a_client_shows_no_more_than_fits_its_handshake)
{
	const struct tls_client_config config = { .cert = rig.pki.host };
	struct tls_client usual, c;
	size_t before;

	tls_rig_start(NULL, true);
	/* It pays for what all share. */
	ck_assert(tls_client_start(&usual, rig.srv.port, &config));
	ck_assert_int_eq(tls_rig_ask(&usual), NFS3_OK);
	before = atomic_load(&used);
	add_certificates(TLS_SHAKE_MAX - 4096);
	ck_assert(tls_client_start(&c, rig.srv.port, &config));
	ck_assert_int_eq(tls_rig_ask(&c), NFS3_OK);
	ck_assert_uint_le(atomic_load(&used) - before, 5 * TLS_CONN_BYTES);
	tls_client_close(&c);
	add_certificates(8192);
	/* The client's part is complete before the server has its bytes. */
	tls_client_start(&c, rig.srv.port, &config);
	EVENTUALLY(stats_sum_by_name("tls_failed") == 1);
	tls_client_close(&c);
	ck_assert_int_eq(tls_rig_ask(&usual), NFS3_OK);
	tls_client_close(&usual);
}

TEST(connections_beyond_their_memory_are_refused)
{
	struct tls_client c[5], clear;

	tls_rig_start(NULL, true);
	/* An address has half. */
	tls_server_limit(rig.srv.tls, 8 * TLS_CONN_BYTES);
	for (int i = 0; i < 5; i++) {
		tls_client_open(&c[i], rig.srv.port);
		ck_assert_int_eq(tls_client_probe(&c[i]), i < 4);
	}
	ck_assert(tls_client_is_left(&c[4]));
	ck_assert_uint_eq(stats_sum_by_name("tls_no_memory"), 1);
	tls_client_open(&clear, rig.srv.port);
	ck_assert_int_eq(tls_rig_ask(&clear), NFS3_OK);
	tls_client_close(&clear);
	for (int i = 0; i < 5; i++)
		tls_client_close(&c[i]);
	EVENTUALLY(xprt_gate_count(rig.srv.tcp->gate) == 0);
	for (int i = 0; i < 4; i++) {
		ck_assert(tls_client_start(&c[i], rig.srv.port, NULL));
		ck_assert_int_eq(tls_rig_ask(&c[i]), NFS3_OK);
	}
	for (int i = 0; i < 4; i++)
		tls_client_close(&c[i]);
}

static struct sockaddr *address(const char *text)
{
	static struct sockaddr_in sa = { .sin_family = AF_INET };

	ck_assert_int_eq(inet_pton(AF_INET, text, &sa.sin_addr), 1);
	return (struct sockaddr *)&sa;
}

TEST(the_last_memory_is_for_addresses_without_any)
{
	static const char *const some[] = {
		"192.0.2.1", "192.0.2.1", "192.0.2.1",
		"192.0.2.2", "192.0.2.2", "192.0.2.2",
		"192.0.2.3", "192.0.2.4",
	};
	struct tls_server *s;

	tls_rig_start(NULL, true);
	s = rig.srv.tls;
	tls_server_limit(s, 8 * TLS_CONN_BYTES);
	for (unsigned i = 0; i < ARRAY_SIZE(some); i++) {
		ck_assert_int_eq(tls_server_enter(s, address(some[i])), 0);
		if (i >= 5)
			ck_assert_int_eq(tls_server_enter(s, address(some[0])),
					 i < 7 ? -EDQUOT : -EUSERS);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(some); i++)
		tls_server_leave(s, address(some[i]));
}

/* Calls behind AUTH_TLS that came with it are not run either. */
TEST(a_refused_connection_is_not_read_on)
{
	struct tls_client c;

	tls_rig_start(NULL, true);
	tls_server_limit(rig.srv.tls, TLS_CONN_BYTES);
	tls_client_open(&c, rig.srv.port);
	ck_assert(tls_client_probe(&c));
	for (int i = 0; i < 20; i++) {
		struct tls_client other;

		tls_client_open(&other, rig.srv.port);
		tls_client_ask(&other);
		tls_rig_post(&other);
		ck_assert(tls_client_is_left(&other));
		tls_client_close(&other);
	}
	ck_assert_uint_eq(stats_sum_by_name("tls_no_memory"), 20);
	tls_client_close(&c);
}
