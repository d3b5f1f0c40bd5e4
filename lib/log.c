/* SPDX-License-Identifier: BSD-2-Clause */
/* log - see log.h. */
#include "lib/log.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log_sink.h"
#include "lib/terminal.h"
#include "lib/thread.h"
#include "lib/util.h"

#define LINE_SIZE	1024
#define LIMIT_PER_SECOND 10
#define QUEUE_LINES	256
#define RESCUE_MS	1000	/* for each of them, in a process that dies */
#define STOP_S		2	/* for the lines that wait, at the end */

static const char *const names[] = { "err", "warn", "info", "debug" };

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

/* Lines that wait for the thread that writes them. */
static struct {
	pthread_mutex_t	lock;		/* innermost */
	pthread_cond_t	more;
	pthread_t	thread;
	bool		runs;		/* lines are for it */
	bool		started;
	bool		stops;
	unsigned	first, n;
	unsigned	left_out;
	size_t		len[QUEUE_LINES];
	char		line[QUEUE_LINES][LINE_SIZE];
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .more = PTHREAD_COND_INITIALIZER };

/* False: no thread runs, so the caller writes. */
static bool put_line(const char *line, size_t n)
{
	size_t done = 0;
	bool runs;

	mutex_lock(&queue.lock);
	runs = queue.runs;
	if (runs && queue.n == 0)
		done = log_sink_write_at_once(line, n);
	if (runs && queue.n == QUEUE_LINES) {
		queue.left_out++;
	} else if (runs && done < n) {
		unsigned at = (queue.first + queue.n++) % QUEUE_LINES;

		memcpy(queue.line[at], line + done, n - done);
		queue.len[at] = n - done;
		pthread_cond_signal(&queue.more);
	}
	mutex_unlock(&queue.lock);
	return runs;
}

static void write_left_out(unsigned left_out)
{
	char line[LINE_SIZE];
	size_t n = log_sink_prefix(line, sizeof(line), LOG_LEVEL_WARN, NULL);

	n += (size_t)snprintf(line + n, sizeof(line) - n,
			      "%u messages left out: they could not be "
			      "written\n",
			      left_out);
	log_sink_write(line, n);
}

/* Locked, and again when it returns.  The line stays in the queue meanwhile:
 * no later one overtakes it, and log_rescue() finds it. */
static void write_first(void)
{
	const char *line = queue.line[queue.first];
	size_t n = queue.len[queue.first];
	unsigned left_out = 0;

	mutex_unlock(&queue.lock);
	log_sink_write(line, n);
	mutex_lock(&queue.lock);
	if (queue.n == 1) {
		left_out = queue.left_out;
		queue.left_out = 0;
	}
	if (left_out) {
		mutex_unlock(&queue.lock);
		write_left_out(left_out);
		mutex_lock(&queue.lock);
	}
	queue.first = (queue.first + 1) % QUEUE_LINES;
	queue.n--;
}

/*
 * The lock is not taken: the thread that dies can hold it.  The log's thread
 * can also still write.  A line can come twice, or half, but each comes.
 */
void log_rescue(void)
{
	struct pollfd to = { .fd = log_sink_fd(), .events = POLLOUT };
	/* The log's thread takes lines away meanwhile.  So read the count
	 * first: a line can come twice then, but none is left out. */
	unsigned n = MIN(queue.n, (unsigned)QUEUE_LINES), first;

	atomic_signal_fence(memory_order_seq_cst);
	first = queue.first;
	for (unsigned i = 0; i < n; i++) {
		unsigned at = (first + i) % QUEUE_LINES;

		if (poll(&to, 1, RESCUE_MS) <= 0)
			return;
		log_sink_write(queue.line[at], MIN(queue.len[at],
					       (size_t)LINE_SIZE));
	}
}

/* The signal's default, which ends the process, was set again before. */
static void die(int sig)
{
	signal(SIGALRM, SIG_DFL);
	alarm(STOP_S);		/* a write can still wait */
	log_rescue();
	raise(sig);		/* for signals that a process sent */
}

static void catch_deaths(void)
{
	static const int deaths[] = { THREAD_FAULTS };
	const struct sigaction sa = { .sa_handler = die,
				      .sa_flags = (int)SA_RESETHAND };

	for (unsigned i = 0; i < ARRAY_SIZE(deaths); i++)
		sigaction(deaths[i], &sa, NULL);
}

static void write_lines(void *arg)
{
	mutex_lock(&queue.lock);
	for (;;) {
		if (queue.n)
			write_first();
		else if (queue.stops)
			break;
		else
			pthread_cond_wait(&queue.more, &queue.lock);
	}
	queue.runs = false;
	mutex_unlock(&queue.lock);
}

int log_start(void)
{
	int err;

	mutex_lock(&queue.lock);
	log_sink_look();
	queue.stops = false;
	queue.runs = true;
	mutex_unlock(&queue.lock);
	if (!SANITIZED)			/* it has other handlers */
		catch_deaths();
	err = thread_start(&queue.thread, "log", write_lines, NULL);
	mutex_lock(&queue.lock);
	queue.started = err == 0;
	if (err < 0)
		queue.runs = false;
	mutex_unlock(&queue.lock);
	return err;
}

void log_stop(void)
{
	struct timespec until;
	bool started;

	mutex_lock(&queue.lock);
	started = queue.started;
	queue.started = false;
	queue.stops = true;
	pthread_cond_signal(&queue.more);
	mutex_unlock(&queue.lock);
	if (!started)
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += STOP_S;
	/* It might not come back: then it ends with the process. */
	pthread_timedjoin_np(queue.thread, NULL, &until);
}

static void __attribute__((format(printf, 3, 0)))
print_line(enum log_level level, const struct log_fields *fields,
	   const char *fmt, va_list ap)
{
	char line[LINE_SIZE];
	int start = (int)log_sink_prefix(line, sizeof(line), level, fields);
	int n = vsnprintf(line + start, sizeof(line) - (size_t)start, fmt, ap);

	if (n < 0)
		return;
	n = MIN(start + n, LINE_SIZE - 2);
	/* A message can contain a peer's text: keep it one line, and plain. */
	for (int i = start; i < n; i++)
		memset(line + i, '?', terminal_obeys(line + i));
	line[n++] = '\n';
	if (!put_line(line, (size_t)n))
		log_sink_write(line, (size_t)n);
}

void log_print(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(level, NULL, fmt, ap);
	va_end(ap);
}

void log_lines(enum log_level level, const char *text)
{
	const char *end;

	for (const char *line = text; line; line = *end ? end + 1 : NULL) {
		end = strchrnul(line, '\n');
		log_at(level, "%.*s", (int)(end - line), line);
	}
}

void log_print_with(enum log_level level, const struct log_fields *fields,
		    const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	print_line(level, fields, fmt, ap);
	va_end(ap);
}

bool log_limit_pass(struct log_limit *limit, enum log_level level)
{
	long now = clock_coarse_s();
	long window = atomic_load(&limit->window);
	unsigned n;

	if (window != now + 1 &&
	    atomic_compare_exchange_strong(&limit->window, &window, now + 1)) {
		n = atomic_exchange(&limit->count, 0);
		if (n > LIMIT_PER_SECOND)
			log_print(level, n == LIMIT_PER_SECOND + 1 ?
				  "%u message like the next one left out" :
				  "%u messages like the next one left out",
				  n - LIMIT_PER_SECOND);
	}
	return atomic_fetch_add(&limit->count, 1) < LIMIT_PER_SECOND;
}
