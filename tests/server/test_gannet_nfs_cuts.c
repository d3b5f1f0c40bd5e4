/* SPDX-License-Identifier: BSD-2-Clause */
/* ./gannet-nfs when its connections to ./gannetd end. */
#include <arpa/inet.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/server/record_stream.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

/* A relay that cuts. */
struct relay {
	int	    fd;
	uint16_t    to;
	size_t	    cut_after;	/* bytes of a connection, both ways */
	unsigned    cuts;	/* so many connections */
	atomic_uint connections;
	void	   *(*run)(void *relay);	/* NULL: relay_run */
	pthread_t   thread;
};

static bool pass(int from, int to, size_t *left)
{
	char buf[16384];
	ssize_t n = read(from, buf, sizeof(buf) < *left ? sizeof(buf) : *left);

	for (ssize_t m, at = 0; at < n; at += m) {
		m = write(to, buf + at, (size_t)(n - at));
		if (m <= 0)
			return false;
	}
	*left -= n > 0 ? (size_t)n : 0;
	return n > 0 && *left > 0;
}

static void relay_one(struct relay *r, int a)
{
	size_t left = atomic_fetch_add(&r->connections, 1) < r->cuts ?
		r->cut_after : SIZE_MAX;
	struct linger hard = { .l_onoff = 1 };
	int b = daemon_connect(r->to);
	struct pollfd p[2] = { { a, POLLIN, 0 }, { b, POLLIN, 0 } };
	bool on = b >= 0;

	while (on && poll(p, 2, -1) > 0) {
		if (p[0].revents)
			on = pass(a, b, &left);
		if (on && p[1].revents)
			on = pass(b, a, &left);
	}
	if (left == 0)
		setsockopt(a, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	close(b);
	close(a);
}

static void *relay_run(void *arg)
{
	struct relay *r = arg;
	int a;

	while ((a = accept(r->fd, NULL, NULL)) >= 0)
		relay_one(r, a);
	return NULL;
}

/* From now on URLs lead through it to the server. */
static void relay_start(struct relay *r, int way)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	socklen_t len = sizeof(addr);

	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	r->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(bind(r->fd, (struct sockaddr *)&addr, len), 0);
	ck_assert_int_eq(listen(r->fd, 10), 0);
	getsockname(r->fd, (struct sockaddr *)&addr, &len);
	r->to = way == WAY_TCP ? d.tcp_port : d.rdma_port;
	set_base(way, ntohs(addr.sin_port));
	atomic_store(&r->connections, 0);
	signal(SIGPIPE, SIG_IGN);
	pthread_create(&r->thread, NULL, r->run ? r->run : relay_run, r);
}

static void relay_stop(struct relay *r)
{
	shutdown(r->fd, SHUT_RDWR);
	pthread_join(r->thread, NULL);
	close(r->fd);
}

TEST_CASE(.timeout = 120);

TEST_LOOP(copies_survive_cut_connections, 0, WAYS)
{
	struct relay r = { .cut_after = 3000000, .cuts = 4 };
	const char *from, *back;

	start(_i);
	from = path(d.dir, "from");
	back = path(d.dir, "back");
	make_file(from, 20000001);
	relay_start(&r, _i);
	ck_assert_msg(TOOL("put", from, url("x")) == 0, "%s", err);
	ck_assert_uint_eq(atomic_load(&r.connections), 5);
	same(from, path(export, "x"));
	atomic_store(&r.connections, 0);
	ck_assert_msg(TOOL("get", url("x"), back) == 0, "%s", err);
	ck_assert_uint_eq(atomic_load(&r.connections), 5);
	same(from, back);
	relay_stop(&r);
	stop();
}

TEST_LOOP(a_connection_cut_for_good_is_an_error_in_the_end, 0, WAYS)
{
	struct relay r = { .cut_after = 3000000, .cuts = 1000000 };
	const char *from;

	start(_i);
	from = path(d.dir, "from");
	make_file(from, 20000001);
	relay_start(&r, _i);
	/* After the first cut there is nothing to connect to. */
	shutdown(r.fd, SHUT_RDWR);
	relay_stop(&r);
	ck_assert_int_eq(TOOL("put", "-r", "2", from, url("x")), 3);
	stop();
}

TEST_LOOP(connections_without_a_reply_are_given_up, 0, WAYS)
{
	struct relay r = { .cut_after = 200, .cuts = UINT_MAX };

	start(_i);
	relay_start(&r, _i);
	ck_assert_int_eq(TOOL("ls", "-r", "2", url("")), 3);
	ck_assert_uint_le(atomic_load(&r.connections), 4);
	relay_stop(&r);
	stop();
}

/* Takes NULL calls and refuses all others: PROG_MISMATCH. */
static void *refuse_calls(void *arg)
{
	struct relay *r = arg;
	uint32_t call[256], reply[9] = { 0 };
	int fd = accept(r->fd, NULL, NULL);
	size_t len;

	while (record_receive(fd, call, sizeof(call)) > 0) {
		len = call[5] ? 36 : 28;
		record_put_mark(reply, len - RECORD_MARK_SIZE);
		reply[1] = call[0];
		reply[2] = htonl(1);
		reply[6] = call[5] ? htonl(2) : 0;
		reply[7] = reply[8] = htonl(4);
		if (write(fd, reply, len) != (ssize_t)len)
			break;
	}
	close(fd);
	return NULL;
}

TEST(calls_that_are_refused_are_not_sent_again)
{
	struct relay r = { .run = refuse_calls };

	start(WAY_TCP);
	relay_start(&r, WAY_TCP);
	ck_assert_int_eq(TOOL("ls", url("")), 3);
	ck_assert_ptr_nonnull(strstr(err, "Protocol not supported"));
	relay_stop(&r);
	stop();
}
