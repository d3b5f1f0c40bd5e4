/* SPDX-License-Identifier: BSD-2-Clause */
/* mpa - start-up frames and their negotiation. */
#include "transport/fabric/iwarp/mpa.h"

#include <errno.h>
#include <string.h>

#include "lib/util.h"

#define KEY_LEN		16u
#define ENHANCED_LEN	4u

/* The flags byte. */
#define FLAG_M		0x80
#define FLAG_C		0x40
#define FLAG_R		0x20
#define FLAG_S		0x10

/* Enhanced connection data, RFC 6581 section 9: two halves of these. */
#define WORD_HIGH	0x8000	/* A, C */
#define WORD_LOW	0x4000	/* B, D */

/* A peer of revision 1 does not tell its depth; old adapters have 16 or
 * more. */
#define DEFAULT_DEPTH	8u

static const char keys[2][KEY_LEN + 1] = {
	"MPA ID Req Frame", "MPA ID Rep Frame"
};

static void put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

static unsigned get16(const uint8_t *p)
{
	return (unsigned)p[0] << 8 | p[1];
}

static unsigned half(bool high, bool low, unsigned depth)
{
	return (high ? WORD_HIGH : 0) | (low ? WORD_LOW : 0) | depth;
}

unsigned mpa_encode(const struct mpa_frame *f, uint8_t *out)
{
	unsigned extra = f->enhanced ? ENHANCED_LEN : 0;
	unsigned len = MIN(f->private_len, MPA_MAX_PRIVATE - extra);
	uint8_t *p = out + MPA_HEADER_LEN;

	memcpy(out, keys[f->reply], KEY_LEN);
	out[16] = (uint8_t)((f->markers ? FLAG_M : 0) | (f->crc ? FLAG_C : 0) |
			    (f->reject ? FLAG_R : 0) |
			    (f->enhanced ? FLAG_S : 0));
	out[17] = f->rev;
	put16(out + 18, extra + len);
	if (f->enhanced) {
		put16(p, half(f->p2p, f->rtr_send, f->ird));
		put16(p + 2, half(f->rtr_write, f->rtr_read, f->ord));
	}
	if (len > 0)
		memcpy(p + extra, f->private_data, len);
	return MPA_HEADER_LEN + extra + len;
}

int mpa_frame_len(const uint8_t *data, size_t len, bool reply)
{
	unsigned pd;

	if (memcmp(data, keys[reply], MIN(len, (size_t)KEY_LEN)))
		return -EPROTO;
	if (len < MPA_HEADER_LEN)
		return 0;
	if (data[17] < 1 || data[17] > 2)
		return -EPROTONOSUPPORT;
	pd = get16(data + 18);
	/* Of revision 1 the bit is reserved, not to be checked. */
	if (data[17] > 1 && (data[16] & FLAG_S) && pd < ENHANCED_LEN)
		return -EPROTO;
	return pd > MPA_MAX_PRIVATE ? -EPROTO : (int)(MPA_HEADER_LEN + pd);
}

static void decode_enhanced(const uint8_t *p, struct mpa_frame *f)
{
	unsigned first = get16(p), second = get16(p + 2);

	f->p2p = first & WORD_HIGH;
	/* RFC 6581 section 9.2: ignored unless A is set. */
	f->rtr_send = f->p2p && (first & WORD_LOW);
	f->rtr_write = f->p2p && (second & WORD_HIGH);
	f->rtr_read = f->p2p && (second & WORD_LOW);
	f->ird = (uint16_t)(first & MPA_DEPTH_ANY);
	f->ord = (uint16_t)(second & MPA_DEPTH_ANY);
}

int mpa_decode(const uint8_t *data, size_t len, bool reply,
	       struct mpa_frame *f)
{
	int whole = mpa_frame_len(data, len, reply);

