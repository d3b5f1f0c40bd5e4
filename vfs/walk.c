/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/walk.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/util.h"

#define LINKS_MAX	40		/* as the kernel does */

int walk_path(struct xdr_view path, char out[WALK_PATH_MAX + 1])
{
	uint32_t len = path.len;

	if (len > WALK_PATH_MAX)
		return -ENAMETOOLONG;
	if (len == 0 || path.data[0] != '/' || memchr(path.data, '\0', len))
		return -EINVAL;
	while (len > 1 && path.data[len - 1] == '/')
		len--;
	memcpy(out, path.data, len);
	out[len] = '\0';
	return 0;
}

int walk_begin(const struct walk_client *c, struct xdr_view path,
	       struct walk *w)
{
	char text[WALK_PATH_MAX + 1];
	struct export *exp;
	const char *rest;
	int err;

	err = walk_path(path, text);
	if (err < 0)
		return err;
	err = (c->may_wait ?		/* in the share for that */
	       export_reach_path : export_find_path)(c->exports, text, c->peer,
			c->any_port, &exp, &w->opts, &rest);
	if (err < 0)
		return err;
	err = export_caller_counted(c->exports, &w->opts, &c->who, c->may_wait,
				    &w->cred);
	if (err < 0) {
		export_put(exp);
		return err;
	}
	w->exp = exp;
	w->rest = (uint32_t)(rest - text);
	return 0;
}

/* On the way to a directory of an export. */
struct way {
	const struct walk_client *c;
	struct walk	*to;		/* whose exp and cred follow the way */
	struct vfs_node	*root;		/* counted */
	struct vfs_node	*node;		/* counted: so far */
	unsigned	 links;		/* followed */
	const char	*left;		/* in @text */
	char		 text[2 * VFS_PATH_MAX + 2];
};

static void step_to(struct way *w, struct vfs_node *n)
{
	vfs_node_put(w->node);
	w->node = n;
}

/* A link's @text comes before what is left.  An absolute one is a path of the
 * server, and has to lie in the export's. */
static int enter_link(struct way *w, const char *text)
{
	char next[sizeof(w->text)];
	size_t skip = strlen(w->to->exp->path);

	if (*text == '/') {
		/* The export "/" is the only one with a slash at its end. */
		skip -= w->to->exp->path[skip - 1] == '/';
		if (strncmp(text, w->to->exp->path, skip) != 0 ||
		    (text[skip] != '/' && text[skip] != '\0'))
			return -EACCES;
		text += skip;
		vfs_node_get(w->root);
		step_to(w, w->root);
	}
	if (strlen(text) + 1 + strlen(w->left) >= sizeof(next))
		return -ENAMETOOLONG;
	strcpy(next, text);
	strcat(next, "/");
	strcat(next, w->left);
	strcpy(w->text, next);
	w->left = w->text;
	return 0;
}

/* @link is in w->node, and gone afterwards. */
static int follow(struct way *w, struct vfs_node *link)
{
	char text[VFS_PATH_MAX + 1];
	struct vfs_op op = { .cred = &w->to->cred, .node = link, .text = text,
			     .size = VFS_PATH_MAX };
	int len = -ELOOP;

	if (w->links++ < LINKS_MAX)
		len = link->fs->ops->readlink(&op);
	vfs_node_put(link);
	if (len < 0)
		return len;
	text[len] = '\0';
	if (len == 0 || strlen(text) != (size_t)len)
		return -EINVAL;
	return enter_link(w, text);
}

/* @in has an entry of its own: the way goes on by the rules of that. */
static int change_rules(struct way *w, const struct export *in)
{
	const struct walk_client *c = w->c;
	struct export_opts opts;
	struct vfs_cred cred;
	struct export *same;
	int err;

	err = export_find(c->exports, in->id, c->peer, c->any_port, &same,
			  &opts);
	if (err < 0)
		return err == -EAGAIN ? -ETIMEDOUT : err;
	export_put(same);
	err = export_caller_counted(c->exports, &opts, &c->who, true, &cred);
	if (err < 0)
		return err;
	export_caller_put(&w->to->cred);
	w->to->cred = cred;
	w->to->opts = opts;
	return 0;
}

