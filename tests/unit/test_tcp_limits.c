/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC over TCP: limits, causes of its end, bad peers. */
#include "transport/stream/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/unit/runner.h"
#include "tests/unit/stream_fixture.h"
#include "transport/clients.h"

static void setup(void)
{
	fx_start(128);
}

TEST_CASE(.setup = setup, .teardown = fx_stop);

TEST(calls_in_progress_are_bounded)
{
	struct tcp_options o = { .max_calls = 8 };
	unsigned answered = 0;
	int fd;

	fx_listen(&o);
	fd = fx_connect();
	for (unsigned i = 0; i < 100; i++)
		fx_send_call(fd, i, FX_HOLD, 0, 2000);
	while (answered < 100) {
		unsigned n;

		/* It reads on below half of them, if it has not stopped. */
		EVENTUALLY(fx_held() >= MIN(5u, 100 - answered));
		fx_turn();
		ck_assert_uint_le(fx_held(), 8);
		n = fx_release(answered % 2);
		ck_assert_uint_le(n, 8);
		for (unsigned i = 0; i < n; i++)
			ck_assert_uint_lt(fx_recv_echo(fd), 100);
		answered += n;
	}
	close(fd);
}

TEST(replies_queued_are_bounded)
{
	struct tcp_options o = { .max_queued = MIB };
	const unsigned n = 200;
	unsigned taken = 0;
	int fd;

	fx_listen(&o);
	fd = fx_connect();
	for (unsigned i = 0; i < n; i++)
		fx_send_call(fd, i, FX_BIG, 200 * KIB, 12);
	do {
		taken = atomic_load(&fx.taken);
		fx_settle();
	} while (taken != atomic_load(&fx.taken));
	ck_assert_uint_lt(taken, n);
	/* The replies of the limit, one more, and the receive buffer. */
	ck_assert_uint_le(fx_pool_out(), (MIB / (200 * KIB) + 3) * 256 * KIB);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(fx_recv_big(fd, 200 * KIB), i);
	close(fd);
}

static void ends_as_bad(const void *data, size_t len, unsigned times)
{
	uint64_t bad = stats_sum_by_name("tcp_bad_records");
	uint64_t errors = stats_sum_by_name("tcp_closed_error");
	int fd = fx_connect();

	for (unsigned i = 0; i < times; i++)
		fx_send(fd, data, len);
	ck_assert(fx_ended(fd));
	close(fd);
	EVENTUALLY(fx_conns() == 0);
	ck_assert_uint_eq(stats_sum_by_name("tcp_bad_records"), bad + 1);
	ck_assert_uint_eq(stats_sum_by_name("tcp_closed_error"), errors + 1);
}

TEST(bad_records_end_the_connection)
{
	fx_listen(NULL);
	ends_as_bad("\xff\xff\xff\xff", 4, 1);
	ends_as_bad("\x7f\xff\xff\xff", 4, 1);
	ends_as_bad("\x80\x41\0\1", 4, 1);
	ends_as_bad("\x80\0\0\0", 4, 1);
	ends_as_bad("\0\0\0\0", 4, 1000);
	ends_as_bad("GET / HTTP/1.1\r\n\r\n", 18, 1);
}

/* Calls that came before are under way; later ones are not looked at. */
TEST(a_record_that_is_no_call_ends_the_connection)
{
	static const enum fx_op ops[] = { FX_WORK, FX_REJECT, FX_ECHO };
	uint8_t out[300];
	unsigned taken = 0;
	size_t n = 0;
	int fd;

	fx_listen(NULL);
	for (uint32_t i = 0; i < ARRAY_SIZE(ops); i++)
		n += fx_call(out + n, i, ops[i], 0, 40);
	/* Whole, and byte by byte: the one is parsed where it was received,
	 * the other in memory of the connection's own. */
	for (size_t step = n; step > 0; step = step > 1 ? 1 : 0) {
		fd = fx_connect();
		for (size_t at = 0; at < n; at += step)
			send(fd, out + at, step, MSG_NOSIGNAL);
		taken += 2;
		EVENTUALLY(atomic_load(&fx.taken) == taken);
		EVENTUALLY(fx_conns() == 0);
		close(fd);
	}
	fx_settle();
	ck_assert_uint_eq(atomic_load(&fx.taken), taken);
}

