/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Begin and end of the verbs provider's tests: a listener, a connection on a
 * separate loop, and work whose completions are counted.
 */
#pragma once

#include <semaphore.h>
#include <stdatomic.h>

#include "lib/util.h"
#include "tests/fake/verbs_fake.h"
#include "transport/fabric/verbs/verbs.h"

#define RECVS	8
#define STEPS	64

struct op {
	struct fabric_op	op;
	atomic_int		calls;
	int			status;
	uint32_t		len;
	unsigned		turn;		/* when, among all ops */
	unsigned		qps_destroyed;	/* by then */
	sem_t			sem;
};

extern struct fabric fabric;
extern struct fabric_listener *listener;
extern struct fabric_conn *conn;
extern struct loop *loop, *conn_loop;
extern sem_t requested, established, closed;
extern atomic_int closed_calls;
extern struct op recv_ops[RECVS];
extern struct fabric_recv recvs[RECVS];
/* Of chain(). */
extern struct fabric_wr wrs[STEPS];
extern struct fabric_sge sges[STEPS + 4];	/* and the last one's bytes */
extern struct op ops[STEPS];

void begin(void);
void begin_iwarp(void);
/* Ends the fixture, and checks that nothing is left. */
void end(void);
int try_listen(void);
void on_request(struct fabric_listener *l, struct fabric_conn *c);
/* On the connection's loop, for loop_call(); @arg is an int, 0 or -errno. */
void set_up(void *arg);
void start(void *arg);
/* A peer whose connection is established. */
void connected(void);
/* It is closed for the reason @err, each Receive was done once: the end. */
void finished(int err);
/* The same, and we close it. */
void finish(void);

/* Waits until the loops have run all their tasks. */
void settle(void);
void op_init(struct op *o);
/* @n - 1 Writes and a Send; the ones named in @with have an op. */
struct fabric_wr *chain(unsigned n, uint64_t with);
