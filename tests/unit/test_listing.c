/* SPDX-License-Identifier: BSD-2-Clause */
/* Listings of gannet-nfs, from a session that makes them up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nfs/tool.h"
#include "tests/unit/runner.h"

TEST_CASE(.timeout = 180);

static struct nfsc_op *last;
static uint64_t listed;
static unsigned page;		/* names in a reply, */
static uint32_t claimed;	/* so long each; only their start is there */
static const char *name;

/* A page of names, each with a cookie that was not there before. */
static int list_more(struct nfsc_session *s, struct nfsc_op *op)
{
	size_t len = strlen(name);

	(void)s;
	op->err = 0;
	op->status = 0;
	op->eof = false;
	for (unsigned i = 0; i < page; i++) {
		struct nfsc_entry *e = calloc(1, sizeof(*e) + len + 1);

		memcpy(e->name, name, len);
		e->len = claimed;
		e->cookie = op->cookie + page - i;
		e->next = op->entries;
		op->entries = e;
	}
	listed += page;
	last = op;
	return 0;
}

static struct nfsc_op *take_last(struct nfsc_session *s)
{
	(void)s;
	return last;
}

static const struct nfsc_session_ops ops = {
	.submit = list_more, .wait = take_last,
};

/* Lists it; returns the messages about it. */
static char *list_all(struct listing *l)
{
	struct nfsc_session s = { .ops = &ops };
	struct tool_options o = { 0 };
	struct tool t = { .s = &s, .o = &o, .text = "it" };
	struct nfs3_fh fh = { .len = 4 };
	FILE *before = stderr;
	char *said = NULL;
	size_t len;

	stderr = open_memstream(&said, &len);
	ck_assert_int_eq(tool_list(&t, &fh, "it", l), TOOL_FAILED);
	fclose(stderr);
	stderr = before;
	return said;
}

TEST(a_listing_with_new_cookies_for_ever_ends_with_an_error)
{
	struct listing l;
	char *said;

	/* All of them are left out: no memory that ends stops this one. */
	name = ".hidden";
	page = 10000;
	claimed = 7;
	said = list_all(&l);
	ck_assert_str_eq(said, "gannet-nfs: it: the server lists more than "
			 "16777216 names in this directory\n");
	ck_assert_uint_eq(l.n, 0);
	free(said);
	listing_free(&l);
}

TEST(a_listing_of_long_names_ends_earlier)
{
	struct listing l;
	char *said;

	name = ".long";
	page = 100;
	claimed = 60000;
	said = list_all(&l);
	ck_assert_msg(strstr(said, "more than"), "%s", said);
	ck_assert_uint_lt(listed, 100000);
	free(said);
	listing_free(&l);
}
