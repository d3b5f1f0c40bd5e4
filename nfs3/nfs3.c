/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program: its table of procedures, creation and end.
 *
 * RPC_PROC_CACHED marks procedures that must not run twice for one call.  For
 * most of them the second run fails (REMOVE: NOENT); a SETATTR would undo a
 * later one.  A WRITE can run twice, but not late: RPC_PROC_ALONE, see
 * rpc/drc.h.  COMMIT can run any number of times.
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

/* A procedure, whose steps begin with its export and its node. */
#define ROW(proc, get, args, put, res, last, how, ...)			\
	[NFSPROC3_##proc] = {						\
		.name = #proc,						\
		.decode = get,						\
		.steps = { nfs3_find_export, nfs3_find_node, __VA_ARGS__ }, \
		.end = last,						\
		.encode = put,						\
		.args_size = sizeof(struct nfs3_##args##_args),		\
		.res_size = sizeof(struct nfs3_##res##_res),		\
		.state_zeroed = NFS3_OP_ZEROED,				\
		.flags = how,						\
	}

static const struct rpc_proc procs[NFS3_NPROC] = {
	[NFSPROC3_NULL] = {
		.name = "NULL",
		.decode = nfs3_get_void,
	},
	ROW(GETATTR, nfs3_get_fh, fh, nfs3_put_getattr, attr, nfs3_end, 0,
	    nfs3_getattr),
	ROW(SETATTR, nfs3_get_setattr, setattr, nfs3_put_wcc, wcc, nfs3_end_wcc,
	    RPC_PROC_CACHED, nfs3_check_rw, nfs3_setattr),
	ROW(LOOKUP, nfs3_get_dirop, dirop, nfs3_put_lookup, lookup,
	    nfs3_end_attr, 0, nfs3_lookup),
	ROW(ACCESS, nfs3_get_access, access, nfs3_put_access, access,
	    nfs3_end_attr, 0, nfs3_access),
	ROW(READLINK, nfs3_get_fh, fh, nfs3_put_readlink, readlink,
	    nfs3_end_attr, RPC_PROC_DDP_RES, nfs3_readlink_room, nfs3_readlink),
	ROW(READ, nfs3_get_read, read, nfs3_put_read, read, nfs3_end_attr,
	    RPC_PROC_DDP_RES, nfs3_read_size, nfs3_read_piped, nfs3_read_room,
	    nfs3_read),
	ROW(WRITE, nfs3_get_write, write, nfs3_put_write, write, nfs3_end_write,
	    RPC_PROC_ALONE | RPC_PROC_DDP_ARG, nfs3_check_rw, nfs3_write_check,
	    nfs3_write),
	ROW(CREATE, nfs3_get_create, create, nfs3_put_create, create,
	    nfs3_end_wcc, RPC_PROC_CACHED, nfs3_check_rw, nfs3_create_file),
	ROW(MKDIR, nfs3_get_mkdir, make, nfs3_put_create, create, nfs3_end_wcc,
	    RPC_PROC_CACHED, nfs3_check_rw, rpc_need_worker, nfs3_make),
	ROW(SYMLINK, nfs3_get_symlink, make, nfs3_put_create, create,
	    nfs3_end_wcc, RPC_PROC_CACHED | RPC_PROC_DDP_ARG, nfs3_check_rw,
	    rpc_need_worker, nfs3_make),
	ROW(MKNOD, nfs3_get_mknod, make, nfs3_put_create, create, nfs3_end_wcc,
	    RPC_PROC_CACHED, nfs3_check_rw, rpc_need_worker, nfs3_make),
	ROW(REMOVE, nfs3_get_dirop, dirop, nfs3_put_wcc, wcc, nfs3_end_wcc,
	    RPC_PROC_CACHED, nfs3_check_rw, nfs3_remove),
	ROW(RMDIR, nfs3_get_dirop, dirop, nfs3_put_wcc, wcc, nfs3_end_wcc,
	    RPC_PROC_CACHED, nfs3_check_rw, nfs3_rmdir),
	ROW(RENAME, nfs3_get_rename, rename, nfs3_put_rename, rename,
	    nfs3_end_rename, RPC_PROC_CACHED, nfs3_check_rw, rpc_need_worker,
	    nfs3_rename),
	ROW(LINK, nfs3_get_link, link, nfs3_put_link, link, nfs3_end_link,
	    RPC_PROC_CACHED, nfs3_check_rw, rpc_need_worker, nfs3_link),
	ROW(READDIR, nfs3_get_readdir, readdir, nfs3_put_readdir, readdir,
	    nfs3_end_attr, 0, rpc_need_worker, nfs3_readdir_room, nfs3_readdir),
	ROW(READDIRPLUS, nfs3_get_readdirplus, readdir, nfs3_put_readdir,
	    readdir, nfs3_end_attr, 0, rpc_need_worker, nfs3_readdir_room,
	    nfs3_readdirplus),
	ROW(FSSTAT, nfs3_get_fh, fh, nfs3_put_fsstat, fsstat, nfs3_end_attr, 0,
	    nfs3_fsstat),
	ROW(FSINFO, nfs3_get_fh, fh, nfs3_put_fsinfo, fsinfo, nfs3_end_attr, 0,
	    nfs3_fsinfo),
	ROW(PATHCONF, nfs3_get_fh, fh, nfs3_put_pathconf, pathconf,
	    nfs3_end_attr, 0, nfs3_pathconf),
	ROW(COMMIT, nfs3_get_commit, commit, nfs3_put_commit, commit,
	    nfs3_end_wcc, 0, nfs3_commit),
};

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

void nfs3_program_init(struct nfs3 *nfs, const struct program_env *env)
{
	static struct rpc_audit nobody;

	nfs->exports = env->exports;
	nfs->audit = env->audit ? : &nobody;
	nfs->names = env->names;
	nfs->prog.nversions = 1;
	nfs->prog.versions = &nfs->version;
	nfs->prog.ctx = nfs;
	/* The caller's address decides about its rights, and a datagram's
	 * address can be forged.  (A mebibyte would not fit one, either.) */
	nfs->prog.no_udp = true;
	nfs->prog.leave = nfs3_leave;
	nfs->prog.status = status_text;
	nfs->prog.sends_back = true;
}

static int create_nfs3(const struct program_env *env, struct rpc_program **out)
{
	struct nfs3 *nfs = calloc(1, sizeof(*nfs));

	if (!nfs)
		return -ENOMEM;
	nfs->rtmax = env->rtmax ? env->rtmax : POOL_PAYLOAD_MAX;
	nfs->wtmax = env->wtmax ? env->wtmax : POOL_PAYLOAD_MAX;
	nfs->dtpref = env->dtpref ? env->dtpref : 64u << 10;
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
	nfs3_program_init(nfs, env);
	*out = &nfs->prog;
	return 0;
}

void nfs3_destroy(struct rpc_program *prog)
{
	free(container_of(prog, struct nfs3, prog));
}

const struct program_row nfs3_row = {
	.create = create_nfs3, .destroy = nfs3_destroy,
};
