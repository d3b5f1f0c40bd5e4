/* SPDX-License-Identifier: BSD-2-Clause */
#include "exports/walk.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/util.h"

#define LINKS_MAX	40		/* as the kernel does */
#define RESTARTS_MAX	40

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

/* Copies the path that @w follows: the client's @path, or a link's. */
static int walk_text(const struct walk *w, struct xdr_view path,
		   char out[WALK_PATH_MAX + 1])
{
	if (w->path)
		path = (struct xdr_view){ (const uint8_t *)w->path,
					  (uint32_t)strlen(w->path) };
	return walk_path(path, out);
}

int walk_begin(const struct walk_client *c, struct xdr_view path,
	       struct walk *w)
{
	char text[WALK_PATH_MAX + 1];
	struct export_tree *exp;
	const char *rest;
	int err;

	err = walk_text(w, path, text);
	if (err < 0)
		return err;
	err = (c->may_wait ?		/* in the share for that */
	       export_reach_path : export_find_path)(c->exports, text, &c->peer,
			&exp, &w->opts, &rest);
	/* A client learns nothing of paths that are not exported. */
	if (err == -ENOENT && w->path)
		err = -EACCES;
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
	struct walk	*to;		/* it stops with this */
	struct vfs_node	*root;		/* counted */
	struct vfs_node	*node;		/* counted: so far */
	const char	*left;		/* in @text */
	char		 text[2 * VFS_PATH_MAX + 2];
};

static void step_to(struct way *w, struct vfs_node *n)
{
	vfs_node_put(w->node);
	w->node = n;
}

/* The link's @text leads out of the export: to another one that the client can
 * mount by that path, or nowhere. */
static int leave_by_link(struct way *w, const char *text)
{
	char *path;

	if (asprintf(&path, "%s/%s", text, w->left) < 0)
		return -ENOMEM;
	free(w->to->path);
	w->to->path = path;
	return WALK_MOVES;
}

/*
 * A link leads to the directory above the export's root.  Goes on as if the
 * link's text were the path of that directory, which is the export's path
 * without its last name.  Each further ".." at the start of the rest removes
 * another name.
 */
static int leave_upwards(struct way *w)
{
	char *above = strdup(w->to->exp->path);
	size_t len, dots = 2;
	int err;

	while (above && dots > 0) {
		if (dots == 2)
			*strrchr(above, '/') = '\0';
		if (!*above)
			strcpy(above, "/");
		w->left += strspn(w->left, "/");
		len = strcspn(w->left, "/");
		dots = len <= 2 && strspn(w->left, ".") == len ? len : 0;
		w->left += dots;
	}
	err = above ? leave_by_link(w, above) : -ENOMEM;
	free(above);
	return err;
}

/* A link's @text goes before the rest of the path.  An absolute one is a path
 * of the server. */
