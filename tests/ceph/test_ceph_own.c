/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tests of the CephFS backend alone, in the cluster that CEPH_CONF names
 * (tests/ceph/run): other clients of the file system, snapshots, quotas, and
 * the key that all servers share.
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
	/* A server that has not heard of the snapshot yet changes a file in
	 * it. */
	snaps = vt_find(vt.root, ".snap");
	s = vt_find(snaps, "one");
	vt_write(f, 0, "after!");
	old = vt_find(s, "f");
	ck_assert_int_eq(vt_read(old, 0, text, 6, &eof), 6);
	ck_assert_str_eq(text, "before");
	/* It is another file to clients, with a separate handle. */
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
			    .to = { .dir = b, .name = vt_name("g") },
			    .wcc = &from, .to.wcc = &to), 0);
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
	pause_on_purpose(100000);
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
	vfs_node_put(vt_file(vt.root, "f"));
	ck_assert_int_eq(vt_rename(vt.root, "f", s, "f"), -EACCES);
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

	return DO(vt.ops->read, &who, n, .read = { .iov = &iov, .niov = 1 });
}

static uint32_t mode_of(struct vfs_node *n)
{
	return vt_attr(n).mode;
}

/* A world-writable directory whose files get its group. */
TEST(a_set_gid_program_is_of_a_group_that_its_maker_is_in)
{
	struct vfs_acls acls = { .wanted[VFS_ACL_ACCESS] = true,
				 .n[VFS_ACL_ACCESS] = 3 };
	struct vfs_setattr dir_mode = { .set = VFS_SET_MODE | VFS_SET_GID,
					.mode = 02777, .gid = 50 };
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_cred cred = vt_user(1000, 1000), root = vt_user(0, 0);
	struct vfs_op who = vt_as(&cred), by_root = vt_as(&root);
	struct vfs_node *d = vt_dir(vt.root, "d"), *f;

	ck_assert_int_eq(DO(vt.ops->setattr, &by_root, d, .set = &dir_mode), 0);
	how.attr = (struct vfs_setattr){ .set = VFS_SET_MODE, .mode = 06755 };
	who.node = d;
	who.name = vt_name("made");
	who.create = &how;
	ck_assert_int_eq(vt.ops->create(&who), 0);
	f = who.out;
	ck_assert_uint_eq(vt_attr(f).gid, 50);
	ck_assert_uint_eq(mode_of(f), 04755);
	/* The owner can't give the group the execute bit either, which root
	 * set. */
	dir_mode.mode = 02644;
	dir_mode.set = VFS_SET_MODE;
	ck_assert_int_eq(DO(vt.ops->setattr, &by_root, f, .set = &dir_mode), 0);
	acls.entry[VFS_ACL_ACCESS][0] = (struct vfs_acl_entry){
		.tag = VFS_ACL_USER_OBJ, .perm = 7 };
	acls.entry[VFS_ACL_ACCESS][1] = (struct vfs_acl_entry){
		.tag = VFS_ACL_GROUP_OBJ, .perm = 5 };
	acls.entry[VFS_ACL_ACCESS][2] = (struct vfs_acl_entry){
		.tag = VFS_ACL_OTHER, .perm = 5 };
	ck_assert_int_eq(vt.ops->setacl(&(struct vfs_op){
		.cred = &cred, .node = f, .acls = &acls }), 0);
	ck_assert_uint_eq(mode_of(f), 0755);
	vfs_node_put(f);
	vfs_node_put(d);
}

/* Its ".." changes. */
TEST(a_directory_is_moved_to_another_by_who_may_write_to_it)
{
	struct vfs_cred cred = vt_user(2000, 2000);
	struct vfs_setattr all = { .set = VFS_SET_MODE, .mode = 0777 };
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(vt.root, "b");
	struct vfs_node *d = vt_dir(a, "d");
	struct vfs_op move = { .cred = &cred, .node = a, .to.dir = b,
			       .name = vt_name("d"), .to.name = vt_name("d") };

	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, a, .set = &all), 0);
	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, b, .set = &all), 0);
	ck_assert_int_eq(vt.ops->rename(&move), -EACCES);
	move.to.dir = a;
	move.to.name = vt_name("e");
	ck_assert_int_eq(vt.ops->rename(&move), 0);
	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, d, .set = &all), 0);
	move.to.dir = b;
	move.name = vt_name("e");
	ck_assert_int_eq(vt.ops->rename(&move), 0);
	vfs_node_put(d);
	vfs_node_put(b);
	vfs_node_put(a);
}

/* The library would make it, and then hide it. */
TEST(the_name_of_snapshots_is_taken)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct vfs_make how = { .type = VFS_DIR };
	struct vfs_name snap = vt_name(".snap");

	ck_assert_int_eq(DO(vt.ops->make, &vt.who, vt.root, .name = snap,
			    .make = &how), -EEXIST);
	ck_assert_int_eq(DO(vt.ops->rename, &vt.who, vt.root,
			    .name = vt_name("f"),
			    .to = { .dir = vt.root, .name = snap }), -EEXIST);
	ck_assert_int_eq(DO(vt.ops->link, &vt.who, f,
			    .to = { .dir = vt.root, .name = snap }), -EEXIST);
	vfs_node_put(f);
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

/* All clients enforce this: else users could exceed a quota. */
TEST(a_file_is_not_moved_into_another_quota)
{
	struct vfs_node *q = vt_dir(vt.root, "q"), *s = vt_dir(q, "s");
	struct vfs_node *f = vt_file(vt.root, "f");

	ck_assert_int_eq(ceph_setxattr(other, below("q"),
				       "ceph.quota.max_bytes", "1048576", 7,
				       0), 0);
	/* The library learns of it in its own time; and what the renaming
	 * client knows of q, it forgets. */
	pause_on_purpose(4000000);
	vfs_node_put(vt_find(vt.root, "q"));
	vfs_node_put(vt_find(q, "s"));
	ck_assert_int_eq(vt_rename(vt.root, "f", s, "f"), -EXDEV);
	ck_assert_int_eq(vt_rename(vt.root, "f", q, "f"), -EXDEV);
	vfs_node_put(f);
	vfs_node_put(s);
	vfs_node_put(q);
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
	/* The client also learns of this, sooner or later. */
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
