/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend on a disk that dies: data that is called durable is. */
#include <sys/stat.h>

#include "tests/unit/posix_fixture.h"
#include "tests/unit/sync_faults.h"

/* With the system's handles, and with the table; never as if in memory. */
static void open_world(int i, const struct posix_options *options)
{
	struct posix_fs *fs;

	world_open(i * 2, options);
	fs = to_posix_fs(w.fs);
	fs->ram = false;
	fs->sync_names = true;
	memset(&sync_faults, 0, sizeof(sync_faults));
}

static void write_unstable(struct vfs_node *n)
{
	enum vfs_stable how = VFS_UNSTABLE;

	ck_assert_int_eq(write_str(n, 0, "abc", &how), 3);
}

static int set_mode(struct vfs_node *n)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = 0640 };

	return DO(posix_setattr, &w.who, n, .set = &set);
}

static int64_t write_stable(struct vfs_node *n, enum vfs_stable how)
{
	int64_t done = write_str(n, 0, "abc", &how);

	return done < 0 ? done : 0;
}

TEST_CASE(.timeout = getenv("GANNET_TEST_SYNC_RACES") ? 24 * 3600 : 60);

/*
 * The rows of the table in vfs/posix/sync.c, and cases without a row.
 */
TEST_LOOP(a_file_system_that_gave_up_is_an_error, 0, 2)
{
	static const int errors[] = { EROFS, EIO, ENOSPC, EDQUOT, EINTR,
				      ENOSYS, EACCES, EPERM };
	struct vfs_node *n, *dir;
	uint64_t verf;
	int done;		/* of a change that is not to come again */

	open_world(_i, NULL);
	n = must_create(w.root, "f");
	dir = must_mkdir(w.root, "d");
	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		done = errors[i] == EINTR ? EIO : errors[i];
		write_unstable(n);
		verf = w.fs->verf;
		sync_faults.file_errno = errors[i];
		assert_err(DO(posix_commit, &w.who, n), errors[i]);
		ck_assert_uint_ne(w.fs->verf, verf);
		verf = w.fs->verf;
		assert_err(write_stable(n, VFS_FILE_SYNC), errors[i]);
		ck_assert_uint_ne(w.fs->verf, verf);
		assert_err(write_stable(n, VFS_DATA_SYNC), errors[i]);
		assert_err(set_mode(n), done);
		sync_faults.file_errno = 0;
		sync_faults.dir_errno = errors[i];
		assert_err(set_mode(dir), done);
		assert_err(DO(posix_remove, &w.who, w.root,
			      .name = name_of("d2"), .is_dir = true), ENOENT);
		sync_faults.dir_errno = 0;
		assert_ok(DO(posix_commit, &w.who, n));
	}
	vfs_node_put(dir);
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(a_directory_without_fsync_is_synced_with_its_file_system, 0, 2)
{
	struct vfs_node *dir;
	int wholes;

	open_world(_i, NULL);
	sync_faults.dir_errno = EINVAL;
	dir = must_mkdir(w.root, "d");
	wholes = sync_faults.wholes;
	ck_assert_int_gt(wholes, 0);
	assert_ok(set_mode(dir));
	ck_assert_int_eq(sync_faults.wholes, wholes + 1);
	sync_faults.whole_errno = EIO;
	assert_err(set_mode(dir), EIO);
	sync_faults.whole_errno = 0;
	vfs_node_put(dir);
	world_close();
}

TEST_LOOP(a_directory_that_can_not_be_opened_is_synced_with_its_fs, 0, 2)
{
	static const int errors[] = { EACCES, EPERM };
	struct vfs_node *dir;
	int wholes;

	open_world(_i, NULL);
	assert_ok(mkdir(local("d"), 0755));
	dir = must_lookup(w.root, "d");
	for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
		wholes = sync_faults.wholes;
		sync_faults.open_errno = errors[i];
		assert_ok(set_mode(dir));
		ck_assert_int_eq(sync_faults.wholes, wholes + 1);
		sync_faults.whole_errno = EROFS;
		assert_err(set_mode(dir), EROFS);
		sync_faults.whole_errno = 0;
	}
	/* A lack of memory says nothing about the disk. */
	sync_faults.open_errno = ENOMEM;
	assert_err(set_mode(dir), ENOMEM);
	sync_faults.open_errno = 0;
	vfs_node_put(dir);
	world_close();
}

