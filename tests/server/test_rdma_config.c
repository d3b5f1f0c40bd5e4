/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Connection Configuration Protocol (RFC 5666 section 6), against the
 * whole server.  MOUNT's list of exports is longer than 1 KiB here, so the way
 * it takes tells the limit that is in force.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/stats.h"
#include "mountd/mountd.h"
#include "rpc/rdma_config.h"
#include "tests/server/doors.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

#define MOUNT_EXPORT	5
#define NONE		UINT32_MAX

static const struct caller_cred nobody = { .none = true };
static struct doors d;
static struct caller c;

static void is_up(void *arg)
{
	sem_post(arg);
}

static void open_door_with(enum door door, struct harness_config hc,
			   const struct rpcrdma_requester_options *options)
{
	char exports[2048];
	size_t len = 0;
	struct rpcrdma_requester_options o = *options;

	hc.exports = exports;
	hc.rdma_mount = true;
	for (int i = 0; i < 20; i++)
		len += (size_t)snprintf(exports + len, sizeof(exports) - len,
			"/an-export-with-a-name-of-some-length-%02d "
			"127.0.0.1(insecure)\n", i);
	doors_open(&d, &hc);
	memset(&c, 0, sizeof(c));
	sem_init(&c.connected, 0, 0);
	sem_init(&c.done, 0, 0);
	c.fd = -1;
	o.connected = is_up;
	o.arg = &c.connected;
	ck_assert_int_eq(rpcrdma_requester_create(&d.fabric[door],
			(struct sockaddr *)&d.listener[door]->local, d.client,
			&o, &c.peer), 0);
	wait_sem(&c.connected);
}

static void open_door_of(enum door door, bool read_read,
			 const struct rpcrdma_requester_options *options)
{
	const struct harness_config hc = { .read_read = read_read };

	open_door_with(door, hc, options);
}

static void open_door(enum door door,
		      const struct rpcrdma_requester_options *options)
{
	open_door_of(door, false, options);
}

static void close_door(void)
{
	caller_close(&c);
	doors_close(&d);
}

/* True if the list of exports came inline. */
static bool list_is_inline(void)
{
	caller_begin(&c, MOUNT_PROGRAM, 3, MOUNT_EXPORT, &nobody);
	ck_assert_uint_eq(caller_send(&c), RPC_SUCCESS);
	ck_assert_uint_gt(c.req.reply_len, 1024);
	return !c.req.nomsg;
}

static uint32_t configure(uint32_t calls, uint32_t replies, uint32_t reads)
{
	caller_begin(&c, RDMA_CONFIG_PROGRAM, RDMA_CONFIG_VERSION, CONF_RDMA,
		     &nobody);
	xdr_put_u32(&c.out, calls);
	xdr_put_u32(&c.out, replies);
	if (reads != NONE)
		xdr_put_u32(&c.out, reads);
	return caller_send(&c);
}

/* Sends NULL as a long call, which the server has to read.  Its status. */
static int long_null(void)
{
	struct exchange x;
	int status;

	exchange_init(&x, 77, 0, 2);
	exchange_put(&x, RDMA_CONFIG_PROGRAM);
	exchange_put(&x, RDMA_CONFIG_VERSION);
	for (int i = 0; i < 5; i++)
		exchange_put(&x, 0);
	x.request.long_call = true;
	exchange_start(c.peer, &x);
	status = exchange_wait(&x);
	exchange_fini(&x);
	return status;
}

static const struct rpcrdma_requester_options silent = { .no_private = true };

TEST_CASE(.timeout = 30);

TEST_LOOP(limits_are_told_both_ways, DOOR_IWARP, NDOORS)
{
	open_door((enum door)_i, &silent);
	ck_assert(!list_is_inline());
	ck_assert_uint_eq(configure(4096, 4096, 16), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&c.in), 4096);
	ck_assert_uint_eq(xdr_get_u32(&c.in), 4);
	ck_assert_uint_eq(xdr_get_u32(&c.in), 0);
	ck_assert(xdr_ok(&c.in) && xdr_left(&c.in) == 0);
	ck_assert(list_is_inline());
	/* At least 1 KiB, and at most a Receive of the server's. */
	ck_assert_uint_eq(configure(0, 0, 16), RPC_SUCCESS);
	ck_assert(!list_is_inline());
	ck_assert_uint_eq(configure(NONE, NONE, 16), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&c.in), 4096);
	ck_assert(list_is_inline());
	close_door();
}

