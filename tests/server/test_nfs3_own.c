/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server's state directory below an export: no name, mount or handle leads
 * there.
 *
 * The export is "e", the state directory "e/state".  Needs a mount name space:
 * as root, or by a user name space.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/errand.h"
#include "tests/server/fuse_rights.h"
#include "tests/server/mount_space.h"
#include "tests/server/nfs_names.h"
#include "tests/unit/runner.h"
#include "vfs/backends.h"
#include "vfs/posix/own.h"

#define KEY	"filehandle.key"
#define WAYS	2			/* to open handles */

static char state[64], exports_text[512];
static struct harness_config config = {
	.backend = &posix_vfs_ops, .state_dir = state, .exports = exports_text,
};

static nfs_fh3 in_d(void)
{
	nfs_fh3 fh;

	ck_assert_int_eq(try_lookup(top, "d", &fh), NFS3_OK);
	return space_keep(fh);
}

/* A kernel can lack overlayfs, or refuse it to users. */
static bool mounts_overlay(void)
{
	char text[512];

	snprintf(text, sizeof(text), "cd %s && O=lowerdir=low,upperdir=up/u,"
		 "workdir=up/w,xino=off && { mount -t overlay none -o $O e || "
		 "mount -t overlay none -o $O,userxattr e; } 2>/dev/null",
		 space_base);
	return system(text) == 0;
}

static void run(const char *commands)
{
	char text[512];

	snprintf(text, sizeof(text), "cd %s && %s", space_base, commands);
	ck_assert_int_eq(system(text), 0);
}

static void begin(int way, const char *state_at)
{
	snprintf(state, sizeof(state), "%s/%s", space_base, state_at);
	snprintf(exports_text, sizeof(exports_text),
		 "posix%s:%s/e 127.0.0.1(rw,insecure,no_root_squash,crossmnt)\n"
		 "mem:/mem 127.0.0.1(rw,insecure)\n",
		 way ? ",table" : "", space_base);
	space_serve(&config);
}

static void setup(void)
{
	run("{ umount -l e; rm -rf e state; } 2>/dev/null; "
	    "mkdir state e && mount -t tmpfs none e && "
	    "mkdir e/state e/state/sub e/m e/d && echo abc > e/f");
}

static void teardown(void)
{
	nfs_teardown();
	run("umount -l e && rm -r e state");
}

/* Of the entry @name in a READDIRPLUS of the top: has it a handle or
 * attributes?  -1: it is not listed. */
