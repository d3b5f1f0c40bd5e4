/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of the CephFS backend alone, in the cluster that CEPH_CONF names
 * (tests/ceph/run): other clients of the file system beside it, snapshots,
 * quotas, the loss of its own client, and the key of all servers.
 */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/ceph/own_fixture.h"

TEST_CASE(.setup = begin, .teardown = end, .timeout = 60);

/* ---- snapshots */

static void leads_to_root(struct vfs_node *from)
{
	struct vfs_node *up = vt_find(from, "..");

	ck_assert_uint_eq(vt_attr(up).fileid, vt_attr(vt.root).fileid);
	vfs_node_put(up);
}

/* The exported directory lies below the root of the file system. */
TEST(the_root_is_above_its_snapshots)
{
	struct vfs_node *snaps, *s, *again;

	ck_assert_int_eq(ceph_mkdir(other, below(".snap/top"), 0755), 0);
	snaps = vt_find(vt.root, ".snap");
	s = vt_find(snaps, "top");
	leads_to_root(vt.root);
	leads_to_root(snaps);
	leads_to_root(s);
	ck_assert_int_eq(vt_reopen(s, &again), 0);
	leads_to_root(again);
	vfs_node_put(again);
	vfs_node_put(s);
	vfs_node_put(snaps);
	ck_assert_int_eq(ceph_rmdir(other, below(".snap/top")), 0);
}

TEST(a_snapshot_is_entered_and_can_not_be_changed)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *f = vt_file(vt.root, "f"), *snaps, *s, *old, *again;
	char text[8] = "";
	bool eof;

	vt_write(f, 0, "before");
	ck_assert_int_eq(ceph_mkdir(other, below(".snap/one"), 0755), 0);
	/* A server that does not know of it yet writes to what is in it. */
	snaps = vt_find(vt.root, ".snap");
	s = vt_find(snaps, "one");
	vt_write(f, 0, "after!");
	old = vt_find(s, "f");
	ck_assert_int_eq(vt_read(old, 0, text, 6, &eof), 6);
	ck_assert_str_eq(text, "before");
	/* It is another file to clients, with a handle of its own. */
	ck_assert_uint_ne(vt_attr(old).fileid, vt_attr(f).fileid);
	ck_assert_int_eq(vt_reopen(old, &again), 0);
	ck_assert_uint_eq(vt_attr(again).fileid, vt_attr(old).fileid);
	vfs_node_put(again);
	ck_assert_int_eq(vt_set_size(old, 0), -EROFS);
	ck_assert_int_eq(vt_create(&vt.who, s, "n", &how, &again), -EROFS);
	ck_assert_int_eq(vt_remove(s, "f"), -EROFS);
	ck_assert_int_eq(vt_rmdir(snaps, "one"), -EROFS);
	ck_assert_int_eq(vt_make(&vt.who, snaps, "two", VFS_DIR, NULL),
			 -EROFS);
	ck_assert_int_eq(vt_rename(s, "f", vt.root, "g"), -EROFS);
	ck_assert_int_eq(vt_link(old, vt.root, "g"), -EROFS);
	vfs_node_put(old);
	vfs_node_put(s);
	vfs_node_put(snaps);
	vfs_node_put(f);
	ck_assert_int_eq(ceph_rmdir(other, below(".snap/one")), 0);
}

/* ---- other clients */

TEST(a_file_that_another_client_removed_is_stale)
{
	struct vfs_node *f = vt_file(vt.root, "f"), *again;
	struct vfs_attr attr;

	vt_write(f, 0, "text");
	ck_assert_int_eq(ceph_unlink(other, below("f")), 0);
	ck_assert_int_eq(DO(vt.ops->getattr, &vt.who, f, .attr = &attr),
			 -ESTALE);
	ck_assert_int_eq(vt_reopen(f, &again), -ESTALE);
	vfs_node_put(f);
}

TEST(an_exclusive_file_is_known_to_every_server)
{
	struct vfs_create how = { .how = VFS_CREATE_EXCLUSIVE,
				  .verf = 0x123456789 };
	struct vfs_config config = { .ops = vt.ops };
	struct vfs_node *a, *b, *root;
	struct vfs_fs *second;

	ck_assert_int_eq(vt_create(&vt.who, vt.root, "f", &how, &a), 0);
	setup(&config);
	ck_assert_int_eq(vt.ops->mount(&config, &second), 0);
	ck_assert_int_eq(vt.ops->root(second, &root), 0);
	ck_assert_int_eq(vt_create(&vt.who, root, "f", &how, &b), 0);
	ck_assert_uint_eq(vt_attr(a).fileid, vt_attr(b).fileid);
	vfs_node_put(b);
	how.verf++;
	ck_assert_int_eq(vt_create(&vt.who, root, "f", &how, &b), -EEXIST);
	vfs_node_put(root);
	vt.ops->unmount(second);
	vfs_node_put(a);
}

