/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * queue - posted steps and answers to the peer's Reads, on their way out.
 *
 * Operation: the sender of the connection's outbox makes FPDUs of all that is
 * posted.  While the loop's thread handles a batch of received messages, its
 * posts are gathered, and sent at the end of the batch or when many have
 * gathered.
 *
 * A Write or Send is complete when the socket has taken it, a Read when it is
 * answered too.  The loop's thread does the ops, in order.
 */
#include "transport/fabric/iwarp/internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>

#include "lib/loop.h"
#include "lib/stats.h"

STAT(iwarp_reads_served, "RDMA Reads answered for peers");

/* Most steps to gather: the peer works on the first of them while we do the
 * rest of a batch.  Fewer would cost more system calls. */
#define MAX_GATHERED	32

/* While a response is being sent, memory can't be unregistered. */
#define ANSWER_BATCH	(256u << 10)

static struct iwarp_conn *iwarp_queue_owner_of(struct outbox *o)
{
	return container_of(o, struct iwarp_conn, out);
}

static struct iwarp_slot *slot_at(struct iwarp_conn *c, unsigned i)
{
	return &c->sq.ring[i & (c->sq.cap - 1)];
}

static unsigned power_of_2(unsigned n)
{
	unsigned p = 1;

	while (p < n)
		p *= 2;
	return p;
}

/* The lengths of the rings. */
static void choose_caps(const struct fabric_queues *q, unsigned depth,
			unsigned *sends, unsigned *recvs, unsigned *answers)
{
	/* One more for the RTR. */
	*sends = power_of_2(q->send_wr + 1);
	*recvs = power_of_2(MAX(q->recv_wr, 1u));
	*answers = power_of_2(depth);
}

size_t iwarp_conn_bytes(const struct fabric_conn *fc,
			const struct fabric_queues *q)
{
	const struct iwarp_conn *c = container_of(fc, struct iwarp_conn, conn);
	unsigned sends, recvs, answers;

	choose_caps(q, c->provider->options.read_depth, &sends, &recvs,
		    &answers);
	return sizeof(*c) + sizeof(*c->tx) + IWARP_MAX_FPDU +
	       (c->startup.request.markers ? sizeof(*c->tx->marked) : 0) +
	       sends * sizeof(*c->sq.ring) +
	       recvs * sizeof(struct fabric_recv *) +
	       answers * sizeof(*c->answers.ring);
}

int iwarp_queues_create(struct iwarp_conn *c, const struct fabric_queues *q)
{
	const struct fabric_limits *l = &c->conn.dev->limits;

	if (q->send_wr > l->max_wr || q->recv_wr > l->max_recv ||
	    q->send_sge > l->max_sge)
		return -EINVAL;
	choose_caps(q, c->provider->options.read_depth, &c->sq.cap,
		    &c->recvs.cap, &c->answers.cap);
	c->sq.ring = calloc(c->sq.cap, sizeof(*c->sq.ring));
	c->recvs.ring = calloc(c->recvs.cap, sizeof(struct fabric_recv *));
	c->answers.ring = calloc(c->answers.cap, sizeof(*c->answers.ring));
	c->tx = calloc(1, sizeof(*c->tx));
	return c->sq.ring && c->recvs.ring && c->answers.ring && c->tx ?
	       0 : -ENOMEM;
}

void iwarp_queues_destroy(struct iwarp_conn *c)
{
	free(c->sq.ring);
	free(c->recvs.ring);
	free(c->answers.ring);
	if (c->tx)
		iwarp_tx_fini(c->tx);
	free(c->tx);
}

/* ---- the sender */

/* Asks for the path's segment size, which grows a while into a connection. */
static void update_fpdu(struct iwarp_conn *c)
{
	unsigned fixed = c->provider->options.fpdu_size;
	socklen_t len = sizeof(int);
	int mss;

	if (fixed == 0 && getsockopt(c->fd.fd, IPPROTO_TCP, TCP_MAXSEG, &mss,
				     &len) == 0)
		iwarp_tx_fit(c->tx, (unsigned)MAX(mss, 0));
}

/* Builds from the next slot; true if all of it was built. */
static bool build_step(struct iwarp_conn *c)
{
	struct iwarp_slot *s = slot_at(c, c->sq.built);
	struct iwarp_tx *tx = c->tx;
	bool all;

	if (s->is_read) {
		all = iwarp_tx_build_request(tx, s->wr, s->sink);
	} else {
		if (!tx->step.busy) {
			iwarp_tx_begin_step(tx, s->wr);
			if (tx->step.left > tx->fpdu / 2)
				update_fpdu(c);
		}
		all = iwarp_tx_build(tx, &tx->step);
	}
	if (!all)
		return false;
	s->end = tx->built;
	c->sq.built++;
	return true;
}

static struct rdmap_request *answer_at(struct iwarp_conn *c, unsigned i)
{
	return &c->answers.ring[i & (c->answers.cap - 1)];
}

