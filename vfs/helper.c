/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper - requests to the processes with CAP_SYS_ADMIN, and their answers.
 *
 * A process does one task: a quota waits for its file system, which can hang,
 * and then mounts are copied all the same.  One request at a time goes to it,
 * as a message with a descriptor.  So an answer that is late is that of the
 * last request; it is read and forgotten before the next one is sent.  A
 * request's patience begins when it is made: the others that come before it
 * take from it, and who has waited so long goes without an answer.
 */
#include "vfs/helper.h"
#include "vfs/parcel.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/thread.h"
#include "lib/util.h"

/* One of each for the process, which starts them before there is any tree. */
static struct helper {
	pthread_mutex_t	lock;
	pthread_cond_t	idle;		/* not taken any more */
	/* Under the lock: */
	bool		is_used;
	bool		is_taken;	/* by a request, which has the rest: */
	int		patience_ms;
	int		sock;		/* -1: it has died */
	bool		owes;		/* the last request has no answer yet */
} helpers[HELPER_TASKS] = {
	[0 ... HELPER_TASKS - 1] = {
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.idle = PTHREAD_COND_INITIALIZER, .sock = -1,
	},
};

static int lose_helper(struct helper *h)
{
	log_err("a helper process has ended: until a restart of the server, "
		"clients see %s", h == &helpers[HELPER_QUOTA] ? "no quotas" :
		"empty directories in place of mount points that they do not "
		"enter");
	close(h->sock);
	h->sock = -1;
	return -ESRCH;
}

/* Takes the answer that is owed, as helper_ask() does.  -ETIMEDOUT: it does not
 * come until clock_ns() is @until. */
static int take_answer(struct helper *h, struct helper_message *m, int *got,
		       uint64_t until)
{
	struct pollfd p = { .fd = h->sock, .events = POLLIN };
	uint64_t now = clock_ns();
	int n, fd;

	do {
		n = poll(&p, 1, until > now ?
			 (int)((until - now) / NS_PER_MS) : 0);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	if (parcel_recv(h->sock, m, &fd) != sizeof(*m))
		return lose_helper(h);
	h->owes = false;
	if (got)
		*got = fd;
	else if (fd >= 0)
		close(fd);
	return 0;
}

/* By the request that has taken the helper. */
static int from_helper(struct helper *h, struct helper_message *m, int fd,
		       int *got, uint64_t until)
{
	int err = 0;

	if (h->sock < 0)
		return -ESRCH;
	if (h->owes)
		err = take_answer(h, &(struct helper_message){ 0 }, NULL, 0);
	if (err < 0)
		return err;
	h->owes = true;
	err = parcel_send(h->sock, m, fd) ?
	      take_answer(h, m, got, until) : lose_helper(h);
	return err < 0 ? err : m->err;
}

/* Under the lock, which it lets go of meanwhile. */
static int wait_for_helper(struct helper *h, struct helper_message *m, int fd,
			   int *got)
{
	uint64_t until = clock_ns() + h->patience_ms * 1ull * NS_PER_MS;
	int err;

	while (h->is_taken)
		if (!cond_wait_until(&h->idle, &h->lock, until))
			return -ETIMEDOUT;
	h->is_taken = true;
	mutex_unlock(&h->lock);
	err = from_helper(h, m, fd, got, until);
	mutex_lock(&h->lock);
	h->is_taken = false;
	pthread_cond_signal(&h->idle);
	return err;
}

void helper_use(enum helper_task task, int sock, int patience_ms)
{
	struct helper *h = &helpers[task];

	mutex_lock(&h->lock);
	if (h->sock >= 0)
		close(h->sock);
	h->sock = sock;
	h->is_used = sock >= 0;
	h->patience_ms = patience_ms;
	h->owes = false;
	mutex_unlock(&h->lock);
}

int helper_ask(struct helper_message *m, int fd, int *got)
{
	struct helper *h = &helpers[m->task];
	int err;

	if (got)
		*got = -1;
	mutex_lock(&h->lock);
	err = h->is_used ? wait_for_helper(h, m, fd, got) : -ENOTCONN;
	mutex_unlock(&h->lock);
	return err;
}
