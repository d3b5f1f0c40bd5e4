/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The way to TLS: everything that a client can send before its handshake ends,
 * and a little after that.  The server is whole, and has a trust store.
 *
 * The input is a byte that says which certificate the client shows, then items:
 * a kind, a length of two bytes, the bytes.  A message gets a record mark.  A
 * probe is an honest call of AUTH_TLS.  A step is what a client's OpenSSL sends
 * next in the handshake, or in an answer to the server: the first byte says in
 * pieces of which length, the next two at which place the other bytes spoil it.
 * Secret is sent by that OpenSSL, once the handshake is over: the first byte
 * says which of a call's bytes, a KeyUpdate and a close_notify.
 *
 * Whatever comes, the server ends a connection whose peer has ended it, it
 * serves the next one, and all buffers come back.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/util.h"
#include "tests/server/harness.h"
#include "tests/server/tls_client.h"
#include "wire/record.h"

/* Inputs after which the server is checked and recreated. */
enum { SERVER_LIFE = 2000, LOOK = 100, PATIENCE_MS = 20000 };
enum { KIND_RAW, KIND_MESSAGE, KIND_PROBE, KIND_STEP, KIND_SECRET, KINDS };
enum { SECRET_BYTES, SECRET_MESSAGE, SECRET_UPDATE, SECRET_CLOSE, SECRETS };
enum { ITEM_HEAD = 3, ITEMS_MAX = 24, STEP_HEAD = 3 };
enum { CERT_NONE, CERT_HOST, CERT_REVOKED, CERT_STRANGER, CERTS };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static const uint32_t probe[] = { 1, 0, 2, 100003, 3, 0, 7, 0, 0, 0 };

static struct harness srv;
static struct tls_pki pki;
static SSL_CTX *ctx[CERTS];

/* The connection of an input. */
static int fd;
static SSL *ssl;
static bool honest;		/* so far: an answer is due */
static bool probed;
static size_t came;		/* bytes of the server's, since the last step */

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Also at the end of the process. */
static void remove_keys(void)
{
	tls_pki_remove(&pki);
}

static SSL_CTX *client_ctx(const char *cert)
{
	static const uint8_t alpn[] = "\6sunrpc";
	SSL_CTX *c = SSL_CTX_new(TLS_client_method());

	must(c && SSL_CTX_set_alpn_protos(c, alpn, sizeof(alpn) - 1) == 0);
	if (cert)
		must(SSL_CTX_use_certificate_chain_file(c, cert) == 1 &&
		     SSL_CTX_use_PrivateKey_file(c, cert, SSL_FILETYPE_PEM) ==
		     1);
	return c;
}

static void start(void)
{
	struct harness_config c = { .nworkers = 2, .unread_ms = 1,
		.protection = RPC_MTLS,
		.exports = "/mem *(rw,insecure,xprtsec=none:tls:mtls)" };
	struct tls_files files;

	log_threshold = LOG_LEVEL_ERR;
	if (!ctx[CERT_NONE]) {
		signal(SIGPIPE, SIG_IGN);
		tls_pki_make(&pki);
		atexit(remove_keys);
		ctx[CERT_NONE] = client_ctx(NULL);
		ctx[CERT_HOST] = client_ctx(pki.host);
		ctx[CERT_REVOKED] = client_ctx(pki.revoked);
		ctx[CERT_STRANGER] = client_ctx(pki.stranger);
	}
	files = tls_pki_files(&pki);
	c.tls = &files;
	harness_start(&srv, &c);
}

/* Hands what has arrived to the client's OpenSSL, after waiting @ms at most.
 * False: the server has ended the connection. */
static bool take(int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint8_t b[16384];
	ssize_t n;

	/* The fuzzer's own alarm comes every half minute. */
	do
		n = poll(&p, 1, ms);
	while (n < 0 && errno == EINTR);
	if (n <= 0) {
		must(ms != PATIENCE_MS);
		return true;
	}
	n = recv(fd, b, sizeof(b), MSG_DONTWAIT);
	if (n <= 0)
		return false;
	came += (size_t)n;
	if (ssl)
		BIO_write(SSL_get_rbio(ssl), b, (int)n);
	return true;
}

/* In pieces of @piece bytes; 0: whole. */
static void give(const uint8_t *data, size_t len, size_t piece)
{
	while (len > 0) {
		size_t part = piece && piece < len ? piece : len;
		ssize_t n = send(fd, data, part, MSG_NOSIGNAL | MSG_DONTWAIT);
		struct pollfd p = { .fd = fd, .events = POLLOUT };

		if (n < 0 && (!take(0) || poll(&p, 1, 100) <= 0))
			return;
		if (n < 0)
			continue;
		data += n;
		len -= (size_t)n;
	}
}

static void give_message(const uint8_t *data, size_t len)
{
	static uint8_t msg[4 + 65536];
	uint32_t mark;

	record_put_mark(&mark, len);
	memcpy(msg, &mark, 4);
	memcpy(msg + 4, data, len);
	give(msg, 4 + len, 0);
}

