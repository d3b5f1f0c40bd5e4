/* SPDX-License-Identifier: BSD-2-Clause */
/* The results of MNT on the wire, both ways. */
#include <stdlib.h>
#include <string.h>

#include "tests/unit/runner.h"
#include "wire/mount.h"

static uint8_t wire[256];
static struct mount_result r;

/* MNT's results with a handle and @n flavors, 100 and so on; their length. */
static size_t put(uint32_t n)
{
	struct xdr_out x;

	xdr_out_init(&x, wire, sizeof(wire));
	xdr_put_u32(&x, MNT3_OK);
	xdr_put_opaque(&x, "handle", 6);
	xdr_put_u32(&x, n);
	for (uint32_t i = 0; i < n && i < 20; i++)
		xdr_put_u32(&x, 100 + i);
	return xdr_out_len(&x);
}

static bool get(size_t len)
{
	/* Exactly as long as the input, for the sanitizer. */
	uint8_t *copy = malloc(len ? len : 1);
	struct xdr_in x;
	bool ok;

	memcpy(copy, wire, len);
	xdr_in_init(&x, copy, len);
	ok = mount_get_mnt3(&x, &r);
	ck_assert(!ok || r.fh.len == 6);
	free(copy);
	return ok;
}

TEST(the_flavors_of_mnt_are_read_in_their_order)
{
	for (uint32_t n = 0; n <= MOUNT_MAX_FLAVORS; n++) {
		ck_assert(get(put(n)));
		ck_assert_uint_eq(r.nflavors, n);
		for (uint32_t i = 0; i < n; i++)
			ck_assert_uint_eq(r.flavors[i], 100 + i);
	}
}

TEST(a_list_of_flavors_that_is_cut_or_too_long_is_as_none)
{
	size_t whole = put(3);

	for (size_t len = 0; len < whole; len++) {
		ck_assert_int_eq(get(len), len >= 16);
		ck_assert(len < 16 || r.nflavors == 0);
	}
	ck_assert(get(put(MOUNT_MAX_FLAVORS + 1)));
	ck_assert_uint_eq(r.nflavors, 0);
	ck_assert(get(put(UINT32_MAX)));
	ck_assert_uint_eq(r.nflavors, 0);
}
