/* SPDX-License-Identifier: BSD-2-Clause */
/* state - the directory of what outlives the process, one server's. */
#ifndef GANNET_DAEMON_STATE_H
#define GANNET_DAEMON_STATE_H

/*
 * Makes @dir and what is above it, and holds it until *@lock is closed.
 * 0; -EBUSY: another server does; or -errno.
 */
int state_dir_open(const char *dir, int *lock);

#endif
