/* SPDX-License-Identifier: BSD-2-Clause */
/* call_relay - a relay that knows calls. */
#include "tests/server/call_relay.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "rpc/rpc.h"
#include "tests/server/tool_run.h"
#include "tests/unit/runner.h"

enum { CONNECTIONS = 16 };

struct passage {
	struct calls *c;
	int	     client;
	pthread_t    thread;
};

uint32_t record_word(const struct record *r, size_t at)
{
	return at + 4 <= r->len ? xdr_word(r->data + at) : 0;
}

static bool get_bytes(int fd, uint8_t *to, size_t len)
{
	ssize_t n;

	for (; len > 0; to += n, len -= (size_t)n) {
		n = read(fd, to, len);
		if (n <= 0)
			return false;
	}
	return true;
}

/* False: none comes. */
static bool get_record(int fd, struct record *r)
{
	if (!get_bytes(fd, r->data, 4))
		return false;
	r->len = 4 + (xdr_word(r->data) & 0x7fffffff);
	ck_assert_uint_le(r->len, sizeof(r->data));
	return get_bytes(fd, r->data + 4, r->len - 4);
}

static bool put_record(int fd, const struct record *r)
{
	return write(fd, r->data, r->len) == (ssize_t)r->len;
}

static bool deny(const struct record *call, int client)
{
	/* A reply, MSG_DENIED, AUTH_ERROR. */
	const uint32_t words[] = { 0x80000000u | 20, record_word(call, AT_XID),
				   1, 1, 1, RPC_GSS_CREDPROBLEM };
	struct record reply = { .len = sizeof(words) };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		xdr_set_word(reply.data + 4 * i, words[i]);
	return put_record(client, &reply);
}

static enum deed judge(struct calls *c, const struct record *call)
{
	enum deed deed;

	pthread_mutex_lock(&c->lock);
	deed = c->judge ? c->judge(c, call) : PASS;
	pthread_mutex_unlock(&c->lock);
	return deed;
}

static void change(struct calls *c, const struct record *call,
		   struct record *reply)
{
	pthread_mutex_lock(&c->lock);
	if (c->change)
		c->change(c, call, reply);
	pthread_mutex_unlock(&c->lock);
}

/* False: the connection is to end. */
static bool relay_call(struct calls *c, int client, int server)
{
	struct record call, reply;
	enum deed deed;

	if (!get_record(client, &call))
		return false;
	deed = judge(c, &call);
	if (deed == DENY)
		return deny(&call, client);
	if (!put_record(server, &call))
		return false;
	/* Its bytes stay unread, so that the connection is reset. */
	if (deed == LOSE)
		return poll(&(struct pollfd){ server, POLLIN, 0 }, 1, -1) < 0;
	if (!get_record(server, &reply))
		return false;
	change(c, &call, &reply);
	return put_record(client, &reply);
}

static void *relay_calls(void *passage)
{
	struct passage *p = passage;
	int server = daemon_connect(p->c->relay.to);

	while (relay_call(p->c, p->client, server))
		;
	close(server);
	close(p->client);
	return NULL;
}

static void *run_calls(void *relay)
{
	struct calls *c = container_of(relay, struct calls, relay);
	struct passage p[CONNECTIONS];
	int fd, n = 0;

	while ((fd = accept4(c->relay.fd, NULL, NULL, SOCK_CLOEXEC)) >= 0) {
		ck_assert_int_lt(n, CONNECTIONS);
		p[n] = (struct passage){ .c = c, .client = fd };
		pthread_create(&p[n].thread, NULL, relay_calls, &p[n]);
		n++;
	}
	while (n > 0)
		pthread_join(p[--n].thread, NULL);
	return NULL;
}

void call_relay_start(struct calls *c)
{
	pthread_mutex_init(&c->lock, NULL);
	c->relay.run = run_calls;
	relay_start(&c->relay, WAY_TCP);
}
