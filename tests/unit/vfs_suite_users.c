/* SPDX-License-Identifier: BSD-2-Clause */
/* Any backend that can act for every user: the rights of users. */
#include "tests/unit/vfs_suite.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct vfs_cred root_cred, alice, bob;
static struct vfs_op as_root, as_alice, as_bob;

/* Lists of groups, and their numbers. */
static const uint32_t bobs_gids[] = { 77, VT_GROUP };
static const uint32_t the_group[] = { VT_GROUP };

static void users(void)
{
	root_cred = vt_user(0, 0);
	alice = vt_user(VT_ALICE, VT_ALICE);
	bob = vt_user(VT_BOB, VT_BOB);
	bob.ngids = 2;
	bob.gids_id = 1;
	bob.gids = bobs_gids;
	as_root = vt_as(&root_cred);
	as_alice = vt_as(&alice);
	as_bob = vt_as(&bob);
}

/* A file of alice's. */
static struct vfs_node *alice_file(const char *name, uint32_t mode)
{
	struct vfs_create how = {
		.how = VFS_CREATE_GUARDED,
		.attr = { .set = VFS_SET_MODE, .mode = mode },
	};
	struct vfs_node *n = NULL;

	ck_assert_int_eq(vt_create(&as_alice, vt.root, name, &how, &n), 0);
	return n;
}

static int do_read(const struct vfs_op *who, struct vfs_node *n)
{
	char buf[4];
	struct iovec iov = { buf, sizeof(buf) };

	return DO(vt.ops->read, who, n, .read = { .iov = &iov, .niov = 1 });
}

static int do_write(const struct vfs_op *who, struct vfs_node *n)
{
	struct iovec iov = { (void *)(uintptr_t)"data", 4 };

	return DO(vt.ops->write, who, n, .write = { .iov = &iov, .niov = 1 });
}

static int set(const struct vfs_op *who, struct vfs_node *n, uint32_t what,
	       uint32_t value)
{
	struct vfs_setattr s = { .set = what, .mode = value, .uid = value,
				 .gid = value, .size = value };

	return DO(vt.ops->setattr, who, n, .set = &s);
}

START_TEST(files_are_read_and_written_by_who_may)
{
	struct vfs_node *f;

	users();
	f = alice_file("f", 0640);
	ck_assert_int_eq(do_write(&as_alice, f), 4);
	ck_assert_int_eq(do_write(&as_bob, f), -EACCES);
	ck_assert_int_eq(do_read(&as_bob, f), -EACCES);
	ck_assert_int_eq(do_write(&as_root, f), 4);
	ck_assert_int_eq(set(&as_root, f, VFS_SET_GID, VT_GROUP), 0);
	ck_assert_int_eq(do_read(&as_bob, f), 4);
	ck_assert_int_eq(do_write(&as_bob, f), -EACCES);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_SIZE, 0), -EACCES);
	vfs_node_put(f);
}
END_TEST

/* As many groups as Linux gives a process. */
START_TEST(a_caller_is_in_each_of_its_groups)
{
	uint32_t *gids = calloc(VFS_MAX_GIDS, sizeof(*gids));
	struct vfs_node *f;

	ck_assert_ptr_nonnull(gids);
	for (uint32_t i = 0; i < VFS_MAX_GIDS; i++)
		gids[i] = 100000 + i;
	users();
	bob.gids = gids;
	bob.gids_id = 3;
	f = alice_file("f", 0640);
	for (uint32_t n = 16; n <= VFS_MAX_GIDS; n *= 64) {
		bob.ngids = n;
		bob.gids_id++;
		ck_assert_int_eq(set(&as_root, f, VFS_SET_GID, gids[n - 1]),
				 0);
		ck_assert_int_eq(do_read(&as_bob, f), 0);
		ck_assert_int_eq(set(&as_root, f, VFS_SET_GID, gids[n - 1] +
				     1), 0);
		ck_assert_int_eq(do_read(&as_bob, f), -EACCES);
	}
	vfs_node_put(f);
	free(gids);
}
END_TEST

/* A client that opened it first goes on: RFC 1813 section 4.4. */
START_TEST(the_owner_reads_and_writes_whatever_the_mode)
{
	struct vfs_node *f;

	users();
	f = alice_file("f", 0);
	ck_assert_int_eq(do_write(&as_alice, f), 4);
	ck_assert_int_eq(do_read(&as_alice, f), 4);
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_SIZE, 2), 0);
	ck_assert_int_eq(do_read(&as_bob, f), -EACCES);
	vfs_node_put(f);
}
END_TEST

/* A client reads a file to execute it: RFC 1813 section 4.4. */
START_TEST(execute_permission_allows_reading)
{
	struct vfs_node *f;

	users();
	f = alice_file("f", 0711);
	ck_assert_int_eq(do_write(&as_alice, f), 4);
	ck_assert_int_eq(do_read(&as_bob, f), 4);
	ck_assert_int_eq(do_write(&as_bob, f), -EACCES);
	vfs_node_put(f);
}
END_TEST

