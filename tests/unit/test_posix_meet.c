/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The posix backend with the table: a handle holds when another call comes in
 * between.  The other call is made from within the system calls of the first.
 */
#include <sys/stat.h>
#include <sys/syscall.h>

#include "tests/unit/posix_fixture.h"

/* Calls of name_to_handle_at() that one operation makes, and more. */
#define MOMENTS	12

static void (*between)(void);		/* once */
static int calls_before;		/* of name_to_handle_at(); -1: never */

static void come_in(void)
{
	void (*f)(void) = between;

	between = NULL;
	if (f)
		f();
}

/* Between the making of a file and the end of its CREATE. */
int utimensat(int dir, const char *path, const struct timespec t[2], int flags)
{
	come_in();
	return (int)syscall(SYS_utimensat, dir, path, t, flags);
}

int name_to_handle_at(int dir, const char *name, struct file_handle *h,
		      int *mount_id, int flags)
{
	if (calls_before >= 0 && calls_before-- == 0)
		come_in();
	return (int)syscall(SYS_name_to_handle_at, dir, name, h, mount_id,
			    flags);
}

static void put(struct vfs_node *n)
{
	vfs_node_put(n);
}

static struct vfs_node *other;		/* a directory */

static void open_world(int i)
{
	calls_before = -1;
	between = NULL;
	world_open(2 + i, NULL);
	other = must_mkdir(w.root, "other");
}

static void restart(void)
{
	put(other);
	world_restart();
	other = must_lookup(w.root, "other");
}

static void close_world(void)
{
	put(other);
	world_close();
}

static const struct vfs_setattr late = {
	.set = VFS_SET_MTIME, .mtime = { .tv_sec = 5 },
};

static void link_f(void)
{
	struct vfs_node *n = must_lookup(w.root, "f");

	assert_ok(DO(posix_link, &w.who, n,
		     .to = { .dir = other, .name = name_of("l") }));
	put(n);
}

TEST_LOOP(a_link_made_while_its_file_is_created_is_remembered, 0, 2)
{
	struct vfs_create how = { .attr = late };
	struct vfs_handle h;
	struct vfs_node *n;

	open_world(_i);
	between = link_f;
	assert_ok(GET(out, n, posix_create, &w.who, w.root,
		      .name = name_of("f"), .create = &how));
	ck_assert_ptr_null(between);
	h = handle_of(n);
	put(n);
	must_remove(w.root, "f", false);
	restart();
	put(must_open(&h));
	close_world();
}

static void move_f(void)
{
	assert_ok(DO(posix_rename, &w.who, w.root, .name = name_of("f"),
		     .to = { .dir = other, .name = name_of("g") }));
}

TEST_LOOP(a_file_that_is_moved_while_it_is_created_is_found, 0, 2)
{
	struct vfs_create how = { .attr = late };
	struct vfs_handle h;
	struct vfs_node *n;

	open_world(_i);
	between = move_f;
	assert_ok(GET(out, n, posix_create, &w.who, w.root,
		      .name = name_of("f"), .create = &how));
	h = handle_of(n);
	put(n);
	restart();
	put(must_open(&h));
	close_world();
}

static void move_d(void)
{
	const char *name = faccessat(AT_FDCWD, local("d"), F_OK, 0) == 0 ?
			   "d" : "e";

	assert_ok(DO(posix_rename, &w.who, w.root, .name = name_of(name),
		     .to = { .dir = other, .name = name_of("g") }));
}

/* The directory's handle, and one of a file in it. */
static void below(struct vfs_node *dir, struct vfs_handle h[2])
{
	struct vfs_node *n = must_create(dir, "file");

	h[0] = handle_of(dir);
	h[1] = handle_of(n);
	put(n);
}

static void are_found(const struct vfs_handle h[2])
{
	put(must_open(&h[1]));		/* by way of the directory */
	put(must_open(&h[0]));
}

TEST_LOOP(a_directory_that_is_moved_while_it_is_made_is_found, 0, 2)
{
	struct vfs_make what = { .type = VFS_DIR, .attr = late };
	struct vfs_handle h[2];
	struct vfs_node *n;

	open_world(_i);
	between = move_d;
	assert_ok(GET(out, n, posix_make, &w.who, w.root, .name = name_of("d"),
		      .make = &what));
	below(n, h);
	put(n);
	restart();
	are_found(h);
	close_world();
}

/* @i: the world, and the moment at which the other call comes. */
static void open_moment(int i, struct vfs_handle h[2])
{
	struct vfs_node *d;

	open_world(i % 2);
	d = must_mkdir(w.root, "d");
	below(d, h);
	put(d);
	/* The server knows of it by the table alone. */
	restart();
	between = move_d;
	calls_before = i / 2;
}

static void close_moment(const struct vfs_handle h[2])
{
	calls_before = -1;
	restart();
	are_found(h);
	close_world();
}

TEST_LOOP(a_directory_that_is_moved_while_it_is_looked_up_is_found,
	  0, 2 * MOMENTS)
{
	struct vfs_handle h[2];

	open_moment(_i, h);
	try_lookup(w.root, "d");
	close_moment(h);
}

TEST_LOOP(a_directory_that_is_moved_while_it_is_renamed_is_found,
	  0, 2 * MOMENTS)
{
	struct vfs_handle h[2];

	open_moment(_i, h);
	DO(posix_rename, &w.who, w.root, .name = name_of("d"),
	   .to = { .dir = w.root, .name = name_of("e") });
	close_moment(h);
}

/* Another file is moved to the directory's name. */
static void replace_d(void)
{
	assert_ok(DO(posix_rename, &w.who, w.root, .name = name_of("d"),
		     .to = { .dir = other, .name = name_of("g") }));
	assert_ok(DO(posix_rename, &w.who, other, .name = name_of("x"),
		     .to = { .dir = w.root, .name = name_of("d") }));
}

TEST_LOOP(directories_that_change_places_while_one_is_renamed_are_found, 0, 4)
{
	struct vfs_handle h[2], x[2];
	struct vfs_node *n;

	open_moment(_i, h);
	calls_before = -1;
	n = must_mkdir(other, "x");
	below(n, x);
	put(n);
	restart();
	between = replace_d;
	calls_before = _i / 2 % 2;	/* before it is done */
	assert_ok(DO(posix_rename, &w.who, w.root, .name = name_of("d"),
		     .to = { .dir = other, .name = name_of("y") }));
	ck_assert_ptr_null(between);
	restart();
	are_found(x);
	close_moment(h);
}

int main(void)
{
	return world_run();
}
