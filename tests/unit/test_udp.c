/* SPDX-License-Identifier: BSD-2-Clause */
/* RPC over UDP. */
#include "transport/stream/stream.h"

#include <string.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/unit/runner.h"
#include "tests/unit/stream_fixture.h"

#define SIZE_MAX_V4	65507u

static void setup(void)
{
	fx_start(64);
}

static void listen_udp(const char *host, const struct udp_options *o)
{
	struct sockaddr_storage ss = fx_addr(host, 0);

	ck_assert_int_eq(udp_listen(&fx.env, (struct sockaddr *)&ss, o, &fx.l),
			 0);
}

static int client(const char *host)
{
	struct sockaddr_storage to = fx_addr(host, fx_port());

	/* Connected: takes replies only from the address that it asked. */
	return fx_connect_to(&to, SOCK_DGRAM);
}

static int client_from(const char *host)
{
	struct sockaddr_storage from = fx_addr(host, 0);
	struct sockaddr_storage to = fx_addr("127.0.0.1", fx_port());
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	ck_assert_int_eq(bind(fd, (struct sockaddr *)&from,
			      sizeof(struct sockaddr_in)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to,
				 sizeof(struct sockaddr_in)), 0);
	return fd;
}

static void ask(int fd, uint32_t xid, enum fx_op op, uint32_t arg, size_t len)
{
	static uint8_t out[70000];

	fx_call(out, xid, op, arg, len);
	ck_assert_int_eq(send(fd, out + 4, len, 0), (ssize_t)len);
}

/* A reply's length; the call that ask() sent must be its first @same. */
static long answer(int fd, uint32_t xid, enum fx_op op, size_t same)
{
	static uint8_t in[70000], want[70000];
	ssize_t n = recv(fd, in, sizeof(in), 0);

	fx_call(want, xid, op, 0, same);
	memcpy(want + 12, in + 8, same >= 12 ? 4 : 0);
	if (n > 0)
		ck_assert_mem_eq(in, want + 4, same);
	return n;
}

TEST_CASE(.setup = setup, .teardown = fx_stop);

TEST(a_call_is_answered_whatever_its_size)
{
	static const size_t sizes[] = { 12, 100, 1024, 1025, 8192, 65000 };
	int fd;

	listen_udp("127.0.0.1", NULL);
	fd = client("127.0.0.1");
	for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
		ask(fd, i, FX_ECHO, 0, sizes[i]);
		ck_assert_int_eq(answer(fd, i, FX_ECHO, sizes[i]),
				 (long)sizes[i]);
	}
	close(fd);
}

TEST(head_body_and_tail_make_one_datagram)
{
	int fd;

	listen_udp("127.0.0.1", NULL);
	fd = client("127.0.0.1");
	ask(fd, 9, FX_BIG, 5000, 12);
	ck_assert_int_eq(answer(fd, 9, FX_BIG, 4), 5008);
	ask(fd, 10, FX_WORK_BIG, 5000, 12);
	ck_assert_int_eq(answer(fd, 10, FX_BIG, 4), 5008);
	close(fd);
}

TEST(replies_leave_from_the_address_asked)
{
	static const char *const hosts[] = { "127.0.0.1", "127.0.0.2",
					     "127.1.2.3", "::1" };
	struct sockaddr_storage to;
	int fd;

	listen_udp("::", NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(hosts); i++) {
		fd = client(hosts[i]);
		ask(fd, i, FX_WORK, 0, 40);
		ck_assert_int_eq(answer(fd, i, FX_WORK, 40), 40);
		to = fx_addr(hosts[i], fx_port());
		ck_assert_int_eq(fx.peer.ss_family, to.ss_family);
		ck_assert_mem_eq(&fx.local, &to, to.ss_family == AF_INET ?
				 sizeof(struct sockaddr_in) :
				 sizeof(struct sockaddr_in6));
		close(fd);
	}
	fx_unlisten();
	listen_udp("0.0.0.0", NULL);
	for (unsigned i = 0; i < 3; i++) {
		fd = client(hosts[i]);
		ask(fd, i, FX_ECHO, 0, 40);
		ck_assert_int_eq(answer(fd, i, FX_ECHO, 40), 40);
		close(fd);
	}
}

TEST(a_reply_that_does_not_fit_is_lost)
{
	int fd;

	listen_udp("127.0.0.1", NULL);
	fd = client("127.0.0.1");
	ask(fd, 1, FX_BIG, SIZE_MAX_V4 - 8 + 1, 12);
	EVENTUALLY(stats_sum_by_name("udp_lost_replies") == 1);
	EVENTUALLY(atomic_load(&fx.lost) == 1);
	ask(fd, 2, FX_BIG, SIZE_MAX_V4 - 8, 12);
	ck_assert_int_eq(answer(fd, 2, FX_BIG, 4), SIZE_MAX_V4);
	close(fd);
}

TEST(empty_and_long_datagrams_are_dropped)
{
	struct udp_options o = { .max_len = 1000 };
	int fd;

	listen_udp("127.0.0.1", &o);
	fd = client("127.0.0.1");
	ck_assert_int_eq(send(fd, "", 0, 0), 0);
	ask(fd, 1, FX_ECHO, 0, 1001);
	ask(fd, 2, FX_ECHO, 0, 60000);
	ask(fd, 3, FX_ECHO, 0, 1000);
	ck_assert_int_eq(answer(fd, 3, FX_ECHO, 1000), 1000);
	ck_assert_uint_eq(stats_sum_by_name("udp_bad_calls"), 3);
	ck_assert_uint_eq(atomic_load(&fx.taken), 1);
	close(fd);
}

