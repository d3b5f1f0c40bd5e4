/* SPDX-License-Identifier: BSD-2-Clause */
/* fate - a connection's fate: its acknowledged position, and its end. */
#include "transport/fate.h"

#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "transport/xprt.h"

/* For tests: milliseconds to add to the clock. */
static _Atomic uint64_t ahead;

static _Atomic uint64_t turns;
static _Atomic uint64_t epoch;

/* A peer's address, without the port, while a fate has it. */
struct xprt_host {
	struct xprt_host *next;
	struct xprt_hashes hashes;	/* with the address */
	uint32_t	 scope;		/* of a link-local address */
	atomic_uint	 fates;		/* changed under the lock */
	/* The newest connection that a call came on: its turn + 1. */
	_Atomic uint64_t newest;
};

#define BUCKETS	4096u

/* Guards the lists. */
static pthread_mutex_t hosts_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xprt_host *hosts[BUCKETS];

/* With the lock.  Returns the host's link in its list, or the end of that. */
static struct xprt_host **find_host(const struct in6_addr *addr, uint32_t scope)
{
	struct xprt_host **p = &hosts[xprt_addr_hash(addr) % BUCKETS];

	while (*p && ((*p)->scope != scope ||
		      memcmp(&(*p)->hashes.addr, addr, sizeof(*addr)) != 0))
		p = &(*p)->next;
	return p;
}

static void init_host(struct xprt_host *h, const struct in6_addr *addr,
		      uint32_t scope)
{
	const struct in6_addr network = xprt_addr_network(addr);

	h->scope = scope;
	h->hashes = (struct xprt_hashes){ *addr, xprt_addr_hash(addr),
					  xprt_addr_hash(&network) };
}

/* NULL: no memory. */
static struct xprt_host *get_host(const struct sockaddr *peer)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)peer;
	struct in6_addr addr = xprt_addr_host(peer);
	uint32_t scope = IN6_IS_ADDR_LINKLOCAL(&addr) ? in6->sin6_scope_id : 0;
	struct xprt_host **p, *h;

	mutex_lock(&hosts_lock);
	p = find_host(&addr, scope);
	if (!*p) {
		*p = calloc(1, sizeof(**p));
		if (*p)
			init_host(*p, &addr, scope);
	}
	h = *p;
	if (h)
		atomic_fetch_add(&h->fates, 1);
	mutex_unlock(&hosts_lock);
	return h;
}

static void put_host(struct xprt_host *h)
{
	struct xprt_host **p;

	mutex_lock(&hosts_lock);
	if (atomic_fetch_sub(&h->fates, 1) == 1) {
		p = find_host(&h->hashes.addr, h->scope);
		*p = h->next;
		free(h);
	}
	mutex_unlock(&hosts_lock);
}

uint64_t xprt_now_ms(void)
{
	return clock_ms() + atomic_load_explicit(&ahead, memory_order_relaxed);
}

void xprt_age(int seconds)
{
	atomic_fetch_add(&ahead, (uint64_t)((int64_t)seconds * 1000));
}

struct xprt_fate *xprt_fate_create(struct xprt *x, uint32_t ms)
{
	/* Now: what follows can wait for a lock. */
	uint64_t born = xprt_now_ms() - ms;
	struct xprt_fate *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->host = get_host((const struct sockaddr *)&x->peer);
	if (!f->host) {
		free(f);
		return NULL;
	}
	f->hashes = &f->host->hashes;
	ref_init(&f->ref);
	pthread_mutex_init(&f->lock, NULL);
	f->xprt = x;
	f->born = born;
	f->turn = atomic_fetch_add(&turns, 1);
	/* Its peer cannot have left it yet. */
	f->asked = atomic_fetch_add(&epoch, 1) + 1;
	return f;
}

void xprt_fate_put(struct xprt_fate *f)
{
	if (!f || !ref_put(&f->ref))
		return;
	put_host(f->host);
	pthread_mutex_destroy(&f->lock);
	free(f);
}

/* With the lock. */
static void note_acked(struct xprt_fate *f, uint64_t acked)
{
	if (acked > atomic_load_explicit(&f->acked, memory_order_relaxed))
		atomic_store_explicit(&f->acked, acked, memory_order_relaxed);
}

/* With the lock. */
static void fate_ask(struct xprt_fate *f, struct xprt_view *v)
{
	*v = (struct xprt_view){ .end = XPRT_ALIVE, .ended = xprt_now_ms() };
	f->xprt->ops->look(f->xprt, v);
	note_acked(f, v->acked);
}

void xprt_fate_look(struct xprt_fate *f, struct xprt_view *v)
{
	mutex_lock(&f->lock);
	if (f->xprt)
		fate_ask(f, v);
	else
		*v = f->last;
	mutex_unlock(&f->lock);
}

void xprt_fate_known(struct xprt_fate *f, struct xprt_view *v)
{
	mutex_lock(&f->lock);
	*v = f->last;
	mutex_unlock(&f->lock);
	v->acked = atomic_load_explicit(&f->acked, memory_order_relaxed);
}

bool xprt_fate_is_alone(const struct xprt_fate *f)
{
	return atomic_load(&f->host->fates) == 1 &&
	       atomic_load(&f->host->newest) <= f->turn + 1;
}

bool xprt_fate_called(struct xprt_fate *f)
{
	struct xprt_host *h = f->host;
	uint64_t me = f->turn + 1;
	uint64_t newest = atomic_load(&h->newest);

	while (me > newest &&
	       !atomic_compare_exchange_weak(&h->newest, &newest, me))
		;
	return newest > me;
}

uint64_t xprt_fate_epoch(void)
{
	return atomic_load(&epoch);
}

void xprt_fate_ask(struct xprt_fate *f)
{
	struct xprt_view v;

	atomic_store(&f->asked, atomic_fetch_add(&epoch, 1) + 1);
	xprt_fate_look(f, &v);
	if (v.end != XPRT_ALIVE)
		atomic_store(&f->left, true);
}

void xprt_fate_end(struct xprt_fate *f, enum xprt_end how)
{
	mutex_lock(&f->lock);
	if (f->xprt) {
		fate_ask(f, &f->last);
		f->last.end = MAX(f->last.end, how);
		f->xprt = NULL;
	}
	mutex_unlock(&f->lock);
}
