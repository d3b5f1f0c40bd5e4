/* SPDX-License-Identifier: BSD-2-Clause */
/* audit_record - a call in the ring of the audit, and its line.  Pure. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "rpc/lock_view.h"

/* Texts: bytes as the wire and the file system have them. */
enum { AUDIT_EXPORT, AUDIT_PATH, AUDIT_HANDLE, AUDIT_NAME, AUDIT_TO_PATH,
       AUDIT_TO_HANDLE, AUDIT_TO_NAME, AUDIT_TEXTS };
#define AUDIT_NO_TEXT	UINT16_MAX
/* Of a longer text only so many bytes are kept. */
#define AUDIT_TEXT_MAX	4096u

struct audit_record {
	uint64_t	 at;		/* ns since 1970 */
	uint64_t	 ns;		/* from the call to its end */
	struct in6_addr	 host;		/* IPv4 as ::ffff:a.b.c.d */
	uint16_t	 port;
	uint16_t	 len[AUDIT_TEXTS];	/* or AUDIT_NO_TEXT */
	bool		 has_user;	/* the call has uid and gid */
	bool		 has_actor;	/* it acted as as_uid and as_gid */
	uint32_t	 xid;
	uint32_t	 uid, gid, as_uid, as_gid;
	struct lock_totals ended;	/* by gannetctl: then @uid is its
					 * user, AUDIT_NAME the host's name,
					 * and @via NULL */
	/* Literals. */
	const char	*via;
	const char	*sec;		/* "krb5", or NULL */
	const char	*proc;
	const char	*status;
	uint8_t		 text[];	/* one behind the other */
};

/* Returns the line, without its end, for free(); NULL: no memory. */
char *audit_line(const struct audit_record *r);
/* The same for @n records that were dropped before @at. */
char *audit_dropped_line(uint64_t at, uint64_t n);
