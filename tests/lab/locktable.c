/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two processes take locks of one file, row by row of a table that has each
 * expected result: the cases of cthon04's tlock, and the ends of ranges.
 *
 *	locktable posix|ofd FILE [COMMAND...]
 *
 * This process is A.  B is another one on this machine, or where COMMAND, which
 * is a prefix such as nsenter with its arguments, runs programs.  Prints
 * results that differ from the table; status 0 when none does.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/lab/locktable.h"

#define LIMIT_S		240	/* for everything */
#define PENDS_MS	300	/* a lock that pends is not had by then */
#define MAP_SIZE	4096

/* One of the two. */
struct actor {
	const char *path;
	bool	 ofd;
	int	 fd, second;
	char	*map;
};

/* B, as A has it. */
struct partner {
	pid_t	 pid;
	int	 to, from;
};

static int set_lock(const struct actor *a, int type, bool waits,
		    const struct lock_step *s)
{
	struct flock f = {
		.l_type = (short)type, .l_whence = SEEK_SET,
		.l_start = s->start, .l_len = s->len,
	};
	int cmd;

	if (a->ofd)
		cmd = waits ? F_OFD_SETLKW : F_OFD_SETLK;
	else
		cmd = waits ? F_SETLKW : F_SETLK;
	if (fcntl(a->fd, cmd, &f) == 0)
		return 0;
	return errno == EACCES ? EAGAIN : errno;
}

/* F_GETLK: 0 when the lock could be had, EAGAIN when not.  With HOLDER the
 * question is for the whole file, and 0 that exactly this range is locked. */
static int get_lock(const struct actor *a, int type, const struct lock_step *s)
{
	bool holder = s->op == HOLDER;
	struct flock f = {
		.l_type = (short)type, .l_whence = SEEK_SET,
		.l_start = holder ? 0 : s->start, .l_len = holder ? 0 : s->len,
	};

	if (fcntl(a->fd, a->ofd ? F_OFD_GETLK : F_GETLK, &f) < 0)
		return errno;
	if (holder)
		return f.l_type == F_WRLCK && f.l_start == s->start &&
		       f.l_len == s->len ? 0 : ERANGE;
	return f.l_type == F_UNLCK ? 0 : EAGAIN;
}

static int lockf_at(const struct actor *a, const struct lock_step *s)
{
	int cmd = s->op == LOCKF ? F_TLOCK : s->op == TESTF ? F_TEST : F_ULOCK;

	if (lseek(a->fd, s->start, SEEK_SET) < 0 ||
	    lockf(a->fd, cmd, s->len) < 0)
		return errno == EACCES ? EAGAIN : errno;
	return 0;
}

/* Every other byte, @len of them: as many ranges. */
static int set_stripes(const struct actor *a, const struct lock_step *s)
{
	struct lock_step one = { .len = 1 };
	int err = 0;

	for (long long i = 0; i < s->len && !err; i++) {
		one.start = s->start + 2 * i;
		err = set_lock(a, F_WRLCK, false, &one);
	}
	return err;
}

static int check_text(const struct actor *a, const struct lock_step *s)
{
	size_t len = strlen(s->text);
	char text[TEXT_MAX] = "";

	if (s->op == MAP_READ)
		memcpy(text, a->map + s->start, len);
	else if (pread(a->fd, text, len, s->start) < 0)
		return errno;
	return strcmp(text, s->text) ? EBADMSG : 0;
}

static int write_text(const struct actor *a, const struct lock_step *s)
{
	size_t len = strlen(s->text);

	if (s->op == MAP_WRITE) {
		memcpy(a->map + s->start, s->text, len);
		return 0;
	}
	return pwrite(a->fd, s->text, len, s->start) == (ssize_t)len ? 0 : EIO;
}

static int map_page(struct actor *a)
{
	if (a->map)
		munmap(a->map, MAP_SIZE);
	a->map = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED,
		      a->fd, 0);
	if (a->map != MAP_FAILED)
		return 0;
	a->map = NULL;
	return errno;
}

static int die_soon(void)
{
	poll(NULL, 0, PENDS_MS);
	raise(SIGKILL);
	return 0;
}

