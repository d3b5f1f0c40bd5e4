/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend under many threads: for ThreadSanitizer above all. */
#include <sys/stat.h>

#include "tests/unit/posix_fixture.h"

#define THREADS	6
#define FILES	12

static struct vfs_handle handle[FILES];
static atomic_bool failed;

static int use_file(const struct vfs_op *who, unsigned r)
{
	struct vfs_node *n;
	struct vfs_attr attr;
	struct vfs_wcc wcc;
	char buf[16] = "0123456789abcde";
	struct iovec iov = { buf, 16 };
	int64_t rc = GET(out, n, posix_open_handle, who, NULL,
			 .open = { .fs = w.fs, .handle = &handle[r % FILES] });

	if (rc < 0)
		return rc;
	switch (r / FILES % 5) {
	case 0:
		rc = DO(posix_getattr, who, n, .attr = &attr);
		break;
	case 1:
		rc = DO(posix_read, who, n, .read = { .iov = &iov, .niov = 1 },
			.attr = &attr);
		break;
	case 2:
		rc = DO(posix_write, who, n,
			.write = { .off = r % 100, .iov = &iov, .niov = 1 },
			.wcc = &wcc);
		break;
	case 3:
		rc = DO(posix_access, who, n, .access.want = 0x3f,
			.attr = &attr);
		break;
	case 4:
		rc = DO(posix_commit, who, n, .wcc = &wcc);
		break;
	}
	vfs_node_put(n);
	return rc < 0 ? rc : 0;
}

static bool ignore(void *arg, const struct vfs_dirent *d)
{
	return (*(unsigned *)arg)-- > 0;
}

static int use_names(const struct vfs_op *who, unsigned r)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_attr attr, dir_attr;
	struct vfs_node *n;
	struct vfs_wcc wcc, wcc2;
	char name[8] = "n0", name2[8] = "n0";
	unsigned room = r % 20;
	int err;

	name[1] += r % 5;
	name2[1] += r / 5 % 5;
	switch (r / 25 % 5) {
	case 0:
		err = GET(out, n, posix_create, who, w.root,
			  .name = name_of(name), .create = &how, .attr = &attr,
			  .wcc = &wcc);
		break;
	case 1:
		return DO(posix_remove, who, w.root, .name = name_of(name),
			  .wcc = &wcc);
	case 2:
		return DO(posix_rename, who, w.root, .name = name_of(name),
			  .to = { .dir = w.root, .name = name_of(name2) },
			  .wcc = &wcc, .to.wcc = &wcc2);
	case 3:
		return DO(posix_readdir, who, w.root,
			  .readdir = { .plus = r & 1, .emit = ignore,
				       .arg = &room }, .attr = &attr);
	default:
		err = GET(out, n, posix_lookup, who, w.root,
			  .name = name_of(name), .attr = &attr,
			  .lookup.dir_attr = &dir_attr);
	}
	if (err == 0)
		vfs_node_put(n);
	return err;
}

static void busy(void *arg)
{
	struct vfs_cred cred = w.cred;
	const struct vfs_op who = { .cred = &cred };
	unsigned seed = (uintptr_t)arg;
	int err;

	for (int i = 0; i < 1500; i++) {
		unsigned r = rand_r(&seed) >> 3;

		/* Callers come and go. */
		if (geteuid() == 0)
			cred.gid = r % 2;
		err = i % 2 ? use_file(&who, r) : use_names(&who, r);
		/* Names are there or not, as the others leave them. */
		if (err < 0 && err != -ENOENT && err != -EEXIST &&
		    err != -ESTALE) {
			fprintf(stderr, "%s\n", strerror(-err));
			failed = true;
		}
	}
}

TEST_CASE(.timeout = 120);

