/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * watch - being told when a file in a directory changes.
 *
 * The kernel tells of writes and of changes of attributes to whoever watches
 * the directory of the name that they were made through, before the system
 * call that makes them returns.  A watch ends with the first change that it
 * tells of: a directory that is written to costs its writers one report for
 * each listing, not one for each write.
 *
 * Not told are changes through another hard link (even one that is gone, by
 * who opened it), through a handle that was opened without a name, through
 * memory that is mapped, and by io_submit(2); nor any of what is in a directory
 * below.
 *
 * All trees share one inotify instance, for a user may have few of them, and
 * a part of the watches that a user may have.
 * Whoever reads reports marks the directories under the same lock, so nobody
 * finds the queue empty before its reports have had their effect.
 */
#include "vfs/posix/posix.h"

#include <errno.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

STAT(posix_watches, "directories that were watched for a listing");
STAT(posix_watch_failed, "directories that could not be watched");

#define EVENTS		(IN_MODIFY | IN_ATTRIB | IN_ONESHOT | IN_ONLYDIR)
#define BUCKETS		256
#define WATCHES_MAX	1024
/* A watch visits every cached name of the directory: it is set at most so
 * often, and for so small a share of a processor's time. */
#define REARM_NS	100000000
#define REARM_FACTOR	200

static struct {
	pthread_mutex_t lock;
	int	 fd;			/* -1: not yet */
	unsigned count;
	struct cds_list_head by_wd[BUCKETS];
} watches = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static struct cds_list_head *bucket_of(int wd)
{
	return &watches.by_wd[(unsigned)wd % BUCKETS];
}

static void strike(struct posix_watch *w)
{
	w->wd = -1;
	watches.count--;
	cds_list_del(&w->link);
	atomic_fetch_add(&w->changes, 1);
}

/* All that have @wd, or all there are. */
static void strike_bucket(struct cds_list_head *bucket, int wd, bool all)
{
	struct posix_watch *w, *next;

	cds_list_for_each_entry_safe(w, next, bucket, link) {
		if (all)
			inotify_rm_watch(watches.fd, w->wd);
		if (all || w->wd == wd)
			strike(w);
	}
}

static void handle_event(const struct inotify_event *e)
{
	if (!(e->mask & IN_Q_OVERFLOW)) {
		strike_bucket(bucket_of(e->wd), e->wd, false);
		return;
	}
	for (unsigned i = 0; i < BUCKETS; i++)
		strike_bucket(&watches.by_wd[i], 0, true);
}

/* Under the lock. */
static void read_events(void)
{
	char buf[4096] __attribute__((aligned(8)));
	const struct inotify_event *e;
	ssize_t len, at;

	while ((len = read(watches.fd, buf, sizeof(buf))) > 0)
		for (at = 0; at < len; at += (ssize_t)(sizeof(*e) + e->len)) {
			e = (const void *)(buf + at);
			handle_event(e);
		}
}

/* Under the lock. */
static int start(void)
{
	if (watches.fd >= 0)
		return 0;
	for (unsigned i = 0; i < BUCKETS; i++)
		CDS_INIT_LIST_HEAD(&watches.by_wd[i]);
	watches.fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	return watches.fd < 0 ? -errno : 0;
}

void posix_watch_look(void)
{
	mutex_lock(&watches.lock);
	if (watches.fd >= 0)
		read_events();
	mutex_unlock(&watches.lock);
}

/* Not for how long it waited: others may want the processor. */
static int64_t worked(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Under the lock. */
static void arm(struct posix_node *n)
{
	struct posix_watch *w = &n->watch;
	int64_t begin = worked();
	char path[40];

	if (watches.count == WATCHES_MAX) {
		stat_inc(posix_watch_failed);
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", n->fd);
	posix_cred_server(posix_fs_of(n));
	w->wd = inotify_add_watch(watches.fd, path, EVENTS);
	w->again = posix_now() + MAX((worked() - begin) * REARM_FACTOR,
				     REARM_NS);
	if (w->wd < 0) {
		stat_inc(posix_watch_failed);
		return;
	}
	stat_inc(posix_watches);
	watches.count++;
	cds_list_add(&w->link, bucket_of(w->wd));
}

bool posix_watch_begin(struct posix_node *n, unsigned *changes)
{
	struct posix_watch *w = &n->watch;
	bool armed = false;

	mutex_lock(&watches.lock);
	if (start() == 0) {
		read_events();
		if (w->wd < 0 && posix_now() >= w->again)
			arm(n);
		armed = w->wd >= 0;
		*changes = atomic_load(&w->changes);
	}
	mutex_unlock(&watches.lock);
	return armed;
}

void posix_watch_end(struct posix_node *n)
{
	struct posix_watch *w = &n->watch;
	int wd;

	mutex_lock(&watches.lock);
	wd = w->wd;
	if (wd >= 0) {
		/* Another node of this directory may have the same one; then
		 * it learns of the end. */
		inotify_rm_watch(watches.fd, wd);
		strike(w);
	}
	mutex_unlock(&watches.lock);
}
