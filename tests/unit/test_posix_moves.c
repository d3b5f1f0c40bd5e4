/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: handles of files that are renamed, here or locally. */
#include <sys/stat.h>
#include <time.h>

#include "tests/unit/posix_fixture.h"

static void put(struct vfs_node *n)
{
	vfs_node_put(n);
}

START_TEST(handles_follow_renames_and_links_made_here)
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
	assert_ok(posix_rename(&w.ctx, a, name_of("f"), b, name_of("g"), NULL,
			       NULL));
	assert_ok(posix_rename(&w.ctx, w.root, name_of("a"), b, name_of("c"),
			       NULL, NULL));
	assert_ok(posix_link(&w.ctx, n, a, name_of("link"), NULL, NULL));
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
END_TEST

START_TEST(handles_follow_what_local_processes_rename_in_place)
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
END_TEST

/* A directory's files are found with it, by one walk. */
START_TEST(handles_follow_what_local_processes_move_elsewhere)
{
	uint64_t walks = stats_sum_by_name("posix_searches");
	struct vfs_handle dir, below, h[20];
	struct vfs_node *d, *n;
	char name[8];
	bool table;

	world_open(_i, NULL);
	table = to_posix_fs(w.fs)->table;
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
	below = h[7];
	world_restart();
	assert_ok(mkdir(local("e/deep"), 0755));
	assert_ok(rename(local("d/sub"), local("e/deep/er")));
	assert_ok(try_open(&below));
	assert_ok(try_open(&dir));
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++)
		assert_ok(try_open(&h[i]));
	ck_assert_uint_eq(stats_sum_by_name("posix_searches") - walks, table);
	world_restart();
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++)
		assert_ok(try_open(&h[i]));
	ck_assert_uint_eq(stats_sum_by_name("posix_searches") - walks, table);
	world_close();
}
END_TEST

static struct vfs_handle wanted;
static atomic_int found;

static void open_wanted(void *arg)
{
	if (try_open(&wanted) == 0)
		atomic_fetch_add(&found, 1);
}

START_TEST(who_asks_while_it_is_looked_for_waits)
{
	struct vfs_node *d, *n;
	pthread_t threads[8];
	char name[32];

	world_open(_i, NULL);
	put(must_mkdir(w.root, "e"));
	d = must_mkdir(w.root, "d");
	n = must_create(d, "f");
	wanted = handle_of(n);
	put(n);
	put(d);
	world_restart();
	/* A walk may last a second and no longer. */
	for (int i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "d%d", i);
		assert_ok(mkdir(local(name), 0755));
	}
	assert_ok(rename(local("d/f"), local("e/f")));
	atomic_store(&found, 0);
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		assert_ok(thread_start(&threads[i], "opener", open_wanted,
				       NULL));
	for (unsigned i = 0; i < ARRAY_SIZE(threads); i++)
		pthread_join(threads[i], NULL);
	ck_assert_int_eq(found, ARRAY_SIZE(threads));
	world_close();
}
END_TEST

static int64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* Each is looked for once at most, and not while a pause lasts, which comes
 * after each walk. */
START_TEST(what_local_processes_removed_is_not_looked_for_again)
{
	uint64_t walks = stats_sum_by_name("posix_searches");
	struct vfs_handle h[50];
	unsigned pauses = 0;
	struct posix_fs *fs;
	struct vfs_node *n;
	char name[8];

	world_open(_i, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++) {
		snprintf(name, sizeof(name), "f%u", i);
		n = must_create(w.root, name);
		h[i] = handle_of(n);
		put(n);
	}
	world_restart();
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++) {
		snprintf(name, sizeof(name), "f%u", i);
		assert_ok(unlink(local(name)));
	}
	fs = to_posix_fs(w.fs);
	fs->search_again = INT64_MAX;
	assert_err(try_open(&h[0]), ESTALE);
	ck_assert_uint_eq(stats_sum_by_name("posix_searches"), walks);
	for (unsigned i = 1; i < ARRAY_SIZE(h); i++) {
		fs->search_again = 0;
		assert_err(try_open(&h[i]), ESTALE);
		pauses += fs->search_again > now_ns();
		ck_assert_uint_eq(stats_sum_by_name("posix_searches"),
				  walks + (fs->table ? i : 0));
	}
	/* Unless this test stood still each time after it. */
	ck_assert_int_eq(pauses > 0, !!fs->table);
	for (unsigned i = 0; i < ARRAY_SIZE(h); i++) {
		fs->search_again = 0;
		assert_err(try_open(&h[i]), ESTALE);
	}
	ck_assert_uint_eq(stats_sum_by_name("posix_searches"),
			  walks + (fs->table ? ARRAY_SIZE(h) - 1 : 0));
	world_close();
}
END_TEST

/* Where there is no time for a walk, or the tree is too large. */
START_TEST(what_was_moved_elsewhere_is_found_by_its_name)
{
	struct vfs_handle file;
	struct vfs_node *d, *e, *n;
	bool table;

	world_open(_i, NULL);
	table = to_posix_fs(w.fs)->table;
	d = must_mkdir(w.root, "d");
	e = must_mkdir(w.root, "e");
	n = must_create(d, "f");
	file = handle_of(n);
	put(n);
	put(e);
	put(d);
	world_restart();
	to_posix_fs(w.fs)->search_again = INT64_MAX;
	assert_ok(rename(local("d/f"), local("e/f")));
	ck_assert_int_eq(try_open(&file), table ? -ESTALE : 0);
	e = must_lookup(w.root, "e");
	put(must_lookup(e, "f"));
	put(e);
	world_restart();
	assert_ok(try_open(&file));
	world_close();
}
END_TEST

/* The cache holds it by its descriptor. */
START_TEST(what_is_in_use_may_be_moved_anywhere)
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
END_TEST

int main(void)
{
	Suite *s = suite_create("posix moves");
	TCase *t = tcase_create("moves");

	add_world_test(t, handles_follow_renames_and_links_made_here);
	add_world_test(t, handles_follow_what_local_processes_rename_in_place);
	add_world_test(t, handles_follow_what_local_processes_move_elsewhere);
	add_world_test(t, who_asks_while_it_is_looked_for_waits);
	add_world_test(t, what_local_processes_removed_is_not_looked_for_again);
	add_world_test(t, what_was_moved_elsewhere_is_found_by_its_name);
	add_world_test(t, what_is_in_use_may_be_moved_anywhere);
	suite_add_tcase(s, t);
	return world_run(s);
}
