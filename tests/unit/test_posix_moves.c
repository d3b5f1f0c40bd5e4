/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: handles of files that are renamed, here or locally. */
#include <sys/stat.h>

#include "tests/unit/posix_fixture.h"

static void put(struct vfs_node *n)
{
	vfs_node_put(n);
}

TEST_LOOP(handles_follow_renames_and_links_made_here, 0, WORLDS)
{
	struct vfs_node *a, *b, *n;
	struct vfs_handle file, dir;

	world_open(_i, NULL);
	a = must_mkdir(w.root, "a");
	b = must_mkdir(w.root, "b");
	n = must_create(a, "f");
	file = handle_of(n);
	dir = handle_of(a);
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	assert_ok(DO(posix_rename, &w.who, a, .name = name_of("f"),
		     .to = { .dir = b, .name = name_of("g") }));
	assert_ok(DO(posix_rename, &w.who, w.root, .name = name_of("a"),
		     .to = { .dir = b, .name = name_of("c") }));
	assert_ok(DO(posix_link, &w.who, n,
		     .to = { .dir = a, .name = name_of("link") }));
	put(n);
	put(a);
	put(b);
	world_restart();
	assert_ok(try_open(&file));
	assert_ok(try_open(&dir));
	b = must_lookup(w.root, "b");
	must_remove(b, "g", false);
	put(b);
	world_restart();
	n = must_open(&file);		/* by its other name */
	ck_assert_int_eq(attr_of(n).nlink, 1);
	put(n);
	world_close();
}

TEST_LOOP(handles_follow_what_local_processes_rename_in_place, 0, WORLDS)
{
	struct vfs_handle file, dir;
	struct vfs_node *d, *n;

	world_open(_i, NULL);
	d = must_mkdir(w.root, "d");
	n = must_create(d, "f");
	file = handle_of(n);
	dir = handle_of(d);
	put(n);
	put(d);
	world_restart();
	assert_ok(rename(local("d"), local("e")));
	assert_ok(rename(local("e/f"), local("e/g")));
	assert_ok(try_open(&file));
	assert_ok(try_open(&dir));
	world_restart();
	assert_ok(try_open(&file));
	world_close();
}

/* Without the system's handles, only once a caller has looked up where it is
 * now; a directory's files are found with it. */
TEST_LOOP(handles_follow_what_is_moved_elsewhere_when_it_is_looked_up,
	  0, WORLDS)
{
	struct vfs_handle dir, h[20];
	struct vfs_node *d, *n;
	char name[8];
	int lost;

	world_open(_i, NULL);
	lost = to_posix_fs(w.fs)->table ? -ESTALE : 0;
	put(must_mkdir(w.root, "e"));
	d = must_mkdir(w.root, "d");
	n = must_mkdir(d, "sub");
	dir = handle_of(n);
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++) {
		snprintf(name, sizeof(name), "f%u", i);
		put(d);
		d = must_create(n, name);
		h[i] = handle_of(d);
	}
	put(n);
	put(d);
	world_restart();
	assert_ok(rename(local("d/sub"), local("e/other")));
	ck_assert_int_eq(try_open_again(&h[7]), lost);
	ck_assert_int_eq(try_open_again(&dir), lost);
	d = must_lookup(w.root, "e");
	put(must_lookup(d, "other"));
	put(d);
	assert_ok(try_open(&dir));
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++)
		assert_ok(try_open(&h[i]));
	world_restart();
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++)
		assert_ok(try_open(&h[i]));
	world_close();
}

/* The cache holds it by its descriptor. */
TEST_LOOP(a_file_in_use_may_be_moved_anywhere, 0, WORLDS)
{
	struct vfs_handle file;
	struct vfs_node *d, *n;
	char text[64];
	bool eof;

	world_open(_i, NULL);
	d = must_mkdir(w.root, "d");
	put(must_mkdir(w.root, "e"));
	n = must_create(d, "f");
	ck_assert_int_eq(write_str(n, 0, "abc", NULL), 3);
	file = handle_of(n);
	put(n);
	assert_ok(rename(local("d/f"), local("e/g")));
	n = must_open(&file);
	ck_assert_int_eq(read_str(n, 0, text, &eof), 3);
	put(n);
	put(d);
	world_close();
}

#define RENAMES 2000

static struct vfs_node *dirs[2];
static atomic_bool over;
static pthread_t renamer;

static void rename_to_and_fro(void *arg)
{
	for (int i = 0; i < RENAMES; i++)
		assert_ok(DO(posix_rename, &w.who, dirs[i % 2],
			     .name = name_of("f"),
			     .to = { .dir = dirs[1 - i % 2],
				     .name = name_of("f") }));
	atomic_store(&over, true);
}

/* In world @i, "f" is renamed from one directory to the other and back. */
static void begin_renames(int i, struct vfs_handle *file)
{
	struct vfs_node *n;

	world_open(i, NULL);
	to_posix_fs(w.fs)->sync_names = false;
	dirs[0] = must_mkdir(w.root, "a");
	dirs[1] = must_mkdir(w.root, "b");
	n = must_create(dirs[0], "f");
	*file = handle_of(n);
	put(n);
	atomic_store(&over, false);
	assert_ok(thread_start(&renamer, "renames", rename_to_and_fro, NULL));
}

static void end_renames(void)
{
	assert_ok(pthread_join(renamer, NULL));
	put(dirs[0]);
	put(dirs[1]);
	world_close();
}

TEST_LOOP(a_name_during_renames_is_there_or_not, 0, WORLDS)
{
	struct vfs_handle file;
	int err;

	begin_renames(_i, &file);
	while (!atomic_load(&over)) {
		err = try_lookup(dirs[0], "f");
		ck_assert(err == 0 || err == -ENOENT);
	}
	end_renames();
}

/* It is no longer in use. */
static void forget(const struct vfs_handle *h)
{
	struct posix_cache *c = &to_posix_fs(w.fs)->cache;
	struct posix_node *n = posix_cache_find(to_posix_fs(w.fs), h);

	if (!n)
		return;
	posix_cache_forget(c, n);
	vfs_node_put(&n->node);
}

TEST_LOOP(a_handle_of_a_file_during_renames_is_not_stale, 0, WORLDS)
{
	struct vfs_handle file;
	int err;

	begin_renames(_i, &file);
	while (!atomic_load(&over)) {
		forget(&file);
		err = try_open(&file);
		ck_assert(err == 0 || err == -ETIMEDOUT);
	}
	forget(&file);
	assert_ok(try_open(&file));
	end_renames();
}

static void end_move(void *table)
{
	/* As the kernel's rename in a directory that another one locks. */
	pause_on_purpose(20000);
	posix_table_move_ends(table);
}

TEST_LOOP(a_rename_that_takes_a_while_is_waited_for, 0, WORLDS)
{
	struct vfs_handle file;
	struct posix_table *table;
	struct vfs_node *n;
	pthread_t thread;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	file = handle_of(n);
	put(n);
	if (to_posix_fs(w.fs)->table) {
		must_remove(w.root, "f", false);
		world_restart();
		table = to_posix_fs(w.fs)->table;
		posix_table_move_begins(table);
		ck_assert_int_eq(thread_start(&thread, "move", end_move,
					      table), 0);
		ck_assert_int_eq(try_open(&file), -ESTALE);
		pthread_join(thread, NULL);
	}
	world_close();
}

int main(void)
{
	return world_run();
}
