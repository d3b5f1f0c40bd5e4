/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/posix/kinds.h"

#include <stddef.h>
#include <string.h>

#include "lib/util.h"

/* Numbers that are in no header of every machine. */
#define TMPFS		0x01021994
#define RAMFS		0x858458f6
#define FUSE		0x65735546
#define EXT		0xef53

#define KIND(n, m, r, ...) \
	{ .name = n, .magic = m, .rights = r, __VA_ARGS__ }
#define LOCAL(n, m)	KIND(n, m, POSIX_BY_MODE)
#define FAT(n, m)	KIND(n, m, POSIX_BY_MODE, .fat = true)
#define MEMORY(n, m)	KIND(n, m, POSIX_BY_MODE, .ram = true)
/* The kernel's own checks, but a lock of the cluster before them. */
#define CLUSTER(n, m)	KIND(n, m, POSIX_BY_MODE, .remote = true)
#define FOREIGN(n, m)	KIND(n, m, POSIX_BY_OPEN, .remote = true)
#define PSEUDO(n, m)	KIND(n, m, POSIX_PSEUDO)

/* If types share a number, the last one is used when the name is not known. */
static const struct posix_kind kinds[] = {
	LOCAL("ext2", EXT), LOCAL("ext3", EXT), LOCAL("ext4", EXT),
	LOCAL("xfs", 0x58465342),
	LOCAL("btrfs", 0x9123683e),
	LOCAL("f2fs", 0xf2f52010),
	LOCAL("bcachefs", 0xca451a4e),
	LOCAL("zfs", 0x2fc12fc1),
	LOCAL("jfs", 0x3153464a),
	LOCAL("nilfs2", 0x3434),
	LOCAL("reiserfs", 0x52654973),
	LOCAL("ubifs", 0x24051905),
	LOCAL("jffs2", 0x72b6),
	LOCAL("erofs", 0xe0f5e1e2),
	LOCAL("squashfs", 0x73717368),
	LOCAL("cramfs", 0x28cd3d45),
	LOCAL("romfs", 0x7275),
	LOCAL("iso9660", 0x9660),
	LOCAL("udf", 0x15013346),
	FAT("vfat", 0x4d44), FAT("msdos", 0x4d44),
	FAT("exfat", 0x2011bab0),
	LOCAL("ntfs3", 0x7366746e),
	LOCAL("hfsplus", 0x482b),
	LOCAL("hfs", 0x4244),
	/*
	 * It checks the caller by the mode that it shows, and then opens the
	 * layer's file as the user who mounted it.  So no layer, whatever its
	 * type, learns who the caller is.
	 */
	LOCAL("overlay", 0x794c7630),
	CLUSTER("ocfs2", 0x7461636f),
	CLUSTER("gfs2", 0x01161970),

	/* Only the name tells devtmpfs from these: without one, the type counts
	 * as unknown. */
	MEMORY("tmpfs", TMPFS), MEMORY("rootfs", TMPFS),
	PSEUDO("devtmpfs", TMPFS),
	FOREIGN("", TMPFS),
	MEMORY("ramfs", RAMFS), MEMORY("rootfs", RAMFS),
	PSEUDO("devtmpfs", RAMFS),
	FOREIGN("", RAMFS),

	FOREIGN("fuseblk", FUSE), FOREIGN("virtiofs", FUSE),
	FOREIGN("fuse", FUSE),
	FOREIGN("nfs4", 0x6969), FOREIGN("nfs", 0x6969),
	FOREIGN("cifs", 0xff534d42),
	FOREIGN("smb3", 0xfe534d42),
	FOREIGN("smbfs", 0x517b),
	FOREIGN("9p", 0x01021997),
	FOREIGN("ceph", 0x00c36400),
	FOREIGN("afs", 0x6b414653),
	FOREIGN("afs", 0x5346414f),
	FOREIGN("coda", 0x73757245),
	FOREIGN("lustre", 0x0bd00bd0),
	FOREIGN("beegfs", 0x19830326),
	FOREIGN("gpfs", 0x47504653),
	FOREIGN("pvfs2", 0x20030528),
	FOREIGN("panfs", 0xaad7aaea),
	FOREIGN("cvfs", 0xbeefdead),
	FOREIGN("ecryptfs", 0xf15f),
	FOREIGN("vboxsf", 0x786f4256),
	FOREIGN("vmhgfs", 0xbacbacbc),
	FOREIGN("hostfs", 0x00c0ffee),

	PSEUDO("proc", 0x9fa0),
	PSEUDO("sysfs", 0x62656572),
	PSEUDO("cpuset", 0x27e0eb), PSEUDO("cgroup", 0x27e0eb),
	PSEUDO("cgroup2", 0x63677270),
	PSEUDO("debugfs", 0x64626720),
	PSEUDO("tracefs", 0x74726163),
	PSEUDO("devpts", 0x1cd1),
	PSEUDO("mqueue", 0x19800202),
	PSEUDO("securityfs", 0x73636673),
	PSEUDO("selinuxfs", 0xf97cff8c),
	PSEUDO("smackfs", 0x43415d53),
	PSEUDO("apparmorfs", 0x5a3c69f0),
	PSEUDO("configfs", 0x62656570),
	PSEUDO("bpf", 0xcafe4a11),
	PSEUDO("pstore", 0x6165676c),
	PSEUDO("efivarfs", 0xde5e81e4),
	PSEUDO("fusectl", 0x65735543),
	PSEUDO("binfmt_misc", 0x42494e4d),
	PSEUDO("hugetlbfs", 0x958458f6),
	PSEUDO("rpc_pipefs", 0x67596969),
	PSEUDO("nfsd", 0x6e667364),
	PSEUDO("nsfs", 0x6e736673),
	PSEUDO("pidfs", 0x50494446),
	PSEUDO("autofs", 0x0187),
	PSEUDO("resctrl", 0x07655821),
	PSEUDO("binder", 0x6c6f6f70),
	PSEUDO("xenfs", 0xabba1974),
	PSEUDO("openpromfs", 0x9fa1),
	PSEUDO("usbfs", 0x9fa2),
	PSEUDO("functionfs", 0x0a647361),
	PSEUDO("gadgetfs", 0xaee71ee7),
	PSEUDO("pipefs", 0x50495045),
	PSEUDO("sockfs", 0x534f434b),
	PSEUDO("anon_inodefs", 0x09041934),
	PSEUDO("bdev", 0x62646576),
	PSEUDO("dmabuf", 0x444d4142),
	PSEUDO("secretmem", 0x5345434d),
};

/* The type that the kernel calls @name, or NULL.  "fuse.sshfs" is "fuse". */
static const struct posix_kind *kind_named(const char *name)
{
	if (strncmp(name, "fuse.", 5) == 0)
		name = "fuse";
	else if (strncmp(name, "fuseblk.", 8) == 0)
		name = "fuseblk";
	for (unsigned i = 0; *name && i < ARRAY_SIZE(kinds); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return kinds + i;
	return NULL;
}

const struct posix_kind *posix_kind_find(uint32_t magic, const char *name)
{
	const struct posix_kind *found = NULL;

	for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (kinds[i].magic != magic)
			continue;
		found = kinds + i;
		if (name && strcmp(found->name, name) == 0)
			break;
	}
	return found;
}

enum posix_rights posix_kind_rights(uint32_t magic, const char *name,
				    bool on_device, bool exportable)
{
	const struct posix_kind *k = posix_kind_find(magic, name);

	if (k)
		return k->rights;
	return on_device || exportable ? POSIX_BY_OPEN : POSIX_PSEUDO;
}

bool posix_kind_hides(const char *name)
{
	const struct posix_kind *k = kind_named(name);

	return k && k->rights == POSIX_PSEUDO && strcmp(name, "autofs") != 0;
}
