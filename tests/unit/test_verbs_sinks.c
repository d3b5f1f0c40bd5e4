/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that a peer can write to on an RDMA device: on iWARP adapters the
 * sink of its own Read, during that Read; no other memory, and none on other
 * devices.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "lib/stats.h"
#include "lib/xdr.h"
#include "tests/unit/runner.h"
#include "tests/unit/verbs_fixture.h"
#include "transport/rpcrdma/rpcrdma.h"

enum { XID = 77, POSITION = 16, CHUNK = 5001 };

static struct pool *pool;
static struct xprt_listener *rdma;
static struct xprt_sink sink;
static struct loop *pollers[1];		/* borrowed by the listener */
static uint32_t at = 0xc0000201;	/* where it listens */
static bool read_read;
static unsigned first_credits = 16;
static atomic_uint taken, open_when_taken;

static void take(struct xprt_sink *s, struct msg *m)
{
	atomic_store(&open_when_taken, fake.open_mrs);
	xprt_drop(m);
	atomic_fetch_add(&taken, 1);
}

/* ---- questions run on the poller, the only writer of the state that they
 * read */

struct question {
	bool (*holds)(void);
	bool answer;
};

static void answer(void *arg)
{
	struct question *q = arg;

	q->answer = q->holds();
}

static bool on_poller(bool (*holds)(void))
{
	struct question q = { .holds = holds };

	loop_call(conn_loop, answer, &q);
	return q.answer;
}

static bool is_accepted(void)
{
	return fake.id && fake.id->qp &&
	       fake.qp->nrecvs == 2 * first_credits + (read_read ? 16 : 0) &&
	       !fake.param.responder_resources == !read_read;
}

static bool two_are_posted(void)
{
	return fake.qp->nsends - fake.qp->sends_done == 2;
}

static bool some_are_posted(void)
{
	return fake.qp->nsends - fake.qp->sends_done > 0;
}

static bool one_is_open(void)
{
	return fake.open_mrs > 0;
}

static bool none_is_open(void)
{
	return fake.open_mrs == 0;
}

/* A responder on the device, with one connection; the pool has memory. */
static void serve(bool iwarp)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(at) };
	/* The fake's queues are short. */
	const struct rpcrdma_options o = { .credits = 16, .send_queue = 64,
					   .first_credits = first_credits,
					   .read_read = read_read };
	struct xprt_env env = { .sink = &sink, .loops = pollers, .nloops = 1,
				.max_conns = 4 };

	if (iwarp)
		begin_iwarp();
	else
		begin();
	pollers[0] = conn_loop;
	sink.recv = take;
	ck_assert_int_eq(pool_create(16u << 20, &pool), 0);
	buf_put(pool_alloc(pool, POOL_BUF_MAX));
	env.pool = pool;
	ck_assert_int_eq(rpcrdma_listen(&fabric, &env, (void *)&sin, &o,
					&rdma), 0);
	fake_request("", 0, 4, 4);
	EVENTUALLY(on_poller(is_accepted));
	fake_event(fake.id, RDMA_CM_EVENT_ESTABLISHED, 0);
	settle();
	/* With all that a connection and the pool have. */
	ck_assert_uint_eq(fake.open_mrs, 0);
	ck_assert_uint_eq(fake.opened, 0);
}

static void put_segment(struct xdr_out *x, uint32_t len)
{
	xdr_put_u32(x, 1);
	xdr_put_u32(x, POSITION);
	xdr_put_u32(x, 0xabc);
	xdr_put_u32(x, len);
	xdr_put_u64(x, 1ull << 40);
}

/* A call with a Read chunk of two segments arrives. */
static void call(void)
{
	struct fake_qp *qp = fake.qp;
	struct fabric_recv *r = (void *)(uintptr_t)
		qp->recvs[qp->recvs_done % FAKE_QUEUE];
	struct xdr_out x;

	xdr_out_init(&x, r->sge.addr, r->sge.len);
	xdr_put_u32(&x, XID);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, 8);
	xdr_put_u32(&x, 0);
	put_segment(&x, CHUNK - 1000);
	put_segment(&x, 1000);
	for (int i = 0; i < 3; i++)
		xdr_put_u32(&x, 0);
	xdr_put_u32(&x, XID);
	for (int i = 0; i < 3; i++)
		xdr_put_u32(&x, CHUNK);
	fake_recv_done(IBV_WC_SUCCESS, (uint32_t)xdr_out_len(&x), 0);
}

