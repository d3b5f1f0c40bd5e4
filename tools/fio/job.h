/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * job - a job of fio at an NFS server: its sessions and its files.
 *
 * fio calls setup() of a job before the thread or the process that runs it
 * begins, or, with create_serialize=0, in it; so the job connects when it is
 * first needed, and lets go where no hook will follow.
 *
 * Ownership: a job is its thread_data's (io_ops_data).  fio frees its fio_file,
 * so the handles are the job's.  One thread at a time uses a job.
 *
 * Errors: these functions report errors in one line, and return an errno, which
 * is positive, as fio has them.
 */
#pragma once

#include <config-host.h>
#include <fio.h>
#undef container_of

#include "tools/nfs/nfs.h"
#include "lib/util.h"

/* Its options; fio wants no option at the offset 0. */
struct job_options {
	void	*pad;
	char	*url, *host, *export;	/* url, or the other two */
	unsigned transport;		/* enum job_transport */
	unsigned port, mountport;	/* 0: not given */
	unsigned connections;
	unsigned reply_s;		/* how long a server can be silent */
	unsigned reconnects;
};

enum job_transport { JOB_TCP, JOB_RDMA, JOB_IWARP, JOB_VERBS };

struct job_link {
	struct nfsc_session *s;
	unsigned flying;		/* operations */
};

/* A file on the server. */
struct job_file {
	const char *name;		/* fio's */
	struct nfs3_fh fh;
	/* WRITEs that were answered and not stored, and how many of these a
	 * COMMIT covers.  Their verifier, and whether that of two differed: the
	 * server has forgotten some (RFC 1813 3.3.7). */
	uint64_t writes, synced, verf;
	bool	 lost;
};

struct job {
	struct nfsc_url    url;
	struct nfsc_config config;
	struct nfsc_mount  mount;
	struct nfs3_fsinfo_res limits;
	struct job_file	  *files;	/* owned; by fio_file.fileno */
	struct job_link	  *links;	/* owned */
	unsigned	   nlinks;	/* that are connected */
	unsigned	   turn;	/* the link that is used next */
	struct pollfd	  *fds;		/* owned; as many as links */
	struct io_u	 **over;	/* owned; found by getevents() */
	unsigned	   nover;
	bool		   complained;	/* about an operation */
	bool		   mounted;	/* we are on the server's list */
	bool		   gone;	/* the last call had no answer */
};

/* Connects @n links, and mounts, unless that is done; *@fresh says so. */
int job_connect(struct thread_data *td, unsigned n, bool *fresh);
/* Says goodbye, to a server that answers, and closes the links. */
void job_disconnect(struct job *j);
/* Frees the job; NULL is fine. */
void job_free(struct job *j);

/* Finds or makes all files of the job, and learns their sizes. */
int job_find_files(struct thread_data *td);
/* Writes to a file up to @size, where it is shorter, if the job will read. */
int job_fill_file(struct thread_data *td, struct fio_file *f, uint64_t size);
int job_remove_file(struct thread_data *td, struct fio_file *f);

/* A COMMIT that is sent now; some can be under way. */
struct nfsc_op job_commit(const struct job_file *f);
/* Learns the outcome of a WRITE, or of a COMMIT: EIO if the server has lost
 * data that it had acknowledged. */
void job_note_write(struct job_file *f, const struct nfsc_op *op);
int job_note_commit(struct job_file *f, const struct nfsc_op *op);

/* The errno of an operation that is over, 0 if it went well. */
int job_errno(const struct nfsc_op *op);
/* Reports an error of @what, an operation if @op isn't NULL. */
void job_say(const char *what, const struct nfsc_op *op, int err);
/* The same; sets the error of @td, and returns it. */
int job_complain(struct thread_data *td, const char *what,
		 const struct nfsc_op *op, int err);
