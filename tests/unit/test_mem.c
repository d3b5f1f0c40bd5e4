/* SPDX-License-Identifier: BSD-2-Clause */
/* The backend in memory. */
#include "vfs/mem/mem.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/runner.h"
#include "tests/unit/vfs_suite.h"

static uint64_t used_before;

static struct mem_fs *the_fs(void)
{
	return container_of(vt.fs, struct mem_fs, base);
}

static const struct mem_options options = {
	.size = 64 << 20, .files = 50 << 10,
};

static void setup(struct vfs_config *config)
{
	config->path = "/test";
	config->options = &options;
}

static void teardown(void)
{
}

static const struct vfs_suite_params params = {
	.ops = &mem_vfs_ops,
	.setup = setup,
	.teardown = teardown,
	.me = { .uid = 1000, .gid = 1000 },
	.as_anyone = true,
};

static void begin(void)
{
	vfs_suite_use(&params);
	vfs_suite_begin();
	used_before = the_fs()->bytes;
}

static uint64_t used(void)
{
	return the_fs()->bytes - used_before;
}

TEST_CASE(.setup = begin, .teardown = vfs_suite_end);

TEST(everything_removed_gives_everything_back)
{
	static uint8_t data[100000];
	struct iovec iov = { data, sizeof(data) };
	struct vfs_node *d = vt_dir(vt.root, "d"), *f;
	char name[16];

	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		f = vt_file(d, name);
		ck_assert_int_eq(DO(vt.ops->write, &vt.who, f,
				    .write = { .off = (uint64_t)i * 123456789,
					       .iov = &iov, .niov = 1 }),
				 sizeof(data));
		vfs_node_put(f);
	}
	ck_assert_int_eq(vt_make(&vt.who, d, "l", VFS_LNK, "target"), 0);
	ck_assert_uint_gt(used(), 100 * sizeof(data));
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "e%d", i);
		ck_assert_int_eq(vt_remove(d, name), 0);
	}
	ck_assert_int_eq(vt_remove(d, "l"), 0);
	vfs_node_put(d);
	ck_assert_int_eq(vt_rmdir(vt.root, "d"), 0);
	/* But for the table of the root directory itself. */
	ck_assert_uint_lt(used(), 1024);
	ck_assert_uint_eq(the_fs()->nodes, 1);
}

TEST(a_held_file_lives_until_it_is_put)
{
	struct vfs_node *f = vt_file(vt.root, "f"), *again;
	char buf[8];
	bool eof;

	vt_write(f, 0, "data");
	ck_assert_int_eq(vt_remove(vt.root, "f"), 0);
	ck_assert_int_eq(vt_read(f, 0, buf, 8, &eof), 4);
	ck_assert_uint_eq(vt_attr(f).nlink, 0);
	ck_assert_int_eq(vt_reopen(f, &again), -ESTALE);
	ck_assert_int_eq(vt_link(f, vt.root, "g"), -ESTALE);
	ck_assert_uint_gt(used(), MEM_PAGE);
	vfs_node_put(f);
	ck_assert_uint_lt(used(), 1024);
}

TEST(nothing_is_made_in_a_removed_directory)
{
	struct vfs_node *d = vt_dir(vt.root, "d"), *n;
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };

	ck_assert_int_eq(vt_rmdir(vt.root, "d"), 0);
	ck_assert_int_eq(vt_create(&vt.who, d, "f", &how, &n), -ESTALE);
	ck_assert_int_eq(vt_make(&vt.who, d, "f", VFS_DIR, NULL), -ESTALE);
	ck_assert_int_eq(vt_link(f, d, "f"), -ESTALE);
	ck_assert_int_eq(vt_rename(vt.root, "f", d, "f"), -ESTALE);
	ck_assert_int_eq(vt_lookup(d, ".."), -ESTALE);
	ck_assert_int_eq(DO(vt.ops->readdir, &vt.who, d), -ESTALE);
	vfs_node_put(f);
	vfs_node_put(d);
}

TEST(the_bound_on_memory_holds_and_half_a_write_counts)
{
	static uint8_t data[1 << 20];
	struct iovec iov = { data, sizeof(data) };
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_statfs st;
	uint64_t off = 0;
	int64_t n;

	while ((n = DO(vt.ops->write, &vt.who, f,
		       .write = { .off = off, .iov = &iov, .niov = 1 })) > 0)
		off += (uint64_t)n;
	ck_assert_int_eq(n, -ENOSPC);
	ck_assert_uint_gt(off, 60 << 20);
	ck_assert_uint_lt(off, 64 << 20);
	ck_assert_uint_eq(vt_attr(f).size, off);
	ck_assert_int_eq(DO(vt.ops->statfs, &vt.who, f, .statfs = &st), 0);
	ck_assert_uint_lt(st.fbytes, MEM_PAGE);
	ck_assert_int_eq(vt_set_size(f, 1000), 0);
	ck_assert_uint_lt(used(), 64 << 10);
	vfs_node_put(f);
}

