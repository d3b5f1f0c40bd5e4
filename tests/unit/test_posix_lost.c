/* SPDX-License-Identifier: BSD-2-Clause */
/* Handles of files that are not where the table of files has them. */
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/posix_fixture.h"
#include "vfs/posix/cache.h"
#include "vfs/posix/ops.h"
#include "vfs/posix/table/table.h"

/* GANNET_LOST_FILES: this many instead; also prints the cost. */
#define MANY	1000

static unsigned many(void)
{
	const char *s = getenv("GANNET_LOST_FILES");

	return s ? (unsigned)atoi(s) : MANY;
}

/* The backend's way to read a directory; it hangs on demand. */
static atomic_bool hang;
static atomic_int hanging;

int openat(int dir_fd, const char *path, int flags, ...)
{
	va_list ap;
	mode_t mode;

	va_start(ap, flags);
	mode = va_arg(ap, mode_t);
	va_end(ap);
	if (strcmp(path, ".") == 0 && atomic_load(&hang)) {
		atomic_fetch_add(&hanging, 1);
		WAIT_WHILE(atomic_load(&hang));
	}
	return (int)syscall(SYS_openat, dir_fd, path, flags, mode);
}

/* As on overlayfs, which makes no handles.  The inode number of a directory
 * that it has copied since: the copy has another birth time. */
static atomic_bool overlay;
static atomic_ullong copied;

int name_to_handle_at(int dir_fd, const char *name, struct file_handle *h,
		      int *mount, int flags)
{
	if (atomic_load(&overlay)) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_name_to_handle_at, dir_fd, name, h, mount,
			    flags);
}

int statx(int dir_fd, const char *path, int flags, unsigned mask,
	  struct statx *sx)
{
	int rc = (int)syscall(SYS_statx, dir_fd, path, flags, mask, sx);

	if (rc == 0 && sx->stx_ino == atomic_load(&copied))
		sx->stx_btime.tv_sec++;
	return rc;
}

static void put(struct vfs_node *n)
{
	vfs_node_put(n);
}

static uint64_t readings(void)
{
	return stats_sum_by_name("posix_rolls");
}

/* These tests are about the table: worlds 2 and 3. */
static void open_world(int i)
{
	const struct posix_options options = { .async = true };

	world_open(i, &options);
	ck_assert_ptr_nonnull(to_posix_fs(w.fs)->table);
}

static char *name_no(unsigned i)
{
	static char name[2][16];
	static int turn;

	turn ^= 1;
	snprintf(name[turn], sizeof(name[turn]), "f%u", i);
	return name[turn];
}

static void make(const char *name)
{
	int fd = open(local(name), O_CREAT | O_WRONLY, 0644);

	ck_assert_int_ge(fd, 0);
	close(fd);
}

/* The handle of @name, whose node is let go of. */
static struct vfs_handle learn(const char *name)
{
	struct vfs_node *n = must_lookup(w.root, name);
	struct vfs_handle h = handle_of(n);

	posix_cache_forget(&to_posix_fs(w.fs)->cache, to_posix(n));
	put(n);
	return h;
}

/* As a client that is told to come again. */
static int open_in_the_end(const struct vfs_handle *h)
{
	int err = try_open_again(h);
	struct posix_node *n;

	n = posix_cache_find(to_posix_fs(w.fs), h);
	if (n) {
		posix_cache_forget(&to_posix_fs(w.fs)->cache, n);
		put(&n->node);
	}
	return err;
}

static bool is_settled(const char *dir)
{
	struct stat st;

	assert_ok(stat(local(dir), &st));
	return posix_settled(&st);
}

/* The last change of @dir is past: a later one gives it another ctime. */
static void settle(const char *dir)
{
	EVENTUALLY(is_settled(dir));
}

static struct vfs_handle *handles;

static void learn_many(void)
{
	handles = calloc(many(), sizeof(*handles));
	for (unsigned i = 0; i < many(); i++) {
		make(name_no(i));
		handles[i] = learn(name_no(i));
	}
}