/* The change is done, so the client can't be told to come again. */
TEST_LOOP(without_descriptors_changes_are_synced, 0, 2)
{
	struct vfs_node *dir;

	open_world(_i, NULL);
	assert_ok(mkdir(local("d"), 0755));
	assert_ok(mkdir(local("d/e"), 0755));
	dir = must_lookup(w.root, "d");
	sync_faults.open_errno = EMFILE;
	assert_ok(DO(posix_remove, &w.who, dir, .name = name_of("e"),
		     .is_dir = true));
	ck_assert_int_eq(sync_faults.wholes, 1);
	sync_faults.whole_errno = EIO;
	assert_err(set_mode(dir), EIO);
	sync_faults.whole_errno = 0;
	sync_faults.open_errno = 0;
	vfs_node_put(dir);
	world_close();
}

static struct vfs_node *must_make(const char *name, enum vfs_type type)
{
	struct vfs_make what = { .type = type, .target = "to",
				 .target_len = 2 };
	struct vfs_node *n;

	assert_ok(GET(out, n, posix_make, &w.who, w.root, .name = name_of(name),
		      .make = &what));
	return n;
}

TEST_LOOP(attributes_of_links_and_pipes_are_durable, 0, 2)
{
	static const enum vfs_type types[] = { VFS_LNK, VFS_FIFO, VFS_SOCK };
	struct vfs_setattr set = { .set = VFS_SET_MTIME,
				   .mtime = { .tv_sec = 5 } };
	struct vfs_node *n;
	uint64_t verf;
	int wholes;

	open_world(_i, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(types); i++) {
		n = must_make("special", types[i]);
		wholes = sync_faults.wholes;
		assert_ok(DO(posix_setattr, &w.who, n, .set = &set));
		ck_assert_int_eq(sync_faults.wholes, wholes + 1);
		sync_faults.whole_errno = EIO;
		verf = w.fs->verf;
		assert_err(DO(posix_setattr, &w.who, n, .set = &set), EIO);
		ck_assert_uint_ne(w.fs->verf, verf);
		sync_faults.whole_errno = 0;
		must_remove(w.root, "special", false);
		vfs_node_put(n);
	}
	world_close();
}

/*
 * An error that is told to one thread, in its effect on the others.
 */
enum tells { BY_COMMIT, BY_WRITE, BY_SETATTR, NTELLS };

struct racer {
	struct vfs_node *n;
	enum tells how;
	uint64_t verf;			/* from its WRITE's reply */
	unsigned false_ok;
};

static pthread_barrier_t start, stop;

static void race(struct racer *r)
{
	bool ok;

	if (r->how == BY_WRITE)
		ok = write_stable(r->n, VFS_FILE_SYNC) == 0;
	else if (r->how == BY_SETATTR)
		ok = set_mode(r->n) == 0;
	else
		ok = DO(posix_commit, &w.who, r->n) == 0;
	/* As nfs3/proc_io.c reads it, after the commit. */
	if (ok && r->how == BY_COMMIT && w.fs->verf == r->verf)
		r->false_ok++;
}

/* Races of each kind; GANNET_TEST_SYNC_RACES asks for more. */
static int rounds(void)
{
	const char *s = getenv("GANNET_TEST_SYNC_RACES");

	return s ? atoi(s) : 400;
}

static void racer(void *arg)
{
	struct racer *r = arg;

	for (int i = rounds(); i > 0; i--) {
		pthread_barrier_wait(&start);
		race(r);
		pthread_barrier_wait(&stop);
	}
}

static void race_of(struct vfs_node *n, enum tells other)
{
	struct racer r[2] = { { .n = n, .how = BY_COMMIT },
			      { .n = n, .how = other } };
	ino_t ino = (ino_t)attr_of(n).fileid;
	pthread_t thread[2];

	pthread_barrier_init(&start, NULL, 3);
	pthread_barrier_init(&stop, NULL, 3);
	for (int i = 0; i < 2; i++)
		assert_ok(thread_start(&thread[i], "racer", racer, &r[i]));
	for (int i = 0; i < rounds(); i++) {
		r[0].verf = r[1].verf = w.fs->verf;
		write_unstable(n);
		sync_faults.pause_us = i % 4 * 100;
		sync_faults_lose(ino);
		pthread_barrier_wait(&start);
		pthread_barrier_wait(&stop);
	}
	for (int i = 0; i < 2; i++)
		assert_ok(pthread_join(thread[i], NULL));
	ck_assert_int_ge(sync_faults_told(), rounds());
	ck_assert_uint_eq(r[0].false_ok + r[1].false_ok, 0);
}

