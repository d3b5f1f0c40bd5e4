/* SPDX-License-Identifier: BSD-2-Clause */
/* Any backend: names, links, renames, listings, handles. */
#include "tests/unit/vfs_suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANY	10000

START_TEST(a_new_file_is_found_by_name_and_by_handle)
{
	struct vfs_node *f = vt_file(vt.root, "f"), *g, *h;
	struct vfs_attr a = vt_attr(f), b, c;

	ck_assert_int_eq(a.type, VFS_REG);
	ck_assert_uint_eq(a.mode, 0644);
	ck_assert_uint_eq(a.nlink, 1);
	ck_assert_uint_eq(a.size, 0);
	ck_assert_uint_eq(a.uid, vt.params->me.uid);
	g = vt_find(vt.root, "f");
	b = vt_attr(g);
	ck_assert_int_eq(vt_reopen(f, &h), 0);
	c = vt_attr(h);
	ck_assert_uint_eq(a.fileid, b.fileid);
	ck_assert_uint_eq(a.fileid, c.fileid);
	vfs_node_put(f);
	vfs_node_put(g);
	vfs_node_put(h);
}
END_TEST

START_TEST(lookup_gives_the_attributes_of_both)
{
	struct vfs_node *d = vt_dir(vt.root, "d"), *f = vt_file(d, "f");
	struct vfs_attr attr, dir_attr;
	struct vfs_op op = VFS_OP(&vt.who, d, .name = vt_name("f"),
				  .attr = &attr, .lookup.dir_attr = &dir_attr);

	ck_assert_int_eq(vt.ops->lookup(&op), 0);
	ck_assert(op.lookup.has_dir_attr);
	ck_assert_uint_eq(attr.fileid, vt_attr(f).fileid);
	ck_assert_uint_eq(dir_attr.fileid, vt_attr(d).fileid);
	vfs_node_put(op.out);
	ck_assert_int_eq(vt_lookup(f, "x"), -ENOTDIR);
	vfs_node_put(f);
	vfs_node_put(d);
}
END_TEST

START_TEST(dots_are_the_directory_and_its_parent)
{
	struct vfs_node *d = vt_dir(vt.root, "d"), *n;

	n = vt_find(d, ".");
	ck_assert_uint_eq(vt_attr(n).fileid, vt_attr(d).fileid);
	vfs_node_put(n);
	n = vt_find(d, "..");
	ck_assert_uint_eq(vt_attr(n).fileid, vt_attr(vt.root).fileid);
	vfs_node_put(n);
	vfs_node_put(d);
}
END_TEST

START_TEST(names_are_bytes_up_to_255)
{
	char name[256];
	struct vfs_name odd = { "\xff\n\x01 *", 5 };
	struct vfs_name open = { "\xff\n\x01 *more", 5 };
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *n;

	memset(name, 'x', 255);
	name[255] = '\0';
	vfs_node_put(vt_file(vt.root, name));
	ck_assert_int_eq(vt_lookup(vt.root, name), 0);
	name[254] = '\0';
	ck_assert_int_eq(vt_lookup(vt.root, name), -ENOENT);
	ck_assert_int_eq(GET(out, n, vt.ops->create, &vt.who, vt.root,
			     .name = odd, .create = &how), 0);
	vfs_node_put(n);
	ck_assert_int_eq(vt_lookup(vt.root, "\xff\n\x01 *"), 0);
	/* Not terminated: only len bytes count. */
	ck_assert_int_eq(GET(out, n, vt.ops->lookup, &vt.who, vt.root,
			     .name = open), 0);
	vfs_node_put(n);
}
END_TEST

START_TEST(unchecked_create_keeps_what_is_there_but_its_size)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED };
	struct vfs_node *f = vt_file(vt.root, "f"), *g;
	uint32_t mode = vt_attr(f).mode;

	vt_write(f, 0, "hello");
	how.attr.set = VFS_SET_MODE;
	how.attr.mode = 0600;
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "f", &how, &g), 0);
	ck_assert_uint_eq(vt_attr(g).fileid, vt_attr(f).fileid);
	ck_assert_uint_eq(vt_attr(g).size, 5);
	ck_assert_uint_eq(vt_attr(g).mode, mode);
	vfs_node_put(g);
	how.attr.set = VFS_SET_SIZE;
	how.attr.size = 0;
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "f", &how, &g), 0);
	ck_assert_uint_eq(vt_attr(f).size, 0);
	vfs_node_put(g);
	vfs_node_put(f);
}
END_TEST

