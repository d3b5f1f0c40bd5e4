/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes RPC-over-RDMA headers a word at a time, for the codec tests. */
#pragma once

#include "tests/unit/runner.h"
#include "transport/rpcrdma/proto.h"

/* A message being made; tests spoil it where they like. */
struct wire {
	uint8_t		mem[8192];
	struct xdr_out	out;
};

#define XID 0x48768a80u

static struct wire w;
static struct rpcrdma_header h;

static inline void begin(uint32_t vers, uint32_t proc)
{
	xdr_out_init(&w.out, w.mem, sizeof(w.mem));
	xdr_put_u32(&w.out, XID);
	xdr_put_u32(&w.out, vers);
	xdr_put_u32(&w.out, 128);
	xdr_put_u32(&w.out, proc);
}

static inline void put_segment(uint32_t handle, uint32_t length,
			       uint64_t offset)
{
	xdr_put_u32(&w.out, handle);
	xdr_put_u32(&w.out, length);
	xdr_put_u64(&w.out, offset);
}

static inline void put_read(uint32_t position, uint32_t length)
{
	xdr_put_u32(&w.out, 1);
	xdr_put_u32(&w.out, position);
	put_segment(0x1000 + position, length, 0x0123456789ull);
}

/* A Write list entry or Reply chunk of @n segments of @length. */
static inline void put_chunk(uint32_t n, uint32_t length)
{
	xdr_put_u32(&w.out, 1);
	xdr_put_u32(&w.out, n);
	for (uint32_t i = 0; i < n; i++)
		put_segment(0x2000 + i, length, 0x1000 * i);
}

static inline void put_zeros(unsigned words)
{
	while (words-- > 0)
		xdr_put_u32(&w.out, 0);
}

static inline int decode(void)
{
	ck_assert(!w.out.bad);
	return rpcrdma_header_decode(w.mem, xdr_out_len(&w.out), &h);
}
