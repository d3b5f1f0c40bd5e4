/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of file systems below exports: recorded identities stay. */
#include "exports/children.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exports/child_record.h"
#include "tests/unit/runner.h"

static char dir[] = "/tmp/gannet-children-XXXXXX";
static char path[64];
static struct child_record *record;
static char seen[256];			/* the paths, as they were read */

static bool no_append;			/* nothing is opened to append */

int openat(int at, const char *name, int flags, ...)
{
	mode_t mode;
	va_list ap;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if (no_append && flags & O_APPEND) {
		errno = ENFILE;
		return -1;
	}
	return (int)syscall(SYS_openat, at, name, flags, mode);
}

static void see(void *arg, const struct child_line *line)
{
	size_t n = strlen(seen);

	snprintf(seen + n, sizeof(seen) - n, "%x=%s;", line->id, line->path);
}

static void reopen(void)
{
	if (record)
		child_record_close(record);
	seen[0] = '\0';
	ck_assert_int_eq(child_record_open(dir, 3, see, NULL, &record), 0);
}

static void add(uint32_t id, const char *where)
{
	const struct child_line line = { .id = id, .top = 1, .above = 1,
					 .dir = { .len = 1, .data = { 'g' } },
					 .path = where };

	child_record_add(record, &line);
}

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/children", dir);
	reopen();
}

static void teardown(void)
{
	child_record_close(record);
	unlink(path);
	rmdir(dir);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(the_last_lines_are_read)
{
	add(0x11, "/a");
	add(0x12, "/b c");
	reopen();
	ck_assert_str_eq(seen, "11=/a;12=/b c;");
	add(0x13, "/d");
	add(0x14, "/e");
	reopen();
	ck_assert_str_eq(seen, "12=/b c;13=/d;14=/e;");
	reopen();
	ck_assert_str_eq(seen, "12=/b c;13=/d;14=/e;");
}

TEST(a_line_that_was_cut_off_costs_only_itself)
{
	struct stat st;

	add(0x11, "/a");
	add(0x12, "/b");
	ck_assert_int_eq(stat(path, &st), 0);
	ck_assert_int_eq(truncate(path, st.st_size - 1), 0);
	reopen();
	ck_assert_str_eq(seen, "11=/a;");
	add(0x13, "/c");
	reopen();
	ck_assert_str_eq(seen, "11=/a;13=/c;");
}

TEST(a_line_that_a_full_disk_cut_off_is_removed)
{
	struct rlimit lim = { 0, RLIM_INFINITY };
	struct stat st;

	signal(SIGXFSZ, SIG_IGN);
	add(0x11, "/a");
	ck_assert_int_eq(stat(path, &st), 0);
	lim.rlim_cur = (rlim_t)st.st_size + 10;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	add(0x12, "/b");
	lim.rlim_cur = RLIM_INFINITY;
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	add(0x13, "/c");
	reopen();
	ck_assert_str_eq(seen, "11=/a;13=/c;");
}

TEST(a_file_that_is_too_long_is_opened_on_a_full_disk_too)
{
	const struct rlimit lim = { 1, RLIM_INFINITY };

	signal(SIGXFSZ, SIG_IGN);
	for (uint32_t i = 0x11; i < 0x15; i++)
		add(i, "/a");
	ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &lim), 0);
	reopen();
	ck_assert_str_eq(seen, "12=/a;13=/a;14=/a;");
}

#define SOME	20

/* The lines that were read are freed: seen here, or by a sanitizer. */
TEST(a_file_that_can_not_be_opened_to_append_costs_no_memory)
{
	struct export_table t = { .state_dir = dir };
	struct children *c;
	size_t before = 0;

	add(0x11, "/a");
	add(0x12, "/b");
	no_append = true;
	/* The allocator keeps some freed memory at first. */
	for (int i = 0; i < 2 * SOME; i++) {
		if (i == SOME)
			before = mallinfo2().uordblks;
		ck_assert_int_eq(children_create(&t, &c), -ENFILE);
	}
	ck_assert_uint_lt(mallinfo2().uordblks,
			  before + SOME * sizeof(struct child));
	no_append = false;
}
