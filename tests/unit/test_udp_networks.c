/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC over UDP from many addresses of IPv6. */
#include "transport/stream/stream.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/stats.h"
#include "tests/unit/runner.h"
#include "tests/unit/stream_fixture.h"

#define SERVER	"2001:db8:ffff::1"
#define CALL	40

static void setup(void)
{
	struct udp_options o = { .max_calls = 64 };
	struct sockaddr_storage ss = fx_addr(SERVER, 0);

	fx_start(64);
	ck_assert_int_eq(udp_listen(&fx.env, (struct sockaddr *)&ss, &o, &fx.l),
			 0);
}

TEST_CASE(.setup = setup, .teardown = fx_stop);

/* Sends a call from @host; the socket is the caller's. */
static int call_from(const char *host, enum fx_op op)
{
	struct sockaddr_storage to = fx_addr(SERVER, fx_port());
	struct sockaddr_storage from = fx_addr(host, 0);
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t out[CALL + 4];

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&from,
			      sizeof(struct sockaddr_in6)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to,
				 sizeof(struct sockaddr_in6)), 0);
	fx_call(out, 1, op, 0, CALL);
	ck_assert_int_eq(send(fd, out + 4, CALL, 0), CALL);
	return fd;
}

/* One call of each of the @n addresses that @form has. */
static void hang_from(const char *form, unsigned n)
{
	char host[64];

	for (unsigned i = 1; i <= n; i++) {
		snprintf(host, sizeof(host), form, i);
		close(call_from(host, FX_HOLD));
	}
}

/* Three quarters of the places hang for a network, and seven eighths for a site
 * in all. */
TEST(a_network_whose_calls_hang_leaves_room_for_others)
{
	uint8_t in[CALL];
	int fd;

	hang_from("2001:db8::%x", 80);
	EVENTUALLY(stats_sum_by_name("udp_greedy") == 32);
	ck_assert_uint_eq(fx_held(), 48);
	hang_from("2001:db8:0:%x::1", 20);
	EVENTUALLY(stats_sum_by_name("udp_greedy") == 44);
	ck_assert_uint_eq(fx_held(), 56);
	fd = call_from(SERVER, FX_ECHO);
	ck_assert_int_eq(recv(fd, in, sizeof(in), 0), CALL);
	close(fd);
	fx_release(false);
}

/* In a network whose machine has all addresses of 2001:db8::/32. */
int main(void)
{
	if (unshare(CLONE_NEWNET) < 0 ||
	    system("exec 2>/dev/null; ip link set lo up && "
		   "ip -6 addr add " SERVER "/128 dev lo nodad && "
		   "ip -6 route add local 2001:db8::/32 dev lo && "
		   "echo 1 >/proc/sys/net/ipv6/ip_nonlocal_bind") != 0) {
		printf("skipped: no network with IPv6 can be made here\n");
		return 77;
	}
	return run_tests();
}
