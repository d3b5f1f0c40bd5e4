/* SPDX-License-Identifier: BSD-2-Clause */
/* control - answers gannetctl(8) at a local socket, in JSON. */
#include "daemon/control.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "lib/thread.h"

STAT(control_requests, "requests of gannetctl answered");
STAT(control_refused, "requests of gannetctl that were not understood");

/* For a request to come, and again for an answer to be taken. */
#define PATIENCE_NS	(2 * NS_PER_S)
/* A line of exports(5) whose bytes are escaped. */
#define MAX_REQUEST	32768
#define GROUP		"gannet"

struct control {
	const struct control_command *commands;
	void		*arg;
	struct sockaddr_un at;
	int		 fd;
	int		 stop;		/* an eventfd */
	pthread_t	 thread;
};

/* See control_find_group(). */
static bool has_group;
static gid_t group;

/* ---- a request */

/* A request or an answer under way. */
struct exchange {
	int		 fd;
	int		 stop;
	uint64_t	 until;		/* clock_ns() */
	/* It goes on after its answer; or NULL. */
	const struct control_command *stream;
	bool		 given;		/* with its connection, to a command */
};

struct control_call {
	int		 fd;
	json_t		*request;
	const char	*argument;	/* in the request */
	const json_t	*options;	/* in the request, or NULL */
};

static json_t *answer_error(const char *text)
{
	stat_inc(control_refused);
	return json_pack("{s:i, s:s}", "v", CONTROL_VERSION, "error", text);
}

/* The members of a request. */
struct request {
	int	    version;
	const char *command;
	const char *argument;	/* or NULL */
	json_t	   *options;	/* or NULL */
	json_t	   *whole;	/* all are borrowed from it; NULL: given
				 * away */
};

/* Has the command answer later.  NULL, or the answer: there is no memory. */
static json_t *control_give(struct control *c, struct request *r,
			    const struct control_command *command,
			    struct exchange *x)
{
	struct control_call *call = malloc(sizeof(*call));

	if (!call)
		return answer_error("out of memory");
	*call = (struct control_call){ x->fd, r->whole, r->argument,
				       r->options };
	r->whole = NULL;
	x->given = true;
	command->later(c->arg, call);
	return NULL;
}

static json_t *control_run(struct control *c, struct request *r,
			   struct exchange *x)
{
	const struct control_command *command = c->commands;
	const char *wrong = "out of memory";
	json_t *result;

	while (command->name && strcmp(command->name, r->command) != 0)
		command++;
	if (!command->name)
		return answer_error("there is no such command");
	if (command->later)
		return control_give(c, r, command, x);
	result = command->open ? command->open(c->arg, r->options, &wrong) :
		 command->run(c->arg, r->argument, &wrong);
	if (!result)
		return answer_error(wrong);
	if (command->open)
		x->stream = command;
	stat_inc(control_requests);
	return json_pack("{s:i, s:o}", "v", CONTROL_VERSION, "result", result);
}

static json_t *control_answer(struct control *c, const char *text, size_t len,
			      struct exchange *x)
{
	struct request r = { .version = 0 };
	json_error_t error;
	json_t *reply;

	r.whole = json_loadb(text, len, 0, &error);
	if (!r.whole)
		return answer_error(error.text);
	if (json_unpack_ex(r.whole, &error, 0, "{s:i, s:s, s?s, s?o}", "v",
			   &r.version, "command", &r.command, "argument",
			   &r.argument, "options", &r.options) < 0)
		reply = answer_error(error.text);
	else if (r.version != CONTROL_VERSION)
		reply = answer_error("this server speaks version 1");
	else
		reply = control_run(c, &r, x);
	json_decref(r.whole);
	return reply;
}

/* ---- connections */

/* Waits until the connection can be read or written.  False: the time is over,
 * or the server ends. */
static bool control_wait(const struct exchange *x, short events)
{
	struct pollfd p[2] = { { .fd = x->fd, .events = events },
			       { .fd = x->stop, .events = POLLIN } };
	uint64_t now = clock_ns();

	return now < x->until &&
	       poll(p, 2, (int)((x->until - now) / 1000000) + 1) > 0 &&
	       !p[1].revents;
}

/* Reads until the end of the line.  The bytes before it, or 0: there is no
 * request. */
