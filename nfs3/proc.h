/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of nfs3/. */
#pragma once

#include "lib/probe.h"
#include "nfs3/nfs3.h"
#include "rpc/audit.h"
#include "wire/nfs3.h"

_Static_assert(NFS3_STRING_MAX == POOL_BUF_MAX, "as long as a message");
_Static_assert(NFS3_DATA_MAX == MSG_MAX_TAKEN, "as much as a message has");
_Static_assert(NFS3_MAX_PIECES == MSG_MAX_SEGS, "a piece for each segment");

struct nfs3 {
	struct rpc_program	 prog;
	struct rpc_version	 version;
	struct export_table	*exports;	/* borrowed */
	struct work_class	*names;		/* borrowed, or NULL */
	uint32_t		 rtmax;
	uint32_t		 wtmax;
	uint32_t		 dtpref;
	/* Of nfs3_status(): that of procedure 0. */
	unsigned		 first_status;
	struct rpc_audit	*audit;		/* borrowed, or none's */
};

/* status.c */

/* @proc is an nfs3_procnum, or an nfsacl_procnum more than this. */
#define NFSACL_STATUS	NFS3_NPROC

/* The one table: returns the nfsstat3 for @err (0 or -errno) in a reply of
 * @proc.  Pure. */
enum nfsstat3 nfs3_status(unsigned proc, int err);
/* True if @proc can answer with @status.  For tests.  Pure. */
bool nfs3_status_allowed(unsigned proc, enum nfsstat3 status);
/* "NFS3_OK", "NFS3ERR_...": a literal. */
const char *nfs3_status_name(enum nfsstat3 status);
/* Counts a failure by its status. */
void nfs3_status_count(enum nfsstat3 status);

/* The entries of a listing, as they come. */
struct nfs3_list {
	struct xdr_out	 out;
	uint32_t	 dirleft;	/* of dircount */
	unsigned	 entries;
	bool		 plus;
	bool		 full;
};

/*
 * op.c: one call on one export.  Lies in the call's state.
 */
struct nfs3_op {
	struct nfs3		*nfs;
	struct export_tree	*exp;		/* counted, or: */
	struct vfs_op		 vfs;		/* its node is counted */
	struct vfs_node		*other;		/* counted: RENAME's second
						 * directory, LINK's only one */
	bool			 borrowed;	/* in an RCU section, till the
						 * call leaves its poller */
	uint8_t			 odd;		/* nfs3_do()'s: ... */
	bool			 told;		/* nfs3_tell() is done */
	/* Not zeroed from here on: NFS3_OP_ZEROED. */
	uint32_t		 id;		/* the handle's export */
	const struct vfs_ops	*ops;		/* of the export's backend */
	struct export_opts	 opts;
	union {
		struct iovec	 iov;		/* READ's room */
		struct nfs3_list list;		/* READDIR's */
		struct vfs_child child;		/* LOOKUP's */
	};
	int			 result;	/* of an operation that ended
						 * later */
	struct vfs_cred		 cred;		/* its groups are counted as
						 * the export is */
	struct vfs_handle	 handle;
};

#define NFS3_OP_ZEROED	offsetof(struct nfs3_op, id)
_Static_assert(sizeof(struct nfs3_op) <= RPC_STATE_SIZE, "fits a call");

static inline struct nfs3_op *nfs3_op(struct rpc_call *call)
{
	return (void *)call->state;
}

/* The caller, for exports/. */
static inline struct export_peer nfs3_peer(const struct rpc_call *call)
{
	return (struct export_peer){
		.addr = rpc_call_peer(call), .flavor = call->cred.flavor,
		.any_port = call->msg->xprt->any_port,
		.protection = call->msg->xprt->protection,
	};
}

/* For struct rpc_program. */
struct work_class *nfs3_leave(struct rpc_call *call);

/* nfs3.c: completes the program of @nfs, of which name, number and procedures
 * are set. */
void nfs3_program_init(struct nfs3 *nfs, const struct program_env *env);
void nfs3_destroy(struct rpc_program *prog);

/* audit.c: tells of the call, which ends with @err, once. */
void nfs3_tell(struct rpc_call *call, int err);

/* The same if the audit wants to know.  Before the nodes are put. */
static inline void nfs3_tell_audit(struct rpc_call *call, int err)
{
	const struct nfs3 *nfs = call->prog->ctx;

	if (unlikely(atomic_load_explicit(&nfs->audit->procs,
					  memory_order_relaxed)))
		nfs3_tell(call, err);
}

