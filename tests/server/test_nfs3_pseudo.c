/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pseudo file systems (procfs and its kin) below an export with crossmnt, and
 * as exports: they are not served to anyone.
 *
 * Each type that can be mounted here is tried.  Where a user name space is not
 * allowed to mount it, the machine's is bound there.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/server/mount_space.h"
#include "tests/server/nfs_names.h"
#include "tests/unit/runner.h"
#include "vfs/backends.h"
#include "vfs/helper.h"
#include "vfs/posix/mounts.h"

static char state[64], exports_text[1024];
static struct harness_config config = {
	.backend = &posix_vfs_ops, .state_dir = state, .exports = exports_text,
};
static pid_t helper;

static const struct view {
	const char *type;
	const char *usual;		/* where machines have it */
	const char *inside;		/* a name in it, or NULL */
} views[] = {
	{ "proc", "/proc", "self" },
	{ "sysfs", "/sys", "kernel" },
	{ "cgroup2", "/sys/fs/cgroup", "cgroup.procs" },
	{ "cgroup", "/sys/fs/cgroup/pids", NULL },
	{ "debugfs", "/sys/kernel/debug", NULL },
	{ "tracefs", "/sys/kernel/tracing", "trace" },
	{ "securityfs", "/sys/kernel/security", NULL },
	{ "configfs", "/sys/kernel/config", NULL },
	{ "devtmpfs", "/dev", "null" },
	{ "devpts", "/dev/pts", "ptmx" },
	{ "mqueue", "/dev/mqueue", NULL },
	{ "hugetlbfs", "/dev/hugepages", NULL },
	{ "bpf", "/sys/fs/bpf", NULL },
	{ "pstore", "/sys/fs/pstore", NULL },
	{ "efivarfs", "/sys/firmware/efi/efivars", NULL },
	{ "fusectl", "/sys/fs/fuse/connections", NULL },
	{ "binfmt_misc", "/proc/sys/fs/binfmt_misc", "register" },
	{ "rpc_pipefs", "/var/lib/nfs/rpc_pipefs", NULL },
	{ "nfsd", "/proc/fs/nfsd", "threads" },
	{ "selinuxfs", "/sys/fs/selinux", NULL },
};

static void run(const char *commands)
{
	char text[512];

	snprintf(text, sizeof(text), "cd %s && %s", space_base, commands);
	ck_assert_int_eq(system(text), 0);
}

/* Finds the mount at @path by its device. */
static bool is_type(const char *path, const char *type)
{
	struct posix_mounted m;
	struct stat st;

	return stat(path, &st) == 0 && posix_mounted_by_dev(st.st_dev, &m) &&
	       strcmp(m.type, type) == 0;
}

static bool mount_view(const struct view *v, const char *path)
{
	if (mount("none", path, v->type, 0, NULL) == 0 ||
	    (is_type(v->usual, v->type) &&
	     mount(v->usual, path, NULL, MS_BIND | MS_REC, NULL) == 0))
		return true;
	printf("skipped: no %s can be mounted here\n", v->type);
	return false;
}

static void bind_at(const char *from, const char *to)
{
	ck_assert_int_eq(mount(from, space_at(to), NULL, MS_BIND | MS_REC,
			       NULL), 0);
}

static void begin(const char *options, const char *more)
{
	snprintf(exports_text, sizeof(exports_text),
		 "posix:%s/e 127.0.0.1(rw,insecure,no_root_squash,crossmnt%s)\n"
		 "mem:/mem 127.0.0.1(rw,insecure)\n%s",
		 space_base, options, more);
	space_serve(&config);
}

static void setup(void)
{
	snprintf(state, sizeof(state), "%s/state", space_base);
	run("{ umount -l e; rm -rf e state; } 2>/dev/null; "
	    "mkdir state e && mount -t tmpfs none e && cd e && "
	    "mkdir -p m/low && echo low > m/f && echo low > f");
	helper = 0;
	helper = space_helper();
}

static void teardown(void)
{
	nfs_teardown();
	helper_use(HELPER_BARE, -1, 0);
	ck_assert_int_eq(waitpid(helper, NULL, 0), helper);
	run("umount -l e && rm -r e state");
}

/* True if @m is the covered directory itself, or the empty one where the server
 * can't show that. */
static bool is_below(nfs_fh3 m)
{
	return nfs_exists(m, "low") == NFS3_OK ||
	       ((nfs_attr(m).mode & 07777) == 0555 &&
		try_mkdir(&root, m, "new") == NFS3ERR_ACCES);
}

