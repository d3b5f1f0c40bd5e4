/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets and their addresses. */
#include "transport/socket/socket.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/util.h"
#include "transport/addr.h"

#define CLOSE_TIMEOUT	2000	/* ms */

int socket_bind(const struct sockaddr *addr, int type, bool v6only)
{
	int err, fd;

	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	fd = socket(addr->sa_family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (type == SOCK_STREAM &&
	    socket_set(fd, SOL_SOCKET, SO_REUSEADDR, 1) < 0)
		goto fail;
	if (addr->sa_family == AF_INET6 &&
	    socket_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, v6only) < 0)
		goto fail;
	if (bind(fd, addr, xprt_addr_len(addr)) < 0)
		goto fail;
	return fd;

fail:
	err = -errno;
	close(fd);
	return err;
}

int socket_set_stream(int fd, unsigned timeout_ms)
{
	int timeout = (int)MIN(timeout_ms, (unsigned)INT32_MAX);

	if (socket_set(fd, IPPROTO_TCP, TCP_NODELAY, 1) < 0 ||
	    socket_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1) < 0 ||
	    socket_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, timeout) < 0)
		return -errno;
	return 0;
}

int socket_local(int fd, struct sockaddr_storage *out)
{
	socklen_t len = sizeof(*out);

	memset(out, 0, sizeof(*out));
	return getsockname(fd, (struct sockaddr *)out, &len) < 0 ? -errno : 0;
}

/* True if the machine no longer has the address of @fd. */
static bool is_moved_away(int fd)
{
	struct sockaddr_storage at;
	bool is = false;
	int probe;

	if (socket_local(fd, &at) < 0)
		return false;
	xprt_addr_set_port(&at, 0);
	probe = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (probe >= 0) {
		is = bind(probe, (struct sockaddr *)&at, sizeof(at)) < 0 &&
		     errno == EADDRNOTAVAIL;
		close(probe);
	}
	return is;
}

/* True if the peer has all but our FIN, or acknowledges nothing. */
static bool is_told_or_deaf(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	int left;

	if (ioctl(fd, SIOCOUTQ, &left) == 0 && left <= 1)
		return true;
	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 &&
	       info.tcpi_retransmits > 0;
}

void socket_close_stream(int fd)
{
	if (is_told_or_deaf(fd) || is_moved_away(fd))
		socket_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, CLOSE_TIMEOUT);
	close(fd);
}

void socket_unmap(struct sockaddr_storage *ss)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr_in6 sin6;

	if (ss->ss_family != AF_INET6)
		return;
	memcpy(&sin6, ss, sizeof(sin6));
	if (!IN6_IS_ADDR_V4MAPPED(&sin6.sin6_addr))
		return;
	sin.sin_port = sin6.sin6_port;
	memcpy(&sin.sin_addr, &sin6.sin6_addr.s6_addr[12], 4);
	memset(ss, 0, sizeof(*ss));
	memcpy(ss, &sin, sizeof(sin));
}

int socket_connect(int fd, const struct sockaddr *addr, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int err = 0;

	if (connect(fd, addr, xprt_addr_len(addr)) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	while ((err = poll(&p, 1, ms)) < 0 && errno == EINTR)
		;
	if (err < 0)
		return -errno;
	if (err == 0)
		return -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
		return -errno;
	return -err;
}

bool socket_drain(int fd)
{
	ssize_t n = recv(fd, NULL, 1u << 20, MSG_TRUNC | MSG_DONTWAIT);

	return n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR);
}

void socket_bind_reserved(int fd, const struct sockaddr_storage *from)
{
	const unsigned first = IPPORT_RESERVED / 2, n = IPPORT_RESERVED / 2;
	struct sockaddr_storage ss = *from;
	struct sockaddr *sa = (struct sockaddr *)&ss;
	unsigned start;

	if (getrandom(&start, sizeof(start), GRND_NONBLOCK) < 0)
		start = (unsigned)fd;
	for (unsigned i = 0; i < n; i++) {
		xprt_addr_set_port(&ss, (uint16_t)(first + (start + i) % n));
		if (bind(fd, sa, xprt_addr_len(sa)) == 0)
			return;
		if (errno != EADDRINUSE)
			break;
	}
	xprt_addr_set_port(&ss, 0);
	/* If this also fails, connect() binds. */
	if (bind(fd, sa, xprt_addr_len(sa)) < 0)
		return;
}