/* The steps that procedures begin with. */
#define NFS3_STEP(name) int nfs3_##name(struct rpc_call *call)

/* Finds the export that the handle names, and the caller there. */
NFS3_STEP(find_export);
/* Opens the file that the handle names. */
NFS3_STEP(find_node);
/* -EROFS if the export is read-only.  After find_node, which gets the
 * attributes for the reply. */
NFS3_STEP(check_rw);

/* The ends of procedures.  They add the attributes of the node, unless a step
 * did; release all of it; and set the status. */
int nfs3_end(struct rpc_call *call, int err);
int nfs3_end_attr(struct rpc_call *call, int err);
int nfs3_end_wcc(struct rpc_call *call, int err);

/* Bits of op->odd: the operation has ended later; each is to be timed, for a
 * trace; each is to be counted, for the export's backend. */
#define NFS3_ENDED	0x01
#define NFS3_TIMED	0x02
#define NFS3_SAMPLED	0x04

/* True if the step that runs began an operation before, which is over. */
static inline bool nfs3_has_ended(const struct nfs3_op *op)
{
	return op->odd & NFS3_ENDED;
}

/* op.c: nfs3_do() where a bit is set. */
int nfs3_do_oddly(struct nfs3_op *op, vfs_op_fn *fn);

/*
 * Runs an operation of the backend with op->vfs, and returns its result;
 * VFS_PENDING: the call no longer belongs to the caller.  When the operation
 * has ended, the step that began it runs again and calls this with the same
 * arguments: then the operation is not run, and op->vfs has its results, which
 * the step must have left there.
 *
 * The compiler overestimates the size of probes, so the function is marked
 * inline.
 */
__attribute__((always_inline))
static inline int nfs3_do(struct nfs3_op *op, vfs_op_fn *fn)
{
	int n;

	if (unlikely(op->odd))
		return nfs3_do_oddly(op, fn);
	PROBE(backend_begin, rpc_state_call(op)->msg, fn);
	n = fn(&op->vfs);
	PROBE(backend_end, n);
	return n;
}

_Static_assert(VFS_PENDING == RPC_PENDING, "a step passes it on");
/* Opens op->other, which must lie in the same export, unless it is open. */
int nfs3_open_other(struct nfs3_op *op, struct xdr_view fh);
/* True if the call's node is the root of its export, or of a file system below
 * one. */
bool nfs3_is_root(const struct nfs3_op *op);
/* The attributes of @node, unless the operation told them. */
void nfs3_post_wcc(struct rpc_call *call, struct vfs_node *node,
		   struct nfs3_wcc *wcc);
/* The handle of @node, for the reply. */
void nfs3_make_fh(struct nfs3_op *op, struct vfs_node *node,
		  struct nfs3_fh *fh);
/* Section 3.2: 0, -EACCES or -ENAMETOOLONG. */
int nfs3_check_name(struct xdr_view view, struct vfs_name *name);
bool nfs3_is_dot(struct vfs_name name);
bool nfs3_is_dotdot(struct vfs_name name);
/* True if the nanoseconds of the times to set are in range. */
bool nfs3_times_ok(const struct vfs_setattr *set);

/* The steps of one procedure: proc_attr.c, proc_io.c, proc_dir.c, proc_make.c,
 * proc_readdir.c. */

NFS3_STEP(getattr);
NFS3_STEP(setattr);
NFS3_STEP(lookup);
NFS3_STEP(access);
NFS3_STEP(readlink_room);
NFS3_STEP(readlink);
NFS3_STEP(read_size);
NFS3_STEP(read_piped);
NFS3_STEP(read_room);
NFS3_STEP(read);
NFS3_STEP(write_check);
NFS3_STEP(write);
int nfs3_end_write(struct rpc_call *call, int err);
NFS3_STEP(create_file);
NFS3_STEP(make);
NFS3_STEP(remove);
NFS3_STEP(rmdir);
NFS3_STEP(rename);
int nfs3_end_rename(struct rpc_call *call, int err);
NFS3_STEP(link);
int nfs3_end_link(struct rpc_call *call, int err);
NFS3_STEP(readdir_room);
NFS3_STEP(readdir);
NFS3_STEP(readdirplus);
NFS3_STEP(fsstat);
NFS3_STEP(fsinfo);
NFS3_STEP(pathconf);
NFS3_STEP(commit);
