/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries whose exports are not open when a client comes to their paths: their
 * rules hold all the same.  Needs a mount name space, as test_nfs3_children
 * does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/mount_space.h"
#include "tests/server/nfs_names.h"
#include "tests/unit/runner.h"

static char state[64], exports_text[512];
static const char *peer;		/* the entry's client */
static struct harness_config config = {
	.backend = &posix_vfs_ops, .state_dir = state, .exports = exports_text,
};

static void setup(void)
{
	char cmd[256];

	peer = "127.0.0.1";
	snprintf(state, sizeof(state), "%s/state", space_base);
	snprintf(cmd, sizeof(cmd), "cd %s && rm -rf e state && "
		 "mkdir -p e/child state && ln -s child e/door", space_base);
	ck_assert_int_eq(system(cmd), 0);
	ck_assert_int_eq(mount("none", space_at("child"), "tmpfs", 0, NULL), 0);
	ck_assert_int_eq(mkdir(space_at("child/sub"), 0755), 0);
}

static void teardown(void)
{
	nfs_teardown();
	umount2(space_at("child"), MNT_DETACH);
}

/* The directory for writing, and "door", a link to @path below it, for reading
 * while something is mounted on @mountpoint. */
static void begin(const char *path, const char *mountpoint)
{
	snprintf(exports_text, sizeof(exports_text),
		 "posix:%s/e 127.0.0.1(rw,insecure,no_root_squash,crossmnt)\n"
		 "mem:/mem 127.0.0.1(rw,insecure)\n"
		 "posix:%s/e/%s %s(ro,insecure,mountpoint=%s/e/%s)\n",
		 space_base, space_base, path, peer, space_base, mountpoint);
	space_serve(&config);
}

static int change_child(const char *name)
{
	nfs_fh3 child;

	ck_assert_int_eq(try_lookup(top, "child", &child), NFS3_OK);
	return try_mkdir(&root, child, name);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(the_entry_of_a_mountpoint_holds_before_it_was_opened_by_a_link)
{
	begin("door", "child");
	ck_assert_int_eq(change_child("x"), NFS3ERR_ROFS);
}

TEST(an_entry_for_a_directory_there_takes_nothing_else)
{
	nfs_fh3 fh;

	begin("door/sub", "child");
	ck_assert_int_eq(change_child("x"), NFS3_OK);
	ck_assert_int_eq(nfs_mnt(space_at("door/sub"), &fh), MNT3_OK);
	ck_assert_int_eq(try_mkdir(&root, fh, "y"), NFS3ERR_ROFS);
}

/* It is not there, or is not for this client. */
TEST_LOOP(nor_does_one_that_is_not_open, 0, 2)
{
	static const char *const paths[] = { "child/none", "child/sub" };
	nfs_fh3 child, fh;

	peer = _i ? "192.0.2.1" : "127.0.0.1";
	begin(paths[_i], "child");
	ck_assert_int_eq(try_lookup(top, "child", &child), NFS3_OK);
	child = space_keep(child);
	ck_assert_int_eq(try_lookup(child, "sub", &fh), NFS3_OK);
	ck_assert_int_eq(try_mkdir(&root, child, "x"), NFS3_OK);
}

/* Its mountpoint is spelled in another way: only its file system shows that it
 * is the same. */
TEST(a_mountpoint_that_is_opened_later_by_a_link_takes_over)
{
	nfs_fh3 child, fh;

	begin("door", "./child");
	ck_assert_int_eq(try_lookup(top, "child", &child), NFS3_OK);
	child = space_keep(child);
	ck_assert_int_eq(change_child("x"), NFS3_OK);
	ck_assert_int_eq(nfs_mnt(space_at("door"), &fh), MNT3_OK);
	EVENTUALLY(space_status(child) == NFS3ERR_STALE);
	ck_assert_int_eq(change_child("y"), NFS3ERR_ROFS);
}

/* The child's tree, counted, as by a lock. */
static struct export_tree *use_child(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct export_peer from = { (struct sockaddr *)&at, true,
					  RPC_AUTH_SYS, EXPORT_CALLS,
					  RPC_CLEAR };
	struct export_opts opts;
	struct export_tree *e;
	struct vfs_handle h;
	nfs_fh3 child;
	uint32_t id;

	ck_assert_int_eq(try_lookup(top, "child", &child), NFS3_OK);
	ck_assert_int_eq(export_fh_parse(srv.exports,
			 (const uint8_t *)child.data.data_val,
			 child.data.data_len, &id, &h), 0);
	ck_assert_int_eq(export_find(srv.exports, id, &from, &e, &opts), 0);
	return e;
}

TEST(a_reload_that_fails_closes_no_child_in_use)
{
	struct export_tree *e;
	char *why;

	begin("child/sub", "child");
	e = use_child();
	/* An entry has its path now, but the other one is wrong. */
	snprintf(exports_text, sizeof(exports_text),
		 "posix:%s/e 127.0.0.1(rw,insecure,crossmnt)\n"
		 "posix:%s/e/child 127.0.0.1(rw)\n"
		 "posix:%s/e/none 127.0.0.1(rw)\n",
		 space_base, space_base, space_base);
	ck_assert_int_lt(harness_try_publish(&srv, exports_text, &why), 0);
	free(why);
	ck_assert(export_is_current(srv.exports, e));
	export_put(e);
}

static uint64_t number_of_child(void)
{
	nfs_fh3 child;

	begin("door", "./child");
	ck_assert_int_eq(try_lookup(top, "child", &child), NFS3_OK);
	return nfs_attr(child).fsid;
}

/* Else a client could rename directories to have two numbers collide. */
TEST(the_number_of_a_child_follows_from_the_servers_key)
{
	uint64_t first = number_of_child();

	nfs_teardown();
	ck_assert_uint_eq(number_of_child(), first);
	nfs_teardown();
	snprintf(state, sizeof(state), "%s/other", space_base);
	ck_assert(mkdir(state, 0700) == 0);
	ck_assert_uint_ne(number_of_child(), first);
}

int main(void)
{
	return space_run_tests();
}
