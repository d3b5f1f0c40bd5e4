/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accept - a listening socket on a loop.
 *
 * Accepts in batches, and pauses when the system has run out of descriptors or
 * memory.
 */
#pragma once

#include <stdbool.h>
#include <sys/socket.h>

#include "lib/loop.h"

struct acceptor {
	/* The owner sets these before the start. */
	const char	 *name;		/* the transport's name, for the log */
	bool		  v6only;	/* :: is not for IPv4 */
	unsigned	  timeout_ms;	/* socket_set_stream() */
	/* Called on the loop.  Takes @fd, which is non-blocking; an IPv4 @peer
	 * of an IPv6 socket is an AF_INET address. */
	void (*accepted)(struct acceptor *a, int fd,
			 struct sockaddr_storage *peer);

	struct loop	 *loop;		/* borrowed */
	struct loop_fd	  fd;
	struct loop_timer pause;
};

/* Listens on @addr, fills in @local with the port in use, and starts to accept.
 * Any thread. 0 or -errno. */
int acceptor_start(struct acceptor *a, struct loop *loop,
		   const struct sockaddr *addr,
		   struct sockaddr_storage *local);
/* Stops accepting.  Any thread, any number of times. */
void acceptor_stop(struct acceptor *a);
