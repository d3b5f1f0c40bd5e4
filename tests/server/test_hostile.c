/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bad input to every port of a running gannetd costs the sender an error or
 * its connection, and the server nothing: it goes on serving, and counts.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/xdr.h"
#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"
#include "wire/record.h"

#define MIB	((size_t)1 << 20)

static struct daemon_run d;

static void setup(void)
{
	const char *const args[] = { "--export",
		"mem:/m 127.0.0.1(rw,insecure)", "--max-connections", "64",
		"--memory", "16", NULL };

	daemon_prepare(&d);
	strcpy(d.settings, "[server]\nmax-client-connections = 64\n");
	ck_assert(daemon_start(&d, args));
}

/* After any input the server still serves, and ends cleanly (without a
 * sanitizer's report). */
static void teardown(void)
{
	ck_assert(daemon_alive(&d));
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
	ck_assert_msg(WIFEXITED(d.status) && WEXITSTATUS(d.status) == 0,
		      "status %d", d.status);
	daemon_clean(&d);
}

static uint32_t seed;

static uint32_t next_random(void)
{
	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

static void send_all(int fd, const void *data, size_t len)
{
	const uint8_t *p = data;

	while (len > 0) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

		if (n <= 0)
			return;		/* closed on us: fine */
		p += n;
		len -= (size_t)n;
	}
}

/* True when the peer closes within the receive time-out. */
static bool closed_by_peer(int fd)
{
	uint8_t buf[4096];
	ssize_t n;

	do {
		n = recv(fd, buf, sizeof(buf), 0);
	} while (n > 0);
	return n == 0 || errno == ECONNRESET;
}

/* A call of an NFS procedure with AUTH_NONE and @len bytes of arguments, at
 * @p, behind its record mark. */
