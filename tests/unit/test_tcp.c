/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC over TCP: calls in, replies out. */
#include "transport/stream/stream.h"

#include <stdlib.h>
#include <string.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "lib/xdr.h"
#include "tests/unit/runner.h"
#include "tests/unit/stream_fixture.h"
#include "wire/record.h"

static void setup(void)
{
	fx_start(128);
	fx_listen(NULL);
}

TEST_CASE(.setup = setup, .teardown = fx_stop);

TEST(a_call_is_answered)
{
	int fd = fx_connect();

	fx_send_call(fd, 7, FX_ECHO, 0, 100);
	ck_assert_uint_eq(fx_recv_echo(fd), 7);
	close(fd);
}

/* Two calls; the second one has three fragments, one of them empty. */
static size_t small_stream(uint8_t *out)
{
	static const uint8_t marks[3][4] = {
		{ 0, 0, 0, 13 }, { 0, 0, 0, 0 }, { 0x80, 0, 0, 7 }
	};
	uint8_t call[64];
	size_t n = fx_call(out, 1, FX_ECHO, 0, 16);

	fx_call(call, 2, FX_ECHO, 0, 20);
	memcpy(out + n, marks[0], 4);
	memcpy(out + n + 4, call + 4, 13);
	memcpy(out + n + 17, marks[1], 4);
	memcpy(out + n + 21, marks[2], 4);
	memcpy(out + n + 25, call + 17, 7);
	return n + 32;
}

static void let_arrive(unsigned calls)
{
	EVENTUALLY(atomic_load(&fx.taken) >= calls);
}

TEST(every_split_of_a_stream_gives_the_same_calls)
{
	uint8_t s[128];
	size_t len = small_stream(s), seen = 0;
	int fd = fx_connect();

	for (size_t cut = 1; cut < len; cut++) {
		fx_send(fd, s, cut);
		fx_received(seen += cut);
		fx_send(fd, s + cut, len - cut);
		ck_assert_uint_eq(fx_recv_echo(fd), 1);
		ck_assert_uint_eq(fx_recv_echo(fd), 2);
		fx_received(seen += len - cut);
	}
	close(fd);
}

TEST(a_stream_may_come_byte_by_byte)
{
	uint8_t s[128];
	size_t len = small_stream(s);
	int fd = fx_connect();

	for (size_t i = 0; i < len; i++) {
		fx_send(fd, s + i, 1);
		fx_received(i + 1);
	}
	ck_assert_uint_eq(fx_recv_echo(fd), 1);
	ck_assert_uint_eq(fx_recv_echo(fd), 2);
	close(fd);
}

/* Cuts a record into fragments of random lengths, empty ones too. */
static size_t fragment(uint8_t *out, const uint8_t *rec, size_t len)
{
	size_t n = 0, off = 0;
	int empty = 0;

	while (off < len) {
		size_t k = (size_t)rand() % 5 ? (size_t)rand() % len : 0;
		uint32_t mark;

		k = MIN(k, len - off);
		if (k == 0 && ++empty > 20)
			k = len - off;
		mark = (uint32_t)k;
		if (off + k == len)
			mark |= RECORD_LAST;
		mark = htobe32(mark);
		memcpy(out + n, &mark, 4);
		memcpy(out + n + 4, rec + off, k);
		n += 4 + k;
		off += k;
	}
	return n;
}

TEST(fragments_of_any_size_in_pieces_of_any_size)
{
	static const size_t sizes[] = { 12, 100, 1024, 1025, 5000, 70000,
					300000 };
	uint8_t *rec = malloc(400000), *out = malloc(400000);
	int fd = fx_connect();

	srand(1);
	for (unsigned round = 0; round < 100; round++) {
		size_t size = sizes[round % ARRAY_SIZE(sizes)], len, off = 0;

		fx_call(rec, round, FX_ECHO, 0, size);
		len = fragment(out, rec + 4, size);
		while (off < len) {
			size_t k = 1 + (size_t)rand() % (size / 3 + 1);

			k = MIN(k, len - off);
			fx_send(fd, out + off, k);
			off += k;
		}
		ck_assert_uint_eq(fx_recv_echo(fd), round);
	}
	free(rec);
	free(out);
	close(fd);
}

