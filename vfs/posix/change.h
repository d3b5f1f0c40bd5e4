/* SPDX-License-Identifier: BSD-2-Clause */
/* change - a change of a file, alone or not, and the attributes around it. */
#pragma once

#include "vfs/posix/posix.h"

/*
 * A change of @n and the attributes around it.  When changes overlap the
 * "before" of neither is given, since the client would take the other's
 * change for its own (RFC 1813 section 2.6).
 */
struct posix_change {
	struct posix_node *node;
	struct vfs_wcc	*wcc;		/* or NULL */
	struct posix_counts *counts;
	struct stat	 before;
	/* A regular file that must not be written even by open descriptors: the
	 * kernel checks that only when it opens one. */
	bool		 fixed;
	struct posix_mark mark;
	unsigned	 seq;
	bool		 alone;
};
/* 0 or -errno of the stat; posix_change_end() is due in any case. */
int  posix_change_begin(struct posix_change *c, struct posix_node *n,
			struct vfs_wcc *wcc);
void posix_change_end(struct posix_change *c);