static void check_is_below(const struct view *v)
{
	nfs_fh3 m;

	ck_assert_int_eq(try_lookup(top, "m", &m), NFS3_OK);
	ck_assert_uint_eq(nfs_attr(m).fsid, nfs_attr(top).fsid);
	ck_assert_msg(is_below(m), "%s was entered", v->type);
	if (v->inside)
		ck_assert_int_eq(nfs_exists(m, v->inside), NFS3ERR_NOENT);
	ck_assert_int_eq(nfs_mnt(space_at("m"), &m), MNT3_OK);
	ck_assert(is_below(m));
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(crossmnt_passes_over_pseudo_file_systems, 0, ARRAY_SIZE(views))
{
	const struct view *v = views + _i;

	begin("", "");
	if (!mount_view(v, space_at("m")))
		return;
	check_is_below(v);
	/* And a mount from before the server began. */
	nfs_teardown();
	begin("", "");
	check_is_below(v);
}

/* The children that a server knew by their path are opened in the same way. */
TEST(handles_of_a_mount_that_procfs_replaced_are_stale)
{
	nfs_fh3 child;

	ck_assert_int_eq(mount("none", space_at("m"), "tmpfs", 0, NULL), 0);
	begin("", "");
	ck_assert_int_eq(try_lookup(top, "m", &child), NFS3_OK);
	child = space_keep(child);
	nfs_teardown();
	ck_assert_int_eq(umount(space_at("m")), 0);
	bind_at("/proc", "m");
	begin("", "");
	ck_assert_int_eq(space_status(child), NFS3ERR_STALE);
	check_is_below(views);
}

TEST(a_part_of_procfs_is_passed_over_too)
{
	nfs_fh3 m;

	bind_at("/proc/self", "m");
	begin("", "");
	check_is_below(views);
	ck_assert_int_eq(try_lookup(top, "m", &m), NFS3_OK);
	ck_assert_int_eq(nfs_exists(m, "mem"), NFS3ERR_NOENT);
	ck_assert_int_eq(nfs_exists(m, "task"), NFS3ERR_NOENT);
}

/* READ's status, or the first byte. */
static int first_byte(nfs_fh3 f)
{
	READ3args a = { .file = f, .count = 1 };
	READ3res r;

	nfs_call(&root, read, &a, &r);
	return r.status ? -(int)r.status :
			  r.READ3res_u.resok.data.data_val[0];
}

TEST(a_file_of_procfs_on_a_file_of_the_export_is_not_opened)
{
	static const char *const options[] = { "", ",nohide" };
	nfs_fh3 f;
	int got;

	for (unsigned i = 0; i < ARRAY_SIZE(options); i++) {
		bind_at("/proc/self/environ", "f");
		begin(options[i], "");
		got = try_lookup(top, "f", &f);
		ck_assert(got == NFS3ERR_ACCES ||
			  (got == NFS3_OK && first_byte(f) == 'l'));
		ck_assert_int_eq(umount(space_at("f")), 0);
		nfs_teardown();
	}
	/* Looked up before: the file below stays the same. */
	begin("", "");
	ck_assert_int_eq(try_lookup(top, "f", &f), NFS3_OK);
	f = space_keep(f);
	bind_at("/proc/self/environ", "f");
	ck_assert_int_eq(first_byte(f), 'l');
}

/* The server keeps its directory open. */
TEST(procfs_over_the_exported_directory_changes_nothing)
{
	nfs_fh3 f;

	begin("", "");
	bind_at("/proc", "");
	ck_assert_int_eq(try_lookup(top, "f", &f), NFS3_OK);
	ck_assert_int_eq(nfs_exists(top, "self"), NFS3ERR_NOENT);
	nfs_teardown();
	ck_assert_int_eq(umount2(space_at(""), MNT_DETACH), 0);
	begin("", "");
}

/* Such as tmpfs at /dev/shm. */
TEST(no_way_leads_through_a_pseudo_file_system)
{
	nfs_fh3 m;

	if (!mount_view(views + 8, space_at("m"))) {	/* devtmpfs */
		begin("", "");
		return;
	}
	begin("", "");
	check_is_below(views + 8);
	ck_assert_int_eq(try_lookup(top, "m", &m), NFS3_OK);
	ck_assert_int_eq(nfs_exists(m, "shm"), NFS3ERR_NOENT);
}

/* Tries to export @path; the reason is in *@why. */
static int export_it(const char *path, char **why)
{
	char options[256] = { 0 };
	struct vfs_config c = { .path = path, .options = options, .why = why };
	struct vfs_fs *fs;
	int err;

	*why = NULL;
	ck_assert_uint_le(posix_vfs_ops.options_size, sizeof(options));
	err = posix_vfs_ops.mount(&c, &fs);
	if (err == 0)
		posix_vfs_ops.unmount(fs);
	return err;
}

static void check_refused(const char *path, const char *type)
{
	char *why;

	ck_assert_msg(export_it(path, &why) < 0, "%s is exported", path);
	ck_assert_ptr_nonnull(why);
	ck_assert_msg(strstr(why, type) && strstr(why, "kernel"), "%s", why);
	free(why);
}

TEST_LOOP(pseudo_file_systems_are_no_exports, 0, ARRAY_SIZE(views))
{
	begin("", "");
	if (mount_view(views + _i, space_at("m")))
		check_refused(space_at("m"), views[_i].type);
}

TEST(nor_is_a_directory_in_it)
{
	char *why;

	begin("", "");
	check_refused("/proc/self", "proc");
	check_refused("/proc/sys/kernel", "proc");
	check_refused("/proc/self/root/proc/self/fd", "proc");
	ck_assert_int_eq(export_it(space_at(""), &why), 0);
}

int main(void)
{
	return space_run_tests();
}
