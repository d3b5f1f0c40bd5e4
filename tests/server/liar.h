/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * liar - a server of MOUNT and NFS version 3 over TCP, at one port, that gives
 * the answers that a test chooses.  It has a thread for each connection.
 *
 * Objects are numbers, which are their filehandles' four bytes.  0 is the
 * export's root, a directory; a table has the entries of directories.  From
 * LIAR_DEEP on each number is a directory with "d" in it, which is the next.
 */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { LIAR_DEEP = 1000, LIAR_HOLD_MAX = 64 };

struct liar_name {
	uint32_t    dir;	/* has */
	const char *name;
	uint32_t    len;	/* 0: of the string */
	uint32_t    object;
	uint32_t    type;	/* ftype3 */
	const char *target;	/* of a link */
};

struct liar {
	/* The test sets these before the start; atomic ones also while no call
	 * of the test is under way. */
	const struct liar_name *names;
	unsigned	nnames;
	atomic_uint	mount_status;	/* of MNT */
	uint8_t		mounted;	/* the object of every path */
	atomic_uint	flavor;		/* that MNT lists; 0: none */
	const char *_Atomic exported;	/* all that EXPORT has, or NULL */
	atomic_uint	only_program;	/* others are not there; 0: all are */
	atomic_uint	only_version;	/* others are a mismatch; 0: 3 */
	bool		denies;		/* all calls but NULL: MSG_DENIED */
	atomic_bool	stops;		/* no listing ends: nothing follows, */
	atomic_bool	circles;	/* or name by name all comes again */
	atomic_uint	refused;	/* procedure of NFS: with ACCES */
	atomic_bool	changes;	/* a file, each time it is read */
	atomic_bool	halves;		/* a file ends before its size */
	bool		makes;		/* takes all changes for done */
	bool		finds;		/* each missing name is one file */
	bool		mute;		/* takes calls, and answers none */
	atomic_uint	mute_procedure;	/* of NFS: of this alone; 0: of none */
	bool		mute_mount;	/* MNT of MOUNT alone */
	atomic_uint	held_procedure;	/* of NFS: its replies are held, */
	atomic_uint	hold;		/* until so many are, and then come the
					 * last one first */
	atomic_uint	most_held;	/* at a time, so far */
	uint32_t	fragment;	/* replies are cut into fragments of so
					 * many bytes; 0: they are whole */

	uint16_t	port;
	int		listener;
	pthread_t	thread;
};

void liar_start(struct liar *l);
/* All connections have been closed by their peers. */
void liar_stop(struct liar *l);
