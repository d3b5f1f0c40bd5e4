/* SPDX-License-Identifier: BSD-2-Clause */
/* rquota_client - calls of rquota by libtirpc, whose names differ from the
 * names of libnfs and of rpc/. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct rquota_caller {
	uint16_t port;			/* of 127.0.0.1 */
	bool	 udp;
	unsigned again_s;		/* over UDP; 0: it is sent once */
	bool	 anonymous;		/* AUTH_NONE */
	uid_t	 uid;
	gid_t	 gid, gids[2];
};

struct rquota_what {
	uint32_t vers, proc;
	int	 type, id;
	const char *path;
};

/* The words of a result: the status, and the fields of a quota. */
#define RQUOTA_WORDS	11u

/* The end of a call. */
enum rquota_end { RQUOTA_ANSWERED, RQUOTA_GARBAGE, RQUOTA_FAILED };

enum rquota_end rquota_call(const struct rquota_caller *c,
			    const struct rquota_what *q,
			    uint32_t word[RQUOTA_WORDS]);
