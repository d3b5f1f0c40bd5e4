/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SETACL's arguments, of any bytes: each list that is valid goes back to the
 * wire, and comes from there as the same.
 */
#include <stdlib.h>
#include <string.h>

#include "nfs3/acl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static uint8_t wire[64 + VFS_ACL_MAX * NFSACL_ENTRY_SIZE];
static struct vfs_acls acls;
static struct vfs_acl_entry again[VFS_ACL_MAX];

static void check(enum vfs_acl_kind kind, struct xdr_view entries)
{
	uint32_t bit = nfs3_acl_bit(kind, NFSACL_ACL), n, skip;
	const struct vfs_attr owner = { .uid = 1, .gid = 2 };
	struct xdr_out out;
	int got;

	memset(acls.n, 0, sizeof(acls.n));
	got = nfs3_acl_from_wire(entries, acls.entry[kind]);
	if (got < 0)
		return;
	acls.n[kind] = n = (uint32_t)got;
	xdr_out_init(&out, wire, nfs3_acls_size(&acls, bit));
	nfs3_put_acls(&out, &acls, bit, &owner);
	if (out.bad)
		abort();
	/* The other list's two words are before or behind it. */
	skip = kind == VFS_ACL_DEFAULT ? 16 : 8;
	got = nfs3_acl_from_wire((struct xdr_view){ wire + skip,
			(uint32_t)xdr_out_len(&out) - 16 }, again);
	if (got != (int)n ||
	    memcmp(again, acls.entry[kind], n * sizeof(again[0])) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct nfs3_setacl_args a;
	struct xdr_in x;

	xdr_in_init(&x, data, len);
	if (!nfs3_get_setacl(&x, &a))
		return 0;
	for (int kind = 0; kind < VFS_ACL_KINDS; kind++)
		check(kind, a.acl[kind].entries);
	return 0;
}
