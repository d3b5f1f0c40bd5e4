/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of the client library that are ended early. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rpcrdma/client.h"
#include "lib/stats.h"
#include "tests/server/one_call.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

enum { ROOM = 20000 };

static struct rig rig;
static struct gannet_rpcrdma *c;
static uint8_t memory[ROOM];
static atomic_uint losses;

/* While this waits, calls that the responder took get no reply. */
static struct loop_task stop_task;
static sem_t stop;

static void take_event(void *arg, enum gannet_rpcrdma_event event, int err)
{
	losses += event == GANNET_RPCRDMA_LOST;
}

static void open_with(struct rig_options ro, struct gannet_rpcrdma_options co)
{
	ro.async = true;
	rig_open(&rig, &ro);
	atomic_store(&losses, 0);
	sem_init(&stop, 0, 0);
	co.size = sizeof(co);
	co.event = take_event;
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, &co, &c), 0);
}

static void open_all(void)
{
	open_with((struct rig_options){ 0 },
		  (struct gannet_rpcrdma_options){ 0 });
}

static void close_all(void)
{
	gannet_rpcrdma_close(c);
	rig_release(&rig);
	rig_close(&rig);
	sem_destroy(&stop);
}

static void start(struct one *o, uint32_t op, uint32_t arg)
{
	one_init(o, c, op, arg);
	one_start(o, c);
}

static int cancel_and_wait(struct one *o)
{
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &o->call), 0);
	return one_wait(o);
}

static bool held(void *arg)
{
	return rig_held(&rig) > 0;
}

static bool none_in_flight(void *arg)
{
	return one_info(c).in_flight == 0;
}

static bool lost(void *arg)
{
	return atomic_load(&losses) > 0;
}

static void wait_stop(struct loop_task *t)
{
	wait_sem(&stop);
}

static void stop_replies(void)
{
	loop_post(rig.worker, &stop_task, wait_stop);
}

static bool two_taken(void *arg)
{
	return atomic_load(&rig.taken) >= 2;
}

TEST_CASE(.timeout = 60);

TEST(a_call_that_was_not_sent_never_is)
{
	struct one first, second;

	open_all();
	start(&first, OP_HOLD, 0);
	wait_until(held, NULL);
	/* The only credit is taken. */
	start(&second, 99, 0);
	ck_assert_int_eq(cancel_and_wait(&second), -ECANCELED);
	ck_assert_uint_eq(second.call.sends, 0);
	rig_release(&rig);
	ck_assert_int_eq(one_wait(&first), 0);
	ck_assert_int_eq(one_ping(c), 0);
	ck_assert_uint_eq(atomic_load(&rig.taken), 2);
	ck_assert_uint_eq(one_info(c).discarded, 0);
	close_all();
}

TEST(the_late_reply_is_dropped_and_gives_the_credit_back)
{
	struct one o, next;

	open_all();
	start(&o, OP_HOLD, 0);
	wait_until(held, NULL);
	ck_assert_int_eq(cancel_and_wait(&o), -ECANCELED);
	ck_assert_uint_eq(o.call.sends, 1);
	ck_assert_uint_eq(one_info(c).in_flight, 1);
	start(&next, 99, 0);
	ck_assert_uint_eq(atomic_load(&rig.taken), 1);
	rig_release(&rig);
	ck_assert_int_eq(one_wait(&next), 0);
	ck_assert_uint_eq(ntohl(next.reply[0]), ntohl(next.words[0]));
	ck_assert_uint_eq(one_info(c).discarded, 1);
	ck_assert_uint_eq(one_info(c).in_flight, 0);
	ck_assert_uint_eq(one_info(c).reconnects, 0);
	close_all();
}

/* The caller has all of its memory back. */
TEST(nothing_of_a_cancelled_call_is_looked_at_again)
{
	struct iovec *iov = malloc(2 * sizeof(*iov));
	struct one *o = malloc(sizeof(*o)), *unsent = malloc(sizeof(*o));

	open_all();
	iov[0] = (struct iovec){ memory, 100 };
	iov[1] = (struct iovec){ memory + 200, 100 };
	one_init(o, c, OP_HOLD, 0);
	o->call.nsinks = 1;
	o->call.sink[0] = (struct gannet_rpcrdma_memory){ .niov = 2,
							  .iov = iov };
	*unsent = *o;
	unsent->words[0] = htonl(gannet_rpcrdma_xid(c));
	unsent->call.msg = unsent->words;
	sem_init(&unsent->done, 0, 0);
	one_start(o, c);
	wait_until(held, NULL);
	one_start(unsent, c);
	ck_assert_int_eq(cancel_and_wait(unsent), -ECANCELED);
	ck_assert_int_eq(cancel_and_wait(o), -ECANCELED);
	free(iov);
	free(o);
	free(unsent);
	gannet_rpcrdma_forget(c, memory, sizeof(memory));
	rig_release(&rig);
	ck_assert_int_eq(one_ping(c), 0);
	close_all();
}

