/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program: its table of procedures, creation and end.
 *
 * RPC_PROC_CACHED marks procedures that must not run twice for one call.  For
 * most of them the second run fails (REMOVE: NOENT); a SETATTR would undo a
 * later one.  A WRITE may run twice, but not late: RPC_PROC_ALONE, see
 * rpc/drc.h.  COMMIT may run any number of times.
 *
 * Rows with rpc_need_worker are of procedures that are rare, or take long even
 * in memory, as READDIR.  The others run where the call was received, as far as
 * the backend needs not wait.
 *
 * The DDP flags are RFC 8267 section 4, all of it.
 */
#include "nfs3/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TRANSFER_UNIT	4096

#define ARGS(type)	.args_size = sizeof(struct nfs3_##type##_args)
#define RES(type)	.res_size = sizeof(struct nfs3_##type##_res)
#define STATE		.state_zeroed = NFS3_OP_ZEROED
#define OPEN		nfs3_find_export, nfs3_find_node

static const struct rpc_proc procs[NFS3_NPROC] = {
	[NFSPROC3_NULL] = {
		.name = "NULL",
		.decode = nfs3_get_void,
	},
	[NFSPROC3_GETATTR] = {
		.name = "GETATTR",
		.decode = nfs3_get_fh,
		.steps = { OPEN, nfs3_getattr },
		.end = nfs3_end,
		.encode = nfs3_put_getattr,
		ARGS(fh),
		RES(attr),
		STATE,
	},
	[NFSPROC3_SETATTR] = {
		.name = "SETATTR",
		.decode = nfs3_get_setattr,
		.steps = { OPEN, nfs3_check_rw, nfs3_setattr },
		.end = nfs3_end_wcc,
		.encode = nfs3_put_wcc,
		ARGS(setattr),
		RES(wcc),
		STATE,
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_LOOKUP] = {
		.name = "LOOKUP",
		.decode = nfs3_get_dirop,
		.steps = { OPEN, nfs3_lookup },
		.end = nfs3_end_attr,
		.encode = nfs3_put_lookup,
		ARGS(dirop),
		RES(lookup),
		STATE,
	},
	[NFSPROC3_ACCESS] = {
		.name = "ACCESS",
		.decode = nfs3_get_access,
		.steps = { OPEN, nfs3_access },
		.end = nfs3_end_attr,
		.encode = nfs3_put_access,
		ARGS(access),
		RES(access),
		STATE,
	},
	[NFSPROC3_READLINK] = {
		.name = "READLINK",
		.decode = nfs3_get_fh,
		.steps = { OPEN, nfs3_readlink_room, nfs3_readlink },
		.end = nfs3_end_attr,
		.encode = nfs3_put_readlink,
		ARGS(fh),
		RES(readlink),
		STATE,
		.flags = RPC_PROC_DDP_RES,
	},
	[NFSPROC3_READ] = {
		.name = "READ",
		.decode = nfs3_get_read,
		.steps = { OPEN, nfs3_read_size, nfs3_read_piped,
			   nfs3_read_room, nfs3_read },
		.end = nfs3_end_attr,
		.encode = nfs3_put_read,
		ARGS(read),
		RES(read),
		STATE,
		.flags = RPC_PROC_DDP_RES,
	},
	[NFSPROC3_WRITE] = {
		.name = "WRITE",
		.decode = nfs3_get_write,
		.steps = { OPEN, nfs3_check_rw, nfs3_write_check, nfs3_write },
		.end = nfs3_end_write,
		.encode = nfs3_put_write,
		ARGS(write),
		RES(write),
		STATE,
		.flags = RPC_PROC_ALONE | RPC_PROC_DDP_ARG,
	},
	[NFSPROC3_CREATE] = {
		.name = "CREATE",
		.decode = nfs3_get_create,
		.steps = { OPEN, nfs3_check_rw, nfs3_create_file },
		.end = nfs3_end_wcc,
		.encode = nfs3_put_create,
		ARGS(create),
		RES(create),
		STATE,
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_MKDIR] = {
		.name = "MKDIR",
		.decode = nfs3_get_mkdir,
		.steps = { OPEN, nfs3_check_rw, rpc_need_worker, nfs3_make },
		.end = nfs3_end_wcc,
		.encode = nfs3_put_create,
		ARGS(make),
		RES(create),
		STATE,
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_SYMLINK] = {
		.name = "SYMLINK",
		.decode = nfs3_get_symlink,
		.steps = { OPEN, nfs3_check_rw, rpc_need_worker, nfs3_make },
		.end = nfs3_end_wcc,
		.encode = nfs3_put_create,
		ARGS(make),
		RES(create),
		STATE,
		.flags = RPC_PROC_CACHED | RPC_PROC_DDP_ARG,
	},
	[NFSPROC3_MKNOD] = {
		.name = "MKNOD",
		.decode = nfs3_get_mknod,
		.steps = { OPEN, nfs3_check_rw, rpc_need_worker, nfs3_make },
		.end = nfs3_end_wcc,
		.encode = nfs3_put_create,
		ARGS(make),
		RES(create),
		STATE,
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_REMOVE] = {
		.name = "REMOVE",
		.decode = nfs3_get_dirop,
		.steps = { OPEN, nfs3_check_rw, nfs3_remove },
		.end = nfs3_end_wcc,
		.encode = nfs3_put_wcc,
		ARGS(dirop),
		RES(wcc),
		STATE,
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_RMDIR] = {
		.name = "RMDIR",
		.decode = nfs3_get_dirop,
		.steps = { OPEN, nfs3_check_rw, nfs3_rmdir },
		.end = nfs3_end_wcc,
		.encode = nfs3_put_wcc,
		ARGS(dirop),
		RES(wcc),
		STATE,
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_RENAME] = {
		.name = "RENAME",
		.decode = nfs3_get_rename,
		.steps = { OPEN, nfs3_check_rw, rpc_need_worker, nfs3_rename },
		.end = nfs3_end_rename,
		.encode = nfs3_put_rename,
		ARGS(rename),
		RES(rename),
		STATE,
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_LINK] = {
		.name = "LINK",
		.decode = nfs3_get_link,
		.steps = { OPEN, nfs3_check_rw, rpc_need_worker, nfs3_link },
		.end = nfs3_end_link,
		.encode = nfs3_put_link,
		ARGS(link),
		RES(link),
		STATE,
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_READDIR] = {
		.name = "READDIR",
		.decode = nfs3_get_readdir,
		.steps = { OPEN, rpc_need_worker, nfs3_readdir_room,
			   nfs3_readdir },
		.end = nfs3_end_attr,
		.encode = nfs3_put_readdir,
		ARGS(readdir),
		RES(readdir),
		STATE,
	},
	[NFSPROC3_READDIRPLUS] = {
		.name = "READDIRPLUS",
		.decode = nfs3_get_readdirplus,
		.steps = { OPEN, rpc_need_worker, nfs3_readdir_room,
			   nfs3_readdirplus },
		.end = nfs3_end_attr,
		.encode = nfs3_put_readdir,
		ARGS(readdir),
		RES(readdir),
		STATE,
	},
	[NFSPROC3_FSSTAT] = {
		.name = "FSSTAT",
		.decode = nfs3_get_fh,
		.steps = { OPEN, nfs3_fsstat },
		.end = nfs3_end_attr,
		.encode = nfs3_put_fsstat,
		ARGS(fh),
		RES(fsstat),
		STATE,
	},
	[NFSPROC3_FSINFO] = {
		.name = "FSINFO",
		.decode = nfs3_get_fh,
		.steps = { OPEN, nfs3_fsinfo },
		.end = nfs3_end_attr,
		.encode = nfs3_put_fsinfo,
		ARGS(fh),
		RES(fsinfo),
		STATE,
	},
	[NFSPROC3_PATHCONF] = {
		.name = "PATHCONF",
		.decode = nfs3_get_fh,
		.steps = { OPEN, nfs3_pathconf },
		.end = nfs3_end_attr,
		.encode = nfs3_put_pathconf,
		ARGS(fh),
		RES(pathconf),
		STATE,
	},
	[NFSPROC3_COMMIT] = {
		.name = "COMMIT",
		.decode = nfs3_get_commit,
		.steps = { OPEN, nfs3_commit },
		.end = nfs3_end_wcc,
		.encode = nfs3_put_commit,
		ARGS(commit),
		RES(commit),
		STATE,
	},
};

