/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by requester.c and marshal.c. */
#ifndef GANNET_TRANSPORT_RPCRDMA_REQUEST_H
#define GANNET_TRANSPORT_RPCRDMA_REQUEST_H

#include <pthread.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "transport/rpcrdma/fetch.h"
#include "transport/rpcrdma/proto.h"
#include "transport/rpcrdma/requester.h"

/* A chunk of a request: registrations, one a segment. */
struct request_chunk {
	struct fabric_mr **mr;		/* in slot->mr */
	unsigned	   nsegs;
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
	unsigned		  nmrs;
	struct fabric_mr	 *mr[RPCRDMA_REQUEST_SEGS];
	struct request_chunk	  call;		/* Position Zero */
	struct request_chunk	  read[RPCRDMA_REQUEST_READS];
	struct request_chunk	  write[RPCRDMA_REQUEST_WRITES];
	struct request_chunk	  reply;
	struct rpcrdma_fetch	 *fetch;	/* NULL: replies are not read */
};

/* Receives beside those for awaited replies, so that no reply is missed. */
enum { SPARE_RECVS = 8 };

/* settings.c */
void request_fill_defaults(struct rpcrdma_requester_options *o);
/* A device may have shorter queues than were asked for. */
void request_fit_queues(struct rpcrdma_requester_options *o,
			const struct fabric_limits *limits);

/* Registers the request's memory and encodes the message into slot->buf;
 * returns its length or -errno. */
int request_marshal(struct request_slot *slot, struct fabric_device *dev,
		    uint32_t inline_size, uint32_t credits,
		    uint32_t segment_size);
/* Ends the registrations, so that the responder can't reach the memory. */
void request_unregister(struct request_slot *slot);
/* True if @handle is one of the request's. */
bool request_has_handle(const struct request_slot *slot, uint32_t handle);
/* Fills in the result and its status from a reply that was read into the
 * request's memory. */
void request_complete_fetched(struct request_slot *slot, uint32_t len);
/* The same from a decoded reply. */
void request_complete(struct request_slot *slot,
		      const struct rpcrdma_header *h, const uint8_t *msg,
		      uint32_t len);

#endif
