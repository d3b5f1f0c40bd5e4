/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * lock_wire - clients whose owners lock: versions 1, 3 and 4, over TCP and UDP,
 * by calls and by messages; and the lock manager and status monitor of each,
 * which the server calls.  All of it on one thread.
 *
 * Clients have the addresses 127.0.0.11 and so on.  Where this process can bind
 * port 111 there, they answer for their ports themselves; else the server does
 * not find them, and then no request waits and no client sends messages.
 */
#pragma once

#include "tests/crash/lockers.h"
#include "tests/crash/wire.h"

#define LW_CALLERS	64u		/* connections of servers to us */
#define LW_BUF		16384u

/* Bytes of a model's byte in the file. */
#define LW_SCALE	100u

struct lw_stream {
	int	 fd;			/* -1: none */
	unsigned host;
	unsigned len;
	uint8_t	 buf[LW_BUF];
};

struct lw_client {
	struct lw_stream s;		/* to the server; UDP: the socket */
	bool	 udp, by_message;
	uint32_t vers;
	uint32_t state;			/* of its status monitor */
	uint32_t told;			/* the server's state, as we heard */
	uint32_t xid;			/* of NOTIFY or FREE_ALL; 0: none */
	bool	 frees;			/* it was NOTIFY: FREE_ALL is next */
	int	 tcp, datagrams;	/* port 111; -1: none */
};

struct lock_wire {
	struct lockers *m;
	bool	 deaf;			/* port 111 can't be used */
	uint32_t uid;			/* of the callers */
	uint16_t tcp_port, udp_port;
	struct model_fh fh[LM_FILES];
	struct lw_client client[LM_HOSTS];
	struct lw_stream caller[LW_CALLERS];
	struct {
		uint32_t xid, seq;
		uint64_t sent_ms;
	} sent[LM_OWNERS];
	uint32_t seq;
	/* The grace period ends between these; both 0: no grace period. */
	uint64_t grace_min, grace_max;
	bool	 grace_known;		/* false: perhaps no grace period */
};

/* Binds the ports, where it can. */
void lw_open(struct lock_wire *w, struct lockers *m);
void lw_close(struct lock_wire *w);
/* To a server that was just started. */
void lw_connect(struct lock_wire *w, uint16_t tcp_port, uint16_t udp_port);
/* The server has ended: reads the rest of its replies. */
void lw_disconnect(struct lock_wire *w);
/* Sends the operation of owner @i. */
void lw_send(struct lock_wire *w, unsigned i);
/* Tells the server that the host restarts. */
void lw_restart_host(struct lock_wire *w, unsigned host);
/* Takes all messages that come within @ms. */
void lw_serve(struct lock_wire *w, int ms);
bool lw_any_busy(const struct lock_wire *w);
