/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tree - the file systems that exports name, each with a job of the crew.
 *
 * Mounting one, checking that its path still leads there, and unmounting it can
 * take forever if its disk hangs.  So each does this in a job that delays no
 * other job (lib/crew.h), and a publisher waits only briefly.  A tree lives
 * across snapshots that name its path; it is unmounted after its last
 * reference.
 */
#include "exports/export_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exports/mountpoint.h"
#include "lib/clock.h"
#include "lib/crew.h"
#include "lib/fail.h"
#include "lib/hash.h"
#include "lib/log.h"

struct tree {
	struct export_tree	     pub;
	struct export_table *table;	/* borrowed: outlives its trees */
	const struct vfs_ops *backend;
	void		    *options;	/* the backend's block */
	char		    *where;	/* "FILE:LINE" */
	bool		     has_fsid;
	uint64_t	     fsid;	/* a child's: of its top's path */
	/* Opened and closed as clients come and go: children.h.  No entry names
	 * it, or one with a mountpoint. */
	bool		     is_child;
	char		    *mountpoint;	/* that entry's, or NULL */
	struct mountpoint    held;	/* ... the mount there, */
	bool		     holds;	/* once this is true */
	struct crew_job	     job;	/* mounts it, and what follows */

	/* Under table->trees_lock: */
	struct tree	    *next;
	bool		     unused;	/* the last reference is gone */
	bool		     tried;	/* the mount has ended */
	int		     err;	/* how, */
	char		    *why;	/* in the backend's words, or NULL */
	bool		     asked;	/* where does its path lead? */
	bool		     moved;	/* elsewhere */
	bool		     late;	/* a publisher waited in vain */
	bool		     patient;	/* so is one whose mount fails */
	int		     failed;	/* how the last mount did; 0 */
};

static struct tree *tree_of(const struct export_tree *e)
{
	return container_of(e, struct tree, pub);
}

void trees_init(struct export_table *t)
{
	pthread_mutex_init(&t->trees_lock, NULL);
	pthread_cond_init(&t->trees_changed, NULL);
}

void trees_fini(struct export_table *t)
{
	mutex_lock(&t->trees_lock);
	for (struct tree *tree = t->trees; tree; tree = tree->next)
		assert(tree->unused);
	while (t->trees)
		pthread_cond_wait(&t->trees_changed, &t->trees_lock);
	mutex_unlock(&t->trees_lock);
	pthread_cond_destroy(&t->trees_changed);
	pthread_mutex_destroy(&t->trees_lock);
}

void export_put(struct export_tree *e)
{
	struct tree *tree = tree_of(e);
	struct export_table *t = tree->table;

	if (!ref_put(&e->ref))
		return;
	if (t->config.release)
		t->config.release(t->config.arg, e);
	mutex_lock(&t->trees_lock);
	tree->unused = true;
	crew_run(&tree->job);
	pthread_cond_broadcast(&t->trees_changed);
	mutex_unlock(&t->trees_lock);
}

/* ---- what went wrong */

/* Returns @ret: the directory @path of the line @where can't be mounted.  @why:
 * the reason in the backend's words, or NULL. */
static int cannot_export(char **err, const char *where, const char *path,
			 int ret, const char *why)
{
	fail_with(err, "%s: '%s' can't be exported: %s", where, path,
		    why ? why : mount_reason(path, ret));
	return ret;
}

char *tree_failure(const struct export_tree *e)
{
	const struct tree *tree = tree_of(e);
	char *text = NULL;

	mutex_lock(&tree->table->trees_lock);
	if (tree->failed < 0)
		text = strdup(tree->why ? tree->why :
			      mount_reason(e->path, tree->failed));
	mutex_unlock(&tree->table->trees_lock);
	return text;
}

static void log_late(const struct tree *tree, int err)
{
	char *text = NULL;

	if (err == 0) {
		log_info("'%s' is exported now", tree->pub.path);
		return;
	}
	cannot_export(&text, tree->where, tree->pub.path, err, tree->why);
	log_err("%s; trying again until it can", text ? text : tree->where);
	free(text);
}

/* ---- a tree's job */

static void tree_free(struct tree *tree)
{
	free(tree->why);
	free(tree->where);
	free(tree->mountpoint);
	free(tree->options);
	free(tree->pub.path);
	free(tree);
}

static bool is_below(const struct tree *tree)
{
	return tree->is_child && !tree->mountpoint;
}

/* Under the lock: an older tree at the same path that still exists, or NULL. A
 * directory is never mounted twice, except as a child of two exports. */
static struct tree *elder_of(const struct tree *tree)
{
	for (struct tree *x = tree->next; x; x = x->next)
		if (x->err == 0 && strcmp(x->pub.path, tree->pub.path) == 0 &&
		    (!is_below(x) || !is_below(tree) ||
		     x->pub.top == tree->pub.top))
			return x;
	return NULL;
}