/*
 * The caller's address decides about its rights, and a datagram's address can
 * be forged.  (A mebibyte would not fit one, either.)  UDP is for MOUNT only.
 */
static enum rpc_auth_stat authorize(struct rpc_call *call)
{
	return call->msg->xprt->datagram ?
	       RPC_AUTH_TOOWEAK : RPC_AUTH_OK;
}

static bool size_ok(uint32_t size)
{
	return size >= TRANSFER_UNIT && size <= POOL_PAYLOAD_MAX &&
	       size % TRANSFER_UNIT == 0;
}

/* All results but NULL's begin with it. */
static const char *status_text(const struct rpc_call *call)
{
	enum nfsstat3 status;

	memcpy(&status, call->res, sizeof(status));
	return nfs3_status_name(status);
}

void nfs3_program_init(struct nfs3 *nfs, const struct nfs3_config *config)
{
	static struct rpc_audit nobody;

	nfs->exports = config->exports;
	nfs->audit = config->audit ? : &nobody;
	nfs->names = config->names;
	nfs->prog.nversions = 1;
	nfs->prog.versions = &nfs->version;
	nfs->prog.ctx = nfs;
	nfs->prog.authorize = authorize;
	nfs->prog.leave = nfs3_leave;
	nfs->prog.status = status_text;
	nfs->prog.sends_back = true;
}

int nfs3_create(const struct nfs3_config *config, struct rpc_program **out)
{
	struct nfs3 *nfs = calloc(1, sizeof(*nfs));

	if (!nfs)
		return -ENOMEM;
	nfs->rtmax = config->rtmax ? config->rtmax : POOL_PAYLOAD_MAX;
	nfs->wtmax = config->wtmax ? config->wtmax : POOL_PAYLOAD_MAX;
	nfs->dtpref = config->dtpref ? config->dtpref : 64u << 10;
	if (!size_ok(nfs->rtmax) || !size_ok(nfs->wtmax) ||
	    !size_ok(nfs->dtpref)) {
		free(nfs);
		return -EINVAL;
	}
	nfs->version.vers = NFS3_VERSION;
	nfs->version.nproc = NFS3_NPROC;
	nfs->version.procs = procs;
	nfs->prog.name = "nfs";
	nfs->prog.prog = NFS3_PROGRAM;
	/* Over UDP it answers NULL only. */
	nfs->prog.announced = RPC_OVER_TCP | RPC_OVER_RDMA;
	nfs3_program_init(nfs, config);
	*out = &nfs->prog;
	return 0;
}

void nfs3_destroy(struct rpc_program *prog)
{
	free(container_of(prog, struct nfs3, prog));
}

static int create_nfs3(const struct program_env *env, struct rpc_program **out)
{
	const struct nfs3_config config = {
		.exports = env->exports, .names = env->names,
		.audit = env->audit,
	};

	return nfs3_create(&config, out);
}

const struct program_row nfs3_row = {
	.create = create_nfs3, .destroy = nfs3_destroy,
};
