/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop - an event loop: one thread, one epoll set.
 *
 * A poller (doc/threads.md) is a thread that runs one of these.  All
 * call-backs run on that thread, one at a time.  Where a function says "loop's
 * thread", calling it before loop_start() is also fine.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

#include <urcu/list.h>

struct loop;

int loop_create(const char *name, struct loop **out);
/*
 * Before the start: how long the loop looks before it sleeps; 0: not at all.
 * It does so only if it slept no longer the last time.
 */
#define LOOP_SPIN_US	40
void loop_spin(struct loop *loop, unsigned us);
/* Starts the thread.  0 or -errno. */
int loop_start(struct loop *loop);
/*
 * Instead of the start: the caller's own event loop drives this one.  0 or
 * -errno.  Then loop_fd() is a descriptor to poll for input: when it has some,
 * a round is due.
 */
int loop_drive(struct loop *loop);
int loop_fd(const struct loop *loop);
/* Does all pending work, and returns.  The thread that calls it is the loop's
 * meanwhile; one at a time. */
void loop_round(struct loop *loop);
/* Runs @fn(@arg) as a round would, on a thread that could do one. */
void loop_enter(struct loop *loop, void (*fn)(void *), void *arg);
/* Ends the thread, after the tasks that were posted before.  Not the loop's
 * thread. */
void loop_stop(struct loop *loop);
void loop_destroy(struct loop *loop);
/* The loop whose thread this is, or NULL; only loop.c sets it. */
extern _Thread_local struct loop *loop_current;

/* A descriptor to watch.  The caller's memory; the caller closes the fd. */
struct loop_fd {
	void	(*ready)(struct loop_fd *f, uint32_t events);
	int	 fd;
	uint32_t events;	/* EPOLLIN, EPOLLOUT: level triggered */
};

/* Loop's thread.  0 or -errno (-ENOSPC, -ENOMEM from epoll_ctl). */
int loop_fd_add(struct loop *loop, struct loop_fd *f);
void loop_fd_mod(struct loop *loop, struct loop_fd *f, uint32_t events);
/*
 * Loop's thread.  No call-back of @f comes after this, even if one is pending
 * in the current round, so its memory can be freed at once.
 */
void loop_fd_del(struct loop *loop, struct loop_fd *f);

/* Loop's thread: is the descriptor of the current callback the only one that is
 * ready? */
bool loop_one_ready(const struct loop *loop);

/* Work for the loop's thread.  The caller's memory, until run is called. */
struct loop_task {
	void (*run)(struct loop_task *t);
	struct loop_task *next;
};

/* Any thread.  A task can be posted again once run was called. */
void loop_post(struct loop *loop, struct loop_task *t,
	       void (*run)(struct loop_task *t));
/* Runs @fn(@arg) on the loop's thread, or in a round, and waits for it.  Any
 * other thread (on the loop's own it is a plain call). */
void loop_call(struct loop *loop, void (*fn)(void *), void *arg);

struct loop_timer {
	void	 (*fire)(struct loop_timer *t);
	uint64_t at;			/* CLOCK_MONOTONIC ns; 0: not set */
	struct cds_list_head link;
};

/* Loop's thread.  Fires once, @ms from now; setting it again moves it. */
void loop_timer_set(struct loop *loop, struct loop_timer *t, uint32_t ms);
void loop_timer_cancel(struct loop *loop, struct loop_timer *t);

/* A peer that was just served usually asks again soon: makes this thread's
 * loop, if it has one, spin before it sleeps next. */
void loop_spin_next(void);

/*
 * A source that can be polled without a system call (a completion queue).  poll
 * returns how much it did; the loop polls all sources in turn, also while it
 * spins before it sleeps.  arm is called before the loop sleeps: make sure a
 * descriptor wakes it; return true when something came in meanwhile and the
 * loop must not sleep.
 */
struct loop_source {
	unsigned (*poll)(struct loop_source *s);
	bool	 (*arm)(struct loop_source *s);
	struct cds_list_head link;
};

/* Loop's thread. */
void loop_source_add(struct loop *loop, struct loop_source *s);
void loop_source_del(struct loop *loop, struct loop_source *s);

/* CLOCK_MONOTONIC in ns, as of this round of the loop.  Loop's thread. */
uint64_t loop_now(const struct loop *loop);
/* True if it is @ms or more from @since to @now. */
static inline bool loop_passed(uint64_t now, uint64_t since, uint32_t ms)
{
	return now > since && now - since >= ms * 1000000ull;
}
