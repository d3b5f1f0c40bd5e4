/* SPDX-License-Identifier: BSD-2-Clause */
/* A man in the middle between ./gannet-nfs and ./gannetd that use TLS. */
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/cut_relay.h"
#include "tests/server/tls_client.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

/* The bytes of the file, which no record has in clear. */
#define SECRET	"neither read nor changed on the way"

enum trick {
	STRIP,			/* each reply to AUTH_TLS is without STARTTLS */
	/* With a record, of one connection or of all. */
	FLIP, REPLAY, CLEAR, CUT, DROP, TRICKS,
};

static struct {
	struct relay	 relay;
	enum trick	 trick;
	atomic_bool	 to_server;	/* it is with a record of the client */
	atomic_bool	 always;
	atomic_uint	 played;
	atomic_uint	 secrets;	/* records with the secret in clear */
} middle;

static struct tls_pki pki;

static void setup(void)
{
	tls_pki_make(&pki);
}

static void teardown(void)
{
	tls_pki_remove(&pki);
}

TEST_CASE(.setup = setup, .teardown = teardown, .timeout = 120);

/* A record from @fd: of RPC if it is the connection's @first, else of TLS.  Its
 * bytes; 0: the end. */
static size_t take(int fd, bool first, uint8_t *buf)
{
	size_t head = first ? 4 : 5, len;

	if (recv(fd, buf, head, MSG_WAITALL) != (ssize_t)head)
		return 0;
	len = (size_t)buf[head - 2] << 8 | buf[head - 1];
	if (recv(fd, buf + head, len, MSG_WAITALL) != (ssize_t)len)
		return 0;
	return head + len;
}

static bool put(int fd, const void *bytes, size_t len)
{
	return send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len;
}

/* Plays with the record @buf, and sends what comes of it.  False: that is the
 * end of the connection. */
static bool play(int to, uint8_t *buf, size_t len)
{
	/* A reply of RPC; a server finds that it is no call either. */
	static const uint8_t clear[28] = { 0x80, 0, 0, 24, 0, 0, 0, 1,
					   0, 0, 0, 1 };

	atomic_fetch_add(&middle.played, 1);
	switch (middle.trick) {
	case FLIP:
		buf[len - 1] ^= 1;
		return put(to, buf, len);
	case REPLAY:
		return put(to, buf, len) && put(to, buf, len);
	case CLEAR:
		return put(to, clear, sizeof(clear)) && put(to, buf, len);
	case DROP:
		return true;
	default:
		return false;
	}
}

/* The record number @n that goes to @to. */
static bool pass(int from, int to, bool to_server, unsigned n)
{
	static uint8_t buf[5 + 65536];
	size_t len = take(from, n == 0, buf);
	uint8_t *at;

	if (len == 0)
		return false;
	if (memmem(buf, len, SECRET, strlen(SECRET)))
		atomic_fetch_add(&middle.secrets, 1);
	at = n == 0 && middle.trick == STRIP ?
	     memmem(buf, len, "STARTTLS", 8) : NULL;
	if (at) {
		atomic_fetch_add(&middle.played, 1);
		memset(at, 'x', 8);
	}
	/* By then the handshake is over, and more follow. */
	if (middle.trick != STRIP && n == 20 &&
	    to_server == middle.to_server &&
	    (middle.always || atomic_load(&middle.played) == 0))
		return play(to, buf, len);
	return put(to, buf, len);
}

static void relay_one(int client)
{
	int server = daemon_connect(middle.relay.to);
	struct pollfd p[2] = { { client, POLLIN, 0 }, { server, POLLIN, 0 } };
	unsigned n[2] = { 0, 0 };
	bool on = server >= 0;

	while (on && poll(p, 2, -1) > 0) {
		if (p[0].revents)
			on = pass(client, server, true, n[0]++);
		if (on && p[1].revents)
			on = pass(server, client, false, n[1]++);
	}
	close(server);
	close(client);
}

