/* SPDX-License-Identifier: BSD-2-Clause */
/* The client library, and structs of other versions. */
#include <errno.h>
#include <string.h>

#include "client/rpcrdma/client.h"
#include "tests/server/one_call.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

static struct rig rig;
static struct gannet_rpcrdma *c;

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

TEST_CASE(.timeout = 30);

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
