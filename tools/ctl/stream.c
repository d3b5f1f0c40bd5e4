/* SPDX-License-Identifier: BSD-2-Clause */
/* stream - the data that the server sends after its answer, until Ctrl-C. */
#include "tools/ctl/ctl.h"

#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MAX	4096

/*
 * The thread takes the signal, so none interrupts a read or a write.  Then the
 * server sends the rest, and ends.  A second signal ends the program at once,
 * but not one that comes with the first: timeout(1) sends it to the program and
 * to its group.
 */
static void *await_signal(void *arg)
{
	const struct timespec by_hand = { .tv_nsec = 500 * 1000 * 1000 };
	const struct timespec none = { .tv_nsec = 0 };
	int fd = (int)(intptr_t)arg, sig;
	sigset_t ends;

	pthread_sigmask(SIG_SETMASK, NULL, &ends);
	while (sigwait(&ends, &sig))
		;
	shutdown(fd, SHUT_WR);
	nanosleep(&by_hand, NULL);
	while (sigtimedwait(&ends, NULL, &none) > 0)
		;
	pthread_sigmask(SIG_UNBLOCK, &ends, NULL);
	for (;;)
		pause();
	return NULL;
}

/* Without a thread the signals end the program, as they do by default. */
static void catch_signals(int fd)
{
	sigset_t ends, before;
	pthread_t thread;

	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_SETMASK, &ends, &before);
	if (pthread_create(&thread, NULL, await_signal, (void *)(intptr_t)fd))
		pthread_sigmask(SIG_SETMASK, &before, NULL);
	else
		pthread_detach(thread);
}

/* Reads the answer to its end.  NULL: no answer. */
static json_t *read_answer(int fd)
{
	char text[ANSWER_MAX];
	json_error_t error;
	size_t len = 0;

	while (len < sizeof(text)) {
		ssize_t n = recv(fd, text + len, 1, 0);

		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		if (n == 1 && text[len++] == '\n')
			return json_loadb(text, len, 0, &error);
	}
	return NULL;
}

/* True if the server begins; else after a message. */
static bool ask_for(int fd, const char *command, json_t *options)
{
	json_t *request = json_pack("{s:i, s:s, s:O}", "v", SPOKEN, "command",
				    command, "options", options);
	char *text = request ? json_dumps(request, JSON_COMPACT) : NULL;
	json_t *reply = NULL;
	bool yes;

	if (text && send(fd, text, strlen(text), 0) == (ssize_t)strlen(text) &&
	    send(fd, "\n", 1, 0) == 1)
		reply = read_answer(fd);
	yes = json_object_get(reply, "result");
	if (!yes)
		complain("%s", json_string_value(
			 json_object_get(reply, "error")) ? :
			 "the server does not answer");
	free(text);
	json_decref(request);
	json_decref(reply);
	return yes;
}

bool ctl_stream_begin(int fd, const char *command, json_t *options)
{
	const struct timeval for_ever = { .tv_sec = 0 };

	catch_signals(fd);
	if (!ask_for(fd, command, options))
		return false;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &for_ever, sizeof(for_ever));
	return true;
}

/* ---- arguments */

static bool stream_number(json_t *options, const char *name, bool is_size)
{
	static const char units[] = "KMG";
	unsigned long long n;
	const char *unit;
	char *end;

	errno = 0;
	n = strtoull(optarg, &end, 10);
	if (*optarg < '0' || *optarg > '9' || errno || n > UINT32_MAX || n == 0)
		return false;
	if (is_size && *end && (unit = strchr(units, *end))) {
		n <<= 10 * (unit - units + 1);
		end++;
	}
	return !*end && json_object_set_new(options, name,
					    json_integer((json_int_t)n)) == 0;
}

/* Milliseconds, as us. */
static bool set_ms(json_t *options, const char *name)
{
	char *end;
	double ms = strtod(optarg, &end);

	return *optarg >= '0' && *optarg <= '9' && !*end && ms <= 4e6 &&
	       json_object_set_new(options, name,
			json_integer((json_int_t)(ms * 1000 + 0.5))) == 0;
}

static bool set_option(const struct stream_option *o, struct stream_args *a)
{
	switch (o->kind) {
	case STREAM_FILE:
		a->file = optarg;
		return true;
	case STREAM_JSON:
		a->json = true;
		return true;
	case STREAM_TEXT:
		return json_object_set_new(a->options, o->name,
					   json_string(optarg)) == 0;
	case STREAM_MS:
		return set_ms(a->options, o->name);
	default:
		return stream_number(a->options, o->name,
				     o->kind == STREAM_SIZE);
	}
}

static int stream_help(const struct stream_command *c)
{
	const struct stream_option *o;
	char left[32];

	printf("Usage: gannetctl %s %s[OPTION]...\n%s, until Ctrl-C.\n\n",
	       c->name, c->has_file ? "-w FILE " : "", c->does);
	for (o = c->options; o->name; o++) {
		snprintf(left, sizeof(left), "%s--%s %s",
			 o->kind == STREAM_FILE ? "-w, " : "", o->name,
			 o->argument ? : "");
		if (o->help)
			printf("  %-18s  %s\n", left, o->help);
	}
	return EXIT_SUCCESS;
}

/* getopt's value of the first option. */
#define FIRST	256

int ctl_stream_arguments(const struct stream_command *c, int argc, char **argv,
			 struct stream_args *a)
{
	static const char *const expected[] = {
		[STREAM_TEXT] = "text in UTF-8", [STREAM_MS] = "milliseconds",
		[STREAM_NUMBER] = "a number from 1 on",
		[STREAM_SIZE] = "a number from 1 on",
	};
	struct option longs[STREAM_OPTIONS + 2] = { 0 };
	const struct stream_option *o = c->options;
	int n = 0, val;

	for (; o[n].name; n++)
		longs[n] = (struct option){ o[n].name, o[n].argument != NULL,
					    NULL, FIRST + n };
	longs[n] = (struct option){ "help", no_argument, NULL, 'h' };
	optind = 0;
	while ((val = getopt_long(argc, argv, c->has_file ? "w:h" : "h", longs,
				  NULL)) != -1) {
		/* The file is the first option. */
		n = val == 'w' ? 0 : val - FIRST;
		if (val == 'h')
			return stream_help(c);
		if (val != '?' && set_option(&o[n], a))
			continue;
		if (val != '?')
			complain("--%s %s: expected %s", o[n].name, optarg,
				 expected[o[n].kind]);
		complain("see gannetctl %s --help", c->name);
		return USAGE;
	}
	if (optind == argc && (a->file || !c->has_file))
		return -1;
	complain("%s: expected %soptions, see gannetctl %s --help", c->name,
		 c->has_file ? "-w FILE and " : "", c->name);
	return USAGE;
}
