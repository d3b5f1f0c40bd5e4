/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xdr - bounds-checked XDR (RFC 4506) cursors.  Pure.
 *
 * A cursor has one sticky error.  After the first bad read every later
 * read returns zero, so a decoder reads all its fields in wire order and
 * the caller asks xdr_ok() once.  Nothing here allocates.
 *
 * An input is a list of segments, because a message that arrived over
 * RDMA has chunks spliced into it (RFC 8166 section 3.4).  Every segment
 * but the last is a multiple of four bytes long.  A value is always read
 * from one place: strings and opaques come back as views into the
 * segment, and one that straddles two segments is bad, except through
 * xdr_get_iov(), which is for the data that chunks carry.
 *
 * Any thread; a cursor belongs to one thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include <endian.h>

#include "lib/util.h"

struct xdr_seg {
	const uint8_t	*data;
	uint32_t	 len;
};

struct xdr_in {
	const uint8_t		*p;
	const uint8_t		*end;		/* of the current segment */
	const struct xdr_seg	*next;		/* borrowed: segments to come */
	uint32_t		 nnext;
	bool			 bad;
};

/* Bytes that stay where they are: valid while the message lives. */
struct xdr_view {
	const uint8_t	*data;
	uint32_t	 len;
};

/* A view of a string. */
static inline struct xdr_view xdr_text(const char *s)
{
	return (struct xdr_view){ (const uint8_t *)s, (uint32_t)strlen(s) };
}

/* An input of one piece of memory. */
static inline void xdr_in_init(struct xdr_in *x, const void *data, size_t len)
{
	x->p = data;
	x->end = x->p + len;
	x->next = NULL;
	x->nnext = 0;
	x->bad = false;
}

/* An input of @n segments; @segs is borrowed while the cursor is used. */
static inline void xdr_in_init_segs(struct xdr_in *x,
				    const struct xdr_seg *segs, uint32_t n)
{
	if (unlikely(n == 0)) {
		xdr_in_init(x, "", 0);
		return;
	}
	x->p = segs[0].data;
	x->end = x->p + segs[0].len;
	x->next = segs + 1;
	x->nnext = n - 1;
	x->bad = false;
}

static inline bool xdr_ok(const struct xdr_in *x)
{
	return !x->bad;
}

/* Bytes not read yet, in all segments. */
size_t xdr_left(const struct xdr_in *x);

/* The pad that follows @len bytes. */
static inline uint32_t xdr_pad(uint32_t len)
{
	return -len & 3;
}

/* Sets bad, and nothing is left. */
void xdr_set_bad(struct xdr_in *x);
/* Slow path of the getters: makes @n bytes contiguous at x->p, or sets bad. */
bool xdr_refill(struct xdr_in *x, size_t n);

static inline uint32_t xdr_get_u32(struct xdr_in *x)
{
	uint32_t v;

	if (unlikely((size_t)(x->end - x->p) < 4) && !xdr_refill(x, 4))
		return 0;
	memcpy(&v, x->p, 4);
	x->p += 4;
	return be32toh(v);
}

/* The word at @p, which is there. */
static inline uint32_t xdr_word(const void *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return be32toh(v);
}

/* Puts a word at @p; the caller has checked the room. */
static inline void xdr_set_word(void *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, 4);
}

/* xdr_get_u32() for each, in this order; one check if all are in one place. */
static inline void xdr_get_three(struct xdr_in *x, uint32_t *a, uint32_t *b,
				 uint32_t *c)
{
	const uint8_t *p = x->p;

	if (likely((size_t)(x->end - p) >= 12)) {
		*a = xdr_word(p);
		*b = xdr_word(p + 4);
		*c = xdr_word(p + 8);
		x->p = p + 12;
	} else {
		*a = xdr_get_u32(x);
		*b = xdr_get_u32(x);
		*c = xdr_get_u32(x);
	}
}

static inline uint64_t xdr_get_u64(struct xdr_in *x)
{
	const uint8_t *p = x->p;
	uint64_t v;

	if (likely((size_t)(x->end - p) >= 8)) {
		memcpy(&v, p, 8);
		x->p = p + 8;
		return be64toh(v);
	}
	v = xdr_get_u32(x);
	return v << 32 | xdr_get_u32(x);
}

/* Exactly 0 or 1; anything else is bad (RFC 4506 section 4.4). */
bool xdr_get_bool(struct xdr_in *x);
/* A count or enum of at most @max; more is bad, never clamped. */
static inline uint32_t xdr_get_count(struct xdr_in *x, uint32_t max)
{
	uint32_t v = xdr_get_u32(x);

	if (likely(v <= max))
		return v;
	xdr_set_bad(x);
	return 0;
}

