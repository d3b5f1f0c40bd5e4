/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sync - makes changes durable before a reply says that they are.
 *
 * Three facts about Linux make one fsync() that returns 0 too little.
 *
 * An error is reported once.  The kernel reports a write-back error once to
 * each open file description: if several fsync() calls share the description,
 * one fails, and the others return 0, as if their data were on the disk.  So
 * only one thread at a time syncs a node, its *turn*.  The turn ends after its
 * error has taken effect, and each thread that waited for a turn that began
 * after its own change shares the result.  A change that is synced before its
 * reply also fails if any turn since it began failed: that turn might have got
 * the error of this change's data.  A COMMIT need not look back, since the
 * verifier has changed since the WRITE.  That holds for every sync of a node:
 * COMMIT, stable WRITEs (which write, then take a turn; RWF_SYNC would report
 * the error of another thread's data), SETATTR, directories, and the sweeper,
 * which syncs a file while it is in the cache.
 *
 * The order of an error is: the file system becomes doubtful, the verifier
 * changes, the turn ends, a line goes to the log.  Nothing that can block
 * comes before the last.
 *
 * A WRITE reads the verifier before its data goes in, and a COMMIT after its
 * turn, so data that was lost in between is seen by the change.
 *
 * A dead file system can return 0.  XFS, ext4 and btrfs answer 0 to the fsync()
 * of a directory that is clean by now, also when their journal could not be
 * written.  So after each sync the file is asked for its attributes (XFS
 * refuses that once it is shut down), ext4 is asked to begin a change (which it
 * then refuses), and btrfs whether it is read-only (as it is after it gave up).
 * And after the first error a file system is *doubtful* for all its exports: no
 * sync counts until syncfs() succeeds.  doc/posix.md says which races remain.
 *
 * Not every file can be synced by itself.  Files that can't be opened (symbolic
 * links, devices, FIFOs, and files that the server has no permission for), and
 * files without fsync(), are synced with the whole file system, by syncfs().
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct posix_change;
struct posix_fs;
struct posix_node;

struct posix_waiter;

/* Syncs of one thing, one at a time.  Written under the lock of its disk. */
struct posix_turns {
	uint64_t begun;			/* number of the last that began */
	uint64_t done;			/* ... and of the last that ended */
	_Atomic uint64_t failed;	/* ... and of the last that failed */
	int	 err;			/* that one's -errno */
	bool	 running;		/* one, or it is about to begin */
	/* Threads that wait, by the number of the turn that they want. */
	struct posix_waiter *first, *last;
};

/*
 * disk.c: one file system (st_dev), for all exports that are on it.
 */
#define POSIX_NAMES_BITS	8

struct posix_disk {
	dev_t		 dev;
	/* Under disks_lock: */
	struct posix_disk *next;
	unsigned	 users;

	_Atomic uint64_t errors;
	_Atomic uint64_t trusted;	/* errors that are over */
	/* Names that are being made, by their directory's inode number. */
	atomic_uint	 names[1 << POSIX_NAMES_BITS];

	pthread_mutex_t	 lock;
	/* Under the lock, and all turns of nodes with it: */
	struct posix_turns whole;	/* of the whole disk */
	struct posix_hold *holds;
	pthread_cond_t	 freed;		/* one of them ended */
};

int  posix_disk_get(dev_t dev, struct posix_disk **out);
/* A doubtful one is kept, for when the file system is exported again. */
void posix_disk_put(struct posix_disk *d);
/* Storage failed for data of @fs: makes the disk doubtful, and changes the
 * write verifier.  Never blocks. */
void posix_fs_failed(struct posix_fs *fs);
void posix_change_verf(struct posix_fs *fs);
bool posix_disk_doubtful(struct posix_disk *d);
/*
 * Runs @run(@arg) in a turn of @t that began after the call, or lets another
 * thread do that with its own @arg.  0, or the -errno of a turn that failed
 * after t->failed was @since; POSIX_NOW: of that turn, or a later one.
 */
#define POSIX_NOW	UINT64_MAX
int  posix_disk_turn(struct posix_disk *d, struct posix_turns *t,
		     uint64_t since, int (*run)(void *arg), void *arg);
/*
 * Enclose the creation of a name in @dir with its sync.  A call that finds the
 * name meanwhile must not report it as durable: posix_names_settled() is false.
 */
void posix_names_begin(struct posix_node *dir);
void posix_names_end(struct posix_node *dir);
bool posix_names_settled(struct posix_node *dir);
/*
 * No two threads hold the same file, whichever their nodes are.  A hold keeps
 * other SETATTRs out while one checks its guard and acts on it, and on btrfs
 * syncs of the file through other nodes while one is under way.
 */
struct posix_hold {
	struct posix_hold *next;
	struct posix_disk *disk;
	ino_t		 ino;
};
/* 0; -EAGAIN, unless @may_wait: another thread holds it. */
int  posix_hold(struct posix_hold *h, struct posix_node *n, bool may_wait);
void posix_hold_end(struct posix_hold *h);

/*
 * sync.c
 */
/* The turns that had failed before a change, of its node and of its disk: the
 * change is synced in the one or the other. */
struct posix_mark {
	uint64_t node, disk;
};
struct posix_mark posix_node_mark(struct posix_node *n);
/*
 * Makes data and attributes of @n durable, whatever its type; 0 or -errno.
 * @since: taken before the change to sync; NULL if the verifier reports earlier
 * errors.
 */
int  posix_node_flush(struct posix_node *n, const struct posix_mark *since);
/*
 * Before a change of @n's names or attributes: opens the descriptors that its
 * sync will need, so that a change can't fail for lack of descriptors or memory
 * after it is done.  As the server.  0, or -errno: don't make the change then.
 */
int  posix_sync_ready(struct posix_node *n);
/* Maps @err for a change that is done.  An error that says "come again" is EIO:
 * the client would find its own change in the way. */
int  posix_not_again(int err);
/* Makes a change of names or attributes durable, if the mount asks for it.
 * Never says "come again": see posix_not_again(). */
int  posix_change_sync(const struct posix_change *c);
/* The same for a change that the caller knows to be new. */
int  posix_node_sync(struct posix_node *n);
/* Syncs @n before it is closed, if it was written and not synced. */
void posix_node_flush_idle(struct posix_node *n);
/* The same where look-ups no longer find @n. */
void posix_node_flush_last(struct posix_node *n);
/*
 * A write by @fd, the node's, failed with @err (-errno), perhaps after some of
 * the data.  If this means that new or older data might be lost, acts as after
 * a failed sync and returns @err for the client; else returns 0.
 */
int  posix_write_failed(struct posix_node *n, int fd, int err);
