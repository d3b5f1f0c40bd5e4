/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_rig - a responder on the loop fabric, with a small program on it. */
#include "tests/server/rdma_rig.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/fabric/iwarp_options.h"
#include "tests/unit/pause.h"

/* Our part of a call. */
struct work {
	struct loop_task   task;
	struct pool_request room;
	struct cds_list_head held;
	struct msg	  *m;
	struct rig	  *rig;
};

void require_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	abort();
}

static void serve(struct work *w);

static void run_work(struct loop_task *t)
{
	serve(container_of(t, struct work, task));
}

static void buffer_ready(struct pool_request *r, struct buf *b)
{
	struct work *w = container_of(r, struct work, room);

	w->m->body = b;
	loop_post(w->rig->worker, &w->task, run_work);
}

static bool want_body(struct work *w, uint32_t size)
{
	struct msg *m = w->m;
	struct buf *b;

	if (m->body)			/* it waited for this one */
		return true;
	w->room.ready = buffer_ready;
	b = pool_request(w->rig->pool, size, &w->room);
	if (b)
		m->body = b;
	return b;
}

static void answer(struct msg *m, struct xdr_out *x, uint32_t tail)
{
	require(!x->bad);
	m->head_len = (uint32_t)xdr_out_len(x) - tail;
	m->tail_len = tail;
	xprt_reply(m);
}

static uint8_t byte_at(const struct msg *m, size_t at)
{
	uint32_t i = 0;

	while (at >= m->call[i].len)
		at -= m->call[i++].len;
	return m->call[i].data[at];
}

static void serve_sum(struct work *w, struct xdr_in *in, struct xdr_out *out,
		      uint32_t arg)
{
	struct msg *m = w->m;
	uint32_t bytes = 0, sum = 0, left = 0, last = 0;
	uint32_t opaques = MIN(arg, 4u);
	struct iovec iov[MSG_MAX_SEGS];

	while (opaques-- > 0 && xdr_ok(in)) {
		int n = MSG_MAX_SEGS;
		uint32_t len = xdr_get_iov(in, MSG_MAX_LEN, iov, &n);

		bytes += len;
		for (uint32_t i = 1; i <= xdr_pad(len) && w->rig->zero_pad;
		     i++)
			require(byte_at(m, m->call_len - xdr_left(in) - i) ==
				0);
		for (int i = 0; i < n; i++)
			for (size_t b = 0; b < iov[i].iov_len; b++)
				sum += ((uint8_t *)iov[i].iov_base)[b];
	}
	for (; xdr_ok(in) && xdr_left(in) >= 4; left++)
		last = xdr_get_u32(in);
	xdr_put_u32(out, xdr_ok(in) ? bytes : UINT32_MAX);
	xdr_put_u32(out, sum);
	xdr_put_u32(out, left);
	xdr_put_u32(out, last);
	answer(m, out, 0);
}

/* True when it waits for a buffer. */
static bool serve_echo(struct work *w, struct xdr_in *in, struct xdr_out *out)
{
	struct iovec iov[MSG_MAX_SEGS];
	int n = MSG_MAX_SEGS;
	uint32_t len = xdr_get_iov(in, POOL_PAYLOAD_MAX, iov, &n);
	uint8_t *at;

	xdr_put_u32(out, len);
	if (len > 0) {
		if (!want_body(w, len))
			return true;
		at = w->m->body->data;
		for (int i = 0; i < n; i++) {
			memcpy(at, iov[i].iov_base, iov[i].iov_len);
			at += iov[i].iov_len;
		}
		w->m->body_len = len;
	}
	xdr_put_fixed(out, "\0\0\0", 0);
	for (uint32_t i = 0; i < xdr_pad(len); i++)
		*out->p++ = 0;
	answer(w->m, out, xdr_pad(len));
	return false;
}

static bool serve_data(struct work *w, struct xdr_out *out, uint32_t len,
		       bool eligible)
{
	/* No more than the reply's head has room for. */
	uint32_t extra = eligible ? MIN(1 + (len >> 24), 250u) : 0;
	struct msg *m = w->m;

	len &= 0xffffff;
	len = MIN(len, POOL_PAYLOAD_MAX);
	if (!want_body(w, len))
		return true;
	for (uint32_t i = 0; i < len; i++)
		m->body->data[i] = pattern(i);
	m->body_len = len;
	m->body_ddp = eligible;
	xdr_put_u32(out, len);
	for (uint32_t i = 0; i < xdr_pad(len); i++)
		*out->p++ = 0;
	for (uint32_t i = 0; i < extra; i++)
		xdr_put_u32(out, END_WORD);
	answer(m, out, xdr_pad(len) + 4 * extra);
	return false;
}

static void hold(struct work *w)
{
	mutex_lock(&w->rig->lock);
	cds_list_add_tail(&w->held, &w->rig->held);
	mutex_unlock(&w->rig->lock);
}

