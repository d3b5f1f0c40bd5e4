/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types_disk - file systems of each type that this kernel has and a program
 * here can make, one at a time on a loop device, and a gannetd that exports it.
 *
 * GANNET_TYPES in the environment is a list of types, with a space around each,
 * that must be there: the others are left out.  Without it, types that this
 * machine lacks are.  GANNET_TYPES_NFS is a directory where NFS is mounted.
 */
#pragma once

#include <stdbool.h>

#include "tests/server/daemon_run.h"
#include "tests/server/nfs_client.h"

/* A type keeps, or can do: */
#define TYPE_HANDLES	1	/* handles outlive the kernel's memory */
#define TYPE_COOKIES	2	/* positions in a directory outlive changes */
#define TYPE_VERIFIER	4	/* times that a verifier fits into */
#define TYPE_CASELESS	8	/* the directory "fold" has no case */
#define TYPE_QUOTA	16	/* of users */
#define TYPE_BY_OPEN	32	/* rights are decided at each open */

struct type {
	const char *name;
	const char *make;	/* the shell's; "$1" is the image */
	const char *mount;	/* the same; "$2" is the directory */
	unsigned    has;	/* TYPE_* */
};

extern const struct type types[];
extern const int ntypes;

/* It, mounted at types_top.  False: it is left out. */
bool types_mount(const struct type *t);
void types_unmount(void);
extern char types_top[];

/* gannetd; the clients "root" and "user" (nfs_client.h), and "other", a user
 * without any files; "top" is the export's root. */
void types_serve(void);
void types_end(void);
/* The same again, after the kernel has dropped its caches. */
void types_restart(void);
extern struct nfs_client other;
extern struct daemon_run types_daemon;
#define OTHER_UID	1001
