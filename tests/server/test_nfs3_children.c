/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * File systems that are mounted below an export: crossmnt and nohide.
 *
 * Each test runs with the system's handles and with the table of files.  It
 * needs a mount namespace: as root, or by a user namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/auto_fs.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exports/children.h"
#include "tests/server/mount_space.h"
#include "tests/server/nfs_names.h"
#include "tests/server/nlm_client.h"
#include "tests/unit/runner.h"

#define WAYS	2			/* to open handles */

static const char *const base = space_base;
static char state[64], exports_text[512];
static struct harness_config config = {
	.backend = &posix_vfs_ops, .state_dir = state, .exports = exports_text,
};
static char *disk;		/* a directory on a disk, if possible */
static int way;

/* The exports file: the directory with @options, and @inner, lines that have
 * %s for the directory once. */
static void set_exports(const char *options, const char *inner)
{
	char more[256];

	snprintf(more, sizeof(more), inner, space_at(""));
	snprintf(exports_text, sizeof(exports_text),
		 "posix%s:%s/e 127.0.0.1(rw,insecure,no_root_squash%s)\n"
		 "mem:/mem 127.0.0.1(rw,insecure)\n%s",
		 way ? ",table" : "", base, options, more);
}

/* Changes the exports file, and has the server read it. */
static void reload(const char *options, const char *inner)
{
	set_exports(options, inner);
	harness_publish(&srv, exports_text);
}

static void begin(const char *options, const char *inner)
{
	set_exports(options, inner);
	space_serve(&config);
}

static void restart(void)
{
	nfs_teardown();
	begin(",crossmnt", "");
}

static void mount_tmpfs(const char *path)
{
	mkdir(space_at(path), 0755);
	ck_assert_int_eq(mount("none", space_at(path), "tmpfs", 0, NULL), 0);
}

static void setup(void)
{
	char cmd[128];

	snprintf(state, sizeof(state), "%s/state", base);
	snprintf(cmd, sizeof(cmd), "rm -rf %s/state; mkdir -p %s/state %s/e/d",
		 base, base, base);
	ck_assert_int_eq(system(cmd), 0);
	mount_tmpfs("child");
	ck_assert_int_eq(mkdir(space_at("child/sub"), 0755), 0);
}

static void teardown(void)
{
	char cmd[128];

	nfs_teardown();
	umount2(space_at("many"), MNT_DETACH);
	while (umount2(space_at("child"), MNT_DETACH) == 0)
		;
	umount2(space_at("d"), MNT_DETACH);
	snprintf(cmd, sizeof(cmd), "rm -rf %s/e %s/state", base, base);
	ck_assert_int_eq(system(cmd), 0);
}

/* Looks up "a/b" from the top. */
static nfs_fh3 walk_to(const char *path)
{
	char text[256], *rest = text, *name;
	nfs_fh3 at = top;

	snprintf(text, sizeof(text), "%s", path);
	while ((name = strsep(&rest, "/")))
		ck_assert_int_eq(try_lookup(at, name, &at), NFS3_OK);
	return at;
}

/* Serves the directory with crossmnt; returns the child. */
static nfs_fh3 begin_entered(int how)
{
	way = how;
	begin(",crossmnt", "");
	return walk_to("child");
}

