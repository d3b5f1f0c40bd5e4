/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rights of callers on each type of file system that can be mounted here:
 * the server allows a user exactly the operations that the kernel allows a
 * local process of that user.
 *
 * Needs root, who can act as others; a type that can't be mounted is skipped.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nfsc/libnfs-raw-nlm.h>

#include "lib/util.h"
#include "tests/server/fuse_rights.h"
#include "tests/server/mount_space.h"
#include "tests/server/nfs_names.h"
#include "tests/unit/runner.h"
#include "vfs/posix/posix.h"

#define OTHER	FUSE_RIGHTS_OTHER

static char state[64], exports_text[1024];
static struct harness_config config = {
	.backend = &posix_vfs_ops, .state_dir = state, .exports = exports_text,
};

static const int users[] = { 0, FUSE_RIGHTS_USER, OTHER };
enum how { READS, WRITES, LISTS, READS_LINK, LOCKS };

static const struct {
	const char *name;
	enum how how;
} tries[] = {
	{ "own", READS }, { "group", READS }, { "all", READS },
	{ "own", WRITES }, { "group", WRITES }, { "all", WRITES },
	{ "dir", LISTS }, { "link", READS_LINK },
	{ "own", LOCKS }, { "group", LOCKS }, { "all", LOCKS },
	{ "closed", READS }, { "closed", WRITES }, { "closed", LOCKS },
};

/* Runs @commands in the test's directory; false: one failed. */
static bool run(const char *commands)
{
	char text[1024];

	snprintf(text, sizeof(text), "cd %s && { %s; } >/dev/null 2>&1",
		 space_base, commands);
	return system(text) == 0;
}

/* ---- the types: each is mounted at "e" */

static bool mount_fuse(const char *options)
{
	return fuse_rights_mount(space_at(""), options) == 0;
}

static bool mount_fuse_open(void)
{
	return mount_fuse("allow_other");
}

static bool mount_fuse_modes(void)
{
	return mount_fuse("allow_other,default_permissions");
}

static bool mount_fuse_one_user(void)
{
	return mount_fuse("");
}

static bool mount_tmpfs(void)
{
	return run("mount -t tmpfs none e");
}

static bool mount_ramfs(void)
{
	return run("mount -t ramfs none e");
}

static bool mount_ext4(void)
{
	return run("truncate -s 16M disk && mkfs.ext4 -qF disk && "
		   "mount -o loop disk e");
}

static bool mount_xfs(void)
{
	return run("truncate -s 320M disk && mkfs.xfs -qf disk && "
		   "mount -o loop disk e");
}

static bool mount_btrfs(void)
{
	return run("truncate -s 120M disk && mkfs.btrfs -qf disk && "
		   "mount -o loop disk e");
}

static bool mount_overlay(void)
{
	return run("mkdir low up work && mount -t overlay none "
		   "-o lowerdir=low,upperdir=up,workdir=work e");
}

static bool mount_overlay_of_fuse(void)
{
	char low[128];

	if (!run("mkdir low up work"))
		return false;
	snprintf(low, sizeof(low), "%s/low", space_base);
	/* Its numbers of files are unique only with xino. */
	return fuse_rights_mount(low, "allow_other") == 0 &&
	       run("mount -t overlay none "
		   "-o xino=on,lowerdir=low,upperdir=up,workdir=work e");
}

static const struct type {
	const char *name;
	bool (*mount)(void);
	bool has_files;			/* from the start */
} types[] = {
	{ "tmpfs", mount_tmpfs, false },
	{ "ramfs", mount_ramfs, false },
	{ "ext4", mount_ext4, false },
	{ "xfs", mount_xfs, false },
	{ "btrfs", mount_btrfs, false },
	{ "overlay", mount_overlay, false },
	{ "overlay of fuse", mount_overlay_of_fuse, true },
	{ "fuse that decides at open", mount_fuse_open, true },
	{ "fuse with default_permissions", mount_fuse_modes, true },
	{ "fuse without allow_other", mount_fuse_one_user, true },
};

