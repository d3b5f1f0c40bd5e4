/* SPDX-License-Identifier: BSD-2-Clause */
/* log - one line a message, to standard error. */
#include "lib/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/util.h"

#define LINE_SIZE	1024
#define LIMIT_PER_SECOND 10

static const char *const names[] = { "err", "warn", "info", "debug" };
/* sd-daemon(3) priorities. */
static const char *const prefixes[] = { "<3>", "<4>", "<6>", "<7>" };

_Atomic(enum log_level) log_threshold = LOG_LEVEL_INFO;

bool log_level_parse(const char *name, enum log_level *level)
{
	for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i])) {
			*level = i;
			return true;
		}
	return false;
}

static int put_prefix(char *line, size_t size, enum log_level level)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	if (getenv("JOURNAL_STREAM"))
		return snprintf(line, size, "%s", prefixes[level]);
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &tm);
	n = strftime(line, size, "%F %T", &tm);
	return (int)n + snprintf(line + n, size - n, ".%03ld %s: ",
				 now.tv_nsec / 1000000, names[level]);
}

void log_print(enum log_level level, const char *fmt, ...)
{
	char line[LINE_SIZE];
	int n = put_prefix(line, sizeof(line), level);
	va_list ap;
	int m;

	va_start(ap, fmt);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n, fmt, ap);
	va_end(ap);
	if (m < 0)
		return;
	n = MIN(n + m, LINE_SIZE - 2);
	/* What peers send may be in it: a message stays one line of text. */
	for (int i = 0; i < n; i++)
		if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
			line[i] = '?';
	line[n++] = '\n';
	/* One write, so that lines of several threads don't mix.  There is
	 * nobody to tell when it fails. */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

bool log_limit_pass(struct log_limit *limit, enum log_level level)
{
	struct timespec now;
	long window = atomic_load(&limit->window);
	unsigned n;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (window != now.tv_sec + 1 &&
	    atomic_compare_exchange_strong(&limit->window, &window,
					   now.tv_sec + 1)) {
		n = atomic_exchange(&limit->count, 0);
		if (n > LIMIT_PER_SECOND)
			log_print(level, "%u messages like the next one left out",
				  n - LIMIT_PER_SECOND);
	}
	return atomic_fetch_add(&limit->count, 1) < LIMIT_PER_SECOND;
}
