/* SPDX-License-Identifier: BSD-2-Clause */
/* fabrics - the kinds of RDMA that --rdma can name, a row each. */
#ifndef GANNET_DAEMON_FABRICS_H
#define GANNET_DAEMON_FABRICS_H

#include <stdbool.h>

#include "transport/fabric/fabric.h"

struct options;

struct fabric_row {
	const char *name;	/* in --rdma */
	const char *title;	/* for messages */
	const char *listener;	/* in "ready: LISTENER PORT" */
	/* May this process use it?  Else @absent says why not. */
	bool (*available)(void);
	const char *absent;
	/* It refuses threads whose credentials change, and so all other
	 * pollers. */
	bool has_own_pollers;
	int  (*create)(const struct options *o, struct fabric *out);
	void (*destroy)(struct fabric *f);
};

/* The order is that of preference: --rdma auto takes the first that is
 * available, and clients that ask rpcbind get the port of the first. */
#define FABRICS	2
extern const struct fabric_row fabric_rows[FABRICS];

#endif
