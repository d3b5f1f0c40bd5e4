/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits of connections: in all, and of one address. */
#include "transport/gate.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "lib/fds.h"
#include "lib/thread.h"
#include "tests/unit/runner.h"

static struct xprt_gate gate;

static int with(const char *host, unsigned port, bool enter)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_port = htons((uint16_t)port) };
	struct sockaddr_in6 sin6 = { .sin6_family = AF_INET6,
				     .sin6_port = htons((uint16_t)port) };
	struct sockaddr *sa = (struct sockaddr *)&sin;

	if (inet_pton(AF_INET, host, &sin.sin_addr) != 1) {
		ck_assert_int_eq(inet_pton(AF_INET6, host, &sin6.sin6_addr),
				 1);
		sa = (struct sockaddr *)&sin6;
	}
	if (enter)
		return xprt_gate_enter(&gate, sa);
	xprt_gate_leave(&gate, sa);
	return 0;
}

static int enter(const char *host, unsigned port)
{
	return with(host, port, true);
}

static void leave(const char *host, unsigned port)
{
	with(host, port, false);
}

TEST(an_address_has_its_share_whatever_the_port)
{
	xprt_gate_init(&gate, 5, 2);
	ck_assert_int_eq(enter("192.0.2.1", 1), 0);
	ck_assert_int_eq(enter("192.0.2.1", 2), 0);
	ck_assert_int_eq(enter("192.0.2.1", 3), -EDQUOT);
	/* The same address, as a socket for both families has it. */
	ck_assert_int_eq(enter("::ffff:192.0.2.1", 4), -EDQUOT);
	ck_assert_int_eq(enter("2001:db8::1", 1), 0);
	ck_assert_int_eq(enter("2001:db8::1", 2), 0);
	ck_assert_int_eq(enter("2001:db8::1", 3), -EDQUOT);
	ck_assert_int_eq(enter("192.0.2.2", 1), 0);
	ck_assert_int_eq(enter("192.0.2.3", 1), -EUSERS);
	ck_assert_uint_eq(xprt_gate_count(&gate), 5);
	leave("::ffff:192.0.2.1", 1);
	ck_assert_int_eq(enter("192.0.2.1", 9), 0);
	leave("192.0.2.1", 9);
	leave("192.0.2.1", 2);
	leave("192.0.2.2", 1);
	leave("2001:db8::1", 1);
	leave("2001:db8::1", 2);
	xprt_gate_wait(&gate);
	xprt_gate_fini(&gate);
}

/* However many addresses a host has in its /64, it leaves room for others; and
 * as long as it leaves any, other hosts of its LAN are not refused. */
TEST(a_network_leaves_room_for_another)
{
	char host[32];

	xprt_gate_init(&gate, 16, 2);
	for (unsigned i = 0; i < 12; i++) {
		snprintf(host, sizeof(host), "2001:db8::%x", i);
		ck_assert_int_eq(enter(host, 1), 0);
	}
	ck_assert_int_eq(enter("2001:db8::100", 1), -EDQUOT);
	ck_assert_int_eq(enter("2001:db8::1", 1), -EDQUOT);
	ck_assert_int_eq(enter("2001:db8:0:1::1", 1), 0);
	ck_assert_int_eq(enter("192.0.2.1", 1), 0);
	ck_assert_int_eq(enter("192.0.2.1", 2), 0);
	leave("2001:db8::3", 1);
	ck_assert_int_eq(enter("2001:db8::100", 1), 0);
	ck_assert_int_eq(enter("2001:db8::100", 2), -EDQUOT);
	leave("2001:db8::100", 1);
	leave("2001:db8:0:1::1", 1);
	leave("192.0.2.1", 1);
	leave("192.0.2.1", 2);
	for (unsigned i = 0; i < 12; i++) {
		snprintf(host, sizeof(host), "2001:db8::%x", i);
		if (i != 3)
			leave(host, 1);
	}
	xprt_gate_wait(&gate);
	xprt_gate_fini(&gate);
}

