/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * late_vfs - a filter over a backend, by GANNET_TEST_LATER in the environment.
 * With "late" in it, each operation that can be given away ends later, on a
 * separate thread.  With "shy", every second operation that must not wait
 * returns -EAGAIN.
 */
#pragma once

#include <gannet/vfs.h>

void late_wrap(struct vfs_ops *ops);
/* True if the environment asks for a filter. */
bool late_is(void);
