/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices that differ: how much goes with a work request, and the vectors
 * of completions; over a fake one. */
#include "tests/unit/verbs_fixture.h"

#include <errno.h>
#include <string.h>

#include "lib/stats.h"
#include "tests/unit/runner.h"

/* ---- bytes that go with a work request */

static uint8_t message[400];
static struct fabric_sge pieces[4];

/* A Write without an op, then @wr, of @n pieces with @len bytes in all. */
static struct fabric_wr *message_of(enum fabric_opcode opcode, unsigned n,
				    uint32_t len)
{
	uint8_t *at = message;

	for (size_t i = 0; i < sizeof(message); i++)
		message[i] = (uint8_t)(i * 7);
	chain(2, 2);
	sges[0].len = 4000;
	for (unsigned i = 0; i < n; i++) {
		uint32_t part = i + 1 < n ? 20 : len - 20 * i;

		pieces[i] = (struct fabric_sge){ at, part, 100 };
		at += part;
	}
	wrs[1].opcode = opcode;
	wrs[1].sge = pieces;
	wrs[1].nsge = n;
	return wrs;
}

/* Posts it.  True if its bytes went along. */
static bool goes_along(enum fabric_opcode opcode, unsigned n, uint32_t len)
{
	const struct fake_wr *wr = &fake.qp->sends[fake.qp->nsends + 1];

	ck_assert_int_eq(fabric_post(conn, message_of(opcode, n, len)), 0);
	settle();
	ck_assert(!wr[-1].in_line);
	ck_assert_uint_eq(wr->nsge, n);
	/* Until the op is done the memory can change. */
	if (wr->in_line)
		ck_assert_int_eq(memcmp(wr->bytes, message, len), 0);
	fake_send_done(IBV_WC_SUCCESS);
	wait_sem(&ops[1].sem);
	return wr->in_line;
}

TEST(a_short_message_goes_with_its_work_request)
{
	begin();
	connected();
	ck_assert_uint_eq(fake.qps_refused, 0);
	ck_assert_uint_eq(fake.qp->attr.cap.max_inline_data, 312);
	ck_assert(goes_along(FABRIC_SEND, 1, 312));
	/* siw would fail it. */
	ck_assert(!goes_along(FABRIC_SEND_INV, 1, 100));
	ck_assert(goes_along(FABRIC_WRITE, 2, 100));
	ck_assert(!goes_along(FABRIC_SEND, 1, 313));
	ck_assert(!goes_along(FABRIC_SEND, 4, 313));
	/* A Read's bytes come from the peer. */
	ck_assert(!goes_along(FABRIC_READ, 1, 8));
	finish();
}

TEST_LOOP(a_device_that_has_room_for_fewer_bytes_gets_those, 0, 3)
{
	static const struct { unsigned max, asked; } map[] = {
		{ 200, 156 }, { 101, 78 }, { 63, 0 },
	};
	unsigned n = map[_i].asked;

	begin();
	fake.inline_max = map[_i].max;
	connected();
	ck_assert_uint_eq(fake.qps_refused, _i + 1);
	ck_assert_uint_eq(fake.qp->attr.cap.max_inline_data, n);
	if (n)
		ck_assert(goes_along(FABRIC_SEND, 2, n));
	ck_assert(!goes_along(FABRIC_SEND, 2, n + 25));
	ck_assert_uint_eq(stats_sum_by_name("verbs_inline_refused"), 1);
	finish();
}

static void free_conn(void *arg)
{
	fabric_free(conn);
}

TEST(the_next_connection_asks_for_what_the_device_has)
{
	begin();
	fake.inline_max = 101;
	connected();
	fabric_close(conn);
	wait_sem(&closed);
	loop_call(conn_loop, free_conn, NULL);
	fabric_unlisten(listener);
	atomic_store(&closed_calls, 0);
	connected();
	ck_assert_uint_eq(fake.qps_refused, 2);
	ck_assert_uint_eq(fake.qp->attr.cap.max_inline_data, 78);
	finish();
}

