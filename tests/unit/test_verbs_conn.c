/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections and devices of the verbs provider, over a fake one. */
#include "tests/unit/verbs_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "tests/unit/runner.h"

TEST(a_request_says_who_asks_and_what_it_brings)
{
	const struct sockaddr_in *sin;

	begin();
	connected();
	ck_assert_uint_eq(conn->info.private_len, 5);
	ck_assert_int_eq(memcmp(conn->info.private_data, "hello", 5), 0);
	sin = (struct sockaddr_in *)&conn->info.peer;
	ck_assert_uint_eq(sin->sin_addr.s_addr,
			  htonl(0xc0000201) ^ htobe32(7));
	sin = (struct sockaddr_in *)&conn->info.local;
	ck_assert_uint_eq(sin->sin_addr.s_addr, htonl(0xc0000201));
	ck_assert(conn->info.remote_inv);
	finish();
}

TEST(read_depth_is_what_both_sides_can)
{
	begin();
	ck_assert_int_eq(try_listen(), 0);
	for (unsigned i = 0; i < 2; i++) {
		fake_request("", 0, i ? 200 : 3, 9);
		wait_sem(&requested);
		/* The device has 12 as an initiator. */
		ck_assert_uint_eq(conn->info.read_depth, i ? 12 : 3);
		fabric_reject(conn);
	}
	end();
}

TEST(accept_asks_for_patience_and_caps_the_depths)
{
	begin();
	connected();
	ck_assert_uint_eq(fake.param.rnr_retry_count, 7);
	ck_assert_uint_eq(fake.param.retry_count, 7);
	ck_assert_uint_eq(fake.param.initiator_depth, 4);
	/* 200 were granted, the device has 16 as a responder. */
	ck_assert_uint_eq(fake.param.responder_resources, 16);
	ck_assert_uint_eq(fake.param.private_data_len, 7);
	ck_assert_int_eq(fake.qp->rnr_timer, 12);
	finish();
}

TEST_LOOP(the_cm_can_end_a_connection, 0, 6)
{
	static const struct {
		enum rdma_cm_event_type type;
		int status;
		int err;
	} map[] = {
		{ RDMA_CM_EVENT_DISCONNECTED, 0, -ECONNRESET },
		{ RDMA_CM_EVENT_REJECTED, 28, -ECONNREFUSED },
		{ RDMA_CM_EVENT_UNREACHABLE, -ETIMEDOUT, -ETIMEDOUT },
		{ RDMA_CM_EVENT_CONNECT_ERROR, 0, -EHOSTUNREACH },
		{ RDMA_CM_EVENT_ADDR_CHANGE, 0, -ENETUNREACH },
		{ RDMA_CM_EVENT_DEVICE_REMOVAL, 0, -ENODEV },
	};

	begin();
	connected();
	ck_assert_int_eq(fabric_post(conn, chain(2, 2)), 0);
	fake_event(fake.id, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0);
	settle();
	ck_assert_int_eq(atomic_load(&closed_calls), 0);
	fake_event(fake.id, map[_i].type, map[_i].status);
	finished(map[_i].err);
	ck_assert_int_eq(atomic_load(&ops[1].calls), 1);
}

/* Its loop is not decided yet. */
TEST_LOOP(a_peer_may_give_up_before_it_is_answered, 0, 2)
{
	int err;

	begin();
	ck_assert_int_eq(try_listen(), 0);
	fake_request("hello", 5, 4, 4);
	wait_sem(&requested);
	fake_event(fake.id, _i ? RDMA_CM_EVENT_DEVICE_REMOVAL :
		   RDMA_CM_EVENT_DISCONNECTED, 0);
	settle();
	loop_call(conn_loop, set_up, &err);
	ck_assert_int_eq(err, 0);
	/* The kernel knows, and so does the call that accepts. */
	fake.fail_call = fake.calls + 1;
	loop_call(conn_loop, start, &err);
	ck_assert_int_lt(err, 0);
	finished(err);
}

TEST(infiniband_does_not_wait_for_the_peer_to_close)
{
	begin();
	connected();
	finish();
	ck_assert_uint_eq(fake.disconnects, 1);
}

static time_t seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

