/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_iwarp_rdmap - a stream of FPDUs, cut as the first byte says: no input
 * touches memory that was not offered, and the cuts make no difference.
 *
 * First byte: bit 0 CRCs are on; bit 1 they are put right first, to let a
 * fuzzer get past them; bits 2.. how many bytes come at a time.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "tests/unit/iwarp_world.h"
#include "transport/fabric/iwarp/crc32c.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define require(cond) do { if (!(cond)) abort(); } while (0)

static struct world whole, cut;

static void mend_crcs(uint8_t *p, size_t len)
{
	while (len >= 3 && ddp_length_ok(p)) {
		size_t n = ddp_fpdu_len((unsigned)p[0] << 8 | p[1]);
		uint32_t crc;

		if (n > len)
			return;
		crc = crc32c(0, p, n - 4);
		for (unsigned i = 0; i < 4; i++)
			p[n - 4 + i] = (uint8_t)(crc >> 8 * i);
		p += n;
		len -= n;
	}
}

/* Like a receiver: to where it belongs, if that is known. */
static int feed(struct world *w, const uint8_t *data, size_t n)
{
	struct rdmap_want want;
	size_t placed;

	if (!rdmap_want(&w->r, &want) || !want.data)
		return rdmap_feed(&w->r, data, n);
	placed = MIN(n, (size_t)want.len);
	memcpy(want.data, data, placed);
	if (rdmap_placed(&w->r, (uint32_t)placed) < 0)
		return -1;
	return rdmap_feed(&w->r, data + placed, n - placed);
}

static void compare(void)
{
	require(whole.r.term == cut.r.term);
	require(whole.nrecv == cut.nrecv);
	require(whole.nreads == cut.nreads);
	require(whole.requests == cut.requests);
	require(whole.terminated == cut.terminated);
	for (unsigned i = 0; i < whole.nrecv; i++) {
		require(whole.recv_len[i] == cut.recv_len[i]);
		require(whole.recv_len[i] <= WORLD_RECV);
		require(memcmp(whole.recv[i], cut.recv[i],
			       whole.recv_len[i]) == 0);
	}
	/* The Write that broke a rule is perhaps placed in part. */
	if (whole.r.term == TERM_NONE)
		require(memcmp(whole.open, cut.open, WORLD_OPEN) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *copy;
	size_t step;
	bool crc;

	if (len < 1)
		return 0;
	crc = data[0] & 1;
	step = 1u + (data[0] >> 2);
	copy = malloc(len);
	memcpy(copy, data, len);
	if (data[0] & 2)
		mend_crcs(copy + 1, len - 1);
	world_init(&whole, crc);
	rdmap_feed(&whole.r, copy + 1, len - 1);
	world_init(&cut, crc);
	for (size_t at = 1; at < len; at += step)
		if (feed(&cut, copy + at, MIN(step, len - at)))
			break;
	compare();
	world_fini(&whole);
	world_fini(&cut);
	free(copy);
	return 0;
}
