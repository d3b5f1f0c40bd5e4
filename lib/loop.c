/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * loop - an event loop: one thread, one epoll set.
 *
 * Operation: a round runs the tasks, polls the sources, fires the timers and
 * then waits in epoll; it does not sleep while sources or tasks had work.
 *
 * Spinning: to be woken takes longer than to serve a short call.  So a loop
 * that has sources, or was told to, looks for a while before it sleeps, if the
 * last sleep was no longer than that while.  Between looks it gives way to
 * other threads that want the processor.
 *
 * Driven: instead of a thread, the caller's event loop can run the rounds.
 * Between them the loop is asleep, and its epoll set tells the caller when to
 * wake it; a timer of the system stands for the wheel.
 *
 * Timers hang in a wheel of 16 ms slots; one due further off than a turn of
 * the wheel stays in its slot until its time.
 */
#include "lib/loop.h"

#include <errno.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "lib/account.h"
#include "lib/clock.h"
#include "lib/thread.h"
#include "lib/util.h"

#define MAX_EVENTS	64
#define TICK_NS		(16ull * 1000 * 1000)
#define WHEEL_SLOTS	1024
/* Giving way took so long: another thread had work.  Then it does not spin for
 * a while. */
#define CROWDED_NS	(50ull * 1000)
#define CROWDED_FOR_NS	(20ull * 1000 * 1000)
/* While sources are busy, descriptors are looked at this seldom. */
#define BUSY_ROUNDS	16

struct loop {
	/* Any thread pushes; the loop's takes all. */
	_Atomic(struct loop_task *) tasks;
	/* 1 while the thread sleeps or is about to: then a post wakes it. */
	atomic_int		sleeping;

	/* The loop's thread only, from here on. */
	int			epfd;
	int			wakefd;
	bool			stop;
	pthread_t		thread;
	bool			started;
	bool			driven;
	struct loop_fd		alarm;		/* driven: for the wheel */
	uint64_t		alarm_tick;	/* 0: not set */
	char			name[16];
	uint64_t		now;
	struct epoll_event	events[MAX_EVENTS];
	int			nevents;
	int			event;		/* being handled */
	struct loop_fd		wake;
	struct cds_list_head	sources;
	uint64_t		spin_ns;
	bool			brief;		/* was the last sleep */
	bool			spin_next;
	uint64_t		crowded_until;
	unsigned		busy;

	struct cds_list_head	wheel[WHEEL_SLOTS];
	uint64_t		tick;		/* last one that was fired */
	uint64_t		soonest;	/* no slot before has a timer */
	unsigned		ntimers;
};

_Thread_local struct loop *loop_current;

uint64_t loop_now(const struct loop *loop)
{
	return loop->now;
}

bool loop_one_ready(const struct loop *loop)
{
	return loop->nevents <= 1;
}

void loop_spin_next(void)
{
	if (loop_current)
		loop_current->spin_next = true;
}

static void woken(struct loop_fd *f, uint32_t events)
{
	uint64_t n;

	/* Only the wake-up matters; an error here has nothing to mend. */
	if (read(f->fd, &n, sizeof(n)) < 0)
		return;
}

static void wake_loop(struct loop *loop)
{
	static const uint64_t one = 1;

	if (write(loop->wakefd, &one, sizeof(one)) < 0)
		return;		/* full: it is awake */
}

void loop_spin(struct loop *loop, unsigned us)
{
	loop->spin_ns = us * 1000ull;
}

int loop_create(const char *name, struct loop **out)
{
	struct loop *loop = calloc(1, sizeof(*loop));
	int err = -ENOMEM;

	if (!loop)
		goto fail;
	CDS_INIT_LIST_HEAD(&loop->sources);
	for (unsigned i = 0; i < WHEEL_SLOTS; i++)
		CDS_INIT_LIST_HEAD(&loop->wheel[i]);
	snprintf(loop->name, sizeof(loop->name), "%s", name);
	loop_spin(loop, LOOP_SPIN_US);
	loop->now = clock_ns();
	loop->tick = loop->now / TICK_NS;
	loop->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epfd < 0) {
		err = -errno;
		goto fail_free;
	}
	loop->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (loop->wakefd < 0) {
		err = -errno;
		goto fail_epoll;
	}
	loop->wake = (struct loop_fd){ woken, loop->wakefd, EPOLLIN };
	err = loop_fd_add(loop, &loop->wake);
	if (err)
		goto fail_wake;
	*out = loop;
	return 0;

