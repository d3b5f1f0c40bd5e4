/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: handles, the table of files, the cache, escapes. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/posix_fixture.h"
#include "vfs/posix/handle.h"
#include "vfs/posix/ops.h"
#include "vfs/posix/table/table.h"

static void put(struct vfs_node *n)
{
	vfs_node_put(n);
}

TEST_LOOP(handles_of_a_deep_tree_outlive_a_restart, 0, WORLDS)
{
	struct vfs_handle h[40];
	struct vfs_node *dir, *n;

	world_open(_i, NULL);
	dir = w.root;
	vfs_node_get(dir);
	for (int i = 0; i < 40; i++) {
		n = must_mkdir(dir, "sub");
		h[i] = handle_of(n);
		put(dir);
		dir = n;
	}
	put(dir);
	world_restart();
	for (int i = 39; i >= 0; i -= 13) {
		struct vfs_handle again;

		n = must_open(&h[i]);
		again = handle_of(n);
		ck_assert(posix_handle_same(&again, &h[i]));
		ck_assert_int_eq(attr_of(n).type, VFS_DIR);
		put(n);
	}
	world_close();
}

/* Layers of an overlay whose files have no birth time. */
TEST(files_of_two_devices_with_one_number_have_two_handles)
{
	struct posix_fs fs = { .dev = 40, .ino = 1 };
	struct stat st = { .st_mode = S_IFREG, .st_ino = 7 };
	int fd = open("/proc/self/stat", O_PATH);
	struct vfs_handle h[3];

	for (int i = 0; i < 3; i++) {
		st.st_dev = fs.dev + (dev_t)i;
		ck_assert_int_eq(posix_handle_make(&fs, fd, &st, &h[i]), 0);
		ck_assert(posix_handle_valid(&h[i]));
		ck_assert_uint_eq(posix_handle_ino(&h[i]), 7);
		for (int k = 0; k < i; k++)
			ck_assert(!posix_handle_same(&h[i], &h[k]));
	}
	close(fd);
}

/* A file in the cache is found to be gone by the first operation. */
static int try_use(const struct vfs_handle *h)
{
	struct vfs_attr attr;
	struct vfs_node *n;
	int err = try_open_again(h);

	if (err == 0) {
		n = must_open(h);
		err = DO(posix_getattr, &w.who, n, .attr = &attr);
		put(n);
	}
	return err;
}

TEST_LOOP(handles_of_what_is_gone_are_stale_for_ever, 0, WORLDS)
{
	struct vfs_handle h[3];
	struct vfs_node *n;
	char name[2] = "0";

	world_open(_i, NULL);
	for (int i = 0; i < 3; i++, name[0]++) {
		n = must_create(w.root, name);
		h[i] = handle_of(n);
		put(n);
	}
	must_remove(w.root, "0", false);		/* by a client */
	assert_ok(unlink(local("1")));			/* locally */
	put(must_create(w.root, "x"));
	assert_ok(DO(posix_rename, &w.who, w.root, .name = name_of("x"),
		     .to = { .dir = w.root, .name = name_of("2") }));
	for (int i = 0; i < 3; i++)
		assert_err(try_use(&h[i]), ESTALE);
	/* New files take the names, and perhaps the inodes. */
	for (int i = 0; i < 200; i++) {
		put(must_create(w.root, "1"));
		must_remove(w.root, "1", false);
	}
	put(must_create(w.root, "0"));
	put(must_create(w.root, "1"));
	for (int i = 0; i < 3; i++)
		assert_err(try_use(&h[i]), ESTALE);
	world_restart();
	for (int i = 0; i < 3; i++)
		assert_err(try_use(&h[i]), ESTALE);
	world_close();
}

