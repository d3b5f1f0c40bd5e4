/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_rig - a responder on the loop fabric, with a small program on it.
 *
 * With RIG_FABRIC=iwarp in the environment it is on that fabric, unless a test
 * asks of the fabric what only loop can do.  Options can follow, as
 * tests/fabric/iwarp_options.h has them.
 *
 * A call is: xid, op, arg, then arg opaques for OP_SUM, one for OP_ECHO, none
 * for the others; any words after them count as left over.
 */
#pragma once

#include <semaphore.h>

#include "transport/fabric/iwarp/iwarp.h"
#include "tests/loop/loop.h"
#include "transport/rpcrdma/proto.h"
#include "transport/rpcrdma/requester.h"
#include "transport/rpcrdma/rpcrdma.h"

/* An assertion for every kind of test: fuzzers use this file too. */
void require_failed(const char *file, int line, const char *what)
	__attribute__((noreturn));
#define require(cond) \
	((cond) ? (void)0 : require_failed(__FILE__, __LINE__, #cond))

enum rig_op {
	OP_SUM = 1,	/* -> xid, bytes, sum of bytes, words left, last word */
	OP_ECHO,	/* -> xid, opaque: the same bytes */
	OP_READ,	/* -> xid, eligible opaque of arg & 0xffffff bytes,
			 * END_WORD, once more for each arg >> 24 */
	OP_LONG,	/* -> xid, opaque of arg bytes, not eligible */
	OP_HOLD,	/* -> xid, when rig_release() was called */
	OP_DROP,	/* no reply */
	OP_REJECT,	/* it is taken for something that is no call */
	OP_KEEP,	/* -> xid; rig->xprt is its connection from now on */
};

#define END_WORD	0x7a11e4d0u
/* Where the data of the first opaque stands in a call. */
#define DATA_POSITION	16u

struct rig_options {
	struct loop_fabric_options fabric;
	struct rpcrdma_options rdma;
	size_t	 pool_bytes;	/* 0: 64 MiB */
	bool	 async;		/* replies come from another thread */
	bool	 any_position;	/* accept Read chunks at any position */
	bool	 one_loop;	/* peers share the responder's */
	bool	 two_pollers;	/* the worker's loop is the second */
	unsigned max_conns;	/* 0: 16 */
	unsigned max_peer_conns;
	struct xprt_clients *clients;	/* NULL: they are not counted */
};

struct rig {
	struct rig_options options;
	struct xprt_sink sink;
	struct fabric	 fabric;
	bool		 iwarp;		/* the fabric is iWARP */
	struct pool	*pool;
	struct loop	*server;
	struct loop	*client;
	struct loop	*worker;
	struct loop	*loops[2];
	atomic_bool	 zero_pad;	/* OP_SUM insists on pads of zeros */
	struct xprt_listener *listener;
	atomic_uint	 taken;		/* calls the sink got */
	_Atomic uint64_t acked;		/* the connection's position when the
					 * last one came */
	pthread_mutex_t	 lock;
	struct cds_list_head held;
	struct xprt	*xprt;		/* counted; NULL: none was kept */
};

/* The fabric of a test that brings one, if it sets this. */
struct rig_fabric {
	int  (*create)(struct fabric *out);
	void (*destroy)(struct fabric *f);
};

extern const struct rig_fabric *rig_fabric;

/* A NULL @options means all defaults. */
void rig_open(struct rig *rig, const struct rig_options *options);
/* The functions below ask the loop fabric itself, so the fabric must be that
 * one. */
void rig_on_loop(void);
/* All zeros, if the fabric does not count. */
void rig_count(const struct rig *rig, struct loop_fabric_counts *out);
/* Breaks all connections, or at least @r's. */
void rig_break(struct rig *rig, struct rpcrdma_requester *r);
/* Checks that nothing was violated and everything came back. */
void rig_close(struct rig *rig);
/* Answers all calls of OP_HOLD. */
void rig_release(struct rig *rig);
unsigned rig_held(struct rig *rig);
/* Waits, at most ten seconds, until @fn(@arg). */
void wait_until(bool (*fn)(void *arg), void *arg);

/* The i-th byte of the data that OP_READ and OP_LONG return. */
static inline uint8_t pattern(uint32_t i)
{
	return (uint8_t)(i * 7 + (i >> 8) * 13);
}

/* A request through a requester, waited for. */
struct exchange {
	struct rpcrdma_request request;
	sem_t	 done;
	uint8_t	 call[2048];
	uint8_t	*reply;		/* a copy; free() it with the exchange */
};

void exchange_init(struct exchange *x, uint32_t xid, uint32_t op,
		   uint32_t arg);
/* Adds words or an opaque's length to the call. */
void exchange_put(struct exchange *x, uint32_t word);
void exchange_start(struct rpcrdma_requester *r, struct exchange *x);
/* Returns the request's status. */
int exchange_wait(struct exchange *x);
void exchange_fini(struct exchange *x);
/* The i-th word of the reply. */
uint32_t exchange_word(const struct exchange *x, uint32_t i);

void rig_connect(struct rig *rig,
		 const struct rpcrdma_requester_options *options,
		 struct rpcrdma_requester **out);
