/* SPDX-License-Identifier: BSD-2-Clause */
/* tree - tree and find. */
#include <fnmatch.h>
#include <string.h>

#include "tools/nfs/tool.h"

struct tree {
	struct walk w;
	unsigned long dirs, files;
};

static void put_branches(FILE *f, const struct walk_at *at)
{
	if (!at->up->up)
		return;
	put_branches(f, at->up);
	fputs(at->up->last ? "    " : "|   ", f);
}

static int show_branch(struct walk *w, struct walk_at *at, enum walk_step step)
{
	struct tree *tree = (struct tree *)w;
	FILE *f = w->t->o->out;

	if (step == WALK_LEAVE)
		return TOOL_OK;
	if (at->up) {
		put_branches(f, at);
		fputs(at->last ? "`-- " : "|-- ", f);
		tree->dirs += step == WALK_ENTER;
		tree->files += step == WALK_FILE;
	}
	tool_put_bytes(f, at->name, at->len);
	fputs(at->attr.attr.type == VFS_DIR && at->up ? "/\n" : "\n", f);
	return TOOL_OK;
}

int tool_tree(const char *url, const struct tool_options *o)
{
	struct tree tree = { .w.visit = show_branch };
	struct tool_object obj;
	struct tool t;
	int err = tool_open(&t, url, o);

	if (err != TOOL_OK)
		return err;
	tree.w.t = &t;
	err = tool_find(&t, &obj, true, false);
	if (err == TOOL_OK) {
		err = tool_walk(&tree.w, &obj, t.url.path);
		fprintf(o->out, "\n%lu director%s, %lu file%s\n", tree.dirs,
			tree.dirs == 1 ? "y" : "ies", tree.files,
			tree.files == 1 ? "" : "s");
	}
	tool_close(&t);
	return err;
}

/* ---- find */

/* The top's is the last of its path. */
static const char *last_name(const struct walk_at *at)
{
	const char *slash = at->up ? NULL : strrchr(at->name, '/');

	return slash && slash[1] ? slash + 1 : at->name;
}

static bool is_found(const struct tool_options *o, const struct walk_at *at)
{
	uint32_t type = at->attr.attr.type;

	if (at->depth < o->mindepth ||
	    (o->type && (type >= sizeof(tool_types) - 1 ||
			 tool_types[type] != o->type)))
		return false;
	return !o->name || fnmatch(o->name, last_name(at), 0) == 0;
}

static int show_found(struct walk *w, struct walk_at *at, enum walk_step step)
{
	FILE *f = w->t->o->out;

	if (step == WALK_LEAVE || !is_found(w->t->o, at))
		return TOOL_OK;
	if (w->t->o->json)
		return json_put_object(w->t, &(struct json_object){
			.name = last_name(at), .len = strlen(last_name(at)),
			.path = at, .attr = &at->attr, .fh = &at->fh });
	walk_put_path(f, at);
	putc('\n', f);
	return TOOL_OK;
}

int tool_search(const char *url, const struct tool_options *o)
{
	struct walk w = { .visit = show_found, .levels = o->levels };

	return tool_walk_url(&w, url, *o);
}
