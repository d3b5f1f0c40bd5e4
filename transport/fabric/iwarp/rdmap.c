/* SPDX-License-Identifier: BSD-2-Clause */
/* rdmap - a peer's segments: framing, placement, rules. */
#include "transport/fabric/iwarp/rdmap.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <endian.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "transport/fabric/iwarp/crc32c.h"

STAT(iwarp_bad_crc, "FPDUs with a wrong CRC");
STAT(iwarp_bad_length, "FPDUs with an impossible length");
STAT(iwarp_bad_header, "FPDUs with a wrong version, opcode or queue number");
STAT(iwarp_bad_sequence, "FPDUs with a wrong message number or offset");
STAT(iwarp_no_receive, "Sends that found no Receive");
STAT(iwarp_too_long, "messages longer than their buffer");
STAT(iwarp_bad_response, "unexpected RDMA Read Responses");

void rdmap_init(struct rdmap *r, const struct rdmap_ops *ops, bool crc)
{
	memset(r, 0, sizeof(*r));
	r->ops = ops;
	r->crc = crc;
	r->term = TERM_NONE;
	/* RFC 5041 section 5.1.2. */
	for (unsigned i = 0; i < DDP_NQUEUES; i++)
		r->msn[i] = 1;
}

void rdmap_fini(struct rdmap *r)
{
	free(r->whole);
	r->whole = NULL;
}

static int rdmap_give_up(struct rdmap *r, enum term code)
{
	r->term = code;
	r->stop = true;
	return -EPROTO;
}

/* The Terminate will name the FPDU at @p. */
static void note_culprit(struct rdmap *r, const uint8_t *p)
{
	r->culprit_header = ddp_header_len(p[2]);
	memcpy(r->culprit, p, r->culprit_header);
}

/* The same for the segment in r->h, of which a part was placed. */
static void note_segment(struct rdmap *r)
{
	struct ddp_header h = r->h;

	if (h.tagged)
		h.to -= h.payload - r->left;
	r->culprit_header = ddp_encode(&h, r->culprit);
}

void rdmap_note_request(struct rdmap *r, const struct ddp_header *h,
			const struct rdmap_request *req)
{
	r->culprit_header = ddp_encode(h, r->culprit);
	r->culprit_request = RDMAP_REQUEST_LEN;
	rdmap_request_encode(req, r->culprit + r->culprit_header);
}

static bool send_invalidates(uint8_t opcode)
{
	return opcode == RDMAP_SEND_INV || opcode == RDMAP_SEND_SE_INV;
}

/* ---- a segment begins: is it allowed, and where does it go */

static enum term begin_send(struct rdmap *r)
{
	const struct ddp_header *h = &r->h;

	if (!r->in_send) {
		if (h->mo != 0) {
			stat_inc(iwarp_bad_sequence);
			return TERM_DDP_MO;
		}
		if (!r->ops->recv_get(r, &r->recv, &r->recv_len)) {
			stat_inc(iwarp_no_receive);
			return TERM_DDP_NO_BUFFER;
		}
		r->in_send = true;
		r->recv_off = 0;
		r->send_opcode = h->opcode;
		r->send_inv = h->stag;
	}
	if (h->mo != r->recv_off) {
		stat_inc(iwarp_bad_sequence);
		return TERM_DDP_MO;
	}
	/* The STag of a Send without invalidation is not looked at. */
	if (h->opcode != r->send_opcode ||
	    (h->stag != r->send_inv && send_invalidates(h->opcode))) {
		stat_inc(iwarp_bad_header);
		return TERM_RDMAP_OPCODE;
	}
	if (h->payload > r->recv_len - r->recv_off) {
		stat_inc(iwarp_too_long);
		r->in_send = false;
		r->has_inv = false;
		r->ops->recv_done(r, -EMSGSIZE, 0);
		return TERM_DDP_TOO_LONG;
	}
	r->target = r->recv + r->recv_off;
	return TERM_NONE;
}

/* Begins a message of one segment for RDMAP itself, @min to @max long. */
static enum term begin_body(struct rdmap *r, uint32_t min, uint32_t max)
{
	const struct ddp_header *h = &r->h;

	if (h->mo != 0) {
		stat_inc(iwarp_bad_sequence);
		return TERM_DDP_MO;
	}
	if (h->payload > max || !h->last) {
		stat_inc(iwarp_too_long);
		return TERM_DDP_TOO_LONG;
	}
	if (h->payload < min) {
		stat_inc(iwarp_bad_length);
		return TERM_MPA_LENGTH;
	}
	r->target = r->body;
	return TERM_NONE;
}

static enum term begin_write(struct rdmap *r)
{
	const struct ddp_header *h = &r->h;

	r->target = NULL;
	/* RFC 5041 section 5.2: an empty one is not checked. */
	if (h->payload == 0)
		return TERM_NONE;
	return r->ops->write(r, h->stag, h->to, NULL, h->payload);
}

