/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * share - what the calls of one export have in common: workers, accounts, and
 * queues.
 *
 * Programs find it at the export.  It stays as it is while a call has the
 * export.
 */
#pragma once

#include <stddef.h>

/* All are borrowed, and each may be NULL. */
struct rpc_share {
	struct work_class *class;	/* of workers; NULL: that of calls
					 * without an export */
	struct account	  *account;	/* the calls */
	struct account	  *backend;	/* the backend's operations, those of
					 * one call in 64 */
	struct rpc_limit  *limit;	/* where calls over the limits wait */
};

/* @share may be NULL. */
static inline struct work_class *rpc_share_class(const struct rpc_share *share)
{
	return share ? share->class : NULL;
}
