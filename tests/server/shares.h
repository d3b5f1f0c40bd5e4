/* SPDX-License-Identifier: BSD-2-Clause */
/* shares - calls that run and wait in the shares of the harness' workers. */
#pragma once

#include <stdbool.h>
#include <string.h>

#include "rpc/rpc.h"
#include "tests/server/nfs_client.h"

struct seen {
	const char *name;
	unsigned    running, waiting;
};

static inline void note_class(const char *name, unsigned max, unsigned running,
		       unsigned waiting, void *arg)
{
	struct seen *s = arg;

	if (strcmp(name, s->name) == 0) {
		s->running += running;
		s->waiting += waiting;
	}
}

static inline struct seen share(const char *name)
{
	struct seen s = { .name = name };

	rpc_server_walk_classes(srv.server, note_class, &s);
	return s;
}

static inline bool is_idle(const char *name)
{
	struct seen s = share(name);

	return s.running + s.waiting == 0;
}
