/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/server/tls_client.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/record_stream.h"

enum { AUTH_TLS = 7 };

void tls_client_open(struct tls_client *c, uint16_t port)
{
	tls_client_open_from(c, port, INADDR_LOOPBACK);
}

void tls_client_open_from(struct tls_client *c, uint16_t port, uint32_t from)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };
	int one = 1;

	memset(c, 0, sizeof(*c));
	sa.sin_addr.s_addr = htonl(from);
	c->buf = malloc(TLS_CLIENT_BUF);
	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert(c->buf && c->fd >= 0);
	setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
		   sizeof(one));
	if (bind(c->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		abort();
	sa.sin_port = htons(port);
	sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(c->fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		abort();
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

void tls_client_close(struct tls_client *c)
{
	if (c->ssl && SSL_is_init_finished(c->ssl))
		SSL_shutdown(c->ssl);
	SSL_free(c->ssl);
	SSL_CTX_free(c->ctx);
	close(c->fd);
	free(c->buf);
}

void tls_client_ask(struct tls_client *c)
{
	const struct rpc_header h = { .xid = 1, .prog = 100003, .vers = 3,
				      .flavor = AUTH_TLS };
	uint8_t wire[128];
	struct xdr_out x;

	xdr_out_init(&x, wire, sizeof(wire));
	xdr_reserve(&x, RECORD_MARK_SIZE);
	rpc_header_call_signed(&x, &h);
	rpc_auth_put(&x, RPC_AUTH_NONE, (struct xdr_view){ NULL, 0 });
	record_post(c->fd, &x);
}

bool tls_client_probe(struct tls_client *c)
{
	struct rpc_opaque_auth verf = { 0 };
	uint8_t wire[128];
	struct xdr_in x;
	uint32_t xid;

	tls_client_ask(c);
	xdr_in_init(&x, wire, record_receive(c->fd, wire, sizeof(wire)));
	return rpc_header_reply(&x, &xid, &verf) == 0 && xid == 1 &&
	       verf.flavor == RPC_AUTH_NONE && verf.body.len == 8 &&
	       memcmp(verf.body.data, "STARTTLS", 8) == 0;
}

static void set_config(SSL_CTX *ctx, const struct tls_client_config *config)
{
	const char *alpn = config->alpn ? config->alpn : "sunrpc";
	uint8_t list[64] = { (uint8_t)strlen(alpn) };
	int ok = 1;

	memcpy(list + 1, alpn, strlen(alpn));
	if (*alpn)
		ok = !SSL_CTX_set_alpn_protos(ctx, list,
					      (unsigned)strlen(alpn) + 1);
	if (config->groups)
		ok &= SSL_CTX_set1_groups_list(ctx, config->groups) == 1;
	if (config->suites)
		ok &= SSL_CTX_set_ciphersuites(ctx, config->suites) == 1;
	if (config->keylog)
		SSL_CTX_set_keylog_callback(ctx, config->keylog);
	if (config->version)
		ok &= SSL_CTX_set_max_proto_version(ctx, config->version);
	if (config->cert)
		ok &= SSL_CTX_use_certificate_chain_file(ctx, config->cert) &
		      SSL_CTX_use_PrivateKey_file(ctx, config->cert,
						  SSL_FILETYPE_PEM);
	assert(ok);
}

bool tls_client_shake(struct tls_client *c,
		      const struct tls_client_config *config)
{
	c->ctx = SSL_CTX_new(TLS_client_method());
	set_config(c->ctx, config ? config : &(struct tls_client_config){ 0 });
	c->ssl = SSL_new(c->ctx);
	SSL_set_fd(c->ssl, c->fd);
	/* The client's part ends before the server has looked at its
	 * certificate: a failure shows with the first reply. */
	return SSL_connect(c->ssl) == 1;
}

bool tls_client_start(struct tls_client *c, uint16_t port,
		      const struct tls_client_config *config)
{
	tls_client_open(c, port);
	return tls_client_probe(c) && tls_client_shake(c, config);
}

void tls_client_begin(struct tls_client *c, uint32_t prog, uint32_t vers,
		      uint32_t proc)
{
	const struct rpc_header h = { .xid = ++c->xid, .prog = prog,
				      .vers = vers, .proc = proc };

	record_call(&c->out, c->buf, TLS_CLIENT_BUF, &h);
}

void tls_client_post(struct tls_client *c)
{
	size_t len = record_end(&c->out);

	if (!c->ssl) {
		record_post(c->fd, &c->out);
		return;
	}
	for (size_t at = 0; at < len; ) {
		size_t n = c->record ? MIN(c->record, len - at) : len - at;
		int did = SSL_write(c->ssl, c->buf + at, (int)n);

		if (did <= 0)
			return;
		at += (size_t)did;
	}
}

static bool receive_all(struct tls_client *c, uint8_t *p, size_t len)
{
	ssize_t n = 1;

	for (size_t at = 0; at < len && n > 0; at += (size_t)n) {
		n = c->ssl ? SSL_read(c->ssl, p + at, (int)(len - at)) :
		    recv(c->fd, p + at, len - at, 0);
	}
	return n > 0;
}

int tls_client_wait(struct tls_client *c)
{
	uint32_t mark, xid;
	int err;

	if (!receive_all(c, (uint8_t *)&mark, sizeof(mark)))
		return -ENOTCONN;
	mark = ntohl(mark) & ~RECORD_LAST;
	assert(mark <= TLS_CLIENT_BUF);
	if (!receive_all(c, c->buf, mark))
		return -ENOTCONN;
	xdr_in_init(&c->in, c->buf, mark);
	err = rpc_header_reply(&c->in, &xid, NULL);
	assert(xid == c->xid);
	return err;
}

int tls_client_call(struct tls_client *c)
{
	tls_client_post(c);
	return tls_client_wait(c);
}

bool tls_client_is_left(struct tls_client *c)
{
	uint8_t b[512];
	ssize_t n;

	do
		n = recv(c->fd, b, sizeof(b), 0);
	while (n > 0);
	return n == 0 || errno == ECONNRESET;
}
