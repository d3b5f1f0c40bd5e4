/* SPDX-License-Identifier: BSD-2-Clause */
/* The posix backend: which listings are kept, and for how long. */
#include <sys/mman.h>

#include "tests/unit/listing_fixture.h"

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

START_TEST(memory_for_listings_is_bounded)
{
	const struct vfs_config config = { .idle_ms = 3600000 };
	uint64_t kept;
	struct posix_fs *fs;

	if (!open_full_with(_i, &config))
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

static void await_none_listed(void)
{
	for (int i = 0; atomic_load(&to_posix_fs(w.fs)->cache.nlisted); i++) {
		ck_assert_int_lt(i, 6000);
		usleep(10000);
	}
	ck_assert_int_eq(to_posix_fs(w.fs)->listed_bytes, 0);
	ck_assert_int_eq(to_posix(w.root)->watch.wd, -1);
}

/* Whole or not: nobody has to ask. */
START_TEST(what_is_over_is_let_go_of)
{
	const struct vfs_config config = { .idle_ms = 100 };
	uint64_t watches;

	if (!open_full_with(_i, &config))
		return;
	list_kept();
	await_none_listed();
	watches = count("posix_watches");
	do {				/* until it has the making of one */
		begin_list(70);
		list_page();
		usleep(10000);
	} while (count("posix_watches") == watches);
	await_none_listed();
	world_close();
}
END_TEST

/* A user has so and so many of them, for all processes. */
START_TEST(watches_are_bounded)
{
	static struct vfs_node *dir[1100];
	struct rlimit files;
	int watched = 0;
	unsigned changes;
	char name[16];

	assert_ok(getrlimit(RLIMIT_NOFILE, &files));
	files.rlim_cur = files.rlim_max;
	assert_ok(setrlimit(RLIMIT_NOFILE, &files));
	if (files.rlim_cur < ARRAY_SIZE(dir) + 100) {
		printf("skipped: too few files may be open\n");
		return;
	}
	world_open(_i, NULL);
	for (unsigned i = 0; i < ARRAY_SIZE(dir); i++) {
		snprintf(name, sizeof(name), "d%u", i);
		assert_ok(mkdir(local(name), 0755));
		dir[i] = must_lookup(w.root, name);
		watched += posix_watch_begin(to_posix(dir[i]), &changes);
	}
	ck_assert_int_eq(watched, 1024);
	posix_watch_end(to_posix(dir[7]));
	ck_assert(posix_watch_begin(to_posix(dir[1099]), &changes));
	for (unsigned i = 0; i < ARRAY_SIZE(dir); i++)
		vfs_node_put(dir[i]);
	world_close();
}
END_TEST

START_TEST(long_names_are_kept_like_others)
{
	char name[256];

	if (!open_full(_i))
		return;
	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	for (int n = 0; n < FILES; n++) {
		snprintf(name + 250, 6, "%05u", (unsigned)n % 100000);
		close(open(local(name), O_CREAT | O_WRONLY, 0644));
	}
	list_kept();
	ck_assert_int_eq(r.strangers, FILES);
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
	begin_list(70);
	list_page();				/* has the making of it, and goes */
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

int main(void)
{
	Suite *s = suite_create("kept posix listings");
	TCase *t = tcase_create("kept");

	tcase_set_timeout(t, 120);
	add_world_test(t, a_small_or_a_rare_listing_is_not_kept);
	add_fs_test(t, what_is_kept_is_over_after_a_second);
	add_fs_test(t, memory_for_listings_is_bounded);
	add_ram_test(t, what_is_over_is_let_go_of);
	add_ram_test(t, watches_are_bounded);
	add_fs_test(t, long_names_are_kept_like_others);
	add_fs_test(t, fresh_means_that_nothing_is_kept);
	add_ram_test(t, a_listing_is_made_anew_in_time);
	add_fs_test(t, who_stops_half_through_does_not_keep_others_from_it);
	suite_add_tcase(s, t);
	return world_run(s);
}
