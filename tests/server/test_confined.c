/* SPDX-License-Identifier: BSD-2-Clause */
/* The limits of a confined gannetd, tested from outside. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/daemon_run.h"
#include "tests/unit/runner.h"

#define MEM	"--export", "mem:/m 127.0.0.1(rw,insecure)"
#define ARGS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define BIT(cap) ((uint64_t)1 << (cap))

static struct daemon_run d;

static void setup(void)
{
	daemon_prepare(&d);
}

static void teardown(void)
{
	unsetenv("LD_PRELOAD");
	unsetenv("STRAY_CALL");
	daemon_clean(&d);
}

/* ---- the view of /proc */

/* The number of @field in a thread's status, in base @base. */
static uint64_t status_of(const char *tid, const char *field, int base)
{
	char path[320], line[256];
	uint64_t n = UINT64_MAX;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%s/status", d.pid, tid);
	f = fopen(path, "re");
	ck_assert_ptr_nonnull(f);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0)
			n = strtoull(line + strlen(field), NULL, base);
	fclose(f);
	ck_assert_uint_ne(n, UINT64_MAX);
	return n;
}

/* Calls @fn for every thread, and checks that several exist. */
static void each_thread(void (*fn)(const char *tid))
{
	char path[64];
	struct dirent *e;
	int n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", d.pid);
	dir = opendir(path);
	ck_assert_ptr_nonnull(dir);
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.') {
			fn(e->d_name);
			n++;
		}
	closedir(dir);
	ck_assert_int_gt(n, 10);
}

static void is_filtered(const char *tid)
{
	ck_assert_uint_eq(status_of(tid, "Seccomp:", 10), 2);
	ck_assert_uint_eq(status_of(tid, "NoNewPrivs:", 10), 1);
}

static void has_few_capabilities(const char *tid)
{
	uint64_t few = BIT(CAP_CHOWN) | BIT(CAP_DAC_OVERRIDE) |
		BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) |
		BIT(CAP_FSETID) | BIT(CAP_MKNOD) | BIT(CAP_SETUID) |
		BIT(CAP_SETGID) | BIT(CAP_NET_BIND_SERVICE) |
		BIT(CAP_IPC_LOCK) | (SANITIZED ? BIT(CAP_SYS_PTRACE) : 0);
	uint64_t has;

	/* A sanitizer has threads, made before main(). */
	if (SANITIZED && atoi(tid) != d.pid)
		return;
	has = status_of(tid, "CapEff:", 16) | status_of(tid, "CapPrm:", 16);
	ck_assert_uint_eq(has & ~few, 0);
	ck_assert_uint_eq(status_of(tid, "CapInh:", 16), 0);
	ck_assert_uint_eq(status_of(tid, "CapAmb:", 16), 0);
	if (geteuid() == 0)
		ck_assert_uint_eq(status_of(tid, "CapBnd:", 16) & ~few, 0);
	else
		ck_assert_uint_eq(has, 0);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(every_thread_is_filtered_and_gets_no_new_privileges)
{
	ck_assert(daemon_start(&d, ARGS(MEM)));
	each_thread(is_filtered);
	daemon_end(&d, SIGTERM);
}

TEST(every_thread_has_the_capabilities_that_serving_needs_only)
{
	ck_assert(daemon_start(&d, ARGS(MEM)));
	each_thread(has_few_capabilities);
	daemon_end(&d, SIGTERM);
}

static const char *const helpers[] = { "gannetd-quotas", "gannetd-mounts" };

/* The child of the daemon of that name; 0: none. */
static pid_t find_helper(const char *name)
{
	char command[80], text[32] = "";
	FILE *f;

	snprintf(command, sizeof(command), "pgrep -P %d -x %s", d.pid, name);
	f = popen(command, "re");
	ck_assert_ptr_nonnull(f);
	if (!fgets(text, sizeof(text), f))
		*text = '\0';
	pclose(f);
	return atoi(text);
}

/* True if this process has the capability that the helpers keep. */
static bool may_administer(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2];

	return syscall(SYS_capget, &head, caps) == 0 &&
	       caps[0].effective & 1u << CAP_SYS_ADMIN;
}

static bool is_gone(pid_t pid)
{
	return kill(pid, 0) < 0 && errno == ESRCH;
}

