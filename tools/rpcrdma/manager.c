/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * manager - the thread that makes connections, and ends silent ones.
 *
 * A function that says "with the lock" can let it go meanwhile where it
 * creates, destroys, or calls something on the loop.
 */
#include "tools/rpcrdma/client.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/thread.h"
#include "lib/util.h"

enum { FIRST_DELAY_MS = 100, LONGEST_DELAY_MS = 5000 };

/* Waits for a change, at most until @until; false when that has come. */
static bool wait_until(struct gannet_rpcrdma *c, uint64_t until)
{
	return clock_ms() < until &&
	       cond_wait_until(&c->wake, &c->lock, until * NS_PER_MS);
}

static void tell(struct gannet_rpcrdma *c, enum gannet_rpcrdma_event event,
		 int err)
{
	if (c->options.event)
		c->options.event(c->options.arg, event, err);
}

static void is_poked(struct loop_task *t)
{
	struct gannet_rpcrdma *c = container_of(t, struct gannet_rpcrdma, poke);

	mutex_lock(&c->lock);
	c->poked = false;
	mutex_unlock(&c->lock);
}

/* With the lock: wakes the threads that wait for a change. */
static void tell_waiters(struct gannet_rpcrdma *c)
{
	pthread_cond_broadcast(&c->wake);
	if (!client_is_polled(c) || c->poked)
		return;
	c->poked = true;
	loop_post(c->loop, &c->poke, is_poked);
}

/* ---- the requester's call-backs, on the loop */

static void is_connected(void *arg)
{
	struct gannet_rpcrdma *c = arg;

	mutex_lock(&c->lock);
	c->connected = true;
	pthread_cond_broadcast(&c->wake);
	mutex_unlock(&c->lock);
}

static void is_closed(void *arg, int err)
{
	struct gannet_rpcrdma *c = arg;

	mutex_lock(&c->lock);
	c->lost = true;
	c->lost_err = err;
	if (c->state == CLIENT_UP)
		c->state = CLIENT_DOWN;
	pthread_cond_broadcast(&c->wake);
	mutex_unlock(&c->lock);
}

static uint32_t answer_call_back(void *arg, const uint8_t *call, uint32_t len,
				 uint8_t *reply, uint32_t room)
{
	struct gannet_rpcrdma *c = arg;

	return c->options.answer(c->options.arg, call, len, reply, room);
}

/* ---- the manager */

static void tell_lost(void *arg)
{
	struct gannet_rpcrdma *c = arg;

	tell(c, GANNET_RPCRDMA_LOST, c->lost_err);
}

static void tell_reconnected(void *arg)
{
	tell(arg, GANNET_RPCRDMA_RECONNECTED, 0);
}

static void tell_dead(void *arg)
{
	struct gannet_rpcrdma *c = arg;

	tell(c, GANNET_RPCRDMA_DEAD, c->err);
}

/* With the lock, which is let go meanwhile. */
static void on_loop(struct gannet_rpcrdma *c, void (*fn)(void *arg))
{
	mutex_unlock(&c->lock);
	loop_call(c->loop, fn, c);
	mutex_lock(&c->lock);
}

/* Fills in the facts about @r, on the loop. */
static void learn(struct gannet_rpcrdma *c, struct rpcrdma_requester *r)
{
	struct gannet_rpcrdma_info *to = &c->info;
	struct rpcrdma_requester_info from;

	rpcrdma_requester_info(r, &from);
	strncpy(to->fabric, from.fabric, sizeof(to->fabric) - 1);
	strncpy(to->device, from.device, sizeof(to->device) - 1);
	to->local = from.conn->local;
	to->peer = from.conn->peer;
	to->read_depth = from.read_depth;
	to->private_data = from.private_data;
	to->invalidates = from.invalidates;
	to->send_inline = from.send_inline;
	to->recv_inline = from.recv_inline;
	to->credits = from.credits;
	to->in_flight = from.in_flight;
	to->invalidated = c->gone_invalidated + from.invalidated;
	to->discarded = c->gone_discarded + from.discarded;
	to->registered = c->gone_registered + from.registered;
	to->reused = c->gone_reused + from.reused;
}

void client_learn(void *arg)
{
	struct gannet_rpcrdma *c = arg;

	mutex_lock(&c->lock);
	if (c->r)
		learn(c, c->r);
	mutex_unlock(&c->lock);
}

/* With the lock, which is let go meanwhile. */
static void drop_requester(struct gannet_rpcrdma *c,
			   struct rpcrdma_requester *r)
{
	if (c->r) {
		on_loop(c, client_learn);
		c->gone_invalidated = c->info.invalidated;
		c->gone_discarded = c->info.discarded;
		c->gone_registered = c->info.registered;
		c->gone_reused = c->info.reused;
	}
	c->r = NULL;
	if (c->state == CLIENT_UP)
		c->state = CLIENT_DOWN;
	mutex_unlock(&c->lock);
	rpcrdma_requester_destroy(r);
	mutex_lock(&c->lock);
}

/* Returns the xid of the call that asks for limits; 0: it is not made. */
static uint32_t config_xid(struct gannet_rpcrdma *c)
{
	uint32_t xid;

	if (!(c->options.flags & GANNET_RPCRDMA_CONFIGURE))
		return 0;
	xid = gannet_rpcrdma_xid(c);
	return xid ? xid : gannet_rpcrdma_xid(c);
}

