/* SPDX-License-Identifier: BSD-2-Clause */
/* A bounded number of accounts, each with a number and a name. */
#include "lib/account.h"

#include <stdlib.h>
#include <string.h>

#include "lib/thread.h"

struct page {
	struct account	 account;
	/* The book's lock guards the rest. */
	uint32_t	 id;
	unsigned	 users;
	uint64_t	 left;		/* its number in the order of return */
	char		*name;
	/* NULL, or its counts when its present owner got it. */
	struct account_sum *before;
};

struct account_book {
	unsigned	 max;
	pthread_mutex_t	 lock;
	struct page	**pages;	/* n of them; they stay */
	unsigned	 n;
	uint64_t	 given_back;
	struct page	 others;
};

struct account_book *account_book_create(unsigned max)
{
	struct account_book *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->max = max;
	b->pages = calloc(max, sizeof(struct page *));
	if (!b->pages) {
		free(b);
		return NULL;
	}
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

static void page_free(struct page *p)
{
	account_fini(&p->account);
	free(p->name);
	free(p->before);
	free(p);
}

void account_book_destroy(struct account_book *b)
{
	if (!b)
		return;
	for (unsigned i = 0; i < b->n; i++)
		page_free(b->pages[i]);
	account_fini(&b->others.account);
	pthread_mutex_destroy(&b->lock);
	free(b->pages);
	free(b);
}

/* With the lock, from here on. */
static struct page *page_find(struct account_book *b, uint32_t id)
{
	for (unsigned i = 0; i < b->n; i++)
		if (b->pages[i]->id == id)
			return b->pages[i];
	return NULL;
}

/* An empty page, or NULL. */
static struct page *page_add(struct account_book *b)
{
	struct page *p = b->n < b->max ? calloc(1, sizeof(*p)) : NULL;

	if (p)
		b->pages[b->n++] = p;
	return p;
}

/* The page that was given back first, as if it were empty; or NULL.  Calls of
 * its last owner can still count there, so nothing in it is set to zero. */
static struct page *page_reuse(struct account_book *b)
{
	struct account_sum *now;
	struct page *p = NULL;

	for (unsigned i = 0; i < b->n; i++)
		if (b->pages[i]->users == 0 &&
		    (!p || b->pages[i]->left < p->left))
			p = b->pages[i];
	now = p ? calloc(1, sizeof(*now)) : NULL;
	if (!now)
		return NULL;
	account_sum(&p->account, now);
	free(p->before);
	p->before = now;
	free(p->name);
	p->name = NULL;
	return p;
}

static void page_name(struct page *p, const char *name)
{
	char *copy;

	if (p->name && strlen(p->name) <= strlen(name))
		return;
	copy = strdup(name);
	if (!copy)
		return;
	free(p->name);
	p->name = copy;
}

struct account *account_book_get(struct account_book *b, uint32_t id,
				 const char *name)
{
	struct page *p;

	mutex_lock(&b->lock);
	p = page_find(b, id);
	if (!p)
		p = page_add(b);
	if (!p)
		p = page_reuse(b);
	if (p) {
		p->id = id;
		page_name(p, name);
	} else {
		p = &b->others;
	}
	p->users++;
	mutex_unlock(&b->lock);
	return &p->account;
}

void account_book_put(struct account_book *b, struct account *a)
{
	struct page *p = container_of(a, struct page, account);

	mutex_lock(&b->lock);
	assert(p->users > 0);
	if (--p->users == 0)
		p->left = ++b->given_back;
	mutex_unlock(&b->lock);
}

/* Sums up the page; takes the lock only for the fields that it guards. */
static void page_tell(struct account_book *b, struct page *p,
		      account_book_fn *fn, void *arg)
{
	struct account_sum sum = { 0 };
	unsigned users;
	char *name;

	mutex_lock(&b->lock);
	account_sum(&p->account, &sum);
	if (p->before)
		account_sum_less(&sum, p->before);
	name = p->name ? strdup(p->name) : NULL;
	users = p->users;
	mutex_unlock(&b->lock);
	if (name || p == &b->others)
		fn(name, users, &sum, arg);
	free(name);
}

void account_book_walk(struct account_book *b, account_book_fn *fn, void *arg)
{
	bool others;
	unsigned n;

	mutex_lock(&b->lock);
	n = b->n;
	others = b->others.users > 0 || b->others.left > 0;
	mutex_unlock(&b->lock);
	for (unsigned i = 0; i < n; i++)
		page_tell(b, b->pages[i], fn, arg);
	if (others)
		page_tell(b, &b->others, fn, arg);
}
