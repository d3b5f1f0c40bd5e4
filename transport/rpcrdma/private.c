/* SPDX-License-Identifier: BSD-2-Clause */
/* private - the private data of a connect request or answer (RFC 8797).
 * Pure. */
#include "transport/rpcrdma/proto.h"

#include <string.h>

static const uint8_t magic[4] = { 0xf6, 0xab, 0x0e, 0x18 };

enum { FORMAT_VERSION = 1, FLAG_REMOTE_INV = 0x01 };

/* RFC 8797 section 4.2: the number of KiB beyond the first. */
static uint8_t encode_size(uint32_t size)
{
	if (size < RPCRDMA_INLINE_MIN)
		return 0;
	if (size > RPCRDMA_INLINE_MAX)
		size = RPCRDMA_INLINE_MAX;
	return (uint8_t)(size / 1024 - 1);
}

static uint32_t decode_size(uint8_t wire)
{
	return (wire + 1u) * 1024;
}

void rpcrdma_private_encode(const struct rpcrdma_private *p,
			    uint8_t out[RPCRDMA_PRIVATE_LEN])
{
	memcpy(out, magic, sizeof(magic));
	out[4] = FORMAT_VERSION;
	out[5] = p->remote_inv ? FLAG_REMOTE_INV : 0;
	out[6] = encode_size(p->send_size);
	out[7] = encode_size(p->recv_size);
}

bool rpcrdma_private_decode(const void *data, size_t len,
			    struct rpcrdma_private *p)
{
	const uint8_t *b = data;

	p->remote_inv = false;
	p->send_size = RPCRDMA_INLINE_MIN;
	p->recv_size = RPCRDMA_INLINE_MIN;

	/* RFC 8797 section 5.2: it can stand anywhere in the buffer. */
	for (size_t i = 0; i + RPCRDMA_PRIVATE_LEN <= len; i++) {
		if (memcmp(b + i, magic, sizeof(magic)) != 0)
			continue;
		if (b[i + 4] != FORMAT_VERSION)
			return false;
		p->remote_inv = b[i + 5] & FLAG_REMOTE_INV;
		p->send_size = decode_size(b[i + 6]);
		p->recv_size = decode_size(b[i + 7]);
		return true;
	}
	return false;
}
