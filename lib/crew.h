/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crew - threads for jobs that can wait for a disk: as many as the jobs need,
 * not one for each job.
 *
 * A job belongs to its owner, who embeds it, and runs on one thread at a time.
 * Jobs that end soon share a thread or two.  One that hangs keeps its thread;
 * the others get another one within milliseconds.  A thread without a job for
 * ten seconds (thread_idle_ms) ends.  Where the system refuses a thread, jobs
 * wait for the present ones, and the crew asks again each second.
 *
 * The crew has crew_most() threads at most.  Any job gets one of the first
 * quarter.  The others are for jobs whose place (where they can hang) no
 * running job has: however many jobs hang at one place, jobs at others run.
 *
 * The process has one crew.  The first job starts its keeper, which makes all
 * other threads: that job comes from a thread that acts as no caller, since
 * threads inherit the credentials of their maker.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <urcu/list.h>

/* run() returns one of these, or a time. */
#define CREW_IDLE	UINT64_MAX	/* run it when crew_run() asks for it */
#define CREW_GONE	UINT64_C(0)	/* it is freed: do not touch it */

struct crew_job {
	/* Returns when to run it again (clock_ns()), or one of the above. */
	uint64_t	(*run)(struct crew_job *job);
	const char	*name;		/* of its thread meanwhile */
	/* Of the file system that it can wait for (mounts_place()), or of
	 * anything else; its owner can change it.  0: it shares none. */
	_Atomic uint64_t place;

	/* The crew's: */
	uint64_t	 due;		/* CREW_IDLE: it is not listed */
	bool		 running;
	bool		 cancelled;
	struct cds_list_head link;
};

/* 0 or -errno: the first job of all found that there can be no keeper.  The job
 * has the place of that whose run this is called from, or none. */
int crew_job_init(struct crew_job *job, uint64_t (*run)(struct crew_job *),
		  const char *name);

/* Has @job run soon; once more if it runs already.  Any thread: it takes a
 * short lock, under which no other is taken. */
void crew_run(struct crew_job *job);

/* Takes @job back for good: waits for the end of its run, after which it does
 * not run again, whoever calls crew_run().  Not from that run itself. */
void crew_cancel(struct crew_job *job);

/* The number of threads, without the keeper.  For tests. */
unsigned crew_size(void);
/* Its bound: 256, or an eighth of the tasks that the cgroup allows. */
unsigned crew_most(void);
