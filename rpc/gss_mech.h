/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gss_mech - a mechanism of RPCSEC_GSS (RFC 2203), like Kerberos: the functions
 * that prove who a client is, and protect calls and replies.
 *
 * rpc/gss.c has the protocol, which knows no cryptography; a module has a
 * mechanism, which knows no RPC.
 *
 * The keys of a context never change, so any number of threads use them at once
 * without a lock.  Only accept() can wait.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "lib/xdr.h"
#include "wire/gss.h"

/* Modules say which one they were built for; see struct gss_mech. */
#define GSS_MECH_VERSION	1u

#define GSS_MIC_MAX	64u	/* bytes of a checksum */
#define GSS_FRONT_MAX	64u	/* bytes that wrap() puts before the data, */
#define GSS_BACK_MAX	64u	/* and behind it */
#define GSS_TOKEN_MAX	(64u << 10)	/* of a client */
#define GSS_ANSWER_MAX	400u		/* to a client */
#define GSS_WHY_MAX	256u
#define GSS_NO_USER	UINT32_MAX

/* One step of the making of a context. */
struct gss_accept {
	struct xdr_view	token;		/* the client's */
	/* The mechanism's own, between the steps; NULL in the first one. */
	void		*making;
	/* Results. */
	uint32_t	major, minor;	/* RFC 2203 appendix A */
	uint32_t	answer_len;
	uint8_t		answer[GSS_ANSWER_MAX];
	char		why[GSS_WHY_MAX];	/* of a failure, for the log */
	/* With GSS_COMPLETE: */
	void		*keys;
	uint32_t	uid, gid;	/* GSS_NO_USER: a name without a user */
	uint32_t	seconds;	/* that the context is good for */
};

struct gss_mech {
	uint32_t	 version;	/* GSS_MECH_VERSION */
	const char	*name;		/* "krb5" */
	/* By service: the numbers that MNT lists (RFC 2623 section 2.6); 0: the
	 * service is not offered. */
	uint32_t	 pseudo[GSS_SERVICES + 1];
	uint32_t	 front;		/* <= GSS_FRONT_MAX, a multiple of 4 */
	/* True if accept() can work; else @why says why not.  May wait. */
	bool (*probe)(void *arg, char why[GSS_WHY_MAX]);
	/*
	 * Reads @a->token.  @arg is the mechanism's.  On a worker: can wait.
	 * With GSS_COMPLETE @a->keys are the caller's, with CONTINUE_NEEDED
	 * @a->making; after a failure neither is set.
	 */
	void (*accept)(void *arg, struct gss_accept *a);
	void (*abandon)(void *making);
	void (*free)(void *keys);
	/* The checksum of the bytes in @iov.  Its length, or -1. */
	int (*sign)(const void *keys, const struct iovec *iov, int n,
		    uint8_t mic[GSS_MIC_MAX]);
	/* True if @mic is the client's checksum of these bytes. */
	bool (*check)(const void *keys, const struct iovec *iov, int n,
		      struct xdr_view mic);
	/* Encrypts the bytes in @iov where they are; sets the @front bytes that
	 * go before them.  Returns the number of bytes behind them, in @back,
	 * or -1. */
	int (*wrap)(const void *keys, const struct iovec *iov, int n,
		    uint8_t *front, uint8_t back[GSS_BACK_MAX]);
	/* Checks and decrypts a client's token where it is.  Makes @iov the
	 * pieces with the plain bytes; returns their number, or -1. */
	int (*unwrap)(const void *keys, struct iovec *iov, int n);
};