static void *run(void *arg)
{
	int fd;

	while ((fd = accept(middle.relay.fd, NULL, NULL)) >= 0) {
		atomic_fetch_add(&middle.relay.connections, 1);
		relay_one(fd);
	}
	return NULL;
}

/* gannetd, the man in the middle, and a file of the secret.  Its path. */
static const char *start_middle(enum trick trick, bool to_server)
{
	char settings[300];
	const char *from;
	FILE *f;

	snprintf(settings, sizeof(settings), "[server]\ntls-cert = %s\n"
		 "tls-key = %s\n[log]\nlevel = debug\n", pki.cert, pki.key);
	start_both(WAY_TCP, "rw,insecure,no_root_squash,xprtsec=tls",
		   settings);
	middle.trick = trick;
	middle.to_server = to_server;
	middle.relay.run = run;
	atomic_store(&middle.played, 0);
	atomic_store(&middle.secrets, 0);
	relay_start(&middle.relay, WAY_TCP);
	from = path(d.dir, "from");
	f = fopen(from, "w");
	for (int i = 0; i < 100000; i++)
		fputs(SECRET "\n", f);
	fclose(f);
	return from;
}

static void stop_middle(void)
{
	relay_stop(&middle.relay);
	ck_assert_uint_eq(atomic_load(&middle.secrets), 0);
	stop();
}

TEST(tls_that_is_stripped_ends_without_a_call)
{
	const char *from = start_middle(STRIP, false);

	ck_assert_int_eq(TOOL("put", "--tls-ca", pki.ca, from, url("x")), 1);
	ck_assert_msg(strstr(err, "TLS: 127.0.0.1 offers none, and nothing is "
			     "sent to it in clear"), "%s", err);
	ck_assert_uint_gt(atomic_load(&middle.played), 0);
	ck_assert_int_eq(access(path(export, "x"), F_OK), -1);
	stop_middle();
}

/* The client connects again, and both have the data as they were. */
TEST_LOOP(a_trick_with_a_record_ends_a_connection_alone, FLIP, TRICKS)
{
	const char *from = start_middle((enum trick)_i, true);

	ck_assert_msg(TOOL("put", "--tls-ca", pki.ca, from, url("x")) == 0,
		      "%s", err);
	ck_assert_uint_eq(atomic_load(&middle.played), 1);
	same(from, path(export, "x"));
	if (_i != CUT)
		ck_assert(daemon_logged(&d, "a TLS record is wrong"));
	middle.to_server = false;
	atomic_store(&middle.played, 0);
	ck_assert_msg(TOOL("get", "--tls-ca", pki.ca, url("x"),
			   path(d.dir, "back")) == 0, "%s", err);
	ck_assert_uint_eq(atomic_load(&middle.played), 1);
	same(from, path(d.dir, "back"));
	stop_middle();
}

TEST_LOOP(a_trick_with_each_connection_is_an_error, FLIP, TRICKS)
{
	const char *from = start_middle((enum trick)_i, true);
	int status;

	middle.always = true;
	/* An alert of the server's can come or be lost. */
	status = TOOL("put", "--tls-ca", pki.ca, "--retries=1", from, url("x"));
	ck_assert_msg(status == 1 || status == 3, "%d %s", status, err);
	ck_assert_uint_gt(atomic_load(&middle.played), 0);
	middle.to_server = false;
	atomic_store(&middle.played, 0);
	ck_assert_int_eq(link(from, path(export, "whole")), 0);
	ck_assert_int_eq(TOOL("get", "--tls-ca", pki.ca, "--retries=1",
			      url("whole"), path(d.dir, "back")), 3);
	ck_assert_msg(strstr(err, _i == CUT ? "Connection reset by peer" :
			     "it was perhaps changed on the way"), "%s", err);
	ck_assert_uint_eq(atomic_load(&middle.played), 2);
	stop_middle();
}
