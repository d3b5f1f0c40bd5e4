/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting and completions of the verbs provider, over a fake device. */
#include "tests/unit/verbs_fixture.h"

#include <errno.h>
#include <string.h>

#include "lib/stats.h"
#include "tests/unit/runner.h"

static uint64_t counted(const char *name)
{
	return stats_sum_by_name(name);
}

TEST(the_completion_queue_has_room_for_a_flush_of_all)
{
	begin();
	connected();
	ck_assert_uint_eq(fake.cq_depth, 64 + RECVS);
	ck_assert_int_eq(fake.qp->attr.sq_sig_all, 0);
	ck_assert_uint_eq(fake.qp->attr.cap.max_send_wr, 64);
	ck_assert_uint_eq(fake.qp->attr.cap.max_recv_wr, RECVS);
	ck_assert_uint_eq(fake.qp->attr.cap.max_send_sge, 4);
	/* All of it unsignaled but the last. */
	ck_assert_int_eq(fabric_post(conn, chain(64, 1ull << 63)), 0);
	finish();
}

TEST(only_steps_with_an_op_are_signaled)
{
	begin();
	connected();
	chain(3, 5);
	wrs[1].opcode = FABRIC_READ;
	wrs[2].opcode = FABRIC_SEND_INV;
	wrs[2].invalidate = 0x77;
	ck_assert_int_eq(fabric_post(conn, wrs), 0);
	ck_assert_uint_eq(fake.posts, 1);
	ck_assert_uint_eq(fake.qp->nsends, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct fake_wr *wr = &fake.qp->sends[i];

		ck_assert_int_eq(wr->signaled, i != 1);
		ck_assert_uint_eq(wr->wr_id, i == 1 ? 0 :
				  (uintptr_t)&ops[i].op);
		ck_assert_uint_eq(wr->nsge, 1);
		ck_assert_uint_eq(wr->sge[0].addr, (uintptr_t)&sges[i]);
		ck_assert_uint_eq(wr->sge[0].length, i + 1);
		ck_assert_uint_eq(wr->sge[0].lkey, 100 + i);
	}
	ck_assert_uint_eq(fake.qp->sends[0].opcode, IBV_WR_RDMA_WRITE);
	ck_assert_uint_eq(fake.qp->sends[0].rkey, 1000);
	ck_assert_uint_eq(fake.qp->sends[0].remote_addr, 1ull << 40);
	ck_assert_uint_eq(fake.qp->sends[1].opcode, IBV_WR_RDMA_READ);
	ck_assert_uint_eq(fake.qp->sends[1].rkey, 1001);
	ck_assert_uint_eq(fake.qp->sends[2].opcode, IBV_WR_SEND_WITH_INV);
	ck_assert_uint_eq(fake.qp->sends[2].rkey, 0x77);
	fake_send_done(IBV_WC_SUCCESS);
	wait_sem(&ops[0].sem);
	fake_send_done(IBV_WC_SUCCESS);
	wait_sem(&ops[2].sem);
	ck_assert_int_eq(ops[0].status, 0);
	ck_assert_int_eq(ops[2].status, 0);
	finish();
	ck_assert_int_eq(atomic_load(&ops[0].calls), 1);
	ck_assert_int_eq(atomic_load(&ops[1].calls), 0);
	ck_assert_int_eq(atomic_load(&ops[2].calls), 1);
}

TEST(a_receive_says_its_length_and_what_it_invalidated)
{
	begin();
	connected();
	recvs[0].has_invalidated = true;
	fake_recv_done(IBV_WC_SUCCESS, 5, 0);
	wait_sem(&recv_ops[0].sem);
	ck_assert_int_eq(recv_ops[0].status, 0);
	ck_assert_uint_eq(recv_ops[0].len, 5);
	ck_assert(!recvs[0].has_invalidated);
	fake_recv_done(IBV_WC_SUCCESS, 6, 0xabcd);
	wait_sem(&recv_ops[1].sem);
	ck_assert_uint_eq(recv_ops[1].len, 6);
	ck_assert(recvs[1].has_invalidated);
	ck_assert_uint_eq(recvs[1].invalidated, 0xabcd);
	finish();
}

TEST_LOOP(statuses_are_translated_and_end_the_connection, 0, 8)
{
	static const struct { enum ibv_wc_status wc; int status; } map[] = {
		{ IBV_WC_WR_FLUSH_ERR, -ECANCELED },
		{ IBV_WC_REM_ACCESS_ERR, -EREMOTEIO },
		{ IBV_WC_REM_INV_REQ_ERR, -EREMOTEIO },
		{ IBV_WC_REM_OP_ERR, -EREMOTEIO },
		{ IBV_WC_LOC_LEN_ERR, -EMSGSIZE },
		{ IBV_WC_RETRY_EXC_ERR, -EIO },
		{ IBV_WC_RNR_RETRY_EXC_ERR, -EIO },
		{ IBV_WC_FATAL_ERR, -EIO },
	};

	begin();
	connected();
	ck_assert_int_eq(fabric_post(conn, chain(2, 2)), 0);
	fake_send_done(map[_i].wc);
	wait_sem(&ops[1].sem);
	ck_assert_int_eq(ops[1].status, map[_i].status);
	finished(map[_i].status == -ECANCELED ? -ECONNABORTED
					      : map[_i].status);
}