TEST_LOOP(a_new_file_gets_its_size_when_a_look_up_found_it_first, 0, WORLDS)
{
	struct vfs_setattr set = { .set = VFS_SET_SIZE, .size = 5 };
	struct vfs_node *n;
	struct stat st;
	bool changed;

	world_open(_i, NULL);
	assert_ok(close(open(local("f"), O_CREAT | O_WRONLY, 0600)));
	n = must_lookup(w.root, "f");
	assert_ok(posix_stat(to_posix(n), &st));
	assert_ok(posix_setattr_new(&w.who, to_posix(n), &set, &st, &changed));
	ck_assert(changed);
	ck_assert_int_eq(st.st_size, 5);
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(many_threads_share_few_files_and_descriptors, 0, WORLDS)
{
	const struct posix_options options = { .max_files = 8, .idle_ms = 8,
					       .async = true };
	pthread_t t[THREADS];
	char name[16];

	world_open(_i, &options);
	for (int i = 0; i < FILES; i++) {
		struct vfs_node *n;

		snprintf(name, sizeof(name), "f%d", i);
		n = must_create(w.root, name);
		handle[i] = handle_of(n);
		vfs_node_put(n);
	}
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_ok(thread_start(&t[i], "busy", busy, (void *)(i + 1)));
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	ck_assert(!failed);
	ck_assert_int_le(to_posix_fs(w.fs)->cache.nfds, 8 + 3 * THREADS + 4);
	for (int i = 0; i < FILES; i++)
		assert_ok(try_open(&handle[i]));
	world_close();
}

static void make_again(void *arg)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED,
				  .attr.set = VFS_SET_SIZE };
	const struct vfs_make link = { .type = VFS_LNK, .target = "f",
				       .target_len = 1 };
	struct vfs_node *n;
	int err;

	for (int i = 0; i < 2000; i++) {
		err = GET(out, n, posix_create, &w.who, w.root,
			  .name = name_of("f"), .create = &how);
		if (err == 0)
			vfs_node_put(n);
		else
			failed = true;
		err = GET(out, n, posix_make, &w.who, w.root,
			  .name = name_of("l"), .make = &link);
		if (err == 0)
			vfs_node_put(n);
		else if (err != -EEXIST)
			failed = true;
	}
}

static void take_away(void *arg)
{
	int err;

	for (int i = 0; i < 4000; i++) {
		err = DO(posix_remove, &w.who, w.root,
			 .name = name_of(i % 2 ? "f" : "l"));
		if (err < 0 && err != -ENOENT)
			failed = true;
	}
}

TEST_LOOP(a_name_that_is_just_removed_can_be_made, 0, WORLDS)
{
	const struct posix_options options = { .async = true };
	pthread_t t[4];

	world_open(_i, &options);
	for (int i = 0; i < 4; i++)
		assert_ok(thread_start(&t[i], "name",
				       i % 2 ? take_away : make_again, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	ck_assert(!failed);
	world_close();
}

static void write_far(void *arg)
{
	struct vfs_node *n = arg;

	/* SIGXFSZ comes with it, which a thread has blocked. */
	failed = write_str(n, 4090, "0123456789", NULL) != 6;
	failed |= write_str(n, 8192, "x", NULL) != -EFBIG;
}

TEST_LOOP(a_limit_on_file_sizes_is_an_error_and_not_the_end, 0, WORLDS)
{
	struct rlimit old, lim;
	struct vfs_node *n;
	pthread_t t;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	assert_ok(getrlimit(RLIMIT_FSIZE, &old));
	lim = old;
	lim.rlim_cur = 4096;
	assert_ok(setrlimit(RLIMIT_FSIZE, &lim));
	failed = true;
	assert_ok(thread_start(&t, "writer", write_far, n));
	pthread_join(t, NULL);
	assert_ok(setrlimit(RLIMIT_FSIZE, &old));
	ck_assert(!failed);
	vfs_node_put(n);
	world_close();
}

/* A COMMIT that meets the end of a forgotten file finds another node, which
 * has nothing to sync.  So the client sends its data again. */
TEST_LOOP(a_forgotten_file_with_uncommitted_data_changes_the_verifier, 0, 2)
{
	enum vfs_stable how = VFS_UNSTABLE;
	struct posix_fs *fs;
	struct vfs_node *n;
	uint64_t verf;

	world_open(_i * 2, NULL);
	fs = to_posix_fs(w.fs);
	fs->ram = false;
	for (int dirty = 0; dirty < 2; dirty++) {
		n = must_create(w.root, dirty ? "dirty" : "clean");
		if (dirty)
			ck_assert_int_eq(write_str(n, 0, "abc", &how), 3);
		verf = w.fs->verf;
		posix_cache_forget(&fs->cache, to_posix(n));
		vfs_node_put(n);
		ck_assert_int_eq(w.fs->verf != verf, dirty);
	}
	world_close();
}

int main(void)
{
	return world_run();
}
