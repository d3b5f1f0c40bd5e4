/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * confine - what the process may do to the system, should somebody get to run
 * code in it.
 *
 * Capabilities other than those that serving takes are given up for good, and
 * so are new privileges; system calls that serving does not make end the
 * process; signals and abstract sockets reach nobody outside, where Landlock
 * can see to that.  gannetd(8) has the reasons.
 *
 * Before any thread is made, so that all of them have it.  What comes later is
 * made under it too: a reload of the exports, a device that is plugged in, the
 * modules of the C library's name service.
 */
#ifndef GANNET_DAEMON_CONFINE_H
#define GANNET_DAEMON_CONFINE_H

/* What a system call does that serving does not make. */
enum confine_calls {
	CONFINE_KILL,		/* ends the process */
	CONFINE_LOG,		/* is done, and the kernel logs it */
	CONFINE_OFF,		/* is done */
};

/* 0, or -errno after the reason was logged. */
int confine(enum confine_calls calls);

/* Its parts, for tests. */
void confine_capabilities(void);
int confine_system_calls(enum confine_calls calls);

#endif
