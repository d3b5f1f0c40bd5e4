/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client library on the loop fabric: calls, data in chunks, and
 * connections that are lost under them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/rpcrdma/client.h"
#include "lib/clock.h"
#include "tests/server/one_call.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"
#include "transport/rpcrdma/listen.h"

#define MIB (1u << 20)

static struct rig rig;
static struct gannet_rpcrdma *c;
static atomic_uint events[4];
static atomic_int event_err[4];	/* of the last */

static void take_event(void *arg, enum gannet_rpcrdma_event event, int err)
{
	atomic_store(&event_err[event], err);
	atomic_fetch_add(&events[event], 1);
}

static void open_with(const struct rig_options *ro,
		      struct gannet_rpcrdma_options *co)
{
	static struct gannet_rpcrdma_options defaults;

	for (size_t i = 0; i < ARRAY_SIZE(events); i++)
		atomic_store(&events[i], 0);
	rig_open(&rig, ro);
	if (!co)
		co = &defaults;
	co->size = sizeof(*co);
	co->event = take_event;
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, co, &c), 0);
}

static void close_all(void)
{
	if (c)
		gannet_rpcrdma_close(c);
	c = NULL;
	rig_release(&rig);
	rig_close(&rig);
}

/* A new connection has one credit: they are held one after the other. */
static bool released(void *arg)
{
	int value;

	rig_release(&rig);
	sem_getvalue(arg, &value);
	return value > 0;
}

static bool held(void *arg)
{
	return rig_held(&rig) >= *(unsigned *)arg;
}

static void await_held(unsigned n)
{
	wait_until(held, &n);
}

TEST_CASE(.timeout = 30);

TEST(a_call_gets_its_reply)
{
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };

	rig_on_loop();
	open_with(NULL, NULL);
	ck_assert_int_eq(one_ping(c), 0);
	gannet_rpcrdma_info(c, &info);
	ck_assert_str_eq(info.fabric, "loop");
	ck_assert(info.connected);
	ck_assert(info.private_data);
	ck_assert_uint_eq(info.send_inline, 4096);
	ck_assert_uint_eq(info.recv_inline, 4096);
	ck_assert_uint_ge(info.credits, 1);
	ck_assert_uint_gt(info.read_depth, 0);
	ck_assert_uint_eq(info.in_flight, 0);
	ck_assert_uint_eq(info.reconnects, 0);
	close_all();
}

/* The rig's program does not speak RPC: its reply tells no limits. */
TEST(a_responder_may_keep_its_limits_to_itself)
{
	struct gannet_rpcrdma_options co = {
		.flags = GANNET_RPCRDMA_CONFIGURE,
	};
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };

	open_with(NULL, &co);
	ck_assert_uint_eq(atomic_load(&rig.taken), 1);
	ck_assert_int_eq(one_ping(c), 0);
	gannet_rpcrdma_info(c, &info);
	ck_assert_uint_eq(info.send_inline, 4096);
	close_all();
}

TEST(data_goes_from_sources_and_to_sinks)
{
	uint8_t *data = malloc(MIB);
	struct one o;
	uint32_t sum = 0;

	open_with(NULL, NULL);
	for (uint32_t i = 0; i < 70001; i++)
		sum += data[i] = pattern(i + 3);
	one_init(&o, c, OP_SUM, 1);
	o.words[3] = htonl(70001);
	o.call.msg_len = 16;
	o.call.nsources = 1;
	o.call.source[0].position = 16;
	o.call.source[0].mem = (struct gannet_rpcrdma_memory){
		.addr = data, .len = 70001 };
	one_start(&o, c);
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_uint_eq(ntohl(o.reply[1]), 70001);
	ck_assert_uint_eq(ntohl(o.reply[2]), sum);

	memset(data, 0, MIB);
	one_init(&o, c, OP_READ, 99999);
	o.call.nsinks = 1;
	o.call.sink[0] = (struct gannet_rpcrdma_memory){
		.addr = data, .len = MIB };
	one_start(&o, c);
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_uint_eq(o.call.written[0], 99999);
	for (uint32_t i = 0; i < 99999; i++)
		ck_assert_uint_eq(data[i], pattern(i));

	one_init(&o, c, OP_LONG, 50000);
	o.call.reply_mem = (struct gannet_rpcrdma_memory){
		.addr = data, .len = MIB };
	one_start(&o, c);
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_uint_eq(o.call.reply_len, 50008);
	close_all();
	free(data);
}

