/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jobs - work on several files at once, over one session.
 *
 * Operation: a thread that has the turn holds the lock.  When it has to wait it
 * gives the turn to one that is ready; if none is, it takes answers from the
 * session, and makes those ready that they are for.  One that leaves lets the
 * tool's thread, which waits for something, do that.
 */
#include "tools/nfs/jobs.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "tools/nfs/say.h"

enum { NEAR_US = 1000, FAR_US = 10000 };

/* A member takes turns: a job, or the tool that starts them. */
struct member {
	struct nfsc_session  base;	/* its view of the session */
	struct jobs	    *jobs;
	struct cds_list_head over;	/* its operations */
	struct cds_list_head link;	/* ready, or ended */
	pthread_cond_t	     turn;
	bool		     ready;	/* by link */
	bool		     left;	/* and can't have the turn */
};

struct running {
	struct member	 m;
	struct job	*job;
	uint64_t	 bytes;
	struct tool	 t;
	struct say_part	*says;
	pthread_t	 thread;
};

struct jobs {
	pthread_mutex_t	     lock;
	struct nfsc_session *s;
	struct member	    *turn;	/* NULL: all members have left, or wait
					 * for members that have */
	unsigned	     flying;	/* operations */
	/* Members that have left and wait for the lock get it before the next
	 * wait for an answer. */
	atomic_uint	     entering;
	pthread_cond_t	     entered;
	struct cds_list_head ready;	/* members, the first one is next */
	struct cds_list_head ended;	/* whose threads are to be joined */
	struct cds_list_head text;
	struct say_part	    *says;	/* the tool's */
	struct member	     tool;
	bool		     waits;	/* the tool does, for a job's end */
	unsigned	     n, most;
	uint64_t	     bytes, room;
	int		     worst;
};

/* A member that has left is not ready before it enters: it would have the turn
 * while others wait.  It can have operations under way. */
static void ready_member(struct member *m)
{
	if (m->ready || m->left)
		return;
	cds_list_add_tail(&m->link, &m->jobs->ready);
	m->ready = true;
}

static void pass_turn(struct jobs *j)
{
	struct member *m;

	while (cds_list_empty(&j->ready) && (j->flying > 0 || j->entering)) {
		struct nfsc_op *op;

		if (j->entering) {
			pthread_cond_wait(&j->entered, &j->lock);
			continue;
		}
		op = session_wait(j->s);
		j->flying--;
		m = op->member;
		cds_list_add_tail(&op->link, &m->over);
		ready_member(m);
	}
	j->turn = NULL;
	if (cds_list_empty(&j->ready))
		return;
	m = cds_list_first_entry(&j->ready, struct member, link);
	cds_list_del(&m->link);
	m->ready = false;
	j->turn = m;
	pthread_cond_signal(&m->turn);
}

static void await_turn(struct member *m)
{
	struct jobs *j = m->jobs;

	while (j->turn != m)
		pthread_cond_wait(&m->turn, &j->lock);
}

/* ---- the session of a member */

static int submit_member(struct nfsc_session *base, struct nfsc_op *op)
{
	struct member *m = container_of(base, struct member, base);
	int err;

	op->member = m;
	err = session_submit(m->jobs->s, op);
	if (err == 0)
		m->jobs->flying++;
	return err;
}

static struct nfsc_op *wait_member(struct nfsc_session *base)
{
	struct member *m = container_of(base, struct member, base);
	struct nfsc_op *op;

	while (cds_list_empty(&m->over)) {
		pass_turn(m->jobs);
		await_turn(m);
	}
	op = cds_list_first_entry(&m->over, struct nfsc_op, link);
	cds_list_del(&op->link);
	return op;
}

static void *keep_member(struct nfsc_session *base, void *mem, size_t len,
			 enum nfsc_kind kind)
{
	struct member *m = container_of(base, struct member, base);

	return session_keep(m->jobs->s, mem, len, kind);
}

static void release_member(struct nfsc_session *base, void *kept)
{
	struct member *m = container_of(base, struct member, base);

	session_release(m->jobs->s, kept);
}

/* If no other is ready, the tool's thread has the turn meanwhile, unless it has
 * left itself. */
static void leave_member(struct nfsc_session *base)
{
	struct member *m = container_of(base, struct member, base);
	struct jobs *j = m->jobs;

	m->left = true;
	if (cds_list_empty(&j->ready))
		ready_member(&j->tool);
	j->turn = NULL;
	if (!cds_list_empty(&j->ready))
		pass_turn(j);
	mutex_unlock(&j->lock);
}

static void enter_member(struct nfsc_session *base)
{
	struct member *m = container_of(base, struct member, base);
	struct jobs *j = m->jobs;

	j->entering++;
	mutex_lock(&j->lock);
	j->entering--;
	pthread_cond_signal(&j->entered);
	m->left = false;
	ready_member(m);
	if (!j->turn)
		pass_turn(j);
	await_turn(m);
}

