/* SPDX-License-Identifier: BSD-2-Clause */
/* gss_client - a client of RPCSEC_GSS (RFC 2203) that can lie. */
#pragma once

#include "tests/server/doors.h"
#include "wire/gss.h"
#include "wire/nfs3.h"

struct gss_mech;
struct rpc_gss_config;

/* Serves @exports by the doors, with the flavor of @config.  Returns its
 * contexts, to be destroyed after the doors are closed. */
struct rpc_gss *gss_doors_open(struct doors *d,
			       const struct rpc_gss_config *config,
			       const char *exports);

#define GSS_CLIENT_DATA	(1u << 20)	/* the longest WRITE and READ */
#define GSS_CLIENT_BUF	(GSS_CLIENT_DATA + 4096)

struct gss_client {
	struct caller	*c;
	/* The client's side: sign, check, wrap, unwrap. */
	const struct gss_mech *mech;
	void		*keys;
	uint8_t		 handle[64];
	uint32_t	 handle_len;
	uint32_t	 service;
	uint32_t	 seq;		/* of the last call */

	/* Lies about the next calls: */
	uint32_t	 version;	/* 1 */
	uint32_t	 proc;		/* GSS_DATA */
	uint32_t	 more_seq;	/* the number in the body is so much
					 * larger */
	bool		 bad_verf;	/* a bit of the header's checksum, */
	bool		 bad_body;	/* of the body is wrong */
	bool		 no_verf;
	uint32_t	 odd_verf;	/* the flavor of the verifier */

	uint32_t	 prog, vers, procnum;
	struct xdr_out	 args;		/* of the call, behind its number */
	struct xdr_in	 res;		/* the results */
	struct gss_init_res init;	/* the results of an INIT */
	uint32_t	 verf_flavor;	/* of the last reply, */
	struct xdr_view	 verf;		/* in @reply */
	uint8_t		 bare[GSS_CLIENT_BUF];
	uint8_t		 call[GSS_CLIENT_BUF], reply[GSS_CLIENT_BUF];
};

void gss_client_open(struct gss_client *g, struct caller *c,
		     const struct gss_mech *mech);
/* Sends INIT, or @proc, with @token.  As caller_send(), with g->init. */
uint32_t gss_client_init(struct gss_client *g, uint32_t proc,
			 struct xdr_view token);
/* Takes handle, window and keys from a good g->init, after it checked the
 * verifier of the last reply: false if that is wrong. */
bool gss_client_take(struct gss_client *g, void *keys);
void gss_client_begin(struct gss_client *g, uint32_t prog, uint32_t vers,
		      uint32_t procnum);
/* A call of NFS about @fh. */
void gss_client_nfs(struct gss_client *g, uint32_t procnum,
		    const struct nfs3_fh *fh);
/* Makes the call, with the number behind g->seq; returns its length behind the
 * first four bytes of g->call. */
uint32_t gss_client_make(struct gss_client *g);
/* Makes the call and sends it.  As caller_send(), with g->res; checks that the
 * verifier, and the results, are the server's. */
uint32_t gss_client_send(struct gss_client *g);
/* The same for a call of NFS, which succeeds. */
void gss_client_ok(struct gss_client *g);
/* Sends DESTROY. */
uint32_t gss_client_destroy(struct gss_client *g);
