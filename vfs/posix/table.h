/* SPDX-License-Identifier: BSD-2-Clause */
/* What table.c and journal.c share. */
#ifndef GANNET_VFS_POSIX_TABLE_H
#define GANNET_VFS_POSIX_TABLE_H

#include "vfs/posix/posix.h"

enum table_what { TABLE_ADD = 1, TABLE_DEL, TABLE_FORGET, TABLE_SET };

/* One change of the table. */
struct table_op {
	enum table_what	  what;
	struct vfs_handle h;
	struct posix_place place;	/* not with FORGET */
};

/*
 * Two files of records, one being written, the other on its way into the
 * database.  A record is written by one write(2), so it is there when the
 * process is killed; checksums tell what a power cut left unfinished.
 */
struct table_journal {
	int	 fd[2];
	int	 active;
	uint64_t seq;			/* of the active one */
	bool	 started;		/* ... has its head */
	off_t	 len;			/* ... as far as it is whole */
};

/* Opens both and calls @replay for each record, in order of writing. */
int  table_journal_open(struct table_journal *j, int dir_fd, const char *name,
			int (*replay)(void *arg, const struct table_op *op),
			void *arg);
void table_journal_close(struct table_journal *j);
/* All of the record, or -EIO and nothing of it. */
int  table_journal_write(struct table_journal *j, const struct table_op *op);
/* From now on the other one is written; it must be empty. */
void table_journal_switch(struct table_journal *j);
/* What the other one says is in the database. */
int  table_journal_clear(struct table_journal *j, int which);

#endif
