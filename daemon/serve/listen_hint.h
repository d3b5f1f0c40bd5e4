/* SPDX-License-Identifier: BSD-2-Clause */
/* listen_hint - tells an administrator why a port can't be had. */
#ifndef GANNET_DAEMON_LISTEN_HINT_H
#define GANNET_DAEMON_LISTEN_HINT_H

#include <stdbool.h>

/* The likely cause of @err, -errno of a listener at @port, in brackets behind
 * a space; "" if none is known.  Any thread; looks for the kernel's NFS server.
 */
const char *listen_hint(int err, unsigned port);

/* True if @err, -errno of a listener, is the kernel's NFS server that has
 * @port: waiting does not help.  Any thread. */
bool listen_kernel_has_port(int err, unsigned port);

#endif
