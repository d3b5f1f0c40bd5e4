/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * table - the last known place of each file with a handle given out.
 *
 * Changes go into memory and into a journal at once, and every second in one
 * transaction into the database (database.c), which is synced then.  So a
 * change costs one small write, a killed server loses nothing, and a power cut
 * loses only changes that were not synced yet.
 *
 * While the disk is full, changes wait in memory and, as far as its reserved
 * room goes, in the journal.  The next process goes on with those.
 *
 * Without a state directory all of it is in an unlinked directory, which ends
 * with the process.
 */
#include "vfs/posix/table/table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/log.h"

STAT(posix_table_failed, "failures to write the table of files");
STAT(posix_table_full, "files not recorded because too many were waiting");

#define BUCKETS		4096
#define PENDING_MAX	500000
#define FLUSH_AT	20000		/* without waiting for the second */

struct pending_op {
	struct pending_op *next;
	struct table_op	   op;
	bool		   kept;	/* also in the journal */
};

/* Changes in order of time, by the hash of their handles. */
struct pending {
	struct pending_op *first[BUCKETS];
	struct pending_op *last[BUCKETS];
	unsigned	   count;
};

static unsigned bucket(const struct vfs_handle *h)
{
	return posix_handle_hash(h) % BUCKETS;
}

static int place_index(const struct table_places *ps,
		       const struct posix_place *p)
{
	for (int i = 0; i < ps->n; i++)
		if (posix_handle_same(&ps->at[i].parent, &p->parent) &&
		    strcmp(ps->at[i].name.s, p->name.s) == 0)
			return i;
	return -1;
}

static void table_apply(struct table_places *ps, const struct table_op *op)
{
	int i;

	if (op->what == TABLE_FORGET || op->what == TABLE_SET)
		ps->n = 0;
	if (op->what == TABLE_FORGET)
		return;
	i = place_index(ps, &op->place);
	if (op->what == TABLE_DEL) {
		if (i >= 0)
			ps->at[i] = ps->at[--ps->n];
	} else if (i < 0 && ps->n < (int)ARRAY_SIZE(ps->at)) {
		ps->at[ps->n++] = op->place;
	}
}

static void apply_pending(struct table_places *ps,
			  const struct pending *pending,
			  const struct vfs_handle *h)
{
	if (!pending)
		return;
	for (struct pending_op *p = pending->first[bucket(h)]; p; p = p->next)
		if (posix_handle_same(&p->op.h, h))
			table_apply(ps, &p->op);
}

/* Under the lock: a pending change can't move to the database meanwhile without
 * being in ->older still. */
static int table_find(struct posix_table *t, const struct vfs_handle *h,
		      struct table_places *ps)
{
	int err = table_db_find(&t->db, h, ps);

	apply_pending(ps, t->older, h);
	apply_pending(ps, t->active, h);
	return err;
}

/* Skip changes that a later change makes meaningless. */
static void table_drop(struct pending *pending, const struct vfs_handle *h)
{
	unsigned b = bucket(h);
	struct pending_op **link = &pending->first[b], *p, *last = NULL;

	while ((p = *link)) {
		if (posix_handle_same(&p->op.h, h)) {
			*link = p->next;
			free(p);
			pending->count--;
		} else {
			last = p;
			link = &p->next;
		}
	}
	pending->last[b] = last;
}

static struct pending_op *pend(struct pending *pending,
			       const struct table_op *op)
{
	struct pending_op *p = malloc(sizeof(*p));
	unsigned b = bucket(&op->h);

	if (!p)
		return NULL;
	if (op->what == TABLE_SET || op->what == TABLE_FORGET)
		table_drop(pending, &op->h);
	p->op = *op;
	p->kept = true;
	p->next = NULL;
	if (pending->last[b])
		pending->last[b]->next = p;
	else
		pending->first[b] = p;
	pending->last[b] = p;
	pending->count++;
	return p;
}

static unsigned count_not_kept(const struct pending *pending)
{
	unsigned n = 0;

	for (unsigned b = 0; pending && b < BUCKETS; b++)
		for (struct pending_op *p = pending->first[b]; p; p = p->next)
			n += !p->kept;
	return n;
}

