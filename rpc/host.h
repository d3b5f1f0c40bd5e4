/* SPDX-License-Identifier: BSD-2-Clause */
/* host - another machine, as a lock manager and a status monitor know it. */
#pragma once

#include <sys/socket.h>

struct rpc_host {
	const char *name;		/* as it calls itself */
	const struct sockaddr *addr;	/* its calls come from there */
	/* The address of this machine that it calls: it identifies this machine
	 * to the host.  A call from another address is from a stranger, and a
	 * host that uses two has two servers.  NULL: not known.  Ports mean
	 * nothing here. */
	const struct sockaddr *local;
};
