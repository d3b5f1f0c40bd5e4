/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tx - messages become FPDUs.
 *
 * Payload is never copied: an iovec names it, between the headers and
 * trailers that lie in tx->heads.  FPDUs but the last of a message are a
 * multiple of four long and need no pad.
 *
 * Each send begins a TCP segment, so the ends of segments are known, and FPDUs
 * end there (RFC 5044 section 5.1).  Peers are faster with FPDUs that came
 * whole, and siw takes a CRC that came in two pieces for wrong.
 *
 * For a peer that wants markers each FPDU is made like that, without its CRC,
 * and then copied between its markers.
 */
#include "transport/fabric/iwarp/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <endian.h>

#include "lib/stats.h"
#include "transport/fabric/iwarp/crc32c.h"

STAT(iwarp_bytes_out, "bytes sent by the iWARP fabric");
STAT(iwarp_fpdus_out, "FPDUs sent by the iWARP fabric");
STAT(iwarp_bounced, "bytes copied because a socket was full");

/* A trailer has 7 bytes at most, and room for 8. */
#define TRAILER_ROOM	8u
/* A trailer, a header and a Read Request. */
#define HEADS_NEEDED	(TRAILER_ROOM + DDP_MAX_HEADER + RDMAP_REQUEST_LEN + \
			 TRAILER_ROOM)

int iwarp_tx_mark(struct iwarp_tx *tx)
{
	tx->marked = calloc(1, sizeof(*tx->marked));
	return tx->marked ? 0 : -ENOMEM;
}

void iwarp_tx_fini(struct iwarp_tx *tx)
{
	free(tx->bounce);
	free(tx->marked);
}

void iwarp_tx_fit(struct iwarp_tx *tx, unsigned emss)
{
	unsigned size = emss & ~3u;

	if (tx->marked)
		size -= MIN(size, marked_share(emss));
	size = MIN(size, IWARP_MAX_FPDU);
	tx->fpdu = MAX(size, IWARP_MIN_FPDU);
	tx->emss = emss;
}

void iwarp_tx_init(struct iwarp_tx *tx, unsigned fpdu, bool crc)
{
	tx->fpdu = fpdu;
	tx->crc = crc && !tx->marked;
	if (tx->marked)
		tx->marked->stream.crc = crc;
	for (unsigned i = 0; i < DDP_NQUEUES; i++)
		tx->msn[i] = 1;
}

static void add_iov(struct iwarp_tx *tx, const void *p, size_t len)
{
	tx->iov[tx->niov].iov_base = (void *)(uintptr_t)p;
	tx->iov[tx->niov++].iov_len = len;
}

/* Adds an iovec for the bytes in heads that have none. */
static void close_head(struct iwarp_tx *tx)
{
	if (tx->head == tx->head_start)
		return;
	add_iov(tx, tx->heads + tx->head_start, tx->head - tx->head_start);
	tx->head_start = tx->head;
}

static bool has_room(const struct iwarp_tx *tx)
{
	if (tx->marked && tx->marked->used + marked_len(IWARP_MAX_FPDU) >
			  IWARP_TX_MARKED)
		return false;
	return tx->niov + IWARP_MAX_SGE + 3 <= IWARP_TX_IOVS &&
	       tx->head + HEADS_NEEDED <= IWARP_TX_HEADS;
}

/* Adds the pad and the CRC, which continues @crc; returns their length.  @p has
 * TRAILER_ROOM. */
static unsigned write_trailer(const struct iwarp_tx *tx, uint8_t *p,
			      unsigned ulpdu_len, uint32_t crc)
{
	unsigned len = ddp_trailer_len(ulpdu_len);
	unsigned pad = len - DDP_CRC_LEN;

	/* The length is constant, so the compiler makes no call. */
	memset(p, 0, TRAILER_ROOM);
	if (tx->crc) {
		crc = htole32(crc32c(crc, p, pad));
		memcpy(p + pad, &crc, DDP_CRC_LEN);
	}
	return len;
}

/* Copies the FPDU that iov and heads have, which is the only one there. */
static void mark_fpdu(struct iwarp_tx *tx)
{
	struct iwarp_tx_marked *m = tx->marked;

	close_head(tx);
	/* It ends with an empty CRC field. */
	tx->iov[tx->niov - 1].iov_len -= DDP_CRC_LEN;
	marked_begin(&m->stream, m->buf + m->used);
	for (unsigned i = 0; i < tx->niov; i++)
		marked_put(&m->stream, tx->iov[i].iov_base,
			   tx->iov[i].iov_len);
	marked_end(&m->stream);
	m->used = (unsigned)(m->stream.out - m->buf);
	tx->built = m->stream.at;
	tx->niov = 0;
	tx->head = tx->head_start = 0;
}

