/* SPDX-License-Identifier: BSD-2-Clause */
/* table - hosts, owners, files, waiters and shares.  Pure. */
#include "nlm/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/hash.h"
#include "lib/network.h"
#include "lib/thread.h"
#include "lib/util.h"

void nlm_table_init(struct nlm_table *t, const struct nlm_limits *limits)
{
	memset(t, 0, sizeof(*t));
	t->limits = *limits;
	for (unsigned i = 0; i < NLM_BUCKETS; i++) {
		CDS_INIT_LIST_HEAD(&t->host[i]);
		CDS_INIT_LIST_HEAD(&t->client[i]);
		CDS_INIT_LIST_HEAD(&t->network[i]);
		CDS_INIT_LIST_HEAD(&t->owner[i]);
		CDS_INIT_LIST_HEAD(&t->file[i]);
	}
}

static unsigned bucket_of(const void *data, size_t len, uint64_t more)
{
	return (unsigned)(hash_values(hash_keyed(data, len), more) %
			  NLM_BUCKETS);
}

/* ---- hosts */

static unsigned addr_bucket(const struct in6_addr *addr)
{
	return bucket_of(addr, sizeof(*addr), 0);
}

static bool is_of(const struct nlm_host *h, const struct in6_addr *addr)
{
	return memcmp(&h->addr, addr, sizeof(*addr)) == 0;
}

struct nlm_host *nlm_host_next(const struct nlm_table *t,
			       const struct nlm_who *who,
			       const struct nlm_host *h)
{
	const struct cds_list_head *bucket =
		&t->host[addr_bucket(&who->addr)];
	struct cds_list_head *at = h ? h->link.next : bucket->next;

	for (; at != bucket; at = at->next) {
		struct nlm_host *next = cds_list_entry(at, struct nlm_host,
						       link);

		nlm_steps++;
		if (is_of(next, &who->addr) &&
		    (!who->name || (strlen(next->name) == who->name_len &&
		     memcmp(next->name, who->name, who->name_len) == 0)))
			return next;
	}
	return NULL;
}

struct nlm_host *nlm_host_find(const struct nlm_table *t,
			       const struct nlm_who *who)
{
	struct nlm_host *h = NULL;

	while ((h = nlm_host_next(t, who, h)))
		if (memcmp(&h->local, &who->local, sizeof(h->local)) == 0)
			break;
	return h;
}

/* The group with @addr in @buckets, or NULL. */
static struct nlm_group *group_find(const struct cds_list_head *buckets,
				    const struct in6_addr *addr)
{
	struct nlm_group *g;

	cds_list_for_each_entry(g, &buckets[addr_bucket(addr)], link) {
		nlm_steps++;
		if (memcmp(&g->addr, addr, sizeof(*addr)) == 0)
			return g;
	}
	return NULL;
}

/* Made if need be; NULL: no memory. */
static struct nlm_group *group_get(struct cds_list_head *buckets,
				   const struct in6_addr *addr)
{
	struct nlm_group *g = group_find(buckets, addr);

	if (g)
		return g;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->addr = *addr;
	cds_list_add(&g->link, &buckets[addr_bucket(addr)]);
	return g;
}

static void group_tidy(struct nlm_group *g)
{
	if (!g || g->n[NLM_HOSTS])
		return;
	cds_list_del(&g->link);
	free(g);
}

void nlm_count(struct nlm_host *h, enum nlm_kind kind, int n)
{
	h->n[kind] += (unsigned)n;
	h->client->n[kind] += (unsigned)n;
	h->network->n[kind] += (unsigned)n;
}

unsigned nlm_client_count(const struct nlm_table *t,
			  const struct in6_addr *addr, enum nlm_kind kind)
{
	const struct in6_addr network = xprt_addr_network(addr);
	const struct nlm_group *g = group_find(t->network, &network);

	return g ? g->n[kind] : 0;
}

/* Counts the things of @kind at the address @addr, all its names together. */
static unsigned addr_count(const struct nlm_table *t,
			   const struct in6_addr *addr, enum nlm_kind kind)
{
	const struct nlm_group *g = group_find(t->client, addr);

	return g ? g->n[kind] : 0;
}

unsigned nlm_ranges_of(const struct nlm_table *t, const struct in6_addr *addr)
{
	return addr_count(t, addr, NLM_RANGES);
}

