/* SPDX-License-Identifier: BSD-2-Clause */
/* The log tells when each connection begins, and when and why it ends. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"

static struct daemon_run d;

static void starts_at(const char *level)
{
	const char *const args[] = { "--export", "mem:/m *(rw,insecure)",
				     "--log-level",
				     level, NULL };

	daemon_prepare(&d);
	ck_assert(daemon_start(&d, args));
}

/* At info most events of TCP connections are not logged. */
static void setup(void)
{
	starts_at("debug");
}

static void ends(void)
{
	daemon_end(&d, SIGTERM);
	ck_assert_msg(WIFEXITED(d.status) && WEXITSTATUS(d.status) == 0,
		      "status %d", d.status);
}

static void teardown(void)
{
	if (daemon_alive(&d))
		ends();
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static int connects(void)
{
	int fd = daemon_connect(d.tcp_port);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void gives(int fd, const void *data, size_t len)
{
	ck_assert_int_eq(send(fd, data, len, MSG_NOSIGNAL), (ssize_t)len);
}

static void logs(const char *text)
{
	ck_assert_msg(daemon_logged(&d, text), "no line '%s'", text);
}

TEST(a_tcp_connection_tells_its_buffers_and_what_it_did)
{
	ck_assert(daemon_answers(&d));
	logs(", buffers of ");
	logs(" s: the client closed it; calls: 1, bytes received: 44, "
	     "sent: 28");
	ck_assert(!daemon_has_logged(&d, "client reset"));
}

TEST(an_rdma_connection_tells_what_the_sides_agreed_on)
{
	char line[300];

	snprintf(line, sizeof(line), "./gannet-nfs ls "
		 "'rdma+iwarp://127.0.0.1:%u/m?mountport=%u'", d.rdma_port,
		 d.tcp_port);
	ck_assert_int_eq(system(line), 0);
	snprintf(line, sizeof(line), ": connected to 127.0.0.1:%u by iwarp ",
		 d.rdma_port);
	logs(line);
	logs(": Sends of 4096 bytes to the client, of 4096 from it, 32 to 128 "
	     "credits, with private data, ");
	logs(" Reads at a time");
	logs("the client closed it; calls: ");
	ck_assert(!daemon_has_logged(&d, "calls: 0"));
}

TEST(clients_that_come_and_go_over_tcp_fill_no_log)
{
	const struct linger at_once = { 1, 0 };
	int fd;

	ends();
	daemon_clean(&d);
	starts_at("info");
	ck_assert(daemon_answers(&d));
	fd = connects();
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
	/* A reset is told; the lines of the others would be before it. */
	logs(" s: the client reset it; calls: 0, ");
	ck_assert(!daemon_has_logged(&d, ": connected to "));
	ck_assert(!daemon_has_logged(&d, "the client closed it"));
}

TEST(a_reset_is_told)
{
	const struct linger at_once = { 1, 0 };
	int fd = connects();

	logs(": connected to ");
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
	logs(" s: the client reset it; calls: 0, ");
}

TEST(a_message_that_is_no_call_is_told)
{
	const uint32_t record[] = { htonl(0x80000008), htonl(7), htonl(1) };
	int fd = connects();

	gives(fd, record, sizeof(record));
	logs(" s: a message is not a call; ");
	close(fd);
}

TEST(a_disconnection_by_gannetctl_is_told)
{
	char line[200];
	int fd = connects();

	logs(": connected to ");
	snprintf(line, sizeof(line), "./gannetctl --socket %s/state/control "
		 "disconnect 127.0.0.1", d.dir);
	ck_assert_int_eq(system(line), 0);
	ck_assert_int_eq(recv(fd, line, 1, 0), 0);
	close(fd);
	logs(" s: gannetctl disconnects it; ");
}

TEST(the_end_of_the_server_is_told)
{
	int fd = connects();

	logs(": connected to ");
	ends();
	logs(" s: the server ends or drains; ");
	close(fd);
}

TEST(a_storm_of_connections_does_not_fill_the_log)
{
	for (unsigned i = 0; i < 100000; i++) {
		close(connects());
		if (i % 100 == 99 &&
		    daemon_has_logged(&d, " like the next one left out"))
			return;
	}
	ck_abort_msg("every connection was told");
}
