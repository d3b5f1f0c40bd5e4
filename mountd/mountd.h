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

struct mountd_config {
	struct export_table *exports;	/* borrowed: outlives the program */
	/* MNT's share of the workers: it can have to query a name service for
	 * its caller.  Borrowed; NULL: the common share. */
	struct work_class *names;
	/* The directory that keeps the list of mounts (file "rmtab"); NULL: the
	 * list is forgotten at exit. */
	const char *state_dir;
	/* Serve it also over RDMA.  Clients ask for it over TCP or UDP (RFC
	 * 8267 section 5.1), where the caller's port tells a privileged one. */
	bool rdma;
	/* The oldest entries go when there are more mounts than these, of all
	 * hosts and of one; 0: 4096 and 256. */
	unsigned max_mounts;
	unsigned max_mounts_host;
};

/* 0 or -errno.  Starts a thread that writes the list of mounts. */
int mountd_create(const struct mountd_config *config,
		  struct rpc_program **out);
/* Its last call has ended. */
void mountd_destroy(struct rpc_program *prog);

extern const struct program_row mountd_row;
