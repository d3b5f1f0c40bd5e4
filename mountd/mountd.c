/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MOUNT program: its versions, creation and end.
 *
 * No procedure is marked RPC_PROC_CACHED: each may run twice, and leaves the
 * same list of mounts as one run.
 */
#include "mountd/mount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_MAX		4096
#define DEFAULT_MAX_HOST	256

static enum rpc_run do_null(struct rpc_call *call, const void *args, void *res)
{
	return RPC_DONE;
}

#define COMMON \
	[MOUNTPROC_NULL] = { \
		.name = "NULL", \
		.run = do_null, \
		.flags = RPC_PROC_POLLER, \
	}, \
	[MOUNTPROC_DUMP] = { \
		.name = "DUMP", \
		.run = mount_do_dump, \
	}, \
	[MOUNTPROC_UMNT] = { \
		.name = "UMNT", \
		.decode = mount_get_path, \
		.run = mount_do_umnt, \
		.args_size = sizeof(struct mount_path_args), \
	}, \
	[MOUNTPROC_UMNTALL] = { \
		.name = "UMNTALL", \
		.run = mount_do_umntall, \
	}, \
	[MOUNTPROC_EXPORT] = { \
		.name = "EXPORT", \
		.run = mount_do_export, \
	}

#define MNT(version) \
	[MOUNTPROC_MNT] = { \
		.name = "MNT", \
		.decode = mount_get_path, \
		.run = mount_do_mnt##version, \
		.encode = mount_put_mnt##version, \
		.args_size = sizeof(struct mount_path_args), \
		.res_size = sizeof(struct mount_mnt_res), \
	}

static const struct rpc_proc procs1[] = {
	COMMON,
	MNT(1),
	[MOUNTPROC_EXPORTALL] = {
		.name = "EXPORTALL",
		.run = mount_do_export,
	},
};

static const struct rpc_proc procs3[] = {
	COMMON,
	MNT(3),
};

/* Version 2 adds PATHCONF, of NFS version 2's handles: not served. */
static const struct rpc_version versions[] = {
	{ .vers = 1, .nproc = ARRAY_SIZE(procs1), .procs = procs1 },
	{ .vers = 2, .nproc = ARRAY_SIZE(procs1), .procs = procs1 },
	{ .vers = 3, .nproc = ARRAY_SIZE(procs3), .procs = procs3 },
};

static struct work_class *classify(struct rpc_call *call, const void *args)
{
	return call->procnum == MOUNTPROC_MNT ? mount_classify(call, args) :
						NULL;
}

static void resolve(struct rpc_call *call)
{
	const struct mountd *m = call->prog->ctx;

	export_resolve(m->exports, rpc_call_peer(call));
}

static int open_rmtab(const struct mountd_config *config, struct rmtab **out)
{
	struct rmtab_config rc = {
		.max = config->max_mounts ? config->max_mounts : DEFAULT_MAX,
		.max_host = config->max_mounts_host ? config->max_mounts_host :
						      DEFAULT_MAX_HOST,
	};
	char *path = NULL;
	int err;

	if (config->state_dir &&
	    asprintf(&path, "%s/rmtab", config->state_dir) < 0)
		return -ENOMEM;
	rc.path = path;
	err = rmtab_open(&rc, out);
	free(path);
	return err;
}

int mountd_create(const struct mountd_config *config, struct rpc_program **out)
{
	struct mountd *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	err = open_rmtab(config, &m->rmtab);
	if (err < 0) {
		free(m);
		return err;
	}
	m->exports = config->exports;
	m->names = config->names;
	m->prog.name = "mount";
	m->prog.prog = MOUNT_PROGRAM;
	m->prog.nversions = ARRAY_SIZE(versions);
	m->prog.versions = versions;
	m->prog.no_rdma = !config->rdma;
	m->prog.ctx = m;
	m->prog.classify = classify;
	m->prog.resolve = resolve;
	*out = &m->prog;
	return 0;
}

void mountd_destroy(struct rpc_program *prog)
{
	struct mountd *m = container_of(prog, struct mountd, prog);

	rmtab_close(m->rmtab);
	free(m);
}
