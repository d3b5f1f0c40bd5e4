/* SPDX-License-Identifier: BSD-2-Clause */
/* token - checksums and wrapped data as tokens (RFC 4121 section 4.2). */
#include "modules/krb5/krb5.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

enum { BY_ACCEPTOR = 1, IS_SEALED = 2 };
/* Receivers ignore the others (section 4.2.2). */
enum { KNOWN_FLAGS = 7 };
/* RRC: the most bytes that are moved from the end to the front. */
enum { ROTATED_MAX = 64 };

static void put_token_header(const struct keys *k, uint8_t h[HEADER],
			     uint8_t kind, uint8_t flags)
{
	_Atomic uint64_t *sent = (_Atomic uint64_t *)(uintptr_t)&k->sent;
	uint64_t seq = htobe64(atomic_fetch_add_explicit(sent, 1,
						memory_order_relaxed));

	h[0] = kind;
	h[1] = 4;
	h[2] = k->flags | BY_ACCEPTOR | flags;
	memset(h + 3, 0xff, 5);
	memcpy(h + 8, &seq, 8);
}

/* The checksum covers the header, behind the bytes. */
static bool mic_of(const struct keys *k, const struct way *w,
		   const struct iovec *iov, int n, const uint8_t h[HEADER],
		   uint8_t sum[EVP_MAX_MD_SIZE])
{
	struct pieces p = { .n = 0 };

	if (n >= PIECES_MAX)
		return false;
	for (int i = 0; i < n; i++)
		cfx_pieces_add(&p, iov[i].iov_base, iov[i].iov_len);
	cfx_pieces_add(&p, (void *)(uintptr_t)h, HEADER);
	return cfx_hmac(w->mic, p.v, p.n, sum);
}

int cfx_sign(const void *keys, const struct iovec *iov, int n,
	      uint8_t mic[GSS_MIC_MAX])
{
	const struct keys *k = keys;
	uint8_t sum[EVP_MAX_MD_SIZE];

	put_token_header(k, mic, 4, 0);
	if (!mic_of(k, &k->ours, iov, n, mic, sum))
		return -1;
	memcpy(mic + HEADER, sum, k->type->sum_len);
	return (int)(HEADER + k->type->sum_len);
}

bool cfx_check(const void *keys, const struct iovec *iov, int n,
		struct xdr_view mic)
{
	static const uint8_t filler[5] = { 0xff, 0xff, 0xff, 0xff, 0xff };
	const struct keys *k = keys;
	uint8_t sum[EVP_MAX_MD_SIZE];
	const uint8_t *h = mic.data;

	/* One by the acceptor is the server's own, sent back to it. */
	return mic.len == HEADER + k->type->sum_len && h[0] == 4 && h[1] == 4 &&
	       (h[2] & KNOWN_FLAGS) == k->flags &&
	       memcmp(h + 3, filler, 5) == 0 &&
	       mic_of(k, &k->theirs, iov, n, h, sum) &&
	       CRYPTO_memcmp(sum, h + HEADER, k->type->sum_len) == 0;
}

/* Header and confounder go before the data; behind it the header again, and the
 * checksum.  All but the first header and the checksum is encrypted. */
int cfx_wrap(const void *keys, const struct iovec *iov, int n,
	      uint8_t *front, uint8_t back[GSS_BACK_MAX])
{
	const struct keys *k = keys;
	struct pieces p = { .n = 0 };
	uint8_t sum[EVP_MAX_MD_SIZE];

	if (n > PIECES_MAX - 2 || RAND_bytes(front + HEADER, BLOCK) != 1)
		return -1;
	put_token_header(k, front, 5, IS_SEALED);
	memset(front + 4, 0, 4);		/* EC, RRC */
	memcpy(back, front, HEADER);
	cfx_pieces_add(&p, front + HEADER, BLOCK);
	for (int i = 0; i < n; i++)
		cfx_pieces_add(&p, iov[i].iov_base, iov[i].iov_len);
	cfx_pieces_add(&p, back, HEADER);
	if (!cfx_encrypt(k, &p, sum))
		return -1;
	memcpy(back + HEADER, sum, k->type->sum_len);
	return (int)(HEADER + k->type->sum_len);
}

/* Takes the header off, and undoes the rotation.  Sets *@extra to EC. */
static bool open_token(const struct keys *k, struct pieces *p,
		       uint8_t h[HEADER], uint32_t *extra)
{
	uint32_t len = cfx_pieces_len(p), rotated;

	if (len < HEADER + BLOCK + HEADER + k->type->sum_len)
		return false;
	cfx_pieces_get(p, 0, h, HEADER);
	if (h[0] != 5 || h[1] != 4 || h[3] != 0xff ||
	    (h[2] & KNOWN_FLAGS) != (k->flags | IS_SEALED))
		return false;
	*extra = xdr_word(h + 4) >> 16;
	rotated = xdr_word(h + 4) & 0xffff;
	len -= HEADER;
	cfx_pieces_cut(p, HEADER, len);
	rotated %= len;
	if (rotated > ROTATED_MAX ||
	    len < BLOCK + *extra + HEADER + k->type->sum_len)
		return false;
	if (rotated)
		cfx_pieces_rotate(p, rotated);
	return true;
}

int cfx_unwrap(const void *keys, struct iovec *iov, int n)
{
	const struct keys *k = keys;
	uint8_t h[HEADER], copy[HEADER], sum[SUM_MAX];
	struct pieces p = { .n = 0 };
	uint32_t extra, len;

	if (n > PIECES_MAX)
		return -1;
	for (int i = 0; i < n; i++)
		cfx_pieces_add(&p, iov[i].iov_base, iov[i].iov_len);
	if (!open_token(k, &p, h, &extra))
		return -1;
	len = cfx_pieces_len(&p) - k->type->sum_len;
	cfx_pieces_get(&p, len, sum, k->type->sum_len);
	cfx_pieces_cut(&p, 0, len);
	if (!cfx_decrypt(k, &p, sum))
		return -1;
	cfx_pieces_get(&p, len - HEADER, copy, HEADER);
	memset(h + 6, 0, 2);			/* RRC */
	if (memcmp(copy, h, HEADER) != 0)
		return -1;
	cfx_pieces_cut(&p, BLOCK, len - BLOCK - extra - HEADER);
	memcpy(iov, p.v, (size_t)p.n * sizeof(*iov));
	return p.n;
}
