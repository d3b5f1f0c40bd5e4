/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout_reply - holds every byte of an answer, of the memory around the
 * chunks, and of changed files against the model.
 */
#include "tests/server/layout_trial.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "lib/util.h"
#include "wire/nfs3.h"
#include "tests/server/harness.h"
#include "tests/server/rdma_rig.h"

enum { FATTR_SIZE = 20, FATTR_TIMES = 60,	/* RFC 1813 section 2.5 */
       /* Of a reply, behind the RPC header and the status. */
       RESULT = LAYOUT_RPC_REPLY + 4 };

uint8_t trial_image[LAYOUT_AREA];

static uint8_t want[TRIAL_BYTES], got[TRIAL_BYTES];

static const char *differ(const char *format, ...)
	__attribute__((format(printf, 1, 2)));

static const char *differ(const char *format, ...)
{
	static char why[2][256];	/* the last two */
	static unsigned at;
	va_list args;

	at = !at;
	va_start(args, format);
	vsnprintf(why[at], sizeof(why[at]), format, args);
	va_end(args);
	return why[at];
}

static void gather(uint8_t *to, const struct run *r, uint32_t len)
{
	for (unsigned i = r->first; i < r->first + r->n; i++) {
		uint32_t n = MIN(trial.piece[i].len, len);

		memcpy(to, world.area + trial.piece[i].at, n);
		to += n;
		len -= n;
	}
}

/* Bytes of the reply that the model does not know. */
static void forgive(uint32_t from, uint32_t len)
{
	memcpy(want + from, got + from, len);
}

static void want_word(uint32_t v)
{
	struct xdr_out x;

	xdr_out_init(&x, want + trial.want_len, 4);
	xdr_put_u32(&x, v);
	trial.want_len += 4;
}

static void want_bytes(const void *p, uint32_t len)
{
	memcpy(want + trial.want_len, p, len);
	trial.want_len += len;
	while (trial.want_len % 4)
		want[trial.want_len++] = 0;
}

static void want_any(uint32_t len)
{
	forgive(trial.want_len, len);
	trial.want_len += len;
}

static void want_attr(const uint8_t attr[LAYOUT_ATTRS])
{
	want_bytes(attr, FATTR_TIMES);
	want_any(LAYOUT_ATTRS - FATTR_TIMES);
}

/* wcc_data; the size afterwards is known of a file. */
static void want_wcc(const uint32_t *size)
{
	want_word(1);
	want_any(24);
	want_word(1);
	want_any(FATTR_SIZE);
	if (size) {
		want_word(0);
		want_word(*size);
	} else {
		want_any(8);
	}
	want_any(LAYOUT_ATTRS - FATTR_SIZE - 8);
}

/* The result that is eligible. */
static const uint8_t *result_bytes(void)
{
	static uint8_t link[LAYOUT_INLINE];

	if (trial.l->proc != LAYOUT_READLINK)
		return world.data + MIN(trial.l->offset, world.facts.file_size);
	for (uint32_t i = 0; i < trial.e.result; i++)
		link[i] = layout_letter(i);
	return link;
}

static void want_result(void)
{
	want_word(trial.e.result);
	if (trial.e.written == 0)
		want_bytes(result_bytes(), trial.e.result);
}

static void want_read(void)
{
	uint32_t size = world.facts.file_size;

	want_word(1);
	want_attr(world.file_attr);
	want_word(trial.e.result);
	want_word(trial.l->offset >= size ||
		  trial.e.result == size - trial.l->offset);
	want_result();
}

static void want_ok(void)
{
	uint32_t len = MIN(trial.l->len, LAYOUT_DATA_MAX);

	if (trial.l->proc == LAYOUT_NULL)
		return;
	want_word(NFS3_OK);
	switch (trial.l->proc) {
	case LAYOUT_GETATTR:
		want_attr(world.file_attr);
		break;
	case LAYOUT_READ:
		want_read();
		break;
	case LAYOUT_READLINK:
		want_word(1);
		want_attr(world.link_attr[trial.l->target]);
		want_result();
		break;
	case LAYOUT_WRITE:
		want_wcc(&world.shadow_size);
		want_word(len);
		want_word(2);
		want_any(8);			/* the verifier */
		break;
	case LAYOUT_SYMLINK:
		want_word(1);
		want_word(world.facts.fh_len);
		want_any(ALIGN_UP(world.facts.fh_len, 4u));
		want_word(1);
		want_any(LAYOUT_ATTRS);
		want_wcc(NULL);
		break;
	default:
		want_bytes(world.dir_reply[trial.l->target] + 4,
			   world.facts.dir_reply[trial.l->target] - RESULT);
		forgive(RESULT + 4 + FATTR_TIMES, LAYOUT_ATTRS - FATTR_TIMES);
	}
}

/* The whole RPC reply except a result that goes to a Write chunk; got[] has the
 * received reply. */
static void make_want(void)
{
	trial.want_len = 0;
	want_word(trial.xid);
	want_word(1);				/* a reply, */
	want_word(0);				/* accepted, */
	want_word(0);				/* no verifier */
	want_word(0);
	want_word(trial.e.answer == LAYOUT_GARBAGE ? 4 : 0);
	if (trial.e.answer == LAYOUT_OK)
		want_ok();
	require(trial.want_len == trial.e.rest);
}

static const char *compare(const char *what, const uint8_t *is,
			   const uint8_t *should, uint32_t len)
{
	uint32_t i = 0;

	if (memcmp(is, should, len) == 0)
		return NULL;
	while (is[i] == should[i])
		i++;
	return differ("%s: byte %u of %u is %02x and not %02x", what, i, len,
		      is[i], should[i]);
}