/* Another client meanwhile. */
struct light {
	struct vfs_handle h;
	atomic_bool stop;
	uint64_t calls, slowest_ms;
};

static void be_light(void *arg)
{
	struct light *l = arg;

	while (!atomic_load(&l->stop)) {
		uint64_t start = runner_now_ms(), took;

		ck_assert_int_eq(open_in_the_end(&l->h), 0);
		took = runner_now_ms() - start;
		l->slowest_ms = MAX(l->slowest_ms, took);
		l->calls++;
		/* A light user is not always there. */
		pause_on_purpose(1000);
	}
}

/* As a client that keeps at it; how long that takes. */
static uint64_t find_all_stale(void)
{
	uint64_t start = runner_now_ms();

	for (unsigned i = 0; i < many(); i++)
		assert_err(open_in_the_end(&handles[i]), ESTALE);
	return runner_now_ms() - start;
}

TEST_LOOP(many_stale_handles_cost_one_scan_of_their_directory, 2, WORLDS)
{
	struct light light = { .calls = 0 };
	uint64_t before, took;
	pthread_t other;

	open_world(_i);
	learn_many();
	for (unsigned i = 0; i < many(); i += many() > MANY ? 20 : 1)
		assert_ok(unlink(local(name_no(i))));
	if (many() > MANY)		/* the others are still there */
		for (unsigned i = 0; i < many(); i++)
			handles[i] = handles[i - i % 20];
	make("light");
	light.h = learn("light");
	assert_ok(thread_start(&other, "light", be_light, &light));
	settle(".");
	before = readings();
	took = find_all_stale();
	ck_assert_uint_eq(readings(), before + 1);
	atomic_store(&light.stop, true);
	pthread_join(other, NULL);
	if (many() > MANY)
		printf("%u stale handles of %u files: %lu ms; another client's "
		       "slowest of %lu calls: %lu ms\n", many() / 20, many(),
		       (unsigned long)took, (unsigned long)light.calls,
		       (unsigned long)light.slowest_ms);
	assert_err(try_open(&handles[0]), ESTALE);
	world_restart();
	(void)find_all_stale();
	ck_assert_uint_eq(readings(), before + 1);
	free(handles);
	world_close();
}

TEST_LOOP(many_renamed_files_cost_one_scan_of_their_directory, 2, WORLDS)
{
	uint64_t before;
	char name[24];

	open_world(_i);
	learn_many();
	for (unsigned i = 0; i < many(); i++) {
		snprintf(name, sizeof(name), "renamed-%u", i);
		assert_ok(rename(local(name_no(i)), local(name)));
	}
	before = readings();
	for (unsigned i = 0; i < many(); i++)
		assert_ok(try_open(&handles[i]));
	ck_assert_uint_eq(readings(), before + 1);
	free(handles);
	world_close();
}

static struct vfs_handle few[3];

static void open_first(void *arg)
{
	*(int *)arg = try_open(&few[0]);
}

TEST_LOOP(nobody_waits_while_a_directory_is_read, 2, WORLDS)
{
	struct vfs_node *n;
	pthread_t thread;
	int err = 1;

	open_world(_i);
	for (unsigned i = 0; i < 3; i++) {
		make(name_no(i));
		few[i] = learn(name_no(i));
	}
	assert_ok(unlink(local(name_no(0))));
	assert_ok(unlink(local(name_no(1))));
	atomic_store(&hang, true);
	assert_ok(thread_start(&thread, "opener", open_first, &err));
	EVENTUALLY(atomic_load(&hanging) == 1);
	assert_err(try_open(&few[1]), ETIMEDOUT);
	assert_ok(try_open(&few[2]));
	n = must_create(w.root, "new");
	put(n);
	must_remove(w.root, "new", false);
	atomic_store(&hang, false);
	pthread_join(thread, NULL);
	/* A listing does not show names that changed meanwhile. */
	assert_err(err, ETIMEDOUT);
	assert_err(open_in_the_end(&few[0]), ESTALE);
	assert_err(open_in_the_end(&few[1]), ESTALE);
	ck_assert_int_eq(hanging, 1);
	world_close();
}

