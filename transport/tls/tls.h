/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tls - TLS on a stream socket, by OpenSSL.
 *
 * As RFC 9289 section 5 has it: TLS 1.3 alone, no early data, no resumption.
 * A server exchanges keys on elliptic curves.  A client of it that names
 * protocols (ALPN) has to name "sunrpc"; Linux's tlshd names none.  It may show
 * a certificate: one that the trust store does not know ends the handshake, and
 * without a trust store it proves nothing.  A client demands a certificate of a
 * CA that it trusts, for the name of the server.
 *
 * One thread at a time does the handshake.  After that one thread receives
 * while another one sends: a lock orders them, for the time of a record.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>

/* OpenSSL's memory for a connection that receives and sends: 18 KiB, and a
 * record each way.  A handshake has a little more than that. */
#define TLS_CONN_BYTES	((size_t)64 << 10)
/* Bytes that a client can send for its handshake.  OpenSSL keeps the
 * certificates in them as long as the connection; made for that, these take
 * TLS_CONN_BYTES four times. */
#define TLS_SHAKE_MAX	((size_t)24 << 10)
/* Bytes of a record. */
#define TLS_RECORD_MAX	((size_t)16 << 10)
/* The most authorities between a client's certificate and the trust store's. */
#define TLS_LESSER_MAX	4
/* Bytes of a file.  Each handshake with a certificate computes a hash of the
 * list of revoked ones, whoever signed the certificate: once for each
 * certificate of the chain. */
#define TLS_FILE_MAX	(4u << 20)

struct tls_server;
struct tls_config;
struct tls_client;
struct tls_conn;

/* Files in PEM; a server's have TLS_FILE_MAX bytes at most.  Borrowed for the
 * call. */
struct tls_files {
	const char *cert;	/* our certificate and its chain; NULL: none,
				 * for a client */
	const char *key;	/* of it, without a pass phrase */
	const char *ca;		/* the trust store for peers' certificates;
				 * NULL: none, or for a client the system's */
	const char *crl;	/* lists of revoked ones, or NULL */
};

/* Reads @files.  0, with warnings about them in *@why, a line each (malloced;
 * NULL: none): a certificate that has expired, ends within 30 days or is not
 * valid yet, the same of the trust store's; a list that does so within the last
 * third of its time; a key that others can read.  Else -errno with the reason
 * in *@why (malloced, perhaps NULL).  Waits for the disk.  Any thread. */
int tls_config_read(const struct tls_files *files, struct tls_config **out,
		    char **why);
/* NULL is ignored. */
void tls_config_free(struct tls_config *config);

/* Has no TLS yet.  NULL: no memory. */
struct tls_server *tls_server_create(void);
/* Takes @config, for handshakes that begin from now on.  NULL: connections that
 * ask from now on get no TLS.  Any thread. */
void tls_server_use(struct tls_server *s, struct tls_config *config);
/* Any thread. */
bool tls_server_has_config(struct tls_server *s);
/* The connections can have @bytes together, half of that those of an address;
 * the last quarter is for addresses that have none.  From now on; without a
 * call there is no bound.  Any thread. */
void tls_server_limit(struct tls_server *s, size_t bytes);
/* Counts a connection of @peer there.  0, or as xprt_gate_enter().  Any
 * thread. */
int tls_server_enter(struct tls_server *s, const struct sockaddr *peer);
/* Uncounts it. */
void tls_server_leave(struct tls_server *s, const struct sockaddr *peer);
/* No connection is left.  NULL is ignored. */
void tls_server_destroy(struct tls_server *s);

/* Begins TLS on the socket @fd, which does not block and is borrowed.  Bytes
 * went out in clear before, @clear of them.  0; -EOPNOTSUPP: TLS was turned
 * off; or -ENOMEM.  Any thread. */
int tls_conn_create(struct tls_server *s, int fd, uint64_t clear,
		    struct tls_conn **out);
/* Reads @files, without a list of revoked ones.  0, or -errno with the reason
 * in *@why (malloced, perhaps NULL).  Waits for the disk. */
