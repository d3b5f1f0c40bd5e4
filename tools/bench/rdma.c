/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma - calls by RPC-over-RDMA, over any fabric (RFC 8267 defines the data
 * that goes in chunks).
 *
 * Operation: a thread of the run has a separate loop, on which its connections'
 * requesters live.  Everything happens there, in done() of the reply before, or
 * by a timer if a rate is set; the thread itself waits.
 *
 * Ownership: a wire is a connection's; a lane is a slot's, with the memory of
 * one call.
 */
#include "tools/bench/bench.h"

#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rpcrdma/client.h"
#include "transport/rpcrdma/requester.h"

struct lane {
	struct rpcrdma_request q;
	struct slot	*slot;
	bool		 out;		/* its call is */
	uint8_t		*call;		/* owned */
	size_t		 head_max;
	uint8_t		*memory;	/* owned: READ data, a long reply */
	size_t		 size;
};

struct wire {
	struct load_conn *conn;
	struct side	*side;
	struct rpcrdma_requester *r;	/* owned */
	struct lane	*lanes;		/* owned */
};

/* A thread's state. */
struct side {
	struct load_thread *t;
	struct loop	*loop;
	struct fabric	 fabric;
	void		 (*fabric_destroy)(struct fabric *f);
	struct wire	*wires;		/* owned */
	sem_t		 changed;
	/* The loop's; read by the thread after sem_wait(). */
	unsigned	 outstanding;
	uint64_t	 replies;
	int		 err;
	unsigned	 up;
	struct loop_timer next;		/* to start calls, with a rate */
};

static void start_lane(struct lane *l, uint64_t now);

static void fail_side(struct side *s, int err)
{
	if (!s->err)
		s->err = err;
	sem_post(&s->changed);
}

static int take_reply_at(struct lane *l, uint64_t now)
{
	struct rpcrdma_request *q = &l->q;
	struct xdr_in x;

	if (q->status)
		return q->status;
	l->slot->moved_len = q->nwrites ? q->written[0] : 0;
	xdr_in_init(&x, q->reply_data, q->reply_len);
	return load_reply(l->slot, &x, now);
}

static void lane_done(struct rpcrdma_request *q)
{
	struct lane *l = container_of(q, struct lane, q);
	struct wire *w = l->slot->conn->wire;
	uint64_t now = clock_ns();
	int err = take_reply_at(l, now);

	l->out = false;
	w->side->replies++;
	w->side->outstanding--;
	load_tick(w->side->t);
	if (err)
		fail_side(w->side, err);
	else
		start_lane(l, now);
	if (!w->side->outstanding)
		sem_post(&w->side->changed);
}

static bool is_wrapped_lane(const struct lane *l)
{
	const struct nfsc_flavor *f = l->slot->conn->flavor;

	return f && f->wraps;
}

/* The chunks that go with a call. */
static void attach_chunks(struct lane *l, const struct call *c)
{
	struct rpcrdma_request *q = &l->q;

	q->nreads = q->nwrites = 0;
	q->reply = rpcrdma_memory_at(NULL, 0);
	if (c->data_len) {
		q->nreads = 1;
		q->read[0].position = q->call_len;
		/* Only read, but chunks know no const. */
		q->read[0].mem.addr = (void *)(uintptr_t)c->data;
		q->read[0].mem.len = c->data_len;
	}
	if (l->slot->op.kind == NFS_OP_READ && !is_wrapped_lane(l)) {
		q->nwrites = 1;
		q->write[0] = rpcrdma_memory_at(l->memory, l->slot->op.count);
		l->slot->moved = l->memory;
	} else if (l->slot->op.kind == NFS_OP_READ ||
		 l->slot->op.kind == NFS_OP_READDIRPLUS)
		q->reply = rpcrdma_memory_at(l->memory, (uint32_t)l->size);
}

static void start_lane(struct lane *l, uint64_t now)
{
	struct wire *w = l->slot->conn->wire;
	struct call c;

	xdr_out_init(&c.x, l->call, l->head_max);
	if (w->side->err || !load_start_slot(l->slot, &c, now))
		return;
	l->q.call = l->call;
	l->q.call_len = (uint32_t)xdr_out_len(&c.x);
	l->q.done = lane_done;
	attach_chunks(l, &c);
	l->out = true;
	w->side->outstanding++;
	rpcrdma_requester_call(w->r, &l->q);
}

static void side_connected(void *arg)
{
	struct wire *w = arg;

	w->side->up++;
	sem_post(&w->side->changed);
}

/* Also when it ends normally, which no thread waits for. */
static void side_closed(void *arg, int err)
{
	struct wire *w = arg;

	fail_side(w->side, err ? err : -ECONNRESET);
}

static int lane_group_init(struct wire *w, struct side *s, struct load_conn *c)
{
	const struct target *t = c->thread->run->target;
	unsigned depth = c->thread->run->depth;
	struct rpcrdma_requester_options ro = {
		.credits = depth, .connected = side_connected,
		.closed = side_closed, .arg = w,
	};

	w->conn = c;
	w->side = s;
	c->wire = w;
	w->lanes = calloc(depth, sizeof(*w->lanes));
	if (!w->lanes)
		return -ENOMEM;
	for (unsigned i = 0; i < depth; i++) {
		struct lane *l = &w->lanes[i];

		l->slot = &c->slots[i];
		l->head_max = load_head_max(t);
		l->call = malloc(l->head_max);
		/* A reply that is wrapped has the rest in it. */
		l->size = MAX(t->opt->block, LOAD_REPLY_MAX) + LOAD_HEAD_MAX +
			  (c->flavor ? c->flavor->extra : 0);
		l->memory = calloc(1, l->size);
		if (!l->call || !l->memory)
			return -ENOMEM;
	}
	return rpcrdma_requester_create(&s->fabric,
					(const struct sockaddr *)&t->at,
					s->loop, &ro, &w->r);
}

