/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * top - shows the current load by client, export or procedure, repeatedly.
 *
 * Operation: the server reports the sums since its start; each round subtracts
 * the sums of the previous round.  On a terminal a round overwrites the one
 * before, and keys choose; else each is printed behind the other.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "tools/ctl/who.h"
#include "lib/histogram.h"

#define MAX_INTERVAL	3600.0
#define NS		1e9

/* A row's part of one round. */
struct top_row {
	const char *name;		/* borrowed of the round's answer */
	uint64_t    calls;
	uint64_t    failed;
	uint64_t    held;		/* times that a limit held one back */
	uint64_t    held_ns;		/* together */
	uint64_t    read;		/* bytes */
	uint64_t    written;
	uint64_t    p50, p99, p999;	/* ns */
};

struct top {
	struct ctl	c;
	const char	*by;
	char		 order;		/* 'o', 'b' or 'l' */
	double		 interval;	/* seconds */
	unsigned	 rounds;	/* 0: until it is ended */
	bool		 live;		/* on a terminal */
	json_t		*before;	/* rows by name; NULL: no round yet */
	double		 at;		/* its time, in seconds */
};

static volatile sig_atomic_t top_ended;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / NS;
}

/* ---- a round */

/* Counts the histogram of a row, or takes it away (@sign -1). */
static void add_counts(uint64_t counts[HISTOGRAM_BUCKETS], const json_t *row,
		       int sign)
{
	const json_t *pair;
	size_t i;

	json_array_foreach(json_object_get(row, "histogram"), i, pair) {
		json_int_t below = json_integer_value(json_array_get(pair, 0));
		json_int_t n = json_integer_value(json_array_get(pair, 1));

		counts[histogram_bucket((uint64_t)below - 1)] +=
			(uint64_t)(sign * n);
	}
}

static uint64_t since(const json_t *row, const json_t *before, const char *key)
{
	return (uint64_t)(integer_of(row, key) - integer_of(before, key));
}

/* Subtracts; @before is NULL for a row that is new. */
static void top_subtract(const json_t *row, const json_t *before,
			 struct top_row *out)
{
	uint64_t counts[HISTOGRAM_BUCKETS] = { 0 };

	/* Others have taken the place. */
	if (before && integer_of(row, "calls") < integer_of(before, "calls"))
		before = NULL;
	add_counts(counts, row, 1);
	add_counts(counts, before, -1);
	out->name = row_name(row, "name");
	out->calls = since(row, before, "calls");
	out->failed = since(row, before, "failed");
	out->held = since(row, before, "held_back");
	out->held_ns = since(row, before, "held_back_ns");
	out->read = since(row, before, "bytes_read");
	out->written = since(row, before, "bytes_written");
	out->p50 = histogram_quantile(counts, 500);
	out->p99 = histogram_quantile(counts, 990);
	out->p999 = histogram_quantile(counts, 999);
}

static int by_calls(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return (x->calls < y->calls) - (x->calls > y->calls);
}

static int by_bytes(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;
	uint64_t n = x->read + x->written, m = y->read + y->written;

	return n == m ? by_calls(a, b) : (n < m) - (n > m);
}

static int by_latency(const void *a, const void *b)
{
	const struct top_row *x = a, *y = b;

	return x->p99 == y->p99 ? by_calls(a, b) :
	       (x->p99 < y->p99) - (x->p99 > y->p99);
}

/* The rows that had calls, in order; @n of them.  NULL: no memory. */
static struct top_row *top_rows(const struct top *t, const json_t *answer,
				size_t *n)
{
	const json_t *list = json_object_get(answer, "rows"), *row;
	struct top_row *rows = calloc(json_array_size(list) + 1,
				      sizeof(*rows));
	size_t i;

	*n = 0;
	json_array_foreach(list, i, row) {
		if (!rows)
			return NULL;
		top_subtract(row, json_object_get(t->before,
						  row_name(row, "name")),
			     &rows[*n]);
		*n += rows[*n].calls > 0;
	}
	if (rows)
		qsort(rows, *n, sizeof(*rows), t->order == 'b' ? by_bytes :
		      t->order == 'l' ? by_latency : by_calls);
	return rows;
}

