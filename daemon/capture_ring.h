/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture_ring - messages on their way from the threads that serve calls to the
 * one that sends them to gannetctl(8).
 *
 * Any thread adds, without a lock and without ever waiting: when the ring is
 * full, a message is not taken.  One thread takes them out, in the order in
 * which they were added.
 */
#ifndef GANNET_DAEMON_CAPTURE_RING_H
#define GANNET_DAEMON_CAPTURE_RING_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CAPTURE_CLIENT, CAPTURE_SERVER };

/* A call or a reply. */
struct capture_message {
	uint64_t	 ns;		/* since 1970 */
	uint32_t	 len;		/* bytes of the RPC message; */
	uint32_t	 stored;	/* the first of these were kept */
	struct in6_addr	 host[2];	/* IPv4 as ::ffff:a.b.c.d */
	uint16_t	 port[2];	/* of CAPTURE_CLIENT and ..._SERVER */
	uint8_t		 via;		/* a number of capture_packets.h */
	bool		 is_reply;
};

/* A place in the ring. */
struct capture_record {
	_Atomic uint32_t size;		/* of the place; 0: not written yet */
	struct capture_message m;
	uint8_t		 data[];	/* m.stored bytes */
};

struct capture_ring;

/* @size: a multiple of 64 bytes.  NULL: no memory. */
struct capture_ring *capture_ring_create(size_t size);
/* Nobody uses it any more.  NULL is fine. */
void capture_ring_destroy(struct capture_ring *ring);

/* Takes a place for @stored bytes, for the caller to fill in and then
 * capture_ring_add().  NULL: there is no room. */
struct capture_record *capture_ring_reserve(struct capture_ring *ring,
					    uint32_t stored);
void capture_ring_add(struct capture_record *record);

/* The oldest message; NULL: there is none, or it is still being written. */
struct capture_record *capture_ring_next(struct capture_ring *ring);
/* Gives its place back. */
void capture_ring_release(struct capture_ring *ring);

#endif
