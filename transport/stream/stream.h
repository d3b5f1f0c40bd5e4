/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream - RPC over TCP with record marking (RFC 5531 section 11), and over
 * UDP.
 *
 * A TCP connection belongs to one of the pollers for life: that one reads.
 * Replies are sent by whoever gives them, gathered into few system calls.
 * Both kinds of listener take AF_INET and AF_INET6 addresses; an AF_INET6
 * wildcard serves IPv4 too, and peers that come so are shown as AF_INET.
 */
#ifndef GANNET_TRANSPORT_STREAM_STREAM_H
#define GANNET_TRANSPORT_STREAM_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/xprt.h"

/* A field that is 0 has the default that is named. */
struct tcp_options {
	bool	 v6only;		/* :: is not for IPv4 */
	/* Closes a connection that... */
	uint32_t idle_ms;		/* 6 min; does not call */
	uint32_t stall_ms;		/* 60 s; takes longer for one record */
	uint32_t send_ms;		/* 60 s; takes no byte of its replies */
	uint32_t short_ms;		/* 5 s; while others wait for memory,
					 * moves so little that it would keep
					 * what it has for over a minute */
	uint32_t linger_ms;		/* 2 s; does not close when drained */
	/* Calls are not read while a connection has more than this... */
	uint32_t max_calls;		/* 256; in progress */
	size_t	 max_queued;		/* 8 MiB; bytes of replies unsent */
};

struct udp_options {
	bool	 v6only;
	uint32_t max_calls;		/* 256; nothing is read while there are
					 * more in progress */
	uint32_t max_host_calls;	/* a quarter of these, no fewer than 16;
					 * more of one host are dropped */
	uint32_t max_len;		/* 64 KiB; longer ones are dropped */
};

/* @o may be NULL.  0 or -errno.  The loops must run by the time of stop or
 * free, neither of which may be called on one of them. */
int tcp_listen(const struct xprt_env *env, const struct sockaddr *addr,
	       const struct tcp_options *o, struct xprt_listener **out);
/*
 * All calls are taken on the first loop.  The xprt of a message is that call's
 * alone; replies leave from the address that was asked.  A reply that does
 * not fit a datagram is lost.  The listener's count is of calls in progress.
 */
int udp_listen(const struct xprt_env *env, const struct sockaddr *addr,
	       const struct udp_options *o, struct xprt_listener **out);

#endif