/* RFC 8166 section 8.1.4. */
TEST(a_late_write_costs_the_connection_and_no_other_call)
{
	struct one o, next;

	open_all();
	ck_assert_int_eq(one_ping(c), 0);
	stop_replies();
	one_init(&o, c, OP_READ, 100);
	o.call.nsinks = 1;
	o.call.sink[0] = one_memory(memory, 100);
	memset(memory, 0xee, 100);
	one_start(&o, c);
	wait_until(two_taken, NULL);
	start(&next, 99, 0);
	ck_assert_int_eq(cancel_and_wait(&o), -ECANCELED);
	ck_assert_uint_eq(o.call.written[0], 0);
	sem_post(&stop);
	ck_assert_int_eq(one_wait(&next), 0);
	wait_until(lost, NULL);
	for (int i = 0; i < 100; i++)
		ck_assert_uint_eq(memory[i], 0xee);
	close_all();
}

TEST(a_call_that_keeps_its_memory_has_its_result)
{
	struct gannet_rpcrdma_options co = {
		.registration = GANNET_RPCRDMA_CACHE };
	struct one o;

	rig_on_loop();
	open_with((struct rig_options){ .fabric.active.pins = true }, co);
	one_init(&o, c, OP_HOLD, 0);
	o.call.nsinks = 1;
	o.call.sink[0] = one_memory(memory, 100);
	one_start(&o, c);
	wait_until(held, NULL);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &o.call), 0);
	/* More than once is nothing else. */
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &o.call), 0);
	rig_release(&rig);
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_uint_eq(one_info(c).discarded, 0);
	close_all();
}

TEST(a_cancelled_call_is_not_sent_again)
{
	struct gannet_rpcrdma_region *region;
	struct one o;

	rig_on_loop();
	open_with((struct rig_options){ .fabric.active.pins = true },
		  (struct gannet_rpcrdma_options){ 0 });
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory, ROOM,
				GANNET_RPCRDMA_SINK, &region), 0);
	one_init(&o, c, OP_HOLD, 0);
	o.call.nsinks = 1;
	o.call.sink[0] = one_memory(memory, 100);
	o.call.sink[0].region = region;
	one_start(&o, c);
	wait_until(held, NULL);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &o.call), 0);
	loop_fabric_break(&rig.fabric);
	ck_assert_int_eq(one_wait(&o), -ECANCELED);
	ck_assert_int_eq(one_ping(c), 0);
	ck_assert_uint_eq(atomic_load(&rig.taken), 2);
	close_all();
}

TEST(a_cancelled_call_to_be_sent_once_is_forgotten)
{
	struct one o;

	rig_on_loop();
	open_all();
	one_init(&o, c, OP_HOLD, 0);
	o.call.once = true;
	one_start(&o, c);
	wait_until(held, NULL);
	ck_assert_int_eq(cancel_and_wait(&o), -ECANCELED);
	loop_fabric_break(&rig.fabric);
	wait_until(lost, NULL);
	ck_assert_int_eq(one_ping(c), 0);
	ck_assert_uint_eq(atomic_load(&rig.taken), 2);
	close_all();
}

TEST(a_call_that_waits_for_a_connection_ends_at_once)
{
	struct gannet_rpcrdma_options co = { .reconnects = 1000000 };
	struct one o;

	rig_on_loop();
	open_with((struct rig_options){ 0 }, co);
	start(&o, OP_HOLD, 0);
	wait_until(held, NULL);
	rig.listener->ops->stop(rig.listener);
	loop_fabric_break(&rig.fabric);
	wait_until(lost, NULL);
	ck_assert_int_eq(cancel_and_wait(&o), -ECANCELED);
	ck_assert_uint_eq(o.call.sends, 1);
	close_all();
}

TEST(a_reply_that_never_comes_still_ends_the_connection)
{
	struct gannet_rpcrdma_options co = { .reply_ms = 50,
					     .reconnects = 1000 };
	struct one o;
	int err;

	open_with((struct rig_options){ 0 }, co);
	start(&o, OP_DROP, 0);
	ck_assert_int_eq(cancel_and_wait(&o), -ECANCELED);
	/* Its credit was the only one. */
	err = one_ping(c);
	for (int i = 0; i < 30 && err == -ENOTCONN; i++)
		err = one_ping(c);
	ck_assert_int_eq(err, 0);
	close_all();
}

TEST(a_call_that_is_over_can_not_be_cancelled)
{
	struct one o;

	open_all();
	one_init(&o, c, 99, 0);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &o.call), -ENOENT);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, NULL), -ENOENT);
	one_start(&o, c);
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &o.call), -ENOENT);
	start(&o, OP_HOLD, 0);
	wait_until(held, NULL);
	ck_assert_int_eq(cancel_and_wait(&o), -ECANCELED);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &o.call), -ENOENT);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, NULL), -ENOENT);
	close_all();
}