/* @n calls of mixed kinds and sizes at once; all come back, each once. */
static void pipeline(int fd, uint32_t n, enum fx_op a, enum fx_op b)
{
	static const size_t sizes[] = { 12, 40, 130, 900, 2000, 9000 };
	uint8_t *seen = calloc(n, 1), *out = calloc(n, 3000);
	size_t len = 0;

	for (uint32_t i = 0; i < n; i++)
		len += fx_call(out + len, i, i % 3 ? a : b, 0,
			       sizes[i % ARRAY_SIZE(sizes)]);
	fx_send(fd, out, len);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t xid = fx_recv_echo(fd);

		ck_assert_uint_lt(xid, n);
		ck_assert_uint_eq(seen[xid]++, 0);
	}
	free(seen);
	free(out);
}

TEST(pipelined_calls_are_all_answered)
{
	int fd = fx_connect();

	for (int i = 0; i < 20; i++)
		pipeline(fd, 200, FX_ECHO, FX_ECHO);
	close(fd);
}

static void send_at_once(int fd, uint32_t n, enum fx_op last)
{
	uint8_t *out = malloc(n * 16);
	size_t len = 0;

	for (uint32_t i = 0; i < n; i++)
		len += fx_call(out + len, i, i < n - 1 ? FX_ECHO : last, 0,
			       FX_CALL_MIN);
	fx_send(fd, out, len);
	free(out);
}

/* The socket's time-out fails the test if these wait for all the others. */
TEST(the_first_of_many_replies_do_not_wait_for_the_last)
{
	int fd = fx_connect();

	sem_init(&fx.go, 0, 0);
	send_at_once(fd, 64, FX_ECHO);
	for (uint32_t i = 0; i < 64; i++)
		ck_assert_uint_eq(fx_recv_echo(fd), i);
	send_at_once(fd, 64, FX_STOP);
	for (uint32_t i = 0; i < 32; i++)
		ck_assert_uint_eq(fx_recv_echo(fd), i);
	sem_post(&fx.go);
	for (uint32_t i = 32; i < 64; i++)
		ck_assert_uint_eq(fx_recv_echo(fd), i);
	close(fd);
}

TEST(replies_may_come_from_any_thread)
{
	int fd = fx_connect();

	for (int i = 0; i < 20; i++)
		pipeline(fd, 200, FX_WORK, FX_ECHO);
	close(fd);
}

/* The cache of replies believes it: too low, and a reply on its way counts as
 * one that the client has. */
TEST(a_reply_is_noted_at_the_position_of_its_end)
{
	uint8_t calls[200 * 16], reply[64];
	int fd = fx_connect();
	uint64_t end = 0;

	atomic_store(&fx.notes, true);
	for (int round = 0; round < 50; round++) {
		size_t len = 0;

		for (uint32_t i = 0; i < 200; i++)
			len += fx_call(calls + len, i, i % 3 ? FX_WORK :
				       FX_ECHO, 0, FX_CALL_MIN);
		fx_send(fd, calls, len);
		for (uint32_t i = 0; i < 200; i++) {
			long n = fx_recv_record(fd, reply, sizeof(reply));

			ck_assert_int_eq(n, FX_CALL_MIN);
			end += RECORD_MARK_SIZE + FX_CALL_MIN;
			ck_assert_uint_eq(atomic_load(
				&fx.sent[xdr_word(reply) % FX_NOTED]), end);
		}
	}
	close(fd);
}

struct client {
	pthread_t thread;
	int	  fd;
};

static void run_client(void *arg)
{
	struct client *c = arg;

	for (int i = 0; i < 10; i++)
		pipeline(c->fd, 100, FX_WORK, FX_ECHO);
	close(c->fd);
}

TEST(connections_are_spread_and_do_not_mix)
{
	struct client c[8];

	for (unsigned i = 0; i < ARRAY_SIZE(c); i++) {
		c[i].fd = fx_connect();
		thread_start(&c[i].thread, "client", run_client, &c[i]);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(c); i++)
		pthread_join(c[i].thread, NULL);
	ck_assert_uint_eq(atomic_load(&fx.loops_used), (1u << FX_LOOPS) - 1);
	EVENTUALLY(fx.l->ops->count(fx.l) == 0);
}