static void lane_group_fini(struct wire *w, unsigned depth)
{
	if (w->r)
		rpcrdma_requester_destroy(w->r);
	for (unsigned i = 0; w->lanes && i < depth; i++) {
		free(w->lanes[i].memory);
		free(w->lanes[i].call);
	}
	free(w->lanes);
}

/* Waits for a change, or a second. */
static void await_change(struct side *s)
{
	uint64_t until = clock_ns() + NS_PER_S;
	const struct timespec at = { (time_t)(until / NS_PER_S),
				     (long)(until % NS_PER_S) };

	while (sem_clockwait(&s->changed, CLOCK_MONOTONIC, &at) &&
	       errno == EINTR)
		;
}

static void start_lanes(struct side *s)
{
	uint64_t now = clock_ns();

	for (unsigned i = 0; i < s->t->nconns; i++)
		for (unsigned j = 0; j < s->t->run->depth; j++)
			if (!s->wires[i].lanes[j].out)
				start_lane(&s->wires[i].lanes[j], now);
}

static void start_next(struct loop_timer *timer)
{
	struct side *s = container_of(timer, struct side, next);

	load_tick(s->t);
	start_lanes(s);
	if (load_waits(s->t) && !s->err)
		loop_timer_set(s->loop, &s->next, 1);
	else
		sem_post(&s->changed);
}

/* On the loop. */
static void begin_side(void *arg)
{
	struct side *s = arg;

	load_begin(s->t);
	start_lanes(s);
	if (load_waits(s->t))
		loop_timer_set(s->loop, &s->next, 1);
}

struct look {
	struct side	*side;
	bool		 is_up, is_done;
	uint64_t	 replies;
	int		 err;
};

/* On the loop. */
static void look_at_side(void *arg)
{
	struct look *l = arg;
	const struct side *s = l->side;

	l->is_up = s->up == s->t->nconns;
	l->is_done = !s->outstanding && !load_waits(s->t);
	/* Without outstanding calls no reply is due. */
	l->replies = s->replies + !s->outstanding;
	l->err = s->err;
}

/* On the loop. */
static void end_side(void *arg)
{
	struct side *s = arg;

	loop_timer_cancel(s->loop, &s->next);
	load_end(s->t);
}

/* Waits until @done, in @l, is true.  0, or -errno: -ETIMEDOUT when nothing
 * came for too long. */
static int await_side(struct side *s, struct look *l, const bool *done)
{
	uint64_t most = (uint64_t)s->t->run->target->opt->timeout_ms *
			NS_PER_MS;
	uint64_t heard = clock_ns(), replies = 0;

	for (;;) {
		loop_call(s->loop, look_at_side, l);
		if (l->err || *done)
			return l->err;
		if (l->replies != replies)
			heard = clock_ns();
		else if (clock_ns() - heard > most)
			return -ETIMEDOUT;
		replies = l->replies;
		await_change(s);
	}
}

static int drive_side(struct side *s)
{
	struct look l = { .side = s };
	int err = await_side(s, &l, &l.is_up);

	if (!err) {
		loop_call(s->loop, begin_side, s);
		err = await_side(s, &l, &l.is_done);
	}
	loop_call(s->loop, end_side, s);
	if (!err)
		load_rest(s->t);
	return err;
}

static int side_init(struct side *s, struct load_thread *t)
{
	const struct target *to = t->run->target;
	const struct gannet_rpcrdma_options o = {
		.fabric = to->t->url.fabric,
		.flags = load_reserves(to) ? GANNET_RPCRDMA_RESERVED_PORT : 0,
		.connect_ms = (unsigned)to->opt->timeout_ms,
	};
	int err;

	s->t = t;
	s->next.fire = start_next;
	sem_init(&s->changed, 0, 0);
	s->wires = calloc(t->nconns, sizeof(*s->wires));
	if (!s->wires)
		return -ENOMEM;
	err = client_fabric(&o, &s->fabric, &s->fabric_destroy);
	if (err) {
		s->fabric_destroy = NULL;
		return err;
	}
	err = loop_create("load", &s->loop);
	return err ? err : loop_start(s->loop);
}

static void side_fini(struct side *s)
{
	for (unsigned i = 0; s->wires && i < s->t->nconns; i++)
		lane_group_fini(&s->wires[i], s->t->run->depth);
	if (s->loop)
		loop_destroy(s->loop);
	if (s->fabric_destroy)
		s->fabric_destroy(&s->fabric);
	free(s->wires);
	sem_destroy(&s->changed);
}

static int run_rdma(struct load_thread *t)
{
	struct side s = { 0 };
	int err = side_init(&s, t);

	for (unsigned i = 0; !err && i < t->nconns; i++)
		err = lane_group_init(&s.wires[i], &s,
				      &t->run->conns[t->first + i]);
	if (!err)
		err = drive_side(&s);
	side_fini(&s);
	return err;
}

const struct transport load_rdma = { run_rdma };