TEST_LOOP(a_sync_that_meets_a_failed_one_is_no_success, 0, 2 * NTELLS)
{
	struct vfs_node *n;

	open_world(_i % 2, NULL);
	n = must_create(w.root, "f");
	race_of(n, (enum tells)(_i / 2));
	vfs_node_put(n);
	world_close();
}

/* A file that is closed for want of use is synced first, and its handle used
 * again meanwhile. */
TEST_LOOP(a_commit_that_meets_the_sweeper_is_no_success, 0, 2)
{
	const struct posix_options options = { .idle_ms = 40 };
	struct vfs_handle h;
	struct vfs_node *n;
	uint64_t verf;

	open_world(_i, &options);
	n = must_create(w.root, "f");
	h = handle_of(n);
	verf = w.fs->verf;
	write_unstable(n);
	sync_faults.pause_us = 300000;
	sync_faults_lose((ino_t)attr_of(n).fileid);
	vfs_node_put(n);
	EVENTUALLY(sync_faults_told() == 1);
	n = must_open(&h);
	ck_assert(DO(posix_commit, &w.who, n) < 0 || w.fs->verf != verf);
	vfs_node_put(n);
	world_close();
}

static void commit(void *arg)
{
	DO(posix_commit, &w.who, arg);
}

/* Standard error is a full pipe without a reader. */
static int stall_log(void)
{
	static char rubbish[4096];
	int p[2];

	assert_ok(pipe2(p, O_NONBLOCK));
	while (write(p[1], rubbish, sizeof(rubbish)) > 0)
		;
	assert_ok(fcntl(p[1], F_SETFL, 0));
	ck_assert_int_eq(dup2(p[1], 2), 2);
	return p[0];
}

TEST_LOOP(an_error_has_its_effect_while_the_log_stalls, 0, 2)
{
	char rubbish[4096];
	struct vfs_node *n;
	pthread_t thread;
	uint64_t verf;
	int log;

	open_world(_i, NULL);
	n = must_create(w.root, "f");
	verf = w.fs->verf;
	write_unstable(n);
	sync_faults_lose((ino_t)attr_of(n).fileid);
	log = stall_log();
	assert_ok(thread_start(&thread, "commit", commit, n));
	EVENTUALLY(sync_faults_told() == 1);
	assert_ok(DO(posix_commit, &w.who, n));
	ck_assert_uint_ne(w.fs->verf, verf);
	while (read(log, rubbish, sizeof(rubbish)) > 0)
		;
	close(log);			/* and it is never read */
	assert_ok(pthread_join(thread, NULL));
	vfs_node_put(n);
	world_close();
}

static void set_time(void *arg)
{
	struct vfs_setattr set = { .set = VFS_SET_MTIME };

	assert_err(DO(posix_setattr, &w.who, arg, .set = &set), EIO);
}

/* The call that gets an error can get it for another call's data. */
TEST_LOOP(a_link_that_meets_a_failed_sync_is_no_success, 0, 2)
{
	struct vfs_node *link[2];
	pthread_t thread[2];

	open_world(_i, NULL);
	link[0] = must_make("a", VFS_LNK);
	link[1] = must_make("b", VFS_LNK);
	sync_faults.hold_failed = true;
	sync_faults.whole_once = EIO;
	assert_ok(thread_start(&thread[0], "first", set_time, link[0]));
	EVENTUALLY(sync_faults.wholes == 1);
	assert_ok(thread_start(&thread[1], "second", set_time, link[1]));
	EVENTUALLY(world_sync_waits());
	sync_faults.hold_failed = false;
	for (int i = 0; i < 2; i++) {
		assert_ok(pthread_join(thread[i], NULL));
		vfs_node_put(link[i]);
	}
	world_close();
}

/* A second export of the same directory. */
static struct vfs_fs *mount_again(struct vfs_node **root)
{
	struct vfs_config config = w.config;
	struct vfs_fs *fs;