/* Makes a directory in the child; returns the status. */
static int change_child(const char *name)
{
	return try_mkdir(&root, walk_to("child"), name);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(crossmnt_enters_what_is_mounted_below, 0, WAYS)
{
	nfs_fh3 child = begin_entered(_i);
	nfs_fh3 sub = walk_to("child/sub");

	ck_assert_uint_ne(nfs_attr(child).fsid, nfs_attr(top).fsid);
	ck_assert_uint_eq(nfs_attr(child).fsid, nfs_attr(sub).fsid);
	nfs_make_file(sub, "f", "abc");
	ck_assert_int_eq(access(space_at("child/sub/f"), F_OK), 0);
	ck_assert_int_eq(try_rename(sub, "f", top, "f"), NFS3ERR_XDEV);
	ck_assert_int_eq(try_link(walk_to("child/sub/f"), top, "f"),
			 NFS3ERR_XDEV);
	ck_assert_int_eq(try_rmdir(top, "child"), NFS3ERR_ACCES);
	ck_assert(nfs_same_fh(walk_to("child/.."), top));
	ck_assert(nfs_same_fh(walk_to("child/sub/.."), child));
}

TEST_LOOP(a_mount_in_a_mount_is_entered_too, 0, WAYS)
{
	nfs_fh3 inner;

	way = _i;
	mount_tmpfs("child/sub");
	begin(",crossmnt", "");
	inner = walk_to("child/sub");
	ck_assert_uint_ne(nfs_attr(inner).fsid, nfs_attr(top).fsid);
	ck_assert_uint_ne(nfs_attr(inner).fsid,
			  nfs_attr(walk_to("child")).fsid);
	ck_assert(nfs_same_fh(walk_to("child/sub/.."), walk_to("child")));
}

TEST_LOOP(without_crossmnt_an_empty_directory_is_shown, 0, WAYS)
{
	nfs_fh3 child;

	way = _i;
	begin("", "");
	child = walk_to("child");
	ck_assert_uint_eq(nfs_attr(child).fsid, nfs_attr(top).fsid);
	ck_assert_int_eq(nfs_exists(child, "sub"), NFS3ERR_NOENT);
	ck_assert_int_eq(try_mkdir(&root, child, "x"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "d", child, "d"), NFS3ERR_XDEV);
}

TEST_LOOP(handles_of_a_child_hold_over_a_restart, 0, WAYS)
{
	nfs_fh3 child, sub;
	uint64_t fsid;

	child = space_keep(begin_entered(_i));
	sub = space_keep(walk_to("child/sub"));
	fsid = nfs_attr(sub).fsid;
	restart();
	ck_assert_int_eq(space_status(sub), NFS3_OK);
	ck_assert_uint_eq(nfs_attr(sub).fsid, fsid);
	ck_assert(nfs_same_fh(walk_to("child"), child));
	ck_assert(nfs_same_fh(walk_to("child/.."), top));
}

/* It is closed when it had no call in the second of a reload. */
static void close_child(void)
{
	ck_assert(AWAIT_EACH(20000, (harness_publish(&srv, exports_text),
				     umount(space_at("child")) == 0)));
}

TEST_LOOP(a_child_can_be_unmounted_and_mounted_again, 0, WAYS)
{
	nfs_fh3 child = begin_entered(_i);
	nfs_fh3 sub = walk_to("child/sub");

	ck_assert_int_eq(umount(space_at("child")), -1);
	close_child();
	ck_assert_int_eq(access(space_at("child/sub"), F_OK), -1);
	ck_assert_int_eq(space_status(child), NFS3ERR_STALE);
	ck_assert_int_eq(space_status(sub), NFS3ERR_STALE);
	ck_assert_uint_eq(nfs_attr(walk_to("child")).fsid, nfs_attr(top).fsid);
	mount_tmpfs("child");
	ck_assert_int_eq(space_status(child), NFS3_OK);
	ck_assert_int_eq(space_status(sub), NFS3ERR_STALE);
	ck_assert(nfs_same_fh(walk_to("child"), child));
}

TEST_LOOP(crossmnt_that_is_taken_away_closes_the_children, 0, WAYS)
{
	nfs_fh3 child = begin_entered(_i);

	reload("", "");
	ck_assert_int_eq(space_status(child), NFS3ERR_STALE);
	reload(",crossmnt", "");
	ck_assert_int_eq(space_status(child), NFS3_OK);
}

/* More than are open at a time. */
#define MANY	260

TEST(a_child_in_use_stays_open_however_many_are_entered)
{
	struct sockaddr_in peer = { .sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct export_peer from = { (struct sockaddr *)&peer, true,
					  RPC_AUTH_SYS, EXPORT_CALLS,
					  RPC_CLEAR };
	struct vfs_handle h;
	struct export_opts opts;
	struct export_tree *e;
	char name[32];
	nfs_fh3 child;
	uint32_t id;

	way = 0;
	mount_tmpfs("many");
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		mount_tmpfs(name);
	}
	begin(",crossmnt", "");
	child = walk_to("child");
	ck_assert_int_eq(export_fh_parse(srv.exports,
			 (const uint8_t *)child.data.data_val,
			 child.data.data_len, &id, &h), 0);
	/* The one that was used longest ago, and counted, as by a lock. */
	ck_assert_int_eq(export_find(srv.exports, id, &from, &e, &opts), 0);
	children_find(srv.exports->children, id)->used = 0;
	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof(name), "many/%d", i);
		walk_to(name);
	}
	ck_assert(export_is_current(srv.exports, e));
	export_put(e);
}

