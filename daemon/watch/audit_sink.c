/* SPDX-License-Identifier: BSD-2-Clause */
/* audit_sink - see audit_sink.h. */
#include "daemon/watch/audit_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <syslog.h>
#include <unistd.h>

#include "lib/errand.h"
#include "lib/util.h"

#if HAVE_SYSTEMD
#include <systemd/sd-journal.h>
#endif

#define IDENT	"gannetd-audit"

static enum audit_kind kind_of(const char *value)
{
	if (!value || !strcasecmp(value, "off"))
		return AUDIT_OFF;
	if (!strcasecmp(value, "journal"))
		return AUDIT_JOURNAL;
	return strcasecmp(value, "syslog") ? AUDIT_FILE : AUDIT_SYSLOG;
}

/* The opening of a file, whose disk can hang. */
struct opening {
	struct errand errand;
	int	fd;
	char	path[];
};

static int run_opening(struct errand *e)
{
	struct opening *o = container_of(e, struct opening, errand);

	/* A pipe without a reader must not hang its writer. */
	o->fd = open(o->path, O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY |
		     O_NONBLOCK | O_CLOEXEC, 0640);
	return o->fd < 0 ? -errno : 0;
}

static void drop_opening(struct errand *e)
{
	struct opening *o = container_of(e, struct opening, errand);

	if (o->fd >= 0)
		close(o->fd);
	free(o);
}

/* The descriptor or -errno. */
static int open_sink_file(const char *path)
{
	size_t len = strlen(path) + 1;
	struct opening *o = malloc(sizeof(*o) + len);
	int err;

	if (!o)
		return -ENOMEM;
	memcpy(o->path, path, len);
	o->errand = (struct errand){ .path = o->path, .run = run_opening,
				     .drop = drop_opening };
	err = errand_begin(&o->errand);
	if (err == 0) {
		err = errand_await(&o->errand, errand_deadline());
		if (err == -ETIMEDOUT)
			return err;
	}
	err = err ? : o->fd;
	free(o);
	return err;
}

int audit_sink_open(const char *value, struct audit_sink *sink)
{
	struct audit_sink s = { .kind = kind_of(value), .fd = -1 };
	int err;

	s.name = strdup(value ? value : "off");
	if (!s.name)
		return -ENOMEM;
	if (s.kind == AUDIT_FILE)
		s.fd = open_sink_file(value);
	if (s.kind == AUDIT_FILE && s.fd < 0) {
		err = s.fd;
		free(s.name);
		return err;
	}
	*sink = s;
	return 0;
}

void audit_sink_close(struct audit_sink *sink)
{
	if (sink->fd >= 0)
		close(sink->fd);
	free(sink->name);
	*sink = (struct audit_sink){ .kind = AUDIT_OFF, .fd = -1 };
}

/* The journal's, of one line. */
static int tell_journal(const char *line, size_t len)
{
#if HAVE_SYSTEMD
	return sd_journal_send("MESSAGE=%.*s", (int)len, line, "PRIORITY=6",
			       "SYSLOG_IDENTIFIER=" IDENT, NULL);
#else
	return -ENOTSUP;
#endif
}

long audit_sink_write(const struct audit_sink *sink, const char *text,
		      size_t len)
{
	size_t line = (size_t)((const char *)memchr(text, '\n', len) - text);
	ssize_t n;
	int err;

	switch (sink->kind) {
	case AUDIT_FILE:
		n = write(sink->fd, text, len);
		return n < 0 ? -errno : n;
	case AUDIT_JOURNAL:
		err = tell_journal(text, line);
		return err < 0 ? err : (long)line + 1;
	case AUDIT_SYSLOG:
		syslog(LOG_AUTHPRIV | LOG_INFO, "audit: %.*s", (int)line,
		       text);
		return (long)line + 1;
	case AUDIT_OFF:
		break;
	}
	return (long)len;
}
