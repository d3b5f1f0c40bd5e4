/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pipe - payload that stays in the kernel.
 *
 * A long READ over a socket need not come to user memory: the backend splices
 * from the page cache into a pipe, the transport from the pipe into the socket.
 * Pipes are kept between uses, and their descriptors bounded (lib/fds.h): a
 * READ that finds none uses a buffer of the pool.
 *
 * Any thread, everything.
 */
#pragma once

#include <stdint.h>

struct pipes;

struct pipe {
	int		 rd;		/* neither blocks */
	int		 wr;
	uint32_t	 left;		/* bytes in it, as far as is known */
	struct pipes	*pipes;		/* borrowed: outlives its pipes */
	struct pipe	*next;		/* while free */
};

/* Bytes that a pipe surely takes, beginning at a page. */
#define PIPE_MAX	(1u << 20)

int pipes_create(struct pipes **out);
/* Frees the pipes.  Every pipe must have been put. */
void pipes_destroy(struct pipes *pipes);

/* Returns an empty pipe, or NULL. */
struct pipe *pipe_get(struct pipes *pipes);
/* Gives the pipe back; bytes in it are lost.  NULL is fine. */
void pipe_put(struct pipe *pipe);
