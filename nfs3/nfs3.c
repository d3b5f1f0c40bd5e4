/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program: its table of procedures, creation and end.
 *
 * RPC_PROC_CACHED marks procedures that must not run twice for one call.  For
 * most of them the second run fails (REMOVE: NOENT); a SETATTR would undo a
 * later one.  A WRITE may run twice, but not late: RPC_PROC_ALONE, see
 * rpc/drc.h.  COMMIT may run any number of times.
 *
 * RPC_PROC_POLLER marks frequent procedures that backends often do in memory.
 * READDIR takes long even in memory.
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

static const struct rpc_proc procs[NFS3_NPROC] = {
	[NFSPROC3_NULL] = {
		.name = "NULL",
		.decode = nfs3_get_void,
		.run = nfs3_do_null,
		.flags = RPC_PROC_POLLER,
	},
	[NFSPROC3_GETATTR] = {
		.name = "GETATTR",
		.decode = nfs3_get_fh,
		.run = nfs3_do_getattr,
		.encode = nfs3_put_getattr,
		ARGS(fh),
		RES(attr),
		.flags = RPC_PROC_POLLER,
	},
	[NFSPROC3_SETATTR] = {
		.name = "SETATTR",
		.decode = nfs3_get_setattr,
		.run = nfs3_do_setattr,
		.encode = nfs3_put_wcc,
		ARGS(setattr),
		RES(wcc),
		.flags = RPC_PROC_CACHED | RPC_PROC_POLLER,
	},
	[NFSPROC3_LOOKUP] = {
		.name = "LOOKUP",
		.decode = nfs3_get_dirop,
		.run = nfs3_do_lookup,
		.encode = nfs3_put_lookup,
		ARGS(dirop),
		RES(lookup),
		.flags = RPC_PROC_POLLER,
	},
	[NFSPROC3_ACCESS] = {
		.name = "ACCESS",
		.decode = nfs3_get_access,
		.run = nfs3_do_access,
		.encode = nfs3_put_access,
		ARGS(access),
		RES(access),
		.flags = RPC_PROC_POLLER,
	},
	[NFSPROC3_READLINK] = {
		.name = "READLINK",
		.decode = nfs3_get_fh,
		.run = nfs3_do_readlink,
		.encode = nfs3_put_readlink,
		ARGS(fh),
		RES(readlink),
		.flags = RPC_PROC_POLLER | RPC_PROC_DDP_RES,
	},
	[NFSPROC3_READ] = {
		.name = "READ",
		.decode = nfs3_get_read,
		.run = nfs3_do_read,
		.encode = nfs3_put_read,
		ARGS(read),
		RES(read),
		.flags = RPC_PROC_POLLER | RPC_PROC_DDP_RES,
	},
	[NFSPROC3_WRITE] = {
		.name = "WRITE",
		.decode = nfs3_get_write,
		.run = nfs3_do_write,
		.encode = nfs3_put_write,
		ARGS(write),
		RES(write),
		.flags = RPC_PROC_ALONE | RPC_PROC_POLLER |
			 RPC_PROC_DDP_ARG,
	},
	[NFSPROC3_CREATE] = {
		.name = "CREATE",
		.decode = nfs3_get_create,
		.run = nfs3_do_create,
		.encode = nfs3_put_create,
		ARGS(create),
		RES(create),
		.flags = RPC_PROC_CACHED | RPC_PROC_POLLER,
	},
	[NFSPROC3_MKDIR] = {
		.name = "MKDIR",
		.decode = nfs3_get_mkdir,
		.run = nfs3_do_make,
		.encode = nfs3_put_create,
		ARGS(make),
		RES(create),
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_SYMLINK] = {
		.name = "SYMLINK",
		.decode = nfs3_get_symlink,
		.run = nfs3_do_make,
		.encode = nfs3_put_create,
		ARGS(make),
		RES(create),
		.flags = RPC_PROC_CACHED | RPC_PROC_DDP_ARG,
	},
	[NFSPROC3_MKNOD] = {
		.name = "MKNOD",
		.decode = nfs3_get_mknod,
		.run = nfs3_do_make,
		.encode = nfs3_put_create,
		ARGS(make),
		RES(create),
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_REMOVE] = {
		.name = "REMOVE",
		.decode = nfs3_get_dirop,
		.run = nfs3_do_remove,
		.encode = nfs3_put_wcc,
		ARGS(dirop),
		RES(wcc),
		.flags = RPC_PROC_CACHED | RPC_PROC_POLLER,
	},
	[NFSPROC3_RMDIR] = {
		.name = "RMDIR",
		.decode = nfs3_get_dirop,
		.run = nfs3_do_rmdir,
		.encode = nfs3_put_wcc,
		ARGS(dirop),
		RES(wcc),
		.flags = RPC_PROC_CACHED | RPC_PROC_POLLER,
	},
	[NFSPROC3_RENAME] = {
		.name = "RENAME",
		.decode = nfs3_get_rename,
		.run = nfs3_do_rename,
		.encode = nfs3_put_rename,
		ARGS(rename),
		RES(rename),
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_LINK] = {
		.name = "LINK",
		.decode = nfs3_get_link,
		.run = nfs3_do_link,
		.encode = nfs3_put_link,
		ARGS(link),
		RES(link),
		.flags = RPC_PROC_CACHED,
	},
	[NFSPROC3_READDIR] = {
		.name = "READDIR",
		.decode = nfs3_get_readdir,
		.run = nfs3_do_readdir,
		.encode = nfs3_put_readdir,
		ARGS(readdir),
		RES(readdir),
	},
	[NFSPROC3_READDIRPLUS] = {
		.name = "READDIRPLUS",
		.decode = nfs3_get_readdirplus,
		.run = nfs3_do_readdirplus,
		.encode = nfs3_put_readdir,
		ARGS(readdir),
		RES(readdir),
	},
	[NFSPROC3_FSSTAT] = {
		.name = "FSSTAT",
		.decode = nfs3_get_fh,
		.run = nfs3_do_fsstat,
		.encode = nfs3_put_fsstat,
		ARGS(fh),
		RES(fsstat),
		.flags = RPC_PROC_POLLER,
	},
	[NFSPROC3_FSINFO] = {
		.name = "FSINFO",
		.decode = nfs3_get_fh,
		.run = nfs3_do_fsinfo,
		.encode = nfs3_put_fsinfo,
		ARGS(fh),
		RES(fsinfo),
		.flags = RPC_PROC_POLLER,
	},
	[NFSPROC3_PATHCONF] = {
		.name = "PATHCONF",
		.decode = nfs3_get_fh,
		.run = nfs3_do_pathconf,
		.encode = nfs3_put_pathconf,
		ARGS(fh),
		RES(pathconf),
		.flags = RPC_PROC_POLLER,
	},
	[NFSPROC3_COMMIT] = {
		.name = "COMMIT",
		.decode = nfs3_get_commit,
		.run = nfs3_do_commit,
		.encode = nfs3_put_commit,
		ARGS(commit),
		RES(commit),
		.flags = RPC_PROC_POLLER,
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

static void put_export(void *held)
{
	export_put(held);
}

/*
 * A call uses the share of its export.  It holds the export, and so the class,
 * while it lives.  Calls that ask a name service have a share of their own, so
 * that a service that does not answer stops no others.  A call with an invalid
 * handle uses the common share.
 */
static struct work_class *classify(struct rpc_call *call, const void *args)
{
	const struct nfs3_fh_args *a = args;	/* the first item of all */
	struct nfs3 *nfs = call->prog->ctx;
	struct vfs_handle handle;
	struct export_opts opts;
	struct export *exp;
	uint32_t id;
	int err;

	if (call->procnum == NFSPROC3_NULL)
		return NULL;
	if (call->held) {
		exp = call->held;
		return exp->upper;
	}
	if (export_fh_parse(nfs->exports, a->fh.data, a->fh.len, &id,
			    &handle) < 0)
		return NULL;
	err = export_find(nfs->exports, id, rpc_call_peer(call),
			  call->msg->xprt->any_port, &exp, &opts);
	if (err < 0)
		return err == -EAGAIN ? rpc_resolve_in(call, nfs->names) :
					NULL;
	rpc_call_hold(call, exp, put_export);
	return exp->upper;
}

static void resolve(struct rpc_call *call)
{
	const struct nfs3 *nfs = call->prog->ctx;

	export_resolve(nfs->exports, rpc_call_peer(call));
}

static bool size_ok(uint32_t size)
{
	return size >= TRANSFER_UNIT && size <= POOL_PAYLOAD_MAX &&
	       size % TRANSFER_UNIT == 0;
}

int nfs3_create(const struct nfs3_config *config, struct rpc_program **out)
{
	struct nfs3 *nfs = calloc(1, sizeof(*nfs));

	if (!nfs)
		return -ENOMEM;
	nfs->exports = config->exports;
	nfs->names = config->names;
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
	nfs->prog.nversions = 1;
	nfs->prog.versions = &nfs->version;
	nfs->prog.ctx = nfs;
	nfs->prog.authorize = authorize;
	nfs->prog.classify = classify;
	nfs->prog.resolve = resolve;
	nfs->prog.sends_back = true;
	*out = &nfs->prog;
	return 0;
}

void nfs3_destroy(struct rpc_program *prog)
{
	free(container_of(prog, struct nfs3, prog));
}
