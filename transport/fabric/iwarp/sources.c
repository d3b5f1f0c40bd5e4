/* SPDX-License-Identifier: BSD-2-Clause */
/* sources - the networks whose hosts have unfinished MPA requests. */
#include "transport/fabric/iwarp/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void iwarp_sources_init(struct iwarp_sources *all)
{
	CDS_INIT_LIST_HEAD(&all->list);
	all->n = 0;
}

static struct iwarp_source *find_source(struct iwarp_sources *all,
					const struct in6_addr *network)
{
	struct cds_list_head *after = all->list.prev;
	struct iwarp_source *s;

	cds_list_for_each_entry(s, &all->list, link) {
		if (memcmp(&s->network, network, sizeof(*network)) == 0)
			return s;
		if (xprt_addr_same_site(&s->network, network))
			after = &s->link;
	}
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	s->all = all;
	s->network = *network;
	CDS_INIT_LIST_HEAD(&s->unfinished);
	cds_list_add(&s->link, after);
	return s;
}

int iwarp_sources_add(struct iwarp_sources *all, struct iwarp_conn *c)
{
	struct in6_addr host, network;
	struct iwarp_source *s;

	host = xprt_addr_host((const struct sockaddr *)&c->conn.info.peer);
	network = xprt_addr_network(&host);
	s = find_source(all, &network);
	if (!s)
		return -ENOMEM;
	cds_list_add_tail(&c->startup.unfinished, &s->unfinished);
	s->n++;
	all->n++;
	c->startup.source = s;
	return 0;
}

void iwarp_sources_remove(struct iwarp_conn *c)
{
	struct iwarp_source *s = c->startup.source;

	cds_list_del(&c->startup.unfinished);
	c->startup.source = NULL;
	s->all->n--;
	if (--s->n > 0)
		return;
	cds_list_del(&s->link);
	free(s);
}

/* Returns the first source of the site that has most requests. */
static struct iwarp_source *pick_site(const struct iwarp_sources *all)
{
	struct iwarp_source *s, *first = NULL, *best = NULL;
	unsigned n = 0, most = 0;

	cds_list_for_each_entry(s, &all->list, link) {
		if (!first || !xprt_addr_same_site(&first->network,
						   &s->network)) {
			first = s;
			n = 0;
		}
		n += s->n;
		if (n > most) {
			most = n;
			best = first;
		}
	}
	return best;
}

struct iwarp_conn *iwarp_sources_pick(const struct iwarp_sources *all)
{
	struct iwarp_source *site = pick_site(all), *s, *most = site;

	cds_list_for_each_entry(s, &all->list, link)
		if (s->n > most->n &&
		    xprt_addr_same_site(&s->network, &site->network))
			most = s;
	return cds_list_first_entry(&most->unfinished, struct iwarp_conn,
				    startup.unfinished);
}
