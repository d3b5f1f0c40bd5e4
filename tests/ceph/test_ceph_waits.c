/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CephFS operations that meet one that hangs wait for a limited time.  The
 * cluster is the one that CEPH_CONF names (tests/ceph/run).  The tests hold the
 * locks and places that a hung operation would hold.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>

#include "lib/clock.h"
#include "tests/ceph/own_fixture.h"

#define LONG_MS	4000

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

static int look_up(void)
{
	return vt_lookup(vt.root, "f");
}

static int create(void)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_node *n;
	int err;

	how.attr.set = VFS_SET_SIZE;
	err = vt_create(&vt.who, vt.root, "f", &how, &n);
	if (err == 0)
		vfs_node_put(n);
	return err;
}

static int move_away(void)
{
	return vt_rename(vt.root, "f", vt.root, "g");
}

static int move_here(void)
{
	return vt_rename(vt.root, "g", vt.root, "f");
}

static int take_away(void)
{
	return vt_remove(vt.root, "f");
}

static int make_dir(void)
{
	return vt_make(&vt.who, vt.root, "f", VFS_DIR, NULL);
}

static int take_dir(void)
{
	return vt_rmdir(vt.root, "f");
}

static struct vfs_node *linked;

static int link_to(void)
{
	return vt_link(linked, vt.root, "f");
}

struct other_thread {
	int	  (*fn)(void);
	int	  err;
	pthread_t thread;
};

static void *run_other(void *arg)
{
	struct other_thread *o = arg;

	o->err = o->fn();
	return NULL;
}

static void start_other(struct other_thread *o, int (*fn)(void))
{
	*o = (struct other_thread){ .fn = fn, .err = 1 };
	ck_assert_int_eq(pthread_create(&o->thread, NULL, run_other, o), 0);
}

/* A lock knows the thread that has it. */
static int by_other(int (*fn)(void))
{
	struct other_thread o;
	uint64_t start = clock_ms();

	start_other(&o, fn);
	pthread_join(o.thread, NULL);
	ck_assert_uint_lt(clock_ms() - start, LONG_MS);
	return o.err;
}

TEST(no_call_waits_for_ever_for_a_change_of_the_name)
{
	int (*const fns[])(void) = { look_up, create, move_away, move_here,
				     take_away, make_dir, take_dir, link_to };
	struct vfs_node *f = vt_file(vt.root, "f");
	struct cfs_name name = { "f" };

	linked = vt_file(vt.root, "other");
	ck_assert_int_eq(cfs_name_change(cfs_node(vt.root), &name), 0);
	for (unsigned i = 0; i < ARRAY_SIZE(fns); i++)
		ck_assert_int_eq(by_other(fns[i]), -ETIMEDOUT);
	cfs_name_done(cfs_node(vt.root), &name);
	for (unsigned i = 0; i < ARRAY_SIZE(fns); i++)
		ck_assert_int_eq(by_other(fns[i]), 0);
	vfs_node_put(linked);
	vfs_node_put(f);
}

TEST(no_call_waits_for_ever_for_a_change_of_attributes)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = 0600 };
	struct vfs_node *f = vt_file(vt.root, "f");
	uint64_t start = clock_ms();

	ck_assert_int_eq(cfs_turn_take(cfs_node(f)), 0);
	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, f, .set = &set),
			 -ETIMEDOUT);
	ck_assert_uint_lt(clock_ms() - start, LONG_MS);
	cfs_turn_give(cfs_node(f));
	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, f, .set = &set), 0);
	vfs_node_put(f);
}

/* As by open(2) with O_TRUNC, where truncation can wait for a disk. */
TEST(a_name_is_looked_up_while_its_file_is_cut)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct other_thread o;

	vt_write(f, 0, "text");
	ck_assert_int_eq(cfs_turn_take(cfs_node(f)), 0);
	start_other(&o, create);
	/* Ours, the table's, and the other thread's. */
	EVENTUALLY(atomic_load(&f->refs) == 3);
	ck_assert_int_eq(vt_lookup(vt.root, "f"), 0);
	ck_assert_uint_eq(vt_attr(f).size, 4);
	cfs_turn_give(cfs_node(f));
	pthread_join(o.thread, NULL);
	ck_assert_int_eq(o.err, 0);
	ck_assert_uint_eq(vt_attr(f).size, 0);
	vfs_node_put(f);
}