TEST(both_directories_of_a_rename_show_it)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(vt.root, "b");
	struct vfs_attr before;
	struct vfs_wcc from = { 0 }, to = { 0 };

	vfs_node_put(vt_file(a, "f"));
	before = vt_attr(a);
	ck_assert_int_eq(DO(vt.ops->rename, &vt.who, a, .name = vt_name("f"),
			    .to = b, .to_name = vt_name("g"), .wcc = &from,
			    .to_wcc = &to), 0);
	ck_assert(from.has_after && to.has_after);
	ck_assert(from.after.mtime.tv_sec != before.mtime.tv_sec ||
		  from.after.mtime.tv_nsec != before.mtime.tv_nsec);
	ck_assert_uint_eq(from.after.size, before.size - 1);
	ck_assert_int_eq(vt_lookup(a, "f"), -ENOENT);
	vfs_node_put(b);
	vfs_node_put(a);
}

TEST(a_rename_over_one_name_of_a_file_leaves_its_others)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(vt.root, "b");
	struct vfs_node *f = vt_file(a, "f"), *h = vt_file(b, "h"), *g;

	ck_assert_int_eq(vt_link(f, b, "g"), 0);
	ck_assert_int_eq(vt_lookup(a, "f"), 0);
	ck_assert_int_eq(vt_rename(b, "h", b, "g"), 0);
	ck_assert_int_eq(vt_lookup(a, "f"), 0);
	ck_assert_uint_eq(vt_attr(f).nlink, 1);
	g = vt_find(b, "g");
	ck_assert_uint_eq(vt_attr(g).fileid, vt_attr(h).fileid);
	ck_assert_int_eq(vt_lookup(b, "h"), -ENOENT);
	ck_assert_int_eq(vt_remove(a, "f"), 0);
	vfs_node_put(g);
	vfs_node_put(h);
	vfs_node_put(f);
	vfs_node_put(b);
	vfs_node_put(a);
}

/* The name that the file comes to had been its own, until it was moved. */
TEST(a_name_that_comes_back_is_nowhere_else)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(vt.root, "b");
	struct vfs_node *f = vt_file(a, "2"), *h = vt_file(a, "0");

	ck_assert_int_eq(vt_link(f, b, "3"), 0);
	ck_assert_int_eq(vt_link(h, b, "1"), 0);
	ck_assert_int_eq(vt_lookup(a, "2"), 0);
	ck_assert_int_eq(vt_lookup(b, "3"), 0);
	ck_assert_int_eq(vt_rename(a, "2", b, "1"), 0);
	/* The directories are this server's alone again. */
	usleep(100000);
	vfs_node_put(vt_file(a, "x"));
	vfs_node_put(vt_file(b, "y"));
	ck_assert_int_eq(vt_rename(b, "3", a, "2"), 0);
	ck_assert_int_eq(vt_lookup(a, "0"), 0);
	ck_assert_int_eq(vt_lookup(b, "1"), 0);
	ck_assert_int_eq(vt_lookup(a, "2"), 0);
	ck_assert_int_eq(vt_lookup(b, "3"), -ENOENT);
	vfs_node_put(f);
	vfs_node_put(h);
	vfs_node_put(b);
	vfs_node_put(a);
}

TEST(a_directory_that_another_client_moved_knows_its_parent)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(vt.root, "b");
	struct vfs_node *s = vt_dir(a, "s"), *up;
	char from[64];

	strcpy(from, below("a/s"));
	ck_assert_int_eq(ceph_rename(other, from, below("b/t")), 0);
	up = vt_find(s, "..");
	ck_assert_uint_eq(vt_attr(up).fileid, vt_attr(b).fileid);
	vfs_node_put(up);
	/* And so does a rename, that must not move it below itself. */
	ck_assert_int_eq(vt_rename(vt.root, "b", s, "b"), -EINVAL);
	vfs_node_put(s);
	vfs_node_put(b);
	vfs_node_put(a);
}

TEST(no_name_leads_out_of_the_tree_where_another_client_moved_a_directory)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *s = vt_dir(a, "s");
	char from[64], to[64];

	ck_assert_int_eq(vt_lookup(s, ".."), 0);
	strcpy(from, below("a"));
	snprintf(to, sizeof(to), "/out-%d", (int)getpid());
	ck_assert_int_eq(ceph_rename(other, from, to), 0);
	ck_assert_int_eq(vt_lookup(a, ".."), -EACCES);
	ck_assert_int_eq(vt_lookup(s, ".."), -EACCES);
	vfs_node_put(s);
	vfs_node_put(a);
}