TEST(garbage_harms_nobody_else)
{
	uint8_t junk[5000];
	int good, fd;

	fx_listen(NULL);
	good = fx_connect();
	srand(3);
	for (unsigned i = 0; i < 200; i++) {
		for (size_t k = 0; k < sizeof(junk); k++)
			junk[k] = (uint8_t)rand();
		/* Often something that looks like a record. */
		if (i % 2)
			memset(junk, 0, 3);
		if (i % 4 == 3)
			junk[0] = 0x80;
		fd = fx_connect();
		fx_send(fd, junk, (size_t)rand() % sizeof(junk) + 1);
		shutdown(fd, SHUT_WR);
		while (recv(fd, junk, sizeof(junk), 0) > 0)
			;
		close(fd);
		fx_send_call(good, i, FX_ECHO, 0, 40);
		ck_assert_uint_eq(fx_recv_echo(good), i);
	}
	close(good);
	EVENTUALLY(fx_conns() == 0);
}

static bool answers(int fd)
{
	uint8_t byte;

	fx_send_call(fd, 1, FX_ECHO, 0, 40);
	return recv(fd, &byte, 1, MSG_PEEK) == 1;
}

/* Refused ones try again, as the server hears of ends a little later. */
static void connect_until_all_answer(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		while (!answers(fds[i] = fx_connect()))
			close(fds[i]);
}

/* As benchmarks, and mount(8), whose connections come one after the other. */
TEST(a_client_may_have_all_its_connections_again_as_soon_as_it_left_them)
{
	struct tcp_options o = { .unread_ms = 3600 * 1000,
				 .reply_ms = 3600 * 1000 };
	int fds[40];

	fx.env.max_peer_conns = ARRAY_SIZE(fds);
	fx.env.max_conns = 8 * ARRAY_SIZE(fds);
	fx_listen(&o);
	for (unsigned round = 0; round < 4; round++) {
		connect_until_all_answer(fds, ARRAY_SIZE(fds));
		for (unsigned i = 0; i < ARRAY_SIZE(fds); i++) {
			ck_assert_uint_eq(fx_recv_echo(fds[i]), 1);
			close(fds[i]);
		}
	}
	/* A sweep would take a minute. */
	ck_assert_uint_gt(fx_conns(), 0);
}

TEST(a_record_that_stalls_ends_the_connection)
{
	struct tcp_options o = { .stall_ms = 200 };
	uint8_t call[1000];
	size_t len;
	int fd, idle;

	fx_listen(&o);
	idle = fx_connect();
	EVENTUALLY(fx_conns() == 1);
	len = fx_call(call, 1, FX_ECHO, 0, 900);
	fd = fx_connect();
	fx_send(fd, call, 2);
	ck_assert(fx_ended(fd));
	close(fd);
	/* Byte by byte is no excuse. */
	EVENTUALLY(fx_conns() == 1);
	fd = fx_connect();
	EVENTUALLY(fx_conns() == 2);
	for (size_t i = 0; i < len && fx_conns() == 2; i++) {
		fx_send(fd, call + i, 1);
		/* As a client that wants to hold a buffer for long. */
		pause_on_purpose(5000);
	}
	ck_assert(fx_ended(fd));
	close(fd);
	ck_assert_uint_eq(stats_sum_by_name("tcp_stalls"), 2);
	fx_send_call(idle, 2, FX_ECHO, 0, 40);
	ck_assert_uint_eq(fx_recv_echo(idle), 2);
	close(idle);
}

TEST(a_stall_after_large_records_gives_the_buffer_back)
{
	/* Enough for a mebibyte, whatever else the machine does. */
	struct tcp_options o = { .stall_ms = 3000 };
	int fd;

	fx_listen(&o);
	fd = fx_connect();
	fx_send_call(fd, 1, FX_ECHO, 0, MIB);
	ck_assert_uint_eq(fx_recv_echo(fd), 1);
	fx_send(fd, "\x80\x10\0\0bytes", 9);
	ck_assert(fx_ended(fd));
	EVENTUALLY(fx_pool_out() == 0);
	close(fd);
}

