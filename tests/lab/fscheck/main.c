/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fscheck MOUNTED EXPORTED GROUP...: runs the groups of checks, a line each.
 * MOUNTED is a directory on the client, EXPORTED the same on the server.
 */
#include "tests/lab/fscheck/fscheck.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define USUAL_LIMIT 120	/* seconds; emulation is slow */

int mnt, back;
char mnt_path[4096], back_path[4096];

static const struct {
	const char *name;
	const struct fscheck *checks;
} groups[] = {
	{ "tree", tree_checks },
	{ "names", name_checks },
	{ "dirs", dir_checks },
	{ "io", io_checks },
	{ "sharing", sharing_checks },
	{ "perm", perm_checks },
	{ "walks", walk_checks },
	{ "counted", counted_walks },
};

bool both_stat(const char *name, struct stat *st)
{
	struct stat sb;

	if (fstatat(mnt, name, st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    fstatat(back, name, &sb, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	errno = 0;
	return st->st_mode == sb.st_mode && st->st_nlink == sb.st_nlink &&
	       st->st_uid == sb.st_uid && st->st_gid == sb.st_gid &&
	       (S_ISDIR(sb.st_mode) || st->st_size == sb.st_size) &&
	       st->st_rdev == sb.st_rdev && st->st_ino == sb.st_ino &&
	       st->st_mtim.tv_sec == sb.st_mtim.tv_sec &&
	       st->st_mtim.tv_nsec == sb.st_mtim.tv_nsec;
}

/* Whether @run, in a child that @prepare set up, returned true in time. */
static bool in_child(const struct fscheck *c)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		bool held;

		alarm(c->seconds ? c->seconds : USUAL_LIMIT);
		held = c->run();
		fflush(stdout);
		_exit(held ? 0 : 1);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return false;
	if (WIFSIGNALED(status))
		printf("# ended by signal %d\n", WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool as_user(uid_t uid, gid_t gid, const gid_t *list, size_t n,
	     bool (*run)(void))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		bool held = setgroups(n, list) == 0 &&
			    setresgid(gid, gid, gid) == 0 &&
			    setresuid(uid, uid, uid) == 0 && run();

		fflush(stdout);
		_exit(held ? 0 : 1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid &&
	       WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static int open_dir(char *path, size_t size, const char *top, const char *name)
{
	snprintf(path, size, "%s/%s", top, name);
	return open(path, O_RDONLY | O_DIRECTORY);
}

static bool run_check(const struct fscheck *c, const char *mounted,
		      const char *exported)
{
	bool held = false;

	snprintf(mnt_path, sizeof(mnt_path), "%s/%s", mounted, c->name);
	if (mkdir(mnt_path, 0777) < 0 || chmod(mnt_path, 0777) < 0) {
		printf("# mkdir %s: %s\n", mnt_path, strerror(errno));
		goto out;
	}
	mnt = open_dir(mnt_path, sizeof(mnt_path), mounted, c->name);
	back = open_dir(back_path, sizeof(back_path), exported, c->name);
	held = mnt >= 0 && back >= 0 && in_child(c);
	close(mnt);
	close(back);
out:
	printf("%s - ", held ? "ok" : "not ok");
	for (const char *p = c->name; *p; p++)
		putchar(*p == '_' ? ' ' : *p);
	putchar('\n');
	fflush(stdout);
	return held;
}

static int run_group(const char *name, const char *mounted,
		     const char *exported)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++) {
		if (strcmp(groups[i].name, name) != 0)
			continue;
		for (const struct fscheck *c = groups[i].checks; c->name; c++)
			failed += !run_check(c, mounted, exported);
		return failed;
	}
	fprintf(stderr, "fscheck: no group %s\n", name);
	return 1;
}

int main(int argc, char **argv)
{
	int failed = 0;

	if (argc < 4) {
		fprintf(stderr, "fscheck MOUNTED EXPORTED GROUP...\n");
		return 2;
	}
	umask(022);
	for (int i = 3; i < argc; i++)
		failed += run_group(argv[i], argv[1], argv[2]);
	return failed > 0;
}