/* RFC 8166 section 3.4.5 has positions of the message that is whole again. */
TEST(several_sources_go_where_the_message_has_no_room_for_them)
{
	uint8_t data[5001];
	struct one o;
	uint32_t sum = 0;

	open_with(&(struct rig_options){ .any_position = true }, NULL);
	for (uint32_t i = 0; i < sizeof(data); i++)
		sum += data[i] = pattern(i + 3);
	one_init(&o, c, OP_SUM, 2);
	o.words[3] = htonl(1001);
	o.words[4] = htonl(4000);
	o.words[5] = htonl(77);
	o.call.msg_len = 24;
	o.call.nsources = 2;
	o.call.source[0].position = 16;
	o.call.source[0].mem = (struct gannet_rpcrdma_memory){
		.addr = data, .len = 1001 };
	o.call.source[1].position = 20;
	o.call.source[1].mem = (struct gannet_rpcrdma_memory){
		.addr = data + 1001, .len = 4000 };
	one_start(&o, c);
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_uint_eq(ntohl(o.reply[1]), sizeof(data));
	ck_assert_uint_eq(ntohl(o.reply[2]), sum);
	ck_assert_uint_eq(ntohl(o.reply[3]), 1);
	ck_assert_uint_eq(ntohl(o.reply[4]), 77);
	close_all();
}

TEST(more_calls_than_credits_all_come_back)
{
	struct gannet_rpcrdma_options co = { .credits = 4 };
	struct one *o = calloc(300, sizeof(*o));

	open_with(&(struct rig_options){ .async = true }, &co);
	for (int i = 0; i < 300; i++) {
		one_init(&o[i], c, 99, 0);
		one_start(&o[i], c);
	}
	for (int i = 0; i < 300; i++)
		ck_assert_int_eq(one_wait(&o[i]), 0);
	close_all();
	free(o);
}

TEST(calls_in_progress_are_sent_again_on_a_new_connection)
{
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };
	struct one o[5];

	rig_on_loop();
	open_with(NULL, NULL);
	ck_assert_int_eq(one_ping(c), 0);
	for (int i = 0; i < 5; i++) {
		one_init(&o[i], c, OP_HOLD, 0);
		one_start(&o[i], c);
	}
	await_held(5);
	loop_fabric_break(&rig.fabric);
	await_held(6);
	for (int i = 0; i < 5; i++) {
		wait_until(released, &o[i].done);
		ck_assert_int_eq(one_wait(&o[i]), 0);
		ck_assert_uint_eq(ntohl(o[i].reply[0]),
				  ntohl(o[i].words[0]));
		ck_assert_uint_eq(o[i].call.sends, 2);
	}
	gannet_rpcrdma_info(c, &info);
	ck_assert_uint_eq(info.reconnects, 1);
	ck_assert_uint_eq(info.resends, 5);
	ck_assert_uint_eq(atomic_load(&events[GANNET_RPCRDMA_LOST]), 1);
	ck_assert_uint_eq(atomic_load(&events[GANNET_RPCRDMA_RECONNECTED]), 1);
	close_all();
}

static bool lost(void *arg)
{
	return atomic_load(&events[GANNET_RPCRDMA_LOST]) > 0;
}

TEST(an_idle_connection_is_made_again_when_it_is_needed)
{
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };

	rig_on_loop();
	open_with(NULL, NULL);
	ck_assert_int_eq(one_ping(c), 0);
	loop_fabric_break(&rig.fabric);
	wait_until(lost, NULL);
	ck_assert_int_eq(atomic_load(&event_err[GANNET_RPCRDMA_LOST]),
			 -ENETUNREACH);
	gannet_rpcrdma_info(c, &info);
	ck_assert(!info.connected);
	ck_assert_int_eq(one_ping(c), 0);
	gannet_rpcrdma_info(c, &info);
	ck_assert(info.connected);
	ck_assert_uint_eq(info.reconnects, 1);
	close_all();
}

static void raise_inline_size(void *arg)
{
	struct rpcrdma_listener *l = container_of(rig.listener,
			struct rpcrdma_listener, base);

	l->options.inline_size = 8192;
}

/* RFC 8797 section 4: the responder's settings can change. */
TEST(a_new_connection_has_settings_of_its_own)
{
	struct gannet_rpcrdma_options co = { .inline_size = 16384 };
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };

	rig_on_loop();
	open_with(NULL, &co);
	for (uint32_t size = 4096; size <= 8192; size += 4096) {
		ck_assert_int_eq(one_ping(c), 0);
		gannet_rpcrdma_info(c, &info);
		ck_assert_uint_eq(info.send_inline, size);
		ck_assert_uint_eq(info.recv_inline, size);
		loop_call(rig.server, raise_inline_size, NULL);
		loop_fabric_break(&rig.fabric);
		wait_until(lost, NULL);
	}
	close_all();
}