TEST_LOOP(a_node_in_use_turns_stale_when_its_file_goes, 0, WORLDS)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = 0600 };
	struct vfs_node *n, *dir;
	struct vfs_attr attr;
	char buf[64];

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	dir = must_mkdir(w.root, "d");
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	assert_ok(unlink(local("f")));
	assert_ok(rmdir(local("d")));
	assert_err(DO(posix_getattr, &w.who, n, .attr = &attr), ESTALE);
	assert_err(read_str(n, 0, buf, NULL), ESTALE);
	assert_err(write_str(n, 0, "text", NULL), ESTALE);
	assert_err(DO(posix_setattr, &w.who, n, .set = &set), ESTALE);
	assert_err(DO(posix_access, &w.who, n, .access.want = 1),
		   ESTALE);
	assert_err(DO(posix_link, &w.who, n,
		      .to = { .dir = w.root, .name = name_of("g") }), ESTALE);
	assert_err(try_lookup(dir, "x"), ESTALE);
	put(n);
	put(dir);
	world_close();
}

TEST_LOOP(a_removed_files_descriptors_are_closed_at_once, 0, WORLDS)
{
	struct posix_fs *fs;
	struct vfs_node *n;
	enum vfs_stable how = VFS_UNSTABLE;
	long before;

	world_open(_i, NULL);
	fs = to_posix_fs(w.fs);
	before = fs->cache.nfds;
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "text", &how), 4);
	put(n);
	ck_assert_int_gt(fs->cache.nfds, before);
	must_remove(w.root, "f", false);
	/* The sync of the root might have opened its descriptor. */
	ck_assert_int_le(fs->cache.nfds, before + 1);
	put(must_create(w.root, "g"));
	put(must_create(w.root, "h"));
	assert_ok(DO(posix_rename, &w.who, w.root, .name = name_of("g"),
		     .to = { .dir = w.root, .name = name_of("h") }));
	ck_assert_int_le(fs->cache.nfds, before + 2);
	world_close();
}

TEST_LOOP(only_handles_of_this_backend_are_opened, 0, WORLDS)
{
	static const struct vfs_handle bad[] = {
		{ 0, { 0 } }, { 2, "rr" }, { 1, "x" }, { 1, "k" },
		{ 10, "k\1........" }, { 20, "b" }, { 22, "b" }, { 9, "g" },
		{ 8, "i" }, { 41, "k\1" }, { UINT32_MAX, "k\1" },
	};
	struct vfs_handle h = { .len = 18 };
	unsigned seed = 1;

	world_open(_i, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++)
		assert_err(try_open(&bad[i]), EBADMSG);
	for (int i = 0; i < 2000; i++) {
		for (unsigned j = 1; j < sizeof(h.data); j++)
			h.data[j] = rand_r(&seed) >> 8;
		h.data[0] = 'k';
		h.len = 11 + i % 30;
		ck_assert_int_lt(try_open(&h), 0);
	}
	world_close();
}

TEST_LOOP(no_name_leads_out_of_the_tree, 0, WORLDS)
{
	struct vfs_attr attr;
	struct vfs_node *d, *n;
	char outside[600];

	world_open(_i, NULL);
	n = must_lookup(w.root, "..");
	ck_assert_ptr_eq(n, w.root);
	put(n);
	n = must_lookup(w.root, ".");
	ck_assert_ptr_eq(n, w.root);
	put(n);
	put(must_mkdir(w.root, "a"));
	d = must_lookup(w.root, "a");
	n = must_mkdir(d, "b");
	put(d);
	d = must_lookup(n, "..");
	ck_assert_int_eq(attr_of(d).fileid, to_posix(d)->ino);
	put(d);

	/* Moved out of the tree while a client is in it. */
	snprintf(outside, sizeof(outside), "%s-outside", w.dir);
	assert_ok(mkdir(outside, 0755));
	strcat(outside, "/b");
	assert_ok(rename(local("a/b"), outside));
	assert_ok(DO(posix_getattr, &w.who, n, .attr = &attr));
	assert_err(try_lookup(n, ".."), EACCES);
	put(n);
	assert_ok(rmdir(outside));
	*strrchr(outside, '/') = '\0';
	assert_ok(rmdir(outside));

	assert_ok(symlink("/", local("root")));
	n = must_lookup(w.root, "root");
	ck_assert_int_eq(attr_of(n).type, VFS_LNK);
	assert_err(try_lookup(n, "etc"), ENOTDIR);
	put(n);
	world_close();
}

