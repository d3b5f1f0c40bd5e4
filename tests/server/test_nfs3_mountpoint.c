/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Exports that exist only while a file system is mounted: the option
 * "mountpoint".
 *
 * The directory "disk" has a file "f", and so has the file system that is
 * mounted on it.  Handles of the one must never lead to the other.  Each test
 * runs with the system's handles and with the table of files.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exports/children.h"
#include "lib/thread.h"
#include "tests/server/mount_space.h"
#include "tests/server/nfs_names.h"
#include "tests/server/nlm_client.h"
#include "tests/unit/runner.h"

#define WAYS	2			/* to open handles */

static char state[64], exports_text[1024];
static struct harness_config config = {
	.backend = &posix_vfs_ops, .state_dir = state, .exports = exports_text,
};
static int way;

/* "a/b" in the test's directory. */
static const char *local(const char *path)
{
	static _Thread_local char text[4][256];
	static _Thread_local unsigned turn;

	turn = (turn + 1) % 4;
	snprintf(text[turn], sizeof(text[turn]), "%s/%s", space_base, path);
	return text[turn];
}

static void run(const char *cmd)
{
	char line[1024];

	snprintf(line, sizeof(line), "cd %s && %s", space_base, cmd);
	ck_assert_int_eq(system(line), 0);
}

/* Has the directory @dir exported with @options, and @more lines. */
static void set_exports(const char *dir, const char *options, const char *more)
{
	snprintf(exports_text, sizeof(exports_text),
		 "posix%s:%s 127.0.0.1(rw,insecure,no_root_squash%s%s)\n"
		 "mem:/mem 127.0.0.1(rw,insecure)\n%s", way ? ",table" : "",
		 local(dir), *options ? "," : "", options, more);
}

static void begin(int how, const char *dir, const char *options)
{
	way = how;
	set_exports(dir, options, "");
	nfs_setup_with(&config);
}

static void reload(const char *options, const char *more)
{
	set_exports("disk", options, more);
	harness_publish(&srv, exports_text);
}

/* The same file system each time. */
static void mount_it(const char *store)
{
	ck_assert_int_eq(mount(local(store), local("disk"), NULL, MS_BIND,
			       NULL), 0);
}

static void setup(void)
{
	snprintf(state, sizeof(state), "%s/state", space_base);
	/* A test that fails leaves its mounts. */
	run("for d in disk store other; do while umount -l $d; do :; done; "
	    "done 2>&-; rm -rf disk store other state door");
	run("mkdir -p state disk/share store other && "
	    "echo below > disk/f && echo below > disk/share/f && "
	    "mount -t tmpfs none store && mount -t tmpfs none other && "
	    "mkdir store/share other/share && echo disk > store/f && "
	    "echo disk > store/share/f && echo other > other/f");
}

static void teardown(void)
{
	nfs_teardown();
	umount2(local("disk"), MNT_DETACH);
}

static int lookup_f(nfs_fh3 dir, nfs_fh3 *f)
{
	LOOKUP3args a = { .what = { dir, (char *)(uintptr_t)"f" } };
	LOOKUP3res r;

	nfs_call(&root, lookup, &a, &r);
	if (r.status == NFS3_OK)
		*f = r.LOOKUP3res_u.resok.object;
	return r.status;
}

/* The status of MNT of @path; sets *@fh, which is kept. */
static int mnt(const char *path, nfs_fh3 *fh)
{
	int status = nfs_mnt(local(path), fh);

	if (status == MNT3_OK)
		*fh = space_keep(*fh);
	return status;
}

static nfs_fh3 root_of(const char *path)
{
	nfs_fh3 fh;

	ck_assert_int_eq(mnt(path, &fh), MNT3_OK);
	return fh;
}

static nfs_fh3 file_in(nfs_fh3 dir)
{
	nfs_fh3 f;

	ck_assert_int_eq(lookup_f(dir, &f), NFS3_OK);
	return space_keep(f);
}

/* Mounts the disk; *dir is the export then, and *f a file there. */
static void begin_mounted(int how, nfs_fh3 *dir, nfs_fh3 *f)
{
	begin(how, "disk", "mp");
	mount_it("store");
	*dir = root_of("disk");
	*f = file_in(*dir);
}

