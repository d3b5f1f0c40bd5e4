/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of RPC programs. */
#include "daemon/programs.h"

#include "daemon/options.h"
#include "mountd/mountd.h"
#include "nfs3/nfs3.h"

static int create_nfs3(const struct program_env *env, struct rpc_program **out)
{
	const struct nfs3_config config = {
		.exports = env->exports, .names = env->names,
	};

	return nfs3_create(&config, out);
}

static int create_mountd(const struct program_env *env,
			 struct rpc_program **out)
{
	const struct mountd_config config = {
		.exports = env->exports, .names = env->names,
		.state_dir = env->o->state_dir, .rdma = env->o->rdma_mount,
	};

	return mountd_create(&config, out);
}

const struct program_row program_rows[PROGRAMS] = {
	/* Over UDP it answers NULL only. */
	{ "tcp rdma", create_nfs3, nfs3_destroy },
	/* Clients ask for MOUNT over TCP or UDP, whatever NFS is to use (RFC
	 * 8267 section 5.1). */
	{ "tcp udp", create_mountd, mountd_destroy },
};
