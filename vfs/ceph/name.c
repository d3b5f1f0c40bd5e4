/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * name - look-up, links, renames and removals.
 *
 * A metadata server answers a change of names before it has it on disk, and
 * says later when it has.  The library keeps the unsaid ones with the directory
 * that was changed; its fsync of a directory has the server write its journal,
 * and waits for them.  So each change here is one request and one such sync.
 */
#include "vfs/ceph/ceph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOVE_WAIT_S	1
#define NAME_WAIT_S	5
#define FORGETS_MS	1500

void cfs_name_set(struct cfs_name *to, struct vfs_name name)
{
	memcpy(to->s, name.s, name.len);
	to->s[name.len] = '\0';
}

bool cfs_is_snapdir(const struct cfs_name *name)
{
	return strcmp(name->s, ".snap") == 0;
}

/*
 * The library expects of its user that a name is changed by one thread at a
 * time, and not looked up meanwhile, as a kernel sees to it: two changes of one
 * name at the same time crash it.  Changes of other names of the directory are
 * no trouble.
 */
static pthread_rwlock_t *name_lock(struct cfs_node *dir,
				   const struct cfs_name *name)
{
	uint64_t hash = hash_text(dir->vino.ino.val, name->s);

	return &cfs_fs_of(dir)->names[hash % CFS_NAME_LOCKS];
}

void cfs_name_change(struct cfs_node *dir, const struct cfs_name *name)
{
	pthread_rwlock_wrlock(name_lock(dir, name));
}

void cfs_name_done(struct cfs_node *dir, const struct cfs_name *name)
{
	pthread_rwlock_unlock(name_lock(dir, name));
}

/* A change may take as long as a disk is away, and look-ups are not to keep all
 * workers waiting for it.  -ETIMEDOUT: it goes on. */
static int begin_look(struct cfs_node *dir, const struct cfs_name *name)
{
	const struct timespec until = cfs_time_in(NAME_WAIT_S);

	return -pthread_rwlock_clockrdlock(name_lock(dir, name),
					   CLOCK_MONOTONIC, &until);
}

int cfs_sync_change(struct cfs_call *c, struct Inode *in)
{
	if (c->client->fs->options->async)
		return 0;
	/* Data that it can't write, the library throws away then, too. */
	return in == c->in && c->node->type == VFS_REG ?
	       cfs_sync(c) : ceph_ll_sync_inode(c->cm, in, 0);
}

static bool is_dots(struct vfs_name name, unsigned n)
{
	return name.len == n && memcmp(name.s, "..", n) == 0;
}

/* Above the root, and above its snapshots, is the root. */
static int find_root(struct cfs_call *c, struct ceph_statx *sx,
		     struct cfs_node **out)
{
	struct cfs_node *root = c->client->fs->root_node;
	struct cfs_call up;
	int err = cfs_begin_other(&up, c, &root->node);

	if (err < 0)
		return err;
	err = cfs_stat(&up, sx);
	cfs_end_other(&up);
	if (err < 0)
		return err;
	vfs_node_get(&root->node);
	*out = root;
	return 0;
}

static int find_self(struct cfs_call *c, struct ceph_statx *sx,
		     struct cfs_node **out)
{
	int err = cfs_stat(c, sx);

	if (err < 0)
		return err;
	vfs_node_get(&c->node->node);
	*out = c->node;
	return 0;
}

/* Directories that the mover remembers for as long as they are here. */
struct way {
	struct Inode	**dir;
	unsigned	  n, room;
};

static bool is_on(const struct way *w, const struct Inode *dir)
{
	for (unsigned i = 0; i < w->n; i++)
		if (w->dir[i] == dir)
			return true;
	return false;
}

/* Takes the reference to @dir. */
static int add_to_way(struct cfs_call *c, struct way *w, struct Inode *dir)
{
	unsigned room = w->room ? 2 * w->room : 16;
	struct Inode **more = w->dir;

	if (w->n == w->room) {
		more = realloc(w->dir, room * sizeof(struct Inode *));
		if (!more) {
			ceph_ll_put(c->cm, dir);
			return -ENOMEM;
		}
		w->dir = more;
		w->room = room;
	}
	w->dir[w->n++] = dir;
	return 0;
}

