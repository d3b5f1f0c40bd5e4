/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting: chains of steps, and Receives.
 *
 * ibv_post_send() can take the beginning of a list and refuse the rest.  We
 * report that as success and end the connection: the ops of the rest are in the
 * ring with the others, and are done with them.
 *
 * The kernel's driver tells what a device can do, and the user library posts.
 * A library can be older than its driver and not know a kind of step.  It
 * refuses the first of them, which is then made plainer and posted again with
 * all that follows, in the same order; the device is not asked for that kind
 * again.
 */
#include "transport/fabric/verbs/ring.h"

#include "lib/log.h"
#include "lib/stats.h"
#include "lib/util.h"

/* Work requests built on the stack and posted together. */
#define POST_BATCH	32

STAT(verbs_post_partial, "chains posted only in part");
STAT(verbs_post_failed, "chains refused by a device");
STAT(verbs_inv_refused, "devices that refused a Send With Invalidate and get "
     "Sends");

/* A fabric_sge is handed to the device as it is. */
static_assert(sizeof(struct fabric_sge) == sizeof(struct ibv_sge) &&
	      offsetof(struct fabric_sge, addr) ==
	      offsetof(struct ibv_sge, addr) &&
	      sizeof(void *) == sizeof(((struct ibv_sge *)0)->addr) &&
	      offsetof(struct fabric_sge, len) ==
	      offsetof(struct ibv_sge, length) &&
	      offsetof(struct fabric_sge, lkey) ==
	      offsetof(struct ibv_sge, lkey), "fabric_sge is an ibv_sge");

/* True if the device takes the bytes of @wr along, at most @max.  siw fails a
 * Send With Invalidate that has them. */
static bool fits_inline(const struct fabric_wr *wr, unsigned max)
{
	unsigned left = max;

	if (wr->opcode == FABRIC_READ || wr->opcode == FABRIC_SEND_INV ||
	    max == 0)
		return false;
	for (unsigned i = 0; i < wr->nsge; i++) {
		if (wr->sge[i].len > left)
			return false;
		left -= wr->sge[i].len;
	}
	return true;
}

static void verbs_wr_build(struct ibv_send_wr *out, const struct fabric_wr *in,
			   const struct verbs_conn *c)
{
	static const enum ibv_wr_opcode opcode[] = {
		[FABRIC_SEND] = IBV_WR_SEND,
		[FABRIC_SEND_INV] = IBV_WR_SEND_WITH_INV,
		[FABRIC_WRITE] = IBV_WR_RDMA_WRITE,
		[FABRIC_READ] = IBV_WR_RDMA_READ,
	};

	out->wr_id = (uintptr_t)in->op;
	out->next = NULL;
	out->sg_list = (void *)in->sge;
	out->num_sge = (int)in->nsge;
	out->opcode = opcode[in->opcode];
	out->send_flags = in->op ? IBV_SEND_SIGNALED : 0;
	if (fits_inline(in, c->posts.inline_max))
		out->send_flags |= IBV_SEND_INLINE;
	out->wr.rdma.remote_addr = in->offset;
	out->wr.rdma.rkey = in->handle;
	if (in->opcode == FABRIC_SEND_INV) {
		out->invalidate_rkey = in->invalidate;
		/* The user library of siw looks for it here. */
		out->wr.rdma.rkey = in->invalidate;
		if (unlikely(!atomic_load(&c->dev->remote_inv)))
			out->opcode = IBV_WR_SEND;
	}
}

/* ---- libraries that know less than their drivers */

bool verbs_is_unknown(int err)
{
	err = abs(err);
	return err == EINVAL || err == EOPNOTSUPP || err == ENOSYS;
}

void verbs_lacks_inv(struct verbs_dev *dev)
{
	if (!atomic_exchange(&dev->remote_inv, false))
		return;
	stat_inc(verbs_inv_refused);
	log_info("rdma device %s: its library supports no Send With "
		 "Invalidate: clients invalidate their handles "
		 "themselves", dev->dev.name);
}

/* Parts of a step that a library need not know. */
enum extra { EXTRA_NONE, EXTRA_INV, EXTRA_INLINE };

/* Takes one of them from a step that was refused, which then has the same
 * effect for us. */
static enum extra take_extra(struct ibv_send_wr *wr)
{
	if (wr->opcode == IBV_WR_SEND_WITH_INV) {
		wr->opcode = IBV_WR_SEND;
		return EXTRA_INV;
	}
	if (wr->send_flags & IBV_SEND_INLINE) {
		wr->send_flags &= ~(unsigned)IBV_SEND_INLINE;
		return EXTRA_INLINE;
	}
	return EXTRA_NONE;
}