TEST_LOOP(the_cache_keeps_to_its_bound, 0, WORLDS)
{
	const struct posix_options options = { .max_files = 50 };
	static struct vfs_handle h[300];
	struct vfs_node *n;
	char name[16], buf[64];

	world_open(_i, &options);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "%d", i);
		n = must_create(w.root, name);
		ck_assert_int_gt(write_str(n, 0, name, NULL), 0);
		h[i] = handle_of(n);
		put(n);
		ck_assert_int_le(to_posix_fs(w.fs)->cache.nfds, 54);
	}
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof(name), "%d", i);
		n = must_open(&h[i]);
		ck_assert_int_gt(read_str(n, 0, buf, NULL), 0);
		ck_assert_str_eq(buf, name);
		put(n);
		ck_assert_int_le(to_posix_fs(w.fs)->cache.nfds, 54);
	}
	world_close();
}

TEST_LOOP(without_descriptors_the_client_is_asked_to_wait, 0, WORLDS)
{
	const struct posix_options options = { .max_files = 1000 };
	struct rlimit lim = { 100, 100 };
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *n[100];
	char name[16];
	int i, err = 0;

	world_open(_i, &options);
	assert_ok(setrlimit(RLIMIT_NOFILE, &lim));
	for (i = 0; i < 300; i++) {	/* they are not held */
		snprintf(name, sizeof(name), "f%d", i);
		put(must_create(w.root, name));
	}
	for (i = 0; i < 100 && err == 0; i++) {
		snprintf(name, sizeof(name), "g%d", i);
		err = GET(out, n[i], posix_create, &w.who, w.root,
			  .name = name_of(name), .create = &how);
	}
	assert_err(err, ETIMEDOUT);
	assert_err(try_lookup(w.root, "f0"), ETIMEDOUT);
	while (--i > 0)
		put(n[i - 1]);
	/* The sweep, which the refusals called, can have taken all files before
	 * this look-up finds one to close. */
	EVENTUALLY(try_lookup(w.root, "f0") == 0);
	world_close();
}

static long cached(struct posix_fs *fs)
{
	long n;

	mutex_lock(&fs->cache.lock);
	n = fs->cache.count;
	mutex_unlock(&fs->cache.lock);
	return n;
}

TEST_LOOP(unused_files_are_closed, 0, WORLDS)
{
	const struct posix_options options = { .idle_ms = 40 };
	struct posix_fs *fs;
	struct vfs_handle h;
	struct vfs_node *n, *held;

	world_open(_i, &options);
	fs = to_posix_fs(w.fs);
	held = must_create(w.root, "held");
	n = must_create(w.root, "f");
	h = handle_of(n);
	put(n);
	EVENTUALLY(cached(fs) == 1);
	ck_assert_int_eq(attr_of(held).size, 0);
	assert_ok(try_open(&h));
	put(held);
	EVENTUALLY(cached(fs) == 0);
	world_close();
}

TEST_LOOP(uncommitted_data_is_synced_before_its_file_is_closed, 0, WORLDS)
{
	const struct posix_options options = { .idle_ms = 20 };
	enum vfs_stable how = VFS_UNSTABLE;
	struct posix_fs *fs;
	struct vfs_handle h;
	struct vfs_node *n;

	world_open(_i, &options);
	fs = to_posix_fs(w.fs);
	n = must_create(w.root, "f");
	ck_assert_int_eq(write_str(n, 0, "abc", &how), 3);
	h = handle_of(n);
	put(n);
	EVENTUALLY(cached(fs) == 0);
	n = must_open(&h);
	ck_assert(!to_posix(n)->dirty);
	put(n);
	world_close();
}

/* The server's part of the next test; ends as by kill -9. */
static void serve_and_die(int fd)
{
	struct vfs_node *d, *n;
	struct vfs_handle h;
	char name[16];

	world_mount();
	d = must_mkdir(w.root, "dir");
	for (int i = 0; i < 500; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		n = must_create(d, name);
		h = handle_of(n);
		if (write(fd, &h, sizeof(h)) != sizeof(h))
			_exit(1);
		put(n);
		if (i == 250 && to_posix_fs(w.fs)->table)
			/* Some are in the database. */
			pause_on_purpose(1100000);
	}
	raise(SIGKILL);
}

