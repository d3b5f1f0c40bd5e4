/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A capture as the server sends it: its limits and filters, and readers that do
 * not behave.  tests/capture.sh checks how tshark reads the file.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/pcapng.h"
#include "tests/server/ctl_run.h"
#include "tests/unit/runner.h"
#include "wire/record.h"

static struct daemon_run d;
static char path[160];		/* of the socket */

#define ARGS(...)	((const char *const[]){ __VA_ARGS__, NULL })
#define STREAM_MAX	(80u << 20)
#define BIG		(1u << 20)

static void setup(void)
{
	daemon_prepare(&d);
	snprintf(path, sizeof(path), "%s/state/control", d.dir);
	ck_assert(daemon_start(&d, ARGS("--export", "mem:/a *(rw,insecure)",
					"--export", "mem:/b *(rw,insecure)")));
}

static void teardown(void)
{
	if (d.pid && daemon_alive(&d))
		daemon_end(&d, SIGTERM);
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static void ends(void)
{
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	d.pid = 0;
}

/* ---- a capture */

struct reader {
	int	 fd;
	char	 answer[512];
	uint8_t *bytes;
	size_t	 len;
	/* Of the file. */
	unsigned messages;		/* those whose last segment is there */
	unsigned replies;
	unsigned interfaces;		/* with packets, as bits */
	uint32_t captured, whole;	/* lengths of the last packet */
	uint64_t received, dropped;
	bool	 has_end;
};

/* Asks; false: it was refused. */
static bool asks(struct reader *r, const char *options)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const struct timeval patience = { 60, 0 };
	char request[300];
	size_t len = 0;

	memset(r, 0, sizeof(*r));
	r->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(r->fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
		   sizeof(patience));
	strcpy(un.sun_path, path);
	ck_assert_int_eq(connect(r->fd, (struct sockaddr *)&un, sizeof(un)),
			 0);
	snprintf(request, sizeof(request), "{\"v\":1,\"command\":\"capture\","
		 "\"options\":%s}\n", options);
	ck_assert_int_eq(write(r->fd, request, strlen(request)),
			 (ssize_t)strlen(request));
	while (len < sizeof(r->answer) - 1 &&
	       recv(r->fd, r->answer + len, 1, 0) == 1 &&
	       r->answer[len] != '\n')
		len++;
	return strstr(r->answer, "\"result\"");
}

/* The same, and the capture runs when it returns. */
static void begins(struct reader *r, const char *options)
{
	ck_assert_msg(asks(r, options), "%s: %s", options, r->answer);
	r->bytes = malloc(STREAM_MAX);
	r->len = 1;
	ck_assert_int_eq(recv(r->fd, r->bytes, 1, 0), 1);
}

static void goes(struct reader *r)
{
	close(r->fd);
	free(r->bytes);
}

static void refuses(const char *options, const char *error)
{
	struct reader r;

	ck_assert(!asks(&r, options));
	ck_assert_msg(strstr(r.answer, error), "%s: %s", options, r.answer);
	goes(&r);
}

static uint32_t le32(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return le32toh(v);
}

/* IPv4 with TCP or UDP. */
static void look_at_packet(struct reader *r, const uint8_t *p)
{
	const uint8_t *ip = p + 28, *rpc;
	bool is_udp = ip[9] == IPPROTO_UDP;

	r->interfaces |= 1u << le32(p + 8);
	r->captured = le32(p + 20);
	r->whole = le32(p + 24);
	if (!is_udp && !(ip[33] & 8))
		return;
	rpc = ip + (is_udp ? 28 : 44);
	r->messages++;
	r->replies += rpc[7];
}

/* Reads to the end and looks at all of it. */
static void reads(struct reader *r)
{
	size_t at = 0;
	ssize_t n;

	while ((n = recv(r->fd, r->bytes + r->len, STREAM_MAX - r->len, 0)) > 0)
		r->len += (size_t)n;
	ck_assert_int_eq(n, 0);
	ck_assert_uint_eq(le32(r->bytes), PCAPNG_SECTION);
	for (; at < r->len; at += le32(r->bytes + at + 4)) {
		const uint8_t *p = r->bytes + at;

		ck_assert_uint_le(at + le32(p + 4), r->len);
		if (le32(p) == PCAPNG_PACKET)
			look_at_packet(r, p);
		if (le32(p) == PCAPNG_STATISTICS) {
			r->has_end = true;
			r->received += le32(p + 24);
			r->dropped += le32(p + 36);
		}
	}
	ck_assert_uint_eq(at, r->len);
}