/* Waits for @bytes of the server's, as long as they are due. */
static void await(size_t bytes)
{
	while (came < bytes && take(honest ? PATIENCE_MS : 1) && honest)
		;
}

static void give_probe(void)
{
	uint32_t call[ARRAY_SIZE(probe)];

	honest = honest && !probed;
	probed = true;
	for (size_t i = 0; i < ARRAY_SIZE(probe); i++)
		call[i] = htonl(probe[i]);
	came = 0;
	give_message((uint8_t *)call, sizeof(call));
	await(36);
	honest = honest && came == 36;
	/* That was no TLS. */
	if (ssl)
		SSL_free(ssl);
	ssl = NULL;
}

static void make_ssl(unsigned cert)
{
	ssl = SSL_new(ctx[cert]);
	must(ssl != NULL);
	SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
	SSL_set_connect_state(ssl);
}

/* Sends what the client's OpenSSL has to send. */
static void give_pending(const uint8_t *spoil, size_t len, size_t at,
			 size_t piece)
{
	uint8_t *out;
	long n = BIO_get_mem_data(SSL_get_wbio(ssl), (char **)&out);

	for (size_t i = 0; i < len && at + i < (size_t)n; i++) {
		out[at + i] ^= spoil[i];
		honest = honest && spoil[i] == 0;
	}
	give(out, (size_t)n, piece);
	(void)BIO_reset(SSL_get_wbio(ssl));
}

static void give_step(const uint8_t *data, size_t len, unsigned cert)
{
	size_t piece = len > 0 ? data[0] : 0, at = 0;

	if (!ssl)
		make_ssl(cert);
	else if (!SSL_is_init_finished(ssl))
		await(came + 1);
	if (len >= STEP_HEAD)
		at = (size_t)data[1] << 8 | data[2];
	else
		len = STEP_HEAD;
	ERR_clear_error();
	if (SSL_do_handshake(ssl) == 1 && cert >= CERT_REVOKED)
		honest = false;
	give_pending(data + STEP_HEAD, len - STEP_HEAD, at, piece);
	came = 0;
}

static void give_secret(const uint8_t *data, size_t len)
{
	uint32_t mark;

	if (!ssl || !SSL_is_init_finished(ssl) || len == 0)
		return;
	honest = false;
	ERR_clear_error();
	record_put_mark(&mark, len - 1);
	if (data[0] % SECRETS == SECRET_MESSAGE)
		SSL_write(ssl, &mark, sizeof(mark));
	if (data[0] % SECRETS == SECRET_UPDATE)
		SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
	if (data[0] % SECRETS == SECRET_CLOSE)
		SSL_shutdown(ssl);
	else if (len > 1)
		SSL_write(ssl, data + 1, (int)len - 1);
	give_pending(NULL, 0, 0, 0);
}

static void give_item(unsigned kind, const uint8_t *data, size_t len,
		      unsigned cert)
{
	switch (kind % KINDS) {
	case KIND_PROBE:
		give_probe();
		return;
	case KIND_STEP:
		give_step(data, len, cert);
		return;
	case KIND_SECRET:
		give_secret(data, len);
		return;
	case KIND_MESSAGE:
		give_message(data, len);
		break;
	default:
		give(data, len, 0);
	}
	honest = false;
}

static void begin(void)
{
	int one = 1;

	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(fd >= 0 && connect(fd, (struct sockaddr *)&srv.tcp->local,
				sizeof(struct sockaddr_in)) == 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	honest = true;
	probed = false;
	came = 0;
}

/* The server no longer waits for anything. */
static void end(void)
{
	shutdown(fd, SHUT_WR);
	while (take(PATIENCE_MS))
		;
	close(fd);
	SSL_free(ssl);
	ssl = NULL;
}

/* An honest client is served. */
static void look(void)
{
	static const uint8_t null[] = { SECRET_MESSAGE, 0, 0, 0, 1, 0, 0, 0, 0,
		0, 0, 0, 2, 0, 1, 0x86, 0xa3, 0, 0, 0, 3, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 };

	begin();
	give_probe();
	for (int i = 0; i < 8 && !(ssl && SSL_is_init_finished(ssl)); i++)
		give_step(NULL, 0, CERT_HOST);
	must(honest && SSL_is_init_finished(ssl));
	give_secret(null, sizeof(null));
	while (came == 0)
		must(take(PATIENCE_MS));
	end();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static unsigned age;
	unsigned cert;

	if (len == 0)
		return 0;
	if (age == 0)
		start();
	cert = data[0] % CERTS;
	data++;
	len--;
	begin();
	for (int i = 0; i < ITEMS_MAX && len >= ITEM_HEAD; i++) {
		size_t n = MIN((size_t)data[1] << 8 | data[2], len - ITEM_HEAD);

		give_item(data[0], data + ITEM_HEAD, n, cert);
		data += ITEM_HEAD + n;
		len -= ITEM_HEAD + n;
	}
	end();
	if (++age % LOOK == 0 || age == 1)
		look();
	if (age == SERVER_LIFE) {
		harness_stop(&srv);
		age = 0;
	}
	return 0;
}
