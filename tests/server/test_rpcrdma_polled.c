/* SPDX-License-Identifier: BSD-2-Clause */
/* A client of the library that its user's event loop drives. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>

#include "tools/rpcrdma/client.h"
#include "tests/server/one_call.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

static struct rig rig;
static struct gannet_rpcrdma *c;
static pthread_t user;
static unsigned losses, reconnections;
static uint8_t memory[100000];

static void take_event(void *arg, enum gannet_rpcrdma_event event, int err)
{
	ck_assert(pthread_equal(pthread_self(), user));
	losses += event == GANNET_RPCRDMA_LOST;
	reconnections += event == GANNET_RPCRDMA_RECONNECTED;
}

static void open_polled(unsigned reply_ms)
{
	const struct gannet_rpcrdma_options co = {
		.size = sizeof(co), .flags = GANNET_RPCRDMA_POLLED,
		.event = take_event, .reply_ms = reply_ms,
	};

	user = pthread_self();
	losses = reconnections = 0;
	rig_open(&rig, &(struct rig_options){ .async = true });
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, &co, &c), 0);
}

static void close_all(void)
{
	gannet_rpcrdma_close(c);
	rig_release(&rig);
	rig_close(&rig);
}

static bool ready(int ms)
{
	struct pollfd pfd = { gannet_rpcrdma_fd(c), POLLIN, 0 };

	return poll(&pfd, 1, ms) == 1;
}

static void turn(void)
{
	ck_assert(ready(60000));
	ck_assert_int_eq(gannet_rpcrdma_dispatch(c), 0);
}

static bool over(struct one *o)
{
	int value;

	sem_getvalue(&o->done, &value);
	return value > 0;
}

static void done_here(struct gannet_rpcrdma_call *call)
{
	struct one *o = container_of(call, struct one, call);

	ck_assert(pthread_equal(pthread_self(), user));
	sem_post(&o->done);
}

static void start(struct one *o, uint32_t op, uint32_t arg)
{
	one_init(o, c, op, arg);
	o->call.done = done_here;
	one_start(o, c);
}

static int finish(struct one *o)
{
	while (!over(o))
		turn();
	return one_wait(o);
}

static void await_held(void)
{
	while (rig_held(&rig) == 0)
		if (ready(1))
			gannet_rpcrdma_dispatch(c);
}

TEST_CASE(.timeout = 30);

TEST(calls_go_on_in_dispatch_alone)
{
	struct one o[40];

	open_polled(0);
	start(&o[0], 99, 0);
	/* No thread of the library sends it. */
	ck_assert(HOLDS_FOR(20, atomic_load(&rig.taken) == 0));
	ck_assert_int_eq(finish(&o[0]), 0);
	for (int i = 0; i < 40; i++)
		start(&o[i], 99, 0);
	for (int i = 0; i < 40; i++)
		ck_assert_int_eq(finish(&o[i]), 0);
	one_init(&o[0], c, OP_READ, sizeof(memory));
	o[0].call.done = done_here;
	o[0].call.nsinks = 1;
	o[0].call.sink[0] = (struct gannet_rpcrdma_memory){
		.addr = memory, .len = sizeof(memory) };
	one_start(&o[0], c);
	ck_assert_int_eq(finish(&o[0]), 0);
	ck_assert_uint_eq(o[0].call.written[0], sizeof(memory));
	close_all();
}

TEST(an_idle_client_wants_no_dispatch)
{
	struct one o;

	rig_on_loop();
	open_polled(0);
	start(&o, 99, 0);
	ck_assert_int_eq(finish(&o), 0);
	EVENTUALLY(!ready(20) || gannet_rpcrdma_dispatch(c) < 0);
	close_all();
}

TEST(lost_connections_are_made_again_while_it_is_dispatched)
{
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };
	struct gannet_rpcrdma_region *region;
	struct one o;

	rig_on_loop();
	open_polled(0);
	/* Other functions can be called between the rounds. */
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory, 1000,
				GANNET_RPCRDMA_SINK, &region), 0);
	start(&o, OP_HOLD, 0);
	await_held();
	loop_fabric_break(&rig.fabric);
	while (!over(&o)) {
		rig_release(&rig);
		if (ready(1))
			gannet_rpcrdma_dispatch(c);
	}
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_uint_eq(losses, 1);
	ck_assert_uint_eq(reconnections, 1);
	gannet_rpcrdma_info(c, &info);
	ck_assert(info.connected);
	gannet_rpcrdma_forget(c, memory, 1);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), 0);
	close_all();
}

