/* SPDX-License-Identifier: BSD-2-Clause */
/* RDMA_MSGP (RFC 5666 section 3.9) from the requester, with the responder. */
#include <errno.h>
#include <string.h>

#include "tools/rpcrdma/client.h"
#include "lib/stats.h"
#include "tests/server/rdma_rig.h"
#include "tests/unit/runner.h"

enum { INLINE = 4096, HEADER = 36, CALL = DATA_POSITION };

static struct rig rig;
static struct rpcrdma_requester *requester;
static uint8_t data[2 * INLINE], reply_mem[2 * INLINE];
static uint64_t padded;		/* calls that came padded, as far as counted */

static void open_with(unsigned align, unsigned thresh)
{
	const struct rpcrdma_requester_options ro = {
		.inline_size = INLINE, .pad_align = align, .pad_thresh = thresh
	};

	rig_open(&rig, NULL);
	rig_connect(&rig, &ro, &requester);
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (uint8_t)(i * 31 + 1);
	padded = stats_sum_by_name("rdma_padded_calls");
}

static void close_all(void)
{
	rpcrdma_requester_destroy(requester);
	rig_close(&rig);
}

/* True if a call came padded since the last time. */
static bool came_padded(void)
{
	uint64_t before = padded;

	padded = stats_sum_by_name("rdma_padded_calls");
	return padded > before;
}

/* A call with @len bytes of data in its end, in a source of @room bytes. */
static void init_echo(struct exchange *x, uint32_t xid, uint32_t len,
		      uint32_t room)
{
	exchange_init(x, xid, OP_ECHO, 0);
	exchange_put(x, len);
	x->request.nreads = 1;
	x->request.read[0].position = DATA_POSITION;
	x->request.read[0].mem = rpcrdma_memory_at(data, room);
	x->request.reply = rpcrdma_memory_at(reply_mem,
						    sizeof(reply_mem));
}

/* Makes the call and checks that the data comes back; true: it was padded. */
static bool echo(struct exchange *x, uint32_t len)
{
	exchange_start(requester, x);
	ck_assert_int_eq(exchange_wait(x), 0);
	ck_assert_uint_eq(x->request.reply_len, 8 + ALIGN_UP(len, 4u));
	ck_assert_uint_eq(exchange_word(x, 1), len);
	ck_assert_mem_eq(x->reply + 8, data, len);
	exchange_fini(x);
	return came_padded();
}

TEST(data_that_ends_a_call_goes_inline_aligned)
{
	static const uint32_t aligns[] = { 4, 8, 52, 64, 100, 512, 2048 };
	static const uint32_t lens[] = { 1, 2, 3, 4, 5, 100, 1000, 1999 };
	struct exchange x;

	for (size_t a = 0; a < ARRAY_SIZE(aligns); a++) {
		open_with(aligns[a], 0);
		for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
			init_echo(&x, (uint32_t)i, lens[i], lens[i]);
			ck_assert(echo(&x, lens[i]));
			/* The source can have the roundup or not. */
			init_echo(&x, 99, lens[i], ALIGN_UP(lens[i], 4u));
			ck_assert(echo(&x, lens[i]));
		}
		ck_assert_uint_eq(stats_sum_by_name("rdma_read_bytes"), 0);
		close_all();
	}
}

/* RFC 5666 section 3.9: "at or above". */
TEST(data_below_the_threshold_goes_in_a_chunk)
{
	struct exchange x;

	open_with(128, 100);
	for (uint32_t len = 97; len <= 103; len++) {
		init_echo(&x, len, len, len);
		ck_assert_int_eq(echo(&x, len), len >= 100);
		/* The roundup does not count. */
		init_echo(&x, len, len, ALIGN_UP(len, 4u));
		ck_assert_int_eq(echo(&x, len), len >= 100);
	}
	close_all();
}

/* To the byte, with the pad and the lists, each way. */
TEST(a_call_that_does_not_fit_goes_in_a_chunk)
{
	static const uint32_t aligns[] = { 4, 64, 1024, INLINE, 2 * INLINE };
	struct exchange x;

	for (size_t a = 0; a < ARRAY_SIZE(aligns); a++) {
		uint32_t at = HEADER + CALL + 4 + 16;	/* the Reply chunk */

		at += rpcrdma_msgp_pad(aligns[a], at);
		open_with(aligns[a], 0);
		for (uint32_t len = INLINE - 9; len <= INLINE + 1; len++) {
			uint32_t n = len > at ? len - at : len;

			init_echo(&x, len, n, n);
			ck_assert_int_eq(echo(&x, n),
					 at + ALIGN_UP(n, 4u) <= INLINE);
		}
		close_all();
	}
}

TEST(calls_of_another_form_go_as_ever)
{
	struct exchange x;

	open_with(128, 0);
	/* A long one, by request. */
	init_echo(&x, 1, 100, 100);
	x.request.long_call = true;
	ck_assert(!echo(&x, 100));
	/* The words behind the data would also have to be moved. */
	init_echo(&x, 2, 100, 100);
	exchange_put(&x, 4711);
	ck_assert(!echo(&x, 100));
	/* No data. */
	exchange_init(&x, 3, OP_ECHO, 0);
	exchange_put(&x, 0);
	ck_assert(!echo(&x, 0));
	/* And off again. */
	close_all();
	open_with(0, 0);
	init_echo(&x, 4, 100, 100);
	ck_assert(!echo(&x, 100));
	close_all();
}

static void reply_came(struct gannet_rpcrdma_call *call)
{
	ck_assert_int_eq(call->status, 0);
	ck_assert_uint_eq(call->reply_len, 8 + 700);
	ck_assert_mem_eq((const uint8_t *)call->reply + 8, data, 700);
	sem_post(call->arg);
}

TEST(the_library_pads_calls_where_its_user_asks_for_it)
{
	struct gannet_rpcrdma_options o = {
		.size = sizeof(o), .pad_align = 256, .pad_threshold = 500 };
	uint32_t msg[] = { 0, htobe32(OP_ECHO), 0, htobe32(700) };
	const struct iovec pieces[] = { { data, 300 }, { data + 300, 400 } };
	struct gannet_rpcrdma_call call = {
		.size = sizeof(call), .msg = msg, .msg_len = sizeof(msg),
		.nsources = 1,
		.source = { { .position = sizeof(msg),
			      .mem = { .niov = 2, .iov = pieces } } },
		.done = reply_came,
	};
	struct gannet_rpcrdma *c;
	struct sockaddr *to;
	sem_t done;

	sem_init(&done, 0, 0);
	call.arg = &done;
	open_with(0, 0);
	to = (struct sockaddr *)&rig.listener->local;
	ck_assert_int_eq(client_connect(&rig.fabric, to, &o, &c), 0);
	ck_assert_int_eq(gannet_rpcrdma_call(c, &call), 0);
	wait_sem(&done);
	ck_assert(came_padded());
	gannet_rpcrdma_close(c);
	/* XDR knows no other. */
	o.pad_align = 6;
	ck_assert_int_eq(client_connect(&rig.fabric, to, &o, &c), -EINVAL);
	sem_destroy(&done);
	close_all();
}
