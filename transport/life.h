/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * life - log lines about a connection: when it begins, and when and why it
 * ends.
 *
 * Ten connections of each line a second at most, as log_limited().
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "lib/log.h"

struct xprt;

struct xprt_life {
	uint64_t since;			/* clock_ns() of the start; 0: none */
	_Atomic(const char *) why;	/* of the end; a literal, or NULL */
};

/* The sums of a connection; bytes are bytes of messages, over TCP including
 * their marks. */
struct xprt_sums {
	uint64_t calls;
	uint64_t received;	/* bytes */
	uint64_t sent;		/* bytes */
};

/* Logs a line about @x, whose name it begins with; the journal gets the client
 * and the transport as fields.  Any thread, with a reference. */
void xprt_log(const struct xprt *x, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* The same for lines that a peer can cause, see log_limited(). */
#define xprt_log_limited(x, level, ...) do { \
		static struct log_limit limit_; \
		if (log_wanted(level) && log_limit_pass(&limit_, (level))) \
			xprt_log((x), (level), __VA_ARGS__); \
	} while (0)

/* The connection begins; the text, as of printf(3), tells what its two sides
 * agreed on.  On its poller. */
void xprt_life_begin(struct xprt *x, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* Notes the cause of the end that follows, a literal; only the first one
 * counts.  Any thread, with a reference. */
void xprt_life_why(struct xprt *x, const char *why);

/* The words for 0 or -errno, a literal; 0 is the orderly end by the client. */
const char *xprt_life_cause(int err);

/*
 * The connection ends.  The cause is the one noted, else that of @err.  Of a
 * connection that never began it tells only that.  On its poller, once.
 */
void xprt_life_end(struct xprt *x, int err, const struct xprt_sums *sums);
