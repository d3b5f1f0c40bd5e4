/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp_stream - a stream of FPDUs that a test makes, and its receiver. */
#pragma once

#include <string.h>

#include "lib/util.h"
#include "tests/unit/iwarp_world.h"

static struct world w;
static uint8_t stream[256 << 10];
static size_t len;
static uint8_t payload[8192];
static bool crc;

static void begin(bool with_crc)
{
	crc = with_crc;
	len = 0;
	world_init(&w, crc);
	for (size_t i = 0; i < sizeof(payload); i++)
		payload[i] = (uint8_t)(i * 7 + (i >> 8) + 1);
}

static void add(const struct ddp_header *h, const void *data)
{
	len += fpdu_put(stream + len, h, data, crc);
}

/* A message as a peer with room for @max bytes of payload sends it. */
static inline void add_message(struct ddp_header h, uint32_t n, uint32_t max)
{
	const uint8_t *p = payload;

	do {
		h.payload = MIN(n, max);
		h.last = n <= max;
		add(&h, p);
		p += h.payload;
		n -= h.payload;
		h.mo += h.tagged ? 0 : h.payload;
		h.to += h.tagged ? h.payload : 0;
	} while (n > 0);
}

static const struct ddp_header a_send __attribute__((unused)) = {
	.last = true, .opcode = RDMAP_SEND, .msn = 1,
};
static const struct ddp_header a_response __attribute__((unused)) = {
	.tagged = true, .last = true, .opcode = RDMAP_READ_RESPONSE,
	.stag = 0x100,
};
static const struct ddp_header a_write __attribute__((unused)) = {
	.tagged = true, .last = true, .opcode = RDMAP_WRITE,
	.stag = WORLD_STAG, .to = WORLD_TO,
};
static const struct ddp_header a_request __attribute__((unused)) = {
	.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ,
	.msn = 1, .payload = RDMAP_REQUEST_LEN,
};
static const struct ddp_header a_terminate __attribute__((unused)) = {
	.last = true, .opcode = RDMAP_TERMINATE, .qn = DDP_QN_TERMINATE,
	.msn = 1, .payload = 4,
};

static int feed(void)
{
	return rdmap_feed(&w.r, stream, len);
}