static void put_trailer(struct iwarp_tx *tx, unsigned ulpdu_len, uint32_t crc)
{
	tx->head += write_trailer(tx, tx->heads + tx->head, ulpdu_len, crc);
	tx->built += ddp_fpdu_len(ulpdu_len);
	stat_inc(iwarp_fpdus_out);
	if (tx->marked)
		mark_fpdu(tx);
}

/* Adds iovecs for the next @n bytes of @out; returns the CRC. */
static uint32_t put_payload(struct iwarp_tx *tx, struct iwarp_out *out,
			    uint32_t n, uint32_t crc)
{
	while (n > 0) {
		const struct fabric_sge *sge = out->sge;
		const uint8_t *p = (const uint8_t *)sge->addr + out->off;
		uint32_t len = MIN(n, sge->len - out->off);

		if (len > 0) {
			add_iov(tx, p, len);
			if (tx->crc)
				crc = crc32c(crc, p, len);
		}
		n -= len;
		out->off += len;
		if (out->off == sge->len) {
			out->sge++;
			out->off = 0;
		}
	}
	return crc;
}

/*
 * Returns the length for the next FPDU, @len or less; 0: a segment has to end
 * first.  A segment can end with a few bytes that no FPDU fits in.  The next
 * one begins there, if its CRC is not cut.
 */
static unsigned fit_segment(const struct iwarp_tx *tx, unsigned len)
{
	unsigned left;

	if (tx->emss < tx->fpdu || tx->marked)
		return len;
	left = tx->emss - (unsigned)((tx->built - tx->began) % tx->emss);
	if (len <= left)
		return len;
	if (left >= IWARP_MIN_FPDU)
		return left & ~3u;
	return len >= left + TRAILER_ROOM ? len : 0;
}

static void put_fpdu(struct iwarp_tx *tx, struct iwarp_out *out, uint32_t n)
{
	uint8_t *p = tx->heads + tx->head;
	unsigned len;
	uint32_t crc = 0;

	out->h.payload = n;
	out->h.last = n == out->left;
	len = ddp_encode(&out->h, p);
	tx->head += len;
	if (tx->crc)
		crc = crc32c(0, p, len);
	if (n > 0)
		close_head(tx);
	crc = put_payload(tx, out, n, crc);
	put_trailer(tx, len - DDP_LENGTH_LEN + n, crc);
	out->left -= n;
	if (out->h.tagged)
		out->h.to += n;
	else
		out->h.mo += n;
}

bool iwarp_tx_build(struct iwarp_tx *tx, struct iwarp_out *out)
{
	unsigned header = out->h.tagged ? DDP_TAGGED_LEN : DDP_UNTAGGED_LEN;
	unsigned max = tx->fpdu - DDP_CRC_LEN - header;

	do {
		unsigned n = MIN(out->left, max);
		unsigned whole = ddp_fpdu_len(header - DDP_LENGTH_LEN + n);
		unsigned len = fit_segment(tx, whole);

		if (!has_room(tx) || len == 0)
			return false;
		if (len < whole)
			n = len - DDP_CRC_LEN - header;
		put_fpdu(tx, out, n);
	} while (out->left > 0);
	out->busy = false;
	return true;
}

static uint32_t iwarp_tx_total(const struct fabric_wr *wr)
{
	uint32_t len = 0;

	for (unsigned i = 0; i < wr->nsge; i++)
		len += wr->sge[i].len;
	return len;
}

void iwarp_tx_begin_step(struct iwarp_tx *tx, const struct fabric_wr *wr)
{
	struct iwarp_out *out = &tx->step;

	*out = (struct iwarp_out){ .sge = wr->sge, .left = iwarp_tx_total(wr),
				   .busy = true };
	if (wr->opcode == FABRIC_WRITE) {
		out->h.tagged = true;
		out->h.opcode = RDMAP_WRITE;
		out->h.stag = wr->handle;
		out->h.to = wr->offset;
		return;
	}
	out->h.opcode = RDMAP_SEND;
	if (wr->opcode == FABRIC_SEND_INV) {
		out->h.opcode = RDMAP_SEND_INV;
		out->h.stag = wr->invalidate;
	}
	out->h.qn = DDP_QN_SEND;
	out->h.msn = tx->msn[DDP_QN_SEND]++;
}

