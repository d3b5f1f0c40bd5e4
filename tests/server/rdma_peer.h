/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_peer - a peer that sends whatever a test makes it send.
 *
 * Messages are built a word at a time; memory is registered by hand; the
 * responder's messages are taken as they come.  Used by the test's thread.
 */
#pragma once

#include "tests/server/rdma_rig.h"

enum { PEER_RECVS = 160, PEER_INLINE = 4096, PEER_MSGS = 256 };

struct peer_recv {
	struct fabric_op   op;
	struct fabric_recv wr;
	struct peer	  *peer;
};

struct peer_msg {
	uint32_t len;
	bool	 invalidated;
	uint32_t handle;
	uint8_t	 data[PEER_INLINE];
};

struct peer {
	struct loop	   *loop;
	struct fabric_conn *fc;
	struct fabric_mr   *mr;
	uint8_t		   *mem;
	struct peer_recv    recv[PEER_RECVS];
	bool		    repost;

	/* The message being made. */
	struct xdr_out	    out;
	uint8_t		    build[PEER_INLINE * 2];

	pthread_mutex_t	    lock;
	bool		    up;
	bool		    down;
	int		    err;
	unsigned	    nsent;	/* Sends not completed */
	unsigned	    nmsgs;
	unsigned	    ntaken;
	struct peer_msg	   *msgs;

	/* The message that peer_take() took, decoded. */
	struct peer_msg	    msg;
	struct rpcrdma_header hdr;
};

struct peer_options {
	const struct rpcrdma_private *private_data;	/* NULL: none */
	/* In its place, any bytes. */
	const void *raw_private;
	unsigned raw_private_len;
	unsigned nrecvs;	/* 0: PEER_RECVS, reposted; else not */
	unsigned recv_size;	/* 0: PEER_INLINE */
	unsigned read_depth;	/* 0: 16 */
	bool	 no_reads;	/* a read depth of zero */
};

/* With a NULL @options all are defaults.  Returns before it is up. */
void peer_open(struct peer *p, struct rig *rig,
	       const struct peer_options *options);
/* The same to any responder.  0; or -errno, with nothing to close. */
int peer_open_to(struct peer *p, const struct fabric *fabric,
		 const struct sockaddr *addr, struct loop *loop,
		 const struct peer_options *options);
void peer_wait_up(struct peer *p);
/* Waits for the end of the connection and returns its err. */
int peer_wait_down(struct peer *p);
void peer_close(struct peer *p);

/* Begins a message: xid, version, credits, procedure. */
void peer_begin(struct peer *p, uint32_t xid, uint32_t vers, uint32_t proc);
void peer_put(struct peer *p, uint32_t word);
void peer_put_zeros(struct peer *p, unsigned words);
void peer_put_segment(struct peer *p, const struct fabric_mr *mr,
		      uint32_t off, uint32_t len);
void peer_put_read(struct peer *p, uint32_t position,
		   const struct fabric_mr *mr, uint32_t off, uint32_t len);
/* A chunk of one segment: the Write list's or the Reply chunk's. */
void peer_put_chunk(struct peer *p, const struct fabric_mr *mr, uint32_t len);
/* xid, op, arg: the start of the call inline. */
void peer_put_call(struct peer *p, uint32_t xid, uint32_t op, uint32_t arg);
void peer_send(struct peer *p);
void peer_send_bytes(struct peer *p, const void *data, uint32_t len);
/* The same, as a Send With Invalidate. */
void peer_send_invalidate(struct peer *p, const void *data, uint32_t len,
			  uint32_t handle);
/* No lists, one call. */
void peer_call(struct peer *p, uint32_t xid, uint32_t op, uint32_t arg);

/* Waits for a message and decodes it into hdr. */
void peer_take(struct peer *p);
/* Checks that the next message is RDMA_ERROR for @xid. */
void peer_take_error(struct peer *p, uint32_t xid, uint32_t err);
/* The i-th word behind the header. */
uint32_t peer_word(struct peer *p, uint32_t i);
/* True if the connection is alive: it answers another call. */
void peer_check_alive(struct peer *p);

struct fabric_mr *peer_register(struct peer *p, void *addr, size_t len,
				unsigned access);
