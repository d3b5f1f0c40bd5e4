/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_relay - lets clients that speak TCP try a server's RPC-over-RDMA.
 *
 *	rdma_relay RDMA-PORT
 *
 * Prints the port of loopback where it takes connections; each becomes one
 * over iWARP to RDMA-PORT.  A call goes as it came, a long one in a
 * Position-Zero Read chunk, and brings a Reply chunk for a long reply.  When
 * its standard input ends, it closes them all and ends: with status 0, unless
 * a sanitizer has found something.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <gannet/rpcrdma.h>

#include "tests/server/record_stream.h"

/* 1 MiB of data, and the headers around it. */
#define MSG_MAX		((1u << 20) + (64u << 10))

struct relay {
	int			 fd;
	struct gannet_rpcrdma	*rdma;
	pthread_mutex_t		 lock;	/* one reply at a time */
	struct relay		*next;	/* under live_lock */
};

struct relayed {
	struct gannet_rpcrdma_call call;
	struct relay		*relay;		/* borrowed: outlives calls */
	char			*msg;		/* owned */
	char			*reply;		/* owned */
};

static struct sockaddr_in rdma_addr = { .sin_family = AF_INET };

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t live_less = PTHREAD_COND_INITIALIZER;
static struct relay *live;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "rdma_relay: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void relayed_free(struct relayed *r)
{
	free(r->msg);
	free(r->reply);
	free(r);
}

/* A client that is gone hears nothing. */
static void replied(struct gannet_rpcrdma_call *call)
{
	struct relayed *r = call->arg;
	uint32_t mark = htonl(RECORD_LAST | call->reply_len);
	struct iovec iov[2] = {
		{ &mark, sizeof(mark) },
		{ (void *)(uintptr_t)call->reply, call->reply_len },
	};

	if (call->status == 0) {
		pthread_mutex_lock(&r->relay->lock);
		record_send(r->relay->fd, iov, 2);
		pthread_mutex_unlock(&r->relay->lock);
	} else {
		shutdown(r->relay->fd, SHUT_RDWR);
	}
	relayed_free(r);
}

static int relay_one(struct relay *relay)
{
	struct relayed *r = calloc(1, sizeof(*r));

	must(r != NULL, "memory");
	r->relay = relay;
	r->msg = malloc(MSG_MAX);
	r->reply = malloc(MSG_MAX);
	must(r->msg && r->reply, "memory");
	r->call.size = sizeof(r->call);
	r->call.msg = r->msg;
	r->call.msg_len = record_receive(relay->fd, r->msg, MSG_MAX);
	r->call.reply_mem.addr = r->reply;
	r->call.reply_mem.len = MSG_MAX;
	r->call.done = replied;
	r->call.arg = r;
	if (r->call.msg_len > 0 &&
	    gannet_rpcrdma_call(relay->rdma, &r->call) == 0)
		return 1;
	relayed_free(r);
	return 0;
}

static struct relay *relay_create(int fd)
{
	struct relay *relay = calloc(1, sizeof(*relay));

	must(relay != NULL, "memory");
	relay->fd = fd;
	pthread_mutex_init(&relay->lock, NULL);
	pthread_mutex_lock(&live_lock);
	relay->next = live;
	live = relay;
	pthread_mutex_unlock(&live_lock);
	return relay;
}

/* Its descriptor is closed with the lock: relays_end() names it by number. */
static void relay_destroy(struct relay *relay)
{
	struct relay **at = &live;

	pthread_mutex_lock(&live_lock);
	while (*at != relay)
		at = &(*at)->next;
	*at = relay->next;
	close(relay->fd);
	pthread_cond_signal(&live_less);
	pthread_mutex_unlock(&live_lock);
	pthread_mutex_destroy(&relay->lock);
	free(relay);
}

static void *relay_run(void *arg)
{
	struct gannet_rpcrdma_options options = {
		.size = sizeof(options),
		.fabric = GANNET_RPCRDMA_IWARP,
	};
	struct relay *relay = arg;

	if (gannet_rpcrdma_connect((struct sockaddr *)&rdma_addr, &options,
				   &relay->rdma) == 0) {
		while (relay_one(relay))
			;
		gannet_rpcrdma_close(relay->rdma);
	}
	relay_destroy(relay);
	return NULL;
}

/* Waits until all connections are closed. */
static void relays_end(void)
{
	pthread_mutex_lock(&live_lock);
	for (struct relay *relay = live; relay; relay = relay->next)
		shutdown(relay->fd, SHUT_RDWR);
	while (live)
		pthread_cond_wait(&live_less, &live_lock);
	pthread_mutex_unlock(&live_lock);
}

static int listen_at(struct sockaddr_in *addr)
{
	socklen_t len = sizeof(*addr);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(listener >= 0 && bind(listener, (struct sockaddr *)addr,
				   sizeof(*addr)) == 0 &&
	     listen(listener, 16) == 0 &&
	     getsockname(listener, (struct sockaddr *)addr, &len) == 0,
	     "listen");
	return listener;
}

int main(int argc, char *argv[])
{
	struct sockaddr_in addr = { .sin_family = AF_INET };
	struct pollfd from[2] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .events = POLLIN },
	};
	pthread_t thread;
	int fd;

	if (argc != 2)
		return 2;
	addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	rdma_addr.sin_addr = addr.sin_addr;
	rdma_addr.sin_port = htons((uint16_t)atoi(argv[1]));
	from[1].fd = listen_at(&addr);
	printf("%u\n", ntohs(addr.sin_port));
	fflush(stdout);
	while (poll(from, 2, -1) >= 0 && !from[0].revents) {
		fd = accept(from[1].fd, NULL, NULL);
		must(fd >= 0, "accept");
		must(pthread_create(&thread, NULL, relay_run,
				    relay_create(fd)) == 0, "thread");
		pthread_detach(thread);
	}
	relays_end();
	close(from[1].fd);
	return 0;
}
