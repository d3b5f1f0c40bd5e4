/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client - outgoing calls.
 *
 * Operation: rpc_client_call() makes a call and posts it to the loop.  There it
 * gets its port, from the host's rpcbind if it has none, and joins the peer
 * with its address: a socket and the calls that wait for answers over it.  A
 * call's timer sends it again or ends it.
 *
 * Ownership: a call is owned by the client, on the loop's thread after it was
 * posted, and freed before its done() is called.  A peer without calls is freed
 * after a while, or when another one needs its place; never in a call-back of
 * its socket.
 */
#include "rpc/client.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/loop.h"
#include "lib/stats.h"
#include "lib/util.h"
#include "rpc/client_message.h"
#include "rpc/client_ports.h"
#include "rpc/client_socket.h"
#include "transport/addr.h"
#include "transport/socket/socket.h"
#include "wire/getport.h"
#include "wire/header.h"

STAT(client_calls, "RPC calls made to other hosts");
STAT(client_resends, "RPC calls sent again to other hosts");
STAT(client_timeouts, "RPC calls to other hosts without an answer");
STAT(client_failures, "RPC calls to other hosts that failed otherwise");
STAT(client_busy, "RPC calls to other hosts refused because there were too "
     "many");
STAT(client_bad_answers, "answers from other hosts that were malformed, late "
     "or unexpected");

#define MAX_DOUBLINGS	3u

struct rpc_client {
	struct rpc_client_config config;	/* without zeros */
	struct loop	*loop;
	struct client_identity identity;
	atomic_uint	 xid;
	atomic_uint	 ncalls;
	atomic_bool	 ending;

	/* The loop's thread only. */
	struct cds_list_head peers;	/* the last used first */
	unsigned	 npeers;
	struct cds_list_head looking;	/* calls that wait for a port */
	struct client_ports ports;
};

struct peer {
	struct client_socket socket;
	struct rpc_client *client;
	struct cds_list_head link;
	struct cds_list_head calls;
	struct loop_timer idle;
	unsigned	 answers;	/* since the connection was made */
	bool		 entered;	/* by its socket: must not be freed */
};

struct client_call {
	struct cds_list_head link;	/* in peer->calls or client->looking */
	struct loop_task task;
	struct loop_timer timer;
	struct rpc_client *client;
	struct peer	*peer;		/* NULL: it has none yet */
	struct rpc_client_to to;
	bool		 looked;	/* rpcbind was asked for the port */
	bool		 internal;	/* the question for a port */
	uint64_t	 deadline;	/* ns */
	uint32_t	 sent;		/* times */
	uint32_t	 answers;	/* the peer's, as it was sent */
	uint32_t	 xid;
	rpc_client_done	*done;
	void		*arg;
	size_t		 len;
	uint8_t		 message[];	/* from the record's mark on */
};

static void count(int err)
{
	if (err == -ETIMEDOUT)
		stat_inc(client_timeouts);
	else if (err == -EBUSY)
		stat_inc(client_busy);
	else if (err && err != -ECANCELED)
		stat_inc(client_failures);
}

static void finish(struct client_call *call, int err, struct xdr_in *results)
{
	struct rpc_client *c = call->client;
	rpc_client_done *done = call->done;
	void *arg = call->arg;

	loop_timer_cancel(c->loop, &call->timer);
	cds_list_del(&call->link);
	if (call->peer && cds_list_empty(&call->peer->calls))
		loop_timer_set(c->loop, &call->peer->idle, c->config.idle_ms);
	/* The program might have a new port by now. */
	if (call->looked && err && err != -ECANCELED && err != -EBUSY)
		client_ports_drop(&c->ports, &call->to);
	if (!call->internal)
		count(err);
	if (call->to.once && err && !call->sent && err != -EBUSY &&
	    err != -ECANCELED)
		err = -EHOSTUNREACH;
	free(call);
	atomic_fetch_sub(&c->ncalls, 1);
	if (done)
		done(arg, err, results);
}

/* Ends all calls, or the sent calls that must not be sent again. */
static void fail_calls(struct cds_list_head *calls, int err, bool once)
{
	struct client_call *call, *next;

	cds_list_for_each_entry_safe(call, next, calls, link)
		if (!once || (call->to.once && call->sent))
			finish(call, err, NULL);
}

/* The time until the call is sent again, or its time is over. */
static void set_timer(struct client_call *call)
{
	struct loop *loop = call->client->loop;
	uint64_t now = loop_now(loop);
	uint64_t left = call->deadline > now ? call->deadline - now : 0;
	uint32_t doubled = call->sent ? call->sent - 1 : 0;
	uint32_t resend = call->to.resend_ms << MIN(doubled, MAX_DOUBLINGS);

	loop_timer_set(loop, &call->timer, MIN(resend,
		       (uint32_t)(left / 1000000) + 1));
}