/* A provider can give one customer a /48: 65,536 networks. */
TEST(a_site_leaves_room_for_another)
{
	char host[64];

	xprt_gate_init(&gate, 64, 2);
	for (unsigned i = 0; i < 56; i++) {
		snprintf(host, sizeof(host), "2001:db8:1:%x::1", i);
		ck_assert_int_eq(enter(host, 1), 0);
	}
	ck_assert_int_eq(enter("2001:db8:1:100::1", 1), -EDQUOT);
	ck_assert_int_eq(enter("2001:db8:2::1", 1), 0);
	ck_assert_int_eq(enter("192.0.2.1", 1), 0);
	leave("2001:db8:1:7::1", 1);
	ck_assert_int_eq(enter("2001:db8:1:100::1", 1), 0);
	leave("2001:db8:1:100::1", 1);
	leave("2001:db8:2::1", 1);
	leave("192.0.2.1", 1);
	for (unsigned i = 0; i < 56; i++) {
		snprintf(host, sizeof(host), "2001:db8:1:%x::1", i);
		if (i != 7)
			leave(host, 1);
	}
	xprt_gate_wait(&gate);
	xprt_gate_fini(&gate);
}

/* The last quarter is for those who have nothing. */
TEST(a_few_leave_places_for_others)
{
	static const char *const few[] = { "192.0.2.1", "192.0.2.2",
					   "2001:db8::1" };

	xprt_gate_init(&gate, 16, 4);
	gate.spares = true;
	for (unsigned i = 0; i < 12; i++)
		ck_assert_int_eq(enter(few[i % 3], i), 0);
	ck_assert_int_eq(enter("192.0.2.3", 1), 0);
	leave("192.0.2.1", 0);
	leave("192.0.2.1", 3);
	ck_assert_int_eq(enter("192.0.2.1", 0), 0);
	/* An address with a place gets no other, nor does its network. */
	ck_assert_int_eq(enter("192.0.2.1", 3), -EDQUOT);
	ck_assert_int_eq(enter("192.0.2.3", 2), -EDQUOT);
	ck_assert_int_eq(enter("2001:db8::2", 1), -EDQUOT);
	ck_assert_int_eq(enter("2001:db8:0:1::1", 1), 0);
	ck_assert_int_eq(enter("192.0.2.4", 1), 0);
	ck_assert_int_eq(enter("192.0.2.5", 1), 0);
	ck_assert_int_eq(enter("192.0.2.6", 1), 0);
	ck_assert_int_eq(enter("192.0.2.7", 1), -EUSERS);
	ck_assert_uint_eq(xprt_gate_count(&gate), 16);
}

TEST(many_addresses_are_told_apart)
{
	char host[32];

	xprt_gate_init(&gate, 4000, 2);
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 2000; i++) {
			snprintf(host, sizeof(host), "10.0.%u.%u", i >> 8,
				 i & 255);
			ck_assert_int_eq(enter(host, round), 0);
		}
	ck_assert_int_eq(enter("10.1.0.0", 0), -EUSERS);
	for (unsigned round = 0; round < 2; round++)
		for (unsigned i = 0; i < 2000; i++) {
			snprintf(host, sizeof(host), "10.0.%u.%u", i >> 8,
				 i & 255);
			leave(host, round);
		}
	ck_assert_uint_eq(xprt_gate_count(&gate), 0);
	xprt_gate_fini(&gate);
}

TEST(without_a_share_one_may_have_all)
{
	xprt_gate_init(&gate, 3, 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(enter("192.0.2.1", i), 0);
	ck_assert_int_eq(enter("192.0.2.1", 3), -EUSERS);
	for (unsigned i = 0; i < 3; i++)
		leave("192.0.2.1", i);
	xprt_gate_fini(&gate);
}

static atomic_int waiter;

static void await(void *arg)
{
	atomic_store(&waiter, (int)syscall(SYS_gettid));
	xprt_gate_wait(&gate);
	atomic_store(&waiter, 0);
}

static bool waiter_sleeps(void)
{
	char path[64], state = '?';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat",
		 atomic_load(&waiter));
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = '?';
	if (f)
		fclose(f);
	return state == 'S';
}

