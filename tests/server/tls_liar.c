/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/server/tls_liar.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/server/record_stream.h"

enum { AUTH_TLS = 7, HANDSHAKE = 22 };

static int no_alpn(SSL *ssl, const unsigned char **out, unsigned char *len,
		   const unsigned char *in, unsigned int nin, void *arg)
{
	return *(enum tls_lie *)arg == LIE_OTHER_ALPN ?
	       SSL_TLSEXT_ERR_ALERT_FATAL : SSL_TLSEXT_ERR_NOACK;
}

static int take_alpn(SSL *ssl, const unsigned char **out, unsigned char *len,
		     const unsigned char *in, unsigned int nin, void *arg)
{
	*out = in + 1;
	*len = in[0];
	return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *make_ctx(struct tls_liar *l)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	bool agrees = l->lie != LIE_NO_ALPN && l->lie != LIE_OTHER_ALPN;

	if (SSL_CTX_use_certificate_chain_file(ctx, l->pki->cert) != 1 ||
	    SSL_CTX_use_PrivateKey_file(ctx, l->pki->key,
					SSL_FILETYPE_PEM) != 1)
		abort();
	SSL_CTX_set_alpn_select_cb(ctx, agrees ? take_alpn : no_alpn, &l->lie);
	if (l->lie == LIE_OLD)
		SSL_CTX_set_max_proto_version(ctx, TLS1_2_VERSION);
	if (l->lie == LIE_MUTUAL)
		SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER |
				   SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return ctx;
}

static void put_reply(struct xdr_out *x, uint32_t xid, uint32_t flavor,
		      const char *verifier, uint32_t status)
{
	xdr_put_u32(x, xid);
	xdr_put_u32(x, 1);		/* REPLY, MSG_ACCEPTED */
	xdr_put_u32(x, 0);
	xdr_put_u32(x, flavor);
	xdr_put_opaque(x, verifier, (uint32_t)strlen(verifier));
	xdr_put_u32(x, status);
}

/* The reply to the call @h.  If it asks for TLS, PROG_UNAVAIL is no obstacle
 * (RFC 9289 section 4.1). */
static void reply(struct tls_liar *l, int fd, const struct rpc_header *h)
{
	uint32_t xid = h->xid, status = h->flavor == AUTH_TLS;
	uint8_t wire[256];
	struct xdr_out x;

	xdr_out_init(&x, wire, sizeof(wire));
	xdr_reserve(&x, RECORD_MARK_SIZE);
	if (l->lie == LIE_DENIED)
		rpc_header_denied(&x, xid, RPC_AUTH_REJECTEDCRED);
	else if (l->lie == LIE_SYS_VERIFIER)
		put_reply(&x, xid, RPC_AUTH_SYS, "STARTTLS", status);
	else
		put_reply(&x, xid, RPC_AUTH_NONE,
			  l->lie == LIE_NO_VERIFIER ? "" :
			  l->lie == LIE_LONG_VERIFIER ? "STARTTLS!" :
			  "STARTTLS", status);
	if (l->lie == LIE_CLEAR_BEHIND) {
		/* In one segment: both are there when the first is read. */
		uint8_t *second = x.p;

		record_end(&x);
		xdr_reserve(&x, RECORD_MARK_SIZE);
		put_reply(&x, xid + 1, RPC_AUTH_NONE, "", status);
		record_put_mark((uint32_t *)(void *)second,
				(size_t)(x.p - second) - RECORD_MARK_SIZE);
		send(fd, wire, (size_t)(x.p - wire), MSG_NOSIGNAL);
		return;
	}
	record_post(fd, &x);
}

static void shake(struct tls_liar *l, int fd)
{
	SSL *ssl = SSL_new(l->ctx);
	char byte;

	SSL_set_fd(ssl, fd);
	/* Until the client has had enough. */
	if (SSL_accept(ssl) == 1)
		SSL_read(ssl, &byte, 1);
	SSL_free(ssl);
}

/* Until the client ends the connection. */
static void await_end(struct tls_liar *l, int fd)
{
	uint8_t bytes[512];
	ssize_t n;

	for (bool first = true; (n = recv(fd, bytes, sizeof(bytes), 0)) > 0;
	     first = false)
		if (first && bytes[0] != HANDSHAKE)
			atomic_fetch_add(&l->clear, 1);
}

static void serve(struct tls_liar *l, int fd)
{
	uint8_t call[512];
	struct rpc_header h;
	struct xdr_in x;

	xdr_in_init(&x, call, record_receive(fd, call, sizeof(call)));
	if (rpc_header_decode(&x, &h) != RPC_HEADER_CALL)
		return;
	if (h.flavor != AUTH_TLS || h.proc != 0 || h.cred.len != 0 ||
	    h.verf_flavor != RPC_AUTH_NONE || h.verf.len != 0)
		atomic_fetch_add(&l->clear, 1);
	reply(l, fd, &h);
	if (l->lie == LIE_CLEAR)
		send(fd, "HTTP/1.1 400 \r\n", 15, MSG_NOSIGNAL);
	if (l->lie > LIE_CLOSE)
		shake(l, fd);
	else if (l->lie != LIE_CLOSE)
		await_end(l, fd);
}

static void *run(void *arg)
{
	struct tls_liar *l = arg;
	int fd;

	while ((fd = accept(l->listener, NULL, NULL)) >= 0) {
		serve(l, fd);
		close(fd);
	}
	return NULL;
}

void tls_liar_start(struct tls_liar *l)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	socklen_t len = sizeof(sa);

	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	l->ctx = make_ctx(l);
	l->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(l->listener, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
	    listen(l->listener, 8) < 0 ||
	    getsockname(l->listener, (struct sockaddr *)&sa, &len) < 0)
		abort();
	l->port = ntohs(sa.sin_port);
	pthread_create(&l->thread, NULL, run, l);
}

void tls_liar_stop(struct tls_liar *l)
{
	shutdown(l->listener, SHUT_RDWR);
	pthread_join(l->thread, NULL);
	close(l->listener);
	SSL_CTX_free(l->ctx);
}