TEST(a_call_without_reply_is_sent_again_so_many_times)
{
	struct gannet_rpcrdma_options co = { .reply_ms = 50, .resends = 2,
					     .reconnects = 100 };
	struct one o;
	int err;

	open_with(NULL, &co);
	one_init(&o, c, OP_DROP, 0);
	one_start(&o, c);
	ck_assert_int_eq(one_wait(&o), -ENOTCONN);
	ck_assert_uint_eq(o.call.sends, 3);
	ck_assert_int_eq(atomic_load(&event_err[GANNET_RPCRDMA_LOST]),
			 -ETIMEDOUT);
	/* That call is over, the client is not; but a machine can be too slow
	 * for such short times. */
	err = one_ping(c);
	for (int i = 0; i < 30 && err == -ENOTCONN; i++)
		err = one_ping(c);
	ck_assert_int_eq(err, 0);
	close_all();
}

/* A reply can come before the Send that asked for it is done. */
TEST_LOOP(a_send_that_is_done_late_lets_the_next_go, 0, 5)
{
	enum { N = 50 };
	struct gannet_rpcrdma_options co = { .credits = 1 };
	struct one o[N];

	open_with(&(struct rig_options){ .fabric.seed = (uint32_t)_i + 1 },
		  &co);
	for (int i = 0; i < N; i++) {
		one_init(&o[i], c, 99, 0);
		one_start(&o[i], c);
	}
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(one_wait(&o[i]), 0);
	close_all();
}

/*
 * Makes calls behind two credits, which together take longer than the limit for
 * one reply.  Returns how often a connection was given up for silence.
 * *@pause: the longest pause between two rounds of replies.
 */
static unsigned long_line(uint64_t *pause)
{
	enum { N = 24, REPLY_MS = 1500 };
	struct gannet_rpcrdma_options co = { .reply_ms = REPLY_MS,
					     .credits = 2, .resends = 1000,
					     .reconnects = 1000 };
	uint64_t begin, last, now;
	struct gannet_rpcrdma_info info = { .size = sizeof(info) };
	struct one o[N];
	int value;

	open_with(NULL, &co);
	ck_assert_int_eq(one_ping(c), 0);
	*pause = 0;
	begin = last = clock_ms();
	for (int i = 0; i < N; i++) {
		one_init(&o[i], c, OP_HOLD, 0);
		one_start(&o[i], c);
	}
	do {
		/* The server is slow, but not silent. */
		pause_on_purpose(150000);
		rig_release(&rig);
		now = clock_ms();
		*pause = MAX(*pause, now - last);
		last = now;
		sem_getvalue(&o[N - 1].done, &value);
	} while (value == 0);
	ck_assert_uint_gt(clock_ms() - begin, REPLY_MS);
	for (int i = 0; i < N; i++)
		ck_assert_int_eq(one_wait(&o[i]), 0);
	gannet_rpcrdma_info(c, &info);
	close_all();
	return info.reconnects;
}

/* A call waits for its reply from when it was sent, not for its turn. */
TEST(a_long_queue_behind_few_credits_is_no_silence)
{
	unsigned given_up, tries = 0;
	uint64_t pause;

	/* Unless the machine itself stood still for a while. */
	do {
		given_up = long_line(&pause);
	} while (given_up > 0 && pause >= 300 && ++tries < 10);
	ck_assert_uint_eq(given_up, 0);
}

TEST(without_reconnection_the_first_loss_is_the_end)
{
	struct gannet_rpcrdma_options co = {
		.flags = GANNET_RPCRDMA_NO_RECONNECT };
	struct one o, late;

	rig_on_loop();
	open_with(NULL, &co);
	one_init(&o, c, OP_HOLD, 0);
	one_start(&o, c);
	await_held(1);
	loop_fabric_break(&rig.fabric);
	ck_assert_int_eq(one_wait(&o), -ENOTCONN);
	ck_assert_uint_eq(o.call.sends, 1);
	wait_until(lost, NULL);
	one_init(&late, c, 99, 0);
	if (gannet_rpcrdma_call(c, &late.call) == 0)
		ck_assert_int_eq(one_wait(&late), -ENOTCONN);
	close_all();
}

static bool dead(void *arg)
{
	return atomic_load(&events[GANNET_RPCRDMA_DEAD]) > 0;
}

