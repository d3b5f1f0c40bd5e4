/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls by RPC-over-RDMA, over any fabric (RFC 8267 says what goes in
 * chunks).
 *
 * Operation: a thread of the run has a loop of its own, on which its
 * connections' requesters live.  Everything happens there, in done() of the
 * reply before; the thread itself waits.
 *
 * Ownership: a wire is a connection's; a lane is a slot's, with the memory of
 * one call.
 */
#include "tests/bench/load/load.h"

#include <errno.h>
#include <netinet/in.h>
#include <semaphore.h>
#include <stdlib.h>

#include "client/rpcrdma/client.h"
#include "lib/util.h"
#include "transport/rpcrdma/requester.h"

struct lane {
	struct rpcrdma_request q;
	struct slot	*slot;
	uint8_t		 call[LOAD_HEAD_MAX];
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
	int		 err;
	unsigned	 up;
};

static void start_lane(struct lane *l, uint64_t now);

static void fail(struct side *s, int err)
{
	if (!s->err)
		s->err = err;
	sem_post(&s->changed);
}

static int take(struct lane *l, uint64_t now)
{
	struct rpcrdma_request *q = &l->q;
	struct xdr_in x;

	if (q->status)
		return q->status;
	if (q->nwrites && q->written[0] != l->slot->len)
		return -EBADMSG;
	xdr_in_init(&x, q->reply_data, q->reply_len);
	return load_reply(l->slot, &x, now);
}

static void lane_done(struct rpcrdma_request *q)
{
	struct lane *l = container_of(q, struct lane, q);
	struct wire *w = l->slot->conn->wire;
	uint64_t now = load_now();
	int err = take(l, now);

	w->side->outstanding--;
	load_tick(w->side->t);
	if (err)
		fail(w->side, err);
	else
		start_lane(l, now);
	if (!w->side->outstanding)
		sem_post(&w->side->changed);
}

/* The chunks that go with a call. */
static void attach(struct lane *l, const struct call *c)
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
	if (l->slot->kind == CALL_READ) {
		q->nwrites = 1;
		q->write[0] = rpcrdma_memory_at(l->memory,
						       l->slot->len);
		l->slot->moved = l->memory;
	}
	if (l->slot->kind == CALL_READDIRPLUS)
		q->reply = rpcrdma_memory_at(l->memory,
						    (uint32_t)l->size);
}

static void start_lane(struct lane *l, uint64_t now)
{
	struct wire *w = l->slot->conn->wire;
	struct call c;

	xdr_out_init(&c.x, l->call, sizeof(l->call));
	if (w->side->err || !load_start_slot(l->slot, &c, now))
		return;
	l->q.call = l->call;
	l->q.call_len = (uint32_t)xdr_out_len(&c.x);
	l->q.done = lane_done;
	attach(l, &c);
	w->side->outstanding++;
	rpcrdma_requester_call(w->r, &l->q);
}

static void connected(void *arg)
{
	struct wire *w = arg;

	w->side->up++;
	sem_post(&w->side->changed);
}

/* Also when it ends as it should, which nobody waits for. */
static void closed(void *arg, int err)
{
	struct wire *w = arg;

	fail(w->side, err ? err : -ECONNRESET);
}

static int wire_init(struct wire *w, struct side *s, struct load_conn *c)
{
	const struct load_options *o = c->thread->run->target->opt;
	unsigned depth = c->thread->run->depth;
	struct rpcrdma_requester_options ro = {
		.credits = depth, .connected = connected, .closed = closed,
		.arg = w,
	};
	struct sockaddr_storage to = c->thread->run->target->nfs;

	w->conn = c;
	w->side = s;
	c->wire = w;
	w->lanes = calloc(depth, sizeof(*w->lanes));
	if (!w->lanes)
		return -ENOMEM;
	for (unsigned i = 0; i < depth; i++) {
		struct lane *l = &w->lanes[i];

		l->slot = &c->slots[i];
		l->size = MAX(o->block, LOAD_REPLY_MAX);
		l->memory = calloc(1, l->size);
		if (!l->memory)
			return -ENOMEM;
	}
	((struct sockaddr_in *)&to)->sin_port = htons((uint16_t)o->rdma_port);
	return rpcrdma_requester_create(&s->fabric, (struct sockaddr *)&to,
					s->loop, &ro, &w->r);
}

static void wire_fini(struct wire *w, unsigned depth)
{
	if (w->r)
		rpcrdma_requester_destroy(w->r);
	for (unsigned i = 0; w->lanes && i < depth; i++)
		free(w->lanes[i].memory);
	free(w->lanes);
}

static void wait_change(struct side *s)
{
	while (sem_wait(&s->changed) && errno == EINTR)
		;
}

/* On the loop. */
static void begin(void *arg)
{
	struct side *s = arg;
	uint64_t now = load_now();

	load_begin(s->t);
	for (unsigned i = 0; i < s->t->nconns; i++)
		for (unsigned j = 0; j < s->t->run->depth; j++)
			start_lane(&s->wires[i].lanes[j], now);
}

struct look {
	struct side	*side;
	unsigned	 up, outstanding;
	int		 err;
};

/* On the loop. */
static void look(void *arg)
{
	struct look *l = arg;

	l->up = l->side->up;
	l->outstanding = l->side->outstanding;
	l->err = l->side->err;
}

/* On the loop. */
static void end(void *arg)
{
	struct side *s = arg;

	load_end(s->t);
}

static int drive(struct side *s)
{
	struct look l = { .side = s };

	loop_call(s->loop, look, &l);
	while (!l.err && l.up < s->t->nconns) {
		wait_change(s);
		loop_call(s->loop, look, &l);
	}
	if (!l.err)
		loop_call(s->loop, begin, s);
	do {
		loop_call(s->loop, look, &l);
		if (l.outstanding && !l.err)
			wait_change(s);
	} while (l.outstanding && !l.err);
	loop_call(s->loop, end, s);
	if (!l.err)
		load_rest(s->t);
	return l.err;
}

static int side_init(struct side *s, struct load_thread *t)
{
	const struct gannet_rpcrdma_options o = {
		.fabric = t->run->transport == &load_iwarp ?
			  GANNET_RPCRDMA_IWARP : GANNET_RPCRDMA_VERBS,
	};
	int err;

	s->t = t;
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
		wire_fini(&s->wires[i], s->t->run->depth);
	if (s->loop)
		loop_destroy(s->loop);
	if (s->fabric_destroy)
		s->fabric_destroy(&s->fabric);
	free(s->wires);
	sem_destroy(&s->changed);
}

static int run(struct load_thread *t)
{
	struct side s = { 0 };
	int err = side_init(&s, t);

	for (unsigned i = 0; !err && i < t->nconns; i++)
		err = wire_init(&s.wires[i], &s, &t->run->conns[t->first + i]);
	if (!err)
		err = drive(&s);
	side_fini(&s);
	return err;
}

const struct transport load_iwarp = { "iwarp", run };
const struct transport load_verbs = { "verbs", run };
