/* SPDX-License-Identifier: BSD-2-Clause */
/* The places that clients have under an export's limits. */
#include <arpa/inet.h>
#include <stdio.h>

#include "lib/clock.h"
#include "rpc/limit_priv.h"
#include "tests/unit/runner.h"

static struct rpc_server server;
static struct rpc_limit *limit;

static void setup(void)
{
	pthread_mutex_init(&server.limits.lock, NULL);
	CDS_INIT_LIST_HEAD(&server.limits.all);
	limit = rpc_limit_create(&server);
	ck_assert_ptr_nonnull(limit);
}

static void teardown(void)
{
	rpc_limit_put(limit);
	pthread_mutex_destroy(&server.limits.lock);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* The place of a call from @host, which stays in use. */
static struct limit_client *call_from(const char *host)
{
	struct xprt x = { .peer.ss_family = AF_INET6 };
	struct msg m = { .xprt = &x };
	struct rpc_call call = { .msg = &m };
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&x.peer;
	struct limit_client *c;

	ck_assert_int_eq(inet_pton(AF_INET6, host, &in6->sin6_addr), 1);
	mutex_lock(&limit->lock);
	c = limit_client_of(limit, &call, clock_ns());
	c->users++;
	mutex_unlock(&limit->lock);
	return c;
}

static bool is_shared(const struct limit_client *c)
{
	return c >= limit->others && c < limit->others + LIMIT_OTHERS;
}

/* Calls from @n addresses of the network 2001:db8:NET::/64.  Returns the number
 * of addresses with a separate place; *@rest is the place of the others. */
static unsigned flood(unsigned net, unsigned n, struct limit_client **rest)
{
	struct limit_client *c;
	unsigned own = 0;
	char host[64];

	for (unsigned i = 0; i < n; i++) {
		snprintf(host, sizeof(host), "2001:db8:%x::%x", net, i);
		c = call_from(host);
		own += !is_shared(c);
		if (is_shared(c))
			*rest = c;
	}
	return own;
}

TEST(a_network_leaves_places_for_clients_of_others)
{
	struct limit_client *rest = NULL;
	char host[64];

	ck_assert_uint_eq(flood(0, 5000, &rest), 2048);
	ck_assert_ptr_nonnull(rest);
	for (unsigned i = 0; i < 500; i++) {
		snprintf(host, sizeof(host), "::ffff:192.0.%u.%u", i / 250,
			 i % 250);
		ck_assert(!is_shared(call_from(host)));
	}
	ck_assert_uint_eq(flood(1, 500, &rest), 500);
}

/* The places are taken by networks that have one each. */
TEST(clients_without_a_place_share_one_with_few_networks)
{
	struct limit_client *seen[64], *c, *rest = NULL;
	unsigned n = 0;
	char host[64];

	for (unsigned i = 0; i < 4096; i++) {
		snprintf(host, sizeof(host), "2001:db8:%x::1", i);
		call_from(host);
	}
	/* All of a network meet in one place, */
	flood(0xf000, 100, &rest);
	ck_assert_ptr_eq(call_from("2001:db8:f000::7777"), rest);
	/* and addresses of several networks in several. */
	for (unsigned i = 0; i < 64; i++) {
		bool known = false;

		snprintf(host, sizeof(host), "2001:db8:f0%02x::1", i);
		c = call_from(host);
		ck_assert(is_shared(c));
		for (unsigned k = 0; k < n; k++)
			known |= seen[k] == c;
		if (!known)
			seen[n++] = c;
	}
	ck_assert_uint_ge(n, 16);
}

int main(void)
{
	return run_tests();
}
