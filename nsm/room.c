/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * room - the bounds of the list of hosts, and whose turn it is to be told of
 * our start.  Pure.
 *
 * A host that can go joins the lists of its groups.  If it then has to stay,
 * the next search that meets it takes it out.  So a search costs as much as the
 * changes since the last one, however long the list.
 */
#include "nsm/hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/network.h"
#include "lib/util.h"
#include "transport/addr.h"

_Thread_local uint64_t nsm_steps;

static unsigned addr_chain(const struct sockaddr *addr)
{
	return (unsigned)(hash_addr(xprt_addr_host(addr).s6_addr) %
			  NSM_CHAINS);
}

const struct cds_list_head *nsm_hosts_chain(const struct nsm_hosts *h,
					    const struct sockaddr *addr)
{
	return &h->chain[addr_chain(addr)];
}

bool nsm_same_addr(const struct nsm_host *host, const struct sockaddr *addr)
{
	nsm_steps++;
	return xprt_addr_same_host(nsm_addr(host), addr);
}

/* ---- groups */

/* The group of @addr, made if need be; NULL: no memory. */
static struct nsm_group *get_group(struct nsm_hosts *h, enum nsm_bound kind,
				   struct in6_addr addr)
{
	struct cds_list_head *bucket =
		&h->group[hash_addr(addr.s6_addr) % NSM_CHAINS];
	struct nsm_group *g;

	cds_list_for_each_entry(g, bucket, link) {
		nsm_steps++;
		if (g->kind == kind && !memcmp(&g->addr, &addr, sizeof(addr)))
			return g;
	}
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->kind = kind;
	g->addr = addr;
	CDS_INIT_LIST_HEAD(&g->spare);
	cds_list_add(&g->link, bucket);
	return g;
}

/* False: no memory. */
static bool join_groups(struct nsm_hosts *h, struct nsm_host *host)
{
	const struct in6_addr a = xprt_addr_host(nsm_addr(host));
	bool ok = true;

	host->in[NSM_OF_ALL].of = &h->all;
	/* An IPv4 address shares neither. */
	if (!IN6_IS_ADDR_V4MAPPED(&a)) {
		host->in[NSM_OF_NETWORK].of =
			get_group(h, NSM_OF_NETWORK, xprt_addr_network(&a));
		host->in[NSM_OF_SITE].of =
			get_group(h, NSM_OF_SITE, xprt_addr_site(&a));
		ok = host->in[NSM_OF_NETWORK].of && host->in[NSM_OF_SITE].of;
	}
	for (unsigned i = 0; i < NSM_BOUNDS; i++)
		if (host->in[i].of)
			host->in[i].of->count++;
	return ok;
}

/* ---- room */

static bool may_go(const struct nsm_host *host)
{
	nsm_steps++;
	return !host->monitored && !host->calls;
}

static void leave_spare(struct nsm_host *host)
{
	for (unsigned i = 0; i < NSM_BOUNDS; i++)
		cds_list_del_init(&host->in[i].spare);
}

static void leave_groups(struct nsm_hosts *h, struct nsm_host *host)
{
	struct nsm_group *g;

	leave_spare(host);
	for (unsigned i = 0; i < NSM_BOUNDS; i++) {
		g = host->in[i].of;
		if (g && !--g->count && g != &h->all) {
			cds_list_del(&g->link);
			free(g);
		}
	}
}

void nsm_hosts_drop(struct nsm_hosts *h, struct nsm_host *host)
{
	leave_groups(h, host);
	cds_list_del(&host->due_link);
	cds_list_del(&host->link);
	cds_list_del(&host->near);
	free(host);
}

void nsm_room_note(struct nsm_host *host)
{
	if (!may_go(host) || !cds_list_empty(&host->in[NSM_OF_ALL].spare))
		return;
	for (unsigned i = 0; i < NSM_BOUNDS; i++)
		if (host->in[i].of)
			cds_list_add_tail(&host->in[i].spare,
					  &host->in[i].of->spare);
}

/* The oldest host of the group that can go, or NULL. */
static struct nsm_host *find_spare(struct nsm_group *g)
{
	struct nsm_host *host;

	while (!cds_list_empty(&g->spare)) {
		host = cds_list_entry(g->spare.next, struct nsm_host,
				      in[g->kind].spare);
		if (may_go(host))
			return host;
		leave_spare(host);
	}
	return NULL;
}

/* True if the group has @max at most, or one makes room. */
static bool make_group_room(struct nsm_hosts *h, struct nsm_group *g,
			    unsigned max)
{
	struct nsm_host *host;

	if (!g || g->count <= max)
		return true;
	host = find_spare(g);
	if (host)
		nsm_hosts_drop(h, host);
	return host;
}

/* The same of the hosts with @addr. */
static bool make_addr_room(struct nsm_hosts *h, const struct sockaddr *addr)
{
	struct nsm_host *host, *oldest = NULL;
	unsigned n = 0;

	cds_list_for_each_entry(host, nsm_hosts_chain(h, addr), near)
		if (nsm_same_addr(host, addr)) {
			n++;
			if (!oldest && may_go(host))
				oldest = host;
		}
	if (n < h->max_addr)
		return true;
	if (oldest)
		nsm_hosts_drop(h, oldest);
	return oldest;
}

/* The host is counted already. */
static int make_rooms(struct nsm_hosts *h, const struct nsm_host *host)
{
	struct nsm_group *network = host->in[NSM_OF_NETWORK].of;
	struct nsm_group *site = host->in[NSM_OF_SITE].of;

	if (!make_addr_room(h, nsm_addr(host)) ||
	    !make_group_room(h, network, network_share(h->max)) ||
	    !make_group_room(h, site, site_share(h->max)))
		return -EDQUOT;
	return make_group_room(h, &h->all, h->max) ? 0 : -ENOSPC;
}

int nsm_room_take(struct nsm_hosts *h, struct nsm_host *host, bool listed)
{
	int err = join_groups(h, host) ? 0 : -ENOMEM;

	if (!err && !listed)
		err = make_rooms(h, host);
	if (err) {
		leave_groups(h, host);
		return err;
	}
	cds_list_add_tail(&host->link, &h->list);
	cds_list_add_tail(&host->near, &h->chain[addr_chain(nsm_addr(host))]);
	nsm_room_note(host);
	return 0;
}

/* ---- turns */

void nsm_hosts_tell_at(struct nsm_hosts *h, struct nsm_host *host,
		       uint64_t ms, unsigned pause)
{
	host->due = ms;
	cds_list_del(&host->due_link);
	cds_list_add_tail(&host->due_link, &h->due[pause]);
}

/* The first of the list that can still be told, or NULL. */
static struct nsm_host *first_to_tell(struct cds_list_head *list)
{
	struct nsm_host *host;

	while (!cds_list_empty(list)) {
		host = cds_list_first_entry(list, struct nsm_host, due_link);
		nsm_steps++;
		if (host->untold && !host->telling && host->due <= host->until)
			return host;
		cds_list_del_init(&host->due_link);
	}
	return NULL;
}

struct nsm_host *nsm_hosts_due(struct nsm_hosts *h)
{
	struct nsm_host *host, *first = NULL;

	for (unsigned i = 0; i < NSM_PAUSES; i++) {
		host = first_to_tell(&h->due[i]);
		if (host && (!first || host->due < first->due))
			first = host;
	}
	return first;
}
