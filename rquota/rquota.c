/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The procedures of rquota, and the program.
 *
 * The path of a call lies in an export, whose rules hold: the host must be let
 * in, and the caller and the user or group that it asks for are squashed alike.
 * A caller may ask for itself and its groups, user 0 for all.
 *
 * Clients' quota(1) is an ordinary program, so calls come from any port, even
 * where the export is `secure`: the caller's user is then whatever a program of
 * its host claims.
 */
#include "rpc/share.h"
#include "rquota/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#include "lib/stats.h"

STAT(rquota_put_off, "quota calls left unanswered, which clients send again");

struct rquota {
	struct rpc_program   prog;
	struct export_table *exports;	/* borrowed */
	struct work_class   *names;	/* borrowed, or NULL */
};

static struct walk_client quota_client(struct rpc_call *call)
{
	const struct rquota *q = call->prog->ctx;
	const struct rpc_cred *cred = &call->cred;

	return (struct walk_client){
		.exports = q->exports, .may_wait = call->may_wait,
		.peer = {
			.addr = rpc_call_peer(call), .flavor = cred->flavor,
			.any_port = true,
			.protection = RPC_MTLS,
		},
		.who = {
			.none = cred->flavor == RPC_AUTH_NONE,
			.uid = cred->uid, .gid = cred->gid,
			.ngids = cred->ngids, .gids = cred->gids,
		},
	};
}

static int begin_path(struct rpc_call *call)
{
	const struct walk_client client = quota_client(call);
	const struct rquota_args *a = rpc_args(call);
	int err = walk_begin(&client, a->path, rpc_state(call));

	if (err == -EKEYREJECTED)
		return RPC_TOO_WEAK;
	if (err < 0)
		return err;
	return call->may_wait ? rpc_call_move(call, NULL) : 0;
}

static struct work_class *leave_quota(struct rpc_call *call)
{
	const struct rquota *q = call->prog->ctx;
	const struct walk *w = rpc_state(call);

	return walk_opens(w) ? q->names : rpc_share_class(w->exp->user);
}

static bool has_group(const struct vfs_cred *cred, uint32_t gid)
{
	bool has = cred->gid == gid;

	for (uint32_t i = 0; i < cred->ngids && !has; i++)
		has = cred->gids[i] == gid;
	return has;
}

/* Sets the type and the id of @q, in the export that @w has come to.  0;
 * -EPERM: they are not the caller's; -EINVAL: no such type. */
static int check_ids(const struct walk *w, const struct rquota_args *a,
		     struct vfs_quota *q)
{
	bool own;

	switch (a->type) {
	case RQUOTA_USER:
		q->type = VFS_QUOTA_USER;
		q->id = export_squash(&w->opts, a->id, w->opts.anonuid);
		own = w->cred.uid == q->id;
		break;
	case RQUOTA_GROUP:
		q->type = VFS_QUOTA_GROUP;
		q->id = export_squash(&w->opts, a->id, w->opts.anongid);
		own = has_group(&w->cred, q->id);
		break;
	default:
		return -EINVAL;
	}
	return own || w->cred.uid == 0 ? 0 : -EPERM;
}

/* A backend knows only quotas that are on, so GETACTIVEQUOTA is the same. */
static int get_quota(struct rpc_call *call)
{
	const struct walk_client client = quota_client(call);
	const struct rquota_args *a = rpc_args(call);
	struct rquota_res *r = rpc_res(call);
	struct walk *w = rpc_state(call);
	struct vfs_op op = { .quota = &r->quota };
	struct vfs_node *node;
	int err;

	while ((err = walk_to(&client, a->path, w, &node)) == WALK_MOVES) {
		err = rpc_call_move(call, get_quota);
		if (err != 0)
			return err;
	}
	if (err < 0)
		return err;
	err = check_ids(w, a, &r->quota);
	op.node = node;
	if (err == 0)
		err = node->fs->ops->quota ? node->fs->ops->quota(&op) :
					     -EOPNOTSUPP;
	vfs_node_put(node);
	return err;
}

static int refuse_set(struct rpc_call *call)
{
	return -EPERM;
}

static int end_quota(struct rpc_call *call, int err)
{
	struct rquota_res *r = rpc_res(call);

	walk_end(rpc_state(call));
	/* The quota, or the caller's groups, are not known now.  rquota has no
	 * status for that; quota(1) asks again when it hears nothing. */
	if (err == -ETIMEDOUT) {
		stat_inc(rquota_put_off);
		return -ECANCELED;
	}
	r->now = time(NULL);
	r->status = rquota_status(err);
	call->failed = r->status != Q_OK;
	return 0;
}

#define GET(n, version) { \
		.name = n, \
		.decode = rquota_get##version, \
		.steps = { begin_path, rpc_need_worker, get_quota }, \
		.end = end_quota, \
		.encode = rquota_put, \
		.args_size = sizeof(struct rquota_args), \
		.res_size = sizeof(struct rquota_res), \
		.state_zeroed = sizeof(struct walk), \
	}

#define SET(n, version) { \
		.name = n, \
		.decode = rquota_get_set##version, \
		.steps = { refuse_set }, \
		.end = end_quota, \
		.encode = rquota_put, \
		.res_size = sizeof(struct rquota_res), \
		.state_zeroed = sizeof(struct walk), \
	}

#define PROCS(version) { \
		[RQUOTAPROC_NULL] = { .name = "NULL" }, \
		[RQUOTAPROC_GETQUOTA] = GET("GETQUOTA", version), \
		[RQUOTAPROC_GETACTIVEQUOTA] = \
			GET("GETACTIVEQUOTA", version), \
		[RQUOTAPROC_SETQUOTA] = SET("SETQUOTA", version), \
		[RQUOTAPROC_SETACTIVEQUOTA] = \
			SET("SETACTIVEQUOTA", version), \
	}

static const struct rpc_proc procs1[] = PROCS(1);
static const struct rpc_proc procs2[] = PROCS(2);

#define SERVES(n) { \
	.vers = n, .nproc = ARRAY_SIZE(procs##n), .procs = procs##n }

static const struct rpc_version versions[] = { SERVES(1), SERVES(2) };

static int create_rquota(const struct program_env *env,
			 struct rpc_program **out)
{
	struct rquota *q = calloc(1, sizeof(*q));

	if (!q)
		return -ENOMEM;
	q->exports = env->exports;
	q->names = env->names;
	q->prog.name = "rquota";
	q->prog.prog = RQUOTA_PROGRAM;
	q->prog.nversions = ARRAY_SIZE(versions);
	q->prog.versions = versions;
	q->prog.no_rdma = true;
	q->prog.announced = RPC_OVER_TCP | RPC_OVER_UDP;
	q->prog.ctx = q;
	q->prog.leave = leave_quota;
	*out = &q->prog;
	return 0;
}

static void destroy_rquota(struct rpc_program *prog)
{
	free(container_of(prog, struct rquota, prog));
}

const struct program_row rquota_row = {
	.create = create_rquota, .destroy = destroy_rquota,
};
