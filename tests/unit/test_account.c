/* SPDX-License-Identifier: BSD-2-Clause */
/* Histograms, accounts, and the table of clients. */
#include "transport/clients.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "lib/thread.h"
#include "tests/unit/runner.h"
#include "transport/xprt.h"

/* ---- histograms */

TEST(buckets_follow_one_another_without_a_gap)
{
	for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
		uint64_t low = histogram_low(i), high = histogram_low(i + 1);

		ck_assert_uint_lt(low, high);
		ck_assert_uint_eq(histogram_bucket(low), i);
		ck_assert_uint_eq(histogram_bucket(high - 1), i);
		/* At most an eighth as wide as the times in it. */
		if (low >= 128)
			ck_assert_uint_le((high - low) * 8, low);
	}
	ck_assert_uint_eq(histogram_low(HISTOGRAM_BUCKETS), 1ull << 36);
	ck_assert_uint_eq(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
}

TEST(quantiles_are_as_exact_as_the_buckets)
{
	static const struct {
		uint64_t times[8];	/* ended by 0 */
		unsigned per_mille;
		uint64_t expected;
	} rows[] = {
		{ { 0 }, 500, 0 },
		{ { 1000 }, 1, 1000 },
		{ { 1000 }, 1000, 1000 },
		{ { 1000, 2000, 3000 }, 500, 2000 },
		{ { 1000, 2000, 3000, 4000 }, 500, 2000 },
		{ { 1000, 2000, 3000, 4000 }, 501, 3000 },
		{ { 1000, 1000, 1000, 900000 }, 750, 1000 },
		{ { 1000, 1000, 1000, 900000 }, 990, 900000 },
		{ { 100, 200, 300, 400, 5000000 }, 999, 5000000 },
		{ { 60000000000 }, 500, 60000000000 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t counts[HISTOGRAM_BUCKETS] = { 0 }, q;

		for (unsigned k = 0; rows[i].times[k]; k++)
			counts[histogram_bucket(rows[i].times[k])]++;
		q = histogram_quantile(counts, rows[i].per_mille);
		ck_assert_uint_le(q * 10000, rows[i].expected * 10625);
		ck_assert_uint_ge(q * 10000, rows[i].expected * 9375);
	}
}

TEST(quantiles_of_many_calls_do_not_overflow)
{
	uint64_t counts[HISTOGRAM_BUCKETS] = { 0 };

	counts[100] = 1ull << 62;
	counts[200] = 1ull << 61;
	ck_assert_uint_eq(histogram_bucket(histogram_quantile(counts, 500)),
			  100);
	ck_assert_uint_eq(histogram_bucket(histogram_quantile(counts, 999)),
			  200);
}

/* ---- accounts */

enum { THREADS = 4, CALLS = 10000 };

static struct account account;

static void count_many(void *arg)
{
	const struct account_event e = {
		.ns = 1000, .bucket = histogram_bucket(1000),
		.way = ACCOUNT_WRITTEN, .bytes = 3, .failed = true,
	};

	if (arg)
		account_claim();
	for (unsigned i = 0; i < CALLS; i++)
		account_add(&account, e);
	account_unclaim();
}

/* Half of the threads have a separate cell. */
TEST(calls_of_all_threads_are_counted_once)
{
	struct account_sum sum = { 0 };
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		ck_assert_int_eq(thread_start(&threads[i], "count", count_many,
					      i % 2 ? &account : NULL), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	account_sum(&account, &sum);
	ck_assert_uint_eq(sum.calls, THREADS * CALLS);
	ck_assert_uint_eq(sum.failed, THREADS * CALLS);
	ck_assert_uint_eq(sum.ns, THREADS * CALLS * 1000ull);
	ck_assert_uint_eq(sum.bytes[ACCOUNT_WRITTEN], THREADS * CALLS * 3);
	ck_assert_uint_eq(sum.bytes[ACCOUNT_READ], 0);
	ck_assert_uint_eq(sum.histogram[histogram_bucket(1000)],
			  THREADS * CALLS);
	account_fini(&account);
}

static void count(struct account *a, unsigned n)
{
	const struct account_event e = { .ns = 1000, .bytes = 10,
					 .bucket = histogram_bucket(1000) };

	while (n-- > 0)
		account_add(a, e);
}

TEST(more_pollers_than_cells_share_one)
{
	unsigned mine = 0;

	for (unsigned i = 0; i < 2 * ACCOUNT_CELLS; i++) {
		account_own = 0;
		account_claim();
		mine += account_own > 0;
	}
	ck_assert_uint_eq(mine, ACCOUNT_CELLS - 1);
	ck_assert_uint_eq(account_own, 0);
	count(&account, 7);
	ck_assert_ptr_nonnull(account.shared);
	account_fini(&account);
}

/* ---- books */

static char told[4096];

static void tell(const char *name, unsigned users,
		 const struct account_sum *sum, void *arg)
{
	size_t len = strlen(told);

	snprintf(told + len, sizeof(told) - len, "%s %u %llu %llu;",
		 name ? name : "others", users, (unsigned long long)sum->calls,
		 (unsigned long long)sum->bytes[ACCOUNT_READ]);
}

static void book_has(struct account_book *b, const char *expected)
{
	*told = '\0';
	account_book_walk(b, tell, NULL);
	ck_assert_str_eq(told, expected);
}

TEST(exports_are_counted_by_their_number)
{
	struct account_book *b = account_book_create(3);
	struct account *a = account_book_get(b, 7, "/a/below"), *c;

	count(a, 2);
	c = account_book_get(b, 8, "/b");
	count(c, 1);
	/* The export that /a/below is a part of. */
	ck_assert_ptr_eq(account_book_get(b, 7, "/a"), a);
	book_has(b, "/a 2 2 20;/b 1 1 10;");
	account_book_put(b, a);
	account_book_put(b, a);
	book_has(b, "/a 0 2 20;/b 1 1 10;");
	ck_assert_ptr_eq(account_book_get(b, 7, "/a"), a);
	book_has(b, "/a 1 2 20;/b 1 1 10;");
	account_book_destroy(b);
}

TEST(a_full_book_forgets_the_export_that_went_first)
{
	struct account_book *b = account_book_create(2);
	struct account *first = account_book_get(b, 1, "/a");
	struct account *second = account_book_get(b, 2, "/b");
	struct account *others;

	count(first, 5);
	count(second, 6);
	others = account_book_get(b, 3, "/c");
	count(others, 1);
	book_has(b, "/a 1 5 50;/b 1 6 60;others 1 1 10;");
	account_book_put(b, second);
	account_book_put(b, first);
	ck_assert_ptr_eq(account_book_get(b, 4, "/d"), second);
	book_has(b, "/a 0 5 50;/d 1 0 0;others 1 1 10;");
	count(second, 2);
	book_has(b, "/a 0 5 50;/d 1 2 20;others 1 1 10;");
	account_book_put(b, others);
	book_has(b, "/a 0 5 50;/d 1 2 20;others 0 1 10;");
	account_book_destroy(b);
}

/* ---- clients */

static struct xprt_clients *table;
static unsigned ended;

static void freed(struct xprt *x)
{
}

static void end(struct xprt *x)
{
	ended++;
}

static const struct xprt_ops ops = { .name = "test", .end = end,
				     .free = freed };

static void make(struct xprt *x, const char *host, uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons(port) };

	ck_assert_int_eq(inet_pton(AF_INET, host, &sin.sin_addr), 1);
	xprt_init(x, &ops, NULL, NULL, NULL, (struct sockaddr *)&sin,
		  (struct sockaddr *)&sin);
}

static void arrives(struct xprt *x, const char *host, uint16_t port)
{
	make(x, host, port);
	xprt_client_enter(table, x);
}

static void show(const struct xprt_client_view *v, void *arg)
{
	char host[INET6_ADDRSTRLEN] = "others";
	size_t len = strlen(told);

	if (v->host)
		inet_ntop(AF_INET6, v->host, host, sizeof(host));
	if (v->host || v->sum.calls || v->nconns)
		snprintf(told + len, sizeof(told) - len, "%s %u %llu%s;", host,
			 v->nconns, (unsigned long long)v->sum.calls,
			 v->udp ? " udp" : "");
}

static void table_has(const char *expected)
{
	*told = '\0';
	xprt_clients_walk(table, show, NULL);
	ck_assert_str_eq(told, expected);
}

TEST(a_client_has_all_its_connections_and_keeps_its_counts)
{
	struct xprt x[3];

	table = xprt_clients_create(0, 0);
	arrives(&x[0], "192.0.2.1", 800);
	arrives(&x[1], "192.0.2.1", 801);
	ck_assert_ptr_eq(x[0].client, x[1].client);
	count(&x[0].client->account, 2);
	table_has("::ffff:192.0.2.1 2 2;");
	xprt_client_leave(&x[0]);
	xprt_client_leave(&x[1]);
	table_has("::ffff:192.0.2.1 0 2;");
	arrives(&x[2], "192.0.2.1", 802);
	count(&x[2].client->account, 1);
	table_has("::ffff:192.0.2.1 1 3;");
	xprt_client_leave(&x[2]);
	xprt_clients_destroy(table);
}

TEST(a_full_table_forgets_who_left_first)
{
	struct xprt x[4];

	table = xprt_clients_create(2, 0);
	arrives(&x[0], "192.0.2.1", 800);
	arrives(&x[1], "192.0.2.2", 800);
	count(&x[0].client->account, 1);
	count(&x[1].client->account, 2);
	/* Both clients have connections and stay, so the third one is counted
	 * with the others. */
	arrives(&x[2], "192.0.2.3", 800);
	count(&x[2].client->account, 4);
	xprt_client_leave(&x[1]);
	xprt_client_leave(&x[0]);
	arrives(&x[3], "192.0.2.4", 800);
	count(&x[3].client->account, 8);
	*told = '\0';
	xprt_clients_walk(table, show, NULL);
	ck_assert_ptr_nonnull(strstr(told, "::ffff:192.0.2.1 0 1;"));
	ck_assert_ptr_nonnull(strstr(told, "::ffff:192.0.2.4 1 8;"));
	ck_assert_ptr_nonnull(strstr(told, "others 1 4;"));
	ck_assert_ptr_null(strstr(told, "192.0.2.2"));
	xprt_client_leave(&x[2]);
	xprt_client_leave(&x[3]);
	xprt_clients_destroy(table);
}

static bool has_own(const struct xprt *x)
{
	return IN6_IS_ADDR_V4MAPPED(&x->client->host) ||
	       x->client->host.s6_addr[0];
}

TEST(one_network_of_ipv6_leaves_accounts_for_others)
{
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6,
				     .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct xprt x[60], other[20];
	unsigned own = 0;
	char host[32];

	table = xprt_clients_create(40, 0);
	sin6.sin6_addr.s6_addr[0] = 0x20;
	for (unsigned i = 0; i < ARRAY_SIZE(x); i++) {
		sin6.sin6_addr.s6_addr[15] = (uint8_t)i;
		make(&x[i], "192.0.2.1", 800);
		xprt_addr_copy(&x[i].peer, (struct sockaddr *)&sin6);
		xprt_client_enter(table, &x[i]);
		own += has_own(&x[i]);
	}
	ck_assert_uint_eq(own, 20);
	for (unsigned i = 0; i < ARRAY_SIZE(other); i++) {
		snprintf(host, sizeof(host), "192.0.2.%u", i);
		arrives(&other[i], host, 800);
		ck_assert(has_own(&other[i]));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(x); i++)
		xprt_client_leave(&x[i]);
	for (unsigned i = 0; i < ARRAY_SIZE(other); i++)
		xprt_client_leave(&other[i]);
	xprt_clients_destroy(table);
}

TEST(a_client_without_connections_is_forgotten_after_a_while)
{
	struct xprt x[2];

	table = xprt_clients_create(0, 1);
	arrives(&x[0], "192.0.2.1", 800);
	arrives(&x[1], "192.0.2.2", 800);
	count(&x[1].client->account, 1);
	xprt_client_leave(&x[1]);
	EVENTUALLY((*told = '\0', xprt_clients_walk(table, show, NULL),
		    strcmp(told, "::ffff:192.0.2.1 1 0;") == 0));
	xprt_client_leave(&x[0]);
	xprt_clients_destroy(table);
}

TEST(a_datagram_makes_no_client)
{
	struct xprt x, datagram;

	table = xprt_clients_create(0, 0);
	make(&datagram, "192.0.2.1", 800);
	datagram.datagram = true;
	xprt_client_enter(table, &datagram);
	count(&datagram.client->account, 1);
	xprt_client_leave(&datagram);
	table_has("others 0 1 udp;");
	arrives(&x, "192.0.2.1", 800);
	xprt_client_enter(table, &datagram);
	count(&datagram.client->account, 1);
	table_has("::ffff:192.0.2.1 1 1 udp;others 0 1 udp;");
	xprt_client_leave(&datagram);
	xprt_client_leave(&x);
	xprt_clients_destroy(table);
}

TEST(only_the_connections_of_the_named_host_are_ended)
{
	struct in6_addr host;
	struct xprt x[4];

	/* The third and fourth are not kept apart from one another. */
	table = xprt_clients_create(2, 0);
	arrives(&x[0], "192.0.2.1", 800);
	arrives(&x[1], "192.0.2.2", 800);
	arrives(&x[2], "192.0.2.3", 800);
	arrives(&x[3], "192.0.2.4", 800);
	host = xprt_addr_host((struct sockaddr *)&x[0].peer);
	ck_assert_uint_eq(xprt_clients_end(table, &host), 1);
	host = xprt_addr_host((struct sockaddr *)&x[3].peer);
	ck_assert_uint_eq(xprt_clients_end(table, &host), 1);
	ck_assert_uint_eq(ended, 2);
	inet_pton(AF_INET6, "2001:db8::1", &host);
	ck_assert_uint_eq(xprt_clients_end(table, &host), 0);
	for (int i = 0; i < 4; i++)
		xprt_client_leave(&x[i]);
	xprt_clients_destroy(table);
}

/* Its first connection came when all places were taken, another one later. */
TEST(connections_that_are_not_kept_apart_are_ended_beside_those_that_are)
{
	struct in6_addr host;
	struct xprt x[4];

	table = xprt_clients_create(2, 0);
	arrives(&x[0], "192.0.2.1", 800);
	arrives(&x[1], "192.0.2.2", 800);
	arrives(&x[2], "192.0.2.3", 800);
	xprt_client_leave(&x[1]);
	arrives(&x[3], "192.0.2.3", 801);
	ck_assert_ptr_ne(x[2].client, x[3].client);
	host = xprt_addr_host((struct sockaddr *)&x[3].peer);
	ck_assert_uint_eq(xprt_clients_end(table, &host), 2);
	ck_assert_uint_eq(ended, 2);
	xprt_client_leave(&x[0]);
	xprt_client_leave(&x[2]);
	xprt_client_leave(&x[3]);
	xprt_clients_destroy(table);
}
