/* SPDX-License-Identifier: BSD-2-Clause */
/* rdma_peer - a peer that sends whatever a test makes it send. */
#include "tests/server/rdma_peer.h"

#include <endian.h>
#include <stdlib.h>

static void established(struct fabric_conn *fc)
{
	struct peer *p = fc->upper;

	mutex_lock(&p->lock);
	p->up = true;
	mutex_unlock(&p->lock);
}

static void closed(struct fabric_conn *fc, int err)
{
	struct peer *p = fc->upper;

	mutex_lock(&p->lock);
	p->down = true;
	p->err = err;
	mutex_unlock(&p->lock);
}

static void recv_done(struct fabric_op *op, int status, uint32_t len)
{
	struct peer_recv *r = container_of(op, struct peer_recv, op);
	struct peer *p = r->peer;

	if (status < 0)
		return;
	mutex_lock(&p->lock);
	if (p->nmsgs - p->ntaken < PEER_MSGS) {
		struct peer_msg *m = &p->msgs[p->nmsgs++ % PEER_MSGS];

		m->len = len;
		m->invalidated = r->wr.has_invalidated;
		m->handle = r->wr.invalidated;
		memcpy(m->data, r->wr.sge.addr, len);
	}
	mutex_unlock(&p->lock);
	if (p->repost)
		fabric_post_recv(p->fc, &r->wr);
}

struct bring_up {
	struct peer *p;
	const struct peer_options *options;
};

/* On the client's loop. */
static void bring_up(void *arg)
{
	struct bring_up *b = arg;
	struct peer *p = b->p;
	const struct peer_options *o = b->options;
	struct fabric_queues q = { 256, PEER_RECVS, 1 };
	uint8_t data[RPCRDMA_PRIVATE_LEN];
	const void *private_data = o->raw_private;
	unsigned private_len = o->raw_private_len;
	unsigned n = o->nrecvs ? o->nrecvs : PEER_RECVS;
	unsigned depth = o->read_depth ? o->read_depth : 16;

	require(fabric_setup(p->fc, p->loop, &q) == 0);
	for (unsigned i = 0; i < n; i++)
		require(fabric_post_recv(p->fc, &p->recv[i].wr) == 0);
	if (o->private_data) {
		rpcrdma_private_encode(o->private_data, data);
		private_data = data;
		private_len = sizeof(data);
	}
	require(fabric_start(p->fc, private_data, private_len,
			     o->no_reads ? 0 : depth) == 0);
}

int peer_open_to(struct peer *p, const struct fabric *fabric,
		 const struct sockaddr *addr, struct loop *loop,
		 const struct peer_options *options)
{
	static const struct peer_options defaults;
	struct bring_up b = { p, options ? options : &defaults };
	uint32_t size = b.options->recv_size ? b.options->recv_size :
			PEER_INLINE;
	int err;

	memset(p, 0, sizeof(*p));
	p->loop = loop;
	p->repost = b.options->nrecvs == 0;
	err = fabric_connect(fabric, addr, &p->fc);
	if (err < 0)
		return err;
	pthread_mutex_init(&p->lock, NULL);
	p->msgs = calloc(PEER_MSGS, sizeof(*p->msgs));
	p->mem = calloc(PEER_RECVS, PEER_INLINE);
	p->fc->upper = p;
	p->fc->established = established;
	p->fc->closed = closed;
	p->mr = peer_register(p, p->mem, (size_t)PEER_RECVS * PEER_INLINE,
			      FABRIC_LOCAL);
	for (int i = 0; i < PEER_RECVS; i++) {
		struct peer_recv *r = &p->recv[i];

		r->peer = p;
		r->op.done = recv_done;
		r->wr.op = &r->op;
		r->wr.sge = (struct fabric_sge){ p->mem + i * PEER_INLINE,
						 size, p->mr->lkey };
	}
	loop_call(loop, bring_up, &b);
	return 0;
}

void peer_open(struct peer *p, struct rig *rig,
	       const struct peer_options *options)
{
	require(peer_open_to(p, &rig->fabric, (struct sockaddr *)
				     &rig->listener->local, rig->client,
			     options) == 0);
}

static bool is_up(void *arg)
{
	struct peer *p = arg;
	bool up;

	mutex_lock(&p->lock);
	up = p->up || p->down;
	mutex_unlock(&p->lock);
	return up;
}

static bool is_down(void *arg)
{
	struct peer *p = arg;
	bool down;

	mutex_lock(&p->lock);
	down = p->down && p->nsent == 0;
	mutex_unlock(&p->lock);
	return down;
}

void peer_wait_up(struct peer *p)
{
	wait_until(is_up, p);
	require(p->up);
}

int peer_wait_down(struct peer *p)
{
	wait_until(is_down, p);
	return p->err;
}

static void free_fc(void *arg)
{
	struct peer *p = arg;

	fabric_free(p->fc);
}

void peer_close(struct peer *p)
{
	fabric_close(p->fc);
	peer_wait_down(p);
	loop_call(p->loop, free_fc, p);
	fabric_mr_destroy(p->mr);
	free(p->mem);
	free(p->msgs);
	pthread_mutex_destroy(&p->lock);
}

void peer_begin(struct peer *p, uint32_t xid, uint32_t vers, uint32_t proc)
{
	xdr_out_init(&p->out, p->build, sizeof(p->build));
	xdr_put_u32(&p->out, xid);
	xdr_put_u32(&p->out, vers);
	xdr_put_u32(&p->out, 32);
	xdr_put_u32(&p->out, proc);
}

