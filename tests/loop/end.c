/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * end - one end of a connection: its queues, its completions, its end.
 *
 * All work of an end happens in its task, on its loop.  The end never calls its
 * owner with the link's lock held.
 */
#include "tests/loop/impl.h"

#include <errno.h>
#include <stdlib.h>

static struct end *end_of(struct fabric_conn *c)
{
	return container_of(c, struct end, base);
}

static void end_task(struct loop_task *t);

int loop_end_create(struct link *link, enum side side, struct end **out)
{
	struct end *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->base.dev = &link->p->device[side].base;
	e->base.ops = e->base.dev->ops;
	e->run = end_task;
	e->base.info.remote_inv = !link->p->options.no_invalidate;
	e->side = side;
	ref_get(&link->ref);
	e->link = link;
	loop_chance_init(e);
	mutex_lock(&link->lock);
	link->end[side] = e;
	mutex_unlock(&link->lock);
	mutex_lock(&link->p->lock);
	link->p->counts.ends++;
	mutex_unlock(&link->p->lock);
	*out = e;
	return 0;
}

static bool within(const struct fabric_queues *q, const struct fabric_limits *l)
{
	return q->send_wr >= 1 && q->send_wr <= l->max_wr &&
	       q->recv_wr >= 1 && q->recv_wr <= l->max_recv &&
	       q->send_sge >= 1 && q->send_sge <= l->max_sge;
}

int loop_end_setup(struct fabric_conn *c, struct loop *loop,
		   const struct fabric_queues *q)
{
	struct end *e = end_of(c);
	struct slot *sq;
	struct landing *rq;

	if (!within(q, &c->dev->limits)) {
		loop_violation(e->link->p, "queues beyond the limits");
		return -EINVAL;
	}
	sq = calloc(q->send_wr, sizeof(*sq));
	rq = calloc(q->recv_wr, sizeof(*rq));
	if (!sq || !rq) {
		free(sq);
		free(rq);
		return -ENOMEM;
	}
	mutex_lock(&e->link->lock);
	e->sq = sq;
	e->rq = rq;
	e->queues = *q;
	c->loop = loop;
	if (e->state == END_NEW)
		e->state = END_SETUP;
	mutex_unlock(&e->link->lock);
	return 0;
}

/* Returns the text of a step's mistake, or NULL. */
static const char *check_step(const struct end *e, const struct fabric_wr *wr)
{
	if (wr->nsge > e->queues.send_sge)
		return "more pieces than the queue was made for";
	if (wr->opcode == FABRIC_READ && wr->nsge > 1)
		return "too many pieces of a Read";
	if (wr->opcode == FABRIC_SEND_INV && !e->base.info.remote_inv)
		return "SEND_INV is not to be had";
	if (!wr->next && !wr->op)
		return "nothing says when the chain is done";
	return NULL;
}

static const char *end_check_chain(const struct end *e,
				   const struct fabric_wr *chain, unsigned *n,
				   unsigned *reads)
{
	const char *wrong = NULL;

	for (; chain && !wrong; chain = chain->next) {
		wrong = check_step(e, chain);
		++*n;
		*reads += chain->opcode == FABRIC_READ;
	}
	if (!wrong && e->sq_posted - e->sq_retired + *n > e->queues.send_wr)
		wrong = "the send queue is full";
	if (!wrong && e->reads + *reads > e->base.info.read_depth)
		wrong = "more Reads in flight than were agreed";
	return wrong;
}

static void enqueue(struct end *e, struct fabric_wr *chain)
{
	for (; chain; chain = chain->next) {
		struct slot *s = &e->sq[e->sq_posted++ % e->queues.send_wr];

		s->wr = chain;
		s->op = chain->op;
		s->is_read = chain->opcode == FABRIC_READ;
		s->reading = false;
		s->moved = 0;
	}
}