static void keep(struct rig *rig, struct xprt *x)
{
	struct xprt *old;

	xprt_get(x);
	mutex_lock(&rig->lock);
	old = rig->xprt;
	rig->xprt = x;
	mutex_unlock(&rig->lock);
	if (old)
		xprt_put(old);
}

static void serve(struct work *w)
{
	struct msg *m = w->m;
	uint32_t op, arg;
	struct xdr_in in;
	struct xdr_out out;

	xdr_in_init_segs(&in, m->call, m->ncall);
	xdr_out_init(&out, m->head, MSG_HEAD_SIZE);
	xdr_put_u32(&out, xdr_get_u32(&in));
	op = xdr_get_u32(&in);
	arg = xdr_get_u32(&in);
	switch (op) {
	case OP_SUM:
		serve_sum(w, &in, &out, arg);
		break;
	case OP_ECHO:
		serve_echo(w, &in, &out);
		break;
	case OP_READ:
		serve_data(w, &out, arg, true);
		break;
	case OP_LONG:
		serve_data(w, &out, arg, false);
		break;
	case OP_HOLD:
		hold(w);
		break;
	case OP_DROP:
		xprt_drop(m);
		break;
	case OP_REJECT:
		xprt_reject(m);
		break;
	case OP_KEEP:
		keep(w->rig, m->xprt);
		answer(m, &out, 0);
		break;
	default:
		answer(m, &out, 0);
	}
}

static void sink_recv(struct xprt_sink *sink, struct msg *m)
{
	struct rig *rig = container_of(sink, struct rig, sink);
	struct work *w = m->upper;
	struct xprt_view v = { 0 };
	uint32_t len = 0;

	require(m->ncall <= MSG_MAX_SEGS);
	/* Only a TCP socket's port says that its owner is privileged. */
	require(m->xprt->any_port == !rig->iwarp);
	require(m->xprt->rdma);
	require(strncmp(m->xprt->name, "rdma 127.0.0.1:", 15) == 0);
	for (uint32_t i = 0; i < m->ncall; i++) {
		len += m->call[i].len;
		require(i + 1 == m->ncall || m->call[i].len % 4 == 0);
	}
	require(len == m->call_len);
	xprt_fate_look(m->xprt->fate, &v);
	atomic_store(&rig->acked, v.acked);
	atomic_fetch_add(&rig->taken, 1);
	w->m = m;
	w->rig = rig;
	m->body = NULL;
	if (rig->options.async)
		loop_post(rig->worker, &w->task, run_work);
	else
		serve(w);
}

static bool chunk_ok(struct xprt_sink *sink, const void *head, uint32_t len,
		     uint32_t position)
{
	return position == DATA_POSITION;
}

void rig_release(struct rig *rig)
{
	struct cds_list_head list;
	struct work *w, *next;
	struct xdr_out out;

	CDS_INIT_LIST_HEAD(&list);
	mutex_lock(&rig->lock);
	cds_list_splice(&rig->held, &list);
	CDS_INIT_LIST_HEAD(&rig->held);
	mutex_unlock(&rig->lock);
	cds_list_for_each_entry_safe(w, next, &list, held) {
		xdr_out_init(&out, w->m->head, MSG_HEAD_SIZE);
		memcpy(xdr_reserve(&out, 4), w->m->call[0].data, 4);
		answer(w->m, &out, 0);
	}
}

unsigned rig_held(struct rig *rig)
{
	struct work *w;
	unsigned n = 0;

	mutex_lock(&rig->lock);
	cds_list_for_each_entry(w, &rig->held, held)
		n++;
	mutex_unlock(&rig->lock);
	return n;
}

static void make_loop(const char *name, struct loop **out)
{
	require(loop_create(name, out) == 0);
	require(loop_start(*out) == 0);
}

const struct rig_fabric *rig_fabric;
static bool only_loop;

void rig_on_loop(void)
{
	only_loop = true;
}

/* The order of completions is the only option that both have, in a way. */
static bool wants_iwarp(const struct rig_options *o)
{
	static const struct loop_fabric_options none;
	struct loop_fabric_options fabric = o->fabric;
	const char *name = getenv("RIG_FABRIC");

	fabric.seed = 0;
	return !only_loop && name && strncmp(name, "iwarp", 5) == 0 &&
	       memcmp(&fabric, &none, sizeof(none)) == 0;
}

static void open_fabric(struct rig *rig)
{
	struct iwarp_options iwarp;

	if (rig_fabric) {
		require(rig_fabric->create(&rig->fabric) == 0);
		return;
	}
	rig->iwarp = wants_iwarp(&rig->options);
	if (!rig->iwarp) {
		require(loop_fabric_create(&rig->options.fabric,
					   &rig->fabric) == 0);
		return;
	}
	iwarp_options_parse(getenv("RIG_FABRIC"), &iwarp);
	require(iwarp_fabric_create(&iwarp, &rig->fabric) == 0);
}

static void close_fabric(struct rig *rig)
{
	if (rig_fabric)
		rig_fabric->destroy(&rig->fabric);
	else if (rig->iwarp)
		iwarp_fabric_destroy(&rig->fabric);
	else
		loop_fabric_destroy(&rig->fabric);
}

