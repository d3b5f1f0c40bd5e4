/* SPDX-License-Identifier: BSD-2-Clause */
/* call_relay - a relay between ./gannet-nfs and ./gannetd over TCP that knows
 * calls, and can keep, refuse and change them and their replies. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/server/cut_relay.h"

enum deed {
	PASS,
	LOSE,		/* the answer, and the connection */
	DENY,		/* as a server without the context */
};

/* Where words are in a call with its mark; a reply has AT_XID as well. */
enum { AT_XID = 4, AT_PROG = 16, AT_PROC = 24, AT_FLAVOR = 28, AT_GSS_PROC = 40,
       AT_SERVICE = 48, AT_TOKEN = 64 };

/* A record with its mark, of one fragment. */
struct record {
	uint8_t	data[8192];
	size_t	len;
};

/* Each function is called by one thread at a time. */
struct calls {
	struct relay relay;
	enum deed  (*judge)(struct calls *c, const struct record *call);
	/* Can change the reply to @call; NULL: none is changed. */
	void	   (*change)(struct calls *c, const struct record *call,
			     struct record *reply);
	pthread_mutex_t lock;
	/* The functions' own: */
	struct record token;		/* the first */
	bool	     same_token;
	unsigned     inits;
	uint32_t     xids[4];		/* of the calls that are counted */
	unsigned     n;
};

/* The word at @at, or 0 beyond the record. */
uint32_t record_word(const struct record *r, size_t at);
/* From now on URLs lead through it to the server; relay_stop() ends it. */
void call_relay_start(struct calls *c);
