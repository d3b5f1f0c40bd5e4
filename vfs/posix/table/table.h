/* SPDX-License-Identifier: BSD-2-Clause */
/* table - private to the table of files. */
#pragma once

#include <lmdb.h>

#include "vfs/posix/handle.h"
#include "vfs/posix/table/places.h"

struct posix_place {
	struct vfs_handle parent;
	struct posix_name name;
};

enum table_what { TABLE_ADD = 1, TABLE_DEL, TABLE_FORGET, TABLE_SET };

/* One change of the table. */
struct table_op {
	enum table_what	  what;
	struct vfs_handle h;
	struct posix_place place;	/* not with FORGET */
};

/* The places of one file while they are being put together. */
struct table_places {
	struct posix_place at[16];	/* further hard links are ignored */
	int n;
};

/*
 * database.c: all return 0 or -errno.
 */
struct table_db {
	MDB_env	*env;
	MDB_dbi	 dbi;
};
/* @flags: MDB_*. */
int  table_db_open(struct table_db *db, const char *dir, const char *name,
		   unsigned flags);
void table_db_close(struct table_db *db);
int  table_db_find(struct table_db *db, const struct vfs_handle *h,
		   struct table_places *ps);
/* The number of the last journal that the database has. */
int  table_db_done(struct table_db *db, uint64_t *done);
/* Begins a transaction, after which it has all of journal @seq. */
int  table_db_begin(struct table_db *db, uint64_t seq, MDB_txn **out);
int  table_db_write(struct table_db *db, MDB_txn *txn,
		    const struct table_op *op);
/* Commits it, unless @err is an error; returns @err or the commit's error. */
int  table_db_end(MDB_txn *txn, int err);

/*
 * journal.c.
 *
 * Two files of records, one being written, the other on its way into the
 * database.  A record is written by one write(2), so it is there when the
 * process is killed; checksums show whether a power cut left it unfinished.
 * Each file has room reserved, so that records also fit while the disk is full.
 */
struct table_journal {
	int	 fd[2];
	int	 active;
	/* Of the active one: the other's is less by one. */
	uint64_t seq;
	bool	 started;		/* ... has its head */
	off_t	 len;			/* ... as far as it is whole */
};

/* @newest: the record is in the active file, not in the other. */
typedef int table_replay_fn(void *arg, bool newest, const struct table_op *op);

/* Opens both, and locks them against another server. */
int  table_journal_open(struct table_journal *j, int dir_fd, const char *name);
/*
 * Calls @replay for each record, in order of writing, except in journals up to
 * number @done.  The next record follows the last one of these.
 */
int  table_journal_replay(struct table_journal *j, uint64_t done,
			  table_replay_fn *replay, void *arg);
void table_journal_close(struct table_journal *j);
/* All of the record, or -EIO and nothing of it. */
int  table_journal_write(struct table_journal *j, const struct table_op *op);
/* Switches to the other file, which must be empty. */
void table_journal_switch(struct table_journal *j);
/*
 * Empties the other file, whose records are in the database.  That need not
 * reach the disk: the database has the number of the last journal it includes.
 */
int  table_journal_clear(struct table_journal *j, int which);

/*
 * roll.c: what directories held when they were read for lost files.
 */
#define POSIX_ROLLS		32
#define POSIX_ROLLS_BYTES	((size_t)64 << 20)

struct posix_rolls {
	atomic_int	 count;		/* of those below */
	pthread_mutex_t	 lock;
	/* Under the lock: */
	struct posix_roll *roll[POSIX_ROLLS];
	struct posix_roll *fresh;	/* being read */
};

/* Looks @h up in what @dir held.  0: it is perhaps @name, the @i-th of its
 * names; -ENOENT: it is not there; -EAGAIN: @dir is to be read first. */
int  posix_roll_ask(struct posix_rolls *rs, const struct posix_node *dir,
		    const struct vfs_handle *h, unsigned i,
		    struct posix_name *name);
/* Reads @dir.  0; 1: -EAGAIN after it means that the file is not there,
 * whatever changed meanwhile; -ETIMEDOUT: it can't be read now, come again;
 * -EACCES: the server has no permission to read it. */
int  posix_roll_read(struct posix_fs *fs, struct posix_node *dir);
/* Frees unused ones. */
void posix_rolls_age(struct posix_rolls *rs);
void posix_rolls_free(struct posix_rolls *rs);

/*
 * table.c
 */
struct posix_table {
	struct table_db	 db;
	struct crew_job	 flusher;
	pthread_mutex_t	 flushing;	/* one at a time; before lock */
	pthread_mutex_t	 lock;
	/* Under the lock: */
	struct pending	*active;	/* takes changes */
	struct pending	*older;		/* is being written; NULL */
	struct table_journal journal;
	uint64_t	 flush_at;	/* 0: no changes */

	/* Renames that the table does not know of yet: those begun, less those
	 * ended. */
	atomic_uint	 moves_begun, moves_ended;
	struct posix_rolls rolls;
};

/* @h is @name in @parent. */
int  posix_table_add(struct posix_table *t, const struct vfs_handle *h,
		     const struct vfs_handle *parent, const char *name);
/* ... and nowhere else, being a directory.  It was there at a time when
 * posix_table_moves() had been @moves; -EAGAIN: a rename began since. */
int  posix_table_set(struct posix_table *t, const struct vfs_handle *h,
		     const struct vfs_handle *parent, const char *name,
		     unsigned moves);
/* The number of renames so far.  No rename moved a file that was looked up
 * after that, unless posix_table_moved(). */
unsigned posix_table_moves(struct posix_table *t);
bool posix_table_moved(struct posix_table *t, unsigned moves);
/* Up to @max places; returns how many, or -errno. */
int  posix_table_find(struct posix_table *t, const struct vfs_handle *h,
		      struct posix_place *places, int max);
