/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Operations of the CephFS backend beside one that hangs, in the cluster that
 * CEPH_CONF names (tests/ceph/run): they wait for it a while at most.  The
 * tests hold the locks and places that the hung one would have.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>

#include "lib/clock.h"
#include "tests/ceph/own_fixture.h"

TEST_CASE(.setup = begin, .teardown = end, .timeout = 90);

static struct cfs_fs *fs(void)
{
	return cfs_fs(vt.fs);
}

static void mark_lost(struct cfs_client *c)
{
	ck_assert_int_eq(cfs_client_error(c, -ESHUTDOWN), -ETIMEDOUT);
}

/* As a READ in a snapshot does that hangs in the library. */
TEST(a_call_that_never_ends_keeps_no_other_client_from_being_made_anew)
{
	struct cfs_client *c = &fs()->client[0], *mover = cfs_mover(fs());

	pthread_rwlock_rdlock(&c->lock);
	mark_lost(c);
	mark_lost(mover);
	EVENTUALLY(!atomic_load(&mover->lost));
	ck_assert(atomic_load(&c->lost));
	pthread_rwlock_unlock(&c->lock);
	EVENTUALLY(!atomic_load(&c->lost));
}

TEST(reads_in_snapshots_wait_for_hung_ones_a_moment_and_once)
{
	struct vfs_node *f = vt_file(vt.root, "f"), *snaps, *s, *old;
	uint64_t start;
	char buf[8];
	bool eof;

	vt_write(f, 0, "text");
	ck_assert_int_eq(DO(vt.ops->commit, &vt.who, f), 0);
	ck_assert_int_eq(ceph_mkdir(other, below(".snap/one"), 0755), 0);
	snaps = vt_find(vt.root, ".snap");
	s = vt_find(snaps, "one");
	old = vt_find(s, "f");
	for (unsigned i = 0; i < CFS_FIXED_READS; i++)
		ck_assert_int_eq(sem_trywait(&fs()->fixed_reads), 0);
	ck_assert_int_eq(vt_read(old, 0, buf, 8, &eof), -ETIMEDOUT);
	start = clock_ms();
	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_eq(vt_read(old, 0, buf, 8, &eof), -ETIMEDOUT);
	ck_assert_uint_lt(clock_ms() - start, 900);
	/* Others are read. */
	ck_assert_int_eq(vt_read(f, 0, buf, 8, &eof), 4);
	sem_post(&fs()->fixed_reads);
	for (unsigned i = 0; i < 20; i++)
		ck_assert_int_eq(vt_read(old, 0, buf, 8, &eof), 4);
	vfs_node_put(old);
	vfs_node_put(s);
	vfs_node_put(snaps);
	vfs_node_put(f);
	ck_assert_int_eq(ceph_rmdir(other, below(".snap/one")), 0);
}

static void *look_up(void *arg)
{
	*(int *)arg = vt_lookup(vt.root, "f");
	return NULL;
}

TEST(a_look_up_does_not_wait_for_ever_for_a_change_of_the_name)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct cfs_name name = { "f" };
	pthread_t thread;
	int err = 1;

	ck_assert_int_eq(cfs_name_change(cfs_node(vt.root), &name), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, look_up, &err), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(err, -ETIMEDOUT);
	cfs_name_done(cfs_node(vt.root), &name);
	ck_assert_int_eq(vt_lookup(vt.root, "f"), 0);
	vfs_node_put(f);
}

static void *cut(void *arg)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_node *n;
	int *err = arg;

	how.attr.set = VFS_SET_SIZE;
	how.attr.size = 0;
	*err = vt_create(&vt.who, vt.root, "f", &how, &n);
	if (*err == 0)
		vfs_node_put(n);
	return NULL;
}

/* As open(2) with O_TRUNC does, whose data may wait for a disk. */
TEST(a_name_is_looked_up_while_its_file_is_cut)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	pthread_t thread;
	int err = 1;

	vt_write(f, 0, "text");
	mutex_lock(&cfs_node(f)->turn);
	ck_assert_int_eq(pthread_create(&thread, NULL, cut, &err), 0);
	usleep(300000);
	ck_assert_int_eq(vt_lookup(vt.root, "f"), 0);
	ck_assert_uint_eq(vt_attr(f).size, 4);
	mutex_unlock(&cfs_node(f)->turn);
	pthread_join(thread, NULL);
	ck_assert_int_eq(err, 0);
	ck_assert_uint_eq(vt_attr(f).size, 0);
	vfs_node_put(f);
}

TEST(moves_of_directories_do_not_wait_for_ever_for_each_other)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(a, "b");

	mutex_lock(&fs()->moves);
	ck_assert_int_eq(vt_rename(a, "b", vt.root, "c"), -ETIMEDOUT);
	/* Within one directory, and of files, they wait for nobody. */
	ck_assert_int_eq(vt_rename(a, "b", a, "d"), 0);
	mutex_unlock(&fs()->moves);
	ck_assert_int_eq(vt_rename(a, "d", vt.root, "c"), 0);
	vfs_node_put(b);
	vfs_node_put(a);
}
