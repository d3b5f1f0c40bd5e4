/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: listings that are kept, and what they show. */
#include "tests/unit/listing_fixture.h"

START_TEST(a_kept_listing_is_the_listing)
{
	if (!open_full(_i))
		return;
	list_kept();
	assert_all_there();
	ck_assert(r.sub.has_attr);
	ck_assert_int_eq(r.sub.attr.type, VFS_DIR);
	ck_assert_int_eq(r.file[7].attr.mode, 0644);
	/* In pages of any size, and by cookies of before. */
	for (int room = 1; room < 40; room += 6) {
		begin_list(room);
		while (!r.eof)
			list_page();
		assert_all_there();
	}
	world_close();
}
END_TEST

START_TEST(names_follow_every_change)
{
	if (!open_full(_i))
		return;
	list_kept();
	make_file(FILES);
	list();
	ck_assert_int_eq(r.file[FILES].times, 1);
	list_kept();
	assert_ok(unlink(local("e5")));
	list();
	ck_assert_int_eq(r.file[5].times, 0);
	list_kept();
	assert_ok(rename(local("e6"), local("e5")));
	list();
	ck_assert_int_eq(r.file[5].times, 1);
	ck_assert_int_eq(r.file[6].times, 0);
	list_kept();
	must_remove(w.root, "e5", false);
	vfs_node_put(must_create(w.root, "e6"));
	list();
	ck_assert_int_eq(r.file[5].times, 0);
	ck_assert_int_eq(r.file[6].times, 1);
	world_close();
}
END_TEST

START_TEST(attributes_follow_the_servers_changes)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = 0600 };
	struct vfs_node *n, *sub;

	if (!open_full(_i))
		return;
	n = must_lookup(w.root, "e10");
	sub = must_lookup(w.root, "sub");
	list_kept();
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	list();
	ck_assert_uint_eq(r.file[10].attr.size, 4);
	list_kept();
	assert_ok(posix_setattr(&w.ctx, n, &set, NULL));
	list();
	ck_assert_uint_eq(r.file[10].attr.mode, 0600);
	list_kept();
	assert_ok(posix_link(&w.ctx, n, sub, name_of("other"), NULL, NULL));
	list();
	ck_assert_uint_eq(r.file[10].attr.nlink, 2);
	vfs_node_put(n);
	vfs_node_put(sub);
	world_close();
}
END_TEST

static unsigned changes_of(struct vfs_node *n)
{
	return posix_changes(to_posix(n)->ino);
}

START_TEST(every_change_by_the_server_is_counted)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = 0600 };
	struct vfs_node *n;
	unsigned before;

	world_open(_i, NULL);
	n = must_create(w.root, "f");
	before = changes_of(n);
	ck_assert_int_eq(write_str(n, 0, "text", NULL), 4);
	ck_assert_uint_ne(changes_of(n), before);
	before = changes_of(n);
	assert_ok(posix_setattr(&w.ctx, n, &set, NULL));
	ck_assert_uint_ne(changes_of(n), before);
	before = changes_of(n);
	assert_ok(posix_link(&w.ctx, n, w.root, name_of("g"), NULL, NULL));
	ck_assert_uint_ne(changes_of(n), before);
	vfs_node_put(n);
	world_close();
}
END_TEST

/*
 * A listing from what is kept: how many of its entries were asked about
 * nevertheless.  Directories always are: ".", "..", sub.
 */
static uint64_t asked_of_kept(void)
{
	uint64_t used, asked;

	for (;;) {
		list_kept();
		used = count("posix_listing_used");
		asked = count("posix_listing_asked");
		list();
		if (count("posix_listing_used") - used > FILES / 70)
			return count("posix_listing_asked") - asked;
	}
}

