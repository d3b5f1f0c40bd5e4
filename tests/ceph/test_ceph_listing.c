/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Listings by the CephFS backend, in the cluster that CEPH_CONF names
 * (tests/ceph/run), that go on while names come and go.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tests/ceph/own_fixture.h"

TEST_CASE(.setup = begin, .teardown = end, .timeout = 60);

/* A client's page of a listing. */
struct page {
	unsigned room;			/* of names */
	unsigned n;
	char	 name[64][32];
	uint64_t cookie;		/* of the last one */
	bool	 eof;
};

static bool note_name(void *arg, const struct vfs_dirent *d)
{
	struct page *p = arg;

	if (p->n == p->room)
		return false;
	snprintf(p->name[p->n++], sizeof(p->name[0]), "%.*s", (int)d->name.len,
		 d->name.s);
	ck_assert_uint_ne(d->cookie, 0);
	p->cookie = d->cookie;
	return true;
}

/* The next page, of @room names. */
static void read_page(struct vfs_node *from, struct page *p, unsigned room)
{
	struct vfs_op op = { .cred = vt.who.cred, .node = from,
			     .readdir = { .cookie = p->cookie,
					  .emit = note_name, .arg = p } };

	p->room = room;
	p->n = 0;
	ck_assert_int_eq(vt.ops->readdir(&op), 0);
	p->eof = op.eof;
}

static unsigned count_name(const struct page *p, const char *name)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->n; i++)
		n += strcmp(p->name[i], name) == 0;
	return n;
}

static bool is_dots_name(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Two names whose hashes the metadata server takes for one. */
static const char *const twins[] = { "n002019", "n018428" };

/* A page ends between them; the first one goes, which the client has seen. */
TEST(a_name_is_listed_behind_one_of_the_same_hash_that_was_removed)
{
	struct page p = { .n = 0 };
	const char *first, *second;

	vfs_node_put(vt_file(vt.root, twins[0]));
	vfs_node_put(vt_file(vt.root, twins[1]));
	read_page(vt.root, &p, 3);
	ck_assert_uint_eq(p.n, 3);
	ck_assert(is_dots_name(p.name[0]));
	ck_assert(is_dots_name(p.name[1]));
	first = twins[strcmp(p.name[2], twins[0]) != 0];
	second = twins[first == twins[0]];
	ck_assert_str_eq(p.name[2], first);
	ck_assert(!p.eof);
	vt_remove(vt.root, first);
	read_page(vt.root, &p, 60);
	ck_assert_uint_eq(p.n, 1);
	ck_assert_uint_eq(count_name(&p, second), 1);
	ck_assert(p.eof);
}

/* The same, with a name that comes. */
TEST(no_name_is_listed_twice_behind_one_of_the_same_hash_that_was_made)
{
	for (unsigned i = 0; i < 2; i++) {
		struct page p = { .n = 0 };

		vfs_node_put(vt_file(vt.root, twins[i]));
		read_page(vt.root, &p, 3);
		ck_assert_str_eq(p.name[2], twins[i]);
		vfs_node_put(vt_file(vt.root, twins[!i]));
		read_page(vt.root, &p, 60);
		ck_assert_uint_eq(count_name(&p, twins[i]), 0);
		ck_assert_uint_le(count_name(&p, twins[!i]), 1);
		ck_assert(p.eof);
		vt_remove(vt.root, twins[0]);
		vt_remove(vt.root, twins[1]);
	}
}

#define SNAPSHOTS	12

static void change_snapshot(unsigned i, int (*change)(const char *path))
{
	char name[32];

	snprintf(name, sizeof(name), ".snap/s%u", i);
	ck_assert_int_eq(change(below(name)), 0);
}

static int take_snapshot(const char *path)
{
	return ceph_mkdir(other, path, 0755);
}

static int drop_snapshot(const char *path)
{
	return ceph_rmdir(other, path);
}

TEST(snapshots_are_listed_whatever_was_removed_of_those_before)
{
	struct page p = { .n = 0 }, rest;
	struct vfs_node *snaps;
	char name[8];

	for (unsigned i = 0; i < SNAPSHOTS; i++)
		change_snapshot(i, take_snapshot);
	snaps = vt_find(vt.root, ".snap");
	read_page(snaps, &p, 2 + SNAPSHOTS / 2);
	rest = p;
	for (unsigned i = 0; i < SNAPSHOTS; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		if (count_name(&p, name) == 1)
			change_snapshot(i, drop_snapshot);
	}
	read_page(snaps, &rest, 60);
	ck_assert(rest.eof);
	for (unsigned i = 0; i < SNAPSHOTS; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		ck_assert_uint_eq(count_name(&p, name) +
				  count_name(&rest, name), 1);
		if (count_name(&rest, name) == 1)
			change_snapshot(i, drop_snapshot);
	}
	vfs_node_put(snaps);
}
