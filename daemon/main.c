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
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <urcu.h>

#include "daemon/confine/confine.h"
#include "daemon/change/change.h"
#include "daemon/serve/kerberos.h"
#include "daemon/serve/serve.h"
#include "daemon/settings/settings.h"
#include "daemon/serve/server.h"
#include "lib/clock.h"
#include "lib/log.h"
#include "lib/rcu.h"
#include "lib/standard.h"
#include "lib/util.h"

#define EXIT_USAGE	2
/* The kernel's NFS server has the port: a service manager needn't try again. */
#define EXIT_KERNEL	3
/* At the end, running calls have this long to finish. */
#define DRAIN_SECONDS	20
/* If some calls have not finished, closing the connections has this long. */
#define CLOSE_SECONDS	4

/* Calls that wait behind others which hang for this long are sent back.
 * Memory that is unused for twice as long is given back to the system. */
#define TIDY_SECONDS	5

/* A signal to end came while the listeners were being stopped. */
static volatile sig_atomic_t asked_again;

/* give_up_threads()'s duties before the process ends. */
static const char *last_pid_file;
static int last_lock = -1;

static void raise_limit(int what)
{
	struct rlimit r;

	if (getrlimit(what, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(what, &r);
	}
}

/* RDMA devices need it: siw checks the limit even for a process with
 * CAP_IPC_LOCK.  Raising it takes a capability that confine() gives up. */
static void lock_any_memory(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	if (setrlimit(RLIMIT_MEMLOCK, &all) < 0)
		raise_limit(RLIMIT_MEMLOCK);
}

/*
 * The child returns, with the pipe to its parent; the parent exits when the
 * child says so, or as the child ends.
 */
static int go_to_background(void)
{
	int fds[2], ended;
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
	if (read(fds[0], &status, 1) == 1)
		exit(status);
	if (waitpid(pid, &ended, 0) != pid || !WIFEXITED(ended))
		exit(EXIT_FAILURE);
	exit(WEXITSTATUS(ended));
}

static void tell_parent(int fd)
{
	int null = open("/dev/null", O_RDWR);

	/* If the parent is gone, no process waits for this. */
	if (write(fd, "", 1) != 1)
		log_debug("no process waited for the start");
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

/*
 * The kernel keeps a process with a thread that hangs in it, and its
 * descriptors, until the call ends.  Release the state directory here, so
 * another server can start all the same; none of our threads uses it now.
 */
static void give_up_threads(int sig)
{
	if (last_pid_file)
		unlink(last_pid_file);
	if (last_lock >= 0)
		flock(last_lock, LOCK_UN);
	log_rescue();
	_exit(EXIT_FAILURE);
}

static void hurry(int sig)
{
	if (asked_again)
		give_up_threads(sig);
	asked_again = sig;
	alarm(CLOSE_SECONDS);
}

/* The signals to end go to @handler from now on. */
static void unblock_end(void (*handler)(int sig))
{
	sigset_t set;

	signal(SIGTERM, handler);
	signal(SIGINT, handler);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/*
 * A call or a reload can hang in the file system for ever, and server_stop()
 * would wait for it; a poller can hang, and server_drain() wait for that.
 * Ending in its midst is as kill -9: data that was acknowledged as stable is
 * safe.
 */
static void bound_the_end(const struct server *s, const char *pid_file)
{
	last_pid_file = pid_file;
	last_lock = server_state_lock(s);
	signal(SIGALRM, give_up_threads);
}

/* The next server_tidy(). */
struct tidy {
	uint64_t due;		/* CLOCK_MONOTONIC ns */
	bool	 trim;
};

/* Calls server_tidy() when it is due.  Returns the ns until the next one is. */
static uint64_t tidy_server(struct server *s, struct tidy *t)
{
	uint64_t now = clock_ns();

	if (now >= t->due) {
		/* The calls' other memory is now free as well: return it to the
		 * system. */
		if (server_tidy(s, t->trim))
			malloc_trim(0);
		t->trim = !t->trim;
		t->due = now + TIDY_SECONDS * 1ull * NS_PER_S;
	}
	return t->due - now;
}

/* True when all calls were answered and all connections closed. */
static bool drain(struct server *s, const sigset_t *set, struct tidy *t)
{
	static const struct timespec step = { 0, 20 * 1000 * 1000 };

	alarm(DRAIN_SECONDS + CLOSE_SECONDS);
	unblock_end(hurry);
	log_info("ending: finishing the calls in progress");
	notify(NOTIFY_STOPPING);
	server_drain(s);
	sigprocmask(SIG_BLOCK, set, NULL);
	for (int i = 0; i < DRAIN_SECONDS * 50; i++) {
		int sig = asked_again;

		if (server_drained(s))
			return true;
		tidy_server(s, t);
		if (!sig)
			sig = sigtimedwait(set, NULL, &step);
		if (sig == SIGTERM || sig == SIGINT) {
			log_warn("second signal: ending without waiting");
			return false;
		}
	}
	log_warn("calls still hang: ending without waiting for them");
	return false;
}

/* Serves until the process is told to end; then returns as drain() does. */
static bool serve(struct server *s, const sigset_t *set)
{
	struct tidy t = { clock_ns() + TIDY_SECONDS * 1ull * NS_PER_S, false };
	uint64_t alive = notify_alive_ns();

	for (;;) {
		uint64_t ns = tidy_server(s, &t);

		notify(NOTIFY_ALIVE);
		ns = MIN(ns, alive);

		switch (sigtimedwait(set, NULL, &(struct timespec){
				(time_t)(ns / NS_PER_S),
				(long)(ns % NS_PER_S) })) {
		case SIGHUP:
			server_reload(s);
			break;
		case SIGUSR1:
			server_log_counters(s);
			break;
		case SIGTERM:
		case SIGINT:
			return drain(s, set, &t);
		}
	}
}

/* Grows with the number of threads: each is a directory there, and so a link of
 * the one above. */
static nlink_t count_threads(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) < 0 ? 0 : st.st_nlink;
}

/* Loads the modules that the options name.  NULL: the reason was logged. */
static struct backends *load_backends(const struct options *o)
{
	struct backends *b = NULL;
	nlink_t threads = count_threads();
	int err = backends_create(&b);
	char *why = NULL;

	if (err)
		log_err("--backend: %s", strerror(-err));
	for (unsigned i = 0; i < o->backends->n && !err; i++) {
		err = backends_load(b, o->backend_dir, o->backends->v[i], &why);
		if (err)
			log_err("--backend %s: %s", o->backends->v[i],
				why ? why : strerror(-err));
	}
	/* It would keep root's capabilities. */
	if (!err && count_threads() != threads) {
		log_err("a module of --backend started a thread while it was "
			"loaded");
		err = -EPERM;
	}
	free(why);
	if (!err)
		return b;
	backends_destroy(b);
	return NULL;
}

static void signals_to_wait_for(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGUSR1);
}

static int serve_confined(const struct options *o,
			  const struct backends *backends,
			  struct kerberos *krb5, int parent)
{
	struct server *s;
	sigset_t set;
	int err;

	signals_to_wait_for(&set);
	if (confine(o->seccomp) < 0)
		return EXIT_FAILURE;
	err = rcu_later_start();
	if (err < 0) {
		log_err("can't start a thread: %s", strerror(-err));
		return EXIT_FAILURE;
	}
	rcu_register_thread();
	/* Without the log thread every thread writes its own lines. */
	log_start();
	err = server_start(o, backends, krb5, &s);
	if (err) {
		log_stop();
		return listen_kernel_has_port(err, o->port) ||
		       (o->rdma && listen_kernel_has_port(err, o->rdma_port)) ?
		       EXIT_KERNEL : EXIT_FAILURE;
	}
	if (o->pid_file && !write_pid(o->pid_file)) {
		server_stop(s);
		log_stop();
		return EXIT_FAILURE;
	}
	server_print_ready(s, stdout);
	notify(NOTIFY_READY);
	if (parent >= 0)
		tell_parent(parent);
	bound_the_end(s, o->pid_file);
	alarm(serve(s, &set) ? DRAIN_SECONDS : CLOSE_SECONDS);
	unblock_end(give_up_threads);
	server_stop(s);
	if (o->pid_file)
		unlink(o->pid_file);
	log_info("ended");
	log_stop();
	rcu_unregister_thread();
	return EXIT_SUCCESS;
}

static int run_daemon(const struct options *o, int parent)
{
	struct kerberos *krb5 = NULL;
	struct backends *backends;
	int status = EXIT_FAILURE;
	sigset_t set;

	/* Before any thread is made: all of them inherit it. */
	signals_to_wait_for(&set);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	raise_limit(RLIMIT_NOFILE);
	lock_any_memory();
	umask(0);
	helper_start(o->seccomp);
	control_find_group();

	/* Before the process is confined: a module can need more than serving
	 * does for its own start, and no code is loaded later. */
	backends = load_backends(o);
	if (backends && kerberos_load(o, &krb5) == 0)
		status = serve_confined(o, backends, krb5, parent);
	kerberos_destroy(krb5);
	backends_destroy(backends);
	return status;
}

/* As the start would, without signals and threads. */
static int run_check(const struct options *o)
{
	struct backends *backends = load_backends(o);
	struct kerberos *krb5 = NULL;
	int status = EXIT_FAILURE;

	raise_limit(RLIMIT_NOFILE);
	rcu_register_thread();
	if (backends && kerberos_load(o, &krb5) == 0 &&
	    confine(o->seccomp) == 0 &&
	    exports_check(o, backends, krb5 != NULL) == 0)
		status = EXIT_SUCCESS;
	kerberos_destroy(krb5);
	rcu_unregister_thread();
	backends_destroy(backends);
	return status;
}

int main(int argc, char **argv)
{
	struct options o;
	int parent = -1;
	int status;

	standard_open();
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
	log_open(o.log_to, NULL);
	/* Files are opened again by their descriptors' names there: without it
	 * all handles would be stale. */
	if (access("/proc/self/fd", X_OK) < 0) {
		log_err("there is no /proc, which the server needs: mount it "
			"(mount -t proc proc /proc)");
		options_fini(&o);
		return EXIT_FAILURE;
	}
	if (o.check) {
		status = run_check(&o);
		options_fini(&o);
		return status;
	}
	if (!o.foreground)
		parent = go_to_background();
	status = run_daemon(&o, parent);
	options_fini(&o);
	return status;
}
