/* SPDX-License-Identifier: BSD-2-Clause */
/* The sockets at an address that a server has registered with rpcbind. */
#include "rpc/rpcbind.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/unit/runner.h"
#include "transport/addr.h"

#define STRANGER	54321

static const char *const netids[] = { "tcp", "udp", "tcp6", "udp6" };

/* The address of the last bind_at(). */
static struct sockaddr_storage at;

/* At @port, or one that the kernel chooses; over IPv6 alone, or IPv4. */
static int bind_at(const char *netid, uint16_t port)
{
	bool six = netid[3] == '6';
	socklen_t len = sizeof(at);
	const int one = 1;
	int fd;

	at = (struct sockaddr_storage){ .ss_family = six ? AF_INET6 :
							    AF_INET };
	xprt_addr_set_port(&at, port);
	fd = socket(at.ss_family, *netid == 'u' ? SOCK_DGRAM : SOCK_STREAM, 0);
	if (six)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at,
			      xprt_addr_len((struct sockaddr *)&at)), 0);
	getsockname(fd, (struct sockaddr *)&at, &len);
	return fd;
}

static int listen_at(const char *netid, uint16_t port)
{
	int fd = bind_at(netid, port);

	ck_assert(*netid == 'u' || listen(fd, 1) == 0);
	return fd;
}

/* That is the owner whom the kernel shows.  Only root can do that. */
static bool give_away(int fd)
{
	return fchown(fd, STRANGER, (gid_t)-1) == 0;
}

TEST_LOOP(an_address_that_is_bound_is_in_use, 0, ARRAY_SIZE(netids))
{
	const char *netid = netids[_i];
	int fd = listen_at(netid, 0);
	char uaddr[RPCBIND_UADDR_MAX];

	rpcbind_uaddr((struct sockaddr *)&at, uaddr);
	ck_assert_int_eq(rpcbind_use_of(netid, uaddr), RPCBIND_USED);
	if (give_away(fd))
		ck_assert_int_eq(rpcbind_use_of(netid, uaddr),
				 RPCBIND_FOREIGN);
	close(fd);
	ck_assert_int_eq(rpcbind_use_of(netid, uaddr), RPCBIND_FREE);
}

TEST(an_address_of_no_use_is_free_or_can_not_be_looked_at)
{
	/* No address of this machine. */
	ck_assert_int_eq(rpcbind_use_of("tcp", "192.0.2.77.80.1"),
			 RPCBIND_FREE);
	ck_assert_int_eq(rpcbind_use_of("rdma", "0.0.0.0.78.81"),
			 RPCBIND_USED);
	ck_assert_int_eq(rpcbind_use_of("tcp", "nonsense"), RPCBIND_USED);
	ck_assert_int_eq(rpcbind_use_of("tcp", ""), RPCBIND_USED);
	ck_assert_int_eq(rpcbind_use_of("tcp6", "1.2.3.4.5.6"), RPCBIND_USED);
}

/* It can listen after the server has looked. */
TEST_LOOP(a_port_that_is_bound_without_a_listener_is_no_servers, 0, 2)
{
	static const char *const streams[] = { "tcp", "tcp6" };
	int fd = bind_at(streams[_i], 0);
	char uaddr[RPCBIND_UADDR_MAX];

	rpcbind_uaddr((struct sockaddr *)&at, uaddr);
	ck_assert_int_eq(rpcbind_use_of(streams[_i], uaddr), RPCBIND_FOREIGN);
	close(fd);
}

/* It can leave its peer after the server has looked. */
TEST_LOOP(a_datagram_socket_is_seen_while_it_has_a_peer, 0, 2)
{
	static const char *const datagrams[] = { "udp", "udp6" };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = 9,
				    .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = 9,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const char *netid = datagrams[_i];
	char uaddr[RPCBIND_UADDR_MAX];
	int fd = bind_at(netid, 0);

	rpcbind_uaddr((struct sockaddr *)&at, uaddr);
	ck_assert_int_eq(_i ? connect(fd, (void *)&six, sizeof(six)) :
			      connect(fd, (void *)&four, sizeof(four)), 0);
	ck_assert_int_eq(rpcbind_use_of(netid, uaddr), RPCBIND_USED);
	if (give_away(fd))
		ck_assert_int_eq(rpcbind_use_of(netid, uaddr),
				 RPCBIND_FOREIGN);
	close(fd);
}

/* Each user can have the port of a server of IPv4 over IPv6. */
TEST_LOOP(a_stranger_of_the_other_family_leaves_a_server_at_work, 0, 2)
{
	int fd = listen_at(netids[_i], 0), beside;
	char uaddr[RPCBIND_UADDR_MAX];

	rpcbind_uaddr((struct sockaddr *)&at, uaddr);
	beside = listen_at(netids[_i + 2], xprt_addr_port(&at));
	if (give_away(beside))
		ck_assert_int_eq(rpcbind_use_of(netids[_i], uaddr),
				 RPCBIND_USED);
	close(beside);
	close(fd);
}
