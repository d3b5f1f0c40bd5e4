/* SPDX-License-Identifier: BSD-2-Clause */
/* NFSACL's lists on the wire. */
#include "nfs3/acl.h"

#include <errno.h>

#include "tests/unit/runner.h"

#define U	VFS_ACL_USER_OBJ
#define NU	VFS_ACL_USER
#define G	VFS_ACL_GROUP_OBJ
#define NG	VFS_ACL_GROUP
#define M	VFS_ACL_MASK
#define O	VFS_ACL_OTHER
#define D	NFSACL_TYPE_DEFAULT
#define MANY	(NFSACL_MAX_ENTRIES + 1)

struct ace {
	uint32_t type, id, perm;
};

static uint8_t wire[64 + 2 * MANY * NFSACL_ENTRY_SIZE];
static struct xdr_out out;

static void put_list(const struct ace *e, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		xdr_put_u32(&out, e[i].type);
		xdr_put_u32(&out, e[i].id);
		xdr_put_u32(&out, e[i].perm);
	}
}

static int from_wire(const struct ace *e, uint32_t n, struct vfs_acl_entry *to)
{
	xdr_out_init(&out, wire, sizeof(wire));
	put_list(e, n);
	return nfs3_acl_from_wire((struct xdr_view){ wire,
				  (uint32_t)xdr_out_len(&out) }, to);
}

#define BAD(...) { .n = -EINVAL, .in = { __VA_ARGS__ } }

static const struct {
	int	   n;			/* -EINVAL: not a list */
	struct ace in[6];
	struct vfs_acl_entry to[6];
} lists[] = {
	/* Nothing at all removes the list. */
	{ .n = 0 },
	/* The mask that says nothing goes, and ids that mean nothing do. */
	{ 3, { { U, 7, 6 }, { G, 8, 4 }, { M, 0, 4 }, { O, 0, 1 } },
	  { { U, 6, 0 }, { G, 4, 0 }, { O, 1, 0 } } },
	{ 3, { { D | U, 0, 7 }, { D | G, 0, 5 }, { D | M, 0, 5 },
	       { D | O, 0, 0 } },
	  { { U, 7, 0 }, { G, 5, 0 }, { O, 0, 0 } } },
	/* Another mask stays. */
	{ 4, { { U, 0, 6 }, { G, 0, 4 }, { M, 0, 6 }, { O, 0, 0 } },
	  { { U, 6, 0 }, { G, 4, 0 }, { M, 6, 0 }, { O, 0, 0 } } },
	/* Any order goes in, with more bits in the mask. */
	{ 6, { { O, 0, 0 }, { M, 0, 0x17 }, { NG, 9, 1 }, { NU, 5, 2 },
	       { G, 0, 4 }, { U, 0, 7 } },
	  { { U, 7, 0 }, { NU, 2, 5 }, { G, 4, 0 }, { NG, 1, 9 },
	    { M, 7, 0 }, { O, 0, 0 } } },
	{ 6, { { U, 0, 7 }, { NU, 900, 2 }, { NU, 5, 3 }, { G, 0, 4 },
	       { M, 0, 7 }, { O, 0, 0 } },
	  { { U, 7, 0 }, { NU, 3, 5 }, { NU, 2, 900 }, { G, 4, 0 },
	    { M, 7, 0 }, { O, 0, 0 } } },
	/* Not valid: an entry is missing, */
	BAD({ G, 0, 4 }, { O, 0, 1 }),
	BAD({ U, 0, 6 }, { NU, 5, 6 }, { G, 0, 4 }, { O, 0, 1 }),
	/* there twice, */
	BAD({ U, 0, 6 }, { U, 1, 6 }, { G, 0, 4 }, { O, 0, 1 }),
	BAD({ U, 0, 6 }, { NU, 5, 6 }, { NU, 5, 4 }, { G, 0, 4 },
	    { M, 0, 7 }, { O, 0, 1 }),
	/* no user's, or of no kind; or the permission is invalid. */
	BAD({ U, 0, 6 }, { NU, UINT32_MAX, 6 }, { G, 0, 4 },
	    { M, 0, 7 }, { O, 0, 1 }),
	BAD({ U, 0, 6 }, { 0x40, 0, 6 }, { G, 0, 4 }, { O, 0, 1 }),
	BAD({ U, 0, 6 }, { U | NU, 0, 6 }, { G, 0, 4 },
	    { O, 0, 1 }),
	BAD({ U, 0, 6 }, { 0x10001, 0, 6 }, { G, 0, 4 },
	    { O, 0, 1 }),
	BAD({ U, 0, 8 }, { G, 0, 4 }, { O, 0, 1 }),
};

