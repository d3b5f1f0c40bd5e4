/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * node - the table of nodes, their open files, and their handles.
 *
 * A node has at most three files open in the library: one to read; one to
 * write, which also reads; and the witness (data.c).  They stay open for a
 * while, since opening one costs more than using it; but not long, since an
 * open file keeps capabilities that other servers can need.  A written file is
 * synced before it is closed, because the library would not report a failed
 * write later.
 */
#include "modules/ceph/ceph.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#define TURN_WAIT_S	2

static uint64_t vino_hash(vinodeno_t vino)
{
	return hash_mix(vino.ino.val, vino.snapid.val);
}

static struct cfs_shard *shard_of(struct cfs_fs *fs, vinodeno_t vino)
{
	return &fs->shard[vino_hash(vino) % CFS_SHARDS];
}

static struct cfs_node **bucket_of(struct cfs_shard *s, vinodeno_t vino)
{
	return &s->bucket[vino_hash(vino) / CFS_SHARDS % CFS_BUCKETS];
}

static bool is_same(vinodeno_t a, vinodeno_t b)
{
	return a.ino.val == b.ino.val && a.snapid.val == b.snapid.val;
}

/* The client for a directory, or for a file that is found by its handle. */
static struct cfs_client *client_for(struct cfs_fs *fs, vinodeno_t vino)
{
	return &fs->client[hash_mix(vino.ino.val, 1) %
			   (fs->nclients - CFS_NODELESS)];
}

/* ---- the table */

/* Counted; NULL: it is not there.  The shard's lock is held. */
static struct cfs_node *look_for(struct cfs_shard *s, vinodeno_t vino)
{
	struct cfs_node *n = *bucket_of(s, vino);

	while (n && !is_same(n->vino, vino))
		n = n->next;
	if (n) {
		vfs_node_get(&n->node);
		atomic_store_explicit(&n->used, true, memory_order_relaxed);
	}
	return n;
}

static struct cfs_node *find_node(struct cfs_fs *fs, vinodeno_t vino)
{
	struct cfs_shard *s = shard_of(fs, vino);
	struct cfs_node *n;

	mutex_lock(&s->lock);
	n = look_for(s, vino);
	mutex_unlock(&s->lock);
	return n;
}

static struct cfs_node *alloc_node(struct cfs_fs *fs, vinodeno_t vino,
				   enum vfs_type type)
{
	struct cfs_node *n = calloc(1, sizeof(*n));

	if (!n)
		return NULL;
	vfs_node_init(&n->node, &fs->fs);
	n->vino = vino;
	n->type = type;
	atomic_init(&n->used, true);
	pthread_mutex_init(&n->turn, NULL);
	cfs_lock_init(&n->syncs);
	cfs_lock_init(&n->size);
	pthread_mutex_init(&n->lock, NULL);
	return n;
}

/* The node of @vino, counted: @fresh, which is then the table's, or one that
 * is there already. */
static struct cfs_node *enter_node(struct cfs_fs *fs, struct cfs_node *fresh)
{
	struct cfs_shard *s = shard_of(fs, fresh->vino);
	struct cfs_node **b = bucket_of(s, fresh->vino), *n;

	mutex_lock(&s->lock);
	n = look_for(s, fresh->vino);
	if (!n) {
		n = fresh;
		vfs_node_get(&n->node);		/* the table's */
		n->next = *b;
		*b = n;
		s->n++;
	}
	mutex_unlock(&s->lock);
	if (n == fresh &&
	    (atomic_fetch_add(&fs->nnodes, 1) + 1) % CFS_NODES == 0)
		cfs_wake(fs, &fs->tidier);
	return n;
}

int cfs_node_of(struct cfs_call *c, struct Inode *in,
		const struct ceph_statx *sx, struct cfs_node **out)
{
	struct cfs_fs *fs = c->client->fs;
	vinodeno_t vino = cfs_vino(sx);
	struct cfs_node *n = find_node(fs, vino), *fresh;

	if (!n) {
		fresh = alloc_node(fs, vino, cfs_type(sx));
		if (!fresh) {
			ceph_ll_put(c->cm, in);
			return -ENOMEM;
		}
		/* Files stay with their directory's client, directories are
		 * spread over all. */
		fresh->client = fresh->type == VFS_DIR ? client_for(fs, vino) :
							 c->client;
		if (fresh->client == c->client) {
			fresh->in = in;
			fresh->generation = c->client->generation;
			in = NULL;
		}
		n = enter_node(fs, fresh);
		if (n != fresh) {
			in = fresh->in ? fresh->in : in;
			free(fresh);
		}
	}
	if (in)
		ceph_ll_put(c->cm, in);
	*out = n;
	return 0;
}

/* Looks @vino up in the file system. */
static int fetch_node(struct cfs_client *client, vinodeno_t vino,
		 struct cfs_node **out)
{
	struct ceph_statx sx;
	struct cfs_call c;
	struct Inode *in;
	int err = cfs_begin_by(&c, client);