START_TEST(guarded_create_makes_or_refuses)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_node *n;

	ck_assert_int_eq(vt_create(&vt.who, vt.root, "f", &how, &n), 0);
	vfs_node_put(n);
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "f", &how, &n), -EEXIST);
}
END_TEST

START_TEST(exclusive_create_knows_its_retransmission)
{
	struct vfs_create how = { .how = VFS_CREATE_EXCLUSIVE,
				  .verf = 0x8123456789abcdef };
	struct vfs_node *a, *b;

	ck_assert_int_eq(vt_create(&vt.who, vt.root, "f", &how, &a), 0);
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "f", &how, &b), 0);
	ck_assert_uint_eq(vt_attr(a).fileid, vt_attr(b).fileid);
	vfs_node_put(b);
	vfs_node_put(a);
	how.verf++;
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "f", &how, &b), -EEXIST);
	vfs_node_put(vt_file(vt.root, "g"));
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "g", &how, &b), -EEXIST);
}
END_TEST

/* With a new xid: no reply cache knows it. */
START_TEST(exclusive_create_is_known_again_after_a_write)
{
	struct vfs_create how = { .how = VFS_CREATE_EXCLUSIVE,
				  .verf = 0x8123456789abcdef };
	struct vfs_node *a, *b;

	ck_assert_int_eq(vt_create(&vt.who, vt.root, "f", &how, &a), 0);
	vt_write(a, 0, "text");
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "f", &how, &b), 0);
	ck_assert_uint_eq(vt_attr(a).fileid, vt_attr(b).fileid);
	ck_assert_uint_eq(vt_attr(b).size, 4);
	vfs_node_put(b);
	vt_chmod(a, 0640);
	ck_assert_int_eq(vt_rename(vt.root, "f", vt.root, "g"), 0);
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "g", &how, &b), 0);
	vfs_node_put(b);
	vfs_node_put(a);
	how.verf ^= 1ull << 63;
	ck_assert_int_eq(vt_create(&vt.who, vt.root, "g", &how, &b), -EEXIST);
}
END_TEST

START_TEST(directories_count_their_subdirectories)
{
	struct vfs_node *d = vt_dir(vt.root, "d"), *s;
	uint32_t nlink = vt_attr(d).nlink;

	s = vt_dir(d, "s");
	ck_assert_int_eq(vt_attr(s).type, VFS_DIR);
	ck_assert_uint_eq(vt_attr(d).nlink, nlink + 1);
	vfs_node_put(s);
	ck_assert_int_eq(vt_rmdir(d, "s"), 0);
	ck_assert_uint_eq(vt_attr(d).nlink, nlink);
	vfs_node_put(d);
}
END_TEST

START_TEST(remove_takes_the_right_kind_only)
{
	struct vfs_node *d = vt_dir(vt.root, "d"), *f = vt_file(d, "f");

	ck_assert_int_eq(vt_rmdir(vt.root, "d"), -ENOTEMPTY);
	ck_assert_int_eq(vt_rmdir(d, "f"), -ENOTDIR);
	ck_assert_int_eq(vt_remove(vt.root, "d"), -EISDIR);
	ck_assert_int_eq(vt_remove(d, "g"), -ENOENT);
	ck_assert_int_eq(vt_rmdir(d, "g"), -ENOENT);
	ck_assert_int_eq(vt_remove(f, "g"), -ENOTDIR);
	ck_assert_int_eq(vt_remove(d, "f"), 0);
	ck_assert_int_eq(vt_rmdir(vt.root, "d"), 0);
	ck_assert_int_eq(vt_lookup(vt.root, "d"), -ENOENT);
	vfs_node_put(f);
	vfs_node_put(d);
}
END_TEST

static void check_stale(const struct vfs_handle *h)
{
	ck_assert_int_eq(DO(vt.ops->open_handle, &vt.who, NULL,
			    .open = { vt.fs, h }), -ESTALE);
}

