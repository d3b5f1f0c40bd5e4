/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp - calls over TCP: record marking (RFC 5531 section 11), batched both
 * ways.
 *
 * Operation: calls are gathered into one buffer (data of WRITE stays where it
 * is) and go out with one writev when all replies at hand are done with.  One
 * recv takes all waiting replies.
 */
#include "tools/bench/bench.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tools/nfs/wire.h"
#include "transport/addr.h"
#include "wire/record.h"

#define IOV_BATCH	512u
#define IN_SMALL	(64u << 10)

struct link {
	struct load_conn *conn;
	struct nfsc_wire *wire;		/* owned */
	int		 fd;		/* of it */
	uint32_t	 events;	/* that epoll waits for */

	/* Out: [iov_at, iov_n) is unsent; heads lie in out. */
	struct xdr_out	 out;
	uint8_t		*out_buf;	/* owned */
	size_t		 out_size, head_max;
	struct iovec	*iov;		/* owned */
	unsigned	 iov_at, iov_n, iov_max;
	unsigned	*idle;		/* owned: slots to be started */
	unsigned	 nidle;

	/* In: the record that is being received, without marks, is the @whole
	 * bytes at @start.  Nothing behind them is kept. */
	struct record_in record;
	uint8_t		*in;		/* owned */
	size_t		 in_size;
	size_t		 start, whole;
};

static int connect_link(struct link *w, const struct target *t)
{
	const struct rpc_procedure null = { RPC_NFS, 3, 0 };
	int err = wire_dial((const struct sockaddr *)&t->at,
			    xprt_addr_port(&t->at), t->opt->timeout_ms,
			    load_reserves(t), &w->wire);
	struct pollfd p;

	if (err < 0)
		return err;
	wire_poll(w->wire, &p);
	w->fd = p.fd;
	return wire_secure(w->wire, &null, &t->t->o->config, t->t->url.host);
}

static int link_init(struct link *w, struct load_conn *c)
{
	const struct target *t = c->thread->run->target;
	unsigned depth = c->thread->run->depth;
	int err;

	w->conn = c;
	err = connect_link(w, t);
	if (err < 0)
		return err;
	w->head_max = load_head_max(t);
	w->out_size = 4 * (size_t)depth * w->head_max;
	w->out_buf = malloc(w->out_size);
	w->iov_max = 8 * depth + 8;
	w->iov = calloc(w->iov_max, sizeof(*w->iov));
	w->idle = calloc(depth, sizeof(*w->idle));
	w->in_size = 2 * IN_SMALL + MAX(t->opt->block, LOAD_REPLY_MAX);
	w->in = malloc(w->in_size);
	record_in_init(&w->record, (uint32_t)(w->in_size - IN_SMALL));
	if (!w->out_buf || !w->iov || !w->idle || !w->in)
		return -ENOMEM;
	for (unsigned i = 0; i < depth; i++)
		w->idle[w->nidle++] = i;
	xdr_out_init(&w->out, w->out_buf, w->out_size);
	return 0;
}

static void link_fini(struct link *w)
{
	if (w->wire)
		wire_close(w->wire);
	free(w->out_buf);
	free(w->iov);
	free(w->idle);
	free(w->in);
}

/* Adds unsent bytes; if they follow the last piece in memory, they lengthen
 * it. */
static void add_unsent(struct link *w, const uint8_t *p, size_t len)
{
	struct iovec *last = w->iov + w->iov_n - 1;

	if (w->iov_n > w->iov_at &&
	    (uint8_t *)last->iov_base + last->iov_len == p) {
		last->iov_len += len;
		return;
	}
	w->iov[w->iov_n].iov_base = (void *)(uintptr_t)p;
	w->iov[w->iov_n++].iov_len = len;
}

