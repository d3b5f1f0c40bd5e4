/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client library's ways with memory: pieces, regions, the cache; and
 * structs of other versions.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "tools/rpcrdma/client.h"
#include "tests/server/one_call.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

enum { ROOM = 20000 };

static struct rig rig;
static struct gannet_rpcrdma *c;
static uint8_t memory[4 * ROOM];

static bool windows;		/* of the pinning device */

static void open_with(bool pins, struct gannet_rpcrdma_options *co)
{
	const struct rig_options ro = { .fabric.active = {
			.pins = pins, .windows = windows } };
	static struct gannet_rpcrdma_options defaults;

	rig_open(&rig, &ro);
	if (!co)
		co = &defaults;
	co->size = sizeof(*co);
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, co, &c), 0);
}

static void close_all(void)
{
	gannet_rpcrdma_close(c);
	rig_release(&rig);
	rig_close(&rig);
}

/* Reads @len bytes to @mem; returns how many came. */
static uint32_t read_to(struct gannet_rpcrdma_memory mem, uint32_t len)
{
	struct one o;

	one_init(&o, c, OP_READ, len);
	o.call.nsinks = 1;
	o.call.sink[0] = mem;
	one_start(&o, c);
	ck_assert_int_eq(one_wait(&o), 0);
	return o.call.written[0];
}

/* Sends @mem, of @len bytes; returns the sum that the responder made. */
static uint32_t sum_of(struct gannet_rpcrdma_memory mem, uint32_t len)
{
	struct one o;

	one_init(&o, c, OP_SUM, 1);
	o.words[3] = htonl(len);
	o.call.msg_len = 16;
	o.call.nsources = 1;
	o.call.source[0].position = 16;
	o.call.source[0].mem = mem;
	one_start(&o, c);
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_uint_eq(ntohl(o.reply[1]), len);
	return ntohl(o.reply[2]);
}

/* The error that starting a call with this sink has. */
static int start_error(struct gannet_rpcrdma_memory sink)
{
	struct one o;

	one_init(&o, c, OP_READ, 1);
	o.call.nsinks = 1;
	o.call.sink[0] = sink;
	return gannet_rpcrdma_call(c, &o.call);
}

TEST_CASE(.timeout = 30);

TEST(pieces_of_memory_are_one_source_and_one_sink)
{
	const struct iovec iov[] = {
		{ memory + ROOM, 1001 }, { memory, 0 }, { memory, 7000 },
		{ memory + 2 * ROOM, 4 },
	};
	struct gannet_rpcrdma_memory mem = { .niov = 4, .iov = iov };
	uint32_t sum = 0, n = 0;

	open_with(false, NULL);
	ck_assert_uint_eq(read_to(mem, 8005), 8005);
	for (int i = 0; i < 4; i++)
		for (size_t k = 0; k < iov[i].iov_len; k++) {
			uint8_t byte = ((uint8_t *)iov[i].iov_base)[k];

			ck_assert_uint_eq(byte, pattern(n++));
			sum += byte;
		}
	ck_assert_uint_eq(sum_of(mem, 8005), sum);
	/* The last ones are not reached. */
	ck_assert_uint_eq(read_to(mem, 500), 500);
	close_all();
}

TEST(memory_that_can_not_be_lent_is_refused)
{
	struct iovec iov[GANNET_RPCRDMA_SEGMENTS + 1];
	struct gannet_rpcrdma_memory mem = { .iov = iov };
	struct one o;

	open_with(false, NULL);
	for (unsigned i = 0; i <= GANNET_RPCRDMA_SEGMENTS; i++)
		iov[i] = (struct iovec){ memory + i, 1 };
	mem.niov = GANNET_RPCRDMA_SEGMENTS + 1;
	ck_assert_int_eq(start_error(mem), -EMSGSIZE);
	/* So many don't fit in a message with the call's. */
	mem.niov = GANNET_RPCRDMA_SEGMENTS;
	ck_assert_uint_eq(read_to(mem, GANNET_RPCRDMA_SEGMENTS),
			  GANNET_RPCRDMA_SEGMENTS);
	mem.niov = 2;
	iov[1].iov_len = (size_t)UINT32_MAX + 1;
	ck_assert_int_eq(start_error(mem), -EINVAL);
	iov[1].iov_len = UINT32_MAX;
	ck_assert_int_eq(start_error(mem), -EINVAL);

	one_init(&o, c, OP_LONG, 1);
	o.call.reply_mem = (struct gannet_rpcrdma_memory){ .niov = 1,
							   .iov = iov };
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
	one_init(&o, c, OP_SUM, 1);
	o.call.nsources = 2;
	o.call.source[0].mem = one_memory(memory, 8);
	o.call.source[1].position = UINT32_MAX - 4;
	o.call.source[1].mem = one_memory(memory, 8);
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
	close_all();
}

