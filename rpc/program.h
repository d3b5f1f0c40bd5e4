/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * program - an RPC program as a server process starts it: a row, which the
 * program's own directory defines and daemon/serve/programs.c lists.
 */
#pragma once

#include <stdio.h>

#include "rpc/lock_view.h"
#include "rpc/rpc.h"

struct export_table;

/* The parts of the process that programs stand on: all outlive them. */
struct program_env {
	struct rpc_server   *server;
	struct export_table *exports;
	/* The share of the workers for calls that first have to query a name
	 * service for their caller; NULL: the common share. */
	struct work_class   *names;
	const char	    *state_dir;	/* or NULL: nothing is kept */
	/* Serve MOUNT also over RDMA.  Clients ask for it over TCP or UDP (RFC
	 * 8267 section 5.1), where the caller's port tells a privileged one. */
	bool		     rdma_mount;
	bool		     port_mapper;	/* clients find ports by one */
	void		    *locks;	/* of the process's lock manager */
	struct rpc_audit    *audit;	/* or NULL */
	/* The largest READ, WRITE and READDIR that FSINFO offers; multiples of
	 * 4096 up to 1 MiB.  0: 1 MiB, 1 MiB and 64 KiB. */
	uint32_t	     rtmax, wtmax, dtpref;
};

struct program_row {
	/* 0 or -errno; *@out stays NULL where the machine does not need the
	 * program. */
	int  (*create)(const struct program_env *env, struct rpc_program **out);
	/* NULL: it is not the row's. */
	void (*destroy)(struct rpc_program *prog);
	/* NULL, or called before destroy, when the last call has ended and the
	 * shares of workers still exist. */
	void (*stop)(struct rpc_program *prog);
	/* NULL, or writes the program's work in progress, for the operator. */
	void (*list)(struct rpc_program *prog, FILE *out);
	/* NULL, or calls @fn for each mount that clients told the program of,
	 * the oldest first.  @fn must only take notes: the list is locked. */
	void (*mounts)(struct rpc_program *prog,
		       void (*fn)(void *arg, const char *host,
				  const char *path), void *arg);
	/* NULL, or sets *@totals and calls @fn for @max waits, locks and
	 * shares of clients at most, in this order.  @fn must only take notes:
	 * no call locks meanwhile. */
	void (*locks)(struct rpc_program *prog, unsigned max, lock_view_fn *fn,
		      void *arg, struct lock_totals *totals);
	/* NULL, or ends all locks and waits of the client at @addr, as if it
	 * had restarted; with @name, only the locks of its host @name.
	 * Adds the ended locks to *@ended; its hosts are the hosts that had
	 * any.  Doesn't wait. */
	void (*release)(struct rpc_program *prog, const struct in6_addr *addr,
			const char *name, struct lock_totals *ended);
	/* NULL, or called when the server ends, while its last calls run: calls
	 * that wait for another host end, and their clients retry.  Doesn't
	 * wait. */
	void (*ending)(struct rpc_program *prog);
	/* The program's own port, over TCP and UDP, and the names of these
	 * listeners in "ready: NAME PORT"; 0: the server's port. */
	uint16_t port;
	const char *tcp_name, *udp_name;
	/*
	 * NULL, or registers every program here, in rpcbind's place: version
	 * @vers of program @number is served at @addr over @netid (RFC 5665
	 * section 5.2.3.3), which is copied.  0 or -errno.
	 */
	int  (*add)(struct rpc_program *prog, uint32_t number, uint32_t vers,
		    const char *netid, const struct sockaddr *addr);
	/* Forgets all of them. */
	void (*clear)(struct rpc_program *prog);
};
