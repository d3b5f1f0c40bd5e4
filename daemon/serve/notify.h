/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notify - tells the service manager the state of the daemon, sd_notify(3).
 *
 * Nothing is told where no manager asks, or where libsystemd was missing when
 * this was built.  Any thread.
 */
#ifndef GANNET_DAEMON_NOTIFY_H
#define GANNET_DAEMON_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>

enum notify_state { NOTIFY_READY, NOTIFY_RELOADING, NOTIFY_STOPPING,
		    NOTIFY_ALIVE, NOTIFY_DRAINING, NOTIFY_SERVING };

void notify(enum notify_state state);

/* The ns between two NOTIFY_ALIVE that the manager's watchdog is content with;
 * UINT64_MAX: there is none. */
uint64_t notify_alive_ns(void);

#endif
