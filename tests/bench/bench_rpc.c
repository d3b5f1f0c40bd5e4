/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The cost of a call between transport and procedure: ns per call, for
 * procedures that do nothing, on the poller and through workers.
 *
 * 	bench_rpc [calls [workers [pollers]]]
 */
#include "rpc/rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <arpa/inet.h>

#include "lib/stats.h"

#define PROG	0x20000001u
#define WINDOW	64u		/* calls outstanding, as one client's credits */

enum { ON_POLLER, ON_WORKER, CACHED, NPROC };

struct slot {
	struct msg	m;
	atomic_bool	busy;
	uint8_t		*wire;
};

struct poller {
	pthread_t	thread;
	struct rpc_server *server;
	struct xprt	x;
	struct slot	slots[WINDOW];
	unsigned	window;
	unsigned	proc;
	unsigned long	calls;
};

static int reply(struct msg *m)
{
	struct slot *s = container_of(m, struct slot, m);

	atomic_store_explicit(&s->busy, false, memory_order_release);
	return 0;
}

static void drop(struct msg *m)
{
	reply(m);
}

static const struct xprt_ops ops = {
	.name = "bench", .reply = reply, .drop = drop,
};

static bool get_handle(struct xdr_in *x, void *argp)
{
	struct xdr_view *fh = argp;

	*fh = xdr_get_opaque(x, 64);
	return xdr_ok(x);
}

/* The size of GETATTR's results. */
static void put_attr(struct xdr_out *x, const void *res)
{
	for (int i = 0; i < 22; i++)
		xdr_put_u32(x, 0);
}

#define ROW(step, flag) { .name = "x", .decode = get_handle, \
		    .steps = { step }, .encode = put_attr, \
		    .args_size = 64, .res_size = 96, .flags = flag }

static const struct rpc_proc procs[NPROC] = {
	[ON_POLLER] = ROW(NULL, 0),
	[ON_WORKER] = ROW(rpc_need_worker, 0),
	[CACHED] = ROW(rpc_need_worker, RPC_PROC_CACHED),
};

static const struct rpc_version version = {
	.vers = 3, .nproc = NPROC, .procs = procs,
};

static struct rpc_program prog = {
	.name = "bench", .prog = PROG, .nversions = 1, .versions = &version,
};

/* A call as a Linux client makes it: AUTH_SYS, five groups, a handle. */
static uint32_t encode_call(uint8_t *out, uint32_t xid, uint32_t proc)
{
	static const uint8_t fh[44];
	uint8_t *cred = out + 256;
	struct xdr_out x, c;

	xdr_out_init(&c, cred, 256);
	xdr_put_u32(&c, 1);
	xdr_put_opaque(&c, "client.example.net", 18);
	for (uint32_t i = 0; i < 2; i++)
		xdr_put_u32(&c, 1000);
	xdr_put_u32(&c, 5);
	for (uint32_t i = 0; i < 5; i++)
		xdr_put_u32(&c, 1000 + i);
	xdr_out_init(&x, out, 256);
	xdr_put_u32(&x, xid);
	xdr_put_u32(&x, 0);
	xdr_put_u32(&x, 2);
	xdr_put_u32(&x, PROG);
	xdr_put_u32(&x, 3);
	xdr_put_u32(&x, proc);
	xdr_put_u32(&x, 1);
	xdr_put_opaque(&x, cred, (uint32_t)xdr_out_len(&c));
	xdr_put_u64(&x, 0);
	xdr_put_opaque(&x, fh, sizeof(fh));
	return (uint32_t)xdr_out_len(&x);
}

static void poll_calls(void *arg)
{
	struct poller *p = arg;
	struct xprt_sink *sink = rpc_server_sink(p->server);
	uint32_t xid;

	for (unsigned long i = 0; i < p->calls; i++) {
		struct slot *s = &p->slots[i % p->window];

		while (atomic_load_explicit(&s->busy, memory_order_acquire))
			sched_yield();
		atomic_store_explicit(&s->busy, true, memory_order_relaxed);
		xid = htobe32((uint32_t)i);
		memcpy(s->wire, &xid, 4);
		sink->recv(sink, &s->m);
	}
	for (unsigned i = 0; i < p->window; i++)
		while (atomic_load_explicit(&p->slots[i].busy,
					    memory_order_acquire))
			sched_yield();
}

static void init_poller(struct poller *p, struct rpc_server *server,
			unsigned proc, unsigned window, uint32_t addr)
{
	struct sockaddr_in *in = (void *)&p->x.peer;

	memset(p, 0, sizeof(*p));
	p->server = server;
	p->x.ops = &ops;
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(addr);
	p->proc = proc;
	p->window = window;
	for (unsigned i = 0; i < window; i++) {
		struct slot *s = &p->slots[i];

		s->wire = malloc(512);
		s->m.xprt = &p->x;
		s->m.call[0].data = s->wire;
		s->m.call[0].len = encode_call(s->wire, i, proc);
		s->m.ncall = 1;
		s->m.call_len = s->m.call[0].len;
		s->m.head = malloc(MSG_HEAD_SIZE);
		s->m.upper = calloc(1, rpc_server_sink(server)->msg_upper);
	}
}

static void fini_poller(struct poller *p)
{
	for (unsigned i = 0; i < p->window; i++) {
		free(p->slots[i].wire);
		free(p->slots[i].m.head);
		free(p->slots[i].m.upper);
	}
}

static double seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void bench(struct rpc_server *server, const char *what, unsigned proc,
		  unsigned window, unsigned long calls, unsigned npollers)
{
	struct poller *p = calloc(npollers, sizeof(*p));
	double t;

	for (unsigned i = 0; i < npollers; i++) {
		init_poller(&p[i], server, proc, window, 0xc0000201 + i);
		p[i].calls = calls / npollers;
	}
	t = seconds();
	for (unsigned i = 0; i < npollers; i++)
		if (thread_start(&p[i].thread, "poller", poll_calls, &p[i]))
			abort();
	for (unsigned i = 0; i < npollers; i++)
		pthread_join(p[i].thread, NULL);
	t = seconds() - t;
	printf("%-28s %7.0f ns\n", what, t * 1e9 / (double)calls);
	for (unsigned i = 0; i < npollers; i++)
		fini_poller(&p[i]);
	free(p);
}

int main(int argc, char **argv)
{
	unsigned long calls = argc > 1 ? strtoul(argv[1], NULL, 0) : 1000000;
	struct rpc_server_config config = {
		.nworkers = argc > 2 ? (unsigned)atoi(argv[2]) : 8,
		.drc_bytes = 16 << 20,
	};
	unsigned npollers = argc > 3 ? (unsigned)atoi(argv[3]) : 1;
	struct rpc_server *server;

	if (pool_create(64 << 20, &config.pool) ||
	    rpc_server_create(&config, &server) ||
	    rpc_server_add(server, &prog))
		return 1;
	bench(server, "poller", ON_POLLER, 1, calls, npollers);
	bench(server, "worker, 1 outstanding", ON_WORKER, 1, calls / 10,
	      npollers);
	bench(server, "worker, 8 outstanding", ON_WORKER, 8, calls, npollers);
	bench(server, "worker, 64 outstanding", ON_WORKER, WINDOW, calls,
	      npollers);
	bench(server, "cached, 64 outstanding", CACHED, WINDOW, calls,
	      npollers);
	printf("(ns of wall time per call; %u workers, %u pollers)\n",
	       config.nworkers, npollers);
	rpc_server_destroy(server);
	pool_destroy(config.pool);
	return 0;
}