	config.state_dir = NULL;
	assert_ok(posix_vfs_ops.mount(&config, &fs));
	assert_ok(fs->ops->root(fs, root));
	return fs;
}

/* The directory that is synced first is told; the other one's sync, and all
 * of another export, are not. */
TEST_LOOP(after_an_error_nothing_is_durable_until_syncfs_succeeds, 0, 2)
{
	struct vfs_node *a, *root2, *a2;
	struct vfs_fs *fs2;

	open_world(_i, NULL);
	a = must_mkdir(w.root, "a");
	fs2 = mount_again(&root2);
	to_posix_fs(fs2)->ram = false;
	to_posix_fs(fs2)->sync_names = true;
	a2 = must_lookup(root2, "a");
	sync_faults.whole_errno = EROFS;
	assert_ok(set_mode(a));		/* nothing is known yet */
	ck_assert_int_eq(sync_faults.wholes, 0);
	sync_faults_lose((ino_t)attr_of(w.root).fileid);
	assert_err(set_mode(w.root), EIO);
	assert_err(set_mode(a), EROFS);
	assert_err(set_mode(a2), EROFS);
	assert_err(DO(posix_remove, &w.who, a, .name = name_of("none")),
		   ENOENT);
	/* It was that one error, of which each descriptor is told once. */
	sync_faults.whole_errno = 0;
	sync_faults.whole_once = EIO;
	assert_ok(set_mode(a2));
	sync_faults.whole_errno = EROFS;
	assert_ok(set_mode(a));		/* and the doubt has ended */
	assert_ok(set_mode(a2));
	vfs_node_put(a2);
	vfs_node_put(root2);
	fs2->ops->unmount(fs2);
	vfs_node_put(a);
	world_close();
}

/* ext4 and btrfs say 0 to fsync() after they could not write their journal. */
TEST_LOOP(a_journal_that_was_aborted_is_an_error, 0, 2)
{
	static const int none[] = { EOPNOTSUPP, EACCES, EPERM };
	struct vfs_node *dir;
	uint64_t verf;

	open_world(_i, NULL);
	to_posix_fs(w.fs)->ext4 = true;
	dir = must_mkdir(w.root, "d");
	for (unsigned i = 0; i < ARRAY_SIZE(none); i++) {
		sync_faults.journal_errno = none[i];
		assert_ok(set_mode(dir));
	}
	verf = w.fs->verf;
	sync_faults.journal_errno = EROFS;
	assert_err(set_mode(dir), EROFS);
	ck_assert_uint_ne(w.fs->verf, verf);
	sync_faults.journal_errno = 0;
	to_posix_fs(w.fs)->btrfs = true;
	assert_ok(set_mode(dir));
	verf = w.fs->verf;
	sync_faults.mount_ro = true;
	assert_err(set_mode(dir), EROFS);
	ck_assert_uint_ne(w.fs->verf, verf);
	sync_faults.mount_ro = false;
	vfs_node_put(dir);
	world_close();
}

/* The tree was remounted with "rw", and no FSSTAT came since. */
TEST_LOOP(a_tree_mounted_read_only_at_first_can_give_up, 0, 4)
{
	struct vfs_node *dir;
	struct posix_fs *fs;

	sync_faults.mount_ro = true;
	open_world(_i & 1, NULL);
	fs = to_posix_fs(w.fs);
	fs->btrfs = _i & 2;
	fs->ext4 = !fs->btrfs;
	dir = must_mkdir(w.root, "d");
	sync_faults.mount_ro = fs->btrfs;
	sync_faults.journal_errno = fs->btrfs ? 0 : EROFS;
	assert_err(set_mode(dir), EROFS);
	sync_faults.mount_ro = false;
	vfs_node_put(dir);
	world_close();
}

static void flush(void *arg)
{
	assert_ok(posix_node_flush(to_posix(arg), NULL));
}