int tls_client_create(const struct tls_files *files, struct tls_client **out,
		      char **why);
/* No connection is left.  NULL is ignored. */
void tls_client_destroy(struct tls_client *c);
/* Begins TLS on the socket @fd, as above, with the server @host, a name or an
 * address.  0 or -errno.  Any thread. */
int tls_conn_dial(struct tls_client *client, int fd, const char *host,
		  struct tls_conn **out);
/* NULL is ignored. */
void tls_conn_destroy(struct tls_conn *c);

/*
 * Goes on with the handshake, as far as the bytes that came allow; computes for
 * milliseconds.  0: it is complete; -EAGAIN: *@events (EPOLLIN or EPOLLOUT) is
 * awaited; else -errno, and *@why (a literal, or NULL) is the reason.
 */
int tls_handshake(struct tls_conn *c, uint32_t *events, const char **why);
/* After the handshake: the client has a certificate of the trust store's. */
bool tls_conn_is_mutual(const struct tls_conn *c);

enum tls_verdict {
	TLS_UNSEEN,		/* no certificate came */
	TLS_TRUSTED, TLS_UNKNOWN_CA, TLS_OTHER_NAME, TLS_EXPIRED,
	TLS_EARLY,		/* it is not valid yet */
	TLS_UNTRUSTED,		/* another reason: why */
};

enum { TLS_TEXT_MAX = 256 };

/* A server, as it showed itself to a client, also in a handshake that failed.
 * Its texts can have any bytes. */
struct tls_peer {
	enum tls_verdict verdict;	/* on its certificate */
	const char *why;		/* a literal */
	bool	 alpn;			/* it agreed on "sunrpc" */
	int	 alert;			/* RFC 8446 section 6; 0: none came */
	const char *alert_text;		/* a literal */
	time_t	 from, until;		/* the certificate's */
	char	 names[TLS_TEXT_MAX];	/* "a.example, 192.0.2.1", of the SAN,
					 * as many as fit */
	char	 issuer[TLS_TEXT_MAX];	/* as RFC 2253 has it */
};

/* Of a client's connection, with no call of it under way. */
void tls_conn_peer(const struct tls_conn *c, struct tls_peer *out);

/* Receives into @iov, of a bounded number of records.  The bytes; 0: the client
 * has closed in order; -EAGAIN: nothing more has come; -EBUSY: TLS has to send
 * first, and the socket is full; -ECONNRESET: the connection ended without a
 * word; -EPROTO: a record is wrong; or -errno.  A call that begins within a
 * record does not go on to the next one. */
ssize_t tls_recv(struct tls_conn *c, const struct iovec *iov, int niov);
/* True if tls_recv() has something to tell although the socket has no bytes. */
bool tls_pending(struct tls_conn *c);
/* Sends from @iov, @most bytes of it (no fewer than TLS_RECORD_MAX); @more:
 * other bytes follow at once.  The bytes, fewer if the socket is full; -EAGAIN:
 * it took none; or -errno.  After a short send the next one begins with the
 * bytes that were not sent. */
ssize_t tls_send(struct tls_conn *c, const struct iovec *iov, unsigned niov,
		 size_t most, bool more);
/* Records of data sent by all keys, so no fewer than by the present one (RFC
 * 8446 section 5.5): a client can ask for another.  Any thread. */
uint64_t tls_records(struct tls_conn *c);
/* Tells the client that the data end here (RFC 8446 section 6.1), unless the
 * connection is broken.  0; -EAGAIN: the socket is full, so try again. */
int tls_close(struct tls_conn *c);
/*
 * The peer's system has acknowledged @acked bytes of the socket.  Returns how
 * many of the bytes sent in clear or by tls_send() it surely can read: all,
 * where it acknowledged all, else perhaps fewer.  Any thread.
 */
uint64_t tls_acked(struct tls_conn *c, uint64_t acked);
/* The client has ended its data.  Any thread. */
bool tls_is_closed(struct tls_conn *c);
