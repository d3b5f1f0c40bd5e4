/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rquota - program 100011 on an export table: usage and limits of a user or a
 * group on a file system.
 *
 * The field's definition is rpcsvc/rquota.x.  Version 1 is about users; Linux's
 * version 2, "extended", about users and groups.  Both are read-only here: each
 * attempt to set a quota is Q_EPERM, as rpc.rquotad does by default.
 */
#pragma once

#include "rpc/program.h"

#define RQUOTA_PROGRAM	100011

extern const struct program_row rquota_row;
