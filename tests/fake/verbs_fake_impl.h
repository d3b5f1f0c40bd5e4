/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the parts of verbs_fake. */
#ifndef GANNET_TESTS_FAKE_VERBS_FAKE_IMPL_H
#define GANNET_TESTS_FAKE_VERBS_FAKE_IMPL_H

#include <stdio.h>
#include <stdlib.h>

#include "lib/util.h"
#include "tests/fake/verbs_fake.h"

#define FAKE_CHECK(cond) do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond); \
			abort(); \
		} \
	} while (0)

#define FAKE_ASYNCS	16

/* A device's own events, verbs_fake_async.c. */
void fake_async_init(struct ibv_context *ctx);
/* Like ibv_destroy_qp(): waits for those that were taken, and takes back
 * those that were not. */
void fake_async_purge(const void *queue);

struct ibv_context *fake_context(void);
void fake_lock(void);
void fake_unlock(void);
/* Counts a fallible call; true, with errno set, when it is to fail. */
bool fake_fails(void);
/* So many objects more, or less. */
void fake_count(int n);

#endif
