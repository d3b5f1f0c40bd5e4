/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pcapng - blocks of a capture file (draft-ietf-opsawg-pcapng).  Pure.
 *
 * All numbers are little-endian, times are nanoseconds since 1970.  The writers
 * append to memory that the caller gives; an overflow is sticky: nothing is
 * written after it, and bad says so.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Types of blocks. */
#define PCAPNG_SECTION		0x0a0d0d0au
#define PCAPNG_INTERFACE	1u
#define PCAPNG_STATISTICS	5u
#define PCAPNG_PACKET		6u

/* Options of statistics, 64 bits each. */
#define PCAPNG_RECEIVED		4u
#define PCAPNG_DROPPED		5u

/* Packets begin with an IPv4 or IPv6 header. */
#define PCAPNG_LINK_RAW		101u

/* The bytes of a packet's block around its data and the pad of that. */
#define PCAPNG_PACKET_EXTRA	32u

struct pcapng {
	uint8_t	*p;
	uint8_t	*start;
	uint8_t	*end;
	bool	 bad;
};

static inline void pcapng_init(struct pcapng *out, void *data, size_t len)
{
	out->p = out->start = data;
	out->end = out->start + len;
	out->bad = false;
}

static inline size_t pcapng_len(const struct pcapng *out)
{
	return (size_t)(out->p - out->start);
}

/* The section header block, which begins a file.  @program wrote it. */
void pcapng_section(struct pcapng *out, const char *program);

/* An interface description block: the next number from 0 on.  @snaplen: the
 * most bytes that are kept of a packet, 0 for all. */
void pcapng_interface(struct pcapng *out, const char *name,
		      const char *description, uint32_t snaplen);

/*
 * An enhanced packet block without its data: returns the place of @captured
 * bytes, which the caller fills in; NULL: they do not fit.  @len is the
 * packet's length on the wire.
 */
uint8_t *pcapng_packet(struct pcapng *out, uint32_t interface, uint64_t ns,
		       uint32_t captured, uint32_t len);

/* An interface statistics block: @received packets or messages, and @dropped
 * ones of these. */
void pcapng_statistics(struct pcapng *out, uint32_t interface, uint64_t ns,
		       uint64_t received, uint64_t dropped);
