/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of types of file systems, and the list of mounts. */
#include <linux/magic.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "tests/unit/runner.h"
#include "vfs/posix/kinds.h"
#include "vfs/posix/mounts.h"

static enum posix_rights rights(uint32_t magic, const char *name)
{
	return posix_kind_rights(magic, name, false, false);
}

TEST(stores_of_files_go_by_the_mode)
{
	static const uint32_t magic[] = {
		EXT4_SUPER_MAGIC, 0x58465342, BTRFS_SUPER_MAGIC,
		F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, ISOFS_SUPER_MAGIC,
		MSDOS_SUPER_MAGIC, SQUASHFS_MAGIC,
	};

	for (unsigned i = 0; i < sizeof(magic) / sizeof(magic[0]); i++)
		ck_assert_int_eq(rights(magic[i], NULL), POSIX_BY_MODE);
	ck_assert_int_eq(rights(TMPFS_MAGIC, "tmpfs"), POSIX_BY_MODE);
	ck_assert_int_eq(rights(RAMFS_MAGIC, "ramfs"), POSIX_BY_MODE);
	ck_assert_int_eq(rights(RAMFS_MAGIC, "rootfs"), POSIX_BY_MODE);
}

TEST(only_FAT_and_its_heir_lack_links_and_case)
{
	ck_assert(posix_kind_find(MSDOS_SUPER_MAGIC, "vfat")->fat);
	ck_assert(posix_kind_find(MSDOS_SUPER_MAGIC, NULL)->fat);
	ck_assert(posix_kind_find(0x2011bab0, "exfat")->fat);
	ck_assert(!posix_kind_find(EXT4_SUPER_MAGIC, NULL)->fat);
	ck_assert(!posix_kind_find(0x7366746e, "ntfs3")->fat);
}

TEST(foreign_file_systems_decide_at_each_open)
{
	static const uint32_t magic[] = {
		FUSE_SUPER_MAGIC, NFS_SUPER_MAGIC, CIFS_SUPER_MAGIC,
		SMB2_SUPER_MAGIC, V9FS_MAGIC, CEPH_SUPER_MAGIC, AFS_FS_MAGIC,
		CODA_SUPER_MAGIC, ECRYPTFS_SUPER_MAGIC,
	};

	for (unsigned i = 0; i < sizeof(magic) / sizeof(magic[0]); i++) {
		ck_assert_int_eq(rights(magic[i], NULL), POSIX_BY_OPEN);
		ck_assert(posix_kind_find(magic[i], NULL)->remote);
	}
	ck_assert_int_eq(rights(FUSE_SUPER_MAGIC, "fuse.sshfs"), POSIX_BY_OPEN);
	ck_assert_int_eq(rights(FUSE_SUPER_MAGIC, "fuseblk"), POSIX_BY_OPEN);
	ck_assert_int_eq(rights(FUSE_SUPER_MAGIC, "virtiofs"), POSIX_BY_OPEN);
}

TEST(pseudo_file_systems_are_not_served)
{
	static const uint32_t magic[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC, CGROUP_SUPER_MAGIC,
		CGROUP2_SUPER_MAGIC, DEBUGFS_MAGIC, TRACEFS_MAGIC,
		DEVPTS_SUPER_MAGIC, SECURITYFS_MAGIC, BPF_FS_MAGIC,
		PSTOREFS_MAGIC, EFIVARFS_MAGIC, BINFMTFS_MAGIC,
		HUGETLBFS_MAGIC, NSFS_MAGIC, SELINUX_MAGIC, AUTOFS_SUPER_MAGIC,
		0x19800202, 0x62656570, 0x65735543, 0x67596969, 0x6e667364,
	};
	static const char *const names[] = {
		"proc", "sysfs", "cgroup", "cgroup2", "cpuset", "debugfs",
		"tracefs", "devtmpfs", "devpts", "mqueue", "securityfs",
		"configfs", "bpf", "pstore", "efivarfs", "fusectl",
		"binfmt_misc", "hugetlbfs", "rpc_pipefs", "nfsd", "nsfs",
		"selinuxfs", "resctrl",
	};

	for (unsigned i = 0; i < sizeof(magic) / sizeof(magic[0]); i++)
		/* However it presents itself. */
		for (int j = 0; j < 4; j++)
			ck_assert_int_eq(posix_kind_rights(magic[i], NULL,
				j & 1, j & 2), POSIX_PSEUDO);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		ck_assert_msg(posix_kind_hides(names[i]), "%s", names[i]);
}

TEST(a_name_tells_devtmpfs_from_tmpfs)
{
	ck_assert_int_eq(rights(TMPFS_MAGIC, "devtmpfs"), POSIX_PSEUDO);
	ck_assert_int_eq(rights(RAMFS_MAGIC, "devtmpfs"), POSIX_PSEUDO);
	/* Without a name, or with another one, nothing is promised. */
	ck_assert_int_eq(rights(TMPFS_MAGIC, NULL), POSIX_BY_OPEN);
	ck_assert_int_eq(rights(TMPFS_MAGIC, "newfs"), POSIX_BY_OPEN);
	ck_assert(!posix_kind_find(TMPFS_MAGIC, NULL)->ram);
	ck_assert(posix_kind_find(TMPFS_MAGIC, "tmpfs")->ram);
}

