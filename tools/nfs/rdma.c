/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma - a session over RPC-over-RDMA, on libgannet-rpcrdma.
 *
 * READ data comes in a Write chunk, WRITE data goes in a Read chunk,
 * directories and link targets come in a Reply chunk (RFC 8267 section 4).
 * With a flavor that wraps them, calls and replies travel whole.
 */
#include "tools/nfs/rpc.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/rpcrdma/client.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "lib/xdr.h"

enum {
	NFS_RDMA_PORT = 20049,
	/* Bytes of a reply without a directory's entries. */
	REPLY_EXTRA = 1024,
	PROOF_MAX = 4096,	/* of one with a token */
	RESENDS = 10,
};

struct session {
	struct nfsc_session	base;
	struct gannet_rpcrdma  *c;
	pthread_cond_t		over;
	/* Guards done. */
	pthread_mutex_t		lock;
	struct cds_list_head	done;
};

struct rdma_call {
	struct gannet_rpcrdma_call call;
	struct nfsc_op	*op;
	uint32_t	 xid;
	size_t		 room;		/* for the call; behind it the reply */
	uint8_t		 msg[];
};

static bool is_wrapped(const struct session *s)
{
	return s->base.config.flavor && s->base.config.flavor->wraps;
}

static int take_result(struct session *s, struct rdma_call *call)
{
	struct nfsc_op *op = call->op;
	struct xdr_in x;
	int err;

	if (call->call.status != 0)
		return call->call.status;
	xdr_in_init(&x, call->call.reply, call->call.reply_len);
	err = rpc_get_op(&x, call->xid, op, &s->base.config);
	if (err < 0 || op->status != 0 || op->kind != NFS_OP_READ)
		return err;
	if (is_wrapped(s))
		return rpc_get_data(&x, op);
	return op->got == call->call.written[0] ? 0 : -EBADMSG;
}

/* Also once more: with the xid that it had, and another number, if the flavor
 * has numbers.  0 or -errno. */
static int make_rdma_call(struct session *s, struct rdma_call *call)
{
	struct xdr_out x;
	int err;

	xdr_out_init(&x, call->msg, call->room);
	err = rpc_put_op(&x, call->xid, call->op, &s->base.config);
	call->call.msg = call->msg;
	call->call.msg_len = (uint32_t)xdr_out_len(&x);
	if (call->call.nsources > 0)
		call->call.source[0].position = call->call.msg_len;
	return err < 0 ? err : gannet_rpcrdma_call(s->c, &call->call);
}

/* 0: it is under way again; or -errno, how it ended. */
static int send_call_again(struct session *s, struct rdma_call *call)
{
	if (call->call.status != -ENOTCONN || call->call.sends == 0 ||
	    call->op->resends++ == RESENDS)
		return call->call.status;
	return make_rdma_call(s, call);
}

static void call_done(struct gannet_rpcrdma_call *done)
{
	struct rdma_call *call = container_of(done, struct rdma_call, call);
	struct nfsc_op *op = call->op;
	struct session *s = op->session;

	if (done->once && done->status < 0) {
		op->err = send_call_again(s, call);
		if (op->err == 0)
			return;
	} else {
		op->err = take_result(s, call);
	}
	free(call);
	mutex_lock(&s->lock);
	cds_list_add_tail(&op->link, &s->done);
	pthread_cond_signal(&s->over);
	mutex_unlock(&s->lock);
}

static void attach(struct session *s, struct rdma_call *call, uint32_t room)
{
	const struct nfsc_op *op = call->op;
	struct gannet_rpcrdma_call *c = &call->call;

	if (rpc_op_data(op, &s->base.config) > 0) {
		c->nsources = 1;
		c->source[0].mem.addr = op->data;
		c->source[0].mem.len = op->count;
		c->source[0].mem.region = op->kept;
	} else if (op->kind == NFS_OP_READ && op->count > 0 && !is_wrapped(s)) {
		c->nsinks = 1;
		c->sink[0].addr = op->data;
		c->sink[0].len = op->count;
		c->sink[0].region = op->kept;
	}
	if (room > 0) {
		c->reply_mem.addr = call->msg + call->room;
		c->reply_mem.len = room;
	}
}

/* Bytes for a reply that can be too long for a Send. */
static uint32_t room_for_reply(struct session *s, const struct nfsc_op *op)
{
	uint32_t extra = REPLY_EXTRA;

	if (is_wrapped(s))
		extra += s->base.config.flavor->extra;
	switch (op->kind) {
	case NFS_OP_READDIRPLUS:
	case NFS_OP_READLINK:
		return op->count + extra;
	case NFS_OP_READ:
		return is_wrapped(s) ? op->count + extra : 0;
	case NFS_OP_PROVE:
		return PROOF_MAX;
	default:
		return 0;
	}
}

static int submit_rdma(struct nfsc_session *base, struct nfsc_op *op)
{
	struct session *s = container_of(base, struct session, base);
	uint32_t reply = room_for_reply(s, op);
	size_t room = (rpc_op_room(op, &base->config) + 7) & ~(size_t)7;
	struct rdma_call *call = calloc(1, sizeof(*call) + room + reply);
	int err;

	if (!call)
		return -ENOMEM;
	call->call.size = sizeof(call->call);
	call->call.once = base->config.flavor != NULL;
	call->call.done = call_done;
	call->room = room;
	call->op = op;
	call->xid = op->xid = op->repeats ? op->xid : gannet_rpcrdma_xid(s->c);
	op->session = s;
	op->resends = 0;
	attach(s, call, reply);
	err = make_rdma_call(s, call);
	if (err < 0)
		free(call);
	else if (s->base.config.polled)
		gannet_rpcrdma_dispatch(s->c);	/* which sends it */
	return err;
}

