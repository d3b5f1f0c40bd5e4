/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The MOUNT program: its versions, creation and end.
 *
 * No procedure is marked RPC_PROC_CACHED: each can run twice, and leaves the
 * same list of mounts as one run.
 */
#include "mountd/mount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_MAX		4096
#define DEFAULT_MAX_HOST	256

/* Longer than its call, and for every host that asks. */
#define LIST(list, step) { \
		.name = list, \
		.steps = { rpc_need_worker, mount_list_room, step }, \
		.flags = RPC_PROC_LONG, \
	}

#define COMMON \
	[MOUNTPROC_NULL] = { \
		.name = "NULL", \
	}, \
	[MOUNTPROC_DUMP] = LIST("DUMP", mount_dump), \
	[MOUNTPROC_UMNT] = { \
		.name = "UMNT", \
		.decode = mount_get_path, \
		.steps = { mount_umnt }, \
		.args_size = sizeof(struct mount_path_args), \
	}, \
	[MOUNTPROC_UMNTALL] = { \
		.name = "UMNTALL", \
		.steps = { mount_umntall }, \
	}, \
	[MOUNTPROC_EXPORT] = LIST("EXPORT", mount_export)

#define MNT(version) \
	[MOUNTPROC_MNT] = { \
		.name = "MNT", \
		.decode = mount_get_path, \
		.steps = { mount_begin, mount_find_export, rpc_need_worker, \
			   mount_walk }, \
		.end = mount_end_mnt##version, \
		.encode = mount_put_mnt##version, \
		.args_size = sizeof(struct mount_path_args), \
		.res_size = sizeof(struct mount_mnt_res), \
		.state_zeroed = sizeof(struct mount_state), \
	}

static const struct rpc_proc procs1[] = {
	COMMON,
	MNT(1),
	[MOUNTPROC_EXPORTALL] = LIST("EXPORTALL", mount_export),
};

static const struct rpc_proc procs3[] = {
	COMMON,
	MNT(3),
};

#define SERVES(n, rows) { \
	.vers = n, .nproc = ARRAY_SIZE(rows), .procs = rows }

/* Version 2 adds PATHCONF, of NFS version 2's handles: not served. */
static const struct rpc_version versions[] = {
	SERVES(1, procs1),
	SERVES(2, procs1),
	SERVES(3, procs3),
};

static int open_rmtab(const struct program_env *env, struct rmtab **out)
{
	struct rmtab_config rc = { .max = DEFAULT_MAX,
				   .max_host = DEFAULT_MAX_HOST };
	char *path = NULL;
	int err;

	if (env->state_dir &&
	    asprintf(&path, "%s/rmtab", env->state_dir) < 0)
		return -ENOMEM;
	rc.path = path;
	err = rmtab_open(&rc, out);
	free(path);
	return err;
}

static int create_mountd(const struct program_env *env,
			 struct rpc_program **out)
{
	struct mountd *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	err = open_rmtab(env, &m->rmtab);
	if (err < 0) {
		free(m);
		return err;
	}
	pthread_mutex_init(&m->lock, NULL);
	CDS_INIT_LIST_HEAD(&m->mounting);
	err = mount_wait_start(m);
	if (err < 0) {
		pthread_mutex_destroy(&m->lock);
		rmtab_close(m->rmtab);
		free(m);
		return err;
	}
	m->exports = env->exports;
	m->names = env->names;
	m->prog.name = "mount";
	m->prog.prog = MOUNT_PROGRAM;
	m->prog.nversions = ARRAY_SIZE(versions);
	m->prog.versions = versions;
	m->prog.no_rdma = !env->rdma_mount;
	/* Whatever NFS is to use (RFC 8267 section 5.1). */
	m->prog.announced = RPC_OVER_TCP | RPC_OVER_UDP;
	m->prog.ctx = m;
	m->prog.leave = mount_leave;
	*out = &m->prog;
	return 0;
}

static void destroy_mountd(struct rpc_program *prog)
{
	struct mountd *m = container_of(prog, struct mountd, prog);

	mount_wait_stop(m);
	rmtab_close(m->rmtab);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static void mountd_mounts(struct rpc_program *prog,
			  void (*fn)(void *arg, const char *host,
				     const char *path), void *arg)
{
	rmtab_walk(container_of(prog, struct mountd, prog)->rmtab, fn, arg);
}

const struct program_row mountd_row = {
	.create = create_mountd, .destroy = destroy_mountd,
	.mounts = mountd_mounts,
};
