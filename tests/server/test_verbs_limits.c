/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A responder and requesters on fake devices with odd limits: calls with data
 * both ways, short and long.  The devices abort when a limit of theirs is not
 * kept.
 */
#include <errno.h>
#include <string.h>

#include "lib/stats.h"
#include "tests/fake/verbs_fake.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"
#include "transport/fabric/verbs/verbs.h"

enum { CALLS = 24, PEERS = 2, LONG = 70001 };

static const struct device {
	const char *name;
	struct ibv_device_attr attr;	/* 0: plenty */
	bool	 iwarp;
	bool	 windows;
	unsigned inline_max;		/* and 1: none */
	int	 vectors;
	/* Abilities that the driver tells of and the user library lacks. */
	unsigned lacks;
	bool	 no_inline;
	bool	 no_windows;
	bool	 no_bind;
	bool	 read_read;
} devices[] = {
	{ .name = "plain" },
	{ .name = "one piece", .attr.max_sge = 1, .attr.max_sge_rd = 1 },
	{ .name = "two pieces", .attr.max_sge = 2, .attr.max_sge_rd = 2 },
	{ .name = "no limit of Reads' pieces", .attr.max_sge_rd = -1 },
	{ .name = "one Read", .attr.max_qp_init_rd_atom = 1,
	  .attr.max_qp_rd_atom = 1 },
	{ .name = "more Reads than answers", .attr.max_qp_init_rd_atom = 255,
	  .attr.max_qp_rd_atom = 2 },
	{ .name = "few work requests", .attr.max_qp_wr = 24 },
	{ .name = "few completions", .attr.max_cqe = 64 },
	{ .name = "nothing goes along", .inline_max = 1, .vectors = 1 },
	{ .name = "little goes along", .inline_max = 101, .vectors = 64 },
	{ .name = "iWARP", .iwarp = true, .attr.max_sge_rd = 1 },
	{ .name = "iWARP, all at once", .iwarp = true, .attr.max_sge = 1,
	  .attr.max_sge_rd = 1, .attr.max_qp_init_rd_atom = 1,
	  .attr.max_qp_rd_atom = 1, .attr.max_qp_wr = 24, .inline_max = 1 },
	{ .name = "rxe or siw", .attr.vendor_id = 0xffffff },
	{ .name = "windows", .windows = true },
	{ .name = "windows, few work requests", .windows = true,
	  .attr.max_qp_wr = 24 },
	{ .name = "windows of rxe", .windows = true,
	  .attr.vendor_id = 0xffffff },
	{ .name = "RoCE, with the Read-Read model", .read_read = true },
	{ .name = "iWARP, with the Read-Read model", .read_read = true,
	  .iwarp = true, .attr.max_sge_rd = 1 },
	{ .name = "windows that the library can't make", .windows = true,
	  .no_windows = true },
	{ .name = "windows that the library can't bind", .windows = true,
	  .lacks = 1u << IBV_WR_BIND_MW },
	{ .name = "windows that memory can't be registered for",
	  .windows = true, .no_bind = true },
	{ .name = "bytes that the library takes not along",
	  .no_inline = true, .inline_max = 400 },
};

static bool makes_windows(const struct device *d)
{
	return d->windows && !d->no_windows && !d->no_bind &&
	       !(d->lacks >> IBV_WR_BIND_MW & 1);
}

static const struct rig_fabric on_verbs = { verbs_fabric_create,
					    verbs_fabric_destroy };
static struct rig rig;
static struct rpcrdma_requester *peer[PEERS];

static void limit(int *to, int max)
{
	if (max)
		*to = MAX(max, 0);
}

static void plug(const struct device *d)
{
	struct ibv_device_attr *a = &fake.attr;

	fake_init();
	limit(&a->max_sge, d->attr.max_sge);
	limit(&a->max_sge_rd, d->attr.max_sge_rd);
	limit(&a->max_qp_init_rd_atom, d->attr.max_qp_init_rd_atom);
	limit(&a->max_qp_rd_atom, d->attr.max_qp_rd_atom);
	limit(&a->max_qp_wr, d->attr.max_qp_wr);
	limit(&a->max_cqe, d->attr.max_cqe);
	if (d->attr.vendor_id)
		a->vendor_id = d->attr.vendor_id;
	if (d->windows)
		a->device_cap_flags |= IBV_DEVICE_MEM_WINDOW_TYPE_2B;
	if (d->iwarp)
		fake.transport = IBV_TRANSPORT_IWARP;
	if (d->inline_max)
		fake.inline_max = d->inline_max == 1 ? 0 : d->inline_max;
	fake.vectors = d->vectors;
	fake.lib_lacks = d->lacks;
	fake.lib_no_inline = d->no_inline;
	fake.lib_errno = EINVAL;
	fake.lib_no_windows = d->no_windows;
	fake.reg_no_bind = d->no_bind;
	fake_wire_start();
}

