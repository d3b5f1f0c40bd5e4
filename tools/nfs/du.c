/* SPDX-License-Identifier: BSD-2-Clause */
/* du - the space that a tree takes on the server. */
#include <errno.h>
#include <search.h>
#include <stdlib.h>

#include "tools/nfs/tool.h"

/* From the place above the top to a file in the deepest directory. */
enum { LEVELS = WALK_DEPTH_MAX + 3 };

/* A file with several names, which counts once. */
struct counted {
	uint64_t fsid, fileid;
};

struct du {
	struct walk w;
	uint64_t used[LEVELS];		/* on the way, by depth + 1 */
	void	*counted;		/* of tsearch(3) */
	bool	 left_out;		/* no memory to count it */
	bool	 files;			/* are shown as well */
};

static int counted_cmp(const void *a, const void *b)
{
	const struct counted *x = a, *y = b;

	if (x->fsid != y->fsid)
		return x->fsid < y->fsid ? -1 : 1;
	return x->fileid < y->fileid ? -1 : x->fileid > y->fileid;
}

/* Bytes of a file, at the first of its names. */
static uint64_t count_once(struct du *d, const struct nfs3_attr *attr)
{
	struct counted *c, *const *found;

	if (attr->attr.nlink < 2)
		return attr->attr.used;
	c = malloc(sizeof(*c));
	if (c)
		*c = (struct counted){ attr->fsid, attr->attr.fileid };
	found = c ? tsearch(c, &d->counted, counted_cmp) : NULL;
	if (!found) {
		d->left_out = true;
		free(c);
	} else if (*found != c) {
		free(c);
		return 0;
	}
	return attr->attr.used;
}

static void put_used(const struct du *d, const struct walk_at *at,
		     uint64_t used)
{
	const struct tool_options *o = d->w.t->o;
	char text[24];

	if (o->human)
		tool_human(used, text);
	else
		snprintf(text, sizeof(text), "%llu",
			 (unsigned long long)(used + 1023) / 1024);
	fprintf(o->out, "%s\t", text);
	walk_put_path(o->out, at);
	putc('\n', o->out);
}

static int add_up(struct walk *w, struct walk_at *at, enum walk_step step)
{
	struct du *d = (struct du *)w;
	uint64_t *own = &d->used[at->depth + 1];
	unsigned levels = w->t->o->levels;

	if (step == WALK_ENTER) {
		*own = at->attr.attr.used;
		return TOOL_OK;
	}
	if (step == WALK_FILE)
		*own = count_once(d, &at->attr);
	d->used[at->depth] += *own;
	if (at->depth == 0 || ((step == WALK_LEAVE || d->files) &&
			       !w->t->o->summary && (levels == 0 ||
						     at->depth < levels)))
		put_used(d, at, *own);
	return TOOL_OK;
}

int tool_du(const char *url, const struct tool_options *o)
{
	struct du d = { .w.visit = add_up, .files = o->all };
	int err = tool_walk_url(&d.w, url, *o);

	if (d.left_out && err == TOOL_OK)
		err = tool_complain(url, -ENOMEM, 0);
	tdestroy(d.counted, free);
	return err;
}
