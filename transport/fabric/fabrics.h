/* SPDX-License-Identifier: BSD-2-Clause */
/* fabrics - the kinds of RDMA that --rdma and URLs can name.  Each is a row,
 * which the fabric's own directory defines and fabrics.c lists. */
#pragma once

#include <stdbool.h>

#include "transport/fabric/fabric.h"

#define FABRICS_MAX	8
#define FABRIC_FLAGS	4

/* Zero is the default, everywhere. */
struct fabric_options {
	/* A server's: the fabric's section of gannet.conf. */
	unsigned port;		/* where another one is served before it */
	unsigned given;		/* flags that don't have their default: bits */
	/* A client's. */
	unsigned connect_ms;	/* for one attempt to connect */
	bool	 reserved_port;	/* from a port below 1024, if permitted */
};

struct fabric_flag {
	const char *key;	/* in gannet.conf */
	bool on;		/* unless it says no */
};

struct fabric_row {
	const char *name;	/* in --rdma */
	const char *help;
	const char *title;	/* for messages */
	const char *listener;	/* in "ready: LISTENER PORT" */
	/* May this process use it?  Else @absent says why not. */
	bool (*available)(void);
	const char *absent;
	/* It refuses threads whose credentials change, and so all other
	 * pollers. */
	bool has_own_pollers;
	struct fabric_flag flags[FABRIC_FLAGS];
	/* Unless gannet.conf has another.  0: the fabric is always the first,
	 * whose port is that of all RDMA. */
	unsigned port;
	int  (*create)(const struct fabric_options *o, struct fabric *out);
	void (*destroy)(struct fabric *f);
};

extern const struct fabric_row verbs_row, iwarp_row;

/*
 * NULL after the last.  The order is that of preference: unless one is named,
 * the first available one is used, and clients that ask rpcbind get the port of
 * the first.  Number N of gannet_rpcrdma_fabric is the row N - 1.
 */
extern const struct fabric_row *const fabric_rows[FABRICS_MAX];

/* Counts the rows. */
unsigned fabrics_count(void);
/* Returns the place of the first row that this machine has, or else of the
 * last; logs why the earlier ones are not available. */
unsigned fabrics_first(void);
/* The place of the row whose name is the @len bytes at @name, or their
 * number. */
unsigned fabrics_find(const char *name, size_t len);