static size_t read_line_of(const struct exchange *x, char *out)
{
	size_t len = 0;
	char *end = NULL;

	while (!end && len < MAX_REQUEST && control_wait(x, POLLIN)) {
		ssize_t n = recv(x->fd, out + len, MAX_REQUEST - len,
				 MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return 0;
		if (n < 0)
			continue;
		end = memchr(out + len, '\n', (size_t)n);
		len += (size_t)n;
	}
	return end ? (size_t)(end - out) : 0;
}

/* False: not all of it was taken. */
static bool send_answer(const struct exchange *x, const json_t *reply)
{
	char *text = json_dumps(reply, JSON_COMPACT);
	size_t len = text ? strlen(text) : 0, at = 0;

	if (!text)
		return false;
	text[len++] = '\n';		/* in the place of the zero */
	while (at < len && control_wait(x, POLLOUT)) {
		ssize_t n = send(x->fd, text + at, len - at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			break;
		at += n < 0 ? 0 : (size_t)n;
	}
	free(text);
	return at == len;
}

const char *control_call_argument(const struct control_call *call)
{
	return call->argument;
}

const json_t *control_call_options(const struct control_call *call)
{
	return call->options;
}

void control_call_end(struct control_call *call, json_t *result,
		      const char *error)
{
	const struct exchange x = {
		.fd = call->fd, .stop = -1, .until = clock_ns() + PATIENCE_NS,
	};
	json_t *reply = NULL;

	if (result) {
		stat_inc(control_requests);
		reply = json_pack("{s:i, s:o}", "v", CONTROL_VERSION, "result",
				  result);
	} else if (error) {
		reply = answer_error(error);
	}
	if (reply)
		send_answer(&x, reply);
	json_decref(reply);
	json_decref(call->request);
	close(call->fd);
	free(call);
}

/* Takes the connection. */
static void serve_one(struct control *c, int fd)
{
	struct exchange x = { .fd = fd, .stop = c->stop,
			      .until = clock_ns() + PATIENCE_NS };
	bool sent;
	char request[MAX_REQUEST];
	json_t *reply = NULL;
	size_t len;

	len = read_line_of(&x, request);
	if (len > 0)
		reply = control_answer(c, request, len, &x);
	else
		reply = answer_error("expected one line of JSON, of less than "
				     "32768 bytes");
	if (x.given)
		return;
	x.until = clock_ns() + PATIENCE_NS;
	sent = reply && send_answer(&x, reply);
	json_decref(reply);
	if (x.stream)
		x.stream->stream(c->arg, sent ? fd : -1);
	if (!x.stream || !sent)
		close(fd);
}

static void run_control(void *arg)
{
	struct control *c = arg;
	struct pollfd p[2] = { { .fd = c->fd, .events = POLLIN },
			       { .fd = c->stop, .events = POLLIN } };

	while (poll(p, 2, -1) < 0 || !p[1].revents) {
		int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0) {
			/* Perhaps there is no descriptor left. */
			usleep(10000);
			continue;
		}
		serve_one(c, fd);
	}
}

/* ---- the socket */

/* True if a process has this socket. */
static bool is_taken(const struct sockaddr_un *at)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	bool yes = fd >= 0 &&
		   (connect(fd, (const struct sockaddr *)at,
			    sizeof(*at)) == 0 || errno == EAGAIN);

	if (fd >= 0)
		close(fd);
	return yes;
}

/* Removes the socket of a server that did not end by itself, and nothing else.
 * 0 or -errno. */
static int clear_path(const struct sockaddr_un *at)
{
	struct stat st;

	if (lstat(at->sun_path, &st) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (is_taken(at))
		return -EBUSY;
	return unlink(at->sun_path) < 0 ? -errno : 0;
}

static int make_socket(struct control *c)
{
	int err;

	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return -errno;
	err = clear_path(&c->at);
	if (err)
		return err;
	/* The file has this mode from its begin; the kernel lets nobody else
	 * connect (unix(7)). */
	if (fchmod(c->fd, has_group ? 0660 : 0600) < 0 ||
	    bind(c->fd, (struct sockaddr *)&c->at, sizeof(c->at)) < 0)
		return -errno;
	if ((has_group && lchown(c->at.sun_path, (uid_t)-1, group) < 0) ||
	    listen(c->fd, 16) < 0) {
		err = -errno;
		unlink(c->at.sun_path);
	}
	return err;
}

void control_find_group(void)
{
	const struct group *g = getgrnam(GROUP);

	has_group = g;
	if (g)
		group = g->gr_gid;
}

int control_start(const char *path, const struct control_command *commands,
		  void *arg, struct control **out)
{
	struct control *c;
	int err;

	if (strlen(path) >= sizeof(c->at.sun_path))
		return -ENAMETOOLONG;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -ENOMEM;
	c->commands = commands;
	c->arg = arg;
	c->at.sun_family = AF_UNIX;
	strcpy(c->at.sun_path, path);
	err = make_socket(c);
	if (err)
		goto fail;
	c->stop = eventfd(0, EFD_CLOEXEC);
	err = c->stop < 0 ? -errno :
	      thread_start(&c->thread, "control", run_control, c);
	if (!err) {
		*out = c;
		return 0;
	}
	unlink(c->at.sun_path);
	if (c->stop >= 0)
		close(c->stop);
fail:
	if (c->fd >= 0)
		close(c->fd);
	free(c);
	return err;
}

void control_stop(struct control *c)
{
	const uint64_t one = 1;

	if (!c)
		return;
	if (write(c->stop, &one, sizeof(one)) < 0)
		log_debug("control: %s", strerror(errno));
	shutdown(c->fd, SHUT_RDWR);
	pthread_join(c->thread, NULL);
	unlink(c->at.sun_path);
	close(c->stop);
	close(c->fd);
	free(c);
}
