/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpc - ONC RPC version 2 (RFC 5531): programs, calls, replies.
 *
 * A program is a table of procedures, and a procedure a row of steps.  The
 * dispatcher, an xprt_sink, reads the RPC header, finds the row, decodes the
 * arguments, answers repeated calls from the duplicate request cache, runs the
 * steps (on the poller until one would wait, then on a worker), encodes the
 * results and gives the reply to the transport.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/account.h"
#include "lib/stats.h"
#include "lib/xdr.h"
#include "transport/xprt.h"
#include "wire/header.h"

/* The caller's identity.  With RPC_AUTH_SYS its credential claims it, and
 * nothing proves it; with Kerberos the flavor found the user of a name. */
struct rpc_cred {
	/* A pseudo flavor where one exists: exports grant rights by it. */
	enum rpc_auth_flavor flavor;
	uint32_t	uid;		/* UINT32_MAX: no user, as with
					 * RPC_AUTH_NONE; gid likewise */
	uint32_t	gid;
	uint32_t	ngids;
	uint32_t	gids[RPC_MAX_GIDS];
};

struct rpc_call;
struct rpc_flavor;
struct rpc_guard;
struct work_class;
struct work_item;

/*
 * A step of a procedure.  The steps of a row run in order, each once.  A call
 * begins on its poller (call->may_wait is false), and a step there must not
 * wait.  Where a step would, a worker goes on with that step, and runs the rest
 * of them: the results of earlier steps stay in the call.
 *
 * Returns
 *	0		the next step follows
 *	RPC_DONE	the results are complete: skips the steps that are left
 *	RPC_PENDING	the call was given away, as the last act: another
 *			thread might have answered it by now.  The next step
 * follows there, or first a function that the step named
 *	-EAGAIN		the step would wait, and call->may_wait is false: a
 *			worker runs it again.  It has had no effect, or has
 *			noted in the call how far it came
 *	RPC_TOO_WEAK	the call's flavor does not suffice for its object:
 *			end() is called with -EACCES, and the call is denied,
 *			with RPC_AUTH_TOOWEAK
 *	-errno		the procedure failed: skips the steps that are left
 */
typedef int rpc_step_fn(struct rpc_call *call);

#define RPC_DONE	1
#define RPC_PENDING	INT_MIN
#define RPC_TOO_WEAK	(INT_MIN + 1)

#define RPC_STEPS	8

struct rpc_proc {
	const char *name;
	/* Pure: arguments off the wire.  False: GARBAGE_ARGS. */
	bool (*decode)(struct xdr_in *x, void *args);
	rpc_step_fn *steps[RPC_STEPS];	/* NULL after the last */
	/*
	 * Releases what the steps hold, and completes the results.  @err is 0
	 * or -errno of the step that failed; -ETIMEDOUT also when the client is
	 * to retry later, perhaps before the first step; -ECANCELED when the
	 * call is dropped, without an answer.  Must not wait unless
	 * call->may_wait.  Returns 0; -ECANCELED: send no answer, so that the
	 * client repeats the call; or another -errno: SYSTEM_ERR.  NULL: the
	 * steps hold nothing, and every error is SYSTEM_ERR.
	 */
	int (*end)(struct rpc_call *call, int err);
	/* Pure: results onto the wire.  May be NULL: void. */
	void (*encode)(struct xdr_out *x, const void *res);
	uint16_t args_size;	/* <= RPC_ARGS_SIZE */
	uint16_t res_size;	/* <= RPC_RES_SIZE; zeroed before the steps */
	uint16_t state_zeroed;	/* <= RPC_STATE_SIZE; the bytes at the start of
				 * its state that are also zeroed */
	uint8_t	 flags;
};

/* Not idempotent: goes through the duplicate request cache. */
#define RPC_PROC_CACHED		0x01
/* The *last* item of the arguments, an opaque or a string, is DDP-eligible: it
 * can come in a Read chunk (RFC 8267 section 4). */
