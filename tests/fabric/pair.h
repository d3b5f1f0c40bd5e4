/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pair - a passive and an active end of one fabric in this process.
 *
 * Each end has a separate loop and thread, and the listener a third.  The
 * test's thread asks for things and waits for them.  As in NFS, the active end
 * exposes memory and speaks first; the passive one moves data.
 */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "transport/fabric/fabric.h"

#define CHECK(cond) do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond); \
			exit(1); \
		} \
	} while (0)

#define RECVS		64
#define RECV_SIZE	4096
#define AREA		(2u << 20)

struct pair_end;

/* A Receive and its outcome. */
struct pair_recv {
	struct fabric_recv	recv;
	struct fabric_op	op;
	struct pair_end		*end;
	uint8_t			*data;
	bool			posted;
	int			status;
	uint32_t		len;
};

/* A step's op and its outcome. */
struct pair_op {
	struct fabric_op	op;
	sem_t			sem;
	atomic_int		calls;
	int			status;
};

struct pair_end {
	struct fabric_conn	*conn;
	struct loop		*loop;
	uint8_t			*area;		/* RDMA's side of it */
	struct fabric_mr	*area_mr;
	struct fabric_mr	*source_mr;	/* area, as a source only */
	uint8_t			*bufs;		/* Receives, then one Send */
	struct fabric_mr	*bufs_mr;
	struct pair_recv	recvs[RECVS];
	/* On the loop, then read after a wait. */
	struct pair_recv	*got[4 * RECVS];	/* in order */
	atomic_uint		ngot;
	atomic_uint		nfailed;
	unsigned		nread;		/* of got, by the test */
	sem_t			arrived;
	sem_t			established;
	sem_t			closed;
	atomic_int		closed_calls;
	atomic_bool		late;		/* done() after closed() */
	int			err;
	/* The active end's message about its area. */
	uint32_t		handle;
	uint64_t		offset;
};

struct pair {
	const struct fabric	*fabric;
	struct pair_end		passive;
	struct pair_end		active;
};

extern struct fabric_queues pair_queues;

/* The three threads, and a listener at @addr.  exit(77): no device there. */
void pair_start(const struct fabric *f, const struct sockaddr *addr);
void pair_stop(void);

/* Asks, and has the request at hand: then accept or reject. */
void pair_ask(struct pair *p);
/* 0 with all Receives posted, or the error of fabric_setup(). */
int pair_setup(struct pair_end *e);
/* Accepts, even if the connection has already ended. */
void pair_start_passive(struct pair_end *e);
void pair_accept(struct pair *p);
/* All of the above, and the active end's first message arrived. */
void pair_open(struct pair *p);
/* The passive end is rejected, and its memory freed. */
void pair_reject(struct pair *p);
/* Waits until an end is closed, and frees it and its memory. */
void pair_end_finish(struct pair_end *e);
void pair_finish(struct pair *p);
void pair_close(struct pair *p);

void pair_wait(sem_t *sem);
void pair_op_init(struct pair_op *op);
/* Waits and returns the status. */
int pair_op_wait(struct pair_op *op);
/* Posts one Send of @len bytes of e->bufs's last slot and waits for it. */
int pair_send(struct pair_end *e, const void *data, uint32_t len);
/* The next message; it is posted again after pair_again(). */
struct pair_recv *pair_next(struct pair_end *e);
void pair_again(struct pair_recv *r);