/* rfc5666bis-01 section 5.2.1: Read chunks go out in the order of their
 * positions. */
TEST(sources_out_of_order_are_refused)
{
	struct one o;

	open_with(false, NULL);
	one_init(&o, c, OP_SUM, 1);
	o.call.nsources = 2;
	o.call.source[0].position = 12;
	o.call.source[0].mem = one_memory(memory, 8);
	o.call.source[1].position = 8;
	o.call.source[1].mem = one_memory(memory, 8);
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
	close_all();
}

TEST_LOOP(a_region_is_registered_once, 0, 2)
{
	struct gannet_rpcrdma_region *region;
	struct gannet_rpcrdma_memory mem = one_memory(memory + 100, 5000);
	uint32_t sum = 0;

	rig_on_loop();
	open_with(_i, NULL);
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory, ROOM,
			GANNET_RPCRDMA_SOURCE | GANNET_RPCRDMA_SINK, &region),
			 0);
	mem.region = region;
	for (uint32_t i = 0; i < 5000; i++)
		sum += pattern(i);
	for (int i = 0; i < 5; i++) {
		ck_assert_uint_eq(read_to(mem, 5000), 5000);
		ck_assert_uint_eq(sum_of(mem, 5000), sum);
	}
	/* Where it costs nothing, each call has its own. */
	ck_assert_uint_eq(one_info(c).registered, _i ? 1 : 10);
	ck_assert_uint_eq(one_info(c).reused, _i ? 10 : 0);
	loop_fabric_break(&rig.fabric);
	/* A new connection has a new registration. */
	ck_assert_uint_eq(sum_of(mem, 5000), sum);
	ck_assert_uint_eq(one_info(c).registered, _i ? 2 : 11);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), 0);
	close_all();
}

TEST(a_region_bounds_the_calls_that_name_it)
{
	struct gannet_rpcrdma_region *sink, *source;
	struct gannet_rpcrdma_memory mem;

	open_with(false, NULL);
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory + 100, 1000,
				GANNET_RPCRDMA_SINK, &sink), 0);
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory + 100, 1000,
				GANNET_RPCRDMA_SOURCE, &source), 0);
	mem = one_memory(memory + 100, 1000);
	mem.region = sink;
	ck_assert_uint_eq(read_to(mem, 1000), 1000);
	mem.region = source;
	ck_assert_int_eq(start_error(mem), -EINVAL);
	mem = one_memory(memory + 101, 1000);
	mem.region = sink;
	ck_assert_int_eq(start_error(mem), -EINVAL);
	mem = one_memory(memory + 99, 2);
	mem.region = sink;
	ck_assert_int_eq(start_error(mem), -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, sink), 0);
	/* The other is left to the close. */
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory, 0,
				GANNET_RPCRDMA_SINK, &sink), -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory, SIZE_MAX,
				GANNET_RPCRDMA_SINK, &sink), -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory, 1, 0, &sink),
			 -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory, 1, 4, &sink),
			 -EINVAL);
	close_all();
}