/* ---- locks */

static int lock_bytes(struct vfs_node *n, enum vfs_lock_how how,
		      struct vfs_locker *locker, struct vfs_lock *l)
{
	l->how = how;
	l->locker = locker;
	return vt.ops->lock(&(struct vfs_op){ .node = n, .lock = l });
}

/* The answer to the other client that asks for a lock. */
static int lock_there(int type)
{
	struct flock f = { .l_type = (short)type, .l_whence = SEEK_SET,
			   .l_start = 10, .l_len = 10 };
	struct ceph_statx sx;
	struct Inode *in;
	struct Fh *fh;
	UserPerm *p = ceph_mount_perms(other);
	int err;

	ck_assert_int_eq(ceph_ll_walk(other, below("f"), &in, &sx, CFS_WANT, 0,
				      p), 0);
	ck_assert_int_eq(ceph_ll_open(other, in, O_RDWR, &fh, p), 0);
	err = ceph_ll_setlk(other, fh, &f, 77, 0);
	if (err == 0) {
		f.l_type = F_UNLCK;
		ceph_ll_setlk(other, fh, &f, 77, 0);
	}
	ceph_ll_close(other, fh);
	ceph_ll_put(other, in);
	return err;
}

TEST(locks_are_seen_by_other_clients)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_locker one = { .id = 1 }, two = { .id = 2 };
	struct vfs_lock l = { .off = 10, .len = 10, .exclusive = true };

	ck_assert_int_eq(lock_bytes(f, VFS_LOCK_SET, &one, &l), 0);
	ck_assert_int_eq(lock_there(F_WRLCK), -EAGAIN);
	ck_assert_int_eq(lock_bytes(f, VFS_LOCK_SET, &two, &l), 1);
	ck_assert_int_eq(lock_bytes(f, VFS_LOCK_TEST, NULL, &l), 1);
	ck_assert_uint_eq(l.off, 10);
	ck_assert_uint_eq(l.len, 10);
	ck_assert(l.exclusive);
	/* Its own are not in an owner's way. */
	ck_assert_int_eq(lock_bytes(f, VFS_LOCK_TEST, &one, &l), 0);
	ck_assert_int_eq(lock_bytes(f, VFS_LOCK_CLEAR, &one, &l), 0);
	ck_assert_int_eq(lock_there(F_WRLCK), 0);
	l.len = 0;			/* to the end, wherever that is */
	ck_assert_int_eq(lock_bytes(f, VFS_LOCK_SET, &one, &l), 0);
	ck_assert_int_eq(lock_there(F_RDLCK), -EAGAIN);
	ck_assert_int_eq(lock_bytes(f, VFS_LOCK_RELEASE, &one, &l), 0);
	ck_assert_int_eq(lock_there(F_WRLCK), 0);
	lock_bytes(f, VFS_LOCK_RELEASE, &two, &l);
	vfs_node_put(f);
}

/* The rest of the lock would count as one for ever. */
TEST(a_lock_of_a_removed_file_is_unlocked)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_locker one = { .id = 1 };
	struct vfs_lock l = { .off = 10, .len = 10, .exclusive = true };
	atomic_uint *lockers = &cfs_node(f)->client->lockers;

	ck_assert_int_eq(lock_bytes(f, VFS_LOCK_SET, &one, &l), 0);
	ck_assert_uint_eq(atomic_load(lockers), 1);
	ck_assert_int_eq(ceph_unlink(other, below("f")), 0);
	ck_assert_int_eq(DO(vt.ops->getattr, &vt.who, f,
			    .attr = &(struct vfs_attr){ 0 }), -ESTALE);
	ck_assert_int_eq(lock_bytes(f, VFS_LOCK_CLEAR, &one, &l), 0);
	ck_assert_int_eq(lock_bytes(f, VFS_LOCK_RELEASE, &one, &l), 0);
	ck_assert_uint_eq(atomic_load(lockers), 0);
	vfs_node_put(f);
}

/* ---- access control lists */

static int set_list(struct vfs_node *n, struct vfs_acls *acls)
{
	return vt.ops->setacl(&(struct vfs_op){ .cred = vt.who.cred, .node = n,
						.acls = acls });
}

static int try_read(struct vfs_node *n, uint32_t uid)
{
	struct vfs_cred cred = vt_user(uid, uid);
	struct vfs_op who = vt_as(&cred);
	char buf[4];
	struct iovec iov = { buf, sizeof(buf) };

	return DO(vt.ops->read, &who, n, .iov = &iov, .niov = 1);
}

