/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * audit - reports each call of NFS and NFSACL that has ended: who did what to
 * which file, and with what outcome.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "lib/xdr.h"

struct export_tree;
struct rpc_call;
struct vfs_cred;
struct vfs_node;

/* A file or directory that a call is about, or a name in it. */
struct rpc_audit_object {
	struct xdr_view	 fh;	/* as received; NULL data: no handle */
	struct vfs_node	*node;	/* NULL: it was not opened */
	struct xdr_view	 name;	/* as it came; without one, data is NULL */
};

/* A call that has ended, before its reply.  All is borrowed. */
struct rpc_audit_event {
	const struct rpc_call	*call;
	unsigned		 proc;	/* bit in struct rpc_audit */
	const char		*status;	/* a literal, "NFS3_OK" */
	const struct export_tree *exp;	/* NULL: the handle leads to none */
	const struct vfs_cred	*cred;	/* that it acted with; or NULL */
	struct rpc_audit_object	 at;
	struct rpc_audit_object	 to;	/* RENAME's and LINK's new name */
};

/* NFS's procedures come first, then NFSACL's. */
#define RPC_AUDIT_ACL	22u

/* The listener.  Outlives the programs. */
struct rpc_audit {
	/* Procedures, their numbers as bits.  0: none.  Can change at any
	 * time. */
	_Atomic uint64_t procs;
	/* On the thread that has the call: must not wait. */
	void (*note)(struct rpc_audit *audit, const struct rpc_audit_event *e);
};