TEST(a_device_that_grants_fewer_bytes_than_asked_gets_those)
{
	begin();
	fake.inline_grant = 160;
	connected();
	ck_assert(goes_along(FABRIC_SEND, 1, 160));
	ck_assert(!goes_along(FABRIC_SEND, 1, 161));
	finish();
}

TEST(a_device_without_queue_pairs_takes_no_peer)
{
	int err;

	begin();
	fake.no_qps = true;
	ck_assert_int_eq(try_listen(), 0);
	fake_request("", 0, 4, 4);
	wait_sem(&requested);
	loop_call(conn_loop, set_up, &err);
	ck_assert_int_lt(err, 0);
	fabric_reject(conn);
	settle();
	ck_assert_uint_eq(fake.rejects, 1);
	end();
}

/* ---- features that the driver reports and the user library lacks */

static const enum fabric_opcode sent[] = { FABRIC_WRITE, FABRIC_SEND_INV,
					   FABRIC_WRITE, FABRIC_SEND_INV,
					   FABRIC_SEND };

/* Two replies that invalidate and one that does not, in one chain. */
static struct fabric_wr *replies(void)
{
	chain(ARRAY_SIZE(sent), 0x1f);
	for (unsigned i = 0; i < ARRAY_SIZE(sent); i++) {
		wrs[i].opcode = sent[i];
		wrs[i].invalidate = 0x77;
	}
	return wrs;
}

/* They are posted as Sends, all of them, in their order. */
static void are_posted_plain(void)
{
	unsigned first = fake.qp->sends_done;

	ck_assert_uint_eq(fake.qp->nsends - first, ARRAY_SIZE(sent));
	for (unsigned i = 0; i < ARRAY_SIZE(sent); i++) {
		const struct fake_wr *wr =
			&fake.qp->sends[(first + i) % FAKE_QUEUE];

		ck_assert_uint_eq(wr->wr_id, (uintptr_t)&ops[i].op);
		ck_assert_uint_eq(wr->opcode, sent[i] == FABRIC_WRITE ?
				  IBV_WR_RDMA_WRITE : IBV_WR_SEND);
		ck_assert_uint_eq(wr->sge[0].addr, (uintptr_t)&sges[i]);
		ck_assert(wr->signaled);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(sent); i++) {
		fake_send_done(IBV_WC_SUCCESS);
		wait_sem(&ops[i].sem);
		ck_assert_int_eq(ops[i].status, 0);
	}
}

/* The next peer's connection gets the device's new features; ours stays. */
static void next_is_told(bool remote_inv)
{
	struct fabric_conn *ours = conn;

	fake_request("", 0, 4, 4);
	wait_sem(&requested);
	ck_assert_int_eq(conn->info.remote_inv, remote_inv);
	fabric_reject(conn);
	settle();
	conn = ours;
}

/* bnxt_re and erdma of rdma-core 44, and others by their errors; then one that
 * is told on the loop. */
TEST_LOOP(a_library_that_can_not_invalidate_gets_sends, 0, 6)
{
	static const int errors[] = { EINVAL, -EINVAL, EOPNOTSUPP, ENOSYS,
				      -ENOSYS, EINVAL };
	unsigned posts;

	begin();
	if (_i == 5)
		fake.attr.vendor_id = 0xffffff;
	fake.lib_lacks = 1 << IBV_WR_SEND_WITH_INV;
	fake.lib_errno = errors[_i];
	connected();
	ck_assert(conn->info.remote_inv);
	for (unsigned round = 0; round < 3; round++) {
		posts = fake.posts;
		ck_assert_int_eq(fabric_post(conn, replies()), 0);
		settle();
		/* It is asked again once for each of the first two. */
		ck_assert_uint_eq(fake.posts - posts, round == 0 ? 3 : 1);
		are_posted_plain();
	}
	ck_assert_uint_eq(stats_sum_by_name("verbs_inv_refused"), 1);
	ck_assert_int_eq(atomic_load(&closed_calls), 0);
	next_is_told(false);
	finish();
}

