/* SPDX-License-Identifier: BSD-2-Clause */
/* The growth of a server: with its work and its machine, not with settings. */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
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

/* Two kinds: the second has a table of files next to the directory. */
TEST_LOOP(exports_take_no_threads, 0, 2)
{
	static const char *const backend[] = { "", "posix,table:" };
	unsigned few;

	starts(1, backend[_i]);
	few = threads();
	daemon_end(&d, SIGTERM);
	starts(MANY, backend[_i]);
	ck_assert(daemon_answers(&d));
	/* The threads that mounted them end after ten seconds. */
	EVENTUALLY(threads() <= few);
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
}

/* Mounts a file system at @path that answers nothing until the descriptor is
 * closed.  -1: not permitted. */
static int mount_hung(const char *path)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char text[80];

	snprintf(text, sizeof(text),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd >= 0 && geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("hung", path, "fuse", 0, text) == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/* True if the server holds the directory @name, as it does once that is an
 * export. */
static bool is_held(const char *name)
{
	char path[80], held[200], link[200];
	bool found = false;
	ssize_t len;
	DIR *dir;

	snprintf(held, sizeof(held), "%s/%s", d.dir, name);
	snprintf(path, sizeof(path), "/proc/%d/fd", d.pid);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	for (struct dirent *e; !found && (e = readdir(dir));) {
		len = readlinkat(dirfd(dir), e->d_name, link,
				 sizeof(link) - 1);
		link[MAX(len, 0)] = '\0';
		found = strcmp(link, held) == 0;
	}
	closedir(dir);
	return found;
}

static void add_good(FILE *f, const char *name)
{
	char dir[200];

	snprintf(dir, sizeof(dir), "%s/%s", d.dir, name);
	mkdir(dir, 0755);
	fprintf(f, "%s 127.0.0.1(rw,insecure)\n", dir);
}

/* Exports behind them are mounted, at the start and later. */
TEST(many_exports_of_a_hung_file_system_take_few_threads)
{
	const char *const args[] = { "--exports-file", exports, "--pollers",
				     "1", NULL };
	FILE *f = fopen(exports, "w");
	char dir[200];
	int fd;

	snprintf(dir, sizeof(dir), "%s/hung", d.dir);
	mkdir(dir, 0755);
	fd = mount_hung(dir);
	if (fd < 0) {
		printf("skipped: may not mount\n");
		return;
	}
	for (unsigned i = 0; i < 3 * MANY; i++)
		fprintf(f, "%s/%u 127.0.0.1(rw,insecure)\n", dir, i);
	add_good(f, "good");
	fflush(f);
	ck_assert(daemon_start(&d, args));
	EVENTUALLY(is_held("good"));
	add_good(f, "better");
	fclose(f);
	kill(d.pid, SIGHUP);
	EVENTUALLY(is_held("better"));
	ck_assert(daemon_answers(&d));
	ck_assert_uint_le(threads(), MANY);
	close(fd);
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
	ck_assert_int_eq(umount2(dir, MNT_DETACH), 0);
}

/* ---- few descriptors */

static unsigned count_mounted(void)
{
	char path[160], line[512];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/log", d.dir);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, "system file handles") ||
		     strstr(line, "table of files");
	fclose(f);
	return n;
}

static int connect_from(const char *host)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct sockaddr_in from = to;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	to.sin_port = htons(d.tcp_port);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_eq(inet_pton(AF_INET, host, &from.sin_addr), 1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&from, sizeof(from)), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

/* Connections have their share, and one address leaves some of it, for any
 * number of exports. */
TEST_LOOP(exports_leave_descriptors_for_connections, 0, 6)
{
	static const rlim_t limits[] = { 64, 128, 1024 };
	static const char *const backend[] = { "", "posix,table:" };
	const struct rlimit few = { limits[_i / 2], limits[_i / 2] };
	const char *kind = backend[_i % 2];
	int fd[8];

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
	starts(MANY, kind);
	if (*kind || few.rlim_cur < 1024)
		ck_assert(daemon_logged(&d, "this process can open only"));
	else
		EVENTUALLY(count_mounted() == MANY);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		fd[i] = connect_from("127.0.0.2");
	ck_assert(daemon_answers(&d));
	ck_assert_uint_ge(count_mounted(), 1);
	for (unsigned i = 0; i < ARRAY_SIZE(fd); i++)
		close(fd[i]);
	daemon_end(&d, SIGTERM);
	ck_assert_int_eq(d.status, 0);
}

/* Binds this process to the first of its processors. */
static void bind_to_one(void)
{
	cpu_set_t all, one;

	CPU_ZERO(&one);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &all))
			CPU_SET(i, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
}

TEST(a_server_bound_to_one_processor_has_one_poller)
{
	const char *const args[] = { "--exports-file", exports, NULL };

	bind_to_one();
	write_exports(1, "");
	ck_assert(daemon_start(&d, args));
	ck_assert(daemon_thread(&d, "poller 0", 0));
	ck_assert(!daemon_thread(&d, "poller 1", 0));
	daemon_end(&d, SIGTERM);
}
