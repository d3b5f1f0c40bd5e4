/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream - what the calls of the server give, sent to gannetctl(8) while it
 * comes: a capture, or a trace.
 *
 * Operation: a stream begins as a request of the control socket, and goes on
 * over its connection, on a separate thread.  It ends at a limit, when
 * gannetctl shuts its side of the connection down, and with the server; then
 * gannetctl gets what is there, for seconds.  A kind of stream has one at a
 * time.
 *
 * Ownership: the kind's functions below run on the stream's thread; from
 * stream_ready() to stream_start() the control thread has it.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stream;

struct stream_kind {
	const char *name;		/* of the thread, and in the log */
	/* Sends the first bytes; the server's calls are seen from then on. */
	void (*begin)(struct stream *s);
	/* Sends what there is, or sets s->full at a limit.  False: there was
	 * nothing. */
	bool (*take)(struct stream *s);
	/* The tap has been removed. */
	void (*leave)(struct stream *s);
	/* Sends the last bytes, and tells the log. */
	void (*end)(struct stream *s);
	/* Frees what was made for this one. */
	void (*release)(struct stream *s);
};

struct stream {
	const struct stream_kind *kind;
	/* The limits, set before stream_start(); 0: none. */
	uint64_t	 count;		/* the kind's: of what it has left */
	uint64_t	 duration;	/* ns */
	/* The stream's thread. */
	bool		 full;		/* a limit is reached */
	bool		 broken;	/* the reader has gone */
	uint64_t	 sent;		/* bytes */
	/* stream.c's */
	int		 fd;
	bool		 ending;	/* until when it may send: until */
	bool		 stopping;	/* ... and the server ends */
	uint64_t	 until;		/* clock_ns() */
	bool		 started;	/* the thread is to be joined */
	pthread_t	 thread;
	int		 stop;		/* an eventfd: the server ends */
	atomic_bool	 over;		/* the thread has nothing more to do */
};

/* 0 or -errno. */
int stream_init(struct stream *s, const struct stream_kind *kind);
/* Ends a stream in progress. */
void stream_fini(struct stream *s);
/* True: there is none, and one may be made.  The control thread. */
bool stream_ready(struct stream *s);
/* Starts it, with @fd, which it takes; -1: the client has gone.  The
 * control thread. */
void stream_start(struct stream *s, int fd);
/* Sends @len bytes; for as long as that takes, unless the end has come.  The
 * stream's thread. */
void stream_send(struct stream *s, const void *data, size_t len);