TEST(sparse_writes_pay_for_their_tree_too)
{
	struct iovec iov = { (void *)(uintptr_t)"x", 1 };
	struct vfs_node *f = vt_file(vt.root, "f");
	int64_t n;
	unsigned i = 0;

	do {
		n = DO(vt.ops->write, &vt.who, f,
		       .write = { .off = (uint64_t)i++ << 38, .iov = &iov,
				  .niov = 1 });
	} while (n == 1 && i < 4000);
	ck_assert_int_eq(n, -ENOSPC);
	ck_assert_uint_le(the_fs()->bytes, 64 << 20);
	ck_assert_int_eq(vt_set_size(f, 0), 0);
	ck_assert_uint_lt(used(), 1024);
	vfs_node_put(f);
}

TEST(files_are_bounded_in_number)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *n;
	char name[16];
	unsigned i = 0;
	int err;

	do {
		snprintf(name, sizeof(name), "e%u", i++);
		err = vt_create(&vt.who, vt.root, name, &how, &n);
		if (err == 0)
			vfs_node_put(n);
	} while (err == 0);
	ck_assert_int_eq(err, -ENOSPC);
	ck_assert_uint_eq(i, 50 * 1024);	/* the root is also one */
	ck_assert_int_eq(vt_remove(vt.root, "e7"), 0);
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "e7", &how, &n), 0);
	vfs_node_put(n);
}

TEST(links_are_bounded_in_number)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	char name[16];
	int err = 0;
	unsigned i;

	for (i = 1; err == 0; i++) {
		snprintf(name, sizeof(name), "l%u", i);
		err = vt_link(f, vt.root, name);
	}
	ck_assert_int_eq(err, -EMLINK);
	ck_assert_uint_eq(vt_attr(f).nlink, MEM_MAX_LINKS);
	vfs_node_put(f);
}

static bool later(struct timespec a, struct timespec b)
{
	return a.tv_sec > b.tv_sec ||
	       (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

TEST(each_change_has_a_later_ctime)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_attr last = vt_attr(f), a;

	for (int i = 0; i < 10000; i++) {
		if (i % 2)
			vt_chmod(f, 0600);
		else
			vt_write(f, 0, "x");
		a = vt_attr(f);
		ck_assert(later(a.ctime, last.ctime));
		last = a;
	}
	/* Even when the clock was set back. */
	mem_node(f)->ctime += 3600 * 1000000000ll;
	last = vt_attr(f);
	vt_write(f, 0, "x");
	a = vt_attr(f);
	ck_assert(later(a.ctime, last.ctime));
	ck_assert(!later(a.mtime, a.ctime));
	vfs_node_put(f);
}

TEST(pages_are_clean_when_they_are_used_again)
{
	static uint8_t data[32 * MEM_PAGE], zero[MEM_PAGE];
	struct vfs_node *f = vt_file(vt.root, "f");
	struct iovec iov = { data, sizeof(data) };
	bool eof;

	memset(data, 'x', sizeof(data));
	ck_assert_int_eq(DO(vt.ops->write, &vt.who, f,
			    .write = { .iov = &iov, .niov = 1 }), sizeof(data));
	ck_assert_int_eq(vt_set_size(f, 0), 0);
	for (uint64_t i = 0; i < 32; i++)
		vt_write(f, i * MEM_PAGE + MEM_PAGE / 2, "y");
	ck_assert_int_eq(vt_set_size(f, sizeof(data)), 0);
	ck_assert_int_eq(vt_read(f, 0, data, sizeof(data), &eof),
			 sizeof(data));
	for (uint64_t i = 0; i < 32; i++) {
		uint8_t *page = data + i * MEM_PAGE;

		ck_assert_uint_eq(page[MEM_PAGE / 2], 'y');
		page[MEM_PAGE / 2] = 0;
		ck_assert_int_eq(memcmp(page, zero, MEM_PAGE), 0);
	}
	vfs_node_put(f);
}

TEST(a_busy_directory_does_not_grow)
{
	struct vfs_node *d = vt_dir(vt.root, "d");
	uint64_t before;

	vfs_node_put(vt_file(d, "e0"));
	before = used();
	for (int i = 0; i < 20000; i++) {
		vfs_node_put(vt_file(d, "e1"));
		ck_assert_int_eq(vt_remove(d, "e1"), 0);
	}
	ck_assert_uint_lt(used(), before + 1024);
	ck_assert_int_eq(vt_lookup(d, "e0"), 0);
	vfs_node_put(d);
}

TEST(a_cookie_that_was_never_given_is_bad)
{
	struct vfs_node *d = vt_dir(vt.root, "d");
	bool eof;

	vfs_node_put(vt_file(d, "f"));
	ck_assert_int_eq(DO(vt.ops->readdir, &vt.who, d, .readdir.cookie = 100),
			 -EBADE);
	ck_assert_int_eq(DO(vt.ops->readdir, &vt.who, d,
			    .readdir.cookie = UINT64_MAX), -EBADE);
	/* The cookie of a removed entry is good. */
	ck_assert_int_eq(vt_remove(d, "f"), 0);
	ck_assert_int_eq(GET(eof, eof, vt.ops->readdir, &vt.who, d,
			     .readdir.cookie = 3), 0);
	ck_assert(eof);
	vfs_node_put(d);
}

TEST(a_locked_node_does_not_block_a_poller)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_op who = { .cred = &params.me, .nonblock = true };
	struct vfs_setattr set = { .set = VFS_SET_MODE };
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_attr attr;

	mem_wrlock(mem_node(f));
	ck_assert_int_eq(DO(vt.ops->getattr, &who, f, .attr = &attr), -EAGAIN);
	ck_assert_int_eq(DO(vt.ops->access, &who, f, .access.want = 1),
			 -EAGAIN);
	ck_assert_int_eq(DO(vt.ops->read, &who, f), -EAGAIN);
	ck_assert_int_eq(DO(vt.ops->lookup, &who, vt.root,
			    .name = vt_name("f"), .attr = &attr), -EAGAIN);
	ck_assert_int_eq(DO(vt.ops->write, &who, f), -EAGAIN);
	ck_assert_int_eq(DO(vt.ops->setattr, &who, f, .set = &set), -EAGAIN);
	ck_assert_int_eq(DO(vt.ops->remove, &who, vt.root,
			    .name = vt_name("f")), -EAGAIN);
	mem_unlock(mem_node(f));
	ck_assert_int_eq(DO(vt.ops->getattr, &who, f, .attr = &attr), 0);
	mem_wrlock(mem_node(vt.root));
	ck_assert_int_eq(DO(vt.ops->create, &who, vt.root,
			    .name = vt_name("g"), .create = &how), -EAGAIN);
	mem_unlock(mem_node(vt.root));
	ck_assert_int_eq(DO(vt.ops->remove, &who, vt.root,
			    .name = vt_name("f")), 0);
	vfs_node_put(f);
}