/* Keeps the rows for the next round.  Takes @answer. */
static void top_keep(struct top *t, json_t *answer)
{
	json_t *row;
	size_t i;

	json_decref(t->before);
	t->before = json_object();
	json_array_foreach(json_object_get(answer, "rows"), i, row)
		json_object_set(t->before, row_name(row, "name"), row);
	json_decref(answer);
}

/* ---- output */

static void print_json(const struct top *t, const struct top_row *rows,
		       size_t n, double seconds)
{
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < n; i++) {
		const struct top_row *r = &rows[i];

		json_array_append_new(list, json_pack(
			"{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}",
			"name", r->name, "calls", (json_int_t)r->calls,
			"failed", (json_int_t)r->failed, "held_back",
			(json_int_t)r->held, "held_back_ns",
			(json_int_t)r->held_ns, "bytes_read",
			(json_int_t)r->read, "bytes_written",
			(json_int_t)r->written, "p50_ns", (json_int_t)r->p50,
			"p99_ns", (json_int_t)r->p99, "p999_ns",
			(json_int_t)r->p999));
	}
	o = json_pack("{s:s, s:f, s:o}", "by", t->by, "seconds", seconds,
		      "rows", list);
	json_dumpf(o, stdout, JSON_COMPACT);
	printf("\n");
	json_decref(o);
}

/* The room of a table: rows, and bytes of a name next to its numbers. */
struct room {
	size_t rows;
	int    name, line;
};

static struct room table_room(const struct top *t)
{
	enum { NUMBERS = 65, NAME_MIN = 15, NAME = 32 };
	struct winsize w;

	if (!t->live)
		return (struct room){ SIZE_MAX, NAME, NAME + NUMBERS };
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_row < 4 ||
	    w.ws_col < NAME_MIN + NUMBERS)
		w = (struct winsize){ .ws_row = 24, .ws_col = 80 };
	return (struct room){ w.ws_row - 3u, w.ws_col - NUMBERS, w.ws_col };
}

/* A long name ends most unlike others: the end of it that fits in @width, and a
 * mark; whole where the output is not a screen. */
static const char *name_text(const struct top *t, const char *name, int width,
			     char out[static 512])
{
	size_t len = strlen(name), keep = (size_t)width - 1;
	const char *tail = name + len - keep;

	if (!t->live || len <= (size_t)width || keep >= 500)
		return name;
	while (((unsigned char)*tail & 0xc0) == 0x80)	/* within a letter */
		tail++;
	snprintf(out, 512, "<%s", tail);
	return out;
}

static void print_table(const struct top *t, const struct top_row *rows,
			size_t n, double seconds)
{
	const char *end = t->live ? "\033[K\n" : "\n";
	char read[SHORT_TEXT], written[SHORT_TEXT], p50[SHORT_TEXT],
	     p99[SHORT_TEXT], p999[SHORT_TEXT], name[512];
	struct room room = table_room(t);

	if (t->live) {
		snprintf(name, sizeof(name), "top by %s, each %g s; c client, "
			 "e export, p procedure; sort o b l; q end", t->by,
			 t->interval);
		printf("\033[H%.*s%s", room.line, name, end);
	}
	printf("%-*s %7s %7s %6s %7s %9s %7s %7s %7s%s", room.name, t->by,
	       "calls/s", "fails/s", "held/s", "read/s", "written/s", "p50",
	       "p99", "p99.9", end);
	for (size_t i = 0; i < n && i < room.rows; i++) {
		const struct top_row *r = &rows[i];

		printf("%-*s %7.0f %7.0f %6.0f %7s %9s %7s %7s %7s%s",
		       room.name, name_text(t, r->name, room.name, name),
		       (double)r->calls / seconds, (double)r->failed / seconds,
		       (double)r->held / seconds,
		       amount_text((double)r->read / seconds, read),
		       amount_text((double)r->written / seconds, written),
		       time_text(r->p50, p50), time_text(r->p99, p99),
		       time_text(r->p999, p999), end);
	}
	if (t->live)
		printf("\033[J");
}

/* Asks, and prints the changes since the last round; the first one prints
 * nothing.  False: the server does not answer, or the output has gone. */
