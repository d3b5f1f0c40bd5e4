/* SPDX-License-Identifier: BSD-2-Clause */
/* layout_model - the answer to a call with chunks, by the texts alone. */
#include "tests/server/layout.h"

enum {
	WORD = 4,
	ATTRIBUTES = 84,		/* RFC 1813 section 2.5: fattr3 */
	PRE_ATTRIBUTES = 24,		/* wcc_attr */
	POST = WORD + ATTRIBUTES,
	WCC = WORD + PRE_ATTRIBUTES + POST,
	RDMA_HEADER = 28,		/* with three empty lists */
	SEGMENT = 16,
};

static uint32_t padded(uint32_t n)
{
	return (n + 3) / 4 * 4;
}

static uint32_t least(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

uint32_t layout_chunk_len(const struct layout_chunk *c, uint32_t need)
{
	int64_t len = (int64_t)need + c->diff;

	return c->nsegs == 0 || len < 0 ? 0 : (uint32_t)len;
}

uint32_t layout_segment_len(const struct layout_chunk *c, uint32_t len,
			    unsigned i)
{
	for (unsigned k = 0; k < i; k++)
		len -= least(len, c->cut[k]);
	return i + 1 == c->nsegs ? len : least(len, c->cut[i]);
}

bool layout_has_data(const struct layout *l)
{
	return l->proc == LAYOUT_WRITE || l->proc == LAYOUT_SYMLINK;
}

uint32_t layout_data_len(const struct layout *l)
{
	uint32_t len = 0;

	for (unsigned i = 0; i < l->nreads; i++)
		len += layout_chunk_len(&l->read[i], i == 0 ? l->len : 0);
	return len;
}

uint32_t layout_call_head(const struct layout *l, const struct layout_facts *f)
{
	uint32_t fh = LAYOUT_RPC_CALL + WORD + padded(f->fh_len);

	switch (l->proc) {
	case LAYOUT_NULL:
		return LAYOUT_RPC_CALL;
	case LAYOUT_READ:
		return fh + 8 + WORD;
	case LAYOUT_WRITE:
		return fh + 8 + 3 * WORD;
	case LAYOUT_SYMLINK:			/* name, attributes, length */
		return fh + 2 * WORD + 6 * WORD + WORD;
	case LAYOUT_READDIR:
		return fh + 8 + 8 + WORD;
	default:
		return fh;
	}
}

uint32_t layout_call_len(const struct layout *l, const struct layout_facts *f)
{
	int64_t len = layout_call_head(l, f);

	if (layout_has_data(l) && l->nreads == 0)
		len += padded(l->len);
	len += l->call.diff;
	return len < LAYOUT_RPC_CALL ? LAYOUT_RPC_CALL : (uint32_t)len;
}

uint32_t layout_result_len(const struct layout *l,
			   const struct layout_facts *f)
{
	if (l->proc == LAYOUT_READLINK)
		return f->link_len[l->target];
	if (l->proc != LAYOUT_READ || l->offset >= f->file_size)
		return 0;
	return least(least(l->len, LAYOUT_DATA_MAX), f->file_size - l->offset);
}

/* The RPC reply of a call that succeeds, without an eligible result and its
 * pad. */
static uint32_t reply_frame(const struct layout *l,
			    const struct layout_facts *f)
{
	uint32_t status = LAYOUT_RPC_REPLY + WORD;

	switch (l->proc) {
	case LAYOUT_NULL:
		return LAYOUT_RPC_REPLY;
	case LAYOUT_GETATTR:
		return status + ATTRIBUTES;
	case LAYOUT_READ:			/* count, eof, length */
		return status + POST + 3 * WORD;
	case LAYOUT_READLINK:
		return status + POST + WORD;
	case LAYOUT_WRITE:			/* count, committed, verf */
		return status + WCC + 2 * WORD + 8;
	case LAYOUT_SYMLINK:
		return status + 2 * WORD + padded(f->fh_len) + POST + WCC;
	default:
		return f->dir_reply[l->target];
	}
}

/* RFC 8166 section 4.3.2: the first Write chunk takes the result, unless it is
 * empty, which asks for the result inline (section 4.3.2.3). */
static bool goes_to_chunk(const struct layout *l, const struct layout_facts *f)
{
	return l->nwrites > 0 &&
	       layout_chunk_len(&l->write[0], layout_result_len(l, f)) > 0 &&
	       (l->proc == LAYOUT_READ || l->proc == LAYOUT_READLINK);
}

uint32_t layout_rest_len(const struct layout *l, const struct layout_facts *f)
{
	uint32_t rest = reply_frame(l, f);

	if (!goes_to_chunk(l, f))
		rest += padded(layout_result_len(l, f));
	return rest;
}

/* All segments come back (sections 3.4.6 and 4.3.3). */
static uint32_t header_len(const struct layout *l)
{
	uint32_t len = RDMA_HEADER;

	for (unsigned i = 0; i < l->nwrites; i++)
		len += 2 * WORD + l->write[i].nsegs * SEGMENT;
	if (l->has_reply)
		len += WORD + l->reply.nsegs * SEGMENT;
	return len;
}

/* A reply of this length, with its header, inline or in the Reply chunk. */
static void route(const struct layout *l, const struct layout_facts *f,
		  struct layout_expect *e)
{
	uint32_t room = layout_chunk_len(&l->reply, layout_rest_len(l, f));

	if (header_len(l) + e->rest <= f->threshold[l->peer])
		return;
	e->nomsg = true;
	if (!l->has_reply || room < e->rest)
		e->answer = LAYOUT_ERR_CHUNK;
}

/* Looks at the header alone.  Section 4.2.4: RDMA_NOMSG without a message.
 * Section 6.1: Read chunks stand for eligible arguments only. */
static bool header_bad(const struct layout *l, const struct layout_facts *f)
{
	if (l->nomsg && (l->call.nsegs == 0 || layout_call_len(l, f) == 0))
		return true;
	/* Not even a reply's header can be sent. */
	if (header_len(l) > f->threshold[l->peer])
		return true;
	for (unsigned i = 0; i < l->nreads; i++) {
		if (l->read[i].nsegs == 0)
			continue;
		/* Or the position is not in the message that is left. */
		if (l->shift[i] != 0 || !layout_has_data(l) ||
		    l->call.diff < 0)
			return true;
	}
	return false;
}

/* Section 4.5.2: arguments that are not all there.  Bytes behind them are
 * ignored, as behind a chunk that has its pad (section 3.4.5.2). */
static bool args_bad(const struct layout *l)
{
	if (l->call.diff < 0 && l->proc != LAYOUT_NULL)
		return true;
	return layout_has_data(l) && l->nreads > 0 &&
	       layout_data_len(l) < l->len;
}

void layout_model(const struct layout *l, const struct layout_facts *f,
		  struct layout_expect *e)
{
	*e = (struct layout_expect){ .answer = LAYOUT_ERR_CHUNK };
	if (header_bad(l, f))
		return;
	if (args_bad(l)) {
		e->answer = LAYOUT_GARBAGE;
		e->rest = LAYOUT_RPC_REPLY;
		route(l, f, e);
		return;
	}
	e->answer = LAYOUT_OK;
	e->done = true;
	e->result = layout_result_len(l, f);
	e->rest = layout_rest_len(l, f);
	if (goes_to_chunk(l, f)) {
		e->written = e->result;
		if (layout_chunk_len(&l->write[0], e->result) < e->result) {
			e->answer = LAYOUT_ERR_CHUNK;
			return;
		}
	}
	route(l, f, e);
}