TEST(a_region_is_of_one_client)
{
	const struct gannet_rpcrdma_options co = { .size = sizeof(co) };
	struct gannet_rpcrdma_memory mem = one_memory(memory, 1000);
	struct gannet_rpcrdma *other;

	open_with(false, NULL);
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, &co, &other),
			 0);
	ck_assert_int_eq(gannet_rpcrdma_register(other, memory, 1000,
				GANNET_RPCRDMA_SINK, &mem.region), 0);
	ck_assert_int_eq(start_error(mem), -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, mem.region), -EINVAL);
	ck_assert_int_eq(gannet_rpcrdma_deregister(other, mem.region), 0);
	gannet_rpcrdma_close(other);
	close_all();
}

static bool held(void *arg)
{
	return rig_held(&rig) > 0;
}

TEST(a_region_stays_while_a_call_names_it)
{
	struct gannet_rpcrdma_region *region;
	struct one o;

	rig_on_loop();
	open_with(true, NULL);
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory, ROOM,
				GANNET_RPCRDMA_SINK, &region), 0);
	one_init(&o, c, OP_HOLD, 0);
	o.call.nsinks = 1;
	o.call.sink[0] = one_memory(memory, 100);
	o.call.sink[0].region = region;
	one_start(&o, c);
	wait_until(held, NULL);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), -EBUSY);
	rig_release(&rig);
	ck_assert_int_eq(one_wait(&o), 0);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), 0);
	close_all();
}

TEST(the_cache_keeps_what_was_used_last)
{
	struct gannet_rpcrdma_options co = {
		.registration = GANNET_RPCRDMA_CACHE, .cache_pieces = 2,
		.cache_bytes = 2 * ROOM,
	};

	rig_on_loop();
	open_with(true, &co);
	read_to(one_memory(memory, ROOM), 100);
	read_to(one_memory(memory, ROOM), 100);
	/* A part of a piece is no other piece. */
	read_to(one_memory(memory + 50, ROOM - 50), 100);
	ck_assert_uint_eq(one_info(c).registered, 1);
	ck_assert_uint_eq(one_info(c).reused, 2);
	/* A source is no sink. */
	sum_of(one_memory(memory, 4), 4);
	ck_assert_uint_eq(one_info(c).registered, 2);
	/* Two fit: the first goes. */
	read_to(one_memory(memory + ROOM, ROOM - 4), 100);
	ck_assert_uint_eq(one_info(c).registered, 3);
	sum_of(one_memory(memory, 4), 4);
	ck_assert_uint_eq(one_info(c).registered, 3);
	read_to(one_memory(memory, ROOM), 100);
	ck_assert_uint_eq(one_info(c).registered, 4);
	/* No piece is longer than the cache. */
	read_to(one_memory(memory, 3 * ROOM), 100);
	read_to(one_memory(memory, 3 * ROOM), 100);
	ck_assert_uint_eq(one_info(c).registered, 6);
	close_all();
}

TEST_LOOP(a_window_needs_no_registration_of_its_own, 0, 2)
{
	struct gannet_rpcrdma_options co = {
		.registration = GANNET_RPCRDMA_WINDOWS };
	struct gannet_rpcrdma_region *region;
	struct gannet_rpcrdma_memory mem = one_memory(memory + ROOM, 100);
	struct iovec iov[6];

	rig_on_loop();
	windows = _i;
	open_with(true, &co);
	for (int i = 0; i < 5; i++)
		ck_assert_uint_eq(read_to(one_memory(memory, 5000), 5000),
				  5000);
	/* A device without windows registers for each call. */
	ck_assert_uint_eq(one_info(c).registered, _i ? 1 : 5);
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory + ROOM, ROOM,
				GANNET_RPCRDMA_SINK, &region), 0);
	mem.region = region;
	ck_assert_uint_eq(read_to(mem, 100), 100);
	ck_assert_uint_eq(one_info(c).registered, _i ? 2 : 6);
	/* A call has four windows. */
	for (int i = 0; i < 6; i++)
		iov[i] = (struct iovec){ memory + ROOM + 10 * i, 10 };
	mem.niov = 6;
	mem.iov = iov;
	ck_assert_uint_eq(read_to(mem, 60), 60);
	ck_assert_uint_eq(one_info(c).registered, _i ? 4 : 12);
	close_all();
	windows = false;
}

