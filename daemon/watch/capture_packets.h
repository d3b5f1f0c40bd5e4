/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture_packets - RPC messages as TCP and UDP packets of a capture file.
 * Pure.
 *
 * The packets in which a message came are not known here, and over RDMA tools
 * could not put them together.  So a message is shown as TCP would carry it:
 * with a record mark (RFC 5531 section 11), in segments whose sequence numbers
 * follow one another.  Messages that came over UDP are datagrams again.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/pcapng.h"

enum { CAPTURE_CLIENT, CAPTURE_SERVER };

/* A call or a reply. */
struct capture_message {
	uint64_t	 ns;		/* since 1970 */
	uint32_t	 len;		/* bytes of the RPC message; */
	uint32_t	 stored;	/* the first of these were kept */
	struct in6_addr	 host[2];	/* IPv4 as ::ffff:a.b.c.d */
	uint16_t	 port[2];	/* of CAPTURE_CLIENT and ..._SERVER */
	uint8_t		 via;		/* a number of capture_via() */
	bool		 is_reply;
};

/* The interfaces of the file, one a transport, and their number. */
#define CAPTURE_VIAS	5u
/* The number of the transport that xprt->via names. */
uint8_t capture_via(const char *name);

/* TCP's bytes in a packet. */
#define CAPTURE_SEGMENT	64000u
/* The most bytes of a message that is not stored whole.  They are in its first
 * packet then, which is not whole either: so tools don't wait for the rest. */
#define CAPTURE_CUT	(CAPTURE_SEGMENT - 8u)
/* The bytes of a message's packets, at most, without the message. */
#define CAPTURE_EXTRA(stored) \
	((size_t)((stored) / CAPTURE_SEGMENT + 2) * \
	 (PCAPNG_PACKET_EXTRA + 40 + 20 + 4 + 4))
/* The bytes of capture_begin(), and of capture_end(), at most. */
#define CAPTURE_FRAME	2048u

struct capture_packets;

/* NULL: no memory. */
struct capture_packets *capture_packets_create(void);
void capture_packets_destroy(struct capture_packets *p);

/* The file's first blocks.  @snaplen: see capture_add(), 0: messages are
 * whole. */
void capture_begin(struct pcapng *out, const char *program, uint32_t snaplen);
/* Appends the packets of @m, of which @data are the stored bytes.  A message
 * that is not stored whole ends with a packet that is longer than its bytes. */
void capture_add(struct capture_packets *p, struct pcapng *out,
		 const struct capture_message *m, const uint8_t *data);
/* The statistics of the interfaces, which end the file. */
void capture_end(struct pcapng *out, uint64_t ns,
		 const uint64_t received[CAPTURE_VIAS],
		 const uint64_t dropped[CAPTURE_VIAS]);