TEST(a_file_that_is_removed_before_it_is_cut_is_made_anew)
{
	struct vfs_node *f = vt_file(vt.root, "f"), *again;
	uint64_t old = vt_attr(f).fileid;
	struct other_thread o;

	ck_assert_int_eq(cfs_turn_take(cfs_node(f)), 0);
	start_other(&o, create);
	/* Ours, the table's, and the other thread's. */
	EVENTUALLY(atomic_load(&f->refs) == 3);
	ck_assert_int_eq(take_away(), 0);
	cfs_turn_give(cfs_node(f));
	pthread_join(o.thread, NULL);
	ck_assert_int_eq(o.err, 0);
	again = vt_find(vt.root, "f");
	ck_assert_uint_ne(vt_attr(again).fileid, old);
	vfs_node_put(again);
	vfs_node_put(f);
}

TEST(moves_of_directories_do_not_wait_for_ever_for_each_other)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(a, "b");
	struct vfs_node *f = vt_file(a, "f");
	uint64_t start = clock_ms();

	mutex_lock(&fs()->moves);
	ck_assert_int_eq(vt_rename(a, "b", vt.root, "c"), -ETIMEDOUT);
	ck_assert_uint_lt(clock_ms() - start, LONG_MS);
	/* Within one directory, and for files, they don't wait. */
	ck_assert_int_eq(vt_rename(a, "b", a, "d"), 0);
	ck_assert_int_eq(vt_rename(a, "f", vt.root, "g"), 0);
	mutex_unlock(&fs()->moves);
	ck_assert_int_eq(vt_rename(a, "d", vt.root, "c"), 0);
	vfs_node_put(f);
	vfs_node_put(b);
	vfs_node_put(a);
}

/* Another server has the lease, or it is free. */
static void lend(const char *text)
{
	const char *key = "lease";
	size_t key_len = strlen(key), len = strlen(text);
	rados_write_op_t op = rados_create_write_op();

	rados_write_op_omap_set2(op, &key, &text, &key_len, &len, 1);
	ck_assert_int_eq(rados_write_op_operate(op, fs()->store.io, "moves",
						NULL, 0), 0);
	rados_release_write_op(op);
}

TEST(a_directory_moves_while_no_other_server_moves_one)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(a, "b");
	uint64_t start = clock_ms();

	lend("0123456789abcdef");
	ck_assert_int_eq(vt_rename(a, "b", vt.root, "c"), -ETIMEDOUT);
	ck_assert_uint_lt(clock_ms() - start, LONG_MS);
	lend("");
	ck_assert_int_eq(vt_rename(a, "b", vt.root, "c"), 0);
	ck_assert_int_eq(vt_rename(vt.root, "c", a, "b"), 0);
	/* A server that dies keeps its lease until another server has watched
	 * it for a minute; nothing else proves that it is dead. */
	lend("fedcba9876543210");
	ck_assert_int_eq(vt_rename(a, "b", vt.root, "c"), -ETIMEDOUT);
	fs()->lease.since -= 30000;
	ck_assert_int_eq(vt_rename(a, "b", vt.root, "c"), -ETIMEDOUT);
	fs()->lease.since -= 30000;
	ck_assert_int_eq(vt_rename(a, "b", vt.root, "c"), 0);
	ck_assert_int_eq(vt_rename(vt.root, "c", a, "b"), 0);
	vfs_node_put(b);
	vfs_node_put(a);
}

TEST(a_server_has_the_lease_of_its_predecessor_at_once)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(a, "b");
	char text[CFS_LEASE_MAX];

	snprintf(text, sizeof(text), "%016llx %016x %016x", (unsigned long long)
		 hash_text(0, fs()->uuid), 1u, 2u);
	lend(text);
	ck_assert_int_eq(vt_rename(a, "b", vt.root, "c"), 0);
	vfs_node_put(b);
	vfs_node_put(a);
}

TEST(a_lease_lasts_for_half_of_the_time_after_which_others_take_it)
{
	struct cfs_lease l = { .since = clock_ms() - 20000 };

	ck_assert(cfs_lease_lasts(&l));
	l.since -= 20000;
	ck_assert(!cfs_lease_lasts(&l));
}

TEST(a_lease_that_was_not_given_back_is_this_servers_still)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(a, "b");
	struct cfs_lease l;

	ck_assert_int_eq(cfs_lease_take(fs(), &l), 0);
	fs()->grace.usable = false;
	cfs_lease_give(fs(), &l);
	ck_assert_int_eq(vt_rename(a, "b", vt.root, "c"), -ETIMEDOUT);
	fs()->grace.usable = true;
	ck_assert_int_eq(vt_rename(a, "b", vt.root, "c"), 0);
	vfs_node_put(b);
	vfs_node_put(a);
}
