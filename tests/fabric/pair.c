/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair - a passive and an active end of one fabric in this process.
 */
#include "tests/fabric/pair.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/util.h"

#define BUFS_SIZE	((RECVS + 1) * RECV_SIZE)
#define PRIVATE		"gannet"

struct fabric_queues pair_queues = { .send_wr = 128, .recv_wr = RECVS,
				     .send_sge = 4 };

static struct loop *listen_loop, *passive_loop, *active_loop;
static struct fabric_listener *listener;
static struct fabric_conn *requested;
static sem_t request_sem;

void pair_wait(sem_t *sem)
{
	struct timespec ts;
	int ret;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 60;
	while ((ret = sem_timedwait(sem, &ts)) && errno == EINTR)
		;
	CHECK(ret == 0);
}

static void request(struct fabric_listener *l, struct fabric_conn *c)
{
	CHECK(listen_loop == loop_current);
	requested = c;
	sem_post(&request_sem);
}

void pair_start(const struct fabric *f, const struct sockaddr *addr)
{
	int err;

	sem_init(&request_sem, 0, 0);
	CHECK(loop_create("listen", &listen_loop) == 0);
	CHECK(loop_create("passive", &passive_loop) == 0);
	CHECK(loop_create("active", &active_loop) == 0);
	CHECK(loop_start(listen_loop) == 0);
	CHECK(loop_start(passive_loop) == 0);
	CHECK(loop_start(active_loop) == 0);
	err = fabric_listen(f, addr, listen_loop, request, NULL, &listener);
	if (err) {
		fprintf(stderr, "cannot listen: %s\n", strerror(-err));
		exit(err == -ENODEV ? 77 : 1);
	}
}

void pair_stop(void)
{
	fabric_unlisten(listener);
	loop_stop(listen_loop);
	loop_stop(passive_loop);
	loop_stop(active_loop);
	loop_destroy(listen_loop);
	loop_destroy(passive_loop);
	loop_destroy(active_loop);
}

static void recv_done(struct fabric_op *op, int status, uint32_t len)
{
	struct pair_recv *r = container_of(op, struct pair_recv, op);
	struct pair_end *e = r->end;

	CHECK(e->loop == loop_current);
	CHECK(r->posted);
	if (atomic_load(&e->closed_calls))
		atomic_store(&e->late, true);
	r->posted = false;
	r->status = status;
	r->len = len;
	if (status) {
		atomic_fetch_add(&e->nfailed, 1);
		return;
	}
	e->got[atomic_load(&e->ngot) % ARRAY_SIZE(e->got)] = r;
	atomic_fetch_add(&e->ngot, 1);
	sem_post(&e->arrived);
}

static void established(struct fabric_conn *c)
{
	struct pair_end *e = c->upper;

	CHECK(e->loop == loop_current);
	sem_post(&e->established);
}

static void closed(struct fabric_conn *c, int err)
{
	struct pair_end *e = c->upper;

	CHECK(e->loop == loop_current);
	atomic_fetch_add(&e->closed_calls, 1);
	e->err = err;
	sem_post(&e->closed);
}

static void end_init(struct pair_end *e, struct fabric_conn *c,
		     struct loop *loop, unsigned access)
{
	CHECK(c->dev != NULL);
	e->conn = c;
	e->loop = loop;
	c->upper = e;
	c->established = established;
	c->closed = closed;
	sem_init(&e->arrived, 0, 0);
	sem_init(&e->established, 0, 0);
	sem_init(&e->closed, 0, 0);
	e->area = aligned_alloc(4096, AREA);
	e->bufs = aligned_alloc(4096, BUFS_SIZE);
	CHECK(e->area && e->bufs);
	memset(e->area, 0, AREA);
	CHECK(fabric_mr_create(c->dev, e->area, AREA, access,
			       &e->area_mr) == 0);
	fabric_mr_bind(e->area_mr, c);
	CHECK(fabric_mr_create(c->dev, e->area, AREA, FABRIC_LOCAL,
			       &e->source_mr) == 0);
	CHECK(fabric_mr_create(c->dev, e->bufs, BUFS_SIZE, FABRIC_LOCAL,
			       &e->bufs_mr) == 0);
	for (unsigned i = 0; i < RECVS; i++) {
		struct pair_recv *r = &e->recvs[i];

		r->end = e;
		r->data = e->bufs + i * RECV_SIZE;
		r->op.done = recv_done;
		r->recv.op = &r->op;
		r->recv.sge = (struct fabric_sge){ r->data, RECV_SIZE,
						   e->bufs_mr->lkey };
	}
}

static void start_here(void *arg)
{
	static const char text[] = PRIVATE;
	struct pair_end *e = arg;

	e->err = fabric_start(e->conn, text, sizeof(text), 16);
}

void pair_start_passive(struct pair_end *e)
{
	loop_call(e->loop, start_here, e);
}

