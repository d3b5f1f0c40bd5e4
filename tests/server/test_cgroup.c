/* SPDX-License-Identifier: BSD-2-Clause */
/* The server in a cgroup with little memory.  Where none can be made, the unit
 * tests of machine.c hold the limits. */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"
#include "wire/record.h"

static struct daemon_run d;
static char exports[160];

#define LITTLE		"268435456"	/* 256 MiB */
#define SLOW		250
#define RECORD		(1u << 20)

static char group[160];

static bool put(const char *dir, const char *name, const char *text)
{
	char path[256];
	bool done;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	if (!f)
		return false;
	done = fputs(text, f) >= 0;
	return fclose(f) == 0 && done;
}

/* False: no permission to make a group, or no such controller. */
static bool make_group(void)
{
	snprintf(group, sizeof(group), "/sys/fs/cgroup/memory/gannet-%d",
		 getpid());
	if (mkdir(group, 0755) == 0 &&
	    put(group, "memory.limit_in_bytes", LITTLE))
		return true;
	rmdir(group);
	snprintf(group, sizeof(group), "/sys/fs/cgroup/gannet-%d", getpid());
	if (mkdir(group, 0755) == 0 && put(group, "memory.max", LITTLE))
		return true;
	rmdir(group);
	return false;
}

static void setup(void)
{
	FILE *f;

	daemon_prepare(&d);
	snprintf(exports, sizeof(exports), "%s/exports", d.dir);
	f = fopen(exports, "w");
	ck_assert_ptr_nonnull(f);
	fprintf(f, "%s 127.0.0.1(rw,insecure)\n", d.dir);
	fclose(f);
}

static void teardown(void)
{
	char up[200];

	snprintf(up, sizeof(up), "%s/..", group);
	ck_assert(put(up, "cgroup.procs", "0"));
	daemon_clean(&d);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* The beginning of a WRITE of @RECORD bytes. */
static void begin_write(uint8_t *out)
{
	const uint32_t words[] = { RECORD_LAST | RECORD, 7, 0, 2, 100003, 3, 7,
				   0, 0, 0, 0 };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		uint32_t w = htonl(words[i]);

		memcpy(out + 4 * i, &w, 4);
	}
}

struct slow {
	int	fd;
	size_t	sent;
};

/* Sends on, up to the last KiB, as much as the server takes now. */
static void write_on(struct slow *w)
{
	static uint8_t record[RECORD];
	ssize_t n;

	begin_write(record);
	n = send(w->fd, record + w->sent, RECORD - 1024 - w->sent,
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n > 0)
		w->sent += (size_t)n;
}

TEST(slow_writes_do_not_take_more_memory_than_the_cgroup_has)
{
	const char *const args[] = { "--exports-file", exports, NULL };
	static struct slow w[SLOW];

	ck_assert(put(group, "cgroup.procs", "0"));
	ck_assert(daemon_start(&d, args));
	for (unsigned i = 0; i < SLOW; i++)
		w[i].fd = daemon_connect(d.tcp_port);
	for (unsigned round = 0; round < 20; round++)
		for (unsigned i = 0; i < SLOW; i++)
			write_on(&w[i]);
	ck_assert(daemon_answers(&d));
	ck_assert(daemon_alive(&d));
	for (unsigned i = 0; i < SLOW; i++)
		close(w[i].fd);
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
}

int main(void)
{
	int status;

	/* Only root may make a group, and a sanitizer takes memory itself. */
	if (SANITIZED || !make_group()) {
		printf("skipped: no cgroup can be made here\n");
		return 77;
	}
	status = run_tests();
	rmdir(group);
	return status;
}
