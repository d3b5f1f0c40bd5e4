/* SPDX-License-Identifier: BSD-2-Clause */
/* Quotas of directories of the system: the test plays the kernel, which this
 * process or a helper asks; the helper can die or hang. */
#include "vfs/helper.h"
#include "vfs/quotas.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/quota.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "tests/unit/runner.h"

#define NR_QUOTACTL_FD	443

/* The kernel, shared with the helper. */
static struct kernel {
	bool	 no_fd;			/* too old for quotactl_fd() */
	int	 err;			/* > 0: its answer */
	uint64_t bhard;			/* blocks */
	_Atomic bool hangs;
	_Atomic dev_t hangs_at;		/* a file system */
	_Atomic unsigned slow_ms;	/* for each answer */
	_Atomic unsigned asked;
	pid_t	 asker;			/* the last one */
	ino_t	 ino;			/* of its descriptor */
	int	 cmd;
	uint32_t id;
	char	 path[64];		/* of quotactl() */
} *kernel;

static const int commands[] = QUOTA_COMMANDS;
static int dir;
static pid_t helper;			/* the last one */
static int ends[2];			/* of the helper's socket */

static long played(int cmd, uint32_t id, struct dqblk *d)
{
	kernel->asked++;
	kernel->asker = getpid();
	kernel->cmd = cmd;
	kernel->id = id;
	WAIT_WHILE(kernel->hangs);
	/* As a file system that reads its quotas from a slow disk. */
	pause_on_purpose(kernel->slow_ms * 1000);
	if (kernel->err) {
		errno = kernel->err;
		return -1;
	}
	*d = (struct dqblk){
		.dqb_bhardlimit = kernel->bhard, .dqb_bsoftlimit = 2,
		.dqb_curspace = 1500, .dqb_ihardlimit = 30,
		.dqb_isoftlimit = 20, .dqb_curinodes = 21,
		.dqb_btime = 1800000000, .dqb_itime = 1800000001,
	};
	return 0;
}

/* In the C library's place. */
long syscall(long nr, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT,
							     "syscall");
	struct stat st;
	va_list ap;
	long a[6];

	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == NR_QUOTACTL_FD && !kernel->no_fd) {
		ck_assert_int_eq(fstat((int)a[0], &st), 0);
		kernel->ino = st.st_ino;
		WAIT_WHILE(kernel->hangs_at && kernel->hangs_at == st.st_dev);
		return played((int)a[1], (uint32_t)a[2],
			      (struct dqblk *)a[3]);
	}
	if (nr == SYS_quotactl) {
		strncpy(kernel->path, (const char *)a[1],
			sizeof(kernel->path) - 1);
		return played((int)a[0], (uint32_t)a[2],
			      (struct dqblk *)a[3]);
	}
	if (nr == NR_QUOTACTL_FD) {
		errno = ENOSYS;
		return -1;
	}
	return real(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void setup(void)
{
	kernel = mmap(NULL, sizeof(*kernel), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(kernel, MAP_FAILED);
	kernel->bhard = 3;
	dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(dir, 0);
	helper = 0;
}

static void teardown(void)
{
	helper_use(HELPER_QUOTA, -1, 0);
	while (helper && waitpid(-1, NULL, 0) > 0)
		;
	close(dir);
}

static void start_helper(int patience_ms)
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
				    ends), 0);
	helper = fork();
	ck_assert_int_ge(helper, 0);
	if (helper == 0) {
		close(ends[0]);
		close(dir);
		helper_serve(HELPER_QUOTA, ends[1]);
		_exit(0);
	}
	close(ends[1]);
	helper_use(HELPER_QUOTA, ends[0], patience_ms);
}

static int ask(enum vfs_quota_type type, uint32_t id, struct vfs_quota *q)
{
	*q = (struct vfs_quota){ .type = type, .id = id };
	return quota_ask(dir, q);
}

