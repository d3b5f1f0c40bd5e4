/* SPDX-License-Identifier: BSD-2-Clause */
/* loop_relay - lets clients that speak TCP try a server on the loop fabric. */
#include "tests/server/loop_relay.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/thread.h"
#include "lib/util.h"
#include "wire/nfs3.h"
#include "tests/server/rdma_rig.h"
#include "tests/server/record_stream.h"

/* 1 MiB of data, and the headers around it. */
#define RECORD_MAX	((1u << 20) + (64u << 10))

struct loop_relay {
	const struct fabric *fabric;
	struct sockaddr_storage addr;
	struct loop	    *loop;
	int		     listener;
	uint16_t	     port;
	pthread_t	     thread;
	pthread_mutex_t	     lock;	/* guards lines */
	struct line	    *lines;
};

/* A client's connection and the server's. */
struct line {
	struct line	 *next;
	struct loop_relay *relay;
	struct rpcrdma_requester *r;
	pthread_t	  thread;
	int		  fd;
};

/* A call on its way. */
struct carried {
	struct rpcrdma_request q;
	struct line	*line;		/* borrowed: outlives its calls */
	uint8_t		*reply, *data;
	uint8_t		 call[];
};

/* On the loop.  The result that went to the Write chunk is the reply's last
 * item. */
static void carried_done(struct rpcrdma_request *q)
{
	struct carried *c = container_of(q, struct carried, q);
	uint32_t data = q->nwrites ? q->written[0] : 0;
	uint32_t mark = htonl(RECORD_LAST | (q->reply_len + data +
					     xdr_pad(data)));
	struct iovec iov[4] = {
		{ &mark, sizeof(mark) },
		{ (void *)(uintptr_t)q->reply_data, q->reply_len },
		{ c->data, data },
		{ "\0\0\0", xdr_pad(data) },
	};

	if (q->status == 0)
		record_send(c->line->fd, iov, 4);
	else
		shutdown(c->line->fd, SHUT_RDWR);
	free(c->reply);
	free(c->data);
	free(c);
}

/* Moves eligible data into chunks (RFC 8267 section 4). */
static void reduce(struct carried *c)
{
	struct xdr_in x;
	uint32_t proc, len;
	struct xdr_view v;

	xdr_in_init(&x, c->call, c->q.call_len);
	xdr_get_fixed(&x, 12);
	if (xdr_get_u32(&x) != NFS3_PROGRAM)
		return;
	xdr_get_u32(&x);
	proc = xdr_get_u32(&x);
	for (int i = 0; i < 2; i++) {	/* credential, verifier */
		xdr_get_u32(&x);
		xdr_get_opaque(&x, 400);
	}
	xdr_get_opaque(&x, NFS3_FHSIZE);
	xdr_get_u64(&x);
	len = xdr_get_u32(&x);
	if (proc == NFSPROC3_READ && xdr_ok(&x) && len <= RECORD_MAX) {
		c->data = malloc(len + 1);
		c->q.nwrites = 1;
		c->q.write[0] = rpcrdma_memory_at(c->data, len);
	}
	if (proc != NFSPROC3_WRITE)
		return;
	xdr_get_u32(&x);
	v = xdr_get_opaque(&x, RECORD_MAX);
	if (!xdr_ok(&x) || xdr_left(&x) > 0 || v.len == 0)
		return;
	c->q.nreads = 1;
	c->q.read[0].position = (uint32_t)(v.data - c->call);
	c->q.read[0].mem.addr = c->call + c->q.read[0].position;
	c->q.read[0].mem.len = v.len;
	c->q.call_len = c->q.read[0].position;
}

static void carry(struct line *line, const uint8_t *msg, uint32_t len)
{
	struct carried *c = calloc(1, sizeof(*c) + len);

	require(c != NULL);
	memcpy(c->call, msg, len);
	c->line = line;
	c->reply = malloc(RECORD_MAX);
	c->q.call = c->call;
	c->q.call_len = len;
	c->q.reply = rpcrdma_memory_at(c->reply, RECORD_MAX);
	c->q.done = carried_done;
	reduce(c);
	rpcrdma_requester_call(line->r, &c->q);
}

static void line_run(void *arg)
{
	static const struct rpcrdma_requester_options options;
	struct line *line = arg;
	uint8_t *msg = malloc(RECORD_MAX);
	uint32_t len;

	require(msg != NULL);
	require(rpcrdma_requester_create(line->relay->fabric,
			(struct sockaddr *)&line->relay->addr,
			line->relay->loop, &options, &line->r) == 0);
	while ((len = record_receive(line->fd, msg, RECORD_MAX)) > 0)
		carry(line, msg, len);
	free(msg);
	/* The client sees the end; the number stays until loop_relay_stop(). */
	rpcrdma_requester_destroy(line->r);
	shutdown(line->fd, SHUT_RDWR);
}

static void relay_run(void *arg)
{
	struct loop_relay *relay = arg;
	struct line *line;
	int fd;

	while ((fd = accept(relay->listener, NULL, NULL)) >= 0) {
		line = calloc(1, sizeof(*line));
		require(line != NULL);
		line->relay = relay;
		line->fd = fd;
		mutex_lock(&relay->lock);
		line->next = relay->lines;
		relay->lines = line;
		require(thread_start(&line->thread, "line", line_run, line) ==
			0);
		mutex_unlock(&relay->lock);
	}
}

struct loop_relay *loop_relay_start(const struct fabric *fabric,
				    const struct sockaddr *addr)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	struct loop_relay *relay = calloc(1, sizeof(*relay));
	socklen_t len = sizeof(at);

	require(relay != NULL);
	relay->fabric = fabric;
	memcpy(&relay->addr, addr, sizeof(struct sockaddr_in));
	pthread_mutex_init(&relay->lock, NULL);
	require(loop_create("relay", &relay->loop) == 0);
	require(loop_start(relay->loop) == 0);
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	relay->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	require(relay->listener >= 0);
	require(bind(relay->listener, (struct sockaddr *)&at, len) == 0);
	require(listen(relay->listener, 16) == 0);
	require(getsockname(relay->listener, (struct sockaddr *)&at, &len) ==
		0);
	relay->port = ntohs(at.sin_port);
	require(thread_start(&relay->thread, "relay", relay_run, relay) == 0);
	return relay;
}

uint16_t loop_relay_port(const struct loop_relay *relay)
{
	return relay->port;
}

void loop_relay_stop(struct loop_relay *relay)
{
	struct line *line;

	shutdown(relay->listener, SHUT_RDWR);
	pthread_join(relay->thread, NULL);
	close(relay->listener);
	while ((line = relay->lines)) {
		shutdown(line->fd, SHUT_RDWR);
		pthread_join(line->thread, NULL);
		close(line->fd);
		relay->lines = line->next;
		free(line);
	}
	loop_stop(relay->loop);
	loop_destroy(relay->loop);
	pthread_mutex_destroy(&relay->lock);
	free(relay);
}
