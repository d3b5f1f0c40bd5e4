/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream - RPC over TCP with record marking (RFC 5531 section 11), and over
 * UDP.
 *
 * A TCP connection belongs to one poller for life, which reads from it.  The
 * thread that gives a reply sends it, together with other threads' replies, in
 * few system calls.  Both kinds of listener take AF_INET and AF_INET6
 * addresses; an AF_INET6 wildcard serves IPv4 too, and peers that come so are
 * shown as AF_INET.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "transport/xprt.h"

struct tls_server;

/* Zero is the default, named with each field. */
struct tcp_options {
	bool	 v6only;		/* :: is not for IPv4 */
	/* Closes a connection that... */
	uint32_t idle_ms;		/* 6 min; does not call */
	uint32_t stall_ms;		/* 60 s; needs longer for one record */
	uint32_t send_ms;		/* 60 s; reads no byte of its replies */
	uint32_t short_ms;		/* 5 s; while others wait for memory, is
					 * so slow that it would keep its memory
					 * for over a minute */
	uint32_t linger_ms;		/* 2 s; does not close when drained */
	uint32_t unread_ms;		/* 200 ms; has ended in order, but
					 * perhaps without reading a reply of
					 * the last... */
	uint32_t reply_ms;		/* 800 ms */
	/* Calls are not read while a connection has more than this... */
	uint32_t max_calls;		/* 256; in progress */
	size_t	 max_queued;		/* 8 MiB; bytes of replies unsent */
	/* RPC-with-TLS (RFC 9289); NULL: no TLS.  Borrowed. */
	const struct tcp_tls *tls;
};

/* Handshakes compute for milliseconds, so they go to other threads. */
struct tcp_job {
	void	(*run)(struct tcp_job *job);
	const struct sockaddr *peer;	/* whose turn it is */
};

struct tcp_tls {
	struct tls_server *server;	/* borrowed */
	/* Has @job run on another thread, once; it stays valid until then.  0
	 * or -errno.  On a poller: must not block. */
	int	(*submit)(void *arg, struct tcp_job *job);
	void	*arg;
	uint32_t handshake_ms;		/* 10 s; closes a connection that needs
					 * longer */
	unsigned max;			/* 256; handshakes at a time, */
	unsigned max_peer;		/* 64; of one address.  The last quarter
					 * of all is for addresses without
					 * one */
	uint64_t max_records;		/* 2^24, of 2^24.5 that a key can send
					 * (RFC 8446 section 5.5): then the
					 * connection ends in order */
};

struct udp_options {
	bool	 v6only;
	uint32_t max_calls;		/* 256; reading stops at this many calls
					 * in progress */
	uint32_t max_host_calls;	/* a quarter of these, no fewer than 16;
					 * more of one host are dropped */
	uint32_t max_len;		/* 64 KiB; longer ones are dropped */
};

/* @o can be NULL.  0 or -errno.  The loops must run by the time of stop or
 * free.  Don't call those on one of the loops. */
int tcp_listen(const struct xprt_env *env, const struct sockaddr *addr,
	       const struct tcp_options *o, struct xprt_listener **out);
/*
 * The first loop takes all calls.  Each call has a separate xprt; a reply
 * leaves from the address that the call came to.  A reply that does not fit a
 * datagram is lost.  The listener counts calls in progress.
 */
int udp_listen(const struct xprt_env *env, const struct sockaddr *addr,
	       const struct udp_options *o, struct xprt_listener **out);
