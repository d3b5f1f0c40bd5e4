/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that no honest client sends, by a client that has TLS's keys. */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/stats.h"
#include "lib/util.h"
#include "tests/server/record_stream.h"
#include "tests/server/tls_rig.h"
#include "tests/unit/runner.h"
#include "wire/nfs3.h"

TEST_CASE(.setup = tls_rig_setup, .teardown = tls_rig_teardown);

enum { PLAIN = 20, ALERT = 21, SHAKE = 22, DATA = 23 };
enum { HEADER = 5, TAG = 16, HASH = 32 };

/* The client's sending side, with TLS_AES_128_GCM_SHA256. */
static struct {
	uint8_t	 secret[HASH];		/* CLIENT_TRAFFIC_SECRET_0 */
	uint8_t	 key[16], iv[12];
	uint64_t seq;
} side;

static void note_secret(const SSL *ssl, const char *line)
{
	if (strncmp(line, "CLIENT_TRAFFIC_SECRET_0 ", 24) != 0)
		return;
	line = strrchr(line, ' ') + 1;
	ck_assert_uint_eq(strlen(line), 2 * HASH);
	for (int i = 0; i < HASH; i++)
		ck_assert_int_eq(sscanf(line + 2 * i, "%2hhx",
					&side.secret[i]), 1);
}

/* HKDF-Expand-Label, RFC 8446 section 7.1, of one block at most. */
static void expand(const char *label, uint8_t *out, size_t len)
{
	uint8_t info[32] = { 0, (uint8_t)len }, block[HASH];
	int n = 3 + sprintf((char *)info + 3, "tls13 %s", label);

	info[2] = (uint8_t)(n - 3);
	info[n + 1] = 1;
	ck_assert(HMAC(EVP_sha256(), side.secret, HASH, info, (size_t)n + 2,
		       block, NULL));
	memcpy(out, block, len);
}

static void use_secret(void)
{
	expand("key", side.key, sizeof(side.key));
	expand("iv", side.iv, sizeof(side.iv));
	side.seq = 0;
}

/* Sends a record of @type with @len bytes of @data (NULL: zeros) and @pad
 * zeros. */
static void post(struct tls_client *c, int type, const void *data, size_t len,
		 size_t pad)
{
	static uint8_t in[20000], out[20100];
	size_t all = len + 1 + pad, n = all + TAG;
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	uint8_t nonce[12];
	int did;

	memset(in, 0, sizeof(in));
	if (data)
		memcpy(in, data, len);
	in[len] = (uint8_t)type;
	memcpy(out, (uint8_t []){ DATA, 3, 3, (uint8_t)(n >> 8), (uint8_t)n },
	       HEADER);
	memcpy(nonce, side.iv, sizeof(nonce));
	for (int i = 0; i < 8; i++)
		nonce[11 - i] ^= (uint8_t)(side.seq >> 8 * i);
	side.seq++;
	EVP_EncryptInit_ex(ctx, EVP_aes_128_gcm(), NULL, side.key, nonce);
	EVP_EncryptUpdate(ctx, NULL, &did, out, HEADER);
	EVP_EncryptUpdate(ctx, out + HEADER, &did, in, (int)all);
	EVP_EncryptFinal_ex(ctx, out + HEADER + did, &did);
	EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_GCM_GET_TAG, TAG,
			    out + HEADER + all);
	EVP_CIPHER_CTX_free(ctx);
	for (size_t at = 0; at < HEADER + n; at += (size_t)did) {
		did = (int)send(c->fd, out + at, HEADER + n - at,
				MSG_NOSIGNAL);
		if (did <= 0)
			return;
	}
}

static void start(struct tls_client *c)
{
	const struct tls_client_config config = {
		.suites = "TLS_AES_128_GCM_SHA256", .keylog = note_secret,
	};

	ck_assert(tls_client_start(c, rig.srv.port, &config));
	use_secret();
	/* OpenSSL does not know our numbers. */
	SSL_set_quiet_shutdown(c->ssl, 1);
}

enum outcome { GOES_ON, IS_BAD, ENDS };