#define RPC_PROC_DDP_ARG	0x04
/* The result that the body carries is DDP-eligible: READ, READLINK. */
#define RPC_PROC_DDP_RES	0x08
/* Idempotent, but must not run at the same time as its duplicate: the duplicate
 * waits, and then runs (see rpc/drc.h).  Excludes RPC_PROC_CACHED. */
#define RPC_PROC_ALONE		0x10
/* The reply can be much longer than the call.  Denied over UDP (AUTH_TOOWEAK):
 * a datagram's address can be forged, and the reply goes there. */
#define RPC_PROC_LONG		0x20
/* Calls of one key, see order() of struct rpc_program, run one at a time, in
 * the order in which they came. */
#define RPC_PROC_ORDERED	0x40

/* Undoes another call, as UNLOCK does, and its client might not live to send it
 * again: while it waits, a datagram is dropped only if others need its
 * place. */
#define RPC_PROC_GIVES_BACK	0x80

/* Calls of one key that can wait behind another.  A further one is sent back:
 * end() is called with -ETIMEDOUT, or with -ECANCELED for a datagram. */
#define RPC_ORDER_MAX		256u

#define RPC_ARGS_SIZE		256
#define RPC_RES_SIZE		384
#define RPC_STATE_SIZE		512
#define RPC_GUARD_STATE		32

/* The transports that a procedure's calls are counted by. */
enum rpc_way { RPC_WAY_TCP, RPC_WAY_UDP, RPC_WAY_RDMA, RPC_WAYS };
/* Their names, as users know them. */
extern const char *const rpc_way_names[RPC_WAYS];

static inline enum rpc_way rpc_way_of(const struct xprt *x)
{
	return x->rdma ? RPC_WAY_RDMA : x->datagram ? RPC_WAY_UDP :
						      RPC_WAY_TCP;
}

/* The calls of one procedure of a server that ended, answered or dropped.  A
 * call has failed if its reply is not SUCCESS, or reports an error. */
struct rpc_proc_counts {
	struct account by[RPC_WAYS];
};

/* One version of one program. */
struct rpc_version {
	uint32_t		 vers;
	uint32_t		 nproc;
	const struct rpc_proc	*procs;		/* a gap's name is NULL */
};

/* Transports, as bits. */
enum { RPC_OVER_TCP = 1, RPC_OVER_UDP = 2, RPC_OVER_RDMA = 4 };

struct rpc_program {
	const char		 *name;
	uint32_t		  prog;
	uint32_t		  nversions;
	const struct rpc_version *versions;	/* ascending */
	bool			  no_rdma;	/* not served over RDMA, */
	bool			  only_rdma;	/* over nothing else */
	bool			  no_udp;	/* NULL is, all else denied */
	uint8_t			  announced;	/* RPC_OVER_... that clients
						 * ask rpcbind for */
	void			 *ctx;		/* the program's own */
	/*
	 * Called each time that a call leaves its thread, for a worker or to
	 * wait for a buffer: counts the objects that the thread only borrowed,
	 * ends its RCU section.  Returns the share of the workers that the call
	 * continues in: one slow export must not stop the others; NULL: the
	 * common one.  The share outlives the call.  Must not wait.  NULL:
	 * nothing to do, and the common share.
	 */
	struct work_class *(*leave)(struct rpc_call *call);
	/* The key of a call with RPC_PROC_ORDERED.  On the poller, when the
	 * arguments are decoded: must not wait.  NULL without such calls. */
	uint64_t (*order)(struct rpc_call *call);
	/* The name of the results' status, a literal.  NULL: no names. */
	const char *(*status)(const struct rpc_call *call);
	/* The program has an answer that makes clients retry: end() with
	 * -ETIMEDOUT makes it. */
	bool			  sends_back;
};

/*
 * One call being served, from its first byte to the completion of its reply;
 * lies in msg->upper.  Steps use the three blocks of memory, and read the other
 * fields; the functions below set the reply's body.
 */
