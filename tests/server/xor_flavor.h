/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xor_flavor - a flavor of authentication with every feature that one can have,
 * like RPCSEC_GSS: it makes a context by a separate call, signs the headers of
 * calls and the verifiers of replies, wraps arguments and results, and drops
 * calls that come twice.  It keeps no secret.
 *
 * Credential: kind, session, seq.  Verifiers: one word.  Arguments and results:
 * an opaque of seq and the bare ones, each byte changed, and their sum.
 */
#pragma once

#include "rpc/auth.h"

enum { XOR_FLAVOR = 400123, XOR_SESSION = 7 };
/* Results are not wrapped with the first nonce's key, and replies are not
 * signed with the second's. */
enum { XOR_NONCE_NO_WRAP = 0, XOR_NONCE_NO_SIGN = 2 };
/* XOR_INIT is a call of procedure 0: nonce -> session.  The key is made of the
 * nonce. */
enum xor_kind { XOR_INIT, XOR_DATA };

extern const struct rpc_flavor xor_flavor;

static inline uint32_t xor_key(uint32_t nonce)
{
	return nonce * 2654435761u;
}

struct xor_stream {
	uint32_t key;
	uint32_t at;		/* bytes so far */
	uint32_t sum;		/* of the bare bytes */
};

/* Changes @n bytes, to @hide them or to have them bare again. */
void xor_run(struct xor_stream *s, void *bytes, size_t n, bool hide);
/* The verifier of a call whose header is @head, and of a reply to @seq. */
uint32_t xor_sign(uint32_t key, struct xdr_view head);
uint32_t xor_answer(uint32_t key, uint32_t seq);

/* Counts the calls that hold the session. */
unsigned xor_held(void);