TEST(a_responder_that_stays_away_is_given_up)
{
	struct gannet_rpcrdma_options co = { .reconnects = 2 };
	struct one o;

	rig_on_loop();
	open_with(NULL, &co);
	one_init(&o, c, OP_HOLD, 0);
	one_start(&o, c);
	await_held(1);
	rig.listener->ops->stop(rig.listener);
	loop_fabric_break(&rig.fabric);
	ck_assert_int_eq(one_wait(&o), -ENOTCONN);
	wait_until(dead, NULL);
	one_init(&o, c, 99, 0);
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -ENOTCONN);
	close_all();
}

TEST(connecting_where_nobody_listens_fails_at_once)
{
	struct gannet_rpcrdma_options co = { 0 };
	struct sockaddr_storage addr;

	open_with(NULL, NULL);
	gannet_rpcrdma_close(c);
	c = NULL;
	addr = rig.listener->local;
	rig.listener->ops->stop(rig.listener);
	ck_assert_int_lt(client_connect(&rig.fabric, (struct sockaddr *)&addr,
					&co, &c), 0);
	ck_assert_ptr_null(c);
	close_all();
}

/* Its queue of connecting peers is full: it sends no answer. */
static int silent_listener(struct sockaddr_in *sin, int fill[8])
{
	socklen_t len = sizeof(*sin);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	*sin = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	ck_assert_int_eq(bind(fd, (struct sockaddr *)sin, len), 0);
	ck_assert_int_eq(listen(fd, 0), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)sin, &len), 0);
	for (int i = 0; i < 8; i++) {
		fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fill[i], (struct sockaddr *)sin, len);
	}
	return fd;
}

TEST(an_attempt_to_connect_takes_no_longer_than_it_may)
{
	struct gannet_rpcrdma_options co = { .size = sizeof(co),
					     .fabric = GANNET_RPCRDMA_IWARP,
					     .connect_ms = 200 };
	struct sockaddr_in sin;
	int fill[8];
	int fd = silent_listener(&sin, fill);

	IN_LESS_THAN(5000,
		     ck_assert_int_eq(gannet_rpcrdma_connect((void *)&sin, &co,
							     &c), -ETIMEDOUT));
	for (int i = 0; i < 8; i++)
		close(fill[i]);
	close(fd);
}

TEST(close_ends_what_is_in_progress)
{
	struct one o[3];

	open_with(NULL, NULL);
	for (int i = 0; i < 3; i++) {
		one_init(&o[i], c, OP_HOLD, 0);
		one_start(&o[i], c);
	}
	await_held(1);
	gannet_rpcrdma_close(c);
	c = NULL;
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(one_wait(&o[i]), -ECANCELED);
	close_all();
}

TEST(invalid_options_are_refused)
{
	struct gannet_rpcrdma_options co = { .size = sizeof(co),
					     .fabric = 77 };
	struct sockaddr_storage addr = { .ss_family = AF_UNIX };
	struct gannet_rpcrdma *none;
	struct one o;

	rig_on_loop();
	open_with(NULL, NULL);
	one_init(&o, c, 99, 0);
	o.call.msg_len = 3;
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
	one_init(&o, c, 99, 0);
	o.call.nsources = 5;
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
	one_init(&o, c, 99, 0);
	o.call.nsinks = 5;
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
	one_init(&o, c, 99, 0);
	o.call.done = NULL;
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_connect((struct sockaddr *)&addr, &co,
						&none), -EAFNOSUPPORT);
	addr.ss_family = AF_INET;
	ck_assert_int_eq(gannet_rpcrdma_connect((struct sockaddr *)&addr, &co,
						&none), -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_log_level("loud"), -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_log_level("err"), 0);
	close_all();
}

/* Cut at random moments, every call is answered, once. */
TEST(cuts_under_load_lose_no_call)
{
	rig_on_loop();
	enum { N = 400 };
	struct gannet_rpcrdma_options co = { .reconnects = 1000,
					     .resends = 1000 };
	struct one *o = calloc(N, sizeof(*o));

	open_with(&(struct rig_options){ .async = true,
					 .fabric.seed = 7 }, &co);
	for (int i = 0; i < N; i++) {
		one_init(&o[i], c, 99, 0);
		one_start(&o[i], c);
		if (i % 100 == 50) {
			/* At some moment of an exchange. */
			pause_on_purpose(500);
			loop_fabric_break(&rig.fabric);
		}
	}
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(one_wait(&o[i]), 0);
		ck_assert_uint_eq(o[i].reply[0], o[i].words[0]);
	}
	close_all();
	free(o);
}
