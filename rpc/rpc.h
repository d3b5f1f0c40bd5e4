/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpc - ONC RPC version 2 (RFC 5531): programs, calls, replies.
 *
 * A program is a table of procedures.  The dispatcher, an xprt_sink, reads the
 * RPC header, finds the row, decodes the arguments, answers repeated calls from
 * the duplicate request cache, runs the procedure (on the poller when it need
 * not block, else on a worker), encodes the results and gives the reply to the
 * transport.
 */
#ifndef GANNET_RPC_RPC_H
#define GANNET_RPC_RPC_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/xdr.h"
#include "transport/xprt.h"

#define RPC_MAX_GIDS	16		/* AUTH_SYS, RFC 5531 appendix A */
#define RPC_MAX_MACHINE	255

enum rpc_auth_flavor { RPC_AUTH_NONE = 0, RPC_AUTH_SYS = 1 };

/* RFC 5531 section 9. */
enum rpc_auth_stat {
	RPC_AUTH_OK = 0,
	RPC_AUTH_BADCRED = 1,
	RPC_AUTH_REJECTEDCRED = 2,
	RPC_AUTH_BADVERF = 3,
	RPC_AUTH_REJECTEDVERF = 4,
	RPC_AUTH_TOOWEAK = 5,
};

enum rpc_accept_stat {
	RPC_SUCCESS = 0,
	RPC_PROG_UNAVAIL = 1,
	RPC_PROG_MISMATCH = 2,
	RPC_PROC_UNAVAIL = 3,
	RPC_GARBAGE_ARGS = 4,
	RPC_SYSTEM_ERR = 5,
};

/* The caller's identity, as its credential claims it; nothing proves it. */
struct rpc_cred {
	enum rpc_auth_flavor flavor;
	uint32_t	uid;
	uint32_t	gid;
	uint32_t	ngids;
	uint32_t	gids[RPC_MAX_GIDS];
};

enum rpc_run {
	RPC_DONE,		/* the results are in *res */
	RPC_BLOCKS,		/* only if !call->may_block: run() did nothing;
				 * a worker runs it again */
	RPC_NO_BUFFER,		/* rpc_body_alloc() failed before run() did
				 * anything: it runs again when there is a
				 * buffer */
	RPC_FAILED,		/* SYSTEM_ERR */
	RPC_DROPPED,		/* no reply */
};

struct rpc_call;
struct rpc_counts;
struct work_class;

struct rpc_proc {
	const char *name;
	/* Pure: arguments off the wire.  False: GARBAGE_ARGS. */
	bool (*decode)(struct xdr_in *x, void *args);
	enum rpc_run (*run)(struct rpc_call *call, const void *args, void *res);
	/* Pure: results onto the wire.  May be NULL: void. */
	void (*encode)(struct xdr_out *x, const void *res);
	uint16_t args_size;	/* <= RPC_ARGS_SIZE */
	uint16_t res_size;	/* <= RPC_RES_SIZE; zeroed before run */
	uint8_t	 flags;
};

/* Not idempotent: goes through the duplicate request cache. */
#define RPC_PROC_CACHED		0x01
/* Try it on the poller first, with may_block false. */
#define RPC_PROC_POLLER		0x02
/* The *last* item of the arguments, an opaque or a string, is DDP-eligible: it
 * may come in a Read chunk (RFC 8267 section 4). */
#define RPC_PROC_DDP_ARG	0x04
/* The result that the body carries is DDP-eligible: READ, READLINK. */
#define RPC_PROC_DDP_RES	0x08
/* Idempotent, but must not run beside its duplicate: the duplicate waits, and
 * then runs (see rpc/drc.h).  Excludes RPC_PROC_CACHED. */
#define RPC_PROC_ALONE		0x10

#define RPC_ARGS_SIZE		1024
#define RPC_RES_SIZE		1024

/* One version of one program. */
struct rpc_version {
	uint32_t		 vers;
	uint32_t		 nproc;
	const struct rpc_proc	*procs;		/* a gap's name is NULL */
};

struct rpc_program {
	const char		 *name;
	uint32_t		  prog;
	uint32_t		  nversions;
	const struct rpc_version *versions;	/* ascending */
	bool			  no_rdma;	/* not served over RDMA */
	void			 *ctx;		/* the program's own */
	/*
	 * Called before the arguments of a procedure other than NULL are
	 * decoded, on the poller: must not block.  Returns RPC_AUTH_OK, or the
	 * reason to deny the call (MSG_DENIED, AUTH_ERROR).  NULL: every caller
	 * may.
	 */
	enum rpc_auth_stat (*authorize)(struct rpc_call *call);
	/*
	 * Names the share of the workers that a call uses, so that one slow
	 * export can't stop the others.  NULL, or returning NULL: the common
	 * share.  The class outlives the call.  Called only for a call that
	 * goes to a worker, on the poller or on the thread that ran the call it
	 * repeats: must not block.
	 */
	struct work_class *(*classify)(struct rpc_call *call,
				       const void *args);
	/*
	 * Finds out, on a worker of the share that rpc_resolve_in() named, what
	 * classify() could not learn without waiting.  The dispatcher then
	 * calls classify() once more.  So a call waits for a name service in
	 * one share, and for a file system in another.
	 */
	void (*resolve)(struct rpc_call *call);
	/* Each procedure with a share of its own honours call->sent_back. */
	bool			  sends_back;
	struct rpc_counts	 *counts;	/* internal to rpc/ */
};

