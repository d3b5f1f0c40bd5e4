/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mountd - the MOUNT program (RFC 1813 appendix I) on an export table.
 *
 * Version 3 is what clients of NFS version 3 speak.  Versions 1 and 2 (RFC 1094
 * appendix A) list exports and mounts just as well, for old tools, but their
 * filehandle of 32 bytes is for NFS version 2, which is not served: MNT finds
 * the same errors, and answers EINVAL instead of success.
 */
#pragma once

#include "exports/export.h"
#include "rpc/program.h"
#include "rpc/rpc.h"

#define MOUNT_PROGRAM	100005

/* create() starts a thread that writes the list of mounts. */
extern const struct program_row mountd_row;