START_TEST(a_handle_of_a_removed_file_is_stale)
{
	struct vfs_node *f = vt_file(vt.root, "f"), *d;
	struct vfs_handle h;

	vt.ops->handle(f, &h);
	vfs_node_put(f);
	ck_assert_int_eq(vt_remove(vt.root, "f"), 0);
	check_stale(&h);
	d = vt_dir(vt.root, "d");
	vt.ops->handle(d, &h);
	vfs_node_put(d);
	ck_assert_int_eq(vt_rmdir(vt.root, "d"), 0);
	check_stale(&h);
	/* Nor does it come to mean another file. */
	for (char name[2] = "0"; *name <= '9'; (*name)++)
		vfs_node_put(vt_file(vt.root, name));
	check_stale(&h);
}
END_TEST

START_TEST(links_name_one_file)
{
	struct vfs_node *f = vt_file(vt.root, "f"), *g;
	struct vfs_node *d = vt_dir(vt.root, "d");
	struct vfs_attr attr;
	struct vfs_wcc wcc = { 0 };
	int err;

	ck_assert_int_eq(DO(vt.ops->link, &vt.who, f,
			    .to = { .dir = d, .name = vt_name("g") },
			    .attr = &attr, .to.wcc = &wcc), 0);
	ck_assert_uint_eq(attr.nlink, 2);
	ck_assert(wcc.has_after);
	g = vt_find(d, "g");
	ck_assert_uint_eq(vt_attr(g).fileid, vt_attr(f).fileid);
	ck_assert_int_eq(vt_link(f, d, "g"), -EEXIST);
	ck_assert_int_eq(vt_remove(vt.root, "f"), 0);
	ck_assert_uint_eq(vt_attr(g).nlink, 1);
	vt_write(g, 0, "x");
	err = vt_link(d, vt.root, "e");
	ck_assert(err == -EPERM || err == -EISDIR);
	ck_assert_int_eq(vt_link(g, g, "e"), -ENOTDIR);
	vfs_node_put(g);
	vfs_node_put(f);
	vfs_node_put(d);
}
END_TEST

START_TEST(symbolic_links_keep_their_bytes)
{
	char buf[64];
	struct vfs_node *l;
	struct vfs_attr attr;

	ck_assert_int_eq(vt_make(&vt.who, vt.root, "l", VFS_LNK,
				 "../no where/\xff"), 0);
	l = vt_find(vt.root, "l");
	ck_assert_int_eq(DO(vt.ops->readlink, &vt.who, l, .attr = &attr,
			    .readlink = { buf, sizeof(buf) }), 13);
	ck_assert_int_eq(memcmp(buf, "../no where/\xff", 13), 0);
	ck_assert_int_eq(attr.type, VFS_LNK);
	ck_assert_uint_eq(attr.size, 13);
	ck_assert_int_eq(DO(vt.ops->readlink, &vt.who, l,
			    .readlink = { buf, 4 }), 4);
	ck_assert_int_eq(DO(vt.ops->readlink, &vt.who, vt.root,
			    .readlink = { buf, 4 }), -EINVAL);
	ck_assert_int_eq(vt_make(&vt.who, vt.root, "l", VFS_LNK, "x"),
			 -EEXIST);
	vfs_node_put(l);
}
END_TEST

START_TEST(special_files_have_their_types)
{
	struct vfs_node *n;

	ck_assert_int_eq(vt_make(&vt.who, vt.root, "p", VFS_FIFO, NULL), 0);
	n = vt_find(vt.root, "p");
	ck_assert_int_eq(vt_attr(n).type, VFS_FIFO);
	vfs_node_put(n);
	ck_assert_int_eq(vt_make(&vt.who, vt.root, "s", VFS_SOCK, NULL), 0);
	n = vt_find(vt.root, "s");
	ck_assert_int_eq(vt_attr(n).type, VFS_SOCK);
	vfs_node_put(n);
	ck_assert_int_eq(vt_make(&vt.who, vt.root, "r", VFS_REG, NULL),
			 -EPROTOTYPE);
	ck_assert_int_eq(vt_make(&vt.who, vt.root, "p", VFS_DIR, NULL),
			 -EEXIST);
}
END_TEST

