/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stream - live data about the server's calls, sent to gannetctl(8): a capture
 * of RPC messages as a pcapng file, or a trace, which tells where the time of
 * calls went.
 *
 * Operation: the threads that serve calls copy the data that the filter accepts
 * into a ring, and never wait: data that find no room are dropped and counted.
 * A stream begins as a request of the control socket, and goes on over its
 * connection, on a separate thread.  It ends at a limit, when gannetctl shuts
 * its side of the connection down, and with the server; then gannetctl has some
 * seconds to get the rest.  A kind of stream has one at a time.
 *
 * A trace sends an object of JSON for each call, a line each.  The first line
 * is an empty object; lines between them report the calls dropped so far, and
 * the last line has the sums.
 *
 * Ownership: the kind's functions below run on the stream's thread; from
 * stream_open() to stream_start() the control thread has it.
 */
#pragma once

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "daemon/watch/capture_filter.h"
#include "lib/ring.h"
#include "rpc/tap.h"

struct stream;

struct stream_kind {
	const char *name;		/* of the thread, and in the log */
	size_t	    size;		/* of the struct that begins with one */
	size_t	    ring;		/* bytes */
	enum rpc_tap_place place;
	struct rpc_tap tap;
	const char *taken, *no_memory;	/* why no stream begins */
	/* Sets the limits and @texts, for the filter.  False, and *@wrong: the
	 * options make no sense.  The control thread, like the next one. */
	bool (*read)(struct stream *s, const json_t *options,
		     const char *texts[3], const char **wrong);
	/* Makes the kind's part of a stream.  Its answer; NULL: no memory. */
	json_t *(*make)(struct stream *s);
	/* Sends the first bytes; the server's calls are seen already. */
	void (*begin)(struct stream *s);
	/* Sends the waiting records, or sets s->full at a limit.  False: none
	 * waited. */
	bool (*take)(struct stream *s);
	/* The tap has been removed: sends the last bytes, and tells the log. */
	void (*end)(struct stream *s);
	/* Undoes make(). */
	void (*release)(struct stream *s);
};

extern const struct stream_kind capture_stream, trace_stream;

struct stream {
	const struct stream_kind *kind;
	struct rpc_server *rpc;
	struct export_table *exports;
	struct rpc_tap	 tap;
	struct capture_filter filter;
	struct ring	*ring;
	/* The limits; 0: none. */
	uint64_t	 count;		/* the kind's: messages or calls left */
	uint64_t	 duration;	/* ns */
	/* The stream's thread. */
	bool		 full;		/* a limit is reached */
	bool		 broken;	/* the reader has gone */
	uint64_t	 sent;		/* bytes */
	/* stream.c's */
	int		 fd;
	bool		 ending;	/* it can send until @until */
	bool		 stopping;	/* ... and the server ends */
	uint64_t	 until;		/* clock_ns() */
	bool		 started;	/* the thread is to be joined */
	pthread_t	 thread;
	int		 stop;		/* an eventfd: the server ends */
	atomic_bool	 over;		/* the thread has nothing more to do */
};

/* @rpc and @exports are borrowed.  NULL: no memory. */
struct stream *stream_create(const struct stream_kind *kind,
			     struct rpc_server *rpc,
			     struct export_table *exports);
/* Ends a stream in progress.  Before rpc_server_destroy().  NULL is fine. */
void stream_destroy(struct stream *s);

/*
 * Readies a stream with gannetctl's @options, NULL for none of them:
 *
 *	client, proc, export	texts, see capture_filter.h
 *	count			messages or calls after which it ends
 *	duration		seconds, the same
 *	size			a capture's: bytes of the file, the same
 *	snaplen			a capture's: bytes of a message that are kept
 *	slower			a trace's: us that a call takes at least
 *
 * Returns the answer; NULL and *@wrong: a mistake in the options, or another
 * stream runs.  The control thread.
 */
json_t *stream_open(struct stream *s, const json_t *options,
		    const char **wrong);
/* Starts it, with @fd, which it takes; -1: the client has gone.  The control
 * thread. */
void stream_start(struct stream *s, int fd);
/* Sends @len bytes; for as long as that takes, unless the end has come.  The
 * stream's thread. */
void stream_send(struct stream *s, const void *data, size_t len);