fail_wake:
	close(loop->wakefd);
fail_epoll:
	close(loop->epfd);
fail_free:
	free(loop);
fail:
	return err;
}

void loop_destroy(struct loop *loop)
{
	loop_stop(loop);
	if (loop->driven)
		close(loop->alarm.fd);
	close(loop->wakefd);
	close(loop->epfd);
	free(loop);
}

int loop_fd_add(struct loop *loop, struct loop_fd *f)
{
	struct epoll_event ev = { .events = f->events, .data.ptr = f };

	return epoll_ctl(loop->epfd, EPOLL_CTL_ADD, f->fd, &ev) ? -errno : 0;
}

void loop_fd_mod(struct loop *loop, struct loop_fd *f, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = f };

	if (f->events == events)
		return;
	f->events = events;
	epoll_ctl(loop->epfd, EPOLL_CTL_MOD, f->fd, &ev);
}

void loop_fd_del(struct loop *loop, struct loop_fd *f)
{
	epoll_ctl(loop->epfd, EPOLL_CTL_DEL, f->fd, NULL);
	for (int i = loop->event + 1; i < loop->nevents; i++)
		if (loop->events[i].data.ptr == f)
			loop->events[i].data.ptr = NULL;
}

void loop_post(struct loop *loop, struct loop_task *t,
	       void (*run)(struct loop_task *t))
{
	t->run = run;
	t->next = atomic_load_explicit(&loop->tasks, memory_order_relaxed);
	/* Sequentially consistent: either the loop sees the task before it
	 * sleeps, or we see that it sleeps.  Pairs with doze(). */
	while (!atomic_compare_exchange_weak(&loop->tasks, &t->next, t))
		;
	if (atomic_load(&loop->sleeping) &&
	    atomic_exchange(&loop->sleeping, 0))
		wake_loop(loop);
}

struct call {
	struct loop_task task;
	void (*fn)(void *);
	void *arg;
	sem_t done;
};

static void run_call(struct loop_task *t)
{
	struct call *c = container_of(t, struct call, task);

	c->fn(c->arg);
	sem_post(&c->done);
}

void loop_call(struct loop *loop, void (*fn)(void *), void *arg)
{
	struct call c = { .fn = fn, .arg = arg };

	if (loop == loop_current || !(loop->started || loop->driven)) {
		fn(arg);
		return;
	}
	sem_init(&c.done, 0, 0);
	loop_post(loop, &c.task, run_call);
	while (sem_wait(&c.done) && errno == EINTR)
		;
	sem_destroy(&c.done);
}

static unsigned run_tasks(struct loop *loop)
{
	struct loop_task *t, *next, *first = NULL;
	unsigned n = 0;

	if (!atomic_load(&loop->tasks))
		return 0;
	/* The list is newest first; turn it round. */
	for (t = atomic_exchange(&loop->tasks, NULL); t; t = next) {
		next = t->next;
		t->next = first;
		first = t;
	}
	/* A task can be posted again, or freed, as soon as it runs. */
	for (t = first; t; t = next) {
		next = t->next;
		t->run(t);
		n++;
	}
	return n;
}

static unsigned poll_sources(struct loop *loop)
{
	struct loop_source *s, *next;
	unsigned n = 0;

	cds_list_for_each_entry_safe(s, next, &loop->sources, link)
		n += s->poll(s);
	return n;
}

void loop_source_add(struct loop *loop, struct loop_source *s)
{
	cds_list_add_tail(&s->link, &loop->sources);
}

void loop_source_del(struct loop *loop, struct loop_source *s)
{
	cds_list_del(&s->link);
}

