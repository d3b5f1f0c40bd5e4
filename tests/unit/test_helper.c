/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper, with calls of the test's choice in the place of its work: the
 * powers of an intruder who has taken it over. */
#include "daemon/confine/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/unit/runner.h"
#include "vfs/helper.h"
#include "vfs/quotas.h"

#define NR_QUOTACTL_FD	443
#define FSTAT		-1		/* by the C library */
#define NR_OPEN_TREE	428
#define NR_MOVE_MOUNT	429
#define NR_MOUNT_SETATTR 442
#define BARE_PATH	((long)helper_bare_path)

/* A system call, then its result. */
struct order {
	long nr;
	long arg[5];
	long ret;
	int  err;
};

#define CALL(n, ...) { .nr = n, .arg = { __VA_ARGS__ } }

/* To the helpers; -1: none. */
static int sock[HELPER_TASKS];

/* ---- in the place of vfs/helper.c and vfs/helper_work.c */

const char helper_bare_path[] = "";
const struct helper_mount_attr helper_bare_attr = { .set = 1 };

void helper_use(enum helper_task task, int to, int patience_ms)
{
	sock[task] = to;
}

static bool transfer(ssize_t (*how)(int, struct msghdr *, int), int fd,
		     struct order *o)
{
	struct iovec iov = { o, sizeof(*o) };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	return how(fd, &m, MSG_NOSIGNAL) == sizeof(*o);
}

static ssize_t send_order(int fd, struct msghdr *m, int flags)
{
	return sendmsg(fd, m, flags);
}

void helper_serve(enum helper_task task, int from)
{
	struct order o;
	struct stat st;

	while (transfer(recvmsg, from, &o)) {
		o.ret = o.nr == FSTAT ? fstat((int)o.arg[0], &st) :
			syscall(o.nr, o.arg[0], o.arg[1], o.arg[2], o.arg[3],
				o.arg[4]);
		o.err = o.ret < 0 ? errno : 0;
		transfer(send_order, from, &o);
	}
}

/* ---- the test's end */

static void setup(void)
{
	for (int i = 0; i < HELPER_TASKS; i++)
		sock[i] = -1;
}

/* Has the helper for @task make a call.  False: it ended. */
static bool make_call(enum helper_task task, struct order *o)
{
	ck_assert(transfer(send_order, sock[task], o));
	return transfer(recvmsg, sock[task], o);
}

TEST_CASE(.setup = setup);

TEST(a_helper_may_ask_for_quotas)
{
	static const int commands[] = QUOTA_COMMANDS;

	helper_start(CONFINE_KILL);
	ck_assert_int_ge(sock[HELPER_QUOTA], 0);
	for (unsigned i = 0; i < ARRAY_SIZE(commands); i++) {
		/* A socket has no quota, nor has the null pointer.  The
		 * commands are negative, as some machines pass them. */
		struct order fd = CALL(NR_QUOTACTL_FD, 0, commands[i]);
		struct order path = CALL(SYS_quotactl, commands[i]);

		ck_assert(make_call(HELPER_QUOTA, &fd));
		ck_assert_int_eq(fd.ret, -1);
		ck_assert(make_call(HELPER_QUOTA, &path));
		ck_assert_int_eq(path.ret, -1);
	}
}

TEST(another_may_copy_a_mount)
{
	/* The socket is in none. */
	struct order o = CALL(NR_OPEN_TREE, 0, BARE_PATH, HELPER_BARE_FLAGS);
	struct order probe = CALL(SYS_name_to_handle_at, 0, BARE_PATH, 0, 0,
				  AT_EMPTY_PATH);
	struct order protect = CALL(NR_MOUNT_SETATTR, 0, BARE_PATH,
				    AT_EMPTY_PATH, (long)&helper_bare_attr,
				    sizeof(helper_bare_attr));

	helper_start(CONFINE_KILL);
	ck_assert(make_call(HELPER_BARE, &o));
	ck_assert_int_eq(o.ret, -1);
	ck_assert_int_eq(o.err, EINVAL);
	ck_assert(make_call(HELPER_BARE, &probe));
	ck_assert_int_eq(probe.ret, -1);
	ck_assert(make_call(HELPER_BARE, &protect));
	ck_assert_int_eq(protect.ret, -1);
}

/* Nor the log, the pipe to the parent of a daemon, or the end of the socket
 * whose closing is to end it. */
TEST_LOOP(a_helper_has_no_descriptor_but_its_socket, 0, HELPER_TASKS)
{
	int null = open("/dev/null", O_RDWR);	/* not close-on-exec */

	ck_assert_int_ge(null, 0);
	ck_assert_int_eq(dup2(null, 900), 900);
	helper_start(CONFINE_KILL);
	for (int fd = 0; fd < 1024; fd++) {
		struct order o = CALL(FSTAT, fd);

		ck_assert(make_call((enum helper_task)_i, &o));
		ck_assert_int_eq(o.err, fd == 0 ? 0 : EBADF);
	}
}

