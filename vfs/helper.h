/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * helper - the processes that do for gannetd what takes CAP_SYS_ADMIN.
 *
 * gannetd gives that up, so where it had it, some processes for each of the
 * tasks below keep it.  Each can do no more than this task, with a descriptor
 * that gannetd sends it.
 */
#pragma once

#include <fcntl.h>
#include <stdint.h>

#include <sys/syscall.h>

#include <gannet/vfs.h>

/* The C library may be older; its numbers differ on Alpha alone. */
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
				 * that it lacks may be there to protect what
				 * is below.  -EOPNOTSUPP: the file system has
				 * no handles, as proc */
	HELPER_TASKS,
};

/* At most, of each task. */
#define HELPERS		4u

/* As struct mount_attr of linux/mount.h, which may be older. */
struct helper_mount_attr {
	uint64_t set, clear, propagation, userns_fd;
};

/* The arguments of the helper's open_tree() and mount_setattr(), beside the
 * descriptor: the filter knows them by their addresses. */
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
 * with it, the caller's; or -1.  0 or the task's error; -ENOTCONN: there is no
 * helper; -ESRCH: it has ended; -ETIMEDOUT: all are too busy, or the last
 * request for the file system of @fd has not been answered yet.
 */
int helper_ask(struct helper_message *m, int fd, int *got);
/*
 * helper_ask() also sends requests of @task to @sock, which it takes over.  A
 * request may take @patience_ms with those that come before it; a helper that
 * is late gets the next one when it has answered.  -1: there is no helper any
 * more.
 */
void helper_use(enum helper_task task, int sock, int patience_ms);
/*
 * The life of the helper for @task: answers what comes from @sock, until the
 * other end is gone.  Makes no system calls but recvmsg, sendmsg, close, and
 * for HELPER_QUOTA those of quota_from_kernel(), for HELPER_BARE
 * name_to_handle_at, open_tree and mount_setattr.
 */
void helper_serve(enum helper_task task, int sock);