	if (whole < 0)
		return whole;
	if (whole == 0 || (size_t)whole != len)
		return -EPROTO;
	*f = (struct mpa_frame){
		.reply = reply,
		.markers = data[16] & FLAG_M,
		.crc = data[16] & FLAG_C,
		.reject = reply && (data[16] & FLAG_R),
		.rev = data[17],
		.enhanced = data[17] > 1 && (data[16] & FLAG_S),
		.private_data = data + MPA_HEADER_LEN,
		.private_len = (unsigned)whole - MPA_HEADER_LEN,
	};
	if (f->enhanced) {
		decode_enhanced(f->private_data, f);
		f->private_data += ENHANCED_LEN;
		f->private_len -= ENHANCED_LEN;
	}
	return 0;
}

unsigned mpa_read_depth(const struct mpa_frame *req, unsigned ord)
{
	if (!req->enhanced || req->ird == MPA_DEPTH_ANY)
		return MIN(ord, DEFAULT_DEPTH);
	return MIN(ord, (unsigned)req->ird);
}

static void begin_reply(const struct mpa_frame *req, struct mpa_frame *reply)
{
	*reply = (struct mpa_frame){
		.reply = true, .rev = req->rev, .crc = req->crc,
		.enhanced = req->enhanced, .p2p = req->p2p,
	};
}

void mpa_reject(const struct mpa_frame *req, struct mpa_frame *reply)
{
	begin_reply(req, reply);
	reply->reject = true;
	if (!req->enhanced)
		return;
	/* RFC 6581 section 9.1: fails if the peer's depth is below our need. */
	reply->ird = req->ord;
	reply->ord = MAX(req->ird, 1);
	reply->rtr_write = req->p2p;
}

void mpa_answer(const struct mpa_frame *req, const struct mpa_policy *policy,
		struct mpa_frame *reply, struct mpa_agreed *agreed)
{
	begin_reply(req, reply);
	reply->crc = req->crc || policy->crc;
	*agreed = (struct mpa_agreed){
		.crc = reply->crc, .markers = req->markers,
		.ird = policy->ird,
		.ord = mpa_read_depth(req, policy->ord),
	};
	if (!req->enhanced)
		return;
	if (req->ord != MPA_DEPTH_ANY)
		agreed->ird = MIN(policy->ird, (unsigned)req->ord);
	if (req->p2p) {
		/* A Write needs nothing of us; a Send would take a Receive. */
		reply->rtr_read = req->rtr_read && !req->rtr_write;
		reply->rtr_write = !reply->rtr_read;
		if (reply->rtr_read)
			agreed->ird = MAX(agreed->ird, 1u);
	}
	reply->ird = req->ord == MPA_DEPTH_ANY ? MPA_DEPTH_ANY :
		     (uint16_t)agreed->ird;
	reply->ord = req->ird == MPA_DEPTH_ANY ? MPA_DEPTH_ANY :
		     (uint16_t)agreed->ord;
}

static int conclude_enhanced(const struct mpa_frame *req,
			     const struct mpa_frame *reply,
			     struct mpa_agreed *agreed)
{
	if (reply->ird != MPA_DEPTH_ANY)
		agreed->ord = MIN(agreed->ord, (unsigned)reply->ird);
	if (reply->ord != MPA_DEPTH_ANY && reply->ord > agreed->ird)
		return -ENOSPC;
	if (!req->p2p || !reply->p2p)
		return 0;
	if (req->rtr_write && reply->rtr_write)
		agreed->rtr = MPA_RTR_WRITE;
	else if (req->rtr_read && reply->rtr_read)
		agreed->rtr = MPA_RTR_READ;
	else
		return -ENOTSUP;
	return 0;
}

int mpa_conclude(const struct mpa_frame *req, const struct mpa_policy *policy,
		 const struct mpa_frame *reply, struct mpa_agreed *agreed)
{
	*agreed = (struct mpa_agreed){
		.crc = req->crc || reply->crc, .markers = reply->markers,
		.ird = policy->ird, .ord = policy->ord,
	};
	if (reply->reject)
		return -ECONNREFUSED;
	if (reply->rev != req->rev)
		return -EPROTO;
	if (!req->enhanced || !reply->enhanced) {
		agreed->ord = MIN(policy->ord, DEFAULT_DEPTH);
		return 0;
	}
	return conclude_enhanced(req, reply, agreed);
}
