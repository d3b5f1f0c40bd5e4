/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: listings that are kept, and what ends them. */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "lib/stats.h"
#include "tests/unit/posix_fixture.h"

#define FILES 300

/* A listing of the directory, all of it. */
struct found {
	bool		has_attr;
	struct vfs_attr attr;
	int		times;
};

struct reading {
	int	 room;
	uint64_t cookie;
	bool	 eof;
	struct found file[FILES + 1];	/* e0, e1, ... */
	struct found sub;
	int	 strangers;
};

static struct reading r;

static bool take(void *arg, const struct vfs_dirent *d)
{
	int *room = arg;
	struct found *f = NULL;
	char name[256];
	unsigned n;

	if (*room == 0)
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)d->name.len, d->name.s);
	if (sscanf(name, "e%u", &n) == 1 && n < ARRAY_SIZE(r.file))
		f = &r.file[n];
	else if (strcmp(name, "sub") == 0)
		f = &r.sub;
	else if (name[0] != '.')
		r.strangers++;
	if (f) {
		f->has_attr = d->has_attr;
		f->attr = d->attr;
		f->times++;
	}
	(*room)--;
	r.cookie = d->cookie;
	return true;
}

static void begin(int room)
{
	memset(&r, 0, sizeof(r));
	r.room = room;
}

static void page(void)
{
	uint64_t verf = 0;
	int room = r.room;

	assert_ok(posix_readdir(&w.ctx, w.root, r.cookie, &verf, true, take,
				&room, &r.eof, NULL));
	ck_assert(r.eof || room < r.room);
}

static void list(void)
{
	begin(70);
	while (!r.eof)
		page();
}

static uint64_t count(const char *name)
{
	return stats_sum_by_name(name);
}

static void make_file(int i)
{
	char name[16];

	snprintf(name, sizeof(name), "e%d", i);
	close(open(local(name), O_CREAT | O_WRONLY, 0644));
}

/* False where listings are not kept at all. */
static bool open_full(int i)
{
	world_open(i, NULL);
	for (int n = 0; n < FILES; n++)
		make_file(n);
	assert_ok(mkdir(local("sub"), 0755));
	if (to_posix_fs(w.fs)->keeps_listings)
		return true;
	printf("skipped: this file system's listings are not kept\n");
	world_close();
	return false;
}

/* Lists until a whole listing came from what is kept. */
static void list_kept(void)
{
	uint64_t kept;

	for (int i = 0; i < 100; i++) {
		kept = count("posix_listing_used");
		list();
		if (count("posix_listing_used") >= kept + FILES / 70)
			return;
		usleep(20000);
	}
	ck_abort_msg("nothing is kept");
}

static void assert_all_there(void)
{
	for (int i = 0; i < FILES; i++) {
		ck_assert_int_eq(r.file[i].times, 1);
		ck_assert(r.file[i].has_attr);
	}
	ck_assert_int_eq(r.sub.times, 1);
	ck_assert_int_eq(r.strangers, 0);
}

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
		begin(room);
		while (!r.eof)
			page();
		assert_all_there();
	}
	world_close();
}
END_TEST