START_TEST(rename_moves_and_replaces_files)
{
	struct vfs_node *d = vt_dir(vt.root, "d"), *f = vt_file(d, "f"), *g;
	uint64_t id = vt_attr(f).fileid;

	ck_assert_int_eq(vt_rename(d, "f", d, "g"), 0);
	ck_assert_int_eq(vt_lookup(d, "f"), -ENOENT);
	ck_assert_int_eq(vt_rename(d, "g", vt.root, "h"), 0);
	vfs_node_put(vt_file(vt.root, "v"));
	ck_assert_int_eq(vt_rename(vt.root, "h", vt.root, "v"), 0);
	g = vt_find(vt.root, "v");
	ck_assert_uint_eq(vt_attr(g).fileid, id);
	vfs_node_put(g);
	ck_assert_int_eq(vt_reopen(f, &g), 0);
	vfs_node_put(g);
	ck_assert_int_eq(vt_rename(d, "no", d, "x"), -ENOENT);
	ck_assert_int_eq(vt_rename(f, "no", d, "x"), -ENOTDIR);
	vfs_node_put(f);
	vfs_node_put(d);
}
END_TEST

START_TEST(rename_of_a_link_to_the_same_file_does_nothing)
{
	struct vfs_node *f = vt_file(vt.root, "f");

	ck_assert_int_eq(vt_link(f, vt.root, "g"), 0);
	ck_assert_int_eq(vt_rename(vt.root, "f", vt.root, "g"), 0);
	ck_assert_int_eq(vt_lookup(vt.root, "f"), 0);
	ck_assert_int_eq(vt_lookup(vt.root, "g"), 0);
	ck_assert_int_eq(vt_rename(vt.root, "f", vt.root, "f"), 0);
	ck_assert_uint_eq(vt_attr(f).nlink, 2);
	vfs_node_put(f);
}
END_TEST

START_TEST(a_moved_directory_knows_its_new_parent)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(vt.root, "b");
	struct vfs_node *s = vt_dir(a, "s"), *up;
	uint32_t na = vt_attr(a).nlink, nb = vt_attr(b).nlink;

	ck_assert_int_eq(vt_rename(a, "s", b, "t"), 0);
	up = vt_find(s, "..");
	ck_assert_uint_eq(vt_attr(up).fileid, vt_attr(b).fileid);
	ck_assert_uint_eq(vt_attr(a).nlink, na - 1);
	ck_assert_uint_eq(vt_attr(b).nlink, nb + 1);
	vfs_node_put(up);
	vfs_node_put(s);
	vfs_node_put(a);
	vfs_node_put(b);
}
END_TEST

START_TEST(no_directory_moves_into_itself)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(a, "b");
	struct vfs_node *c = vt_dir(b, "c");

	ck_assert_int_eq(vt_rename(vt.root, "a", a, "x"), -EINVAL);
	ck_assert_int_eq(vt_rename(vt.root, "a", c, "x"), -EINVAL);
	ck_assert_int_eq(vt_rename(a, "b", c, "x"), -EINVAL);
	/* Nor over a directory that it lies in. */
	ck_assert_int_eq(vt_rename(b, "c", vt.root, "a"), -ENOTEMPTY);
	ck_assert_int_eq(vt_rename(b, "c", a, "b"), -ENOTEMPTY);
	ck_assert_int_eq(vt_lookup(b, "c"), 0);
	vfs_node_put(c);
	vfs_node_put(b);
	vfs_node_put(a);
}
END_TEST

START_TEST(rename_replaces_only_what_it_may)
{
	struct vfs_node *a = vt_dir(vt.root, "a"), *b = vt_dir(vt.root, "b");
	struct vfs_node *x = vt_dir(b, "x");

	vfs_node_put(vt_file(vt.root, "f"));
	ck_assert_int_eq(vt_rename(vt.root, "a", vt.root, "b"), -ENOTEMPTY);
	ck_assert_int_eq(vt_rename(vt.root, "f", vt.root, "a"), -EISDIR);
	ck_assert_int_eq(vt_rename(vt.root, "a", vt.root, "f"), -ENOTDIR);
	ck_assert_int_eq(vt_rename(vt.root, "a", b, "x"), 0);
	ck_assert_int_eq(vt_lookup(vt.root, "a"), -ENOENT);
	ck_assert_int_eq(vt_rmdir(b, "x"), 0);
	vfs_node_put(x);
	vfs_node_put(a);
	vfs_node_put(b);
}
END_TEST

