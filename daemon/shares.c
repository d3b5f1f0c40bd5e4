/* SPDX-License-Identifier: BSD-2-Clause */
/* shares - the workers that the calls of each export may occupy. */
#include "daemon/shares.h"

#include <errno.h>
#include <stdlib.h>

/* Exports that are counted each by itself. */
#define ACCOUNTS	1024

struct share {
	struct work_class	*class;
	bool			 unused;	/* its export is gone */
	struct cds_list_head	 link;
};

int shares_init(struct shares *s, unsigned threads)
{
	s->threads = threads;
	pthread_mutex_init(&s->lock, NULL);
	CDS_INIT_LIST_HEAD(&s->list);
	s->accounts = account_book_create(ACCOUNTS);
	s->backends = account_book_create(ACCOUNTS);
	return s->accounts && s->backends ? 0 : -ENOMEM;
}

static void free_shares(struct shares *s, bool all)
{
	struct share *share, *next;
	struct cds_list_head gone;

	CDS_INIT_LIST_HEAD(&gone);
	mutex_lock(&s->lock);
	cds_list_for_each_entry_safe(share, next, &s->list, link)
		/* A call that hangs keeps its share. */
		if (all || (share->unused && work_class_idle(share->class)))
			cds_list_move(&share->link, &gone);
	mutex_unlock(&s->lock);
	cds_list_for_each_entry_safe(share, next, &gone, link) {
		work_class_destroy(share->class);
		free(share);
	}
}

void shares_clear(struct shares *s)
{
	free_shares(s, true);
}

void shares_fini(struct shares *s)
{
	account_book_destroy(s->accounts);
	account_book_destroy(s->backends);
	pthread_mutex_destroy(&s->lock);
}

void shares_tidy(struct shares *s)
{
	free_shares(s, false);
}

void share_give(void *shares, struct export *e)
{
	struct shares *s = shares;
	struct share *share = calloc(1, sizeof(*share));

	shares_tidy(s);		/* file systems below exports come and go */
	e->account = account_book_get(s->accounts, e->top, e->path);
	e->backend = account_book_get(s->backends, e->top, e->path);
	if (!share)
		return;
	share->class = work_class_create(s->rpc, e->path, s->threads);
	if (!share->class) {
		free(share);
		return;
	}
	e->upper = share->class;
	mutex_lock(&s->lock);
	cds_list_add(&share->link, &s->list);
	mutex_unlock(&s->lock);
}

/* The export's last call may be running in the share: only mark it here. */
void share_return(void *shares, struct export *e)
{
	struct shares *s = shares;
	struct share *share;

	account_book_put(s->accounts, e->account);
	account_book_put(s->backends, e->backend);
	mutex_lock(&s->lock);
	cds_list_for_each_entry(share, &s->list, link)
		if (share->class == e->upper)
			share->unused = true;
	mutex_unlock(&s->lock);
}