bool nlm_has_room(const struct nlm_table *t, const struct in6_addr *addr,
		  enum nlm_kind kind, unsigned n)
{
	const struct nlm_limits *l = &t->limits;
	const struct { unsigned used, max, client_max; } of[] = {
		[NLM_HOSTS] = { t->hosts, l->hosts, l->client_hosts },
		[NLM_RANGES] = { t->ranges, l->ranges, l->client_ranges },
		[NLM_WAITS] = { t->waits, l->waits, l->client_waits },
		[NLM_SHARES] = { t->shares, l->shares, l->client_shares },
	};

	return of[kind].used + n <= of[kind].max &&
	       addr_count(t, addr, kind) + n <= of[kind].client_max &&
	       nlm_client_count(t, addr, kind) + n <=
	       (IN6_IS_ADDR_V4MAPPED(addr) ? of[kind].max :
		network_share(of[kind].max));
}

static void free_host(struct nlm_host *h)
{
	group_tidy(h->client);
	group_tidy(h->network);
	free(h);
}

struct nlm_host *nlm_host_get(struct nlm_table *t, const struct nlm_who *who)
{
	const struct in6_addr network = xprt_addr_network(&who->addr);
	struct nlm_host *h = nlm_host_find(t, who);

	if (h)
		return h;
	if (who->name_len > NLM_NAME_MAX ||
	    !nlm_has_room(t, &who->addr, NLM_HOSTS, 1))
		return NULL;
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->client = group_get(t->client, &who->addr);
	h->network = group_get(t->network, &network);
	if (!h->client || !h->network) {
		free_host(h);
		return NULL;
	}
	memcpy(h->name, who->name, who->name_len);
	h->addr = who->addr;
	h->local = who->local;
	CDS_INIT_LIST_HEAD(&h->owners);
	CDS_INIT_LIST_HEAD(&h->behind);
	cds_list_add(&h->link, &t->host[addr_bucket(&h->addr)]);
	t->hosts++;
	nlm_count(h, NLM_HOSTS, 1);
	return h;
}

void nlm_host_monitored(struct nlm_table *t, struct nlm_host *h)
{
	t->monitored += !h->monitored;
	h->monitored = true;
}

/* The length of the host's @name without its domain.  A name that is an address
 * has no domain. */
static size_t label_len(const uint8_t *name, size_t len)
{
	const uint8_t *dot = memchr(name, '.', len);

	for (size_t i = 0; i < len; i++)
		if (name[i] != '.' && (name[i] < '0' || name[i] > '9'))
			return dot && !memchr(name, ':', len) ?
			       (size_t)(dot - name) : len;
	return len;
}

/* A name with a domain and the same name without one can mean one host, which
 * can be written in either case.  No @name: all hosts with @addr; an empty one,
 * or one that is only a domain, is a name. */
static uint64_t ended_key(const struct in6_addr *addr, const uint8_t *name,
			  size_t len)
{
	struct {
		struct in6_addr addr;
		uint8_t	 named;
		uint8_t	 name[NLM_NAME_MAX];
	} key = { .addr = *addr, .named = name != NULL };
	size_t n = 0, end = name ? MIN(label_len(name, len),
				       sizeof(key.name)) : 0;

	for (; n < end; n++)
		key.name[n] = name[n] >= 'A' && name[n] <= 'Z' ?
			      name[n] | 0x20 : name[n];
	return hash_keyed(&key, sizeof(key.addr) + sizeof(key.named) + n);
}

static uint32_t tag_of(uint64_t key)
{
	return (uint32_t)(key >> 32);
}

static void note_ended(struct nlm_table *t, uint64_t key, uint64_t ns,
		       uint32_t state)
{
	struct nlm_ended *e = &t->ended[key % NLM_ENDS];

	if (ns >= e->ns)
		*e = (struct nlm_ended){ ns, tag_of(key), state };
}

void nlm_table_ended(struct nlm_table *t, const struct nlm_who *who,
		     uint32_t state)
{
	note_ended(t, ended_key(&who->addr, who->name, who->name_len),
		   clock_ns(), state);
}

static bool came_before(const struct nlm_table *t, uint64_t key, uint64_t ns,
			uint32_t state)
{
	const struct nlm_ended *e = &t->ended[key % NLM_ENDS];

	/* The host's end can be that which another took the place of. */
	return ns <= e->ns && (e->tag != tag_of(key) || !e->state ||
			       state != e->state);
}

static uint64_t host_key(const struct nlm_host *h)
{
	return ended_key(&h->addr, (const uint8_t *)h->name, strlen(h->name));
}

bool nlm_table_is_outlived(const struct nlm_table *t, const struct nlm_host *h,
			   uint64_t ns, uint32_t state)
{
	return came_before(t, host_key(h), ns, state) ||
	       came_before(t, ended_key(&h->addr, NULL, 0), ns, state);
}

