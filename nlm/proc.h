/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of nlm/. */
#pragma once

#include <stdatomic.h>

#include "nlm/nlm.h"
#include "nlm/table.h"

/* status.c: pure */
/* The bytes that are meant; -EFBIG. */
int nlm_span_of(const struct nlm_args *a, struct nlm_span *at);
/* The status for 0 or -errno. */
enum nlm_status nlm_status(int err);

struct nlm {
	struct rpc_program	 prog;
	struct nlm_config	 config;
	uint64_t		 started;	/* ms; set once */
	_Atomic uint64_t	 grace_until;	/* ms; only grows */

	atomic_uint		 asking;	/* the status monitor */
	atomic_uint		 answering;	/* results on their way */

	pthread_mutex_t		 lock;	/* guards the rest, and the table */
	struct nlm_table	 table;
	uint64_t		 next_id;	/* of lockers */
	uint64_t		 next_grant;	/* cookies of call-backs */
	struct nlm_node		*due;		/* waiters to call back */
	struct nlm_node		*grants;	/* by their ids */
	unsigned		 jobs;		/* queued or running */
	bool			 stops;
	pthread_cond_t		 wake;		/* the thread, or nlm_stop() */
	pthread_t		 thread;

	pthread_mutex_t		 await_lock;
	struct cds_list_head	 awaiting;	/* calls that wait for answers
						 * to call-backs */
	struct cds_list_head	 asks;		/* calls that wait for the
						 * status monitor */
	unsigned		 kept;		/* datagrams that keep their
						 * places */
	bool			 ending;	/* none is waited for */
};

/* Grants are so far apart that each of their call-backs has a cookie. */
#define NLM_CALL_BACKS	((uint64_t)256)

/* One call; lies in the call's state. */
struct nlm_op {
	struct nlm		*nlm;
	struct export_tree		*exp;	/* counted */
	struct vfs_node		*node;	/* counted */
	struct nlm_file		*file;	/* counted */
	struct nlm_host		*host;	/* counted: stays on the list of hosts
					 * until the call has ended */
	/* While it waits for the answer to a call-back, or for the status
	 * monitor, under the lock for that. */
	struct cds_list_head	 awaiting;
	bool			 awaits;
	uint64_t		 awaited;	/* the grant's id */
	int			 monitor_err;	/* its monitor's answer */
	bool			 keeps;	/* its place, while it waits for that */
	bool			 rw;	/* the export is, for the caller */
	bool			 auth_nlm;
	bool			 unsure;	/* the caller's groups */
	uint32_t		 id;	/* the handle's export */
	struct vfs_handle	 handle;
	uint64_t		 fileid;
	struct vfs_cred		 cred;
};
_Static_assert(sizeof(struct nlm_op) <= RPC_STATE_SIZE, "fits a call");
_Static_assert(sizeof(struct nlm_args) <= RPC_ARGS_SIZE, "fits a call");
_Static_assert(sizeof(struct nlm_res) <= RPC_RES_SIZE, "fits a call");

static inline struct nlm_op *nlm_op(struct rpc_call *call)
{
	return rpc_state(call);
}

/* who.c */
/* The owner that the arguments name, at the caller's address.  SHARE and
 * UNSHARE have no svid: it is 0. */
struct nlm_who nlm_who_of(struct rpc_call *call);
/* The number of that owner, by which its calls are put in order. */
uint64_t nlm_order(struct rpc_call *call);

/* op.c: steps, and the ends of procedures. */
struct work_class *nlm_leave(struct rpc_call *call);
/* Finds the export that the handle names, and the caller there. */
int nlm_find_export(struct rpc_call *call);
/* Refuses a new lock in the grace period (-ETIMEDOUT), and a reclaim after it
 * (-ETIME). */
int nlm_check_grace(struct rpc_call *call);
/* Keeps the host, and with it the time at which its locks were ended, until the
 * call ends. */
int nlm_keep_host(struct rpc_call *call);
/* The same; and the host is monitored before it has a lock. */
int nlm_monitor_host(struct rpc_call *call);
/* Under nlm->lock.  True: the locks and shares of @host were ended after the
 * call had come, so it is to have no effect. */
bool nlm_is_outlived(struct rpc_call *call, const struct nlm_host *host);
/* The same, by the state of @host alone: bytes that the call has locked
 * meanwhile have ended as well, or will with the file's next turn. */
bool nlm_was_ended(struct rpc_call *call, const struct nlm_host *host);
/* Opens the file; the caller has the right to lock it. */
int nlm_find_file(struct rpc_call *call);
/* Finds a file that has locks; otherwise the call is done. */
int nlm_find_held(struct rpc_call *call);
int nlm_end(struct rpc_call *call, int err);
/* ... of an asynchronous procedure: the answer is a call. */
int nlm_end_msg(struct rpc_call *call, int err);