TEST(an_idle_connection_ends_unless_a_call_is_in_progress)
{
	/* Enough to send a call, whatever else the machine does. */
	struct tcp_options o = { .idle_ms = 1500 };
	int fd, busy;

	fx_listen(&o);
	busy = fx_connect();
	fx_send_call(busy, 1, FX_HOLD, 0, 40);
	EVENTUALLY(fx_held() == 1);
	/* A later connection is idle for this long, and then the first one. */
	fd = fx_connect();
	ck_assert(fx_ended(fd));
	close(fd);
	EVENTUALLY(fx_conns() == 1);
	ck_assert_uint_eq(stats_sum_by_name("tcp_idle_closed"), 1);
	fx_release(true);
	ck_assert_uint_eq(fx_recv_echo(busy), 1);
	ck_assert(fx_ended(busy));
	close(busy);
	ck_assert_uint_eq(stats_sum_by_name("tcp_idle_closed"), 2);
}

TEST(a_peer_that_takes_no_replies_is_closed)
{
	struct tcp_options o = { .send_ms = 200 };
	int fd;

	fx_listen(&o);
	fd = fx_connect();
	for (unsigned i = 0; i < 40; i++)
		fx_send_call(fd, i, i % 2 ? FX_WORK_BIG : FX_BIG, MIB, 12);
	EVENTUALLY(stats_sum_by_name("tcp_send_stalls") == 1);
	EVENTUALLY(fx_conns() == 0);
	EVENTUALLY(fx_pool_out() == 0);
	close(fd);
}

TEST_LOOP(connections_are_limited, 0, 2)
{
	int fd[3], more;

	if (_i)
		fx.env.max_peer_conns = 3;
	else
		fx.env.max_conns = 3;
	fx_listen(NULL);
	for (unsigned i = 0; i < 3; i++) {
		fd[i] = fx_connect();
		fx_send_call(fd[i], i, FX_ECHO, 0, 40);
		ck_assert_uint_eq(fx_recv_echo(fd[i]), i);
	}
	more = fx_connect();
	ck_assert(fx_ended(more));
	close(more);
	ck_assert_uint_eq(fx_conns(), 3);
	ck_assert_uint_eq(stats_sum_by_name(_i ? "tcp_refused_peer" :
						 "tcp_refused"), 1);
	close(fd[0]);
	EVENTUALLY(fx_conns() == 2);
	fd[0] = fx_connect();
	for (unsigned i = 0; i < 3; i++) {
		fx_send_call(fd[i], i, FX_ECHO, 0, 40);
		ck_assert_uint_eq(fx_recv_echo(fd[i]), i);
		close(fd[i]);
	}
}

TEST(accepting_pauses_when_descriptors_run_out)
{
	struct rlimit old, none;
	struct sockaddr_storage to;
	uint64_t begin, pauses;
	int fd, probe;

	fx_listen(NULL);
	to = fx.l->local;
	fd = socket(AF_INET, SOCK_STREAM, 0);
	probe = dup(fd);
	close(probe);
	getrlimit(RLIMIT_NOFILE, &old);
	none = old;
	none.rlim_cur = (rlim_t)probe;
	setrlimit(RLIMIT_NOFILE, &none);
	begin = runner_now_ms();
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to,
				 sizeof(struct sockaddr_in)), 0);
	EVENTUALLY(stats_sum_by_name("tcp_accept_paused") >= 2);
	/* Each pause takes a while. */
	pauses = stats_sum_by_name("tcp_accept_paused");
	ck_assert_uint_le(pauses, (runner_now_ms() - begin) / 100 + 1);
	setrlimit(RLIMIT_NOFILE, &old);
	fx_send_call(fd, 1, FX_ECHO, 0, 40);
	ck_assert_uint_eq(fx_recv_echo(fd), 1);
	close(fd);
}

