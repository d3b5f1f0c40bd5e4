/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * accept - a listening socket on a loop.
 *
 * Accepts in batches, and not for a while when the system has run out of
 * something.
 */
#ifndef GANNET_TRANSPORT_STREAM_ACCEPT_H
#define GANNET_TRANSPORT_STREAM_ACCEPT_H

#include <sys/socket.h>

#include "lib/loop.h"

struct acceptor {
	/* Set before the start. */
	const char	 *name;		/* of the transport, for the log */
	/* On the loop.  Takes @fd, which does not block; @peer is as if each
	 * family had a socket of its own. */
	void (*accepted)(struct acceptor *a, int fd,
			 struct sockaddr_storage *peer);

	struct loop	 *loop;		/* borrowed */
	struct loop_fd	  fd;
	struct loop_timer pause;
};

/* Takes @fd, which listens.  Any thread.  0 or -errno. */
int acceptor_start(struct acceptor *a, struct loop *loop, int fd);
/* Any thread, any number of times: nothing is accepted any more. */
void acceptor_stop(struct acceptor *a);

#endif
