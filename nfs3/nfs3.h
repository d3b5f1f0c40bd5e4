/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nfs3 - the NFS version 3 program (RFC 1813) on an export table, and NFSACL,
 * its companion program for access control lists.
 *
 * Every call is authorized separately: its filehandle names an export; the
 * export table says whether the caller's address may use it and how; and from
 * that follow the user and groups that the call acts with.  The program keeps
 * no state between calls.
 */
#pragma once

#include "exports/export.h"
#include "rpc/program.h"

/*
 * create() returns 0, -EINVAL (an invalid size) or -ENOMEM.  The user of each
 * export is a struct rpc_share, or NULL.  destroy() is the same for both.
 */
extern const struct program_row nfs3_row, nfs3_acl_row;