/* Sends @call over the open socket of its peer; false: that is lost. */
static bool transmit(struct client_call *call)
{
	struct peer *peer = call->peer;
	int err;

	if (call->sent++)
		stat_inc(client_resends);
	call->answers = peer->answers;
	set_timer(call);
	err = client_socket_send(&peer->socket, call->message, call->len);
	if (err) {
		/* The error can be of an earlier one. */
		call->sent--;
		peer->socket.ops->lost(&peer->socket, err, CLIENT_OPEN);
	} else if (call->to.one_way) {
		finish(call, 0, NULL);
	}
	return !err;
}

static void opened(struct client_socket *s)
{
	struct peer *peer = container_of(s, struct peer, socket);
	struct client_call *call, *next;

	cds_list_for_each_entry_safe(call, next, &peer->calls, link)
		if (!transmit(call))
			return;
}

/* Opens the peer's socket and sends its calls, now or when it is open. */
static void open_peer(struct peer *peer)
{
	int err;

	fail_calls(&peer->calls, -ECONNRESET, true);
	peer->answers = 0;
	err = client_socket_open(&peer->socket);
	if (err)
		fail_calls(&peer->calls, err, false);
	else if (peer->socket.state == CLIENT_OPEN)
		opened(&peer->socket);
}

/*
 * A connection that served us can end between two calls, and another one is
 * made at once.  One that ends without an answer is made again when a call is
 * due to be sent again.  The error can be that of another call than one that
 * was sent once: that may have come.
 */
static void lost(struct client_socket *s, int err,
		 enum client_socket_state was)
{
	struct peer *peer = container_of(s, struct peer, socket);

	fail_calls(&peer->calls, -ECONNRESET, true);
	if (cds_list_empty(&peer->calls))
		return;
	if (s->proto == IPPROTO_UDP || was == CLIENT_CONNECTING)
		fail_calls(&peer->calls, err, false);
	else if (peer->answers)
		open_peer(peer);
}

static struct client_call *find_call(struct peer *peer, uint32_t xid)
{
	struct client_call *call;

	cds_list_for_each_entry(call, &peer->calls, link)
		if (call->xid == xid && call->sent)
			return call;
	return NULL;
}

static void answer(struct client_socket *s, const uint8_t *data, uint32_t len)
{
	struct peer *peer = container_of(s, struct peer, socket);
	struct client_call *call;
	struct xdr_in x;
	uint32_t xid;
	int err;

	xdr_in_init(&x, data, len);
	err = rpc_header_reply(&x, &xid, NULL);
	call = find_call(peer, xid);
	if (len > RPC_CLIENT_ANSWER_MAX || err == -EBADMSG || !call) {
		stat_inc(client_bad_answers);
		return;
	}
	peer->answers++;
	peer->entered = true;
	finish(call, err, err ? NULL : &x);
	peer->entered = false;
}

static const struct client_socket_ops socket_ops = { opened, answer, lost };

static void free_peer(struct peer *peer)
{
	loop_timer_cancel(peer->client->loop, &peer->idle);
	client_socket_close(&peer->socket);
	cds_list_del(&peer->link);
	peer->client->npeers--;
	free(peer);
}

static void idle(struct loop_timer *t)
{
	free_peer(container_of(t, struct peer, idle));
}

static unsigned count_calls(const struct cds_list_head *calls,
			    const struct rpc_client_to *to)
{
	struct client_call *call;
	unsigned n = 0;

	cds_list_for_each_entry(call, calls, link)
		n += !call->internal &&
		     client_same_host(&call->to.addr, &to->addr);
	return n;
}

/* Counts the calls to the host of @to that have no answer yet. */
static unsigned count_host(const struct rpc_client *c,
			   const struct rpc_client_to *to)
{
	unsigned n = count_calls(&c->looking, to);
	struct peer *peer;

	cds_list_for_each_entry(peer, &c->peers, link)
		if (client_same_host(&peer->socket.to, &to->addr))
			n += count_calls(&peer->calls, to);
	return n;
}

static struct peer *find_peer(struct rpc_client *c,
			      struct rpc_client_to *to)
{
	struct peer *peer;

	cds_list_for_each_entry(peer, &c->peers, link)
		if (peer->socket.proto == to->proto &&
		    xprt_addr_port(&peer->socket.to) ==
		    xprt_addr_port(&to->addr) &&
		    client_same_host(&peer->socket.to, &to->addr) &&
		    client_same_host(&peer->socket.from, &to->from))
			return peer;
	return NULL;
}