static bool start_call(struct link *w, struct slot *s, uint64_t now)
{
	static const uint8_t zero[4];
	struct call c;
	uint8_t *mark = w->out.p;
	uint32_t len, pad;

	xdr_out_init(&c.x, mark + RECORD_MARK_SIZE,
		     w->head_max - RECORD_MARK_SIZE);
	if (!load_start_slot(s, &c, now))
		return false;
	pad = xdr_pad(c.data_len);
	len = (uint32_t)xdr_out_len(&c.x);
	record_put_mark(mark, (size_t)len + c.data_len + pad);
	xdr_reserve(&w->out, RECORD_MARK_SIZE + len);
	add_unsent(w, mark, RECORD_MARK_SIZE + len);
	if (c.data_len) {
		add_unsent(w, c.data, c.data_len);
		if (pad)
			add_unsent(w, zero, pad);
	}
	return true;
}

/* Starts calls of idle slots, as far as they fit. */
static void start_calls(struct link *w)
{
	uint64_t now = clock_ns();
	unsigned n = 0;

	while (n < w->nidle &&
	       (size_t)(w->out.end - w->out.p) >= w->head_max &&
	       w->iov_n + 3 <= w->iov_max) {
		if (!start_call(w, &w->conn->slots[w->idle[n]], now))
			break;
		n++;
	}
	w->nidle -= n;
	memmove(w->idle, w->idle + n, w->nidle * sizeof(*w->idle));
}

static int send_calls(struct link *w)
{
	ssize_t n = wire_write(w->wire, w->iov + w->iov_at,
			       MIN(w->iov_n - w->iov_at, IOV_BATCH));

	if (n <= 0)
		return n == 0 ? -EAGAIN : (int)n;
	while (n > 0) {
		struct iovec *v = &w->iov[w->iov_at];
		size_t k = MIN((size_t)n, v->iov_len);

		v->iov_base = (uint8_t *)v->iov_base + k;
		v->iov_len -= k;
		n -= (ssize_t)k;
		if (!v->iov_len)
			w->iov_at++;
	}
	return 0;
}

/* Starts and sends until nothing is left or the socket is full. */
static int flush_link(struct link *w)
{
	int err;

	for (;;) {
		start_calls(w);
		if (w->iov_at == w->iov_n)
			return 0;
		err = send_calls(w);
		if (err)
			return err == -EAGAIN ? 0 : err;
		if (w->iov_at == w->iov_n) {
			w->iov_at = w->iov_n = 0;
			xdr_out_init(&w->out, w->out_buf, w->out_size);
		}
	}
}

static int take_record(struct link *w, uint64_t now)
{
	struct xdr_in x;
	struct slot *s;
	int err;

	xdr_in_init(&x, w->in + w->start, w->whole);
	if (w->whole < 4)
		return -EBADMSG;
	s = load_find_slot(w->conn, xdr_word(w->in + w->start));
	if (!s)
		return -EBADMSG;
	err = load_reply(s, &x, now);
	w->idle[w->nidle++] = s->index;
	return err;
}

/* Takes apart the received bytes, up to @end.  The fragments of a record are
 * moved together. */
static int take_records(struct link *w, const uint8_t *end, uint64_t now)
{
	const uint8_t *p = w->in + w->start + w->whole;
	struct record_span span;
	int err;

	for (;;) {
		switch (record_next(&w->record, &p, end, &span)) {
		case RECORD_MORE:
			return 0;
		case RECORD_BAD:
			return -EBADMSG;
		case RECORD_SPAN:
			break;
		}
		if (!w->whole)
			w->start = (size_t)(span.data - w->in);
		else if (span.data != w->in + w->start + w->whole)
			memmove(w->in + w->start + w->whole, span.data,
				span.len);
		w->whole += span.len;
		if (!span.end)
			continue;
		err = take_record(w, now);
		if (err)
			return err;
		w->whole = 0;
	}
}

/* Makes room for the record at hand; a long one lies at the front then. */
static void make_space(struct link *w)
{
	if (!w->whole)
		w->start = 0;
	if (w->in_size - w->start - w->whole >= w->record.left + IN_SMALL)
		return;
	memmove(w->in, w->in + w->start, w->whole);
	w->start = 0;
}