void peer_put(struct peer *p, uint32_t word)
{
	xdr_put_u32(&p->out, word);
}

void peer_put_zeros(struct peer *p, unsigned words)
{
	while (words-- > 0)
		peer_put(p, 0);
}

void peer_put_segment(struct peer *p, const struct fabric_mr *mr,
		      uint32_t off, uint32_t len)
{
	peer_put(p, mr->rkey);
	peer_put(p, len);
	xdr_put_u64(&p->out, (uintptr_t)mr->addr + off);
}

void peer_put_read(struct peer *p, uint32_t position,
		   const struct fabric_mr *mr, uint32_t off, uint32_t len)
{
	peer_put(p, 1);
	peer_put(p, position);
	peer_put_segment(p, mr, off, len);
}

void peer_put_chunk(struct peer *p, const struct fabric_mr *mr, uint32_t len)
{
	peer_put(p, 1);
	peer_put(p, 1);
	peer_put_segment(p, mr, 0, len);
}

void peer_put_call(struct peer *p, uint32_t xid, uint32_t op, uint32_t arg)
{
	peer_put(p, xid);
	peer_put(p, op);
	peer_put(p, arg);
}

/* One Send, with separate memory; freed when it is done. */
struct peer_send {
	struct fabric_op  op;
	struct fabric_wr  wr;
	struct fabric_sge sge;
	struct fabric_mr *mr;
	struct peer	 *peer;
	uint8_t		  data[PEER_INLINE * 2];
};

static void forget_send(struct peer_send *s)
{
	fabric_mr_destroy(s->mr);
	mutex_lock(&s->peer->lock);
	s->peer->nsent--;
	mutex_unlock(&s->peer->lock);
	free(s);
}

static void send_done(struct fabric_op *op, int status, uint32_t len)
{
	forget_send(container_of(op, struct peer_send, op));
}

static void send_as(struct peer *p, const void *data, uint32_t len,
		    enum fabric_opcode opcode, uint32_t invalidate)
{
	struct peer_send *s = calloc(1, sizeof(*s));

	require(len <= sizeof(s->data));
	if (len > 0)
		memcpy(s->data, data, len);
	s->peer = p;
	s->mr = peer_register(p, s->data, sizeof(s->data), FABRIC_LOCAL);
	s->sge = (struct fabric_sge){ s->data, len, s->mr->lkey };
	s->op.done = send_done;
	s->wr = (struct fabric_wr){ .opcode = opcode, .op = &s->op,
				    .sge = &s->sge, .nsge = 1,
				    .invalidate = invalidate };
	mutex_lock(&p->lock);
	p->nsent++;
	mutex_unlock(&p->lock);
	if (fabric_post(p->fc, &s->wr) < 0)
		forget_send(s);
}

void peer_send_bytes(struct peer *p, const void *data, uint32_t len)
{
	send_as(p, data, len, FABRIC_SEND, 0);
}

void peer_send_invalidate(struct peer *p, const void *data, uint32_t len,
			  uint32_t handle)
{
	send_as(p, data, len, FABRIC_SEND_INV, handle);
}

void peer_send(struct peer *p)
{
	require(!p->out.bad);
	peer_send_bytes(p, p->build, (uint32_t)xdr_out_len(&p->out));
}

void peer_call(struct peer *p, uint32_t xid, uint32_t op, uint32_t arg)
{
	peer_begin(p, xid, 1, RPCRDMA_MSG);
	peer_put_zeros(p, 3);
	peer_put_call(p, xid, op, arg);
	peer_send(p);
}

static bool has_message(void *arg)
{
	struct peer *p = arg;
	bool has;

	mutex_lock(&p->lock);
	has = p->nmsgs != p->ntaken;
	mutex_unlock(&p->lock);
	return has;
}

void peer_take(struct peer *p)
{
	wait_until(has_message, p);
	mutex_lock(&p->lock);
	p->msg = p->msgs[p->ntaken++ % PEER_MSGS];
	mutex_unlock(&p->lock);
	require(p->msg.len >= 20);
	rpcrdma_header_decode(p->msg.data, p->msg.len, &p->hdr);
	/* A responder grants at least one credit, always. */
	require(p->hdr.credits >= 1);
}

void peer_take_error(struct peer *p, uint32_t xid, uint32_t err)
{
	peer_take(p);
	require(p->hdr.xid == xid);
	require(p->hdr.proc == RPCRDMA_ERROR);
	require(!p->msg.invalidated);
	if (p->hdr.vers == RPCRDMA_VERSION)
		require(p->hdr.err == err);
}

uint32_t peer_word(struct peer *p, uint32_t i)
{
	uint32_t at = p->hdr.len + 4 * i;
	uint32_t word;

	require(at + 4 <= p->msg.len);
	memcpy(&word, p->msg.data + at, 4);
	return be32toh(word);
}

void peer_check_alive(struct peer *p)
{
	peer_call(p, 0xa11f, OP_SUM, 0);
	peer_take(p);
	require(p->hdr.xid == 0xa11f);
	require(p->hdr.proc == RPCRDMA_MSG);
	require(peer_word(p, 0) == 0xa11f);
}

struct fabric_mr *peer_register(struct peer *p, void *addr, size_t len,
				unsigned access)
{
	struct fabric_mr *mr = NULL;

	require(fabric_mr_create(p->fc->dev, addr, len, access, &mr) == 0);
	return mr;
}
