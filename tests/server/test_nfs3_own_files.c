/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files of the server in an exported tree: clients neither see nor change them,
 * nor the directories and links that lead to them.
 *
 * The export is "e".  Needs a mount name space, as test_nfs3_own does.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/server/mount_space.h"
#include "tests/server/nfs_names.h"
#include "tests/unit/runner.h"
#include "vfs/backends.h"

#define WAYS	2			/* to open handles */

static char state[64], exports_text[512];
static struct harness_config config = {
	.backend = &posix_vfs_ops, .state_dir = state, .exports = exports_text,
};

static void run(const char *commands)
{
	char text[512];

	snprintf(text, sizeof(text), "cd %s && %s", space_base, commands);
	ck_assert_int_eq(system(text), 0);
}

static void begin(int way)
{
	snprintf(state, sizeof(state), "%s/state", space_base);
	snprintf(exports_text, sizeof(exports_text),
		 "posix%s:%s/e 127.0.0.1(rw,insecure,no_root_squash,crossmnt)\n"
		 "mem:/mem 127.0.0.1(rw,insecure)\n",
		 way ? ",table" : "", space_base);
	space_serve(&config);
}

/* The server's own: "e/run/pid", "e/control", "e/not", which is not there,
 * "e/conf.d", and "e/link/audit". */
static void keep_out(void)
{
	static const char *const names[] = {
		"run/pid", "control", "not", "conf.d", "link/audit",
	};
	char text[ARRAY_SIZE(names)][256];
	const char *paths[ARRAY_SIZE(names)];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(text[i], sizeof(text[i]), "%s", space_at(names[i]));
		paths[i] = text[i];
	}
	ck_assert_int_eq(posix_keep_out(paths, ARRAY_SIZE(paths)), 0);
}

static void setup(void)
{
	run("{ umount -l e; rm -rf e state; } 2>/dev/null; "
	    "mkdir state e && mount -t tmpfs none e && cd e && "
	    "mkdir run conf.d logs d && ln -s logs link && echo 7 > run/pid && "
	    "echo 7 > control && echo a > conf.d/a && echo l > logs/audit && "
	    "echo abc > f");
}

static void teardown(void)
{
	nfs_teardown();
	posix_keep_out(NULL, 0);
	run("umount -l e && rm -r e state");
}

static nfs_fh3 below(nfs_fh3 dir, const char *name)
{
	nfs_fh3 fh;

	ck_assert_int_eq(try_lookup(dir, name, &fh), NFS3_OK);
	return space_keep(fh);
}

static int set_size(nfs_fh3 fh)
{
	SETATTR3args a = { .object = fh };
	SETATTR3res r;

	a.new_attributes.size.set_it = true;
	nfs_call(&root, setattr, &a, &r);
	return r.status;
}

