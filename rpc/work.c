/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The worker threads, and the shares that divide them among users.
 *
 * Three rules keep one slow disk or one busy client from stopping others:
 *
 * 1. A class (an export) has up to its max of workers.  The keeper, a thread
 *    that does nothing else, starts one more whenever a class can run something
 *    and no worker is idle.  A worker without work for ten seconds ends; one
 *    always stays.  Where the system bounds threads, classes share half of them
 *    (may_run_more()), so no class, nor many together, can use up another's.
 * 2. In a class networks take turns, one item each, and so do the clients of a
 *    network.  A client with a thousand items queued delays another's by one
 *    item, not by a thousand; a host with a thousand addresses in its network
 *    delays another network's by one.
 * 3. One client has at most three quarters of a class, one network at most
 *    seven eighths, and neither ever all of it.  The rest is free for the next
 *    one even while every call of the first one hangs.
 *
 * Operation: one lock guards short lists.  A class with something to run and
 * workers to spare stands in the ready list once; so does, in its class, a
 * network with something to run, and in that a client.  A worker takes the
 * first item of the first client of the first network of the first class, and
 * puts all three behind the others.
 *
 * Clients are known by a hash of their address.  A class has a table of NTURNS
 * places; while it has items, a client has the first of PROBES places that is
 * its own already or free.  If all are taken it shares one, and so it does,
 * with another client of its network, if that has NETWORK_TURNS.  Networks are
 * in a table of the same kind.  So a call needs no allocation.
 *
 * Waking: an idle worker sleeps on its futex, last in first out, to keep the
 * same few warm.  At most one worker is on its way at a time, and wakes the
 * next if it leaves items behind.  So the thread that submits a burst pays for
 * one wake, and for no wake while workers keep up.
 *
 * Spinning: before a worker sleeps it looks for items for a short time, unless
 * another worker does; it then counts as a worker on its way.  The time depends
 * on how often it paid off: an idle server spins for microseconds a call, at
 * most.
 *
 * Why a keeper: pollers must not wait for a thread to be made, and a thread
 * inherits the credentials of the one that makes it.  Workers act as their
 * callers; the keeper never does.
 */
#include "rpc/work_priv.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <urcu/arch.h>

#include "lib/clock.h"
#include "lib/log.h"
#include "lib/machine.h"
#include "lib/stats.h"

#define MAX_SPIN	256u
#define PROBES		8u
/* Milliseconds that the keeper waits after the system refused it a thread. */
#define KEEPER_WAIT_S	1

STAT(work_threads, "worker threads started");
STAT(work_no_thread, "worker threads that could not be started");
STAT(work_shared_turns, "calls queued in another client's turn");

struct worker {
	struct work_pool *pool;		/* borrowed: outlives its workers */
	pthread_t	  thread;
	struct worker	 *next;		/* of all; under the lock */
	struct worker	 *next_idle;
	unsigned	  spin;		/* rounds to look before it sleeps */
	atomic_uint	  awake;	/* futex: 0 while it sleeps */
} __attribute__((aligned(64)));

/* For @ms at most, or for ever if that is 0.  False: that long. */
static bool futex_wait(atomic_uint *word, unsigned value, unsigned ms)
{
	const struct timespec t = {
		.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000l,
	};

	return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value,
		       ms ? &t : NULL, NULL, 0) == 0 || errno != ETIMEDOUT;
}