TEST(stop_answers_what_was_taken_and_takes_no_more)
{
	struct sockaddr_storage to;
	int fd, fd2, late;

	fx_listen(NULL);
	to = fx.l->local;
	fd = fx_connect();
	fd2 = fx_connect();
	for (unsigned i = 0; i < 10; i++)
		fx_send_call(fd, i, FX_HOLD, 0, 40);
	EVENTUALLY(fx_held() == 10);
	fx.l->ops->stop(fx.l);
	ck_assert(fx_ended(fd2));
	late = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(late, (struct sockaddr *)&to,
				 sizeof(struct sockaddr_in)), -1);
	ck_assert_int_eq(errno, ECONNREFUSED);
	fx_send_call(fd, 77, FX_ECHO, 0, 40);
	fx_settle();
	fx_release(true);
	for (unsigned i = 0; i < 10; i++)
		ck_assert_uint_lt(fx_recv_echo(fd), 10);
	ck_assert(fx_ended(fd));
	ck_assert_uint_eq(atomic_load(&fx.taken), 10);
	close(fd);
	close(fd2);
	close(late);
	EVENTUALLY(fx_conns() == 0);
}

TEST(a_client_whose_connections_are_ended_gets_its_answers)
{
	struct in6_addr host;
	int busy, idle;

	fx.env.clients = xprt_clients_create(0, 0);
	/* One poller ends both before it reads again. */
	fx.env.nloops = 1;
	fx_listen(NULL);
	busy = fx_connect();
	idle = fx_connect();
	fx_send_call(idle, 0, FX_ECHO, 0, FX_CALL_MIN);
	ck_assert_uint_eq(fx_recv_echo(idle), 0);
	fx_send_call(busy, 1, FX_HOLD, 0, FX_CALL_MIN);
	EVENTUALLY(fx_held() == 1);
	host = xprt_addr_host((struct sockaddr *)&fx.peer);
	ck_assert_uint_eq(xprt_clients_end(fx.env.clients, &host), 2);
	ck_assert(fx_ended(idle));
	/* It accepts no further calls. */
	fx_send_call(busy, 2, FX_ECHO, 0, FX_CALL_MIN);
	fx_settle();
	ck_assert_uint_eq(atomic_load(&fx.taken), 2);
	ck_assert_uint_eq(fx_release(true), 1);
	ck_assert_uint_eq(fx_recv_echo(busy), 1);
	ck_assert(fx_ended(busy));
	close(busy);
	close(idle);
	/* Others, and this one again, are served. */
	busy = fx_connect();
	fx_send_call(busy, 3, FX_ECHO, 0, FX_CALL_MIN);
	ck_assert_uint_eq(fx_recv_echo(busy), 3);
	close(busy);
	fx_unlisten();
	xprt_clients_destroy(fx.env.clients);
}

TEST(stop_under_load_loses_no_reply)
{
	uint8_t in[64];
	unsigned replies = 0;
	int fd;

	fx_listen(NULL);
	fd = fx_connect();
	for (unsigned i = 0; i < 2000; i++)
		fx_send_call(fd, i, i % 2 ? FX_ECHO : FX_WORK, 0, 40);
	fx.l->ops->stop(fx.l);
	for (unsigned i = 0; i < 2000; i++)
		fx_send_call(fd, i, FX_ECHO, 0, 40);
	while (fx_recv_record(fd, in, sizeof(in)) == 40)
		replies++;
	ck_assert_uint_eq(replies, atomic_load(&fx.taken));
	close(fd);
	EVENTUALLY(fx_conns() == 0);
}

TEST(a_drained_connection_that_is_not_closed_is_given_up)
{
	struct tcp_options o = { .linger_ms = 100 };
	int fd;

	fx_listen(&o);
	fd = fx_connect();
	EVENTUALLY(fx_conns() == 1);
	fx.l->ops->stop(fx.l);
	ck_assert(fx_ended(fd));
	EVENTUALLY(fx_conns() == 0);
	close(fd);
}

static void release_later(void *arg)
{
	fx_settle();
	fx_release(true);
}

TEST(free_waits_for_calls_in_progress)
{
	pthread_t t;
	int fd;

	fx_listen(NULL);
	fd = fx_connect();
	for (unsigned i = 0; i < 10; i++)
		fx_send_call(fd, i, FX_HOLD, 0, 40);
	EVENTUALLY(fx_held() == 10);
	thread_start(&t, "release", release_later, NULL);
	fx_unlisten();
	ck_assert_uint_eq(fx_held(), 0);
	pthread_join(t, NULL);
	close(fd);
}