/* lock.c */
int nlm_test(struct rpc_call *call);
int nlm_lock(struct rpc_call *call);
int nlm_cancel(struct rpc_call *call);
int nlm_unlock(struct rpc_call *call);
int nlm_granted(struct rpc_call *call);

/* file.c: a file's turn, and changes in it that need the backend. */
/* The file of @exp with @h, counted, made with @fileid unless that is NULL.
 * NULL: no such file, or no memory. */
struct nlm_file *nlm_file_get(struct nlm *nlm, struct export_tree *exp,
			      const struct vfs_handle *h,
			      const uint64_t *fileid);
void nlm_file_put(struct nlm *nlm, struct nlm_file *f);
/* Waits for the turn of the file, which is counted. */
void nlm_turn_begin(struct nlm *nlm, struct nlm_file *f);
/* First gives ready waiters their locks. */
void nlm_turn_end(struct nlm_file *f);

/* The rest in the file's turn, without nlm->lock where nothing is said. */

/* For the owner of @own, or with NULL for one without locks in the file.  0; 1:
 * @out is a lock that this server did not give; or -errno. */
int nlm_foreign_test(struct nlm_file *f, struct vfs_node *node,
		     struct nlm_hold *own, const struct nlm_span *at,
		     struct vfs_lock *out);
/* Under nlm->lock: the owner's hold, made if need be.  NULL: no memory. */
struct nlm_hold *nlm_hold_make(struct nlm *nlm, struct nlm_file *f,
			       struct nlm_owner *o);
/* Locks @at, by a LOCK in @state; @reclaim: the owner had the lock from the
 * previous server.  0; 1: a lock that this server did not give
 * is in the way; -ETIMEDOUT: clients of another server of the tree reclaim
 * their locks first; or another -errno. */
int nlm_hold_set(struct nlm *nlm, struct nlm_hold *h,
		 const struct nlm_span *at, uint32_t state, bool reclaim);
int nlm_hold_clear(struct nlm *nlm, struct nlm_hold *h,
		   const struct nlm_span *at);
/* Frees a hold without ranges, and its owner if it has nothing else. */
void nlm_hold_tidy(struct nlm *nlm, struct nlm_hold *h);
/* Frees a waiter. */
void nlm_wait_end(struct nlm *nlm, struct nlm_wait *w);
/* The same, and undoes its grant. */
void nlm_wait_undo(struct nlm *nlm, struct nlm_wait *w);

/* wait.c: what the owner of waiters does.  In the file's turn. */
/* Under nlm->lock: a granted or cut one waits again, and its owner keeps the
 * rest of the grant. */
void nlm_wait_again(struct nlm_wait *w);
/* The owner has got @at by a LOCK in @state. */
void nlm_waits_locked(struct nlm *nlm, struct nlm_hold *h,
		      const struct nlm_span *at, uint32_t state);
/* It has unlocked @at.  @o is pinned. */
void nlm_waits_unlocked(struct nlm *nlm, struct nlm_file *f,
			struct nlm_owner *o, const struct nlm_span *at);
/* A step: waits while a call-back about the call's bytes is under way. */
int nlm_await_answer(struct rpc_call *call);
/* True: the server ends, so no call must wait. */
bool nlm_is_ending(struct nlm *nlm);
/* The server ends: calls that wait for answers to call-backs go on, and from
 * now on nlm_is_ending() is true. */
void nlm_end_awaits(struct nlm *nlm);
/* The call-back of the grant @id is over.  Without nlm->lock. */
void nlm_answer_came(struct nlm *nlm, uint64_t id);

/* Under nlm->lock, on any thread: a worker takes a turn. */
void nlm_file_kick(struct nlm *nlm, struct nlm_file *f);

/* grant.c: call-backs. */
/* Under nlm->lock: the call-backs that are due.  Returns when the next one
 * is. */
uint64_t nlm_call_back(struct nlm *nlm, uint64_t now);
int nlm_granted_res(struct rpc_call *call);
/* Sends the results of an asynchronous procedure. */
void nlm_send_res(struct rpc_call *call);

/* share.c */
int nlm_share(struct rpc_call *call);
int nlm_unshare(struct rpc_call *call);

/* host.c */
int nlm_free_all(struct rpc_call *call);
int nlm_sm_notify(struct rpc_call *call);
/* A LOCK takes its turn: its state settles whether notices with an older one
 * were late, or its host's state went backwards. */
void nlm_hear_state(struct rpc_call *call);
/* Both under nlm->lock. */
/* Forgets hosts that have had nothing for a while. */
void nlm_hosts_sweep(struct nlm *nlm, uint64_t now);
/* Gives a turn to files whose export is gone, and to files with a waiter that
 * waits for others than our clients. */
void nlm_files_sweep(struct nlm *nlm);
