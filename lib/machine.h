/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * machine - the part of the machine that this process can use.
 *
 * A container or a systemd unit has lower limits than the machine: the limits
 * of its cgroup and of all above it, of both versions, and the processors that
 * it is bound to.  Defaults follow these.
 */
#pragma once

#include <stdint.h>

#define MACHINE_NO_LIMIT	UINT64_MAX

struct machine {
	uint64_t memory;	/* bytes */
	uint64_t processors;	/* at least 1 */
	uint64_t tasks;		/* threads, in all processes of the cgroup */
};

/* As it was at the first call.  Any thread; before the process is confined. */
const struct machine *machine_share(void);

/*
 * Lowers each of @m to the limit of the caller's cgroups.  Reads /proc and the
 * cgroups' files below @root, which is "" except in tests.  A file that is not
 * there or can't be read sets no limit.
 */
void machine_limit(const char *root, struct machine *m);
