/* SPDX-License-Identifier: BSD-2-Clause */
/* tls_liar - a server that is asked for TLS, and fails in a way of choice. */
#pragma once

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "tests/server/tls_client.h"

enum tls_lie {
	LIE_DENIED,		/* the call: MSG_DENIED */
	LIE_NO_VERIFIER,	/* it is empty */
	LIE_LONG_VERIFIER,	/* STARTTLS and a byte more */
	LIE_SYS_VERIFIER,	/* STARTTLS, of AUTH_SYS */
	LIE_CLEAR_BEHIND,	/* a reply in clear follows STARTTLS */
	LIE_CLEAR,		/* ... and no TLS */
	LIE_MUTE,		/* no handshake */
	LIE_CLOSE,		/* ... but an end */
	LIE_NO_ALPN,		/* agrees on none */
	LIE_OTHER_ALPN,		/* refuses "sunrpc" */
	LIE_OLD,		/* TLS 1.2 */
	LIE_MUTUAL,		/* demands a certificate */
	LIES,
};

/* A thread takes one connection after the other. */
struct tls_liar {
	enum tls_lie	 lie;
	const struct tls_pki *pki;
	uint16_t	 port;
	/* Calls in clear but the one that asks for TLS, and bytes that are
	 * neither TLS. */
	atomic_uint	 clear;
	int		 listener;
	SSL_CTX		*ctx;
	pthread_t	 thread;
};

void tls_liar_start(struct tls_liar *l);
void tls_liar_stop(struct tls_liar *l);