static void forget_way(struct cfs_call *c, struct way *w)
{
	while (w->n > 0)
		ceph_ll_put(c->cm, w->dir[--w->n]);
	free(w->dir);
}

/* Begins a call by the mover, and one @there: at the node of @c. */
static int begin_by_mover(struct cfs_call *by, struct cfs_call *there,
			  const struct cfs_call *c)
{
	int err = cfs_begin_by(by, cfs_mover(c->client->fs));

	if (err < 0)
		return err;
	err = cfs_begin_other(there, by, &c->node->node);
	return err < 0 ? cfs_end(by, err) : 0;
}

/* Goes up from the directory of @c, a call by the mover, to the root or to the
 * way that is known.  -EINVAL: @sx is on the way, or is that directory; NULL:
 * whatever is. */
static int walk_up(struct cfs_call *c, const struct ceph_statx *sx,
		   struct way *w)
{
	struct Inode *at = c->in, *up;
	struct ceph_statx here;
	uint64_t last;
	int err = cfs_stat(c, &here);

	while (err == 0) {
		if (sx && here.stx_ino == sx->stx_ino)
			return -EINVAL;
		if (here.stx_ino == c->client->fs->root.ino.val)
			return 0;
		last = here.stx_ino;
		err = ceph_ll_lookup(c->cm, at, "..", &up, &here, CFS_WANT, 0,
				     c->root);
		if (err < 0)
			return err;
		/* The library says so of what it can't find: the client is shut
		 * out, or the directory is gone, or was moved out of the
		 * tree. */
		if (here.stx_ino == last)
			err = cfs_stat(c, &here) < 0 ? -ESTALE : -EACCES;
		if (err < 0 || is_on(w, up)) {
			ceph_ll_put(c->cm, up);
			return err;
		}
		err = add_to_way(c, w, up);
		at = up;
	}
	return err;
}

/*
 * The library would take the one where it saw the directory last, also when
 * another client has moved it.  The mover asks, unless it has itself moved the
 * directory, or one below, in the last second or so: that is how long it
 * remembers.
 */
int cfs_find_above(struct cfs_call *c, struct ceph_statx *sx,
		   struct cfs_node **out)
{
	struct way w = { .n = 0 };
	struct cfs_call by, here;
	struct Inode *up;
	int err = begin_by_mover(&by, &here, c);

	if (err < 0)
		return err;
	err = walk_up(&here, NULL, &w);
	forget_way(&here, &w);
	if (err == 0)
		err = ceph_ll_lookup(by.cm, here.in, "..", &up, sx, CFS_WANT,
				     0, c->user);
	if (err == 0)
		err = cfs_node_of(&by, up, sx, out);
	cfs_end_other(&here);
	return cfs_end(&by, err);
}

/* The entry of the call's directory, counted. */
static int find_entry(struct cfs_call *c, const struct vfs_op *op,
		      struct ceph_statx *sx, struct cfs_node **out)
{
	struct cfs_name name;
	struct Inode *in;
	int err;

	/* No name leads out of the tree. */
	if (is_dots(op->name, 2) && cfs_is_top(c->node))
		return find_root(c, sx, out);
	/* Snapshots stay where they are. */
	if (is_dots(op->name, 2) && !cfs_is_fixed(c->node))
		return cfs_find_above(c, sx, out);
	if (is_dots(op->name, 1))
		return find_self(c, sx, out);
	cfs_name_set(&name, op->name);
	err = begin_look(c->node, &name);
	if (err < 0)
		return err;
	err = ceph_ll_lookup(c->cm, c->in, name.s, &in, sx, CFS_WANT, 0,
			     c->user);
	cfs_name_done(c->node, &name);
	return err < 0 ? err : cfs_node_of(c, in, sx, out);
}