TEST(a_link_in_place_of_a_mount_point_is_not_followed)
{
	nfs_fh3 child = begin_entered(0);

	close_child();
	/* The target is also the root of a tmpfs. */
	ck_assert_int_eq(rmdir(space_at("child")), 0);
	ck_assert_int_eq(symlink(base, space_at("child")), 0);
	ck_assert_int_eq(space_status(child), NFS3ERR_STALE);
	ck_assert_int_eq(unlink(space_at("child")), 0);
}

TEST_LOOP(dotdot_opens_the_file_system_above, 0, WAYS)
{
	nfs_fh3 child, inner, above;
	int status;

	way = _i;
	mount_tmpfs("child/sub");
	begin(",crossmnt", "");
	child = space_keep(walk_to("child"));
	inner = space_keep(walk_to("child/sub"));
	restart();
	EVENTUALLY((status = try_lookup(inner, "..", &above)) !=
		   NFS3ERR_JUKEBOX);
	ck_assert_int_eq(status, NFS3_OK);
	ck_assert(nfs_same_fh(above, child));
}

TEST(a_mount_that_only_its_user_may_see_is_an_empty_directory)
{
	int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char options[80];

	way = 0;
	begin(",crossmnt", "");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,"
		 "group_id=%u", fuse, 12345, 12345);
	if (fuse >= 0 && mount("none", space_at("d"), "fuse",
			       MS_NOSUID | MS_NODEV,
			       options) == 0) {
		ck_assert_int_eq(nfs_exists(walk_to("d"), "x"), NFS3ERR_NOENT);
		umount2(space_at("d"), MNT_DETACH);
	} else {
		printf("skipped: no FUSE can be mounted\n");
	}
	close(fuse);
}

TEST(one_directory_at_two_places_is_two_file_systems)
{
	uint64_t a, b;

	way = 0;
	begin(",crossmnt", "");
	ck_assert_int_eq(mkdir(space_at("child/a"), 0755), 0);
	ck_assert_int_eq(mkdir(space_at("child/b"), 0755), 0);
	ck_assert_int_eq(mount(disk, space_at("child/a"), NULL, MS_BIND, NULL),
			 0);
	ck_assert_int_eq(mount(disk, space_at("child/b"), NULL, MS_BIND, NULL),
			 0);
	a = nfs_attr(walk_to("child/a")).fsid;
	b = nfs_attr(walk_to("child/b")).fsid;
	ck_assert_uint_ne(a, b);
	ck_assert_uint_eq(nfs_attr(walk_to("child/a")).fsid, a);
}

#define INNER(options) \
	"posix:%schild 127.0.0.1(rw,insecure,no_root_squash" options ")\n"

TEST_LOOP(an_entry_for_what_is_mounted_wins, 0, WAYS)
{
	way = _i;
	begin(",crossmnt", "posix:%schild 127.0.0.1(ro,insecure)\n");
	ck_assert_int_eq(change_child("x"), NFS3ERR_ROFS);
}

TEST_LOOP(an_entry_that_comes_later_wins, 0, WAYS)
{
	nfs_fh3 child = begin_entered(_i);

	reload(",crossmnt", "posix:%schild 127.0.0.1(ro,insecure)\n");
	ck_assert_int_eq(space_status(child), NFS3ERR_STALE);
	ck_assert_int_eq(change_child("x"), NFS3ERR_ROFS);
}

TEST_LOOP(an_id_that_goes_to_another_path_takes_no_child_along, 0, WAYS)
{
	nfs_fh3 child;

	way = _i;
	begin(",crossmnt,fsid=5", "");
	child = walk_to("child");
	snprintf(exports_text, sizeof(exports_text),
		 "%s/e/d 127.0.0.1(rw,insecure,crossmnt,fsid=5)\n", base);
	harness_publish(&srv, exports_text);
	ck_assert_int_eq(space_status(child), NFS3ERR_STALE);
}

/* Also one that comes later, or that can be mounted later, as after a start. */
TEST_LOOP(an_entry_by_a_symbolic_link_wins_as_well, 0, 2 * WAYS)
{
	static const char door[] = "posix:%sdoor 127.0.0.1(ro,insecure)\n";
	bool late = _i >= WAYS;
	nfs_fh3 child;

	ck_assert_int_eq(symlink(late ? "gate/child" : "child",
				 space_at("door")), 0);
	child = begin_entered(_i % WAYS);
	export_table_lenient(srv.exports, late);
	reload(",crossmnt", door);
	if (late)
		ck_assert_int_eq(symlink(".", space_at("gate")), 0);
	EVENTUALLY(space_status(child) == NFS3ERR_STALE);
	ck_assert_int_eq(change_child("x"), NFS3ERR_ROFS);
	nfs_teardown();
	begin(",crossmnt", door);
	ck_assert_int_eq(change_child("x"), NFS3ERR_ROFS);
}