TEST_LOOP(a_helper_has_one_capability_and_a_filter, 0, ARRAY_SIZE(helpers))
{
	uint64_t has;
	pid_t pid, server;
	char tid[16];

	ck_assert(daemon_start(&d, ARGS(MEM)));
	server = d.pid;
	pid = find_helper(helpers[_i]);
	if (pid == 0) {			/* we lack the rights that it keeps */
		ck_assert(!may_administer());
		daemon_end(&d, SIGTERM);
		return;
	}
	snprintf(tid, sizeof(tid), "%d", pid);
	d.pid = pid;
	is_filtered(tid);
	has = status_of(tid, "CapEff:", 16) | status_of(tid, "CapPrm:", 16) |
	      status_of(tid, "CapBnd:", 16);
	ck_assert_uint_eq(has, BIT(CAP_SYS_ADMIN));
	ck_assert_uint_eq(status_of(tid, "CapInh:", 16), 0);
	d.pid = server;
	/* To the group, as a terminal's interrupt. */
	kill(pid, SIGINT);
	kill(pid, SIGTERM);
	ck_assert(daemon_answers(&d));
	ck_assert_int_eq(find_helper(helpers[_i]), pid);
	daemon_end(&d, SIGKILL);
	EVENTUALLY(is_gone(pid));
}

/* Some devices go by the limit, and the right to raise it is given up. */
TEST(memory_for_rdma_devices_is_not_limited_where_root_starts_it)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	struct rlimit old, now;

	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &old), 0);
	if (setrlimit(RLIMIT_MEMLOCK, &all) < 0)
		return;			/* nor can the server raise it */
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit)
			 { 8 << 20, 8 << 20 }), 0);
	ck_assert(daemon_start(&d, ARGS(MEM)));
	ck_assert_int_eq(prlimit(d.pid, RLIMIT_MEMLOCK, NULL, &now), 0);
	ck_assert_uint_eq(now.rlim_cur, RLIM_INFINITY);
	setrlimit(RLIMIT_MEMLOCK, &old);
	daemon_end(&d, SIGTERM);
}

/* The one that forks is not the one that serves. */
TEST(the_daemon_in_the_background_is_confined)
{
	char command[300], pid[16] = "";
	FILE *f;

	snprintf(command, sizeof(command), "./gannetd --port 0 --rdma off "
		 "--no-rpcbind --state-dir %s/state --pid-file %s/pid "
		 "--export 'mem:/m 127.0.0.1' > /dev/null 2>&1", d.dir, d.dir);
	ck_assert_int_eq(system(command), 0);
	snprintf(command, sizeof(command), "%s/pid", d.dir);
	f = fopen(command, "re");
	ck_assert_ptr_nonnull(f);
	ck_assert_ptr_nonnull(fgets(pid, sizeof(pid), f));
	fclose(f);
	d.pid = atoi(pid);
	each_thread(is_filtered);
	each_thread(has_few_capabilities);
	kill(d.pid, SIGTERM);
	EVENTUALLY(access(command, F_OK) < 0);
}

/* ---- its effect */

static void start_with_stray(const char *call, const char *seccomp)
{
	char lib[256];

	ck_assert_ptr_nonnull(getcwd(lib, sizeof(lib) - 64));
	strcat(lib, "/tests/server/stray_call.so");
	setenv("LD_PRELOAD", lib, 1);
	setenv("STRAY_CALL", call, 1);
#if SANITIZED
	setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
#endif
	ck_assert(daemon_start(&d, ARGS(MEM, "--seccomp", seccomp)));
	kill(d.pid, SIGUSR1);
}

static const struct { const char *name; long nr; long arg[2]; } strays[] = {
	{ "execve", SYS_execve, { 0 } },
	{ "execveat", SYS_execveat, { -1 } },
	{ "mount", SYS_mount, { 0 } },
	{ "umount2", SYS_umount2, { 0 } },
	{ "pivot_root", SYS_pivot_root, { 0 } },
	{ "chroot", SYS_chroot, { 0 } },
	{ "unshare", SYS_unshare, { CLONE_NEWUSER } },
	{ "setns", SYS_setns, { -1 } },
	{ "setuid", SYS_setuid, { 0 } },
	{ "setresuid", SYS_setresuid, { 0 } },
	{ "setgid", SYS_setgid, { 0 } },
	{ "bpf", SYS_bpf, { 0 } },
	{ "perf_event_open", SYS_perf_event_open, { 0 } },
	{ "init_module", SYS_init_module, { 0 } },
	{ "keyctl", SYS_keyctl, { 0 } },
	{ "reboot", SYS_reboot, { 0 } },
	{ "settimeofday", SYS_settimeofday, { 0 } },
	{ "process_vm_writev", SYS_process_vm_writev, { 0 } },
	{ "userfaultfd", SYS_userfaultfd, { 0 } },
	{ "io_uring_setup", SYS_io_uring_setup, { 0 } },
#if !SANITIZED
	{ "ptrace", SYS_ptrace, { 0 } },
	{ "kill", SYS_kill, { 1, 0 } },
	{ "tgkill of another", SYS_tgkill, { 1, 1 } },
	{ "clone of a process", SYS_clone, { SIGCHLD } },
#endif
	{ "no call at all", 9999, { 0 } },
};