/* The area is unchanged except the bytes that the reply says were written. */
static const char *judge_memory(void)
{
	if (trial.e.answer == LAYOUT_OK && trial.e.written > 0)
		trial_scatter(trial_image, &trial.write[0], result_bytes(),
			      trial.e.written);
	if (trial.e.answer != LAYOUT_ERR_CHUNK && trial.e.nomsg)
		trial_scatter(trial_image, &trial.reply, want, trial.e.rest);
	return compare("memory", world.area, trial_image, trial.used);
}

/* The header's length in an answer that has one; 0: it is another. */
static uint32_t make_header(uint8_t *out, const uint8_t *answer)
{
	const struct layout_expect *e = &trial.e;
	struct xdr_out x;

	xdr_out_init(&x, out, LAYOUT_INLINE);
	xdr_put_u32(&x, trial.xid);
	xdr_put_u32(&x, 1);
	memcpy(xdr_reserve(&x, 4), answer + 8, 4);	/* credits */
	if (e->answer == LAYOUT_ERR_CHUNK) {
		xdr_put_u32(&x, RPCRDMA_ERROR);
		xdr_put_u32(&x, RPCRDMA_ERR_CHUNK);
	} else {
		xdr_put_u32(&x, e->nomsg ? RPCRDMA_NOMSG : RPCRDMA_MSG);
		xdr_put_u32(&x, 0);
		trial_put_lists(&x, false, e->written, e->nomsg ? e->rest : 0);
	}
	require(!x.bad);
	return (uint32_t)xdr_out_len(&x);
}

static const char *judge_handle(void)
{
	int handle = layout_invalidated(trial.l->peer);

	if (handle == -1)
		return NULL;
	if (handle < 0 || !layout_may_invalidate(trial.l->peer))
		return differ("a handle is invalidated that may not be");
	for (unsigned i = 0; i < trial.npieces; i++)
		if (trial.piece[i].handle == (unsigned)handle)
			return NULL;
	return differ("a handle is invalidated that the call has not");
}

const char *trial_judge(const uint8_t *answer, int n)
{
	uint8_t header[LAYOUT_INLINE];
	const char *wrong;
	uint32_t len, body;

	if (n == -ETIMEDOUT)
		return differ("no answer");
	if (n < 0)
		return differ("the connection ended");
	/* Before the handle gets another number. */
	len = make_header(header, answer);
	wrong = judge_handle();
	if (wrong)
		return wrong;
	body = trial.e.answer == LAYOUT_ERR_CHUNK || trial.e.nomsg ? 0 :
	       trial.e.rest;
	if (n < 20 || (wrong = compare("header", answer, header,
				       MIN(len, (uint32_t)n))))
		return wrong ? wrong : differ("an answer of %d bytes", n);
	if ((uint32_t)n != len + body)
		return differ("an answer of %d bytes and not %u", n,
			      len + body);
	if (trial.e.answer != LAYOUT_ERR_CHUNK) {
		if (trial.e.nomsg)
			gather(got, &trial.reply, trial.e.rest);
		else
			memcpy(got, answer + len, body);
		make_want();
		wrong = compare("reply", got, want, trial.e.rest);
	}
	return wrong ? wrong : judge_memory();
}

/* ---- changes that a call made */

void trial_note_write(void)
{
	uint32_t len = MIN(trial.l->len, LAYOUT_DATA_MAX);

	if (trial.l->proc != LAYOUT_WRITE || !trial.e.done)
		return;
	for (uint32_t i = 0; i < len; i++)
		world.shadow[trial.l->offset + i] = trial_data_byte(i);
	if (len > 0 && trial.l->offset + len > world.shadow_size)
		world.shadow_size = trial.l->offset + len;
}

static const char *look_at_copy(void)
{
	uint32_t from = trial.l->offset > 16 ? trial.l->offset - 16 : 0;
	uint32_t len = MIN(trial.l->len, LAYOUT_DATA_MAX) + 32;
	const char *wrong;

	if (from >= world.shadow_size)
		return NULL;
	len = MIN(len, world.shadow_size - from);
	len = MIN(len, LAYOUT_DATA_MAX);
	wrong = compare("the file", plain_read(&world.copy, from, len),
			world.shadow + from, len);
	/* The next case is another one. */
	memcpy(world.shadow + from, plain_read(&world.copy, from, len), len);
	return wrong;
}

static const char *look_at_link(void)
{
	struct xdr_out *x = plain_begin(NFSPROC3_LOOKUP, &world.top);
	struct nfs3_fh fh;
	struct xdr_view v;
	struct xdr_in *in;
	uint32_t len;

	xdr_put_opaque(x, "link", 4);
	in = plain_send();
	if ((xdr_get_u32(in) == NFS3_OK) != trial.e.done)
		return differ("the link is %s", trial.e.done ? "not there" :
							   "there");
	if (!trial.e.done)
		return NULL;
	fh = harness_get_fh(in);
	plain_begin(NFSPROC3_READLINK, &fh);
	in = plain_send();
	xdr_get_fixed(in, 4 + 4 + LAYOUT_ATTRS);
	v = xdr_get_opaque(in, LAYOUT_INLINE);
	len = v.len;
	for (uint32_t i = 0; i < trial.l->len; i++)
		got[i] = layout_letter(i);
	if (len != trial.l->len)
		return differ("a link of %u bytes", len);
	return compare("the link", v.data, got, len);
}

const char *trial_look(void)
{
	const char *wrong;

	if (trial.l->proc == LAYOUT_WRITE)
		return look_at_copy();
	if (trial.l->proc != LAYOUT_SYMLINK)
		return NULL;
	wrong = look_at_link();
	xdr_put_opaque(plain_begin(NFSPROC3_REMOVE, &world.top), "link", 4);
	plain_send();
	return wrong;
}