int cfs_lookup(struct vfs_op *op)
{
	struct ceph_statx dir, sx;
	struct cfs_node *n;
	struct cfs_call c;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	err = cfs_stat(&c, &dir);
	if (err == 0 && op->dir_attr) {
		cfs_attr(&dir, op->dir_attr);
		op->has_dir_attr = true;
	}
	if (err == 0 && !S_ISDIR(dir.stx_mode))
		err = -ENOTDIR;
	if (err == 0)
		err = find_entry(&c, op, &sx, &n);
	if (err == 0) {
		op->out = &n->node;
		if (op->attr)
			cfs_attr(&sx, op->attr);
	}
	return cfs_end(&c, err);
}

int cfs_readlink(struct vfs_op *op)
{
	char text[VFS_PATH_MAX + 1];
	struct ceph_statx sx;
	struct cfs_call c;
	int n = cfs_begin(&c, op);

	if (n < 0)
		return n;
	n = cfs_stat(&c, &sx);
	if (n == 0 && !S_ISLNK(sx.stx_mode))
		n = -EINVAL;
	if (n == 0)
		n = ceph_ll_readlink(c.cm, c.in, text, sizeof(text), c.root);
	if (n >= 0) {
		n = MIN(n, (int)op->size);
		memcpy(op->text, text, (size_t)n);
		if (op->attr)
			cfs_attr(&sx, op->attr);
	}
	return cfs_end(&c, n);
}

int cfs_remove(struct vfs_op *op)
{
	struct cfs_name name;
	struct cfs_call c;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	cfs_name_set(&name, op->name);
	err = cfs_before(&c, op->wcc);
	if (err == 0 && cfs_is_fixed(c.node))
		err = -EROFS;
	if (err == 0) {
		cfs_name_change(c.node, &name);
		err = op->is_dir ?
		      ceph_ll_rmdir(c.cm, c.in, name.s, c.user) :
		      ceph_ll_unlink(c.cm, c.in, name.s, c.user);
		cfs_name_done(c.node, &name);
	}
	if (err == 0)
		err = cfs_sync_change(&c, c.in);
	return cfs_end(&c, cfs_after(&c, op->wcc, err));
}

/* 0: the caller may change the ".." of the directory @name, as rename(2) has
 * it. */
static int may_change_above(struct cfs_call *c, const struct cfs_name *name,
			    const struct vfs_cred *cred)
{
	struct cfs_call it = *c;
	struct ceph_statx sx;
	struct cfs_perm p;
	int err = ceph_ll_lookup(c->cm, c->in, name->s, &it.in, &sx, CFS_WANT,
				 0, c->user);

	if (err < 0)
		return err;
	err = cfs_perm_load(&it, cred, &sx, &p);
	if (err == 0 && !cfs_perm_has(&p, CFS_W))
		err = -EACCES;
	ceph_ll_put(c->cm, it.in);
	return err;
}

static int look_at_name(struct cfs_call *c, const struct cfs_name *name,
			struct ceph_statx *sx)
{
	struct Inode *in;
	int err = ceph_ll_lookup(c->cm, c->in, name->s, &in, sx, CFS_WANT, 0,
				 c->user);

	if (err == 0)
		ceph_ll_put(c->cm, in);
	return err;
}

/* 1: both names are of one file, and rename(2) does nothing.  The library must
 * not be asked for that: it would find neither name afterwards. */
static int is_renamed(struct cfs_call *c, const struct cfs_name *name,
		      struct cfs_call *to, const struct cfs_name *to_name,
		      struct ceph_statx *from)
{
	bool same = c->node == to->node && strcmp(name->s, to_name->s) == 0;
	struct ceph_statx old;
	int err = look_at_name(c, name, from);

	if (err < 0 || same)
		return err < 0 ? err : 1;
	if (!S_ISDIR(from->stx_mode) && from->stx_nlink == 1)
		return 0;
	err = look_at_name(to, to_name, &old);
	if (err < 0)
		return err == -ENOENT ? 0 : err;
	return from->stx_ino == old.stx_ino && from->stx_dev == old.stx_dev;
}

