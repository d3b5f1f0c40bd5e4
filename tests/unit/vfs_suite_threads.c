/* SPDX-License-Identifier: BSD-2-Clause */
/* Any backend: several threads at once, on the same few names. */
#include "tests/unit/vfs_suite.h"
#include "tests/unit/runner.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define THREADS	4
#define ROUNDS	1500

struct racer {
	pthread_t	 thread;
	unsigned	 seed;
	struct vfs_node *dirs[3];
	struct vfs_node *file;		/* never removed */
	int		 fault;		/* an error that can't be */
	unsigned	 late;		/* operations that others kept */
};

/* The possible results of an operation while other threads are at work. */
static void expect(struct racer *r, int64_t err)
{
	/* The client would try again: on a busy machine the changes of a name
	 * can wait for each other longer than a call may. */
	if (err == -ETIMEDOUT) {
		r->late++;
		return;
	}
	if (err < 0 && err != -ENOENT && err != -EEXIST && err != -ESTALE &&
	    err != -ENOTEMPTY && err != -EISDIR && err != -ENOTDIR &&
	    err != -EINVAL && err != -EPERM)
		r->fault = (int)err;
}

static unsigned next(struct racer *r)
{
	r->seed = r->seed * 1103515245 + 12345;
	return r->seed >> 16;
}

static bool take(void *arg, const struct vfs_dirent *d)
{
	return true;
}

static void make_something(struct racer *r, struct vfs_node *dir,
			   const char *name)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED,
		.attr = { .set = VFS_SET_MODE, .mode = 0777 } };
	struct vfs_node *n;
	int err;

	if (next(r) % 2) {
		expect(r, vt_make(&vt.who, dir, name, VFS_DIR, NULL));
		return;
	}
	err = vt_create(&vt.who, dir, name, &how, &n);
	expect(r, err);
	if (err < 0)
		return;
	expect(r, vt_link(n, r->dirs[next(r) % 3], "l"));
	vfs_node_put(n);
}

static void use_something(struct racer *r, struct vfs_node *dir,
			  const char *name)
{
	struct vfs_node *n, *again;
	struct vfs_attr attr;
	int err;

	err = GET(out, n, vt.ops->lookup, &vt.who, dir, .name = vt_name(name),
		  .attr = &attr);
	expect(r, err);
	if (err < 0)
		return;
	/* To find a file that moves meanwhile can take another search. */
	err = vt_reopen(n, &again);
	if (err != -ETIMEDOUT)
		expect(r, err);
	if (err == 0)
		vfs_node_put(again);
	if (attr.type == VFS_DIR)
		expect(r, vt_make(&vt.who, n, "e1", VFS_DIR, NULL));
	vfs_node_put(n);
}

static void read_something(struct racer *r, struct vfs_node *dir)
{
	static const char text[] = "0123456789abcdef";
	struct iovec iov = { (void *)(uintptr_t)text, 16 };
	char buf[16];
	bool eof;
	int64_t n;

	expect(r, DO(vt.ops->write, &vt.who, r->file,
		     .write = { .iov = &iov, .niov = 1 }));
	n = vt_read(r->file, 0, buf, 16, &eof);
	expect(r, n);
	/* A write is seen whole. */
	if (n != 16 || memcmp(buf, text, 16) != 0)
		r->fault = -EIO;
	expect(r, DO(vt.ops->readdir, &vt.who, dir,
		     .readdir = { .plus = next(r) % 2, .emit = take }));
}

static void race(void *argp)
{
	struct racer *r = argp;
	char a[16], b[16];

	for (int i = 0; i < ROUNDS; i++) {
		struct vfs_node *d = r->dirs[next(r) % 3];
		struct vfs_node *to = r->dirs[next(r) % 3];

		snprintf(a, sizeof(a), "e%u", next(r) % 4);
		snprintf(b, sizeof(b), "e%u", next(r) % 4);
		switch (next(r) % 6) {
		case 0: case 1:
			make_something(r, d, a);
			break;
		case 2:
			expect(r, vt_rename(d, a, to, b));
			break;
		case 3:
			expect(r, next(r) % 2 ? vt_remove(d, a)
					      : vt_rmdir(d, a));
			expect(r, vt_remove(d, "l"));
			break;
		case 4:
			use_something(r, d, a);
			break;
		default:
			read_something(r, d);
		}
	}
}