/*
 * One call being served; lies in msg->upper.  A procedure only reads these
 * fields: its arguments and results are parameters of run(), and the functions
 * below set the reply's body and what the call holds.
 */
struct rpc_call {
	struct msg		 *msg;
	struct rpc_server	 *server;
	const struct rpc_program *prog;
	const struct rpc_version *version;
	const struct rpc_proc	 *proc;
	uint32_t		  xid;
	uint32_t		  procnum;
	struct rpc_cred		  cred;
	bool			  may_block;	/* false on a poller */
	bool			  unresolved;	/* resolve() has to run first */
	bool			  resolved;	/* resolve() has run */
	bool			  sent_back;	/* do nothing and wait for
						 * nothing: tell the client to
						 * come again later */
	void			 *held;		/* the program's, for the call's
						 * life: see rpc_call_hold() */
	void			(*held_put)(void *held);
	struct rpc_call_priv	 *priv;		/* rpc/call.h */
};

/*
 * Returns a buffer of at least @size <= POOL_BUF_MAX bytes for the reply's
 * body, which is sent without a copy (see rpc_body_set()).  The call owns it; a
 * second call returns the same one.  NULL: the procedure has to return
 * RPC_NO_BUFFER at once, and must not have done anything yet.
 */
struct buf *rpc_body_alloc(struct rpc_call *call, size_t size);

/*
 * Returns a pipe of PIPE_MAX bytes for the body instead of a buffer; NULL: no
 * pipe is free, or the transport can't send from one.  Bytes in the pipe are
 * lost unless rpc_body_set_pipe() makes them the body.
 */
struct pipe *rpc_body_pipe(struct rpc_call *call);
/* Makes the @len bytes in the pipe, which must be all it holds, the body.  Only
 * for a procedure with RPC_PROC_DDP_RES. */
void rpc_body_set_pipe(struct rpc_call *call, uint32_t len);

/*
 * Makes the first @len bytes of the buffer the reply's body.  On the wire the
 * body follows encode()'s output, and @ntail words (at most four) follow the
 * body.  With RPC_PROC_DDP_RES the body is an opaque: the last word that
 * encode() writes is its length, and its XDR pad follows it.
 */
void rpc_body_set(struct rpc_call *call, uint32_t len, const uint32_t *tail,
		  unsigned ntail);

/*
 * Takes @held, and calls @put on it when the results are encoded.  If an
 * earlier run of the same call holds an object, puts that one now.
 */
static inline void rpc_call_hold(struct rpc_call *call, void *held,
				 void (*put)(void *held))
{
	if (call->held_put)
		call->held_put(call->held);
	call->held = held;
	call->held_put = put;
}

/* For classify() to return: resolve() has to run first, in @class. */
static inline struct work_class *rpc_resolve_in(struct rpc_call *call,
						struct work_class *class)
{
	call->unresolved = !call->resolved;
	return class;
}

/* The caller's address. */
static inline const struct sockaddr *rpc_call_peer(const struct rpc_call *call)
{
	return (const struct sockaddr *)&call->msg->xprt->peer;
}

struct rpc_server;

struct rpc_server_config {
	unsigned nworkers;		/* at least 1 */
	size_t	 drc_bytes;		/* memory for remembered replies; 0:
					 * remember none */
	struct pool *pool;		/* borrowed */
};

/* 0 or -errno; the workers run when it returns. */
int rpc_server_create(const struct rpc_server_config *config,
		      struct rpc_server **out);
/* Before the first listener.  @prog is borrowed. */
int rpc_server_add(struct rpc_server *server, struct rpc_program *prog);
/* The sink that listeners give their calls to. */
struct xprt_sink *rpc_server_sink(struct rpc_server *server);
/* Counts the calls that have no answer yet.  Any thread. */
unsigned rpc_server_busy(struct rpc_server *server);
/*
 * Sends back the calls that wait behind calls of the same client of which none
 * has ended since the last call of this function, where others need what they
 * hold.  One thread calls it, every few seconds.
 */
void rpc_server_relieve(struct rpc_server *server);
/* Ends the workers.  All listeners must be gone. */
void rpc_server_destroy(struct rpc_server *server);

/* One procedure's counts since the server was made. */
struct rpc_proc_count {
	uint64_t calls;		/* ended: answered or dropped */
	uint64_t errors;	/* of these, without SUCCESS */
	uint64_t ns;		/* total time from arrival to reply */
};

/* Calls @fn for every procedure of every program.  Any thread. */
void rpc_server_walk_counts(struct rpc_server *server,
			    void (*fn)(const struct rpc_program *prog,
				       const struct rpc_version *version,
				       const struct rpc_proc *proc,
				       const struct rpc_proc_count *count,
				       void *arg), void *arg);

/* A share of the workers; @name is copied.  NULL: no memory. */
struct work_class *work_class_create(struct rpc_server *server,
				     const char *name, unsigned max_workers);
/* True if no call of @class runs or waits. */
bool work_class_idle(struct work_class *class);
/* Frees @class.  No call of it may run or wait now or later.  Due before
 * rpc_server_destroy(). */
void work_class_destroy(struct work_class *class);

/*
 * Calls @fn for every class, the common one first, with its limit of workers,
 * its running workers and its waiting calls.  @fn must only take notes: the
 * queues are locked.
 */
void rpc_server_walk_classes(struct rpc_server *server,
			     void (*fn)(const char *name, unsigned max,
					unsigned running, unsigned waiting,
					void *arg), void *arg);

#endif
