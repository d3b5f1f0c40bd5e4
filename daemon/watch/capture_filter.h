/* SPDX-License-Identifier: BSD-2-Clause */
/* capture_filter - which calls gannetctl(8) capture takes. */
#pragma once

#include "exports/export.h"
#include "rpc/rpc.h"
#include "wire/header.h"

#define CAPTURE_PROCS	64u

struct capture_filter {
	/* Clients: the first bits of an address, IPv4 as ::ffff:a.b.c.d. */
	struct in6_addr	client;
	unsigned	bits;		/* 0: all */
	/* Procedures, by number; 0: all. */
	unsigned	nprocs;
	struct {
		uint32_t prog, vers, proc;
	} procs[CAPTURE_PROCS];
	/* An export; NULL: all. */
	char		*path;
	uint32_t	export_id;
	struct export_table *exports;	/* borrowed */
};

/*
 * Sets @f, a NULL text stands for all: an address or network, names of
 * procedures with commas between, the path of an export.  0, or -1 and *@wrong,
 * a literal.
 */
int capture_filter_init(struct capture_filter *f, struct rpc_server *rpc,
			struct export_table *exports,
			const char *const texts[3], const char **wrong);
void capture_filter_fini(struct capture_filter *f);

/* True if @f takes the call, see rpc_tap.  In an RCU section; never waits. */
bool capture_filter_takes(const struct capture_filter *f, const struct msg *m,
			  const struct rpc_header *h,
			  const struct xdr_in *args);
