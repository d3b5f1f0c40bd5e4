/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_fake - RDMA devices that the test controls: a wire between them.
 *
 * Once fake_wire_start() was called, both ends of a connection are here, and a
 * thread carries out the work of each queue pair, a step at a time, with
 * copies.  Work that an adapter would refuse aborts: memory that is not
 * registered, or not for that; more Reads than agreed; a Receive that is too
 * short.
 */
#include <string.h>

#include "tests/fake/verbs_fake_impl.h"

#define QPS	16

static struct fake_qp *qps[QPS];
static pthread_t thread;
static bool ends;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER;

void fake_wire_add(struct fake_qp *qp)
{
	unsigned i = 0;

	while (qps[i])
		FAKE_CHECK(++i < QPS);
	qps[i] = qp;
}

void fake_wire_del(struct fake_qp *qp)
{
	for (unsigned i = 0; i < QPS; i++)
		if (qps[i] == qp)
			qps[i] = NULL;
	if (qp->peer)
		qp->peer->peer = NULL;
}

void fake_wire_kick(void)
{
	pthread_cond_signal(&work);
}

/* Copies between @at and the pieces of @wr, @to_pieces or from them. */
static uint32_t copy(const struct fake_qp *qp, const struct fake_wr *wr,
		     uint8_t *at, bool to_pieces)
{
	int access = to_pieces ? IBV_ACCESS_LOCAL_WRITE : 0;
	uint32_t sum = 0;

	/* RFC 5040 section 5.4: it might be anybody's Write. */
	if (to_pieces && fake.transport == IBV_TRANSPORT_IWARP)
		access = IBV_ACCESS_REMOTE_WRITE;
	for (unsigned i = 0; i < wr->nsge; i++) {
		const struct ibv_sge *sge = &wr->sge[i];
		void *mem = (void *)(uintptr_t)sge->addr;

		if (wr->in_line) {
			memcpy(at + sum, wr->bytes + sum, sge->length);
		} else {
			mem = fake_mr_at(qp->qp.pd, sge->lkey, mem,
					 sge->length, access);
			FAKE_CHECK(mem);
			memcpy(to_pieces ? mem : at + sum,
			       to_pieces ? at + sum : mem, sge->length);
		}
		sum += sge->length;
	}
	return sum;
}

static uint32_t length_of(const struct fake_wr *wr)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < wr->nsge; i++)
		sum += wr->sge[i].length;
	return sum;
}

/* False: the peer has no Receive yet. */
static bool carry_send(struct fake_qp *qp, const struct fake_wr *wr)
{
	struct fake_qp *peer = qp->peer;
	const struct ibv_sge *sge;
	uint8_t *to;
	uint32_t len = length_of(wr);

	if (peer->recvs_done == peer->nrecvs) {
		fake.rnrs++;
		return false;
	}
	sge = &peer->recv_sge[peer->recvs_done % FAKE_QUEUE];
	FAKE_CHECK(len <= sge->length);
	to = fake_mr_at(peer->qp.pd, sge->lkey,
			(void *)(uintptr_t)sge->addr, sge->length,
			IBV_ACCESS_LOCAL_WRITE);
	FAKE_CHECK(to);
	copy(qp, wr, to, false);
	fake_recv_completes(peer, len);
	return true;
}

static bool carry(struct fake_qp *qp, const struct fake_wr *wr)
{
	void *remote = (void *)(uintptr_t)wr->remote_addr;
	bool reads = wr->opcode == IBV_WR_RDMA_READ;

	FAKE_CHECK(wr->opcode != IBV_WR_SEND_WITH_INV);
	if (wr->opcode == IBV_WR_BIND_MW) {
		fake_mw_bind(qp->qp.pd, wr);
		return true;
	}
	if (wr->opcode == IBV_WR_SEND)
		return carry_send(qp, wr);
	remote = fake_mr_at(qp->peer->qp.pd, wr->rkey, remote,
			    length_of(wr), reads ? IBV_ACCESS_REMOTE_READ :
						   IBV_ACCESS_REMOTE_WRITE);
	FAKE_CHECK(remote);
	copy(qp, wr, remote, reads);
	return true;
}

/* Carries out the next step of the queue pair.  False: no step to do. */
static bool step(struct fake_qp *qp)
{
	if (qp->error || !qp->peer || qp->peer->error ||
	    qp->sends_done == qp->nsends)
		return false;
	if (!carry(qp, &qp->sends[qp->sends_done % FAKE_QUEUE]))
		return false;
	fake_send_completes(qp);
	return true;
}

static void *run(void *arg)
{
	bool some;

	fake_lock();
	while (!ends) {
		some = false;
		for (unsigned i = 0; i < QPS; i++)
			some |= qps[i] && step(qps[i]);
		if (!some)
			pthread_cond_wait(&work, &fake.lock);
		/* Let others post. */
		fake_unlock();
		fake_lock();
	}
	fake_unlock();
	return NULL;
}

void fake_wire_check_reads(const struct fake_qp *qp)
{
	unsigned reads = 0;

	for (unsigned i = qp->sends_done; i != qp->nsends; i++)
		reads += qp->sends[i % FAKE_QUEUE].opcode == IBV_WR_RDMA_READ;
	FAKE_CHECK(reads <= qp->read_depth);
}

void fake_wire_start(void)
{
	memset(qps, 0, sizeof(qps));
	ends = false;
	fake.wired = true;
	FAKE_CHECK(pthread_create(&thread, NULL, run, NULL) == 0);
}

void fake_wire_stop(void)
{
	fake_lock();
	ends = true;
	fake_wire_kick();
	fake_unlock();
	pthread_join(thread, NULL);
}
