/* SPDX-License-Identifier: BSD-2-Clause */
/* look - asks the kernel about the peer of a TCP socket. */
#include "transport/socket/socket.h"

#include <netinet/in.h>
#include <stddef.h>

/* glibc's struct tcp_info of 2007 has no tcpi_bytes_acked. */
#include <linux/tcp.h>

#include "lib/util.h"

/* States of a connection in the kernel. */
enum { ESTABLISHED = 1, FIN_WAIT1 = 4, FIN_WAIT2 = 5, CLOSED = 7 };

static bool get_info(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len) == 0 &&
	       len >= offsetof(struct tcp_info, tcpi_bytes_received);
}

void socket_look(int fd, struct xprt_view *v)
{
	struct tcp_info info = { 0 };
	uint32_t silent;

	if (!get_info(fd, &info))
		return;
	/* The kernel reads the state before it waits for a thread that sends
	 * there, and handles packets that came meanwhile, a reset say, only
	 * then. */
	if (info.tcpi_state == ESTABLISHED && !get_info(fd, &info))
		return;
	v->acked = info.tcpi_bytes_acked;
	silent = MIN(info.tcpi_last_data_recv, info.tcpi_last_ack_recv);
	v->heard = v->ended - MIN((uint64_t)silent, v->ended);
	switch (info.tcpi_state) {
	case ESTABLISHED:
	case FIN_WAIT1:
	case FIN_WAIT2:
		break;
	case CLOSED:
		v->end = XPRT_BROKEN;
		break;
	default:		/* the peer's FIN came */
		v->end = XPRT_ORDERLY;
		break;
	}
}

uint32_t socket_age(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	/* Before the first data are sent, the kernel counts from the end of the
	 * handshake. */
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return 0;
	return info.tcpi_last_data_sent;
}