/* Frees the peer that has been idle for longest; false: all have calls. */
static bool evict(struct rpc_client *c)
{
	struct peer *peer;

	cds_list_for_each_entry_reverse(peer, &c->peers, link)
		if (cds_list_empty(&peer->calls) && !peer->entered) {
			free_peer(peer);
			return true;
		}
	return false;
}

static struct peer *make_peer(struct rpc_client *c,
			      const struct rpc_client_to *to)
{
	struct peer *peer;

	if (c->npeers >= c->config.max_sockets && !evict(c))
		return NULL;
	peer = calloc(1, sizeof(*peer));
	if (!peer)
		return NULL;
	peer->client = c;
	peer->idle.fire = idle;
	peer->socket.ops = &socket_ops;
	peer->socket.loop = c->loop;
	peer->socket.proto = to->proto;
	peer->socket.to = to->addr;
	peer->socket.from = to->from;
	CDS_INIT_LIST_HEAD(&peer->calls);
	cds_list_add(&peer->link, &c->peers);
	c->npeers++;
	return peer;
}

/* The port is known: the call joins a peer, and is sent. */
static void go(struct client_call *call)
{
	struct rpc_client *c = call->client;
	struct peer *peer = find_peer(c, &call->to);

	if (!peer)
		peer = make_peer(c, &call->to);
	if (!peer) {
		finish(call, -EBUSY, NULL);
		return;
	}
	call->peer = peer;
	cds_list_del(&call->link);
	cds_list_add_tail(&call->link, &peer->calls);
	cds_list_move(&peer->link, &c->peers);
	loop_timer_cancel(c->loop, &peer->idle);
	set_timer(call);
	if (peer->socket.state == CLIENT_CLOSED)
		open_peer(peer);
	else if (peer->socket.state == CLIENT_OPEN)
		transmit(call);
}

static void due(struct loop_timer *t)
{
	struct client_call *call = container_of(t, struct client_call, timer);
	struct client_socket *s = call->peer ? &call->peer->socket : NULL;

	if (loop_now(call->client->loop) >= call->deadline) {
		/* The connection can be dead: later calls make a new one. */
		if (s && s->proto == IPPROTO_TCP &&
		    call->answers == call->peer->answers)
			client_socket_close(s);
		finish(call, -ETIMEDOUT, NULL);
	} else if (s && s->state == CLIENT_CLOSED) {
		set_timer(call);
		open_peer(call->peer);
	} else if (s && s->proto == IPPROTO_UDP &&
		   !(call->to.once && call->sent)) {
		transmit(call);
	} else {
		set_timer(call);
	}
}

static struct getport question(const struct rpc_client_to *to)
{
	return (struct getport){
		.family = to->addr.ss_family, .proto = to->proto,
		.prog = to->prog, .vers = to->vers,
	};
}

/* rpcbind told the port. */
static void go_to(struct client_call *call, uint16_t port)
{
	int err = call->to.check ? call->to.check(port) : 0;

	xprt_addr_set_port(&call->to.addr, port);
	if (err)
		finish(call, err, NULL);
	else
		go(call);
}

static void found(void *arg, int err, struct xdr_in *results)
{
	struct client_call *call = arg;
	const struct getport g = question(&call->to);
	uint16_t port = 0;

	if (!err && !getport_get(results, &g, &port))
		err = -EBADMSG;
	if (!err && port == 0)
		err = -ENOENT;
	if (err) {
		finish(call, err, NULL);
		return;
	}
	client_ports_add(&call->client->ports, &call->to, port,
			 loop_now(call->client->loop));
	go_to(call, port);
}

static struct client_call *make_call(struct rpc_client *c,
				     const struct rpc_client_to *to,
				     const void *args, size_t len);

/* Asks rpcbind for the port of @call, which waits in the list meanwhile. */
static void ask_port(struct client_call *call)
{
	struct rpc_client *c = call->client;
	const struct getport g = question(&call->to);
	struct rpc_client_to to = call->to;
	struct client_call *ask;
	uint8_t args[64];
	struct xdr_out x;

	xprt_addr_set_port(&to.addr, c->config.rpcbind_port);
	to.one_way = to.once = false;
	to.prog = RPCBIND_PROGRAM;
	to.vers = getport_version(&g);
	to.proc = PMAPPROC_GETPORT;
	xdr_out_init(&x, args, sizeof(args));
	getport_put(&x, &g);
	ask = make_call(c, &to, args, xdr_out_len(&x));
	if (!ask) {
		finish(call, -ENOMEM, NULL);
		return;
	}
	atomic_fetch_add(&c->ncalls, 1);
	ask->internal = true;
	ask->done = found;
	ask->arg = call;
	ask->deadline = call->deadline;
	cds_list_add(&ask->link, &c->looking);
	go(ask);
}