/* opaque[len]: also skips the pad. */
static inline struct xdr_view xdr_get_fixed(struct xdr_in *x, uint32_t len)
{
	size_t padded = (size_t)len + xdr_pad(len);
	struct xdr_view v = { NULL, 0 };

	if (len == 0 && !x->bad) {
		v.data = x->p;
		return v;
	}
	if ((size_t)(x->end - x->p) < padded && !xdr_refill(x, padded))
		return v;
	v.data = x->p;
	v.len = len;
	x->p += padded;
	return v;
}

/* opaque<max> or string<max>. */
static inline struct xdr_view xdr_get_opaque(struct xdr_in *x, uint32_t max)
{
	return xdr_get_fixed(x, xdr_get_count(x, max));
}

/*
 * opaque<max> as up to *@niov pieces, without a copy; sets *@niov to the
 * number used and returns the length.  Too many pieces is bad.
 */
uint32_t xdr_get_iov(struct xdr_in *x, uint32_t max, struct iovec *iov,
		     int *niov);

/* An output into one piece of memory.  Overflow is sticky like above. */
struct xdr_out {
	uint8_t	*p;
	uint8_t	*start;
	uint8_t	*end;
	bool	 bad;
};

static inline void xdr_out_init(struct xdr_out *x, void *data, size_t len)
{
	x->p = x->start = data;
	x->end = x->start + len;
	x->bad = false;
}

static inline size_t xdr_out_len(const struct xdr_out *x)
{
	return (size_t)(x->p - x->start);
}

/* Reserves @n bytes, a multiple of four; NULL and bad when they don't fit. */
static inline uint8_t *xdr_reserve(struct xdr_out *x, size_t n)
{
	uint8_t *p = x->p;

	if (unlikely((size_t)(x->end - p) < n)) {
		x->bad = true;
		x->end = x->p;		/* no later, smaller item fits either */
		return NULL;
	}
	x->p += n;
	return p;
}

static inline void xdr_put_u32(struct xdr_out *x, uint32_t v)
{
	uint8_t *p = xdr_reserve(x, 4);

	if (likely(p != NULL))
		xdr_set_word(p, v);
}

static inline void xdr_put_u64(struct xdr_out *x, uint64_t v)
{
	uint8_t *p = xdr_reserve(x, 8);

	if (likely(p != NULL)) {
		v = htobe64(v);
		memcpy(p, &v, 8);
	}
}

static inline void xdr_put_bool(struct xdr_out *x, bool v)
{
	xdr_put_u32(x, v);
}

/* opaque[len] with zero pad. */
void xdr_put_fixed(struct xdr_out *x, const void *data, uint32_t len);
/* opaque<> or string<>: length, bytes, zero pad. */
void xdr_put_opaque(struct xdr_out *x, const void *data, uint32_t len);

static inline void xdr_put_string(struct xdr_out *x, const char *s)
{
	xdr_put_opaque(x, s, (uint32_t)strlen(s));
}

/*
 * A cursor of either direction.  One function describes a message that clients
 * and servers both have, and reads or writes it, field by field.  It is inline,
 * so each use has the code of its direction alone.
 */
struct xdr_both {
	struct xdr_in  *in;		/* NULL: it writes to @out */
	struct xdr_out *out;
};

#define XDR_BOTH	static inline __attribute__((always_inline))

/* A field @v, which an output does not change. */
#define xdr_both(b, v, get, put) do { \
	if ((b).in) \
		(v) = get; \
	else \
		put; \
} while (0)
#define both_u32(b, v)		xdr_both(b, v, xdr_get_u32((b).in), \
					 xdr_put_u32((b).out, (uint32_t)(v)))
#define both_u64(b, v)		xdr_both(b, v, xdr_get_u64((b).in), \
					 xdr_put_u64((b).out, (v)))
#define both_bool(b, v)		xdr_both(b, v, xdr_get_bool((b).in), \
					 xdr_put_bool((b).out, (v)))
/* An input's maximum, as xdr_get_count() and xdr_get_opaque() have it. */
#define both_count(b, v, max)	xdr_both(b, v, xdr_get_count((b).in, max), \
					 xdr_put_u32((b).out, (v)))
#define both_view(b, v, max)	xdr_both(b, v, xdr_get_opaque((b).in, max), \
					 xdr_put_opaque((b).out, (v).data, \
							(v).len))

/* Has an output check its room once, for @n bytes; @room becomes its cursor. */
XDR_BOTH bool both_room(struct xdr_both *b, struct xdr_out *room, size_t n)
{
	uint8_t *p;

	if (b->in)
		return true;
	p = xdr_reserve(b->out, n);
	if (unlikely(!p))
		return false;
	xdr_out_init(room, p, n);
	b->out = room;
	return true;
}

/* The message of an output, for the function that describes it. */
static inline void *xdr_output(const void *message)
{
	return (void *)(uintptr_t)message;
}
