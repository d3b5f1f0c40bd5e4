/* SPDX-License-Identifier: BSD-2-Clause */
/* xdr - bounds-checked XDR cursors.  Pure. */
#include "lib/xdr.h"

void xdr_set_bad(struct xdr_in *x)
{
	x->bad = true;
	x->end = x->p;
	x->nnext = 0;
}

size_t xdr_left(const struct xdr_in *x)
{
	size_t left = (size_t)(x->end - x->p);

	for (uint32_t i = 0; i < x->nnext; i++)
		left += x->next[i].len;
	return left;
}

bool xdr_refill(struct xdr_in *x, size_t n)
{
	while (x->p == x->end && x->nnext > 0) {
		x->p = x->next->data;
		x->end = x->p + x->next->len;
		x->next++;
		x->nnext--;
	}
	if ((size_t)(x->end - x->p) >= n && !x->bad)
		return true;
	xdr_set_bad(x);
	return false;
}

bool xdr_get_bool(struct xdr_in *x)
{
	uint32_t v = xdr_get_u32(x);

	if (v > 1)
		xdr_set_bad(x);
	return v == 1;
}

uint32_t xdr_get_iov(struct xdr_in *x, uint32_t max, struct iovec *iov,
		     int *niov)
{
	uint32_t len = xdr_get_count(x, max);
	size_t left = (size_t)len + xdr_pad(len);
	size_t data = len;
	int room = *niov;
	int n = 0;

	*niov = 0;
	while (left > 0) {
		size_t here;

		if (x->p == x->end && !xdr_refill(x, 1))
			return 0;
		here = MIN((size_t)(x->end - x->p), left);
		if (data > 0) {
			if (n == room) {
				xdr_set_bad(x);
				return 0;
			}
			/* iovec has no const; the data is only read. */
			memcpy(&iov[n].iov_base, &x->p, sizeof(x->p));
			iov[n].iov_len = MIN(here, data);
			data -= iov[n++].iov_len;
		}
		x->p += here;
		left -= here;
	}
	*niov = n;
	return x->bad ? 0 : len;
}

void xdr_put_fixed(struct xdr_out *x, const void *data, uint32_t len)
{
	uint8_t *p;

	if (len == 0)
		return;
	p = xdr_reserve(x, (size_t)len + xdr_pad(len));
	if (!p)
		return;
	memcpy(p, data, len);
	memset(p + len, 0, xdr_pad(len));
}

void xdr_put_opaque(struct xdr_out *x, const void *data, uint32_t len)
{
	xdr_put_u32(x, len);
	xdr_put_fixed(x, data, len);
}
