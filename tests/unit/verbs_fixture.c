/* SPDX-License-Identifier: BSD-2-Clause */
/* Begin and end of the verbs provider's tests. */
#include "tests/unit/verbs_fixture.h"

#include <arpa/inet.h>
#include <string.h>

#include "tests/unit/runner.h"

struct fabric fabric;
struct fabric_listener *listener;
struct fabric_conn *conn;
struct loop *loop, *conn_loop;
sem_t requested, established, closed;
atomic_int closed_calls;
struct op recv_ops[RECVS];
struct fabric_recv recvs[RECVS];
struct fabric_wr wrs[STEPS];
struct fabric_sge sges[STEPS + 4];
struct op ops[STEPS];

static int closed_err;
static atomic_uint turns;
static struct fabric_queues queues = { .send_wr = STEPS, .recv_wr = RECVS,
				       .send_sge = 4 };

static void nothing(void *arg)
{
}

void settle(void)
{
	for (unsigned i = 0; i < 4; i++) {
		loop_call(loop, nothing, NULL);
		loop_call(conn_loop, nothing, NULL);
	}
}

static void op_done(struct fabric_op *op, int status, uint32_t len)
{
	struct op *o = container_of(op, struct op, op);

	o->status = status;
	o->len = len;
	o->turn = atomic_fetch_add(&turns, 1);
	o->qps_destroyed = fake.qps_destroyed;
	atomic_fetch_add(&o->calls, 1);
	sem_post(&o->sem);
}

void op_init(struct op *o)
{
	memset(o, 0, sizeof(*o));
	o->op.done = op_done;
	sem_init(&o->sem, 0, 0);
}

void on_request(struct fabric_listener *l, struct fabric_conn *c)
{
	conn = c;
	sem_post(&requested);
}

static void on_established(struct fabric_conn *c)
{
	sem_post(&established);
}

static void on_closed(struct fabric_conn *c, int err)
{
	closed_err = err;
	atomic_fetch_add(&closed_calls, 1);
	sem_post(&closed);
}

/* A listener, on a separate loop. */
int try_listen(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0xc0000201) };

	return fabric_listen(&fabric, (struct sockaddr *)&sin, loop,
			     on_request, NULL, &listener);
}

void begin(void)
{
	fake_init();
	sem_init(&requested, 0, 0);
	sem_init(&established, 0, 0);
	sem_init(&closed, 0, 0);
	ck_assert_int_eq(verbs_fabric_create(&fabric), 0);
	ck_assert_int_eq(loop_create("listen", &loop), 0);
	ck_assert_int_eq(loop_create("conn", &conn_loop), 0);
	ck_assert_int_eq(loop_start(loop), 0);
	ck_assert_int_eq(loop_start(conn_loop), 0);
}

void begin_iwarp(void)
{
	begin();
	fake.transport = IBV_TRANSPORT_IWARP;
	fake.attr.device_cap_flags = 0;
}

void end(void)
{
	if (listener)
		fabric_unlisten(listener);
	settle();
	loop_destroy(loop);
	loop_destroy(conn_loop);
	verbs_fabric_destroy(&fabric);
	ck_assert_uint_eq(fake.objects, 0);
}

void set_up(void *arg)
{
	int *err = arg;

	conn->established = on_established;
	conn->closed = on_closed;
	*err = fabric_setup(conn, conn_loop, &queues);
	if (*err)
		return;
	for (unsigned i = 0; i < RECVS; i++) {
		op_init(&recv_ops[i]);
		recvs[i] = (struct fabric_recv){
			.next = i + 1 < RECVS ? &recvs[i + 1] : NULL,
			.op = &recv_ops[i].op,
			.sge = { &recvs[i], 8, 1 },
		};
	}
	*err = fabric_post_recv(conn, recvs);
}

void start(void *arg)
{
	int *err = arg;

	*err = fabric_start(conn, "private", 7, 200);
}

void connected(void)
{
	int err;

	ck_assert_int_eq(try_listen(), 0);
	fake_request("hello", 5, 4, 4);
	wait_sem(&requested);
	loop_call(conn_loop, set_up, &err);
	ck_assert_int_eq(err, 0);
	loop_call(conn_loop, start, &err);
	ck_assert_int_eq(err, 0);
	fake_event(fake.id, RDMA_CM_EVENT_ESTABLISHED, 0);
	wait_sem(&established);
}

static void free_conn(void *arg)
{
	fabric_free(conn);
}

void finished(int err)
{
	wait_sem(&closed);
	settle();
	ck_assert_int_eq(atomic_load(&closed_calls), 1);
	ck_assert_int_eq(closed_err, err);
	for (unsigned i = 0; i < RECVS; i++)
		ck_assert_int_eq(atomic_load(&recv_ops[i].calls), 1);
	loop_call(conn_loop, free_conn, NULL);
	end();
}

void finish(void)
{
	fabric_close(conn);
	finished(0);
}

struct fabric_wr *chain(unsigned n, uint64_t with)
{
	for (unsigned i = 0; i < n; i++) {
		op_init(&ops[i]);
		sges[i] = (struct fabric_sge){ &sges[i], i + 1, 100 + i };
		wrs[i] = (struct fabric_wr){
			.next = i + 1 < n ? &wrs[i + 1] : NULL,
			.opcode = i + 1 < n ? FABRIC_WRITE : FABRIC_SEND,
			.op = with >> i & 1 ? &ops[i].op : NULL,
			.sge = &sges[i], .nsge = 1,
			.handle = 1000 + i, .offset = (1ull << 40) + i,
		};
	}
	return wrs;
}
