/* SPDX-License-Identifier: BSD-2-Clause */
/* stream - what the server sends behind its answer, until Ctrl-C. */
#include "tools/ctl/ctl.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
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

bool ctl_number(json_t *options, const char *name, const char *text,
		bool is_size)
{
	static const char units[] = "KMG";
	unsigned long long n;
	const char *unit;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || errno || n > UINT32_MAX || n == 0)
		return false;
	if (is_size && *end && (unit = strchr(units, *end))) {
		n <<= 10 * (unit - units + 1);
		end++;
	}
	return !*end && json_object_set_new(options, name,
					    json_integer((json_int_t)n)) == 0;
}
