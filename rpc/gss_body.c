/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Protected arguments and results (RFC 2203 sections 5.3.2.2 and 5.3.2.3),
 * where they are: the data of a WRITE or READ is not copied.
 */
#include "rpc/gss_priv.h"

#include "lib/stats.h"

STAT(gss_bad_args, "calls whose protected arguments were not as their client "
		   "made them");

static int refuse_body(void)
{
	stat_inc(gss_bad_args);
	return -1;
}

/* The number stands before the arguments; sets @segs to these. */
static int take_args(struct rpc_call *call, const struct iovec *iov, int n,
		     struct xdr_seg segs[MSG_MAX_SEGS])
{
	/* Pieces end at multiples of four bytes. */
	while (n > 0 && iov->iov_len == 0) {
		iov++;
		n--;
	}
	if (n == 0 || iov->iov_len < 4 ||
	    xdr_word(iov->iov_base) != gss_call_of(call)->seq)
		return refuse_body();
	for (int i = 0; i < n; i++)
		segs[i] = (struct xdr_seg){ iov[i].iov_base,
					    (uint32_t)iov[i].iov_len };
	segs[0].data += 4;
	segs[0].len -= 4;
	return n;
}

int gss_integrity_unwrap(struct rpc_call *call, struct xdr_in *x,
			 struct xdr_seg segs[MSG_MAX_SEGS])
{
	const struct gss_context *c = gss_call_of(call)->context;
	struct iovec iov[MSG_MAX_SEGS];
	int n = MSG_MAX_SEGS;
	struct xdr_view mic;

	xdr_get_iov(x, MSG_MAX_LEN, iov, &n);
	mic = xdr_get_opaque(x, GSS_MIC_MAX);
	if (!xdr_ok(x) || !c->mech->check(c->keys, iov, n, mic))
		return refuse_body();
	return take_args(call, iov, n, segs);
}

int gss_privacy_unwrap(struct rpc_call *call, struct xdr_in *x,
		       struct xdr_seg segs[MSG_MAX_SEGS])
{
	const struct gss_context *c = gss_call_of(call)->context;
	struct iovec iov[MSG_MAX_SEGS];
	int n = MSG_MAX_SEGS;

	xdr_get_iov(x, MSG_MAX_LEN, iov, &n);
	n = xdr_ok(x) ? c->mech->unwrap(c->keys, iov, n) : -1;
	return n < 0 ? refuse_body() : take_args(call, iov, n, segs);
}

/* Sets @out to the number, which lies at @seq, and the results; returns the
 * sum of the lengths. */
static uint32_t all_of(const struct rpc_wrapping *w, uint8_t *seq,
		       struct iovec out[4])
{
	uint32_t len = 4;

	out[0] = (struct iovec){ seq, 4 };
	for (unsigned i = 0; i < ARRAY_SIZE(w->iov); i++) {
		out[i + 1] = w->iov[i];
		len += (uint32_t)w->iov[i].iov_len;
	}
	return len;
}

bool gss_integrity_wrap(struct rpc_call *call, struct rpc_wrapping *w)
{
	const struct gss_context *c = gss_call_of(call)->context;
	uint8_t *p = xdr_reserve(&w->before, 8), mic[GSS_MIC_MAX];
	struct iovec iov[4];
	uint32_t len;
	int n;

	xdr_set_word(p + 4, gss_call_of(call)->seq);
	len = all_of(w, p + 4, iov);
	xdr_set_word(p, len);
	n = c->mech->sign(c->keys, iov, ARRAY_SIZE(iov), mic);
	if (n < 0 || len % 4)
		return false;
	xdr_put_opaque(&w->after, mic, (uint32_t)n);
	return true;
}

bool gss_privacy_wrap(struct rpc_call *call, struct rpc_wrapping *w)
{
	const struct gss_context *c = gss_call_of(call)->context;
	uint32_t front = c->mech->front, len;
	uint8_t *p = xdr_reserve(&w->before, 4 + front + 4);
	uint8_t back[GSS_BACK_MAX];
	struct iovec iov[4];
	int n;

	xdr_set_word(p + 4 + front, gss_call_of(call)->seq);
	len = all_of(w, p + 4 + front, iov);
	n = c->mech->wrap(c->keys, iov, ARRAY_SIZE(iov), p + 4, back);
	if (n < 0 || len % 4)
		return false;
	xdr_set_word(p, front + len + (uint32_t)n);
	xdr_put_fixed(&w->after, back, (uint32_t)n);
	return true;
}
