/* SPDX-License-Identifier: BSD-2-Clause */
/* tls - a connection: OpenSSL on our socket calls. */
#include "transport/tls/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "transport/tls/internal.h"

/* Records that one call receives: they can have a byte each. */
#define RECORDS		16
static_assert(TLS_RECORD_MAX == SSL3_RT_MAX_PLAIN_LENGTH, "RFC 8446 5.1");

struct tls_conn {
	int		 fd;		/* borrowed */
	bool		 mutual;	/* set by the handshake */
	/* Guards the rest. */
	pthread_mutex_t	 lock;
	SSL		*ssl;
	int		 err;		/* of the last socket call */
	uint64_t	 room;		/* bytes that the handshake can receive
					 * yet */
	bool		 fin;		/* the socket has ended */
	bool		 closed;	/* close_notify came */
	int		 end;		/* -errno: OpenSSL must not be called
					 * again, */
	int		 unsent;	/* ... or not to send */
	bool		 more;		/* the record is not the last */
	size_t		 pending;	/* bytes of a record that the socket
					 * did not take whole */
	uint64_t	 clear;		/* bytes sent in clear, */
	uint64_t	 plain;		/* by tls_send(), */
	uint64_t	 wire;		/* and by the socket since then */
	uint64_t	 records;	/* sent, of data */
};

/* ---- the socket, as OpenSSL calls it: with the lock, or in the handshake */

static int bio_write(BIO *b, const char *data, int len)
{
	struct tls_conn *c = BIO_get_data(b);
	ssize_t n;

	BIO_clear_retry_flags(b);
	do
		n = send(c->fd, data, (size_t)len, MSG_NOSIGNAL | MSG_DONTWAIT |
			 (c->more ? MSG_MORE : 0));
	while (n < 0 && errno == EINTR);
	if (n > 0)
		c->wire += (uint64_t)n;
	else if (n < 0 && errno == EAGAIN)
		BIO_set_retry_write(b);
	else if (n < 0)
		c->err = -errno;
	return (int)n;
}

static int bio_read(BIO *b, char *data, int len)
{
	struct tls_conn *c = BIO_get_data(b);
	ssize_t n;

	BIO_clear_retry_flags(b);
	do
		n = recv(c->fd, data, (size_t)len, MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n == 0) {
		c->fin = true;
	} else if (n < 0 && errno == EAGAIN) {
		BIO_set_retry_read(b);
	} else if (n < 0) {
		c->err = -errno;
	} else if ((uint64_t)n > c->room) {
		c->err = -EMSGSIZE;
		return -1;
	} else {
		c->room -= (uint64_t)n;
	}
	return (int)n;
}

static long bio_ctrl(BIO *b, int cmd, long num, void *ptr)
{
	struct tls_conn *c = BIO_get_data(b);

	if (cmd == BIO_CTRL_EOF)
		return c && c->fin;
	return cmd == BIO_CTRL_FLUSH;
}

/* Of all connections, for good; NULL: no memory. */
static BIO_METHOD *method;

static void make_method(void)
{
	method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK,
			      "gannet");
	if (!method)
		return;
	BIO_meth_set_write(method, bio_write);
	BIO_meth_set_read(method, bio_read);
	BIO_meth_set_ctrl(method, bio_ctrl);
}

static BIO *new_bio(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, make_method);
	return method ? BIO_new(method) : NULL;
}

/* ---- life */

/* Takes @ssl. */
static int make_conn(SSL *ssl, int fd, struct tls_conn **out)
{
	struct tls_conn *c = calloc(1, sizeof(*c));
	BIO *b = new_bio();

	if (!c || !b) {
		SSL_free(ssl);
		BIO_free(b);
		free(c);
		return -ENOMEM;
	}
	c->fd = fd;
	c->ssl = ssl;
	c->room = UINT64_MAX;
	BIO_set_data(b, c);
	BIO_set_init(b, 1);
	SSL_set_bio(c->ssl, b, b);
	pthread_mutex_init(&c->lock, NULL);
	*out = c;
	return 0;
}

int tls_conn_create(struct tls_server *s, int fd, uint64_t clear,
		    struct tls_conn **out)
{
	SSL *ssl;
	int err = tls_server_ssl(s, &ssl);

