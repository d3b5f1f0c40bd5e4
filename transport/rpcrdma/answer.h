/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * answer - a requester's answers to calls of the responder (RFC 8167).  All of
 * it runs on the requester's loop.
 *
 * A call is answered as soon as it comes.  It waits only while the Sends of as
 * many answers as credits are in progress; then it keeps its Receive, which its
 * credit paid for.
 */
#pragma once

#include <urcu/list.h>

#include "transport/fabric/fabric.h"
#include "transport/rpcrdma/proto.h"

struct rpcrdma_requester;

/* A requester's Receive. */
struct requester_recv {
	struct fabric_op   op;
	struct fabric_recv wr;
	struct rpcrdma_requester *r;	/* borrowed: part of it */
	uint8_t		  *buf;
	uint32_t	   len;		/* of a call that waits, */
	struct cds_list_head waiting;	/* in answers.waiting */
};

struct rpcrdma_answers {
	unsigned	    credits;	/* to grant; 0: no call is answered */
	/* As in struct rpcrdma_requester_options. */
	uint32_t (*make)(void *arg, const uint8_t *call, uint32_t len,
			 uint8_t *reply, uint32_t room);
	void		   *arg;
	uint32_t	    room;	/* bytes of the longest Send */
	struct fabric_conn *fc;		/* borrowed */

	/* Private. */
	struct answer_slot *slots;
	struct cds_list_head waiting;
};

/* Makes a place for each credit.  0 or -ENOMEM. */
int rpcrdma_answers_init(struct rpcrdma_answers *a);
void rpcrdma_answers_fini(struct rpcrdma_answers *a);
/* Gives the places their memory: @size bytes each, one after another. */
void rpcrdma_answers_place(struct rpcrdma_answers *a, uint8_t *memory,
			   size_t size, uint32_t lkey);

/* True if the message is a call: its type says so, or it has a Read list, which
 * no reply has.  Pure. */
bool rpcrdma_answer_is_due(const struct rpcrdma_header *h, const uint8_t *msg,
			   uint32_t len);
/* Answers the call in @recv; a failed Send closes the connection.  False: the
 * call waits. */
bool rpcrdma_answer(struct rpcrdma_answers *a, struct requester_recv *recv,
		    const struct rpcrdma_header *h, uint32_t len);
/*
 * Writes the message to send back to @out; returns its length, 0: none.  A call
 * with chunks gets ERR_CHUNK, since none are used in this direction (section
 * 5.3).  Pure, except make().
 */
uint32_t rpcrdma_answer_make(const struct rpcrdma_answers *a,
			     const struct rpcrdma_header *h,
			     const uint8_t *msg, uint32_t len,
			     struct xdr_out *out);
