/* SPDX-License-Identifier: BSD-2-Clause */
/* pcapng - see pcapng.h. */
#include "lib/pcapng.h"

#include <endian.h>
#include <string.h>

#include "lib/util.h"

/* Options. */
enum { END = 0, SECTION_PROGRAM = 4 };
enum { INTERFACE_NAME = 2, INTERFACE_DESCRIPTION = 3, INTERFACE_TSRESOL = 9 };

#define BYTE_ORDER_MAGIC	0x1a2b3c4du
#define NANOSECONDS		9u

static uint8_t *reserve_bytes(struct pcapng *out, size_t n)
{
	uint8_t *p = out->p;

	if (out->bad || (size_t)(out->end - p) < n) {
		out->bad = true;
		return NULL;
	}
	out->p += n;
	return p;
}

static void put_le16(struct pcapng *out, uint32_t v)
{
	uint8_t *p = reserve_bytes(out, 2);
	uint16_t le = htole16((uint16_t)v);

	if (p)
		memcpy(p, &le, 2);
}

static void put_le32(struct pcapng *out, uint32_t v)
{
	uint8_t *p = reserve_bytes(out, 4);

	v = htole32(v);
	if (p)
		memcpy(p, &v, 4);
}

/* The high half goes first. */
static void put_stamp(struct pcapng *out, uint64_t ns)
{
	put_le32(out, (uint32_t)(ns >> 32));
	put_le32(out, (uint32_t)ns);
}

static void put_option(struct pcapng *out, uint32_t code, const void *data,
		       size_t len)
{
	uint8_t *p;

	put_le16(out, code);
	put_le16(out, (uint32_t)len);
	p = reserve_bytes(out, ALIGN_UP(len, 4));
	if (p) {
		memset(p, 0, ALIGN_UP(len, 4));
		memcpy(p, data, len);
	}
}

static void put_number(struct pcapng *out, uint32_t code, uint64_t v)
{
	v = htole64(v);
	put_option(out, code, &v, sizeof(v));
}

/* Begins a block of options and such; returns its place. */
static size_t begin_block(struct pcapng *out, uint32_t type)
{
	size_t at = pcapng_len(out);

	put_le32(out, type);
	put_le32(out, 0);
	return at;
}

static void end_block(struct pcapng *out, size_t at)
{
	uint32_t len;

	put_option(out, END, "", 0);
	len = (uint32_t)(pcapng_len(out) - at + 4);
	put_le32(out, len);
	len = htole32(len);
	if (!out->bad)
		memcpy(out->start + at + 4, &len, 4);
}

void pcapng_section(struct pcapng *out, const char *program)
{
	size_t at = begin_block(out, PCAPNG_SECTION);

	put_le32(out, BYTE_ORDER_MAGIC);
	put_le16(out, 1);		/* version 1.0 */
	put_le16(out, 0);
	put_le32(out, UINT32_MAX);	/* its length is not known yet */
	put_le32(out, UINT32_MAX);
	put_option(out, SECTION_PROGRAM, program, strlen(program));
	end_block(out, at);
}

void pcapng_interface(struct pcapng *out, const char *name,
		      const char *description, uint32_t snaplen)
{
	const uint8_t resolution = NANOSECONDS;
	size_t at = begin_block(out, PCAPNG_INTERFACE);

	put_le16(out, PCAPNG_LINK_RAW);
	put_le16(out, 0);
	put_le32(out, snaplen);
	put_option(out, INTERFACE_NAME, name, strlen(name));
	put_option(out, INTERFACE_DESCRIPTION, description,
		   strlen(description));
	put_option(out, INTERFACE_TSRESOL, &resolution, 1);
	end_block(out, at);
}

uint8_t *pcapng_packet(struct pcapng *out, uint32_t interface, uint64_t ns,
		       uint32_t captured, uint32_t len)
{
	uint32_t padded = ALIGN_UP(captured, 4u);
	uint32_t total = padded + PCAPNG_PACKET_EXTRA;
	uint8_t *data;

	if (out->bad || (size_t)(out->end - out->p) < total) {
		out->bad = true;
		return NULL;
	}
	put_le32(out, PCAPNG_PACKET);
	put_le32(out, total);
	put_le32(out, interface);
	put_stamp(out, ns);
	put_le32(out, captured);
	put_le32(out, len);
	data = reserve_bytes(out, padded);
	memset(data + captured, 0, padded - captured);
	put_le32(out, total);
	return data;
}

void pcapng_statistics(struct pcapng *out, uint32_t interface, uint64_t ns,
		       uint64_t received, uint64_t dropped)
{
	size_t at = begin_block(out, PCAPNG_STATISTICS);

	put_le32(out, interface);
	put_stamp(out, ns);
	put_number(out, PCAPNG_RECEIVED, received);
	put_number(out, PCAPNG_DROPPED, dropped);
	end_block(out, at);
}