static void wake(struct worker *w)
{
	if (!w)
		return;
	atomic_store_explicit(&w->awake, 1, memory_order_release);
	syscall(SYS_futex, &w->awake, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Locked.  Returns the worker to wake after unlocking, or NULL. */
static struct worker *pick_idle(struct work_pool *pool)
{
	struct worker *w = pool->idle;

	if (!w || pool->waking || cds_list_empty(&pool->ready))
		return NULL;
	pool->idle = w->next_idle;
	pool->waking = true;
	return w;
}

/* Locked.  True if a class has an item to run and no worker is on its way. */
static bool workers_short(struct work_pool *pool)
{
	return !pool->idle && !pool->waking && !pool->stopping &&
	       !cds_list_empty(&pool->ready);
}

/* Locked.  Has the keeper start a worker where one is needed. */
static void ask_keeper(struct work_pool *pool)
{
	if (likely(!workers_short(pool)) || pool->growing)
		return;
	pool->growing = true;
	pthread_cond_signal(&pool->wanted);
}

/* Locked. */
static void list_class(struct work_class *class)
{
	if (class->listed || cds_list_empty(&class->networks) ||
	    !may_run_more(class))
		return;
	class->listed = true;
	cds_list_add_tail(&class->ready, &class->pool->ready);
	atomic_store_explicit(&class->pool->hint, true, memory_order_relaxed);
}

/* Locked. */
static void list_network(struct work_class *class, struct network *network)
{
	if (network->listed || cds_list_empty(&network->turns) ||
	    network->running >= class->max_network)
		return;
	network->listed = true;
	cds_list_add_tail(&network->link, &class->networks);
}

/* Locked.  Lists the turn, its network and its class where they have something
 * to run. */
static void list_turn(struct work_class *class, struct turn *turn)
{
	struct network *network = turn->network;

	if (!turn->listed && turn->head && turn->running < class->max_client) {
		turn->listed = true;
		cds_list_add_tail(&turn->link, &network->turns);
	}
	list_network(class, network);
	list_class(class);
}

/* Hashing spreads neighbours' addresses, and so their places.  The key is
 * secret, so a client that chooses its own IPv6 address can't take another
 * client's number. */
uint64_t work_client(const struct sockaddr *peer)
{
	struct in6_addr host = xprt_addr_host(peer);
	struct in6_addr network = xprt_addr_network(&host);
	uint64_t hash = xprt_addr_hash(&host);

	if (IN6_IS_ADDR_V4MAPPED(&host))
		return hash;
	return xprt_addr_hash(&network) >> 32 << 32 | (uint32_t)hash;
}

/* Locked.  The network's place. */
static struct network *find_network(struct work_class *class, uint32_t number)
{
	struct network *n = &class->network[number % NTURNS], *home = n;
	struct network *free = NULL;

	if (likely(home->number == number))
		return home;
	for (unsigned i = 0; i < PROBES; i++) {
		n = &class->network[(number + i) % NTURNS];
		if (n->used && n->number == number)
			return n;
		if (!n->used && !free)
			free = n;
	}
	if (!free)
		return home;
	free->number = number;
	return free;
}

/* Locked.  A turn in use of @network, which has some. */
static struct turn *share_turn(struct work_class *class, uint64_t client,
			       const struct network *network)
{
	struct turn *turn;

	stat_inc(work_shared_turns);
	do
		turn = &class->turn[client++ % NTURNS];
	while (!turn_in_use(turn) || turn->network != network);
	return turn;
}

/*
 * Locked.  The place that the client has or can take.  A client in use has no
 * other place while the first one is noted as its own: it took another only
 * when that was another's.
 */
static struct turn *place_of(struct work_class *class, uint64_t client)
{
	struct turn *turn, *home = &class->turn[client % NTURNS], *free = NULL;

	if (likely(home->client == client))
		return home;
	for (unsigned i = 0; i < PROBES; i++) {
		turn = &class->turn[(client + i) % NTURNS];
		if (turn_in_use(turn) && turn->client == client)
			return turn;
		if (!turn_in_use(turn) && !free)
			free = turn;
	}
	if (free)
		return free;
	stat_inc(work_shared_turns);
	return home;
}

/* Locked.  The turn for one more item of the client. */
static struct turn *find_turn(struct work_class *class, uint64_t client)
{
	struct turn *turn = place_of(class, client);
	struct network *network;

	if (turn_in_use(turn))
		return turn;
	network = find_network(class, (uint32_t)(client >> 32));
	if (network->used >= NETWORK_TURNS)
		return share_turn(class, client, network);
	network->used++;
	turn->network = network;
	turn->client = client;
	turn->waited = false;		/* that was another client's */
	return turn;
}

void work_submit(struct work_class *class, struct work_item *item)
{
	struct work_pool *pool = class->pool;
	struct turn *turn;
	struct worker *w;

	item->next = NULL;
	mutex_lock(&pool->lock);
	turn = find_turn(class, item->client);
	if (turn->head)
		turn->tail->next = item;
	else
		turn->head = item;
	turn->tail = item;
	class->waiting++;
	list_turn(class, turn);
	w = pick_idle(pool);
	ask_keeper(pool);
	mutex_unlock(&pool->lock);
	wake(w);
}

/* Locked.  Takes the first item of the network and client whose turn it is. */
static struct work_item *worker_take(struct work_pool *pool,
				     struct work_class **from, struct turn **of)
{
	struct work_class *class;
	struct network *network;
	struct work_item *item;
	struct turn *turn;

	if (cds_list_empty(&pool->ready))
		return NULL;
	class = cds_list_first_entry(&pool->ready, struct work_class, ready);
	cds_list_del(&class->ready);
	class->listed = false;
	network = cds_list_first_entry(&class->networks, struct network, link);
	cds_list_del(&network->link);
	network->listed = false;
	turn = cds_list_first_entry(&network->turns, struct turn, link);
	cds_list_del(&turn->link);
	turn->listed = false;
	item = turn->head;
	turn->head = item->next;
	turn->running++;
	network->running++;
	class->waiting--;
	class->running++;
	pool->running++;
	list_turn(class, turn);
	if (cds_list_empty(&pool->ready))
		atomic_store_explicit(&pool->hint, false,
				      memory_order_relaxed);
	*from = class;
	*of = turn;
	return item;
}

/* Locked.  Classes that had to wait for a worker can go on. */
static void list_crowd(struct work_pool *pool)
{
	struct work_class *class;

	pool->crowded = false;
	cds_list_for_each_entry(class, &pool->classes, all)
		list_class(class);
}

/* Locked.  An item of the class has been run. */
static void worker_finish(struct work_class *class, struct turn *turn)
{
	turn->running--;
	turn->ended++;
	turn->network->running--;
	turn_check_free(turn);
	if (--class->running == 0)
		pthread_cond_broadcast(&class->pool->quiet);
	class->pool->running--;
	list_turn(class, turn);
	if (unlikely(class->pool->crowded))
		list_crowd(class->pool);
}

/*
 * Called and returns with the lock held.  Spins for an item; true if one came.
 */
static bool worker_spin(struct work_pool *pool, struct worker *w)
{
	unsigned n = w->spin;

	if (!pool->max_spin || pool->waking || pool->stopping)
		return false;
	pool->waking = true;
	mutex_unlock(&pool->lock);
	while (n-- && !atomic_load_explicit(&pool->hint, memory_order_relaxed))
		caa_cpu_relax();
	mutex_lock(&pool->lock);
	pool->waking = false;
	if (cds_list_empty(&pool->ready)) {
		w->spin = MAX(w->spin / 2, pool->max_spin / 16);
		return false;
	}
	w->spin = MIN(w->spin * 2, pool->max_spin);
	return true;
}

/* Locked.  Takes @w from the idle ones; false: another thread has, and is about
 * to wake it. */
static bool leave_idle(struct work_pool *pool, struct worker *w)
{
	struct worker **at = &pool->idle;

	while (*at && *at != w)
		at = &(*at)->next_idle;
	if (!*at)
		return false;
	*at = w->next_idle;
	return true;
}

/* Called and returns with the lock held.  False: @w was idle for long and has
 * to end; it has left the idle list. */
static bool sleep_idle(struct work_pool *pool, struct worker *w)
{
	unsigned ms = atomic_load(&thread_idle_ms);

	atomic_store_explicit(&w->awake, 0, memory_order_relaxed);
	w->next_idle = pool->idle;
	pool->idle = w;
	mutex_unlock(&pool->lock);
	/* Pairs with the release in wake(). */
	while (!atomic_load_explicit(&w->awake, memory_order_acquire)) {
		if (futex_wait(&w->awake, 0, ms))
			continue;
		mutex_lock(&pool->lock);
		if (pool->nworkers > 1 && leave_idle(pool, w))
			return false;
		mutex_unlock(&pool->lock);
	}
	mutex_lock(&pool->lock);
	pool->waking = false;
	return true;
}

/* Locked. */
static void forget_worker(struct work_pool *pool, struct worker *w)
{
	struct worker **at = &pool->workers;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	pool->nworkers--;
	free(w);
}

static void work(void *arg)
{
	struct worker *w = arg, *next;
	struct work_pool *pool = w->pool;
	struct work_class *class;
	struct work_item *item;
	struct turn *turn;

	mutex_lock(&pool->lock);
	pool->waking = false;		/* it has come */
	for (;;) {
		item = worker_take(pool, &class, &turn);
		if (item) {
			next = pick_idle(pool);
			ask_keeper(pool);
			mutex_unlock(&pool->lock);
			wake(next);
			item->run(item);
			mutex_lock(&pool->lock);
			worker_finish(class, turn);
		} else if (pool->stopping) {
			break;
		} else if (!worker_spin(pool, w) && !pool->stopping &&
			   !sleep_idle(pool, w)) {
			forget_worker(pool, w);
			pthread_detach(pthread_self());
			break;
		}
	}
	mutex_unlock(&pool->lock);
}

/* Called and returns with the lock held.  Starts a worker, which is then on its
 * way. 0 or -errno. */
static int add_worker(struct work_pool *pool)
{
	struct worker *w = aligned_alloc(_Alignof(struct worker), sizeof(*w));
	char name[24];
	int err;

	if (!w)
		return -ENOMEM;
	memset(w, 0, sizeof(*w));
	w->pool = pool;
	w->spin = pool->max_spin;
	snprintf(name, sizeof(name), "worker/%u", pool->started++);
	w->next = pool->workers;
	pool->workers = w;
	pool->nworkers++;
	pool->waking = true;
	mutex_unlock(&pool->lock);
	err = thread_start(&w->thread, name, work, w);
	mutex_lock(&pool->lock);
	if (err < 0) {
		pool->waking = false;
		forget_worker(pool, w);
		return err;
	}
	stat_inc(work_threads);
	return 0;
}

/* Called and returns with the lock held. */
static void keeper_rest(struct work_pool *pool, int err)
{
	stat_inc(work_no_thread);
	log_limited(LOG_LEVEL_WARN, "can't start another worker, so calls "
		    "wait: %s", strerror(-err));
	if (!pool->stopping)
		cond_wait_until(&pool->wanted, &pool->lock,
				clock_ns() + KEEPER_WAIT_S * 1ull * NS_PER_S);
}

static void keeper_run(void *arg)
{
	struct work_pool *pool = arg;
	int err;

	mutex_lock(&pool->lock);
	while (!pool->stopping) {
		if (workers_short(pool)) {
			err = add_worker(pool);
			if (err < 0)
				keeper_rest(pool, err);
		} else {
			pool->growing = false;
			pthread_cond_wait(&pool->wanted, &pool->lock);
		}
	}
	mutex_unlock(&pool->lock);
}

/* Ends all threads. */
static void join(struct work_pool *pool)
{
	struct worker *w, *next;

	mutex_lock(&pool->lock);
	pool->stopping = true;
	pthread_cond_signal(&pool->wanted);
	w = pool->idle;
	pool->idle = NULL;
	mutex_unlock(&pool->lock);
	for (; w; w = next) {
		next = w->next_idle;	/* w can sleep again, once woken */
		wake(w);
	}
	pthread_join(pool->keeper, NULL);
	for (w = pool->workers; w; w = next) {
		next = w->next;
		pthread_join(w->thread, NULL);
		free(w);
	}
}

/* The lock is held for a few instructions: spinning is cheaper than
 * sleeping. */
static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static void free_pool(struct work_pool *pool)
{
	pthread_cond_destroy(&pool->wanted);
	pthread_cond_destroy(&pool->quiet);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

/* The keeper, and the worker that always stays. */
static int workers_start(struct work_pool *pool)
{
	int err;

	err = thread_start(&pool->keeper, "keeper", keeper_run, pool);
	if (err < 0)
		return err;
	mutex_lock(&pool->lock);
	err = add_worker(pool);
	mutex_unlock(&pool->lock);
	if (err < 0)
		join(pool);
	return err;
}

int work_pool_create(unsigned nworkers, struct work_pool **out)
{
	struct work_pool *pool;
	int err = -ENOMEM;

	pool = calloc(1, sizeof(*pool));
	if (!pool)
		goto fail;
	init_lock(&pool->lock);
	pthread_cond_init(&pool->quiet, NULL);
	pthread_cond_init(&pool->wanted, NULL);
	CDS_INIT_LIST_HEAD(&pool->ready);
	CDS_INIT_LIST_HEAD(&pool->classes);
	nworkers = MAX(1u, nworkers);
	pool->most = (unsigned)MIN(machine_share()->tasks / 2, UINT32_MAX / 4);
	pool->max_spin = machine_share()->processors > 1 ? MAX_SPIN : 0;
	pool->common = work_class_new(pool, "common", nworkers);
	if (!pool->common)
		goto fail_pool;
	err = workers_start(pool);
	if (err < 0)
		goto fail_common;
	*out = pool;
	return 0;

fail_common:
	free(pool->common);
fail_pool:
	free_pool(pool);
fail:
	return err;
}

void work_pool_destroy(struct work_pool *pool)
{
	join(pool);
	assert(cds_list_empty(&pool->ready));
	free(pool->common);
	free_pool(pool);
}
