/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Under every failure of the backend, and every end of a write: acknowledged
 * changes are there, refused ones are done whole or not at all, and the server
 * goes on.
 *
 * GANNET_STORM_TURNS is how often errors and looks take turns.
 */
#include <string.h>

#include "tests/crash/crash.h"
#include "tests/server/fault_vfs.h"
#include "tests/server/harness.h"
#include "tests/unit/runner.h"

#define TURNS	25

static struct harness srv;
static struct crash c;

TEST_CASE(.timeout = 60 + crash_setting("GANNET_STORM_TURNS", TURNS));

TEST(errors_at_random_lose_nothing_that_was_acknowledged)
{
	struct harness_config config = { .backend = &fault_vfs_ops };
	unsigned turns = crash_setting("GANNET_STORM_TURNS", TURNS);
	struct nfs3_fh root;

	fault_init();
	harness_start(&srv, &config);
	harness_root(&srv, "/mem", &root);
	daemon_prepare(&c.d);
	crash_prepare(&c, NULL);
	c.root.len = root.len;
	memcpy(c.root.data, root.data, root.len);
	crash_connect(&c, srv.port);
	crash_make_dirs(&c);
	c.errors = true;
	for (unsigned i = 0; i < turns || !c.doubts; i++) {
		fault_storm(1 + 10 * (i % 10));
		crash_work(&c, 20000);
		crash_settle(&c, 10000000);
		fault_storm(0);
		crash_pause(&c);
	}
	crash_report(&c, "storms");
	for (unsigned i = 0; i < CRASH_WIRES; i++)
		wire_close(&c.wire[i]);
	harness_stop(&srv);
	daemon_clean(&c.d);
}
