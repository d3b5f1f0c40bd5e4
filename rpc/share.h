/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * share - resources that the calls of one export share: workers, accounts, and
 * queues.
 *
 * Programs find it at the export.  It stays as it is while a call has the
 * export.
 */
#pragma once

#include <stddef.h>

/* All are borrowed, and each can be NULL. */
struct rpc_share {
	struct work_class *class;	/* of workers; NULL: that of calls
					 * without an export */
	struct account	  *account;	/* the calls */
	struct account	  *backend;	/* the backend's operations, of one call
					 * in 64 */
	struct rpc_limit  *limit;	/* where calls over the limits wait */
};

/* @share can be NULL. */
static inline struct work_class *rpc_share_class(const struct rpc_share *share)
{
	return share ? share->class : NULL;
}