static unsigned domains(void)
{
	unsigned n;

	pthread_mutex_lock(&fake.lock);
	n = fake.pds;
	pthread_mutex_unlock(&fake.lock);
	return n;
}

static void open_all(const struct device *d)
{
	bool apart = d->iwarp || d->read_read;
	/* The fake's queues are short. */
	const struct rig_options o = {
		.rdma = { .credits = 16, .send_queue = 128,
			  .read_read = d->read_read }, .async = true,
		.two_pollers = true,
	};
	const struct rpcrdma_requester_options ro = {
		.credits = 16, .segment_size = 20000, .windows = d->windows,
		.read_read = d->read_read,
		.cache_bytes = d->windows ? 64 * LONG : 0,
		.cache_pieces = d->windows ? 1000 : 0,
	};

	plug(d);
	rig_fabric = &on_verbs;
	rig_open(&rig, &o);
	for (int i = 0; i < PEERS; i++)
		rig_connect(&rig, &ro, &peer[i]);
	/* The device's; each requester's; and those of the responder's peers
	 * that can reach its memory. */
	EVENTUALLY(domains() == 1 + PEERS * (apart ? 2 : 1));
}

static void close_all(void)
{
	for (int i = 0; i < PEERS; i++)
		rpcrdma_requester_destroy(peer[i]);
	rig_close(&rig);
	fake_wire_stop();
	ck_assert_uint_eq(fake.objects, 0);
	ck_assert_uint_eq(fake.mrs, 0);
}

/* A WRITE, a READ, a READDIR and a GETATTR, so to say. */
static const uint32_t ops[] = { OP_SUM, OP_READ, OP_LONG, OP_ECHO };
static uint8_t data[LONG], mem[CALLS][LONG + 64];
static struct exchange x[CALLS];

static uint32_t sum_of(uint32_t len)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < len; i++)
		sum += data[i];
	return sum;
}

static void begin_call(unsigned i)
{
	uint32_t op = ops[i % ARRAY_SIZE(ops)];
	uint32_t len = i % 8 < 4 ? LONG : 20;
	struct rpcrdma_request *q = &x[i].request;

	exchange_init(&x[i], i + 1, op, op == OP_SUM ? 1 : len);
	if (op == OP_ECHO) {
		exchange_put(&x[i], 4);
		exchange_put(&x[i], 0xfeedf00d);
	} else if (op == OP_SUM) {
		exchange_put(&x[i], len);
		q->nreads = 1;
		q->read[0].position = q->call_len;
		q->read[0].mem = rpcrdma_memory_at(data, len);
	} else if (op == OP_READ) {
		q->nwrites = 1;
		q->write[0] = rpcrdma_memory_at(mem[i], len);
	} else {
		q->reply = rpcrdma_memory_at(mem[i], sizeof(mem[i]));
	}
	exchange_start(peer[i % PEERS], &x[i]);
}

static bool is_pattern(const uint8_t *at, uint32_t len)
{
	for (uint32_t b = 0; b < len; b++)
		if (at[b] != pattern(b))
			return false;
	return true;
}

static void end_call(unsigned i)
{
	uint32_t op = ops[i % ARRAY_SIZE(ops)];
	uint32_t len = i % 8 < 4 ? LONG : 20;
	const uint8_t *at = mem[i];

	ck_assert_int_eq(exchange_wait(&x[i]), 0);
	ck_assert_uint_eq(exchange_word(&x[i], 0), i + 1);
	if (op == OP_SUM) {
		ck_assert_uint_eq(exchange_word(&x[i], 1), len);
		ck_assert_uint_eq(exchange_word(&x[i], 2), sum_of(len));
	} else if (op == OP_ECHO) {
		ck_assert_uint_eq(exchange_word(&x[i], 1), 4);
		ck_assert_uint_eq(exchange_word(&x[i], 2), 0xfeedf00d);
	} else {
		ck_assert_uint_eq(exchange_word(&x[i], 1), len);
		if (op == OP_LONG)
			at = x[i].reply + 8;
		ck_assert(is_pattern(at, len));
	}
	exchange_fini(&x[i]);
}

TEST_LOOP(a_device_is_asked_for_no_more_than_it_has, 0, ARRAY_SIZE(devices))
{
	const struct device *d = &devices[_i];

	for (uint32_t i = 0; i < LONG; i++)
		data[i] = (uint8_t)(i * 11);
	open_all(d);
	for (unsigned round = 0; round < 3; round++) {
		for (unsigned i = 0; i < CALLS; i++)
			begin_call(i);
		for (unsigned i = 0; i < CALLS; i++)
			end_call(i);
	}
	ck_assert_int_eq(fake.inlined > 0,
			 fake.inline_max >= 78 && !d->no_inline);
	ck_assert_int_eq(stats_sum_by_name("rdma_exposed") > 0, d->read_read);
	ck_assert_int_eq(fake.windows > 0, makes_windows(d));
	if (makes_windows(d))		/* no other handle is for writing */
		ck_assert_uint_eq(fake.opened, 0);
	close_all();
}
