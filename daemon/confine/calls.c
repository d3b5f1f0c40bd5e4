/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * calls - a list of the system calls that gannetd makes, and a filter for it.
 *
 * The list has the calls of gannetd, the C library, its name service modules,
 * liburcu, LMDB, libtirpc and rdma-core's providers, and the calls that newer
 * versions of them might make instead, on any architecture.  Other calls end
 * the process: calls that execute a program or make a process, that look into
 * or signal another one, that mount, that change namespaces, roots, clocks,
 * keys, modules or users; and io_uring, BPF and performance counters.
 *
 * A call of the list can still be about another process: its limits, its
 * priority, a signal when a file is ready, input for its terminal.  A second
 * filter refuses such arguments with EPERM, because a library can name its own
 * thread by number, and does without when that fails.  It also refuses kinds of
 * sockets for which the kernel would load a module.
 *
 * A rule without conditions costs next to nothing: since Linux 5.11 the kernel
 * keeps a bitmap of the calls that are always allowed.  So only rare calls have
 * rules about their arguments.
 */
#include "daemon/confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ioprio.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"

/* Architectures and versions of libseccomp that lack a call leave it out. */
static const char *const allowed[] = {
	/* files */
	"read", "readv", "pread64", "preadv", "preadv2", "write", "writev",
	"pwrite64", "pwritev", "pwritev2", "open", "openat", "openat2",
	"creat", "close", "close_range", "lseek", "_llseek", "stat", "fstat",
	"lstat", "stat64", "fstat64", "lstat64", "newfstatat", "fstatat64",
	"statx", "statfs", "fstatfs", "statfs64", "fstatfs64", "getdents",
	"getdents64", "access", "faccessat", "faccessat2", "readlink",
	"readlinkat", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat",
	"rename", "renameat", "renameat2", "link", "linkat", "symlink",
	"symlinkat", "mknod", "mknodat", "chmod", "fchmod", "fchmodat",
	"fchmodat2", "chown", "fchown", "lchown", "fchownat", "chown32",
	"fchown32", "lchown32", "truncate", "ftruncate", "truncate64",
	"ftruncate64", "fallocate", "utime", "utimes", "futimesat",
	"utimensat", "utimensat_time64", "fsync", "fdatasync", "sync",
	"syncfs", "sync_file_range", "sync_file_range2", "copy_file_range",
	"arm_sync_file_range", "arm_fadvise64_64", "s390_pci_mmio_read",
	"s390_pci_mmio_write",
	"sendfile", "sendfile64", "splice", "tee", "vmsplice", "readahead",
	"fadvise64", "fadvise64_64", "name_to_handle_at",
	"open_by_handle_at", "fcntl", "fcntl64", "flock", "dup", "dup2",
	"dup3", "ioctl", "pipe", "pipe2", "umask", "getcwd", "chdir",
	"fchdir", "memfd_create", "getxattr", "lgetxattr", "fgetxattr",
	"listxattr", "llistxattr", "flistxattr", "setxattr", "removexattr",
	"fremovexattr",
	"inotify_init",
	"inotify_init1", "inotify_add_watch", "inotify_rm_watch", "statmount",
	"quotactl", "quotactl_fd",
	/* memory */
	"brk", "mmap", "mmap2", "munmap", "mremap", "mprotect", "madvise",
	"mlock", "mlock2", "munlock", "mlockall", "munlockall", "msync",
	"mincore", "cachestat", "mbind", "get_mempolicy", "set_mempolicy",
	"membarrier", "pkey_alloc", "pkey_free", "pkey_mprotect", "mseal",
	"map_shadow_stack", "set_mempolicy_home_node",
	/* threads */
	"futex", "futex_time64", "futex_waitv", "futex_wake", "futex_wait",
	"futex_requeue", "set_robust_list", "get_robust_list",
	"set_tid_address", "rseq", "arch_prctl", "set_thread_area",
	"get_thread_area", "set_tls", "cacheflush", "riscv_flush_icache",
	"riscv_hwprobe", "uretprobe", "uprobe", "swapcontext",
	"sched_yield", "sched_getaffinity", "sched_setaffinity",
	"sched_getparam", "sched_setparam", "sched_getscheduler",
	"sched_setscheduler", "sched_getattr", "sched_setattr",
	"sched_get_priority_max", "sched_get_priority_min",
	"sched_rr_get_interval", "sched_rr_get_interval_time64",
	"getcpu", "gettid", "getpid", "getppid",
	"getpgid", "getpgrp", "getsid", "getpriority", "setpriority",
	"ioprio_get", "ioprio_set", "exit", "exit_group",
	/* signals and timers */
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn",
	"rt_sigtimedwait", "rt_sigtimedwait_time64", "rt_sigpending",
	"rt_sigsuspend", "sigaltstack", "signalfd", "signalfd4", "pause",
	"restart_syscall", "alarm", "getitimer", "setitimer", "timer_create",
	"timer_settime", "timer_settime64", "timer_gettime",
	"timer_gettime64", "timer_getoverrun", "timer_delete",
	"timerfd_create", "timerfd_settime", "timerfd_settime64",
	"timerfd_gettime", "timerfd_gettime64", "eventfd", "eventfd2",
	"clock_gettime", "clock_gettime64", "clock_getres",
	"clock_getres_time64", "clock_nanosleep", "clock_nanosleep_time64",
	"nanosleep", "gettimeofday", "time", "times",
	"epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait",
	"epoll_pwait", "epoll_pwait2", "poll", "ppoll", "ppoll_time64",
	"select", "_newselect", "pselect6", "pselect6_time64",
	/* network; "socket" has separate rules */
	"socketpair", "socketcall", "bind", "listen", "accept", "accept4",
	"connect", "getsockname", "getpeername", "setsockopt", "getsockopt",
	"shutdown", "send", "sendto", "sendmsg", "sendmmsg", "recv",
	"recvfrom", "recvmsg", "recvmmsg", "recvmmsg_time64",
	/* our own ids: of the calls here, only the file system's change one */
	"getuid", "geteuid", "getgid", "getegid", "getuid32", "geteuid32",
	"getgid32", "getegid32", "getresuid", "getresgid", "getresuid32",
	"getresgid32", "getgroups", "getgroups32", "setgroups",
	"setgroups32", "setfsuid", "setfsuid32", "setfsgid", "setfsgid32",
	"capget", "capset", "prctl", "getrlimit", "ugetrlimit", "setrlimit",
	"prlimit64", "getrusage", "sysinfo", "uname", "getrandom",
#if SANITIZED
	/* The leak checker's thread stops all other threads. */
	"clone", "ptrace", "wait4", "waitid", "kill", "tkill", "tgkill",
	"process_vm_readv", "personality", "seccomp",
#endif
};

