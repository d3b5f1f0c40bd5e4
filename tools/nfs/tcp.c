/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp - a session over TCP.
 *
 * Operation: everything happens in submit and wait.  An operation is in
 * flight or, when its connection ended before its reply, waits to be sent
 * again on the next one, with the xid that it had: the server knows it again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "tools/nfs/wire.h"
#include "lib/log.h"
#include "lib/util.h"
#include "lib/xdr.h"

enum { NFS_PORT = 2049 };

struct session {
	struct nfsc_session  base;
	struct nfsc_url	    url;
	struct nfsc_wire   *wire;	/* NULL: not connected */
	bool		    broken;
	int		    why;	/* -errno: the last connection ended */
	unsigned	    failures;	/* to connect again, since a reply */
	uint32_t	    xid;
	struct cds_list_head flying;
	struct cds_list_head again;	/* to be sent when connected */
	struct cds_list_head done;
};

/* Of an operation, from its submission until it is over. */
struct tcp_call {
	struct wire_out	out;
	uint32_t	xid;
	size_t		room;
	uint8_t		msg[];
};

/* ---- operations */

static void finish_op(struct session *s, struct nfsc_op *op, int err)
{
	free(op->call);
	op->call = NULL;
	op->err = err;
	cds_list_add_tail(&op->link, &s->done);
}

static struct nfsc_op *find_sent(struct session *s, uint32_t xid)
{
	struct nfsc_op *op;

	cds_list_for_each_entry(op, &s->flying, link) {
		const struct tcp_call *call = op->call;

		if (call->xid == xid)
			return op;
	}
	return NULL;
}

/* 0, or -EBADMSG: this connection can't be believed. */
static int take_reply(struct session *s, struct xdr_in *x)
{
	struct xdr_in peek = *x;
	uint32_t xid = xdr_get_u32(&peek);
	struct nfsc_op *op = find_sent(s, xid);
	const struct tcp_call *call;
	int err;

	if (!op) {
		log_debug("tcp: a reply to no call of ours");
		return -EBADMSG;
	}
	call = op->call;
	if (!wire_sent(&call->out))
		return -EBADMSG;
	err = rpc_get_op(x, xid, op, &s->base.config);
	if (err == 0 && op->status == 0 && op->kind == NFS_OP_READ)
		err = rpc_get_data(x, op);
	s->failures = 0;
	cds_list_del(&op->link);
	finish_op(s, op, err);
	return 0;
}

/* ---- the connection */

/* Operations in flight go back to the queue, in order, before the waiting
 * ones. */
static void disconnect(struct session *s)
{
	if (s->wire)
		wire_close(s->wire);
	s->wire = NULL;
	s->broken = false;
	cds_list_splice(&s->flying, &s->again);
	CDS_INIT_LIST_HEAD(&s->flying);
}

static int dial_server(struct session *s)
{
	uint16_t port = s->url.port ? s->url.port : NFS_PORT;

	return wire_open(s->url.host, port, RPC_NFS, 3, &s->base.config,
			 &s->wire);
}