void loop_timer_set(struct loop *loop, struct loop_timer *t, uint32_t ms)
{
	uint64_t tick;

	loop_timer_cancel(loop, t);
	t->at = (loop == loop_current ? loop->now : clock_ns()) +
		ms * 1000000ull;
	tick = MAX(t->at / TICK_NS + 1, loop->tick + 1);
	cds_list_add_tail(&t->link, &loop->wheel[tick % WHEEL_SLOTS]);
	loop->soonest = MIN(loop->soonest, tick);
	loop->ntimers++;
}

void loop_timer_cancel(struct loop *loop, struct loop_timer *t)
{
	if (!t->at)
		return;
	t->at = 0;
	cds_list_del(&t->link);
	loop->ntimers--;
}

static void fire_slot(struct loop *loop, struct cds_list_head *slot)
{
	struct cds_list_head due;
	struct loop_timer *t, *next;

	/* First aside, as call-backs can set and cancel any timer. */
	CDS_INIT_LIST_HEAD(&due);
	cds_list_for_each_entry_safe(t, next, slot, link)
		if (t->at <= loop->now)
			cds_list_move(&t->link, &due);
	while (!cds_list_empty(&due)) {
		t = cds_list_first_entry(&due, struct loop_timer, link);
		loop_timer_cancel(loop, t);
		t->fire(t);
	}
}

static void fire_timers(struct loop *loop)
{
	uint64_t tick = loop->now / TICK_NS;

	if (tick - loop->tick > WHEEL_SLOTS)
		loop->tick = tick - WHEEL_SLOTS;
	while (loop->tick < tick)
		fire_slot(loop, &loop->wheel[++loop->tick % WHEEL_SLOTS]);
}

/* Returns the time to sleep: until the next slot with a timer. */
static int sleep_ms(struct loop *loop)
{
	uint64_t tick;

	if (loop->ntimers == 0)
		return -1;
	tick = MAX(loop->soonest, loop->tick + 1);
	for (; tick < loop->tick + WHEEL_SLOTS; tick++)
		if (!cds_list_empty(&loop->wheel[tick % WHEEL_SLOTS]))
			break;
	loop->soonest = tick;
	if (tick * TICK_NS <= loop->now)
		return 0;
	return (int)((tick * TICK_NS - loop->now) / 1000000) + 1;
}

static void handle(struct loop *loop, int n)
{
	loop->now = clock_ns();
	loop->nevents = MAX(n, 0);
	for (loop->event = 0; loop->event < loop->nevents; loop->event++) {
		struct epoll_event *ev = &loop->events[loop->event];
		struct loop_fd *f = ev->data.ptr;

		if (f)
			f->ready(f, ev->events);
	}
	loop->nevents = loop->event = 0;
}

/* True if it handled any. */
static bool take_events(struct loop *loop)
{
	int n = epoll_wait(loop->epfd, loop->events, MAX_EVENTS, 0);

	if (n > 0)
		handle(loop, n);
	return n > 0;
}

/* Gives way.  False: other threads have work, and a thread that wakes gets the
 * processor sooner than one that has just given it away. */
static bool alone(struct loop *loop)
{
	uint64_t before = clock_ns();

	sched_yield();
	loop->now = clock_ns();
	if (loop->now - before > CROWDED_NS)
		loop->crowded_until = loop->now + CROWDED_FOR_NS;
	return loop->now >= loop->crowded_until;
}

/* True when something came.  A source that arms itself while it is polled
 * leaves the loop: its descriptor reports the next event. */
static bool spin(struct loop *loop)
{
	bool pays = loop->spin_next || !cds_list_empty(&loop->sources);
	uint64_t end = loop->now + loop->spin_ns;

	loop->spin_next = false;
	if (!pays || !loop->brief || loop->now < loop->crowded_until)
		return false;
	do {
		if (atomic_load(&loop->tasks) ||
		    (cds_list_empty(&loop->sources) ? take_events(loop) :
						      poll_sources(loop) > 0))
			return true;
	} while (alone(loop) && loop->now < end);
	return false;
}

/* Asks all sources to wake us; true when one has work already. */
static bool arm_sources(struct loop *loop)
{
	struct loop_source *s, *next;
	bool work = false;

	cds_list_for_each_entry_safe(s, next, &loop->sources, link)
		work |= s->arm(s);
	return work;
}

