/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * walk - a tree of directories, each object once, without following links.
 *
 * The server chooses the names and which directory is in which.  Names that
 * no file can have are reported and passed by; so is a directory in itself, and
 * one below WALK_DEPTH_MAX others.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/nfs/say.h"
#include "tools/nfs/tool.h"

void walk_put_path(FILE *f, const struct walk_at *at)
{
	if (at->up) {
		walk_put_path(f, at->up);
		if (at->up->up || strcmp(at->up->name, "/") != 0)
			putc('/', f);
	}
	tool_put_bytes(f, at->name, at->len);
}

int walk_complain(const struct walk_at *at, int err, uint32_t status)
{
	if (at->silent)
		return TOOL_FAILED;
	fputs("gannet-nfs: ", say_stream());
	walk_put_path(say_stream(), at);
	return tool_reason(err, status);
}

int walk_refuse(const struct walk_at *at, const char *why)
{
	if (at->silent)
		return TOOL_FAILED;
	fputs("gannet-nfs: ", say_stream());
	walk_put_path(say_stream(), at);
	fprintf(say_stream(), ": %s\n", why);
	return TOOL_FAILED;
}

static bool is_own_ancestor(const struct walk_at *at)
{
	for (const struct walk_at *up = at->up; up; up = up->up)
		if (up->attr.fsid == at->attr.fsid &&
		    up->attr.attr.fileid == at->attr.attr.fileid)
			return true;
	return false;
}

static int walk_into(struct walk *w, struct walk_at *at);

/* One object: its visit, and for a directory all below. */
static int walk_one(struct walk *w, struct walk_at *at)
{
	int err;

	if (!at->attr.has || at->fh.len == 0)
		return walk_refuse(at, "the server does not say what this "
				   "is");
	if (at->attr.attr.type != VFS_DIR)
		return w->visit(w, at, WALK_FILE);
	if (is_own_ancestor(at))
		return walk_refuse(at, "the server has this directory in "
				   "itself");
	if (at->depth > WALK_DEPTH_MAX)
		return walk_refuse(at, "too many directories below another");
	err = w->visit(w, at, WALK_ENTER);
	if (err == TOOL_OK) {
		if (w->levels == 0 || at->depth + 1 < w->levels)
			err = walk_into(w, at);
		if (err != TOOL_UNREACHABLE) {
			int last = w->visit(w, at, WALK_LEAVE);

			err = err == TOOL_OK ? last : err;
		}
	}
	return err;
}

static int walk_entry(struct walk *w, struct walk_at *up,
		      struct nfsc_entry *e, bool last)
{
	struct walk_at at = {
		.up = up, .name = e->name, .len = e->len, .last = last,
		.depth = up->depth + 1, .silent = up->silent,
	};
	int err;

	if (!nfsc_name_is_good(e->name, e->len))
		return walk_refuse(&at, "the server lists a name that no file "
				   "can have");
	if (w->skip && w->skip(w, &at))
		return TOOL_OK;
	err = tool_look_up(w->t, &up->fh, e);
	if (err < 0)
		return walk_complain(&at, err, 0);
	at.attr = e->attr;
	at.fh = e->fh;
	return walk_one(w, &at);
}

static bool is_dot(const struct nfsc_entry *e)
{
	return e->len == strlen(e->name) &&
	       (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0);
}

/* A directory that changes while it is listed can have a name twice. */
static bool is_listed_again(const struct listing *l, size_t i)
{
	const struct nfsc_entry *e = l->e[i], *before = i ? l->e[i - 1] : NULL;

	return before && before->fileid == e->fileid && before->len == e->len &&
	       memcmp(before->name, e->name, e->len) == 0;
}

static int walk_into(struct walk *w, struct walk_at *at)
{
	struct listing l;
	int err, worst;

	worst = tool_list(w->t, &at->fh, at->name, &l);
	for (size_t i = 0; i < l.n && worst != TOOL_UNREACHABLE; i++) {
		if (is_dot(l.e[i]) || is_listed_again(&l, i))
			continue;
		err = walk_entry(w, at, l.e[i], i + 1 == l.n);
		worst = err > worst ? err : worst;
	}
	listing_free(&l);
	return worst;
}

int tool_walk(struct walk *w, const struct tool_object *obj, const char *name)
{
	struct walk_at at = {
		.name = name, .len = (uint32_t)strlen(name), .fh = obj->fh,
		.attr = obj->attr, .silent = w->silent,
	};

	w->t->silent = w->silent;
	return walk_one(w, &at);
}

int tool_walk_url(struct walk *w, const char *url, struct tool_options o)
{
	struct tool_object obj;
	struct tool t;
	int err;

	o.all = true;
	err = tool_open(&t, url, &o);
	if (err != TOOL_OK)
		return err;
	w->t = &t;
	err = tool_find(&t, &obj, true, false);
	if (err == TOOL_OK)
		err = tool_walk(w, &obj, t.url.path);
	tool_close(&t);
	return err;
}
