/* SPDX-License-Identifier: BSD-2-Clause */
/* gannet/vfs_acl.h - access control lists of files; a part of gannet/vfs.h. */
#ifndef GANNET_VFS_ACL_H
#define GANNET_VFS_ACL_H

#include <stdbool.h>
#include <stdint.h>

/* The tags of entries of an access control list: acl(5). */
#define VFS_ACL_USER_OBJ	0x01
#define VFS_ACL_USER		0x02
#define VFS_ACL_GROUP_OBJ	0x04
#define VFS_ACL_GROUP		0x08
#define VFS_ACL_MASK		0x10
#define VFS_ACL_OTHER		0x20

struct vfs_acl_entry {
	uint16_t	tag;
	uint16_t	perm;		/* 4 read, 2 write, 1 execute */
	uint32_t	id;		/* of USER and GROUP; else undefined */
};

#define VFS_ACL_MAX	1024

enum vfs_acl_kind { VFS_ACL_ACCESS, VFS_ACL_DEFAULT, VFS_ACL_KINDS };

/*
 * The lists of a file.  Entries are in the order of their tags, then their ids;
 * each list with entries is valid as acl(5) has it.  A list without entries
 * means that the file has only its mode, or the directory no default ACL.
 */
struct vfs_acls {
	bool	 wanted[VFS_ACL_KINDS];	/* the others are left alone */
	uint32_t n[VFS_ACL_KINDS];
	struct vfs_acl_entry entry[VFS_ACL_KINDS][VFS_ACL_MAX];
};

#endif
