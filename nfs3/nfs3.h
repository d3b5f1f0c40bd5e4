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

#include <stdint.h>

#include "exports/export.h"
#include "rpc/program.h"
#include "rpc/rpc.h"

struct rpc_audit;

struct nfs3_config {
	struct export_table *exports;	/* borrowed: outlives the program */
	/* The share of the workers for calls that first have to query a name
	 * service for their caller, which can take long.  Borrowed; NULL: the
	 * common share. */
	struct work_class *names;
	/* The largest READ, WRITE and READDIR that FSINFO offers; multiples of
	 * 4096 up to 1 MiB.  0: 1 MiB, 1 MiB and 64 KiB. */
	uint32_t rtmax;
	uint32_t wtmax;
	uint32_t dtpref;
	struct rpc_audit *audit;	/* borrowed, see rpc/audit.h; NULL:
					 * calls are not reported */
};

/*
 * 0, -EINVAL (an invalid size) or -ENOMEM.  The user of each export is a struct
 * rpc_share, or NULL.
 */
int nfs3_create(const struct nfs3_config *config, struct rpc_program **out);
/* NFSACL version 3 on the same exports; the sizes mean nothing.  0 or
 * -ENOMEM. */
int nfs3_acl_create(const struct nfs3_config *config, struct rpc_program **out);
/* Frees either program, whose last call has ended. */
void nfs3_destroy(struct rpc_program *prog);

extern const struct program_row nfs3_row, nfs3_acl_row;
