/* SPDX-License-Identifier: BSD-2-Clause */
/* disk - the state of a file system, and turns to sync it.  See sync.h. */
#include "vfs/posix/posix.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

/* A thread that waits for a turn, on its stack. */
struct posix_waiter {
	struct posix_waiter *next;
	uint64_t	 mine;		/* the first turn that suffices */
	bool		 runs;		/* this thread runs that turn */
	sem_t		 woken;
};

static pthread_mutex_t disks_lock = PTHREAD_MUTEX_INITIALIZER;
static struct posix_disk *disks;

static struct posix_disk *disk_create(dev_t dev)
{
	struct posix_disk *d = calloc(1, sizeof(*d));

	if (!d)
		return NULL;
	d->dev = dev;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->freed, NULL);
	return d;
}

int posix_disk_get(dev_t dev, struct posix_disk **out)
{
	struct posix_disk *d;

	mutex_lock(&disks_lock);
	for (d = disks; d && d->dev != dev; d = d->next)
		;
	if (!d) {
		d = disk_create(dev);
		if (d) {
			d->next = disks;
			disks = d;
		}
	}
	if (d)
		d->users++;
	mutex_unlock(&disks_lock);
	*out = d;
	return d ? 0 : -ENOMEM;
}

void posix_disk_put(struct posix_disk *d)
{
	struct posix_disk **link;
	bool last;

	mutex_lock(&disks_lock);
	/* Doubts stay with the file system until a sync of it has ended them,
	 * also while no export is on it. */
	last = --d->users == 0 && !posix_disk_doubtful(d);
	if (last) {
		for (link = &disks; *link != d; link = &(*link)->next)
			;
		*link = d->next;
	}
	mutex_unlock(&disks_lock);
	if (!last)
		return;
	pthread_cond_destroy(&d->freed);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

void posix_change_verf(struct posix_fs *fs)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	atomic_fetch_add(&fs->fs.verf, 1 + ((uint64_t)now.tv_nsec << 20));
}

void posix_fs_failed(struct posix_fs *fs)
{
	atomic_fetch_add(&fs->disk->errors, 1);
	posix_change_verf(fs);
}

bool posix_disk_doubtful(struct posix_disk *d)
{
	return atomic_load(&d->errors) != atomic_load(&d->trusted);
}

/*
 * With the lock, which it releases: waits for turn @mine, or for the one before
 * it to end.  True: this thread runs turn @mine.
 */
static bool wait_turn(struct posix_disk *d, struct posix_turns *t,
		      uint64_t mine)
{
	struct posix_waiter me = { .mine = mine };

	sem_init(&me.woken, 0, 0);
	if (t->last)
		t->last->next = &me;
	else
		t->first = &me;
	t->last = &me;
	mutex_unlock(&d->lock);
	while (sem_wait(&me.woken) < 0)
		;			/* EINTR */
	sem_destroy(&me.woken);
	return me.runs;
}

/* With the lock: the first has left the list. */
static struct posix_waiter *turns_pop(struct posix_turns *t)
{
	struct posix_waiter *w = t->first;

	t->first = w->next;
	if (!t->first)
		t->last = NULL;
	return w;
}

/*
 * Ends turn @mine.  The threads that it served go on, each woken once, by its
 * own semaphore; the first of the remaining threads runs the next turn.  So no
 * thread wakes only to wait again.
 */
static void end_turn(struct posix_disk *d, struct posix_turns *t,
		     uint64_t mine, int err)
{
	struct posix_waiter *done = NULL, *runner = NULL, *w;

	mutex_lock(&d->lock);
	t->done = mine;
	if (err < 0) {
		atomic_store(&t->failed, mine);
		t->err = err;
	}
	while (t->first && t->first->mine <= mine) {
		w = turns_pop(t);
		w->next = done;
		done = w;
	}
	if (t->first)
		runner = turns_pop(t);
	t->running = runner;
	mutex_unlock(&d->lock);
	if (runner) {
		runner->runs = true;
		sem_post(&runner->woken);
	}
	while (done) {			/* its stack is gone once it is woken */
		w = done;
		done = w->next;
		sem_post(&w->woken);
	}
}

/* With the lock, which it releases. */
static void run_turn(struct posix_disk *d, struct posix_turns *t,
		     uint64_t mine, int (*run)(void *arg), void *arg)
{
	t->running = true;
	t->begun = mine;
	mutex_unlock(&d->lock);
	end_turn(d, t, mine, run(arg));
}

int posix_disk_turn(struct posix_disk *d, struct posix_turns *t,
		    uint64_t since, int (*run)(void *arg), void *arg)
{
	uint64_t mine, failed;
	int err;

	mutex_lock(&d->lock);
	mine = t->begun + 1;
	if (!t->running) {
		run_turn(d, t, mine, run, arg);
	} else if (wait_turn(d, t, mine)) {
		mutex_lock(&d->lock);
		run_turn(d, t, mine, run, arg);
	}
	/* An earlier turn might have got the error of this change's data, or a
	 * later one failed before this thread woke. */
	failed = atomic_load(&t->failed);
	if (since == POSIX_NOW ? failed < mine : failed == since)
		return 0;
	mutex_lock(&d->lock);
	err = t->err;
	mutex_unlock(&d->lock);
	return err;
}

static atomic_uint *names_of(struct posix_node *dir)
{
	return &posix_fs_of(dir)->disk->names[hash_mix(0, dir->ino) >>
					      (64 - POSIX_NAMES_BITS)];
}

void posix_names_begin(struct posix_node *dir)
{
	atomic_fetch_add(names_of(dir), 1);
}

void posix_names_end(struct posix_node *dir)
{
	atomic_fetch_sub(names_of(dir), 1);
}

bool posix_names_settled(struct posix_node *dir)
{
	struct posix_disk *d = posix_fs_of(dir)->disk;
	bool synced;

	if (atomic_load(names_of(dir)) > 0 || posix_disk_doubtful(d))
		return false;
	/* Before this node existed, another server, or this one before it was
	 * killed, might have made the name and not synced it. */
	mutex_lock(&d->lock);
	synced = dir->turns.done > atomic_load(&dir->turns.failed);
	mutex_unlock(&d->lock);
	return synced;
}

static bool is_held(const struct posix_disk *d, ino_t ino)
{
	const struct posix_hold *h = d->holds;

	while (h && h->ino != ino)
		h = h->next;
	return h;
}

int posix_hold(struct posix_hold *h, struct posix_node *n, bool may_wait)
{
	struct posix_disk *d = posix_fs_of(n)->disk;
	bool held;

	h->ino = n->ino;
	h->disk = d;
	mutex_lock(&d->lock);
	while ((held = is_held(d, h->ino)) && may_wait)
		pthread_cond_wait(&d->freed, &d->lock);
	if (!held) {
		h->next = d->holds;
		d->holds = h;
	}
	mutex_unlock(&d->lock);
	return held ? -EAGAIN : 0;
}

void posix_hold_end(struct posix_hold *h)
{
	struct posix_disk *d = h->disk;
	struct posix_hold **link = &d->holds;

	mutex_lock(&d->lock);
	while (*link != h)
		link = &(*link)->next;
	*link = h->next;
	pthread_cond_broadcast(&d->freed);
	mutex_unlock(&d->lock);
}
