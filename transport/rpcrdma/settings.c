/* SPDX-License-Identifier: BSD-2-Clause */
/* settings - a requester's options, with defaults, as its device has room. */
#include "transport/rpcrdma/request.h"

void request_fill_defaults(struct rpcrdma_requester_options *o)
{
	if (o->credits == 0)
		o->credits = 128;
	if (o->inline_size < RPCRDMA_INLINE_MIN)
		o->inline_size = o->inline_size ? RPCRDMA_INLINE_MIN : 4096;
	if (o->read_depth == 0)
		o->read_depth = 16;
	if (!o->answer)
		o->back_credits = 0;
}

/* Of a call, in the send queue. */
static unsigned steps(const struct rpcrdma_requester_options *o)
{
	return FETCH_STEPS(*o) + (o->windows ? REQUEST_WINDOWS : 0);
}

void request_fit_queues(struct rpcrdma_requester_options *o,
			const struct fabric_limits *limits)
{
	unsigned others;

	o->windows = o->windows && limits->windows;
	o->back_credits = MIN(o->back_credits, limits->max_recv / 4);
	o->back_credits = MIN(o->back_credits, limits->max_wr / 4);
	others = MIN(o->back_credits + SPARE_RECVS, limits->max_recv);
	o->credits = MIN(o->credits, (limits->max_wr - o->back_credits) /
				     steps(o));
	o->credits = MIN(o->credits, limits->max_recv - others);
	/* Without a credit no call would ever be sent; if the queues have no
	 * room for one, fabric_setup() fails. */
	o->credits = MAX(o->credits, 1u);
}

struct rpcrdma_limits request_limits(const struct rpcrdma_requester_options *o,
				     const struct fabric_limits *limits)
{
	return (struct rpcrdma_limits){
		.call = o->inline_size, .reply = o->inline_size,
		.reads = MIN(o->read_depth, limits->max_read_depth),
	};
}

unsigned request_recvs(const struct rpcrdma_requester_options *o)
{
	return o->credits + o->back_credits + SPARE_RECVS;
}

struct fabric_queues
request_queues(const struct rpcrdma_requester_options *o)
{
	return (struct fabric_queues){
		.send_wr = o->credits * steps(o) + o->back_credits,
		.recv_wr = request_recvs(o),
		.send_sge = 1,
	};
}

struct rpcrdma_private
request_private(const struct rpcrdma_requester_options *o,
		const struct fabric_limits *limits)
{
	return (struct rpcrdma_private){
		/* A responder can't tell the handle of a segment from that of
		 * a longer registration, which must stay. */
		.remote_inv = !o->no_invalidate && limits->invalidates &&
			      !limits->pins,
		.send_size = o->inline_size,
		.recv_size = o->inline_size,
	};
}
