/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFSACL on the wire.  Pure.
 *
 * A list is the number of its entries, and an array of all of them or of none.
 * An entry is a type, an id and permissions.  Lists on the wire always have a
 * mask entry, so a file without named entries has four.  Linux's lists have
 * three then: the mask comes and goes here, as it does in Linux.
 *
 * Arrays of more than 1,024 entries fail to decode, and become GARBAGE_ARGS.
 * Every other malformed list is INVAL.
 */
#include "nfs3/acl.h"

#include <errno.h>
#include <stdlib.h>

#define PERM_ALL	7
#define NO_ID		UINT32_MAX

bool nfs3_get_getacl(struct xdr_in *x, void *args)
{
	struct nfs3_getacl_args *a = args;

	a->fh = xdr_get_opaque(x, NFS3_FHSIZE);
	a->mask = xdr_get_u32(x);
	return xdr_ok(x);
}

bool nfs3_get_setacl(struct xdr_in *x, void *args)
{
	struct nfs3_setacl_args *a = args;

	a->fh = xdr_get_opaque(x, NFS3_FHSIZE);
	a->mask = xdr_get_u32(x);
	for (int kind = 0; kind < VFS_ACL_KINDS; kind++) {
		a->acl[kind].n = xdr_get_u32(x);
		a->acl[kind].entries = xdr_get_fixed(x, NFSACL_ENTRY_SIZE *
				xdr_get_count(x, NFSACL_MAX_ENTRIES));
	}
	return xdr_ok(x);
}

static bool is_named(uint16_t tag)
{
	return tag == VFS_ACL_USER || tag == VFS_ACL_GROUP;
}

static bool get_entry(struct xdr_in *x, struct vfs_acl_entry *e)
{
	uint32_t type = xdr_get_u32(x) & ~(uint32_t)NFSACL_TYPE_DEFAULT;
	uint32_t id = xdr_get_u32(x), perm = xdr_get_u32(x);

	/* Solaris sets other bits in a mask. */
	if (type == VFS_ACL_MASK)
		perm &= PERM_ALL;
	/* One of the tags: a power of two. */
	if (type == 0 || type > VFS_ACL_OTHER || type & (type - 1) ||
	    perm > PERM_ALL)
		return false;
	e->tag = (uint16_t)type;
	e->perm = (uint16_t)perm;
	e->id = is_named(e->tag) ? id : 0;
	return !is_named(e->tag) || id != NO_ID;
}

static uint64_t order(const struct vfs_acl_entry *e)
{
	return (uint64_t)e->tag << 32 | e->id;
}

static int compare_entries(const void *a, const void *b)
{
	uint64_t x = order(a), y = order(b);

	return x < y ? -1 : x > y;
}

/* As acl(5) says under "valid ACLs"; @e is sorted. */
static bool is_valid(const struct vfs_acl_entry *e, uint32_t n)
{
	const unsigned base = VFS_ACL_USER_OBJ | VFS_ACL_GROUP_OBJ |
			      VFS_ACL_OTHER;
	unsigned tags = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (i > 0 && order(&e[i - 1]) == order(&e[i]))
			return false;
		tags |= e[i].tag;
	}
	return (tags & base) == base &&
	       (tags & VFS_ACL_MASK ||
		!(tags & (VFS_ACL_USER | VFS_ACL_GROUP)));
}

int nfs3_acl_from_wire(struct xdr_view wire, struct vfs_acl_entry *out)
{
	uint32_t n = wire.len / NFSACL_ENTRY_SIZE;
	struct xdr_in x;

	xdr_in_init(&x, wire.data, wire.len);
	for (uint32_t i = 0; i < n; i++)
		if (!get_entry(&x, &out[i]))
			return -EINVAL;
	if (n == 0)
		return 0;
	qsort(out, n, sizeof(*out), compare_entries);
	if (!is_valid(out, n))
		return -EINVAL;
	/* USER_OBJ, GROUP_OBJ, MASK, OTHER. */
	if (n == 4 && out[2].tag == VFS_ACL_MASK &&
	    out[1].perm == out[2].perm) {
		out[2] = out[3];
		n = 3;
	}
	return (int)n;
}

void nfs3_acl_from_mode(uint32_t mode, struct vfs_acl_entry out[3])
{
	static const uint16_t tags[3] = { VFS_ACL_USER_OBJ, VFS_ACL_GROUP_OBJ,
					  VFS_ACL_OTHER };

	for (int i = 0; i < 3; i++)
		out[i] = (struct vfs_acl_entry){
			.tag = tags[i],
			.perm = mode >> (6 - 3 * i) & PERM_ALL,
		};
}

void nfs3_put_setacl(struct xdr_out *x, const void *res)
{
	const struct nfs3_acl_res *r = res;

	xdr_put_u32(x, r->status);
	nfs3_put_post_attr(x, &r->attr);
}

void nfs3_put_getacl(struct xdr_out *x, const void *res)
{
	const struct nfs3_acl_res *r = res;

	nfs3_put_setacl(x, res);
	if (r->status == NFS3_OK)
		xdr_put_u32(x, r->mask);
}

/* The entries of a list on the wire. */
static uint32_t wire_count(const struct vfs_acls *acls, enum vfs_acl_kind kind)
{
	return acls->n[kind] == 3 ? 4 : acls->n[kind];
}

size_t nfs3_acls_size(const struct vfs_acls *acls, uint32_t mask)
{
	size_t size = 0;

	for (int kind = 0; kind < VFS_ACL_KINDS; kind++) {
		size += 4 + 4;
		if (mask & nfs3_acl_bit(kind, NFSACL_ACL))
			size += NFSACL_ENTRY_SIZE * wire_count(acls, kind);
	}
	return size;
}

static void put_entry(struct xdr_out *x, const struct vfs_acl_entry *e,
		      uint32_t flag, const struct vfs_attr *owner)
{
	uint32_t id = is_named(e->tag) ? e->id : 0;

	if (e->tag == VFS_ACL_USER_OBJ)
		id = owner->uid;
	if (e->tag == VFS_ACL_GROUP_OBJ)
		id = owner->gid;
	xdr_put_u32(x, e->tag | flag);
	xdr_put_u32(x, id);
	xdr_put_u32(x, e->perm & PERM_ALL);
}

static void put_entries(struct xdr_out *x, const struct vfs_acls *acls,
			enum vfs_acl_kind kind, const struct vfs_attr *owner)
{
	uint32_t flag = kind == VFS_ACL_DEFAULT ? NFSACL_TYPE_DEFAULT : 0;
	const struct vfs_acl_entry *e = acls->entry[kind];

	for (uint32_t i = 0; i < acls->n[kind]; i++) {
		put_entry(x, &e[i], flag, owner);
		if (acls->n[kind] == 3 && e[i].tag == VFS_ACL_GROUP_OBJ)
			put_entry(x, &(struct vfs_acl_entry){
					.tag = VFS_ACL_MASK,
					.perm = e[i].perm }, flag, owner);
	}
}

void nfs3_put_acls(struct xdr_out *x, const struct vfs_acls *acls,
		   uint32_t mask, const struct vfs_attr *owner)
{
	for (int kind = 0; kind < VFS_ACL_KINDS; kind++) {
		bool all = mask & nfs3_acl_bit(kind, NFSACL_ACL);

		xdr_put_u32(x, wire_count(acls, kind));
		xdr_put_u32(x, all ? wire_count(acls, kind) : 0);
		if (all)
			put_entries(x, acls, kind, owner);
	}
}
