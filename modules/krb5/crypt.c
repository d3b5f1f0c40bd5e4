/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * crypt - AES with ciphertext stealing, and a checksum, over bytes in pieces
 * and where they are (RFC 3962 section 5, RFC 8009 section 5).
 *
 * All blocks but the last two are CBC's.  The last two are swapped, and the one
 * that is the last then is cut to the length of the whole.
 */
#include "modules/krb5/krb5.h"

#include <openssl/crypto.h>

/* Bytes that are encrypted and summed at a time: they stay in the cache. */
#define CHUNK	(16u << 10)

bool cfx_hmac(EVP_MAC_CTX *key, const struct iovec *iov, int n,
	       uint8_t sum[EVP_MAX_MD_SIZE])
{
	EVP_MAC_CTX *mac = EVP_MAC_CTX_dup(key);
	bool ok = mac != NULL;
	size_t len;

	for (int i = 0; ok && i < n; i++)
		ok = EVP_MAC_update(mac, iov[i].iov_base, iov[i].iov_len) == 1;
	ok = ok && EVP_MAC_final(mac, sum, &len, EVP_MAX_MD_SIZE) == 1;
	EVP_MAC_CTX_free(mac);
	return ok;
}

/* One pass over the bytes of a token. */
struct pass {
	EVP_CIPHER_CTX *cbc;
	EVP_MAC_CTX    *mac;
	bool		encrypts;
	bool		sums_after;	/* the bytes that the cipher made */
	bool		ok;
};

static void start_pass(struct pass *p, const struct keys *k, bool encrypts)
{
	const struct way *w = encrypts ? &k->ours : &k->theirs;
	static const uint8_t zeros[BLOCK];

	p->encrypts = encrypts;
	/* RFC 3962: of the plain bytes; RFC 8009: of the encrypted ones. */
	p->sums_after = encrypts == k->type->is_sha2;
	p->cbc = EVP_CIPHER_CTX_new();
	p->mac = EVP_MAC_CTX_dup(w->mac);
	p->ok = p->cbc && p->mac &&
		EVP_CipherInit_ex2(p->cbc, k->cbc, w->key, zeros, encrypts,
				   NULL) == 1 &&
		EVP_CIPHER_CTX_set_padding(p->cbc, 0) == 1;
	/* ... behind the cipher's state. */
	if (p->ok && k->type->is_sha2)
		p->ok = EVP_MAC_update(p->mac, zeros, BLOCK) == 1;
}

static void sum(struct pass *p, const uint8_t *data, uint32_t len)
{
	p->ok = p->ok && EVP_MAC_update(p->mac, data, len) == 1;
}

static void cipher(struct pass *p, uint8_t *data, uint32_t len)
{
	int n;

	p->ok = p->ok && EVP_CipherUpdate(p->cbc, data, &n, data,
					  (int)len) == 1 && n == (int)len;
}

/* Whole blocks. */
static void run_blocks(struct pass *p, uint8_t *data, uint32_t len)
{
	if (!p->sums_after)
		sum(p, data, len);
	cipher(p, data, len);
	if (p->sums_after)
		sum(p, data, len);
}

/* The first @len bytes, in whole blocks. */
static void run_bulk(struct pass *p, const struct pieces *t, uint32_t len)
{
	uint32_t base = 0, at = 0;	/* of the piece, in all */

	for (int i = 0; i < t->n && at < len && p->ok; i++) {
		uint8_t *data = t->v[i].iov_base, block[BLOCK];
		uint32_t end = base + (uint32_t)t->v[i].iov_len;
		uint32_t stop = MIN(end, len);

		while (at < stop && p->ok) {
			uint32_t n = MIN(stop - at, CHUNK) & ~(BLOCK - 1);

			if (n) {
				run_blocks(p, data + (at - base), n);
				at += n;
				continue;
			}
			/* It continues in the next piece. */
			cfx_pieces_get(t, at, block, BLOCK);
			run_blocks(p, block, BLOCK);
			cfx_pieces_put(t, at, block, BLOCK);
			at += BLOCK;
		}
		base = end;
	}
}

