/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of nsm/. */
#pragma once

#include <pthread.h>

#include "lib/clock.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "nsm/hosts.h"
#include "nsm/nsm.h"

/* The lock manager's procedure that rpc.statd calls back, as Linux has it. */
#define NSM_CALL_BACK_VERS	4
#define NSM_CALL_BACK_PROC	16

/* A change whose loss does no harm is written with the next one, or so much
 * later. */
#define NSM_LAZY_MS	1000

/* A caller of nsm_monitor() that waits until its host is on the list. */
struct nsm_waiter {
	struct cds_list_head link;
	struct nsm	*nsm;
	struct nsm_host	*host;		/* one of its calls is ours */
	nsm_done_fn	*done;		/* NULL: the caller has given up */
	void		*arg;
	uint64_t	 until;		/* ms; 0: rpc.statd was neither busy
					 * nor gone yet */
	uint32_t	 state;		/* of ours, that the host is told */
};

struct nsm {
	struct nsm_config	 config;	/* without zeros */
	char			*state_dir;
	struct rpc_program	 prog;
	nsm_restarted_fn	*restarted;	/* NULL: no call-back */
	void			*restarted_ctx;
	/* Of rpc.statd as we started; 0: we are the monitor. */
	uint16_t		 statd_port;
	unsigned		 before;	/* hosts of the last server */
	char			 my_name[NSM_NAME_MAX + 1];
	pthread_t		 thread;

	pthread_mutex_t		 lock;		/* guards the rest */
	pthread_cond_t		 wake;		/* the thread */
	struct nsm_hosts	 hosts;
	struct nsm_head		 head;
	struct cds_list_head	 waiters;	/* for the file */
	struct cds_list_head	 saving;	/* waiters that it is written
						 * for */
	struct cds_list_head	 asking;	/* for rpc.statd's answer */
	uint64_t		 save_at;	/* ms; 0: nothing changed */
	bool			 kept;		/* head.state is in the file */
	bool			 tells;		/* nsm_tell() was called */
	bool			 claims;	/* hosts might have some left */
	uint64_t		 claims_end;	/* ms: of the grace period */
	unsigned		 telling;	/* calls on their way */
	bool			 stop;
};

/* list.c.  The caller holds the lock. */
/* The file is to be written in @ms at the latest. */
void nsm_save_in(struct nsm *n, uint32_t ms);
/* A call with a pointer to @host has ended. */
void nsm_host_put(struct nsm *n, struct nsm_host *host);

/* list.c.  The caller doesn't hold the lock. */
/* Ends the wait: takes @w off its list, calls back with @err, and frees it.
 * False: its caller had forgotten it. */
bool nsm_waiter_end(struct nsm_waiter *w, int err);
/* The machine is as if it had restarted: every host is told. */
void nsm_crash(struct nsm *n);
/* Reads the file, before the thread starts.  Hosts of the last server are not
 * monitored, and are told; hosts of this machine's lock managers stay
 * monitored.  0, or -errno after the reason was logged. */
int nsm_load(struct nsm *n);

/* monitor.c.  The caller doesn't hold the lock. */
/* As nsm_monitor(), also for a lock manager of this machine, which is called
 * back: @user has vers, proc and priv, or it is NULL. */
void nsm_add(struct nsm *n, const struct rpc_host *who,
	     const struct nsm_host *user, nsm_done_fn *done, void *arg);
/* Removes the hosts with this name that users asked for; NULL: all of them. */
void nsm_remove_user(struct nsm *n, const char *name);

/* statd.c */
/* The port of rpc.statd, or 0; waits two seconds at most. */
uint16_t nsm_statd_find(struct rpc_client *client);
/* 0 if rpc.statd can be what listens at the TCP @port of this machine; -EPERM:
 * it is of a user that rpc.statd does not run as; -ECONNREFUSED: no process
 * listens. */
int nsm_statd_check(uint16_t port);
/* The same for a lock manager of this machine, which is the kernel's or of this
 * server's user. */
int nsm_user_check(uint16_t port);
/* Has rpc.statd monitor the host of the waiter, which is one of n->asking and
 * ends. */
void nsm_statd_mon(struct nsm_waiter *w);
/* With the lock held: monitoring of a host at @addr has ended.  Asks rpc.statd
 * to forget the address, unless another host has it. */
void nsm_forget_addr(struct nsm *n, const struct sockaddr *addr);
/* A call over TCP to this machine; @port 0: rpcbind is asked for it. */
struct rpc_client_to nsm_to_loopback(uint16_t port, uint32_t prog,
				     uint32_t vers, uint32_t proc);

/* tell.c */
/* Tells the hosts that are due, with the lock held; returns the time of the
 * next one in ms, or UINT64_MAX. */
uint64_t nsm_tell_due(struct nsm *n, uint64_t now);
/* The host @name has restarted, says one with the address @addr. */
void nsm_news(struct nsm *n, const char *name, const struct sockaddr *addr,
	      uint32_t state);

/* program.c */
void nsm_program_init(struct nsm *n);
