/* SPDX-License-Identifier: BSD-2-Clause */
/* lock_view - a lock as a program tells the operator of it, struct program_row.
 */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

/* An owner of locks with one range.  Pointers are borrowed. */
struct lock_party {
	const struct in6_addr *addr;	/* the client's; IPv4 as
					 * ::ffff:a.b.c.d */
	const char	*host;		/* its name for itself */
	uint32_t	 svid;		/* its number for the process */
	const uint8_t	*oh;		/* its handle for the owner */
	uint32_t	 oh_len;
	/* Not of a share: */
	uint64_t	 first;		/* byte of the range */
	uint64_t	 last;		/* or LOCK_TO_END */
	bool		 exclusive;
};
#define LOCK_TO_END	UINT64_MAX

enum lock_kind {
	LOCK_HELD,
	LOCK_WAITS,
	LOCK_TOLD,	/* it waited, has the lock, and is being called back */
	LOCK_SHARE,
};

struct lock_view {
	enum lock_kind	  kind;
	const char	 *export;	/* the path that clients mount */
	uint64_t	  fileid;	/* of the file there */
	struct lock_party owner;
	uint64_t	  ms;		/* for which it has held, or waited */
	/* Of LOCK_WAITS: a lock that is in the way.  False: the lock is of a
	 * process of this machine, or too many would have to be inspected. */
	bool		  is_blocked;
	struct lock_party blocker;
	/* Of a share, as SHARE has them: bits, 1 to read and 2 to write. */
	uint32_t	  access, deny;
};

struct lock_totals {
	unsigned locks, waits, shares;
	unsigned hosts;		/* that are known, with locks or without */
	unsigned monitored;	/* of these */
	uint64_t grace_ms;	/* that are left */
};

typedef void lock_view_fn(void *arg, const struct lock_view *v);
