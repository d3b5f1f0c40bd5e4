/* SPDX-License-Identifier: BSD-2-Clause */
/* layout_call - puts a layout into memory and into a message, and sends it. */
#include "tests/server/layout_trial.h"

#include <string.h>

#include "lib/util.h"
#include "wire/nfs3.h"
#include "tests/server/rdma_rig.h"

enum { GUARD = 0xa7, JUNK = 0x5a };

struct trial trial;

static uint8_t call_bytes[TRIAL_BYTES], bytes[TRIAL_BYTES];

/* ---- memory */

static void add_run(struct run *r, const struct layout_chunk *c, uint32_t len)
{
	*r = (struct run){ .first = trial.npieces, .n = c->nsegs, .len = len };
	for (unsigned i = 0; i < c->nsegs; i++)
		trial.piece[trial.npieces++].len =
			layout_segment_len(c, len, i);
}

static void add_runs(void)
{
	const struct layout *l = trial.l;
	const struct layout_facts *f = &world.facts;

	trial.npieces = 0;
	trial.call_len = layout_call_len(l, f);
	trial.call = (struct run){ .n = 0 };
	if (l->nomsg)
		add_run(&trial.call, &l->call, trial.call_len);
	for (unsigned i = 0; i < l->nreads; i++)
		add_run(&trial.read[i], &l->read[i],
			layout_chunk_len(&l->read[i], i == 0 ? l->len : 0));
	for (unsigned i = 0; i < l->nwrites; i++)
		add_run(&trial.write[i], &l->write[i],
			layout_chunk_len(&l->write[i], i > 0 ? 0 :
					 layout_result_len(l, f)));
	trial.reply = (struct run){ .n = 0 };
	if (l->has_reply)
		add_run(&trial.reply, &l->reply, layout_chunk_len(&l->reply,
						layout_rest_len(l, f)));
}

/* Puts the pieces into the area, guards between them.  False: no room. */
static bool place_pieces(void)
{
	struct layout_random r = { .state = trial.l->place };
	unsigned order[TRIAL_PIECES], k;
	uint64_t at = 8;

	for (unsigned i = 0; i < trial.npieces; i++) {
		k = trial.l->place ? layout_roll(&r, i + 1) : i;
		order[i] = order[k];
		order[k] = i;
	}
	for (unsigned i = 0; i < trial.npieces; i++) {
		struct piece *p = &trial.piece[order[i]];

		p->at = (uint32_t)at;
		p->handle = trial.l->place ?
			    layout_roll(&r, LAYOUT_HANDLES) : 0;
		if (trial.l->place && p->len == 0)
			p->handle = LAYOUT_HANDLES;
		at += (uint64_t)p->len + 8;
		at += trial.l->place ? layout_roll(&r, 9) : 0;
		if (at > LAYOUT_AREA)
			return false;
	}
	trial.used = (uint32_t)at;
	memset(world.area, GUARD, trial.used);
	return true;
}

void trial_scatter(uint8_t *to, const struct run *r, const uint8_t *from,
		   uint32_t len)
{
	for (unsigned i = r->first; i < r->first + r->n; i++) {
		uint32_t n = MIN(trial.piece[i].len, len);

		memcpy(to + trial.piece[i].at, from, n);
		from += n;
		len -= n;
	}
}

/* ---- the call */

uint8_t trial_data_byte(uint32_t i)
{
	return trial.l->proc == LAYOUT_SYMLINK ? layout_letter(i) :
					     layout_byte(i, trial.xid);
}

static void put_fh(struct xdr_out *x, const struct nfs3_fh *fh)
{
	xdr_put_opaque(x, fh->data, fh->len);
}

static void put_args(struct xdr_out *x)
{
	const struct layout *l = trial.l;

	switch (l->proc) {
	case LAYOUT_NULL:
		break;
	case LAYOUT_GETATTR:
		put_fh(x, &world.file);
		break;
	case LAYOUT_READ:
		put_fh(x, &world.file);
		xdr_put_u64(x, l->offset);
		xdr_put_u32(x, l->len);
		break;
	case LAYOUT_READLINK:
		put_fh(x, &world.link[l->target]);
		break;
	case LAYOUT_WRITE:
		put_fh(x, &world.copy);
		xdr_put_u64(x, l->offset);
		xdr_put_u32(x, l->len);
		xdr_put_u32(x, 2);			/* FILE_SYNC */
		xdr_put_u32(x, l->len);
		break;
	case LAYOUT_SYMLINK:
		put_fh(x, &world.top);
		xdr_put_opaque(x, "link", 4);
		for (int i = 0; i < 6; i++)
			xdr_put_u32(x, 0);
		xdr_put_u32(x, l->len);
		break;
	default:
		put_fh(x, &world.dir[l->target]);
		for (int i = 0; i < 4; i++)
			xdr_put_u32(x, 0);
		xdr_put_u32(x, 64 << 10);
	}
}