TEST(a_parting_connection_has_no_place_and_few_may_part)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	const struct sockaddr *peer = (struct sockaddr *)&sa;

	xprt_gate_init(&gate, 16, 2);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(xprt_gate_enter(&gate, peer), 0);
		ck_assert(xprt_gate_part(&gate, peer) == (i < 2));
	}
	ck_assert_int_eq(xprt_gate_enter(&gate, peer), -EDQUOT);
	ck_assert_uint_eq(xprt_gate_count(&gate), 4);
	xprt_gate_parted(&gate);
	ck_assert(xprt_gate_part(&gate, peer));
	xprt_gate_parted(&gate);
	xprt_gate_parted(&gate);
	xprt_gate_leave(&gate, peer);
	xprt_gate_wait(&gate);
	xprt_gate_fini(&gate);
}

TEST(a_wait_lasts_until_the_last_one_has_left)
{
	pthread_t thread;

	xprt_gate_init(&gate, 3, 0);
	for (unsigned i = 0; i < 2; i++)
		ck_assert_int_eq(enter("192.0.2.1", i), 0);
	ck_assert_int_eq(thread_start(&thread, "wait", await, NULL), 0);
	EVENTUALLY(waiter_sleeps());
	leave("192.0.2.1", 0);
	EVENTUALLY(waiter_sleeps());
	leave("192.0.2.1", 1);
	pthread_join(thread, NULL);
	xprt_gate_fini(&gate);
}

/* Enters hosts of the network @net of the site 2001:db8:1::/48 until one is
 * refused.  Returns how many came in. */
static unsigned fill(unsigned net)
{
	unsigned n = 0;
	char host[64];

	do
		snprintf(host, sizeof(host), "2001:db8:1:%x::%x", net, n + 1);
	while (enter(host, 1) == 0 && ++n);
	return n;
}

static void empty(unsigned net, unsigned n)
{
	char host[64];

	for (; n > 0; n--) {
		snprintf(host, sizeof(host), "2001:db8:1:%x::%x", net, n);
		leave(host, 1);
	}
}

TEST(a_fair_gate_leaves_a_part_for_other_networks_and_sites)
{
	unsigned n[20], all = 0;

	xprt_gate_init_fair(&gate, 1000);
	n[0] = fill(0);
	ck_assert_uint_eq(n[0], 500);
	for (unsigned i = 1; i < 20; i++)
		n[i] = fill(i);
	for (unsigned i = 0; i < 20; i++)
		all += n[i];
	ck_assert_uint_ge(all, 660);
	ck_assert_uint_le(all, 670);
	/* Of another site, and of IPv4. */
	ck_assert_int_eq(enter("2001:db8:2::1", 1), 0);
	ck_assert_int_eq(enter("192.0.2.1", 1), 0);
	leave("2001:db8:2::1", 1);
	leave("192.0.2.1", 1);
	for (unsigned i = 0; i < 20; i++)
		empty(i, n[i]);
	ck_assert_uint_eq(xprt_gate_count(&gate), 0);
	xprt_gate_fini(&gate);
}

/* Enters connections until one is refused.  Returns how many came in. */
static unsigned connect_all(struct xprt_gate *g, const struct in6_addr *host)
{
	unsigned n = 0;

	while (xprt_gate_enter_host(g, host) == 0)
		n++;
	ck_assert_uint_eq(xprt_gate_count(g), n);
	return n;
}

TEST(a_full_listener_leaves_descriptors_for_another_one)
{
	const struct rlimit few = { 800, 800 };
	struct in6_addr host = IN6ADDR_LOOPBACK_INIT;
	struct xprt_gate other;
	unsigned n, more;

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	xprt_gate_init(&gate, 1000, 0);
	xprt_gate_init(&other, 1000, 0);
	gate.has_fds = other.has_fds = true;
	n = connect_all(&gate, &host);
	ck_assert_uint_eq(n, 200);
	more = connect_all(&other, &host);
	ck_assert_uint_ge(more, 50);
	ck_assert_uint_lt(n + more, 300);
	while (n--)
		xprt_gate_leave_host(&gate, &host);
	while (more--)
		xprt_gate_leave_host(&other, &host);
	ck_assert_int_eq(fds_free(FDS_CONNS), 300);
	xprt_gate_fini(&gate);
	xprt_gate_fini(&other);
}
