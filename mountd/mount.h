/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of mountd/. */
#pragma once

#include <urcu/list.h>

#include "exports/walk.h"
#include "lib/thread.h"
#include "mountd/mountd.h"
#include "wire/mount.h"

_Static_assert(MNTPATHLEN == WALK_PATH_MAX, "a path is one");

struct rmtab;

/* Room for the start of a path, in a log line. */
#define MOUNT_SHOWN	129

/* The refusal that was logged last. */
struct mount_refusal {
	char		 from[80];	/* the connection's name */
	char		 path[MOUNT_SHOWN];
	int		 err;
};

/* The state of a MNT call. */
struct mount_state {
	struct walk	     walk;
	struct rpc_call	    *call;
	uint64_t	     since;	/* clock_ms() when it began to wait; 0:
					 * it has not */
	/* Under the lock: */
	struct cds_list_head link;	/* from its first step to its end */
	bool		     begun;
	bool		     unmounted;	/* by a call that came later */
	/* While it waits (wait.c): */
	struct cds_list_head waiting;
	bool		     waits;
};

struct mountd {
	struct rpc_program	 prog;
	struct export_table	*exports;	/* borrowed */
	struct work_class	*names;		/* borrowed, or NULL */
	struct rmtab		*rmtab;		/* owned */

	pthread_mutex_t		 lock;
	/* Under the lock: */
	struct mount_refusal	 last;
	struct cds_list_head	 mounting;	/* MNT calls in progress */
	struct cds_list_head	 waiting;	/* calls, by their state */
	unsigned		 nwaiting;	/* and calls that begin to
						 * wait */
	bool			 got_on;	/* one that had waited */
	bool			 ending;
	pthread_cond_t		 wake;
	pthread_t		 resumer;
};

struct mount_mnt_res {
	struct mount_result result;	/* first: the encoder's input */
	struct nfs3_fh    fh;		/* ... its handle */
};

/* mnt.c: MNT's state is a struct mount_state. */
/* For struct rpc_program: the share of the export that MNT names, whose disk
 * can be slow. */
struct work_class *mount_leave(struct rpc_call *call);
int mount_begin(struct rpc_call *call);
int mount_find_export(struct rpc_call *call);
int mount_walk(struct rpc_call *call);
int mount_end_mnt3(struct rpc_call *call, int err);
int mount_end_mnt1(struct rpc_call *call, int err);
int mount_umnt(struct rpc_call *call);
int mount_umntall(struct rpc_call *call);

/* wait.c */
/* A step whose file system does not answer returns what this does: RPC_PENDING,
 * after a while @then runs; or -ETIMEDOUT. */
int  mount_wait(struct rpc_call *call, rpc_step_fn *then);
/* The file system answers now. */
void mount_got_on(struct rpc_call *call);
int  mount_wait_start(struct mountd *m);
/* The last waiting call has gone. */
void mount_wait_stop(struct mountd *m);

/* list.c */
int mount_list_room(struct rpc_call *call);
int mount_dump(struct rpc_call *call);
int mount_export(struct rpc_call *call);

/*
 * rmtab.c: the list of mounts.  One entry for a host and path.  Any thread;
 * never waits for a disk.
 */
struct rmtab_config {
	const char *path;		/* NULL: not kept */
	unsigned max;
	unsigned max_host;
};

/* Reads the file. 0 or -errno. */
int  rmtab_open(const struct rmtab_config *config, struct rmtab **out);
/* Writes the changes that the file lacks, and ends the thread. */
void rmtab_close(struct rmtab *t);
void rmtab_add(struct rmtab *t, const char *host, const char *path);
void rmtab_remove(struct rmtab *t, const char *host, const char *path);
void rmtab_remove_host(struct rmtab *t, const char *host);
/* Oldest first; @fn must not call back. */
void rmtab_walk(struct rmtab *t,
		void (*fn)(void *arg, const char *host, const char *path),
		void *arg);
