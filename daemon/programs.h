/* SPDX-License-Identifier: BSD-2-Clause */
/* programs - the RPC programs that gannetd serves, a row each. */
#ifndef GANNET_DAEMON_PROGRAMS_H
#define GANNET_DAEMON_PROGRAMS_H

#include "rpc/rpc.h"
#include "vfs/export.h"

struct options;

struct program_env {
	const struct options *o;
	struct export_table *exports;
	struct work_class *names;	/* the share for name look-ups */
};

struct program_row {
	/* The kinds of listeners to tell rpcbind of: "tcp udp". */
	const char *announced;
	int  (*create)(const struct program_env *env, struct rpc_program **out);
	void (*destroy)(struct rpc_program *prog);
};

#define PROGRAMS	2
extern const struct program_row program_rows[PROGRAMS];

#endif
