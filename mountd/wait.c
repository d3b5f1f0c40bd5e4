/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait - MNT calls whose file system does not answer yet, as after a start.
 *
 * MOUNT has no status for that, and clients consider every other one final.  So
 * a call waits here.  Each second some of these calls run their steps again;
 * once one got on, all of them do.  After WAIT_MS a call gets no answer: Linux
 * sends it again after a minute over TCP, and after a second over UDP, where
 * calls do not wait.
 */
#include "mountd/mount.h"

#include <errno.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "rpc/limit.h"

#define PAUSE_MS	1000
#define A_FEW		2u
#define WAIT_MS		50000
#define CALLS_MAX	256		/* a quarter of all calls that can be
					 * suspended */

/* Under the lock. */
static void unlist_state(struct mountd *m, struct mount_state *s)
{
	cds_list_del(&s->waiting);
	s->waits = false;
	m->nwaiting--;
}

static bool cancel_waiting(struct rpc_call *call)
{
	struct mountd *m = call->prog->ctx;
	struct mount_state *s = rpc_state(call);
	bool waits;

	mutex_lock(&m->lock);
	waits = s->waits;
	if (waits)
		unlist_state(m, s);
	mutex_unlock(&m->lock);
	return waits;
}

/* Counts the call, unless too many wait. */
static bool may_wait_too(struct mountd *m)
{
	bool room;

	mutex_lock(&m->lock);
	room = m->nwaiting < CALLS_MAX;
	m->nwaiting += room;
	mutex_unlock(&m->lock);
	return room;
}

static void give_room_back(struct mountd *m)
{
	mutex_lock(&m->lock);
	m->nwaiting--;
	mutex_unlock(&m->lock);
}

int mount_wait(struct rpc_call *call, rpc_step_fn *then)
{
	struct mountd *m = call->prog->ctx;
	struct mount_state *s = rpc_state(call);

	if (!s->since)
		s->since = clock_ms();
	/* Neither a drain nor the server's end takes so long. */
	if (call->msg->xprt->datagram || rpc_limits_are_off(call->server) ||
	    clock_ms() - s->since >= WAIT_MS || !may_wait_too(m))
		return -ETIMEDOUT;
	if (!rpc_call_suspend(call, "the file system of a mount",
			      cancel_waiting, then)) {
		give_room_back(m);
		return -ETIMEDOUT;
	}
	mutex_lock(&m->lock);
	s->waits = true;
	cds_list_add_tail(&s->waiting, &m->waiting);
	pthread_cond_signal(&m->wake);
	mutex_unlock(&m->lock);
	return RPC_PENDING;
}

/* Takes out the call that has waited longest. */
static struct rpc_call *next_call(struct mountd *m)
{
	struct mount_state *s = NULL;

	mutex_lock(&m->lock);
	if (!cds_list_empty(&m->waiting)) {
		s = cds_list_first_entry(&m->waiting, struct mount_state,
					 waiting);
		unlist_state(m, s);
	}
	mutex_unlock(&m->lock);
	return s ? s->call : NULL;
}

/*
 * Waits for a call, and then for the pause.  Returns how many are to run again;
 * 0: mountd ends.  While none of them gets on, only a few: each can occupy a
 * worker, until an export below another one is open.
 */
static unsigned wait_for_calls(struct mountd *m)
{
	uint64_t until;
	unsigned n;

	mutex_lock(&m->lock);
	while (!m->ending && cds_list_empty(&m->waiting))
		pthread_cond_wait(&m->wake, &m->lock);
	until = clock_ns() + PAUSE_MS * NS_PER_MS;
	while (!m->ending && cond_wait_until(&m->wake, &m->lock, until))
		;
	n = m->got_on ? m->nwaiting : MIN(m->nwaiting, A_FEW);
	m->got_on = false;
	n = m->ending ? 0 : MAX(n, 1u);
	mutex_unlock(&m->lock);
	return n;
}

static void resume_calls(void *arg)
{
	struct mountd *m = arg;
	struct rpc_call *call;
	unsigned n;

	while ((n = wait_for_calls(m)) > 0)
		while (n-- > 0 && (call = next_call(m)))
			rpc_call_resume(call);
}

void mount_got_on(struct rpc_call *call)
{
	struct mountd *m = call->prog->ctx;
	struct mount_state *s = rpc_state(call);

	if (!s->since)
		return;
	mutex_lock(&m->lock);
	m->got_on = true;
	mutex_unlock(&m->lock);
}

int mount_wait_start(struct mountd *m)
{
	CDS_INIT_LIST_HEAD(&m->waiting);
	pthread_cond_init(&m->wake, NULL);
	return thread_start(&m->resumer, "mounts", resume_calls, m);
}

void mount_wait_stop(struct mountd *m)
{
	mutex_lock(&m->lock);
	m->ending = true;
	pthread_cond_signal(&m->wake);
	mutex_unlock(&m->lock);
	pthread_join(m->resumer, NULL);
	pthread_cond_destroy(&m->wake);
}
