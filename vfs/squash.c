/* SPDX-License-Identifier: BSD-2-Clause */
/* Maps a caller to the user that it acts as.  Pure. */
#include "vfs/export.h"

static uint32_t squash_gid(const struct export_opts *opts, uint32_t gid)
{
	return opts->root_squash && gid == 0 ? opts->anongid : gid;
}

void export_squash(const struct export_opts *opts, bool auth_none,
		   uint32_t uid, uint32_t gid, const uint32_t *gids,
		   uint32_t ngids, struct vfs_cred *out)
{
	out->ngids = 0;
	if (auth_none || opts->all_squash) {
		out->uid = opts->anonuid;
		out->gid = opts->anongid;
		return;
	}
	out->uid = opts->root_squash && uid == 0 ? opts->anonuid : uid;
	out->gid = squash_gid(opts, gid);
	if (ngids > VFS_MAX_GIDS)
		ngids = VFS_MAX_GIDS;
	for (uint32_t i = 0; i < ngids; i++)
		out->gids[out->ngids++] = squash_gid(opts, gids[i]);
}