static void pending_free(struct pending *pending)
{
	struct pending_op *p, *next;

	for (unsigned b = 0; pending && b < BUCKETS; b++)
		for (p = pending->first[b]; p; p = next) {
			next = p->next;
			free(p);
		}
	free(pending);
}

/* Under the lock. */
static int table_change(struct posix_table *t, const struct table_op *op)
{
	struct pending_op *p;

	if (t->active->count >= PENDING_MAX) {
		stat_inc(posix_table_full);
		return -ENOSPC;
	}
	p = pend(t->active, op);
	if (!p)
		return -ENOMEM;
	if (table_journal_write(&t->journal, op) < 0) {
		p->kept = false;
		stat_inc(posix_table_failed);
		log_limited(LOG_LEVEL_ERR,
			    "table of files: can't write its journal in the "
			    "state directory: %s; unless that works again, new "
			    "handles are lost when the server ends",
			    strerror(errno));
	}
	if (t->active->count == 1 || t->active->count == FLUSH_AT)
		crew_run(&t->flusher);
	return 0;
}

static void set_op(struct table_op *op, enum table_what what,
		   const struct vfs_handle *h, const struct vfs_handle *parent,
		   const char *name)
{
	op->what = what;
	op->h = *h;
	op->place.parent = *parent;
	posix_name_set(&op->place.name,
		       (struct vfs_name){ name, strlen(name) });
}

/* Under the lock: adds a place.  If the file has too many, drops another one:
 * this is where the file was seen last. */
static int table_add(struct posix_table *t, const struct table_op *op,
		     const struct table_places *ps)
{
	struct table_op less = { .what = TABLE_DEL, .h = op->h };
	int err = 0;

	if (place_index(ps, &op->place) >= 0)
		return 0;
	if (ps->n == (int)ARRAY_SIZE(ps->at)) {
		less.place = ps->at[0];
		err = table_change(t, &less);
	}
	return err < 0 ? err : table_change(t, op);
}

int posix_table_add(struct posix_table *t, const struct vfs_handle *h,
		    const struct vfs_handle *parent, const char *name)
{
	struct table_places ps;
	struct table_op op;
	int err;

	set_op(&op, TABLE_ADD, h, parent, name);
	mutex_lock(&t->lock);
	err = table_find(t, h, &ps);
	if (err == 0)
		err = table_add(t, &op, &ps);
	mutex_unlock(&t->lock);
	return err;
}

/* A rename that begins after the look at ->moves_begun adds its place after
 * this one took away all others. */
int posix_table_set(struct posix_table *t, const struct vfs_handle *h,
		    const struct vfs_handle *parent, const char *name,
		    unsigned moves)
{
	struct table_places ps;
	struct table_op op;
	int err;

	set_op(&op, TABLE_SET, h, parent, name);
	mutex_lock(&t->lock);
	err = atomic_load(&t->moves_begun) == moves ?
	      table_find(t, h, &ps) : -EAGAIN;
	if (err == 0 && (place_index(&ps, &op.place) < 0 || ps.n > 1))
		err = table_change(t, &op);
	mutex_unlock(&t->lock);
	return err;
}

void posix_table_move_begins(struct posix_table *t)
{
	atomic_fetch_add(&t->moves_begun, 1);
}

void posix_table_move_ends(struct posix_table *t)
{
	atomic_fetch_add(&t->moves_ended, 1);
}

unsigned posix_table_moves(struct posix_table *t)
{
	return atomic_load(&t->moves_ended);
}

bool posix_table_moved(struct posix_table *t, unsigned moves)
{
	return atomic_load(&t->moves_begun) != moves;
}

int posix_table_del(struct posix_table *t, const struct vfs_handle *h,
		    const struct vfs_handle *parent, const char *name)
{
	struct table_op op;
	int err;

	set_op(&op, TABLE_DEL, h, parent, name);
	mutex_lock(&t->lock);
	err = table_change(t, &op);
	mutex_unlock(&t->lock);
	return err;
}

