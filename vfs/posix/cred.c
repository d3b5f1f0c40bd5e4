/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cred - the thread's file system credentials.
 *
 * The raw system calls change one thread only, and cost about as much as the
 * operation itself, so they are made only when the caller changes.  Leaving uid
 * 0 takes the file system capabilities out of the thread's effective set
 * (capabilities(7)), coming back returns them; a server that is root in another
 * way than by its uid could not do that, and acts as itself for all callers.
 *
 * A thread that has changed its credentials once can no longer use RDMA
 * devices: the kernel compares the credentials object with that of the thread
 * that opened the device, and a change back makes another object.  So threads
 * whose operations must not block (pollers) change theirs only if they were
 * started with thread_changes_cred; else operations as the caller go to a
 * worker.
 */
#include "vfs/posix/cred.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/thread.h"

STAT(posix_cred_switch, "changes of a thread's credentials");
STAT(posix_cred_refused, "callers without a user on this system");

/* This thread's credentials; the kernel has the real ones. */
static _Thread_local struct {
	bool server;		/* the user is 0 */
	bool known;		/* it is all as in who */
	struct posix_who who;
} self;

static int get_caps(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};

	return syscall(SYS_capget, &head, data) < 0 ? -errno : 0;
}

static bool has_cap(const struct __user_cap_data_struct data[2], int cap)
{
	return data[cap / 32].effective & 1U << cap % 32;
}

/* Sets the current groups again. */
static bool setgroups_works(void)
{
	int n = getgroups(0, NULL);
	gid_t *groups = n < 0 ? NULL : calloc(n + 1, sizeof(*groups));
	bool works;

	if (!groups)
		return false;
	n = getgroups(n, groups);
	works = n >= 0 && syscall(SYS_setgroups, n, groups) == 0;
	free(groups);
	return works;
}

static void probe(void *arg)
{
	bool *works = arg;
	struct __user_cap_data_struct caps[2];
	int bits = prctl(PR_GET_SECUREBITS);

	*works = geteuid() == 0 && bits >= 0 &&
		!(bits & SECBIT_NO_SETUID_FIXUP) && get_caps(caps) == 0 &&
		has_cap(caps, CAP_SETUID) && has_cap(caps, CAP_SETGID) &&
		/* A user namespace can still forbid it. */
		setgroups_works();
}

/* On a separate thread: the caller's credentials stay the same object. */
bool posix_cred_probe(void)
{
	bool works = false;
	pthread_t thread;

	if (thread_start(&thread, "probe", probe, &works) < 0)
		return false;
	pthread_join(thread, NULL);
	return works;
}

/* setfsuid() reports no errors, but returns the current id: pass an invalid one
 * to read it. */
static bool set_ids(uint32_t uid, uint32_t gid)
{
	setfsgid(gid);
	setfsuid(uid);
	return (uint32_t)setfsgid(-1) == gid && (uint32_t)setfsuid(-1) == uid;
}

int posix_cred_set(const struct posix_fs *fs, const struct vfs_op *op)
{
	const struct vfs_cred *cred = op->cred;

	/* The kernel compares these with the thread's other ids. */
	if (unlikely(fs->has_user) &&
	    (cred->uid != fs->user || cred->gid != fs->group))
		return -EACCES;
	if (!fs->privileged ||
	    (self.known && posix_who_is(&self.who, cred)))
		return 0;
	if (op->nonblock && !thread_changes_cred)
		return -EAGAIN;
	stat_inc(posix_cred_switch);
	self.known = self.server = false;
	if (syscall(SYS_setgroups, cred->ngids, cred->gids) < 0 ||
	    !set_ids(cred->uid, cred->gid)) {
		set_ids(0, 0);
		stat_inc(posix_cred_refused);
		return -EACCES;
	}
	self.who = posix_who(cred);
	self.known = true;
	self.server = cred->uid == 0;
	return 0;
}

void posix_cred_server(const struct posix_fs *fs)
{
	if (self.server || (fs && (!fs->privileged || fs->as_caller)))
		return;
	/*
	 * An unknown thread still has the credentials of its creator.  Where
	 * that is user 0 this changes nothing, not even the kernel's
	 * credentials object.  With CAP_DAC_OVERRIDE the groups don't matter.
	 */
	setfsuid(0);
	self.server = true;
	self.known = false;
}

struct posix_who posix_cred_now(void)
{
	return self.known ? self.who :
	       (struct posix_who){ .gids_id = UINT64_MAX };
}

void posix_act_as_server(void)
{
	posix_cred_server(NULL);
}

int posix_begin_remote(const struct posix_fs *fs, const struct vfs_op *op)
{
	if (op->nonblock)
		return -EAGAIN;
	if (!fs->as_caller)
		return 0;
	if (op->cred)
		return posix_cred_set(fs, op);
	posix_cred_server(NULL);
	return 0;
}

uint32_t posix_cred_lend_server(void)
{
	uint32_t uid = (uint32_t)setfsuid(-1);

	if (uid != 0)
		setfsuid(0);
	return uid;
}

void posix_cred_take_back(uint32_t uid)
{
	if (uid != 0)
		setfsuid(uid);
}
