/* SPDX-License-Identifier: BSD-2-Clause */
/* mount_space - a server, and libnfs as its client, in the name space of
 * tests/server/mount_base.h. */
#pragma once

#include "tests/server/mount_base.h"
#include "tests/server/nfs_client.h"

/* Starts the server and its client, with @top as the root of the export "e". */
void space_serve(const struct harness_config *config);
/* Starts a helper that makes bare copies of mounts.  Returns its process. */
pid_t space_helper(void);
/* The handle, kept over a restart of the server and the client. */
nfs_fh3 space_keep(nfs_fh3 fh);
/* GETATTR's status.  A file system that is being opened says JUKEBOX for a
 * moment: waits for its end. */
int space_status(nfs_fh3 fh);
/* That of one GETATTR. */
int space_status_once(nfs_fh3 fh);