START_TEST(owners_and_modes_are_changed_by_who_may)
{
	struct vfs_node *f;

	users();
	f = alice_file("f", 0644);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_MODE, 0666), -EPERM);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_UID, VT_BOB), -EPERM);
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_UID, VT_BOB), -EPERM);
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_GID, VT_GROUP), -EPERM);
	alice.ngids = 1;
	alice.gids_id = 2;
	alice.gids = the_group;
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_GID, VT_GROUP), 0);
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_MODE, 0600), 0);
	ck_assert_int_eq(set(&as_root, f, VFS_SET_UID, VT_BOB), 0);
	ck_assert_uint_eq(vt_attr(f).uid, VT_BOB);
	ck_assert_uint_eq(vt_attr(f).gid, VT_GROUP);
	vfs_node_put(f);
}
END_TEST

START_TEST(times_are_set_by_the_owner_or_to_now_by_writers)
{
	struct vfs_node *f;

	users();
	f = alice_file("f", 0666);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_MTIME, 0), -EPERM);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_MTIME_NOW |
			     VFS_SET_ATIME_NOW, 0), 0);
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_MTIME, 0), 0);
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_MODE, 0644), 0);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_MTIME_NOW |
			     VFS_SET_ATIME_NOW, 0), -EACCES);
	vfs_node_put(f);
}
END_TEST

/* As open(2) with O_TRUNC is sent: the size, and the time of the server. */
START_TEST(a_writer_truncates_and_touches_what_is_others)
{
	struct vfs_node *f;

	users();
	f = alice_file("f", 0666);
	ck_assert_int_eq(do_write(&as_alice, f), 4);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_SIZE | VFS_SET_MTIME_NOW, 0),
			 0);
	ck_assert_uint_eq(vt_attr(f).size, 0);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_SIZE | VFS_SET_MTIME_NOW, 0),
			 0);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_MTIME_NOW, 0), 0);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_ATIME_NOW, 0), 0);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_ATIME_NOW | VFS_SET_MTIME, 0),
			 -EPERM);
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_MODE, 0644), 0);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_SIZE | VFS_SET_MTIME_NOW, 0),
			 -EACCES);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_MTIME_NOW, 0), -EACCES);
	ck_assert_int_eq(set(&as_bob, f, VFS_SET_ATIME_NOW, 0), -EACCES);
	vfs_node_put(f);
}
END_TEST

START_TEST(set_id_bits_do_not_outlive_changes)
{
	struct vfs_node *f;

	users();
	f = alice_file("f", 0755);
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_MODE, 04777), 0);
	ck_assert_uint_eq(vt_attr(f).mode, 04777);
	ck_assert_int_eq(do_write(&as_bob, f), 4);
	ck_assert_uint_eq(vt_attr(f).mode, 0777);
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_MODE, 06755), 0);
	ck_assert_int_eq(set(&as_root, f, VFS_SET_UID, VT_BOB), 0);
	ck_assert_uint_eq(vt_attr(f).mode, 0755);
	ck_assert_int_eq(set(&as_root, f, VFS_SET_MODE, 06777), 0);
	ck_assert_int_eq(set(&as_alice, f, VFS_SET_SIZE, 2), 0);
	ck_assert_uint_eq(vt_attr(f).mode, 0777);
	vfs_node_put(f);
}
END_TEST

START_TEST(directories_are_changed_and_searched_by_who_may)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *d, *n;
	int err;

	users();
	ck_assert_int_eq(vt_make(&as_alice, vt.root, "d", VFS_DIR, NULL), 0);
	d = vt_find(vt.root, "d");
	ck_assert_int_eq(vt_create(&as_alice, d, "f", &how, &n), 0);
	/* Or -EPERM, since a system can protect others' files from links. */
	err = DO(vt.ops->link, &as_bob, n,
		 .to = { .dir = d, .name = vt_name("l") });
	ck_assert(err == -EACCES || err == -EPERM);
	vfs_node_put(n);
	ck_assert_int_eq(vt_create(&as_bob, d, "g", &how, &n), -EACCES);
	ck_assert_int_eq(vt_make(&as_bob, d, "g", VFS_DIR, NULL), -EACCES);
	ck_assert_int_eq(DO(vt.ops->remove, &as_bob, d, .name = vt_name("f")),
			 -EACCES);
	ck_assert_int_eq(DO(vt.ops->rename, &as_bob, d, .name = vt_name("f"),
			    .to = { .dir = vt.root, .name = vt_name("f") }),
			 -EACCES);
	ck_assert_int_eq(GET(out, n, vt.ops->lookup, &as_bob, d,
			     .name = vt_name("f")), 0);
	vfs_node_put(n);
	ck_assert_int_eq(set(&as_alice, d, VFS_SET_MODE, 0700), 0);
	ck_assert_int_eq(DO(vt.ops->lookup, &as_bob, d, .name = vt_name("f")),
			 -EACCES);
	ck_assert_int_eq(vt_make(&as_root, d, "g", VFS_DIR, NULL), 0);
	vfs_node_put(d);
}
END_TEST

static bool take(void *arg, const struct vfs_dirent *d)
{
	return true;
}