/* Both Reads are posted, into the one place that is open. */
static void reads_are_posted(bool iwarp)
{
	struct fake_qp *qp = fake.qp;

	EVENTUALLY(on_poller(two_are_posted));
	ck_assert_uint_eq(fake.open_mrs, iwarp);
	for (unsigned i = qp->sends_done; i < qp->nsends; i++) {
		const struct fake_wr *wr = &qp->sends[i % FAKE_QUEUE];
		uint64_t start = (uintptr_t)fake.open_addr;

		ck_assert_uint_eq(wr->opcode, IBV_WR_RDMA_READ);
		if (!iwarp)
			continue;
		ck_assert_uint_ge(wr->sge[0].addr, start);
		ck_assert_uint_le(wr->sge[0].addr + wr->sge[0].length,
				  start + fake.open_len);
	}
	if (iwarp)
		ck_assert_uint_eq(fake.open_len, ALIGN_UP(CHUNK, 4));
}

static bool we_closed(void)
{
	return fake.disconnects > 0;
}

/* The peer goes, after us if we close. */
static void serve_end(bool closed_by_us)
{
	if (closed_by_us)
		EVENTUALLY(on_poller(we_closed));
	fake_event(fake.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	EVENTUALLY(rdma->ops->count(rdma) == 0);
	rdma->ops->stop(rdma);
	rdma->ops->free(rdma);
	pool_destroy(pool);
	ck_assert_uint_eq(fake.open_mrs, 0);
	end();
}

TEST_LOOP(only_the_sink_of_a_read_is_open_and_only_until_it_is_done, 0, 2)
{
	serve(_i);
	for (unsigned i = 1; i <= 3; i++) {
		call();
		reads_are_posted(_i);
		ck_assert_uint_eq(atomic_load(&taken), i - 1);
		fake_send_done(IBV_WC_SUCCESS);
		EVENTUALLY(atomic_load(&taken) == i);
		/* Closed before the server looks at the data. */
		ck_assert_uint_eq(atomic_load(&open_when_taken), 0);
		ck_assert_uint_eq(fake.opened, _i ? i : 0);
	}
	serve_end(false);
}

TEST(a_read_that_fails_leaves_nothing_open)
{
	serve(true);
	call();
	reads_are_posted(true);
	fake_send_done(IBV_WC_REM_ACCESS_ERR);
	EVENTUALLY(on_poller(none_is_open));
	ck_assert_uint_eq(atomic_load(&taken), 0);
	serve_end(true);
}

TEST(a_connection_that_ends_leaves_nothing_open)
{
	serve(true);
	for (unsigned i = 0; i < 3; i++)
		call();
	EVENTUALLY(on_poller(one_is_open));
	serve_end(false);
	ck_assert_uint_eq(atomic_load(&taken), 0);
}

/* The data could still be changed, and so could the buffer's next user's. */
TEST(a_sink_that_can_not_be_closed_costs_its_call_and_its_connection)
{
	uint64_t stuck = stats_sum_by_name("verbs_stuck_mrs");
	struct buf *bufs[64];

	serve(true);
	call();
	reads_are_posted(true);
	fake.dereg_errno = EBUSY;
	fake_send_done(IBV_WC_SUCCESS);
	EVENTUALLY(on_poller(we_closed));
	fake.dereg_errno = 0;
	ck_assert_uint_eq(atomic_load(&taken), 0);
	ck_assert_uint_eq(stats_sum_by_name("verbs_stuck_mrs"), stuck + 1);
	ck_assert_uint_eq(fake.open_mrs, 1);
	/* No buffer that is used from now on lies there. */
	for (size_t n = 0; n < ARRAY_SIZE(bufs); n++) {
		bufs[n] = pool_alloc(pool, CHUNK);
		ck_assert(bufs[n] && bufs[n]->data != fake.open_addr);
	}
	for (size_t n = 0; n < ARRAY_SIZE(bufs); n++)
		buf_put(bufs[n]);
	fake.open_mrs = 0;
	serve_end(false);
}

static unsigned registrations(void)
{
	unsigned n;

	pthread_mutex_lock(&fake.lock);
	n = fake.mrs;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static bool has_no_domain(void)
{
	bool is;

	pthread_mutex_lock(&fake.lock);
	is = fake.pds == 0;
	pthread_mutex_unlock(&fake.lock);
	return is;
}

static void peer_comes(void)
{
	fake_request("", 0, 4, 4);
	EVENTUALLY(on_poller(is_accepted));
	fake_event(fake.id, RDMA_CM_EVENT_ESTABLISHED, 0);
	settle();
}

/* ---- protection domains */

static void expect_apart(const struct fake_qp *a, const struct fake_qp *b,
			 bool apart)
{
	ck_assert_int_eq(a->qp.pd != b->qp.pd, apart);
}

/* A handle is good on all connections of its domain.  Peers that could use one
 * have a domain each; on others the pool is registered once for all. */
TEST_LOOP(peers_that_may_reach_memory_share_no_domain, 0, 3)
{
	struct rdma_cm_id *first_id;
	struct fake_qp *first, *second;
	unsigned with_one;
	bool apart = _i > 0;

	read_read = _i == 2;
	serve(_i == 1);
	first = fake.qp;
	first_id = fake.id;
	with_one = registrations();
	peer_comes();
	second = fake.qp;
	expect_apart(first, second, apart);
	/* The memory of its calls. */
	ck_assert_uint_eq(registrations(), with_one + 1);
	if (apart)		/* and no region of the pool */
		ck_assert_uint_eq(with_one, 1);
	else
		ck_assert_uint_gt(with_one, 1);
	if (_i == 1) {
		call();
		reads_are_posted(true);
		ck_assert_ptr_eq(fake.open_pd, second->qp.pd);
		fake_send_done(IBV_WC_SUCCESS);
		EVENTUALLY(atomic_load(&taken) == 1);
	}
	fake_event(first_id, RDMA_CM_EVENT_DISCONNECTED, 0);
	serve_end(false);
	ck_assert_uint_eq(fake.pds, 0);
}

/* ---- pollers */

static bool one_registers(void)
{
	bool is;

	pthread_mutex_lock(&fake.lock);
	is = fake.registering > 0;
	pthread_mutex_unlock(&fake.lock);
	return is;
}

static bool more_may_come(void)
{
	return fake.qp->nrecvs >= 16;
}

/* A call is read and taken meanwhile. */
static void serves_on(void)
{
	unsigned before = atomic_load(&taken);

	call();
	EVENTUALLY(on_poller(two_are_posted));
	fake_send_done(IBV_WC_SUCCESS);
	EVENTUALLY(atomic_load(&taken) == before + 1);
}

TEST(a_poller_serves_on_while_memory_of_a_new_peer_is_registered)
{
	struct rdma_cm_id *first_id;

	serve(false);
	first_id = fake.id;
	fake_hold_regs(true);
	fake_request("", 0, 4, 4);
	EVENTUALLY(one_registers());
	serves_on();
	fake_hold_regs(false);
	EVENTUALLY(on_poller(is_accepted));
	fake_event(fake.id, RDMA_CM_EVENT_ESTABLISHED, 0);
	settle();
	fake_event(first_id, RDMA_CM_EVENT_DISCONNECTED, 0);
	serve_end(false);
}

TEST(a_poller_serves_on_while_memory_for_a_higher_grant_is_registered)
{
	first_credits = 4;
	serve(false);
	fake_hold_regs(true);
	/* Three quarters of the grant. */
	for (unsigned i = 0; i < 3; i++)
		call();
	EVENTUALLY(one_registers());
	ck_assert(!on_poller(more_may_come));
	for (unsigned i = 0; i < 3; i++) {
		EVENTUALLY(on_poller(some_are_posted));
		fake_send_done(IBV_WC_SUCCESS);
		EVENTUALLY(atomic_load(&taken) == i + 1);
	}
	serves_on();
	fake_hold_regs(false);
	EVENTUALLY(on_poller(more_may_come));
	serve_end(false);
}

TEST(a_peer_that_goes_while_its_memory_is_registered_leaves_nothing)
{
	first_credits = 4;
	serve(false);
	fake_hold_regs(true);
	for (unsigned i = 0; i < 3; i++)
		call();
	EVENTUALLY(one_registers());
	fake_event(fake.id, RDMA_CM_EVENT_DISCONNECTED, 0);
	settle();
	fake_hold_regs(false);
	EVENTUALLY(rdma->ops->count(rdma) == 0);
	rdma->ops->stop(rdma);
	rdma->ops->free(rdma);
	pool_destroy(pool);
	end();
}

/* The pool is registered with each device once, however often devices went and
 * came. */
TEST(the_pool_stays_registered_with_a_device_that_came_back)
{
	unsigned regions = 0;

	at = 0;			/* also when no device has an address */
	serve(false);
	fake_unplug(1, false);
	for (unsigned i = 0; i < 20; i++) {
		fake_unplug(0, i % 2);
		EVENTUALLY(rdma->ops->count(rdma) == 0);
		EVENTUALLY(has_no_domain());
		ck_assert_uint_eq(registrations(), 0);
		fake_plug(0);
		peer_comes();
		fake_event(fake.id, RDMA_CM_EVENT_DISCONNECTED, 0);
		EVENTUALLY(rdma->ops->count(rdma) == 0);
		if (i == 0)
			regions = registrations();
		ck_assert_uint_gt(regions, 0);
		ck_assert_uint_eq(registrations(), regions);
		peer_comes();
	}
	serve_end(false);
}

TEST(a_sink_that_can_not_be_registered_costs_its_connection_alone)
{
	serve(true);
	fake.fail_call = fake.calls + 1;
	call();
	serve_end(true);
	ck_assert_uint_eq(fake.opened, 0);
}