struct odd {
	const char *what;
	int	 type;
	size_t	 len;
	const char *data;
	size_t	 pad;
	int	 times;
	enum outcome outcome;
};

static const struct odd rows[] = {
	{ "empty", DATA, 0, NULL, 0, 1, GOES_ON },
	{ "empty, 20", DATA, 0, NULL, 0, 20, GOES_ON },
	{ "empty, 100", DATA, 0, NULL, 0, 100, IS_BAD },
	{ "padding alone", DATA, 0, NULL, 16384, 1, GOES_ON },
	{ "too much", DATA, 16385, NULL, 0, 1, IS_BAD },
	{ "no type", 0, 0, NULL, 100, 1, IS_BAD },
	{ "user_canceled", ALERT, 2, "\1\132", 0, 1, GOES_ON },
	{ "user_canceled, 100", ALERT, 2, "\1\132", 0, 100, IS_BAD },
	{ "a warning", ALERT, 2, "\1\144", 0, 1, IS_BAD },
	{ "half an alert", ALERT, 1, "\1", 0, 1, IS_BAD },
	{ "no alert", ALERT, 0, NULL, 0, 1, IS_BAD },
	{ "two alerts", ALERT, 4, "\1\132\1\132", 0, 1, IS_BAD },
	{ "a fatal alert", ALERT, 2, "\2\50", 0, 1, IS_BAD },
	{ "close_notify", ALERT, 2, "\1\0", 0, 1, ENDS },
	{ "no handshake", SHAKE, 0, NULL, 0, 1, IS_BAD },
	{ "a ClientHello", SHAKE, 8, "\1\0\0\4\3\3\0\0", 0, 1, IS_BAD },
	{ "a Certificate", SHAKE, 8, "\13\0\0\4\0\0\0\0", 0, 1, IS_BAD },
	{ "a Finished", SHAKE, 4, "\24\0\0\0", 0, 1, IS_BAD },
	{ "a ticket", SHAKE, 4, "\4\0\0\0", 0, 1, IS_BAD },
	{ "no KeyUpdate", SHAKE, 5, "\30\0\0\1\2", 0, 1, IS_BAD },
	{ "a long KeyUpdate", SHAKE, 6, "\30\0\0\2\0\0", 0, 1, IS_BAD },
	{ "a KeyUpdate and more", SHAKE, 10, "\30\0\0\1\0\30\0\0\1\0", 0, 1,
	  IS_BAD },
	{ "half a KeyUpdate, then data", SHAKE, 2, "\30\0", 0, 1, IS_BAD },
	{ "a ChangeCipherSpec", PLAIN, 1, "\1", 0, 1, IS_BAD },
	{ "a heartbeat", 24, 4, "\1\0\1\0", 0, 1, IS_BAD },
	{ "an unknown type", 99, 4, "\1\0\1\0", 0, 1, IS_BAD },
};

/* A GETATTR, with the odd records between its halves. */
static void post_around(struct tls_client *c, const struct odd *o)
{
	size_t len;

	tls_client_begin(c, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_GETATTR);
	xdr_put_opaque(&c->out, rig.top.data, rig.top.len);
	len = record_end(&c->out);
	post(c, DATA, c->buf, 30, 0);
	for (int i = 0; i < o->times; i++)
		post(c, o->type, o->data, o->len, o->pad);
	post(c, DATA, c->buf + 30, len - 30, 0);
}

TEST(odd_records_are_taken_or_end_their_connection)
{
	tls_rig_start(NULL, true);
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
		uint64_t bad = stats_sum_by_name("tls_bad_records");
		struct tls_client c;
		int got;

		start(&c);
		post_around(&c, &rows[i]);
		got = tls_rig_status(&c);
		ck_assert_msg(got == (rows[i].outcome == GOES_ON ? NFS3_OK :
				      -ENOTCONN), "%s", rows[i].what);
		tls_client_close(&c);
		EVENTUALLY(xprt_gate_count(rig.srv.tcp->gate) == 0);
		bad = stats_sum_by_name("tls_bad_records") - bad;
		ck_assert_msg(bad == (rows[i].outcome == IS_BAD), "%s",
			      rows[i].what);
	}
}