TEST(a_list_decides_and_the_mode_follows_it)
{
	static struct vfs_acls acls;
	struct vfs_node *f = vt_file(vt.root, "f");
	const struct vfs_acl_entry list[] = {
		{ VFS_ACL_USER_OBJ, 6, 0 }, { VFS_ACL_USER, 4, VT_ALICE },
		{ VFS_ACL_GROUP_OBJ, 0, 0 }, { VFS_ACL_MASK, 4, 0 },
		{ VFS_ACL_OTHER, 0, 0 },
	};

	vt_write(f, 0, "text");
	vt_chmod(f, 0600);
	ck_assert_int_eq(try_read(f, VT_ALICE), -EACCES);
	acls.wanted[VFS_ACL_ACCESS] = true;
	acls.n[VFS_ACL_ACCESS] = ARRAY_SIZE(list);
	memcpy(acls.entry[VFS_ACL_ACCESS], list, sizeof(list));
	ck_assert_int_eq(set_list(f, &acls), 0);
	ck_assert_uint_eq(vt_attr(f).mode, 0640);
	ck_assert_int_eq(try_read(f, VT_ALICE), 4);
	ck_assert_int_eq(try_read(f, VT_BOB), -EACCES);
	memset(&acls, 0, sizeof(acls));
	acls.wanted[VFS_ACL_ACCESS] = true;
	ck_assert_int_eq(vt.ops->getacl(&(struct vfs_op){ .cred = vt.who.cred,
		.node = f, .acls = &acls }), 0);
	ck_assert_uint_eq(acls.n[VFS_ACL_ACCESS], ARRAY_SIZE(list));
	ck_assert_uint_eq(acls.entry[VFS_ACL_ACCESS][1].id, VT_ALICE);
	acls.n[VFS_ACL_ACCESS] = 0;
	ck_assert_int_eq(set_list(f, &acls), 0);
	ck_assert_int_eq(try_read(f, VT_ALICE), -EACCES);
	acls.n[VFS_ACL_DEFAULT] = 3;
	acls.wanted[VFS_ACL_DEFAULT] = true;
	ck_assert_int_eq(set_list(f, &acls), -EACCES);
	vfs_node_put(f);
}

/* ---- quotas */

TEST(a_quota_of_the_exported_directory_is_its_size)
{
	struct vfs_statfs st;

	ck_assert_int_eq(ceph_setxattr(other, dir, "ceph.quota.max_bytes",
				       "83886080", 8, 0), 0);
	ck_assert_int_eq(DO(vt.ops->statfs, &vt.who, vt.root, .statfs = &st),
			 0);
	ck_assert_uint_eq(st.tbytes, 80 << 20);
}

/* As it is for every client: else users could fill what they may not. */
TEST(a_file_is_not_moved_into_another_quota)
{
	struct vfs_node *q = vt_dir(vt.root, "q"), *s = vt_dir(q, "s");
	struct vfs_node *f = vt_file(vt.root, "f");

	ck_assert_int_eq(ceph_setxattr(other, below("q"),
				       "ceph.quota.max_bytes", "1048576", 7,
				       0), 0);
	/* The library learns of it in its own time; and what the renaming
	 * client knows of q, it forgets. */
	sleep(4);
	vfs_node_put(vt_find(vt.root, "q"));
	vfs_node_put(vt_find(q, "s"));
	ck_assert_int_eq(vt_rename(vt.root, "f", s, "f"), -EXDEV);
	ck_assert_int_eq(vt_rename(vt.root, "f", q, "f"), -EXDEV);
	vfs_node_put(f);
	vfs_node_put(s);
	vfs_node_put(q);
}

/* ---- the loss of the client */

/* The library's fsync says that all is well, though the data is gone. */
TEST(a_commit_of_data_that_was_lost_is_not_answered)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	uint64_t verf = atomic_load(&vt.fs->verf);
	struct iovec iov = { (void *)(uintptr_t)"lost", 4 };
	int err;

	ck_assert_int_eq(DO(vt.ops->write, &vt.who, f, .iov = &iov,
			    .niov = 1, .stable = VFS_UNSTABLE), 4);
	shut_out(&cfs_fs(vt.fs)->client[0]);
	do {
		err = DO(vt.ops->commit, &vt.who, f);
		ck_assert(err == 0 || err == -ETIMEDOUT);
		usleep(10000);
	} while (err < 0);
	/* So a client sees that it has to write again. */
	ck_assert_uint_ne(atomic_load(&vt.fs->verf), verf);
	ck_assert_uint_eq(vt_attr(f).size, 0);
	vt_write(f, 0, "again");
	ck_assert_uint_eq(vt_attr(f).size, 5);
	vfs_node_put(f);
}

