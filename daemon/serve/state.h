/* SPDX-License-Identifier: BSD-2-Clause */
/* state - the directory of the files that outlive one server's process. */
#ifndef GANNET_DAEMON_STATE_H
#define GANNET_DAEMON_STATE_H

/*
 * Makes @dir and the directories above it, and locks it until *@lock is closed.
 * 0; -EBUSY: another server has locked it; or -errno.
 */
int state_dir_open(const char *dir, int *lock);

#endif
