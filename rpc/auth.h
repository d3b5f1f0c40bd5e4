/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * auth - the flavors of authentication (RFC 5531 section 8).
 *
 * A flavor is a row: it decides who the caller is.  A flavor that also protects
 * a call and its reply, as RPCSEC_GSS does (RFC 2203), gives the call a guard.
 * To add a flavor: its own file, and a line in the list of auth.c.
 */
#pragma once

#include "rpc/rpc.h"
#include "wire/header.h"

#define RPC_MNT_FLAVORS	4
/* The most bytes that a guard puts on either side of the results. */
#define RPC_WRAP_MAX	128

struct rpc_flavor {
	uint32_t flavor;
	/* The numbers that MNT lists for it (RFC 1813 section 5.2.1, RFC 2623
	 * section 2.7); 0 after the last. */
	uint32_t mnt[RPC_MNT_FLAVORS];
	/*
	 * Sets call->cred, with the pseudo flavor of the call, and can set
	 * call->guard and call->guard_state.  On the poller: must not block.
	 * Returns RPC_AUTH_OK, the reason to deny the call, or RPC_AUTH_DROP;
	 * the call holds nothing of the flavor's then.  @h is valid until it
	 * returns.
	 */
	enum rpc_auth_stat (*verify)(const struct rpc_flavor *self,
				     const struct rpc_header *h,
				     struct rpc_call *call);
	/* True if the arguments of the call are wrapped: then no part of them
	 * comes in a Read chunk (RFC 8166 section 6.1).  Pure.  NULL: they
	 * never are. */
	bool (*wraps)(const struct rpc_header *h);
};

/* The results of a reply, for a guard to protect. */
struct rpc_wrapping {
	struct iovec	iov[3];		/* to be changed in place, if at all */
	struct xdr_out	before;		/* RPC_WRAP_MAX each: goes before the */
	struct xdr_out	after;		/* results, and after them */
};

/*
 * The protection of one call.  A reply comes to put_verf() and wrap() on
 * whichever thread sends it, and once: the cache of replies keeps results as
 * they were before.  All but put_verf can be NULL.
 */
struct rpc_guard {
	/*
	 * Serves the call in place of the program that it names, by its first
	 * procedure: the call is between the client and the flavor, like the
	 * making of a context (RFC 2203 section 5.2).
	 */
	const struct rpc_program *program;
	/*
	 * @x stands before the arguments.  Checks them, can change them where
	 * they are, and sets @segs to the pieces that hold the bare ones.
	 * Returns the number of pieces; -1: GARBAGE_ARGS.
	 */
	int (*unwrap)(struct rpc_call *call, struct xdr_in *x,
		      struct xdr_seg segs[MSG_MAX_SEGS]);
	/* NULL, or returns the share of the workers where unwrap() is called,
	 * because the call is long; NULL: the poller calls it. */
	struct work_class *(*unwrap_on)(struct rpc_call *call);
	/* Puts the verifier of an accepted reply: flavor and body.  @x->bad: it
	 * can't be signed, and the call is denied instead, with
	 * RPC_GSS_CTXPROBLEM (RFC 2203 section 5.3.3.4.1). */
	void (*put_verf)(struct rpc_call *call, struct xdr_out *x);
	/* For RPC_SUCCESS.  The reply is not reduced (RFC 8166 section 6.1),
	 * and its body is not a pipe.  False: no reply is sent (RFC 2203
	 * section 5.3.3.4.4); the cache of replies has the bare one. */
	bool (*wrap)(struct rpc_call *call, struct rpc_wrapping *w);
	/* The call is over, answered or not. */
	void (*release)(struct rpc_call *call);
};

/* The flavors that a server serves by default; NULL after the last. */
extern const struct rpc_flavor *const rpc_flavors[];

#define RPC_FLAVORS_MAX	8
/* The same with @f in the place of the row for its flavor. */
void rpc_flavors_with(const struct rpc_flavor *f,
		      const struct rpc_flavor *out[RPC_FLAVORS_MAX]);

/* Asks the flavor's row in @flavors.  Returns as its verify() does. */
enum rpc_auth_stat rpc_auth_verify(const struct rpc_flavor *const *flavors,
				   const struct rpc_header *h,
				   struct rpc_call *call);
/* True if the flavor in @flavors has the arguments of the call wrapped. */
bool rpc_auth_wraps(const struct rpc_flavor *const *flavors,
		    const struct rpc_header *h);
/* The call has a guard and its reply is encoded: protects the reply, and
 * releases the guard.  False: the reply must not be sent. */
bool rpc_auth_protect(struct rpc_call *call);
/* The call ends without a reply. */
void rpc_auth_release(struct rpc_call *call);
