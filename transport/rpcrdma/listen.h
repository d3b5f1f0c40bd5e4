/* SPDX-License-Identifier: BSD-2-Clause */
/* listen - the listener of RPC-over-RDMA.  Private to transport/rpcrdma/. */
#pragma once

#include <stdatomic.h>

#include <urcu/list.h>

#include "transport/gate.h"
#include "transport/rpcrdma/device.h"
#include "transport/rpcrdma/lost.h"
#include "transport/rpcrdma/registrar.h"
#include "transport/rpcrdma/rpcrdma.h"

struct rpcrdma_conn;

struct rpcrdma_listener {
	struct xprt_listener base;
	struct xprt_env	     env;
	struct rpcrdma_options options;	/* with the defaults filled in */
	const struct fabric *fabric;	/* borrowed */
	struct fabric_listener *fl;
	struct xprt_gate     gate;
	struct rpcrdma_lost  lost;
	struct rpcrdma_registrar registrar;
	struct rpcrdma_job   forget;		/* the devices that are gone, */
	atomic_bool	     forgetting;	/* under way */
	size_t		     conn_bytes;	/* of each, in addition to its
						 * fabric's */
	atomic_size_t	     exposed;	/* bytes of replies, for peers to
					 * read */
	struct loop_timer    sweep;		/* of the first loop */
	/* Takes the device of a connection that ends, and uncounts the
	 * connection, which must not use its listener afterwards. */
	void (*gone)(struct rpcrdma_conn *conn);

	/* Guards the fields below.  No connection is called with it held. */
	pthread_mutex_t	     lock;
	bool		     stopping;
	struct cds_list_head conns;
	unsigned	     next_loop;
	/* The devices of past connections, while they are plugged in: their
	 * registrations are kept. */
	struct rpcrdma_device *device[16];
	unsigned	     ndevices;
};