TEST_LOOP(no_directory_is_read_on_a_poller, 2, WORLDS)
{
	const struct vfs_op now = { .cred = &w.cred, .nonblock = true };

	open_world(_i);
	make("f");
	few[0] = learn("f");
	assert_ok(rename(local("f"), local("g")));
	assert_err(DO(posix_open_handle, &now, NULL,
		      .open = { .fs = w.fs, .handle = &few[0] }), EAGAIN);
	assert_ok(try_open(&few[0]));
	world_close();
}

/* Random changes, also after the directory was read; only known handles are
 * opened. */
TEST_LOOP(an_existing_file_is_never_stale, 2, WORLDS)
{
	struct { bool there; char name[16]; struct vfs_handle h; } f[40] = {
		0
	};
	unsigned seed = 7 + _i, next = 0;

	open_world(_i);
	for (unsigned step = 0; step < 3000; step++) {
		unsigned i = rand_r(&seed) % ARRAY_SIZE(f);
		const char *name = name_no(next++);

		switch (rand_r(&seed) % 4) {
		case 0:			/* it comes, if need be after it goes */
			if (f[i].there)
				assert_ok(unlink(local(f[i].name)));
			make(name);
			strcpy(f[i].name, name);
			f[i].h = learn(name);
			f[i].there = true;
			break;
		case 1:
			if (f[i].there)
				assert_ok(unlink(local(f[i].name)));
			f[i].there = false;
			break;
		case 2:
			if (!f[i].there)
				break;
			assert_ok(rename(local(f[i].name), local(name)));
			strcpy(f[i].name, name);
			break;
		default:
			if (f[i].h.len)
				ck_assert_int_eq(open_in_the_end(&f[i].h),
						 f[i].there ? 0 : -ESTALE);
		}
	}
	world_close();
}

static atomic_int found;

static void open_until_found(void *arg)
{
	if (open_in_the_end(arg) == 0)
		atomic_fetch_add(&found, 1);
}

TEST_LOOP(calls_during_a_scan_are_told_to_come_again, 2, WORLDS)
{
	pthread_t threads[8];

	open_world(_i);
	make("f");
	few[0] = learn("f");
	assert_ok(rename(local("f"), local("g")));
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		assert_ok(thread_start(&threads[i], "opener", open_until_found,
				       &few[0]));
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(found, ARRAY_SIZE(threads));
	world_close();
}

/* More directories than rolls are kept for. */
TEST_LOOP(files_are_found_in_many_directories, 2, WORLDS)
{
	struct vfs_handle h[POSIX_ROLLS + 8];
	struct vfs_node *d, *n;
	char path[64], to[64];

	open_world(_i);
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++) {
		d = must_mkdir(w.root, name_no(i));
		n = must_create(d, "f");
		h[i] = handle_of(n);
		posix_cache_forget(&to_posix_fs(w.fs)->cache, to_posix(n));
		put(n);
		put(d);
		snprintf(path, sizeof(path), "%s/f", name_no(i));
		snprintf(to, sizeof(to), "%s/g", name_no(i));
		assert_ok(rename(local(path), local(to)));
	}
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++)
		assert_ok(try_open(&h[i]));
	world_close();
}

/* The table has had its place there, so it tells no reading of it. */
TEST_LOOP(a_file_that_comes_back_is_found_after_a_local_rename, 2, WORLDS)
{
	struct vfs_handle f, g;
	struct vfs_node *there;

	open_world(_i);
	there = must_mkdir(w.root, "there");
	make("f");
	make("g");
	f = learn("f");
	g = learn("g");
	assert_ok(rename(local("f"), local("there/x")));
	put(must_lookup(there, "x"));
	assert_ok(rename(local("g"), local("g2")));
	settle(".");
	assert_ok(open_in_the_end(&g));		/* the directory was read */
	assert_ok(DO(posix_rename, &w.who, there, .name = name_of("x"),
		     .to = { .dir = w.root, .name = name_of("f") }));
	assert_ok(open_in_the_end(&f));
	assert_ok(rename(local("f"), local("k")));
	assert_ok(open_in_the_end(&f));
	settle(".");
	assert_ok(open_in_the_end(&f));
	put(there);
	world_close();
}

