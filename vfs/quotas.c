/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * quotas - asks the kernel, or the helper.
 *
 * One request at a time goes to the helper, as a message with the descriptor of
 * the file system.  So an answer that is late is that of the last request; it
 * is read and forgotten before the next one is sent.  A request's patience
 * begins when it is made: the others that come before it take from it, and who
 * has waited so long is told that there is no quota.
 */
#include "vfs/quotas.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "lib/thread.h"
#include "lib/util.h"

STAT(quota_late, "requests for a quota that the helper was too busy for");

#ifndef SYS_quotactl_fd
#define SYS_quotactl_fd	443		/* on every architecture */
#endif

/* An answer is the request with @err and the quota's results. */
struct message {
	int		 err;
	struct vfs_quota quota;
};

/* One for the process, which starts it before there is any tree. */
static struct {
	pthread_mutex_t	lock;
	pthread_cond_t	idle;		/* not taken any more */
	/* Under the lock: */
	bool		is_used;
	bool		is_taken;	/* by a request, which has the rest: */
	int		patience_ms;
	int		sock;		/* -1: it has died */
	bool		owes;		/* the last request has no answer yet */
} helper = { .lock = PTHREAD_MUTEX_INITIALIZER,
	     .idle = PTHREAD_COND_INITIALIZER, .sock = -1 };

/* ---- the kernel */

static uint64_t from_blocks(uint64_t n)
{
	uint64_t bytes;

	return __builtin_mul_overflow(n, 1024u, &bytes) ? UINT64_MAX : bytes;
}

/* Kernels before 5.14 take a path of the device only.  udev makes the one that
 * is named by its numbers. */
static long ask_by_device(int fd, int cmd, uint32_t id, struct dqblk *d)
{
	char path[64];
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -1;
	snprintf(path, sizeof(path), "/dev/block/%u:%u", major(st.st_dev),
		 minor(st.st_dev));
	if (syscall(SYS_quotactl, cmd, path, id, d) == 0)
		return 0;
	if (errno == ENOENT)		/* perhaps the path's */
		errno = ESRCH;
	return -1;
}

static int from_kernel(int fd, struct vfs_quota *q)
{
	static const int commands[] = QUOTA_COMMANDS;
	/* The helper believes nothing of what it is sent. */
	int cmd = commands[q->type == VFS_QUOTA_GROUP];
	struct dqblk d = { 0 };
	long err = syscall(SYS_quotactl_fd, fd, cmd, q->id, &d);

	if (err < 0 && errno == ENOSYS)
		err = ask_by_device(fd, cmd, q->id, &d);
	/* On XFS, that the id never had anything there. */
	if (err < 0 && errno != ENOENT)
		return -errno;
	q->bytes = (struct vfs_quota_use){
		.used = d.dqb_curspace, .soft = from_blocks(d.dqb_bsoftlimit),
		.hard = from_blocks(d.dqb_bhardlimit),
		.ends = (int64_t)d.dqb_btime,
	};
	q->files = (struct vfs_quota_use){
		.used = d.dqb_curinodes, .soft = d.dqb_isoftlimit,
		.hard = d.dqb_ihardlimit, .ends = (int64_t)d.dqb_itime,
	};
	return 0;
}

/* ---- messages */

/* A message with room for one descriptor beside it. */
struct parcel {
	struct iovec  iov;
	struct msghdr head;
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
};

static void parcel_init(struct parcel *p, struct message *m)
{
	memset(p, 0, sizeof(*p));
	p->iov = (struct iovec){ m, sizeof(*m) };
	p->head.msg_iov = &p->iov;
	p->head.msg_iovlen = 1;
	p->head.msg_control = p->room;
	p->head.msg_controllen = sizeof(p->room);
}

