/* SPDX-License-Identifier: BSD-2-Clause */
/* ports - a port of 127.0.0.1 that is the test's, for UDP and for TCP. */
#include "tests/unit/ports.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/unit/runner.h"

#define TRIES	1000

/* *@port 0 becomes a free one.  The descriptor, or -1: it is in use. */
static int bind_port(int type, uint16_t *port)
{
	struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons(*port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(in);

	ck_assert_int_ge(fd, 0);
	if (bind(fd, (struct sockaddr *)&in, len) < 0) {
		ck_assert_int_eq(errno, EADDRINUSE);
		close(fd);
		return -1;
	}
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &len), 0);
	*port = ntohs(in.sin_port);
	return fd;
}

uint16_t ports_bind(int *udp, int *tcp)
{
	for (int i = 0; i < TRIES; i++) {
		uint16_t port = 0;

		*tcp = bind_port(SOCK_STREAM, &port);
		ck_assert_int_ge(*tcp, 0);
		*udp = bind_port(SOCK_DGRAM, &port);
		if (*udp >= 0)
			return port;
		close(*tcp);
	}
	ck_abort_msg("no port is free for UDP and TCP");
}
