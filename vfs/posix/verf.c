/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verf - the verifiers of EXCLUSIVE CREATEs (RFC 1813 section 3.3.8).
 *
 * A client that gets no answer sends the call again, perhaps as a new one, and
 * must learn that the file is its own, even if another client has written to it
 * meanwhile.  So memory has the verifiers of the latest files; and, for
 * restarts of the server, the new file's times have them.  The time of access
 * holds all but a few bits and survives a WRITE.  If a file system keeps only
 * whole seconds, both times are needed, and a WRITE destroys the verifier; so
 * does a SETATTR of the times, but a client that sends one has got the answer.
 */
#include "vfs/posix/ops.h"

#define SECONDS		0x7fffffff	/* what every file system can keep */

void posix_verf_times(uint64_t verf, struct vfs_setattr *set)
{
	*set = (struct vfs_setattr){
		.set = VFS_SET_ATIME | VFS_SET_MTIME,
		.mtime.tv_sec = verf >> 32 & SECONDS,
		.atime.tv_sec = verf & SECONDS,
		/* Whole microseconds, and not 0. */
		.atime.tv_nsec = (1 + hash_bytes(&verf, sizeof(verf)) %
				  999999) * 1000,
	};
}

bool posix_verf_is(const struct stat *st, uint64_t verf)
{
	struct vfs_setattr set;

	posix_verf_times(verf, &set);
	if (st->st_atim.tv_sec != set.atime.tv_sec)
		return false;
	return st->st_atim.tv_nsec == set.atime.tv_nsec ||
	       (st->st_atim.tv_nsec == 0 && st->st_size == 0 &&
		st->st_mtim.tv_nsec == 0 &&
		st->st_mtim.tv_sec == set.mtime.tv_sec);
}

void posix_verf_keep(struct posix_fs *fs, const struct vfs_handle *h,
		     uint64_t verf)
{
	struct posix_verfs *v = &fs->verfs;

	mutex_lock(&v->lock);
	v->last[v->next].file = *h;
	v->last[v->next].verf = verf;
	v->next = (v->next + 1) % POSIX_VERFS;
	mutex_unlock(&v->lock);
}

bool posix_verf_known(struct posix_fs *fs, const struct vfs_handle *h,
		      uint64_t verf)
{
	struct posix_verfs *v = &fs->verfs;
	bool known = false;

	mutex_lock(&v->lock);
	for (unsigned i = 0; i < POSIX_VERFS && !known; i++)
		known = v->last[i].verf == verf && v->last[i].file.len &&
			posix_handle_same(&v->last[i].file, h);
	mutex_unlock(&v->lock);
	return known;
}