void iwarp_note_refused(struct iwarp_conn *c)
{
	const unsigned at = c->answers.built;
	struct rdmap_request req = *answer_at(c, at);
	/* Its number: Requests are queued in their order, from 1 on. */
	const struct ddp_header h = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ,
		.msn = at + 1, .payload = RDMAP_REQUEST_LEN,
	};
	uint32_t done = req.len - c->tx->answer.left;

	req.sink_to += done;
	req.src_to += done;
	req.len -= done;
	rdmap_note_request(&c->rx, &h, &req);
}

/* Builds from the peer's next Read. */
static int build_answer(struct iwarp_conn *c)
{
	struct iwarp_device *d = &c->provider->device;
	struct iwarp_tx *tx = c->tx;
	struct rdmap_request *req = answer_at(c, c->answers.built);
	struct iwarp_out *out = &tx->answer;
	uint8_t *p = NULL;

	if (!out->busy) {
		iwarp_tx_begin_answer(tx, req);
		update_fpdu(c);
	}
	if (out->left > 0 && !tx->locked) {
		iwarp_mr_lock(d);
		tx->locked = true;
	}
	if (out->left > 0 &&
	    iwarp_mr_find(c, req->src_stag,
			  req->src_to + (req->len - out->left), out->left,
			  FABRIC_REMOTE_READ, &p) != IWARP_OK)
		return -EACCES;
	tx->answer_sge = (struct fabric_sge){ .addr = p, .len = out->left };
	out->sge = &tx->answer_sge;
	out->off = 0;
	if (!iwarp_tx_build(tx, out))
		return -ENOBUFS;
	c->answers.built++;
	stat_inc(iwarp_reads_served);
	return 0;
}

static bool has_steps(const struct iwarp_conn *c)
{
	return c->sq.built != c->sq.claimed;
}

static bool has_answers(const struct iwarp_conn *c)
{
	return c->answers.built != c->answers.claimed;
}

/* Fills tx from the claimed steps and the peer's Reads, taking turns by
 * message. */
static int iwarp_queue_build(struct iwarp_conn *c)
{
	struct iwarp_tx *tx = c->tx;
	int err = 0;

	tx->began = tx->built;
	while (has_steps(c) || has_answers(c)) {
		bool answer = tx->answer.busy ||
			      (!tx->step.busy && has_answers(c) &&
			       (tx->answer_turn || !has_steps(c)));

		if (tx->locked && tx->built - tx->began >= ANSWER_BATCH)
			break;
		tx->answer_turn = !answer;
		if (answer)
			err = build_answer(c);
		else if (!build_step(c))
			err = -ENOBUFS;
		if (err)
			break;
	}
	iwarp_tx_seal(tx);
	return err == -ENOBUFS ? 0 : err;
}

/* The peer can read again as soon as it has an answer, so retire the Read
 * now. */
static void release_answers(struct iwarp_conn *c)
{
	mutex_lock(&c->out.lock);
	c->answers.head = c->answers.built;
	mutex_unlock(&c->out.lock);
}

/* Builds if everything built was sent. */
static int iwarp_queue_fill(struct outbox *o, struct outbox_piece *p)
{
	struct iwarp_conn *c = iwarp_queue_owner_of(o);
	unsigned answers = c->answers.built;
	struct iwarp_tx *tx = c->tx;
	int err = 0;

	if (iwarp_tx_idle(tx))
		err = iwarp_queue_build(c);
	if (err == -EACCES)
		c->read_refused = true;
	if (answers != c->answers.built)
		release_answers(c);
	p->iov = tx->iov + tx->at;
	p->niov = tx->niov - tx->at;
	p->ends = true;
	return err;
}

static int iwarp_queue_sent(struct outbox *o, size_t n, bool full)
{
	struct iwarp_conn *c = iwarp_queue_owner_of(o);
	int err = 0;

	iwarp_tx_forget(c->tx, n);
	if (!c->tx->locked)
		return 0;
	if (full)
		err = iwarp_tx_detach(c->tx);
	c->tx->locked = false;
	iwarp_mr_unlock(&c->provider->device);
	return err;
}

static bool iwarp_queue_claim(struct outbox *o)
{
	struct iwarp_conn *c = iwarp_queue_owner_of(o);

	c->sq.claimed = c->sq.posted;
	c->answers.claimed = c->answers.tail;
	return !iwarp_tx_idle(c->tx) || has_steps(c) || has_answers(c);
}

static void iwarp_queue_publish(struct outbox *o, size_t n)
{
	struct iwarp_conn *c = iwarp_queue_owner_of(o);
	unsigned before = c->sq.sent;

	while (c->sq.sent != c->sq.built &&
	       slot_at(c, c->sq.sent)->end <= o->sent)
		c->sq.sent++;
	if (c->sq.sent != before)
		outbox_kick(o);
}

const struct outbox_ops iwarp_outbox_ops = {
	.claim = iwarp_queue_claim,
	.fill = iwarp_queue_fill,
	.sent = iwarp_queue_sent,
	.publish = iwarp_queue_publish,
};

