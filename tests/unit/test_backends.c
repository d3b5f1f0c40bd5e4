/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests of every backend, for each backend of vfs/backends.c and for the
 * sample of a module: one row each. */
#include "tests/unit/positions.h"
#include "tests/unit/posix_fixture.h"
#include "tests/unit/vfs_suite.h"
#include "vfs/mem/mem.h"

static unsigned run;			/* number of the row's present run */
static bool counted_cookies;

static void nothing(void)
{
}

static void mem_setup(struct vfs_config *config)
{
	static const struct mem_options options = { .size = 64 << 20 };

	config->path = "/test";
	config->options = &options;
}

static void posix_setup(struct vfs_config *config)
{
	world_prepare((int)run, NULL);
	counted_cookies = !positions_last(w.dir);
	*config = w.config;
}

static void hello_setup(struct vfs_config *config)
{
	config->path = "/hello";
	config->options = "Good day";
}

static struct vfs_suite_params rows[] = {
	{
		.ops = &mem_vfs_ops,
		.setup = mem_setup,
		.teardown = nothing,
		.me = { .uid = 1000, .gid = 1000 },
		.as_anyone = true,
	},
	{
		.ops = &posix_vfs_ops,
		.setup = posix_setup,
		.teardown = world_remove,
		.me = { .uid = 1000, .gid = 1000 },
		.runs = WORLDS,
		.counted_cookies = &counted_cookies,
		.dir = w.dir,
	},
	{
		.ops = &gannet_backend,	/* doc/examples/vfs-hello.c */
		.setup = hello_setup,
		.teardown = nothing,
		.read_only = true,
	},
};

int main(void)
{
	int failed = 0;

	rows[1].as_anyone = posix_cred_probe();
	if (!rows[1].as_anyone)
		rows[1].me = vt_user(geteuid(), getegid());
	world_base();
	for (unsigned i = 0; i < ARRAY_SIZE(rows); i++)
		for (run = 0; run < MAX(rows[i].runs, 1u); run++) {
			Suite *s = suite_create(rows[i].ops->name);

			vfs_suite_add(s, &rows[i]);
			failed |= run_suite(s);
		}
	world_base_remove();
	return failed;
}
