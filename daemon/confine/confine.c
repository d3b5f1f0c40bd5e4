/* SPDX-License-Identifier: BSD-2-Clause */
/* confine - capabilities, no_new_privs and Landlock; see also calls.c. */
#include "daemon/confine/confine.h"

#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/util.h"

#define BIT(cap)	((uint64_t)1 << (cap))

/*
 * The capabilities that gannetd keeps if root starts it.  A worker that acts as
 * a caller has lost the first six meanwhile, unless the caller is user 0
 * (capabilities(7)).
 */
static const uint64_t serving =
	BIT(CAP_CHOWN) |		/* SETATTR and CREATE as user 0 */
	BIT(CAP_DAC_OVERRIDE) |		/* SETATTR; the state directory */
	BIT(CAP_DAC_READ_SEARCH) |	/* open_by_handle_at() */
	BIT(CAP_FOWNER) |		/* SETATTR as user 0 */
	BIT(CAP_FSETID) |		/* set-id bits that user 0 asks for */
	BIT(CAP_MKNOD) |		/* MKNOD as user 0 */
	BIT(CAP_SETUID) |		/* to act as a caller: setfsuid(), */
	BIT(CAP_SETGID) |		/* setgroups() */
	BIT(CAP_NET_BIND_SERVICE) |	/* a listener that follows its device; a
					 * port that rpcbind trusts */
#if SANITIZED
	BIT(CAP_SYS_PTRACE) |		/* for the leak checker */
#endif
	BIT(CAP_IPC_LOCK);		/* memory pinned for RDMA devices, in
					 * containers with a limit of it */

static void drop_bounding_set(uint64_t wanted)
{
	for (int cap = 0; cap < 64; cap++) {
		if (prctl(PR_CAPBSET_READ, cap) < 0)
			return;		/* that was the last one */
		if (!(wanted & BIT(cap)) && prctl(PR_CAPBSET_DROP, cap) < 0)
			return;		/* not root: nothing to drop */
	}
}

void confine_capabilities_to(uint64_t wanted)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2];

	drop_bounding_set(wanted);	/* first: needs CAP_SETPCAP */
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capget, &head, caps) < 0) {
		log_warn("capget: %s", strerror(errno));
		return;
	}
	for (unsigned i = 0; i < ARRAY_SIZE(caps); i++) {
		uint32_t mask = (uint32_t)(wanted >> 32 * i);

		caps[i].permitted &= mask;
		caps[i].effective &= mask;
		caps[i].inheritable = 0;
	}
	if (syscall(SYS_capset, &head, caps) < 0)
		log_warn("capset: %s", strerror(errno));
}

/* ---- Landlock.  From linux/landlock.h, which can be older than the kernel */

struct ruleset {
	uint64_t handled_access_fs;
	uint64_t handled_access_net;
	uint64_t scoped;
};

#define CREATE_RULESET_VERSION	1u
#define SCOPE_ABI		6	/* Linux 6.12 */
#define SCOPE_ABSTRACT_SOCKET	1u
#define SCOPE_SIGNAL		2u

/*
 * The ruleset does not handle files: it would have to name every export that a
 * reload can bring, and would refuse files that are opened by handle, because
 * they have no path to check.
 */
static void confine_scope(void)
{
#if defined(SYS_landlock_create_ruleset) && defined(SYS_landlock_restrict_self)
	const struct ruleset r = {
		.scoped = SCOPE_ABSTRACT_SOCKET | SCOPE_SIGNAL,
	};
	int fd;

	if (syscall(SYS_landlock_create_ruleset, NULL, 0,
		    CREATE_RULESET_VERSION) < SCOPE_ABI)
		return;
	fd = (int)syscall(SYS_landlock_create_ruleset, &r, sizeof(r), 0);
	if (fd < 0 || syscall(SYS_landlock_restrict_self, fd, 0) < 0)
		log_debug("Landlock: %s", strerror(errno));
	if (fd >= 0)
		close(fd);
#endif
}

int confine(enum confine_calls calls)
{
	int err;

	confine_capabilities_to(serving);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) {
		err = -errno;
		log_err("cannot renounce new privileges: %s", strerror(-err));
		return err;
	}
	confine_scope();
	err = confine_system_calls(calls);
	if (err)
		log_err("cannot set up the filter of system calls: %s (see "
			"--seccomp)", strerror(-err));
	return err;
}
