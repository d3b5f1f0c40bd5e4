/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * health - whether the server is ready: it takes calls, and the directories at
 * the paths of its exports answer.
 *
 * A question never waits for a file system: the crew looks at each directory,
 * and a question reports the directories that have not answered an earlier one.
 */
#pragma once

#include "daemon/watch/report.h"

struct health;

/* NULL: no memory. */
struct health *health_create(void);
/* Does not wait for directories that hang.  NULL is fine. */
void health_destroy(struct health *h);
/* False, with the reason in @why: the server drains, or an export was not
 * reached yet or has not answered for two seconds.  One thread, which is
 * registered with RCU. */
bool health_is_ready(struct health *h, const struct report *r, char *why,
		     size_t size);
