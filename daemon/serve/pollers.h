/* SPDX-License-Identifier: BSD-2-Clause */
/* pollers - the threads that own connections (doc/threads.md). */
#ifndef GANNET_DAEMON_POLLERS_H
#define GANNET_DAEMON_POLLERS_H

#include <stdbool.h>

#include "lib/loop.h"

/* All zero: none. */
struct pollers {
	struct loop	**loops;
	unsigned	 n;
};

/* @n of them.  @spin_us: see loop_spin(); @changes_cred: see
 * thread_changes_cred.  0 or -errno, and pollers_stop() is due in any case. */
int pollers_start(struct pollers *p, const char *name, unsigned n,
		  unsigned spin_us, bool changes_cred);
void pollers_stop(struct pollers *p);

#endif
