/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * iwarp - the fabric provider that needs no RDMA device.
 *
 * MPA (RFC 5044, 6581), DDP (RFC 5041) and RDMAP (RFC 5040) in user space over
 * ordinary TCP sockets; its peers are iWARP adapters, the kernel's siw, and
 * itself.  Memory that was registered without a REMOTE access has no STag, so
 * no peer can name it; a peer that tries loses its connection.
 *
 * Layers, lowest first: crc32c, mpa (start-up frames), marked (markers), ddp
 * (the headers of FPDUs), rdmap (arriving segments), which are pure; then mr,
 * tx, queue, recv, conn, startup, listen, iwarp.
 */
#pragma once

#include "transport/fabric/fabric.h"

/* An active end's first message, RFC 6581 section 9.2. */
enum iwarp_rtr {
	IWARP_RTR_NONE,		/* its first Send, Write or Read */
	IWARP_RTR_WRITE,	/* a zero-length RDMA Write */
	IWARP_RTR_READ,		/* a zero-length RDMA Read */
	IWARP_RTR_EITHER,	/* as the peer prefers */
};

/* Zero is the default, everywhere. */
struct iwarp_options {
	bool	 no_crc;	/* CRCs are used only if the peer asks */
	unsigned fpdu_size;	/* bytes of a FPDU, at most, without markers;
				 * 136..64772.  0: the largest that fits the
				 * path's MSS, with its markers */
	unsigned read_depth;	/* Reads in flight, each way; 0: 128 */
	unsigned max_handshakes;/* of a listener, unfinished; 0: 128 */
	unsigned handshake_ms;	/* 0: 10 s */
	unsigned first_ms;	/* for an accepted peer's first message; 0:
				 * 60 s */
	unsigned linger_ms;	/* that a closing end waits for the peer's FIN;
				 * 0: 2 s */
	unsigned user_timeout_ms;	/* TCP_USER_TIMEOUT; 0: 60 s */
	bool	 v4_too;	/* a listener at an IPv6 address takes IPv4 */

	/* Active ends only. */
	bool	 reserved_port;	/* connect from a port below 1024 if the process
				 * has the right */
	enum iwarp_rtr rtr;
	unsigned revision;	/* of MPA: 1, or 2 (0) */
};

/* 0 or -errno (-EINVAL).  @options can be NULL and is copied. */
int iwarp_fabric_create(const struct iwarp_options *options,
			struct fabric *out);
/* All connections, listeners and registrations must be gone. */
void iwarp_fabric_destroy(struct fabric *f);

/* The Reads that a peer accepts in flight (IRD) and wants in flight (ORD), as
 * its start-up frame said; 0x3fff: its user decides. */
struct iwarp_depths {
	bool	 told;
	uint16_t ird;
	uint16_t ord;
};

/* The depths of @conn's peer (RFC 6581 section 9.1), also when it refuses: from
 * request() on, or established() or closed() of an active end.  On the
 * connection's loop. */
struct iwarp_depths iwarp_peer_depths(const struct fabric_conn *conn);