TEST(forgotten_memory_is_registered_again)
{
	struct gannet_rpcrdma_options co = {
		.registration = GANNET_RPCRDMA_CACHE };
	struct loop_fabric_counts before, after;
	struct one o;

	rig_on_loop();
	open_with(true, &co);
	rig_count(&rig, &before);
	read_to(one_memory(memory, 100), 100);
	/* Its neighbours say nothing about it. */
	gannet_rpcrdma_forget(c, memory + 100, 50);
	read_to(one_memory(memory, 100), 100);
	ck_assert_uint_eq(one_info(c).registered, 1);
	gannet_rpcrdma_forget(c, memory + 99, 50);
	rig_count(&rig, &after);
	ck_assert_uint_eq(after.mrs, before.mrs);
	one_init(&o, c, OP_HOLD, 0);
	o.call.nsinks = 1;
	o.call.sink[0] = one_memory(memory, 100);
	one_start(&o, c);
	wait_until(held, NULL);
	ck_assert_uint_eq(one_info(c).registered, 2);
	/* A call still uses it: it goes with that. */
	gannet_rpcrdma_forget(c, memory, 1);
	rig_count(&rig, &after);
	ck_assert_uint_eq(after.mrs, before.mrs + 1);
	rig_release(&rig);
	ck_assert_int_eq(one_wait(&o), 0);
	rig_count(&rig, &after);
	ck_assert_uint_eq(after.mrs, before.mrs);
	close_all();
}

TEST(forgotten_memory_of_a_call_that_waits_is_not_cached)
{
	const struct iovec iov[] = { { memory + ROOM, 50 }, { memory, 50 } };
	struct gannet_rpcrdma_options co = {
		.registration = GANNET_RPCRDMA_CACHE };
	struct loop_fabric_counts before, after;
	struct one first, o[2];

	rig_on_loop();
	open_with(true, &co);
	rig_count(&rig, &before);
	/* Until it is answered the client has one credit. */
	one_init(&first, c, OP_HOLD, 0);
	one_start(&first, c);
	wait_until(held, NULL);
	for (int i = 0; i < 2; i++) {
		one_init(&o[i], c, OP_READ, 100);
		o[i].call.nsinks = 1;
		o[i].call.sink[0] = i ? one_memory(memory + 50, 100) :
			(struct gannet_rpcrdma_memory){ .niov = 2, .iov = iov };
		one_start(&o[i], c);
	}
	gannet_rpcrdma_forget(c, memory + 49, 1);
	rig_release(&rig);
	ck_assert_int_eq(one_wait(&first), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(one_wait(&o[i]), 0);
	rig_count(&rig, &after);
	/* The second's, which was not forgotten. */
	ck_assert_uint_eq(after.mrs, before.mrs + 1);
	close_all();
}

TEST(the_message_of_a_call_is_not_cached)
{
	static uint32_t message[2500];
	struct gannet_rpcrdma_options co = {
		.registration = GANNET_RPCRDMA_CACHE };
	struct loop_fabric_counts before, after;
	struct one o;

	rig_on_loop();
	open_with(true, &co);
	rig_count(&rig, &before);
	for (unsigned i = 1; i <= 2; i++) {
		one_init(&o, c, 99, 0);
		memcpy(message, o.words, 12);
		o.call.msg = message;
		o.call.msg_len = sizeof(message);
		one_start(&o, c);
		ck_assert_int_eq(one_wait(&o), 0);
		ck_assert_uint_eq(one_info(c).registered, i);
	}
	rig_count(&rig, &after);
	ck_assert_uint_eq(after.mrs, before.mrs);
	close_all();
}

/* ---- a device that locks only so much of the memory */

static const struct fabric_ops *real;
static struct fabric_ops small;
static size_t locked, limit;			/* the loop's */

static bool in_memory(const void *addr)
{
	uintptr_t from = (uintptr_t)memory;

	return (uintptr_t)addr >= from &&
	       (uintptr_t)addr < from + sizeof(memory);
}

static int lock_some(struct fabric_device *dev, void *addr, size_t len,
		     unsigned access, struct fabric_mr **out)
{
	if (in_memory(addr) && locked + len > limit)
		return -ENOMEM;
	locked += in_memory(addr) ? len : 0;
	return real->mr_create(dev, addr, len, access, out);
}

static int unlock_some(struct fabric_mr *mr)
{
	locked -= in_memory(mr->addr) ? mr->len : 0;
	return real->mr_destroy(mr);
}

static struct fabric_device *device_of(struct rpcrdma_requester *r)
{
	struct rpcrdma_requester_info i;

	rpcrdma_requester_info(r, &i);
	return container_of(i.conn, struct fabric_conn, info)->dev;
}

static void make_small(void *arg)
{
	struct fabric_device *dev = device_of(c->r);

	real = dev->ops;
	small = *real;
	small.mr_create = lock_some;
	small.mr_destroy = unlock_some;
	dev->ops = &small;
	locked = 0;
	limit = 2 * ROOM;
}

static void make_smaller(void *arg)
{
	limit = ROOM / 2;
}

static void make_real(void *arg)
{
	device_of(c->r)->ops = real;
}

TEST(the_cache_gives_way_when_no_more_memory_can_be_locked)
{
	struct gannet_rpcrdma_options co = {
		.registration = GANNET_RPCRDMA_CACHE };
	struct gannet_rpcrdma_region *region;

	rig_on_loop();
	open_with(true, &co);
	loop_call(c->loop, make_small, NULL);
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(read_to(one_memory(memory + i * ROOM, ROOM),
					  100),
				  100);
	/* The ones used last have stayed. */
	ck_assert_uint_eq(one_info(c).registered, 4);
	read_to(one_memory(memory + 2 * ROOM, ROOM), 100);
	ck_assert_uint_eq(one_info(c).registered, 4);
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory, 2 * ROOM,
				GANNET_RPCRDMA_SINK, &region), 0);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, region), 0);
	loop_call(c->loop, make_real, NULL);
	close_all();
}