START_TEST(listing_needs_read_permission)
{
	struct vfs_node *d;

	users();
	ck_assert_int_eq(vt_make(&as_alice, vt.root, "d", VFS_DIR, NULL), 0);
	d = vt_find(vt.root, "d");
	ck_assert_int_eq(set(&as_alice, d, VFS_SET_MODE, 0711), 0);
	ck_assert_int_eq(DO(vt.ops->readdir, &as_bob, d,
			    .readdir.emit = take), -EACCES);
	ck_assert_int_eq(DO(vt.ops->readdir, &as_alice, d,
			    .readdir.emit = take), 0);
	vfs_node_put(d);
}
END_TEST

START_TEST(a_sticky_directory_keeps_what_is_others)
{
	struct vfs_node *f;
	int err;

	users();
	ck_assert_int_eq(set(&as_root, vt.root, VFS_SET_MODE, 01777), 0);
	f = alice_file("f", 0666);
	err = DO(vt.ops->remove, &as_bob, vt.root, .name = vt_name("f"));
	ck_assert(err == -EPERM || err == -EACCES);
	err = DO(vt.ops->rename, &as_bob, vt.root, .name = vt_name("f"),
		 .to = { .dir = vt.root, .name = vt_name("g") });
	ck_assert(err == -EPERM || err == -EACCES);
	ck_assert_int_eq(DO(vt.ops->remove, &as_alice, vt.root,
			    .name = vt_name("f")), 0);
	vfs_node_put(f);
}
END_TEST

START_TEST(the_owner_of_a_sticky_directory_may_clear_it)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *d, *n;

	users();
	ck_assert_int_eq(vt_make(&as_alice, vt.root, "d", VFS_DIR, NULL), 0);
	d = vt_find(vt.root, "d");
	ck_assert_int_eq(set(&as_alice, d, VFS_SET_MODE, 01777), 0);
	ck_assert_int_eq(vt_create(&as_bob, d, "f", &how, &n), 0);
	vfs_node_put(n);
	ck_assert_int_eq(DO(vt.ops->remove, &as_alice, d, .name = vt_name("f")),
			 0);
	vfs_node_put(d);
}
END_TEST

START_TEST(a_set_gid_directory_hands_its_group_down)
{
	struct vfs_node *d, *n;
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };

	users();
	d = vt_dir(vt.root, "d");
	ck_assert_int_eq(set(&as_root, d, VFS_SET_GID, VT_GROUP), 0);
	ck_assert_int_eq(set(&as_root, d, VFS_SET_MODE, 02777), 0);
	ck_assert_int_eq(vt_create(&as_alice, d, "f", &how, &n), 0);
	ck_assert_uint_eq(vt_attr(n).gid, VT_GROUP);
	ck_assert_uint_eq(vt_attr(n).uid, VT_ALICE);
	vfs_node_put(n);
	ck_assert_int_eq(vt_make(&as_alice, d, "s", VFS_DIR, NULL), 0);
	n = vt_find(d, "s");
	ck_assert_uint_eq(vt_attr(n).gid, VT_GROUP);
	ck_assert_uint_eq(vt_attr(n).mode & 02000, 02000);
	vfs_node_put(n);
	vfs_node_put(d);
}
END_TEST

START_TEST(only_root_makes_devices)
{
	struct vfs_node *n;
	struct vfs_attr a;
	int err;

	users();
	err = vt_make(&as_alice, vt.root, "c", VFS_CHR, NULL);
	ck_assert(err == -EPERM || err == -EACCES);
	err = vt_make(&as_root, vt.root, "c", VFS_CHR, NULL);
	if (err == -EPERM)
		return;		/* nor does a container's */
	ck_assert_int_eq(err, 0);
	n = vt_find(vt.root, "c");
	a = vt_attr(n);
	ck_assert_int_eq(a.type, VFS_CHR);
	ck_assert_uint_eq(a.rdev_major, 4);
	ck_assert_uint_eq(a.rdev_minor, 64);
	vfs_node_put(n);
}
END_TEST

void vfs_suite_add_users(TCase *tc)
{
	tcase_add_test(tc, files_are_read_and_written_by_who_may);
	tcase_add_test(tc, a_caller_is_in_each_of_its_groups);
	tcase_add_test(tc, the_owner_reads_and_writes_whatever_the_mode);
	tcase_add_test(tc, execute_permission_allows_reading);
	tcase_add_test(tc, owners_and_modes_are_changed_by_who_may);
	tcase_add_test(tc, times_are_set_by_the_owner_or_to_now_by_writers);
	tcase_add_test(tc, a_writer_truncates_and_touches_what_is_others);
	tcase_add_test(tc, set_id_bits_do_not_outlive_changes);
	tcase_add_test(tc, directories_are_changed_and_searched_by_who_may);
	tcase_add_test(tc, listing_needs_read_permission);
	tcase_add_test(tc, a_sticky_directory_keeps_what_is_others);
	tcase_add_test(tc, the_owner_of_a_sticky_directory_may_clear_it);
	tcase_add_test(tc, a_set_gid_directory_hands_its_group_down);
	tcase_add_test(tc, only_root_makes_devices);
}