START_TEST(changes_of_a_directory_show_in_its_wcc)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED };
	struct vfs_attr before = vt_attr(vt.root);
	struct vfs_wcc wcc = { 0 }, other = { 0 };
	struct vfs_node *n;

	ck_assert_int_eq(GET(out, n, vt.ops->create, &vt.who, vt.root,
			     .name = vt_name("f"), .create = &how, .wcc = &wcc),
			 0);
	vfs_node_put(n);
	ck_assert(wcc.has_before && wcc.has_after);
	ck_assert_int_eq(wcc.before_ctime.tv_nsec, before.ctime.tv_nsec);
	ck_assert_int_eq(wcc.before_mtime.tv_nsec, before.mtime.tv_nsec);
	ck_assert_uint_eq(wcc.before_size, before.size);
	ck_assert_uint_eq(wcc.after.fileid, before.fileid);
	wcc = (struct vfs_wcc){ 0 };
	ck_assert_int_eq(DO(vt.ops->remove, &vt.who, vt.root,
			    .name = vt_name("x"), .wcc = &wcc), -ENOENT);
	ck_assert(wcc.has_after);
	wcc = (struct vfs_wcc){ 0 };
	ck_assert_int_eq(DO(vt.ops->rename, &vt.who, vt.root,
			    .name = vt_name("x"),
			    .to = { .dir = vt.root, .name = vt_name("y") },
			    .wcc = &wcc, .to.wcc = &other), -ENOENT);
	ck_assert(wcc.has_after && other.has_after);
}
END_TEST

static void fill(struct vfs_node *d, unsigned from, unsigned to)
{
	char name[16];

	for (unsigned i = from; i < to; i++) {
		snprintf(name, sizeof(name), "e%u", i);
		vfs_node_put(vt_file(d, name));
	}
}

/* The same in "d", by a local process if possible: it need not sync. */
static void fill_locally(struct vfs_node *d, unsigned n)
{
	char path[600];

	if (!vt.params->dir) {
		fill(d, 0, n);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/d/e%u", vt.params->dir, i);
		close(open(path, O_CREAT | O_WRONLY, 0644));
	}
}

START_TEST(a_listing_has_every_entry_once_whatever_its_steps)
{
	static const unsigned steps[] = { 1, 2, 3, 50, 1000 };
	struct vfs_node *d = vt_dir(vt.root, "d");
	uint8_t seen[100];

	fill(d, 0, 100);
	for (unsigned s = 0; s < 5; s++) {
		memset(seen, 0, sizeof(seen));
		vt_list(d, steps[s], seen, 100);
		for (unsigned i = 0; i < 100; i++)
			ck_assert_uint_eq(seen[i], 1);
	}
	vfs_node_put(d);
}
END_TEST

struct page {
	struct vfs_node *dir;
	unsigned	 n;
	unsigned	 dots;
	uint64_t	 cookie;
	uint8_t		*seen;
	bool		 plus;
};

static bool page_emit(void *argp, const struct vfs_dirent *d)
{
	struct page *p = argp;
	struct vfs_node *n;
	int i = vt_number(d);

	if (p->n == 0)
		return false;
	p->n--;
	p->cookie = d->cookie;
	if (d->name.s[0] == '.')
		p->dots++;
	else if (p->seen && i >= 0)
		p->seen[i]++;
	if (p->plus && d->name.s[0] != '.') {
		ck_assert(d->has_attr && d->has_handle);
		ck_assert_uint_eq(d->attr.fileid, d->fileid);
		ck_assert_int_eq(GET(out, n, vt.ops->open_handle, &vt.who, NULL,
				     .open = { vt.fs, &d->handle }), 0);
		ck_assert_uint_eq(vt_attr(n).fileid, d->fileid);
		vfs_node_put(n);
	}
	return true;
}

static bool read_page(struct page *p, unsigned n)
{
	bool eof = false;

	p->n = n;
	ck_assert_int_eq(GET(eof, eof, vt.ops->readdir, &vt.who, p->dir,
			     .readdir = { .cookie = p->cookie, .plus = p->plus,
					  .emit = page_emit, .arg = p }), 0);
	return eof;
}