/* The last 17 to 32 bytes, at @at. */
static void encrypt_tail(struct pass *p, const struct pieces *t, uint32_t at,
			 uint32_t len)
{
	uint8_t in[2 * BLOCK] = { 0 }, out[2 * BLOCK];

	cfx_pieces_get(t, at, in, len);
	if (!p->sums_after)
		sum(p, in, len);
	cipher(p, in, sizeof(in));
	memcpy(out, in + BLOCK, BLOCK);
	memcpy(out + BLOCK, in, BLOCK);
	if (p->sums_after)
		sum(p, out, len);
	cfx_pieces_put(t, at, out, len);
}

static bool decrypt_block(const struct keys *k, const uint8_t *in, uint8_t *out)
{
	EVP_CIPHER_CTX *ecb = EVP_CIPHER_CTX_new();
	int n = 0;
	bool ok = ecb &&
		  EVP_DecryptInit_ex2(ecb, k->ecb, k->theirs.key, NULL,
				      NULL) == 1 &&
		  EVP_CIPHER_CTX_set_padding(ecb, 0) == 1 &&
		  EVP_DecryptUpdate(ecb, out, &n, in, BLOCK) == 1;

	EVP_CIPHER_CTX_free(ecb);
	return ok && n == BLOCK;
}

static void decrypt_tail(struct pass *p, const struct keys *k,
			 const struct pieces *t, uint32_t at, uint32_t len)
{
	uint8_t in[2 * BLOCK], last[BLOCK], out[2 * BLOCK];
	uint32_t rest = len - BLOCK;

	cfx_pieces_get(t, at, in, len);
	if (!p->sums_after)
		sum(p, in, len);
	p->ok = p->ok && decrypt_block(k, in, last);
	if (!p->ok)
		return;
	/* The end of the block before was stolen: it is in the last one. */
	memcpy(in + len, last + rest, BLOCK - rest);
	memcpy(out, in + BLOCK, BLOCK);
	cipher(p, out, BLOCK);
	for (uint32_t i = 0; i < rest; i++)
		out[BLOCK + i] = last[i] ^ in[BLOCK + i];
	if (p->sums_after)
		sum(p, out, len);
	cfx_pieces_put(t, at, out, len);
}

static bool end_pass(struct pass *p, uint8_t out[EVP_MAX_MD_SIZE])
{
	size_t len;

	p->ok = p->ok && EVP_MAC_final(p->mac, out, &len,
				       EVP_MAX_MD_SIZE) == 1;
	EVP_MAC_CTX_free(p->mac);
	EVP_CIPHER_CTX_free(p->cbc);
	return p->ok;
}

static uint32_t bulk_of(uint32_t len)
{
	return (len - 1) / BLOCK * BLOCK - BLOCK;
}

bool cfx_encrypt(const struct keys *k, const struct pieces *t,
		  uint8_t out[EVP_MAX_MD_SIZE])
{
	uint32_t len = cfx_pieces_len(t), bulk = bulk_of(len);
	struct pass p;

	start_pass(&p, k, true);
	run_bulk(&p, t, bulk);
	encrypt_tail(&p, t, bulk, len - bulk);
	return end_pass(&p, out);
}

bool cfx_decrypt(const struct keys *k, const struct pieces *t,
		  const uint8_t *want)
{
	uint32_t len = cfx_pieces_len(t), bulk = bulk_of(len);
	uint8_t is[EVP_MAX_MD_SIZE];
	struct pass p;

	start_pass(&p, k, false);
	run_bulk(&p, t, bulk);
	decrypt_tail(&p, k, t, bulk, len - bulk);
	return end_pass(&p, is) &&
	       CRYPTO_memcmp(is, want, k->type->sum_len) == 0;
}