static int shows_more_than_its_name(const char *name)
{
	READDIRPLUS3args a = { .dir = top, .dircount = 8192,
			       .maxcount = 32768 };
	READDIRPLUS3res r;

	nfs_call(&root, readdirplus, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	for (entryplus3 *e = r.READDIRPLUS3res_u.resok.reply.entries; e;
	     e = e->nextentry)
		if (strcmp(e->name, name) == 0)
			return e->name_handle.handle_follows ||
			       e->name_attributes.attributes_follow;
	return -1;
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(no_name_leads_to_the_state_directory, 0, WAYS)
{
	nfs_fh3 fh;

	begin(_i, "e/state");
	ck_assert_int_eq(access(space_at("state/" KEY), F_OK), 0);
	ck_assert_int_eq(nfs_exists(top, "state"), NFS3ERR_ACCES);
	ck_assert_int_eq(nfs_mnt(space_at("state"), &fh), MNT3ERR_ACCES);
	ck_assert_int_eq(nfs_mnt(space_at("state/sub"), &fh), MNT3ERR_ACCES);
	ck_assert_int_eq(try_mkdir(&root, top, "state"), NFS3ERR_EXIST);
	ck_assert_int_eq(try_rmdir(top, "state"), NFS3ERR_NOTEMPTY);
	/* Once a page has it, a look-up finds as little as before. */
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(shows_more_than_its_name("state"), 0);
		ck_assert_int_eq(shows_more_than_its_name("f"), 1);
		ck_assert_int_eq(nfs_exists(top, "state"), NFS3ERR_ACCES);
		EVENTUALLY(nfs_exists(top, "f") == NFS3_OK);
	}
}

TEST_LOOP(the_state_directory_is_not_moved, 0, WAYS)
{
	begin(_i, "e/state");
	ck_assert_int_eq(try_rename(top, "state", top, "elsewhere"),
			 NFS3ERR_ACCES);
	/* A local process can move it, and it stays protected. */
	run("mv e/state e/elsewhere");
	ck_assert_int_eq(nfs_exists(top, "elsewhere"), NFS3ERR_ACCES);
	ck_assert_int_eq(shows_more_than_its_name("elsewhere"), 0);
}

/* While the server runs. */
TEST_LOOP(a_copy_that_is_put_in_its_place_is_refused, 0, WAYS)
{
	nfs_fh3 m;

	begin(_i, "e/state");
	run("cp -a e/state e/copy && mv e/state e/old && mv e/copy e/state");
	ck_assert_int_eq(nfs_exists(top, "state"), NFS3ERR_ACCES);
	ck_assert_int_eq(shows_more_than_its_name("state"), 0);
	ck_assert_int_eq(try_rename(top, "state", top, "x"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rmdir(top, "state"), NFS3ERR_NOTEMPTY);
	/* The original has the same key. */
	ck_assert_int_eq(nfs_exists(top, "old"), NFS3ERR_ACCES);
	ck_assert_int_eq(shows_more_than_its_name("old"), 0);
	ck_assert_int_eq(try_rename(top, "old", top, "x"), NFS3ERR_ACCES);
	ck_assert_int_eq(mount(space_at("state"), space_at("m"), NULL, MS_BIND,
			       NULL), 0);
	ck_assert_int_eq(try_lookup(top, "m", &m), NFS3_OK);
	ck_assert_int_eq(nfs_exists(m, KEY), NFS3ERR_NOENT);
	ck_assert_int_eq(umount(space_at("m")), 0);
	/* Nor can a client make another where it is missing. */
	run("rm -r e/state");
	ck_assert_int_eq(try_mkdir(&root, top, "state"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_symlink(top, "state", "d"), NFS3ERR_ACCES);
	run("mv e/old e/state");
}

TEST_LOOP(nor_is_a_directory_around_it, 0, WAYS)
{
	run("mkdir -p e/a/b/state");
	begin(_i, "e/a/b/state");
	ck_assert_int_eq(try_rename(top, "a", top, "c"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "d", top, "a"), NFS3ERR_NOTEMPTY);
	ck_assert_int_eq(try_rename(top, "d", top, "c"), NFS3_OK);
	ck_assert_int_eq(access(space_at("a/b/state/" KEY), F_OK), 0);
}

/* The kernel only refuses to move the place where that is mounted. */
TEST_LOOP(nor_is_one_around_the_file_system_that_it_is, 0, WAYS)
{
	run("mkdir -p e/a/b/state && mount -t tmpfs none e/a/b/state");
	begin(_i, "e/a/b/state");
	ck_assert_int_eq(try_rename(top, "a", top, "c"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "d", top, "c"), NFS3_OK);
	ck_assert_int_eq(access(space_at("a/b/state/" KEY), F_OK), 0);
}

TEST_LOOP(another_name_of_a_file_in_it_is_refused, 0, WAYS)
{
	begin(_i, "e/state");
	run("ln e/state/" KEY " e/key && ln e/f e/g");
	ck_assert_int_eq(nfs_exists(top, "key"), NFS3ERR_ACCES);
	ck_assert_int_eq(shows_more_than_its_name("key"), 0);
	/* As was made since. */
	run("echo new > e/state/new && ln e/state/new e/new");
	ck_assert_int_eq(nfs_exists(top, "new"), NFS3ERR_ACCES);
	ck_assert_int_eq(nfs_exists(top, "g"), NFS3_OK);
}

/* The server can rely on its ctime then. */
static bool was_changed_long_ago(const char *path)
{
	struct timespec now;
	struct stat st;

	ck_assert_int_eq(stat(space_at(path), &st), 0);
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return (now.tv_sec - st.st_ctim.tv_sec) * 1000 +
	       (now.tv_nsec - st.st_ctim.tv_nsec) / 1000000 > 100;
}

TEST_LOOP(a_file_made_later_in_a_directory_in_it_is_refused, 0, WAYS)
{
	begin(_i, "e/state");
	run("ln e/state/" KEY " e/key");
	EVENTUALLY(was_changed_long_ago("state"));
	ck_assert_int_eq(nfs_exists(top, "key"), NFS3ERR_ACCES);
	run("echo new > e/state/sub/new && ln e/state/sub/new e/deep");
	ck_assert_int_eq(nfs_exists(top, "deep"), NFS3ERR_ACCES);
	ck_assert_int_eq(shows_more_than_its_name("deep"), 0);
	run("mkdir e/state/sub/sub");
	EVENTUALLY(was_changed_long_ago("state/sub"));
	ck_assert_int_eq(nfs_exists(top, "key"), NFS3ERR_ACCES);
	run("echo new > e/state/sub/sub/new && "
	    "ln e/state/sub/sub/new e/deeper");
	ck_assert_int_eq(nfs_exists(top, "deeper"), NFS3ERR_ACCES);
}

TEST_LOOP(a_mount_of_the_state_directory_is_not_entered, 0, WAYS)
{
	static const char *const parts[] = { "state", "state/sub" };
	nfs_fh3 m;

	begin(_i, "e/state");
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(mount(space_at(parts[i]), space_at("m"), NULL,
				       MS_BIND, NULL), 0);
		ck_assert_int_eq(try_lookup(top, "m", &m), NFS3_OK);
		ck_assert_int_eq(nfs_exists(m, KEY), NFS3ERR_NOENT);
		ck_assert_uint_eq(nfs_attr(m).fsid, nfs_attr(top).fsid);
		ck_assert_int_eq(umount(space_at("m")), 0);
	}
	/* Nor a mount around it, by way of which it would have a name. */
	ck_assert_int_eq(mount(space_at(""), space_at("d"), NULL, MS_BIND,
			       NULL), 0);
	ck_assert_int_eq(try_lookup(top, "d", &m), NFS3_OK);
	ck_assert_int_eq(nfs_exists(m, "f"), NFS3_OK);
	ck_assert_int_eq(nfs_exists(m, "state"), NFS3ERR_ACCES);
	nfs_teardown();
	ck_assert_int_eq(umount2(space_at("d"), MNT_DETACH), 0);
	begin(_i, "e/state");
}

static bool is_refused(nfs_fh3 fh)
{
	int status = space_status(fh);

	return status == NFS3ERR_STALE || status == NFS3ERR_ACCES;
}

/* From a time when the directory was an ordinary one. */
TEST_LOOP(old_handles_do_not_open_it, 0, WAYS)
{
	nfs_fh3 dir, sub, key, f;

	begin(_i, "state");
	run("cp -p state/" KEY " e/state/");
	ck_assert_int_eq(try_lookup(top, "f", &f), NFS3_OK);
	f = space_keep(f);
	ck_assert_int_eq(try_lookup(top, "state", &dir), NFS3_OK);
	dir = space_keep(dir);
	ck_assert_int_eq(try_lookup(dir, "sub", &sub), NFS3_OK);
	sub = space_keep(sub);
	ck_assert_int_eq(try_lookup(dir, KEY, &key), NFS3_OK);
	key = space_keep(key);
	nfs_teardown();
	run("cp -p state/* e/state/");
	begin(_i, "e/state");
	ck_assert(is_refused(dir));
	ck_assert(is_refused(sub));
	ck_assert(is_refused(key));
	ck_assert_int_eq(space_status(f), NFS3_OK);
}

/* The device numbers of files there differ from their directories'. */
TEST_LOOP(nor_does_another_name_of_one_in_an_overlay_of_two, 0, WAYS)
{
	run("umount -l e && mkdir -p low up && "
	    "{ mountpoint -q up || mount -t tmpfs none up; } && "
	    "rm -rf up/u up/w && mkdir up/u up/w");
	if (!mounts_overlay()) {
		setup();		/* for the teardown */
		begin(_i, "e/state");
		return;
	}
	run("mkdir -p e/state e/d");
	begin(_i, "e/state");
	run("ln e/state/" KEY " e/d/key && echo > e/d/f && ln e/d/f e/d/g");
	ck_assert_int_eq(nfs_exists(in_d(), "key"), NFS3ERR_ACCES);
	ck_assert_int_eq(nfs_exists(in_d(), "g"), NFS3_OK);
}

static void check_refused(const char *path)
{
	char options[256] = { 0 }, *why = NULL;
	struct vfs_config c = { .path = path, .options = options, .why = &why,
				.state_dir = state };
	struct vfs_fs *fs;

	ck_assert_int_lt(posix_vfs_ops.mount(&c, &fs), 0);
	ck_assert_ptr_nonnull(why);
	ck_assert_ptr_nonnull(strstr(why, "state directory"));
	free(why);
}

TEST(the_state_directory_is_no_export)
{
	begin(0, "e/state");
	check_refused(space_at("state"));
	check_refused(space_at("state/sub"));
	ck_assert_int_eq(mount(space_at("state"), space_at("m"), NULL, MS_BIND,
			       NULL), 0);
	check_refused(space_at("m"));
	check_refused(space_at("m/sub"));
	ck_assert_int_eq(mount(space_at("state/sub"), space_at("d"), NULL,
			       MS_BIND, NULL), 0);
	check_refused(space_at("d"));
}

/* ---- disks that hang */

/* Mounts a file system that answers nothing until the descriptor is closed. */
static int mount_silent(const char *at)
{
	char options[80];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (fd >= 0 && mount("test", at, "fuse", 0, options) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

TEST_LOOP(a_path_on_a_disk_that_hangs_holds_no_other_export, 0, WAYS)
{
	char hung[64];
	int fd;

	snprintf(hung, sizeof(hung), "%s/hung", space_base);
	run("mkdir -p hung/state");
	begin(_i, "hung/state");
	fd = mount_silent(hung);
	if (fd < 0) {
		printf("# no FUSE here\n");
	} else {
		/* That is how the server's is called. */
		ck_assert_int_eq(nfs_exists(top, "state"), NFS3_OK);
		ck_assert_int_eq(try_rmdir(in_d(), "state"), NFS3ERR_NOENT);
		ck_assert_int_eq(try_mkdir(&root, in_d(), "hung"), NFS3_OK);
		close(fd);
		ck_assert_int_eq(umount2(hung, MNT_DETACH), 0);
	}
	run("rm -r hung");
}

struct asked {
	struct posix_own *own;
	struct stat	 st;
	_Atomic bool	 begun, done;
};

static void *ask(void *arg)
{
	struct asked *a = arg;

	a->begun = true;
	posix_own_has(a->own, &a->st);
	a->done = true;
	return NULL;
}

/* The process that serves the FUSE file system: the only child. */
static pid_t only_child(void)
{
	FILE *f = fopen("/proc/thread-self/children", "re");
	int pid = 0;

	ck_assert(f && fscanf(f, "%d", &pid) == 1);
	fclose(f);
	return pid;
}

/* A path of the server's is that of the disk, in an export. */
TEST_LOOP(a_disk_that_hangs_in_an_export_holds_no_other_file, 0, WAYS)
{
	struct posix_own_path *path;

	run("mkdir e/hung && ln e/f e/g");
	begin(_i, "state");
	if (fuse_rights_mount(space_at("hung"), "") < 0)
		return;
	ck_assert_int_eq(posix_own_path_get(space_at("hung"), &path), 0);
	kill(only_child(), SIGSTOP);
	/* Files with several names are compared by number, */
	ck_assert_int_eq(nfs_exists(top, "g"), NFS3_OK);
	/* and names that differ in case by what has them. */
	ck_assert_int_eq(try_mkdir(&root, top, "HUNG"), NFS3_OK);
	ck_assert_int_eq(try_rmdir(top, "HUNG"), NFS3_OK);
	kill(only_child(), SIGCONT);
	posix_own_path_put(path);
	ck_assert_int_eq(umount2(space_at("hung"), MNT_DETACH), 0);
}

TEST(a_directory_on_a_disk_that_hangs_holds_no_other_directory)
{
	struct asked a = { 0 };
	struct posix_own *other;
	pthread_t thread;
	char hung[64];
	int fd;

	snprintf(hung, sizeof(hung), "%s/hung", space_base);
	run("mkdir hung");
	begin(0, "state");
	if (fuse_rights_mount(hung, "") == 0) {
		ck_assert_int_eq(posix_own_get(hung, &a.own), 0);
		ck_assert_int_eq(posix_own_get(space_at("d"), &other), 0);
		kill(only_child(), SIGSTOP);
		ck_assert_int_eq(stat(space_at("f"), &a.st), 0);
		pthread_create(&thread, NULL, ask, &a);
		EVENTUALLY(a.begun);
		ck_assert_int_eq(posix_own_has(other, &a.st), 0);
		fd = open(space_at("m"), O_RDONLY | O_CLOEXEC);
		ck_assert(!posix_own_holds(a.own, fd));
		close(fd);
		ck_assert(!a.done);
		kill(only_child(), SIGCONT);
		pthread_join(thread, NULL);
		posix_own_put(other);
		posix_own_put(a.own);
		ck_assert_int_eq(umount2(hung, MNT_DETACH), 0);
	}
	run("rmdir hung");
}

/* A reload calls posix_keep_out(). */
static int keep_out(const char *name)
{
	char path[128];
	const char *paths[] = { path };

	snprintf(path, sizeof(path), "%s", space_at(name));
	return posix_keep_out(paths, 1);
}

/* True if it goes by what it knew of the path. */
static bool tries_to_keep_out(const char *name)
{
	char path[128], *late = NULL;
	const char *paths[] = { path };
	bool is;

	snprintf(path, sizeof(path), "%s", space_at(name));
	ck_assert_int_eq(posix_keep_out_too(paths, 1, &late), 0);
	is = late;
	if (is)
		ck_assert_ptr_eq(strstr(late, path), late);
	free(late);
	return is;
}

TEST(a_reload_while_a_disk_hangs_ends_and_keeps_its_paths)
{
	run("mkdir e/hung");
	begin(0, "state");
	if (fuse_rights_mount(space_at("hung"), "") < 0)
		return;
	ck_assert_int_eq(keep_out("hung/audit"), 0);
	kill(only_child(), SIGSTOP);
	errand_wait_ms = 20;
	ck_assert_int_eq(keep_out("hung/audit"), 0);
	ck_assert_int_eq(keep_out("hung/new"), -ETIMEDOUT);
	/* The next ones know that, and add nothing to the queue. */
	errand_wait_ms = 3600 * 1000;
	ck_assert_int_eq(keep_out("hung/audit"), 0);
	ck_assert_int_eq(keep_out("hung/new"), -ETIMEDOUT);
	ck_assert_int_eq(try_rename(top, "hung", top, "x"), NFS3ERR_ACCES);
	/* A reload that drops the path and fails for another reason. */
	ck_assert(!tries_to_keep_out("f"));
	ck_assert(!tries_to_keep_out("g"));
	ck_assert(tries_to_keep_out("hung/audit"));
	ck_assert_int_eq(try_rename(top, "hung", top, "x"), NFS3ERR_ACCES);
	ck_assert_int_eq(keep_out("hung/audit"), 0);
	ck_assert_int_eq(try_rename(top, "hung", top, "x"), NFS3ERR_ACCES);
	kill(only_child(), SIGCONT);
	EVENTUALLY(keep_out("hung/new") == 0);
	ck_assert_int_eq(keep_out("f"), 0);
	ck_assert_int_eq(posix_keep_out(NULL, 0), 0);
	ck_assert_int_eq(umount2(space_at("hung"), MNT_DETACH), 0);
}

int main(void)
{
	return space_run_tests();
}