static int sync_moved(struct cfs_call *c, struct cfs_call *to)
{
	int err = cfs_sync_change(c, to->in);

	return err < 0 || to->node == c->node ? err : cfs_sync_change(c, c->in);
}

/* -EINVAL: a directory would be moved into itself.  And the library knows the
 * quotas of directories that it remembers, between which no name moves. */
static int check_move(struct cfs_call *from, struct cfs_call *into,
		      const struct ceph_statx *sx, struct way *w)
{
	int err;

	if (from->node == into->node)
		return 0;
	err = walk_up(into, S_ISDIR(sx->stx_mode) ? sx : NULL, w);
	return err < 0 ? err : walk_up(from, NULL, w);
}

/*
 * The library goes wrong when it renames what it remembers (Ceph 16.2).  Over
 * one name of a file that has others, it hides those.  To a name that the file
 * had until another server moved it, it shows the name of before as well.  And
 * it does not learn what became of the directory that lost the name.  So a
 * client renames that remembers nothing; the others hear of it from the
 * metadata server, as if another server had done it.
 */
static int rename_by_mover(struct cfs_call *c, const struct cfs_name *name,
			   struct cfs_call *to, const struct cfs_name *to_name,
			   const struct ceph_statx *sx)
{
	struct cfs_call by, from, into;
	struct way w = { .n = 0 };
	int err = begin_by_mover(&by, &from, c);

	if (err < 0)
		return err;
	err = cfs_begin_other(&into, &by, &to->node->node);
	if (err == 0) {
		err = check_move(&from, &into, sx, &w);
		if (err == 0)
			err = ceph_ll_rename(by.cm, from.in, name->s, into.in,
					     to_name->s, c->user);
		if (err == 0)
			err = sync_moved(&from, &into);
		err = cfs_after(&into, NULL, err);
		forget_way(&by, &w);
		cfs_end_other(&into);
	}
	cfs_end_other(&from);
	return cfs_end(&by, err);
}

/*
 * A metadata server that is to move a directory into itself may wait for ever,
 * for a lock that it holds itself (Ceph 16.2).  A kernel never asks for it: it
 * looks first, and no other move of a directory comes between.  Nor do we.
 * Still it has been seen to wait, where several clients moved directories into
 * and out of each other at random, until a client's session ends.
 *
 * -ETIMEDOUT: others take long, and should not keep all workers waiting.
 */
static int begin_move(struct cfs_fs *fs)
{
	const struct timespec until = cfs_time_in(MOVE_WAIT_S);

	return -pthread_mutex_clocklock(&fs->moves, CLOCK_MONOTONIC, &until);
}

/* Moves a directory to another one. */
static int move_dir(struct cfs_call *c, const struct cfs_name *name,
		    struct cfs_call *to, const struct cfs_name *to_name,
		    const struct ceph_statx *sx)
{
	struct cfs_fs *fs = c->client->fs;
	int err = begin_move(fs);

	if (err < 0)
		return err;
	err = rename_by_mover(c, name, to, to_name, sx);
	mutex_unlock(&fs->moves);
	return err;
}

/* Returns 1 if there was nothing to do. */
static int rename_now(struct cfs_call *c, const struct cfs_name *name,
		      struct cfs_call *to, const struct cfs_name *to_name,
		      const struct vfs_cred *cred)
{
	struct ceph_statx sx;
	int err = is_renamed(c, name, to, to_name, &sx);
	bool moves = err == 0 && c->node != to->node && S_ISDIR(sx.stx_mode);

	if (moves)
		err = may_change_above(c, name, cred);
	if (err == 0)
		err = moves ? move_dir(c, name, to, to_name, &sx) :
			      rename_by_mover(c, name, to, to_name, &sx);
	/* Another server may have moved what the mover remembers of a move of
	 * its own. */
	if (moves && err == -EINVAL) {
		usleep(FORGETS_MS * 1000);
		err = move_dir(c, name, to, to_name, &sx);
	}
	/* READDIR shows the ".." that the library knows. */
	if (err == 0 && S_ISDIR(sx.stx_mode))
		look_at_name(to, to_name, &sx);
	/* A directory is in the way: it need not be empty for that. */
	return err == -ENOTEMPTY && !S_ISDIR(sx.stx_mode) ? -EISDIR : err;
}

