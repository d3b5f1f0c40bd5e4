/* SPDX-License-Identifier: BSD-2-Clause */
/* The example of the library's manual, doc/examples/rpcrdma-read, at work. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nfs/tool.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

/* Runs it with this handle, as it was built; its output goes to @to. */
static int read_to(const char *to, uint16_t port, const char *hex)
{
	char line[1024];

	snprintf(line, sizeof(line), "LD_LIBRARY_PATH=. "
		 "./doc/examples/rpcrdma-read 127.0.0.1 %u %s iwarp >%s 2>&1",
		 port, hex, to);
	return system(line);
}

static void handle_of(const char *name, char *hex, uint16_t *port)
{
	const struct tool_options o = { .config.depth = 1, .out = stdout };
	struct tool_object obj;
	struct tool t;

	ck_assert_int_eq(tool_open(&t, url(name), &o), TOOL_OK);
	ck_assert_int_eq(tool_find(&t, &obj, true, false), TOOL_OK);
	for (uint32_t i = 0; i < obj.fh.len; i++)
		sprintf(hex + 2 * i, "%02x", obj.fh.data[i]);
	*port = t.url.port;
	tool_close(&t);
}

TEST_CASE(.timeout = 120);

TEST(the_example_reads_files_of_any_size)
{
	static const size_t sizes[] = { 0, 1, 32768, 262144, 3000001 };
	char hex[2 * 64 + 1];
	uint16_t port;

	start(WAY_IWARP);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		make_file(path(export, "f"), sizes[i]);
		handle_of("f", hex, &port);
		ck_assert_int_eq(read_to(path(d.dir, "got"), port, hex), 0);
		same(path(export, "f"), path(d.dir, "got"));
	}
	/* The server knows no such file. */
	memset(hex, '5', 40);
	hex[40] = '\0';
	ck_assert_int_ne(read_to(path(d.dir, "got"), port, hex), 0);
	stop();
}
