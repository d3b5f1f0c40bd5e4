/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_iwarp_mpa - start-up frames: the length of any frame is bounded, and a
 * decoded frame survives encoding.  The first byte: request or reply.
 */
#include <stdlib.h>
#include <string.h>

#include "transport/fabric/iwarp/mpa.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define require(cond) do { if (!(cond)) abort(); } while (0)

static void conclude(const struct mpa_frame *f)
{
	struct mpa_frame req = { .rev = 2, .enhanced = true, .ird = 16,
				 .ord = 32, .p2p = true, .rtr_write = true };
	struct mpa_policy policy = { .ird = 16, .ord = 32 };
	struct mpa_agreed agreed;

	if (mpa_conclude(&req, &policy, f, &agreed) == 0)
		require(agreed.ord <= 32 && agreed.ird <= 16);
}

static void answer(const struct mpa_frame *f)
{
	struct mpa_policy policy = { .ird = 4, .ord = 16 };
	struct mpa_agreed agreed;
	struct mpa_frame reply;

	mpa_answer(f, &policy, &reply, &agreed);
	require(agreed.ord <= 16 && agreed.ird <= 4);
	require(reply.rev == f->rev && reply.enhanced == f->enhanced);
	require(!f->crc || agreed.crc);
	require(agreed.markers == f->markers);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t again[MPA_MAX_FRAME];
	struct mpa_frame f, g;
	bool reply;
	int whole;

	if (len < 1)
		return 0;
	reply = data[0] & 1;
	data++;
	len--;
	whole = mpa_frame_len(data, len, reply);
	require(whole <= (int)MPA_MAX_FRAME);
	if (whole <= 0 || (size_t)whole > len ||
	    mpa_decode(data, (size_t)whole, reply, &f) < 0)
		return 0;
	require(mpa_encode(&f, again) == (unsigned)whole);
	require(mpa_decode(again, (size_t)whole, reply, &g) == 0);
	require(f.ird == g.ird && f.ord == g.ord && f.p2p == g.p2p);
	require(f.private_len == g.private_len);
	require(f.private_len == 0 ||
		memcmp(f.private_data, g.private_data, f.private_len) == 0);
	if (reply)
		conclude(&f);
	else
		answer(&f);
	return 0;
}