	if (err)
		return err;
	SSL_set_accept_state(ssl);
	err = make_conn(ssl, fd, out);
	if (err)
		return err;
	(*out)->clear = clear;
	(*out)->room = TLS_SHAKE_MAX;
	return 0;
}

int tls_conn_dial(struct tls_client *client, int fd, const char *host,
		  struct tls_conn **out)
{
	SSL *ssl;
	int err = tls_client_ssl(client, host, &ssl);

	if (err)
		return err;
	SSL_set_connect_state(ssl);
	return make_conn(ssl, fd, out);
}

void tls_conn_peer(const struct tls_conn *c, struct tls_peer *out)
{
	tls_peer_read(c->ssl, out);
}

void tls_conn_destroy(struct tls_conn *c)
{
	if (!c)
		return;
	SSL_free(c->ssl);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* With the lock, or in the handshake: OpenSSL returned @ret.  0: the client has
 * closed in order; -EAGAIN, or the reason of the end. */
static int why_not(struct tls_conn *c, int ret)
{
	switch (SSL_get_error(c->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
	case SSL_ERROR_WANT_WRITE:
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		c->closed = true;
		return 0;
	default:
		c->end = c->err ? c->err : c->fin ? -ECONNRESET : -EPROTO;
		return c->end;
	}
}

int tls_handshake(struct tls_conn *c, uint32_t *events, const char **why)
{
	int ret, err;

	ERR_clear_error();
	*why = NULL;
	ret = SSL_do_handshake(c->ssl);
	if (ret == 1) {
		err = 0;
		c->room = UINT64_MAX;
		c->mutual = tls_is_mutual(c->ssl);
	} else {
		err = why_not(c, ret);
		*events = SSL_want_write(c->ssl) ? EPOLLOUT : EPOLLIN;
		if (err == 0)
			err = -ECONNRESET;
		if (err != -EAGAIN)
			*why = tls_reason(c->ssl);
	}
	ERR_clear_error();
	return err;
}

bool tls_conn_is_mutual(const struct tls_conn *c)
{
	return c->mutual;
}

/* ---- receiving */

/* With the lock.  The bytes, of one record; or as tls_recv(). */
static ssize_t read_one(struct tls_conn *c, void *to, size_t len)
{
	size_t n;
	int ret, err;

	if (c->end || c->closed)
		return c->end;
	/* With the next KeyUpdate OpenSSL would answer the last one, and fails
	 * within a record. */
	if (c->pending && !c->unsent &&
	    SSL_get_key_update_type(c->ssl) != SSL_KEY_UPDATE_NONE)
		return -EBUSY;
	ERR_clear_error();
	ret = SSL_read_ex(c->ssl, to, len, &n);
	if (ret == 1)
		return (ssize_t)n;
	err = why_not(c, ret);
	/* The answer to a KeyUpdate goes out before the next one is read. */
	return err == -EAGAIN && SSL_want_write(c->ssl) ? -EBUSY : err;
}

ssize_t tls_recv(struct tls_conn *c, const struct iovec *iov, int niov)
{
	ssize_t n = 0, total = 0;
	int k = 0, left = RECORDS;
	size_t at = 0;

	while (k < niov && left-- > 0) {
		mutex_lock(&c->lock);
		if (total == 0 && SSL_pending(c->ssl) > 0)
			left = 0;
		n = read_one(c, (uint8_t *)iov[k].iov_base + at,
			     iov[k].iov_len - at);
		mutex_unlock(&c->lock);
		if (n <= 0)
			break;
		total += n;
		at += (size_t)n;
		if (at == iov[k].iov_len) {
			at = 0;
			k++;
		}
	}
	/* An end comes again with the next call. */
	return total ? total : n;
}

bool tls_pending(struct tls_conn *c)
{
	bool pending;

	mutex_lock(&c->lock);
	pending = c->end || c->closed || SSL_pending(c->ssl) > 0;
	mutex_unlock(&c->lock);
	return pending;
}

bool tls_is_closed(struct tls_conn *c)
{
	bool closed;

	mutex_lock(&c->lock);
	closed = c->closed;
	mutex_unlock(&c->lock);
	return closed;
}

/* ---- sending */

/* A place in the pieces to be sent. */
struct cursor {
	const struct iovec *iov;
	unsigned	 niov;
	size_t		 at;		/* in the first one */
	size_t		 left;		/* in all */
};

static void advance(struct cursor *p, size_t n)
{
	p->left -= n;
	p->at += n;
	while (p->niov > 0 && p->at >= p->iov->iov_len) {
		p->at -= p->iov->iov_len;
		p->iov++;
		p->niov--;
	}
}

/* The next @len bytes in one place: where they are, or copied to @to. */
static const uint8_t *in_one_place(const struct cursor *p, size_t len,
				   uint8_t *to)
{
	const uint8_t *first = (const uint8_t *)p->iov->iov_base + p->at;
	size_t n = p->iov->iov_len - p->at, done = 0;
	const struct iovec *v = p->iov;

	if (n >= len)
		return first;
	for (;;) {
		n = MIN(n, len - done);
		memcpy(to + done, first, n);
		done += n;
		if (done == len)
			return to;
		v++;
		first = v->iov_base;
		n = v->iov_len;
	}
}

/* With the lock.  The bytes, all of a record; or -errno. */
static ssize_t write_one(struct tls_conn *c, const struct cursor *p, bool more)
{
	uint8_t record[TLS_RECORD_MAX];
	size_t len = MIN(p->left, TLS_RECORD_MAX), n;
	int ret, err;

	/* Begun with so many bytes, a record is ended with no fewer. */
	if (c->end || c->unsent)
		return c->end ? c->end : c->unsent;
	if (len < c->pending)
		return -EPROTO;
	c->more = more || len < p->left;
	ERR_clear_error();
	ret = SSL_write_ex(c->ssl, in_one_place(p, len, record), len, &n);
	c->pending = ret == 1 ? 0 : len;
	if (ret != 1) {
		err = why_not(c, ret);
		/* An alert that says why can be received yet. */
		if (c->end && c->end == c->err) {
			c->unsent = c->end;
			c->end = 0;
		}
		/* It reads in the middle of a handshake's message, a KeyUpdate
		 * of five bytes.  None but a liar sends it in parts; and the
		 * caller waits for room, of which there may be enough. */
		if (err == -EAGAIN && SSL_want_read(c->ssl))
			c->end = err = -EPROTO;
		return err ? err : -EPIPE;
	}
	c->plain += n;
	c->records++;
	return (ssize_t)n;
}

ssize_t tls_send(struct tls_conn *c, const struct iovec *iov, unsigned niov,
		 size_t most, bool more)
{
	struct cursor p = { .iov = iov, .niov = niov };
	ssize_t n = 0, total = 0;

	for (unsigned i = 0; i < niov; i++)
		p.left += iov[i].iov_len;
	if (p.left > most) {
		p.left = most;
		more = true;
	}
	advance(&p, 0);
	while (p.left > 0) {
		mutex_lock(&c->lock);
		n = write_one(c, &p, more);
		mutex_unlock(&c->lock);
		if (n < 0)
			break;
		total += n;
		advance(&p, (size_t)n);
	}
	/* An error comes again with the next call. */
	return total ? total : n;
}

uint64_t tls_records(struct tls_conn *c)
{
	uint64_t n;

	mutex_lock(&c->lock);
	n = c->records;
	mutex_unlock(&c->lock);
	return n;
}

int tls_close(struct tls_conn *c)
{
	int err = 0;

	mutex_lock(&c->lock);
	ERR_clear_error();
	c->more = false;
	/* After the first call it sends the alert's rest. */
	if (!c->end && c->pending == 0 && SSL_is_init_finished(c->ssl) &&
	    SSL_shutdown(c->ssl) < 0 && SSL_want_write(c->ssl))
		err = -EAGAIN;
	ERR_clear_error();
	mutex_unlock(&c->lock);
	return err;
}

uint64_t tls_acked(struct tls_conn *c, uint64_t acked)
{
	uint64_t all, more;

	mutex_lock(&c->lock);
	all = c->clear + c->plain;
	more = c->wire - c->plain;
	mutex_unlock(&c->lock);
	/* Each unacknowledged byte can be one of ours. */
	acked -= MIN(acked, more);
	/* ... and of a record that the client can't read in part. */
	if (acked < all)
		acked -= MIN(acked, TLS_RECORD_MAX);
	return MIN(all, acked);
}