/* The step was taken without @extra: the library lacks that. */
static void learn_lack(struct verbs_conn *c, enum extra extra)
{
	if (extra == EXTRA_INV) {
		verbs_lacks_inv(c->dev);
	} else if (extra == EXTRA_INLINE) {
		c->posts.inline_max = 0;
		atomic_store(&c->dev->inline_max, 0);
	}
}

/* Posts the list at @wr; -errno, with *@some set when the device took some of
 * it. */
static int post_list(struct verbs_conn *c, struct ibv_send_wr *wr, bool *some)
{
	enum extra extra = EXTRA_NONE;
	struct ibv_send_wr *bad;
	int err;

	do {
		bad = NULL;
		err = ibv_post_send(c->id->qp, wr, &bad);
		/* siw returns no error if it posted some. */
		if (!err && bad)
			err = ENOMEM;
		if (!err || bad != wr) {
			*some = true;
			learn_lack(c, extra);
		}
		wr = bad;
		extra = bad && verbs_is_unknown(err) ? take_extra(bad) :
						       EXTRA_NONE;
	} while (extra != EXTRA_NONE);
	return -abs(err);
}

/* Returns the step after @wr: the next of its chain, or the first of the next
 * queued chain, if @queued follow. */
static struct fabric_wr *following(struct verbs_conn *c, struct fabric_wr *wr,
				   bool queued)
{
	if (wr->next || !queued || !verbs_ring_head(&c->posts.chains))
		return wr->next;
	return verbs_ring_take(&c->posts.chains);
}

/* Posts as many steps as one batch takes; sets *@chain to the rest. */
static int post_batch(struct verbs_conn *c, struct fabric_wr **chain,
		      bool queued, bool *some)
{
	struct ibv_send_wr wr[POST_BATCH];
	unsigned n = 0;

	for (; *chain && n < POST_BATCH; n++) {
		verbs_wr_build(&wr[n], *chain, c);
		if (n)
			wr[n - 1].next = &wr[n];
		*chain = following(c, *chain, queued);
	}
	return post_list(c, wr, some);
}

/* Posts @chain, and the @queued ones; -errno, with *@some set when the device
 * took some of it. */
static int post_batches(struct verbs_conn *c, struct fabric_wr *chain,
			bool queued, bool *some)
{
	int err = 0;

	while (chain && !err)
		err = post_batch(c, &chain, queued, some);
	return err;
}

/* The ring has the ops that were not posted: the end does them. */
static void post_broke(struct verbs_conn *c)
{
	stat_inc(verbs_post_partial);
	verbs_conn_fail(c, -EIO);
}

/* Posts many chains at once, because each post is a system call. */
void verbs_post_queued(struct verbs_conn *c)
{
	bool some = false;

	mutex_lock(&c->posts.lock);
	if (!c->posts.dead && verbs_ring_head(&c->posts.chains) &&
	    post_batches(c, verbs_ring_take(&c->posts.chains), true, &some))
		post_broke(c);
	/* The end completes these as well. */
	while (verbs_ring_head(&c->posts.chains))
		verbs_ring_take(&c->posts.chains);
	mutex_unlock(&c->posts.lock);
}

static void post_later(struct loop_task *t)
{
	struct verbs_conn *c = container_of(t, struct verbs_conn, posts.task);

	mutex_lock(&c->posts.lock);
	c->posts.posting = false;
	mutex_unlock(&c->posts.lock);
	verbs_post_queued(c);
}

/* True if the chain has to queue behind others, or for the loop's thread. */
static bool must_queue(struct verbs_conn *c)
{
	return c->dev->post_on_loop &&
	       (c->posts.posting || c->conn.loop != loop_current ||
		c->poll.gathering);
}

