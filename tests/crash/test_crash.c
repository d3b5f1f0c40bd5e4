/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gannetd is killed at random moments and started again, while clients make,
 * change, move and remove files: all acknowledged changes are there.
 *
 * GANNET_CRASH_KILLS is how often, for each transport and kind of handle;
 * GANNET_CRASH_SEED makes the same choices again.
 */
#include <stdlib.h>
#include <sys/stat.h>

#include "tests/crash/crash.h"
#include "tests/unit/runner.h"

#define KILLS	6
#define OTHER	65534

static const char *const names[] = {
	"TCP, system's handles", "TCP, table",
	"iWARP, system's handles", "iWARP, table",
	"TCP, without privileges",
};

/* @i has a bit for the transport and one for the kind of handles. */
static void kill_again_and_again(int i, bool other)
{
	unsigned kills = crash_setting("GANNET_CRASH_KILLS", KILLS);
	struct crash *c = calloc(1, sizeof(*c));

	ck_assert_ptr_nonnull(c);
	daemon_prepare(&c->d);
	c->d.uid = other && geteuid() == 0 ? OTHER : 0;
	c->table = i & 1 || other;
	/* After its restart the server can only open files that their owners
	 * can. */
	model_mode_always = other || geteuid() ? 0600 : 0;
	c->iwarp = i & 2;
	crash_prepare(c, NULL);
	while (c->ends < kills) {
		crash_start(c);
		crash_check(c);
		crash_work(c, 1000 + model_random() % 100000);
		crash_kill(c);
		crash_disconnect(c);
	}
	crash_report(c, names[i]);
	daemon_clean(&c->d);
	free(c);
}

TEST_CASE(.timeout = 60 + crash_setting("GANNET_CRASH_KILLS", KILLS));

TEST_LOOP(a_killed_server_loses_nothing_acknowledged, 0, 4)
{
	kill_again_and_again(_i, false);
}

/* A user who owns all files, and has only an owner's rights. */
TEST(a_killed_server_without_privileges_loses_nothing_acknowledged)
{
	kill_again_and_again(4, true);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	return run_tests();
}