TEST(large_records_go_in)
{
	static const size_t sizes[] = { 65536, 65537, 262144 + 200,
					1 << 20, MSG_MAX_LEN };
	int fd = fx_connect();

	for (unsigned round = 0; round < 30; round++) {
		size_t size = sizes[round % ARRAY_SIZE(sizes)];

		fx_send_call(fd, round, round % 2 ? FX_ECHO : FX_WORK, 0,
			     size);
		ck_assert_uint_eq(fx_recv_echo(fd), round);
	}
	close(fd);
}

TEST(large_replies_come_out)
{
	static const uint32_t sizes[] = { 1, 4, 4096, 70000, 1 << 20 };
	int fd = fx_connect();

	for (unsigned round = 0; round < 30; round++) {
		uint32_t size = sizes[round % ARRAY_SIZE(sizes)];

		fx_send_call(fd, round, round % 2 ? FX_BIG : FX_WORK_BIG,
			     size, 12);
		ck_assert_uint_eq(fx_recv_big(fd, size), round);
	}
	close(fd);
}

TEST(many_large_replies_to_a_slow_reader)
{
	int fd = fx_connect();

	for (unsigned i = 0; i < 30; i++)
		fx_send_call(fd, i, i % 2 ? FX_BIG : FX_WORK_BIG, 1 << 20, 12);
	EVENTUALLY(stats_sum_by_name("stream_blocked") > 0);
	for (unsigned i = 0; i < 30; i++)
		ck_assert_uint_lt(fx_recv_big(fd, 1 << 20), 30);
	close(fd);
}