TEST_LOOP(handles_outlive_kill_9, 0, WORLDS)
{
	struct vfs_handle h;
	int pipe_fd[2], status, count = 0;
	pid_t pid;

	world_prepare(_i, NULL);
	assert_ok(pipe(pipe_fd));
	pid = fork();
	if (pid == 0)
		serve_and_die(pipe_fd[1]);
	close(pipe_fd[1]);
	for (int i = 0; i < 2; i++) {
		static struct vfs_handle all[500];

		while (count < 500 && read(pipe_fd[0], &h, sizeof(h)) ==
		       sizeof(h))
			all[count++] = h;
		ck_assert_int_eq(count, 500);
		if (i == 0) {
			ck_assert_int_eq(waitpid(pid, &status, 0), pid);
			ck_assert(WIFSIGNALED(status));
			world_mount();
		} else {
			world_restart();
		}
		for (int j = 0; j < 500; j++)
			assert_ok(try_open(&all[j]));
	}
	close(pipe_fd[0]);
	world_close();
}

TEST_LOOP(a_second_server_does_not_get_the_same_state, 0, WORLDS)
{
	struct vfs_fs *second;

	world_open(_i, NULL);
	if (to_posix_fs(w.fs)->table)
		assert_err(posix_vfs_ops.mount(&w.config, &second), EBUSY);
	world_close();
}

TEST_LOOP(without_a_state_directory_handles_last_until_the_end, 0, WORLDS)
{
	struct vfs_handle h;
	struct vfs_node *n;

	world_prepare(_i, NULL);
	w.config.state_dir = NULL;
	world_mount();
	n = must_create(w.root, "f");
	h = handle_of(n);
	put(n);
	assert_ok(try_open(&h));
	world_close();
}

TEST_LOOP(a_directory_that_is_not_there_is_an_error, 0, WORLDS)
{
	struct vfs_fs *fs;

	world_prepare(_i, NULL);
	w.config.path = local("missing");
	assert_err(posix_vfs_ops.mount(&w.config, &fs), ENOENT);
	close(open(w.config.path, O_CREAT | O_WRONLY, 0644));
	assert_err(posix_vfs_ops.mount(&w.config, &fs), ENOTDIR);
	world_remove();
}

TEST_LOOP(the_owner_writes_what_it_made_read_only, 0, WORLDS)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = 0400 };
	struct vfs_handle h;
	struct vfs_node *n;
	char buf[64];

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	h = handle_of(n);
	assert_ok(DO(posix_setattr, &w.who, n, .set = &set));
	vfs_node_put(n);
	world_restart();
	n = must_open(&h);
	/* A server that is only the owner: test_posix_owner. */
	if (geteuid() != 0) {
		put(n);
		world_close();
		return;
	}
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	ck_assert_uint_eq(attr_of(n).mode, 0400);
	set.mode = 0;
	assert_ok(DO(posix_setattr, &w.who, n, .set = &set));
	ck_assert_int_eq(read_str(n, 0, buf, NULL), 4);
	assert_ok(DO(posix_commit, &w.who, n));
	ck_assert_uint_eq(attr_of(n).mode, 0);
	put(n);
	world_close();
}

TEST_LOOP(options_are_known_or_refused, 0, WORLDS)
{
	static const char *const bad[] = {
		"sync", "async=1", "table,", "max-files", "max-files=",
		"max-files=0", "idle=5s", "max-files=99999999999",
	};
	static const char good[] = "async,table,max-files=77,idle=1000";
	struct posix_options block = { 0 };
	char *why;

	world_prepare(_i, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_err(backend_options(&posix_vfs_ops, bad[i],
					   strlen(bad[i]), &block, &why),
			   EINVAL);
		ck_assert_ptr_nonnull(why);
		free(why);
	}
	memset(&block, 0, sizeof(block));
	assert_ok(backend_options(&posix_vfs_ops, good, strlen(good), &block,
				  &why));
	w.config.options = &block;
	world_mount();
	ck_assert(!to_posix_fs(w.fs)->sync_names);
	ck_assert_ptr_nonnull(to_posix_fs(w.fs)->table);
	ck_assert_int_eq(to_posix_fs(w.fs)->cache.max_fds, 77);
	ck_assert_uint_eq(to_posix_fs(w.fs)->cache.idle_ms, 1000);
	world_close();
}

int main(void)
{
	return world_run();
}
