/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper - the processes that use CAP_SYS_ADMIN for gannetd.
 *
 * gannetd gives this capability up.  If it had it, some processes for each of
 * the tasks below keep it.  Each can only do this task, with a descriptor that
 * gannetd sends it.
 */
#pragma once

#include <fcntl.h>
#include <stdint.h>

#include <sys/syscall.h>

#include <gannet/vfs.h>

/* The C library can be older; only on Alpha do the numbers differ. */
#ifndef SYS_open_tree
#define SYS_open_tree		428
#endif
#ifndef SYS_mount_setattr
#define SYS_mount_setattr	442
#endif

enum helper_task {
	HELPER_QUOTA,		/* quota_from_kernel() */
	HELPER_BARE,		/* gives a descriptor of the same directory, in
				 * a copy of its mount that nothing is mounted
				 * on.  The copy is read-only, because a mount
				 * that it lacks might be there to protect the
				 * directory below.  -EOPNOTSUPP: the file
				 * system has no handles, as proc */
	HELPER_TASKS,
};

/* At most, of each task. */
#define HELPERS		4u

/* As struct mount_attr of linux/mount.h, which can be older. */
struct helper_mount_attr {
	uint64_t set, clear, propagation, userns_fd;
};

/* The arguments of the helper's open_tree() and mount_setattr(), except the
 * descriptor: the filter recognizes them by their addresses. */
#define HELPER_BARE_FLAGS	(1 /* OPEN_TREE_CLONE */ | O_CLOEXEC | \
				 AT_EMPTY_PATH)
extern const char helper_bare_path[];
extern const struct helper_mount_attr helper_bare_attr;

/* A request; with @err and the task's results its answer. */
struct helper_message {
	enum helper_task task;
	int		 err;
	struct vfs_quota quota;
};

/*
 * Sends a helper of the task @m and @fd, O_PATH will do, and takes the answer.
 * Any thread; can block.  *@got, unless @got is NULL: the descriptor that came
 * with it, owned by the caller; or -1.  0 or the task's error; -ENOTCONN: no
 * helper was started; -ESRCH: it has ended; -ETIMEDOUT: all are too busy, or
 * the last request for the file system of @fd has not been answered yet.
 */
int helper_ask(struct helper_message *m, int fd, int *got);
/*
 * helper_ask() also sends requests of @task to @sock, which it takes over.  A
 * request can take @patience_ms, including the wait for earlier ones; a late
 * helper gets its next request after it has answered.  A @sock of -1: no helper
 * from now on.
 */
void helper_use(enum helper_task task, int sock, int patience_ms);
/*
 * The life of the helper for @task: answers what comes from @sock, until the
 * other end is gone.  Its only system calls are recvmsg, sendmsg, close, for
 * HELPER_QUOTA the calls of quota_from_kernel(), and for HELPER_BARE
 * name_to_handle_at, open_tree and mount_setattr.
 */
void helper_serve(enum helper_task task, int sock);
