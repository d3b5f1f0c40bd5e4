/* SPDX-License-Identifier: BSD-2-Clause */
/* acl_xattr - access control lists as extended attributes of Linux and Ceph. */
#pragma once

#include <endian.h>
#include <errno.h>
#include <linux/posix_acl_xattr.h>
#include <stddef.h>

#include <gannet/vfs_acl.h>

struct acl_xattr {
	struct posix_acl_xattr_header head;
	struct posix_acl_xattr_entry  entry[VFS_ACL_MAX];
};

static const char *const acl_xattr_names[VFS_ACL_KINDS] = {
	[VFS_ACL_ACCESS] = "system.posix_acl_access",
	[VFS_ACL_DEFAULT] = "system.posix_acl_default",
};

static inline size_t acl_xattr_size(size_t n)
{
	return sizeof(struct posix_acl_xattr_header) +
	       n * sizeof(struct posix_acl_xattr_entry);
}

/* Returns the number of entries of a list of @size bytes, or -errno. */
static inline int acl_xattr_decode(const struct acl_xattr *l, size_t size,
				   struct vfs_acl_entry *out)
{
	size_t n = (size - sizeof(l->head)) / sizeof(l->entry[0]);

	if (size < sizeof(l->head) || size != acl_xattr_size(n) ||
	    le32toh(l->head.a_version) != POSIX_ACL_XATTR_VERSION)
		return -EIO;
	for (size_t i = 0; i < n; i++)
		out[i] = (struct vfs_acl_entry){
			.tag = le16toh(l->entry[i].e_tag),
			.perm = le16toh(l->entry[i].e_perm),
			.id = le32toh(l->entry[i].e_id),
		};
	return (int)n;
}

/* Returns the size of the list in bytes. */
static inline size_t acl_xattr_encode(const struct vfs_acl_entry *in,
				      uint32_t n, struct acl_xattr *l)
{
	l->head.a_version = htole32(POSIX_ACL_XATTR_VERSION);
	for (uint32_t i = 0; i < n; i++) {
		bool is_named = in[i].tag & (VFS_ACL_USER | VFS_ACL_GROUP);

		l->entry[i].e_tag = htole16(in[i].tag);
		l->entry[i].e_perm = htole16(in[i].perm);
		l->entry[i].e_id = htole32(is_named ? in[i].id : UINT32_MAX);
	}
	return acl_xattr_size(n);
}
