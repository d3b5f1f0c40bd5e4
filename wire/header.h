/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * header - RPC call and reply headers off the wire and onto it.  Pure.
 *
 * RFC 5531 sections 9 and 10 and appendix A.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/xdr.h"

#define RPC_VERSION	2
#define RPC_MAX_AUTH	400		/* opaque_auth, section 8.2 */

#define RPC_MAX_GIDS	16		/* AUTH_SYS, RFC 5531 appendix A */
#define RPC_MAX_MACHINE	255

/* The flavors of credentials, and behind RPCSEC_GSS the pseudo flavors: one for
 * each mechanism and service, as exports and MNT name them (RFC 2623 sections
 * 2.8 and 4). */
enum rpc_auth_flavor {
	RPC_AUTH_NONE = 0,
	RPC_AUTH_SYS = 1,
	RPC_AUTH_KRB5 = 390003,		/* the caller is proven */
	RPC_AUTH_KRB5I = 390004,	/* ... and the data that it sent */
	RPC_AUTH_KRB5P = 390005,	/* ... and no third party can read it */
	RPC_AUTH_UNKNOWN = 0xffffffff,	/* not on the wire: grants nothing */
};

/* How a connection protects its calls: each more than the one before. */
enum rpc_protection {
	RPC_CLEAR,
	RPC_TLS,		/* RFC 9289 */
	RPC_MTLS,		/* ... and the client proved which host it is */
};

/* RFC 5531 section 9. */
enum rpc_auth_stat {
	RPC_AUTH_OK = 0,
	RPC_AUTH_BADCRED = 1,
	RPC_AUTH_REJECTEDCRED = 2,
	RPC_AUTH_BADVERF = 3,
	RPC_AUTH_REJECTEDVERF = 4,
	RPC_AUTH_TOOWEAK = 5,
	RPC_GSS_CREDPROBLEM = 13,	/* RFC 2203 section 5.3.3.3 */
	RPC_GSS_CTXPROBLEM = 14,
	RPC_AUTH_DROP = -1,		/* not on the wire: no reply at all */
};

enum rpc_accept_stat {
	RPC_SUCCESS = 0,
	RPC_PROG_UNAVAIL = 1,
	RPC_PROG_MISMATCH = 2,
	RPC_PROC_UNAVAIL = 3,
	RPC_GARBAGE_ARGS = 4,
	RPC_SYSTEM_ERR = 5,
};

/* A credential of AUTH_SYS (RFC 5531 appendix A). */
struct rpc_auth_sys {
	const char	*machine;	/* the host's name; at most
					 * RPC_MAX_MACHINE bytes are sent */
	uint32_t	 uid, gid;
	uint32_t	 ngids;		/* <= RPC_MAX_GIDS */
	const uint32_t	*gids;		/* borrowed, as is @machine */
};

/* A credential or a verifier of any flavor: opaque_auth. */
struct rpc_opaque_auth {
	uint32_t	flavor;
	struct xdr_view	body;
};

/*
 * The fields of an AUTH_SYS credential but its machine's name; @gids has room
 * for RPC_MAX_GIDS.  Bytes after the last group are ignored, as other servers
 * do.  False: malformed, and *@ngids is at most RPC_MAX_GIDS.
 */
bool rpc_auth_sys_get(const struct xdr_view *body, uint32_t *uid, uint32_t *gid,
		      uint32_t *ngids, uint32_t *gids);

struct rpc_header {
	uint32_t	   xid;
	uint32_t	   prog;
	uint32_t	   vers;
	uint32_t	   proc;
	/* The credential and the verifier, as they arrived. */
	uint32_t	   flavor;
	struct xdr_view	   cred;
	uint32_t	   verf_flavor;
	struct xdr_view	   verf;
	bool		   verf_whole;	/* false: cut, or too long */
	const uint8_t	  *start;	/* of the message */
	enum rpc_auth_stat denied;	/* why, with RPC_HEADER_DENIED */
};

/* The header up to the verifier, for a flavor that signs it; empty if it came
 * in pieces. */
static inline struct xdr_view rpc_header_signed(const struct rpc_header *h)
{
	uint32_t before = 32;

	if (h->cred.data != h->start + before)
		return (struct xdr_view){ NULL, 0 };
	return (struct xdr_view){
		h->start, before + h->cred.len + xdr_pad(h->cred.len)
	};
}

enum rpc_header_kind {
	RPC_HEADER_CALL,	/* the arguments come next */
	RPC_HEADER_SHORT,	/* the header ends before the procedure: no
				 * reply */
	RPC_HEADER_NOT_CALL,	/* a reply, or no RPC at all: no reply */
	RPC_HEADER_MISMATCH,	/* RPC_MISMATCH, to xid */
	RPC_HEADER_DENIED,	/* AUTH_ERROR, to xid */
};

/* Views point into the message. */
enum rpc_header_kind rpc_header_decode(struct xdr_in *x, struct rpc_header *h);

/* A call up to its arguments, with @h->xid, prog, vers and proc; @sys NULL:
 * its credential is AUTH_NONE.  The verifier is AUTH_NONE. */
void rpc_header_call(struct xdr_out *x, const struct rpc_header *h,
		     const struct rpc_auth_sys *sys);
/* The same up to its verifier, which covers these bytes, with the credential
 * @h->flavor and @h->cred; rpc_auth_put() comes next. */
void rpc_header_call_signed(struct xdr_out *x, const struct rpc_header *h);
void rpc_auth_put(struct xdr_out *x, uint32_t flavor, struct xdr_view body);
/*
 * A reply up to its results.  0; -EBADMSG: it is malformed; else the error of
 * the call: -EPROTONOSUPPORT (PROG_UNAVAIL, PROG_MISMATCH), -EOPNOTSUPP
 * (PROC_UNAVAIL), -EINVAL (GARBAGE_ARGS), -EIO (SYSTEM_ERR) or -EACCES
 * (MSG_DENIED).  @verf, unless it is NULL, is set to the verifier of an
 * accepted reply.
 */
int rpc_header_reply(struct xdr_in *x, uint32_t *xid,
		     struct rpc_opaque_auth *verf);

/* An accepted reply up to its accept_stat; AUTH_NONE verifier. */
void rpc_header_accepted(struct xdr_out *out, uint32_t xid,
			 enum rpc_accept_stat stat);
/* All of an accepted reply that says PROG_MISMATCH. */
void rpc_header_prog_mismatch(struct xdr_out *x, uint32_t xid, uint32_t low,
			      uint32_t high);
/* All of a denied reply: RPC_MISMATCH. */
void rpc_header_rpc_mismatch(struct xdr_out *x, uint32_t xid);
/* All of a denied reply: AUTH_ERROR. */
void rpc_header_denied(struct xdr_out *x, uint32_t xid,
		       enum rpc_auth_stat why);
