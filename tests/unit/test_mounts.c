/* SPDX-License-Identifier: BSD-2-Clause */
/* Where work on a path can hang, by the kernel's list of mounts. */
#include "lib/mounts.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "tests/unit/runner.h"

static char list[] =
	"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
	"23 22 8:2 / /srv rw shared:1 - ext4 /dev/sda2 rw\n"
	"24 23 0:40 / /srv/a\\040b rw - nfs4 filer:/vol/a rw\n"
	"25 23 0:41 / /srv/b rw - nfs4 filer:/vol/b rw\n"
	"26 23 0:42 / /srv/c rw - nfs4 other:/vol/a rw\n"
	"27 23 0:43 / /srv/d rw - zfs tank rw\n"
	"28 27 0:44 / /srv/d/e rw - zfs tank/e rw\n"
	"29 23 0:45 / /srv/f rw - zfs tank2/e rw\n"
	"30 23 0:46 / /srv/g rw - cifs //filer/g rw\n"
	"31 23 0:47 / /srv/h rw - cifs //filer/h rw\n"
	"32 23 0:48 / /srv/i rw - tmpfs tmpfs rw\n"
	"33 23 0:49 / /srv/j rw - tmpfs tmpfs rw\n"
	"34 33 8:3 / /srv/j rw - ext4 /dev/sda3 rw\n";

static uint64_t place(const char *path)
{
	FILE *f = fmemopen(list, strlen(list), "r");
	uint64_t got;

	ck_assert_ptr_nonnull(f);
	got = mounts_place_in(f, path);
	fclose(f);
	ck_assert_uint_ne(got, 0);
	return got;
}

TEST(a_path_lies_in_the_last_mount_above_it)
{
	ck_assert_uint_eq(place("/usr"), place("/"));
	ck_assert_uint_ne(place("/srv"), place("/"));
	ck_assert_uint_eq(place("/srv/x/y"), place("/srv"));
	ck_assert_uint_eq(place("/srvx"), place("/"));
	ck_assert_uint_ne(place("/srv/a b/c"), place("/srv"));
	ck_assert_uint_ne(place("/srv/j"), place("/srv/i"));
	ck_assert_uint_ne(place("/srv/j"), place("/srv"));
}

static uint64_t device(char *mounts, const char *path)
{
	FILE *f = fmemopen(mounts, strlen(mounts), "r");
	uint64_t got;

	ck_assert_ptr_nonnull(f);
	got = mounts_device_in(f, path);
	fclose(f);
	return got;
}

TEST(each_file_system_has_a_device)
{
	static const char *const paths[] = { "/usr", "/srv/x", "/srv/a b/c",
					     "/srv/b", "/srv/j" };
	static const unsigned devs[][2] = { { 8, 1 }, { 8, 2 }, { 0, 40 },
					    { 0, 41 }, { 8, 3 } };

	for (size_t i = 0; i < sizeof(devs) / sizeof(devs[0]); i++)
		ck_assert_uint_eq(device(list, paths[i]),
				  makedev(devs[i][0], devs[i][1]));
}

/* The later mount of /srv covers the first one of /srv/x, and all below.  The
 * mount that was moved to /opt/x is in the list before the mount it is on. */
TEST(a_path_does_not_lie_in_a_mount_that_another_one_covers)
{
	static char covered[] =
		"40 41 8:4 / /opt/x rw - ext4 /dev/sda4 rw\n"
		"22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
		"41 22 8:5 / /opt rw - ext4 /dev/sda5 rw\n"
		"23 22 8:2 / /srv/x rw - ext4 /dev/sda2 rw\n"
		"24 23 8:6 / /srv/x/y/z rw - ext4 /dev/sda6 rw\n"
		"25 22 8:3 / /srv rw - ext4 /dev/sda3 rw\n";

	ck_assert_uint_eq(device(covered, "/srv"), makedev(8, 3));
	ck_assert_uint_eq(device(covered, "/srv/x/y"), makedev(8, 3));
	ck_assert_uint_eq(device(covered, "/srv/x/y/z"), makedev(8, 3));
	ck_assert_uint_eq(device(covered, "/opt/x/y"), makedev(8, 4));
	ck_assert_uint_eq(device(covered, "/opt/y"), makedev(8, 5));
	ck_assert_uint_eq(device(covered, "/usr"), makedev(8, 1));
}

TEST(file_systems_of_one_server_or_pool_are_one_place)
{
	ck_assert_uint_eq(place("/srv/a b"), place("/srv/b"));
	ck_assert_uint_ne(place("/srv/b"), place("/srv/c"));
	ck_assert_uint_eq(place("/srv/d"), place("/srv/d/e"));
	ck_assert_uint_ne(place("/srv/d"), place("/srv/f"));
	ck_assert_uint_eq(place("/srv/g"), place("/srv/h"));
	ck_assert_uint_ne(place("/srv/g"), place("/srv/b"));
}