TEST(a_call_that_gets_no_reply_ends_in_dispatch)
{
	struct one o;

	open_polled(50);
	start(&o, OP_DROP, 0);
	while (losses == 0)
		turn();
	gannet_rpcrdma_close(c);
	ck_assert_int_eq(one_wait(&o), -ECANCELED);
	rig_close(&rig);
}

static void *call_once(void *arg)
{
	start(arg, 99, 0);
	return NULL;
}

static unsigned rounds;
static int last_error;

static void dispatch_within(struct gannet_rpcrdma_call *call)
{
	last_error = gannet_rpcrdma_dispatch(c);
	done_here(call);
}

TEST(a_done_can_not_dispatch)
{
	struct one o;

	open_polled(0);
	one_init(&o, c, 99, 0);
	o.call.done = dispatch_within;
	last_error = 0;
	one_start(&o, c);
	ck_assert_int_eq(finish(&o), 0);
	ck_assert_int_eq(last_error, -EDEADLK);
	close_all();
}

static void call_again(struct gannet_rpcrdma_call *call)
{
	struct one *o = container_of(call, struct one, call);

	ck_assert_int_eq(call->status, -ENOTCONN);
	rounds++;
	last_error = gannet_rpcrdma_call(c, call);
	if (last_error < 0)
		sem_post(&o->done);
}

TEST_LOOP(a_done_that_calls_again_ends_with_the_client, 0, 2)
{
	const struct gannet_rpcrdma_options co = {
		.size = sizeof(co),
		.flags = GANNET_RPCRDMA_NO_RECONNECT |
			 (_i ? GANNET_RPCRDMA_POLLED : 0),
	};
	struct one o;

	rig_on_loop();
	rig_open(&rig, &(struct rig_options){ .async = true });
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, &co, &c), 0);
	rounds = 0;
	one_init(&o, c, OP_HOLD, 0);
	o.call.done = call_again;
	one_start(&o, c);
	await_held();
	loop_fabric_break(&rig.fabric);
	while (!over(&o))
		if (ready(1))
			gannet_rpcrdma_dispatch(c);
	ck_assert_int_eq(one_wait(&o), -ENOTCONN);
	ck_assert_int_eq(last_error, -ENOTCONN);
	ck_assert_uint_eq(rounds, 2);
	close_all();
}

TEST(other_threads_may_start_calls)
{
	struct one o[8];
	pthread_t t[8];

	open_polled(0);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, call_once, &o[i]),
				 0);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
	for (int i = 0; i < 8; i++)
		ck_assert_int_eq(finish(&o[i]), 0);
	close_all();
}

TEST(close_ends_the_calls_of_a_polled_client)
{
	struct one o[3];

	open_polled(0);
	for (int i = 0; i < 3; i++)
		start(&o[i], OP_HOLD, 0);
	/* The client has one credit. */
	await_held();
	gannet_rpcrdma_close(c);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(one_wait(&o[i]), -ECANCELED);
	rig_release(&rig);
	rig_close(&rig);
}

TEST(only_a_polled_client_is_driven)
{
	struct gannet_rpcrdma_options co = { .size = sizeof(co) };

	rig_open(&rig, NULL);
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, &co, &c), 0);
	ck_assert_int_eq(gannet_rpcrdma_fd(c), -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_dispatch(c), -EINVAL);
	close_all();
}

TEST(a_polled_client_may_find_nobody)
{
	const struct gannet_rpcrdma_options co = {
		.size = sizeof(co), .flags = GANNET_RPCRDMA_POLLED };
	struct sockaddr_storage addr;
	struct gannet_rpcrdma *none;

	rig_open(&rig, NULL);
	addr = rig.listener->local;
	rig.listener->ops->stop(rig.listener);
	ck_assert_int_lt(client_connect(&rig.fabric, (struct sockaddr *)&addr,
					&co, &none), 0);
	rig_close(&rig);
}
