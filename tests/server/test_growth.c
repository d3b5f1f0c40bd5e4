/* SPDX-License-Identifier: BSD-2-Clause */
/* The growth of a server: with its work and its machine, not with settings. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"

static struct daemon_run d;
static char exports[160];

static void setup(void)
{
	daemon_prepare(&d);
	snprintf(exports, sizeof(exports), "%s/exports", d.dir);
}

static void teardown(void)
{
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown);

static unsigned threads(void)
{
	unsigned n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", d.pid);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	for (struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void write_exports(unsigned n, const char *backend)
{
	FILE *f = fopen(exports, "w");
	char dir[200];

	ck_assert_ptr_nonnull(f);
	for (unsigned i = 0; i < n; i++) {
		snprintf(dir, sizeof(dir), "%s/%u", d.dir, i);
		mkdir(dir, 0755);
		fprintf(f, "%s%s 127.0.0.1(rw,insecure)\n", backend, dir);
	}
	fclose(f);
}

static void starts(unsigned n, const char *backend)
{
	const char *const args[] = { "--exports-file", exports, "--pollers",
				     "1", NULL };

	write_exports(n, backend);
	ck_assert(daemon_start(&d, args));
}

#define MANY 200

/* Two kinds: the second has a table of files beside the directory. */
TEST_LOOP(exports_take_no_threads, 0, 2)
{
	static const char *const backend[] = { "", "posix,table:" };
	unsigned few;

	starts(1, backend[_i]);
	few = threads();
	daemon_end(&d, SIGTERM);
	starts(MANY, backend[_i]);
	ck_assert(daemon_answers(&d));
	/* Those that mounted them end after ten seconds. */
	EVENTUALLY(threads() <= few);
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
}