void nlm_host_free(struct nlm_table *t, struct nlm_host *h)
{
	assert(cds_list_empty(&h->owners));
	if (h->restart_ns)
		note_ended(t, host_key(h), h->restart_ns, h->restart_state);
	cds_list_del(&h->link);
	t->hosts--;
	t->monitored -= h->monitored;
	nlm_count(h, NLM_HOSTS, -1);
	free_host(h);
}

/* ---- owners */

static unsigned owner_bucket(const struct nlm_host *h,
			     const struct nlm_who *who)
{
	return bucket_of(who->oh, who->oh_len, (uintptr_t)h ^ who->svid);
}

static struct nlm_owner *find_owner(const struct nlm_table *t,
				    const struct nlm_host *h,
				    const struct nlm_who *who)
{
	struct nlm_owner *o;

	cds_list_for_each_entry(o, &t->owner[owner_bucket(h, who)], link)
		if (o->host == h && o->svid == who->svid &&
		    o->oh_len == who->oh_len &&
		    memcmp(o->oh, who->oh, o->oh_len) == 0)
			return o;
	return NULL;
}

struct nlm_owner *nlm_owner_find(const struct nlm_table *t,
				 const struct nlm_who *who)
{
	const struct nlm_host *h = nlm_host_find(t, who);

	return h ? find_owner(t, h, who) : NULL;
}

struct nlm_owner *nlm_owner_get(struct nlm_table *t, const struct nlm_who *who)
{
	struct nlm_host *h = nlm_host_get(t, who);
	struct nlm_owner *o = h ? find_owner(t, h, who) : NULL;

	if (o || !h)
		return o;
	o = calloc(1, sizeof(*o) + who->oh_len);
	if (!o)
		return NULL;
	o->host = h;
	o->svid = who->svid;
	o->oh_len = who->oh_len;
	memcpy(o->oh, who->oh, who->oh_len);
	CDS_INIT_LIST_HEAD(&o->holds);
	CDS_INIT_LIST_HEAD(&o->waits);
	CDS_INIT_LIST_HEAD(&o->shares);
	cds_list_add(&o->link, &t->owner[owner_bucket(h, who)]);
	cds_list_add(&o->on_host, &h->owners);
	t->owners++;
	return o;
}

void nlm_owner_tidy(struct nlm_table *t, struct nlm_owner *o)
{
	if (o->pins || !cds_list_empty(&o->holds) ||
	    !cds_list_empty(&o->waits) || !cds_list_empty(&o->shares))
		return;
	cds_list_del(&o->link);
	cds_list_del(&o->on_host);
	t->owners--;
	free(o);
}

/* ---- files */

static unsigned file_bucket(const struct vfs_fs *fs, const struct vfs_handle *h)
{
	return bucket_of(h->data, h->len, (uintptr_t)fs);
}

struct nlm_file *nlm_file_find(const struct nlm_table *t,
			       const struct vfs_fs *fs,
			       const struct vfs_handle *h)
{
	struct nlm_file *f;

	cds_list_for_each_entry(f, &t->file[file_bucket(fs, h)], link)
		if (f->fs == fs && f->handle.len == h->len &&
		    memcmp(f->handle.data, h->data, h->len) == 0)
			return f;
	return NULL;
}

struct nlm_file *nlm_file_add(struct nlm_table *t, struct vfs_fs *fs,
			      const struct vfs_handle *h)
{
	struct nlm_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->fs = fs;
	f->handle = *h;
	CDS_INIT_LIST_HEAD(&f->holds);
	CDS_INIT_LIST_HEAD(&f->waits);
	CDS_INIT_LIST_HEAD(&f->shares);
	CDS_INIT_LIST_HEAD(&f->marked_holds);
	CDS_INIT_LIST_HEAD(&f->marked_waits);
	pthread_mutex_init(&f->turn, NULL);
	cds_list_add(&f->link, &t->file[file_bucket(fs, h)]);
	t->files++;
	return f;
}

bool nlm_file_idle(struct nlm_file *f)
{
	return f->refs == 0 && cds_list_empty(&f->holds) &&
	       cds_list_empty(&f->waits) && cds_list_empty(&f->shares);
}

void nlm_file_free(struct nlm_table *t, struct nlm_file *f)
{
	assert(nlm_file_idle(f));
	cds_list_del(&f->link);
	pthread_mutex_destroy(&f->turn);
	t->files--;
	free(f);
}

/* ---- holds */