TEST_LOOP(a_call_that_serving_does_not_make_ends_it, 0, ARRAY_SIZE(strays))
{
	char call[64];

	snprintf(call, sizeof(call), "%ld %ld %ld", strays[_i].nr,
		 strays[_i].arg[0], strays[_i].arg[1]);
	start_with_stray(call, "kill");
	EVENTUALLY(!daemon_alive(&d));
	ck_assert_msg(WIFSIGNALED(d.status) && WTERMSIG(d.status) == SIGSYS,
		      "%s: status %x", strays[_i].name, d.status);
	ck_assert(!daemon_has_logged(&d, "stray call:"));
}

/* The same call: so it was the filter that ended it above. */
TEST_LOOP(with_log_or_off_the_stray_call_is_made, 0, 2)
{
	static const char *const how[] = { "log", "off" };
	char call[64];

	snprintf(call, sizeof(call), "%d -1", SYS_execveat);
	start_with_stray(call, how[_i]);
	ck_assert(daemon_logged(&d, "stray call: -1 E"));
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
	ck_assert(WIFEXITED(d.status) && WEXITSTATUS(d.status) == 0);
}

TEST_LOOP(calls_that_libraries_try_are_only_refused, 0, 7)
{
	static const struct { long nr; int arg; const char *said; } tries[] = {
		{ SYS_clone3, 0, "stray call: -1 ENOSYS" },
		{ SYS_pidfd_open, 0, "stray call: -1 ENOSYS" },
		{ SYS_shmget, 0, "stray call: -1 ENOSYS" },
		{ SYS_shmat, 0, "stray call: -1 ENOSYS" },
		{ SYS_socket, 38 /* AF_ALG */, "stray call: -1 EAFNOSUPPORT" },
		{ SYS_socket, AF_PACKET, "stray call: -1 EAFNOSUPPORT" },
		{ SYS_socket, 3, "stray call: -1 EAFNOSUPPORT" },
	};
	char call[64];

	snprintf(call, sizeof(call), "%ld %d", tries[_i].nr, tries[_i].arg);
	start_with_stray(call, "kill");
	ck_assert(daemon_logged(&d, tries[_i].said));
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
}

/* A socket of a rare kind has the kernel load a module for it. */
TEST_LOOP(sockets_are_of_the_kinds_that_serving_needs, 0, 13)
{
	static const struct { int arg[3]; bool made; } kinds[] = {
		{ { AF_INET, SOCK_STREAM, 0 }, true },
		{ { AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP }, true },
		{ { AF_INET6, SOCK_STREAM, IPPROTO_TCP }, true },
		{ { AF_NETLINK, SOCK_RAW, 0 /* ROUTE */ }, true },
		{ { AF_UNIX, SOCK_SEQPACKET, 0 }, true },
		{ { AF_INET, SOCK_DGRAM, IPPROTO_UDPLITE }, false },
		{ { AF_INET6, SOCK_DGRAM, IPPROTO_UDPLITE }, false },
		{ { AF_INET, SOCK_STREAM, IPPROTO_SCTP }, false },
		{ { AF_INET6, SOCK_STREAM, 262 /* MPTCP */ }, false },
		{ { AF_INET, SOCK_SEQPACKET, 0 }, false },
		{ { AF_INET, 6 | SOCK_CLOEXEC /* DCCP */, 0 }, false },
		{ { AF_INET, 10 /* SOCK_PACKET */, 0 }, false },
		{ { AF_NETLINK, SOCK_RAW, 12 /* NETFILTER */ }, false },
	};
	const int *arg = kinds[_i].arg;
	char call[64];

	snprintf(call, sizeof(call), "%d %d %d %d", SYS_socket, arg[0], arg[1],
		 arg[2]);
	start_with_stray(call, "kill");
	ck_assert(daemon_logged(&d, "stray call: "));
	ck_assert_msg(daemon_has_logged(&d, "stray call: -1 EPROTONOSUPPORT") !=
		      kinds[_i].made, "%s", call);
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
}

/* Calls that serving makes about itself.  A VICTIM is another process, of the
 * same user: without a filter these would succeed, or fail otherwise. */
#define VICTIM		-7777
/* The kernel sees the lower half only. */
#define UPPER		0x100000000l