/* The Read-Read model, section 3.8. */
TEST_LOOP(clients_are_told_how_many_reads_are_answered, DOOR_IWARP, NDOORS)
{
	open_door_of((enum door)_i, true, &silent);
	ck_assert_uint_eq(configure(4096, 4096, 16), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&c.in), 4096);
	ck_assert_uint_eq(xdr_get_u32(&c.in), 4);
	ck_assert_uint_eq(xdr_get_u32(&c.in), 16);
	close_door();
}

TEST(clients_are_told_of_no_more_reads_than_the_device_answers)
{
	const struct harness_config hc = { .read_read = true,
					   .resp_depth = 3 };

	open_door_with(DOOR_LOOP, hc, &silent);
	ck_assert_uint_eq(configure(4096, 4096, 16), RPC_SUCCESS);
	xdr_get_u32(&c.in);
	xdr_get_u32(&c.in);
	ck_assert_uint_eq(xdr_get_u32(&c.in), 3);
	close_door();
}

TEST_LOOP(long_results_of_a_program_are_read, DOOR_IWARP, NDOORS)
{
	const struct rpcrdma_requester_options reads = {
		.read_read = true, .config_xid = 4711,
		.inline_size = 1024,
	};
	uint64_t exposed = stats_sum_by_name("rdma_exposed");

	open_door_of((enum door)_i, true, &reads);
	ck_assert(!list_is_inline());
	ck_assert_uint_eq(stats_sum_by_name("rdma_exposed"), exposed + 1);
	close_door();
}

TEST(nothing_is_read_from_a_client_that_lets_nobody_read)
{
	uint64_t refused = stats_sum_by_name("rdma_not_readable");

	open_door(DOOR_LOOP, &silent);
	ck_assert_int_eq(long_null(), 0);
	ck_assert_uint_eq(configure(4096, 4096, 0), RPC_SUCCESS);
	ck_assert_int_eq(long_null(), -EREMOTEIO);
	ck_assert_uint_eq(stats_sum_by_name("rdma_not_readable"), refused + 1);
	ck_assert_uint_eq(configure(4096, 4096, 1), RPC_SUCCESS);
	ck_assert_int_eq(long_null(), 0);
	close_door();
}

TEST_LOOP(a_requester_asks_before_its_first_call, DOOR_IWARP, NDOORS)
{
	const struct rpcrdma_requester_options asks = {
		.no_private = true, .config_xid = 4711, .inline_size = 8192,
	};
	uint64_t long_calls = stats_sum_by_name("rdma_long_calls");
	struct rpcrdma_requester_info info;

	open_door((enum door)_i, &asks);
	rpcrdma_requester_info(c.peer, &info);
	ck_assert(info.configured);
	ck_assert_uint_eq(info.send_inline, 4096);
	ck_assert_uint_eq(info.recv_inline, 8192);
	ck_assert(list_is_inline());
	/* NULL, and more bytes than the server takes in a Send. */
	caller_begin(&c, RDMA_CONFIG_PROGRAM, RDMA_CONFIG_VERSION, 0, &nobody);
	memset(xdr_reserve(&c.out, 4200), 0, 4200);
	ck_assert_uint_eq(caller_send(&c), RPC_SUCCESS);
	ck_assert_uint_eq(stats_sum_by_name("rdma_long_calls"),
			  long_calls + 1);
	close_door();
}

TEST(arguments_and_versions_are_checked)
{
	open_door(DOOR_LOOP, &silent);
	ck_assert_uint_eq(configure(4096, 4096, NONE), RPC_GARBAGE_ARGS);
	caller_begin(&c, RDMA_CONFIG_PROGRAM, 2, CONF_RDMA, &nobody);
	ck_assert_uint_eq(caller_send(&c), RPC_PROG_MISMATCH);
	caller_begin(&c, RDMA_CONFIG_PROGRAM, 1, 2, &nobody);
	ck_assert_uint_eq(caller_send(&c), RPC_PROC_UNAVAIL);
	close_door();
}

TEST(connections_of_tcp_have_no_limits_to_configure)
{
	uint64_t refused = stats_sum_by_name("rpc_only_rdma");

	doors_open(&d, NULL);
	caller_open(&c, &d, DOOR_TCP, false);
	ck_assert_uint_eq(configure(4096, 4096, 16), RPC_PROG_UNAVAIL);
	ck_assert_uint_eq(stats_sum_by_name("rpc_only_rdma"), refused + 1);
	close_door();
}