/* With the lock, which is let go meanwhile.  One attempt. */
static int attempt(struct gannet_rpcrdma *c)
{
	struct rpcrdma_requester_options ro = {
		.credits = c->options.credits,
		.inline_size = c->options.inline_size,
		.segment_size = c->options.segment_size,
		.read_depth = c->options.read_depth,
		.no_private = c->options.flags & GANNET_RPCRDMA_NO_PRIVATE,
		.no_invalidate = c->options.flags &
				 GANNET_RPCRDMA_NO_INVALIDATE,
		.config_xid = config_xid(c),
		.read_read = c->options.flags & GANNET_RPCRDMA_READ_READ,
		.pad_align = c->options.pad_align,
		.pad_thresh = c->options.pad_threshold,
		.back_credits = c->options.back_credits,
		.cache_bytes = c->options.registration !=
			       GANNET_RPCRDMA_EACH_CALL ?
			       c->options.cache_bytes : 0,
		.windows = c->options.registration == GANNET_RPCRDMA_WINDOWS,
		.cache_pieces = c->options.cache_pieces,
		.answer = c->options.answer ? answer_call_back : NULL,
		.connected = is_connected, .closed = is_closed, .arg = c,
	};
	uint64_t until = clock_ms() + c->options.connect_ms;
	struct rpcrdma_requester *r;
	int err;

	c->connected = c->lost = false;
	mutex_unlock(&c->lock);
	err = rpcrdma_requester_create(&c->fabric,
				       (struct sockaddr *)&c->addr, c->loop,
				       &ro, &r);
	mutex_lock(&c->lock);
	if (err < 0)
		return err;
	while (!c->connected && !c->lost && !c->closing)
		if (!wait_until(c, until))
			break;
	if (c->connected && !c->lost && !c->closing) {
		c->r = r;
		return 0;
	}
	err = c->closing ? -ECANCELED : c->lost ? c->lost_err : -ETIMEDOUT;
	drop_requester(c, r);
	return err < 0 ? err : -ECONNRESET;
}

static void go_up(struct gannet_rpcrdma *c)
{
	on_loop(c, client_learn);
	if (c->was_up) {
		c->info.reconnects++;
		on_loop(c, tell_reconnected);
	}
	c->was_up = true;
	tell_waiters(c);
	if (c->lost)
		return;
	c->state = CLIENT_UP;
	client_give_waiting(c);
}

static void give_up(struct gannet_rpcrdma *c, int err)
{
	c->err = err;
	c->state = CLIENT_DEAD;
	tell_waiters(c);
	on_loop(c, client_fail_waiting);
	if (c->was_up && !c->closing)
		on_loop(c, tell_dead);
}

static void pause_before_retry(struct gannet_rpcrdma *c)
{
	uint64_t ms = (uint64_t)FIRST_DELAY_MS << MIN(c->failures - 1, 10u);
	uint64_t until = clock_ms() + MIN(ms, (uint64_t)LONGEST_DELAY_MS);

	while (!c->closing && wait_until(c, until))
		;
}

/* With the lock: brings it up, or lets it die. */
static void bring_up(struct gannet_rpcrdma *c)
{
	int err;

	if (c->failures > c->options.reconnects) {
		give_up(c, -ECONNRESET);
		return;
	}
	if (c->failures > 0)
		pause_before_retry(c);
	if (c->closing)
		return;
	err = attempt(c);
	if (err == 0) {
		/* Until a reply has come, this can also be in vain. */
		c->failures += c->was_up;
		go_up(c);
		return;
	}
	c->failures++;
	log_debug("rpcrdma: no connection: %s", strerror(-err));
	if (!c->was_up || c->failures > c->options.reconnects)
		give_up(c, err);
}

/* With the lock: when the connection will count as silent, as known now. */
static uint64_t deadline(struct gannet_rpcrdma *c)
{
	const struct client_call *oldest;
	uint64_t since = 0;

	if (!cds_list_empty(&c->given)) {
		oldest = cds_list_first_entry(&c->given, struct client_call,
					      link);
		since = atomic_load(&oldest->q.sent) / 1000000;
	}
	return (since ? since : clock_ms()) + c->options.reply_ms;
}

/* With the lock: until the connection ends. */
static void watch(struct gannet_rpcrdma *c)
{
	struct rpcrdma_requester *r = c->r;

	while (!c->lost && !c->closing) {
		if (wait_until(c, deadline(c)) || deadline(c) > clock_ms())
			continue;
		rpcrdma_requester_close(r);
		while (!c->lost && !c->closing)
			pthread_cond_wait(&c->wake, &c->lock);
		/* We closed it ourselves. */
		if (c->lost_err == 0)
			c->lost_err = -ETIMEDOUT;
	}
	drop_requester(c, r);
	if (c->closing)
		return;
	on_loop(c, tell_lost);
	if (c->options.flags & GANNET_RPCRDMA_NO_RECONNECT)
		give_up(c, -ENOTCONN);
}

void client_manage(void *arg)
{
	struct gannet_rpcrdma *c = arg;

	mutex_lock(&c->lock);
	while (!c->closing && c->state != CLIENT_DEAD) {
		if (c->r)
			watch(c);
		else if (!c->was_up || !cds_list_empty(&c->waiting))
			bring_up(c);
		else
			pthread_cond_wait(&c->wake, &c->lock);
	}
	if (c->r)
		drop_requester(c, c->r);
	c->ended = true;
	tell_waiters(c);
	mutex_unlock(&c->lock);
}
