/* SPDX-License-Identifier: BSD-2-Clause */
/* exec - carries out steps of a send queue, and breaks links on errors. */
#include "tests/loop/impl.h"

#include <errno.h>
#include <string.h>

#include "lib/log.h"

static struct device *device_of(struct link *link, enum side side)
{
	return &link->p->device[side];
}

void loop_violation(struct provider *p, const char *what)
{
	log_err("loop fabric: %s", what);
	mutex_lock(&p->lock);
	p->counts.violations++;
	mutex_unlock(&p->lock);
}

void loop_end_kick(struct end *e)
{
	if (e->kicked || e->gone || !e->base.loop)
		return;
	e->kicked = true;
	loop_post(e->base.loop, &e->task, e->run);
}

/* The first Read that is under way fails, and all behind it. */
static void flush_from_read(struct end *e)
{
	bool flush = false;

	for (unsigned i = e->sq_retired; i != e->sq_executed; i++) {
		struct slot *s = &e->sq[i % e->queues.send_wr];

		flush = flush || s->reading;
		s->reading = false;
		if (flush && s->status == 0)
			s->status = -ECANCELED;
	}
}

static void break_end(struct end *e, int err)
{
	if (!e || e->state == END_BROKEN)
		return;
	e->state = END_BROKEN;
	e->err = err;
	flush_from_read(e);
	while (e->sq_executed != e->sq_posted)
		e->sq[e->sq_executed++ % e->queues.send_wr].status =
			-ECANCELED;
	while (e->rq_completed != e->rq_posted)
		e->rq[e->rq_completed++ % e->queues.recv_wr].status =
			-ECANCELED;
	loop_end_kick(e);
}

void loop_link_break(struct link *link, int passive_err, int active_err)
{
	break_end(link->end[PASSIVE], passive_err);
	break_end(link->end[ACTIVE], active_err);
}

static uint64_t exec_total(const struct fabric_wr *wr)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < wr->nsge; i++)
		len += wr->sge[i].len;
	return len;
}

static void exec_add(struct provider *p, unsigned *counter)
{
	mutex_lock(&p->lock);
	(*counter)++;
	mutex_unlock(&p->lock);
}

/* Copies between a step's local memory and @remote. */
static void copy(const struct fabric_wr *wr, uint8_t *remote, bool out)
{
	for (unsigned i = 0; i < wr->nsge; i++) {
		const struct fabric_sge *s = &wr->sge[i];

		if (s->len > 0)
			memcpy(out ? remote : s->addr, out ? s->addr : remote,
			       s->len);
		remote += s->len;
	}
}

/* A Write or a Read. */
static int move(struct end *e, const struct fabric_wr *wr)
{
	struct provider *p = e->link->p;
	struct device *peer = device_of(e->link, !e->side);
	bool out = wr->opcode == FABRIC_WRITE;
	void *remote;

	exec_add(p, out ? &p->counts.writes : &p->counts.reads);
	pthread_rwlock_rdlock(&peer->mr_lock);
	remote = loop_mr_remote(&e->link->end[!e->side]->base, wr->handle,
				wr->offset, exec_total(wr),
				out ? FABRIC_REMOTE_WRITE :
				FABRIC_REMOTE_READ);
	if (remote && !(out && loop_write_stage(e, wr, (uint32_t)
							exec_total(wr))))
		copy(wr, remote, out);
	pthread_rwlock_unlock(&peer->mr_lock);
	if (remote)
		return 0;
	exec_add(p, &p->counts.refused);
	return -EREMOTEIO;
}