int posix_table_forget(struct posix_table *t, const struct vfs_handle *h)
{
	struct table_op op = { .what = TABLE_FORGET, .h = *h };
	int err;

	mutex_lock(&t->lock);
	err = table_change(t, &op);
	mutex_unlock(&t->lock);
	return err;
}

int posix_table_find(struct posix_table *t, const struct vfs_handle *h,
		     struct posix_place *places, int max)
{
	struct table_places ps;
	int err;

	mutex_lock(&t->lock);
	err = table_find(t, h, &ps);
	mutex_unlock(&t->lock);
	if (err < 0)
		return err;
	max = MIN(max, ps.n);
	memcpy(places, ps.at, max * sizeof(*places));
	return max;
}

/* @seq: of the journal that has the same. */
static int write_pending(struct posix_table *t, const struct pending *pending,
			 uint64_t seq)
{
	struct pending_op *p;
	MDB_txn *txn;
	int err = table_db_begin(&t->db, seq, &txn);

	if (err < 0)
		return err;
	for (unsigned b = 0; err == 0 && b < BUCKETS; b++)
		for (p = pending->first[b]; err == 0 && p; p = p->next)
			err = table_db_write(&t->db, txn, &p->op);
	return table_db_end(txn, err);
}

/* Makes ->active ->older, unless an earlier one is still there. */
static int turn_over(struct posix_table *t)
{
	struct pending *fresh;

	if (t->older)
		return 0;
	if (t->active->count == 0)
		return -ENOENT;
	fresh = calloc(1, sizeof(*fresh));
	if (!fresh)
		return -ENOMEM;
	t->older = t->active;
	t->active = fresh;
	table_journal_switch(&t->journal);
	return 0;
}

/* Writes the pending changes. 0 or -errno; a failed write is tried again. */
static int table_flush(struct posix_table *t)
{
	struct pending *done;
	int journal, err;
	uint64_t seq;

	mutex_lock(&t->flushing);
	mutex_lock(&t->lock);
	err = turn_over(t);
	done = t->older;
	journal = t->journal.active ^ 1;
	seq = t->journal.seq - 1;
	mutex_unlock(&t->lock);
	if (err == 0)
		err = write_pending(t, done, seq);
	if (err == 0)
		err = table_journal_clear(&t->journal, journal);
	if (err == 0) {
		mutex_lock(&t->lock);
		t->older = NULL;
		mutex_unlock(&t->lock);
		pending_free(done);
	} else if (err != -ENOENT) {
		stat_inc(posix_table_failed);
		log_limited(LOG_LEVEL_ERR,
			    "table of files: can't write it in the state "
			    "directory: %s; changes wait", strerror(-err));
	}
	mutex_unlock(&t->flushing);
	return err == -ENOENT ? 0 : err;
}

/* Also ->older, when that failed before. */
static void table_flush_all(struct posix_table *t)
{
	if (table_flush(t) == 0)
		table_flush(t);
}

/* Under the lock: when to write; a second after the first change, or now. */
static uint64_t time_to_flush(struct posix_table *t)
{
	uint64_t now = clock_ns();

	if (t->active->count == 0 && !t->older)
		t->flush_at = 0;
	else if (t->flush_at == 0)
		t->flush_at = now + NS_PER_S;
	/* ->older has the changes that the last write failed on. */
	if (t->active->count >= FLUSH_AT && !t->older)
		t->flush_at = now;
	return t->flush_at;
}

static uint64_t run_flusher(struct crew_job *job)
{
	struct posix_table *t = container_of(job, struct posix_table, flusher);
	uint64_t at;

	mutex_lock(&t->lock);
	at = time_to_flush(t);
	if (at && at <= clock_ns()) {
		mutex_unlock(&t->lock);
		table_flush(t);
		mutex_lock(&t->lock);
		t->flush_at = 0;
		at = time_to_flush(t);
	}
	mutex_unlock(&t->lock);
	return at ? at : CREW_IDLE;
}