TEST(one_listener_serves_both_families)
{
	struct tcp_options only = { .v6only = true };
	static const char *const host[] = { "127.0.0.1", "::1" };
	static const int family[] = { AF_INET, AF_INET6 };
	struct sockaddr_storage to;
	int fd;

	fx_listen_on("::", NULL);
	for (unsigned i = 0; i < 2; i++) {
		to = fx_addr(host[i], fx_port());
		fd = fx_connect_to(&to, SOCK_STREAM);
		fx_send_call(fd, i, FX_ECHO, 0, 40);
		ck_assert_uint_eq(fx_recv_echo(fd), i);
		ck_assert_int_eq(fx.peer.ss_family, family[i]);
		ck_assert_mem_eq(&fx.local, &to, sizeof(struct sockaddr_in));
		close(fd);
	}
	fx_unlisten();
	fx_listen_on("::", &only);
	to = fx_addr("127.0.0.1", fx_port());
	fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to,
				 sizeof(struct sockaddr_in)), -1);
	close(fd);
}

/* The first is held already, the second is to come. */
TEST(a_fixture_that_stops_holds_no_call)
{
	int fd;

	fx_listen(NULL);
	fd = fx_connect();
	fx_send_call(fd, 1, FX_HOLD, 0, 40);
	EVENTUALLY(fx_held() == 1);
	fx_send_call(fd, 2, FX_HOLD, 0, 40);
	fx_stop();			/* it returns */
	close(fd);
	fx_start(128);
}

static atomic_uint misbehaving;

/* Calls at random, answers read at random, ends at random. */
static void misbehave(void *arg)
{
	static const enum fx_op ops[] = { FX_ECHO, FX_WORK, FX_BIG, FX_DROP,
					  FX_WORK_BIG, FX_HOLD };
	struct linger hard = { .l_onoff = 1 };
	unsigned seed = (unsigned)(uintptr_t)arg;
	uint8_t *out = malloc(MIB + 4), *in = malloc(MIB);

	for (unsigned i = 0; i < 60; i++) {
		int fd = fx_connect();

		for (int n = rand_r(&seed) % 20; n > 0; n--) {
			unsigned op = (unsigned)rand_r(&seed) %
				      ARRAY_SIZE(ops);
			size_t len = 12u + (size_t)rand_r(&seed) %
				     (rand_r(&seed) % 8 ? 3000 : MIB - 12);

			len = fx_call(out, i, ops[op], len & 0xfffff, len);
			if (rand_r(&seed) % 16 == 0)
				len /= 2;
			if (send(fd, out, len, MSG_NOSIGNAL |
				 (rand_r(&seed) % 2 ? MSG_DONTWAIT : 0)) < 0)
				break;
			if (rand_r(&seed) % 2)
				recv(fd, in, MIB, MSG_DONTWAIT);
		}
		if (rand_r(&seed) % 3 == 0)
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard,
				   sizeof(hard));
		if (rand_r(&seed) % 3 == 0)
			shutdown(fd, SHUT_WR);
		close(fd);
	}
	free(out);
	free(in);
	atomic_fetch_sub(&misbehaving, 1);
}

TEST(connections_that_come_and_go_leave_nothing)
{
	struct tcp_options o = { .max_calls = 6, .max_queued = MIB,
				 .send_ms = 1000, .stall_ms = 1000 };
	pthread_t t[4];

	/* Fewer buffers than they would like to have. */
	fx_stop();
	fx_start(36);
	fx_listen(&o);
	atomic_store(&misbehaving, ARRAY_SIZE(t));
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		thread_start(&t[i], "client", misbehave,
			     (void *)(uintptr_t)(i + 1));
	/* To the last: a client waits while all its calls are held. */
	for (unsigned i = 0; atomic_load(&misbehaving); i++) {
		/* As calls that take a while. */
		pause_on_purpose(3000);
		fx_release(i % 2);
	}
	for (unsigned i = 0; i < ARRAY_SIZE(t); i++)
		pthread_join(t[i], NULL);
	EVENTUALLY((fx_release(true), fx_conns() == 0));
}