/* Under the lock: @tree no longer delays younger trees of its path. */
static void wake_younger(const struct tree *tree)
{
	for (struct tree *x = tree->table->trees; x; x = x->next)
		if (x != tree && !x->tried &&
		    strcmp(x->pub.path, tree->pub.path) == 0)
			crew_run(&x->job);
}

/* A child's number and id follow from paths and its file system's number. */
static int number_child(struct tree *tree, struct vfs_fs *fs)
{
	if (!fs->volume)
		return -EOPNOTSUPP;
	fs->fsid = export_child_number(tree->table->key, tree->pub.path,
				       (uint64_t[]){ tree->pub.top, tree->fsid,
						     fs->volume });
	/* No entry has its id: export_fh_parse() would find no key by it. */
	fs->handle_key = NULL;
	tree->pub.id = (uint32_t)fs->fsid | 0x80000000;
	return 0;
}

/* Has the backend mount @tree. */
static int make_fs(struct tree *tree, char **why)
{
	const struct vfs_config config = {
		.ops = tree->backend,
		.where = tree->is_child ? NULL : tree->where,
		.why = why,
		.path = tree->pub.path,
		.options = tree->options,
		.state_dir = tree->table->state_dir,
		.no_links = is_below(tree),
		.check = tree->table->config.check,
	};
	struct vfs_fs *fs = NULL;
	int err = tree->backend->mount(&config, &fs);

	/* The backend can be a foreign module. */
	if (err > 0 || (err == 0 && !fs))
		err = -EIO;
	if (err < 0)
		return err;
	tree->pub.fs = fs;
	if (is_below(tree))
		return number_child(tree, fs);
	if (tree->has_fsid)
		fs->fsid = tree->fsid;
	return 0;
}

static bool is_still_held(const struct tree *tree)
{
	return !tree->mountpoint ||
	       mountpoint_is_there(&tree->held, tree->mountpoint);
}

/*
 * make_fs() while something is mounted at the tree's mountpoint, which is held
 * from then on.  -ENODEV: nothing is, or it was unmounted lazily meanwhile, and
 * the tree might be the directory below; -EXDEV: the tree's root is not in the
 * held mount.
 */
static int make_fs_of_mount(struct tree *tree, char **why)
{
	int err = mountpoint_hold(tree->mountpoint, &tree->held);
	bool none = err == -ENOENT || err == -ENOTDIR;

	tree->holds = err == 0;
	if (err == 0)
		err = make_fs(tree, why);
	if (err == 0 && !mountpoint_has_root(&tree->held, tree->mountpoint,
					     tree->pub.fs, tree->pub.path))
		err = -EXDEV;
	if (err == 0 && !is_still_held(tree))
		none = true;
	if (none && asprintf(why, "nothing is mounted on '%s'",
			     tree->mountpoint) < 0)
		*why = NULL;
	return none ? -ENODEV : err;
}

static void let_go(struct tree *tree)
{
	if (tree->pub.fs)
		tree->backend->unmount(tree->pub.fs);
	tree->pub.fs = NULL;
	if (tree->holds)
		mountpoint_release(&tree->held);
	tree->holds = false;
}

/* True: the mount failed, no publisher waits for it, and it is tried again. */
static bool mount_tree(struct tree *tree)
{
	struct export_table *t = tree->table;
	char *why = NULL;
	int err, before;
	bool late;

	err = tree->mountpoint ? make_fs_of_mount(tree, &why) :
				 make_fs(tree, &why);
	/* Once the failure is published, another tree of this path can be
	 * created, and the path has only one table of files. */
	if (err < 0) {
		let_go(tree);
		tree->job.place = mount_place(tree->backend, tree->pub.path);
	}
	mutex_lock(&t->trees_lock);
	late = (tree->late || (tree->patient && err < 0)) && !tree->unused &&
	       !tree->is_child;
	if (late && err == 0)
		tree->pub.late_ms = clock_ms();
	atomic_store_explicit(&tree->pub.mounted, err == 0,
			      memory_order_release);
	if (late && err == 0)
		atomic_fetch_add(&t->late_mounts, 1);
	before = tree->failed;
	tree->failed = err;
	tree->late = late && err < 0;
	tree->tried = !tree->late;
	tree->err = tree->late ? 0 : err;
	free(tree->why);
	tree->why = why;
	if (tree->err < 0)
		wake_younger(tree);
	pthread_cond_broadcast(&t->trees_changed);
	mutex_unlock(&t->trees_lock);
	if (late && (err == 0 || err != before))
		log_late(tree, err);
	return late && err < 0;
}