static int enter_link(struct way *w, const char *text)
{
	char next[sizeof(w->text)];
	size_t skip = strlen(w->to->exp->path);

	if (*text == '/') {
		/* The export "/" is the only one with a slash at its end. */
		skip -= w->to->exp->path[skip - 1] == '/';
		if (strncmp(text, w->to->exp->path, skip) != 0 ||
		    (text[skip] != '/' && text[skip] != '\0'))
			return leave_by_link(w, text);
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
	struct vfs_op op = { .cred = &w->to->cred, .node = link,
			     .readlink = { text, VFS_PATH_MAX } };
	int len = -ELOOP;

	if (w->to->links++ < LINKS_MAX)
		len = link->fs->ops->readlink(&op);
	vfs_node_put(link);
	if (len < 0)
		return len;
	text[len] = '\0';
	if (len == 0 || strlen(text) != (size_t)len)
		return -EINVAL;
	return enter_link(w, text);
}

/* The way goes on by the rules of @in. */
static int change_rules(const struct walk_client *c, struct walk *w,
			const struct export_tree *in, bool may_wait)
{
	struct export_opts opts;
	struct vfs_cred cred;
	int err;

	err = export_rule_for(c->exports, in, &c->peer, &opts);
	if (err < 0)
		return err == -EKEYREJECTED ? -EACCES : err;
	err = export_caller_counted(c->exports, &opts, &c->who, may_wait,
				    &cred);
	if (err < 0)
		return err;
	export_caller_put(&w->cred);
	w->cred = cred;
	w->opts = opts;
	return 0;
}

/* Takes @in, which can have its own entry and rules. */
static int enter(const struct walk_client *c, struct walk *w,
		 struct export_tree *in, bool may_wait)
{
	int err = in->top == w->exp->top ? 0 : change_rules(c, w, in, may_wait);

	if (err < 0) {
		export_put(in);
		return err;
	}
	w->was = w->exp;
	w->exp = in;
	return 0;
}

/* Call after putting the last node of the previous export: this can free its
 * tree. */
static void leave_export(struct walk *w)
{
	if (w->was)
		export_put(w->was);
	w->was = NULL;
}

/* The way leads on in another file system, at w->at.  -EAGAIN: that, or a name
 * service, has to be waited for; -EXDEV: it is not to be entered. */
static int cross(const struct walk_client *c, struct walk *w, bool may_wait)
{
	struct export_tree *in;
	int err;

	if (may_wait)
		err = export_enter(c->exports, w->exp, w->opts.crossmnt, &w->at,
				   &w->dir, &c->peer, &in);
	else
		err = export_enter_open(c->exports, w->exp, w->opts.crossmnt,
					&w->at, &c->peer, &in);
	return err < 0 ? err : enter(c, w, in, may_wait);
}

static void forget_child(struct walk *w)
{
	free(w->at.path);
	w->at = (struct vfs_child){ 0 };
}

/*
 * A lookup found w->to->at.  Goes on there if it is open, else in the share for
 * opening it; if it is not to be entered, with @covered.  Takes @covered.
 */
static int come_to_child(struct way *w, struct vfs_node *covered)
{
	struct walk *to = w->to;
	int err = cross(w->c, to, false);

	switch (err) {
	case -EXDEV:
		forget_child(to);
		step_to(w, covered);
		return 0;
	case -EAGAIN:
		w->node->fs->ops->handle(w->node, &to->dir);
		to->covered = covered;
		break;
	default:
		forget_child(to);
		vfs_node_put(covered);
		if (err < 0)
			return err;
	}
	to->left = strdup(w->left);
	return to->left ? WALK_MOVES : -ENOMEM;
}

/* Ends the way so far.  The walk takes its path from the start. */
static void start_over(struct walk *w)
{
	export_caller_put(&w->cred);
	export_put(w->exp);
	w->exp = NULL;
}

/* Opens w->at, in the share for that. */
static int open_child(const struct walk_client *c, struct walk *w)
{
	/* The exports might have been reloaded since the walk came here. */
	int err = change_rules(c, w, w->exp, true);

	if (err == 0)
		err = cross(c, w, true);
	forget_child(w);
	if (err == 0 || err == -EREMCHG) {
		vfs_node_put(w->covered);
		w->covered = NULL;
	}
	/* Since the walk came something was mounted or unmounted. */
	if (err == -EREMCHG && w->restarts++ < RESTARTS_MAX) {
		free(w->left);
		w->left = NULL;
		start_over(w);
		return WALK_MOVES;
	}
	if (err == 0 || err == -EXDEV)
		return WALK_MOVES;
	return err == -EAGAIN || err == -EREMCHG ? -ETIMEDOUT : err;
}

static int walk_name(struct way *w, struct vfs_name name)
{
	bool up = name.len == 2 && memcmp(name.s, "..", 2) == 0;
	struct walk *to = w->to;
	struct vfs_attr attr;
	struct vfs_op op = { .cred = &to->cred, .node = w->node, .name = name,
			     .attr = &attr, .lookup.child = &to->at };
	int err;

	err = vfs_name_check(name.s, name.len);
	if (err < 0)
		return err;
	/* The client's own ".." of the root is the root. */
	if (up && to->links && w->node == w->root)
		return leave_upwards(w);
	err = w->node->fs->ops->lookup(&op);
	if (err < 0)
		return err;
	if (to->at.path)
		return come_to_child(w, op.out);
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

/* Takes up the walk where it stopped. */
static int take_up(struct way *w, struct xdr_view path)
{
	struct walk *to = w->to;
	char text[WALK_PATH_MAX + 1];
	int err;

	err = walk_text(to, path, text);
	if (err == 0)
		err = to->exp->fs->ops->root(to->exp->fs, &w->root);
	if (err < 0)
		return err;
	strcpy(w->text, to->left ? to->left : text + to->rest);
	free(to->left);
	to->left = NULL;
	w->node = to->covered;
	to->covered = NULL;
	if (!w->node) {
		vfs_node_get(w->root);
		w->node = w->root;
	}
	return 0;
}

int walk_to(const struct walk_client *c, struct xdr_view path, struct walk *w,
	    struct vfs_node **out)
{
	struct way way = { .c = c, .to = w, .left = way.text };
	bool left;
	int err;

	if (!w->exp) {			/* start_over() */
		err = walk_begin(c, path, w);
		if (err == -EKEYREJECTED)
			return -EACCES;
		return err < 0 ? err : WALK_MOVES;
	}
	if (w->at.path) {
		err = open_child(c, w);
		leave_export(w);
		return err;
	}
	err = take_up(&way, path);
	if (err < 0)
		return err;
	err = walk_all(&way);
	left = err == WALK_MOVES && !w->left && !w->at.path;
	vfs_node_put(way.root);
	if (err == 0)
		*out = way.node;
	else
		vfs_node_put(way.node);
	leave_export(w);
	if (left)
		start_over(w);
	return err;
}

bool walk_opens(const struct walk *w)
{
	return !w->exp || w->at.path;
}

void walk_end(struct walk *w)
{
	free(w->path);
	if (!w->exp)
		return;
	vfs_node_put(w->covered);
	free(w->at.path);
	free(w->left);
	export_caller_put(&w->cred);
	export_put(w->exp);
}