/*
 * The kernel and the C library can be newer than libseccomp, which then has no
 * name for their calls.  These numbers are the same on every architecture that
 * it builds for, except uretprobe() and uprobe(), which the kernel has a traced
 * process make.
 */
static const struct { const char *name; int nr; } newer[] = {
	{ "quotactl_fd", 443 }, { "set_mempolicy_home_node", 450 },
	{ "cachestat", 451 }, { "fchmodat2", 452 }, { "map_shadow_stack", 453 },
	{ "futex_wake", 454 }, { "futex_wait", 455 },
	{ "futex_requeue", 456 }, { "statmount", 457 }, { "mseal", 462 },
#if defined(__x86_64__) && !defined(__ILP32__)
	{ "uretprobe", 335 }, { "uprobe", 336 },
#elif defined(__riscv)
	{ "riscv_hwprobe", 258 },
#endif
};

int confine_number(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr != __NR_SCMP_ERROR)
		return nr;
	for (unsigned i = 0; i < ARRAY_SIZE(newer); i++)
		if (strcmp(newer[i].name, name) == 0)
			return newer[i].nr;
	return __NR_SCMP_ERROR;
}

/* The index of clone()'s argument "flags". */
#ifdef __s390x__
#define CLONE_FLAGS	1
#else
#define CLONE_FLAGS	0
#endif

/* Adds a rule for one call, with a condition on one argument. */
static int add_rule(scmp_filter_ctx f, uint32_t action, int nr,
		    struct scmp_arg_cmp arg)
{
	return seccomp_rule_add_array(f, action, nr, 1, &arg);
}

/* Allows threads, but no processes.  The filter can't see clone3()'s flags,
 * which are behind a pointer.  So clone3() gets ENOSYS, and the C library uses
 * clone(). */
static int allow_threads(scmp_filter_ctx f)
{
	const struct scmp_arg_cmp thread = {
		.arg = CLONE_FLAGS, .op = SCMP_CMP_MASKED_EQ,
		.datum_a = CLONE_THREAD, .datum_b = CLONE_THREAD,
	};
	int err = 0;

	if (!SANITIZED)
		err = add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), thread);
	if (!err)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS),
				       SCMP_SYS(clone3), 0);
	return err;
}

/* To itself only, for abort(). */
static int allow_signals(scmp_filter_ctx f)
{
	const struct scmp_arg_cmp self = {
		.arg = 0, .op = SCMP_CMP_EQ, .datum_a = (scmp_datum_t)getpid(),
	};

	return SANITIZED ? 0 :
	       add_rule(f, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), self);
}

