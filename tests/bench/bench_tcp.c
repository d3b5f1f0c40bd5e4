/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of a call over TCP for the server's poller, with procedures that do
 * nothing: calls per second and CPU time of the poller for each.
 *
 * 	bench_tcp [seconds for each line]
 */
#include "transport/stream/stream.h"
#include "wire/record.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REPLY_HEAD	112u

static struct buf *body;	/* the common part of all replies */
static uint32_t body_len;

/* One connection's client, which sends a new call for each reply. */
struct client {
	int		 fd;
	uint8_t		*calls;		/* a window of them */
	uint32_t	 call_len;	/* with its mark */
	uint32_t	 reply_len;
	unsigned	 window;
	uint8_t		*in;
	uint64_t	 got;		/* bytes */
};

#define IN_SIZE	(1u << 20)

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void answer(struct xprt_sink *sink, struct msg *m)
{
	memset(m->head, 0, REPLY_HEAD);
	m->head_len = REPLY_HEAD;
	if (body_len) {
		buf_get(body);
		m->body = body;
		m->body_len = body_len;
	}
	xprt_reply(m);
}

static uint64_t ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void cpu_time(void *arg)
{
	*(uint64_t *)arg = ns(CLOCK_THREAD_CPUTIME_ID);
}

static void send_calls(struct client *c, uint64_t n)
{
	size_t len = n * c->call_len, off = 0;

	while (off < len) {
		ssize_t k = send(c->fd, c->calls + off, len - off, 0);

		if (k <= 0)
			die("send");
		off += (size_t)k;
	}
}

/* Calls answered until @end. */
static uint64_t run(struct client *c, uint64_t end)
{
	uint64_t done = 0, before;

	send_calls(c, c->window);
	while (ns(CLOCK_MONOTONIC) < end) {
		ssize_t n = recv(c->fd, c->in, IN_SIZE, 0);

		if (n <= 0)
			die("recv");
		c->got += (uint64_t)n;
		before = done;
		done = c->got / c->reply_len;
		send_calls(c, done - before);
	}
	return done;
}

static void bench(struct xprt_listener *l, struct loop *loop, uint32_t in,
		  uint32_t out, unsigned window, double seconds)
{
	struct client c = {
		.call_len = in + 4, .reply_len = REPLY_HEAD + out + 4,
		.window = window,
	};
	uint64_t cpu[2], start, calls;
	int one = 1;

	body_len = out;
	c.in = malloc(IN_SIZE);
	c.calls = calloc(window, c.call_len);
	for (unsigned i = 0; i < window; i++)
		record_put_mark(c.calls + (size_t)i * c.call_len, in);
	c.fd = socket(AF_INET, SOCK_STREAM, 0);
	setsockopt(c.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(c.fd, (struct sockaddr *)&l->local,
		    sizeof(struct sockaddr_in)) < 0)
		die("connect");
	loop_call(loop, cpu_time, &cpu[0]);
	start = ns(CLOCK_MONOTONIC);
	calls = run(&c, start + (uint64_t)(seconds * 1e9));
	seconds = (double)(ns(CLOCK_MONOTONIC) - start) / 1e9;
	loop_call(loop, cpu_time, &cpu[1]);
	printf("%8u %8u %6u %10.0f %9.2f %10.2f\n", in, out, window,
	       (double)calls / seconds,
	       (double)(cpu[1] - cpu[0]) / 1e3 / (double)calls,
	       (double)calls * (in + out) / seconds / (1u << 30));
	close(c.fd);
	free(c.in);
	free(c.calls);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	struct sockaddr_in sin = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct xprt_sink sink = { .recv = answer };
	struct xprt_env env = { .sink = &sink, .nloops = 1, .max_conns = 100 };
	struct xprt_listener *l;
	struct loop *loop;

	env.loops = &loop;
	if (pool_create((size_t)128 << 20, &env.pool) ||
	    loop_create("poller", &loop) || loop_start(loop) ||
	    tcp_listen(&env, (struct sockaddr *)&sin, NULL, &l))
		die("start");
	body = pool_alloc(env.pool, POOL_PAYLOAD_MAX);
	memset(body->data, 7, POOL_PAYLOAD_MAX);
	printf("call  B  reply B  depth    calls/s   us/call      GiB/s\n");
	bench(l, loop, 140, 0, 1, seconds);
	bench(l, loop, 140, 0, 32, seconds);
	bench(l, loop, 140, 0, 128, seconds);
	bench(l, loop, 140, 4096, 32, seconds);
	bench(l, loop, 4240, 0, 32, seconds);
	bench(l, loop, 140, 1 << 20, 8, seconds);
	bench(l, loop, (1 << 20) + 140, 0, 8, seconds);
	l->ops->free(l);
	loop_destroy(loop);
	buf_put(body);
	pool_destroy(env.pool);
	return 0;
}
