/* SPDX-License-Identifier: BSD-2-Clause */
/* ask - gives the server one command, and takes its answer. */
#include "tools/ctl/ctl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

char complaint[512];

int complain(const char *fmt, ...)
{
	char *text;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	strncpy(complaint, len < 0 ? strerror(ENOMEM) : text,
		sizeof(complaint) - 1);
	fprintf(stderr, "gannetctl: %s\n", len < 0 ? complaint : text);
	if (len >= 0)
		free(text);
	return EXIT_FAILURE;
}

int ctl_connect(const struct ctl *c, unsigned seconds)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	const struct timeval patience = { .tv_sec = seconds };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (strlen(c->path) >= sizeof(at.sun_path)) {
		errno = ENAMETOOLONG;
	} else if (fd >= 0) {
		strcpy(at.sun_path, c->path);
		if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
			return fd;
	}
	complain("%s: %s%s", c->path, strerror(errno), errno == ENOENT ||
		 errno == ECONNREFUSED ? " (does gannetd run with this state "
		 "directory? see --socket)" : errno == EACCES ? " (root, the "
		 "server's user and members of the group gannet may ask)" : "");
	if (fd >= 0)
		close(fd);
	return -1;
}

static void send_request(int fd, const json_t *request)
{
	char *text = json_dumps(request, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0, at = 0;
	ssize_t n = 0;

	if (text)
		text[len++] = '\n';	/* in the place of the zero */
	/* The server answers a request that is too long before its end, and
	 * closes: that answer is to be read all the same. */
	for (; at < len && n >= 0; at += (size_t)n)
		n = send(fd, text + at, len - at, MSG_NOSIGNAL);
	free(text);
}

/* Takes the connection @fd.  The answer, or NULL and *@err. */
static json_t *exchange(int fd, const json_t *request, int *err)
{
	FILE *f = fdopen(fd, "r");
	json_t *reply;
	json_error_t error;

	if (!f) {
		*err = errno;
		close(fd);
		return NULL;
	}
	send_request(fd, request);
	errno = 0;
	reply = json_loadf(f, 0, &error);
	*err = errno;
	fclose(f);
	return reply;
}

static json_t *result_of(const json_t *reply, int err, unsigned seconds)
{
	json_t *result = json_object_get(reply, "result");
	const char *text = json_string_value(json_object_get(reply, "error"));

	if (result)
		return json_incref(result);
	if (!text && err == EAGAIN)
		complain("no answer within %u seconds; what was asked for "
			 "may still be done (see the server's log)", seconds);
	else
		complain("%s", text ? text : "the server does not answer");
	return NULL;
}

json_t *ctl_ask(const struct ctl *c, const char *command,
		const char *argument, json_t *options, unsigned seconds)
{
	json_t *request = json_pack("{s:i, s:s, s:s*, s:o*}", "v", SPOKEN,
				    "command", command, "argument", argument,
				    "options", options);
	json_t *reply = NULL, *result = NULL;
	int fd, err = 0;

	if (!request) {
		complain("%s: expected text in UTF-8", command);
		return NULL;
	}
	fd = ctl_connect(c, seconds);
	if (fd >= 0) {
		reply = exchange(fd, request, &err);
		result = result_of(reply, err, seconds);
	}
	json_decref(request);
	json_decref(reply);
	return result;
}

int ctl_print(const struct ctl *c, json_t *result,
	      void (*print)(const json_t *result))
{
	if (!result)
		return EXIT_FAILURE;
	if (c->json) {
		json_dumpf(result, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
		printf("\n");
	} else {
		ctl_plain(result);
		print(result);
	}
	json_decref(result);
	return fflush(stdout) == 0 ? EXIT_SUCCESS :
	       complain("standard output: %s", strerror(errno));
}