/* The connection's lock is held. */
static int post_chain(struct verbs_conn *c, struct fabric_wr *chain)
{
	unsigned tail = atomic_load_explicit(&c->posts.sends.tail,
					     memory_order_relaxed);
	bool some = false;
	unsigned nops = 0;
	int err;

	for (struct fabric_wr *wr = chain; wr; wr = wr->next)
		nops += wr->op != NULL;
	if (!verbs_ring_has_room(&c->posts.sends, nops))
		return -ENOMEM;
	/* Fill the ring before posting: completions can overtake us. */
	for (struct fabric_wr *wr = chain; wr; wr = wr->next)
		if (wr->op)
			verbs_ring_put_send(&c->posts.sends, wr->op,
					    wr->opcode == FABRIC_SEND_INV);
	if (must_queue(c)) {
		/* Each chain has an op, so if sends has room, chains has. */
		verbs_ring_put(&c->posts.chains, chain);
		if (!c->posts.posting && c->conn.loop != loop_current) {
			c->posts.posting = true;
			loop_post(c->conn.loop, &c->posts.task, post_later);
		}
		return 0;
	}
	err = post_batches(c, chain, false, &some);
	if (!err)
		return 0;
	if (some) {
		post_broke(c);
		return 0;
	}
	stat_inc(verbs_post_failed);
	atomic_store_explicit(&c->posts.sends.tail, tail, memory_order_release);
	return err;
}

int verbs_post(struct fabric_conn *conn, struct fabric_wr *chain)
{
	struct verbs_conn *c = verbs_conn(conn);
	int err;

	mutex_lock(&c->posts.lock);
	err = c->posts.dead ? -ENOTCONN : post_chain(c, chain);
	mutex_unlock(&c->posts.lock);
	return err;
}

static void bind_done(struct fabric_op *op, int status, uint32_t len)
{
	/* An error ends the connection. */
}

/* The bind is on its own way, since its window can end before a queued chain
 * is posted. */
int verbs_post_bind(struct verbs_conn *c, struct ibv_send_wr *wr)
{
	static struct fabric_op op = { bind_done };
	struct ibv_send_wr *bad = NULL;
	struct verbs_ring *ring = &c->posts.sends;
	unsigned tail;
	int err;

	verbs_post_queued(c);
	mutex_lock(&c->posts.lock);
	tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
	err = c->posts.dead ? -ENOTCONN :
	      verbs_ring_has_room(ring, 1) ? 0 : -ENOMEM;
	if (!err) {
		verbs_ring_put(ring, &op);
		wr->wr_id = (uintptr_t)&op;
		wr->send_flags = IBV_SEND_SIGNALED;
		err = -abs(ibv_post_send(c->id->qp, wr, &bad));
		if (!err && bad)
			err = -ENOMEM;
		if (err)
			atomic_store_explicit(&ring->tail, tail,
					      memory_order_release);
	}
	mutex_unlock(&c->posts.lock);
	return err;
}

static int post_recv_batch(struct verbs_conn *c, struct fabric_recv **chain,
			   bool *some)
{
	struct ibv_recv_wr wr[POST_BATCH], *bad = NULL;
	unsigned n = 0;
	int err;

	for (; *chain && n < POST_BATCH; *chain = (*chain)->next, n++) {
		wr[n].wr_id = (uintptr_t)*chain;
		wr[n].next = NULL;
		wr[n].sg_list = (void *)&(*chain)->sge;
		wr[n].num_sge = 1;
		if (n)
			wr[n - 1].next = &wr[n];
	}
	err = ibv_post_recv(c->id->qp, wr, &bad);
	if (!err || bad != wr)
		*some = true;
	return -abs(err);
}

static int post_recv_chain(struct verbs_conn *c, struct fabric_recv *chain)
{
	unsigned tail = atomic_load_explicit(&c->posts.recvs.tail,
					     memory_order_relaxed);
	bool some = false;
	unsigned nops = 0;
	int err = 0;

	for (struct fabric_recv *r = chain; r; r = r->next)
		nops++;
	if (!verbs_ring_has_room(&c->posts.recvs, nops))
		return -ENOMEM;
	for (struct fabric_recv *r = chain; r; r = r->next)
		verbs_ring_put(&c->posts.recvs, r);
	while (chain && !err)
		err = post_recv_batch(c, &chain, &some);
	if (!err)
		return 0;
	if (!some) {
		stat_inc(verbs_post_failed);
		atomic_store_explicit(&c->posts.recvs.tail, tail,
				      memory_order_release);
		return err;
	}
	stat_inc(verbs_post_partial);
	verbs_conn_fail(c, -EIO);
	return 0;
}

int verbs_post_recv(struct fabric_conn *conn, struct fabric_recv *chain)
{
	struct verbs_conn *c = verbs_conn(conn);
	int err;

	mutex_lock(&c->posts.lock);
	err = c->posts.dead ? -ENOTCONN : post_recv_chain(c, chain);
	mutex_unlock(&c->posts.lock);
	return err;
}