static const char other_path[] = "/";
static const struct helper_mount_attr other_attr = { .clear = 1 };

static const struct order forbidden[] = {
	CALL(SYS_quotactl, QCMD(Q_SETQUOTA, USRQUOTA)),
	CALL(SYS_quotactl, QCMD(Q_QUOTAON, USRQUOTA)),
	CALL(SYS_quotactl, QCMD(Q_GETQUOTA, GRPQUOTA + 1)),
	CALL(NR_QUOTACTL_FD, 0, QCMD(Q_SETQUOTA, GRPQUOTA)),
	CALL(NR_QUOTACTL_FD, 0, QCMD(Q_QUOTAOFF, USRQUOTA)),
	CALL(NR_QUOTACTL_FD, 0, QCMD(Q_SYNC, USRQUOTA)),
	CALL(SYS_openat, AT_FDCWD), CALL(SYS_read, 0), CALL(SYS_write, 0),
	CALL(SYS_socket, AF_INET, SOCK_STREAM), CALL(SYS_ioctl, 0),
	CALL(SYS_mmap, 0), CALL(SYS_execve, 0), CALL(SYS_clone, 0),
	CALL(SYS_kill, 0), CALL(SYS_ptrace, 0), CALL(SYS_mount, 0),
	CALL(SYS_umount2, 0), CALL(SYS_setns, 0), CALL(SYS_unshare, 0),
	CALL(SYS_bpf, -1), CALL(SYS_prctl, -1), CALL(SYS_capset, 0),
	CALL(SYS_sethostname, 0),
	/* By another path, and with the mounts below. */
	CALL(NR_OPEN_TREE, 0, (long)other_path, HELPER_BARE_FLAGS),
	CALL(NR_OPEN_TREE, 0, BARE_PATH, HELPER_BARE_FLAGS | AT_RECURSIVE),
	CALL(NR_OPEN_TREE, 0, BARE_PATH, 0),
	CALL(NR_MOVE_MOUNT, 0, BARE_PATH, AT_FDCWD, BARE_PATH),
	/* With other flags, of another mount and of mounts below. */
	CALL(NR_MOUNT_SETATTR, 0, BARE_PATH, AT_EMPTY_PATH, (long)&other_attr,
	     sizeof(other_attr)),
	CALL(NR_MOUNT_SETATTR, 0, (long)other_path, AT_EMPTY_PATH,
	     (long)&helper_bare_attr, sizeof(helper_bare_attr)),
	CALL(NR_MOUNT_SETATTR, 0, BARE_PATH, AT_EMPTY_PATH | AT_RECURSIVE,
	     (long)&helper_bare_attr, sizeof(helper_bare_attr)),
	CALL(SYS_name_to_handle_at, 0, (long)other_path, 0, 0, AT_EMPTY_PATH),
};

TEST_LOOP(another_call_ends_the_helper, 0, ARRAY_SIZE(forbidden))
{
	if (SANITIZED)			/* there it is logged only */
		return;
	helper_start(CONFINE_KILL);
	for (int task = 0; task < HELPER_TASKS; task++) {
		struct order o = forbidden[_i];

		ck_assert_msg(!make_call((enum helper_task)task, &o),
			      "%ld: %ld, errno %d", o.nr, o.ret, o.err);
	}
}

/* An intruder in a helper can do nothing but its task. */
TEST(the_call_of_the_other_task_ends_a_helper)
{
	struct order copy = CALL(NR_OPEN_TREE, 0, BARE_PATH, HELPER_BARE_FLAGS);
	struct order quota = CALL(NR_QUOTACTL_FD, 0, QCMD(Q_GETQUOTA,
							  USRQUOTA));

	if (SANITIZED)
		return;
	helper_start(CONFINE_KILL);
	ck_assert(!make_call(HELPER_QUOTA, &copy));
	ck_assert(!make_call(HELPER_BARE, &quota));
}

TEST(without_the_capability_there_is_no_helper)
{
	confine_capabilities_to(0);
	helper_start(CONFINE_KILL);
	for (int i = 0; i < HELPER_TASKS; i++)
		ck_assert_int_eq(sock[i], -1);
}

static bool has_what_it_keeps(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2];

	return syscall(SYS_capget, &head, caps) == 0 &&
	       caps[0].effective & 1u << CAP_SYS_ADMIN;
}

int main(void)
{
	if (!has_what_it_keeps() && unshare(CLONE_NEWUSER) < 0) {
		printf("skipped: may not have CAP_SYS_ADMIN\n");
		return 77;
	}
	return run_tests();
}