TEST(an_unknown_type_is_never_trusted)
{
	const uint32_t magic = 0x12345678;

	ck_assert_ptr_null(posix_kind_find(magic, "newfs"));
	ck_assert_int_eq(posix_kind_rights(magic, "newfs", true, false),
			 POSIX_BY_OPEN);
	ck_assert_int_eq(posix_kind_rights(magic, "newfs", false, true),
			 POSIX_BY_OPEN);
	ck_assert_int_eq(posix_kind_rights(magic, "newfs", false, false),
			 POSIX_PSEUDO);
}

/* A local user who mounts it can choose its name: only the number is
 * believed. */
TEST(a_name_does_not_change_what_a_number_says)
{
	ck_assert_int_eq(rights(FUSE_SUPER_MAGIC, "fuse.ext4"), POSIX_BY_OPEN);
	ck_assert_int_eq(rights(FUSE_SUPER_MAGIC, "ext4"), POSIX_BY_OPEN);
	ck_assert_int_eq(rights(PROC_SUPER_MAGIC, "ext4"), POSIX_PSEUDO);
	ck_assert(!posix_kind_hides("fuse.proc"));
	ck_assert(!posix_kind_hides("tmpfs"));
	ck_assert(!posix_kind_hides("ext4"));
	ck_assert(!posix_kind_hides("newfs"));
	ck_assert(!posix_kind_hides(""));
	/* To look there has it mount something. */
	ck_assert(!posix_kind_hides("autofs"));
}

TEST(a_line_of_the_list_of_mounts_is_read)
{
	struct posix_mounted m;

	ck_assert(posix_mounted_parse("36 35 98:7 /a\\040b /mnt\\040- "
		"rw,noatime master:1 shared:4 - ext3 /dev/my\\040root "
		"rw,errors=continue\n", &m));
	ck_assert_uint_eq(m.id, 36);
	ck_assert_uint_eq(m.dev, makedev(98, 7));
	ck_assert_str_eq(m.type, "ext3");
	ck_assert(!m.has_user);
	ck_assert(!m.read_only);
	ck_assert(posix_mounted_parse("5000000000 1 0:31 / /proc rw - proc "
				      "proc rw", &m));
	ck_assert_uint_eq(m.id, 5000000000);
	ck_assert_str_eq(m.type, "proc");
	ck_assert(posix_mounted_parse("1 1 8:1 / /m rw - ext4 /dev/x ro\n",
				      &m));
	ck_assert(m.read_only);
	ck_assert(posix_mounted_parse("1 1 8:1 / /m ro - ext4 x ro,a", &m));
	ck_assert(m.read_only);
	/* The mount alone is. */
	ck_assert(posix_mounted_parse("1 1 8:1 / /m ro - ext4 x rw,a", &m));
	ck_assert(!m.read_only);
	ck_assert(posix_mounted_parse("1 1 8:1 / /m ro - x x rom=7", &m));
	ck_assert(!m.read_only);
}

TEST(the_user_of_a_fuse_mount_is_read)
{
	struct posix_mounted m;

	ck_assert(posix_mounted_parse("9 1 0:31 / /m rw - fuse.x x "
				      "rw,user_id=1000,group_id=5\n", &m));
	ck_assert(m.has_user && !m.others);
	ck_assert_uint_eq(m.user, 1000);
	ck_assert_uint_eq(m.group, 5);
	ck_assert(posix_mounted_parse("9 1 0:31 / /m rw - fuse.x x "
		"rw,user_id=1000,group_id=5,allow_other\n", &m));
	ck_assert(m.has_user && m.others);
	/* Its source is whatever its mounter wrote. */
	ck_assert(posix_mounted_parse("9 1 0:31 / /m rw - fuse.x allow_other "
				      "rw,user_id=0,group_id=0\n", &m));
	ck_assert(m.has_user && !m.others);
	ck_assert_uint_eq(m.user, 0);
	/* That can also be nothing. */
	ck_assert(posix_mounted_parse("9 1 0:31 / /m rw - fuse  "
				      "rw,user_id=7,group_id=8\n", &m));
	ck_assert(m.has_user && !m.others);
	ck_assert_uint_eq(m.user, 7);
	ck_assert(posix_mounted_parse("9 1 0:31 / /m rw - ext4 user_id=7 "
				      "rw,user_id=7\n", &m));
	ck_assert(!m.has_user && m.others);
}

TEST(lines_that_are_cut_short_are_not_read)
{
	static const char line[] = "36 35 98:0 / /mnt rw - ext3 /dev/root rw";
	struct posix_mounted m;
	char part[sizeof(line)];

	for (size_t len = 0; len < sizeof("36 35 98:0 / /mnt rw - "); len++) {
		strcpy(part, line);
		part[len] = '\0';
		ck_assert_msg(!posix_mounted_parse(part, &m), "%s", part);
	}
	ck_assert(!posix_mounted_parse("a b - c d e", &m));
	ck_assert(!posix_mounted_is_there(UINT64_MAX));
	ck_assert(!posix_mounted_by_id(0, &m));
	ck_assert(posix_mounted_is_there(0));
}

int main(void)
{
	return run_tests();
}