static const struct nfsc_session_ops ops = {
	.submit = submit_member,
	.wait = wait_member,
	.leave = leave_member,
	.enter = enter_member,
	.keep = keep_member,
	.release = release_member,
};

static void init_member(struct member *m, struct jobs *j)
{
	m->base = (struct nfsc_session){ &ops, j->s->config };
	m->jobs = j;
	CDS_INIT_LIST_HEAD(&m->over);
	pthread_cond_init(&m->turn, NULL);
}

/* ---- jobs */

static void end_job(struct jobs *j, struct running *r, int err)
{
	j->worst = MAX(j->worst, err);
	j->n--;
	j->bytes -= r->bytes;
	say_end(&j->text, r->says);
}

static void work_job(void *arg)
{
	struct running *r = arg;
	struct jobs *j = r->m.jobs;

	mutex_lock(&j->lock);
	await_turn(&r->m);
	say_into(r->says);
	end_job(j, r, r->job->run(r->job, &r->t));
	cds_list_add(&r->m.link, &j->ended);
	if (j->waits)
		ready_member(&j->tool);
	pass_turn(j);
	mutex_unlock(&j->lock);
}

static void reap(struct jobs *j)
{
	struct running *r, *next;

	cds_list_for_each_entry_safe(r, next, &j->ended, m.link) {
		pthread_join(r->thread, NULL);
		pthread_cond_destroy(&r->m.turn);
		free(r);
	}
	CDS_INIT_LIST_HEAD(&j->ended);
}

/* Waits for a job's end; some job runs. */
static void await_end(struct jobs *j)
{
	j->waits = true;
	pass_turn(j);
	await_turn(&j->tool);
	j->waits = false;
	reap(j);
}

static int do_here(struct tool *t, struct job *job)
{
	int err = job->run(job, t);

	if (t->jobs)
		t->jobs->worst = MAX(t->jobs->worst, err);
	return err;
}

int jobs_start(struct tool *t, struct job *job)
{
	struct jobs *j = t->jobs;
	struct running *r = j ? calloc(1, sizeof(*r)) : NULL;

	if (!r)
		return do_here(t, job);
	while (j->n > 0 && (j->n >= j->most || j->bytes + job->bytes > j->room))
		await_end(j);
	init_member(&r->m, j);
	r->job = job;
	r->bytes = job->bytes;
	r->t = *t;
	r->t.s = &r->m.base;
	r->t.jobs = NULL;
	if (thread_start(&r->thread, "copy", work_job, r) < 0) {
		pthread_cond_destroy(&r->m.turn);
		free(r);
		return do_here(t, job);
	}
	/* The tool's messages come before the job's, or behind. */
	say_end(&j->text, j->says);
	r->says = say_begin(&j->text);
	j->says = say_begin(&j->text);
	say_into(j->says);
	j->n++;
	j->bytes += r->bytes;
	ready_member(&r->m);
	return j->worst;
}

int jobs_wait(struct tool *t)
{
	struct jobs *j = t->jobs;

	if (!j)
		return TOOL_OK;
	while (j->n > 0)
		await_end(j);
	return j->worst;
}

unsigned jobs_for(const struct tool *t)
{
	return t->rtt_us < NEAR_US ? 16 : t->rtt_us < FAR_US ? 32 : 64;
}

uint64_t jobs_memory(const struct tool *t, uint64_t size)
{
	uint32_t block;
	unsigned n;

	copy_ring_size(t, UINT32_MAX, size, &block, &n);
	return (uint64_t)block * n;
}

/* A job has a file open, and keeps the directories above it. */
static void raise_files(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
}

void jobs_open(struct tool *t, unsigned most)
{
	struct jobs *j = most > 1 ? calloc(1, sizeof(*j)) : NULL;

	t->jobs = j;
	if (!j)
		return;
	raise_files();
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->entered, NULL);
	j->s = t->s;
	j->most = most;
	j->room = 2 * jobs_memory(t, UINT64_MAX);
	CDS_INIT_LIST_HEAD(&j->ready);
	CDS_INIT_LIST_HEAD(&j->ended);
	CDS_INIT_LIST_HEAD(&j->text);
	init_member(&j->tool, j);
	t->s = &j->tool.base;
	mutex_lock(&j->lock);
	j->turn = &j->tool;
}

int jobs_close(struct tool *t)
{
	int worst = jobs_wait(t);
	struct jobs *j = t->jobs;

	if (!j)
		return worst;
	mutex_unlock(&j->lock);
	reap(j);
	say_end(&j->text, j->says);
	t->s = j->s;
	t->jobs = NULL;
	pthread_cond_destroy(&j->tool.turn);
	pthread_cond_destroy(&j->entered);
	pthread_mutex_destroy(&j->lock);
	free(j);
	return worst;
}
