/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The power of the server's machine fails at random moments: all acknowledged
 * changes are on the disk.  disk.h lists the losses of a disk.
 *
 * GANNET_CRASH_CUTS is how often, for each file system, GANNET_CRASH_DEATHS how
 * often the disk alone fails; GANNET_CRASH_SEED makes the same choices again.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/crash/crash.h"
#include "tests/crash/disk.h"
#include "tests/unit/runner.h"

#define CUTS	3
#define DEATHS	2

/*
 * XFS and btrfs write their metadata in blocks of 4 KiB and know them by one
 * checksum: after a cut in the middle of one XFS can't be mounted (EBADMSG).
 * For them the disk has sectors of that size.
 */
static const struct {
	const char *name, *type, *mkfs;
	uint32_t sector;
	bool	 table;
} kinds[] = {
	{ "ext4", "ext4", "mke2fs -q -F -t ext4 -E nodiscard $1", 512, false },
	{ "ext4, 1 KiB blocks", "ext4",
	  "mke2fs -q -F -t ext4 -b 1024 -E nodiscard $1", 512, false },
	{ "XFS", "xfs", "mkfs.xfs -q -f -K $1", 4096, false },
	{ "btrfs", "btrfs", "mkfs.btrfs -q -f -K $1", 4096, false },
	{ "ext4, table", "ext4",
	  "mke2fs -q -F -t ext4 -E nodiscard $1", 512, true },
};
#define KINDS	(int)(sizeof(kinds) / sizeof(kinds[0]))

struct rig {
	struct crash c;
	struct disk disk;
	char	 mnt[80];
	int	 kind;
};

static void sync_all(const struct rig *r)
{
	int fd = open(r->mnt, O_RDONLY | O_DIRECTORY);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(syncfs(fd), 0);
	close(fd);
}

/* True if this machine has the tools to make such a file system and a kernel
 * that reads it. */
static bool has(int kind)
{
	char command[96], type[32], line[64];
	bool known = false;
	FILE *f;

	snprintf(command, sizeof(command), "modprobe -q %s 2>/dev/null; "
		 "command -v %.*s >/dev/null", kinds[kind].type,
		 (int)strcspn(kinds[kind].mkfs, " "), kinds[kind].mkfs);
	snprintf(type, sizeof(type), "\t%s\n", kinds[kind].type);
	if (system(command) == 0 && (f = fopen("/proc/filesystems", "r"))) {
		while (!known && fgets(line, sizeof(line), f))
			known = strcmp(line, type) == 0;
		fclose(f);
	}
	if (!known)
		printf("# no %s here\n", kinds[kind].name);
	return known;
}

static struct rig *rig_start(int kind)
{
	struct rig *r = calloc(1, sizeof(*r));

	ck_assert_ptr_nonnull(r);
	r->kind = kind;
	daemon_prepare(&r->c.d);
	snprintf(r->mnt, sizeof(r->mnt), "%s/mnt", r->c.d.dir);
	ck_assert_int_eq(mkdir(r->mnt, 0755), 0);
	disk_start(&r->disk, r->c.d.dir, kinds[kind].mkfs);
	disk_mount(&r->disk, kinds[kind].type, r->mnt);
	r->c.table = r->c.handles_may_go = kinds[kind].table;
	/* doc/posix.md has the system calls that show it without a server. */
	r->c.keeps_old = strcmp(kinds[kind].type, "btrfs") == 0;
	crash_prepare(&r->c, r->mnt);
	sync_all(r);
	return r;
}

static void rig_end(struct rig *r, const char *what)
{
	char text[120];

	snprintf(text, sizeof(text), "%s on %s, %llu sectors lost, %llu kept",
		 what, kinds[r->kind].name,
		 (unsigned long long)r->disk.lost,
		 (unsigned long long)r->disk.kept);
	crash_report(&r->c, text);
	disk_unmount(r->mnt);
	disk_stop(&r->disk);
	daemon_clean(&r->c.d);
	free(r);
}

/* The machine is started again. */
static void power_on(struct rig *r)
{
	disk_unmount(r->mnt);
	disk_detach(&r->disk);
	disk_power(&r->disk, r->c.seed + r->c.ends, kinds[r->kind].sector);
	disk_attach(&r->disk);
	disk_mount(&r->disk, kinds[r->kind].type, r->mnt);
}

TEST_CASE(.timeout = 60 + crash_setting("GANNET_CRASH_CUTS", CUTS) +
	  crash_setting("GANNET_CRASH_DEATHS", DEATHS));

TEST_LOOP(a_power_cut_loses_nothing_acknowledged, 0, KINDS)
{
	unsigned cuts = crash_setting("GANNET_CRASH_CUTS", CUTS);
	struct rig *r;

	if (!has(_i))
		return;
	r = rig_start(_i);
	while (r->c.ends < cuts) {
		crash_start(&r->c);
		crash_check(&r->c);
		crash_work(&r->c, 1000 + model_random() % 200000);
		disk_cut(&r->disk);
		/* Data in an answer now was on the disk before. */
		crash_work(&r->c, 10000);
		crash_kill(&r->c);
		disk_fail(&r->disk);
		crash_disconnect(&r->c);
		power_on(r);
	}
	rig_end(r, "power cuts");
}

/* From some moment on the disk fails every request, and the server goes on for
 * a while.  Changes that it acknowledges then count as well. */
TEST_LOOP(a_dying_disk_loses_nothing_acknowledged, 0, KINDS)
{
	unsigned deaths = crash_setting("GANNET_CRASH_DEATHS", DEATHS);
	struct rig *r;

	if (!has(_i))
		return;
	r = rig_start(_i);
	while (r->c.ends < deaths) {
		r->c.errors = false;
		crash_start(&r->c);
		crash_check(&r->c);
		crash_work(&r->c, 1000 + model_random() % 100000);
		r->c.errors = true;
		disk_fail(&r->disk);
		crash_work(&r->c, 100000);
		crash_kill(&r->c);
		crash_disconnect(&r->c);
		power_on(r);
	}
	rig_end(r, "disks' deaths");
}

int main(void)
{
	const char *missing = disk_missing();

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (missing) {
		printf("%s\n", missing);
		return 77;
	}
	return run_tests();
}
