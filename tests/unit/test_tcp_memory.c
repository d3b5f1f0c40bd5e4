/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC over TCP and the pool: connections that wait for memory, and connections
 * that may keep it. */
#include "transport/stream/stream.h"

#include <pthread.h>

#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "tests/unit/runner.h"
#include "tests/unit/stream_fixture.h"

static void setup(void)
{
	fx_start(128);
}

/* All buffers of the pool but one of 256 KiB. */
static struct buf *take_pool(void)
{
	struct buf *b, *all = NULL, *one = pool_alloc(fx.pool, 256 * KIB);

	while ((b = pool_alloc(fx.pool, 1))) {
		b->next = all;
		all = b;
	}
	buf_put(one);
	return all;
}

static void put_pool(struct buf *all)
{
	struct buf *next;

	for (; all; all = next) {
		next = all->next;
		buf_put(all);
	}
}

TEST_CASE(.setup = setup, .teardown = fx_stop);

TEST(reading_waits_while_the_pool_is_empty)
{
	struct buf *all, *last;
	int fd[3];

	fx_listen(NULL);
	all = take_pool();
	last = pool_alloc(fx.pool, 1);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = fx_connect();
		fx_send_call(fd[i], i, FX_ECHO, 0, 12);
	}
	fx_settle();
	ck_assert_uint_eq(atomic_load(&fx.taken), 0);
	buf_put(last);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		ck_assert_uint_eq(fx_recv_echo(fd[i]), i);
		close(fd[i]);
	}
	put_pool(all);
}

static void send_large(void *arg)
{
	fx_send_call(*(int *)arg, 5, FX_DROP, 0, MIB);
}

TEST(large_records_wait_for_a_buffer_one_after_the_other)
{
	struct buf *all;
	pthread_t t[3];
	int fd[3];

	fx_listen(NULL);
	all = take_pool();
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = fx_connect();
		thread_start(&t[i], "client", send_large, &fd[i]);
	}
	fx_settle();
	ck_assert_uint_eq(atomic_load(&fx.taken), 0);
	/* A waiting connection goes away: the others must not wait for it. */
	shutdown(fd[0], SHUT_RDWR);
	pthread_join(t[0], NULL);
	close(fd[0]);
	put_pool(all);
	pthread_join(t[1], NULL);
	pthread_join(t[2], NULL);
	EVENTUALLY(atomic_load(&fx.taken) >= 2);
	close(fd[1]);
	close(fd[2]);
}

TEST(a_claimed_length_reserves_nothing)
{
	struct tcp_options o = { .linger_ms = 40 };
	static const uint8_t claim[] = "\x80\x10\0\0" "few bytes";
	int fd[20];

	fx_listen(&o);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++) {
		fd[i] = fx_connect();
		fx_send(fd[i], claim, sizeof(claim) - 1);
	}
	EVENTUALLY(stats_sum_by_name("tcp_bytes_in") >=
		   ARRAY_SIZE(fd) * (sizeof(claim) - 1));
	/* The shared chunk is also freed when idle. */
	EVENTUALLY(fx_pool_out() == 0);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	EVENTUALLY(fx_conns() == 0);
}

static void got_one(struct pool_request *r, struct buf *b)
{
	buf_put(b);
}

TEST(a_peer_that_reads_no_replies_is_closed_when_memory_is_short)
{
	struct tcp_options o = { .short_ms = 200, .max_queued = MIB };
	struct pool_request w = { .ready = got_one };
	struct buf *all, *last;
	int fd;

	fx_listen(&o);
	fd = fx_connect();
	for (unsigned i = 0; i < 40; i++)
		fx_send_call(fd, i, FX_BIG, MIB, 12);
	EVENTUALLY(fx_pool_out() >= 2 * MIB);
	/* Memory is not short: the client can take its time. */
	for (unsigned i = 0; i < 10; i++)
		fx_settle();
	ck_assert_uint_eq(stats_sum_by_name("tcp_short_stalls"), 0);
	ck_assert_uint_eq(fx_conns(), 1);

	all = take_pool();
	last = pool_alloc(fx.pool, 1);
	ck_assert_ptr_null(pool_request(fx.pool, 1, &w));
	EVENTUALLY(fx_conns() == 0);
	ck_assert_uint_eq(stats_sum_by_name("tcp_short_stalls"), 1);
	ck_assert(!pool_cancel(fx.pool, &w));
	close(fd);
	buf_put(last);
	put_pool(all);
}