struct rpc_call {
	struct msg		 *msg;
	struct rpc_server	 *server;
	struct rpc_cred		  cred;
	/* Zeroed when the call begins, up to guard_state. */
	const struct rpc_program *prog;
	const struct rpc_version *version;
	const struct rpc_proc	 *proc;
	rpc_step_fn *const	 *step;		/* the next one */
	uint32_t		  xid;
	uint32_t		  procnum;
	bool			  may_wait;	/* false on a poller */
	bool			  failed;	/* the results tell of an error:
						 * counted as one */
	bool			  timed;	/* see rpc_call_took() */
	const struct rpc_guard	 *guard;	/* the flavor's; NULL: none */
	struct rpc_proc_counts	 *by_proc;	/* its row's; NULL: none */
	/* Set by the steps: the account of the call's object, which outlives
	 * it, and the bytes of data that it moved. */
	struct account		 *by_export;	/* NULL: none */
	enum account_way	  way;
	uint32_t		  bytes;
	_Alignas(16) uint8_t	  guard_state[RPC_GUARD_STATE];
	_Alignas(16) uint8_t	  args[RPC_ARGS_SIZE];
	_Alignas(16) uint8_t	  res[RPC_RES_SIZE];
	_Alignas(16) uint8_t	  state[RPC_STATE_SIZE];
};

/* The decoded arguments; steps can change them. */
static inline void *rpc_args(struct rpc_call *call)
{
	return call->args;
}

/* The results, for encode(). */
static inline void *rpc_res(struct rpc_call *call)
{
	return call->res;
}

/* The procedure's own memory. */
static inline void *rpc_state(struct rpc_call *call)
{
	return call->state;
}

static inline struct rpc_call *rpc_state_call(void *state)
{
	return (struct rpc_call *)((uint8_t *)state -
				   offsetof(struct rpc_call, state));
}

/* A step: the steps after it need a worker. */
int rpc_need_worker(struct rpc_call *call);

/* The step that runs, also where it goes on after it was left. */
static inline rpc_step_fn *rpc_this_step(const struct rpc_call *call)
{
	return call->step[-1];
}

/*
 * For a step to return, when it learned that the rest of the call belongs in
 * another share: 0 if leave() names the share that the call is in, and the step
 * goes on; else RPC_PENDING.  There @then runs in place of the rest of this
 * step; NULL: nothing is left of it.
 */
int rpc_call_move(struct rpc_call *call, rpc_step_fn *then);

/*
 * Asks the holder of a suspended call to forget it.  True: the holder never
 * resumes the call, and the operation has no effect.  False: the holder will
 * resume the call, or is doing so; it can be asked again.  Called with a lock
 * held: must not wait, nor take a lock that is held around rpc_call_suspend()
 * or rpc_call_resume().
 */
typedef bool rpc_cancel_fn(struct rpc_call *call);

/*
 * A step calls it before it gives the call to a holder, which completes the
 * step's work later; then the step returns RPC_PENDING.  Until it is resumed
 * the call is listed with the reason @why, a literal.  @cancel can be NULL, and
 * can be called before this returns.  When the call is resumed, @then runs as a
 * step, in place of the rest of this one.  False: too many calls are suspended,
 * and the step has to wait itself, or to answer -EAGAIN on a poller.
 */
bool rpc_call_suspend(struct rpc_call *call, const char *why,
		      rpc_cancel_fn *cancel, rpc_step_fn *then);
/* A worker goes on with the call.  The holder calls it once, perhaps before the
 * step has returned.  Any thread; doesn't wait. */
void rpc_call_resume(struct rpc_call *call);

/*
 * Gets a buffer of at least @size <= POOL_BUF_MAX bytes for the reply's body,
 * which is sent without a copy (see rpc_body_set()).  For a step to return at
 * its end: 0; RPC_PENDING: the call waits for the buffer; -ETIMEDOUT: no buffer
 * is free, and the call must not wait because it holds buffers itself;
 * -EMSGSIZE: the reply goes over UDP, where it must be short.
 */
int rpc_body_get(struct rpc_call *call, size_t size);
/* The buffer, for the steps after that. */
struct buf *rpc_body(struct rpc_call *call);

/*
 * Returns a pipe of PIPE_MAX bytes for the body instead of a buffer; NULL: no
 * pipe is free, or the transport can't send from one.  Bytes in the pipe are
 * lost unless rpc_body_set_pipe() makes them the body.
 */
