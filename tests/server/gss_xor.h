/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gss_xor - a mechanism of RPCSEC_GSS with every feature that one can have, but
 * it keeps no secret: its token says who the client is.
 */
#pragma once

#include "rpc/gss_mech.h"

/* A client's token, of five words. */
struct gss_xor_token {
	uint32_t nonce;		/* 0: the token is refused */
	uint32_t uid;
	uint32_t gid;
	uint32_t seconds;
	uint32_t steps;		/* tokens that are to follow */
};

extern const struct gss_mech gss_xor;

/* Writes @t to @out, 20 bytes. */
struct xdr_view gss_xor_put(uint8_t out[20], const struct gss_xor_token *t);
/* The keys of a client that sent @nonce, to be freed by gss_xor.free(). */
void *gss_xor_keys(uint32_t nonce);
/* Counts keys, and contexts that are being made. */
unsigned gss_xor_count(void);
