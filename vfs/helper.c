/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper - requests to the processes with CAP_SYS_ADMIN, and their answers.
 *
 * A process does one task.  A quota waits for its file system, which can hang,
 * so several processes do that: a file system occupies one of them at a time,
 * and the others serve other file systems.  One request at a time goes to a
 * process, as a message with a descriptor.  So a late answer belongs to the
 * last request; it is read and discarded before the next one is sent, and until
 * it comes its file system gets no other process.  A request's patience begins
 * when it is made and includes the wait for earlier requests; after that it
 * fails without an answer.
 */
#include "vfs/helper.h"
#include "vfs/parcel.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/thread.h"
#include "lib/util.h"

/* A process. */
struct hand {
	int		sock;		/* -1: it has died */
	bool		is_taken;	/* by a request, which owns the rest: */
	bool		owes;		/* the last request has no answer yet */
	uint64_t	place;		/* the file system of that */
};

/* The helpers of each task, which start before any tree exists. */
static struct helper {
	pthread_mutex_t	lock;
	pthread_cond_t	idle;		/* one is no longer taken */
	/* Under the lock: */
	unsigned	n;		/* started */
	int		patience_ms;
	struct hand	hands[HELPERS];
} helpers[HELPER_TASKS] = {
	[0 ... HELPER_TASKS - 1] = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.idle = PTHREAD_COND_INITIALIZER,
	},
};

static int lose_helper(struct hand *h, enum helper_task task)
{
	struct helper *all = &helpers[task];
	unsigned left = 0;

	mutex_lock(&all->lock);
	close(h->sock);
	h->sock = -1;
	h->owes = false;
	for (unsigned i = 0; i < all->n; i++)
		left += all->hands[i].sock >= 0;
	mutex_unlock(&all->lock);
	if (left)
		log_warn("a helper process for %s has ended, and %u of %u are "
			 "left until a restart of the server",
			 task == HELPER_QUOTA ? "quotas" : "mount points",
			 left, all->n);
	else
		log_err("the last helper process has ended: until a restart "
			"of the server, clients see %s", task == HELPER_QUOTA ?
			"no quotas" : "empty directories in place of mount "
			"points that they do not enter");
	return -ESRCH;
}

/* True if a message has come, or comes before clock_ns() is @until. */
static bool has_come(const struct hand *h, uint64_t until)
{
	struct pollfd p = { .fd = h->sock, .events = POLLIN };
	uint64_t now = clock_ns();
	int n;

	do {
		n = poll(&p, 1, until > now ?
			 (int)((until - now) / NS_PER_MS) : 0);
	} while (n < 0 && errno == EINTR);
	return n != 0;
}

/* Takes the answer that is owed, as helper_ask() does.  -ETIMEDOUT: not before
 * clock_ns() was @until. */
static int take_answer(struct hand *h, struct helper_message *m, int *got,
		       uint64_t until)
{
	enum helper_task task = m->task;
	int fd;

	if (!has_come(h, until))
		return -ETIMEDOUT;
	if (parcel_recv(h->sock, m, &fd) != sizeof(*m))
		return lose_helper(h, task);
	h->owes = false;
	if (got)
		*got = fd;
	else if (fd >= 0)
		close(fd);
	return 0;
}

/* By the request that has taken the process. */
static int from_helper(struct hand *h, struct helper_message *m, int fd,
		       int *got, uint64_t until)
{
	struct helper_message late = { .task = m->task };
	int err = 0;

	if (h->owes)
		err = take_answer(h, &late, NULL, 0);
	if (err < 0)
		return err;
	h->owes = true;
	err = parcel_send(h->sock, m, fd) ?
	      take_answer(h, m, got, until) : lose_helper(h, m->task);
	return err < 0 ? err : m->err;
}

/* Under the lock: the process for a request about @place; or NULL, with *@err
 * -EAGAIN: it has to wait for one; -ETIMEDOUT: all are late; -ESRCH: all have
 * died. */
static struct hand *find_hand(struct helper *all, uint64_t place, int *err)
{
	struct hand *found = NULL;

	*err = -ESRCH;
	for (unsigned i = 0; i < all->n; i++) {
		struct hand *h = &all->hands[i];
		bool late;

		if (h->sock < 0)
			continue;
		if (*err == -ESRCH)
			*err = -ETIMEDOUT;
		late = !h->is_taken && h->owes && !has_come(h, 0);
		if (h->place == place && (h->is_taken || late)) {
			*err = late ? -ETIMEDOUT : -EAGAIN;
			return NULL;
		}
		if (h->is_taken)
			*err = -EAGAIN;
		else if (!late)
			found = h;
	}
	return found;
}

/* Under the lock, which it releases meanwhile. */
static int wait_for_helper(struct helper *all, struct helper_message *m, int fd,
			   int *got, uint64_t place)
{
	uint64_t until = clock_ns() + all->patience_ms * 1ull * NS_PER_MS;
	struct hand *h;
	int err;

	while (!(h = find_hand(all, place, &err)))
		if (err != -EAGAIN ||
		    !cond_wait_until(&all->idle, &all->lock, until))
			return err == -EAGAIN ? -ETIMEDOUT : err;
	h->is_taken = true;
	h->place = place;
	mutex_unlock(&all->lock);
	err = from_helper(h, m, fd, got, until);
	mutex_lock(&all->lock);
	h->is_taken = false;
	pthread_cond_broadcast(&all->idle);
	return err;
}

void helper_use(enum helper_task task, int sock, int patience_ms)
{
	struct helper *all = &helpers[task];

	mutex_lock(&all->lock);
	if (sock >= 0) {
		assert(all->n < HELPERS);
		all->hands[all->n++] = (struct hand){ .sock = sock };
	}
	for (; sock < 0 && all->n > 0; all->n--)
		if (all->hands[all->n - 1].sock >= 0)
			close(all->hands[all->n - 1].sock);
	all->patience_ms = patience_ms;
	mutex_unlock(&all->lock);
}

/* Does not wait for the file system. */
static uint64_t device_of(int fd)
{
	struct statx sx;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &sx) < 0)
		return 0;
	return makedev(sx.stx_dev_major, sx.stx_dev_minor);
}

int helper_ask(struct helper_message *m, int fd, int *got)
{
	struct helper *all = &helpers[m->task];
	uint64_t place = device_of(fd);
	int err;

	if (got)
		*got = -1;
	mutex_lock(&all->lock);
	err = all->n ? wait_for_helper(all, m, fd, got, place) : -ENOTCONN;
	mutex_unlock(&all->lock);
	return err;
}
