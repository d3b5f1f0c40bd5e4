/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper - requests to the process with CAP_SYS_ADMIN, and its answers.
 *
 * One request at a time goes to the helper, as a message with a descriptor.  So
 * an answer that is late is that of the last request; it is read and forgotten
 * before the next one is sent.  A request's patience begins when it is made:
 * the others that come before it take from it, and who has waited so long goes
 * without an answer.
 */
#include "vfs/helper.h"
#include "vfs/quotas.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/thread.h"
#include "lib/util.h"

/* Of mount_setattr(2). */
#define RDONLY	1u
#define NOSUID	2u
#define NODEV	4u
#define NOEXEC	8u

const char helper_bare_path[] = "";
const struct helper_mount_attr helper_bare_attr = {
	.set = RDONLY | NOSUID | NODEV | NOEXEC,
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

/* ---- messages */

/* A message with room for one descriptor beside it. */
struct parcel {
	struct iovec  iov;
	struct msghdr head;
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
};

static void parcel_init(struct parcel *p, struct helper_message *m)
{
	memset(p, 0, sizeof(*p));
	p->iov = (struct iovec){ m, sizeof(*m) };
	p->head.msg_iov = &p->iov;
	p->head.msg_iovlen = 1;
	p->head.msg_control = p->room;
	/* The room for two: the second one would not be closed. */
	p->head.msg_controllen = CMSG_LEN(sizeof(int));
}

/* @fd -1: sends no descriptor. */
static bool send_message(int sock, struct helper_message *m, int fd)
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
static ssize_t recv_message(int sock, struct helper_message *m, int *fd)
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
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(c), sizeof(*fd));
	return n;
}

/* True if files there have handles.  The server can open them by these, covered
 * or not; a copy of another file system would show it more. */
static bool has_handles(int fd)
{
	struct file_handle none = { .handle_bytes = 0 };
	int mount;

	return name_to_handle_at(fd, helper_bare_path, &none, &mount,
				 AT_EMPTY_PATH) == 0 || errno == EOVERFLOW;
}

/* A descriptor in a read-only copy of the mount that @fd is in, or -errno. */
static int copy_mount(int fd)
{
	int err, bare;

	if (!has_handles(fd))
		return -EOPNOTSUPP;
	bare = (int)syscall(SYS_open_tree, fd, helper_bare_path,
			    HELPER_BARE_FLAGS);
	if (bare < 0)
		return -errno;
	if (syscall(SYS_mount_setattr, bare, helper_bare_path, AT_EMPTY_PATH,
		    &helper_bare_attr, sizeof(helper_bare_attr)) == 0)
		return bare;
	err = -errno;
	close(bare);
	return err;
}

/* Does the task of @m with @fd; returns a descriptor to answer with, or -1.
 * The helper believes nothing of what it is sent. */
static int do_task(struct helper_message *m, int fd)
{
	int bare = -1;

	if (m->task == HELPER_BARE) {
		bare = copy_mount(fd);
		m->err = bare < 0 ? bare : 0;
	} else {
		m->err = quota_from_kernel(fd, &m->quota);
	}
	return bare;
}

void helper_serve(int sock)
{
	struct helper_message m;
	int fd, answer;
	bool sent;

	while (recv_message(sock, &m, &fd) == sizeof(m) && fd >= 0) {
		answer = do_task(&m, fd);
		close(fd);
		sent = send_message(sock, &m, answer);
		if (answer >= 0)
			close(answer);
		if (!sent)
			return;
	}
}

/* ---- the helper's client */

static int lose_helper(void)
{
	log_err("the helper process has ended: until a restart of the server, "
		"clients see no quotas, and empty directories in place of "
		"mount points that they do not enter");
	close(helper.sock);
	helper.sock = -1;
	return -ESRCH;
}

/* Takes the answer that is owed, as helper_ask() does.  -ETIMEDOUT: it does not
 * come until clock_ns() is @until. */
static int take_answer(struct helper_message *m, int *got, uint64_t until)
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
	if (got)
		*got = fd;
	else if (fd >= 0)
		close(fd);
	return 0;
}

/* By the request that has taken the helper. */
static int from_helper(struct helper_message *m, int fd, int *got,
		       uint64_t until)
{
	int err = 0;

	if (helper.sock < 0)
		return -ESRCH;
	if (helper.owes)
		err = take_answer(&(struct helper_message){ 0 }, NULL, 0);
	if (err < 0)
		return err;
	helper.owes = true;
	err = send_message(helper.sock, m, fd) ?
	      take_answer(m, got, until) : lose_helper();
	return err < 0 ? err : m->err;
}

/* Under the lock, which it lets go of meanwhile. */
static int wait_for_helper(struct helper_message *m, int fd, int *got)
{
	uint64_t until = clock_ns() + helper.patience_ms * 1ull * NS_PER_MS;
	int err;

	while (helper.is_taken)
		if (!cond_wait_until(&helper.idle, &helper.lock, until))
			return -ETIMEDOUT;
	helper.is_taken = true;
	mutex_unlock(&helper.lock);
	err = from_helper(m, fd, got, until);
	mutex_lock(&helper.lock);
	helper.is_taken = false;
	pthread_cond_signal(&helper.idle);
	return err;
}

void helper_use(int sock, int patience_ms)
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

int helper_ask(struct helper_message *m, int fd, int *got)
{
	int err;

	if (got)
		*got = -1;
	mutex_lock(&helper.lock);
	err = helper.is_used ? wait_for_helper(m, fd, got) : -ENOTCONN;
	mutex_unlock(&helper.lock);
	return err;
}