TEST(freeing_much_is_left_to_a_worker)
{
	struct vfs_setattr shrink = { .set = VFS_SET_SIZE, .size = 1 };
	struct vfs_op who = { .cred = &params.me, .nonblock = true };
	struct vfs_node *f = vt_file(vt.root, "f");
	size_t len = VFS_LONG + 4096;
	struct iovec iov = { calloc(1, len), len };

	ck_assert_int_eq(DO(vt.ops->write, &who, f,
			    .write = { .iov = &iov, .niov = 1 }), (int64_t)len);
	ck_assert_int_eq(DO(vt.ops->setattr, &who, f, .set = &shrink), -EAGAIN);
	ck_assert_int_eq(DO(vt.ops->remove, &who, vt.root,
			    .name = vt_name("f")), -EAGAIN);
	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, f, .set = &shrink), 0);
	ck_assert_int_eq(DO(vt.ops->remove, &who, vt.root,
			    .name = vt_name("f")), 0);
	vfs_node_put(f);
	free(iov.iov_base);
}

TEST(another_mount_knows_no_handles_of_this_one)
{
	struct vfs_config config = { .path = "/test", .options = &options };
	struct vfs_fs *other;
	struct vfs_handle h;

	ck_assert_int_eq(mem_vfs_ops.mount(&config, &other), 0);
	vt.ops->handle(vt.root, &h);
	ck_assert_int_eq(DO(vt.ops->open_handle, &vt.who, NULL,
			    .open = { .fs = other, .handle = &h }), -ESTALE);
	ck_assert_uint_eq(other->fsid, vt.fs->fsid);
	ck_assert_uint_ne(other->verf, vt.fs->verf);
	mem_vfs_ops.unmount(other);
}

TEST(bad_options_are_refused)
{
	static const char *const bad[] = {
		"size=", "size=x", "size=1", "size=64mm", "size=-1m",
		"size=99999999999999999999", "size=18446744073709551615g",
		"files=0", "files=1g", "color=red", "size",
	};

	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		struct mem_options block = { 0 };
		char *why;

		ck_assert_int_eq(backend_options(&mem_vfs_ops, bad[i],
						 strlen(bad[i]), &block, &why),
				 -EINVAL);
		ck_assert_ptr_nonnull(why);
		ck_assert_ptr_nonnull(strstr(why, "expected "));
		free(why);
	}
}
