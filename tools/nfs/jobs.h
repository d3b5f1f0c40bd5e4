/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jobs - work on several files at once, over one session.
 *
 * Each job has a thread, and so has the tool that starts them; they take turns:
 * one runs until it waits for the server, and then another whose answer is
 * there.  So their shared state needs no locks, but can change in each call of
 * the session.
 */
#pragma once

#include "tools/nfs/tool.h"

struct job {
	/* The work, with a tool of the job; frees the job.  Returns an exit
	 * code. */
	int (*run)(struct job *job, struct tool *t);
	uint64_t bytes;		/* of memory that it takes */
};

/*
 * From here on up to @most jobs work at a time, with memory for two copies of
 * large files in all; t->s is a session for @t alone.  With one, and if that
 * can't be, jobs_start() does the job itself.  jobs_close() ends it.
 */
void jobs_open(struct tool *t, unsigned most);
/* As many as hide the time to the server: more, if it is far. */
unsigned jobs_for(const struct tool *t);
/* The memory for the blocks of a file of @size bytes. */
uint64_t jobs_memory(const struct tool *t, uint64_t size);
/* Waits until the job fits, and starts it.  Takes @job, and returns the worst
 * exit code of the jobs that are over. */
int jobs_start(struct tool *t, struct job *job);
/* Waits until all jobs are over; returns the worst exit code. */
int jobs_wait(struct tool *t);
/* The same, and @t has its session again. */
int jobs_close(struct tool *t);