void rig_count(const struct rig *rig, struct loop_fabric_counts *out)
{
	memset(out, 0, sizeof(*out));
	if (!rig->iwarp && !rig_fabric)
		loop_fabric_count(&rig->fabric, out);
}

void rig_break(struct rig *rig, struct rpcrdma_requester *r)
{
	if (rig->iwarp)
		rpcrdma_requester_close(r);
	else
		loop_fabric_break(&rig->fabric);
}

void rig_open(struct rig *rig, const struct rig_options *options)
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct xprt_env env;
	struct loop **loops = rig->loops;

	memset(rig, 0, sizeof(*rig));
	if (options)
		rig->options = *options;
	pthread_mutex_init(&rig->lock, NULL);
	CDS_INIT_LIST_HEAD(&rig->held);
	make_loop("server", &rig->server);
	make_loop("worker", &rig->worker);
	rig->client = rig->server;
	if (!rig->options.one_loop)
		make_loop("client", &rig->client);
	require(pool_create(rig->options.pool_bytes ?
				     rig->options.pool_bytes : 64u << 20,
				     &rig->pool) == 0);
	open_fabric(rig);
	rig->sink.recv = sink_recv;
	rig->sink.msg_upper = sizeof(struct work);
	rig->sink.read_chunk_ok = rig->options.any_position ? NULL : chunk_ok;
	loops[0] = rig->server;
	loops[1] = rig->worker;
	env = (struct xprt_env){
		.sink = &rig->sink, .pool = rig->pool,
		.loops = loops, .nloops = rig->options.two_pollers ? 2 : 1,
		.max_conns = rig->options.max_conns ? rig->options.max_conns :
			     16,
		.max_peer_conns = rig->options.max_peer_conns,
		.clients = rig->options.clients,
	};
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	require(rpcrdma_listen(&rig->fabric, &env, (struct sockaddr *)&addr,
			       &rig->options.rdma, &rig->listener) == 0);
}

void rig_close(struct rig *rig)
{
	struct loop_fabric_counts counts;
	size_t taken, out;

	if (rig->xprt)
		xprt_put(rig->xprt);
	if (rig->listener)
		rig->listener->ops->free(rig->listener);
	rig_count(rig, &counts);
	require(counts.violations == 0);
	require(counts.ends == 0);
	require(counts.mrs == 0);
	pool_usage(rig->pool, &taken, &out);
	require(out == 0);
	loop_stop(rig->worker);
	loop_stop(rig->server);
	if (rig->client != rig->server) {
		loop_stop(rig->client);
		loop_destroy(rig->client);
	}
	loop_destroy(rig->worker);
	loop_destroy(rig->server);
	close_fabric(rig);
	pool_destroy(rig->pool);
	pthread_mutex_destroy(&rig->lock);
}

void wait_until(bool (*fn)(void *arg), void *arg)
{
	require(AWAIT_EACH(200, fn(arg)));
}

/* ---- exchanges */

static void exchange_done(struct rpcrdma_request *q)
{
	struct exchange *x = container_of(q, struct exchange, request);

	if (q->status == 0) {
		x->reply = malloc(q->reply_len);
		memcpy(x->reply, q->reply_data, q->reply_len);
	}
	sem_post(&x->done);
}

void exchange_init(struct exchange *x, uint32_t xid, uint32_t op, uint32_t arg)
{
	memset(x, 0, sizeof(*x));
	sem_init(&x->done, 0, 0);
	x->request.call = x->call;
	x->request.done = exchange_done;
	exchange_put(x, xid);
	exchange_put(x, op);
	exchange_put(x, arg);
}

void exchange_put(struct exchange *x, uint32_t word)
{
	word = htonl(word);
	memcpy(x->call + x->request.call_len, &word, 4);
	x->request.call_len += 4;
}

void exchange_start(struct rpcrdma_requester *r, struct exchange *x)
{
	rpcrdma_requester_call(r, &x->request);
}

int exchange_wait(struct exchange *x)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	while (sem_timedwait(&x->done, &until) < 0)
		require(errno == EINTR);
	return x->request.status;
}

void exchange_fini(struct exchange *x)
{
	free(x->reply);
	sem_destroy(&x->done);
}

uint32_t exchange_word(const struct exchange *x, uint32_t i)
{
	uint32_t word;

	require(x->request.status == 0);
	require(x->request.reply_len >= 4 * i + 4);
	memcpy(&word, x->reply + 4 * i, 4);
	return ntohl(word);
}

void rig_connect(struct rig *rig,
		 const struct rpcrdma_requester_options *options,
		 struct rpcrdma_requester **out)
{
	static const struct rpcrdma_requester_options defaults;

	require(rpcrdma_requester_create(&rig->fabric,
			(struct sockaddr *)&rig->listener->local, rig->client,
			options ? options : &defaults, out) == 0);
}