/* One that is over; NULL if none is and @waits is false. */
static struct nfsc_op *take_over(struct session *s, bool waits)
{
	struct nfsc_op *op = NULL;

	mutex_lock(&s->lock);
	while (waits && cds_list_empty(&s->done))
		pthread_cond_wait(&s->over, &s->lock);
	if (!cds_list_empty(&s->done)) {
		op = cds_list_first_entry(&s->done, struct nfsc_op, link);
		cds_list_del(&op->link);
	}
	mutex_unlock(&s->lock);
	return op;
}

static struct nfsc_op *look_rdma(struct nfsc_session *base)
{
	struct session *s = container_of(base, struct session, base);
	struct nfsc_op *op = take_over(s, false);

	if (!op && s->base.config.polled) {
		gannet_rpcrdma_dispatch(s->c);
		op = take_over(s, false);
	}
	return op;
}

static bool poll_rdma(struct nfsc_session *base, struct pollfd *p)
{
	struct session *s = container_of(base, struct session, base);

	*p = (struct pollfd){ .fd = -1, .events = POLLIN };
	if (s->base.config.polled)
		p->fd = gannet_rpcrdma_fd(s->c);
	return p->fd >= 0;
}

static struct nfsc_op *wait_rdma(struct nfsc_session *base)
{
	struct session *s = container_of(base, struct session, base);
	struct nfsc_op *op;
	struct pollfd p;

	if (!s->base.config.polled)
		return take_over(s, true);
	/* The library's times end each call at last. */
	while (!(op = look_rdma(base)) && poll_rdma(base, &p))
		poll(&p, 1, -1);
	return op;
}

static void close_rdma(struct nfsc_session *base)
{
	struct session *s = container_of(base, struct session, base);

	gannet_rpcrdma_close(s->c);
	pthread_cond_destroy(&s->over);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static void *keep_rdma(struct nfsc_session *base, void *mem, size_t len,
		       enum nfsc_kind kind)
{
	struct session *s = container_of(base, struct session, base);
	struct gannet_rpcrdma_region *region;
	int err;

	if (is_wrapped(s))
		return NULL;
	err = gannet_rpcrdma_register(s->c, mem, len, kind == NFS_OP_READ ?
				      GANNET_RPCRDMA_SINK :
				      GANNET_RPCRDMA_SOURCE, &region);
	/* Each call registers its own then. */
	return err == 0 ? region : NULL;
}

static void release_rdma(struct nfsc_session *base, void *kept)
{
	struct session *s = container_of(base, struct session, base);

	gannet_rpcrdma_deregister(s->c, kept);
}

static void info(struct nfsc_session *base, struct gannet_rpcrdma_info *out)
{
	struct session *s = container_of(base, struct session, base);

	gannet_rpcrdma_info(s->c, out);
}

static int peer_of_rdma(struct nfsc_session *base, struct sockaddr_storage *out)
{
	struct gannet_rpcrdma_info now = { .size = sizeof(now) };

	info(base, &now);
	*out = now.peer;
	return out->ss_family ? 0 : -ENOTCONN;
}

static const struct nfsc_session_ops ops = {
	.submit = submit_rdma,
	.wait = wait_rdma,
	.look = look_rdma,
	.poll = poll_rdma,
	.close = close_rdma,
	.peer = peer_of_rdma,
	.keep = keep_rdma,
	.release = release_rdma,
	.rdma = info,
};

/* Tries each address of the host. */
static int connect_any(struct session *s, const struct nfsc_url *url,
		       const struct gannet_rpcrdma_options *o)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list, *ai;
	char port[8];
	int err = -EHOSTUNREACH;

	snprintf(port, sizeof(port), "%u",
		 url->port ? url->port : NFS_RDMA_PORT);
	if (getaddrinfo(url->host, port, &hints, &list) != 0)
		return err;
	for (ai = list; ai; ai = ai->ai_next) {
		err = s->base.config.on ?
			client_connect(s->base.config.on, ai->ai_addr, o,
				       &s->c) :
			gannet_rpcrdma_connect(ai->ai_addr, o, &s->c);
		if (err == 0)
			break;
	}
	freeaddrinfo(list);
	/* Another service's first words are no frame of RDMA's. */
	return err == -EPROTO ? -EBADMSG : err;
}

int nfsc_rdma_open(const struct nfsc_url *url, const struct nfsc_config *c,
		  struct nfsc_session **out)
{
	struct gannet_rpcrdma_options o = {
		.size = sizeof(o),
		.fabric = url->fabric,
		.flags = GANNET_RPCRDMA_RESERVED_PORT |
			 (c->no_private ? GANNET_RPCRDMA_NO_PRIVATE : 0) |
			 (c->polled ? GANNET_RPCRDMA_POLLED : 0),
		.inline_size = c->inline_size,
		.connect_ms = c->connect_ms,
		.reply_ms = c->timeout_ms,
		.reconnects = c->retries,
	};
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->base.ops = &ops;
	s->base.config = *c;
	CDS_INIT_LIST_HEAD(&s->done);
	err = connect_any(s, url, &o);
	if (err < 0) {
		free(s);
		return err;
	}
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->over, NULL);
	*out = &s->base;
	return 0;
}