	if (err < 0)
		return err;
	err = ceph_ll_lookup_vino(c.cm, vino, &in);
	if (err < 0)
		return cfs_end(&c, err == -ENOENT ? -ESTALE : err);
	err = ceph_ll_getattr(c.cm, in, &sx, CFS_WANT, 0, c.root);
	/* The library answers for an inode that is in its memory, or held open
	 * by another client, although its last name is gone. */
	if (err == 0 && (sx.stx_nlink == 0 || !is_same(cfs_vino(&sx), vino)))
		err = -ESTALE;
	if (err == 0)
		err = cfs_node_of(&c, in, &sx, out);
	else
		ceph_ll_put(c.cm, in);
	return cfs_end(&c, err == -ENOENT ? -ESTALE : err);
}

int cfs_node_find(struct cfs_fs *fs, vinodeno_t vino, bool nonblock,
		  struct cfs_node **out)
{
	struct cfs_node *n = find_node(fs, vino);

	if (n) {
		*out = n;
		return 0;
	}
	return nonblock ? -EAGAIN : fetch_node(client_for(fs, vino), vino, out);
}

/* ---- inodes and open files of the library */

/* The inode and the open files of an older client went with it.  The node's
 * lock is held. */
static void forget_older(struct cfs_node *n)
{
	if (n->generation == n->client->generation)
		return;
	n->generation = n->client->generation;
	n->in = NULL;
	n->rd = n->wr = n->witness = NULL;
	n->busy = 0;
	n->wrote = false;
}

int cfs_node_inode(struct cfs_node *n, struct ceph_mount_info *cm,
		   struct Inode **out)
{
	int err = 0;

	mutex_lock(&n->lock);
	forget_older(n);
	if (!n->in)
		err = ceph_ll_lookup_vino(cm, n->vino, &n->in);
	if (err < 0)
		n->in = NULL;
	*out = n->in;
	mutex_unlock(&n->lock);
	return err == -ENOENT ? -ESTALE : err;
}

int cfs_turn_take(struct cfs_node *n)
{
	const struct timespec until = cfs_time_in(TURN_WAIT_S);

	return -pthread_mutex_clocklock(&n->turn, CLOCK_MONOTONIC, &until);
}

void cfs_turn_give(struct cfs_node *n)
{
	mutex_unlock(&n->turn);
}

int cfs_size_take(struct cfs_node *n, bool alone)
{
	const struct timespec until = cfs_time_in(TURN_WAIT_S);

	return alone ?
	       -pthread_rwlock_clockwrlock(&n->size, CLOCK_MONOTONIC, &until) :
	       -pthread_rwlock_clockrdlock(&n->size, CLOCK_MONOTONIC, &until);
}

void cfs_size_give(struct cfs_node *n)
{
	pthread_rwlock_unlock(&n->size);
}

static int open_once(struct cfs_call *c, int flags, struct Fh **fh)
{
	return *fh ? 0 : ceph_ll_open(c->cm, c->in, flags, fh, c->root);
}

int cfs_open(struct cfs_call *c, bool to_write, struct Fh **out)
{
	struct cfs_node *n = c->node;
	int err = 0;

	if (to_write && cfs_is_fixed(n))
		return -EROFS;
	mutex_lock(&n->lock);
	if (to_write) {
		err = open_once(c, O_RDWR, &n->wr);
		if (err == 0)
			err = open_once(c, O_RDONLY, &n->witness);
	} else if (!n->wr) {
		err = open_once(c, O_RDONLY, &n->rd);
	}
	if (err == 0) {
		*out = n->wr ? n->wr : n->rd;
		n->wrote |= to_write;
		n->busy++;
	}
	mutex_unlock(&n->lock);
	return err;
}

void cfs_close(struct cfs_call *c)
{
	mutex_lock(&c->node->lock);
	c->node->busy--;
	mutex_unlock(&c->node->lock);
}

void cfs_keep_open(struct cfs_call *c, struct cfs_node *n, struct Fh *fh)
{
	if (n->client == c->client) {
		mutex_lock(&n->lock);
		forget_older(n);
		if (!n->wr) {
			n->wr = fh;
			n->wrote = true;
			fh = NULL;
		}
		mutex_unlock(&n->lock);
	}
	if (fh)
		ceph_ll_close(c->cm, fh);
}

int cfs_ask_witness(struct cfs_call *c)
{
	struct cfs_node *n = c->node;
	struct Fh *was, *next = NULL;
	int err = 0;

	mutex_lock(&n->lock);
	was = n->witness;
	/* Writes can be under way. */
	if (was)
		err = open_once(c, O_RDONLY, &next);
	if (next)
		n->witness = next;
	mutex_unlock(&n->lock);
	if (!next)
		return err;
	err = ceph_ll_close(c->cm, was);
	if (err < 0)
		cfs_verf_change(c->client->fs);
	return err;
}

