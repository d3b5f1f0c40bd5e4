/* SPDX-License-Identifier: BSD-2-Clause */
/* marked - a stream of FPDUs with markers. */
#include "transport/fabric/iwarp/marked.h"

#include <string.h>

#include <endian.h>

#include "lib/util.h"
#include "transport/fabric/iwarp/crc32c.h"

/* Without markers: at most up to the next one. */
static void put_plain(struct marked *m, const uint8_t *data, size_t len)
{
	memcpy(m->out, data, len);
	if (m->crc)
		m->sum = crc32c(m->sum, m->out, len);
	m->out += len;
	m->at += len;
}

/* All FPDUs and markers are multiples of four long, so the pointer is a
 * multiple of four as well. */
static void put_marker(struct marked *m)
{
	unsigned back = (unsigned)(m->at - m->fpdu);
	const uint8_t marker[MARKER_LEN] = { 0, 0, (uint8_t)(back >> 8),
					     (uint8_t)back };

	put_plain(m, marker, MARKER_LEN);
}

static void mark(struct marked *m)
{
	if (m->at % MARKED_INTERVAL == 0)
		put_marker(m);
}

void marked_begin(struct marked *m, uint8_t *out)
{
	m->out = out;
	m->sum = 0;
	m->fpdu = m->at;
	mark(m);
	m->fpdu = m->at;
}

void marked_put(struct marked *m, const uint8_t *data, size_t len)
{
	while (len > 0) {
		size_t n;

		mark(m);
		n = MIN(len, (size_t)(MARKED_INTERVAL -
				      m->at % MARKED_INTERVAL));
		put_plain(m, data, n);
		data += n;
		len -= n;
	}
}

void marked_end(struct marked *m)
{
	uint32_t sum;

	mark(m);
	sum = m->crc ? htole32(m->sum) : 0;
	memcpy(m->out, &sum, sizeof(sum));
	m->out += sizeof(sum);
	m->at += sizeof(sum);
}