/* btrfs says 0 to a second fsync() while the first is under way. */
TEST_LOOP(on_btrfs_a_file_has_one_sync_at_a_time_in_all_exports, 0, 2)
{
	struct vfs_node *root2;
	struct vfs_fs *fs2;
	pthread_t thread[2];

	open_world(_i, NULL);
	fs2 = mount_again(&root2);
	to_posix_fs(fs2)->ram = false;
	to_posix_fs(w.fs)->btrfs = to_posix_fs(fs2)->btrfs = true;
	sync_faults.held = 0;
	sync_faults.hold_dirs = true;
	assert_ok(thread_start(&thread[0], "first", flush, w.root));
	EVENTUALLY(sync_faults.held == 1);
	assert_ok(thread_start(&thread[1], "second", flush, root2));
	ck_assert(HOLDS_FOR(100, sync_faults.held == 1));
	sync_faults.hold_dirs = false;
	for (int i = 0; i < 2; i++)
		assert_ok(pthread_join(thread[i], NULL));
	vfs_node_put(root2);
	fs2->ops->unmount(fs2);
	world_close();
}

struct creator {
	struct vfs_create how;
	int err;
	atomic_bool ended;
	int syncs;			/* that had ended when it did */
};

static void create_f(void *arg)
{
	struct creator *c = arg;
	struct vfs_node *n;

	c->err = GET(out, n, posix_create, &w.who, w.root, .name = name_of("f"),
		     .create = &c->how);
	c->syncs = sync_faults.dirs - sync_faults.held;
	if (c->err == 0)
		vfs_node_put(n);
	atomic_store(&c->ended, true);
}

static void meet_in(enum vfs_create_how first, enum vfs_create_how second)
{
	struct creator a = { .how = { .how = first, .verf = 7 } };
	struct creator b = { .how = { .how = second, .verf = 7 } };
	pthread_t thread[2];

	sync_faults.held = 0;
	sync_faults.hold_dirs = true;
	assert_ok(thread_start(&thread[0], "first", create_f, &a));
	EVENTUALLY(sync_faults.held == 1);
	assert_ok(thread_start(&thread[1], "second", create_f, &b));
	/* A call that does not wait has time to end. */
	ck_assert(HOLDS_FOR(100, !atomic_load(&b.ended)));
	sync_faults.hold_dirs = false;
	for (int i = 0; i < 2; i++)
		assert_ok(pthread_join(thread[i], NULL));
	assert_ok(a.err);
	assert_ok(b.err);
	must_remove(w.root, "f", false);
}

TEST_LOOP(a_name_being_created_is_not_called_durable, 0, 2)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_node *n;
	int syncs;

	open_world(_i, NULL);
	meet_in(VFS_CREATE_UNCHECKED, VFS_CREATE_UNCHECKED);
	meet_in(VFS_CREATE_GUARDED, VFS_CREATE_UNCHECKED);
	meet_in(VFS_CREATE_EXCLUSIVE, VFS_CREATE_EXCLUSIVE);
	/* An existing file costs no sync. */
	vfs_node_put(must_create(w.root, "f"));
	syncs = sync_faults.dirs;
	assert_ok(GET(out, n, posix_create, &w.who, w.root,
		      .name = name_of("f"), .create = &how));
	vfs_node_put(n);
	ck_assert_int_eq(sync_faults.dirs, syncs);
	world_close();
}

/* Made before the server was killed, perhaps. */
TEST_LOOP(a_name_of_before_the_start_is_made_durable_once, 0, 2)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_node *n;

	open_world(_i, NULL);
	assert_ok(close(open(local("f"), O_CREAT | O_WRONLY, 0600)));
	for (int i = 0; i < 3; i++) {
		assert_ok(GET(out, n, posix_create, &w.who, w.root,
			      .name = name_of("f"), .create = &how));
		vfs_node_put(n);
		ck_assert_int_eq(sync_faults.dirs, 1);
	}
	world_close();
}

/* A call that failed to make all of the file has made its name. */
TEST_LOOP(a_name_of_a_failed_call_is_not_called_durable, 0, 2)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_node *n;
	int syncs;

	open_world(_i, NULL);
	vfs_node_put(must_create(w.root, "other"));
	syncs = sync_faults.dirs;
	how.attr.set = VFS_SET_SIZE;
	how.attr.size = UINT64_MAX;
	assert_err(DO(posix_create, &w.who, w.root, .name = name_of("f"),
		      .create = &how), EFBIG);
	how.attr.set = 0;
	assert_ok(GET(out, n, posix_create, &w.who, w.root,
		      .name = name_of("f"), .create = &how));
	vfs_node_put(n);
	ck_assert_int_eq(sync_faults.dirs, syncs + 1);
	world_close();
}

int main(void)
{
	return world_run();
}