/* Files that are unused now; NULL: no such file. */
struct idle_files {
	struct Fh *wr, *witness, *rd;
};

static struct Fh *take_file(struct Fh **from)
{
	struct Fh *fh = *from;

	*from = NULL;
	return fh;
}

/* Takes the files out of @n that are open to write and were not used since the
 * last time; with @all, every open file. */
static void take_idle(struct cfs_node *n, bool all, struct idle_files *out)
{
	*out = (struct idle_files){ .wr = NULL };
	mutex_lock(&n->lock);
	forget_older(n);
	if (n->client->cm && n->busy == 0 && (all || !n->wrote)) {
		out->wr = take_file(&n->wr);
		out->witness = take_file(&n->witness);
	}
	if (n->client->cm && all)
		out->rd = take_file(&n->rd);
	n->wrote = false;
	mutex_unlock(&n->lock);
}

/* Closes @f.  What can't be written is lost. */
static void end_files(struct cfs_client *c, const struct idle_files *f)
{
	int err = f->wr ? ceph_ll_fsync(c->cm, f->wr, 0) : 0, lost = 0;

	if (f->wr)
		ceph_ll_close(c->cm, f->wr);
	if (f->witness)
		lost = ceph_ll_close(c->cm, f->witness);
	if (f->rd)
		ceph_ll_close(c->cm, f->rd);
	if (err == 0)
		err = lost;
	if (err == 0)
		return;
	cfs_verf_change(c->fs);
	cfs_note_loss(c->fs, err);
	cfs_client_error(c, err);
}

static void close_idle(struct cfs_node *n, bool all)
{
	struct cfs_client *c = n->client;
	struct idle_files idle;

	/* A sync of the file can wait for long. */
	if (pthread_rwlock_tryrdlock(&n->syncs) != 0)
		return;
	/* A sync takes the two locks in the other order.  That is safe as long
	 * as the client's lock admits readers while the keeper waits for it. */
	pthread_rwlock_rdlock(&c->lock);
	take_idle(n, all, &idle);
	end_files(c, &idle);
	pthread_rwlock_unlock(&c->lock);
	pthread_rwlock_unlock(&n->syncs);
}

/* On the tidier's thread: the table's reference was the last. */
void cfs_node_free(struct vfs_node *node)
{
	struct cfs_node *n = cfs_node(node);
	struct cfs_client *c = n->client;

	close_idle(n, true);
	pthread_rwlock_rdlock(&c->lock);
	if (c->cm && n->in && n->generation == c->generation)
		ceph_ll_put(c->cm, n->in);
	pthread_rwlock_unlock(&c->lock);
	pthread_mutex_destroy(&n->turn);
	pthread_rwlock_destroy(&n->syncs);
	pthread_rwlock_destroy(&n->size);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

/* ---- tidying */

/* Only the table has @n, and no look-up can find it meanwhile: the shard's
 * lock is held. */
static bool is_free(struct cfs_node *n, bool all)
{
	bool used = atomic_exchange_explicit(&n->used, false,
					     memory_order_relaxed);

	return atomic_load_explicit(&n->node.refs,
				    memory_order_acquire) == 1 &&
	       (all || !used);
}

/* Also false while another thread opens its files, which can take long. */
static bool has_written_file(struct cfs_node *n)
{
	bool has;

	if (pthread_mutex_trylock(&n->lock) != 0)
		return false;
	has = n->wr != NULL;
	mutex_unlock(&n->lock);
	return has;
}

/* Takes free nodes out of @s, and lists those whose file is open to write,
 * counted, in @written. */
static void sort_out(struct cfs_shard *s, bool all, struct cfs_node **out,
		     struct cfs_node **written)
{
	*out = *written = NULL;
	mutex_lock(&s->lock);
	for (unsigned i = 0; i < CFS_BUCKETS; i++) {
		struct cfs_node **p = &s->bucket[i], *n;

		while ((n = *p)) {
			/* A sync has to find the node whose files know of lost
			 * data, until they are closed. */
			if (is_free(n, all) && (all || !has_written_file(n))) {
				*p = n->next;
				n->next = *out;
				*out = n;
				s->n--;
				continue;
			}
			if (has_written_file(n)) {
				vfs_node_get(&n->node);
				n->next_written = *written;
				*written = n;
			}
			p = &n->next;
		}
	}
	mutex_unlock(&s->lock);
}

void cfs_nodes_tidy(struct cfs_fs *fs, bool all)
{
	struct cfs_node *written, *out, *n;

	for (unsigned i = 0; i < CFS_SHARDS; i++) {
		sort_out(&fs->shard[i], all, &out, &written);
		while ((n = written)) {
			written = n->next_written;
			close_idle(n, false);
			vfs_node_put(&n->node);
		}
		while ((n = out)) {
			out = n->next;
			atomic_fetch_sub(&fs->nnodes, 1);
			vfs_node_put(&n->node);
		}
	}
}