/* The changes wait as they did in the server that was ended: in ->older and
 * ->active, each with its journal. */
static int table_replay(void *arg, bool newest, const struct table_op *op)
{
	struct posix_table *t = arg;

	if (!newest && !t->older)
		t->older = calloc(1, sizeof(*t->older));
	if (!newest && !t->older)
		return -ENOMEM;
	return pend(newest ? t->active : t->older, op) ? 0 : -ENOMEM;
}

/* In @dir, permanently. */
static int open_kept(struct posix_table *t, const char *dir, uint64_t id)
{
	uint64_t done = 0;
	char name[32];
	int fd, err;

	snprintf(name, sizeof(name), "posix-%016llx", (unsigned long long)id);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	/* First, because it holds the lock against a second server. */
	err = table_journal_open(&t->journal, fd, name);
	close(fd);
	if (err == 0)
		err = table_db_open(&t->db, dir, name, 0);
	if (err == 0)
		err = table_db_done(&t->db, &done);
	if (err == 0)
		err = table_journal_replay(&t->journal, done, table_replay, t);
	/* Start even if the disk is full: the journal still has the changes. */
	if (err == 0)
		table_flush_all(t);
	return err;
}

/* In a separate directory, whose names are gone when this returns. */
static int open_private(struct posix_table *t)
{
	const char *tmp = getenv("TMPDIR");
	char dir[4096], path[4200];
	int err;

	if ((size_t)snprintf(dir, sizeof(dir), "%s/gannet-XXXXXX",
			     tmp ? tmp : "/tmp") >= sizeof(dir))
		return -ENAMETOOLONG;
	if (!mkdtemp(dir))
		return -errno;
	err = table_db_open(&t->db, dir, "private", MDB_NOSYNC);
	snprintf(path, sizeof(path), "%s/private.table", dir);
	unlink(path);
	snprintf(path, sizeof(path), "%s/private.table-lock", dir);
	unlink(path);
	rmdir(dir);
	return err;
}

static void table_destroy(struct posix_table *t)
{
	posix_rolls_free(&t->rolls);
	table_journal_close(&t->journal);
	table_db_close(&t->db);
	pending_free(t->active);
	pending_free(t->older);
	pthread_mutex_destroy(&t->rolls.lock);
	pthread_mutex_destroy(&t->lock);
	pthread_mutex_destroy(&t->flushing);
	free(t);
}

int posix_table_open(const char *dir, uint64_t id, struct posix_table **out)
{
	struct posix_table *t = calloc(1, sizeof(*t));
	struct stat st;
	int err = -ENOMEM;

	if (!t)
		return err;
	t->journal.fd[0] = t->journal.fd[1] = -1;
	pthread_mutex_init(&t->rolls.lock, NULL);
	pthread_mutex_init(&t->lock, NULL);
	pthread_mutex_init(&t->flushing, NULL);
	t->active = calloc(1, sizeof(*t->active));
	if (t->active)
		err = dir ? open_kept(t, dir, id) : open_private(t);
	if (err < 0)
		goto fail;
	err = crew_job_init(&t->flusher, run_flusher, "posix-table");
	if (err < 0)
		goto fail;
	/* It waits for the disk of the journal, not for that of the export. */
	if (fstat(t->journal.fd[0], &st) == 0)
		t->flusher.place = st.st_dev;
	crew_run(&t->flusher);		/* a full disk can have left changes */
	*out = t;
	return 0;

fail:
	table_destroy(t);
	return err;
}

void posix_table_close(struct posix_table *t)
{
	unsigned lost;

	crew_cancel(&t->flusher);
	table_flush_all(t);
	lost = count_not_kept(t->older) + count_not_kept(t->active);
	if (lost > 0)
		log_err("table of files: %u changes fit neither into it nor "
			"into its journal and are lost; handles of these files "
			"are stale from now on", lost);
	table_destroy(t);
}

bool posix_table_age(struct posix_table *t)
{
	posix_rolls_age(&t->rolls);
	return atomic_load(&t->rolls.count) > 0;
}