static bool is_refused(nfs_fh3 fh)
{
	int status = space_status(fh);

	return status == NFS3ERR_STALE || status == NFS3ERR_ACCES;
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(no_name_of_them_is_looked_up_or_changed, 0, WAYS)
{
	nfs_fh3 dir;

	begin(_i);
	keep_out();
	dir = below(top, "run");
	ck_assert_int_eq(nfs_exists(dir, "pid"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_remove(&root, dir, "pid"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_create(&root, dir, "pid", UNCHECKED, NULL),
			 NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(dir, "pid", dir, "other"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "f", dir, "pid"), NFS3ERR_ACCES);
	ck_assert_int_eq(nfs_exists(top, "control"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_remove(&root, top, "control"), NFS3ERR_ACCES);
	ck_assert_int_eq(nfs_exists(top, "conf.d"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "conf.d", top, "x"), NFS3ERR_ACCES);
	run("rm e/conf.d/a");
	ck_assert_int_eq(try_rmdir(top, "conf.d"), NFS3ERR_NOTEMPTY);
	ck_assert_int_eq(try_rename(top, "d", top, "conf.d"),
			 NFS3ERR_NOTEMPTY);
	run("grep -qx 7 e/run/pid && grep -qx 7 e/control && "
	    "test -d e/conf.d -a -f e/f");
}

TEST_LOOP(nor_is_one_made_that_is_not_there, 0, WAYS)
{
	nfs_fh3 f;

	begin(_i);
	keep_out();
	f = below(top, "f");
	ck_assert_int_eq(try_create(&root, top, "not", UNCHECKED, NULL),
			 NFS3ERR_ACCES);
	ck_assert_int_eq(try_create(&root, top, "not", GUARDED, NULL),
			 NFS3ERR_ACCES);
	ck_assert_int_eq(try_create(&root, top, "not", EXCLUSIVE, "verifier"),
			 NFS3ERR_ACCES);
	ck_assert_int_eq(try_mkdir(&root, top, "not"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_symlink(top, "not", "f"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_mknod(top, "not", NF3SOCK), NFS3ERR_ACCES);
	ck_assert_int_eq(try_link(f, top, "not"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "f", top, "not"), NFS3ERR_ACCES);
	run("test ! -e e/not -a ! -L e/not");
	/* Alike: without case in the directory, it would be the same. */
	ck_assert_int_eq(try_create(&root, top, "Not", UNCHECKED, NULL),
			 NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "f", top, "NOT"), NFS3ERR_ACCES);
	/* Both there, and not the same. */
	ck_assert_int_eq(try_create(&root, top, "Control", UNCHECKED, NULL),
			 NFS3_OK);
	ck_assert_int_eq(try_mkdir(&root, below(top, "d"), "not"), NFS3_OK);
}

TEST_LOOP(nor_is_a_directory_or_a_link_on_the_way_there_moved, 0, WAYS)
{
	begin(_i);
	keep_out();
	ck_assert_int_eq(try_rename(top, "run", top, "x"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "logs", top, "x"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "link", top, "x"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_remove(&root, top, "link"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "f", top, "link"), NFS3ERR_ACCES);
	ck_assert_int_eq(nfs_exists(below(top, "logs"), "audit"),
			 NFS3ERR_ACCES);
	/* Other files there can be changed as ever. */
	ck_assert_int_eq(try_mkdir(&root, below(top, "run"), "x"), NFS3_OK);
	ck_assert_int_eq(try_rename(top, "d", top, "x"), NFS3_OK);
}

TEST_LOOP(nor_does_another_name_or_an_old_handle_open_one, 0, WAYS)
{
	nfs_fh3 pid, conf, f;

	begin(_i);
	pid = below(below(top, "run"), "pid");
	conf = below(below(top, "conf.d"), "a");
	f = below(top, "f");
	nfs_teardown();
	run("ln e/control e/d/other && ln e/conf.d/a e/d/a");
	keep_out();
	begin(_i);
	ck_assert(is_refused(pid));
	ck_assert(is_refused(conf));
	ck_assert_int_ne(set_size(pid), NFS3_OK);
	ck_assert_int_eq(nfs_exists(below(top, "d"), "other"), NFS3ERR_ACCES);
	ck_assert_int_eq(nfs_exists(below(top, "d"), "a"), NFS3ERR_ACCES);
	ck_assert_int_eq(space_status(f), NFS3_OK);
	run("grep -qx 7 e/run/pid && grep -qx 7 e/control");
}

TEST_LOOP(a_directory_that_is_moved_to_their_place_counts, 0, WAYS)
{
	nfs_fh3 dir;

	begin(_i);
	keep_out();
	run("cp -a e/run e/copy && mv e/run e/old && mv e/copy e/run");
	dir = below(top, "run");
	ck_assert_int_eq(nfs_exists(dir, "pid"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_remove(&root, dir, "pid"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "run", top, "x"), NFS3ERR_ACCES);
	/* Which is the administrator's to decide. */
	ck_assert_int_eq(nfs_exists(below(top, "old"), "pid"), NFS3_OK);
}

/* By a local process; a reload names the same paths again. */
TEST_LOOP(a_link_that_leads_elsewhere_since_counts_after_a_reload, 0, WAYS)
{
	nfs_fh3 dir;

	begin(_i);
	keep_out();
	run("cp -a e/logs e/new && rm e/link && ln -s new e/link");
	keep_out();
	dir = below(top, "new");
	ck_assert_int_eq(nfs_exists(dir, "audit"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_remove(&root, dir, "audit"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_rename(top, "new", top, "x"), NFS3ERR_ACCES);
	run("test -e e/new/audit");
}

TEST_LOOP(a_mount_of_the_directory_around_them_shows_as_little, 0, WAYS)
{
	nfs_fh3 m;

	begin(_i);
	keep_out();
	ck_assert_int_eq(mount(space_at("run"), space_at("d"), NULL, MS_BIND,
			       NULL), 0);
	m = below(top, "d");
	ck_assert_int_eq(nfs_exists(m, "pid"), NFS3ERR_ACCES);
	ck_assert_int_eq(try_remove(&root, m, "pid"), NFS3ERR_ACCES);
	nfs_teardown();
	ck_assert_int_eq(umount2(space_at("d"), MNT_DETACH), 0);
	begin(_i);
}

TEST(a_list_that_is_gone_hides_nothing)
{
	begin(0);
	keep_out();
	ck_assert_int_eq(nfs_exists(top, "control"), NFS3ERR_ACCES);
	ck_assert_int_eq(posix_keep_out(NULL, 0), 0);
	ck_assert_int_eq(nfs_exists(top, "control"), NFS3_OK);
	ck_assert_int_eq(try_remove(&root, top, "control"), NFS3_OK);
}

int main(void)
{
	return space_run_tests();
}
