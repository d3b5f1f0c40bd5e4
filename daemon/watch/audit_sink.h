/* SPDX-License-Identifier: BSD-2-Clause */
/* audit_sink - where the lines of the audit go: to a file, the journal or
 * syslog.  A sink is one thread's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

enum audit_kind { AUDIT_OFF, AUDIT_FILE, AUDIT_JOURNAL, AUDIT_SYSLOG };

struct audit_sink {
	enum audit_kind kind;
	int		fd;		/* of a file, else -1 */
	char		*name;		/* for the log */
};

/* Opens what the value of --audit names, which was checked; NULL: off.  0;
 * -ETIMEDOUT: the disk of a file does not answer within two seconds; or another
 * -errno. */
int audit_sink_open(const char *value, struct audit_sink *sink);
void audit_sink_close(struct audit_sink *sink);
/* Writes whole lines of the @len bytes at @text, each with its end.  Returns
 * the bytes written, which can end in a line's midst, or -errno.  Waits. */
long audit_sink_write(const struct audit_sink *sink, const char *text,
		      size_t len);