/* The reader has enough, and sees the end. */
static void stops(struct reader *r)
{
	shutdown(r->fd, SHUT_WR);
	reads(r);
	ck_assert(r->has_end);
	goes(r);
}

/* ---- calls */

/* Sends @n calls of NULL that have @len bytes too many, and takes the
 * replies. */
static void calls(unsigned n, uint32_t len)
{
	static const uint32_t head[11] = { 0, 0x67616e6e, 0, 2, 100003, 3 };
	uint8_t *wire = calloc(1, sizeof(head) + len);
	int fd = daemon_connect(d.tcp_port);
	uint32_t reply[7];

	for (int i = 0; i < 11; i++)
		((uint32_t *)(void *)wire)[i] = htonl(head[i]);
	record_put_mark(wire, 40 + len);
	for (; n > 0; n--) {
		size_t at = 0, size = sizeof(head) + len;

		while (at < size) {
			ssize_t sent = send(fd, wire + at, size - at,
					    MSG_NOSIGNAL);

			ck_assert_int_gt(sent, 0);
			at += (size_t)sent;
		}
		ck_assert_int_eq(recv(fd, reply, sizeof(reply), MSG_WAITALL),
				 sizeof(reply));
	}
	close(fd);
	free(wire);
}

static void calls_by_udp(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
		.sin_port = htons(d.udp_port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	/* GETPORT and such are not there; MOUNT is. */
	uint32_t call[10] = { htonl(7), 0, htonl(2), htonl(100005), htonl(3) };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	uint8_t reply[64];

	ck_assert_int_eq(sendto(fd, call, sizeof(call), 0,
				(struct sockaddr *)&to, sizeof(to)),
			 sizeof(call));
	ck_assert_int_eq(recv(fd, reply, sizeof(reply), 0), 24);
	close(fd);
}

/* ---- the tests */

TEST(a_capture_has_the_calls_and_their_replies)
{
	struct reader r;

	begins(&r, "{}");
	calls(3, 0);
	stops(&r);
	ck_assert_uint_eq(r.messages, 6);
	ck_assert_uint_eq(r.replies, 3);
	ck_assert_uint_eq(r.interfaces, 1);
	ck_assert_uint_eq(r.received, 6);
	ck_assert_uint_eq(r.dropped, 0);
}

TEST(datagrams_have_an_interface_of_their_own)
{
	struct reader r;

	begins(&r, "{}");
	calls_by_udp();
	stops(&r);
	ck_assert_uint_eq(r.messages, 2);
	ck_assert_uint_eq(r.interfaces, 2);
}

TEST(bytes_that_are_no_call_are_captured)
{
	static const uint8_t reply[] = "\x80\0\0\x0c" "abcd" "\0\0\0\1" "wxyz";
	struct reader r;
	uint8_t byte;
	int fd;

	begins(&r, "{}");
	fd = daemon_connect(d.tcp_port);
	ck_assert_int_eq(send(fd, reply, 16, 0), 16);
	ck_assert_int_le(recv(fd, &byte, 1, 0), 0);
	close(fd);
	stops(&r);
	ck_assert_uint_eq(r.messages, 1);
}

/* The messages of a call of NULL that a capture with @options has. */
static unsigned seen_of_null(const char *options)
{
	struct reader r;

	begins(&r, options);
	calls(1, 0);
	stops(&r);
	return r.messages;
}

TEST(filters_take_what_they_name_and_nothing_else)
{
	ck_assert_uint_eq(seen_of_null("{\"client\":\"127.0.0.1\"}"), 2);
	ck_assert_uint_eq(seen_of_null("{\"client\":\"127.9.9.9/8\"}"), 2);
	ck_assert_uint_eq(seen_of_null("{\"client\":\"127.0.0.0/31\"}"), 2);
	ck_assert_uint_eq(seen_of_null("{\"client\":\"0.0.0.0/0\"}"), 2);
	ck_assert_uint_eq(seen_of_null("{\"client\":\"127.0.0.2/31\"}"), 0);
	ck_assert_uint_eq(seen_of_null("{\"client\":\"192.0.2.1\"}"), 0);
	ck_assert_uint_eq(seen_of_null("{\"client\":\"::1\"}"), 0);
	ck_assert_uint_eq(seen_of_null("{\"proc\":\"null\"}"), 2);
	ck_assert_uint_eq(seen_of_null("{\"proc\":\"READ,NULL\"}"), 2);
	ck_assert_uint_eq(seen_of_null("{\"proc\":\"READ\"}"), 0);
	ck_assert_uint_eq(seen_of_null("{\"export\":\"/a\"}"), 0);
}

TEST(options_that_make_no_sense_are_refused)
{
	refuses("{\"client\":\"nobody\"}", "expected an address");
	refuses("{\"client\":\"192.0.2.1/33\"}", "expected an address");
	refuses("{\"client\":\"192.0.2.1/\"}", "expected an address");
	refuses("{\"client\":\"::1/129\"}", "expected an address");
	refuses("{\"client\":\"\"}", "expected an address");
	refuses("{\"proc\":\"REED\"}", "names of procedures");
	refuses("{\"proc\":\"READ,\"}", "names of procedures");
	refuses("{\"proc\":\"\"}", "names of procedures");
	refuses("{\"export\":\"/c\"}", "no export has this path");
	refuses("{\"export\":\"\"}", "no export has this path");
	refuses("{\"snaplen\":0}", "out of range");
	refuses("{\"count\":-1}", "out of range");
	refuses("{\"duration\":5000000000}", "out of range");
	refuses("{\"count\":\"5\"}", "expected client");
	refuses("{\"colour\":1}", "expected client");
	refuses("[]", "expected client");
	/* A refused capture keeps the next one from nothing. */
	ck_assert_uint_eq(seen_of_null("{}"), 2);
}

TEST(a_capture_ends_at_the_limits_that_it_was_given)
{
	struct reader r;

	begins(&r, "{\"count\":3}");
	calls(5, 0);
	reads(&r);
	ck_assert_uint_eq(r.messages, 3);
	ck_assert(r.has_end);
	goes(&r);
	begins(&r, "{\"size\":20000}");
	calls(200, 100);
	reads(&r);
	ck_assert_uint_le(r.len, 20000);
	ck_assert_uint_gt(r.len, 15000);
	ck_assert(r.has_end);
	goes(&r);
	begins(&r, "{\"duration\":1}");
	calls(1, 0);
	reads(&r);
	ck_assert_uint_eq(r.messages, 2);
	ck_assert(r.has_end);
	goes(&r);
}

TEST(a_long_message_is_kept_as_far_as_it_was_asked_for)
{
	struct reader r;

	begins(&r, "{\"snaplen\":100,\"count\":1}");
	calls(1, BIG);
	reads(&r);
	ck_assert_uint_eq(r.captured, 144);
	ck_assert_uint_gt(r.whole, 60000);
	goes(&r);
	begins(&r, "{\"snaplen\":500000,\"count\":1}");
	calls(1, BIG);
	reads(&r);
	ck_assert_uint_gt(r.captured, 60000);
	ck_assert_uint_lt(r.captured, r.whole);
	ck_assert_uint_lt(r.len, 70000);
	goes(&r);
}

TEST(there_is_one_capture_at_a_time_and_others_are_answered)
{
	struct reader r;
	char line[256];

	begins(&r, "{}");
	refuses("{}", "only one at a time");
	snprintf(line, sizeof(line), "./gannetctl --socket %s status "
		 ">/dev/null", path);
	ck_assert_int_eq(system(line), 0);
	calls(1, 0);
	stops(&r);
	ck_assert_uint_eq(r.messages, 2);
	ck_assert_uint_eq(seen_of_null("{}"), 2);
}

TEST(a_reader_that_does_not_read_loses_messages_and_holds_up_no_call)
{
	struct reader r;

	begins(&r, "{}");
	calls(60, BIG);
	stops(&r);
	ck_assert_uint_ge(r.dropped, 20);
	ck_assert_uint_ge(r.messages, 2 * 25);
	ck_assert_uint_eq(r.received, r.messages + r.dropped);
}

/* The server's resident memory. */
static uint64_t resident(void)
{
	unsigned long long all, pages = 0;
	char name[64];
	FILE *f;

	snprintf(name, sizeof(name), "/proc/%d/statm", d.pid);
	f = fopen(name, "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_eq(fscanf(f, "%llu %llu", &all, &pages), 2);
	fclose(f);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

TEST(the_memory_of_a_capture_is_bounded)
{
	struct reader r;
	uint64_t before;

	if (SANITIZED)			/* sanitizers keep freed memory */
		return;
	calls(4, BIG);
	before = resident();
	begins(&r, "{}");
	calls(100, BIG);
	ck_assert_uint_le(resident() - before, 40 << 20);
	goes(&r);
}

TEST(a_reader_that_goes_ends_the_capture)
{
	struct reader r;

	begins(&r, "{}");
	ck_assert(daemon_logged(&d, "capture begins"));
	calls(1, 0);
	goes(&r);
	ck_assert(daemon_logged(&d, "capture ends"));
	/* The same while the server waits for it to read. */
	while (!asks(&r, "{\"snaplen\":1000000}"))
		goes(&r);
	calls(10, BIG - 100000);
	goes(&r);
	while (!asks(&r, "{}"))
		goes(&r);
	goes(&r);
	calls(1, 0);
}

TEST(the_end_of_the_server_ends_the_file)
{
	struct reader r;

	begins(&r, "{}");
	calls(1, 0);
	ends();
	reads(&r);
	ck_assert_uint_eq(r.messages, 2);
	ck_assert(r.has_end);
	goes(&r);
}

TEST(a_reader_that_does_not_read_does_not_keep_the_server_from_ending)
{
	struct reader r;

	begins(&r, "{}");
	calls(20, BIG);
	ends();
	goes(&r);
}

/* ---- gannetctl */

TEST(a_file_that_was_there_becomes_its_owners_alone)
{
	char line[200], name[100];
	struct stat st;
	FILE *f;

	snprintf(name, sizeof(name), "%s/file", d.dir);
	f = fopen(name, "w");
	ck_assert_ptr_nonnull(f);
	fclose(f);
	ck_assert_int_eq(chmod(name, 0644), 0);
	snprintf(line, sizeof(line), "capture --duration 1 -w %s", name);
	ctl_says(&d, line, 0, "0 messages, 0 dropped");
	ck_assert_int_eq(stat(name, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0600);
}

/* As ctl_says().  The previous capture, whose reader is gone, might not have
 * ended yet. */
static void capture_says(const char *arguments, int status, const char *text)
{
	int got;

	WAIT_WHILE((got = ctl(&d, arguments)) == 1 &&
		   strstr(ctl_out, "only one at a time"));
	ck_assert_msg(got == status && strstr(ctl_out, text),
		      "%s: exit status %d, no '%s' in: %s", arguments, got,
		      text, ctl_out);
}

/* The owner of a file reads it whatever its mode becomes; and the link of
 * another user leads to a file that this one would lose. */
TEST(a_file_or_a_link_of_another_user_is_refused)
{
	char line[200], name[100], mine[100];
	struct stat st;
	FILE *f;

	if (geteuid() != 0)
		return;
	snprintf(name, sizeof(name), "%s/file", d.dir);
	snprintf(mine, sizeof(mine), "%s/mine", d.dir);
	for (int link = 0; link < 2; link++) {
		const char *at = link ? mine : name;

		f = fopen(at, "w");
		ck_assert_ptr_nonnull(f);
		fputs("precious", f);
		fclose(f);
		if (link)
			ck_assert(!unlink(name) && !symlink(mine, name));
		ck_assert_int_eq(lchown(name, 65534, 65534), 0);
		snprintf(line, sizeof(line), "capture --duration 1 -w %s",
			 name);
		capture_says(line, 1, "another user made it");
		ck_assert_int_eq(stat(at, &st), 0);
		ck_assert_int_eq(st.st_size, 8);
	}
	/* The caller's own symbolic link is followed. */
	ck_assert_int_eq(lchown(name, 0, 0), 0);
	capture_says(line, 0, "0 messages, 0 dropped");
	ck_assert_int_eq(stat(mine, &st), 0);
	ck_assert_int_gt(st.st_size, 8);
}

TEST(a_capture_without_its_end_is_a_failure)
{
	char line[300], name[100];
	struct stat st = { .st_size = 0 };
	FILE *f;

	snprintf(name, sizeof(name), "%s/file", d.dir);
	snprintf(line, sizeof(line), "./gannetctl --socket %s capture -w %s "
		 "2>&1", path, name);
	f = popen(line, "r");
	ck_assert_ptr_nonnull(f);
	EVENTUALLY(stat(name, &st) == 0 && st.st_size > 0);
	daemon_end(&d, SIGKILL);
	d.pid = 0;
	ck_assert_ptr_nonnull(fgets(line, sizeof(line), f));
	ck_assert_msg(strstr(line, "ended early"), "%s", line);
	ck_assert_int_eq(WEXITSTATUS(pclose(f)), 1);
}