static void look_at_path(struct tree *tree)
{
	struct export_table *t = tree->table;
	bool moved = !tree->backend->is_at(tree->pub.fs, tree->pub.path) ||
		     !is_still_held(tree);

	mutex_lock(&t->trees_lock);
	tree->moved = moved;
	tree->asked = tree->late = false;
	pthread_cond_broadcast(&t->trees_changed);
	mutex_unlock(&t->trees_lock);
}

static void forget_tree(struct tree *tree)
{
	struct export_table *t = tree->table;
	struct tree **p = &t->trees;

	mutex_lock(&t->trees_lock);
	while (*p != tree)
		p = &(*p)->next;
	*p = tree->next;
	wake_younger(tree);
	tree_free(tree);
	pthread_cond_broadcast(&t->trees_changed);
	mutex_unlock(&t->trees_lock);
}

enum tree_does { TREE_WAITS, TREE_MOUNTS, TREE_LOOKS, TREE_ENDS };

static enum tree_does what_tree_does(struct tree *tree)
{
	struct export_table *t = tree->table;
	enum tree_does what = TREE_WAITS;

	mutex_lock(&t->trees_lock);
	if (tree->unused)
		what = TREE_ENDS;
	else if (tree->asked)
		what = TREE_LOOKS;
	else if (!tree->tried && !elder_of(tree))
		what = TREE_MOUNTS;
	mutex_unlock(&t->trees_lock);
	return what;
}

static uint64_t run_tree(struct crew_job *job)
{
	struct tree *tree = container_of(job, struct tree, job);

	for (;;) {
		switch (what_tree_does(tree)) {
		case TREE_WAITS:
			return CREW_IDLE;
		case TREE_MOUNTS:
			if (mount_tree(tree))
				return clock_ns() +
				       tree->table->retry_s * 1ull * NS_PER_S;
			break;
		case TREE_LOOKS:
			look_at_path(tree);
			break;
		case TREE_ENDS:
			let_go(tree);
			forget_tree(tree);
			return CREW_GONE;
		}
	}
}

/* ---- what a publisher does */

/* The tree of an entry at @path, counted, or NULL.  Skips trees that could not
 * be mounted or are being unmounted. */
static struct tree *tree_find(struct export_table *t, const char *path)
{
	struct tree *tree;

	mutex_lock(&t->trees_lock);
	for (tree = t->trees; tree; tree = tree->next)
		if (strcmp(tree->pub.path, path) == 0 && tree->err == 0 &&
		    !tree->is_child && ref_get_unless_zero(&tree->pub.ref))
			break;
	mutex_unlock(&t->trees_lock);
	return tree;
}

static struct tree *tree_alloc(struct export_table *t, const struct export *e)
{
	struct tree *tree = calloc(1, sizeof(*tree));

	if (!tree)
		return NULL;
	ref_init(&tree->pub.ref);
	tree->pub.path = strdup(e->path);
	tree->pub.id = tree->pub.top = e->id;
	tree->where = strdup(e->where);
	tree->table = t;
	tree->backend = e->backend;
	tree->has_fsid = e->has_fsid;
	tree->fsid = e->fsid;
	tree->options = malloc(e->backend->options_size + 1);
	if (e->mountpoint)
		tree->mountpoint = strdup(e->mountpoint);
	/* A child's: that of its top. */
	if (e->tree && e->tree->mounted)
		tree->pub.late_ms = e->tree->late_ms;
	if (tree->pub.path && tree->where && tree->options &&
	    !tree->mountpoint == !e->mountpoint) {
		memcpy(tree->options, e->options, e->backend->options_size);
		return tree;
	}
	tree_free(tree);
	return NULL;
}

static int tree_create(struct export_table *t, const struct export *e,
		       bool is_child, struct tree **out)
{
	struct tree *tree = tree_alloc(t, e), *elder;
	int err;

	if (!tree)
		return -ENOMEM;
	err = crew_job_init(&tree->job, run_tree, "export");
	if (err < 0) {
		tree_free(tree);
		return err;
	}
	tree->job.place = mount_place(e->backend, e->path);
	tree->is_child = is_child;
	tree->patient = !is_child && t->lenient;
	if (t->config.attach)
		t->config.attach(t->config.arg, &tree->pub);
	mutex_lock(&t->trees_lock);
	tree->next = t->trees;
	t->trees = tree;
	elder = elder_of(tree);
	tree->late = elder && elder->late;
	mutex_unlock(&t->trees_lock);
	crew_run(&tree->job);
	*out = tree;
	return 0;
}

static void ask_for_path(struct export_table *t, struct tree *tree)
{
	mutex_lock(&t->trees_lock);
	if (tree->tried && !tree->asked && tree->backend->is_at) {
		tree->asked = true;
		crew_run(&tree->job);
	}
	mutex_unlock(&t->trees_lock);
}