void iwarp_tx_begin_answer(struct iwarp_tx *tx,
			   const struct rdmap_request *req)
{
	tx->answer = (struct iwarp_out){
		.h = { .tagged = true, .opcode = RDMAP_READ_RESPONSE,
		       .stag = req->sink_stag, .to = req->sink_to },
		.left = req->len, .busy = true,
	};
}

bool iwarp_tx_build_request(struct iwarp_tx *tx, const struct fabric_wr *wr,
			    uint32_t sink)
{
	uint8_t *p = tx->heads + tx->head;
	struct ddp_header h = {
		.last = true, .opcode = RDMAP_READ_REQUEST, .qn = DDP_QN_READ,
		.msn = tx->msn[DDP_QN_READ], .payload = RDMAP_REQUEST_LEN,
	};
	struct rdmap_request req = {
		.sink_stag = sink, .len = iwarp_tx_total(wr),
		.src_stag = wr->handle, .src_to = wr->offset,
	};
	unsigned len = ddp_fpdu_len(DDP_UNTAGGED_LEN - DDP_LENGTH_LEN +
				    RDMAP_REQUEST_LEN);

	/* It is one FPDU. */
	if (!has_room(tx) || fit_segment(tx, len) < len)
		return false;
	tx->msn[DDP_QN_READ]++;
	len = ddp_encode(&h, p);
	rdmap_request_encode(&req, p + len);
	len += RDMAP_REQUEST_LEN;
	tx->head += len;
	put_trailer(tx, len - DDP_LENGTH_LEN,
		    tx->crc ? crc32c(0, p, len) : 0);
	return true;
}

void iwarp_tx_seal(struct iwarp_tx *tx)
{
	close_head(tx);
	if (tx->marked && tx->marked->used > 0)
		add_iov(tx, tx->marked->buf, tx->marked->used);
}

/* Everything was sent: empties tx. */
static void reset(struct iwarp_tx *tx)
{
	tx->niov = tx->at = 0;
	tx->head = tx->head_start = 0;
	if (tx->marked)
		tx->marked->used = 0;
	free(tx->bounce);
	tx->bounce = NULL;
}

void iwarp_tx_forget(struct iwarp_tx *tx, size_t n)
{
	stat_add(iwarp_bytes_out, n);
	while (tx->at < tx->niov && n >= tx->iov[tx->at].iov_len)
		n -= tx->iov[tx->at++].iov_len;
	if (tx->at == tx->niov) {
		reset(tx);
		return;
	}
	tx->iov[tx->at].iov_base = (uint8_t *)tx->iov[tx->at].iov_base + n;
	tx->iov[tx->at].iov_len -= n;
}

int iwarp_tx_detach(struct iwarp_tx *tx)
{
	size_t len = 0, off = 0;
	uint8_t *copy;

	for (unsigned i = tx->at; i < tx->niov; i++)
		len += tx->iov[i].iov_len;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	for (unsigned i = tx->at; i < tx->niov; i++) {
		memcpy(copy + off, tx->iov[i].iov_base, tx->iov[i].iov_len);
		off += tx->iov[i].iov_len;
	}
	stat_add(iwarp_bounced, len);
	reset(tx);
	tx->bounce = copy;
	add_iov(tx, copy, len);
	return 0;
}

/* Puts markers into the FPDU of @len bytes at @fpdu; returns its length. */
static unsigned mark_terminate(struct iwarp_tx *tx, uint8_t *fpdu,
			       unsigned len)
{
	struct marked *stream = &tx->marked->stream;
	uint8_t plain[IWARP_TERM_FPDU];

	memcpy(plain, fpdu, len);
	marked_begin(stream, fpdu);
	marked_put(stream, plain, len - DDP_CRC_LEN);
	marked_end(stream);
	return (unsigned)(stream->out - fpdu);
}

unsigned iwarp_tx_terminate(struct iwarp_tx *tx, const struct rdmap *rx,
			    uint8_t *out)
{
	uint8_t body[RDMAP_TERM_MAX];
	struct ddp_header h = {
		.last = true, .opcode = RDMAP_TERMINATE,
		.qn = DDP_QN_TERMINATE, .msn = 1,
	};
	unsigned len;

	h.payload = rdmap_term_encode(rx->term, rx->culprit,
				      rx->culprit_header,
				      rx->culprit_request, body);
	len = ddp_encode(&h, out);
	memcpy(out + len, body, h.payload);
	len += h.payload;
	len += write_trailer(tx, out + len, len - DDP_LENGTH_LEN,
			     tx->crc ? crc32c(0, out, len) : 0);
	return tx->marked ? mark_terminate(tx, out, len) : len;
}
