/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by table.c, database.c and journal.c. */
#ifndef GANNET_VFS_POSIX_TABLE_H
#define GANNET_VFS_POSIX_TABLE_H

#include <lmdb.h>

#include "vfs/posix/handle.h"
#include "vfs/posix/places.h"

enum table_what { TABLE_ADD = 1, TABLE_DEL, TABLE_FORGET, TABLE_SET };

/* One change of the table. */
struct table_op {
	enum table_what	  what;
	struct vfs_handle h;
	struct posix_place place;	/* not with FORGET */
};

/* The places of one file while they are being put together. */
struct table_places {
	struct posix_place at[16];	/* no more hard links are looked at */
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
/* Commits it, unless there was an error; returns that, or its own. */
int  table_db_end(MDB_txn *txn, int err);

/*
 * journal.c.
 *
 * Two files of records, one being written, the other on its way into the
 * database.  A record is written by one write(2), so it is there when the
 * process is killed; checksums tell what a power cut left unfinished.  Each
 * file has room reserved, so that records also fit while the disk is full.
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
 * Calls @replay for each record, in order of writing, but for those of journals
 * up to number @done.  The next record follows the last one of these.
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

#endif
