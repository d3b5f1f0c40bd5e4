/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pipe - payload that stays in the kernel.
 *
 * A long READ over a socket need not come to user memory: the backend
 * splices from the page cache into a pipe, the transport from the pipe into
 * the socket.  Pipes are kept between uses, and bounded: what finds none
 * uses a buffer of the pool.
 *
 * Any thread, everything.
 */
#ifndef GANNET_TRANSPORT_PIPE_H
#define GANNET_TRANSPORT_PIPE_H

#include <stdint.h>

struct pipes;

struct pipe {
	int		 rd;		/* neither blocks */
	int		 wr;
	uint32_t	 left;		/* bytes in it, as far as is known */
	struct pipes	*pipes;		/* borrowed: outlives its pipes */
	struct pipe	*next;		/* while free */
};

/* How much a pipe surely takes, from a page's start. */
#define PIPE_MAX	(1u << 20)

int pipes_create(struct pipes **out);
/* Every pipe must have come back. */
void pipes_destroy(struct pipes *pipes);

/* An empty one, or NULL. */
struct pipe *pipe_get(struct pipes *pipes);
/* Whatever is in it is lost.  NULL is fine. */
void pipe_put(struct pipe *pipe);

#endif
