/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of RPCSEC_GSS: contexts, their table, bodies. */
#pragma once

#include <stdatomic.h>

#include <urcu/list.h>

#include "lib/thread.h"
#include "rpc/gss.h"

#define GSS_HANDLE	16u	/* bytes */
/* Numbers of calls that can be under way at once (RFC 2203 section 5.3.3.1): as
 * many as several connections with all their credits have. */
#define GSS_WINDOW	1024u

/* The numbers of calls that came. */
struct gss_window {
	uint64_t next;			/* the largest, and 1; 0: none came */
	uint64_t seen[GSS_WINDOW / 64];	/* by the number modulo the window */
};

/* True if no call with number @seq came yet, and it is not too old. */
bool gss_window_is_new(const struct gss_window *w, uint32_t seq);
/* The same, and notes it. */
bool gss_window_take(struct gss_window *w, uint32_t seq);

struct gss_owner;

enum gss_state {
	GSS_MAKING,	/* waits for the client's next token */
	GSS_STEPS,	/* a thread makes the next step with ->making */
	GSS_READY,	/* has keys */
};

/*
 * A context.  Counted: the table has one reference while it lists the context,
 * and each call has one.  Fields that are set when it is complete never change,
 * and are read without a lock.
 */
struct gss_context {
	struct ref	 ref;
	struct gss_table *table;
	const struct gss_mech *mech;
	atomic_bool	 is_used;	/* a hint: ->proven */
	uint8_t		 handle[GSS_HANDLE];
	/* Set once, before it is GSS_READY: */
	void		*keys;
	uint32_t	 uid, gid;
	time_t		 expires;	/* clock_coarse_s() */

	/* The table's lock guards these. */
	enum gss_state	 state;
	void		*making;	/* the step's while it is GSS_STEPS */
	bool		 listed;
	bool		 proven;	/* a call with a good checksum came */
	struct gss_owner *owner;
	struct cds_list_head chain;	/* by handle */
	struct cds_list_head of_owner;	/* the least recently used first */
	struct cds_list_head of_all;

	pthread_mutex_t	 lock;		/* guards the window; held for
					 * nanoseconds */
	struct gss_window window;
};

#define GSS_CHAINS	4096u		/* a power of two */

/* Contexts without a call [0], and with one [1]: apart, since anyone can replay
 * an INIT, and must not push out contexts in use by that. */
struct gss_lru {
	struct cds_list_head list[2];
	unsigned	     n[2];
};

/* An address, or an IPv6 network, while it has contexts or makes some. */
struct gss_owner {
	struct gss_table    *table;
	struct in6_addr	     network;
	struct gss_lru	     lru;
	size_t		     waiting;	/* bytes */
	struct cds_list_head link;
};

struct gss_table {
	pthread_mutex_t	     lock;	/* held for microseconds; no other is
					 * taken under it but a context's */
	const struct gss_mech *mech;
	unsigned	     max[2], max_owner[2];
	size_t		     max_waiting, max_owner_waiting;
	struct gss_lru	     all;
	size_t		     waiting;	/* bytes of calls that make contexts */
	struct cds_list_head chains[GSS_CHAINS];
	struct cds_list_head owners[GSS_CHAINS];
};

void gss_table_init(struct gss_table *t, const struct rpc_gss_config *c);
void gss_table_fini(struct gss_table *t);

/* A context with a handle, unlisted and GSS_STEPS; one reference.  NULL: no
 * memory. */
struct gss_context *gss_context_new(struct gss_table *t);
void gss_context_put(struct gss_context *c);

/* The first step of @c by the client at @peer is over, with @making for the
 * next, or NULL: lists it.  If the table is full, others go.  False: no memory,
 * and the caller keeps @making. */
bool gss_table_add(struct gss_table *t, struct gss_context *c,
		   const struct sockaddr *peer, void *making);
/* The same after a later step.  False: it was pushed out meanwhile. */
bool gss_table_update(struct gss_table *t, struct gss_context *c, void *making);
/* Returns the context with this handle, counted, as the last used one if it is
 * proven; or NULL. */
struct gss_context *gss_table_find(struct gss_table *t, struct xdr_view handle);
/* The same of a context that waits for a token: the caller makes the next step
 * with ->making.  NULL also while another call does. */
struct gss_context *gss_table_claim(struct gss_table *t,
				    struct xdr_view handle);
/* ... or it does not. */
void gss_table_disclaim(struct gss_table *t, struct gss_context *c);
/* A call of the client at @peer begins to make a context, and holds @bytes.
 * Returns the client, to be given to gss_table_waited(); NULL: too many such
 * calls, or no memory. */
struct gss_owner *gss_table_wait(struct gss_table *t,
				 const struct sockaddr *peer, size_t bytes);
/* It is over. */
void gss_table_waited(struct gss_owner *o, size_t bytes);
/* A call with a good checksum came. */
void gss_table_prove(struct gss_table *t, struct gss_context *c);
void gss_table_remove(struct gss_table *t, struct gss_context *c);
unsigned gss_table_count(struct gss_table *t);

/* In call->guard_state. */
struct gss_call {
	struct gss_context *context;	/* counted; NULL: none */
	uint32_t seq;			/* that the verifier signs */
	bool	 is_signed;		/* the reply's verifier is */
	bool	 is_next;		/* CONTINUE_INIT */
	bool	 claims;		/* the next step of @context */
	uint32_t bytes;			/* that it holds, for: */
	struct gss_owner *waits;
};

_Static_assert(sizeof(struct gss_call) <= RPC_GUARD_STATE, "room in a call");

static inline struct gss_call *gss_call_of(struct rpc_call *call)
{
	return (struct gss_call *)call->guard_state;
}

/* gss_body.c: functions of struct rpc_guard. */
int  gss_integrity_unwrap(struct rpc_call *call, struct xdr_in *x,
			  struct xdr_seg segs[MSG_MAX_SEGS]);
bool gss_integrity_wrap(struct rpc_call *call, struct rpc_wrapping *w);
int  gss_privacy_unwrap(struct rpc_call *call, struct xdr_in *x,
			struct xdr_seg segs[MSG_MAX_SEGS]);
bool gss_privacy_wrap(struct rpc_call *call, struct rpc_wrapping *w);