/* A device whose library lets it through and that can't do it itself: the
 * connection ends, once. */
TEST(a_device_that_can_not_invalidate_is_not_asked_again)
{
	begin();
	connected();
	chain(1, 1);
	wrs[0].opcode = FABRIC_SEND_INV;
	ck_assert_int_eq(fabric_post(conn, wrs), 0);
	ck_assert_uint_eq(fake.qp->sends[0].opcode, IBV_WR_SEND_WITH_INV);
	fake_send_done(IBV_WC_LOC_QP_OP_ERR);
	wait_sem(&closed);
	next_is_told(false);
	sem_post(&closed);
	finished(-EIO);
}

/* A queue that is full, or a connection that is over, says nothing about it. */
TEST_LOOP(other_refusals_teach_nothing, 0, 3)
{
	static const int errors[] = { ENOMEM, EINVAL, EACCES };

	begin();
	connected();
	fake.lib_lacks = ~0u;
	fake.lib_errno = errors[_i];
	chain(1, 1);
	wrs[0].opcode = FABRIC_SEND_INV;
	ck_assert_int_eq(fabric_post(conn, wrs), -errors[_i]);
	ck_assert_int_eq(atomic_load(&ops[0].calls), 0);
	ck_assert_uint_eq(fake.posts, _i == 1 ? 2 : 1);
	next_is_told(true);
	fake.lib_lacks = 0;
	ck_assert_int_eq(fabric_post(conn, wrs), 0);
	ck_assert_uint_eq(fake.qp->sends[0].opcode, IBV_WR_SEND_WITH_INV);
	finish();
}

TEST(a_library_that_takes_no_bytes_along_gets_their_memory)
{
	begin();
	fake.lib_no_inline = true;
	fake.lib_errno = EINVAL;
	connected();
	for (unsigned round = 0; round < 2; round++) {
		ck_assert(!goes_along(FABRIC_SEND, 2, 100));
		ck_assert_uint_eq(fake.posts, 2 + round);
	}
	ck_assert_int_eq(atomic_load(&closed_calls), 0);
	finish();
}

/* ---- Reads */

/* The upper layer refuses such a peer, because it could send no data. */
TEST(a_device_that_does_no_reads_tells_so)
{
	begin();
	fake.attr.max_qp_init_rd_atom = 0;
	fake.attr.max_qp_rd_atom = 0;
	ck_assert_int_eq(try_listen(), 0);
	fake_request("", 0, 4, 4);
	wait_sem(&requested);
	ck_assert_uint_eq(conn->info.read_depth, 0);
	ck_assert_uint_eq(conn->dev->limits.max_resp_depth, 0);
	fabric_reject(conn);
	end();
}

/* ---- completion vectors */

/* The listener's loop is the first, and the connection's the second. */
TEST_LOOP(a_loop_has_its_own_completion_vector, 0, 3)
{
	static const struct { int vectors, vector; } map[] = {
		{ 8, 1 }, { 1, 0 }, { 0, 0 },
	};

	begin();
	fake.vectors = map[_i].vectors;
	connected();
	ck_assert_int_eq(fake.cq_vector, map[_i].vector);
	finish();
}

/* ---- ports */

TEST_LOOP(a_port_that_changes_is_counted_and_ends_nothing, 0, 5)
{
	static const enum ibv_event_type types[] = {
		IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE,
		IBV_EVENT_PKEY_CHANGE, IBV_EVENT_SM_CHANGE,
		IBV_EVENT_CLIENT_REREGISTER,
	};

	begin();
	connected();
	fake_async(types[_i]);
	while (!fake_asyncs_over())
		settle();
	ck_assert_uint_eq(stats_sum_by_name("verbs_port_changes"), 1);
	ck_assert_int_eq(atomic_load(&closed_calls), 0);
	finish();
}