/* The way leads on in another file system.  Takes the path of @at. */
static int find_child(const struct way *w, const struct vfs_child *at,
		      struct export **out)
{
	const struct walk_client *c = w->c;
	struct vfs_handle dir;
	int err;

	w->node->fs->ops->handle(w->node, &dir);
	err = export_enter(c->exports, w->to->exp, w->to->opts.crossmnt, at,
			   &dir, c->peer, c->any_port, out);
	free(at->path);
	return err == -EREMCHG ? -ETIMEDOUT : err;
}

/* Takes @in.  No node of the export before may be held but the walk's. */
static int walk_into(struct way *w, struct export *in)
{
	struct vfs_node *root;
	int err;

	err = in->top == w->to->exp->top ? 0 : change_rules(w, in);
	if (err == 0)
		err = in->fs->ops->root(in->fs, &root);
	if (err < 0) {
		export_put(in);
		return err;
	}
	vfs_node_put(w->root);
	w->root = root;
	vfs_node_get(root);
	step_to(w, root);
	export_put(w->to->exp);
	w->to->exp = in;
	return 0;
}

static int walk_name(struct way *w, struct vfs_name name)
{
	bool up = name.len == 2 && memcmp(name.s, "..", 2) == 0;
	struct vfs_attr attr;
	struct vfs_child at = { 0 };
	struct vfs_op op = { .cred = &w->to->cred, .node = w->node,
			     .name = name, .attr = &attr, .child = &at };
	struct export *in;
	int err;

	err = vfs_name_check(name.s, name.len);
	/* The client's own ".." of the root is the root; a link's would be a
	 * directory outside of the export. */
	if (err == 0 && up && w->links && w->node == w->root)
		err = -EACCES;
	if (err < 0)
		return err;
	err = w->node->fs->ops->lookup(&op);
	if (err < 0)
		return err;
	if (at.path) {
		err = find_child(w, &at, &in);
		if (err != -EXDEV) {
			vfs_node_put(op.out);
			return err < 0 ? err : walk_into(w, in);
		}
	}
	if (attr.type == VFS_LNK)
		return follow(w, op.out);
	step_to(w, op.out);
	return 0;
}

/* Walks all of w->left, from w->node. */
static int walk_all(struct way *w)
{
	struct vfs_attr attr;
	struct vfs_op op = { .cred = &w->to->cred, .attr = &attr };
	int err = 0;

	while (err == 0 && *w->left) {
		struct vfs_name name = { w->left, strcspn(w->left, "/") };

		w->left += name.len;
		w->left += *w->left == '/';
		if (name.len && !(name.len == 1 && *name.s == '.'))
			err = walk_name(w, name);
	}
	op.node = w->node;
	if (err == 0)
		err = op.node->fs->ops->getattr(&op);
	return err == 0 && attr.type != VFS_DIR ? -ENOTDIR : err;
}

int walk_to(const struct walk_client *c, struct xdr_view path, struct walk *w,
	    struct vfs_node **out)
{
	struct way way = { .c = c, .to = w, .left = way.text };
	char text[WALK_PATH_MAX + 1];
	int err;

	err = walk_path(path, text);
	if (err == 0)
		err = w->exp->fs->ops->root(w->exp->fs, &way.root);
	if (err < 0)
		return err;
	way.node = way.root;
	vfs_node_get(way.root);
	strcpy(way.text, text + w->rest);
	err = walk_all(&way);
	vfs_node_put(way.root);
	if (err == 0)
		*out = way.node;
	else
		vfs_node_put(way.node);
	return err;
}

void walk_end(struct walk *w)
{
	if (!w->exp)
		return;
	export_caller_put(&w->cred);
	export_put(w->exp);
}
