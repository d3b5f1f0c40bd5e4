/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock manager's own code for its models, with one file.  This file
 * replaces the rest of the server.
 */
#include "lib/log.h"
#include "lib/stats.h"

#undef stat_inc
#define stat_inc(id) ((void)0)
#undef stat_add
#define stat_add(id, n) ((void)0)
#undef log_limited
#define log_limited(...) ((void)0)

#include "lib/xdr.c"
#include "transport/addr.c"

#include "nlm/file.c"
#include "nlm/grant.c"
#include "nlm/host.c"
#include "nlm/lock.c"
#include "nlm/op.c"
#include "nlm/queue.c"
#include "nlm/ranges.c"
#include "nlm/ready.c"
#include "nlm/status.c"
#include "nlm/table.c"
#include "nlm/tree.c"
#include "nlm/wait.c"
#include "nlm/who.c"
#include "wire/nlm.c"

static struct nlm nlm;
static struct nlm_file *the_file;
static struct export_tree exp0;
static struct vfs_ops ops;
static struct vfs_fs fs = { .ops = &ops };
static struct vfs_node node;
static struct vfs_handle handle = { .len = 1 };
static struct work_item *job;

_Thread_local bool thread_must_not_wait;

/* One place is enough for so few keys. */
uint64_t hash_keyed(const void *data, size_t len)
{
	return 0;
}

void rpc_server_submit(struct rpc_server *server, struct work_class *class,
		       struct work_item *item)
{
	job = item;
}

/* No step of the model comes here. */
#define NEVER(type, name, ...) type name(__VA_ARGS__) { abort(); }
NEVER(void, export_put, struct export_tree *e)
NEVER(int, export_reach, struct export_table *t, uint32_t id,
      const struct export_peer *p, struct export_tree **e,
      struct export_opts *o)
NEVER(int, export_find, struct export_table *t, uint32_t id,
      const struct export_peer *p, struct export_tree **e,
      struct export_opts *o)
NEVER(int, export_fh_parse, struct export_table *t, const void *fh,
      uint32_t len, uint32_t *id, struct vfs_handle *h)
NEVER(int, export_caller_counted, struct export_table *t,
      const struct export_opts *o, const struct export_claim *c, bool wait,
      struct vfs_cred *cred)
NEVER(void, export_caller_put, const struct vfs_cred *c)
NEVER(bool, export_is_current, struct export_table *t,
      const struct export_tree *e)
NEVER(int, rpc_call_move, struct rpc_call *c, rpc_step_fn *then)
NEVER(bool, rpc_call_suspend, struct rpc_call *c, const char *why,
      rpc_cancel_fn *cancel, rpc_step_fn *then)
NEVER(void, rpc_call_resume, struct rpc_call *c)
