/* SPDX-License-Identifier: BSD-2-Clause */
/* disk - what is known of a file system, and turns to sync it.  See sync.h. */
#include "vfs/posix/posix.h"

#include <errno.h>
#include <stdlib.h>

#define NAMES_BITS	8
#define CONDS		16

struct posix_disk {
	dev_t		 dev;
	/* Under disks_lock: */
	struct posix_disk *next;
	unsigned	 users;

	_Atomic uint64_t errors;
	_Atomic uint64_t trusted;	/* so many of them are over */
	/* Names that are being made, by their directory's inode number. */
	atomic_uint	 names[1 << NAMES_BITS];

	pthread_mutex_t	 lock;
	/* Under the lock, and all turns of nodes with it: */
	struct posix_turns whole;
	pthread_cond_t	 ended[CONDS];	/* by the address of the turns */
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
	for (int i = 0; i < CONDS; i++)
		pthread_cond_init(&d->ended[i], NULL);
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
	last = --d->users == 0;
	if (last) {
		for (link = &disks; *link != d; link = &(*link)->next)
			;
		*link = d->next;
	}
	mutex_unlock(&disks_lock);
	if (!last)
		return;
	for (int i = 0; i < CONDS; i++)
		pthread_cond_destroy(&d->ended[i]);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

void posix_disk_failed(struct posix_disk *d)
{
	atomic_fetch_add(&d->errors, 1);
}

bool posix_disk_doubtful(struct posix_disk *d)
{
	return atomic_load(&d->errors) != atomic_load(&d->trusted);
}

uint64_t posix_disk_errors(struct posix_disk *d)
{
	return atomic_load(&d->errors);
}

void posix_disk_trust(struct posix_disk *d, uint64_t errors)
{
	atomic_store(&d->trusted, errors);
}

static pthread_cond_t *cond_of(struct posix_disk *d,
			       const struct posix_turns *t)
{
	return &d->ended[((uintptr_t)t >> 6) % CONDS];
}

struct posix_turns *posix_disk_turns(struct posix_disk *d)
{
	return &d->whole;
}

int posix_disk_turn(struct posix_disk *d, struct posix_turns *t,
		    uint64_t since, int (*run)(void *arg), void *arg)
{
	uint64_t mine;
	int err;

	mutex_lock(&d->lock);
	mine = t->begun + 1;
	while (t->running && t->done < mine)
		pthread_cond_wait(cond_of(d, t), &d->lock);
	if (t->done < mine) {
		t->begun = mine;
		t->running = true;
		mutex_unlock(&d->lock);
		err = run(arg);
		mutex_lock(&d->lock);
		t->running = false;
		t->done = mine;
		if (err < 0) {
			atomic_store(&t->failed, mine);
			t->err = err;
		}
		pthread_cond_broadcast(cond_of(d, t));
	}
	/* An earlier one may have been told of what this change lost, or a
	 * later one failed before this thread woke. */
	if (since == POSIX_NOW)
		err = atomic_load(&t->failed) >= mine ? t->err : 0;
	else
		err = atomic_load(&t->failed) != since ? t->err : 0;
	mutex_unlock(&d->lock);
	return err;
}

static atomic_uint *names_of(struct posix_node *dir)
{
	uint64_t hash = dir->ino * 0x9e3779b97f4a7c15u;

	return &posix_fs_of(dir)->disk->names[hash >> (64 - NAMES_BITS)];
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
	/* Before this node was there, another server, or this one before it
	 * was killed, may have made the name and not synced it. */
	mutex_lock(&d->lock);
	synced = dir->turns.done > atomic_load(&dir->turns.failed);
	mutex_unlock(&d->lock);
	return synced;
}