static void check_answer(const struct vfs_quota *q)
{
	ck_assert_uint_eq(q->bytes.hard, 3072);
	ck_assert_uint_eq(q->bytes.soft, 2048);
	ck_assert_uint_eq(q->bytes.used, 1500);
	ck_assert_int_eq(q->bytes.ends, 1800000000);
	ck_assert_uint_eq(q->files.hard, 30);
	ck_assert_uint_eq(q->files.soft, 20);
	ck_assert_uint_eq(q->files.used, 21);
	ck_assert_int_eq(q->files.ends, 1800000001);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(the_kernel_is_asked_for_users_and_groups)
{
	struct vfs_quota q;
	struct stat st;

	ck_assert_int_eq(ask(VFS_QUOTA_USER, 7, &q), 0);
	check_answer(&q);
	ck_assert_int_eq(kernel->cmd, commands[VFS_QUOTA_USER]);
	ck_assert_uint_eq(kernel->id, 7);
	ck_assert_int_eq(stat("/", &st), 0);
	ck_assert_uint_eq(kernel->ino, st.st_ino);
	ck_assert_int_eq(ask(VFS_QUOTA_GROUP, UINT32_MAX - 1, &q), 0);
	ck_assert_int_eq(kernel->cmd, commands[VFS_QUOTA_GROUP]);
	ck_assert_uint_eq(kernel->id, UINT32_MAX - 1);
}

TEST(a_limit_beyond_64_bits_of_bytes_is_the_largest)
{
	struct vfs_quota q;

	kernel->bhard = 1ull << 54;
	ck_assert_int_eq(ask(VFS_QUOTA_USER, 7, &q), 0);
	ck_assert_uint_eq(q.bytes.hard, UINT64_MAX);
}

TEST(an_older_kernel_is_asked_about_the_device)
{
	struct vfs_quota q;

	kernel->no_fd = true;
	ck_assert_int_eq(ask(VFS_QUOTA_GROUP, 8, &q), 0);
	check_answer(&q);
	ck_assert_int_eq(kernel->cmd, commands[VFS_QUOTA_GROUP]);
	ck_assert_int_eq(strncmp(kernel->path, "/dev/block/", 11), 0);
	kernel->err = ENOENT;		/* the path's */
	ck_assert_int_eq(ask(VFS_QUOTA_GROUP, 8, &q), -ESRCH);
}

TEST(without_a_record_on_XFS_nothing_is_used)
{
	struct vfs_quota q;

	kernel->err = ENOENT;
	ck_assert_int_eq(ask(VFS_QUOTA_USER, 7, &q), 0);
	ck_assert_uint_eq(q.bytes.used, 0);
	ck_assert_uint_eq(q.files.hard, 0);
}

TEST(the_kernels_refusal_is_passed_on)
{
	struct vfs_quota q;

	kernel->err = EPERM;
	ck_assert_int_eq(ask(VFS_QUOTA_USER, 7, &q), -EPERM);
	kernel->err = ESRCH;
	ck_assert_int_eq(ask(VFS_QUOTA_USER, 7, &q), -ESRCH);
	start_helper(60000);
	ck_assert_int_eq(ask(VFS_QUOTA_USER, 7, &q), -ESRCH);
	ck_assert_int_eq(kernel->asker, helper);
}

TEST(the_helper_asks_about_the_directory)
{
	struct vfs_quota q;
	struct stat st;

	start_helper(60000);
	for (uint32_t id = 0; id < 3000; id++) {
		ck_assert_int_eq(ask(VFS_QUOTA_GROUP, id, &q), 0);
		check_answer(&q);
		ck_assert_uint_eq(kernel->id, id);
		ck_assert_int_eq(kernel->cmd, commands[VFS_QUOTA_GROUP]);
	}
	ck_assert_int_eq(kernel->asker, helper);
	ck_assert_int_eq(stat("/", &st), 0);
	ck_assert_uint_eq(kernel->ino, st.st_ino);
}

TEST(a_helper_that_dies_is_not_asked_again)
{
	struct vfs_quota q;
	unsigned asked;

	start_helper(60000);
	ck_assert_int_eq(ask(VFS_QUOTA_USER, 7, &q), 0);
	asked = kernel->asked;
	kill(helper, SIGKILL);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(ask(VFS_QUOTA_USER, 7, &q), -ESRCH);
	ck_assert_uint_eq(kernel->asked, asked);
}

TEST(a_helper_that_hangs_costs_one_wait)
{
	struct vfs_quota q;
	int err;

	start_helper(200);
	kernel->hangs = true;
	ck_assert_int_eq(ask(VFS_QUOTA_USER, 7, &q), -ETIMEDOUT);
	IN_LESS_THAN(100, ck_assert_int_eq(ask(VFS_QUOTA_USER, 8, &q),
					   -ETIMEDOUT));
	/* The helper itself can begin late. */
	EVENTUALLY(kernel->asked == 1);
	kernel->hangs = false;
	EVENTUALLY((err = ask(VFS_QUOTA_GROUP, 9, &q)) != -ETIMEDOUT);
	/* The late answer was another's. */
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(q.id, 9);
	ck_assert_int_eq(q.type, VFS_QUOTA_GROUP);
}

static int ask_at(const char *path)
{
	struct vfs_quota q = { .type = VFS_QUOTA_USER, .id = 7 };
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC), err;

	ck_assert_int_ge(fd, 0);
	err = quota_ask(fd, &q);
	close(fd);
	return err;
}