/* Even where the kernel reports nothing, for want of a name. */
START_TEST(a_change_by_the_server_ends_what_is_kept_of_the_file)
{
	struct vfs_node *n;

	if (!open_full(_i))
		return;
	n = must_lookup(w.root, "e10");
	ck_assert_uint_eq(asked_of_kept(), 3);
	posix_changing(to_posix(n));
	ck_assert_uint_gt(asked_of_kept(), 3);
	/* Of a listing that was begun while it is under way, too. */
	assert_ok(chmod(local("e50"), 0600));
	ck_assert_uint_gt(asked_of_kept(), 3);
	posix_changed(to_posix(n));
	ck_assert_uint_gt(asked_of_kept(), 3);
	assert_ok(chmod(local("e50"), 0644));
	ck_assert_uint_eq(asked_of_kept(), 3);
	vfs_node_put(n);
	world_close();
}
END_TEST

/* As when a directory and one below it are exported. */
START_TEST(changes_by_another_export_show)
{
	struct vfs_fs *fs;
	struct vfs_handle h;
	struct vfs_node *n;
	int fd;

	if (!open_full(_i))
		return;
	n = must_lookup(w.root, "e10");
	h = handle_of(n);
	vfs_node_put(n);
	/* What is opened by handle has this name then, so no watch tells. */
	assert_ok(link(local("e10"), local("sub/other")));
	fd = open(local("sub/other"), O_RDONLY);
	ck_assert_int_ge(fd, 0);
	assert_ok(unlink(local("sub/other")));
	assert_ok(posix_vfs_ops.mount(&w.config, &fs));
	assert_ok(posix_open_handle(&w.ctx, fs, &h, &n));
	for (unsigned i = 0; i < 3; i++) {
		list_kept();
		ck_assert_int_eq(write_str(n, i, "x", NULL), 1);
		list();
		ck_assert_uint_eq(r.file[10].attr.size, i + 1);
	}
	vfs_node_put(n);
	close(fd);
	posix_vfs_ops.unmount(fs);
	world_close();
}
END_TEST

START_TEST(attributes_follow_local_changes)
{
	const struct timespec times[2] = { { 1000, 5 }, { 2000, 6 } };
	int fd;

	if (!open_full(_i))
		return;
	list_kept();
	assert_ok(truncate(local("e20"), 1234));
	list();
	ck_assert_uint_eq(r.file[20].attr.size, 1234);
	list_kept();
	assert_ok(chmod(local("e20"), 0640));
	list();
	ck_assert_uint_eq(r.file[20].attr.mode, 0640);
	list_kept();
	assert_ok(utimensat(AT_FDCWD, local("e20"), times, 0));
	list();
	ck_assert_int_eq(r.file[20].attr.mtime.tv_sec, 2000);
	fd = open(local("e20"), O_WRONLY | O_APPEND);
	ck_assert_int_ge(fd, 0);
	for (unsigned i = 1; i < 5; i++) {
		list_kept();
		ck_assert_int_eq(write(fd, "x", 1), 1);
		list();
		ck_assert_uint_eq(r.file[20].attr.size, 1234 + i);
	}
	close(fd);
	world_close();
}
END_TEST

START_TEST(what_no_watch_tells_of_is_asked_for)
{
	struct vfs_attr attr;

	if (!open_full(_i))
		return;
	assert_ok(link(local("e30"), local("sub/other")));
	list_kept();
	ck_assert_uint_eq(r.file[30].attr.nlink, 2);
	assert_ok(truncate(local("sub/other"), 99));
	list();
	ck_assert_uint_eq(r.file[30].attr.size, 99);
	list_kept();
	attr = r.sub.attr;
	assert_ok(mkdir(local("sub/below"), 0755));
	list();
	ck_assert(r.sub.attr.nlink != attr.nlink ||
		  !posix_same_time(&r.sub.attr.mtime, &attr.mtime));
	world_close();
}
END_TEST

START_TEST(who_may_not_search_gets_names_alone)
{
	struct vfs_cred bob = { .uid = 1002, .gid = 1002 };

	if (!open_full(_i))
		return;
	if (!to_posix_fs(w.fs)->privileged) {
		printf("skipped: no callers\n");
		world_close();
		return;
	}
	posix_cred_server(to_posix_fs(w.fs));
	assert_ok(chmod(w.dir, 0744));
	list_kept();
	assert_all_there();
	w.ctx.cred = &bob;
	list();
	for (int i = 0; i < FILES; i++) {
		ck_assert_int_eq(r.file[i].times, 1);
		ck_assert(!r.file[i].has_attr);
	}
	posix_cred_server(to_posix_fs(w.fs));
	assert_ok(chmod(w.dir, 0711));
	begin_list(70);
	assert_err(try_list_page(), EACCES);
	w.ctx.cred = &w.cred;
	posix_cred_server(to_posix_fs(w.fs));
	world_close();
}
END_TEST

