/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gss - the client's half of RPCSEC_GSS (RFC 2203) with Kerberos, by
 * libgssapi-krb5 and the user's ticket.
 *
 * A login makes contexts, one after the other; gss_session.c sends their
 * tokens.  Other threads can make calls and read replies meanwhile.
 */
#pragma once

#include <pthread.h>

#include <gssapi/gssapi.h>

#include "tools/nfs/rpc.h"
#include "wire/gss.h"

/* Of a server: RFC 2203 sets no bound, and a handle has to fit in a
 * credential. */
#define GSS_HANDLE_MAX	(RPC_MAX_AUTH - 20)

struct gss_context {
	gss_ctx_id_t	ctx;
	uint8_t		handle[GSS_HANDLE_MAX];
	uint32_t	handle_len;
	uint32_t	seq;		/* of the last call */
};

struct gss_login {
	struct nfsc_flavor flavor;
	uint32_t	   service;	/* enum gss_service */
	const char	  *host;	/* borrowed */
	gss_name_t	   name;	/* nfs@host */
	/* Guards the rest, and each use of a context: the library's can only be
	 * used by one thread at a time. */
	pthread_mutex_t	   lock;
	/* The context with the number n is at n % 2: calls with the one before
	 * can still be answered. */
	struct gss_context contexts[2];
	uint32_t	   number;	/* of the newest; 0: none was made */
	bool		   usable;	/* it is made, and not refused */
	gss_buffer_desc	   token;	/* to be sent, of the newest */
	bool		   is_sent;	/* the token */
};

/* 0 or -errno.  @host outlives it. */
int gss_login_open(struct gss_login *l, uint32_t service, const char *host);
void gss_login_close(struct gss_login *l);
/* Begins a context, with the present ticket; this can wait for the realm's
 * servers.  0: l->token is to be sent; or -ENOKEY, and nfsc_why() says why. */
int gss_login_begin(struct gss_login *l);
/* The same for the context that was begun last, after its token was sent and
 * PROVE ended with -EKEYREVOKED. */
int gss_login_begin_again(struct gss_login *l);
/* The token for @op, which PROVE sends; false: the context is made, or is
 * refused. */
bool gss_login_token(struct gss_login *l, struct nfsc_op *op);
bool gss_login_usable(struct gss_login *l);
/* The server has refused context @number. */
void gss_login_refuse(struct gss_login *l, uint32_t number);

/* ---- gss_why.c */

/* Keeps why no context was made (why.h); @major and @minor are 0, or the
 * library's.  Returns -ENOKEY. */
int gss_fail(const char *host, OM_uint32 major, OM_uint32 minor,
	     const char *what);