/* Every directory's link count is 2 and its subdirectories. */
static void check_links(struct vfs_node *dir)
{
	uint32_t subdirs = 0;
	char name[16];

	for (int i = 0; i < 4; i++) {
		struct vfs_node *n;
		struct vfs_attr attr;

		snprintf(name, sizeof(name), "e%d", i);
		if (GET(out, n, vt.ops->lookup, &vt.who, dir,
			.name = vt_name(name), .attr = &attr) < 0)
			continue;
		if (attr.type == VFS_DIR) {
			subdirs++;
			check_links(n);
		}
		vfs_node_put(n);
	}
	/* btrfs and others say 1. */
	if (vt_attr(dir).nlink > 1)
		ck_assert_uint_eq(vt_attr(dir).nlink, 2 + subdirs);
}

START_TEST(threads_leave_a_sound_tree)
{
	struct racer r[THREADS];
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(vt.root, "b");
	struct vfs_node *c = vt_dir(a, "e0");
	struct vfs_node *f = vt_file(vt.root, "file");

	for (unsigned i = 0; i < THREADS; i++) {
		r[i] = (struct racer){ .seed = i + 1, .dirs = { a, b, c },
				       .file = f };
		ck_assert_int_eq(thread_start(&r[i].thread, "racer", race,
					      &r[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(r[i].thread, NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		ck_assert_int_eq(r[i].fault, 0);
		ck_assert_uint_lt(r[i].late, ROUNDS / 10);
	}
	check_links(a);
	check_links(b);
	vfs_node_put(f);
	vfs_node_put(c);
	vfs_node_put(b);
	vfs_node_put(a);
}
END_TEST

struct filler {
	pthread_t	 thread;
	struct vfs_node *dir;
	atomic_bool	 over;
	atomic_uint	 made;
	int		 err;
};

static void fill(void *argp)
{
	struct filler *f = argp;
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_node *n;

	while (f->err == 0 && !atomic_load(&f->over)) {
		f->err = vt_create(&vt.who, f->dir, "f", &how, &n);
		if (f->err == 0) {
			vfs_node_put(n);
			f->err = vt_remove(f->dir, "f");
			atomic_fetch_add(&f->made, 1);
		}
		/* As in expect(). */
		if (f->err == -ETIMEDOUT)
			f->err = 0;
	}
}

static void expect_not_empty(struct vfs_node *from, const char *name,
			     struct vfs_node *to, const char *new_name)
{
	int err;

	EVENTUALLY((err = vt_rename(from, name, to, new_name)) != -ETIMEDOUT);
	ck_assert_int_eq(err, -ENOTEMPTY);
}

/* CephFS's metadata server may wait for itself then. */
START_TEST(no_directory_moves_over_one_above_it_that_changes)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(a, "b");
	struct vfs_node *c = vt_dir(b, "c");
	struct filler f = { .dir = b };

	ck_assert_int_eq(thread_start(&f.thread, "filler", fill, &f), 0);
	for (int i = 0; i < 300; i++) {
		expect_not_empty(b, "c", a, "b");
		expect_not_empty(b, "c", vt.root, "a");
	}
	EVENTUALLY(atomic_load(&f.made) > 0);
	atomic_store(&f.over, true);
	pthread_join(f.thread, NULL);
	ck_assert_int_eq(f.err, 0);
	vfs_node_put(c);
	vfs_node_put(b);
	vfs_node_put(a);
}
END_TEST

void vfs_suite_add_threads(TCase *tc)
{
	tcase_add_test(tc, no_directory_moves_over_one_above_it_that_changes);
	tcase_add_test(tc, threads_leave_a_sound_tree);
}
