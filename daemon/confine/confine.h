/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confine - limits what an intruder who runs code in the process can do.
 *
 * The process gives up for good all capabilities that it does not need, and new
 * privileges.  A system call that gannetd never makes ends the process.
 * Signals and abstract sockets reach no other process, where Landlock supports
 * that. gannetd(8) has the reasons.
 *
 * Call it before any thread is made: threads inherit the limits.  They also
 * hold for later work: a reload of the exports, a device that is plugged in,
 * the modules of the C library's name service.
 */
#pragma once

#include <stdint.h>

/* The effect of a system call that is not on the list. */
enum confine_calls {
	CONFINE_KILL,		/* ends the process */
	CONFINE_LOG,		/* runs, and the kernel logs it */
	CONFINE_OFF,		/* is done */
};

/* Confines the process. 0, or -errno after the reason was logged. */
int confine(enum confine_calls calls);

/* The parts of confine(), for tests and the helper. */
int confine_system_calls(enum confine_calls calls);
/* Keeps the capabilities in @wanted alone, a bit each, for good. */
void confine_capabilities_to(uint64_t wanted);
/* The number of a system call, even one newer than libseccomp; or
 * __NR_SCMP_ERROR. */
int confine_number(const char *name);

/* helper - the processes that keep CAP_SYS_ADMIN, for the tasks of
 * vfs/helper.h. */

/*
 * Starts the helpers, if this process has the capability, for helper_ask()
 * (vfs/helper.h).  They end with this process.  Call it before confine(),
 * before modules are loaded, any thread is made and anything is opened, for
 * they have a copy of all that.  An error is logged: then clients see no
 * quotas, or nothing below a mount point that they do not enter.
 */
void helper_start(enum confine_calls calls);