static void pause_for(unsigned failures)
{
	unsigned doublings = MIN(failures - 1, 10u);
	unsigned ms = MIN(100u << doublings, 5000u);

	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* After an end: a new connection, with patience.  Until a reply has come, this
 * one can also be in vain. */
static int redial(struct session *s)
{
	int err = s->why;

	disconnect(s);
	while (err < 0 && s->failures < s->base.config.retries) {
		if (s->failures > 0)
			pause_for(s->failures);
		s->failures++;
		err = dial_server(s);
	}
	return err;
}

/* Each time with another number, if the flavor has numbers (RFC 2203 section
 * 5.3.3.1).  0 or -errno. */
static int make_tcp_call(struct session *s, struct nfsc_op *op)
{
	struct tcp_call *call = op->call;
	struct xdr_out x;
	int err;

	xdr_out_init(&x, call->msg, call->room);
	err = rpc_put_op(&x, call->xid, op, &s->base.config);
	call->out.head = call->msg;
	call->out.head_len = (uint32_t)xdr_out_len(&x);
	call->out.data_len = rpc_op_data(op, &s->base.config);
	call->out.data = op->data;
	return err;
}

static void fly(struct session *s, struct nfsc_op *op)
{
	struct tcp_call *call = op->call;

	cds_list_add_tail(&op->link, &s->flying);
	wire_send(s->wire, &call->out);
}

/* Sends the waiting operations, or ends them with @err. */
static void send_again(struct session *s, int err)
{
	struct nfsc_op *op, *next;
	int made;

	cds_list_for_each_entry_safe(op, next, &s->again, link) {
		cds_list_del(&op->link);
		made = err < 0 ? err : make_tcp_call(s, op);
		if (made == 0)
			fly(s, op);
		else
			finish_op(s, op, made);
	}
}

static int submit_tcp(struct nfsc_session *base, struct nfsc_op *op)
{
	struct session *s = container_of(base, struct session, base);
	size_t room = rpc_op_room(op, &base->config);
	struct tcp_call *call = calloc(1, sizeof(*call) + room);
	int err;

	if (!call)
		return -ENOMEM;
	call->xid = op->xid = op->repeats ? op->xid : s->xid++;
	call->room = room;
	op->call = call;
	err = make_tcp_call(s, op);
	if (err < 0) {
		free(call);
		return err;
	}
	op->err = 0;
	if (s->broken || !s->wire)
		cds_list_add_tail(&op->link, &s->again);
	else
		fly(s, op);
	return 0;
}

/* Waits for a reply, for at most @ms.  False: none came in that time. */
static bool receive_reply(struct session *s, int ms)
{
	struct xdr_in x;
	int err = wire_receive(s->wire, ms, &x);

	if (err == 0)
		err = take_reply(s, &x);
	s->broken = err < 0 && err != -ETIMEDOUT;
	/* A call that is sent on a closed connection gets EPIPE. */
	if (err < 0)
		s->why = err == -EPIPE ? -ECONNRESET : err;
	return err != -ETIMEDOUT;
}

static struct nfsc_op *take_done(struct session *s)
{
	struct nfsc_op *op = cds_list_first_entry(&s->done, struct nfsc_op,
						  link);

	cds_list_del(&op->link);
	return op;
}

static struct nfsc_op *wait_tcp(struct nfsc_session *base)
{
	struct session *s = container_of(base, struct session, base);

	while (cds_list_empty(&s->done)) {
		if (s->broken || !s->wire)
			send_again(s, redial(s));
		else if (!receive_reply(s, (int)s->base.config.timeout_ms))
			s->broken = true;
	}
	return take_done(s);
}

static struct nfsc_op *look_tcp(struct nfsc_session *base)
{
	struct session *s = container_of(base, struct session, base);

	if (cds_list_empty(&s->done) && !s->broken && s->wire)
		receive_reply(s, 0);
	return cds_list_empty(&s->done) ? NULL : take_done(s);
}

static bool poll_tcp(struct nfsc_session *base, struct pollfd *p)
{
	struct session *s = container_of(base, struct session, base);

	if (s->broken || !s->wire)
		return false;
	wire_poll(s->wire, p);
	return true;
}

static void redial_tcp(struct nfsc_session *base)
{
	struct session *s = container_of(base, struct session, base);

	s->broken = true;
	s->why = -ETIMEDOUT;
}

static void close_tcp(struct nfsc_session *base)
{
	struct session *s = container_of(base, struct session, base);
	struct nfsc_op *op;

	disconnect(s);
	cds_list_for_each_entry(op, &s->again, link)
		free(op->call);
	free(s);
}

static int peer_of_tcp(struct nfsc_session *base, struct sockaddr_storage *out)
{
	struct session *s = container_of(base, struct session, base);

	return s->wire ? wire_peer(s->wire, out) : -ENOTCONN;
}

static const struct nfsc_session_ops ops = {
	.submit = submit_tcp,
	.wait = wait_tcp,
	.look = look_tcp,
	.poll = poll_tcp,
	.redial = redial_tcp,
	.close = close_tcp,
	.peer = peer_of_tcp,
};

int nfsc_tcp_open(const struct nfsc_url *url, const struct nfsc_config *c,
		 struct nfsc_session **out)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->base.ops = &ops;
	s->base.config = *c;
	s->url = *url;
	s->why = -ECONNRESET;
	/* Differs from the first xid of another session of ours a moment
	 * ago. */
	if (getrandom(&s->xid, sizeof(s->xid), GRND_NONBLOCK) < 0)
		s->xid = (uint32_t)getpid() << 16;
	CDS_INIT_LIST_HEAD(&s->flying);
	CDS_INIT_LIST_HEAD(&s->again);
	CDS_INIT_LIST_HEAD(&s->done);
	err = dial_server(s);
	if (err < 0) {
		free(s);
		return err;
	}
	*out = &s->base;
	return 0;
}
