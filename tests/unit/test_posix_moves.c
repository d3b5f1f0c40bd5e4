/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: handles of files that are renamed, here or locally. */
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

/* The table learns by names; the system's handles need no learning. */
START_TEST(what_was_moved_elsewhere_is_found_by_its_name)
{
	struct vfs_handle file, dir, below;
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
	e = must_mkdir(d, "sub");
	n = must_create(e, "g");
	dir = handle_of(e);
	below = handle_of(n);
	put(n);
	put(e);
	put(d);
	world_restart();
	assert_ok(rename(local("d/f"), local("e/f")));
	assert_ok(rename(local("d/sub"), local("e/sub")));
	ck_assert_int_eq(try_open(&file), table ? -ESTALE : 0);
	ck_assert_int_eq(try_open(&below), table ? -ESTALE : 0);
	e = must_lookup(w.root, "e");
	put(must_lookup(e, "f"));
	put(must_lookup(e, "sub"));
	put(e);
	world_restart();
	assert_ok(try_open(&file));
	assert_ok(try_open(&dir));
	assert_ok(try_open(&below));
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
	add_world_test(t, what_was_moved_elsewhere_is_found_by_its_name);
	add_world_test(t, what_is_in_use_may_be_moved_anywhere);
	suite_add_tcase(s, t);
	return world_run(s);
}
