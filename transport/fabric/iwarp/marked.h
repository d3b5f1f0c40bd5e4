/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * marked - a stream of FPDUs with markers, RFC 5044 section 4.3.  Pure.
 *
 * A marker begins at each 512th byte of the stream, and counts in it.  It tells
 * how far back the FPDU began that it lies in; one between two FPDUs belongs to
 * the later one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MARKED_INTERVAL	512u
#define MARKER_LEN	4u

/* Most bytes of markers in @len bytes of a stream, which have them already. */
static inline unsigned marked_share(unsigned len)
{
	return (len + MARKED_INTERVAL - 1) / MARKED_INTERVAL * MARKER_LEN;
}

/* Most bytes of a FPDU of @len with its markers. */
static inline unsigned marked_len(unsigned len)
{
	const unsigned between = MARKED_INTERVAL - MARKER_LEN;

	return len + (len + between - 1) / between * MARKER_LEN;
}

/* The writer of a stream.  All zero at its start, except crc. */
struct marked {
	uint64_t at;		/* in the stream: the next byte */
	uint64_t fpdu;		/* the FPDU's length field */
	uint8_t	*out;		/* where the next byte goes */
	bool	 crc;
	uint32_t sum;		/* of the FPDU so far */
};

/* Begins a FPDU at @out. */
void marked_begin(struct marked *m, uint8_t *out);
/* Adds @len bytes of the FPDU, each in its place between markers. */
void marked_put(struct marked *m, const uint8_t *data, size_t len);
/* Adds the CRC field, behind the pad, and ends the FPDU. */
void marked_end(struct marked *m);
