/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client library's ways with memory: pieces; and structs of other
 * versions.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "client/rpcrdma/client.h"
#include "tests/server/one_call.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

enum { ROOM = 20000 };

static struct rig rig;
static struct gannet_rpcrdma *c;
static uint8_t memory[4 * ROOM];

static void open_with(bool pins, struct gannet_rpcrdma_options *co)
{
	const struct rig_options ro = { .fabric.active.pins = pins };
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

static struct gannet_rpcrdma_memory at(uint8_t *addr, uint32_t len)
{
	return (struct gannet_rpcrdma_memory){ .addr = addr, .len = len };
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
	/* So many fit no message beside the call's. */
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
	o.call.source[0].mem = at(memory, 8);
	o.call.source[1].position = UINT32_MAX - 4;
	o.call.source[1].mem = at(memory, 8);
	ck_assert_int_eq(gannet_rpcrdma_call(c, &o.call), -EINVAL);
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
	i.info.size = offsetof(struct gannet_rpcrdma_info, discarded);
	i.info.discarded = 99;
	gannet_rpcrdma_info(c, &i.info);
	ck_assert_uint_eq(i.info.discarded, 99);

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
