/* SPDX-License-Identifier: BSD-2-Clause */
/* pieces - the bytes of a token, in several pieces. */
#include "modules/krb5/krb5.h"

uint32_t cfx_pieces_len(const struct pieces *p)
{
	size_t len = 0;

	for (int i = 0; i < p->n; i++)
		len += p->v[i].iov_len;
	return (uint32_t)len;
}

void cfx_pieces_add(struct pieces *p, void *data, size_t len)
{
	if (len)
		p->v[p->n++] = (struct iovec){ data, len };
}

/* The bytes at @at: as many as lie together there, @len at most. */
static uint8_t *together(const struct pieces *p, uint32_t at, uint32_t *len)
{
	int i = 0;

	while (at >= p->v[i].iov_len)
		at -= (uint32_t)p->v[i++].iov_len;
	*len = MIN(*len, (uint32_t)p->v[i].iov_len - at);
	return (uint8_t *)p->v[i].iov_base + at;
}

void cfx_pieces_get(const struct pieces *p, uint32_t at, void *buf,
		     uint32_t len)
{
	uint8_t *to = buf;

	while (len) {
		uint32_t n = len;
		const uint8_t *from = together(p, at, &n);

		memcpy(to, from, n);
		to += n;
		at += n;
		len -= n;
	}
}

void cfx_pieces_put(const struct pieces *p, uint32_t at, const void *buf,
		     uint32_t len)
{
	const uint8_t *from = buf;

	while (len) {
		uint32_t n = len;
		uint8_t *to = together(p, at, &n);

		memcpy(to, from, n);
		from += n;
		at += n;
		len -= n;
	}
}

void cfx_pieces_cut(struct pieces *p, uint32_t at, uint32_t len)
{
	struct pieces old = *p;

	p->n = 0;
	while (len) {
		uint32_t n = len;
		uint8_t *data = together(&old, at, &n);

		cfx_pieces_add(p, data, n);
		at += n;
		len -= n;
	}
}

void cfx_pieces_rotate(const struct pieces *p, uint32_t by)
{
	uint32_t left = cfx_pieces_len(p) - by, at = 0;
	uint8_t first[64];

	cfx_pieces_get(p, 0, first, by);
	while (left) {
		uint32_t n = left;
		uint8_t *from, *to;

		from = together(p, at + by, &n);
		to = together(p, at, &n);
		memmove(to, from, n);
		at += n;
		left -= n;
	}
	cfx_pieces_put(p, at, first, by);
}