TEST(a_segment_is_registered_alone_when_its_region_can_not_be)
{
	struct gannet_rpcrdma_memory mem = one_memory(memory, 100);

	rig_on_loop();
	open_with(true, NULL);
	loop_call(c->loop, make_small, NULL);
	ck_assert_int_eq(gannet_rpcrdma_register(c, memory, ROOM,
				GANNET_RPCRDMA_SINK, &mem.region), 0);
	loop_call(c->loop, make_smaller, NULL);
	loop_fabric_break(&rig.fabric);
	ck_assert_uint_eq(read_to(mem, 100), 100);
	ck_assert_int_eq(gannet_rpcrdma_deregister(c, mem.region), 0);
	loop_call(c->loop, make_real, NULL);
	close_all();
}

TEST(the_structs_of_a_newer_program_are_taken_if_they_ask_for_nothing_new)
{
	struct {
		struct gannet_rpcrdma_options co;
		uint64_t added;
	} o = { .co.size = sizeof(o) };
	struct {
		struct gannet_rpcrdma_info info;
		uint64_t added;
	} i = { .info.size = sizeof(i), .added = 7 };
	struct gannet_rpcrdma *none;
	struct one call;

	open_with(false, NULL);
	gannet_rpcrdma_info(c, &i.info);
	ck_assert_uint_eq(i.info.size, sizeof(i));
	ck_assert(i.info.connected);
	ck_assert_uint_eq(i.added, 0);
	/* An older one has fewer members. */
	i.info.size = offsetof(struct gannet_rpcrdma_info, reused);
	i.info.reused = 99;
	gannet_rpcrdma_info(c, &i.info);
	ck_assert_uint_eq(i.info.reused, 99);

	one_init(&call, c, 99, 0);
	call.call.size = CALL_FIRST - 1;
	ck_assert_int_eq(gannet_rpcrdma_call(c, &call.call), -EINVAL);

	o.added = 1;
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, &o.co, &none),
			 -E2BIG);
	o.co.size = 8;
	ck_assert_int_eq(client_connect(&rig.fabric,
			(struct sockaddr *)&rig.listener->local, &o.co, &none),
			 -EINVAL);
	close_all();
}