static void *shut_out_soon(void *arg)
{
	usleep(100000);
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
	ck_assert_int_eq(DO(vt.ops->write, &vt.who, f, .iov = &iov,
			    .niov = 1, .stable = VFS_UNSTABLE), 4);
	/* The keeper is not to close it first. */
	mutex_lock(&n->lock);
	n->busy++;
	mutex_unlock(&n->lock);
	/* The library writes what is older than 5 s. */
	sleep(8);
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
		/* A change without an answer may be there, too. */
		if ((sx.stx_mode & 07777u) != set.mode)
			ck_assert_uint_eq(sx.stx_mode & 07777u, answered);
		while (DO(vt.ops->getattr, &vt.who, f,
			  .attr = &(struct vfs_attr){ 0 }) != 0)
			usleep(10000);
	}
	vfs_node_put(f);
}

/* ---- identity */

TEST(the_file_system_is_the_one_that_is_named)
{
	struct cfs_options o = { .fs = "fs" };
	struct cfs_store named;

	memset(&named, 0, sizeof(named));
	ck_assert_int_eq(cfs_store_open(&o, &named), 0);
	ck_assert_uint_eq(named.fscid, cfs_fs(vt.fs)->store.fscid);
	ck_assert_uint_ne(named.fscid, 0);
	ck_assert_str_eq(named.name, cfs_fs(vt.fs)->store.name);
	cfs_store_close(&named);
	strcpy(o.fs, "none");
	ck_assert_int_eq(cfs_store_open(&o, &named), -ENOENT);
}

static bool is_level(struct vfs_fs *fs, const char *of, const char *wanted)
{
	char level[16];

	ck_assert_int_eq(ceph_conf_get(cfs_fs(fs)->client[0].cm, of, level,
				       sizeof(level)), 0);
	return strcmp(level, wanted) == 0;
}

TEST(the_library_takes_no_notes_unless_it_is_told_to)
{
	struct vfs_config config = { .ops = vt.ops };
	struct vfs_fs *second;
	bool told;

	setup(&config);
	ck_assert(is_level(vt.fs, "debug_client", "0/0"));
	ck_assert(is_level(vt.fs, "debug_objectcacher", "0/0"));
	ck_assert_int_eq(system("ceph config set client debug_client 1/4"), 0);
	ck_assert_int_eq(vt.ops->mount(&config, &second), 0);
	told = is_level(second, "debug_client", "1/4");
	/* The client hears of this, too, sooner or later. */
	ck_assert_int_eq(system("ceph config rm client debug_client"), 0);
	ck_assert(told);
	ck_assert(is_level(second, "debug_objectcacher", "0/0"));
	vt.ops->unmount(second);
}

TEST(every_server_has_the_same_key)
{
	const uint8_t none[VFS_HANDLE_KEY] = { 0 };
	struct cfs_store *store = &cfs_fs(vt.fs)->store;
	uint8_t key[VFS_HANDLE_KEY];

	ck_assert_ptr_nonnull(vt.fs->handle_key);
	ck_assert_mem_ne(vt.fs->handle_key, none, sizeof(none));
	ck_assert_int_eq(cfs_identity_key(store, true, key), 0);
	ck_assert_mem_eq(vt.fs->handle_key, key, sizeof(key));
}

TEST(a_key_that_was_removed_is_made_anew)
{
	struct cfs_store *store = &cfs_fs(vt.fs)->store;
	uint8_t key[VFS_HANDLE_KEY], again[VFS_HANDLE_KEY];

	ck_assert_int_eq(rados_remove(store->io, "handle-key"), 0);
	ck_assert_int_eq(cfs_identity_key(store, true, key), 0);
	ck_assert_mem_ne(vt.fs->handle_key, key, sizeof(key));
	ck_assert_int_eq(cfs_identity_key(store, true, again), 0);
	ck_assert_mem_eq(key, again, sizeof(key));
}

TEST(a_key_of_another_length_is_refused)
{
	struct cfs_store *store = &cfs_fs(vt.fs)->store;
	uint8_t key[VFS_HANDLE_KEY];

	ck_assert_int_eq(rados_write_full(store->io, "handle-key", "short", 5),
			 0);
	ck_assert_int_eq(cfs_identity_key(store, true, key), -EUCLEAN);
	ck_assert_int_eq(rados_remove(store->io, "handle-key"), 0);
}
