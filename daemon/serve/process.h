/* SPDX-License-Identifier: BSD-2-Clause */
/* process - what this process uses of the machine.  Any thread. */
#ifndef GANNET_DAEMON_PROCESS_H
#define GANNET_DAEMON_PROCESS_H

#include <stdint.h>

struct process_usage {
	uint64_t cpu_ns;
	uint64_t resident;	/* bytes */
	uint64_t virtual;	/* bytes */
	uint64_t fds;		/* open, and the most that may be */
	uint64_t max_fds;
	uint64_t threads;
};

/* Asks the kernel; what it does not tell is 0. */
void process_look(struct process_usage *out);

#endif
