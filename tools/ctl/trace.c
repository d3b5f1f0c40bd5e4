/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * trace - prints a line for each call that the server has ended.
 *
 * The server sends an object of JSON a line behind its answer: one for each
 * call, the number of dropped calls, and the sums at the end.
 */
#include "tools/ctl/ctl.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* In the order in which a call has them. */
static const char *const parts[] = {
	"decode", "worker", "wait", "backend", "send",
};

/* ---- lines */

static void print_time(long long ns)
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[16];

	localtime_r(&s, &tm);
	strftime(text, sizeof(text), "%H:%M:%S", &tm);
	printf("%s.%06lld", text, ns % 1000000000 / 1000);
}

static const char *or_dash(const json_t *o, const char *key)
{
	return json_string_value(json_object_get(o, key)) ? : "-";
}

static void print_parts(const json_t *call)
{
	const json_t *ns = json_object_get(call, "parts");
	const char *before = ": ";

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		long long n = integer_of(ns, parts[i]);

		if (n == 0)
			continue;
		printf("%s%s %.1f", before, parts[i], (double)n / 1000);
		if (!strcmp(parts[i], "wait"))
			printf(" (%s)", or_dash(call, "why"));
		before = ", ";
	}
}

static void print_call(json_t *call)
{
	const char *client;
	bool is_v6;

	ctl_plain(call);
	client = or_dash(call, "client");
	is_v6 = strchr(client, ':');
	print_time(integer_of(call, "time"));
	printf(" %s%s%s:%lld %s %s %s %s %s, %.1f us", is_v6 ? "[" : "", client,
	       is_v6 ? "]" : "", integer_of(call, "port"),
	       or_dash(call, "transport"), or_dash(call, "export"),
	       or_dash(call, "program"), or_dash(call, "procedure"),
	       or_dash(call, "status"), (double)integer_of(call, "ns") / 1000);
	print_parts(call);
	printf("; %lld bytes, reply %lld\n", integer_of(call, "call"),
	       integer_of(call, "reply"));
}

struct tracing {
	bool json;
	bool has_end;
};

static void tell_line(struct tracing *t, const char *line)
{
	json_error_t error;
	json_t *o = json_loads(line, 0, &error);

	t->has_end = json_object_get(o, "calls");
	if (t->json)
		fputs(line, stdout);
	else if (json_object_get(o, "ns"))
		print_call(o);
	else if (t->has_end)
		fprintf(stderr, "gannetctl: %lld calls, %lld dropped\n",
			integer_of(o, "calls"), integer_of(o, "dropped"));
	else if (json_object_get(o, "dropped"))
		fprintf(stderr, "gannetctl: %lld calls dropped so far: they "
			"come too fast\n", integer_of(o, "dropped"));
	json_decref(o);
}

/* Prints until the server ends.  Takes @fd.  The exit status. */
static int print_lines(struct tracing *t, int fd)
{
	FILE *in = fdopen(fd, "r");
	char *line = NULL;
	size_t size = 0;

	if (!in) {
		close(fd);
		return complain("%s", strerror(errno));
	}
	setvbuf(stdout, NULL, _IOLBF, 0);	/* also into a pipe */
	while (!ferror(stdout) && getline(&line, &size, in) > 0)
		tell_line(t, line);
	free(line);
	fclose(in);
	if (fflush(stdout) || ferror(stdout))	/* it has seen enough */
		return errno == EPIPE ? EXIT_SUCCESS :
		       complain("standard output: %s", strerror(errno));
	return t->has_end ? EXIT_SUCCESS :
	       complain("the server ended early: the last calls are missing");
}

/* ---- usage */

static const struct stream_command trace_command = {
	.name = "trace",
	.does = "Prints a line for each call that ends, with where its time "
		"went",
	.options = {
		{ "client", "ADDRESS", "of this client, or network, only",
		  STREAM_TEXT },
		{ "export", "PATH", "of this export only", STREAM_TEXT },
		{ "proc", "NAME,...", "of these procedures only", STREAM_TEXT },
		{ "slower", "MS", "that took so many milliseconds: 2.5",
		  STREAM_MS },
		{ "count", "N", "end after N calls", STREAM_NUMBER },
		{ "duration", "S", "end after S seconds", STREAM_NUMBER },
		{ "json", NULL, NULL, STREAM_JSON },
	},
};

int ctl_trace(const struct ctl *ctl, int argc, char **argv)
{
	struct stream_args a = { .options = json_object(), .json = ctl->json };
	int status = ctl_stream_arguments(&trace_command, argc, argv, &a), fd;
	struct tracing t = { .json = a.json };

	if (status < 0) {
		fd = ctl_connect(ctl, CTL_PATIENCE);
		status = EXIT_FAILURE;
		if (fd >= 0 && ctl_stream_begin(fd, "trace", a.options))
			status = print_lines(&t, fd);
		else if (fd >= 0)
			close(fd);
	}
	json_decref(a.options);
	return status;
}
