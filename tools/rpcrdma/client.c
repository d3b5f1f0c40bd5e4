/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * client - calls over a requester that is replaced when its connection ends.
 *
 * Operation: a call goes to the requester if one exists, else it waits.  The
 * requester fails its calls when its connection ends; such calls go back to the
 * waiting ones.  A separate thread, the manager, does everything that can
 * block: it makes a requester while calls wait for one, hands them over to it
 * in their order, and ends a connection that leaves a call without a reply for
 * too long.  A client that is polled has no other thread: its user's drives the
 * loop, here too while something is waited for.
 *
 * Ownership: a struct call is made when the call is started and freed just
 * before its done().
 */
#include "tools/rpcrdma/client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/thread.h"
#include "lib/util.h"
#include "transport/addr.h"

/* ---- from birth to death */

static void fill_defaults(struct gannet_rpcrdma_options *o)
{
	if (o->connect_ms == 0)
		o->connect_ms = 10000;
	if (o->reply_ms == 0)
		o->reply_ms = 60000;
	if (o->reconnects == 0)
		o->reconnects = 10;
	if (o->resends == 0)
		o->resends = 10;
	if (o->back_credits == 0)
		o->back_credits = 16;
	if (o->cache_pieces == 0)
		o->cache_pieces = 1024;
	if (o->cache_bytes == 0)
		o->cache_bytes = 256u << 20;
}

static int take_options(struct gannet_rpcrdma_options *to,
			const struct gannet_rpcrdma_options *from)
{
	int err = 0;

	if (from) {
		err = client_check_size(from, from->size, OPTIONS_FIRST,
					sizeof(*to));
		if (err < 0)
			return err;
		memcpy(to, from, MIN(from->size, sizeof(*to)));
	}
	fill_defaults(to);
	/* XDR has no data at an address that four does not divide. */
	if (to->registration > GANNET_RPCRDMA_WINDOWS || to->pad_align % 4 != 0)
		err = -EINVAL;
	return err;
}

static void init_client(struct gannet_rpcrdma *c, const struct sockaddr *addr)
{
	unsigned first;

	xprt_addr_copy(&c->addr, addr);
	/* A server that remembers replies must not take a new client's call
	 * for that of an old one. */
	if (getrandom(&first, sizeof(first), 0) != sizeof(first))
		first = (unsigned)clock_ms();
	atomic_init(&c->xid, first);
	CDS_INIT_LIST_HEAD(&c->waiting);
	CDS_INIT_LIST_HEAD(&c->given);
	CDS_INIT_LIST_HEAD(&c->regions);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->wake, NULL);
}

static void fini(struct gannet_rpcrdma *c)
{
	if (c->loop) {
		loop_stop(c->loop);
		loop_destroy(c->loop);
	}
	if (c->fabric_destroy)
		c->fabric_destroy(&c->fabric);
	client_free_regions(c);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* With the lock: waits until something has changed. */
static void wait_change(struct gannet_rpcrdma *c)
{
	struct pollfd pfd = { .events = POLLIN };

	if (!client_is_polled(c)) {
		pthread_cond_wait(&c->wake, &c->lock);
		return;
	}
	mutex_unlock(&c->lock);
	pfd.fd = loop_fd(c->loop);
	poll(&pfd, 1, -1);
	loop_round(c->loop);
	mutex_lock(&c->lock);
}

void gannet_rpcrdma_close(struct gannet_rpcrdma *c)
{
	mutex_lock(&c->lock);
	c->closing = true;
	pthread_cond_broadcast(&c->wake);
	while (!c->ended)
		wait_change(c);
	mutex_unlock(&c->lock);
	pthread_join(c->manager, NULL);
	client_on_loop(c, client_fail_waiting, c);
	fini(c);
}

int gannet_rpcrdma_fd(struct gannet_rpcrdma *c)
{
	return client_is_polled(c) ? loop_fd(c->loop) : -EINVAL;
}

int gannet_rpcrdma_dispatch(struct gannet_rpcrdma *c)
{
	if (!client_is_polled(c))
		return -EINVAL;
	/* A round within a round would take its completions away. */
	if (c->loop == loop_current)
		return -EDEADLK;
	loop_round(c->loop);
	return 0;
}

static int start_loop(struct gannet_rpcrdma *c)
{
	int err = loop_create("rpcrdma", &c->loop);

	if (err < 0)
		return err;
	err = client_is_polled(c) ? loop_drive(c->loop) : loop_start(c->loop);
	if (err < 0) {
		loop_destroy(c->loop);
		c->loop = NULL;
	}
	return err;
}

/* Takes the fabric of @c, and @c when it fails. */
static int start_client(struct gannet_rpcrdma *c, struct gannet_rpcrdma **out)
{
	int err = start_loop(c);

	if (err == 0)
		err = thread_start(&c->manager, "rpcrdma-manager",
				   client_manage, c);
	if (err < 0) {
		fini(c);
		return err;
	}
	mutex_lock(&c->lock);
	while (!c->was_up && c->state != CLIENT_DEAD)
		wait_change(c);
	err = c->was_up ? 0 : c->err;
	mutex_unlock(&c->lock);
	if (err < 0)
		gannet_rpcrdma_close(c);
	else
		*out = c;
	return err;
}

/* Makes one with neither fabric nor threads.  0 or -errno. */
static int create_client(const struct sockaddr *addr,
			 const struct gannet_rpcrdma_options *options,
			 struct gannet_rpcrdma **out)
{
	struct gannet_rpcrdma *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	err = take_options(&c->options, options);
	if (err < 0) {
		free(c);
		return err;
	}
	init_client(c, addr);
	*out = c;
	return 0;
}

int client_connect(const struct fabric *fabric, const struct sockaddr *addr,
		   const struct gannet_rpcrdma_options *options,
		   struct gannet_rpcrdma **out)
{
	struct gannet_rpcrdma *c;
	int err = create_client(addr, options, &c);

	if (err < 0)
		return err;
	c->fabric = *fabric;
	return start_client(c, out);
}

int gannet_rpcrdma_connect(const struct sockaddr *addr,
			   const struct gannet_rpcrdma_options *options,
			   struct gannet_rpcrdma **out)
{
	struct gannet_rpcrdma *c;
	int err;

	if (addr->sa_family != AF_INET && addr->sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	err = create_client(addr, options, &c);
	if (err < 0)
		return err;
	err = client_fabric(&c->options, &c->fabric, &c->fabric_destroy);
	if (err < 0) {
		c->fabric_destroy = NULL;
		fini(c);
		return err;
	}
	return start_client(c, out);
}

void gannet_rpcrdma_info(struct gannet_rpcrdma *c,
			 struct gannet_rpcrdma_info *info)
{
	size_t size = info->size;

	client_on_loop(c, client_learn, c);
	mutex_lock(&c->lock);
	c->info.connected = c->state == CLIENT_UP;
	if (!c->info.connected)
		c->info.in_flight = 0;
	memset(info, 0, size);
	memcpy(info, &c->info, MIN(size, sizeof(c->info)));
	info->size = size;
	mutex_unlock(&c->lock);
}

int gannet_rpcrdma_log_level(const char *level)
{
	enum log_level to;

	if (!log_level_parse(level, &to))
		return -EINVAL;
	log_threshold = to;
	return 0;
}