START_TEST(a_small_or_a_rare_listing_is_not_kept)
{
	uint64_t kept = count("posix_listings");
	uint64_t watches = count("posix_watches");

	world_open(_i, NULL);
	for (int n = 0; n < 20; n++)
		make_file(n);
	usleep(80000);
	list();
	list();
	list();
	for (int n = 20; n < FILES; n++)
		make_file(n);
	usleep(80000);
	list();
	ck_assert_uint_eq(count("posix_listings"), kept);
	ck_assert_uint_eq(count("posix_watches"), watches);
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

	for (int i = 0; i < 100; i++) {
		list_kept();
		used = count("posix_listing_used");
		asked = count("posix_listing_asked");
		list();
		if (count("posix_listing_used") - used > FILES / 70)
			return count("posix_listing_asked") - asked;
	}
	ck_abort_msg("nothing is kept for long enough");
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

/* Nobody is told that a file was linked elsewhere, or of what is written to
 * memory that is mapped. */
START_TEST(what_is_kept_is_over_after_a_second)
{
	struct timespec mtime;
	char *map;
	int fd;

	if (!open_full(_i))
		return;
	assert_ok(truncate(local("e40"), 4096));
	fd = open(local("e40"), O_RDWR);
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	ck_assert(map != MAP_FAILED);
	list_kept();
	mtime = r.file[40].attr.mtime;
	*map = 'x';
	assert_ok(link(local("e41"), local("sub/e41")));
	usleep(1010000);
	list();
	ck_assert(!posix_same_time(&r.file[40].attr.mtime, &mtime) ||
		  world_on_tmpfs());
	ck_assert_uint_eq(r.file[41].attr.nlink, 2);
	munmap(map, 4096);
	close(fd);
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
	begin(70);
	ck_assert_int_lt(posix_readdir(&w.ctx, w.root, 0, &(uint64_t){ 0 },
				       true, take, &r.room, &r.eof, NULL), 0);
	w.ctx.cred = &w.cred;
	posix_cred_server(to_posix_fs(w.fs));
	world_close();
}
END_TEST

START_TEST(memory_for_listings_is_bounded)
{
	uint64_t kept = count("posix_listings");
	struct posix_fs *fs;

	if (!open_full(_i))
		return;
	fs = to_posix_fs(w.fs);
	ck_assert_int_eq(fs->listed_bytes, 0);
	list_kept();
	ck_assert_int_gt(fs->listed_bytes, FILES * 200);
	fs->keeps_listings = false;
	make_file(FILES);
	list();
	ck_assert_int_eq(fs->listed_bytes, 0);
	fs->keeps_listings = true;
	atomic_store(&fs->listed_bytes, 64l << 20);
	usleep(80000);
	kept = count("posix_listings");
	for (int i = 0; i < 5; i++)
		list();
	ck_assert_uint_eq(count("posix_listings"), kept);
	ck_assert_int_eq(fs->listed_bytes, 64l << 20);
	world_close();
}
END_TEST

START_TEST(fresh_means_that_nothing_is_kept)
{
	const struct vfs_config config = { .options = "fresh" };
	uint64_t kept = count("posix_listings");

	world_open(_i, &config);
	for (int n = 0; n < FILES; n++)
		make_file(n);
	usleep(80000);
	for (int i = 0; i < 5; i++)
		list();
	ck_assert_uint_eq(count("posix_listings"), kept);
	world_close();
}
END_TEST

START_TEST(who_stops_half_through_does_not_keep_others_from_it)
{
	if (!open_full(_i))
		return;
	usleep(80000);
	list();
	begin(70);
	page();				/* has the making of it, and goes */
	ck_assert(to_posix(w.root)->listing_begun != 0);
	list_kept();
	assert_all_there();
	world_close();
}
END_TEST

/* The next listing is whole before this one is over. */
START_TEST(a_listing_is_made_anew_in_time)
{
	uint64_t made;
	int64_t start;

	if (!open_full(_i))
		return;
	do {
		list_kept();
		start = posix_now();
		usleep(600000);
		made = count("posix_listings");
		list();
		/* Else the first was over: then any listing makes one. */
	} while (posix_now() - start > 900000000);
	ck_assert_uint_gt(count("posix_listings"), made);
	assert_all_there();
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
		begin(30);
		for (int i = 0; i < n; i++)
			page();
		assert_ok(chmod(local("e9"), 0600 + n));
		if (n % 2)
			make_file(FILES);
		else
			unlink(local("e300"));
		while (!r.eof)
			page();
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

/* On both file systems; how handles open makes no difference. */
#define add_fs_test(t, fn)	tcase_add_loop_test((t), fn, 0, 2)

int main(void)
{
	Suite *s = suite_create("posix listings");
	TCase *t = tcase_create("kept");

	tcase_set_timeout(t, 120);
	add_world_test(t, a_kept_listing_is_the_listing);
	add_world_test(t, a_small_or_a_rare_listing_is_not_kept);
	add_fs_test(t, names_follow_every_change);
	add_fs_test(t, attributes_follow_the_servers_changes);
	add_world_test(t, every_change_by_the_server_is_counted);
	add_fs_test(t, a_change_by_the_server_ends_what_is_kept_of_the_file);
	add_fs_test(t, changes_by_another_export_show);
	add_fs_test(t, attributes_follow_local_changes);
	add_fs_test(t, what_no_watch_tells_of_is_asked_for);
	add_fs_test(t, what_is_kept_is_over_after_a_second);
	add_fs_test(t, who_may_not_search_gets_names_alone);
	add_fs_test(t, memory_for_listings_is_bounded);
	add_fs_test(t, fresh_means_that_nothing_is_kept);
	add_fs_test(t, whoever_writes_finds_it_in_the_next_listing);
	add_fs_test(t, a_listing_is_made_anew_in_time);
	add_fs_test(t, who_stops_half_through_does_not_keep_others_from_it);
	add_world_test(t, nothing_is_missed_when_a_listing_ends_on_the_way);
	suite_add_tcase(s, t);
	return world_run(s);
}
