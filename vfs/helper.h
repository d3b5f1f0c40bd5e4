/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper - the process that does for gannetd what takes CAP_SYS_ADMIN.
 *
 * gannetd gives that up, so where it had it another process keeps it, which can
 * do no more than the tasks below, with a descriptor that gannetd sends it.
 */
#ifndef GANNET_VFS_HELPER_H
#define GANNET_VFS_HELPER_H

#include <fcntl.h>

#include <gannet/vfs.h>

enum helper_task {
	HELPER_QUOTA,		/* quota_from_kernel() */
	HELPER_BARE,		/* gives a descriptor of the same directory, in
				 * a copy of its mount that nothing is mounted
				 * on */
};

/* The arguments of the helper's open_tree(), beside the descriptor. */
#define HELPER_BARE_FLAGS	(1 /* OPEN_TREE_CLONE */ | O_CLOEXEC | \
				 AT_EMPTY_PATH)
extern const char helper_bare_path[];

/* A request; with @err and the task's results its answer. */
struct helper_message {
	enum helper_task task;
	int		 err;
	struct vfs_quota quota;
};

/*
 * Sends the helper @m and @fd, O_PATH will do, and takes the answer: any
 * thread; may block.  *@got, unless @got is NULL: the descriptor that came with
 * it, the caller's; or -1.  0 or the task's error; -ENOTCONN: there is no
 * helper; -ESRCH: it has ended; -ETIMEDOUT: it is too busy.
 */
int helper_ask(struct helper_message *m, int fd, int *got);
/*
 * helper_ask() asks behind @sock, which it takes over.  A request may take
 * @patience_ms with those that come before it; a helper that is late is not
 * asked again until it has answered.  -1: there is no helper.
 */
void helper_use(int sock, int patience_ms);
/*
 * The helper's life: answers what comes from @sock, until the other end is
 * gone.  Makes no system calls but recvmsg, sendmsg, close, open_tree and those
 * of quota_from_kernel().
 */
void helper_serve(int sock);

#endif