TEST_LOOP(a_list_off_the_wire_is_what_the_file_system_has, 0,
	  ARRAY_SIZE(lists))
{
	struct vfs_acl_entry got[6];
	uint32_t n = 0;

	while (n < 6 && lists[_i].in[n].type)
		n++;
	ck_assert_int_eq(from_wire(lists[_i].in, n, got), lists[_i].n);
	for (int i = 0; i < lists[_i].n; i++) {
		ck_assert_uint_eq(got[i].tag, lists[_i].to[i].tag);
		ck_assert_uint_eq(got[i].perm, lists[_i].to[i].perm);
		ck_assert_uint_eq(got[i].id, lists[_i].to[i].id);
	}
}

static void expect(const uint32_t *words, size_t n)
{
	struct xdr_in x;

	ck_assert(!out.bad);
	ck_assert_uint_eq(xdr_out_len(&out), 4 * n);
	xdr_in_init(&x, wire, xdr_out_len(&out));
	for (size_t i = 0; i < n; i++)
		ck_assert_msg(xdr_get_u32(&x) == words[i], "word %zu", i);
}

#define EXPECT(...) do { \
		const uint32_t words_[] = { __VA_ARGS__ }; \
		expect(words_, ARRAY_SIZE(words_)); \
	} while (0)

TEST(lists_on_the_wire_have_a_mask_and_the_owners_ids)
{
	static struct vfs_acls acls = {
		.n = { 3, 5 },
		.entry = {
			{ { U, 6, 0 }, { G, 4, 0 }, { O, 1, 0 } },
			{ { U, 7, 0 }, { NU, 5, 77 }, { G, 1, 0 }, { M, 5, 0 },
			  { O, 0, 0 } },
		},
	};
	const struct vfs_attr owner = { .uid = 1000, .gid = 100 };

	xdr_out_init(&out, wire, nfs3_acls_size(&acls, NFSACL_ALL));
	nfs3_put_acls(&out, &acls, NFSACL_ALL, &owner);
	EXPECT(4, 4, U, 1000, 6, G, 100, 4, M, 0, 4, O, 0, 1,
	       5, 5, D | U, 1000, 7, D | NU, 77, 5, D | G, 100, 1, D | M, 0, 5,
	       D | O, 0, 0);
	/* Counts only. */
	xdr_out_init(&out, wire, sizeof(wire));
	nfs3_put_acls(&out, &acls, NFSACL_ACLCNT | NFSACL_DFACLCNT, &owner);
	EXPECT(4, 0, 5, 0);
	/* One of them. */
	acls.n[VFS_ACL_ACCESS] = 0;
	xdr_out_init(&out, wire, sizeof(wire));
	nfs3_put_acls(&out, &acls, NFSACL_DFACLCNT, &owner);
	EXPECT(0, 0, 5, 0);
}

TEST(a_file_without_a_list_has_that_of_its_mode)
{
	struct vfs_acl_entry e[3];

	nfs3_acl_from_mode(0104751, e);
	ck_assert_uint_eq(e[0].tag, U);
	ck_assert_uint_eq(e[0].perm, 7);
	ck_assert_uint_eq(e[1].tag, G);
	ck_assert_uint_eq(e[1].perm, 5);
	ck_assert_uint_eq(e[2].tag, O);
	ck_assert_uint_eq(e[2].perm, 1);
}

static void put_setacl(uint32_t naccess, uint32_t ndefault)
{
	static const struct ace aces[MANY];

	xdr_out_init(&out, wire, sizeof(wire));
	xdr_put_opaque(&out, "handle7", 7);
	xdr_put_u32(&out, NFSACL_ACL | NFSACL_DFACL);
	xdr_put_u32(&out, naccess);
	xdr_put_u32(&out, naccess);
	put_list(aces, naccess);
	xdr_put_u32(&out, ndefault);
	xdr_put_u32(&out, ndefault);
	put_list(aces, ndefault);
	ck_assert(!out.bad);
}

static bool decodes(size_t len)
{
	struct nfs3_setacl_args a;
	struct xdr_in x;

	xdr_in_init(&x, wire, len);
	return nfs3_get_setacl(&x, &a);
}

TEST(setacl_takes_1024_entries_a_list_and_no_less_than_it_says)
{
	static const uint32_t n[][2] = { { 0, 0 }, { 4, 5 },
					 { MANY - 1, MANY - 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(n); i++) {
		size_t len;

		put_setacl(n[i][0], n[i][1]);
		len = xdr_out_len(&out);
		ck_assert(decodes(len));
		for (size_t cut = 0; cut < len && i < 2; cut += 4)
			ck_assert(!decodes(cut));
		ck_assert(!decodes(len - 4));
	}
	put_setacl(MANY, 0);
	ck_assert(!decodes(xdr_out_len(&out)));
	put_setacl(0, MANY);
	ck_assert(!decodes(xdr_out_len(&out)));
}