/* @fd -1: sends no descriptor. */
static bool send_message(int sock, struct message *m, int fd)
{
	struct cmsghdr *c;
	struct parcel p;

	parcel_init(&p, m);
	if (fd < 0) {
		p.head.msg_control = NULL;
		p.head.msg_controllen = 0;
	} else {
		c = CMSG_FIRSTHDR(&p.head);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(sock, &p.head, MSG_NOSIGNAL) == sizeof(*m);
}

/* Returns the bytes that came, 0 at the end, or -1.  *@fd is the receiver's;
 * -1: none came. */
static ssize_t recv_message(int sock, struct message *m, int *fd)
{
	struct cmsghdr *c;
	struct parcel p;
	ssize_t n;

	parcel_init(&p, m);
	do {
		n = recvmsg(sock, &p.head, MSG_CMSG_CLOEXEC);
	} while (n < 0 && errno == EINTR);
	*fd = -1;
	c = n > 0 ? CMSG_FIRSTHDR(&p.head) : NULL;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return n;
}

void quota_serve(int sock)
{
	struct message m;
	int fd;

	while (recv_message(sock, &m, &fd) == sizeof(m) && fd >= 0) {
		m.err = from_kernel(fd, &m.quota);
		close(fd);
		if (!send_message(sock, &m, -1))
			return;
	}
}

/* ---- the helper's client */

static int lose_helper(void)
{
	log_err("the process that asks for quotas has ended: clients are told "
		"that there are none, until the server is started again");
	close(helper.sock);
	helper.sock = -1;
	return -ESRCH;
}

/* Takes the answer that is owed.  0; -ETIMEDOUT: it does not come until
 * clock_ns() is @until; -ESRCH: the helper is gone. */
static int take_answer(struct message *m, uint64_t until)
{
	struct pollfd p = { .fd = helper.sock, .events = POLLIN };
	uint64_t now = clock_ns();
	int n, fd;

	do {
		n = poll(&p, 1, until > now ?
			 (int)((until - now) / NS_PER_MS) : 0);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		return -ETIMEDOUT;
	if (recv_message(helper.sock, m, &fd) != sizeof(*m))
		return lose_helper();
	helper.owes = false;
	return 0;
}

/* By the request that has taken the helper. */
static int from_helper(int fd, struct vfs_quota *q, uint64_t until)
{
	struct message m = { .quota = *q };
	int err = 0;

	if (helper.sock < 0)
		return -ESRCH;
	if (helper.owes)
		err = take_answer(&(struct message){ 0 }, 0);
	if (err == 0) {
		helper.owes = true;
		err = send_message(helper.sock, &m, fd) ?
		      take_answer(&m, until) : lose_helper();
	}
	if (err == 0)
		*q = m.quota;
	return err < 0 ? err : m.err;
}

/* Under the lock, which it lets go of meanwhile. */
static int wait_for_helper(int fd, struct vfs_quota *q)
{
	uint64_t until = clock_ns() + helper.patience_ms * 1ull * NS_PER_MS;
	int err;

	while (helper.is_taken)
		if (!cond_wait_until(&helper.idle, &helper.lock, until))
			return -ETIMEDOUT;
	helper.is_taken = true;
	mutex_unlock(&helper.lock);
	err = from_helper(fd, q, until);
	mutex_lock(&helper.lock);
	helper.is_taken = false;
	pthread_cond_signal(&helper.idle);
	return err;
}

void quota_use_helper(int sock, int patience_ms)
{
	mutex_lock(&helper.lock);
	if (helper.sock >= 0)
		close(helper.sock);
	helper.sock = sock;
	helper.is_used = sock >= 0;
	helper.patience_ms = patience_ms;
	helper.owes = false;
	mutex_unlock(&helper.lock);
}

int quota_ask(int fd, struct vfs_quota *q)
{
	bool is_used;
	int err = 0;

	mutex_lock(&helper.lock);
	is_used = helper.is_used;
	if (is_used)
		err = wait_for_helper(fd, q);
	mutex_unlock(&helper.lock);
	if (err == -ETIMEDOUT)
		stat_inc(quota_late);
	return is_used ? err : from_kernel(fd, q);
}