/* ---- posting */

/* RFC 5041 section 5.2: a message is shorter than 2^32 bytes. */
static bool fits_message(const struct fabric_wr *wr)
{
	uint64_t len = 0;

	for (unsigned i = 0; i < wr->nsge; i++)
		len += wr->sge[i].len;
	return len <= UINT32_MAX;
}

/* With the lock.  0; -EINVAL, -ENOMEM: bugs of the caller's. */
static int iwarp_queue_check_chain(const struct iwarp_conn *c,
				   const struct fabric_wr *chain)
{
	unsigned n = 0, reads = 0;

	for (; chain; chain = chain->next) {
		if (chain->nsge > IWARP_MAX_SGE ||
		    (chain->nsge > 1 && (chain->opcode == FABRIC_READ ||
					 !fits_message(chain))))
			return -EINVAL;
		n++;
		reads += chain->opcode == FABRIC_READ;
	}
	if (c->sq.posted - c->sq.retired + n > c->sq.cap ||
	    c->sq.reads + reads > c->conn.info.read_depth)
		return -ENOMEM;
	return 0;
}

void iwarp_queue_add(struct iwarp_conn *c, struct fabric_wr *wr)
{
	struct iwarp_slot *s = slot_at(c, c->sq.posted++);

	*s = (struct iwarp_slot){ .wr = wr, .op = wr->op,
				  .is_read = wr->opcode == FABRIC_READ };
	if (!s->is_read)
		return;
	/* Any number does as its handle: a response is only compared with
	 * it. */
	s->sink = ++c->sq.sinks << 8;
	c->sq.reads++;
}

int iwarp_post(struct fabric_conn *conn, struct fabric_wr *chain)
{
	struct iwarp_conn *c = iwarp_conn(conn);
	bool later = outbox_gathers(&c->out);
	int err;

	mutex_lock(&c->out.lock);
	if (!c->live || c->out.dead || atomic_load(&c->out.closing)) {
		err = -ENOTCONN;
	} else {
		err = iwarp_queue_check_chain(c, chain);
		for (; chain && !err; chain = chain->next)
			iwarp_queue_add(c, chain);
		if (c->sq.posted - c->sq.claimed >= MAX_GATHERED)
			later = false;
		if (!err && !later)
			outbox_push(&c->out);
	}
	mutex_unlock(&c->out.lock);
	return err;
}

int iwarp_post_recv(struct fabric_conn *conn, struct fabric_recv *chain)
{
	struct iwarp_conn *c = iwarp_conn(conn);
	unsigned n = 0;

	if (c->state >= IWARP_STOPPING)
		return -ENOTCONN;
	for (struct fabric_recv *r = chain; r; r = r->next)
		n++;
	if (c->recvs.tail - c->recvs.head + n > c->recvs.cap)
		return -ENOMEM;
	for (; chain; chain = chain->next)
		c->recvs.ring[c->recvs.tail++ & (c->recvs.cap - 1)] = chain;
	return 0;
}

bool iwarp_queue_answer(struct iwarp_conn *c,
			const struct rdmap_request *req)
{
	struct iwarp_answers *a = &c->answers;
	bool room;

	mutex_lock(&c->out.lock);
	room = a->tail - a->head < a->depth;
	if (room)
		*answer_at(c, a->tail++) = *req;
	mutex_unlock(&c->out.lock);
	return room;
}

/* ---- completions */

/* With the lock: returns the next complete step with an op. */
static struct fabric_op *next_done(struct iwarp_conn *c)
{
	struct fabric_op *op = NULL;

	while (!op && c->sq.retired != c->sq.sent) {
		struct iwarp_slot *s = slot_at(c, c->sq.retired);

		if (s->is_read && !s->answered)
			break;
		op = s->op;
		c->sq.retired++;
	}
	return op;
}

void iwarp_retire(struct iwarp_conn *c)
{
	struct fabric_op *op;

	mutex_lock(&c->out.lock);
	while ((op = next_done(c))) {
		mutex_unlock(&c->out.lock);
		op->done(op, 0, 0);
		mutex_lock(&c->out.lock);
	}
	mutex_unlock(&c->out.lock);
}

void iwarp_flush(struct iwarp_conn *c)
{
	/* A Terminate might have refused a Read: it was the first one. */
	bool refused = c->out.err == -EREMOTEIO && c->read_blamed;

	iwarp_retire(c);
	/* All threads have stopped posting and sending. */
	while (c->sq.retired != c->sq.posted) {
		struct iwarp_slot *s = slot_at(c, c->sq.retired++);
		bool this = refused && s->is_read && !s->answered;

		refused = refused && !this;
		if (s->op)
			s->op->done(s->op, this ? -EREMOTEIO : -ECANCELED, 0);
	}
	while (c->recvs.head != c->recvs.tail) {
		struct fabric_recv *r = c->recvs.ring[c->recvs.head++ &
						 (c->recvs.cap - 1)];

		r->op->done(r->op, -ECANCELED, 0);
	}
}