static void note_depth(struct end *e)
{
	struct loop_fabric_counts *c = &e->link->p->counts;

	mutex_lock(&e->link->p->lock);
	c->deepest_reads = MAX(c->deepest_reads, e->reads);
	c->deepest_queue = MAX(c->deepest_queue,
			       e->sq_posted - e->sq_retired);
	mutex_unlock(&e->link->p->lock);
}

int loop_end_post(struct fabric_conn *c, struct fabric_wr *chain)
{
	struct end *e = end_of(c);
	unsigned n = 0, reads = 0;
	const char *wrong;
	int err = 0;

	mutex_lock(&e->link->lock);
	if (loop_chance(e, e->link->p->options.chance.lose))
		loop_link_break(e->link, -ENETUNREACH, -ENETUNREACH);
	if (e->state != END_LIVE) {
		err = -ENOTCONN;
	} else if (loop_chance(e, e->link->p->options.chance.post)) {
		err = -ENOMEM;
	} else if ((wrong = end_check_chain(e, chain, &n, &reads))) {
		loop_violation(e->link->p, wrong);
		err = -ENOMEM;
	} else {
		e->reads += reads;
		enqueue(e, chain);
		note_depth(e);
		loop_end_kick(e);
	}
	mutex_unlock(&e->link->lock);
	return err;
}

int loop_end_post_recv(struct fabric_conn *c, struct fabric_recv *chain)
{
	struct end *e = end_of(c);
	struct device *d = &e->link->p->device[e->side];
	int err = 0;

	mutex_lock(&e->link->lock);
	if (e->state == END_NEW || e->state == END_BROKEN)
		err = -ENOTCONN;
	for (; chain && err == 0; chain = chain->next) {
		if (e->rq_posted - e->rq_delivered == e->queues.recv_wr ||
		    !loop_mr_local_ok(d, &chain->sge, FABRIC_LOCAL)) {
			loop_violation(e->link->p, "a Receive too many, or "
				       "without memory");
			err = -ENOMEM;
			break;
		}
		e->rq[e->rq_posted++ % e->queues.recv_wr] = (struct landing){
			.recv = chain };
	}
	mutex_unlock(&e->link->lock);
	return err;
}

void loop_end_close(struct fabric_conn *c)
{
	struct end *e = end_of(c);

	mutex_lock(&e->link->lock);
	if (e->side == PASSIVE)
		loop_link_break(e->link, 0, -ECONNRESET);
	else
		loop_link_break(e->link, -ECONNRESET, 0);
	mutex_unlock(&e->link->lock);
}

void loop_link_put(struct link *link)
{
	if (!ref_put(&link->ref))
		return;
	mutex_lock(&link->p->lock);
	cds_list_del(&link->node);
	mutex_unlock(&link->p->lock);
	pthread_mutex_destroy(&link->lock);
	free(link);
}

static void end_destroy(struct end *e)
{
	struct link *link = e->link;

	mutex_lock(&link->p->lock);
	link->p->counts.ends--;
	mutex_unlock(&link->p->lock);
	loop_write_forget(e);
	free(e->sq);
	free(e->rq);
	free(e);
	loop_link_put(link);
}

void loop_end_free(struct fabric_conn *c)
{
	struct end *e = end_of(c);
	struct link *link = e->link;
	bool later;

	mutex_lock(&link->lock);
	link->end[e->side] = NULL;
	loop_link_break(link, -ECONNRESET, -ECONNRESET);
	/* A rejected peer can have work under way. */
	later = e->kicked;
	e->freed = later;
	mutex_unlock(&link->lock);
	if (!later)
		end_destroy(e);
}

/*
 * Retires steps up to the next one that has an op and was executed.  A step
 * without an op keeps its slot until then.
 */
static bool end_retire(struct end *e, struct slot *out)
{
	for (unsigned i = e->sq_retired; i != e->sq_executed; i++) {
		struct slot *s = &e->sq[i % e->queues.send_wr];

		if (s->reading)
			return false;
		if (!s->op)
			continue;
		*out = *s;
		for (; e->sq_retired != i + 1; e->sq_retired++)
			e->reads -= e->sq[e->sq_retired %
					  e->queues.send_wr].is_read;
		return true;
	}
	return false;
}

