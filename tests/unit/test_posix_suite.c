/* SPDX-License-Identifier: BSD-2-Clause */
/* The suite of every backend, for posix in all of its worlds. */
#include "tests/unit/positions.h"
#include "tests/unit/posix_fixture.h"
#include "tests/unit/vfs_suite.h"

static int world;
static struct vfs_suite_params params;

static void setup(struct vfs_config *config)
{
	world_prepare(world, NULL);
	params.counted_cookies = !positions_last(w.dir);
	*config = w.config;
}

static struct vfs_suite_params params = {
	.ops = &posix_vfs_ops,
	.setup = setup,
	.teardown = world_remove,
};

int main(void)
{
	int failed = 0;

	params.as_anyone = posix_cred_probe();
	params.me = (struct vfs_cred){ .uid = 1000, .gid = 1000 };
	if (!params.as_anyone)
		params.me = (struct vfs_cred){ geteuid(), getegid(), 0, { 0 } };
	world_base();
	for (world = 0; world < WORLDS; world++) {
		Suite *s = suite_create("posix as any backend");

		vfs_suite_add(s, &params);
		failed |= run_suite(s);
	}
	world_base_remove();
	return failed;
}
