/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gss - the credential and the control messages of RPCSEC_GSS version 1, off
 * the wire and onto it (RFC 2203 section 5).  Pure.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/header.h"

#define RPCSEC_GSS	6u		/* the flavor of credentials */
#define GSS_VERSION	1u
#define GSS_MAXSEQ	0x80000000u	/* section 5 */

enum gss_proc { GSS_DATA = 0, GSS_INIT = 1, GSS_CONTINUE = 2, GSS_DESTROY = 3 };
enum gss_service { GSS_NONE = 1, GSS_INTEGRITY = 2, GSS_PRIVACY = 3 };
#define GSS_SERVICES	3u

/* Values of gss_major (RFC 2203 appendix A). */
#define GSS_COMPLETE		0u
#define GSS_CONTINUE_NEEDED	1u
#define GSS_NO_CONTEXT		0x00080000u
#define GSS_DEFECTIVE_TOKEN	0x00090000u
#define GSS_FAILURE		0x000d0000u

/* rpc_gss_cred_t */
struct gss_cred {
	uint32_t	version;
	uint32_t	proc;		/* enum gss_proc */
	uint32_t	seq;
	uint32_t	service;	/* enum gss_service */
	struct xdr_view	handle;
};

/* False: it is too short, or has extra bytes at its end; then @c->version is
 * valid if it was read, and the rest is 0. */
bool gss_cred_get(const struct xdr_view *body, struct gss_cred *c);
void gss_cred_put(struct xdr_out *x, const struct gss_cred *c);

/* rpc_gss_init_res (section 5.2.3.1) */
struct gss_init_res {
	struct xdr_view	handle;
	uint32_t	major, minor;
	uint32_t	window;
	struct xdr_view	token;
};

void gss_init_res_put(struct xdr_out *x, const struct gss_init_res *r);
bool gss_init_res_get(struct xdr_in *x, struct gss_init_res *r);