TEST_LOOP(nohide_has_an_entry_entered_from_above, 0, WAYS)
{
	way = _i;
	begin("", INNER(",nohide"));
	ck_assert_int_eq(change_child("x"), NFS3_OK);
	reload("", INNER(""));
	ck_assert_int_eq(change_child("y"), NFS3ERR_ACCES);
}

TEST_LOOP(an_entry_for_other_clients_is_not_entered, 0, WAYS)
{
	way = _i;
	begin(",crossmnt", "posix:%schild 192.0.2.1(rw,insecure)\n");
	ck_assert_int_eq(change_child("x"), NFS3ERR_ACCES);
}

/* Makes a file system by mkfs.@type, with a file "f", and mounts it on "d";
 * with @more in it done there.  False: this machine can't. */
static bool mount_disk(const char *type, const char *more)
{
	char cmd[512];

	snprintf(cmd, sizeof(cmd), "exec >/dev/null 2>&1; cd %s && "
		 "rm -f image && truncate -s 320M image && "
		 "/sbin/mkfs.%s -q image && mount -o loop image e/d && "
		 "cd e/d && echo x > f && %s", base, type, more);
	if (system(cmd) == 0)
		return true;
	printf("skipped: no %s can be mounted\n", type);
	return false;
}

TEST_LOOP(a_disk_that_is_mounted_again_has_its_handles, 0, 3)
{
	static const char *const types[] = { "ext4", "xfs", "btrfs" };
	char cmd[128];
	nfs_fh3 child, f;

	way = 0;
	begin(",crossmnt", "");
	if (!mount_disk(types[_i], "true"))
		return;
	child = space_keep(walk_to("d"));
	f = space_keep(walk_to("d/f"));
	nfs_teardown();
	snprintf(cmd, sizeof(cmd), "cd %s && umount e/d && "
		 "mount -o loop image e/d", base);
	ck_assert_int_eq(system(cmd), 0);
	begin(",crossmnt", "");
	ck_assert_int_eq(space_status(f), NFS3_OK);
	ck_assert(nfs_same_fh(walk_to("d"), child));
}

#define BTRFS	"posix:%sd 127.0.0.1(rw,insecure,no_root_squash,nohide)\n"

TEST(subvolumes_are_entered_and_their_handles_hold_over_a_restart)
{
	nfs_fh3 sub, f;
	uint64_t fsid;

	way = 0;
	begin("", "");
	if (!mount_disk("btrfs", "btrfs subvolume create sub && mv f sub/f && "
			"btrfs subvolume snapshot sub snap"))
		return;
	reload("", BTRFS);
	sub = space_keep(walk_to("d/sub"));
	f = space_keep(walk_to("d/sub/f"));
	fsid = nfs_attr(sub).fsid;
	ck_assert_uint_ne(fsid, nfs_attr(walk_to("d")).fsid);
	ck_assert_uint_ne(fsid, nfs_attr(walk_to("d/snap")).fsid);
	ck_assert(!nfs_same_fh(f, walk_to("d/snap/f")));
	ck_assert(nfs_same_fh(walk_to("d/sub/.."), walk_to("d")));
	ck_assert_int_eq(try_mkdir(&root, sub, "x"), NFS3_OK);
	nfs_teardown();
	begin("", BTRFS);
	ck_assert_int_eq(space_status(f), NFS3_OK);
	ck_assert_uint_eq(nfs_attr(f).fsid, fsid);
	ck_assert(nfs_same_fh(walk_to("d/sub"), sub));
}

TEST_LOOP(a_mount_point_that_is_not_entered_has_no_locks, 0, WAYS)
{
	struct nlm_process p = { "c1", 11, 4, IPPROTO_TCP, top };

	way = _i;
	begin("", "");
	p.fh = walk_to("child");
	nlmc_open(srv.port);
	ck_assert_uint_eq(nlmc_test(&p, (struct nlm_bytes){ 0, 0, true }, NULL),
			  NLM4_FAILED);
	nlmc_close();
}

TEST_LOOP(above_a_mount_point_in_a_child_nothing_is_looked_up, 0, WAYS)
{
	nfs_fh3 sub;

	way = _i;
	mount_tmpfs("child/sub");
	begin(",crossmnt", "posix:%schild/sub 192.0.2.1(rw,insecure)\n");
	sub = walk_to("child/sub");
	ck_assert_int_eq(try_lookup(sub, "..", &sub), NFS3ERR_ACCES);
}