static int read_letter(nfs_fh3 f, char *c)
{
	READ3args a = { .file = f, .count = 1 };
	READ3res r;

	nfs_call(&root, read, &a, &r);
	if (r.status == NFS3_OK)
		*c = r.READ3res_u.resok.data.data_val[0];
	return r.status;
}

/* The first letter of the file: "b" of the directory below. */
static char letter(nfs_fh3 f)
{
	char c;

	ck_assert_int_eq(read_letter(f, &c), NFS3_OK);
	return c;
}

/* Has a reload close the export of @fh, as when no call came in that second. */
static void close_idle(nfs_fh3 fh)
{
	struct vfs_handle h;
	uint32_t id;

	ck_assert_int_eq(export_fh_parse(srv.exports,
			 (const uint8_t *)fh.data.data_val,
			 fh.data.data_len, &id, &h), 0);
	children_find(srv.exports->children, id)->used = 0;
	harness_publish(&srv, exports_text);
}

static void unmount(nfs_fh3 fh)
{
	close_idle(fh);
	EVENTUALLY(umount(local("disk")) == 0);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(nothing_is_exported_while_nothing_is_mounted, 0, WAYS)
{
	nfs_fh3 fh;

	begin(_i, "disk", "mountpoint");
	ck_assert_int_eq(mnt("disk", &fh), MNT3ERR_NOENT);
	ck_assert_int_eq(mnt("disk/share", &fh), MNT3ERR_NOENT);
	mount_it("store");
	fh = root_of("disk");
	ck_assert_int_eq(letter(file_in(fh)), 'd');
	ck_assert_int_eq(letter(file_in(root_of("disk/share"))), 'd');
	ck_assert_int_eq(try_mkdir(&root, fh, "new"), NFS3_OK);
	ck_assert_int_eq(access(local("store/new"), F_OK), 0);
}

static void count_path(void *arg, const char *path, const char *client,
		       bool everyone)
{
	*(unsigned *)arg += strcmp(path, local("disk")) == 0;
}

TEST(the_list_of_exports_has_it_all_the_same)
{
	unsigned n = 0;

	begin(0, "disk", "mp");
	export_walk(srv.exports, count_path, &n);
	ck_assert_uint_eq(n, 1);
}

TEST_LOOP(handles_are_stale_while_it_is_unmounted, 0, WAYS)
{
	nfs_fh3 dir, f, none;

	begin_mounted(_i, &dir, &f);
	ck_assert_int_eq(umount(local("disk")), -1);
	unmount(dir);
	ck_assert_int_eq(space_status(dir), NFS3ERR_STALE);
	ck_assert_int_eq(space_status(f), NFS3ERR_STALE);
	ck_assert_int_eq(lookup_f(dir, &none), NFS3ERR_STALE);
	mount_it("store");
	ck_assert_int_eq(space_status(dir), NFS3_OK);
	ck_assert_int_eq(letter(f), 'd');
	ck_assert(nfs_same_fh(file_in(dir), f));
}

TEST_LOOP(a_disk_that_is_mounted_after_a_restart_has_its_handles, 0, WAYS)
{
	nfs_fh3 dir, f;

	begin_mounted(_i, &dir, &f);
	nfs_teardown();
	ck_assert_int_eq(umount(local("disk")), 0);
	begin(_i, "disk", "mp");
	ck_assert_int_eq(space_status(f), NFS3ERR_STALE);
	mount_it("store");
	ck_assert_int_eq(space_status(f), NFS3_OK);
	ck_assert_int_eq(letter(f), 'd');
	ck_assert(nfs_same_fh(root_of("disk"), dir));
}

/* The option changes nothing for clients that have it mounted. */
TEST_LOOP(handles_are_those_of_the_export_without_the_option, 0, WAYS)
{
	nfs_fh3 dir, f;

	mount_it("store");
	begin(_i, "disk", "");
	dir = root_of("disk");
	f = file_in(dir);
	reload("mp", "");
	ck_assert_int_eq(space_status(dir), NFS3_OK);
	ck_assert_int_eq(letter(f), 'd');
	reload("", "");
	ck_assert_int_eq(space_status(dir), NFS3_OK);
	ck_assert_int_eq(letter(f), 'd');
}

/* Its mount is gone while calls come: they see the disk, or nothing. */
/* Until then it is the same, or being closed. */
static bool is_stale(nfs_fh3 dir, nfs_fh3 f)
{
	nfs_fh3 got;
	int status;

	harness_publish(&srv, exports_text);
	status = lookup_f(dir, &got);
	ck_assert(status != NFS3_OK || nfs_same_fh(got, f));
	ck_assert(status == NFS3_OK || status == NFS3ERR_JUKEBOX ||
		  status == NFS3ERR_STALE);
	return status == NFS3ERR_STALE;
}

TEST_LOOP(a_lazy_unmount_closes_it, 0, WAYS)
{
	nfs_fh3 dir, f;

	begin_mounted(_i, &dir, &f);
	ck_assert_int_eq(umount2(local("disk"), MNT_DETACH), 0);
	ck_assert(AWAIT_EACH(10000, is_stale(dir, f)));
	mount_it("store");
	ck_assert_int_eq(space_status(dir), NFS3_OK);
	ck_assert_int_eq(letter(f), 'd');
}

/* Another disk has the export's number, but not the handles of the first. */
TEST_LOOP(another_disk_has_other_files, 0, WAYS)
{
	nfs_fh3 dir, f;

	begin_mounted(_i, &dir, &f);
	unmount(dir);
	mount_it("other");
	ck_assert_int_eq(space_status(f), NFS3ERR_STALE);
	ck_assert_int_eq(letter(file_in(dir)), 'o');
}

TEST_LOOP(another_place_may_be_the_mount_point, 0, WAYS)
{
	char options[128];
	nfs_fh3 dir, f, fh;

	snprintf(options, sizeof(options), "mountpoint=%s/disk/", space_base);
	begin(_i, "disk/share", options);
	ck_assert_int_eq(mnt("disk/share", &fh), MNT3ERR_NOENT);
	mount_it("store");
	dir = root_of("disk/share");
	f = file_in(dir);
	ck_assert_int_eq(letter(f), 'd');
	unmount(dir);
	ck_assert_int_eq(space_status(dir), NFS3ERR_STALE);
	ck_assert_int_eq(space_status(f), NFS3ERR_STALE);
	mount_it("store");
	ck_assert_int_eq(letter(f), 'd');
}

TEST(a_directory_that_is_not_there_is_exported_when_it_is)
{
	char options[128];
	nfs_fh3 fh;

	snprintf(options, sizeof(options), "mp=%s/disk", space_base);
	begin(0, "disk/late", options);
	mount_it("store");
	ck_assert_int_eq(mnt("disk/late", &fh), MNT3ERR_NOENT);
	ck_assert_int_eq(mkdir(local("store/late"), 0755), 0);
	ck_assert_int_eq(mnt("disk/late", &fh), MNT3_OK);
}

TEST(a_symbolic_link_is_no_mount_point)
{
	nfs_fh3 fh;

	begin(0, "door", "mp");
	ck_assert_int_eq(symlink("disk", local("door")), 0);
	mount_it("store");
	ck_assert_int_eq(mnt("door", &fh), MNT3ERR_NOENT);
}

TEST_LOOP(fsid_is_its_number, 0, WAYS)
{
	nfs_fh3 dir;

	begin(_i, "disk", "mp,fsid=77");
	mount_it("store");
	dir = root_of("disk");
	ck_assert_uint_eq(nfs_attr(dir).fsid, 77);
	reload("mp,fsid=78", "");
	ck_assert_int_eq(space_status(dir), NFS3ERR_STALE);
	ck_assert_uint_eq(nfs_attr(root_of("disk")).fsid, 78);
}

/* The number goes to another directory: no call comes to the first. */
TEST(a_number_that_goes_to_another_path_goes_there)
{
	nfs_fh3 dir;

	begin(0, "disk", "mp,fsid=77");
	mount_it("store");
	dir = root_of("disk");
	ck_assert_int_eq(letter(file_in(dir)), 'd');
	set_exports("other", "mp,fsid=77", "");
	harness_publish(&srv, exports_text);
	ck_assert_int_eq(letter(file_in(dir)), 'o');
}

#define OUTER(options) \
	"posix:%s 127.0.0.1(ro,insecure,no_root_squash" options ")\n"

TEST_LOOP(an_export_around_it_leads_to_it, 0, WAYS)
{
	char outer[256];
	nfs_fh3 dir, around;

	snprintf(outer, sizeof(outer), OUTER(",crossmnt"), space_base);
	mount_it("store");
	begin(_i, "disk", "mp");
	reload("mp", outer);
	around = root_of(".");
	ck_assert_int_eq(try_lookup(around, "disk", &dir), NFS3_OK);
	dir = space_keep(dir);
	ck_assert(nfs_same_fh(dir, root_of("disk")));
	ck_assert_int_eq(try_mkdir(&root, dir, "new"), NFS3_OK);
	reload("mp,ro", outer);
	ck_assert_int_eq(try_mkdir(&root, dir, "more"), NFS3ERR_ROFS);
}

/* Its mount point is missing, but something else is mounted on the directory:
 * that is not shown, and no call waits for it. */
TEST_LOOP(an_export_around_it_does_not_wait_for_a_missing_one, 0, WAYS)
{
	char outer[256], options[128];
	nfs_fh3 around, dir, f;

	snprintf(outer, sizeof(outer), OUTER(",crossmnt"), space_base);
	snprintf(options, sizeof(options), "mp=%s/door", space_base);
	run("mkdir door");
	mount_it("store");
	begin(_i, "disk", options);
	reload(options, outer);
	around = root_of(".");
	ck_assert_int_eq(try_lookup(around, "disk", &dir), NFS3_OK);
	dir = space_keep(dir);
	ck_assert_int_eq(lookup_f(dir, &f), NFS3ERR_NOENT);
	ck_assert_int_eq(mount(local("store"), local("door"), NULL, MS_BIND,
			       NULL), 0);
	ck_assert_int_eq(try_lookup(around, "disk", &dir), NFS3_OK);
	ck_assert_int_eq(letter(file_in(space_keep(dir))), 'd');
	ck_assert_int_eq(umount2(local("door"), MNT_DETACH), 0);
}

TEST_LOOP(a_mount_in_it_is_entered_by_its_rules, 0, WAYS)
{
	nfs_fh3 dir, inner, f;

	begin(_i, "disk", "mp,crossmnt");
	mount_it("store");
	ck_assert_int_eq(mount(local("other"), local("disk/share"), NULL,
			       MS_BIND, NULL), 0);
	dir = root_of("disk");
	ck_assert_int_eq(try_lookup(dir, "share", &inner), NFS3_OK);
	inner = space_keep(inner);
	f = file_in(inner);
	ck_assert_int_eq(letter(f), 'o');
	ck_assert_uint_ne(nfs_attr(inner).fsid, nfs_attr(dir).fsid);
	ck_assert_int_eq(umount2(local("disk/share"), MNT_DETACH), 0);
}

TEST_LOOP(a_lock_keeps_it_mounted, 0, WAYS)
{
	struct nlm_process p = { "c1", 11, 4, IPPROTO_TCP, top };
	const struct nlm_bytes all = { 0, 0, true };

	begin(_i, "disk", "mp");
	mount_it("store");
	p.fh = file_in(root_of("disk"));
	nlmc_open(srv.port);
	ck_assert_uint_eq(nlmc_lock(&p, all, false), NLM4_GRANTED);
	close_idle(p.fh);
	ck_assert(HOLDS_FOR(50, umount(local("disk")) < 0 && errno == EBUSY));
	ck_assert_uint_eq(nlmc_unlock(&p, all), NLM4_GRANTED);
	nlmc_close();
	unmount(p.fh);
}

/* Without a reload of the exports and without a call it is closed all the same,
 * as file systems below exports are. */
TEST(an_idle_one_can_be_unmounted)
{
	nfs_fh3 f;

	begin(0, "disk", "mp");
	mount_it("store");
	f = file_in(root_of("disk"));
	ck_assert_int_eq(umount(local("disk")), -1);
	srv.exports->idle_s = 1;
	ck_assert(AWAIT_EACH(20000, umount(local("disk")) == 0));
	ck_assert_int_eq(space_status(f), NFS3ERR_STALE);
}

/* The idle limit is longer than the clock has run. */
TEST(one_in_use_stays_open_soon_after_the_machine_started)
{
	begin(0, "disk", "mp");
	mount_it("store");
	file_in(root_of("disk"));
	srv.exports->idle_s = UINT32_MAX;
	/* The keeper looks every two seconds. */
	ck_assert(HOLDS_FOR(2500, umount(local("disk")) < 0 && errno == EBUSY));
}

/* The disk's content is anybody's. */
TEST_LOOP(a_link_that_leads_out_of_the_disk_is_not_followed, 0, WAYS)
{
	char options[128];
	nfs_fh3 fh;

	snprintf(options, sizeof(options), "mp=%s/disk", space_base);
	begin(_i, "disk/share", options);
	run("mv store/share store/real && ln -s ../other store/share");
	mount_it("store");
	ck_assert_int_eq(mnt("disk/share", &fh), MNT3ERR_NOENT);
	run("rm store/share && ln -s real store/share");
	ck_assert_int_eq(mnt("disk/share", &fh), MNT3_OK);
	ck_assert_int_eq(letter(file_in(fh)), 'd');
}

/* The disk is elsewhere while the backend opens the directory. */
static int mount_while_moved(const struct vfs_config *c, struct vfs_fs **out)
{
	int err;

	ck_assert_int_eq(mount(local("disk"), local("door"), NULL, MS_MOVE,
			       NULL), 0);
	err = posix_vfs_ops.mount(c, out);
	ck_assert_int_eq(mount(local("door"), local("disk"), NULL, MS_MOVE,
			       NULL), 0);
	return err;
}

TEST(a_disk_that_is_moved_for_a_moment_is_not_taken_for_the_directory_below)
{
	struct vfs_ops ops = posix_vfs_ops;
	struct harness_config moving = config;
	nfs_fh3 fh;

	ops.mount = mount_while_moved;
	moving.backend = &ops;
	run("mkdir door");
	snprintf(exports_text, sizeof(exports_text), "mem:/mem *(rw,insecure)\n"
		 "%s 127.0.0.1(rw,insecure,mp)\n", local("disk"));
	mount_it("store");
	nfs_setup_with(&moving);
	ck_assert_int_eq(mnt("disk", &fh), MNT3ERR_NOENT);
	nfs_teardown();
	begin(0, "disk", "mp");
}

static void unmount_slowly(struct vfs_fs *fs)
{
	/* As a file system that has much to write. */
	pause_on_purpose(300000);
	posix_vfs_ops.unmount(fs);
}

TEST_LOOP(a_disk_that_was_refused_is_closed_when_its_client_is_told, 0, WAYS)
{
	struct vfs_ops ops = posix_vfs_ops;
	struct harness_config slow = config;
	char options[128];
	nfs_fh3 fh;

	ops.unmount = unmount_slowly;
	slow.backend = &ops;
	snprintf(options, sizeof(options), "mp=%s/disk", space_base);
	way = _i;
	set_exports("disk/share", options, "");
	nfs_setup_with(&slow);
	run("mv store/share store/real && ln -s ../other store/share");
	mount_it("store");
	ck_assert_int_eq(mnt("disk/share", &fh), MNT3ERR_NOENT);
	run("rm store/share && ln -s real store/share");
	ck_assert_int_eq(mnt("disk/share", &fh), MNT3_OK);
	nfs_teardown();
	begin(0, "disk", "mp");
}

/* ---- mounted and unmounted while calls come */

static _Atomic bool stops;

static void come_and_go(void *arg)
{
	for (unsigned i = 0; !stops; i++) {
		mount_it("store");
		/* Calls meet it in any order. */
		pause_on_purpose(i * 997 % 20000);
		umount2(local("disk"), MNT_DETACH);
	}
}

TEST_LOOP(no_call_ever_sees_the_directory_below, 0, WAYS)
{
	unsigned seen = 0;
	pthread_t mounter;
	nfs_fh3 fh, f;
	char c;

	begin(_i, "disk", "mp");
	stops = false;
	ck_assert_int_eq(thread_start(&mounter, "mounter", come_and_go, NULL),
			 0);
	for (int i = 0; i < 100 || (seen < 5 && i < 2000); i++) {
		if (mnt("disk", &fh) != MNT3_OK)
			continue;
		harness_publish(&srv, exports_text);
		/* It can be closed between the two. */
		if (lookup_f(fh, &f) != NFS3_OK ||
		    read_letter(f, &c) != NFS3_OK)
			continue;
		ck_assert_int_eq(c, 'd');
		seen++;
	}
	stops = true;
	pthread_join(mounter, NULL);
	ck_assert_uint_ge(seen, 5);
}

int main(void)
{
	return space_run_tests();
}
