/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rquota - program 100011 on an export table: what a user or a group has of a
 * file system, and may have.
 *
 * The field's definition is rpcsvc/rquota.x.  Version 1 is about users; Linux's
 * version 2, "extended", about users and groups.  Both are read-only here: each
 * attempt to set a quota is Q_EPERM, as rpc.rquotad does by default.
 */
#pragma once

#include "exports/export.h"
#include "rpc/program.h"

#define RQUOTA_PROGRAM	100011

struct rquota_config {
	struct export_table *exports;	/* borrowed: outlives the program */
	/* The share of the workers in which a call asks a name service of its
	 * caller.  Borrowed; NULL: the common share. */
	struct work_class *names;
};

/* 0 or -ENOMEM. */
int rquota_create(const struct rquota_config *config, struct rpc_program **out);
/* No call of it runs any more. */
void rquota_destroy(struct rpc_program *prog);

extern const struct program_row rquota_row;
