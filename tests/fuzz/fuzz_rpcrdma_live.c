/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A responder that gets Sends of any bytes.  The input is a list of them,
 * each with a length of two bytes before it.  A word of HANDLE stands for a
 * handle that is valid, and the offset after it counts from its memory.
 *
 * Whatever comes, the responder must answer the next peer, break no rule of
 * the fabric, and give all memory back.
 */
#include <endian.h>
#include <string.h>

#include "lib/log.h"
#include "tests/server/rdma_peer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define HANDLE	0xabab0001u

enum { SENDS_MAX = 24, MARK = 0x7ea1 };

static struct rig rig;
static uint8_t mem[1 << 17];

static void patch(uint8_t *msg, uint32_t len, const struct fabric_mr *mr)
{
	uint32_t word;
	uint64_t off;

	for (uint32_t i = 0; i + 16 <= len; i += 4) {
		memcpy(&word, msg + i, 4);
		if (word != htobe32(HANDLE))
			continue;
		word = htobe32(mr->rkey);
		memcpy(msg + i, &word, 4);
		memcpy(&off, msg + i + 8, 8);
		off = htobe64(be64toh(off) + (uintptr_t)mr->addr);
		memcpy(msg + i + 8, &off, 8);
	}
}

static bool is_over(void *arg)
{
	struct peer *p = arg;
	bool over;

	mutex_lock(&p->lock);
	over = p->down;
	while (!over && p->ntaken != p->nmsgs) {
		uint32_t xid;

		memcpy(&xid, p->msgs[p->ntaken++ % PEER_MSGS].data, 4);
		over = xid == htobe32(MARK);
	}
	mutex_unlock(&p->lock);
	return over;
}

static void send_all(struct peer *p, const struct fabric_mr *mr,
		     const uint8_t *data, size_t len)
{
	uint8_t msg[PEER_INLINE];

	for (int i = 0; i < SENDS_MAX && len >= 2; i++) {
		uint32_t n = (uint32_t)data[0] << 8 | data[1];

		data += 2;
		len -= 2;
		n = MIN(n, (uint32_t)len);
		n = MIN(n, (uint32_t)sizeof(msg));
		memcpy(msg, data, n);
		patch(msg, n, mr);
		peer_send_bytes(p, msg, n);
		data += n;
		len -= n;
	}
	peer_call(p, MARK, OP_SUM, 0);
}

static void start(void)
{
	struct rig_options o = { .any_position = true,
				 .rdma.credits = SENDS_MAX + 8,
				 .rdma.read_read = true };

	log_threshold = LOG_LEVEL_ERR;
	rig_open(&rig, &o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct rpcrdma_private pd = {
		.remote_inv = true, .send_size = 4096, .recv_size = 4096 };
	static const struct peer_options po = { .private_data = &pd };
	struct loop_fabric_counts counts;
	struct fabric_mr *mr;
	struct peer peer;

	if (!rig.listener)
		start();
	peer_open(&peer, &rig, &po);
	peer_wait_up(&peer);
	mr = peer_register(&peer, mem, sizeof(mem),
			   FABRIC_REMOTE_READ | FABRIC_REMOTE_WRITE);
	send_all(&peer, mr, data, len);
	wait_until(is_over, &peer);
	peer_close(&peer);
	fabric_mr_destroy(mr);
	rig_release(&rig);
	loop_fabric_count(&rig.fabric, &counts);
	require(counts.violations == 0);
	require(counts.too_long == 0);
	return 0;
}
