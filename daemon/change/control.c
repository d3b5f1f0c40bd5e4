/* SPDX-License-Identifier: BSD-2-Clause */
/* control - answers gannetctl(8) at a local socket, in JSON. */
#include "daemon/change/change.h"

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
#include "lib/fds.h"
#include "lib/log.h"
#include "lib/stats.h"
#include "lib/thread.h"

STAT(control_requests, "requests of gannetctl answered");
STAT(control_refused, "requests of gannetctl that were not understood");

/* For a request to come, and again for an answer to be taken. */
#define PATIENCE_NS	(2 * NS_PER_S)
/* A line of exports(5) whose bytes are escaped. */
#define MAX_REQUEST	32768
#define MAX_PEERS	64
#define GROUP		"gannet"

/* A connection: its request comes, then its answer goes. */
struct peer {
	int		 fd;		/* -1: a command has it */
	uid_t		 uid;
	uint64_t	 until;		/* clock_ns(): then its time is over */
	char		*text;		/* the request; then the answer */
	size_t		 len;		/* of that */
	size_t		 at;		/* so much of the answer was sent */
	bool		 answered;
	/* It goes on after its answer; or NULL. */
	const struct control_command *stream;
};

struct control {
	const struct control_command *commands;
	void		*arg;
	struct sockaddr_un at;
	int		 fd;
	int		 stop;		/* an eventfd */
	pthread_t	 thread;
	/* The thread's, the oldest first: */
	struct peer	 peers[MAX_PEERS];
	unsigned	 npeers;
	unsigned	 max_peers;	/* at most MAX_PEERS */
};

/* See control_find_group(). */
static bool has_group;
static gid_t group;

/* ---- a request */

struct control_call {
	int		 fd;
	json_t		*request;
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

/* Has the command answer later.  NULL, or the answer: out of memory. */
static json_t *control_give(struct control *c, struct request *r,
			    const struct control_command *command,
			    struct peer *p)
{
	struct control_call *call = malloc(sizeof(*call));

	if (!call)
		return answer_error("out of memory");
	*call = (struct control_call){ p->fd, r->whole, r->options };
	r->whole = NULL;
	p->fd = -1;
	command->later(c->arg, call, command->kind);
	return NULL;
}

static _Thread_local uid_t asking;

uid_t control_user(void)
{
	return asking;
}

static json_t *control_run(struct control *c, struct request *r,
			   struct peer *p)
{
	const struct control_command *command = c->commands;
	const char *wrong = "out of memory";
	json_t *result;

	while (command->name && strcmp(command->name, r->command) != 0)
		command++;
	if (!command->name)
		return answer_error("there is no such command");
	if (command->later)
		return control_give(c, r, command, p);
	asking = p->uid;
	result = command->open ? command->open(c->arg, r->options, &wrong) :
		 command->run(c->arg, r->argument, &wrong);
	if (!result)
		return answer_error(wrong);
	if (command->open)
		p->stream = command;
	stat_inc(control_requests);
	return json_pack("{s:i, s:o}", "v", CONTROL_VERSION, "result", result);
}

/* NULL: the answer comes later, or no memory. */
static json_t *control_answer(struct control *c, const char *text, size_t len,
			      struct peer *p)
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
		reply = control_run(c, &r, p);
	json_decref(r.whole);
	return reply;
}

/* The line of an answer, to be freed; or NULL. */
static char *answer_text(const json_t *reply, size_t *len)
{
	char *text = reply ? json_dumps(reply, JSON_COMPACT) : NULL;

	*len = text ? strlen(text) : 0;
	if (text)
		text[(*len)++] = '\n';	/* in the place of the zero */
	return text;
}

/* ---- answers that come later, from other threads */

/* Sends as much as the peer reads within the time for an answer. */
static void send_late(int fd, const json_t *reply)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	uint64_t until = clock_ns() + PATIENCE_NS, now;
	size_t len, at = 0;
	char *text = answer_text(reply, &len);

	while (text && at < len && (now = clock_ns()) < until &&
	       poll(&p, 1, (int)((until - now) / NS_PER_MS) + 1) > 0) {
		ssize_t n = send(fd, text + at, len - at,
				 MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno != EAGAIN)
			break;
		at += n < 0 ? 0 : (size_t)n;
	}
	free(text);
}

const json_t *control_call_options(const struct control_call *call)
{
	return call->options;
}

void control_call_end(struct control_call *call, json_t *result,
		      const char *error)
{
	json_t *reply = NULL;

	if (result) {
		stat_inc(control_requests);
		reply = json_pack("{s:i, s:o}", "v", CONTROL_VERSION, "result",
				  result);
	} else if (error) {
		reply = answer_error(error);
	}
	if (reply)
		send_late(call->fd, reply);
	json_decref(reply);
	json_decref(call->request);
	close(call->fd);
	free(call);
}

/* ---- connections */

static void peer_end(struct control *c, struct peer *p)
{
	bool sent = p->answered && p->at == p->len && p->text;

	if (p->stream)
		p->stream->stream(c->arg, sent ? p->fd : -1);
	if (p->fd >= 0 && !(p->stream && sent))
		close(p->fd);
	free(p->text);
	c->npeers--;
	memmove(p, p + 1, (size_t)(c->peers + c->npeers - p) * sizeof(*p));
}