static size_t put_call(uint8_t *p, uint32_t prog, uint32_t vers, uint32_t proc,
		       size_t len)
{
	const uint32_t head[] = { RECORD_LAST | (uint32_t)(40 + len),
		next_random(), 0, 2, prog, vers, proc, 0, 0, 0, 0 };

	for (int i = 0; i < 11; i++)
		xdr_set_word(p + 4 * i, head[i]);
	return 44;
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(random_bytes_over_tcp)
{
	uint8_t junk[3000];

	for (seed = 1; seed < 60; seed++) {
		uint32_t kept = seed;
		int fd = daemon_connect(d.tcp_port);

		ck_assert_int_ge(fd, 0);
		for (size_t i = 0; i < sizeof(junk); i++)
			junk[i] = (uint8_t)next_random();
		send_all(fd, junk, 1 + next_random() % sizeof(junk));
		close(fd);
		seed = kept;
	}
}

/* Half of them begin as an MPA Request does. */
TEST(random_bytes_to_nfs_over_rdma)
{
	static const uint8_t start[] = "MPA ID Req Frame\0\1\0\0";
	uint8_t junk[3000];

	ck_assert_uint_ne(d.rdma_port, 0);
	for (seed = 1; seed < 60; seed++) {
		uint32_t kept = seed;
		int fd = daemon_connect(d.rdma_port);

		ck_assert_int_ge(fd, 0);
		for (size_t i = 0; i < sizeof(junk); i++)
			junk[i] = (uint8_t)next_random();
		if (kept % 2)
			memcpy(junk, start, 20);
		send_all(fd, junk, 1 + next_random() % sizeof(junk));
		close(fd);
		seed = kept;
	}
}

TEST(random_bytes_over_udp)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_port = htons(d.udp_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	uint8_t junk[1504];

	seed = 7;
	for (int k = 0; k < 500; k++) {
		size_t len = next_random() % 1500;

		for (size_t i = 0; i < len; i++)
			junk[i] = (uint8_t)next_random();
		/* Half of them look like a call. */
		if (k % 2 && len > 100)
			put_call(junk, 100005, 3, next_random() % 7, 0);
		sendto(fd, k % 2 ? junk + 4 : junk, len, 0,
		       (struct sockaddr *)&sin, sizeof(sin));
	}
	close(fd);
}

TEST(random_arguments_to_every_procedure)
{
	uint8_t wire[44 + 512];
	int fd = daemon_connect(d.tcp_port);

	seed = 99;
	for (uint32_t k = 0; k < 2200; k++) {
		size_t len = 4 * (next_random() % 128);
		size_t n = put_call(wire, k % 5 ? 100003 : 100005, 3, k % 23,
				    len);

		for (size_t i = 0; i < len; i++)
			wire[n + i] = next_random() % 3 ?
				0 : (uint8_t)next_random();
		send_all(fd, wire, n + len);
		if (k % 100 == 99) {
			/* Leave some unread, take a new one. */
			close(fd);
			fd = daemon_connect(d.tcp_port);
			ck_assert_int_ge(fd, 0);
		}
	}
	close(fd);
}

TEST(a_call_cut_off_anywhere)
{
	uint8_t wire[44 + 64];
	size_t n;

	seed = 3;
	n = put_call(wire, 100003, 3, 1, 64);
	memset(wire + n, 0, 64);
	xdr_set_word(wire + n, 60);
	for (size_t len = 1; len < sizeof(wire); len += 3) {
		int fd = daemon_connect(d.tcp_port);

		ck_assert_int_ge(fd, 0);
		send_all(fd, wire, len);
		/* A record that ends early, as well. */
		if (len > 8) {
			int fd2 = daemon_connect(d.tcp_port);
			uint8_t copy[sizeof(wire)];

			memcpy(copy, wire, sizeof(wire));
			xdr_set_word(copy, RECORD_LAST | (uint32_t)(len - 4));
			send_all(fd2, copy, len);
			shutdown(fd2, SHUT_WR);
			closed_by_peer(fd2);
			close(fd2);
		}
		close(fd);
	}
}

static bool daemon_counted(const char *line)
{
	kill(d.pid, SIGUSR1);
	return daemon_logged(&d, line);
}

/* No client is left waiting for an answer that can't come. */
TEST(a_record_that_is_no_call_ends_its_connection)
{
	/* Only an xid; a reply; an unknown message type; the header of a call
	 * without its program. */
	static const uint32_t words[][4] = { { 1 }, { 1, 1, 0, 0 },
		{ 1, 7, 2, 100003 }, { 1, 0, 2 } };
	static const uint8_t nwords[] = { 1, 4, 4, 3 };
	uint8_t wire[20];

	for (size_t i = 0; i < sizeof(nwords); i++) {
		int fd = daemon_connect(d.tcp_port);

		ck_assert_int_ge(fd, 0);
		xdr_set_word(wire, RECORD_LAST | 4u * nwords[i]);
		for (size_t k = 0; k < nwords[i]; k++)
			xdr_set_word(wire + 4 + 4 * k, words[i][k]);
		send_all(fd, wire, 4 + 4 * (size_t)nwords[i]);
		ck_assert_msg(closed_by_peer(fd), "kind %zu", i);
		close(fd);
	}
	ck_assert(daemon_counted("rpc_short 2"));
	ck_assert(daemon_counted("rpc_not_call 2"));
}

TEST(a_record_of_four_gigabytes_is_refused)
{
	static const uint32_t claims[] = { 0xffffffff, 0x7fffffff, 0x80800000,
					   0x00800000 };
	uint8_t wire[4];

	for (int i = 0; i < 4; i++) {
		int fd = daemon_connect(d.tcp_port);

		ck_assert_int_ge(fd, 0);
		xdr_set_word(wire, claims[i]);
		send_all(fd, wire, 4);
		ck_assert(closed_by_peer(fd));
		close(fd);
	}
	kill(d.pid, SIGUSR1);
	ck_assert(daemon_logged(&d, "tcp_bad_record"));
}

TEST(empty_fragments_without_end_are_refused)
{
	uint8_t zeros[65536] = { 0 };
	int fd = daemon_connect(d.tcp_port);

	ck_assert_int_ge(fd, 0);
	for (int i = 0; i < 64; i++)
		send_all(fd, zeros, sizeof(zeros));
	ck_assert(closed_by_peer(fd));
	close(fd);
}

TEST(stalled_connections_do_not_keep_others_out)
{
	uint8_t wire[48];
	int fds[40];

	seed = 5;
	put_call(wire, 100003, 3, 0, 4);
	for (int i = 0; i < 40; i++) {
		fds[i] = daemon_connect(d.tcp_port);
		ck_assert_int_ge(fds[i], 0);
		/* In the middle of a record, then nothing. */
		send_all(fds[i], wire, (size_t)i);
	}
	for (int i = 0; i < 20; i++)
		ck_assert(daemon_answers(&d));
	for (int i = 0; i < 40; i++)
		close(fds[i]);
}

TEST(connections_over_the_limit_are_refused_and_come_in_later)
{
	int fds[80];

	for (int i = 0; i < 80; i++)
		fds[i] = daemon_connect(d.tcp_port);
	ck_assert(!daemon_answers(&d));
	for (int i = 0; i < 80; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	ck_assert(AWAIT_EACH(20000, daemon_answers(&d)));
}

TEST(replies_that_are_never_read_do_not_stop_the_server)
{
	uint8_t wire[44];
	int fd = daemon_connect(d.tcp_port);

	ck_assert_int_ge(fd, 0);
	seed = 11;
	/* Far more replies than socket buffers hold; the server stops reading
	 * at some point, so don't wait for it. */
	for (int i = 0; i < 200000; i++) {
		size_t n = put_call(wire, 100003, 3, 0, 0);

		if (send(fd, wire, n, MSG_NOSIGNAL | MSG_DONTWAIT) != 44)
			break;
	}
	for (int i = 0; i < 20; i++)
		ck_assert(daemon_answers(&d));
	close(fd);
}

/* A connection from 127.0.0.@host, with a receive time-out. */
static int connect_from(uint8_t host, int timeout_ms)
{
	struct sockaddr_in sin = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(0x7f000000u + host) };
	struct timeval tv = { timeout_ms / 1000, timeout_ms % 1000 * 1000 };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	sin.sin_port = htons(d.tcp_port);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	return fd;
}

/* The first @n bytes of a call of a megabyte. */
static void send_large(int fd, size_t n, int flags)
{
	static uint8_t wire[MIB];

	put_call(wire, 100003, 3, 0, MIB - 44);
	for (size_t sent = 0; sent < n;) {
		ssize_t k = send(fd, wire + sent, n - sent,
				 MSG_NOSIGNAL | flags);

		if (k <= 0)
			break;
		sent += (size_t)k;
	}
}

static bool is_open(int fd)
{
	char c;

	return recv(fd, &c, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* One address takes all the memory that it can; another gets a reply.  True
 * when it did before any of the first were closed. */
static bool served_beside_hogs(void)
{
	uint8_t reply[28];
	int fd[20], same, other;
	bool soon = true;

	for (int i = 0; i < 20; i++) {
		fd[i] = connect_from(1, 100);
		send_large(fd[i], 100000, 0);
	}
	same = connect_from(1, 300);
	send_large(same, MIB, MSG_DONTWAIT);
	soon = recv(same, reply, sizeof(reply), 0) < 0 && is_open(same);
	other = connect_from(2, 60000);
	send_large(other, MIB, 0);
	ck_assert_int_eq(recv(other, reply, sizeof(reply), MSG_WAITALL), 28);
	for (int i = 0; i < 20; i++)
		soon = soon && is_open(fd[i]);
	close(other);
	close(same);
	for (int i = 0; i < 20; i++)
		close(fd[i]);
	return soon;
}

/* They are closed after five seconds, which a slow machine might need for
 * something else, once or twice. */
TEST(calls_never_finished_do_not_keep_memory_from_other_addresses)
{
	bool soon = false;

	seed = 13;
	for (int i = 0; i < 5 && !soon; i++)
		soon = served_beside_hogs();
	ck_assert(soon);
}