static bool top_round(struct top *t)
{
	json_t *answer = ctl_ask(&t->c, "latency", t->by, NULL, CTL_PATIENCE);
	double now = now_s(), seconds = now - t->at;
	struct top_row *rows;
	size_t n;

	if (!answer)
		return false;
	if (!t->c.json)
		ctl_plain(answer);
	if (t->before) {
		rows = top_rows(t, answer, &n);
		if (t->c.json)
			print_json(t, rows, n, seconds);
		else
			print_table(t, rows, n, seconds);
		free(rows);
	}
	top_keep(t, answer);
	t->at = now;
	return fflush(stdout) == 0;
}

/* ---- keys */

/* Starts again with the other accounts. */
static void choose(struct top *t, const char *by)
{
	t->by = by;
	json_decref(t->before);
	t->before = NULL;
}

/* False: q. */
static bool take_key(struct top *t, char key)
{
	switch (key) {
	case 'c':
		choose(t, "client");
		break;
	case 'e':
		choose(t, "export");
		break;
	case 'p':
		choose(t, "procedure");
		break;
	case 'o':
	case 'b':
	case 'l':
		t->order = key;
		break;
	case 'q':
		return false;
	}
	return true;
}

/* Waits for the next round.  False: the end was asked for. */
static bool top_wait(struct top *t)
{
	struct pollfd p = { .fd = t->live ? STDIN_FILENO : -1,
			    .events = POLLIN };
	double until = now_s() + t->interval, left;
	char key;

	while (!top_ended && (left = until - now_s()) > 0) {
		if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		if (read(STDIN_FILENO, &key, 1) != 1 || !take_key(t, key))
			return false;
		if (!t->before && !top_round(t))
			return false;
	}
	return !top_ended;
}

static void end_top(int sig)
{
	top_ended = 1;
}

static int top_run(struct top *t)
{
	bool ok = top_round(t);

	for (unsigned i = 0; ok && (i < t->rounds || !t->rounds); i++) {
		if (!top_wait(t))
			break;
		ok = top_round(t);
	}
	json_decref(t->before);
	return ok ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* The terminal gives each key at once, and the screen comes back at the end. */
static int run_live(struct top *t)
{
	const struct sigaction end = { .sa_handler = end_top };
	struct termios was, keys;
	int status;

	if (tcgetattr(STDIN_FILENO, &was) < 0)
		return complain("standard input: %s", strerror(errno));
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	keys = was;
	keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	tcsetattr(STDIN_FILENO, TCSANOW, &keys);
	printf("\033[?1049h\033[?25l");
	status = top_run(t);
	printf("\033[?25h\033[?1049l");
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &was);
	return status;
}

/* ---- options */

static bool top_number(const char *text, double min, double max, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && !*end && *out >= min && *out <= max;
}

/* False: they are wrong, and a message was printed. */
static bool read_top_options(struct top *t, int argc, char **argv)
{
	static const struct option options[] = {
		{ "by", required_argument, NULL, 'b' },
		{ "count", required_argument, NULL, 'n' },
		{ "interval", required_argument, NULL, 'i' },
		{ "json", no_argument, NULL, 'j' },
		{ "socket", required_argument, NULL, 's' },
		{ "sort", required_argument, NULL, 'o' },
		{ NULL, 0, NULL, 0 },
	};
	double count = 0;
	bool ok = true;
	int o;

	optind = 0;
	while (ok && (o = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (o == 'b')
			ok = (t->by = who_by(optarg)) != NULL;
		else if (o == 'n')
			ok = top_number(optarg, 1, 1e9, &count);
		else if (o == 'i')
			ok = top_number(optarg, 0.1, MAX_INTERVAL,
					 &t->interval);
		else if (o == 'j')
			t->c.json = true;
		else if (o == 's')
			t->c.path = optarg;
		else if (o == 'o')
			t->order = *optarg;
		else
			ok = false;
	}
	t->rounds = (unsigned)count;
	if (!ok || optind < argc || !strchr("obl", t->order) || !t->order)
		complain("top: expected --by client, export or procedure, "
			 "--sort o, b or l, --interval 0.1 to 3600 (seconds), "
			 "--count 1 or more");
	return ok && optind == argc && t->order && strchr("obl", t->order);
}

int run_top(const struct ctl *c, int argc, char **argv)
{
	struct top t = { .c = *c, .by = "client", .order = 'o',
			 .interval = 1 };

	if (!read_top_options(&t, argc, argv))
		return USAGE;
	t.live = !t.c.json && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	return t.live ? run_live(&t) : top_run(&t);
}
