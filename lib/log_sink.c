/* SPDX-License-Identifier: BSD-2-Clause */
/* log_sink - see log_sink.h. */
#include "lib/log_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"

#define JOURNAL		"/run/systemd/journal/socket"
#define SYSLOG		"/dev/log"
#define DAEMON		24	/* syslog's facility */

static const char *const names[] = { "err", "warn", "info", "debug" };
/* Of syslog(3), and so of the journal. */
static const int priorities[] = { 3, 4, 6, 7 };

/* Set before the first thread is. */
static struct {
	enum log_target to;
	int		fd;		/* a datagram socket, or -1 */
	mode_t		type;		/* S_IFMT of standard error */
	struct sockaddr_un addr;
} sink = { .to = LOG_TO_STDERR, .fd = -1 };

/* True if standard error goes to the journal (systemd.exec(5)). */
static bool is_journal(const struct stat *st)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       dev == st->st_dev && ino == st->st_ino;
}

static bool is_null(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1 &&
	       minor(st->st_rdev) == 3;
}

static enum log_target choose_target(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) < 0 || is_null(&st))
		return LOG_TO_SYSLOG;
	return is_journal(&st) ? LOG_TO_JOURNAL : LOG_TO_STDERR;
}

enum log_target log_open(enum log_target to, const char *path)
{
	if (to == LOG_TO_AUTO)
		to = choose_target();
	if (!path)
		path = to == LOG_TO_JOURNAL ? JOURNAL : SYSLOG;
	if (sink.fd >= 0)
		close(sink.fd);
	sink.to = to;
	sink.addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(sink.addr.sun_path, sizeof(sink.addr.sun_path), "%s", path);
	sink.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return to;
}

static size_t stamp_line(char *line, size_t size, const char *format)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	n = strftime(line, size, format, &tm);
	if (sink.to == LOG_TO_STDERR)
		n += (size_t)snprintf(line + n, size - n, ".%03ld",
				      now.tv_nsec / 1000000);
	return n;
}

static size_t put_field(char *line, size_t size, const char *name,
			const char *value)
{
	size_t n;

	if (!value)
		return 0;
	n = (size_t)snprintf(line, size, "%s=%.200s", name, value);
	/* A field ends with its line. */
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = '?';
	line[n++] = '\n';
	return n;
}

static size_t put_fields(char *line, size_t size, enum log_level level,
			 const struct log_fields *f)
{
	size_t n = (size_t)snprintf(line, size, "PRIORITY=%d\n"
				    "SYSLOG_IDENTIFIER=gannetd\n",
				    priorities[level]);

	if (f) {
		n += put_field(line + n, size - n, "GANNET_CLIENT", f->client);
		n += put_field(line + n, size - n, "GANNET_TRANSPORT",
			       f->transport);
		n += put_field(line + n, size - n, "GANNET_EXPORT", f->export);
	}
	return n + (size_t)snprintf(line + n, size - n, "MESSAGE=");
}

size_t log_sink_prefix(char *line, size_t size, enum log_level level,
		       const struct log_fields *fields)
{
	size_t n;

	switch (sink.to) {
	case LOG_TO_JOURNAL:
		return put_fields(line, size, level, fields);
	case LOG_TO_SYSLOG:
		n = (size_t)snprintf(line, size, "<%d>",
				     DAEMON + priorities[level]);
		n += stamp_line(line + n, size - n, "%h %e %T");
		return n + (size_t)snprintf(line + n, size - n,
					    " gannetd[%d]: ", (int)getpid());
	default:
		break;
	}
	if (getenv("JOURNAL_STREAM"))
		return (size_t)snprintf(line, size, "<%d>", priorities[level]);
	n = stamp_line(line, size, "%F %T");
	return n + (size_t)snprintf(line + n, size - n, " %s: ", names[level]);
}

static bool send_line(const char *line, size_t n, int flags)
{
	return sendto(sink.fd, line, n, flags | MSG_NOSIGNAL,
		      (const struct sockaddr *)&sink.addr,
		      sizeof(sink.addr)) == (ssize_t)n;
}

/* If nothing receives the datagrams, standard error might have a reader. */
static void write_plain(const char *line, size_t n)
{
	const char *mark = sink.to == LOG_TO_JOURNAL ? "\nMESSAGE=" : "]: ";
	const char *text = memmem(line, n, mark, strlen(mark));

	if (text) {
		text += strlen(mark);
		n -= (size_t)(text - line);
		line = text;
	}
	if (write(STDERR_FILENO, line, n) < 0)
		return;
}

/* One write: lines of several threads must not mix. */
void log_sink_write(const char *line, size_t n)
{
	if (sink.to == LOG_TO_STDERR) {
		/* Its terminal can be gone: then syslog takes the line. */
		if (write(STDERR_FILENO, line, n) < 0 && sink.fd >= 0)
			send_line(line, n, 0);
	} else if (!send_line(line, n, 0)) {
		write_plain(line, n);
	}
}

size_t log_sink_write_at_once(const char *line, size_t n)
{
	struct iovec iov = { (void *)(uintptr_t)line, n };
	ssize_t done = 0;

	if (sink.to != LOG_TO_STDERR)
		return send_line(line, n, MSG_DONTWAIT) ? n : 0;
	if (sink.type == S_IFSOCK)
		done = send(STDERR_FILENO, line, n,
			    MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (sink.type == S_IFIFO)
		done = pwritev2(STDERR_FILENO, &iov, 1, -1, RWF_NOWAIT);
	return done < 0 ? 0 : (size_t)done;
}

void log_sink_look(void)
{
	struct stat st;

	sink.type = fstat(STDERR_FILENO, &st) < 0 ? 0 : st.st_mode & S_IFMT;
}

int log_sink_fd(void)
{
	return sink.to == LOG_TO_STDERR ? STDERR_FILENO : sink.fd;
}
