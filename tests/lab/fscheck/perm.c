/* SPDX-License-Identifier: BSD-2-Clause */
/* Permissions of users other than root. */
#include "tests/lab/fscheck/fscheck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define ALICE 2001
#define BOB 2002
#define STAFF 3001	/* their own group */
#define PROJECT 3016	/* the last of the sixteen that AUTH_SYS carries */

static const gid_t sixteen[] = {
	3001, 3002, 3003, 3004, 3005, 3006, 3007, 3008,
	3009, 3010, 3011, 3012, 3013, 3014, 3015, PROJECT,
};

static bool as_alice(bool (*run)(void))
{
	return as_user(ALICE, STAFF, NULL, 0, run);
}

static bool as_bob(bool (*run)(void))
{
	return as_user(BOB, 3100, NULL, 0, run);
}

static bool open_is_refused(void)
{
	MUST_FAIL(openat(mnt, "f", O_RDONLY), EACCES);
	MUST_FAIL(openat(mnt, "f", O_WRONLY), EACCES);
	MUST(faccessat(mnt, "f", F_OK, 0) == 0);
	MUST_FAIL(faccessat(mnt, "f", R_OK, 0), EACCES);
	return true;
}

static bool open_works(void)
{
	int fd = openat(mnt, "f", O_RDWR);

	MUST(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
	MUST(faccessat(mnt, "f", R_OK | W_OK, 0) == 0);
	return true;
}

static bool a_private_file_is_its_owners(void)
{
	MUST(put_file(mnt, "f", 10, 1));
	MUST(fchmodat(mnt, "f", 0600, 0) == 0);
	MUST(fchownat(mnt, "f", ALICE, STAFF, 0) == 0);
	MUST(as_bob(open_is_refused) && as_alice(open_works));
	return true;
}

static bool the_sixteenth_group_counts(void)
{
	MUST(put_file(mnt, "f", 10, 1));
	MUST(fchmodat(mnt, "f", 0660, 0) == 0);
	MUST(fchownat(mnt, "f", 0, PROJECT, 0) == 0);
	MUST(as_user(BOB, 3100, sixteen, 15, open_is_refused));
	MUST(as_user(BOB, 3100, sixteen, 16, open_works));
	return true;
}

static bool create_things(void)
{
	MUST(put_file(mnt, "d/f", 10, 1) && mkdirat(mnt, "d/d", 0755) == 0);
	MUST(symlinkat("x", mnt, "d/s") == 0);
	MUST(mkfifoat(mnt, "d/p", 0644) == 0);
	return true;
}

static bool new_objects_belong_to_their_maker(void)
{
	static const char *const made[] = { "d/f", "d/d", "d/s", "d/p" };
	struct stat st;

	MUST(mkdirat(mnt, "d", 0755) == 0);
	MUST(fchmodat(mnt, "d", 0777, 0) == 0);
	MUST(as_alice(create_things));
	for (size_t i = 0; i < 4; i++)
		MUST(both_stat(made[i], &st) && st.st_uid == ALICE &&
		     st.st_gid == STAFF);
	return true;
}

static bool a_set_group_directory_gives_its_group(void)
{
	struct stat st;

	MUST(mkdirat(mnt, "d", 0755) == 0);
	MUST(fchownat(mnt, "d", 0, PROJECT, 0) == 0);
	MUST(fchmodat(mnt, "d", 02777, 0) == 0);
	MUST(as_alice(create_things));
	MUST(both_stat("d/f", &st) && st.st_gid == PROJECT);
	MUST(both_stat("d/d", &st) && st.st_gid == PROJECT);
	MUST(st.st_mode & S_ISGID);
	return true;
}

static bool nothing_can_be_changed(void)
{
	struct timespec ts[2] = { { 1, 0 }, { 1, 0 } };

	MUST_FAIL(openat(mnt, "d/new", O_WRONLY | O_CREAT, 0644), EACCES);
	MUST_FAIL(mkdirat(mnt, "d/new", 0755), EACCES);
	MUST_FAIL(unlinkat(mnt, "d/f", 0), EACCES);
	MUST_FAIL(renameat(mnt, "d/f", mnt, "d/g"), EACCES);
	MUST(linkat(mnt, "d/f", mnt, "d/g", 0) < 0);
	MUST_FAIL(symlinkat("x", mnt, "d/s"), EACCES);
	MUST_FAIL(fchmodat(mnt, "d/f", 0666, 0), EPERM);
	MUST_FAIL(fchownat(mnt, "d/f", BOB, (gid_t)-1, 0), EPERM);
	MUST_FAIL(utimensat(mnt, "d/f", ts, 0), EPERM);
	MUST_FAIL(utimensat(mnt, "d/f", NULL, 0), EACCES);
	return true;
}

static bool a_directory_of_others_is_read_only(void)
{
	MUST(mkdirat(mnt, "d", 0755) == 0 && put_file(mnt, "d/f", 10, 1));
	MUST(as_bob(nothing_can_be_changed));
	return true;
}

static bool search_is_refused(void)
{
	struct stat st;

	MUST_FAIL(fstatat(mnt, "d/f", &st, 0), EACCES);
	MUST_FAIL(openat(mnt, "d", O_RDONLY | O_DIRECTORY), EACCES);
	return true;
}

static bool a_closed_directory_is_not_searched(void)
{
	MUST(mkdirat(mnt, "d", 0755) == 0 && put_file(mnt, "d/f", 10, 1));
	MUST(fchmodat(mnt, "d", 0700, 0) == 0);
	MUST(as_bob(search_is_refused));
	return true;
}

static bool unlink_is_not_permitted(void)
{
	MUST(unlinkat(mnt, "d/f", 0) < 0);
	MUST(errno == EPERM || errno == EACCES);
	return true;
}

static bool unlink_works(void)
{
	MUST(unlinkat(mnt, "d/f", 0) == 0);
	return true;
}

static bool a_sticky_directory_protects_its_files(void)
{
	MUST(mkdirat(mnt, "d", 0755) == 0 && put_file(mnt, "d/f", 10, 1));
	MUST(fchmodat(mnt, "d", 01777, 0) == 0);
	MUST(fchownat(mnt, "d/f", ALICE, STAFF, 0) == 0);
	MUST(as_bob(unlink_is_not_permitted) && as_alice(unlink_works));
	return true;
}

/* The client checked the open; the server must let the owner's writes by. */
static bool write_through_an_open_descriptor(void)
{
	int fd = openat(mnt, "g", O_RDWR | O_CREAT, 0400);
	char buf[5];

	MUST(fd >= 0 && write(fd, "hello", 5) == 5 && fsync(fd) == 0);
	MUST(fchmod(fd, 0) == 0);
	MUST(pwrite(fd, "again", 5, 5) == 5 && fsync(fd) == 0);
	MUST(pread(fd, buf, 5, 5) == 5 && memcmp(buf, "again", 5) == 0);
	MUST(ftruncate(fd, 3) == 0 && close(fd) == 0);
	return true;
}

static bool an_owner_writes_what_he_opened(void)
{
	struct stat st;

	MUST(as_alice(write_through_an_open_descriptor));
	MUST(both_stat("g", &st) && st.st_size == 3);
	return true;
}

static bool give_to_own_groups(void)
{
	MUST(fchownat(mnt, "f", (uid_t)-1, PROJECT, 0) == 0);
	MUST_FAIL(fchownat(mnt, "f", (uid_t)-1, 9999, 0), EPERM);
	MUST_FAIL(fchownat(mnt, "f", BOB, (gid_t)-1, 0), EPERM);
	return true;
}

static bool an_owner_gives_to_his_groups_only(void)
{
	MUST(put_file(mnt, "f", 10, 1));
	MUST(fchownat(mnt, "f", ALICE, STAFF, 0) == 0);
	MUST(as_user(ALICE, STAFF, sixteen, 16, give_to_own_groups));
	return true;
}

static bool write_a_byte(void)
{
	int fd = openat(mnt, "f", O_WRONLY);

	MUST(fd >= 0 && write(fd, "x", 1) == 1 && close(fd) == 0);
	return true;
}

static bool a_write_clears_the_set_user_bits(void)
{
	struct stat st;

	MUST(put_file(mnt, "f", 10, 1));
	MUST(fchmodat(mnt, "f", 06777, 0) == 0);
	MUST(as_bob(write_a_byte));
	MUST(fstatat(back, "f", &st, 0) == 0);
	MUST((st.st_mode & 07777) == 0777);
	return true;
}

#define CHECK(f) { #f, f, 0 }
const struct fscheck perm_checks[] = {
	CHECK(a_private_file_is_its_owners),
	CHECK(the_sixteenth_group_counts),
	CHECK(new_objects_belong_to_their_maker),
	CHECK(a_set_group_directory_gives_its_group),
	CHECK(a_directory_of_others_is_read_only),
	CHECK(a_closed_directory_is_not_searched),
	CHECK(a_sticky_directory_protects_its_files),
	CHECK(an_owner_writes_what_he_opened),
	CHECK(an_owner_gives_to_his_groups_only),
	CHECK(a_write_clears_the_set_user_bits),
	{ .name = NULL },
};
