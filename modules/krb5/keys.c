/* SPDX-License-Identifier: BSD-2-Clause */
/* keys - the keys of a context, derived for each use (RFC 3961 section 5.1, RFC
 * 8009 section 3). */
#include "modules/krb5/krb5.h"

#include <stdlib.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/kdf.h>

/* RFC 4121 section 2. */
enum usage {
	ACCEPTOR_SEAL = 22, ACCEPTOR_SIGN = 23, INITIATOR_SEAL = 24,
	INITIATOR_SIGN = 25,
};
enum purpose { FOR_MIC = 0x99, FOR_CIPHER = 0xaa, FOR_MAC = 0x55 };

enum { BY_ACCEPTOR = 1, ACCEPTOR_SUBKEY = 4 };

static const struct enctype types[] = {
	{ 17, 16, 16, 12, false, "AES-128-CBC", "AES-128-ECB", "SHA1" },
	{ 18, 32, 32, 12, false, "AES-256-CBC", "AES-256-ECB", "SHA1" },
	{ 19, 16, 16, 16, true, "AES-128-CBC", "AES-128-ECB", "SHA256" },
	{ 20, 32, 24, 24, true, "AES-256-CBC", "AES-256-ECB", "SHA384" },
};

static const struct enctype *find_type(const gss_krb5_lucid_key_t *key)
{
	for (unsigned i = 0; i < ARRAY_SIZE(types); i++)
		if (types[i].number == key->type &&
		    types[i].key_len == key->length)
			return &types[i];
	return NULL;
}

/* DK() of RFC 3961. */
static bool derive_sha1(const struct enctype *t, const uint8_t *base,
			uint8_t label[5], uint8_t *out)
{
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_KRB5KDF, NULL);
	EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_CIPHER,
			(char *)(uintptr_t)t->cipher, 0),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY,
			(void *)(uintptr_t)base, t->key_len),
		OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_CONSTANT,
			label, 5),
		OSSL_PARAM_construct_end(),
	};
	bool ok = ctx && EVP_KDF_derive(ctx, out, t->key_len, params) == 1;

	EVP_KDF_CTX_free(ctx);
	EVP_KDF_free(kdf);
	return ok;
}

static EVP_MAC_CTX *mac_of(const struct enctype *t, const uint8_t *key,
			   uint32_t len)
{
	EVP_MAC *mac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);
	EVP_MAC_CTX *ctx = mac ? EVP_MAC_CTX_new(mac) : NULL;
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST,
			(char *)(uintptr_t)t->digest, 0),
		OSSL_PARAM_construct_end(),
	};

	EVP_MAC_free(mac);
	if (ctx && EVP_MAC_init(ctx, key, len, params) == 1)
		return ctx;
	EVP_MAC_CTX_free(ctx);
	return NULL;
}

/* KDF-HMAC-SHA2() of RFC 8009 section 3: one round is enough. */
static bool derive_sha2(const struct enctype *t, const uint8_t *base,
			const uint8_t label[5], uint8_t *out, uint32_t len)
{
	uint8_t text[4 + 5 + 1 + 4] = { 0, 0, 0, 1 };
	const struct iovec iov = { text, sizeof(text) };
	EVP_MAC_CTX *mac = mac_of(t, base, t->key_len);
	uint8_t sum[EVP_MAX_MD_SIZE];
	bool ok;

	memcpy(text + 4, label, 5);
	xdr_set_word(text + 10, len * 8);
	ok = mac && cfx_hmac(mac, &iov, 1, sum);
	if (ok)
		memcpy(out, sum, len);
	EVP_MAC_CTX_free(mac);
	OPENSSL_cleanse(sum, sizeof(sum));
	return ok;
}

static bool derive_key(const struct enctype *t, const uint8_t *base,
		       enum usage usage, enum purpose purpose,
		       uint8_t out[KEY_MAX])
{
	uint8_t label[5] = { 0, 0, 0, (uint8_t)usage, (uint8_t)purpose };

	if (!t->is_sha2)
		return derive_sha1(t, base, label, out);
	return derive_sha2(t, base, label, out, purpose == FOR_CIPHER ?
			   t->key_len : t->mac_len);
}

static bool make_way(const struct enctype *t, const uint8_t *base,
		     enum usage seal, enum usage sign, struct way *w)
{
	uint8_t mic[KEY_MAX], mac[KEY_MAX];

	if (derive_key(t, base, sign, FOR_MIC, mic))
		w->mic = mac_of(t, mic, t->mac_len);
	if (derive_key(t, base, seal, FOR_MAC, mac))
		w->mac = mac_of(t, mac, t->mac_len);
	OPENSSL_cleanse(mic, sizeof(mic));
	OPENSSL_cleanse(mac, sizeof(mac));
	return w->mic && w->mac &&
	       derive_key(t, base, seal, FOR_CIPHER, w->key);
}

struct keys *cfx_keys_create(const gss_krb5_lucid_context_v1_t *lucid)
{
	bool subkey = lucid->cfx_kd.have_acceptor_subkey;
	const gss_krb5_lucid_key_t *key = subkey ?
		&lucid->cfx_kd.acceptor_subkey : &lucid->cfx_kd.ctx_key;
	/* Protocol 0 is that of RFC 1964: DES, RC4. */
	const struct enctype *t = lucid->protocol == 1 ? find_type(key) : NULL;
	struct keys *k = t ? calloc(1, sizeof(*k)) : NULL;

	if (!k)
		return NULL;
	k->type = t;
	k->flags = subkey ? ACCEPTOR_SUBKEY : 0;
	k->sent = lucid->send_seq;
	k->cbc = EVP_CIPHER_fetch(NULL, t->cipher, NULL);
	k->ecb = EVP_CIPHER_fetch(NULL, t->ecb, NULL);
	if (k->cbc && k->ecb &&
	    make_way(t, key->data, ACCEPTOR_SEAL, ACCEPTOR_SIGN, &k->ours) &&
	    make_way(t, key->data, INITIATOR_SEAL, INITIATOR_SIGN, &k->theirs))
		return k;
	cfx_keys_free(k);
	return NULL;
}

void cfx_keys_free(void *keys)
{
	struct keys *k = keys;

	EVP_MAC_CTX_free(k->ours.mic);
	EVP_MAC_CTX_free(k->ours.mac);
	EVP_MAC_CTX_free(k->theirs.mic);
	EVP_MAC_CTX_free(k->theirs.mac);
	EVP_CIPHER_free(k->cbc);
	EVP_CIPHER_free(k->ecb);
	OPENSSL_cleanse(k, sizeof(*k));
	free(k);
}
