/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * program - program 100024: hosts tell us of their restarts, and lock managers
 * of this machine, the NFS client's, have hosts monitored.
 *
 * SM_NOTIFY counts for a host with the caller's address only.  SM_MON,
 * SM_UNMON and SM_SIMU_CRASH are for this machine: from loopback, and from a
 * reserved port where this server runs as root.
 */
#include <netinet/in.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "nsm/priv.h"
#include "transport/addr.h"

STAT(nsm_refused, "calls refused because only this machine may make them");

static struct nsm *nsm_of(struct rpc_call *call)
{
	return call->prog->ctx;
}

static bool is_local(struct rpc_call *call)
{
	bool ok = xprt_addr_is_loopback(rpc_call_peer(call)) &&
		  (geteuid() != 0 ||
		   xprt_addr_port(&call->msg->xprt->peer) < IPPORT_RESERVED);

	if (!ok) {
		stat_inc(nsm_refused);
		log_limited(LOG_LEVEL_INFO, "%s: %s is only for this machine",
			    call->msg->xprt->name, call->proc->name);
	}
	return ok;
}

/* The name as a string into NSM_NAME_MAX + 1 bytes; false: no host has it. */
static bool name_of(const struct xdr_view *v, char *out)
{
	if (!nsm_name_ok((const char *)v->data, v->len))
		return false;
	memcpy(out, v->data, v->len);
	out[v->len] = '\0';
	return true;
}

/* The host of a call, whose name must be an address: other names would need a
 * name service, which we don't query. */
static bool host_addr_of(struct rpc_call *call, char *name,
			 struct sockaddr_storage *addr)
{
	const struct sm_args *a = rpc_args(call);

	return name_of(&a->name, name) && nsm_addr_parse(name, addr);
}

static int answer_stat(struct rpc_call *call, bool ok)
{
	struct sm_stat_res *res = rpc_res(call);

	res->res = ok ? SM_SUCC : SM_FAIL;
	res->state = nsm_state(nsm_of(call));
	call->failed = !ok;
	return 0;
}

static int do_stat(struct rpc_call *call)
{
	char name[NSM_NAME_MAX + 1];
	struct sockaddr_storage addr;

	return answer_stat(call, host_addr_of(call, name, &addr));
}

static void mon_done(void *arg, int err)
{
	struct rpc_call *call = arg;
	int *result = rpc_state(call);

	*result = err;
	rpc_call_resume(call);
}

static int end_mon(struct rpc_call *call)
{
	const int *result = rpc_state(call);

	return answer_stat(call, *result == 0);
}

static int do_mon(struct rpc_call *call)
{
	const struct sm_args *a = rpc_args(call);
	struct nsm_host user = { .vers = a->vers, .proc = a->proc };
	char name[NSM_NAME_MAX + 1];
	struct sockaddr_storage addr;
	const struct rpc_host who = { name, (struct sockaddr *)&addr, NULL };

	if (!is_local(call) || a->prog != NSM_USER_PROG ||
	    !host_addr_of(call, name, &addr) ||
	    !rpc_call_suspend(call, "the list of hosts", NULL, end_mon))
		return answer_stat(call, false);
	memcpy(user.priv, a->priv.data, SM_PRIV_SIZE);
	nsm_add(nsm_of(call), &who, &user, mon_done, call);
	return RPC_PENDING;
}

static int do_unmon(struct rpc_call *call)
{
	const struct sm_args *a = rpc_args(call);
	char name[NSM_NAME_MAX + 1];

	if (is_local(call) && name_of(&a->name, name))
		nsm_remove_user(nsm_of(call), name);
	return answer_stat(call, true);
}

static int do_unmon_all(struct rpc_call *call)
{
	if (is_local(call))
		nsm_remove_user(nsm_of(call), NULL);
	return answer_stat(call, true);
}

static int do_simu_crash(struct rpc_call *call)
{
	if (is_local(call))
		nsm_crash(nsm_of(call));
	return 0;
}

static int do_notify(struct rpc_call *call)
{
	const struct sm_args *a = rpc_args(call);
	char name[NSM_NAME_MAX + 1];
	bool named = name_of(&a->name, name);

	nsm_news(nsm_of(call), named ? name : "?", rpc_call_peer(call),
		 a->state);
	return 0;
}

#define ROW(proc, get, run, put, ...) [SM_##proc] = { \
		.name = #proc, .decode = get, .steps = { run }, \
		.encode = put, .args_size = sizeof(struct sm_args), \
		.res_size = sizeof(struct sm_stat_res), __VA_ARGS__ }

static const struct rpc_proc procs[] = {
	[SM_NULL] = { .name = "NULL" },
	ROW(STAT, sm_get_name, do_stat, sm_put_stat_res),
	ROW(MON, sm_get_mon, do_mon, sm_put_stat_res),
	ROW(UNMON, sm_get_mon_id, do_unmon, sm_put_state),
	ROW(UNMON_ALL, sm_get_my_id, do_unmon_all, sm_put_state),
	[SM_SIMU_CRASH] = { .name = "SIMU_CRASH", .steps = { do_simu_crash } },
	[SM_NOTIFY] = { .name = "NOTIFY", .decode = sm_get_notify,
			.steps = { do_notify },
			.args_size = sizeof(struct sm_args) },
};

static const struct rpc_version versions[] = {
	{ .vers = 1, .nproc = ARRAY_SIZE(procs), .procs = procs },
};

void nsm_program_init(struct nsm *n)
{
	n->prog = (struct rpc_program){
		.name = "status", .prog = NSM_PROG,
		.nversions = ARRAY_SIZE(versions), .versions = versions,
		.no_rdma = true, .ctx = n,
	};
}