/* A module of the name service might try other families: it gets
 * EAFNOSUPPORT. */
static int allow_sockets(scmp_filter_ctx f)
{
	static const int families[] = { AF_UNIX, AF_INET, AF_INET6,
					AF_NETLINK };
	struct scmp_arg_cmp family = { .arg = 0, .op = SCMP_CMP_EQ };
	int err = 0;

	for (int n = 0; !err && n <= AF_NETLINK; n++) {
		uint32_t action = SCMP_ACT_ERRNO(EAFNOSUPPORT);

		for (unsigned i = 0; i < ARRAY_SIZE(families); i++)
			if (families[i] == n)
				action = SCMP_ACT_ALLOW;
		family.datum_a = (scmp_datum_t)n;
		err = add_rule(f, action, SCMP_SYS(socket), family);
	}
	family.op = SCMP_CMP_GT;
	family.datum_a = AF_NETLINK;
	if (!err)
		err = add_rule(f, SCMP_ACT_ERRNO(EAFNOSUPPORT),
			       SCMP_SYS(socket), family);
	return err;
}

/* Refuses calls that libraries do without. */
static int refuse_some(scmp_filter_ctx f)
{
	static const int calls[] = {
		SCMP_SYS(pidfd_open),
		/* User 0 could attach the segments of other processes. */
		SCMP_SYS(shmget), SCMP_SYS(shmat), SCMP_SYS(shmdt),
		SCMP_SYS(shmctl),
	};
	int err = 0;

	for (unsigned i = 0; !err && i < ARRAY_SIZE(calls); i++)
		err = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), calls[i], 0);
	return err;
}

static int allow_all(scmp_filter_ctx f)
{
	int err = 0;

	for (unsigned i = 0; !err && i < ARRAY_SIZE(allowed); i++) {
		int nr = confine_number(allowed[i]);

		if (nr != __NR_SCMP_ERROR)
			err = seccomp_rule_add(f, SCMP_ACT_ALLOW, nr, 0);
	}
	if (!err)
		err = allow_threads(f);
	if (!err)
		err = refuse_some(f);
	if (!err)
		err = allow_signals(f);
	return err ? err : allow_sockets(f);
}

/* ---- arguments */

#define BIT(n)		((uint64_t)1 << (n))
#define ALL_BITS	UINT64_MAX
#define INET_PROTOCOLS	(BIT(0) | BIT(IPPROTO_TCP) | BIT(IPPROTO_UDP))

#define IS_NOT(n, value) { .arg = n, .op = SCMP_CMP_NE, .datum_a = value }
/* The kernel looks at 32 bits of a command. */
#define IS(n, value) { .arg = n, .op = SCMP_CMP_MASKED_EQ, \
		       .datum_a = UINT32_MAX, .datum_b = (uint32_t)(value) }

/* A process that is named as 0 is the caller itself. */
static const struct { const char *name; struct scmp_arg_cmp arg; } refused[] = {
	{ "prlimit64", IS_NOT(0, 0) },
	{ "setpriority", IS_NOT(0, PRIO_PROCESS) },
	{ "setpriority", IS_NOT(1, 0) },
	{ "ioprio_set", IS_NOT(0, IOPRIO_WHO_PROCESS) },
	{ "ioprio_set", IS_NOT(1, 0) },
	{ "sched_setaffinity", IS_NOT(0, 0) },
	{ "sched_setparam", IS_NOT(0, 0) },
	{ "sched_setscheduler", IS_NOT(0, 0) },
	{ "sched_setattr", IS_NOT(0, 0) },
	{ "get_robust_list", IS_NOT(0, 0) },
	/* The receiver of signals when the file is ready, and their number. */
	{ "fcntl", IS(1, F_SETOWN) }, { "fcntl64", IS(1, F_SETOWN) },
	{ "fcntl", IS(1, F_SETOWN_EX) }, { "fcntl64", IS(1, F_SETOWN_EX) },
	{ "fcntl", IS(1, F_SETSIG) }, { "fcntl64", IS(1, F_SETSIG) },
	{ "ioctl", IS(1, FIOSETOWN) }, { "ioctl", IS(1, SIOCSPGRP) },
	/* The receivers are the shells of a terminal, whoever asks. */
	{ "ioctl", IS(1, FIOASYNC) }, { "ioctl", IS(1, TIOCSIG) },
	/* Input for the shell that the server was started in. */
	{ "ioctl", IS(1, TIOCSTI) }, { "ioctl", IS(1, TIOCLINUX) },
	/* Line disciplines, for which the kernel loads modules. */
	{ "ioctl", IS(1, TIOCSETD) },
};

