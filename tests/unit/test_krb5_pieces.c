/* SPDX-License-Identifier: BSD-2-Clause */
/* The bytes of a token of Kerberos, in pieces. */
#include "modules/krb5/krb5.h"
#include "tests/unit/runner.h"

static uint8_t left[64], right[64];

/* @first bytes on the left, the others of 32 on the right. */
static struct pieces lay(size_t first)
{
	struct pieces p = { .n = 0 };

	memset(left, 0xaa, sizeof(left));
	memset(right, 0xaa, sizeof(right));
	cfx_pieces_add(&p, left, first);
	cfx_pieces_add(&p, right, 32 - first);
	return p;
}

/* A reply has its end right behind its head, and its data elsewhere. */
TEST_LOOP(bytes_behind_a_piece_stay_as_they_are, 1, 32)
{
	size_t first = (size_t)_i;
	struct pieces p = lay(first);
	uint8_t in[16], out[16];

	for (uint8_t i = 0; i < sizeof(in); i++)
		in[i] = i;
	for (uint32_t at = 0; at <= 16; at++) {
		p = lay(first);
		cfx_pieces_put(&p, at, in, sizeof(in));
		cfx_pieces_get(&p, at, out, sizeof(out));
		ck_assert_mem_eq(in, out, sizeof(in));
		for (size_t i = first; i < sizeof(left); i++)
			ck_assert_uint_eq(left[i], 0xaa);
		for (size_t i = 32 - first; i < sizeof(right); i++)
			ck_assert_uint_eq(right[i], 0xaa);
	}
}
