/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannetctl(8) drains and resumes gannetd.  Other processes must not take its
 * ports meanwhile: the tests have a separate network.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/ctl_json.h"
#include "tests/server/net_space.h"
#include "tests/unit/runner.h"

static struct daemon_run d;

static void start(void)
{
	daemon_prepare(&d);
	ck_assert(daemon_start(&d, (const char *const[]){
		"--export", "mem:/a *(rw,insecure,no_root_squash)",
		"--metrics", "127.0.0.1:0", NULL }));
}

static void stop(void)
{
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	daemon_clean(&d);
}

TEST_CASE(.setup = start, .teardown = stop);

static struct sockaddr_in at_port(uint16_t port)
{
	struct sockaddr_in at = { .sin_family = AF_INET };

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons(port);
	return at;
}

static bool is_refused(uint16_t port)
{
	const struct sockaddr_in at = at_port(port);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	bool is = connect(fd, (const struct sockaddr *)&at, sizeof(at)) < 0 &&
		  errno == ECONNREFUSED;

	close(fd);
	return is;
}

/* A file goes over iWARP and comes back over TCP. */
static void is_served(void)
{
	char line[300];

	snprintf(line, sizeof(line), "echo hello | ./gannet-nfs put -q - "
		 "'rdma+iwarp://127.0.0.1:%u/a/file?mountport=%u'",
		 d.rdma_port, d.tcp_port);
	ck_assert_int_eq(system(line), 0);
	snprintf(line, sizeof(line), "./gannet-nfs cat 'tcp://127.0.0.1:%u/a/"
		 "file' | grep -qx hello", d.tcp_port);
	ck_assert_int_eq(system(line), 0);
	ck_assert(daemon_answers(&d));
}

TEST(a_drained_server_refuses_until_it_resumes_at_the_same_ports)
{
	char byte;
	int fd;

	for (int i = 0; i < 3; i++) {
		is_served();
		fd = daemon_connect(d.tcp_port);
		ctl_says(&d, "drain", 0, "drained: 0 connections, 0 calls\n");
		/* In order: not a reset. */
		ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
		close(fd);
		ck_assert(is_refused(d.tcp_port));
		ck_assert(is_refused(d.rdma_port));
		ctl_says(&d, "status", 0, "state            drained, 0 calls");
		ctl_says(&d, "drain", 0, "drained");
		ctl_says(&d, "resume", 0, "serving");
		ctl_says(&d, "status", 0, "state            serving");
	}
	is_served();
	ctl_says(&d, "resume", 0, "serving");
}

/* A NULL call of NFS, with the record's header. */
#define CALL_WORDS	11
static void make_call(uint32_t words[CALL_WORDS], uint32_t xid)
{
	const uint32_t call[CALL_WORDS] = {
		0x80000028, xid, 0, 2, 100003, 3,
	};

	for (int i = 0; i < CALL_WORDS; i++)
		words[i] = htonl(call[i]);
}

/* Sends calls and reads no reply, until both sides are full. */
static int connect_and_stuff(void)
{
	struct sockaddr_in at = at_port(d.tcp_port);
	int fd = socket(AF_INET, SOCK_STREAM, 0), small = 4096;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	uint32_t calls[1000][CALL_WORDS];
	size_t from = 0;
	ssize_t n;

	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++)
		make_call(calls[i], i);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	while (poll(&p, 1, 1000) == 1) {
		n = send(fd, (char *)calls + from, sizeof(calls) - from,
			 MSG_DONTWAIT);
		ck_assert_int_gt(n, 0);
		from = (from + (size_t)n) % sizeof(calls);
	}
	return fd;
}

static const char *state(void)
{
	static char text[16];
	json_t *r = ctl_json(&d, "status");

	snprintf(text, sizeof(text), "%s", json_string_value(
		 json_object_get(r, "state")));
	json_decref(r);
	return text;
}

TEST(replies_that_wait_for_their_client_are_waited_for)
{
	int fd = connect_and_stuff();
	size_t all = 0;
	ssize_t n;
	char bytes[65536];

	ctl_says(&d, "drain --timeout 0", 1, "draining: 1 connections");
	ck_assert_str_eq(state(), "draining");
	ck_assert(is_refused(d.tcp_port));
	while ((n = recv(fd, bytes, sizeof(bytes), 0)) > 0)
		all += (size_t)n;
	ck_assert_int_eq(n, 0);
	ck_assert_uint_gt(all, 0);
	ck_assert_uint_eq(all % 28, 0);		/* whole replies */
	close(fd);
	ctl_says(&d, "drain", 0, "drained");
	ctl_says(&d, "resume", 0, "serving");
	ck_assert(daemon_answers(&d));
}