/* As FIOASYNC. */
static int refuse_async(scmp_filter_ctx f, uint32_t action, int nr)
{
	const struct scmp_arg_cmp is[] = {
		IS(1, F_SETFL), { .arg = 2, .op = SCMP_CMP_MASKED_EQ,
				  .datum_a = O_ASYNC, .datum_b = O_ASYNC },
	};

	return seccomp_rule_add_array(f, action, nr, ARRAY_SIZE(is), is);
}

static int add_refused(scmp_filter_ctx f, uint32_t action)
{
	int err = refuse_async(f, action, SCMP_SYS(fcntl));

	if (!err)
		err = refuse_async(f, action, SCMP_SYS(fcntl64));

	for (unsigned i = 0; !err && i < ARRAY_SIZE(refused); i++) {
		int nr = confine_number(refused[i].name);

		if (nr != __NR_SCMP_ERROR)
			err = add_rule(f, action, nr, refused[i].arg);
	}
	return err;
}

/* ---- kinds of sockets */

/* Of a family, the values allowed for an argument of socket(). */
struct kinds {
	int	 family;
	unsigned arg;
	uint64_t mask;			/* bits of it that count */
	unsigned last;			/* greater ones are refused */
	uint64_t set;			/* and others up to it */
};

/* The kernel loads modules for types and protocols that it does not know, which
 * gives an attacker more code to reach. */
static const struct kinds kinds[] = {
	{ AF_INET, 1, 15, 15, BIT(SOCK_STREAM) | BIT(SOCK_DGRAM) },
	{ AF_INET6, 1, 15, 15, BIT(SOCK_STREAM) | BIT(SOCK_DGRAM) },
	{ AF_INET, 2, ALL_BITS, IPPROTO_UDP, INET_PROTOCOLS },
	{ AF_INET6, 2, ALL_BITS, IPPROTO_UDP, INET_PROTOCOLS },
	{ AF_NETLINK, 2, ALL_BITS, NETLINK_RDMA,
	  BIT(NETLINK_ROUTE) | BIT(NETLINK_RDMA) },
};

static int refuse_kinds(scmp_filter_ctx f, uint32_t action,
			const struct kinds *k)
{
	struct scmp_arg_cmp is[] = {
		{ .arg = 0, .op = SCMP_CMP_EQ, .datum_a = (uint64_t)k->family },
		{ .arg = k->arg, .op = SCMP_CMP_MASKED_EQ,
		  .datum_a = k->mask },
	};
	int err = 0;

	for (is[1].datum_b = 0; !err && is[1].datum_b <= k->last;
	     is[1].datum_b++)
		if (!(k->set & BIT(is[1].datum_b)))
			err = seccomp_rule_add_array(f, action,
				SCMP_SYS(socket), ARRAY_SIZE(is), is);
	is[1] = (struct scmp_arg_cmp){ .arg = k->arg, .op = SCMP_CMP_GT,
				       .datum_a = k->last };
	return err || k->mask != ALL_BITS ? err :
	       seccomp_rule_add_array(f, action, SCMP_SYS(socket),
				      ARRAY_SIZE(is), is);
}

/* ---- the filters */

/* Confines all threads: a library might have made some already. */
static int load_filter(scmp_filter_ctx f)
{
	/* A binary tree is faster on kernels without the bitmap. */
	int err = seccomp_attr_set(f, SCMP_FLTATR_CTL_OPTIMIZE, 2);

	if (!err)
		err = seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
	return err ? err : seccomp_load(f);
}

static int filter_arguments(enum confine_calls calls)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ALLOW);
	bool logs = calls == CONFINE_LOG;
	int err;

	if (!f)
		return -ENOMEM;
	err = add_refused(f, logs ? SCMP_ACT_LOG : SCMP_ACT_ERRNO(EPERM));
	for (unsigned i = 0; !err && i < ARRAY_SIZE(kinds); i++)
		err = refuse_kinds(f, logs ? SCMP_ACT_LOG :
				   SCMP_ACT_ERRNO(EPROTONOSUPPORT), &kinds[i]);
	if (!err)
		err = load_filter(f);
	seccomp_release(f);
	return err;
}

static int filter_calls(enum confine_calls calls)
{
	scmp_filter_ctx f = seccomp_init(calls == CONFINE_LOG ? SCMP_ACT_LOG :
					 SCMP_ACT_KILL_PROCESS);
	int err;

	if (!f)
		return -ENOMEM;
	err = allow_all(f);
	if (!err)
		err = load_filter(f);
	seccomp_release(f);
	return err;
}

/* The list comes last, since it does not allow to load a filter. */
int confine_system_calls(enum confine_calls calls)
{
	int err;

	if (calls == CONFINE_OFF)
		return 0;
	err = filter_arguments(calls);
	return err ? err : filter_calls(calls);
}
