/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp_listen - listeners: accept, count, spread and end connections.
 *
 * The first loop accepts; each connection goes to the loop that has the
 * fewest.  The listener is freed when the last connection is.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/stats.h"
#include "transport/stream/tcp.h"

STAT(tcp_accepted, "TCP connections accepted");
STAT(tcp_refused, "TCP connections refused because there were too many");
STAT(tcp_refused_peer, "TCP connections refused because their peer had too "
     "many");
STAT(tcp_accept_failed, "TCP connections that could not be set up");

/* TCP_USER_TIMEOUT: ms before unacknowledged data ends the connection. */
#define USER_TIMEOUT	60000

static struct tcp_poller *tcp_choose_poller(struct tcp_listener *l)
{
	struct tcp_poller *best = &l->pollers[0];

	for (unsigned i = 1; i < l->env.nloops; i++)
		if (atomic_load(&l->pollers[i].nconns) <
		    atomic_load(&best->nconns))
			best = &l->pollers[i];
	return best;
}

/* Counts one more connection of @peer, if the limits allow. */
static bool tcp_listener_admit(struct tcp_listener *l,
			       struct sockaddr_storage *peer)
{
	const char *why = "no memory for more connections";
	char addr[XPRT_ADDR_TEXT];
	int err;

	err = xprt_gate_enter(&l->gate, (struct sockaddr *)peer);
	if (!err)
		return true;
	if (err == -EDQUOT) {
		stat_inc(tcp_refused_peer);
		why = "there are too many connections from there";
	} else {
		stat_inc(tcp_refused);
		if (err == -EUSERS)
			why = "there are too many connections";
	}
	log_limited(LOG_LEVEL_WARN, "tcp %s: refused, %s",
		    xprt_addr_text((struct sockaddr *)peer, addr, sizeof(addr)),
		    why);
	return false;
}

static void tcp_listener_accepted(struct acceptor *a, int fd,
				  struct sockaddr_storage *peer)
{
	struct tcp_listener *l = container_of(a, struct tcp_listener, accept);
	struct tcp_conn *conn;
	int err;

	if (!tcp_listener_admit(l, peer)) {
		close(fd);
		return;
	}
	err = tcp_conn_create(tcp_choose_poller(l), fd, peer, &conn);
	if (err) {
		stat_inc(tcp_accept_failed);
		xprt_gate_leave(&l->gate, (struct sockaddr *)peer);
		return;
	}
	stat_inc(tcp_accepted);
	tcp_conn_start(conn);
}

static void tcp_listener_sweep(struct loop_timer *t)
{
	struct tcp_poller *p = container_of(t, struct tcp_poller, sweep);
	uint64_t now = loop_now(p->loop);
	struct tcp_conn *conn, *next;

	cds_list_for_each_entry_safe(conn, next, &p->conns, link)
		tcp_conn_sweep(conn, now);
	/* Idle connections hold no receive buffer. */
	if (p->chunk && p->chunk_idle) {
		buf_put(p->chunk);
		p->chunk = NULL;
	}
	p->chunk_idle = true;
	loop_timer_set(p->loop, t, p->listener->sweep_ms);
}

static uint32_t sweep_ms(const struct tcp_options *o)
{
	uint32_t ms = MIN(o->idle_ms, o->stall_ms);

	if (o->tls)
		ms = MIN(ms, o->tls->handshake_ms);
	ms = MIN(ms, o->send_ms);
	ms = MIN(ms, o->short_ms);
	ms = MIN(ms, o->linger_ms) / 4;
	ms = MIN(ms, 1000u);
	return MAX(ms, 10u);
}

static struct tcp_options with_defaults(const struct tcp_options *from)
{
	struct tcp_options o = { 0 };

	if (from)
		o = *from;
	set_default(&o.idle_ms, 360000);
	set_default(&o.stall_ms, 60000);
	set_default(&o.send_ms, 60000);
	set_default(&o.short_ms, 5000);
	set_default(&o.linger_ms, 2000);
	set_default(&o.unread_ms, 200);
	set_default(&o.reply_ms, 800);
	set_default(&o.max_calls, 256);
	if (o.max_queued == 0)
		o.max_queued = 8u << 20;
	return o;
}

static struct tcp_tls tls_with_defaults(const struct tcp_tls *from)
{
	struct tcp_tls t = *from;

	set_default(&t.handshake_ms, 10000);
	set_default(&t.max, 256);
	set_default(&t.max_peer, 64);
	if (t.max_records == 0)
		t.max_records = 1u << 24;
	return t;
}

static void poller_start(void *arg)
{
	struct tcp_poller *p = arg;

	p->sweep.fire = tcp_listener_sweep;
	loop_timer_set(p->loop, &p->sweep, p->listener->sweep_ms);
}