TEST_LOOP(iwarp_waits_for_the_peer_to_close, 0, 2)
{
	time_t begin;
	int calls;

	begin_iwarp();
	connected();
	ck_assert_int_eq(fake.qp->rnr_timer, -1);
	begin = seconds();
	fabric_close(conn);
	settle();
	ck_assert_uint_eq(fake.disconnects, 1);
	calls = atomic_load(&closed_calls);
	/* It waits for two seconds, which might have gone by. */
	if (seconds() - begin <= 1)
		ck_assert_int_eq(calls, 0);
	ck_assert_int_eq(fabric_post(conn, chain(1, 1)), -ENOTCONN);
	/* But not for ever. */
	if (!_i)
		fake_event(fake.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	finished(0);
}

TEST_LOOP(iwarp_has_its_own_limits, 0, 2)
{
	const struct fabric_limits *l;

	begin();
	if (_i)
		fake.transport = IBV_TRANSPORT_IWARP;
	fake.attr.device_cap_flags = 0;
	connected();
	l = &conn->dev->limits;
	ck_assert_uint_eq(l->max_sge, 16);
	ck_assert_int_eq(l->open_sinks, _i);
	ck_assert_uint_eq(l->max_wr, 1000);
	ck_assert_uint_eq(l->max_read_depth, 12);
	ck_assert_uint_eq(l->max_resp_depth, 16);
	ck_assert_uint_eq(l->max_private, 56);
	ck_assert_int_eq(conn->info.remote_inv, _i);
	if (_i)
		fake_event(fake.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	else
		fabric_close(conn);
	finished(_i ? -ECONNRESET : 0);
}

static unsigned access_of(unsigned access)
{
	struct fabric_mr *mr;
	char mem[64];

	ck_assert_int_eq(fabric_mr_create(conn->dev, mem, sizeof(mem), access,
					  &mr), 0);
	ck_assert_uint_eq(mr->lkey, 0x11);
	ck_assert_ptr_eq(mr->addr, mem);
	fabric_mr_destroy(mr);
	return fake.mr_access;
}

TEST_LOOP(memory_is_open_to_peers_only_where_it_must_be, 0, 2)
{
	const unsigned local = IBV_ACCESS_LOCAL_WRITE;
	const unsigned relaxed = IBV_ACCESS_RELAXED_ORDERING;

	begin();
	if (_i)
		fake.transport = IBV_TRANSPORT_IWARP;
	connected();
	ck_assert_uint_eq(access_of(FABRIC_LOCAL), local | relaxed);
	ck_assert_uint_eq(access_of(FABRIC_READ_SINK), local | relaxed |
			  (_i ? IBV_ACCESS_REMOTE_WRITE : 0));
	ck_assert_uint_eq(access_of(FABRIC_REMOTE_READ), local | relaxed |
			  IBV_ACCESS_REMOTE_READ);
	ck_assert_uint_eq(access_of(FABRIC_REMOTE_WRITE), local | relaxed |
			  IBV_ACCESS_REMOTE_WRITE);
	/* A device that does not know it does without. */
	fake.no_relaxed = true;
	ck_assert_uint_eq(access_of(FABRIC_LOCAL), local);
	fake_event(fake.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	finished(-ECONNRESET);
}

TEST(a_listener_at_any_address_takes_both_families)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	const struct sockaddr_in *sin;

	begin();
	ck_assert_int_eq(fabric_listen(&fabric, (struct sockaddr *)&any, loop,
				       on_request, NULL, &listener), 0);
	ck_assert_ptr_nonnull(fake.listener6);
	ck_assert_ptr_nonnull(fake.listener);
	sin = &fake.listener->route.addr.src_sin;
	ck_assert_uint_eq(sin->sin_addr.s_addr, 0);
	ck_assert_uint_eq(sin->sin_port, htons(20049));
	for (unsigned i = 0; i < 2; i++) {
		fake.use6 = i;
		fake_request("", 0, 1, 1);
		wait_sem(&requested);
		ck_assert_int_eq(conn->info.local.ss_family,
				 i ? AF_INET6 : AF_INET);
		fabric_reject(conn);
	}
	end();
}

TEST(a_listener_comes_back_with_its_device)
{
	begin();
	ck_assert_int_eq(try_listen(), 0);
	fake.no_port = true;
	fake_event(fake.listener, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	while (fake_listening())
		settle();
	fake.no_port = false;
	EVENTUALLY(fake_listening());
	settle();
	fake_request("", 0, 1, 1);
	wait_sem(&requested);
	fabric_reject(conn);
	end();
}

static void free_it(void *arg)
{
	fabric_free(conn);
}

static void fail_and_reject(void *arg)
{
	int err;

	set_up(&err);
	ck_assert_int_eq(err, 0);
	fake_async(*(enum ibv_event_type *)arg);
	fabric_reject(conn);
}

TEST(a_listener_follows_its_address_to_another_device)
{
	begin();
	ck_assert_int_eq(try_listen(), 0);
	fake_event(fake.listener, RDMA_CM_EVENT_ADDR_CHANGE, 0);
	settle();
	ck_assert_uint_eq(fake.listens, 2);
	ck_assert(fake_listening());
	fake_request("", 0, 1, 1);
	wait_sem(&requested);
	fabric_reject(conn);
	end();
}

/* Waits until the device's events were acted upon. */
static void reported(enum ibv_event_type type)
{
	fake_async(type);
	while (!fake_asyncs_over())
		settle();
}

TEST_LOOP(a_queue_or_device_that_fails_ends_the_connection, 0, 5)
{
	static const struct {
		enum ibv_event_type type;
		int err;
	} map[] = {
		{ IBV_EVENT_QP_FATAL, -EIO }, { IBV_EVENT_QP_REQ_ERR, -EIO },
		{ IBV_EVENT_QP_ACCESS_ERR, -EIO }, { IBV_EVENT_CQ_ERR, -EIO },
		{ IBV_EVENT_DEVICE_FATAL, -ENODEV },
	};

	begin();
	connected();
	ck_assert_int_eq(fabric_post(conn, chain(2, 2)), 0);
	reported(map[_i].type);
	finished(map[_i].err);
	ck_assert_int_eq(atomic_load(&ops[1].calls), 1);
}

TEST_LOOP(a_port_that_goes_down_may_come_back, 0, 4)
{
	static const enum ibv_event_type types[] = {
		IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE,
		IBV_EVENT_PATH_MIG, IBV_EVENT_SM_CHANGE,
	};

	begin();
	connected();
	reported(types[_i]);
	settle();
	ck_assert_int_eq(atomic_load(&closed_calls), 0);
	ck_assert_int_eq(fabric_post(conn, chain(2, 2)), 0);
	finish();
}

TEST(the_cm_hears_of_a_message_that_overtook_it)
{
	begin();
	connected();
	reported(IBV_EVENT_COMM_EST);
	ck_assert_uint_eq(fake.notified, 1);
	finish();
}

/* Reported while, or after, the connection is given up. */
TEST_LOOP(a_device_may_fail_while_its_connections_go, 0, 4)
{
	enum ibv_event_type type = _i % 2 ? IBV_EVENT_DEVICE_FATAL :
					    IBV_EVENT_QP_FATAL;

	begin();
	if (_i < 2) {
		connected();
		fake_async(type);
		fabric_close(conn);
		wait_sem(&closed);
		reported(IBV_EVENT_DEVICE_FATAL);
		loop_call(conn_loop, free_it, NULL);
	} else {
		ck_assert_int_eq(try_listen(), 0);
		fake_request("", 0, 4, 4);
		wait_sem(&requested);
		loop_call(conn_loop, fail_and_reject, &type);
		reported(IBV_EVENT_DEVICE_FATAL);
	}
	end();
	ck_assert_int_eq(atomic_load(&closed_calls), _i < 2);
}

/* The _i-th call that can fail does. */
TEST_LOOP(every_failure_is_undone, 0, 20)
{
	int err = 0;

	begin();
	fake.fail_call = (unsigned)_i + 1;
	if (try_listen()) {
		listener = NULL;
		end();
		return;
	}
	fake_request("", 0, 4, 4);
	do {
		settle();
	} while (sem_trywait(&requested) && fake.rejects == 0);
	if (fake.rejects == 0) {
		loop_call(conn_loop, set_up, &err);
		if (err) {
			fabric_reject(conn);
			settle();
			ck_assert_uint_eq(fake.rejects, 1);
			end();
			return;
		}
		loop_call(conn_loop, start, &err);
		if (!err)
			fabric_close(conn);
		/* Ending with the call that accepts. */
		ck_assert(!err || fake.calls == fake.fail_call);
		finished(err);
		return;
	}
	end();
}

static void connect_here(void *arg)
{
	int *err = arg;

	set_up(err);
	if (!*err)
		start(err);
}

TEST(an_active_end_learns_the_depth_of_the_answer)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0xc0000201) };
	int err;

	begin();
	ck_assert_int_eq(fabric_connect(&fabric, (struct sockaddr *)&sin,
					&conn), 0);
	ck_assert_uint_eq(conn->info.read_depth, 12);
	loop_call(conn_loop, connect_here, &err);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(fake.param.initiator_depth, 12);
	fake_answer("there", 5, 2);
	wait_sem(&established);
	ck_assert_uint_eq(conn->info.read_depth, 2);
	ck_assert_uint_eq(conn->info.private_len, 5);
	ck_assert_int_eq(memcmp(conn->info.private_data, "there", 5), 0);
	finish();
}

