/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_calls - the messages of lock_wire's clients. */
#pragma once

#include <netinet/in.h>

#include "lib/xdr.h"
#include "tests/crash/lock_wire.h"

#define LC_ROOM		1024u

/* A message on its way out, with room for a stream's mark before it. */
struct letter {
	uint8_t		data[LC_ROOM];
	struct xdr_out	x;
};

/* By a datagram to @to, or to whom the socket is connected with NULL. */
void lc_send(struct letter *l, int fd, bool stream,
	     const struct sockaddr_in *to);
/* A reply of the server to a call of ours. */
void lc_take_reply(struct lock_wire *w, const struct lw_client *c,
		   const uint8_t *data, size_t len);
/* A call of the server to the host; the reply to @l. */
void lc_take_call(struct lock_wire *w, unsigned host, const uint8_t *data,
		  size_t len, struct letter *l);