static bool land(struct end *e, struct landing *out)
{
	if (e->rq_delivered == e->rq_completed)
		return false;
	loop_write_finish(e, e->rq_delivered);
	*out = e->rq[e->rq_delivered++ % e->queues.recv_wr];
	e->received++;
	return true;
}

static bool live_now(struct end *e)
{
	if (!e->live_due || e->state != END_LIVE)
		return false;
	if (e->side == PASSIVE &&
	    e->received < e->link->p->options.late_established)
		return false;
	if (e->quiet > 0) {
		e->quiet--;
		return false;
	}
	e->live_due = false;
	return true;
}

/* Returns how many units of one kind of work to do this time. */
static unsigned budget(struct end *e)
{
	return e->random ? loop_roll(&e->random, 4) : UINT32_MAX;
}

/* True if Sends, Writes and Reads are not to complete for a while, though the
 * peer's answer can be here. */
static bool withhold(struct end *e)
{
	if (e->withheld > 0)
		e->withheld--;
	else if (loop_chance(e, 16))
		e->withheld = loop_roll(&e->random, 24);
	return e->withheld > 0;
}

static void deliver_sends(struct end *e)
{
	unsigned n = withhold(e) ? 0 : budget(e);
	struct slot s;

	while (n-- > 0 && end_retire(e, &s)) {
		mutex_unlock(&e->link->lock);
		s.op->done(s.op, s.status, 0);
		mutex_lock(&e->link->lock);
	}
}

static void deliver_recvs(struct end *e)
{
	unsigned n = budget(e);
	struct landing l;

	while (n-- > 0 && land(e, &l)) {
		mutex_unlock(&e->link->lock);
		l.recv->op->done(l.recv->op, l.status, l.len);
		mutex_lock(&e->link->lock);
	}
}

static bool has_work(struct end *e)
{
	return (e->sq_executed != e->sq_posted && !e->stalled) ||
	       e->rq_delivered != e->rq_completed ||
	       (e->live_due && e->state == END_LIVE &&
		(e->side == ACTIVE || e->received >=
		 e->link->p->options.late_established));
}

/* True if an executed step's op was not called yet. */
static bool has_op(const struct end *e)
{
	for (unsigned i = e->sq_retired; i != e->sq_executed; i++)
		if (e->sq[i % e->queues.send_wr].op ||
		    e->sq[i % e->queues.send_wr].reading)
			return true;
	return false;
}

static void end_task(struct loop_task *t)
{
	struct end *e = container_of(t, struct end, task);
	struct link *link = e->link;

	mutex_lock(&link->lock);
	e->kicked = false;
	if (e->freed) {
		mutex_unlock(&link->lock);
		end_destroy(e);
		return;
	}
	if (live_now(e)) {
		mutex_unlock(&link->lock);
		e->base.established(&e->base);
		mutex_lock(&link->lock);
	}
	if (e->state == END_LIVE &&
	    loop_chance(e, link->p->options.chance.lose))
		loop_link_break(link, -ENETUNREACH, -ENETUNREACH);
	for (unsigned n = budget(e); n > 0 && e->state == END_LIVE &&
	     !e->stalled && e->sq_executed != e->sq_posted; n--)
		loop_end_execute(e);
	loop_end_read_on(e);
	loop_write_show(e);
	if (loop_chance(e, 2)) {
		deliver_recvs(e);
		deliver_sends(e);
	} else {
		deliver_sends(e);
		deliver_recvs(e);
	}
	if (has_work(e) || has_op(e)) {
		loop_end_kick(e);
	} else if (e->state == END_BROKEN && !e->kicked) {
		e->gone = true;
		mutex_unlock(&link->lock);
		/* The owner can free the end in here. */
		e->base.closed(&e->base, e->err);
		return;
	}
	mutex_unlock(&link->lock);
}