TEST(both_steps_of_resolving_have_one_time)
{
	struct sockaddr_in sin = { .sin_family = AF_INET };
	struct sockaddr *sa = (struct sockaddr *)&sin;

	begin();
	verbs_fabric_set_connect_ms(&fabric, 60000);
	fake.resolve_us = 20000;
	ck_assert_int_eq(fabric_connect(&fabric, sa, &conn), 0);
	ck_assert_int_le(fake.addr_ms, 60000);
	ck_assert_int_gt(fake.addr_ms, 0);
	ck_assert_int_le(fake.route_ms, 59980);
	ck_assert_int_gt(fake.route_ms, 0);
	fabric_free(conn);
	/* Nothing is left for the second. */
	verbs_fabric_set_connect_ms(&fabric, 10);
	fake.route_ms = 0;
	ck_assert_int_eq(fabric_connect(&fabric, sa, &conn), -ETIMEDOUT);
	ck_assert_int_eq(fake.route_ms, 0);
	end();
}

TEST(an_active_end_asks_again_where_its_id_has_to_hold_the_device)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(0xc0000201) };

	begin();
	fake.no_port = true;
	ck_assert_int_eq(fabric_connect(&fabric, (struct sockaddr *)&sin,
					&conn), 0);
	fabric_free(conn);
	ck_assert_uint_eq(fake.pds, 1);
	end();
}
