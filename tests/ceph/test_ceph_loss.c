/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CephFS backend loses data and names that it has acknowledged, in the
 * cluster that CEPH_CONF names (tests/ceph/run), since its client is shut out
 * or a pool is full: NFS clients have to hear of it.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/ceph/own_fixture.h"

TEST_CASE(.setup = begin, .teardown = end, .timeout = 60);

/* The library's fsync says that all is well, though the data is gone. */
TEST(a_commit_of_data_that_was_lost_is_not_answered)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	uint64_t verf = atomic_load(&vt.fs->verf);
	struct iovec iov = { (void *)(uintptr_t)"lost", 4 };
	int err;

	ck_assert_int_eq(DO(vt.ops->write, &vt.who, f,
			    .write = { .iov = &iov, .niov = 1,
				       .stable = VFS_UNSTABLE }),
			 4);
	shut_out(&cfs_fs(vt.fs)->client[0]);
	EVENTUALLY((err = DO(vt.ops->commit, &vt.who, f)) != -ETIMEDOUT);
	ck_assert_int_eq(err, 0);
	/* So a client sees that it has to write again. */
	ck_assert_uint_ne(atomic_load(&vt.fs->verf), verf);
	ck_assert_uint_eq(vt_attr(f).size, 0);
	vt_write(f, 0, "again");
	ck_assert_uint_eq(vt_attr(f).size, 5);
	vfs_node_put(f);
}

static void *shut_out_soon(void *arg)
{
	/* At some moment of the other thread's calls. */
	pause_on_purpose(100000);
	shut_out(&cfs_fs(vt.fs)->client[0]);
	return arg;
}

static void set_data_quota(unsigned bytes)
{
	char command[200];

	snprintf(command, sizeof(command), "ceph osd pool set-quota data "
		 "max_bytes %u >/dev/null 2>&1 && until ceph osd dump | "
		 "grep \"'data'\" | grep -q%s full_quota; do sleep 0.2; done",
		 bytes, bytes ? "" : "v");
	ck_assert_int_eq(system(command), 0);
}

/* The library throws the data away, notes the error with each open file, and
 * its fsync says that all is well. */
TEST(a_commit_of_data_that_a_full_pool_did_not_take_is_not_answered)
{
	struct vfs_node *before = vt_file(vt.root, "before");
	struct vfs_node *f = vt_file(vt.root, "f");
	uint64_t verf = atomic_load(&vt.fs->verf);
	struct iovec iov = { (void *)(uintptr_t)"lost", 4 };
	struct cfs_node *n = cfs_node(f);

	vt_write(before, 0, "some");
	set_data_quota(1);
	ck_assert_int_eq(DO(vt.ops->write, &vt.who, f,
			    .write = { .iov = &iov, .niov = 1,
				       .stable = VFS_UNSTABLE }),
			 4);
	/* The tidier is not to close it first. */
	mutex_lock(&n->lock);
	n->busy++;
	mutex_unlock(&n->lock);
	/* The library writes data that is older than 5 s. */
	pause_on_purpose(8000000);
	ck_assert_int_eq(DO(vt.ops->commit, &vt.who, f), -ENOSPC);
	ck_assert_uint_ne(atomic_load(&vt.fs->verf), verf);
	/* It was told. */
	ck_assert_int_eq(DO(vt.ops->commit, &vt.who, f), 0);
	set_data_quota(0);
	mutex_lock(&n->lock);
	n->busy--;
	mutex_unlock(&n->lock);
	vfs_node_put(before);
	vfs_node_put(f);
}

/* The node's open files record the loss, and a sync has to find them. */
TEST(a_node_is_kept_until_its_written_file_is_closed)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct cfs_node *n = cfs_node(f), *found;

	vt_write(f, 0, "text");
	pthread_rwlock_wrlock(&n->syncs);	/* and it stays open */
	vfs_node_put(f);
	for (unsigned i = 0; i < 3; i++)
		cfs_nodes_tidy(cfs_fs(vt.fs), false);
	ck_assert_int_eq(cfs_node_find(cfs_fs(vt.fs), n->vino, true, &found),
			 0);
	ck_assert_ptr_eq(found, n);
	pthread_rwlock_unlock(&n->syncs);
	ck_assert_int_eq(DO(vt.ops->commit, &vt.who, f), 0);
	vfs_node_put(f);
}

static void *write_stable(void *arg)
{
	struct iovec iov = { (void *)(uintptr_t)"lost", 4 };
	struct vfs_node *f = arg;

	return (void *)(intptr_t)DO(vt.ops->write, &vt.who, f,
				    .write = { .iov = &iov, .niov = 1,
					       .stable = VFS_FILE_SYNC });
}

static bool is_busy(struct cfs_node *n)
{
	bool busy;

	mutex_lock(&n->lock);
	busy = n->busy > 0;
	mutex_unlock(&n->lock);
	return busy;
}

/* A client does not look at the verifier of a stable write. */
TEST(a_stable_write_comes_again_when_the_sync_before_was_told_of_a_loss)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	pthread_t thread;
	void *answer;

	pthread_rwlock_rdlock(&cfs_node(f)->syncs);
	ck_assert_int_eq(pthread_create(&thread, NULL, write_stable, f), 0);
	EVENTUALLY(is_busy(cfs_node(f)));
	cfs_verf_change(cfs_fs(vt.fs));
	pthread_rwlock_unlock(&cfs_node(f)->syncs);
	pthread_join(thread, &answer);
	ck_assert_int_eq((intptr_t)answer, -ETIMEDOUT);
	ck_assert_int_eq((intptr_t)write_stable(f), 4);
	vfs_node_put(f);
}

TEST(an_answered_change_is_there_although_the_client_was_shut_out)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE };
	struct vfs_node *f = vt_file(vt.root, "f");
	struct ceph_statx sx;
	unsigned answered = 0;
	pthread_t thread;

	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(pthread_create(&thread, NULL, shut_out_soon,
						NULL), 0);
		for (unsigned k = 0; k < 400; k++) {
			set.mode = k % 512;
			if (DO(vt.ops->setattr, &vt.who, f, .set = &set) != 0)
				break;
			answered = set.mode;
		}
		pthread_join(thread, NULL);
		ck_assert_int_eq(ceph_statx(other, below("f"), &sx, CFS_WANT,
					    0), 0);
		/* A change without an answer can also be there. */
		if ((sx.stx_mode & 07777u) != set.mode)
			ck_assert_uint_eq(sx.stx_mode & 07777u, answered);
		EVENTUALLY(DO(vt.ops->getattr, &vt.who, f,
			      .attr = &(struct vfs_attr){ 0 }) == 0);
	}
	vfs_node_put(f);
}