static int deliver(struct end *e, const struct fabric_wr *wr)
{
	struct provider *p = e->link->p;
	struct end *peer = e->link->end[!e->side];
	struct landing *l;
	uint64_t len = exec_total(wr);

	exec_add(p, &p->counts.sends);
	if (peer->rq_completed == peer->rq_posted) {
		exec_add(p, &p->counts.rnr);
		return -EIO;
	}
	l = &peer->rq[peer->rq_completed++ % peer->queues.recv_wr];
	if (len > l->recv->sge.len) {
		exec_add(p, &p->counts.too_long);
		l->status = -EMSGSIZE;
		return -EIO;
	}
	l->recv->has_invalidated = wr->opcode == FABRIC_SEND_INV;
	if (l->recv->has_invalidated) {
		exec_add(p, &p->counts.invalidates);
		l->recv->invalidated = wr->invalidate;
		loop_write_finish(peer, peer->rq_completed - 1);
		if (!loop_mr_invalidate(&peer->base, wr->invalidate)) {
			exec_add(p, &p->counts.refused);
			l->status = -EIO;
			return -EREMOTEIO;
		}
	}
	copy(wr, l->recv->sge.addr, true);
	l->status = 0;
	l->len = (uint32_t)len;
	loop_end_kick(peer);
	return 0;
}

/* The next piece of a Read. */
static int read_on(struct end *e, struct slot *s)
{
	int err = loop_read_some(e, s);

	if (err < 0)
		exec_add(e->link->p, &e->link->p->counts.refused);
	return err;
}

/* True if the caller's side of the step is as fabric.h asks. */
static bool local_ok(struct end *e, const struct fabric_wr *wr)
{
	unsigned access = wr->opcode == FABRIC_READ ? FABRIC_READ_SINK :
			  FABRIC_LOCAL;

	for (unsigned i = 0; i < wr->nsge; i++)
		if (wr->sge[i].len > 0 &&
		    !loop_mr_local_ok(device_of(e->link, e->side), &wr->sge[i],
				      access))
			return false;
	return true;
}

static int carry_out(struct end *e, struct slot *s, unsigned nth)
{
	const struct fabric_wr *wr = s->wr;
	struct provider *p = e->link->p;

	if (nth == p->options.break_nth ||
	    loop_chance(e, p->options.chance.lose))
		return -ECONNRESET;
	if (nth == p->options.fail_nth ||
	    loop_chance(e, p->options.chance.fail))
		return -EIO;
	if (!local_ok(e, wr)) {
		loop_violation(p, "memory that is not registered for this");
		return -EIO;
	}
	if (wr->opcode == FABRIC_SEND || wr->opcode == FABRIC_SEND_INV)
		return deliver(e, wr);
	if (wr->opcode == FABRIC_READ && e->random) {
		exec_add(p, &p->counts.reads);
		return read_on(e, s);
	}
	return move(e, wr);
}

/* The step before @i failed; if it had no op, the next op reports that. */
static void tell_next(struct end *e, unsigned i, int status)
{
	struct slot *s = &e->sq[(i - 1) % e->queues.send_wr];

	while (!s->op && i != e->sq_posted)
		s = &e->sq[i++ % e->queues.send_wr];
	s->status = status;
}

/* The step @s, the one before @next, failed: so does the connection. */
static void step_failed(struct end *e, struct slot *s, unsigned next,
			int status)
{
	s->reading = true;		/* it flushes the steps behind it */
	if (status == -ECONNRESET)
		status = s->status = -ECANCELED;
	if (e->side == PASSIVE)
		loop_link_break(e->link, status, -ECONNRESET);
	else
		loop_link_break(e->link, -ECONNRESET, status);
	tell_next(e, next, status);
}

void loop_end_execute(struct end *e)
{
	struct slot *s = &e->sq[e->sq_executed % e->queues.send_wr];
	struct provider *p = e->link->p;
	unsigned nth, done;
	int status;

	mutex_lock(&p->lock);
	nth = ++p->counts.operations;
	mutex_unlock(&p->lock);
	e->stalled = nth == p->options.stall_nth;
	if (e->stalled)
		return;
	status = s->status = carry_out(e, s, nth);
	done = ++e->sq_executed;
	if (status < 0)
		step_failed(e, s, done, status);
}

void loop_end_read_on(struct end *e)
{
	for (unsigned i = e->sq_retired; i != e->sq_executed; i++) {
		struct slot *s = &e->sq[i % e->queues.send_wr];
		int status;

		if (!s->reading || e->state != END_LIVE ||
		    loop_chance(e, 2))
			continue;
		status = s->status = read_on(e, s);
		if (status < 0)
			step_failed(e, s, i + 1, status);
	}
}
