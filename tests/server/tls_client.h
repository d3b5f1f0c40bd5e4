/* SPDX-License-Identifier: BSD-2-Clause */
/* tls_client - a client of RPC-with-TLS (RFC 9289) that can lie, and keys. */
#pragma once

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/xdr.h"
#include "transport/tls/tls.h"

/*
 * In files below a private directory: a CA with the server's certificate, and
 * two clients' certificates, the second of which is revoked; and a stranger's,
 * of another CA.
 */
struct tls_pki {
	char dir[32];
	char ca[64], crl[64], cert[64], key[64];
	char host[64], revoked[64], stranger[64];	/* with their keys */
};

/* SIGPIPE is ignored from then on: OpenSSL sends by write(2). */
void tls_pki_make(struct tls_pki *p);
void tls_pki_remove(struct tls_pki *p);
/* Puts a certificate of the CA's with the name @cn, and its key, in the place
 * of the server's. */
void tls_pki_renew(struct tls_pki *p, const char *cn);
struct tls_pki_cert {
	const char *san;	/* as in openssl.cnf, or NULL */
	const char *use;	/* extended key usage, the same */
	long	    from, until;	/* seconds from now */
	const char *key_use;	/* key usage, or NULL; with keyCertSign it is an
				 * authority's */
};

/* Puts another certificate of the CA's, with the CN localhost, in the place of
 * the server's. */
void tls_pki_exchange(struct tls_pki *p, const struct tls_pki_cert *c);
/* Puts a certificate of the CA's with these extensions, as openssl.cnf has them
 * (NULL: without it), and its key, in the place of the host's. */
void tls_pki_use(struct tls_pki *p, const char *key_usage,
		 const char *extended_key_usage);
/* Puts there, behind one that the CA did not issue, the host's as its issuer,
 * though it is no CA. */
void tls_pki_forge(struct tls_pki *p);
/* Puts there one of another authority, which the CA issued and @revoked; with
 * @has_list its list, too, is behind the CA's. */
void tls_pki_delegate(struct tls_pki *p, bool revoked, bool has_list);
/* Puts there one of the last of @n lesser authorities, which issued each other,
 * and its list behind the CA's. */
void tls_pki_descend(struct tls_pki *p, int n);
/* Gives the CA's certificate and list these times, in seconds from now. */
void tls_pki_age(struct tls_pki *p, long from, long until);
struct tls_files tls_pki_files(const struct tls_pki *p);

/* 0 or NULL is an honest client without a certificate. */
struct tls_client_config {
	const char *alpn;		/* "sunrpc"; "": none */
	int	    version;		/* the latest; TLS1_3_VERSION */
	const char *cert;		/* file of a certificate and its key */
	const char *groups;		/* for the exchange of keys */
	const char *suites;		/* of ciphers, those of TLS 1.3 */
	SSL_CTX_keylog_cb_func keylog;	/* gets TLS's secrets */
};

struct tls_client {
	int	 fd;
	SSL_CTX	*ctx;
	SSL	*ssl;
	size_t	 record;		/* bytes of each TLS record; 0: all */
	uint32_t xid;
	uint8_t	*buf;			/* for a call, and then its reply */
	struct xdr_out out;		/* behind a call's header */
	struct xdr_in in;		/* behind a reply's */
};

#define TLS_CLIENT_BUF	((1u << 20) + 4096)

/* Connects, in clear. */
void tls_client_open(struct tls_client *c, uint16_t port);
/* The same, from this IPv4 address. */
void tls_client_open_from(struct tls_client *c, uint16_t port, uint32_t from);
void tls_client_close(struct tls_client *c);
/* Sends a call in clear, of NULL, with the flavor AUTH_TLS. */
void tls_client_ask(struct tls_client *c);
/* ... and waits for STARTTLS.  False: the reply is another one, or none. */
bool tls_client_probe(struct tls_client *c);
/* The handshake.  False: it failed. */
bool tls_client_shake(struct tls_client *c,
		      const struct tls_client_config *config);
/* All of these. */
bool tls_client_start(struct tls_client *c, uint16_t port,
		      const struct tls_client_config *config);

/* Begins a call of root's; its arguments follow in c->out. */
void tls_client_begin(struct tls_client *c, uint32_t prog, uint32_t vers,
		      uint32_t proc);
/* Sends it, over TLS if that has begun. */
void tls_client_post(struct tls_client *c);
/* Waits for the reply.  0, or as rpc_header_reply(); -ENOTCONN: the connection
 * has ended. */
int tls_client_wait(struct tls_client *c);
int tls_client_call(struct tls_client *c);
/* True if the server has ended the connection: waits for that. */
bool tls_client_is_left(struct tls_client *c);