TEST(calls_in_progress_are_bounded)
{
	struct udp_options o = { .max_calls = 4 };
	unsigned answered = 0;
	int fd;

	listen_udp("127.0.0.1", &o);
	fd = client("127.0.0.1");
	for (unsigned i = 0; i < 20; i++)
		ask(fd, 1, FX_HOLD, 0, 40);
	while (answered < 20) {
		unsigned n;

		/* It reads on at half of them, if it has not stopped. */
		EVENTUALLY(fx_held() >= MIN(3u, 20 - answered));
		fx_turn();
		ck_assert_uint_le(fx.l->ops->count(fx.l), 4);
		n = fx_release(answered % 2);
		ck_assert_uint_le(n, 4);
		for (unsigned i = 0; i < n; i++)
			ck_assert_int_eq(answer(fd, 1, FX_HOLD, 40), 40);
		answered += n;
	}
	ck_assert_uint_ge(stats_sum_by_name("udp_read_pauses"), 1);
	close(fd);
}

/* Half of the places hang for two hosts.  The others are served. */
TEST(a_host_whose_calls_hang_leaves_room_for_others)
{
	static const char *const hung[] = { "127.0.0.2", "127.0.0.3" };
	struct udp_options o = { .max_calls = 64 };
	int fd;

	listen_udp("127.0.0.1", &o);
	for (unsigned h = 0; h < 2; h++) {
		fd = client_from(hung[h]);
		for (unsigned i = 0; i < 80; i++)
			ask(fd, i, FX_HOLD, 0, 40);
		EVENTUALLY(stats_sum_by_name("udp_greedy") == 64 * (h + 1));
		ck_assert_uint_eq(fx_held(), 16 * (h + 1));
		close(fd);
	}
	fd = client("127.0.0.1");
	ask(fd, 1, FX_ECHO, 0, 40);
	ck_assert_int_eq(answer(fd, 1, FX_ECHO, 40), 40);
	close(fd);
	/* A call that ends makes room for another one of its host. */
	fx_release(false);
	fd = client_from(hung[0]);
	ask(fd, 1, FX_ECHO, 0, 40);
	ck_assert_int_eq(answer(fd, 1, FX_ECHO, 40), 40);
	close(fd);
}

TEST(a_host_with_its_share_of_the_calls_is_full_and_no_other)
{
	struct udp_options o = { .max_calls = 64 };
	struct xprt *x;
	int fd;

	listen_udp("127.0.0.1", &o);
	fd = client_from("127.0.0.2");
	for (unsigned i = 0; i < 15; i++)
		ask(fd, i, FX_HOLD, 0, 40);
	EVENTUALLY(fx_held() == 15);
	x = fx_held_xprt();
	ck_assert(!x->ops->is_full(x));
	ask(fd, 15, FX_HOLD, 0, 40);
	EVENTUALLY(fx_held() == 16);
	ck_assert(x->ops->is_full(x));
	close(fd);
	fd = client("127.0.0.1");
	ask(fd, 1, FX_HOLD, 0, 40);
	EVENTUALLY(fx_held() == 17);
	x = fx_held_xprt();
	ck_assert(!x->ops->is_full(x));
	close(fd);
}

TEST(stop_answers_what_was_taken)
{
	int fd;

	listen_udp("127.0.0.1", NULL);
	fd = client("127.0.0.1");
	ask(fd, 1, FX_HOLD, 0, 40);
	EVENTUALLY(fx_held() == 1);
	fx.l->ops->stop(fx.l);
	ask(fd, 2, FX_ECHO, 0, 40);
	ck_assert(HOLDS_FOR(20, fx.l->ops->count(fx.l) == 1));
	fx_release(true);
	ck_assert_int_eq(answer(fd, 1, FX_HOLD, 40), 40);
	EVENTUALLY(fx.l->ops->count(fx.l) == 0);
	ck_assert_uint_eq(atomic_load(&fx.taken), 1);
	close(fd);
}

static void release_later(void *arg)
{
	/* As a call that takes a while. */
	pause_on_purpose(50000);
	fx_release(true);
}

TEST(free_waits_for_calls_in_progress)
{
	pthread_t t;
	int fd;

	listen_udp("127.0.0.1", NULL);
	fd = client("127.0.0.1");
	for (unsigned i = 0; i < 5; i++)
		ask(fd, 1, FX_HOLD, 0, 40);
	EVENTUALLY(fx_held() == 5);
	thread_start(&t, "release", release_later, NULL);
	fx_unlisten();
	for (unsigned i = 0; i < 5; i++)
		ck_assert_int_eq(answer(fd, 1, FX_HOLD, 40), 40);
	pthread_join(t, NULL);
	close(fd);
}

TEST(dropped_calls_get_no_reply)
{
	int fd;

	listen_udp("127.0.0.1", NULL);
	fd = client("127.0.0.1");
	for (unsigned i = 0; i < 100; i++) {
		ask(fd, i, FX_DROP, 0, 2000);
		ask(fd, i, FX_ECHO, 0, 40);
		ck_assert_int_eq(answer(fd, i, FX_ECHO, 40), 40);
	}
	ck_assert_uint_eq(atomic_load(&fx.taken), 200);
	close(fd);
}
