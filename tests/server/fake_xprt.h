/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A transport without a wire: calls go to the sink on the caller's thread, and
 * replies are kept, flattened, for the test to look at.  A message's memory is
 * freed the moment that it comes back, so a sanitizer finds a sink which
 * touches it later.
 */
#pragma once

#include <pthread.h>

#include "transport/xprt.h"

#define FAKE_REPLY_MAX	(80u << 10)

struct fake_xprt {
	struct xprt	x;
	bool		in_pool;	/* calls say so of themselves */
};

struct fake_call {
	struct msg	m;
	pthread_mutex_t	lock;
	pthread_cond_t	cond;

	/* Set when it came back. */
	bool		over;
	bool		dropped;
	bool		rejected;	/* dropped too */
	pthread_t	thread;		/* that gave it back */
	uint32_t	head_len;
	uint32_t	body_len;
	uint32_t	tail_len;
	bool		body_ddp;
	uint32_t	len;		/* of all */
	uint8_t		*reply;
};

/* @addr is IPv4 or IPv6 text; @pool a pool or NULL. */
void fake_xprt_init(struct fake_xprt *f, struct xprt_sink *sink,
		    struct pool *pool, const char *addr, uint16_t port);

/* Sends a call in @n segments. */
struct fake_call *fake_send_segs(struct fake_xprt *f,
				 const struct xdr_seg *segs, uint32_t n);
struct fake_call *fake_send(struct fake_xprt *f, const void *data,
			    uint32_t len);
bool fake_over(struct fake_call *c);
void fake_wait(struct fake_call *c);
/* Waits too. */
void fake_free(struct fake_call *c);
