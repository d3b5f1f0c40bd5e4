/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mount - arguments and results of MOUNT versions 1 to 3 (RFC 1813 section 5,
 * RFC 1094 appendix A), in both directions.  Pure.
 *
 * Views lie in the message, and are valid while that lives.
 */
#pragma once

#include "lib/xdr.h"

#define MNTPATHLEN		1024
#define MNTNAMLEN		255
#define MOUNT_FH_MAX		64
#define MOUNT_MAX_FLAVORS	8

enum mount_procnum {
	MOUNTPROC_NULL		= 0,
	MOUNTPROC_MNT		= 1,
	MOUNTPROC_DUMP		= 2,
	MOUNTPROC_UMNT		= 3,
	MOUNTPROC_UMNTALL	= 4,
	MOUNTPROC_EXPORT	= 5,
	MOUNTPROC_EXPORTALL	= 6,	/* versions 1 and 2 */
};

enum mountstat3 {
	MNT3_OK			= 0,
	MNT3ERR_PERM		= 1,
	MNT3ERR_NOENT		= 2,
	MNT3ERR_IO		= 5,
	MNT3ERR_ACCES		= 13,
	MNT3ERR_NOTDIR		= 20,
	MNT3ERR_INVAL		= 22,
	MNT3ERR_NAMETOOLONG	= 63,
	MNT3ERR_NOTSUPP		= 10004,
	MNT3ERR_SERVERFAULT	= 10006,
};

struct mount_path_args {		/* MNT UMNT */
	struct xdr_view	 path;
};

struct mount_result {			/* MNT */
	enum mountstat3	 status;
	struct xdr_view	 fh;
	unsigned	 nflavors;
	uint32_t	 flavors[MOUNT_MAX_FLAVORS];
};

bool mount_get_path(struct xdr_in *x, void *args);
void mount_put_mnt3(struct xdr_out *x, const void *res);
/* Versions 1 and 2: the status alone. */
void mount_put_mnt1(struct xdr_out *x, const void *res);
/* Of version 3.  Leaves the flavors on the wire; a list of more than
 * MOUNT_MAX_FLAVORS is as none.  False: malformed. */
bool mount_get_mnt3(struct xdr_in *x, struct mount_result *r);

/*
 * The lists of EXPORT (a directory, and a list of names) and of DUMP (a name,
 * behind which a directory comes) are items, and false after the last one.  An
 * item of at most @max bytes; false: the list has ended, or is malformed.
 */
bool mount_get_item(struct xdr_in *x, struct xdr_view *text, uint32_t max);
void mount_put_item(struct xdr_out *x, const char *text, size_t len);
