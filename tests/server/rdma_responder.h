/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_responder - the requester before a responder that sends whatever a test
 * makes it send.
 *
 * Both are on one loop, so a chain of Sends arrives before the requester does
 * anything about its first.  Used by the test's thread.
 */
#pragma once

#include "tests/server/rdma_rig.h"

enum { RAW_CALLS = 32, RAW_SIZE = 4096 };

extern struct fabric raw_fabric;
extern struct fabric_listener *raw_listener;
extern struct loop *raw_loop;
extern struct rpcrdma_requester *raw_requester;
/* The responder's connection, and the one before it, which is closed. */
extern struct fabric_conn *raw_conn, *raw_earlier;
extern sem_t raw_closed;		/* posted when a connection ends */
/* Receives, in the order of a connection's messages, then Sends. */
extern uint8_t raw_memory[2 * RAW_CALLS][RAW_SIZE];
extern struct fabric_wr raw_sends[RAW_CALLS];
extern struct xdr_out raw_out;		/* the message that is being made */

/* The fabric with the responder; and a requester on it. */
void raw_start(void);
void raw_stop(void);
void raw_open_with(const struct rpcrdma_requester_options *ro);
void raw_open(void);
void raw_close(void);
struct rpcrdma_requester_info raw_info(void);

/* Waits until @n messages have come, of all connections. */
void raw_await(unsigned n);
/* Begins the n-th message of a chain. */
void raw_begin(unsigned n, uint32_t xid, uint32_t vers, uint32_t credits,
	       uint32_t proc);
void raw_words(uint32_t word, unsigned n);
/* Ends it, or cuts it off at @len. */
void raw_end(unsigned n);
void raw_end_at(unsigned n, uint32_t len);
void raw_put_reply(unsigned n, uint32_t xid, uint32_t credits);
/* Sends the first @n messages as one chain. */
void raw_send(unsigned n);
void raw_reply(uint32_t xid, uint32_t credits);

/* Starts a call; waits for the reply to it. */
void raw_call(struct exchange *x, uint32_t xid);
void raw_answered(struct exchange *x, uint32_t xid);