static const struct { const char *name; long nr; long arg[3]; } others[] = {
	{ "prlimit", SYS_prlimit64, { VICTIM, RLIMIT_CPU } },
	{ "setpriority", SYS_setpriority, { PRIO_PROCESS, VICTIM } },
	{ "setpriority of the group", SYS_setpriority, { PRIO_PGRP } },
	{ "setpriority of the user", SYS_setpriority, { PRIO_USER } },
	{ "ioprio_set", SYS_ioprio_set, { 1, VICTIM } },
	{ "ioprio_set of the group", SYS_ioprio_set, { 2 } },
	{ "sched_setaffinity", SYS_sched_setaffinity, { VICTIM } },
	{ "sched_setparam", SYS_sched_setparam, { VICTIM } },
	{ "sched_setscheduler", SYS_sched_setscheduler, { VICTIM } },
	{ "sched_setattr", SYS_sched_setattr, { VICTIM } },
	{ "get_robust_list", SYS_get_robust_list, { VICTIM } },
	{ "F_SETOWN", SYS_fcntl, { 0, F_SETOWN, VICTIM } },
	{ "F_SETOWN_EX", SYS_fcntl, { 0, F_SETOWN_EX } },
	{ "F_SETSIG", SYS_fcntl, { 0, F_SETSIG, SIGKILL } },
	{ "F_SETSIG and more", SYS_fcntl, { 0, UPPER | F_SETSIG, SIGKILL } },
	{ "O_ASYNC", SYS_fcntl, { 0, F_SETFL, O_ASYNC | O_NONBLOCK } },
	{ "O_ASYNC and more", SYS_fcntl, { 0, UPPER | F_SETFL, O_ASYNC } },
	{ "FIOASYNC", SYS_ioctl, { 0, FIOASYNC } },
	{ "TIOCSIG", SYS_ioctl, { 0, TIOCSIG } },
	{ "FIOSETOWN", SYS_ioctl, { 0, FIOSETOWN } },
	{ "SIOCSPGRP", SYS_ioctl, { 0, SIOCSPGRP } },
	{ "TIOCSTI", SYS_ioctl, { 0, TIOCSTI } },
	{ "TIOCSTI and more", SYS_ioctl, { 0, UPPER | TIOCSTI } },
	{ "TIOCSETD", SYS_ioctl, { 0, TIOCSETD } },
	{ "TIOCLINUX", SYS_ioctl, { 0, TIOCLINUX } },
};

TEST_LOOP(calls_about_other_processes_are_refused, 0, ARRAY_SIZE(others))
{
	char call[128];
	int n = snprintf(call, sizeof(call), "%ld", others[_i].nr);

	for (unsigned i = 0; i < ARRAY_SIZE(others[_i].arg); i++)
		n += snprintf(call + n, sizeof(call) - (size_t)n, " %ld",
			      others[_i].arg[i] == VICTIM ? (long)getpid() :
			      others[_i].arg[i]);
	start_with_stray(call, "kill");
	ck_assert_msg(daemon_logged(&d, "stray call: "), "%s",
		      others[_i].name);
	ck_assert_msg(daemon_has_logged(&d, "stray call: -1 EPERM"), "%s",
		      others[_i].name);
	ck_assert(daemon_answers(&d));
	daemon_end(&d, SIGTERM);
}

TEST_LOOP(the_same_calls_about_itself_are_made, 0, 5)
{
	static const char *const calls[] = { "0 0", "0 0 0",
					     "1 0 0", "0 1",
					     "0 4 2048" /* O_NONBLOCK */ };
	static const long nr[] = { SYS_prlimit64, SYS_setpriority,
				   SYS_ioprio_set, SYS_fcntl, SYS_fcntl };
	char call[64];

	snprintf(call, sizeof(call), "%ld %s", nr[_i], calls[_i]);
	start_with_stray(call, "kill");
	ck_assert(daemon_logged(&d, "stray call: "));
	ck_assert(!daemon_has_logged(&d, "EPERM"));
	daemon_end(&d, SIGTERM);
}

/* By their numbers: this C library and libseccomp might not know their names.
 * Arguments that make no sense are refused by the call itself. */
