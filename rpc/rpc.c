/* SPDX-License-Identifier: BSD-2-Clause */
/* The RPC server: creation, programs, end. */
#include "rpc/rpc.h"

#include <errno.h>
#include <stdlib.h>

#include "rpc/auth.h"
#include "rpc/call.h"

int rpc_server_create(const struct rpc_server_config *config,
		      struct rpc_server **out)
{
	struct rpc_server *server;
	int err = -ENOMEM;

	server = aligned_alloc(_Alignof(struct rpc_server), sizeof(*server));
	if (!server)
		goto fail;
	memset(server, 0, sizeof(*server));
	server->pool = config->pool;
	server->flavors = config->flavors ? config->flavors : rpc_flavors;
	rpc_suspended_init(&server->suspended);
	rpc_order_init(&server->order);
	server->sink.recv = rpc_dispatch;
	server->sink.read_chunk_ok = rpc_read_chunk_ok;
	server->sink.msg_upper = sizeof(struct rpc_slot);
	server->probe = rpc_probe_create();
	if (!server->probe)
		goto fail_server;
	err = pipes_create(&server->pipes);
	if (err < 0)
		goto fail_probe;
	err = drc_create(config->drc_bytes, &server->drc);
	if (err < 0)
		goto fail_pipes;
	err = work_pool_create(config->nworkers, &server->work);
	if (err < 0)
		goto fail_drc;
	err = rpc_limits_start(server);
	if (err < 0)
		goto fail_work;
	*out = server;
	return 0;

fail_work:
	work_pool_destroy(server->work);
fail_drc:
	drc_destroy(server->drc);
fail_pipes:
	pipes_destroy(server->pipes);
fail_probe:
	free(server->probe);
fail_server:
	rpc_order_fini(&server->order);
	rpc_suspended_fini(&server->suspended);
	free(server);
fail:
	return err;
}

/* Asserts that rows fit a call's memory, and that versions ascend. */
static bool valid(const struct rpc_program *prog)
{
	if (!prog->nversions)
		return false;
	for (uint32_t i = 0; i < prog->nversions; i++) {
		const struct rpc_version *v = &prog->versions[i];

		if (i && v->vers <= prog->versions[i - 1].vers)
			return false;
		for (uint32_t k = 0; k < v->nproc; k++)
			if (v->procs[k].args_size > RPC_ARGS_SIZE ||
			    v->procs[k].res_size > RPC_RES_SIZE ||
			    v->procs[k].state_zeroed > RPC_STATE_SIZE ||
			    v->procs[k].steps[RPC_STEPS - 1])
				return false;
	}
	return true;
}

static uint32_t count_rows(const struct rpc_program *prog)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < prog->nversions; i++)
		n += prog->versions[i].nproc;
	return MAX(n, 1u);
}

int rpc_server_add(struct rpc_server *server, struct rpc_program *prog)
{
	unsigned n = server->nprogs;

	if (!valid(prog))
		return -EINVAL;
	if (n == RPC_MAX_PROGRAMS)
		return -ENOSPC;
	for (unsigned i = 0; i < n; i++)
		if (server->progs[i]->prog == prog->prog)
			return -EEXIST;
	server->counts[n] = calloc(count_rows(prog),
				   sizeof(struct rpc_proc_counts));
	if (!server->counts[n])
		return -ENOMEM;
	server->progs[n] = prog;
	server->nprogs++;
	return 0;
}

unsigned rpc_server_mnt_flavors(const struct rpc_server *server, uint32_t *out,
				unsigned max)
{
	unsigned n = 0;

	for (unsigned i = 0; server->flavors[i]; i++) {
		const struct rpc_flavor *f = server->flavors[i];

		for (unsigned k = 0; k < RPC_MNT_FLAVORS && f->mnt[k]; k++)
			if (n < max)
				out[n++] = f->mnt[k];
	}
	return n;
}

/* The ends are summed first.  A call is counted as taken before it ends, so the
 * difference is never too small. */
unsigned rpc_busy(void)
{
	uint64_t ended = stats_sum_by_name("rpc_replied") +
			 stats_sum_by_name("rpc_dropped") +
			 stats_sum_by_name("rpc_rejected");

	return (unsigned)(stats_sum_by_name("rpc_calls") - ended);
}

void rpc_server_walk_procs(struct rpc_server *server, rpc_walk_procs_fn *fn,
			   void *arg)
{
	for (unsigned i = 0; i < server->nprogs; i++) {
		const struct rpc_program *prog = server->progs[i];
		struct rpc_proc_counts *n = server->counts[i];

		for (uint32_t k = 0; k < prog->nversions; k++) {
			const struct rpc_version *v = &prog->versions[k];

			for (uint32_t p = 0; p < v->nproc; p++)
				if (v->procs[p].name)
					fn(prog, v, p, &n[p], arg);
			n += v->nproc;
		}
	}
}

void rpc_proc_sum(struct rpc_proc_counts *n, struct account_sum *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < RPC_WAYS; i++)
		account_sum(&n->by[i], out);
}

static void free_counts(struct rpc_proc_counts *n, uint32_t rows)
{
	for (uint32_t k = 0; k < rows; k++)
		for (unsigned i = 0; i < RPC_WAYS; i++)
			account_fini(&n[k].by[i]);
	free(n);
}

struct xprt_sink *rpc_server_sink(struct rpc_server *server)
{
	return &server->sink;
}

void rpc_server_replies(struct rpc_server *server, size_t *n, size_t *bytes)
{
	drc_usage(server->drc, n, bytes);
}

void rpc_server_destroy(struct rpc_server *server)
{
	rpc_limits_stop(server);
	work_pool_destroy(server->work);
	rpc_order_fini(&server->order);
	rpc_suspended_fini(&server->suspended);
	drc_destroy(server->drc);
	pipes_destroy(server->pipes);
	for (unsigned i = 0; i < server->nprogs; i++)
		free_counts(server->counts[i], count_rows(server->progs[i]));
	free(server->probe);
	free(server);
}

struct work_class *work_class_create(struct rpc_server *server,
				     const char *name, unsigned max_workers)
{
	return work_class_new(server->work, name, max_workers);
}

void rpc_server_submit(struct rpc_server *server, struct work_class *class,
		       struct work_item *item)
{
	item->is_job = true;
	item->client = 0;
	work_submit(class ? class : work_pool_common(server->work), item);
}

void rpc_server_walk_classes(struct rpc_server *server, work_walk_fn *fn,
			     void *arg)
{
	work_pool_walk(server->work, fn, arg);
}