static void doze(struct loop *loop)
{
	uint64_t before;
	int n;

	if (spin(loop) || arm_sources(loop))
		return;
	atomic_store(&loop->sleeping, 1);
	if (atomic_load(&loop->tasks)) {
		atomic_store_explicit(&loop->sleeping, 0,
				      memory_order_relaxed);
		return;
	}
	before = loop->now;
	n = epoll_wait(loop->epfd, loop->events, MAX_EVENTS, sleep_ms(loop));
	atomic_store_explicit(&loop->sleeping, 0, memory_order_relaxed);
	handle(loop, n);
	loop->brief = loop->now - before < loop->spin_ns;
}

static void run_loop(void *arg)
{
	struct loop *loop = arg;

	loop_current = loop;
	thread_must_not_wait = true;
	account_claim();
	while (!loop->stop) {
		unsigned n;

		loop->now = clock_ns();
		fire_timers(loop);
		n = run_tasks(loop);
		n += poll_sources(loop);
		if (n == 0) {
			loop->busy = 0;
			doze(loop);
		} else if (++loop->busy % BUSY_ROUNDS == 1) {
			take_events(loop);
		}
	}
	run_tasks(loop);
	account_unclaim();
}

int loop_start(struct loop *loop)
{
	int err;

	loop->started = true;
	err = thread_start(&loop->thread, loop->name, run_loop, loop);
	if (err)
		loop->started = false;
	return err;
}

static void set_stop(void *arg)
{
	struct loop *loop = arg;

	loop->stop = true;
}

void loop_stop(struct loop *loop)
{
	if (!loop->started)
		return;
	loop_call(loop, set_stop, loop);
	pthread_join(loop->thread, NULL);
	loop->started = false;
}

/* ---- driven by the caller */

static void alarm_rang(struct loop_fd *f, uint32_t events)
{
	struct loop *loop = container_of(f, struct loop, alarm);

	woken(f, events);
	loop->alarm_tick = 0;
}

int loop_drive(struct loop *loop)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	int err;

	if (fd < 0)
		return -errno;
	loop->alarm = (struct loop_fd){ alarm_rang, fd, EPOLLIN };
	err = loop_fd_add(loop, &loop->alarm);
	if (err) {
		close(fd);
		return err;
	}
	loop->driven = true;
	atomic_store(&loop->sleeping, 1);
	return 0;
}

int loop_fd(const struct loop *loop)
{
	return loop->epfd;
}

/* Sets the alarm for the next slot with a timer. */
static void set_alarm(struct loop *loop)
{
	bool wanted = sleep_ms(loop) >= 0;
	uint64_t tick = wanted ? loop->soonest : 0;
	/* A time in the past is due at once. */
	const struct itimerspec at = { .it_value = {
		.tv_sec = (time_t)(tick * TICK_NS / NS_PER_S),
		.tv_nsec = (long)(tick * TICK_NS % NS_PER_S),
	} };

	if (tick == loop->alarm_tick)
		return;
	loop->alarm_tick = tick;
	timerfd_settime(loop->alarm.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* Like doze(), without waiting. */
static void lie_down(struct loop *loop)
{
	bool work = arm_sources(loop);

	set_alarm(loop);
	atomic_store(&loop->sleeping, 1);
	if ((work || atomic_load(&loop->tasks)) &&
	    atomic_exchange(&loop->sleeping, 0))
		wake_loop(loop);
}

static void work_a_round(void *arg)
{
	struct loop *loop = arg;

	fire_timers(loop);
	run_tasks(loop);
	poll_sources(loop);
	take_events(loop);
}

void loop_enter(struct loop *loop, void (*fn)(void *), void *arg)
{
	struct loop *outer = loop_current;
	bool must_not_wait = thread_must_not_wait;

	if (outer == loop) {
		fn(arg);
		return;
	}
	loop_current = loop;
	thread_must_not_wait = true;
	atomic_store(&loop->sleeping, 0);
	loop->now = clock_ns();
	fn(arg);
	lie_down(loop);
	thread_must_not_wait = must_not_wait;
	loop_current = outer;
}

void loop_round(struct loop *loop)
{
	loop_enter(loop, work_a_round, loop);
}