static int act(struct actor *a, const struct lock_step *s)
{
	switch (s->op) {
	case TEST: return get_lock(a, F_WRLCK, s);
	case TEST_SHARED: return get_lock(a, F_RDLCK, s);
	case HOLDER: return get_lock(a, F_WRLCK, s);
	case LOCK: return set_lock(a, F_WRLCK, false, s);
	case SHARE: return set_lock(a, F_RDLCK, false, s);
	case UNLOCK: return set_lock(a, F_UNLCK, false, s);
	case WAIT: return set_lock(a, F_WRLCK, true, s);
	case STRIPES: return set_stripes(a, s);
	case LOCKF: case TESTF: case UNLOCKF: return lockf_at(a, s);
	case READ: case MAP_READ: return check_text(a, s);
	case WRITE: case MAP_WRITE: return write_text(a, s);
	case SIZE: return ftruncate(a->fd, s->len) ? errno : 0;
	case MAP: return map_page(a);
	case OPEN_SECOND:
		a->second = open(a->path, O_RDWR | O_CLOEXEC);
		return a->second < 0 ? errno : 0;
	case CLOSE_SECOND: return close(a->second) ? errno : 0;
	case DIE: return die_soon();
	case TITLE: case ANSWER: break;
	}
	return ENOSYS;
}

static int open_file(struct actor *a, const char *kind, const char *path)
{
	a->path = path;
	a->ofd = !strcmp(kind, "ofd");
	a->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (a->fd < 0)
		perror(path);
	return a->fd < 0 ? -1 : 0;
}

/* ---- B */

static int run_partner(const char *kind, const char *path)
{
	struct actor b = { 0 };
	struct lock_step s;
	int err;

	if (open_file(&b, kind, path) < 0)
		return 1;
	while (read(STDIN_FILENO, &s, sizeof(s)) == sizeof(s)) {
		err = act(&b, &s);
		if (write(STDOUT_FILENO, &err, sizeof(err)) < 0)
			return 1;
	}
	return 0;
}

static int start_partner(struct partner *p, char **argv)
{
	int in[2], out[2], n = 0;
	char *args[64];

	for (char **arg = argv + 3; *arg && n < 60; arg++)
		args[n++] = *arg;
	args[n++] = argv[0];
	args[n++] = (char *)"-";
	args[n++] = argv[1];
	args[n++] = argv[2];
	args[n] = NULL;
	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -1;
	p->pid = fork();
	if (p->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execvp(args[0], args);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	p->to = in[1];
	p->from = out[0];
	return p->pid < 0 ? -1 : 0;
}

static int take_answer(const struct partner *p)
{
	int err;

	return read(p->from, &err, sizeof(err)) == sizeof(err) ? err : EPIPE;
}

static int have_partner_act(const struct partner *p, const struct lock_step *s)
{
	struct pollfd answer = { .fd = p->from, .events = POLLIN };

	if (s->op == ANSWER)
		return take_answer(p);
	if (write(p->to, s, sizeof(*s)) != sizeof(*s))
		return EPIPE;
	if (s->op == DIE)
		return 0;
	if (s->result == PENDS && poll(&answer, 1, PENDS_MS) == 0)
		return PENDS;
	return take_answer(p);
}

/* ---- the table */

static const char *result_text(int result)
{
	return result == PENDS ? "it waits" : strerrorname_np(result);
}

/* Returns how many rows were not as they are to be. */
static int go_through(struct actor *a, const struct partner *p)
{
	const char *title = "";
	int got, done = 0, wrong = 0;

	for (size_t i = 0; i < lock_steps_count; i++) {
		const struct lock_step *s = &lock_steps[i];

		if (s->op == TITLE) {
			title = s->text;
			continue;
		}
		if (a->ofd && s->posix_only)
			continue;
		got = s->who == 'A' ? act(a, s) : have_partner_act(p, s);
		done++;
		if (got == s->result)
			continue;
		wrong++;
		printf("%s: row %zu, %c, %lld %lld: %s, not %s\n", title, i,
		       s->who, s->start, s->len, result_text(got),
		       result_text(s->result));
	}
	printf("%d steps, %d not as they should be\n", done, wrong);
	return wrong;
}

int main(int argc, char **argv)
{
	struct partner p;
	struct actor a = { 0 };
	int wrong;

	if (argc < 3)
		return 2;
	if (!strcmp(argv[1], "-"))
		return argc == 4 ? run_partner(argv[2], argv[3]) : 2;
	signal(SIGPIPE, SIG_IGN);
	alarm(LIMIT_S);
	if (open_file(&a, argv[1], argv[2]) < 0 || start_partner(&p, argv) < 0)
		return 1;
	wrong = go_through(&a, &p);
	close(p.to);
	waitpid(p.pid, NULL, 0);
	return wrong ? 1 : 0;
}
