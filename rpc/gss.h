/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gss - RPCSEC_GSS (RFC 2203), a flavor of rpc/auth.h over a mechanism of
 * rpc/gss_mech.h.
 */
#pragma once

#include "rpc/auth.h"
#include "rpc/gss_mech.h"

struct rpc_gss;

/* Bounds of a server's contexts; 0 is the default. */
struct rpc_gss_config {
	const struct gss_mech *mech;	/* borrowed */
	void	*arg;			/* the mechanism's, for accept() */
	unsigned max;			/* contexts with a call, */
	unsigned max_client;		/* of one address, or IPv6 network */
	unsigned max_new;		/* contexts without one, */
	unsigned max_client_new;	/* of one address or network */
	size_t	 max_waiting;		/* bytes of calls that make contexts, */
	size_t	 max_client_waiting;	/* of one address or network */
	unsigned workers;		/* that make contexts */
};

/* 0 or -ENOMEM. */
int rpc_gss_create(const struct rpc_gss_config *config, struct rpc_gss **out);
/* Lives as long as @gss. */
const struct rpc_flavor *rpc_gss_flavor(struct rpc_gss *gss);
/* Makes the shares of the workers: before the first listener.  0 or
 * -ENOMEM. */
int rpc_gss_start(struct rpc_gss *gss, struct rpc_server *server);
/* No listener is left, and no call.  Due before rpc_server_destroy(). */
void rpc_gss_stop(struct rpc_gss *gss);
/* After rpc_server_destroy(); NULL is ignored. */
void rpc_gss_destroy(struct rpc_gss *gss);

/* Counts the existing contexts.  Any thread. */
unsigned rpc_gss_contexts(struct rpc_gss *gss);
