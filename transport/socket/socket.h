/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets and their addresses, as TCP, UDP and iWARP need them. */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "transport/fate.h"

/* A bound, non-blocking socket; the descriptor or -errno. */
int socket_bind(const struct sockaddr *addr, int type, bool v6only);
/* Tells the address that @fd is bound to. 0 or -errno. */
int socket_local(int fd, struct sockaddr_storage *out);
/* Turns an IPv4-mapped IPv6 address into an IPv4 one. */
void socket_unmap(struct sockaddr_storage *ss);

/*
 * Binds to the address @from, whose port is not used, and to a free port from
 * 512 to 1023, which some servers ask for.  A caller without the right to bind
 * one, or if all are in use, gets any port.  An address that this machine does
 * not have is left to the kernel to choose.
 */
void socket_bind_reserved(int fd, const struct sockaddr_storage *from);
/* Connects a non-blocking socket.  0, -ETIMEDOUT after @ms, or -errno. */
int socket_connect(int fd, const struct sockaddr *addr, int ms);

/*
 * Fills in @v from a connected TCP socket: the bytes that the peer has
 * acknowledged are the position.  Also works after a FIN, a reset and a
 * reported error.
 */
void socket_look(int fd, struct xprt_view *v);

/* Throws away bytes that came after our FIN, a bounded number.  True: the
 * peer's data have ended. */
bool socket_drain(int fd);

/* The milliseconds since data were last sent over a TCP socket, or since it was
 * connected, if none were: it can have waited for accept(2) for long. */
uint32_t socket_age(int fd);

/* Sets the options of all our TCP sockets; unacknowledged data ends the
 * connection after @timeout_ms. 0 or -errno. */
int socket_set_stream(int fd, unsigned timeout_ms);

/*
 * Closes a TCP socket.  For the time of socket_set_stream() the kernel
 * retransmits the data that the peer has not acknowledged.  It forgets the
 * connection after two seconds when the peer can't be reached, since the
 * address has moved to another machine or the peer is silent, and when only our
 * FIN is left to send.  Otherwise, when the address is back, a client that has
 * used another machine meanwhile, from the same port, would hang on the old
 * connection here.
 */
void socket_close_stream(int fd);

static inline int socket_set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value));
}