static void start(struct loop_task *t)
{
	struct client_call *call = container_of(t, struct client_call, task);
	struct rpc_client *c = call->client;
	uint64_t now = loop_now(c->loop);
	uint16_t port;

	stat_inc(client_calls);
	cds_list_add(&call->link, &c->looking);
	call->deadline = now + call->to.timeout_ms * 1000000ull;
	if (atomic_load(&c->ending)) {
		finish(call, -ECANCELED, NULL);
		return;
	}
	if (count_host(c, &call->to) > c->config.max_host_calls) {
		finish(call, -EBUSY, NULL);
		return;
	}
	if (xprt_addr_port(&call->to.addr)) {
		go(call);
		return;
	}
	call->looked = true;
	port = client_ports_find(&c->ports, &call->to, now);
	if (port)
		go_to(call, port);
	else
		ask_port(call);
}

/* ---- any thread */

/* NULL: no memory. */
static struct client_call *make_call(struct rpc_client *c,
				     const struct rpc_client_to *to,
				     const void *args, size_t len)
{
	struct client_call *call = calloc(1, sizeof(*call) +
					  CLIENT_HEADER_MAX + len);

	if (!call)
		return NULL;
	call->client = c;
	call->timer.fire = due;
	call->to = *to;
	socket_unmap(&call->to.addr);
	socket_unmap(&call->to.from);
	call->to.timeout_ms = to->timeout_ms ? to->timeout_ms : 10000;
	call->to.resend_ms = to->resend_ms ? to->resend_ms : 1000;
	call->xid = atomic_fetch_add(&c->xid, 1);
	call->len = client_message_put(call->message, &c->identity, to,
				       call->xid, args, len);
	return call;
}

int rpc_client_call(struct rpc_client *c, const struct rpc_client_to *to,
		    const void *args, size_t len, rpc_client_done *done,
		    void *arg)
{
	struct client_call *call;

	if (atomic_load(&c->ending))
		return -ECANCELED;
	if (to->addr.ss_family != AF_INET && to->addr.ss_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (len > RPC_CLIENT_ARGS_MAX || len % 4)
		return -EMSGSIZE;
	if (atomic_fetch_add(&c->ncalls, 1) >= c->config.max_calls) {
		atomic_fetch_sub(&c->ncalls, 1);
		stat_inc(client_busy);
		return -EBUSY;
	}
	call = make_call(c, to, args, len);
	if (!call) {
		atomic_fetch_sub(&c->ncalls, 1);
		return -ENOMEM;
	}
	call->done = done;
	call->arg = arg;
	loop_post(c->loop, &call->task, start);
	return 0;
}

int rpc_client_create(const struct rpc_client_config *config,
		      struct rpc_client **out)
{
	struct rpc_client *c = calloc(1, sizeof(*c));
	uint32_t xid;
	int err;

	if (!c)
		return -ENOMEM;
	if (config)
		c->config = *config;
	set_default(&c->config.max_calls, 1024);
	set_default(&c->config.max_host_calls, 64);
	set_default(&c->config.max_sockets, 128);
	set_default(&c->config.idle_ms, 10000);
	if (!c->config.rpcbind_port)
		c->config.rpcbind_port = RPCBIND_PORT;
	CDS_INIT_LIST_HEAD(&c->peers);
	CDS_INIT_LIST_HEAD(&c->looking);
	/* Another process's answers to the same port must not fit our calls. */
	if (getrandom(&xid, sizeof(xid), GRND_NONBLOCK) != sizeof(xid))
		xid = (uint32_t)getpid();
	atomic_init(&c->xid, xid);
	client_identity_init(&c->identity);
	err = loop_create("rpc client", &c->loop);
	if (err)
		goto fail;
	loop_spin(c->loop, 0);
	err = loop_start(c->loop);
	if (err)
		goto fail_loop;
	*out = c;
	return 0;

fail_loop:
	loop_destroy(c->loop);
fail:
	free(c);
	return err;
}

static void cancel_all(void *arg)
{
	struct rpc_client *c = arg;
	struct peer *peer, *next;

	/* The questions first: with them end the calls that wait for them. */
	cds_list_for_each_entry(peer, &c->peers, link)
		fail_calls(&peer->calls, -ECANCELED, false);
	fail_calls(&c->looking, -ECANCELED, false);
	cds_list_for_each_entry_safe(peer, next, &c->peers, link)
		free_peer(peer);
}

void rpc_client_destroy(struct rpc_client *c)
{
	atomic_store(&c->ending, true);
	loop_call(c->loop, cancel_all, c);
	loop_destroy(c->loop);
	free(c);
}