struct nlm_hold *nlm_hold_find(const struct nlm_file *f,
			       const struct nlm_owner *o)
{
	const struct nlm_span key = nlm_owner_key(o);
	struct nlm_node *n = nlm_tree_find(f->by_owner, &key, NULL, NULL);

	return n ? container_of(n, struct nlm_hold, by_owner) : NULL;
}

struct nlm_hold *nlm_hold_get(struct nlm_file *f, struct nlm_owner *o)
{
	struct nlm_hold *h = nlm_hold_find(f, o);

	if (h)
		return h;
	h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->file = f;
	h->owner = o;
	CDS_INIT_LIST_HEAD(&h->ranges);
	CDS_INIT_LIST_HEAD(&h->marked);
	h->key = nlm_owner_key(o);
	h->by_owner = (struct nlm_node){ .at = &h->key, .owner = o };
	nlm_tree_add(&f->by_owner, &h->by_owner);
	cds_list_add_tail(&h->on_file, &f->holds);
	cds_list_add(&h->on_owner, &o->holds);
	return h;
}

void nlm_hold_note(struct nlm_hold *h)
{
	bool held = h->locker.held != 0;

	nlm_count(h->owner->host, NLM_HELD, held - h->counted);
	h->counted = held;
}

void nlm_hold_free(struct nlm_hold *h)
{
	assert(cds_list_empty(&h->ranges));
	nlm_count(h->owner->host, NLM_HELD, -h->counted);
	nlm_tree_del(&h->file->by_owner, &h->by_owner);
	cds_list_del(&h->marked);
	cds_list_del(&h->on_file);
	cds_list_del(&h->on_owner);
	free(h);
}

/* ---- waiters */

struct nlm_wait *nlm_wait_add(struct nlm_table *t, struct nlm_file *f,
			      struct nlm_owner *o, const struct nlm_span *at)
{
	struct nlm_wait *w;

	if (f->nwaits >= t->limits.file_waits ||
	    !nlm_has_room(t, &o->host->addr, NLM_WAITS, 1))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->file = f;
	w->owner = o;
	w->at = *at;
	if (!nlm_queue_join(w)) {
		free(w);
		return NULL;
	}
	w->since_ms = clock_ms();
	w->number.start = w->number.end = f->came++;
	nlm_wait_put(w, &f->asleep);
	CDS_INIT_LIST_HEAD(&w->marked);
	CDS_INIT_LIST_HEAD(&w->behind);
	cds_list_add_tail(&w->on_file, &f->waits);
	cds_list_add(&w->on_owner, &o->waits);
	t->waits++;
	f->nwaits++;
	nlm_count(o->host, NLM_WAITS, 1);
	return w;
}

void nlm_wait_free(struct nlm_table *t, struct nlm_wait *w)
{
	nlm_wait_put(w, NULL);
	nlm_due_end(w);
	cds_list_del(&w->marked);
	cds_list_del(&w->on_file);
	cds_list_del(&w->on_owner);
	if (w->granted || w->cut)
		nlm_freed_of(w);
	nlm_queue_leave(w);
	t->waits--;
	w->file->nwaits--;
	nlm_count(w->owner->host, NLM_WAITS, -1);
	free(w->before);
	free(w);
}

/* ---- shares */

struct nlm_share *nlm_share_conflict(const struct nlm_file *f,
				     const struct nlm_owner *o, uint32_t mode,
				     uint32_t access)
{
	struct nlm_share *s;

	cds_list_for_each_entry(s, &f->shares, on_file)
		if (s->owner != o && ((s->mode & access) || (s->access & mode)))
			return s;
	return NULL;
}

struct nlm_share *nlm_share_find(const struct nlm_file *f,
				 const struct nlm_owner *o)
{
	struct nlm_share *s;

	cds_list_for_each_entry(s, &o->shares, on_owner)
		if (s->file == f)
			return s;
	return NULL;
}

struct nlm_share *nlm_share_add(struct nlm_table *t, struct nlm_file *f,
				struct nlm_owner *o)
{
	struct nlm_share *s;

	if (!nlm_has_room(t, &o->host->addr, NLM_SHARES, 1))
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->file = f;
	s->owner = o;
	s->since_ms = clock_ms();
	cds_list_add_tail(&s->on_file, &f->shares);
	cds_list_add(&s->on_owner, &o->shares);
	t->shares++;
	nlm_count(o->host, NLM_SHARES, 1);
	return s;
}

void nlm_share_free(struct nlm_table *t, struct nlm_share *s)
{
	cds_list_del(&s->on_file);
	cds_list_del(&s->on_owner);
	t->shares--;
	nlm_count(s->owner->host, NLM_SHARES, -1);
	free(s);
}
