/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannetd - the daemon: options, background, signals.
 *
 * The process goes to the background before anything else is opened: a fork
 * after verbs were opened would break them.  The parent waits until the
 * child is ready, or has failed, and exits accordingly.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <urcu.h>

#include "daemon/options.h"
#include "daemon/server.h"
#include "lib/log.h"

#define EXIT_USAGE	2
/* How long calls that were taken may take when we end. */
#define DRAIN_SECONDS	20
/* And how long it takes to close connections, when some have not ended. */
#define CLOSE_SECONDS	4

static void raise_limit(int what)
{
	struct rlimit r;

	if (getrlimit(what, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(what, &r);
	}
}

/*
 * The child returns, with the pipe to its parent; the parent exits when the
 * child says so, or ends.
 */
static int go_to_background(void)
{
	int fds[2];
	char status;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) || (pid = fork()) < 0) {
		fprintf(stderr, "gannetd: cannot go to the background: %s\n",
			strerror(errno));
		exit(EXIT_FAILURE);
	}
	if (pid == 0) {
		close(fds[0]);
		setsid();
		return fds[1];
	}
	close(fds[1]);
	if (read(fds[0], &status, 1) != 1)
		status = EXIT_FAILURE;
	exit(status);
}

static void tell_parent(int fd)
{
	int null = open("/dev/null", O_RDWR);

	/* The parent may be gone; then nobody waits for this. */
	if (write(fd, "", 1) != 1)
		log_debug("nobody waited for the start");
	close(fd);
	/* Standard error stays: it is where the log goes. */
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	if (null > STDERR_FILENO)
		close(null);
}

static bool write_pid(const char *path)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());
	/* The umask is 0, for the files of clients. */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW |
		      O_CLOEXEC, 0644);
	bool written = fd >= 0 && write(fd, text, (size_t)n) == n;

	if (fd >= 0 && close(fd) == 0 && written)
		return true;
	log_err("%s: %s", path, strerror(errno));
	return false;
}

static void give_up(int sig)
{
	_exit(EXIT_FAILURE);
}

/*
 * A call may hang in the file system for ever, and server_stop() waits for
 * it.  To end in its midst is what kill -9 does: what was acknowledged as
 * stable is.
 */
static void bound_the_end(const char *pid_file)
{
	sigset_t set;

	if (pid_file)
		unlink(pid_file);
	signal(SIGALRM, give_up);
	signal(SIGTERM, give_up);
	signal(SIGINT, give_up);
	alarm(CLOSE_SECONDS);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* True when all calls were answered and all connections closed. */
static bool drain(struct server *s, const sigset_t *set)
{
	static const struct timespec step = { 0, 20 * 1000 * 1000 };

	log_info("ending: answering the calls that were taken");
	server_drain(s);
	for (int i = 0; i < DRAIN_SECONDS * 50; i++) {
		int sig;

		if (server_drained(s))
			return true;
		sig = sigtimedwait(set, NULL, &step);
		if (sig == SIGTERM || sig == SIGINT) {
			log_warn("asked again to end: not waiting any longer");
			return false;
		}
	}
	log_warn("not waiting any longer");
	return false;
}

/* Until it is to end; then as drain(). */
static bool serve(struct server *s, const sigset_t *set)
{
	for (;;) {
		switch (sigwaitinfo(set, NULL)) {
		case SIGHUP:
			server_reload(s);
			break;
		case SIGUSR1:
			server_log_counters(s);
			break;
		case SIGTERM:
		case SIGINT:
			return drain(s, set);
		}
	}
}

static int run(const struct options *o, int parent)
{
	struct server *s;
	sigset_t set;

	/* Before any thread is made: all of them inherit it. */
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	raise_limit(RLIMIT_NOFILE);
	raise_limit(RLIMIT_MEMLOCK);
	umask(0);

	rcu_register_thread();
	if (server_start(o, &s) < 0)
		return EXIT_FAILURE;
	if (o->pid_file && !write_pid(o->pid_file)) {
		server_stop(s);
		return EXIT_FAILURE;
	}
	server_print_ready(s, stdout);
	if (parent >= 0)
		tell_parent(parent);
	if (!serve(s, &set))
		bound_the_end(o->pid_file);
	server_stop(s);
	if (o->pid_file)
		unlink(o->pid_file);
	log_info("ended");
	rcu_unregister_thread();
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	struct options o;
	int parent = -1;
	int status;

	switch (options_parse(argc, argv, &o)) {
	case OPTIONS_DONE:
		options_fini(&o);
		return EXIT_SUCCESS;
	case OPTIONS_WRONG:
		options_fini(&o);
		return EXIT_USAGE;
	case OPTIONS_RUN:
		break;
	}
	log_threshold = o.log_level;
	if (!o.foreground)
		parent = go_to_background();
	status = run(&o, parent);
	options_fini(&o);
	return status;
}
