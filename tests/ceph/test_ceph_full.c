/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CephFS backend on a full pool and on a full cluster, which CEPH_CONF
 * names (tests/ceph/run): operations that write no data still work.
 */
#include <check.h>
#include <errno.h>

#include "lib/clock.h"
#include "tests/ceph/own_fixture.h"

#define LONG_MS	10000
#define SIZE	(4u << 20)

TEST_CASE(.setup = begin, .teardown = end, .timeout = 120);

/* Waits until the pool of the data has @flag, or has not. */
static void run_until(const char *command, const char *flag, bool has)
{
	char text[300];

	snprintf(text, sizeof(text), "{ %s; } >/dev/null 2>&1 && "
		 "until ceph osd dump | grep \"'data'\" | grep -q%s "
		 "'\\b%s\\b'; do sleep 0.2; done", command, has ? "" : "v",
		 flag);
	ck_assert_int_eq(system(text), 0);
}

static void fill_some(struct vfs_node *f)
{
	char *buf = calloc(1, SIZE);
	struct iovec iov = { buf, SIZE };

	ck_assert_ptr_nonnull(buf);
	ck_assert_int_eq(DO(vt.ops->write, &vt.who, f,
			    .write = { .iov = &iov, .niov = 1,
				       .stable = VFS_FILE_SYNC }),
			 (int)SIZE);
	free(buf);
}

static void read_by_new_client(void)
{
	uint64_t start = clock_ms();
	struct vfs_node *f;
	char buf[8];
	bool eof;

	vfs_suite_end();
	vfs_suite_begin();
	f = vt_find(vt.root, "f");
	ck_assert_int_eq(vt_read(f, 0, buf, 8, &eof), 8);
	vfs_node_put(f);
	ck_assert_uint_lt(clock_ms() - start, LONG_MS);
}

/* libcephfs would check read permission with a write. */
TEST(a_file_of_a_full_pool_is_read)
{
	struct vfs_node *f = vt_file(vt.root, "f");

	fill_some(f);
	vfs_node_put(f);
	run_until("ceph osd pool set-quota data max_bytes 1", "full_quota",
		  true);
	read_by_new_client();
	run_until("ceph osd pool set-quota data max_bytes 0", "full_quota",
		  false);
}

/* Its servers still have to tell each other of themselves. */
TEST(an_export_of_a_full_cluster_begins)
{
	struct vfs_node *f = vt_file(vt.root, "f");

	fill_some(f);
	vfs_node_put(f);
	run_until("ceph osd set-nearfull-ratio 0.0001; "
		  "ceph osd set-backfillfull-ratio 0.0002; "
		  "ceph osd set-full-ratio 0.0003", "full", true);
	read_by_new_client();
	run_until("ceph osd set-full-ratio 0.95; "
		  "ceph osd set-backfillfull-ratio 0.9; "
		  "ceph osd set-nearfull-ratio 0.85", "full", false);
}