struct pipe *rpc_body_pipe(struct rpc_call *call);
/* Gives that pipe back, empty as it was. */
void rpc_body_drop_pipe(struct rpc_call *call);
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

/* Adds to the time that the backend took, for a call that is timed. */
void rpc_call_took(struct rpc_call *call, uint64_t ns);

/* The time at which the call came, clock_ns(). */
uint64_t rpc_call_started(const struct rpc_call *call);

/* The caller's address. */
static inline const struct sockaddr *rpc_call_peer(const struct rpc_call *call)
{
	return (const struct sockaddr *)&call->msg->xprt->peer;
}

/* The address of this machine that it called. */
static inline const struct sockaddr *rpc_call_local(const struct rpc_call *call)
{
	return (const struct sockaddr *)&call->msg->xprt->local;
}

struct rpc_server;

struct rpc_server_config {
	unsigned nworkers;		/* at least 1 */
	size_t	 drc_bytes;		/* memory for remembered replies; 0:
					 * remember none */
	struct pool *pool;		/* borrowed */
	/* Borrowed, NULL after the last; NULL: the flavors of rpc/auth.h. */
	const struct rpc_flavor *const *flavors;
};

/* 0 or -errno; the workers run when it returns. */
int rpc_server_create(const struct rpc_server_config *config,
		      struct rpc_server **out);
/* Before the first listener.  @prog is borrowed. */
int rpc_server_add(struct rpc_server *server, struct rpc_program *prog);
/* Sets @out to the numbers that MNT lists for the server's flavors; returns
 * their count, @max at most. */
unsigned rpc_server_mnt_flavors(const struct rpc_server *server, uint32_t *out,
				unsigned max);
/* The sink that listeners give their calls to. */
struct xprt_sink *rpc_server_sink(struct rpc_server *server);
/* Counts the calls that no server of the process has answered yet.  Any
 * thread. */
unsigned rpc_busy(void);
/*
 * Answers JUKEBOX to calls that hold resources that other clients need, and
 * wait behind calls of the same client, if none of these has ended since the
 * last call of this function.  Cancels suspended calls that hold resources that
 * other calls need, and suspended calls whose connections are gone.  One thread
 * calls it, every few seconds.
 */
void rpc_server_relieve(struct rpc_server *server);
/* Counts the replies that are remembered for clients that ask again, and their
 * memory.  Any thread. */
void rpc_server_replies(struct rpc_server *server, size_t *n, size_t *bytes);
/* Ends the workers.  All listeners must be gone. */
void rpc_server_destroy(struct rpc_server *server);

/* Calls @fn for every procedure of every program; @n lives as long as @server.
 * Any thread. */
typedef void rpc_walk_procs_fn(const struct rpc_program *prog,
			       const struct rpc_version *version,
			       uint32_t proc, struct rpc_proc_counts *n,
			       void *arg);
void rpc_server_walk_procs(struct rpc_server *server, rpc_walk_procs_fn *fn,
			   void *arg);

/* Sets @out to the sums over all transports.  Any thread. */
void rpc_proc_sum(struct rpc_proc_counts *n, struct account_sum *out);

/* Has a worker of @class, or of the common share for NULL, run @item->run,
 * which is not a call (rpc/work.h).  Any thread. */
void rpc_server_submit(struct rpc_server *server, struct work_class *class,
		       struct work_item *item);

/* A share of the workers; @name is copied.  NULL: no memory. */
struct work_class *work_class_create(struct rpc_server *server,
				     const char *name, unsigned max_workers);
/* True if no call of @class runs or waits. */
bool work_class_idle(struct work_class *class);
/* Frees @class.  No call of it runs or waits, now or later.  Due before
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

/* Calls @fn for every suspended call, with its reason and the ns since it was
 * suspended.  @fn must only take notes: the list is locked. */
typedef void rpc_suspended_fn(const struct rpc_call *call, const char *why,
			      uint64_t ns, void *arg);
void rpc_server_walk_suspended(struct rpc_server *server,
			       rpc_suspended_fn *fn, void *arg);
