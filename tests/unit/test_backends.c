/* SPDX-License-Identifier: BSD-2-Clause */
/* The tests of every backend, for each backend of vfs/backends.c and for the
 * samples of modules: one row each. */
#include "tests/unit/positions.h"
#include "tests/unit/posix_fixture.h"
#include "tests/unit/vfs_suite.h"
#include "vfs/backends.h"
#include "vfs/mem/mem.h"

#define gannet_backend	delay_filter	/* a second one in this program */
#include "doc/examples/vfs-delay.c"
#undef gannet_backend

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

static void delay_setup(struct vfs_config *config)
{
	static _Alignas(max_align_t) char block[256];
	const struct delay_options delay = { .ms = 1 };
	size_t at = backend_filter_at(&mem_vfs_ops);

	ck_assert_uint_le(at + sizeof(delay), sizeof(block));
	mem_setup(config);
	memcpy(block, config->options, sizeof(struct mem_options));
	memcpy(block + at, &delay, sizeof(delay));
	config->options = block;
}

/* The table of the filter over mem; @b keeps it. */
static const struct vfs_ops *delay_over_mem(struct backends **b)
{
	if (backends_create(b) < 0 || backends_add(*b, &delay_filter) < 0)
		abort();
	return backends_over(*b, &delay_filter, &mem_vfs_ops);
}

/* ---- a filter that refuses its options */

static const struct vfs_ops lower;
static bool unmounted;

static void free_none(struct vfs_node *n)
{
	(void)n;
	ck_abort_msg("there is no node");
}

static int lower_mount(const struct vfs_config *config, struct vfs_fs **out)
{
	static struct vfs_fs fs;

	(void)config;
	fs = (struct vfs_fs){ .ops = &lower };
	*out = &fs;
	return 0;
}

static void lower_unmount(struct vfs_fs *fs)
{
	ck_assert_ptr_eq(fs->ops, &lower);
	unmounted = true;
}

static const struct vfs_ops lower = {
	.version = GANNET_VFS_VERSION, .name = "lower",
	.mount = lower_mount, .unmount = lower_unmount, .node_free = free_none,
};

static int refuse(const struct vfs_config *config, struct vfs_fs *fs)
{
	(void)config;
	(void)fs;
	return -EPERM;
}

TEST(the_text_of_a_link_has_1_to_4095_bytes_without_nul)
{
	char text[VFS_PATH_MAX + 1];

	memset(text, '/', sizeof(text));
	ck_assert_int_eq(vfs_target_check(text, 0), -EINVAL);
	ck_assert_int_eq(vfs_target_check(text, 1), 0);
	ck_assert_int_eq(vfs_target_check(text, VFS_PATH_MAX), 0);
	ck_assert_int_eq(vfs_target_check(text, VFS_PATH_MAX + 1),
			 -ENAMETOOLONG);
	ck_assert_int_eq(vfs_target_check("a\0b", 3), -EINVAL);
	ck_assert_int_eq(vfs_target_check("ab", 3), -EINVAL);
}

TEST(a_filter_that_fails_to_attach_is_out_of_the_tree_it_left)
{
	static const struct vfs_ops refusing = {
		.version = GANNET_VFS_VERSION, .name = "refusing",
		.attach = refuse, .node_free = free_none,
	};
	struct vfs_config config = { 0 };
	struct backends *b;
	struct vfs_fs *fs;

	ck_assert_int_eq(backends_create(&b), 0);
	ck_assert_int_eq(backends_add(b, &lower), 0);
	ck_assert_int_eq(backends_add(b, &refusing), 0);
	config.ops = backends_over(b, &refusing, &lower);
	ck_assert_int_eq(config.ops->mount(&config, &fs), -EPERM);
	ck_assert(unmounted);
	backends_destroy(b);
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
	{
		.ops = NULL,		/* doc/examples/vfs-delay.c over mem */
		.setup = delay_setup,
		.teardown = nothing,
		.me = { .uid = 1000, .gid = 1000 },
		.as_anyone = true,
	},
};

int main(void)
{
	struct backends *b;
	int failed = run_tests();

	rows[ARRAY_SIZE(rows) - 1].ops = delay_over_mem(&b);
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
	backends_destroy(b);
	return failed;
}
