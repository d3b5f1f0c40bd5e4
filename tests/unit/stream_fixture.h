/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream_fixture - a server on real loopback sockets, and a client's hand.
 *
 * A call is: xid, what to do, argument, any bytes.
 */
#pragma once

#include <netinet/in.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

#include "lib/loop.h"
#include "transport/pipe.h"
#include "transport/pool.h"
#include "transport/stream/stream.h"
#include "transport/xprt.h"

enum fx_op {
	FX_ECHO,	/* the reply is the call */
	FX_WORK,	/* the same, by another thread */
	FX_BIG,		/* xid, argument bytes of pattern, tail of 4 bytes */
	FX_WORK_BIG,	/* the same, by another thread */
	FX_PIPE,	/* as FX_BIG, with the body in a pipe if one is free */
	FX_WORK_PIPE,	/* the same, by another thread */
	FX_HOLD,	/* like FX_ECHO, once fx_release() is called */
	FX_DROP,	/* no reply */
	FX_REJECT,	/* it is taken for something that is no call */
	FX_KEEP,	/* like FX_ECHO; keeps a reference to the xprt */
	FX_STOP,	/* like FX_ECHO, once fx.go is posted: stops the
			 * poller */
};

#define KIB		1024u
#define MIB		(1024u * 1024u)

#define FX_CALL_MIN	12
#define FX_LOOPS	2
#define FX_NOTED	256

/* Holds for the whole process; CK_FORK makes it one test's. */
struct fx {
	struct loop	*loops[FX_LOOPS];
	struct pool	*pool;
	struct pipes	*pipes;
	struct xprt_sink sink;
	struct xprt_env	 env;
	struct xprt_listener *l;
	atomic_uint	 taken;		/* calls that came */
	atomic_uint	 piped;		/* bodies that went into a pipe */
	atomic_uint	 lost;		/* replies that failed */
	atomic_uint	 loops_used;	/* bit mask */
	atomic_uint	 uses;		/* of the last call's upper memory */
	atomic_bool	 notes;		/* positions of replies' ends: */
	_Atomic uint64_t sent[FX_NOTED];	/* by xid */
	struct xprt	*kept;		/* counted */
	sem_t		 go;
	struct sockaddr_storage peer;	/* of the last call, once it is */
	struct sockaddr_storage local;	/* counted as taken */
};

extern struct fx fx;

/* Threads, a pool of @pool_mib, no listener. */
void fx_start(unsigned pool_mib);
/* Answers held calls, including any that still come, and ends everything; fails
 * the test when a buffer is still out. */
void fx_stop(void);
/* Calls tcp_listen() on 127.0.0.1; @o or NULL. */
void fx_listen(const struct tcp_options *o);
/* The same on @host, a number. */
void fx_listen_on(const char *host, const struct tcp_options *o);
struct sockaddr_storage fx_addr(const char *host, uint16_t port);
uint16_t fx_port(void);
/* Frees the listener. */
void fx_unlisten(void);
/* Returns the number of its connections. */
unsigned fx_conns(void);
/* Replies to held calls, by another thread when @worker; how many. */
unsigned fx_release(bool worker);
unsigned fx_held(void);
/* Of the last held call. */
struct xprt *fx_held_xprt(void);
size_t fx_pool_out(void);

/* A blocking socket connected to the listener, with a time-out. */
int fx_connect(void);
int fx_connect_to(const struct sockaddr_storage *to, int type);
void fx_send(int fd, const void *data, size_t len);
/* Reads exactly @len bytes; false at the end or on an error. */
bool fx_recv(int fd, void *data, size_t len);
/* Writes mark and call into @out: returns the bytes of both. */
size_t fx_call(uint8_t *out, uint32_t xid, enum fx_op op, uint32_t arg,
	       size_t len);
void fx_send_call(int fd, uint32_t xid, enum fx_op op, uint32_t arg,
		  size_t len);
/* A whole record into @out of @size bytes; its length, or -1 at the end. */
long fx_recv_record(int fd, uint8_t *out, size_t size);
/* Receives and checks a reply to fx_send_call(); returns the xid. */
uint32_t fx_recv_echo(int fd);
/* A reply to FX_BIG of @len, checked; returns the xid. */
uint32_t fx_recv_big(int fd, uint32_t len);
/* The connection ends without another byte. */
bool fx_ended(int fd);

/* A little while in which nothing ought to happen. */
void fx_settle(void);
/* All that was sent is in the server's socket. */
bool fx_arrived(int fd);
/* Waits until so many bytes were read over TCP in all. */
void fx_received(uint64_t bytes);
/* Waits until each loop has ended its current round. */
void fx_turn(void);