static void poller_stop(void *arg)
{
	struct tcp_poller *p = arg;
	struct tcp_conn *conn, *next;

	p->stopped = true;
	cds_list_for_each_entry_safe(conn, next, &p->conns, link) {
		xprt_life_why(&conn->xprt, "the server ends or drains");
		tcp_conn_end(conn);
	}
}

static void poller_close(void *arg)
{
	struct tcp_poller *p = arg;
	struct tcp_conn *conn;

	cds_list_for_each_entry(conn, &p->conns, link)
		outbox_close(&conn->out.box, -ESHUTDOWN);
}

/* No connection is left. */
static void poller_end(void *arg)
{
	struct tcp_poller *p = arg;

	loop_timer_cancel(p->loop, &p->sweep);
	buf_put(p->chunk);
	tcp_msg_fini(p);
}

static void for_each_poller(struct tcp_listener *l, void (*fn)(void *))
{
	for (unsigned i = 0; i < l->env.nloops; i++)
		loop_call(l->pollers[i].loop, fn, &l->pollers[i]);
}

static void tcp_listener_stop(struct xprt_listener *base)
{
	struct tcp_listener *l = container_of(base, struct tcp_listener, base);

	acceptor_stop(&l->accept);
	for_each_poller(l, poller_stop);
}

static void poller_go_on(void *arg)
{
	struct tcp_poller *p = arg;

	p->stopped = false;
}

static int tcp_listener_start(struct xprt_listener *base)
{
	struct tcp_listener *l = container_of(base, struct tcp_listener, base);
	struct sockaddr_storage at = base->local;
	int err;

	for_each_poller(l, poller_go_on);
	err = acceptor_start(&l->accept, l->env.loops[0],
			     (struct sockaddr *)&at, &at);
	if (err)
		for_each_poller(l, poller_stop);
	return err;
}

static unsigned tcp_listener_count(struct xprt_listener *base)
{
	struct tcp_listener *l = container_of(base, struct tcp_listener, base);

	return xprt_gate_count(&l->gate);
}

static void tcp_listener_free(struct tcp_listener *l)
{
	xprt_gate_fini(&l->gate);
	xprt_gate_fini(&l->shaking);
	free(l);
}

static void tcp_listener_end(struct xprt_listener *base)
{
	struct tcp_listener *l = container_of(base, struct tcp_listener, base);

	tcp_listener_stop(base);
	for_each_poller(l, poller_close);
	xprt_gate_wait(&l->gate);
	for_each_poller(l, poller_end);
	tcp_listener_free(l);
}

static const struct xprt_listener_ops ops = {
	.stop = tcp_listener_stop,
	.start = tcp_listener_start,
	.count = tcp_listener_count,
	.free = tcp_listener_end,
};

static struct tcp_listener *tcp_listener_make(const struct xprt_env *env,
					      const struct tcp_options *o)
{
	struct tcp_listener *l = calloc(1, sizeof(*l) + env->nloops *
					sizeof(l->pollers[0]));

	if (!l)
		return NULL;
	l->base.ops = &ops;
	l->env = *env;
	l->o = with_defaults(o);
	if (l->o.tls) {
		l->tls = tls_with_defaults(l->o.tls);
		l->o.tls = &l->tls;
	}
	l->sweep_ms = sweep_ms(&l->o);
	l->accept.name = "tcp";
	l->accept.v6only = l->o.v6only;
	l->accept.timeout_ms = USER_TIMEOUT;
	l->accept.accepted = tcp_listener_accepted;
	xprt_gate_init(&l->gate, env->max_conns, env->max_peer_conns);
	l->gate.has_fds = true;
	xprt_gate_init(&l->shaking, l->tls.max, l->tls.max_peer);
	l->shaking.spares = true;
	l->base.gate = &l->gate;
	for (unsigned i = 0; i < env->nloops; i++) {
		l->pollers[i].listener = l;
		l->pollers[i].loop = env->loops[i];
		CDS_INIT_LIST_HEAD(&l->pollers[i].conns);
	}
	return l;
}

int tcp_listen(const struct xprt_env *env, const struct sockaddr *addr,
	       const struct tcp_options *o, struct xprt_listener **out)
{
	struct tcp_listener *l = tcp_listener_make(env, o);
	int err;

	if (!l)
		return -ENOMEM;
	err = acceptor_start(&l->accept, env->loops[0], addr, &l->base.local);
	if (err) {
		tcp_listener_free(l);
		return err;
	}
	for_each_poller(l, poller_start);
	*out = &l->base;
	return 0;
}