static bool make_files(void)
{
	return run("cd e && chmod 755 . && mkdir dir && ln -s all link && "
		   "for f in own group all closed; do echo data > $f; done && "
		   "chown 1001 own dir && chgrp 100 group && chmod 600 own && "
		   "chown 1002 closed && chmod 600 closed && "
		   "chmod 640 group && chmod 666 all && chmod 777 dir");
}

static void setup(void)
{
	snprintf(state, sizeof(state), "%s/state", space_base);
	snprintf(exports_text, sizeof(exports_text),
		 "posix:%s/e 127.0.0.1(rw,insecure,no_root_squash)\n"
		 "mem:/mem 127.0.0.1(rw,insecure)\n", space_base);
	run("umount -l e; umount -l low; rm -rf e low up work disk state");
	ck_assert(run("chmod 755 . && mkdir state e"));
}

static void teardown(void)
{
	run("umount -l e; umount -l low; rm -rf e low up work disk state");
}

/* ---- permitted operations */

/* 0 or the errno of a local process that is @uid. */
static int try_locally(int uid, const char *name, enum how how)
{
	char text[8];
	int status, fd = 0;
	pid_t pid = fork();
	gid_t gid;

	ck_assert_int_ge(pid, 0);
	if (pid == 0) {
		/* As nfs_client_open() has them. */
		gid = uid ? FUSE_RIGHTS_GROUP : 0;
		if (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 ||
		    setresuid(uid, uid, uid) < 0)
			_exit(255);
		if (how == READS_LINK)
			fd = (int)readlink(space_at(name), text, sizeof(text));
		else
			fd = open(space_at(name), how == WRITES ? O_WRONLY :
				  how == LISTS ? O_RDONLY | O_DIRECTORY :
				  O_RDONLY);
		_exit(fd < 0 ? errno : 0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) != 255);
	return WEXITSTATUS(status);
}

static int read_as(struct nfs_client *c, nfs_fh3 fh)
{
	READ3args a = { .file = fh, .count = 1 };
	READ3res r;

	nfs_call(c, read, &a, &r);
	return r.status;
}

static int write_as(struct nfs_client *c, nfs_fh3 fh)
{
	WRITE3args a = { .file = fh, .count = 1, .stable = UNSTABLE,
			 .data = { 1, (char *)"d" } };
	WRITE3res r;

	nfs_call(c, write, &a, &r);
	return r.status;
}

static int list_as(struct nfs_client *c, nfs_fh3 fh)
{
	READDIR3args a = { .dir = fh, .count = 4096 };
	READDIR3res r;

	nfs_call(c, readdir, &a, &r);
	return r.status;
}

static int read_link_as(struct nfs_client *c, nfs_fh3 fh)
{
	READLINK3args a = { .symlink = fh };
	READLINK3res r;

	nfs_call(c, readlink, &a, &r);
	return r.status;
}

/* A shared lock. */
static int lock_as(int uid, nfs_fh3 fh)
{
	struct NLM4_LOCKargs a = { .lock = {
		.caller_name = (char *)"c", .oh = (char *)"o", .svid = 1,
		.fh = { { fh.data.data_len, fh.data.data_val } },
		.l_len = 1,
	} };
	struct nfs_client c;
	NLM4_LOCKres r;

	nfs_client_open(&c, srv.port, NLM_PROGRAM, NLM_V4, uid);
	ck_assert_int_eq(nfs_try(&c, rpc_nlm4_lock_async, &a, &r),
			 RPC_STATUS_SUCCESS);
	nfs_client_close(&c);
	return r.status == NLM4_GRANTED ? NFS3_OK : NFS3ERR_ACCES;
}

static int try_remotely(struct nfs_client *c, int uid, nfs_fh3 fh,
			enum how how)
{
	if (how == LOCKS)
		return lock_as(uid, fh);
	return how == READS ? read_as(c, fh) : how == WRITES ? write_as(c, fh) :
	       how == LISTS ? list_as(c, fh) : read_link_as(c, fh);
}