START_TEST(a_listing_begins_with_the_dots_and_plus_knows_all)
{
	struct page p = { .dir = vt_dir(vt.root, "d"), .plus = true };

	fill(p.dir, 0, 20);
	ck_assert(read_page(&p, 100));
	ck_assert_uint_eq(p.dots, 2);
	ck_assert_uint_eq(p.n, 78);
	ck_assert(read_page(&p, 100));
	ck_assert_uint_eq(p.n, 100);
	vfs_node_put(p.dir);
}
END_TEST

/* An entry that exists all the time must come, once: RFC 1813 section
 * 3.3.16. */
START_TEST(a_large_listing_survives_changes_between_its_pages)
{
	static uint8_t seen[2 * MANY];
	struct page p = { .dir = vt_dir(vt.root, "d"), .seen = seen };
	struct vfs_node *file = vt_file(vt.root, "f");
	unsigned pages = 0;
	char name[16];

	if (vt.params->counted_cookies && *vt.params->counted_cookies) {
		printf("skipped: this file system's positions are counts\n");
		vfs_node_put(file);
		vfs_node_put(p.dir);
		return;
	}
	fill_locally(p.dir, MANY);
	while (!read_page(&p, 500)) {
		unsigned i = pages++ * 200;

		/* Odd ones go, new ones come: of one file, since ext4 finds no
		 * inode quickly after many were removed. */
		for (unsigned j = i; j < i + 200 && j < MANY; j++) {
			snprintf(name, sizeof(name), "e%u", j);
			if (j % 2)
				ck_assert_int_eq(vt_remove(p.dir, name), 0);
		}
		for (unsigned j = MANY + i; j < MANY + i + 100; j++) {
			snprintf(name, sizeof(name), "e%u", j);
			ck_assert_int_eq(vt_link(file, p.dir, name), 0);
		}
	}
	for (unsigned i = 0; i < MANY; i += 2)
		ck_assert_uint_eq(seen[i], 1);
	for (unsigned i = 1; i < MANY; i += 2)
		ck_assert_uint_le(seen[i], 1);
	vfs_node_put(file);
	vfs_node_put(p.dir);
}
END_TEST

START_TEST(only_directories_are_listed)
{
	struct vfs_node *f = vt_file(vt.root, "f");
	struct page p = { .dir = f };

	ck_assert_int_eq(DO(vt.ops->readdir, &vt.who, f,
			    .readdir.emit = page_emit, .readdir.arg = &p),
			 -ENOTDIR);
	vfs_node_put(f);
}
END_TEST

void vfs_suite_add_names(TCase *tc)
{
	tcase_add_test(tc, a_new_file_is_found_by_name_and_by_handle);
	tcase_add_test(tc, lookup_gives_the_attributes_of_both);
	tcase_add_test(tc, dots_are_the_directory_and_its_parent);
	tcase_add_test(tc, names_are_bytes_up_to_255);
	tcase_add_test(tc, unchecked_create_keeps_what_is_there_but_its_size);
	tcase_add_test(tc, guarded_create_makes_or_refuses);
	tcase_add_test(tc, exclusive_create_knows_its_retransmission);
	tcase_add_test(tc, exclusive_create_is_known_again_after_a_write);
	tcase_add_test(tc, directories_count_their_subdirectories);
	tcase_add_test(tc, remove_takes_the_right_kind_only);
	tcase_add_test(tc, a_handle_of_a_removed_file_is_stale);
	tcase_add_test(tc, links_name_one_file);
	tcase_add_test(tc, symbolic_links_keep_their_bytes);
	tcase_add_test(tc, special_files_have_their_types);
	tcase_add_test(tc, rename_moves_and_replaces_files);
	tcase_add_test(tc, rename_of_a_link_to_the_same_file_does_nothing);
	tcase_add_test(tc, a_moved_directory_knows_its_new_parent);
	tcase_add_test(tc, no_directory_moves_into_itself);
	tcase_add_test(tc, rename_replaces_only_what_it_may);
	tcase_add_test(tc, changes_of_a_directory_show_in_its_wcc);
	tcase_add_test(tc,
		a_listing_has_every_entry_once_whatever_its_steps);
	tcase_add_test(tc, a_listing_begins_with_the_dots_and_plus_knows_all);
	tcase_add_test(tc,
		a_large_listing_survives_changes_between_its_pages);
	tcase_add_test(tc, only_directories_are_listed);
}
