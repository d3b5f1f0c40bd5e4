/* SPDX-License-Identifier: BSD-2-Clause */
/* A small RPC program with one procedure for each thing that can happen. */
#pragma once

#include "rpc/rpc.h"
#include "tests/server/fake_xprt.h"

#define TEST_PROG	0x20000001u

enum {
	TEST_NULL,
	TEST_ECHO,	/* opaque<256> -> the same; on the poller */
	TEST_GAP,
	TEST_ACT,	/* word, ... -> times it ran; through the cache */
	TEST_BODY,	/* length, ntail -> word, opaque of length, tail */
	TEST_BLOCKS,	/* -> times its second step ran */
	TEST_HUGE,	/* results do not fit */
	TEST_WRITE,	/* word, opaque<> from a chunk -> its sum */
	TEST_SLOW,	/* waits for test_gate; -> nothing, or TEST_SENT_BACK */
	TEST_SLOW_BODY,	/* length, ntail: the same, with a buffer */
	TEST_LATE,	/* -> times its second step ran, or TEST_SENT_BACK;
			 * test_late holds the call between its steps */
	TEST_LATE_ONCE,	/* the same, through the cache */
	TEST_LIST,	/* length, ntail -> word, bytes, tail */
	TEST_NPROC
};

enum { ACT_COUNT, ACT_FAIL, ACT_WAIT, ACT_BODY, ACT_LARGE, ACT_WAIT_FAIL };

#define TEST_SENT_BACK	0xbacc

extern struct rpc_program test_program;

/* Counts the runs of TEST_ACT, for their effect. */
extern atomic_uint test_acts;
/* The class of all calls; NULL: the common one. */
extern struct work_class *test_class;
/* Runs of TEST_BODY on a worker to fail with their buffer. */
extern atomic_uint test_body_fails;
/* Things held, put. */
extern atomic_uint test_held, test_put;

/* ACT_WAIT and TEST_SLOW stand here while it is shut. */
void test_gate_shut(void);
void test_gate_open(void);
/* Waits until @n calls stand there. */
void test_gate_wait(unsigned n);

/* The holder of suspended calls. */
extern struct test_late {
	pthread_mutex_t	 lock;
	struct rpc_call	*calls[2048];
	unsigned	 n;
	bool		 at_once;	/* resumes each before its step ends */
	bool		 keeps;		/* says no when one is cancelled */
} test_late;
/* Resumes the call that was suspended last. */
void test_late_resume(void);

struct fake_call *send_words(struct fake_xprt *f, const uint32_t *words,
			     unsigned n);
uint32_t reply_word(const struct fake_call *c, unsigned i);