void pair_ask(struct pair *p)
{
	static const char private_data[] = PRIVATE;
	struct fabric_conn *c;
	const struct fabric *f = p->fabric;

	memset(p, 0, sizeof(*p));
	p->fabric = f;
	CHECK(fabric_connect(f, (struct sockaddr *)&listener->local, &c) == 0);
	end_init(&p->active, c, active_loop,
		 FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE);
	CHECK(pair_setup(&p->active) == 0);
	loop_call(active_loop, start_here, &p->active);
	CHECK(p->active.err == 0);
	pair_wait(&request_sem);
	c = requested;
	CHECK(c->info.private_len >= sizeof(private_data));
	CHECK(memcmp(c->info.private_data, private_data,
		     sizeof(private_data)) == 0);
	CHECK(c->info.read_depth > 0);
	CHECK(c->info.peer.ss_family == listener->local.ss_family);
	CHECK(c->info.local.ss_family == listener->local.ss_family);
	end_init(&p->passive, c, passive_loop, FABRIC_READ_SINK);
}

static void setup_here(void *arg)
{
	struct pair_end *e = arg;

	e->err = fabric_setup(e->conn, e->loop, &pair_queues);
	if (e->err) {
		fprintf(stderr, "setup: %s\n", strerror(-e->err));
		return;
	}
	for (unsigned i = 0; i < RECVS; i++) {
		e->recvs[i].posted = true;
		e->recvs[i].recv.next = i + 1 < RECVS ? &e->recvs[i + 1].recv
						      : NULL;
	}
	e->err = fabric_post_recv(e->conn, &e->recvs[0].recv);
	for (unsigned i = 0; e->err && i < RECVS; i++)
		e->recvs[i].posted = false;
}

int pair_setup(struct pair_end *e)
{
	loop_call(e->loop, setup_here, e);
	return e->err;
}

void pair_accept(struct pair *p)
{
	CHECK(pair_setup(&p->passive) == 0);
	pair_start_passive(&p->passive);
	CHECK(p->passive.err == 0);
}

struct hello {
	uint64_t offset;
	uint32_t handle;
};

void pair_open(struct pair *p)
{
	struct pair_end *a = &p->active, *s = &p->passive;
	struct hello hello;
	struct pair_recv *r;

	pair_ask(p);
	pair_accept(p);
	pair_wait(&a->established);
	hello.offset = (uintptr_t)a->area;
	hello.handle = a->area_mr->rkey;
	CHECK(pair_send(a, &hello, sizeof(hello)) == 0);
	pair_wait(&s->established);
	r = pair_next(s);
	CHECK(r->len == sizeof(hello));
	memcpy(&hello, r->data, sizeof(hello));
	s->handle = hello.handle;
	s->offset = hello.offset;
	pair_again(r);
}

static void free_memory(struct pair_end *e)
{
	fabric_mr_destroy(e->area_mr);
	fabric_mr_destroy(e->source_mr);
	fabric_mr_destroy(e->bufs_mr);
	free(e->area);
	free(e->bufs);
}

static void reject_here(void *arg)
{
	fabric_reject(arg);
}

void pair_reject(struct pair *p)
{
	struct pair_end *e = &p->passive;

	if (e->conn->loop)		/* it was set up */
		loop_call(e->loop, reject_here, e->conn);
	else
		loop_call(listen_loop, reject_here, e->conn);
	free_memory(e);
}

static void free_here(void *arg)
{
	fabric_free(arg);
}

void pair_end_finish(struct pair_end *e)
{
	unsigned posted = 0;

	pair_wait(&e->closed);
	loop_call(e->loop, free_here, e->conn);
	for (unsigned i = 0; i < RECVS; i++)
		posted += e->recvs[i].posted;
	CHECK(posted == 0);
	CHECK(atomic_load(&e->closed_calls) == 1);
	CHECK(!atomic_load(&e->late));
	free_memory(e);
}

void pair_finish(struct pair *p)
{
	pair_end_finish(&p->active);
	pair_end_finish(&p->passive);
}

void pair_close(struct pair *p)
{
	fabric_close(p->active.conn);
	pair_finish(p);
}

static void op_done(struct fabric_op *op, int status, uint32_t len)
{
	struct pair_op *o = container_of(op, struct pair_op, op);

	o->status = status;
	CHECK(atomic_fetch_add(&o->calls, 1) == 0);
	sem_post(&o->sem);
}

void pair_op_init(struct pair_op *op)
{
	op->op.done = op_done;
	sem_init(&op->sem, 0, 0);
	atomic_init(&op->calls, 0);
	op->status = 1;
}

int pair_op_wait(struct pair_op *op)
{
	pair_wait(&op->sem);
	return op->status;
}

int pair_send(struct pair_end *e, const void *data, uint32_t len)
{
	struct pair_op op;
	struct fabric_sge sge = { e->bufs + RECVS * RECV_SIZE, len,
				  e->bufs_mr->lkey };
	struct fabric_wr wr = { .opcode = FABRIC_SEND, .op = &op.op,
				.sge = &sge, .nsge = 1 };
	int err;

	memcpy(sge.addr, data, len);
	pair_op_init(&op);
	err = fabric_post(e->conn, &wr);
	return err ? err : pair_op_wait(&op);
}

struct pair_recv *pair_next(struct pair_end *e)
{
	pair_wait(&e->arrived);
	CHECK(e->nread < atomic_load(&e->ngot));
	return e->got[e->nread++ % ARRAY_SIZE(e->got)];
}

static void again_here(void *arg)
{
	struct pair_recv *r = arg;

	r->posted = true;
	r->recv.next = NULL;
	if (fabric_post_recv(r->end->conn, &r->recv))
		r->posted = false;
}

void pair_again(struct pair_recv *r)
{
	loop_call(r->end->loop, again_here, r);
}
