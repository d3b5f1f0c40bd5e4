/* SPDX-License-Identifier: BSD-2-Clause */
/* ./gannet-nfs when its connections to ./gannetd end. */
#include <arpa/inet.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/server/cut_relay.h"
#include "tests/server/record_stream.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

TEST_CASE(.timeout = 120);

TEST_LOOP(copies_survive_cut_connections, 0, WAYS)
{
	struct relay r = { .cut_after = 3000000, .cuts = 4 };
	const char *from, *back;

	start(_i);
	from = path(d.dir, "from");
	back = path(d.dir, "back");
	make_file(from, 20000001);
	relay_start(&r, _i);
	ck_assert_msg(TOOL("put", from, url("x")) == 0, "%s", err);
	ck_assert_uint_eq(atomic_load(&r.connections), 5);
	same(from, path(export, "x"));
	atomic_store(&r.connections, 0);
	ck_assert_msg(TOOL("get", url("x"), back) == 0, "%s", err);
	ck_assert_uint_eq(atomic_load(&r.connections), 5);
	same(from, back);
	relay_stop(&r);
	stop();
}

TEST_LOOP(a_connection_cut_for_good_is_an_error_in_the_end, 0, WAYS)
{
	struct relay r = { .cut_after = 3000000, .cuts = 1000000 };
	const char *from;

	start(_i);
	from = path(d.dir, "from");
	make_file(from, 20000001);
	relay_start(&r, _i);
	/* After the first cut nothing listens any longer. */
	shutdown(r.fd, SHUT_RDWR);
	relay_stop(&r);
	ck_assert_int_eq(TOOL("put", "-r", "2", from, url("x")), 3);
	stop();
}

TEST_LOOP(connections_without_a_reply_are_given_up, 0, WAYS)
{
	struct relay r = { .cut_after = 200, .cuts = UINT_MAX };

	start(_i);
	relay_start(&r, _i);
	ck_assert_int_eq(TOOL("ls", "-r", "2", url("")), 3);
	ck_assert_uint_le(atomic_load(&r.connections), 4);
	relay_stop(&r);
	stop();
}

/* Takes NULL calls and refuses all others: PROG_MISMATCH. */
static void *refuse_calls(void *arg)
{
	struct relay *r = arg;
	uint32_t call[256], reply[9] = { 0 };
	int fd = accept(r->fd, NULL, NULL);
	size_t len;

	while (record_receive(fd, call, sizeof(call)) > 0) {
		len = call[5] ? 36 : 28;
		record_put_mark(reply, len - RECORD_MARK_SIZE);
		reply[1] = call[0];
		reply[2] = htonl(1);
		reply[6] = call[5] ? htonl(2) : 0;
		reply[7] = reply[8] = htonl(4);
		if (write(fd, reply, len) != (ssize_t)len)
			break;
	}
	close(fd);
	return NULL;
}

TEST(calls_that_are_refused_are_not_sent_again)
{
	struct relay r = { .run = refuse_calls };

	start(WAY_TCP);
	relay_start(&r, WAY_TCP);
	ck_assert_int_eq(TOOL("ls", url("")), 3);
	ck_assert_ptr_nonnull(strstr(err, "Protocol not supported"));
	relay_stop(&r);
	stop();
}