/* On iWARP the end of the stream flushes posted work, and the CM reports it
 * later; elsewhere the CM would first report that the peer closed. */
TEST(on_iwarp_flushed_work_says_that_the_peer_closed)
{
	begin_iwarp();
	connected();
	ck_assert_int_eq(fabric_post(conn, chain(2, 2)), 0);
	fake_send_done(IBV_WC_WR_FLUSH_ERR);
	wait_sem(&ops[1].sem);
	ck_assert_int_eq(ops[1].status, -ECANCELED);
	fake_event(fake.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	finished(-ECONNRESET);
}

TEST(a_step_without_an_op_fails_through_the_next_that_has_one)
{
	begin();
	connected();
	ck_assert_int_eq(fabric_post(conn, chain(4, 9)), 0);
	fake_send_done(IBV_WC_SUCCESS);
	wait_sem(&ops[0].sem);
	fake_unsignaled_failed(IBV_WC_REM_ACCESS_ERR);
	finished(-EREMOTEIO);
	ck_assert_int_eq(ops[0].status, 0);
	ck_assert_int_eq(atomic_load(&ops[3].calls), 1);
	ck_assert_int_eq(ops[3].status, -EREMOTEIO);
}

TEST(a_chain_that_is_refused_whole_calls_nobody)
{
	begin();
	connected();
	fake.post_errno = ENOMEM;
	fake.post_at = 1;
	ck_assert_int_eq(fabric_post(conn, chain(3, 7)), -ENOMEM);
	settle();
	ck_assert_int_eq(atomic_load(&closed_calls), 0);
	/* Nothing is left behind of it. */
	fake.post_errno = 0;
	ck_assert_int_eq(fabric_post(conn, chain(2, 2)), 0);
	fake_send_done(IBV_WC_SUCCESS);
	wait_sem(&ops[1].sem);
	ck_assert_int_eq(ops[1].status, 0);
	finish();
	ck_assert_int_eq(atomic_load(&ops[0].calls), 0);
	ck_assert_int_eq(atomic_load(&ops[1].calls), 1);
}

/* Refused at the _i-th step of 60, which are more than one batch. */
TEST_LOOP(a_chain_that_is_taken_in_part_ends_the_connection, 0, 5)
{
	static const unsigned at[] = { 2, 32, 33, 34, 60 };

	begin();
	connected();
	fake.post_errno = ENOMEM;
	fake.post_at = at[_i];
	ck_assert_int_eq(fabric_post(conn, chain(60, ~0ull)), 0);
	finished(-EIO);
	ck_assert_uint_eq(counted("verbs_post_partial"), 1);
	for (unsigned i = 0; i < 60; i++) {
		ck_assert_int_eq(atomic_load(&ops[i].calls), 1);
		ck_assert_int_eq(ops[i].status, -ECANCELED);
		if (i)
			ck_assert_uint_gt(ops[i].turn, ops[i - 1].turn);
		/* Their memory was no longer in use. */
		ck_assert_uint_eq(ops[i].qps_destroyed, i + 1 >= at[_i]);
	}
}

TEST(a_device_that_forgets_its_error_is_not_believed)
{
	begin();
	connected();
	fake.post_errno = ENOMEM;
	fake.post_forgets = true;
	fake.post_at = 3;
	ck_assert_int_eq(fabric_post(conn, chain(5, ~0ull)), 0);
	finished(-EIO);
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(atomic_load(&ops[i].calls), 1);
}

static void set_up_and_reject(void *arg)
{
	set_up(arg);
	fabric_reject(conn);
	/* The memory of the Receives is ours again. */
	ck_assert_uint_eq(fake.qps_destroyed, 1);
}

/* A peer asks, and the device takes only some of our Receives. */
static int request_and(void (*set_up_how)(void *))
{
	int err;

	begin();
	ck_assert_int_eq(try_listen(), 0);
	fake_request("", 0, 4, 4);
	wait_sem(&requested);
	fake.post_errno = ENOMEM;
	fake.post_at = 5;
	loop_call(conn_loop, set_up_how, &err);
	return err;
}

TEST(receives_that_are_taken_in_part_end_the_connection)
{
	ck_assert_int_eq(request_and(set_up), 0);
	finished(-EIO);
}

TEST(a_peer_may_be_rejected_when_its_receives_failed)
{
	request_and(set_up_and_reject);
	settle();
	ck_assert_int_eq(atomic_load(&closed_calls), 0);
	ck_assert_uint_eq(fake.rejects, 1);
	end();
}

static void who(void *arg)
{
	*(pthread_t *)arg = pthread_self();
}

static const uint32_t vendors[] = { 0x2c9, 0x626d74, 0xffffff };

TEST_LOOP(devices_without_a_doorbell_are_told_on_the_loop, 0, 3)
{
	pthread_t poller;

	begin();
	fake.attr.vendor_id = vendors[_i];
	connected();
	loop_call(conn_loop, who, &poller);
	/* From a thread other than the poller. */
	ck_assert_int_eq(fabric_post(conn, chain(40, ~0ull)), 0);
	settle();
	ck_assert_uint_eq(fake.qp->nsends, 40);
	ck_assert_int_eq(!!pthread_equal(fake.poster, poller), _i > 0);
	for (unsigned i = 0; i < 40; i++) {
		ck_assert_uint_eq(fake.qp->sends[i].wr_id,
				  (uintptr_t)&ops[i].op);
		fake_send_done(IBV_WC_SUCCESS);
		wait_sem(&ops[i].sem);
	}
	finish();
}

static void *post_one(void *arg)
{
	ck_assert_int_eq(fabric_post(conn, &wrs[0]), 0);
	return NULL;
}

/* On the loop, which is busy with us: posted, and closed before that. */
static void post_and_close(void *arg)
{
	pthread_t *other = arg;

	fabric_close(conn);
	pthread_create(other, NULL, post_one, NULL);
	pthread_join(*other, NULL);
	fabric_post(conn, &wrs[1]);
}

TEST(chains_that_wait_for_the_loop_are_flushed)
{
	pthread_t other;

	begin();
	fake.attr.vendor_id = vendors[1];
	connected();
	chain(2, 3);
	wrs[0].next = NULL;
	loop_call(conn_loop, post_and_close, &other);
	finished(0);
	for (unsigned i = 0; i < 2; i++) {
		ck_assert_int_eq(atomic_load(&ops[i].calls), 1);
		ck_assert_int_eq(ops[i].status, -ECANCELED);
	}
	ck_assert_uint_gt(ops[1].turn, ops[0].turn);
}

#define ANSWERS	4

static void answer(struct fabric_op *op, int status, uint32_t len)
{
	struct op *o = container_of(op, struct op, op);

	ck_assert_int_eq(fabric_post(conn, &wrs[o - recv_ops]), 0);
	o->calls++;
	sem_post(&o->sem);
}

static void many_come(void *arg)
{
	for (int i = 0; i < ANSWERS; i++)
		fake_recv_done(IBV_WC_SUCCESS, 5, 0);
}

TEST_LOOP(answers_to_what_came_together_are_posted_together,
	  0, ARRAY_SIZE(vendors))
{
	begin();
	fake.attr.vendor_id = vendors[_i];
	connected();
	chain(ANSWERS, ~0ull);
	for (int i = 0; i < ANSWERS; i++) {
		wrs[i].next = NULL;
		recv_ops[i].op.done = answer;
	}
	loop_call(conn_loop, many_come, NULL);
	for (int i = 0; i < ANSWERS; i++)
		wait_sem(&recv_ops[i].sem);
	settle();
	ck_assert_uint_eq(fake.qp->nsends, ANSWERS);
	for (int i = 0; i < ANSWERS; i++)
		ck_assert_uint_eq(fake.qp->sends[i].wr_id,
				  (uintptr_t)&ops[i].op);
	/* A device with a doorbell has each at once. */
	ck_assert_uint_eq(fake.posts, _i > 0 ? 1 : ANSWERS);
	for (int i = 0; i < ANSWERS; i++) {
		fake_send_done(IBV_WC_SUCCESS);
		wait_sem(&ops[i].sem);
	}
	finish();
}

/* The device says no when the caller was told yes. */
TEST(a_chain_that_is_refused_later_ends_the_connection)
{
	begin();
	fake.attr.vendor_id = vendors[1];
	connected();
	fake.post_errno = EACCES;
	fake.post_at = 1;
	ck_assert_int_eq(fabric_post(conn, chain(3, ~0ull)), 0);
	finished(-EIO);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(atomic_load(&ops[i].calls), 1);
}

TEST(work_that_a_device_does_not_flush_is_flushed)
{
	begin();
	connected();
	fake.keeps_work = true;
	ck_assert_int_eq(fabric_post(conn, chain(6, 0x24)), 0);
	finish();
	for (unsigned i = 0; i < 6; i++)
		ck_assert_int_eq(atomic_load(&ops[i].calls),
				 i == 2 || i == 5);
	ck_assert_int_eq(ops[5].status, -ECANCELED);
	ck_assert_uint_eq(ops[5].qps_destroyed, 1);
	ck_assert_uint_gt(ops[5].turn, ops[2].turn);
	ck_assert_int_eq(recv_ops[0].status, -ECANCELED);
}

TEST(work_done_before_the_end_completes_as_done)
{
	begin();
	connected();
	fake.keeps_work = true;
	ck_assert_int_eq(fabric_post(conn, chain(3, 7)), 0);
	fake.fail_call = 0;
	fake_send_done(IBV_WC_SUCCESS);
	fabric_close(conn);
	finished(0);
	ck_assert_int_eq(ops[0].status, 0);
	ck_assert_int_eq(ops[1].status, -ECANCELED);
}

TEST_LOOP(completions_out_of_order_are_reported_in_order, 0, 2)
{
	begin();
	connected();
	ck_assert_int_eq(fabric_post(conn, chain(3, 7)), 0);
	/* As a Send overtakes a Read. */
	fake_stray_done((uintptr_t)&ops[2].op);
	settle();
	ck_assert_int_eq(atomic_load(&ops[2].calls), 0);
	fake_send_done(IBV_WC_SUCCESS);
	wait_sem(&ops[0].sem);
	ck_assert_int_eq(atomic_load(&ops[2].calls), 0);
	fake.keeps_work = true;
	if (_i)
		fake_send_done(IBV_WC_SUCCESS);
	else
		fabric_close(conn);
	wait_sem(&ops[1].sem);
	wait_sem(&ops[2].sem);
	if (_i)
		fabric_close(conn);
	finished(0);
	ck_assert_int_eq(ops[1].status, _i ? 0 : -ECANCELED);
	ck_assert_int_eq(ops[2].status, 0);
	ck_assert_uint_gt(ops[2].turn, ops[1].turn);
	ck_assert_uint_eq(counted("verbs_stray"), 0);
}

TEST_LOOP(a_stray_completion_calls_nobody, 0, 3)
{
	begin();
	connected();
	ck_assert_int_eq(fabric_post(conn, chain(2, 3)), 0);
	/* Not an address, a Receive that is not next, and one done twice. */
	if (_i == 2) {
		fake_send_done(IBV_WC_SUCCESS);
		wait_sem(&ops[0].sem);
	}
	fake_stray_done(_i == 0 ? 1 : _i == 1 ? (uintptr_t)&recvs[1]
					      : (uintptr_t)&ops[0].op);
	finished(-EIO);
	ck_assert_uint_eq(counted("verbs_stray"), 1);
	ck_assert_int_eq(atomic_load(&ops[0].calls), 1);
	ck_assert_int_eq(atomic_load(&ops[1].calls), 1);
	ck_assert_uint_gt(ops[1].turn, ops[0].turn);
}

TEST(more_ops_than_the_queue_are_refused)
{
	begin();
	connected();
	ck_assert_int_eq(fabric_post(conn, chain(60, ~0ull)), 0);
	for (unsigned i = 0; i < 60; i++) {
		fake_send_done(IBV_WC_SUCCESS);
		wait_sem(&ops[i].sem);
	}
	ck_assert_int_eq(fabric_post(conn, chain(64, ~0ull)), 0);
	{
		struct op late;
		struct fabric_wr wr = { .opcode = FABRIC_SEND,
					.op = &late.op };

		op_init(&late);
		ck_assert_int_eq(fabric_post(conn, &wr), -ENOMEM);
		ck_assert_uint_eq(fake.qp->nsends, 60 + 64);
	}
	finish();
}

TEST(nothing_is_posted_after_the_end)
{
	begin();
	connected();
	fabric_close(conn);
	wait_sem(&closed);
	ck_assert_int_eq(fabric_post(conn, chain(1, 1)), -ENOTCONN);
	ck_assert_int_eq(fabric_post_recv(conn, recvs), -ENOTCONN);
	sem_post(&closed);
	finished(0);
}

TEST(a_completion_that_comes_while_it_is_armed_is_not_lost)
{
	begin();
	connected();
	fake.eager = true;
	/* The first wakes the loop; the next comes as it goes to sleep. */
	ck_assert_int_eq(fabric_post(conn, chain(2, 3)), 0);
	fake_send_done(IBV_WC_SUCCESS);
	wait_sem(&ops[0].sem);
	wait_sem(&ops[1].sem);
	finish();
}

TEST(many_wake_ups_are_acknowledged)
{
	begin();
	connected();
	for (unsigned i = 0; i < 200; i++) {
		ck_assert_int_eq(fabric_post(conn, chain(1, 1)), 0);
		fake_send_done(IBV_WC_SUCCESS);
		wait_sem(&ops[0].sem);
	}
	finish();
}
