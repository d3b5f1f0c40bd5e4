/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * log_sink - the place that the log's lines go to, and their form there.
 *
 * Both the journal and syslog take a line as one datagram, by a protocol that
 * is documented: so a line can be sent without waiting, and by a process that
 * dies, as their libraries can't.
 */
#pragma once

#include <stddef.h>

#include "lib/log.h"

/* Writes all that comes before the message; returns its length. */
size_t log_sink_prefix(char *line, size_t size, enum log_level level,
		       const struct log_fields *fields);
/* Writes @line, of @n bytes with its end.  Waits.  Async-signal-safe. */
void log_sink_write(const char *line, size_t n);
/*
 * The same without waiting: the line outlives the process, however that ends.
 * Returns the bytes written, perhaps 0.  Sockets can do so, and pipes since
 * Linux 6.4.  A file can't: other threads can hold its position while its disk
 * hangs.
 */
size_t log_sink_write_at_once(const char *line, size_t n);
/* Finds out the kind of standard error; before the first
 * log_sink_write_at_once().
 */
void log_sink_look(void);
/* The descriptor that lines are written to. */
int log_sink_fd(void);