int tree_open_child(struct export_table *t, const struct export *top,
		    const char *path, struct export_tree **out)
{
	struct export child = *top;
	struct tree *tree;
	int err;

	if (path) {
		child.mountpoint = NULL;
		child.path = (char *)(uintptr_t)path;	/* copied */
		child.has_fsid = false;
		child.fsid = hash_bytes(top->path, strlen(top->path));
	}
	err = tree_create(t, &child, true, &tree);
	if (err == 0)
		*out = &tree->pub;
	return err;
}

static bool has_same_backend(const struct tree *tree, const struct export *e)
{
	return backend_same(tree->backend, tree->options, e->backend,
			    e->options);
}

static bool has_same_id(const struct tree *tree, const struct export *e)
{
	return tree->pub.id == e->id && tree->has_fsid == e->has_fsid &&
	       (!e->has_fsid || tree->fsid == e->fsid);
}

/* True if handles of @e lead to the same files in @tree. */
static bool is_same_tree(const struct tree *tree, const struct export *e)
{
	return has_same_backend(tree, e) && has_same_id(tree, e);
}

bool tree_belongs(const struct export_tree *e, const struct export *top)
{
	const struct tree *tree = tree_of(e);

	if (!tree->mountpoint)
		return hash_bytes(top->path, strlen(top->path)) == tree->fsid;
	return top->mountpoint && strcmp(top->path, e->path) == 0 &&
	       strcmp(top->mountpoint, tree->mountpoint) == 0 &&
	       is_same_tree(tree, top);
}

bool tree_has_moved(const struct export_tree *e)
{
	struct tree *tree = tree_of(e);
	struct export_table *t = tree->table;
	bool moved;

	ask_for_path(t, tree);
	mutex_lock(&t->trees_lock);
	moved = tree->moved;
	mutex_unlock(&t->trees_lock);
	return moved;
}

/* Clients hold handles of the tree, which can't change under them. */
static int check_same(const struct tree *tree, const struct export *e,
		      char **err)
{
	if (!has_same_backend(tree, e))
		return fail_with(err, "%s: '%s' is exported now as another "
				   "file system or with other options; take "
				   "it out first, or restart", e->where,
				   e->path);
	if (!has_same_id(tree, e))
		return fail_with(err, "%s: '%s' is exported now with "
				   "another fsid=; take it out first, or "
				   "restart", e->has_fsid ? e->fsid_where :
				   e->where, e->path);
	return 0;
}

int tree_bind(struct export_table *t, struct export *e, char **err)
{
	struct tree *tree = tree_find(t, e->path);
	int ret;

	if (tree)
		fsid_prefer(e, tree->pub.id);
	/* It was never mounted, and @e can mend that. */
	if (tree && !tree->pub.mounted && !is_same_tree(tree, e)) {
		export_put(&tree->pub);
		tree = NULL;
	}
	if (!tree) {
		ret = tree_create(t, e, false, &tree);
		if (ret == 0)
			e->tree = &tree->pub;	/* put with the entry */
		return ret;
	}
	e->tree = &tree->pub;
	ret = check_same(tree, e, err);
	if (ret == 0)
		ask_for_path(t, tree);
	return ret;
}

/* @e, whose mount has @failed or does not end, is not waited for. */
static void note_late(const struct export_set *set, const struct export *e,
		      bool failed)
{
	const struct log_fields about = { .export = e->path };
	char *text;

	fail_with(&text, failed ? "%s: '%s' can't be exported yet%s" :
		  "%s: '%s' does not answer; not waiting for it%s", e->where,
		  e->path, e->tree->mounted ? ", it stays as it was" :
		  ", its clients have to wait");
	log_print_with(LOG_LEVEL_WARN, &about, "%s", text ? : e->path);
	if (set && set->late && text)
		set->late(set->late_arg, text);
	free(text);
}

int tree_settle(struct export_table *t, const struct export_set *set,
		const struct export *e, uint64_t until, char **err)
{
	struct tree *tree = tree_of(e->tree);
	bool open, told, moved, failed;

	mutex_lock(&t->trees_lock);
	told = tree->late && tree->is_child;
	while (!tree->late && (!tree->tried || tree->asked) &&
	       cond_wait_until(&t->trees_changed, &t->trees_lock, until))
		;
	open = !tree->tried || tree->asked;
	moved = tree->moved;
	failed = tree->failed < 0;
	for (struct tree *x = tree; open && x; x = elder_of(x))
		x->late = true;
	mutex_unlock(&t->trees_lock);
	/* Else its own job logs it. */
	if (open && !told && !(failed && t->lenient))
		note_late(set, e, failed);
	if (open)
		return 0;
	if (tree->err < 0)
		return cannot_export(err, e->where, e->path, tree->err,
				     tree->why);
	if (moved)
		return fail_with(err, "%s: '%s' is another directory than "
				   "the one that is exported now; take it out "
				   "first, or restart", e->where, e->path);
	return 0;
}