/* Walks that are anywhere while listings come and go miss nothing. */
START_TEST(nothing_is_missed_when_a_listing_ends_on_the_way)
{
	if (!open_full(_i))
		return;
	for (int n = 0; n < 8; n++) {
		list_kept();
		begin_list(30);
		for (int i = 0; i < n; i++)
			list_page();
		assert_ok(chmod(local("e9"), 0600 + n));
		if (n % 2)
			make_file(FILES);
		else
			unlink(local("e300"));
		while (!r.eof)
			list_page();
		assert_all_there();
	}
	world_close();
}
END_TEST

struct owner {
	pthread_t	  thread;
	struct vfs_node	 *file;
	char		  name[16];
	uint64_t	  size;		/* as the listing has it */
	uint64_t	  cookie;
	int		  left;
	int		  wrong;
	uint64_t	  used;		/* goes on until more are */
};

static bool take_own(void *arg, const struct vfs_dirent *d)
{
	struct owner *o = arg;

	if (o->left == 0)
		return false;
	if (d->name.len == strlen(o->name) &&
	    memcmp(d->name.s, o->name, d->name.len) == 0)
		o->size = d->attr.size;
	o->cookie = d->cookie;
	o->left--;
	return true;
}

/* Writes, lists a few times, and finds what it wrote. */
static void own(void *arg)
{
	struct owner *o = arg;
	uint64_t verf;
	bool eof;

	for (unsigned i = 0; i < 200 || (i < 100000 && !o->wrong &&
			     count("posix_listing_used") <= o->used); i++) {
		if (i % 4 == 0)
			write_str(o->file, i, "x", NULL);
		o->cookie = 0;
		do {
			o->left = 70;
			if (posix_readdir(&w.ctx, w.root, o->cookie, &verf,
					  true, take_own, o, &eof, NULL) < 0)
				o->wrong++;
		} while (!eof && o->wrong == 0);
		o->wrong += o->size != i / 4 * 4 + 1;
	}
}

START_TEST(whoever_writes_finds_it_in_the_next_listing)
{
	struct owner o[4];
	uint64_t used;

	if (!open_full(_i))
		return;
	list_kept();
	used = count("posix_listing_used");
	for (int i = 0; i < 4; i++) {
		o[i] = (struct owner){ .used = used };
		snprintf(o[i].name, sizeof(o[i].name), "e%d", i);
		o[i].file = must_lookup(w.root, o[i].name);
	}
	for (int i = 0; i < 4; i++)
		assert_ok(thread_start(&o[i].thread, "own", own, &o[i]));
	for (int i = 0; i < 4; i++) {
		pthread_join(o[i].thread, NULL);
		ck_assert_int_eq(o[i].wrong, 0);
		vfs_node_put(o[i].file);
	}
	ck_assert_uint_gt(count("posix_listing_used"), used);
	world_close();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("posix listings");
	TCase *t = tcase_create("shown");

	tcase_set_timeout(t, 120);
	add_world_test(t, a_kept_listing_is_the_listing);
	add_fs_test(t, names_follow_every_change);
	add_fs_test(t, attributes_follow_the_servers_changes);
	add_world_test(t, every_change_by_the_server_is_counted);
	add_fs_test(t, a_change_by_the_server_ends_what_is_kept_of_the_file);
	add_fs_test(t, changes_by_another_export_show);
	add_fs_test(t, attributes_follow_local_changes);
	add_fs_test(t, what_no_watch_tells_of_is_asked_for);
	add_fs_test(t, who_may_not_search_gets_names_alone);
	add_fs_test(t, whoever_writes_finds_it_in_the_next_listing);
	add_fs_test(t, nothing_is_missed_when_a_listing_ends_on_the_way);
	suite_add_tcase(s, t);
	return world_run(s);
}
