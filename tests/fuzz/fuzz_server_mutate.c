/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mutator of fuzz_server's inputs: items keep their lengths, new ones are
 * calls of NFS and MOUNT that a client might send, over RDMA with the chunks
 * that go with them.
 */
#include <string.h>

#include <endian.h>

#include "tests/fuzz/fuzz_server.h"

enum { ROOM = 2048 };

struct item {
	uint8_t	kind;
	size_t	len;
	uint8_t	data[ROOM];
};

static struct item items[ITEMS_MAX];
static size_t nitems;
static uint8_t first;
static uint32_t state;

static uint32_t rnd(uint32_t below)
{
	state = state * 1664525 + 1013904223;
	return (state >> 8) % below;
}

static void load(const uint8_t *data, size_t len)
{
	nitems = 0;
	first = len > 0 ? data[0] : 0;
	data++;
	for (len -= len > 0; nitems < ITEMS_MAX && len >= ITEM_HEAD; ) {
		struct item *it = &items[nitems++];
		size_t n = (size_t)data[1] << 8 | data[2];

		n = n < len - ITEM_HEAD ? n : len - ITEM_HEAD;
		it->kind = data[0] % KINDS;
		it->len = n < ROOM ? n : ROOM;
		memcpy(it->data, data + ITEM_HEAD, it->len);
		data += ITEM_HEAD + n;
		len -= ITEM_HEAD + n;
	}
}

static size_t store(uint8_t *data, size_t max)
{
	size_t at = 1;

	data[0] = first;
	for (size_t i = 0; i < nitems; i++) {
		const struct item *it = &items[i];

		if (max - at < ITEM_HEAD + it->len)
			break;
		data[at++] = it->kind;
		data[at++] = (uint8_t)(it->len >> 8);
		data[at++] = (uint8_t)it->len;
		memcpy(data + at, it->data, it->len);
		at += it->len;
	}
	return at;
}

static void put(struct item *it, uint32_t word)
{
	word = htobe32(word);
	memcpy(it->data + it->len, &word, 4);
	it->len += 4;
}

static void put_segment(struct item *it, uint32_t len)
{
	put(it, 0x1234);
	put(it, len);
	put(it, 0);
	put(it, rnd(8) ? 4096 : UINT32_MAX);
}

/* A handle, some words that any procedure may take, perhaps a name. */
static void put_args(struct item *it, uint32_t proc)
{
	put(it, HANDLE_LEN);
	memset(it->data + it->len, HANDLE, HANDLE_LEN);
	it->len += HANDLE_LEN;
	if (proc == 3 || proc >= 8) {
		put(it, 4);
		put(it, 0x66303030 + rnd(4));
	}
	for (uint32_t n = rnd(14); n > 0; n--)
		put(it, rnd(4) ? rnd(3) : rnd(70000));
}

static void put_call(struct item *it, uint32_t xid, uint32_t proc)
{
	const uint32_t head[] = { xid, 0, 2, rnd(9) ? 100003 : 100005, 3, proc,
				  1, 20, 0, 0, 0, 0, 0, 0, 0 };

	for (size_t i = 0; i < sizeof(head) / 4; i++)
		put(it, head[i]);
}

/* The header of a call over RDMA: WRITE pulls, READ is written to, what
 * lists gets a Reply chunk. */
static void put_rdma(struct item *it, uint32_t xid, uint32_t proc,
		     uint32_t data_len)
{
	put(it, xid);
	put(it, 1);
	put(it, 8);
	put(it, 0);
	if (proc == 7 && data_len > 0) {
		put(it, 1);
		/* Behind the RPC header, the handle and five words. */
		put(it, 15 * 4 + 4 + HANDLE_LEN + 5 * 4);
		put_segment(it, data_len);
	}
	put(it, 0);
	if (proc == 6) {
		put(it, 1);
		put(it, 1);
		put_segment(it, 8192);
	}
	put(it, 0);
	put(it, proc >= 16 && proc <= 17);
	if (proc >= 16 && proc <= 17) {
		put(it, 1);
		put_segment(it, 8192);
	}
}

static void make_call(struct item *it)
{
	uint32_t xid = rnd(1 << 20), proc = rnd(23);
	uint32_t data_len = rnd(2) ? 1 + rnd(40000) : 0;
	size_t rpc;

	it->kind = KIND_MESSAGE;
	it->len = 0;
	if (first & 1)
		put_rdma(it, xid, proc, data_len);
	rpc = it->len;
	put_call(it, xid, proc);
	if (proc != 7 || data_len == 0 || !(first & 1)) {
		put_args(it, proc);
		return;
	}
	put(it, HANDLE_LEN);
	memset(it->data + it->len, HANDLE, HANDLE_LEN);
	it->len += HANDLE_LEN;
	put(it, 0);
	put(it, rnd(3) * 4096);
	put(it, data_len);
	put(it, rnd(3));
	put(it, data_len);
	/* put_rdma() has counted on this. */
	if (it->len - rpc != 15 * 4 + 4 + HANDLE_LEN + 5 * 4)
		abort();
}

/* Makes room for an item at @at; when all places are taken the last is lost. */
static struct item *insert(size_t at)
{
	if (nitems < ITEMS_MAX)
		nitems++;
	memmove(&items[at + 1], &items[at],
		(nitems - 1 - at) * sizeof(items[0]));
	return &items[at];
}

static void change(struct item *it)
{
	if (rnd(12) == 0)
		it->kind = (uint8_t)rnd(KINDS);
	else if (rnd(3) && it->len >= 4)
		/* One word: most fields are one. */
		LLVMFuzzerMutate(it->data + rnd((uint32_t)it->len / 4) * 4, 4,
				 4);
	else
		it->len = LLVMFuzzerMutate(it->data, it->len, ROOM);
}

static void change_items(void)
{
	size_t at = nitems ? rnd((uint32_t)nitems) : 0;
	struct item *it;

	switch (nitems ? rnd(8) : 0) {
	case 0:
	case 1:
		make_call(insert(at));
		break;
	case 2:
		memmove(&items[at], &items[at + 1],
			(--nitems - at) * sizeof(items[0]));
		break;
	case 3:
		it = insert(at);
		if (at + 1 < nitems)
			*it = items[at + 1];
		break;
	case 4:
		it = insert(at);
		it->kind = KIND_ANSWER;
		it->len = 4;
		break;
	default:
		change(&items[at]);
	}
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t len, size_t max,
			       unsigned seed)
{
	state = seed;
	if (rnd(20) == 0)
		return LLVMFuzzerMutate(data, len, max);
	load(data, len);
	if (rnd(30) == 0)
		first = (uint8_t)rnd(8);
	for (uint32_t n = 1 + rnd(3); n > 0; n--)
		change_items();
	return store(data, max);
}
