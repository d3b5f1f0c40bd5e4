/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp_world - FPDUs by hand, and a world around the state of rdmap. */
#include "tests/unit/iwarp_world.h"

#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "transport/fabric/iwarp/crc32c.h"

size_t fpdu_put(uint8_t *out, const struct ddp_header *h, const void *payload,
		bool crc)
{
	unsigned len = ddp_encode(h, out);
	size_t whole = ddp_fpdu_len(len - DDP_LENGTH_LEN + h->payload);
	uint32_t v;

	if (h->payload > 0)
		memcpy(out + len, payload, h->payload);
	memset(out + len + h->payload, 0, whole - len - h->payload);
	if (crc) {
		v = crc32c(0, out, whole - 4);
		for (unsigned i = 0; i < 4; i++)
			out[whole - 4 + i] = (uint8_t)(v >> 8 * i);
	}
	return whole;
}

size_t unhex(const char *hex, uint8_t *out)
{
	size_t n = 0;
	unsigned v;

	for (; hex[0] && sscanf(hex, "%2x", &v) == 1; hex += 2)
		out[n++] = (uint8_t)v;
	return n;
}

static struct world *world_of(struct rdmap *r)
{
	return container_of(r, struct world, r);
}

static bool recv_get(struct rdmap *r, uint8_t **data, uint32_t *len)
{
	struct world *w = world_of(r);

	if (w->nrecv == WORLD_RECVS)
		return false;
	*data = w->recv[w->nrecv];
	*len = WORLD_RECV;
	return true;
}

static void recv_done(struct rdmap *r, int status, uint32_t len)
{
	struct world *w = world_of(r);

	w->recv_status[w->nrecv] = status;
	w->recv_inv[w->nrecv] = r->has_inv;
	w->recv_len[w->nrecv++] = len;
}

static bool read_get(struct rdmap *r, struct rdmap_read *read)
{
	struct world *w = world_of(r);

	if (w->nreads == w->max_reads)
		return false;
	*read = (struct rdmap_read){ .stag = 0x100 * (w->nreads + 1),
				     .len = WORLD_READ,
				     .sink = w->sink[w->nreads] };
	return true;
}

static void read_done(struct rdmap *r)
{
	world_of(r)->nreads++;
}

static enum term read_request(struct rdmap *r, const struct rdmap_request *req)
{
	struct world *w = world_of(r);

	w->requests++;
	w->request = *req;
	if (req->len > 0 && req->src_stag != WORLD_STAG)
		return TERM_RDMAP_STAG;
	return TERM_NONE;
}

static enum term write(struct rdmap *r, uint32_t stag, uint64_t to,
		       const uint8_t *data, uint32_t len)
{
	struct world *w = world_of(r);

	if (!w->writable || stag != WORLD_STAG)
		return TERM_DDP_STAG;
	if (to < WORLD_TO || to - WORLD_TO > WORLD_OPEN ||
	    len > WORLD_OPEN - (to - WORLD_TO))
		return TERM_DDP_BOUNDS;
	if (data)
		memcpy(w->open + (to - WORLD_TO), data, len);
	return TERM_NONE;
}

static enum term invalidate(struct rdmap *r, uint32_t stag)
{
	struct world *w = world_of(r);

	if (stag != WORLD_STAG)
		return TERM_RDMAP_INVALIDATE;
	w->invalidated++;
	return TERM_NONE;
}

static void terminated(struct rdmap *r, unsigned code)
{
	world_of(r)->terminated = code;
}

static const struct rdmap_ops world_ops = {
	.recv_get = recv_get, .recv_done = recv_done,
	.read_get = read_get, .read_done = read_done,
	.read_request = read_request, .write = write,
	.invalidate = invalidate, .terminated = terminated,
};

void world_init(struct world *w, bool crc)
{
	memset(w, 0, sizeof(*w));
	w->writable = true;
	w->max_reads = WORLD_READS;
	rdmap_init(&w->r, &world_ops, crc);
}

void world_fini(struct world *w)
{
	rdmap_fini(&w->r);
}
