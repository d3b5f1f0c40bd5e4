/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper - processes that are forked before this one is confined, and confined
 * more.
 *
 * Each has one capability, one socket, and a filter of system calls that lets
 * it receive a descriptor, do its task (query a quota there, or copy its
 * mount), and answer.  A signal to the process group or the control group does
 * not end it: it is needed until the last call is answered, and ends when
 * gannetd's end of the socket is closed.
 */
#include "daemon/confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/quota.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/util.h"
#include "vfs/helper.h"
#include "vfs/quotas.h"

#define PATIENCE_MS	5000

/* A quota waits for its file system.  A copy of a mount waits for none, unless
 * that makes handles by writing (overlay). */
static const unsigned helpers_of[HELPER_TASKS] = {
	[HELPER_QUOTA] = HELPERS, [HELPER_BARE] = 2,
};

/* Allows the call @nr, whose argument @arg is the command.  The kernel takes 32
 * bits of that, and some machines put its sign into the other half. */
static int allow_commands(scmp_filter_ctx f, int nr, unsigned arg)
{
	static const int commands[] = QUOTA_COMMANDS;
	struct scmp_arg_cmp is = {
		.arg = arg, .op = SCMP_CMP_MASKED_EQ, .datum_a = UINT32_MAX,
	};
	int err = 0;

	for (unsigned i = 0; i < ARRAY_SIZE(commands) && !err; i++) {
		is.datum_b = (uint32_t)commands[i];
		err = seccomp_rule_add_array(f, SCMP_ACT_ALLOW, nr, 1, &is);
	}
	return err;
}

static int allow_quotactl(scmp_filter_ctx f)
{
	int err = allow_commands(f, SCMP_SYS(quotactl), 0);

	return err ? err : allow_commands(f, confine_number("quotactl_fd"), 1);
}

/* Allows a call whose path, the second argument, is the empty constant, with
 * @n more conditions. */
static int allow_by_descriptor(scmp_filter_ctx f, int nr,
			       struct scmp_arg_cmp *is, unsigned n)
{
	is[n] = (struct scmp_arg_cmp){
		.arg = 1, .op = SCMP_CMP_EQ,
		.datum_a = (uintptr_t)helper_bare_path,
	};
	return seccomp_rule_add_array(f, SCMP_ACT_ALLOW, nr, n + 1, is);
}

/* Allows a read-only copy of one mount, without those below it. */
static int allow_copy(scmp_filter_ctx f)
{
	struct scmp_arg_cmp probe[] = {
		{ .arg = 4, .op = SCMP_CMP_EQ, .datum_a = AT_EMPTY_PATH },
		{ 0 },
	};
	struct scmp_arg_cmp copy[] = {
		{ .arg = 2, .op = SCMP_CMP_EQ, .datum_a = HELPER_BARE_FLAGS },
		{ 0 },
	};
	struct scmp_arg_cmp protect[] = {
		{ .arg = 2, .op = SCMP_CMP_EQ, .datum_a = AT_EMPTY_PATH },
		{ .arg = 3, .op = SCMP_CMP_EQ,
		  .datum_a = (uintptr_t)&helper_bare_attr },
		{ .arg = 4, .op = SCMP_CMP_EQ,
		  .datum_a = sizeof(helper_bare_attr) },
		{ 0 },
	};
	int err = allow_by_descriptor(f, SCMP_SYS(name_to_handle_at), probe, 1);

	if (!err)
		err = allow_by_descriptor(f, SYS_open_tree, copy, 1);
	return err ? err :
	       allow_by_descriptor(f, SYS_mount_setattr, protect, 3);
}

static int filter(enum helper_task task, enum confine_calls calls)
{
	static const char *const allowed[] = {
		"recvmsg", "sendmsg", "socketcall", "close", "exit_group",
		"fstat", "fstat64", "newfstatat", "fstatat64", "statx",
	};
	/* A sanitizer makes other calls. */
	bool logs = calls == CONFINE_LOG || SANITIZED;
	scmp_filter_ctx f;
	int err;

	if (calls == CONFINE_OFF)
		return 0;
	f = seccomp_init(logs ? SCMP_ACT_LOG : SCMP_ACT_KILL_PROCESS);
	if (!f)
		return -ENOMEM;
	/* An intruder in gannetd is to get nothing here but this. */
	err = task == HELPER_QUOTA ? allow_quotactl(f) : allow_copy(f);
	for (unsigned i = 0; i < ARRAY_SIZE(allowed) && !err; i++) {
		int nr = confine_number(allowed[i]);

		if (nr != __NR_SCMP_ERROR)
			err = seccomp_rule_add(f, SCMP_ACT_ALLOW, nr, 0);
	}
	if (!err)
		err = seccomp_load(f);
	seccomp_release(f);
	return err;
}

static _Noreturn void be_helper(enum helper_task task, int sock,
				enum confine_calls calls)
{
	sigset_t all;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	prctl(PR_SET_NAME, task == HELPER_QUOTA ? "gannetd-quotas" :
						  "gannetd-mounts");
	/* Also close the log and the pipe to a daemon's parent: their readers
	 * wait for the end, and must not wait for this process. */
	if (dup2(sock, 0) < 0 || syscall(SYS_close_range, 1, ~0u, 0) < 0)
		for (int fd = (int)sysconf(_SC_OPEN_MAX); --fd > 0;)
			close(fd);
	confine_capabilities_to((uint64_t)1 << CAP_SYS_ADMIN);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	    filter(task, calls) == 0)
		helper_serve(task, 0);
	_exit(EXIT_FAILURE);
}

static bool has_capability(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2];

	return syscall(SYS_capget, &head, caps) == 0 &&
	       caps[0].effective & 1u << CAP_SYS_ADMIN;
}

static void start_one(enum helper_task task, enum confine_calls calls)
{
	const char *lack = task == HELPER_QUOTA ? "quotas" :
			   "copies of mounts";
	int socks[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks) < 0) {
		log_warn("no helper, so no %s: %s", lack, strerror(errno));
		return;
	}
	pid = fork();
	if (pid == 0)
		be_helper(task, socks[1], calls);
	close(socks[1]);
	if (pid < 0) {
		log_warn("no helper, so no %s: %s", lack, strerror(errno));
		close(socks[0]);
		return;
	}
	helper_use(task, socks[0], PATIENCE_MS);
}

void helper_start(enum confine_calls calls)
{
	if (!has_capability())
		return;
	/* No thread waits for them: wait4() is not allowed later. */
	signal(SIGCHLD, SIG_IGN);
	for (int task = 0; task < HELPER_TASKS; task++)
		for (unsigned i = 0; i < helpers_of[task]; i++)
			start_one((enum helper_task)task, calls);
}