static void check_user(const struct type *t, int uid)
{
	struct nfs_client c;
	int local, remote;
	nfs_fh3 fh;

	nfs_client_open(&c, srv.port, NFS_PROGRAM, NFS_V3, uid);
	for (unsigned i = 0; i < ARRAY_SIZE(tries); i++) {
		local = try_locally(uid, tries[i].name, tries[i].how);
		remote = try_lookup(top, tries[i].name, &fh);
		if (remote == NFS3_OK)
			remote = try_remotely(&c, uid, fh, tries[i].how);
		ck_assert_msg(remote == (local ? NFS3ERR_ACCES : NFS3_OK),
			      "%s: user %d, %s of %s: %d here, status %d there",
			      t->name, uid, (const char *[]){ "READ", "WRITE",
			      "READDIR", "READLINK", "LOCK" }[tries[i].how],
			      tries[i].name, local, remote);
	}
	nfs_client_close(&c);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(users_may_do_what_they_may_locally, 0, ARRAY_SIZE(types))
{
	const struct type *t = types + _i;

	if (!t->mount() || (!t->has_files && !make_files())) {
		printf("skipped: no %s can be mounted here\n", t->name);
		return;
	}
	space_serve(&config);
	/* The second time the server has the files open for some of them. */
	for (int round = 0; round < 2; round++)
		for (unsigned i = 0; i < ARRAY_SIZE(users); i++)
			check_user(t, users[i]);
	nfs_teardown();
}

/* The handle of a mount point, whose attributes can be missing. */
static nfs_fh3 mount_point(const char *name)
{
	LOOKUP3args a = { .what = { top, (char *)(uintptr_t)name } };
	LOOKUP3res r;

	nfs_call(&root, lookup, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	return r.LOOKUP3res_u.resok.object;
}

/* Clients would believe the owners and set-id bits that this user chose. */
TEST(a_users_fuse_file_system_is_entered_only_by_its_entry)
{
	char fuse[128], rules[128];

	snprintf(fuse, sizeof(fuse), "%s", space_at("m"));
	snprintf(rules, sizeof(rules), "127.0.0.1(rw,insecure,crossmnt)");
	ck_assert(run("mkdir e/m"));
	if (fuse_rights_mount(fuse, "user_id=1001,group_id=100,allow_other")) {
		printf("skipped: no FUSE file system can be mounted here\n");
		return;
	}
	for (int named = 0; named < 2; named++) {
		snprintf(exports_text, sizeof(exports_text),
			 "posix:%s/e %s\nmem:/mem %s\n%s%s%s%s\n",
			 space_base, rules, rules, named ? "posix:" : "",
			 named ? fuse : "", named ? " " : "",
			 named ? rules : "");
		space_serve(&config);
		ck_assert_int_eq(nfs_exists(mount_point("m"), "own"),
				 named ? NFS3_OK : NFS3ERR_NOENT);
		nfs_teardown();
	}
	ck_assert(run("umount -l e/m"));
}

/* It has left the list of mounts, which says whose it is. */
TEST(a_file_system_that_is_unmounted_meanwhile_is_not_entered)
{
	static const struct posix_options options;
	const struct vfs_config below = {
		.path = ".", .no_links = true, .options = &options,
	};
	struct vfs_fs *fs;
	int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);

	ck_assert(run("mkdir e/m"));
	if (fuse_rights_mount(space_at("m"),
			      "user_id=1001,group_id=100,allow_other")) {
		printf("skipped: no FUSE file system can be mounted here\n");
		return;
	}
	ck_assert_int_eq(chdir(space_at("m")), 0);
	ck_assert_int_eq(umount2(space_at("m"), MNT_DETACH), 0);
	ck_assert_int_eq(posix_vfs_ops.mount(&below, &fs), -ESTALE);
	ck_assert_int_eq(fchdir(here), 0);
	close(here);
}

int main(void)
{
	if (geteuid() != 0) {
		printf("skipped: only root can act as others\n");
		return 77;
	}
	return space_run_tests();
}
