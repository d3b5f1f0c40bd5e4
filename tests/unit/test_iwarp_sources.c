/* SPDX-License-Identifier: BSD-2-Clause */
/* Unfinished MPA requests: which one makes room for another. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "tests/unit/runner.h"
#include "transport/fabric/iwarp/internal.h"

static struct iwarp_sources sources;

static void setup(void)
{
	iwarp_sources_init(&sources);
}

TEST_CASE(.setup = setup);

static struct iwarp_conn *begin(const char *host)
{
	struct sockaddr_in6 peer = { .sin6_family = AF_INET6 };
	struct iwarp_conn *c = calloc(1, sizeof(*c));

	ck_assert_int_eq(inet_pton(AF_INET6, host, &peer.sin6_addr), 1);
	memcpy(&c->conn.info.peer, &peer, sizeof(peer));
	ck_assert_int_eq(iwarp_sources_add(&sources, c), 0);
	return c;
}

static void end(struct iwarp_conn *c)
{
	iwarp_sources_remove(c);
	free(c);
}

static void drop(struct iwarp_conn *c)
{
	ck_assert_ptr_eq(iwarp_sources_pick(&sources), c);
	end(c);
}

/* Also if each network of a /48 has one request, and came after all others. */
TEST(the_site_with_most_requests_makes_room)
{
	struct iwarp_conn *one = begin("::ffff:192.0.2.1");
	struct iwarp_conn *two = begin("2001:db8:1::1");
	struct iwarp_conn *other = begin("2001:db8:1::2");
	struct iwarp_conn *site[4];
	char host[64];

	for (unsigned i = 0; i < ARRAY_SIZE(site); i++) {
		snprintf(host, sizeof(host), "2001:db8:0:%x::1", i);
		site[i] = begin(host);
	}
	drop(site[0]);
	drop(site[1]);
	/* Both have two: the one that came first. */
	drop(two);
	drop(site[2]);
	ck_assert_uint_eq(sources.n, 3);
	end(one);
	end(other);
	end(site[3]);
	ck_assert_uint_eq(sources.n, 0);
}

TEST(in_a_site_the_network_with_most_requests_makes_room)
{
	struct iwarp_conn *a = begin("2001:db8:0:1::1");
	struct iwarp_conn *b = begin("2001:db8:0:2::1");
	struct iwarp_conn *v4 = begin("::ffff:192.0.2.1");
	struct iwarp_conn *c = begin("2001:db8:0:2::2");

	drop(b);
	drop(a);
	drop(c);
	drop(v4);
}