/* The status of a page for probes. */
static unsigned probed(const char *page)
{
	char request[64], answer[4096];
	unsigned status = 0;
	int len = snprintf(request, sizeof(request), "GET %s HTTP/1.0\r\n\r\n",
			   page);

	daemon_fetch(daemon_web_port(&d), request, (size_t)len, answer,
		     sizeof(answer));
	ck_assert_msg(sscanf(answer, "HTTP/1.%*c %u", &status) == 1, "%s",
		      answer);
	return status;
}

TEST(a_drained_server_is_alive_and_not_ready)
{
	ck_assert_uint_eq(probed("/healthz"), 200);
	ck_assert_uint_eq(probed("/readyz"), 200);
	ctl_says(&d, "drain", 0, "drained");
	ck_assert_uint_eq(probed("/healthz"), 200);
	ck_assert_uint_eq(probed("/readyz"), 503);
	ctl_says(&d, "resume", 0, "serving");
	ck_assert_uint_eq(probed("/readyz"), 200);
}

TEST(a_drain_that_is_not_over_can_be_taken_back)
{
	int fd = connect_and_stuff();

	ctl_says(&d, "drain --timeout 0", 1, "goes on ending");
	ctl_says(&d, "resume", 0, "serving: 1 connections");
	ck_assert(daemon_answers(&d));
	close(fd);
}

TEST(a_port_that_was_taken_meanwhile_leaves_the_server_drained)
{
	struct sockaddr_in at = at_port(d.rdma_port);
	int fd = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	ctl_says(&d, "drain", 0, "drained");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	ctl_says(&d, "resume", 1, "cannot listen on iwarp");
	ck_assert_ptr_nonnull(strstr(ctl_out, "in use; drained still"));
	ck_assert(is_refused(d.tcp_port));
	ck_assert_str_eq(state(), "drained");
	close(fd);
	ctl_says(&d, "resume", 0, "serving");
	is_served();
}

TEST(datagrams_of_the_drain_are_not_answered_later)
{
	struct sockaddr_in at = at_port(d.udp_port);
	const struct timeval minute = { .tv_sec = 60 };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	uint32_t call[CALL_WORDS], reply[16];

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	ctl_says(&d, "drain", 0, "drained");
	make_call(call, 1);
	ck_assert_int_eq(send(fd, call + 1, sizeof(call) - 4, 0), 40);
	ctl_says(&d, "resume", 0, "serving");
	make_call(call, 2);
	ck_assert_int_eq(send(fd, call + 1, sizeof(call) - 4, 0), 40);
	ck_assert_int_eq(recv(fd, reply, sizeof(reply), 0), 24);
	ck_assert_uint_eq(ntohl(reply[0]), 2);
	close(fd);
}

TEST(a_drained_server_ends_when_it_is_told_to)
{
	ctl_says(&d, "drain", 0, "drained");
	daemon_end(&d, SIGTERM);
	ck_assert(WIFEXITED(d.status));
	ck_assert_int_eq(WEXITSTATUS(d.status), 0);
	ck_assert(daemon_start(&d, (const char *const[]){
		"--export", "mem:/a", NULL }));
}

TEST(usage_members_and_pages_say_so)
{
	static char out[1 << 20];
	static const char get[] = "GET /metrics HTTP/1.0\r\n\r\n";
	json_t *r;

	ctl_says(&d, "drain now", 2, "expected --timeout");
	ctl_says(&d, "drain --timeout soon", 2, "expected --timeout");
	ctl_says(&d, "drain --timeout 86401", 2, "expected --timeout");
	ctl_says(&d, "resume now", 2, "expected no argument");
	ck_assert_str_eq(state(), "serving");
	r = ctl_json(&d, "drain");
	ctl_manual_has(r);
	json_decref(r);
	r = ctl_json(&d, "status");
	ctl_manual_has(r);
	json_decref(r);
	if (system("./gannetd --version | grep -q 'no metrics'") == 0)
		return;
	daemon_fetch(daemon_web_port(&d), get, sizeof(get) - 1, out,
		     sizeof(out));
	ck_assert_ptr_nonnull(strstr(out, "\ngannet_draining 1\n"));
}

int main(void)
{
	return net_space_run_tests();
}
