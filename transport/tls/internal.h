/* SPDX-License-Identifier: BSD-2-Clause */
/* internal - shared by the files of TLS.  Private to transport/tls/. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>

struct tls_server;

/* server.c */
/* A new connection's, by the present config.  0, or as tls_conn_create(). */
int tls_server_ssl(struct tls_server *s, SSL **out);
/* After the handshake: the client's certificate was verified. */
bool tls_is_mutual(SSL *ssl);
/* Why the handshake failed, from the thread's queue of errors; or NULL. */
const char *tls_reason(const SSL *ssl);
