/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log - one line a message, to standard error, the journal or syslog.
 *
 * Any thread.  Each line is written whole.  On standard error it carries a time
 * stamp and the level, or under systemd the journal's <N> priority prefix.
 */
#pragma once

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

enum log_level { LOG_LEVEL_ERR, LOG_LEVEL_WARN, LOG_LEVEL_INFO,
		 LOG_LEVEL_DEBUG };

/* Messages above it are not printed.  May be set at any time. */
extern _Atomic(enum log_level) log_threshold;

static inline bool log_wanted(enum log_level level)
{
	return level <= atomic_load_explicit(&log_threshold,
					     memory_order_relaxed);
}

enum log_target { LOG_TO_AUTO, LOG_TO_STDERR, LOG_TO_JOURNAL, LOG_TO_SYSLOG };

/*
 * Sets where lines go; standard error if it is never called.  LOG_TO_AUTO: the
 * journal if that is standard error, syslog if standard error is /dev/null or
 * closed, else standard error.  A line that the journal or syslog does not
 * accept goes to standard error; if standard error can't be written, because
 * its terminal is gone, it goes to syslog.  @path, for tests: the daemon's
 * socket, NULL: the system's.  Returns the target.  Before the first thread.
 */
enum log_target log_open(enum log_target to, const char *path);

/*
 * From log_start() to log_stop() a separate thread writes the lines: a write
 * can take for ever, to a disk that hangs or to a reader that does not read.
 * Lines that find no room meanwhile are counted and left out.  The caller
 * itself writes its line to a socket or pipe that has room, without waiting: so
 * the line is out whatever ends the process next.  A process that dies of a
 * fault or of abort() writes the lines that wait then.  log_start() is 0 or
 * -errno.
 */
int log_start(void);
void log_stop(void);
/* Writes the waiting lines, for a process that ends without log_stop().
 * Async-signal-safe; waits a second for the reader. */
void log_rescue(void);

/* "err", "warn", "info" or "debug"; returns false for anything else. */
bool log_level_parse(const char *name, enum log_level *level);

void log_print(enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The subject of a line, for the journal: its fields GANNET_CLIENT,
 * GANNET_TRANSPORT and GANNET_EXPORT.  NULL: nothing. */
struct log_fields {
	const char *client;	/* an address without a port */
	const char *transport;
	const char *export;	/* a path */
};

/* @fields is borrowed for the call, and can be NULL. */
void log_print_with(enum log_level level, const struct log_fields *fields,
		    const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Prints each line of @text. */
void log_lines(enum log_level level, const char *text);

#define log_at(level, ...) do { \
		if (log_wanted(level)) \
			log_print((level), __VA_ARGS__); \
	} while (0)

#define log_err(...)	log_at(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warn(...)	log_at(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_info(...)	log_at(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...)	log_at(LOG_LEVEL_DEBUG, __VA_ARGS__)

/*
 * For lines that a peer can cause: at most ten of one place a second.  The
 * first line after a pause says how many were left out.
 */
struct log_limit { _Atomic long window; _Atomic unsigned count; };
bool log_limit_pass(struct log_limit *limit, enum log_level level);

#define log_limited(level, ...) do { \
		static struct log_limit limit_; \
		if (log_wanted(level) && log_limit_pass(&limit_, (level))) \
			log_print((level), __VA_ARGS__); \
	} while (0)

/* The same with the line's fields. */
#define log_limited_with(level, fields, ...) do { \
		static struct log_limit limit_; \
		if (log_wanted(level) && log_limit_pass(&limit_, (level))) \
			log_print_with((level), (fields), __VA_ARGS__); \
	} while (0)