/* The file system that hangs keeps one helper, however often it is asked. */
TEST(a_file_system_that_hangs_leaves_others_their_quotas)
{
	struct stat st;
	int err = -ETIMEDOUT;

	for (int i = 0; i < 2; i++)
		start_helper(200);
	ck_assert_int_eq(stat("/", &st), 0);
	kernel->hangs_at = st.st_dev;
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(ask_at("/"), -ETIMEDOUT);
		/* A helper that is late for it once answers in the end. */
		EVENTUALLY(ask_at("/proc") == 0);
	}
	kernel->hangs_at = 0;
	EVENTUALLY((err = ask_at("/")) != -ETIMEDOUT);
	ck_assert_int_eq(err, 0);
}

TEST(a_helper_that_dies_leaves_its_work_to_another)
{
	for (int i = 0; i < 2; i++)
		start_helper(60000);
	ck_assert_int_eq(ask_at("/"), 0);
	kill(kernel->asker, SIGKILL);
	ck_assert_int_eq(ask_at("/"), -ESRCH);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(ask_at("/"), 0);
}

/* Kills the helper that answers; true if the log has @words then. */
static bool is_told(const char *words)
{
	int keep = dup(STDERR_FILENO);
	FILE *log = tmpfile();
	char line[1024];
	bool told = false;

	ck_assert_ptr_nonnull(log);
	ck_assert_int_eq(ask_at("/"), 0);
	kill(kernel->asker, SIGKILL);
	dup2(fileno(log), STDERR_FILENO);
	ck_assert_int_eq(ask_at("/"), -ESRCH);
	dup2(keep, STDERR_FILENO);
	close(keep);
	rewind(log);
	while (fgets(line, sizeof(line), log))
		told = told || strstr(line, words);
	fclose(log);
	return told;
}

TEST(the_log_says_how_many_helpers_are_left)
{
	for (int i = 0; i < 2; i++)
		start_helper(60000);
	ck_assert(is_told("for quotas has ended, and 1 of 2 are left"));
	ck_assert(is_told("the last helper process has ended"));
}

static void ask_once(void *arg)
{
	uint64_t *took = arg, began = runner_now_ms();
	struct vfs_quota q;

	ask(VFS_QUOTA_USER, 7, &q);
	*took = runner_now_ms() - began;
}

/* The longest of many requests at once. */
static uint64_t ask_at_once(void)
{
	pthread_t threads[16];
	uint64_t took[16], most = 0;

	for (int i = 0; i < 16; i++)
		ck_assert_int_eq(thread_start(&threads[i], "ask", ask_once,
					      &took[i]), 0);
	for (int i = 0; i < 16; i++) {
		pthread_join(threads[i], NULL);
		most = MAX(most, took[i]);
	}
	return most;
}

/* It answers each in time: simultaneous callers don't wait for all. */
TEST(a_slow_helper_costs_everybody_one_wait)
{
	uint64_t most = UINT64_MAX;
	struct vfs_quota q;
	int err;

	start_helper(300);
	kernel->slow_ms = 200;
	for (int i = 0; i < 3 && most >= 1500; i++)
		most = ask_at_once();
	ck_assert_uint_lt(most, 1500);
	kernel->slow_ms = 0;
	EVENTUALLY((err = ask(VFS_QUOTA_USER, 7, &q)) != -ETIMEDOUT);
	ck_assert_int_eq(err, 0);
	check_answer(&q);
}

TEST(the_helper_ends_with_the_server)
{
	int status;

	start_helper(60000);
	helper_use(HELPER_QUOTA, -1, 0);
	ck_assert_int_eq(waitpid(helper, &status, 0), helper);
	helper = 0;
	ck_assert(WIFEXITED(status));
}