TEST_LOOP(a_directory_in_a_child_can_be_mounted, 0, WAYS)
{
	nfs_fh3 fh;

	way = _i;
	begin(",crossmnt", "");
	ck_assert_int_eq(nfs_mnt(space_at("child/sub"), &fh), MNT3_OK);
	ck_assert(nfs_same_fh(fh, walk_to("child/sub")));
	ck_assert_int_eq(nfs_mnt(space_at("child/none"), &fh), MNT3ERR_NOENT);
	reload("", "");
	ck_assert_int_eq(nfs_mnt(space_at("child/sub"), &fh), MNT3ERR_NOENT);
}

/* A way around does not lead past an entry's squash. */
TEST_LOOP(a_way_through_an_entry_goes_by_its_rules, 0, WAYS)
{
	/* Without it the server can't act as its callers. */
	int want = setgroups(0, NULL) == 0 ? MNT3ERR_ACCES : MNT3_OK;
	nfs_fh3 fh;

	way = _i;
	ck_assert_int_eq(mkdir(space_at("child/sub/deep"), 0755), 0);
	ck_assert_int_eq(chmod(space_at("child/sub"), 0700), 0);
	begin(",crossmnt", "posix:%schild 127.0.0.1(rw,insecure)\n");
	ck_assert_int_eq(nfs_mnt(space_at("child/sub/deep"), &fh), want);
	ck_assert_int_eq(nfs_mnt(space_at("d/../child/sub/deep"), &fh), want);
}

/* ---- mounted on demand */

/* Has a file system mounted on "d" when a process comes, as automount(8) does.
 * Its process group differs from the server's, as its own calls mount nothing.
 * Tells @ready: 'y', or 'n' if this machine can't. */
static void automounter(int ready)
{
	struct autofs_v5_packet came;
	char options[96];
	int asks[2], fd;

	setpgid(0, 0);
	ck_assert_int_eq(pipe(asks), 0);
	snprintf(options, sizeof(options), "fd=%d,pgrp=%d,minproto=5,"
		 "maxproto=5,direct", asks[1], getpgrp());
	if (mount("test", space_at("d"), "autofs", 0, options) < 0) {
		dprintf(ready, "n");
		_exit(0);
	}
	fd = open(space_at("d"), O_RDONLY | O_DIRECTORY);
	dprintf(ready, "y");
	while (read(asks[0], &came, sizeof(came)) == sizeof(came)) {
		mount_tmpfs("d");
		mkdir(space_at("d/inside"), 0755);
		ioctl(fd, AUTOFS_IOC_READY, came.wait_queue_token);
	}
	_exit(1);
}

TEST_LOOP(a_name_that_is_mounted_on_demand_is_entered, 0, WAYS)
{
	int ready[2];
	char can = 'n';
	nfs_fh3 d;
	pid_t pid;

	way = _i;
	ck_assert_int_eq(pipe(ready), 0);
	pid = fork();
	if (pid == 0)
		automounter(ready[1]);
	ck_assert_int_eq(read(ready[0], &can, 1), 1);
	if (can == 'y') {
		begin(",crossmnt", "");
		d = walk_to("d");
		ck_assert_int_eq(nfs_exists(d, "inside"), NFS3_OK);
		ck_assert_uint_ne(nfs_attr(d).fsid, nfs_attr(top).fsid);
		umount2(space_at("d"), MNT_DETACH);
	} else {
		begin("", "");
		printf("skipped: no autofs can be mounted\n");
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	umount2(space_at("d"), MNT_DETACH);
}

/* Nested exports have their clients come to one mount point. */
TEST(two_exports_may_have_one_child)
{
	nfs_fh3 inner, child;

	way = 0;
	mount_tmpfs("d/m");
	begin(",crossmnt", "posix:%sd 127.0.0.1(rw,insecure,crossmnt)\n");
	child = walk_to("d/m");
	ck_assert_int_eq(nfs_mnt(space_at("d"), &inner), MNT3_OK);
	ck_assert_int_eq(try_lookup(inner, "m", &inner), NFS3_OK);
	ck_assert(!nfs_same_fh(inner, child));
	umount2(space_at("d/m"), MNT_DETACH);
}

int main(void)
{
	int rc;

	disk = realpath(".", NULL);
	rc = space_run_tests();
	free(disk);
	return rc;
}