static enum term begin_response(struct rdmap *r)
{
	const struct ddp_header *h = &r->h;
	struct rdmap_read read;
	enum term err = TERM_NONE;

	if (!r->ops->read_get(r, &read))
		err = TERM_DDP_STAG;
	else if (h->payload == 0 && read.len > 0)
		err = TERM_DDP_BOUNDS;
	else if (h->payload == 0)
		err = h->last ? TERM_NONE : TERM_DDP_BOUNDS;
	else if (h->stag != read.stag)
		err = TERM_DDP_STAG;
	else if (h->to != r->read_off ||
		 h->payload > read.len - r->read_off ||
		 h->last != (h->payload == read.len - r->read_off))
		err = TERM_DDP_BOUNDS;
	if (err != TERM_NONE)
		stat_inc(iwarp_bad_response);
	else
		r->target = read.sink + r->read_off;
	return err;
}

static enum term begin_by_opcode(struct rdmap *r)
{
	switch (r->h.opcode) {
	case RDMAP_WRITE:
		return begin_write(r);
	case RDMAP_READ_REQUEST:
		return begin_body(r, RDMAP_REQUEST_LEN, RDMAP_REQUEST_LEN);
	case RDMAP_READ_RESPONSE:
		return begin_response(r);
	case RDMAP_TERMINATE:
		return begin_body(r, RDMAP_TERM_MIN, RDMAP_TERM_MAX);
	default:
		return begin_send(r);
	}
}

/* The header at @p is there, and its length is fine. */
static int rdmap_begin(struct rdmap *r, const uint8_t *p)
{
	enum term err = ddp_decode(p, &r->h);

	if (err != TERM_NONE) {
		stat_inc(iwarp_bad_header);
	} else if (!r->h.tagged && r->h.msn != r->msn[r->h.qn]) {
		stat_inc(iwarp_bad_sequence);
		err = TERM_DDP_MSN;
	} else {
		err = begin_by_opcode(r);
	}
	if (err == TERM_NONE)
		return 0;
	if (err != TERM_MPA_LENGTH)
		note_culprit(r, p);
	return rdmap_give_up(r, err);
}

/* ---- payload */

static int rdmap_advance(struct rdmap *r, uint32_t n)
{
	if (r->target)
		r->target += n;
	else
		r->h.to += n;
	r->left -= n;
	return 0;
}

static int place(struct rdmap *r, const uint8_t *data, uint32_t n)
{
	enum term err;

	if (n == 0)
		return 0;
	if (r->target) {
		memcpy(r->target, data, n);
		return rdmap_advance(r, n);
	}
	err = r->ops->write(r, r->h.stag, r->h.to, data, n);
	if (err == TERM_NONE)
		return rdmap_advance(r, n);
	note_segment(r);
	return rdmap_give_up(r, err);
}

/* ---- a segment is complete */

static int finish_send(struct rdmap *r)
{
	enum term err;

	r->recv_off += r->h.payload;
	if (!r->h.last)
		return 0;
	r->in_send = false;
	r->has_inv = send_invalidates(r->send_opcode);
	r->inv = r->send_inv;
	if (r->has_inv) {
		err = r->ops->invalidate(r, r->inv);
		if (err != TERM_NONE) {
			note_segment(r);
			return rdmap_give_up(r, err);
		}
	}
	r->ops->recv_done(r, 0, r->recv_off);
	return 0;
}

static int finish_request(struct rdmap *r)
{
	struct rdmap_request req;
	enum term err;

	rdmap_request_decode(r->body, &req);
	err = r->ops->read_request(r, &req);
	if (err == TERM_NONE)
		return 0;
	rdmap_note_request(r, &r->h, &req);
	return rdmap_give_up(r, err);
}

static int finish_response(struct rdmap *r)
{
	r->read_off += r->h.payload;
	if (r->h.last) {
		r->read_off = 0;
		r->ops->read_done(r);
	}
	return 0;
}

static int rdmap_finish(struct rdmap *r)
{
	r->state = RDMAP_GATHER;
	r->have = 0;
	r->fpdus++;
	if (!r->h.tagged && r->h.last)
		r->msn[r->h.qn]++;
	switch (r->h.opcode) {
	case RDMAP_WRITE:
		return 0;
	case RDMAP_READ_REQUEST:
		return finish_request(r);
	case RDMAP_READ_RESPONSE:
		return finish_response(r);
	case RDMAP_TERMINATE:
		r->stop = true;
		r->ops->terminated(r, rdmap_term_decode(r->body));
		return -ECONNRESET;
	default:
		return finish_send(r);
	}
}

/* ---- framing */