/* The call, as long as the layout wants it; extra bytes are junk. */
static void make_call(void)
{
	static const uint32_t procs[LAYOUT_PROCS] = {
		NFSPROC3_NULL, NFSPROC3_GETATTR, NFSPROC3_READ,
		NFSPROC3_READLINK, NFSPROC3_WRITE, NFSPROC3_SYMLINK,
		NFSPROC3_READDIR };
	struct xdr_out x;
	uint32_t len, at = 0;

	xdr_out_init(&x, call_bytes, sizeof(call_bytes));
	layout_put_header(&x, trial.xid, procs[trial.l->proc]);
	put_args(&x);
	len = (uint32_t)xdr_out_len(&x);
	require(len == layout_call_head(trial.l, &world.facts));
	if (layout_has_data(trial.l) && trial.l->nreads == 0) {
		for (uint32_t i = 0; i < trial.l->len; i++)
			call_bytes[len++] = trial_data_byte(i);
		while (len % 4)
			call_bytes[len++] = 0;
	}
	if (trial.call_len > len)
		memset(call_bytes + len, JUNK, trial.call_len - len);
	trial_scatter(world.area, &trial.call, call_bytes, trial.call_len);
	for (unsigned i = 0; i < trial.l->nreads; i++) {
		/* Chunks at one position are one. */
		for (uint32_t k = 0; k < trial.read[i].len; k++, at++)
			bytes[k] = at < trial.l->len ?
				   trial_data_byte(at) : JUNK;
		trial_scatter(world.area, &trial.read[i], bytes,
			      trial.read[i].len);
	}
}

static void put_segment(struct xdr_out *x, const struct piece *p, uint32_t len)
{
	bool none = p->handle == LAYOUT_HANDLES;

	xdr_put_u32(x, none ? 0xdead : layout_handle(p->handle));
	xdr_put_u32(x, len);
	xdr_put_u64(x, none ? 0 : (uintptr_t)world.area + p->at);
}

static void put_read_segment(struct xdr_out *x, const struct run *r,
			     unsigned i, uint32_t at)
{
	const struct piece *p = &trial.piece[r->first + i];

	if (i >= r->n)
		return;
	xdr_put_u32(x, 1);
	xdr_put_u32(x, at);
	put_segment(x, p, p->len);
}

/* One chunk after the other, or their segments in turns. */
static void put_reads(struct xdr_out *x)
{
	unsigned chunks = 1 + trial.l->nreads;
	uint32_t head = layout_call_head(trial.l, &world.facts);

	for (unsigned k = 0; k < chunks * LAYOUT_SEGS; k++) {
		unsigned i = trial.l->mixed ? k / chunks : k % LAYOUT_SEGS;
		unsigned c = trial.l->mixed ? k % chunks : k / LAYOUT_SEGS;

		if (c == 0)
			put_read_segment(x, &trial.call, i, 0);
		else
			put_read_segment(x, &trial.read[c - 1], i, head +
				(uint32_t)trial.l->shift[c - 1]);
	}
	xdr_put_u32(x, 0);
}

/* A Write chunk or the Reply chunk, with @len bytes in it. */
static void put_run(struct xdr_out *x, const struct run *r, uint32_t len)
{
	xdr_put_u32(x, 1);
	xdr_put_u32(x, r->n);
	for (unsigned i = r->first; i < r->first + r->n; i++) {
		uint32_t n = MIN(trial.piece[i].len, len);

		put_segment(x, &trial.piece[i], n);
		len -= n;
	}
}

void trial_put_lists(struct xdr_out *x, bool all, uint32_t written,
		     uint32_t replied)
{
	for (unsigned i = 0; i < trial.l->nwrites; i++)
		put_run(x, &trial.write[i],
			all ? UINT32_MAX : i > 0 ? 0 : written);
	xdr_put_u32(x, 0);
	if (trial.l->has_reply)
		put_run(x, &trial.reply, all ? UINT32_MAX : replied);
	else
		xdr_put_u32(x, 0);
}

/* Returns the message's length; 0: it is too long for a Send. */
static uint32_t make_message(uint8_t msg[LAYOUT_INLINE])
{
	struct xdr_out x;
	uint8_t *body;

	xdr_out_init(&x, msg, LAYOUT_INLINE);
	xdr_put_u32(&x, trial.xid);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, trial.l->nomsg ? RPCRDMA_NOMSG : RPCRDMA_MSG);
	put_reads(&x);
	trial_put_lists(&x, true, 0, 0);
	if (!trial.l->nomsg) {
		/* It need not be a multiple of four. */
		body = x.p;
		if (x.bad || trial.call_len > (size_t)(x.end - x.p))
			return 0;
		memcpy(body, call_bytes, trial.call_len);
		return (uint32_t)(body - msg) + trial.call_len;
	}
	return x.bad ? 0 : (uint32_t)xdr_out_len(&x);
}

const char *layout_try(const struct layout *l, bool *sent)
{
	uint8_t msg[LAYOUT_INLINE];
	const uint8_t *answer = NULL;
	const char *wrong, *changed;
	uint32_t len;
	int n;

	trial.l = l;
	trial.xid = layout_xid();
	layout_model(l, &world.facts, &trial.e);
	add_runs();
	*sent = place_pieces();
	if (!*sent)
		return NULL;
	make_call();
	len = make_message(msg);
	*sent = len > 0;
	if (!*sent)
		return NULL;
	memcpy(trial_image, world.area, trial.used);
	trial_note_write();
	n = layout_ask(l->peer, msg, len, &answer);
	wrong = trial_judge(answer, n);
	changed = trial_look();
	return wrong ? wrong : changed;
}
