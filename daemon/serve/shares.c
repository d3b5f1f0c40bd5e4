/* SPDX-License-Identifier: BSD-2-Clause */
/* shares - the workers that the calls of each export can occupy. */
#include "daemon/serve/serve.h"

#include <errno.h>
#include <stdlib.h>

#include "rpc/limit.h"
#include "rpc/share.h"

/* Exports with their own counts. */
#define ACCOUNTS	1024

struct share {
	struct rpc_share	 pub;
	bool			 unused;	/* its export is gone */
	struct cds_list_head	 link;
};

/* The exports and the file systems below them that have a limit's queues. */
struct limited {
	struct rpc_limit	*limit;
	uint32_t		 top;
	unsigned		 users;
	struct cds_list_head	 link;
};

/* NULL: no memory. */
static struct limited *limit_add(struct shares *s, uint32_t top)
{
	struct limited *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->limit = rpc_limit_create(s->rpc);
	if (!l->limit) {
		free(l);
		return NULL;
	}
	l->top = top;
	cds_list_add(&l->link, &s->limits);
	return l;
}

/* That of the export @top, which all file systems below it share. */
static struct rpc_limit *limit_get(struct shares *s, uint32_t top)
{
	struct rpc_limit *limit = NULL;
	struct limited *l, *found = NULL;

	mutex_lock(&s->lock);
	cds_list_for_each_entry(l, &s->limits, link)
		if (l->top == top)
			found = l;
	if (!found)
		found = limit_add(s, top);
	if (found) {
		found->users++;
		limit = found->limit;
	}
	mutex_unlock(&s->lock);
	return limit;
}

static void limit_drop(struct limited *l)
{
	cds_list_del(&l->link);
	rpc_limit_put(l->limit);
	free(l);
}

/* After shares_clear() this does nothing. */
static void limit_put(struct shares *s, struct rpc_limit *limit)
{
	struct limited *l, *next;

	mutex_lock(&s->lock);
	cds_list_for_each_entry_safe(l, next, &s->limits, link)
		if (l->limit == limit && --l->users == 0)
			limit_drop(l);
	mutex_unlock(&s->lock);
}

int shares_init(struct shares *s, unsigned threads)
{
	s->threads = threads;
	pthread_mutex_init(&s->lock, NULL);
	CDS_INIT_LIST_HEAD(&s->list);
	CDS_INIT_LIST_HEAD(&s->limits);
	s->accounts = account_book_create(ACCOUNTS);
	s->backends = account_book_create(ACCOUNTS);
	return s->accounts && s->backends ? 0 : -ENOMEM;
}

void shares_clear(struct shares *s)
{
	struct limited *l, *next;
	struct share *share;

	cds_list_for_each_entry(share, &s->list, link) {
		if (share->pub.class)
			work_class_destroy(share->pub.class);
		share->pub.class = NULL;
	}
	cds_list_for_each_entry_safe(l, next, &s->limits, link)
		limit_drop(l);
}

/* Frees the shares of exports that are gone.  A call that hangs keeps its
 * share. */
void shares_tidy(struct shares *s)
{
	struct share *share, *next;
	struct cds_list_head gone;

	CDS_INIT_LIST_HEAD(&gone);
	mutex_lock(&s->lock);
	cds_list_for_each_entry_safe(share, next, &s->list, link)
		if (share->unused && (!share->pub.class ||
				      work_class_idle(share->pub.class)))
			cds_list_move(&share->link, &gone);
	mutex_unlock(&s->lock);
	cds_list_for_each_entry_safe(share, next, &gone, link) {
		if (share->pub.class)
			work_class_destroy(share->pub.class);
		free(share);
	}
}

void shares_fini(struct shares *s)
{
	shares_tidy(s);
	account_book_destroy(s->accounts);
	account_book_destroy(s->backends);
	pthread_mutex_destroy(&s->lock);
}

void share_give(void *shares, struct export_tree *e)
{
	struct shares *s = shares;
	struct share *share = calloc(1, sizeof(*share));

	shares_tidy(s);		/* file systems below exports come and go */
	if (!share)
		return;
	share->pub = (struct rpc_share){
		.class = work_class_create(s->rpc, e->path, s->threads),
		.account = account_book_get(s->accounts, e->top, e->path),
		.backend = account_book_get(s->backends, e->top, e->path),
		.limit = limit_get(s, e->top),
	};
	e->user = &share->pub;
	mutex_lock(&s->lock);
	cds_list_add(&share->link, &s->list);
	mutex_unlock(&s->lock);
}

/* The export's last call might be running in the share: only mark it here. */
void share_return(void *shares, struct export_tree *e)
{
	struct shares *s = shares;
	struct share *share = e->user;

	if (!share)
		return;
	account_book_put(s->accounts, share->pub.account);
	account_book_put(s->backends, share->pub.backend);
	limit_put(s, share->pub.limit);
	mutex_lock(&s->lock);
	share->unused = true;
	mutex_unlock(&s->lock);
}