static unsigned ulpdu_len(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

/* Checks the length of a FPDU with three bytes or more here. */
static int check_length(struct rdmap *r, const uint8_t *p)
{
	if (ddp_length_ok(p))
		return 0;
	stat_inc(iwarp_bad_length);
	return rdmap_give_up(r, TERM_MPA_LENGTH);
}

static bool crc_ok(const uint8_t *p, unsigned fpdu_len)
{
	unsigned len = fpdu_len - DDP_CRC_LEN;
	uint32_t crc = htole32(crc32c(0, p, len));

	return memcmp(p + len, &crc, DDP_CRC_LEN) == 0;
}

/* A whole FPDU lies at @p. */
static int rdmap_take_whole(struct rdmap *r, const uint8_t *p)
{
	unsigned len = ddp_fpdu_len(ulpdu_len(p));
	int err;

	if (r->crc && !crc_ok(p, len)) {
		stat_inc(iwarp_bad_crc);
		return rdmap_give_up(r, TERM_MPA_CRC);
	}
	err = rdmap_begin(r, p);
	if (err)
		return err;
	r->left = r->h.payload;
	err = place(r, p + ddp_header_len(p[2]), r->h.payload);
	return err ? err : rdmap_finish(r);
}

static int begin_payload(struct rdmap *r)
{
	int err = rdmap_begin(r, r->small);

	if (err)
		return err;
	r->state = RDMAP_PAYLOAD;
	r->left = r->h.payload;
	if (r->left == 0) {
		r->state = RDMAP_TRAILER;
		r->left = ddp_trailer_len(r->h.ulpdu_len);
	}
	return 0;
}

static int whole_is_there(struct rdmap *r)
{
	uint8_t *whole = r->whole;
	int err;

	r->whole = NULL;
	err = rdmap_take_whole(r, whole ? whole : r->small);
	free(whole);
	return err;
}

/* Returns how many bytes to gather, by those gathered so far. */
static unsigned gather_goal(const struct rdmap *r)
{
	if (r->have < 3)
		return 3;
	return r->crc ? ddp_fpdu_len(ulpdu_len(r->small)) :
			ddp_header_len(r->small[2]);
}

/* Gathers bytes of a FPDU; sets *@used to their number. */
static int gather(struct rdmap *r, const uint8_t *data, size_t len,
		  size_t *used)
{
	unsigned goal = gather_goal(r);
	size_t n = MIN(len, (size_t)(goal - r->have));

	if (goal > RDMAP_SMALL && !r->whole) {
		r->whole = malloc(goal);
		if (!r->whole) {
			r->stop = true;
			return -ENOMEM;
		}
		memcpy(r->whole, r->small, r->have);
	}
	memcpy((r->whole ? r->whole : r->small) + r->have, data, n);
	r->have += (unsigned)n;
	*used = n;
	if (r->have < goal)
		return 0;
	if (goal == 3)
		return check_length(r, r->small);
	return r->crc ? whole_is_there(r) : begin_payload(r);
}

/* At the start of a FPDU, or within the gathered part of one. */
static int take_start(struct rdmap *r, const uint8_t *data, size_t len,
		      size_t *used)
{
	if (r->have > 0 || len < 3)
		return gather(r, data, len, used);
	if (check_length(r, data))
		return -EPROTO;
	if (len < ddp_fpdu_len(ulpdu_len(data)))
		return gather(r, data, len, used);
	*used = ddp_fpdu_len(ulpdu_len(data));
	return rdmap_take_whole(r, data);
}

static int take_rest(struct rdmap *r, const uint8_t *data, size_t len,
		     size_t *used)
{
	uint32_t n = (uint32_t)MIN(len, (size_t)r->left);

	*used = n;
	if (r->state == RDMAP_PAYLOAD) {
		if (data && place(r, data, n))
			return -EPROTO;
		if (!data)
			rdmap_advance(r, n);
		if (r->left > 0)
			return 0;
		r->state = RDMAP_TRAILER;
		r->left = ddp_trailer_len(r->h.ulpdu_len);
		return 0;
	}
	r->left -= n;
	return r->left == 0 ? rdmap_finish(r) : 0;
}

int rdmap_feed(struct rdmap *r, const uint8_t *data, size_t len)
{
	size_t used = 0;
	int err = 0;

	for (; len > 0 && !err && !r->stop; data += used, len -= used)
		err = r->state == RDMAP_GATHER ?
		      take_start(r, data, len, &used) :
		      take_rest(r, data, len, &used);
	return err;
}

bool rdmap_want(const struct rdmap *r, struct rdmap_want *want)
{
	unsigned trailer;

	if (r->state != RDMAP_PAYLOAD || r->stop)
		return false;
	trailer = ddp_trailer_len(r->h.ulpdu_len);
	*want = (struct rdmap_want){
		.data = r->target,
		.len = r->left,
		.behind = r->h.last ? 0 : trailer + (r->h.tagged ?
				DDP_TAGGED_LEN : DDP_UNTAGGED_LEN),
	};
	return true;
}

int rdmap_placed(struct rdmap *r, uint32_t len)
{
	size_t used;

	return len > 0 ? take_rest(r, NULL, len, &used) : 0;
}

bool rdmap_midway(const struct rdmap *r)
{
	return r->in_send || r->read_off > 0 || r->have > 0 ||
	       r->state != RDMAP_GATHER;
}
