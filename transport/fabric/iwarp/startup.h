/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * startup - from a socket to a connection: the start-up frames.
 *
 * Passive: the listener's loop reads the peer's Request, a frame of at most
 * 532 bytes within a time, and not a byte more; then the upper layer is
 * asked, and its answer goes out in one piece.  Active: TCP's connect is
 * waited for; the rest happens on the connection's loop.
 *
 * It has the connection's socket until both sides have agreed, and
 * then makes the connection live (iwarp_conn_live()).
 */
#pragma once

#include <urcu/list.h>

#include "transport/fabric/fabric.h"
#include "transport/fabric/iwarp/iwarp.h"
#include "transport/fabric/iwarp/mpa.h"

struct iwarp_conn;
struct iwarp_listener;

struct iwarp_startup {
	struct iwarp_listener	*listener;	/* borrowed; until requested */
	struct cds_list_head	unfinished;	/* in its source's */
	struct iwarp_source	*source;
	struct loop_timer	late;
	bool			passive;
	uint8_t			frame[MPA_MAX_FRAME];
	unsigned		frame_len;
	struct mpa_frame	request;	/* private data not valid */
	struct mpa_policy	policy;
	struct iwarp_depths	peer;
};

/* The listener's: reads the peer's request, to ask the upper layer. */
void iwarp_startup_begin(struct iwarp_listener *l, int fd,
			 const struct sockaddr_storage *peer);
/* The listener's: closes the connection. */
void iwarp_startup_drop(struct iwarp_conn *c);

/* fabric_ops */
int iwarp_connect(void *provider, const struct sockaddr *addr,
		  struct fabric_conn **out);
int iwarp_start(struct fabric_conn *conn, const void *private_data,
		unsigned private_len, unsigned read_depth);
void iwarp_reject(struct fabric_conn *conn);
