/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sync_faults - fsync(), fdatasync(), syncfs() and pwritev2() of a disk that
 * dies, in place of the C library's in the program that links it.
 *
 * It emulates the kernel's errseq: data that is lost is reported once to each
 * open file description, but not to one that was opened after the first report.
 * A pause after the report, before the call returns, is where other threads are
 * told that all is well.
 *
 * Orders hold until they are taken back.  Any thread.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct sync_faults {
	atomic_int pause_us;		/* after an error was reported */
	atomic_int file_errno;		/* every sync of a file */
	atomic_int dir_errno;		/* ... of a directory */
	atomic_int whole_errno;		/* every syncfs() */
	atomic_int whole_once;		/* the next one */
	atomic_int journal_errno;	/* to begin a change */
	atomic_int open_errno;		/* open() by /proc/self/fd */
	/* Writes fail, after so many that moved one byte each. */
	atomic_int write_errno, write_bytes;
	atomic_bool chattr_s;		/* files have the flag S (sync) */
	atomic_bool mount_sync;		/* the mount has the option sync */
	atomic_bool mount_ro;		/* it is read-only */
	atomic_int times_errno;		/* utimensat() */
	atomic_bool hold_dirs;		/* syncs of directories wait */
	atomic_bool hold_failed;	/* syncfs() that fails waits */
	/* One of so many syncs fails, and one of so many writes finds that
	 * unsynced data is lost; 0: none. */
	atomic_uint one_in;
	/* Calls begun, and calls ended. */
	atomic_int files, dirs, wholes, ended, held;
};

extern struct sync_faults sync_faults;

/* Written data of the inode is lost: descriptors report it as by errseq. */
void sync_faults_lose(ino_t ino);
/* Calls that reported it. */
int  sync_faults_told(void);
/* The number of this thread's last write, among the writes to its file, up to
 * SYNC_FAULTS_WRITES; and whether that never reached the disk. */
#define SYNC_FAULTS_WRITES	(1u << 20)
unsigned sync_faults_last_write(void);
bool sync_faults_lost(ino_t ino, unsigned write);
