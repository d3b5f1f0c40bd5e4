/* SPDX-License-Identifier: BSD-2-Clause */
/* cut_relay - a relay that cuts. */
#include "tests/server/cut_relay.h"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

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
	bool cut = atomic_fetch_add(&r->connections, 1) < r->cuts;
	size_t left = cut ? r->cut_after : SIZE_MAX;
	struct linger hard = { .l_onoff = 1 };
	int b = daemon_connect(cut || !r->then ? r->to : r->then);
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

	while ((a = accept4(r->fd, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		relay_one(r, a);
	return NULL;
}

void relay_start(struct relay *r, int way)
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

void relay_stop(struct relay *r)
{
	shutdown(r->fd, SHUT_RDWR);
	pthread_join(r->thread, NULL);
	close(r->fd);
}
