/* SPDX-License-Identifier: BSD-2-Clause */
/* internal - shared by the files of TLS.  Private to transport/tls/. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct tls_client;
struct tls_files;
struct tls_peer;
struct tls_server;

/* server.c */

/* RFC 9289 section 7.2, as a list of ALPN. */
extern const uint8_t tls_sunrpc[];
#define TLS_SUNRPC_LEN	7

/* The modes that tls.c relies on. */
void tls_set_modes(SSL_CTX *ctx);
/* True if @cert lists the extended key usage @use, a number as text. */
bool tls_has_use(X509 *cert, const char *use);
/* The certificate and the key.  0, or -errno with the reason in *@why. */
int tls_read_own(SSL_CTX *ctx, const struct tls_files *f, char **why);
/* Returns that, from the thread's queue of errors, about the file @path. */
int tls_bad_file(const char *what, const char *path, char **why);
/* A new connection's, by the present config.  0, or as tls_conn_create(). */
int tls_server_ssl(struct tls_server *s, SSL **out);
/* After the handshake: the client's certificate was verified. */
bool tls_is_mutual(SSL *ssl);
/* Why the handshake failed, from the thread's queue of errors; or NULL. */
const char *tls_reason(const SSL *ssl);

/* notes.c */

/* Adds to *@notes, a line each, what is wrong with @f, which @ctx has read. */
void tls_note_files(SSL_CTX *ctx, const struct tls_files *f, char **notes);
/* The time @t in seconds since 1970; 0 if @t is malformed. */
time_t tls_seconds(const ASN1_TIME *t);

/* client.c */
/* A new connection's, to the server @host.  0 or -errno. */
int tls_client_ssl(struct tls_client *c, const char *host, SSL **out);
/* tls_conn_peer() of one of these. */
void tls_peer_read(SSL *ssl, struct tls_peer *out);