static int receive_some(struct link *w)
{
	bool discard = w->conn->thread->run->target->opt->b.discard;
	/* At most the rest of a long record: then no bytes are moved. */
	size_t rest = w->record.left;
	uint8_t *to;
	ssize_t n;

	make_space(w);
	to = w->in + w->start + w->whole;
	if (discard && rest > IN_SMALL) {
		n = recv(w->fd, to, rest, MSG_DONTWAIT | MSG_TRUNC);
		if (n == 0)
			return -ECONNRESET;
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	} else {
		n = wire_read(w->wire, to, MAX(rest, IN_SMALL));
		if (n <= 0)
			return (int)n;
	}
	return take_records(w, to + n, clock_ns());
}

static int serve_link(struct link *w, uint32_t events, int ep)
{
	struct epoll_event ev = { .data.ptr = w };
	struct pollfd p;
	uint32_t want;
	int err = 0;

	wire_poll(w->wire, &p);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR) || p.events & POLLOUT)
		err = receive_some(w);
	while (!err && wire_pending(w->wire))
		err = receive_some(w);
	if (!err)
		err = flush_link(w);
	wire_poll(w->wire, &p);
	want = p.events & POLLIN ? EPOLLIN : EPOLLOUT;
	want |= w->iov_at < w->iov_n ? (uint32_t)EPOLLOUT : 0;
	if (!err && want != w->events) {
		w->events = ev.events = want;
		if (epoll_ctl(ep, EPOLL_CTL_MOD, w->fd, &ev) < 0)
			err = -errno;
	}
	return err;
}

static bool is_busy(const struct load_thread *t, const struct link *w)
{
	for (unsigned i = 0; i < t->nconns; i++)
		if (w[i].conn->outstanding)
			return true;
	return false;
}

/* Until when nothing has to come, in ms from now. */
static int wait_ms(const struct load_thread *t, uint64_t now, uint64_t heard)
{
	uint64_t until = heard + (uint64_t)t->run->target->opt->timeout_ms *
			 NS_PER_MS;

	if (load_waits(t)) {
		uint64_t soon = MAX(t->due, now + NS_PER_MS);

		until = MIN(until, soon);
	}
	return until > now ? (int)((until - now) / NS_PER_MS) + 1 : 0;
}

/* Waits once, and then does all due work. */
static int serve_round(struct load_thread *t, struct link *w, int ep,
		       uint64_t *heard)
{
	struct epoll_event ev[64];
	uint64_t now = clock_ns();
	int err = 0, n = epoll_wait(ep, ev, ARRAY_SIZE(ev),
				    wait_ms(t, now, *heard));

	for (int i = 0; i < n && !err; i++)
		err = serve_link(ev[i].data.ptr, ev[i].events, ep);
	for (unsigned i = 0; t->gap && i < t->nconns && !err; i++)
		err = serve_link(&w[i], 0, ep);
	load_tick(t);
	if (n > 0 || !is_busy(t, w))
		*heard = now;
	else if (!err && !wait_ms(t, clock_ns(), *heard))
		err = -ETIMEDOUT;
	return err;
}

static int serve_links(struct load_thread *t, struct link *w, int ep)
{
	struct epoll_event ev = { .events = EPOLLIN };
	uint64_t heard = clock_ns();
	int err = 0;

	for (unsigned i = 0; i < t->nconns && !err; i++) {
		ev.data.ptr = &w[i];
		w[i].events = ev.events;
		if (epoll_ctl(ep, EPOLL_CTL_ADD, w[i].fd, &ev) < 0)
			return -errno;
		err = serve_link(&w[i], 0, ep);
	}
	while (!err && (is_busy(t, w) || load_waits(t)))
		err = serve_round(t, w, ep, &heard);
	return err;
}

static int run_tcp(struct load_thread *t)
{
	struct link *w = calloc(t->nconns, sizeof(*w));
	int ep = epoll_create1(EPOLL_CLOEXEC), err = 0;
	unsigned n = 0;

	if (!w || ep < 0) {
		err = -ENOMEM;
		goto out;
	}
	while (n < t->nconns && !err) {
		err = link_init(&w[n], &t->run->conns[t->first + n]);
		n++;
	}
	load_begin(t);
	if (!err)
		err = serve_links(t, w, ep);
	load_end(t);
	if (!err)
		load_rest(t);
	while (n)
		link_fini(&w[--n]);
out:
	if (ep >= 0)
		close(ep);
	free(w);
	return err;
}

const struct transport load_tcp = { run_tcp };