static void reset(int fd)
{
	struct linger hard = { .l_onoff = 1, .l_linger = 0 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(fd);
}

/* Replies fill all pipes; some then take buffers. */
TEST(replies_may_lie_in_pipes)
{
	static const uint32_t sizes[] = { 4, 4096, 70001, 1 << 20 };
	static const enum fx_op ops[] = { FX_PIPE, FX_WORK_PIPE, FX_BIG,
					  FX_WORK_PIPE, FX_PIPE };
	int fd = fx_connect();

	for (unsigned i = 0; i < 100; i++)
		fx_send_call(fd, i, ops[i % ARRAY_SIZE(ops)], 70001, 12);
	for (unsigned i = 0; i < 100; i++)
		ck_assert_uint_lt(fx_recv_big(fd, 70001), 100);
	for (unsigned i = 0; i < 40; i++) {
		uint32_t size = sizes[i % ARRAY_SIZE(sizes)];

		fx_send_call(fd, i, ops[i % ARRAY_SIZE(ops)], size, 12);
		ck_assert_uint_eq(fx_recv_big(fd, size), i);
	}
	ck_assert_uint_gt(atomic_load(&fx.piped), 32);
	close(fd);
}

TEST(pipes_come_back_from_connections_that_are_gone)
{
	for (unsigned round = 0; round < 3; round++) {
		int fd = fx_connect();

		/* More than the socket takes, and one is half sent. */
		for (unsigned i = 0; i < 60; i++)
			fx_send_call(fd, i, i % 2 ? FX_PIPE : FX_WORK_PIPE,
				     1 << 20, 12);
		EVENTUALLY(atomic_load(&fx.piped) >= 8 * (round + 1));
		reset(fd);
		EVENTUALLY(fx.l->ops->count(fx.l) == 0);
	}
}

TEST(dropped_calls_get_no_reply)
{
	int fd = fx_connect();

	for (unsigned i = 0; i < 1000; i++)
		fx_send_call(fd, i, FX_DROP, 0, 12);
	fx_send_call(fd, 1000, FX_ECHO, 0, 12);
	ck_assert_uint_eq(fx_recv_echo(fd), 1000);
	close(fd);
}

TEST(calls_before_a_fin_are_answered_and_then_comes_ours)
{
	int fd = fx_connect();

	for (unsigned i = 0; i < 10; i++)
		fx_send_call(fd, i, FX_HOLD, 0, 40);
	shutdown(fd, SHUT_WR);
	let_arrive(10);
	fx_release(true);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_lt(fx_recv_echo(fd), 10);
	ck_assert(fx_ended(fd));
	close(fd);
	EVENTUALLY(fx.l->ops->count(fx.l) == 0);
}

TEST(a_fin_in_the_middle_of_a_record_ends_the_connection)
{
	uint8_t out[64];
	int fd = fx_connect();

	fx_send(fd, out, fx_call(out, 1, FX_ECHO, 0, 40) - 3);
	shutdown(fd, SHUT_WR);
	ck_assert(fx_ended(fd));
	close(fd);
	EVENTUALLY(fx.l->ops->count(fx.l) == 0);
}

TEST(replies_to_a_connection_that_is_gone_are_lost)
{
	int fd = fx_connect();

	for (unsigned i = 0; i < 10; i++)
		fx_send_call(fd, i, FX_HOLD, 0, 40);
	let_arrive(10);
	reset(fd);
	EVENTUALLY(stats_sum_by_name("tcp_resets") == 1);
	fx_turn();		/* it takes no replies after that */
	ck_assert_uint_eq(stats_sum_by_name("tcp_closed_error"), 0);
	ck_assert_uint_eq(fx.l->ops->count(fx.l), 1);
	fx_release(true);
	EVENTUALLY(fx.l->ops->count(fx.l) == 0);
	ck_assert_uint_eq(stats_sum_by_name("tcp_replies_lost"), 10);
	EVENTUALLY(atomic_load(&fx.lost) == 10);
}

TEST(memory_of_the_upper_layer_is_zeroed_once)
{
	int fd = fx_connect();

	for (unsigned i = 1; i <= 10; i++) {
		fx_send_call(fd, i, FX_ECHO, 0, 40);
		fx_recv_echo(fd);
		ck_assert_uint_eq(atomic_load(&fx.uses), i);
	}
	close(fd);
}

TEST(a_connection_lives_as_long_as_somebody_refers_to_it)
{
	int fd = fx_connect();

	fx_send_call(fd, 1, FX_KEEP, 0, 40);
	ck_assert_uint_eq(fx_recv_echo(fd), 1);
	shutdown(fd, SHUT_WR);
	ck_assert(fx_ended(fd));
	close(fd);
	ck_assert(HOLDS_FOR(20, fx.l->ops->count(fx.l) == 1));
	ck_assert_int_eq(fx.kept->peer.ss_family, AF_INET);
	xprt_put(fx.kept);
	EVENTUALLY(fx.l->ops->count(fx.l) == 0);
}

TEST(nothing_is_read_after_a_bad_mark)
{
	const uint32_t fragment = 50u << 10;
	uint32_t mark[2] = { htobe32(fragment), htobe32(
		RECORD_LAST | (MSG_MAX_TAKEN - fragment + 1)) };
	struct tcp_options o = { .max_calls = 1 };
	static uint8_t out[64 << 10];
	size_t n;
	int fd;

	/* The bad mark arrives while a call pauses reading, and more bytes wait
	 * when it is found. */
	fx_unlisten();
	fx_listen(&o);
	fd = fx_connect();
	n = fx_call(out, 1, FX_HOLD, 0, FX_CALL_MIN);
	memcpy(out + n, &mark[0], 4);
	memcpy(out + n + 4 + fragment, &mark[1], 4);
	fx_send(fd, out, n + 8 + fragment);
	EVENTUALLY(fx_held() == 1);
	fx_send(fd, out, 100);
	EVENTUALLY(fx_arrived(fd));
	fx_release(true);
	EVENTUALLY(fx.l->ops->count(fx.l) == 0);
	close(fd);
}

TEST(bytes_and_records_are_counted)
{
	int fd = fx_connect();
	uint64_t in = stats_sum_by_name("tcp_bytes_in");
	uint64_t out = stats_sum_by_name("tcp_bytes_out");
	uint64_t records = stats_sum_by_name("tcp_records");

	for (unsigned i = 0; i < 5; i++) {
		fx_send_call(fd, i, FX_ECHO, 0, 100);
		fx_recv_echo(fd);
	}
	EVENTUALLY(stats_sum_by_name("tcp_bytes_out") == out + 5 * 104);
	ck_assert_uint_eq(stats_sum_by_name("tcp_bytes_in"), in + 5 * 104);
	ck_assert_uint_eq(stats_sum_by_name("tcp_records"), records + 5);
	close(fd);
}
