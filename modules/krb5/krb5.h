/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * krb5 - Kerberos 5 as a mechanism of RPCSEC_GSS (rpc/gss_mech.h).
 *
 * libgssapi-krb5 accepts contexts (accept.c), and exports their clients' names
 * (name.c) and their keys.  OpenSSL makes checksums and encrypts (RFC 4121)
 * with these keys, because any number of threads use a context at once, which
 * the library does not allow, and payload must stay in place.
 */
#pragma once

#include <stdatomic.h>

#include <gssapi/gssapi_krb5.h>
#include <openssl/evp.h>

#include "rpc/gss_mech.h"

#define BLOCK		16u		/* of AES, and of a confounder */
#define HEADER		16u		/* of a token */
#define KEY_MAX		32u
#define SUM_MAX		24u
/* An opaque has MSG_MAX_SEGS pieces; the confounder goes before, the copy of
 * the header behind. */
#define PIECES_MAX	16

/* An encryption type: RFC 3962, RFC 8009. */
struct enctype {
	uint32_t    number;
	uint32_t    key_len;		/* that of ciphers */
	uint32_t    mac_len;		/* of the keys of checksums */
	uint32_t    sum_len;		/* of checksums */
	bool	    is_sha2;		/* RFC 8009: the checksum covers the
					 * encrypted bytes */
	const char *cipher, *ecb, *digest;
};

/* Keys for one direction. */
struct way {
	EVP_MAC_CTX *mic;		/* never used, but copied */
	EVP_MAC_CTX *mac;		/* the same, of encrypted bytes */
	uint8_t	     key[KEY_MAX];	/* that encrypts */
};

/* A context.  Nothing changes but @sent. */
struct keys {
	const struct enctype *type;
	EVP_CIPHER  *cbc, *ecb;
	uint8_t	     flags;		/* of tokens, of both directions */
	_Atomic uint64_t sent;		/* tokens */
	struct way   ours, theirs;
};

/* The bytes of a token, in pieces. */
struct pieces {
	struct iovec v[PIECES_MAX];
	int	     n;
};

/* fail.c */
/* @a failed while doing @what, a literal. */
void cfx_fail(struct gss_accept *a, OM_uint32 major, OM_uint32 minor,
	       const char *what);

/* name.c */
/* Sets a->uid and a->gid.  False: the name service does not answer, or the name
 * can't be read: @a has failed. */
bool cfx_find_user(gss_name_t name, struct gss_accept *a);

/* keys.c */
/* NULL: no memory, or the key is of another type. */
struct keys *cfx_keys_create(const gss_krb5_lucid_context_v1_t *lucid);
void cfx_keys_free(void *keys);

/* crypt.c.  False: a failure of OpenSSL. */
bool cfx_hmac(EVP_MAC_CTX *key, const struct iovec *iov, int n,
	       uint8_t sum[EVP_MAX_MD_SIZE]);
/* Encrypts the bytes of @p, at least 17, in place, and sets @sum to their
 * checksum. */
bool cfx_encrypt(const struct keys *k, const struct pieces *p,
		  uint8_t sum[EVP_MAX_MD_SIZE]);
/* Decrypts them, if @sum is their checksum. */
bool cfx_decrypt(const struct keys *k, const struct pieces *p,
		  const uint8_t *sum);

/* pieces.c */
uint32_t cfx_pieces_len(const struct pieces *p);
void cfx_pieces_add(struct pieces *p, void *data, size_t len);
/* Copies @len existing bytes from @at to or from @buf. */
void cfx_pieces_get(const struct pieces *p, uint32_t at, void *buf,
		     uint32_t len);
void cfx_pieces_put(const struct pieces *p, uint32_t at, const void *buf,
		     uint32_t len);
/* Makes @p the @len bytes from @at. */
void cfx_pieces_cut(struct pieces *p, uint32_t at, uint32_t len);
/* Moves the first @by bytes, at most 64, to the end. */
void cfx_pieces_rotate(const struct pieces *p, uint32_t by);

/* token.c: functions of struct gss_mech. */
int  cfx_sign(const void *keys, const struct iovec *iov, int n,
	       uint8_t mic[GSS_MIC_MAX]);
bool cfx_check(const void *keys, const struct iovec *iov, int n,
		struct xdr_view mic);
int  cfx_wrap(const void *keys, const struct iovec *iov, int n,
	       uint8_t *front, uint8_t back[GSS_BACK_MAX]);
int  cfx_unwrap(const void *keys, struct iovec *iov, int n);