/* Locks of two names, which may have the same one, in the order of memory. */
struct two_locks {
	pthread_rwlock_t *first, *second;	/* NULL: there is none */
};

static void lock_names(struct two_locks *l, pthread_rwlock_t *a,
		       pthread_rwlock_t *b)
{
	l->first = a < b ? a : b;
	l->second = a == b ? NULL : a < b ? b : a;
	pthread_rwlock_wrlock(l->first);
	if (l->second)
		pthread_rwlock_wrlock(l->second);
}

static void unlock_names(const struct two_locks *l)
{
	pthread_rwlock_unlock(l->first);
	if (l->second)
		pthread_rwlock_unlock(l->second);
}

static int move_name(struct cfs_call *c, const struct cfs_name *name,
		     struct cfs_call *to, const struct cfs_name *to_name,
		     const struct vfs_cred *cred)
{
	struct two_locks locks;
	int err = 0;

	lock_names(&locks, name_lock(c->node, name),
		   name_lock(to->node, to_name));
	/* Earlier changes have to be over, not only answered. */
	if (c->node != to->node)
		err = sync_moved(c, to);
	if (err == 0)
		err = rename_now(c, name, to, to_name, cred);
	unlock_names(&locks);
	return MIN(err, 0);
}

int cfs_rename(struct vfs_op *op)
{
	struct cfs_name name, to_name;
	struct cfs_call c, to;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	cfs_name_set(&name, op->name);
	cfs_name_set(&to_name, op->to_name);
	err = cfs_begin_other(&to, &c, op->to);
	if (err < 0)
		return cfs_end(&c, err);
	err = cfs_before(&c, op->wcc);
	if (err == 0)
		err = cfs_before(&to, op->to_wcc);
	if (err == 0 && (cfs_is_fixed(c.node) || cfs_is_fixed(to.node)))
		err = -EROFS;
	if (err == 0 && (cfs_is_snapdir(&name) || cfs_is_snapdir(&to_name)))
		err = -EEXIST;
	if (err == 0)
		err = move_name(&c, &name, &to, &to_name, op->cred);
	err = cfs_after(&c, op->wcc, err);
	err = cfs_after(&to, op->to_wcc, err);
	cfs_end_other(&to);
	return cfs_end(&c, err);
}

int cfs_link(struct vfs_op *op)
{
	struct ceph_statx sx;
	struct cfs_name name;
	struct cfs_call c, to;
	int err = cfs_begin(&c, op);

	if (err < 0)
		return err;
	cfs_name_set(&name, op->to_name);
	err = cfs_begin_other(&to, &c, op->to);
	if (err < 0)
		return cfs_end(&c, err);
	err = cfs_before(&to, op->to_wcc);
	if (err == 0 && c.node->type == VFS_DIR)
		err = -EPERM;
	if (err == 0 && (cfs_is_fixed(c.node) || cfs_is_fixed(to.node)))
		err = -EROFS;
	if (err == 0 && cfs_is_snapdir(&name))
		err = -EEXIST;
	if (err == 0) {
		cfs_name_change(to.node, &name);
		err = ceph_ll_link(c.cm, c.in, to.in, name.s, c.user);
		cfs_name_done(to.node, &name);
	}
	if (err == 0)
		err = cfs_sync_change(&c, to.in);
	if (cfs_stat(&c, &sx) == 0 && op->attr)
		cfs_attr(&sx, op->attr);
	err = cfs_after(&to, op->to_wcc, err);
	cfs_end_other(&to);
	return cfs_end(&c, err);
}
