/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * doors - a server with all its doors, and callers who choose everything:
 * the transport, the kind of port, the credential, every byte.
 *
 * The server is the harness, with TCP, iWARP in user space and the loop fabric,
 * which stands for an RDMA device.
 */
#pragma once

#include <semaphore.h>

#include "lib/xdr.h"
#include "tests/server/harness.h"
#include "transport/rpcrdma/requester.h"

enum door { DOOR_TCP, DOOR_IWARP, DOOR_LOOP, NDOORS };

extern const char *const door_names[NDOORS];

struct doors {
	struct harness	      srv;
	struct loop	     *client;
	struct fabric	      fabric[NDOORS];	/* none for TCP */
	/* For callers with a reserved port. */
	struct fabric	      iwarp_reserved;
	struct xprt_listener *listener[NDOORS];
};

/*
 * Call it first, with one thread: makes the process able to bind ports below
 * 1024, in a separate network if possible.  False: it can't be.
 */
bool doors_may_bind_reserved(void);

/* Each aborts when something does not go well. */
void doors_open(struct doors *d, const struct harness_config *config);
void doors_close(struct doors *d);

/* The caller's credential, AUTH_SYS unless @none, or another flavor whose body
 * is the same. */
struct caller_cred {
	bool	 none;
	uint32_t flavor;		/* 0: AUTH_SYS */
	uint32_t uid, gid;
	unsigned ngids;
	uint32_t gids[32];
};

#define CALLER_BUF	(32u << 10)

struct caller {
	int			  fd;	/* -1: not TCP */
	struct rpcrdma_requester *peer;
	struct rpcrdma_request	  req;
	sem_t			  connected, done;
	uint8_t			 *into;	/* for the reply, */
	uint32_t		  room;	/* of so many bytes */
	/* Over RDMA: a Write chunk of the next calls; NULL: none. */
	struct rpcrdma_memory	  write;
	uint32_t		  xid;
	uint8_t			  call[CALLER_BUF], reply[CALLER_BUF];
	struct xdr_out		  out;	/* behind the bytes that begin wrote */
	struct xdr_in		  in;	/* behind the reply's RPC header */
};

/* @reserved: from a port below 1024, else from one above. */
void caller_open(struct caller *c, struct doors *d, enum door door,
		 bool reserved);
void caller_close(struct caller *c);

/* Results of caller_send() other than an accept_stat. */
#define CALLER_DENIED	0x100

void caller_begin(struct caller *c, uint32_t prog, uint32_t vers,
		  uint32_t proc, const struct caller_cred *cred);
/* Over RDMA: sends the @len bytes behind the first four of @call, with a Reply
 * chunk of @room bytes at @reply, and waits.  Returns c->req's status. */
int caller_try(struct caller *c, const uint8_t *call, uint32_t len,
	       uint8_t *reply, uint32_t room);
/* Sends the @len bytes behind the first four of @call and waits; puts the reply
 * to @reply and returns its length. */
uint32_t caller_exchange(struct caller *c, uint8_t *call, uint32_t len,
			 uint8_t *reply, uint32_t room);
/* Sends it and waits.  The accept_stat, or CALLER_DENIED + auth_stat. */
uint32_t caller_send(struct caller *c);
