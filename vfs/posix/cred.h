/* SPDX-License-Identifier: BSD-2-Clause */
/* cred - the thread's file system credentials. */
#pragma once

#include "vfs/posix/posix.h"

/* A caller, to be remembered after its call. */
struct posix_who {
	uint32_t uid;
	uint32_t gid;
	uint64_t gids_id;
};

static inline struct posix_who posix_who(const struct vfs_cred *cred)
{
	return (struct posix_who){ cred->uid, cred->gid, cred->gids_id };
}

static inline bool posix_who_is(const struct posix_who *who,
				const struct vfs_cred *cred)
{
	return who->uid == cred->uid && who->gid == cred->gid &&
	       who->gids_id == cred->gids_id;
}

/* True if the process can act as other users at all.  At mount. */
bool posix_cred_probe(void);
/*
 * Become the caller.  0; -EACCES when the system has no such user; -EAGAIN
 * with op->nonblock, when that would change the thread's credentials.
 */
int  posix_cred_set(const struct posix_fs *fs, const struct vfs_op *op);
/* Become the server again, to open what serves all callers.  Changes nothing
 * with fs->as_caller; @fs NULL: in any case. */
void posix_cred_server(const struct posix_fs *fs);
/* Makes a thread that acts as a caller act as the server, until
 * posix_cred_take_back() with the returned value.  Not on a thread whose
 * credentials must stay. */
uint32_t posix_cred_lend_server(void);
void posix_cred_take_back(uint32_t uid);
/* The caller that the thread acts as; the server equals no caller. */
struct posix_who posix_cred_now(void);