/* Any name will do to find a file, but each can be removed. */
TEST_LOOP(a_file_keeps_the_name_that_a_local_process_gave_it, 2, WORLDS)
{
	struct vfs_node *d, *n;
	struct vfs_handle h;
	char dir[16], path[32], to[32];

	open_world(_i);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(dir, sizeof(dir), "d%u", i);
		d = must_mkdir(w.root, dir);
		n = must_create(d, "e");
		h = handle_of(n);
		assert_ok(DO(posix_link, &w.who, n,
			     .to = { .dir = d, .name = name_of(name_no(i)) }));
		posix_cache_forget(&to_posix_fs(w.fs)->cache, to_posix(n));
		put(n);
		snprintf(path, sizeof(path), "%s/e", dir);
		snprintf(to, sizeof(to), "%s/c", dir);
		assert_ok(rename(local(path), local(to)));
		snprintf(to, sizeof(to), "%s-too", dir);
		assert_ok(rename(local(dir), local(to)));
		posix_cache_forget(&to_posix_fs(w.fs)->cache, to_posix(d));
		assert_ok(open_in_the_end(&h));
		must_remove(d, name_no(i), false);
		put(d);
		assert_ok(open_in_the_end(&h));
	}
	world_close();
}

/* overlayfs copies a directory when a file in it is first changed. */
TEST_LOOP(files_are_found_in_a_directory_that_was_copied, 2, WORLDS)
{
	struct vfs_handle dir, below, file, deep, gone;
	struct vfs_node *d, *e, *n;

	atomic_store(&overlay, true);
	open_world(_i);
	d = must_mkdir(w.root, "d");
	e = must_mkdir(d, "e");
	dir = handle_of(d);
	below = handle_of(e);
	n = must_create(d, "f");
	file = handle_of(n);
	put(n);
	n = must_create(e, "g");
	deep = handle_of(n);
	put(n);
	n = must_create(d, "h");
	gone = handle_of(n);
	put(n);
	ck_assert_int_eq(dir.data[0], 'b');
	atomic_store(&copied, posix_handle_ino(&dir));
	put(e);
	put(d);
	assert_ok(rename(local("d/h"), local("h")));
	assert_ok(symlink("f", local("d/h")));

	for (unsigned i = 0; i < 2; i++) {
		world_restart();
		assert_ok(try_open_again(&file));
		assert_ok(try_open_again(&deep));
		assert_ok(try_open_again(&below));
		assert_err(try_open_again(&dir), ESTALE);
		assert_err(try_open_again(&gone), ESTALE);
		/* The copy's own handle takes the place. */
		put(must_lookup(w.root, "d"));
	}
	world_close();
	atomic_store(&copied, 0);
	atomic_store(&overlay, false);
}

static atomic_bool idle;

static void be_busy(void *arg)
{
	while (!atomic_load(&idle)) {
		assert_ok(mkdir(arg, 0755));
		assert_ok(rmdir(arg));
	}
}

/* No ctime of it stands for long. */
TEST_LOOP(a_stale_handle_is_told_so_in_a_busy_directory, 2, WORLDS)
{
	pthread_t thread;
	char path[1024];

	open_world(_i);
	for (unsigned i = 0; i < 3; i++) {
		make(name_no(i));
		few[i] = learn(name_no(i));
	}
	strcpy(path, local("busy"));
	atomic_store(&idle, false);
	assert_ok(thread_start(&thread, "busy", be_busy, path));
	assert_ok(unlink(local(name_no(0))));
	assert_ok(unlink(local(name_no(1))));
	assert_ok(rename(local(name_no(2)), local("renamed")));
	assert_err(open_in_the_end(&few[0]), ESTALE);
	assert_err(open_in_the_end(&few[1]), ESTALE);
	assert_ok(open_in_the_end(&few[2]));
	atomic_store(&idle, true);
	pthread_join(thread, NULL);
	world_close();
}

int main(void)
{
	return world_run();
}