static struct one *victim;
static int cancel_err;

static void cancel_another(struct gannet_rpcrdma_call *call)
{
	struct one *o = container_of(call, struct one, call);
	int value;

	cancel_err = gannet_rpcrdma_cancel(c, &victim->call);
	sem_getvalue(&victim->done, &value);
	ck_assert_int_eq(value, 0);
	sem_post(&o->done);
}

TEST(a_done_may_cancel_other_calls)
{
	struct one o, other;

	open_all();
	ck_assert_int_eq(one_ping(c), 0);
	victim = &other;
	start(&other, OP_HOLD, 0);
	one_init(&o, c, 99, 0);
	o.call.done = cancel_another;
	one_start(&o, c);
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_int_eq(cancel_err, 0);
	ck_assert_int_eq(one_wait(&other), -ECANCELED);
	close_all();
}

static bool in_dispatch;

static void done_in_dispatch(struct gannet_rpcrdma_call *call)
{
	ck_assert(in_dispatch);
	sem_post(&container_of(call, struct one, call)->done);
}

static void turn(int ms)
{
	struct pollfd pfd = { gannet_rpcrdma_fd(c), POLLIN, 0 };

	if (poll(&pfd, 1, ms) != 1)
		return;
	in_dispatch = true;
	gannet_rpcrdma_dispatch(c);
	in_dispatch = false;
}

TEST(a_polled_client_ends_cancelled_calls_in_dispatch)
{
	struct one o;
	int value = 0;

	open_with((struct rig_options){ 0 }, (struct gannet_rpcrdma_options){
			.flags = GANNET_RPCRDMA_POLLED });
	one_init(&o, c, OP_HOLD, 0);
	o.call.done = done_in_dispatch;
	one_start(&o, c);
	while (!held(NULL))
		turn(1);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &o.call), 0);
	while (value == 0) {
		turn(60000);
		sem_getvalue(&o.done, &value);
	}
	ck_assert_int_eq(one_wait(&o), -ECANCELED);
	close_all();
}

static bool no_buffer_is_out(void *arg)
{
	size_t taken, out;

	pool_usage(rig.pool, &taken, &out);
	return out == 0;
}

/* RFC 5666 section 3.8: the responder keeps a long reply until it is told. */
TEST(the_responder_need_not_keep_a_late_reply)
{
	uint64_t done = stats_sum_by_name("rdma_done_taken");
	struct one o;

	open_with((struct rig_options){ .rdma.read_read = true },
		  (struct gannet_rpcrdma_options){
			.flags = GANNET_RPCRDMA_READ_READ });
	ck_assert_int_eq(one_ping(c), 0);
	stop_replies();
	one_init(&o, c, OP_LONG, 10000);
	o.call.reply_mem = one_memory(memory, ROOM);
	memset(memory, 0xee, ROOM);
	one_start(&o, c);
	wait_until(two_taken, NULL);
	ck_assert_int_eq(cancel_and_wait(&o), -ECANCELED);
	sem_post(&stop);
	wait_until(no_buffer_is_out, NULL);
	EVENTUALLY(stats_sum_by_name("rdma_done_taken") == done + 1);
	ck_assert_int_eq(one_ping(c), 0);
	ck_assert_uint_eq(one_info(c).discarded, 1);
	ck_assert_uint_eq(one_info(c).reconnects, 0);
	for (int i = 0; i < ROOM; i++)
		ck_assert_uint_eq(memory[i], 0xee);
	close_all();
}

TEST(close_ends_what_is_left_of_cancelled_calls)
{
	struct one o, queued;

	open_all();
	start(&o, OP_HOLD, 0);
	wait_until(held, NULL);
	start(&queued, OP_HOLD, 0);
	ck_assert_int_eq(cancel_and_wait(&o), -ECANCELED);
	ck_assert_int_eq(gannet_rpcrdma_cancel(c, &queued.call), 0);
	close_all();
	ck_assert_int_eq(one_wait(&queued), -ECANCELED);
}

/* They are cancelled as their replies come, by several threads. */
static struct one race[64];

static void *cancel_race(void *arg)
{
	for (int i = 0; i < 64; i++)
		gannet_rpcrdma_cancel(c, &race[i].call);
	return NULL;
}

TEST(each_call_ends_once_whoever_is_first)
{
	pthread_t t[2];

	open_all();
	for (int i = 0; i < 64; i++)
		one_init(&race[i], c, 99, 0);
	ck_assert_int_eq(one_ping(c), 0);
	for (int i = 0; i < 64; i++)
		one_start(&race[i], c);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, cancel_race,
						NULL), 0);
	for (int i = 0; i < 64; i++) {
		int err = one_wait(&race[i]);

		ck_assert(err == 0 || err == -ECANCELED);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], NULL);
	ck_assert_int_eq(one_ping(c), 0);
	wait_until(none_in_flight, NULL);
	ck_assert_uint_eq(one_info(c).reconnects, 0);
	close_all();
}
