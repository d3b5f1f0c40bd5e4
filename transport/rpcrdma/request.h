/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by requester.c, dial.c, marshal.c and settings.c. */
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "transport/rpcrdma/answer.h"
#include "transport/rpcrdma/fetch.h"
#include "transport/rpcrdma/proto.h"
#include "transport/rpcrdma/requester.h"
#include "transport/rpcrdma/rpcrdma.h"

/* A chunk of a request. */
struct request_chunk {
	struct rpcrdma_lent *seg;	/* in slot->seg */
	unsigned	     nsegs;
};

/*
 * A slot for a request in flight.  The request has its memory until the reply
 * is here and the Send is done.
 */
struct request_slot {
	struct fabric_op	  send_op;
	struct fabric_wr	  send_wr;
	struct fabric_sge	  send_sge;
	struct rpcrdma_requester *r;		/* borrowed: part of it */
	struct rpcrdma_request	 *request;	/* NULL: free */
	uint32_t		  xid;
	uint8_t			 *buf;
	bool			  sending;
	unsigned		  nsegs;
	unsigned		  nwindows;
	struct rpcrdma_lent	  seg[RPCRDMA_REQUEST_SEGS];
	struct request_chunk	  call;		/* Position Zero */
	struct request_chunk	  read[RPCRDMA_REQUEST_READS];
	struct request_chunk	  write[RPCRDMA_REQUEST_WRITES];
	struct request_chunk	  reply;
	const struct rpcrdma_requester_options *options;	/* borrowed */
	bool			  padded;	/* sent as RDMA_MSGP */
	bool			  over;		/* done, except its memory */
	struct rpcrdma_fetch	 *fetch;	/* NULL: replies are not read */
};

/* Most windows of a request; its further segments have separate
 * registrations. */
enum { REQUEST_WINDOWS = 4 };

/* Receives in addition to those for awaited replies: a reply must never be
 * missed. */
enum { SPARE_RECVS = 8 };

struct rpcrdma_requester {
	struct rpcrdma_requester_options options;
	struct fabric_conn  *fc;
	struct loop	    *loop;		/* borrowed */
	struct fabric_mr    *mr;
	uint8_t		    *memory;
	struct request_slot *slots;
	struct requester_recv   *recvs;
	struct rpcrdma_answers answers;
	struct rpcrdma_fetches fetches;
	struct rpcrdma_regions regions;
	sem_t		     over;		/* requester_closed() came */

	/* The loop's. */
	bool		     up;
	bool		     down;
	int		     start_err;
	struct rpcrdma_requester_info info;
	unsigned	     window;
	struct rpcrdma_request config;		/* with config_xid */
	uint8_t		     config_call[RPCRDMA_CONFIG_LEN];

	struct loop_task     task;
	/* Guards the fields below. */
	pthread_mutex_t	     lock;
	bool		     kicked;
	struct cds_list_head queue;		/* requests not sent */
};

/* requester.c: events of the connection; dial.c hooks them up.  On the loop. */
void requester_established(struct fabric_conn *fc);
bool requester_owed(struct fabric_conn *fc);
void requester_closed(struct fabric_conn *fc, int err);
void requester_send_done(struct fabric_op *op, int status, uint32_t len);
void requester_recv_done(struct fabric_op *op, int status, uint32_t len);
void requester_fetch_here(struct rpcrdma_fetch *f);
void requester_fetch_acked(struct rpcrdma_fetch *f);

/* settings.c */
void request_fill_defaults(struct rpcrdma_requester_options *o);
/* A device can have shorter queues than requested. */
void request_fit_queues(struct rpcrdma_requester_options *o,
			const struct fabric_limits *limits);
/* The requester's own, of a connection over such a device. */
struct rpcrdma_limits request_limits(const struct rpcrdma_requester_options *o,
				     const struct fabric_limits *limits);
/* Counts Receives: for each reply, for each call of the responder, and some
 * more. */
unsigned request_recvs(const struct rpcrdma_requester_options *o);
struct fabric_queues
request_queues(const struct rpcrdma_requester_options *o);
/* Our side of the private data. */
struct rpcrdma_private
request_private(const struct rpcrdma_requester_options *o,
		const struct fabric_limits *limits);

/* Lends the request's memory and encodes the message into slot->buf; returns
 * its length or -errno. */
int request_marshal(struct request_slot *slot, struct rpcrdma_regions *regions,
		    uint32_t inline_size, uint32_t credits,
		    uint32_t segment_size);
/* Takes the memory back, before the caller has it again. 0 or -errno: the
 * responder can still reach it, though it should not. */
int request_take_back(struct request_slot *slot,
		      struct rpcrdma_regions *regions);
/* True if no handle of the request is one of a longer registration. */
bool request_has_own_handles(const struct request_slot *slot);
/* True if @handle is one of the request's. */
bool request_has_handle(const struct request_slot *slot, uint32_t handle);
/* Fills in the result and its status from a reply that was read into the
 * request's memory. */
void request_complete_fetched(struct request_slot *slot, uint32_t len);
/* The same from a decoded reply. */
void request_complete(struct request_slot *slot,
		      const struct rpcrdma_header *h, const uint8_t *msg,
		      uint32_t len);
