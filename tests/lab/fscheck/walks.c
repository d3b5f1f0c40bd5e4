/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listings of directories that change.  The mount has actimeo=0, or the client
 * would list from its cache, and an rsize of 4096: a listing takes many calls.
 */
#include "tests/lab/fscheck/fscheck.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NAMES	600
#define READERS	3
#define COUNTED	8			/* listings */
#define DIRS	4
#define FILES	100

static bool there[NAMES];
static bool touched[NAMES];		/* since the listing began */

static const char *name_of(int i)
{
	static char buf[32];

	snprintf(buf, sizeof(buf), "n%03d-a-longer-name", i);
	return buf;
}

/* By the client or on the server, in turn.  Names are made and go. */
static bool change(int n)
{
	for (; n > 0; n--) {
		int i = rand() % NAMES, dir = rand() % 2 ? mnt : back, fd;

		touched[i] = true;
		there[i] = !there[i];
		if (!there[i]) {
			MUST(unlinkat(dir, name_of(i), 0) == 0);
			continue;
		}
		fd = openat(dir, name_of(i), O_CREAT | O_EXCL | O_WRONLY, 0644);
		MUST(fd >= 0 && close(fd) == 0);
	}
	return true;
}

/* Up to @n entries of the directory; false at the end, and on errors. */
static bool read_some(int fd, int n, int *seen)
{
	char buf[1024] __attribute__((aligned(8)));
	long len = 1;

	while (n > 0 && (len = syscall(SYS_getdents64, fd, buf,
				       sizeof(buf))) > 0)
		for (long at = 0; at < len; n--) {
			const struct dirent64 *d = (const void *)(buf + at);

			if (seen && d->d_name[0] == 'n')
				seen[atoi(d->d_name + 1)]++;
			at += d->d_reclen;
		}
	return len > 0;
}

/* Others read as far as they like, and begin again, with the time that the
 * check leaves. */
static pid_t reader(const char *path)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	setpriority(PRIO_PROCESS, 0, 10);
	srand((unsigned)getpid());
	for (;;) {
		int fd = open(path, O_RDONLY | O_DIRECTORY);

		for (int i = rand() % 8; i > 0 && fd >= 0; i--)
			if (!read_some(fd, rand() % 150, NULL))
				break;
		if (fd >= 0)
			close(fd);
	}
}

static void readers_end(const pid_t *pid, int n)
{
	for (int i = 0; i < n; i++) {
		kill(pid[i], SIGKILL);
		waitpid(pid[i], NULL, 0);
	}
}

static bool is_listed(const int *seen)
{
	for (int i = 0; i < NAMES; i++) {
		if (touched[i] || seen[i] == there[i])
			continue;
		printf("# %s is%s there and was listed %d times\n", name_of(i),
		       there[i] ? "" : " not", seen[i]);
		return false;
	}
	return true;
}

/* The second half is read after more changes, @between of them. */
static bool list(int between, int *seen)
{
	int fd;

	memset(seen, 0, NAMES * sizeof(*seen));
	memset(touched, 0, sizeof(touched));
	fd = open(mnt_path, O_RDONLY | O_DIRECTORY);
	MUST(fd >= 0);
	if (between && read_some(fd, NAMES / 3, seen))
		MUST(change(between));
	while (read_some(fd, NAMES, seen))
		;
	close(fd);
	return true;
}

static bool one_listing(int between)
{
	int seen[NAMES];

	MUST(list(between, seen));
	return is_listed(seen);
}

static bool listings(void)
{
	int rounds = getenv("LAB_FULL") ? 8 : 3;

	for (int i = 0; i < rounds; i++) {
		MUST(change(1 + rand() % 3));
		/* The client sees the next change only if its time differs. */
		usleep(20000);
		MUST(one_listing(0));
		MUST(one_listing(1 + rand() % 20));
	}
	return true;
}

static bool a_listing_shows_every_change_before_it(void)
{
	pid_t pid[READERS];
	bool held;

	srand(1);
	MUST(change(2 * NAMES));
	for (int i = 0; i < READERS; i++)
		pid[i] = reader(mnt_path);
	held = listings();
	readers_end(pid, READERS);
	return held;
}

static bool a_tree_is_removed_while_others_list_it(void)
{
	char command[5000], path[DIRS][5000];
	pid_t pid[DIRS];
	int status;

	for (int i = 0; i < DIRS; i++) {
		snprintf(command, sizeof(command), "d=%s/tree/d%d; "
			 "mkdir -p $d && cd $d && "
			 "seq -f file-of-a-tree-%%g %d | xargs touch",
			 back_path, i, FILES);
		MUST(system(command) == 0);
		snprintf(path[i], sizeof(path[i]), "%s/tree/d%d", mnt_path, i);
		pid[i] = reader(path[i]);
	}
	snprintf(command, sizeof(command), "rm -rf %s/tree", mnt_path);
	status = system(command);
	readers_end(pid, DIRS);
	MUST(status == 0);
	MUST_FAIL(faccessat(back, "tree", F_OK, 0), ENOENT);
	return true;
}

/*
 * Where positions are mere counts a listing misses names when others go, and
 * has names twice when others come.  The same changes at the same moments: two
 * servers that read the directory alike give the same counts.
 */
static bool what_listings_miss_is_counted(void)
{
	unsigned missed = 0, twice = 0;
	int seen[NAMES];

	srand(7);
	for (int i = 0; i < NAMES; i += 2) {
		there[i] = true;
		MUST(put_file(back, name_of(i), 0, 0));
	}
	for (int i = 0; i < COUNTED; i++) {
		usleep(20000);
		MUST(list(20 + rand() % 20, seen));
		for (int n = 0; n < NAMES; n++) {
			if (touched[n])
				continue;
			missed += there[n] && !seen[n];
			twice += seen[n] > there[n];
		}
	}
	printf("counted: %u missed, %u twice\n", missed, twice);
	return true;
}

const struct fscheck counted_walks[] = {
	{ "what_listings_miss_is_counted", what_listings_miss_is_counted, 400 },
	{ .name = NULL },
};

const struct fscheck walk_checks[] = {
	{ "a_listing_shows_every_change_before_it",
	  a_listing_shows_every_change_before_it, 400 },
	{ "a_tree_is_removed_while_others_list_it",
	  a_tree_is_removed_while_others_list_it, 400 },
	{ .name = NULL },
};