/* Answers the @len bytes of the request; 0: it is empty. */
static void peer_answer(struct control *c, struct peer *p, size_t len)
{
	json_t *reply;

	if (len > 0)
		reply = control_answer(c, p->text, len, p);
	else
		reply = answer_error("expected one line of JSON, of less than "
				     "32768 bytes");
	free(p->text);
	p->text = answer_text(reply, &p->len);
	p->answered = true;
	p->until = clock_ns() + PATIENCE_NS;
	json_decref(reply);
}

/* Reads the next bytes of a request. */
static void peer_read(struct control *c, struct peer *p)
{
	char *end = NULL;
	ssize_t n = -1;

	if (!p->text)
		p->text = malloc(MAX_REQUEST);
	if (p->text)
		n = recv(p->fd, p->text + p->len, MAX_REQUEST - p->len,
			 MSG_DONTWAIT);
	if (n < 0 && p->text && errno == EAGAIN)
		return;
	if (n > 0)
		end = memchr(p->text + p->len, '\n', (size_t)n);
	p->len += n > 0 ? (size_t)n : 0;
	if (n <= 0 || end || p->len == MAX_REQUEST)
		peer_answer(c, p, end ? (size_t)(end - p->text) : 0);
}

/* False: the answer was sent, or its rest can't be. */
static bool peer_send(struct peer *p)
{
	ssize_t n;

	if (!p->text || p->fd < 0)
		return false;
	n = send(p->fd, p->text + p->at, p->len - p->at,
		 MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN;
	p->at += (size_t)n;
	return p->at < p->len;
}

/* The peer can be read, or written to; or its time is over. */
static void peer_go_on(struct control *c, struct peer *p, bool ready)
{
	if (!p->answered && ready)
		peer_read(c, p);
	else if (!p->answered)
		peer_answer(c, p, 0);
	if (p->answered && (!peer_send(p) || clock_ns() >= p->until))
		peer_end(c, p);
}

/* ---- the thread */

/* The oldest connection of the user that has most. */
static struct peer *most_of_one_user(struct control *c)
{
	struct peer *found = c->peers;
	unsigned most = 0;

	for (unsigned i = 0; i < c->npeers; i++) {
		unsigned n = 0;

		for (unsigned j = i; j < c->npeers; j++)
			n += c->peers[j].uid == c->peers[i].uid;
		if (n > most)
			found = &c->peers[i];
		most = MAX(most, n);
	}
	return found;
}

static void accept_one(struct control *c)
{
	int fd = accept4(c->fd, NULL, NULL, SOCK_CLOEXEC);
	socklen_t len = sizeof(struct ucred);
	struct ucred user = { .uid = (uid_t)-1 };

	if (fd < 0) {
		/* Perhaps no descriptor is left. */
		usleep(10000);
		return;
	}
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &len);
	if (c->npeers == c->max_peers)
		peer_end(c, most_of_one_user(c));
	c->peers[c->npeers++] = (struct peer){
		.fd = fd, .uid = user.uid, .until = clock_ns() + PATIENCE_NS,
	};
}

/* Waits for a connection or one of the peers. */
static void control_poll(const struct control *c, struct pollfd *p)
{
	uint64_t now = clock_ns(), until = UINT64_MAX;

	p[0] = (struct pollfd){ .fd = c->fd, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = c->stop, .events = POLLIN };
	for (unsigned i = 0; i < c->npeers; i++) {
		p[i + 2] = (struct pollfd){
			.fd = c->peers[i].fd,
			.events = c->peers[i].answered ? POLLOUT : POLLIN,
		};
		until = MIN(until, c->peers[i].until);
	}
	if (poll(p, c->npeers + 2, until == UINT64_MAX ? -1 : until <= now ? 0 :
		 (int)((until - now) / NS_PER_MS) + 1) < 0)
		for (unsigned i = 0; i < c->npeers + 2; i++)
			p[i].revents = 0;
}

static void run_control(void *arg)
{
	struct pollfd p[MAX_PEERS + 2];
	struct control *c = arg;

	for (control_poll(c, p); !p[1].revents; control_poll(c, p)) {
		uint64_t now = clock_ns();

		/* From the last on: one that ends moves the ones behind it. */
		for (unsigned i = c->npeers; i-- > 0;)
			if (p[i + 2].revents || now >= c->peers[i].until)
				peer_go_on(c, &c->peers[i], p[i + 2].revents);
		if (p[0].revents)
			accept_one(c);
	}
	while (c->npeers > 0)
		peer_end(c, c->peers);
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
	bool shared;
	int err;

	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->fd < 0)
		return -errno;
	err = clear_path(&c->at);
	if (err)
		return err;
	/* A server user outside the group can't give it the socket, which then
	 * is that user's and root's. */
	shared = has_group && fchown(c->fd, (uid_t)-1, group) == 0;
	/* The file has this mode from its begin; the kernel lets no other user
	 * connect (unix(7)). */
	if (fchmod(c->fd, shared ? 0660 : 0600) < 0 ||
	    bind(c->fd, (struct sockaddr *)&c->at, sizeof(c->at)) < 0)
		return -errno;
	/* Not chmod(): it follows links, which a user can put in its place. */
	if ((shared && lchown(c->at.sun_path, (uid_t)-1, group) < 0) ||
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
	c->max_peers = (unsigned)fds_small(MAX_PEERS);
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