TEST(calls_of_newer_libraries_do_not_end_the_daemon)
{
	static const char *const calls[] = {
		"450 1 1 1 1", "451 -1", "452 -1", "453 1 1 -1",
		"454 0 0 0 -1", "455 0 0 0 -1", "456 0 -1", "457 0",
		"462 1 1 1",
		"434 0",			/* pidfd_open */
		"437 -1",			/* openat2 */
		"439 -1",			/* faccessat2 */
		"436 -1 0",			/* close_range */
		"441 -1",			/* epoll_pwait2 */
		"449 0 0 1",			/* futex_waitv */
#ifdef __x86_64__
		"334 0 0 -1",			/* rseq */
		"332 -1",			/* statx */
		"262 -1",			/* newfstatat */
		"318 0 0 -1",			/* getrandom */
		"204 0 0 0",			/* sched_getaffinity */
		"324 -1",			/* membarrier */
		"273 0 0",			/* set_robust_list */
#endif
	};

	for (unsigned i = 0; i < ARRAY_SIZE(calls); i++) {
		start_with_stray(calls[i], "kill");
		EVENTUALLY(daemon_has_logged(&d, "stray call:") ||
			   !daemon_alive(&d));
		ck_assert_msg(daemon_alive(&d), "%s ended it", calls[i]);
		daemon_end(&d, SIGTERM);
		daemon_clean(&d);
		daemon_prepare(&d);
	}
}

/* MNT of /m, as any caller; its status, or -1 without an answer. */
static int mount_status(void)
{
	static const uint32_t call[] = { 0x80000030, 1, 0, 2, 100005, 3, 1,
					 0, 0, 0, 0, 2, 0x2f6d0000 };
	uint32_t wire[ARRAY_SIZE(call)], reply[8];
	int fd = daemon_connect(d.tcp_port);
	ssize_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(call); i++)
		wire[i] = htonl(call[i]);
	if (send(fd, wire, sizeof(wire), MSG_NOSIGNAL) == sizeof(wire))
		n = recv(fd, reply, sizeof(reply), MSG_WAITALL);
	close(fd);
	return n == sizeof(reply) ? (int)ntohl(reply[7]) : -1;
}

/* Its modules are loaded when they are asked first: files, sockets, memory
 * that is executed. */
TEST(the_name_service_works_in_it)
{
	ck_assert(daemon_start(&d, ARGS("--export", "mem:/m @gannet-none "
					"*.gannet.invalid(ro,insecure) "
					"localhost(rw,insecure)")));
	ck_assert_int_eq(mount_status(), 0);
	ck_assert(daemon_alive(&d));
	daemon_end(&d, SIGTERM);
}

/* Landlock, since Linux 6.12. */
TEST(the_daemon_reaches_no_abstract_sockets_of_others)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(sa_family_t);	/* the kernel finds a name */
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char call[128];

	if (syscall(444 /* landlock_create_ruleset */, NULL, 0, 1) < 6)
		return;
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sun, len), 0);
	ck_assert_int_eq(listen(fd, 1), 0);
	len = sizeof(sun);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sun, &len), 0);
	snprintf(call, sizeof(call), "abstract %.*s",
		 (int)(len - sizeof(sa_family_t) - 1), sun.sun_path + 1);
	start_with_stray(call, "kill");
	ck_assert(daemon_logged(&d, "stray call: -1 EPERM"));
	daemon_end(&d, SIGTERM);
	close(fd);
}

/* A process of our user that has no capability: the kernel would let a server
 * look into it that has none either. */
static pid_t start_victim(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	const struct __user_cap_data_struct none[2] = { { 0 } };
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid > 0)
		return pid;
	if (syscall(SYS_capset, &head, none) == 0)
		pause();
	_exit(1);
}

static bool has_capabilities(pid_t pid)
{
	char self[16];

	snprintf(self, sizeof(self), "%d", pid);
	d.pid = pid;
	return status_of(self, "CapPrm:", 16) != 0;
}

/* Landlock, since Linux 6.12. */
TEST(the_daemon_opens_no_memory_of_others)
{
	char call[64];
	pid_t victim;
	int fd;

	if (syscall(444 /* landlock_create_ruleset */, NULL, 0, 1) < 6)
		return;
	victim = start_victim();
	EVENTUALLY(!has_capabilities(victim));
	snprintf(call, sizeof(call), "open /proc/%d/mem", victim);
	fd = open(call + 5, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	close(fd);
	start_with_stray(call, "kill");
	ck_assert(daemon_logged(&d, "stray call: -1 EACCES"));
	daemon_end(&d, SIGTERM);
	kill(victim, SIGKILL);
	ck_assert_int_eq(waitpid(victim, NULL, 0), victim);
}

TEST(a_wrong_word_says_what_was_expected)
{
	ck_assert(!daemon_start(&d, ARGS(MEM, "--seccomp", "maybe")));
	ck_assert(daemon_logged(&d, "expected kill, log or off"));
}
