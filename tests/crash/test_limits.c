/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resources that run out: space, quota, descriptors, memory, the right to
 * write, the file system itself.  The status says so, nothing that was
 * acknowledged is lost, and the server goes on.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/crash/crash.h"
#include "tests/crash/disk.h"
#include "tests/unit/runner.h"

static struct crash c;
static struct disk disk;
static char mnt[80];

static void prepare(void)
{
	daemon_prepare(&c.d);
	snprintf(mnt, sizeof(mnt), "%s/mnt", c.d.dir);
	ck_assert_int_eq(mkdir(mnt, 0755), 0);
	disk_own_mounts();
}

/* A small one: it gets full. */
static void on_tmpfs(const char *options)
{
	prepare();
	ck_assert_int_eq(mount("crash", mnt, "tmpfs", 0, options), 0);
	crash_prepare(&c, mnt);
}

static void on_ext4(const char *mkfs, const char *options)
{
	prepare();
	disk_start(&disk, c.d.dir, mkfs);
	ck_assert_msg(mount(disk.device, mnt, "ext4", 0, options) == 0,
		      "mount: %s", strerror(errno));
	crash_prepare(&c, mnt);
}

static void end(const char *what)
{
	crash_report(&c, what);
	crash_kill(&c);
	crash_disconnect(&c);
	disk_unmount(mnt);
	if (disk.pid)
		disk_stop(&disk);
	daemon_clean(&c.d);
}

/* Work in turns with looks, and with a restart in the middle.  It goes on until
 * something was refused, if that is to be. */
static void work(int turns)
{
	for (int i = 0; i < turns || (c.may[0] && !c.refused); i++) {
		crash_work(&c, 150000);
		crash_pause(&c);
		if (i != turns / 2)
			continue;
		crash_work(&c, 50000);
		crash_kill(&c);
		crash_disconnect(&c);
		crash_start(&c);
		crash_check(&c);
	}
}

TEST(a_full_tmpfs_says_NOSPC_and_has_what_it_acknowledged)
{
	on_tmpfs("size=1500k");
	c.may[0] = NFS3ERR_NOSPC;
	crash_start(&c);
	work(4);
	ck_assert(daemon_alive(&c.d));
	end("a full tmpfs");
}

TEST(a_tmpfs_without_inodes_says_NOSPC)
{
	on_tmpfs("size=32m,nr_inodes=60");
	c.may[0] = NFS3ERR_NOSPC;
	crash_start(&c);
	work(4);
	end("no inodes");
}

TEST(a_full_ext4_says_NOSPC_and_has_what_it_acknowledged)
{
	on_ext4("mke2fs -q -F -t ext4 -b 1024 -m 0 -O ^has_journal $1 1000",
		NULL);
	c.may[0] = NFS3ERR_NOSPC;
	crash_start(&c);
	work(4);
	end("a full ext4");
}

static bool quota(const char *commands)
{
	char text[300];

	snprintf(text, sizeof(text), "set -- %s; %s", mnt, commands);
	return system(text) == 0;
}

/* Of btrfs, since not every kernel knows quotas of users. */
TEST(a_full_quota_says_DQUOT)
{
	prepare();
	disk_start(&disk, c.d.dir, "mkfs.btrfs -q -f -K $1");
	if (mount(disk.device, mnt, "btrfs", 0, NULL) < 0 ||
	    !quota("btrfs quota enable $1 && "
		   "btrfs qgroup limit 1500K 0/5 $1")) {
		printf("# no quota here\n");
		disk_unmount(mnt);
		disk_stop(&disk);
		daemon_clean(&c.d);
		return;
	}
	crash_prepare(&c, mnt);
	c.state_apart = true;
	c.may[0] = NFS3ERR_DQUOT;
	crash_start(&c);
	work(4);
	/* Lifting the limit would take a block of metadata, for which the quota
	 * perhaps has no room. */
	ck_assert(quota("btrfs quota disable $1"));
	c.may[0] = 0;
	work(1);
	end("over quota");
}

static void remount(unsigned long flags)
{
	int err = 0;

	/* As long as gannetd has a file open for writing, it can't be. */
	(void)AWAIT((err = mount(NULL, mnt, NULL, MS_REMOUNT | flags,
				 NULL) < 0 ? errno : 0) != EBUSY);
	ck_assert_msg(err == 0, "remount: %s", strerror(err));
}

TEST(a_read_only_mount_says_ROFS_and_is_readable)
{
	unsigned long acks;

	on_tmpfs("size=64m");
	c.state_apart = true;
	crash_start(&c);
	crash_work(&c, 200000);
	crash_pause(&c);
	remount(MS_RDONLY);
	c.may[0] = NFS3ERR_ROFS;
	acks = c.acks;
	do {
		crash_work(&c, 300000);
		crash_pause(&c);
	} while (!c.refused);
	/* Only operations that change nothing. */
	ck_assert_uint_lt(c.acks - acks, CRASH_SLOTS);
	remount(0);
	c.may[0] = 0;
	work(1);
	end("read-only for a while");
}

static void limit(enum __rlimit_resource what, unsigned long value)
{
	struct rlimit l;

	ck_assert_int_eq(prlimit(c.d.pid, what, NULL, &l), 0);
	l.rlim_cur = value < l.rlim_max ? value : l.rlim_max;
	ck_assert_int_eq(prlimit(c.d.pid, what, &l, NULL), 0);
}

static unsigned long count_files(void)
{
	char command[80], text[16];
	FILE *f;

	snprintf(command, sizeof(command), "ls /proc/%d/fd | wc -l", c.d.pid);
	f = popen(command, "r");
	ck_assert_ptr_nonnull(fgets(text, sizeof(text), f));
	pclose(f);
	return strtoul(text, NULL, 10);
}

TEST(without_descriptors_calls_come_again_and_none_is_lost)
{
	unsigned long files;

	on_tmpfs("size=64m");
	crash_start(&c);
	crash_pause(&c);
	files = count_files();
	/* More than all workers use, but far less than all the calls. */
	for (unsigned long more = 40; more > 0; more -= 8) {
		limit(RLIMIT_NOFILE, files + more);
		crash_work(&c, 100000);
		crash_pause(&c);
	}
	ck_assert(daemon_alive(&c.d));
	limit(RLIMIT_NOFILE, 10000);
	crash_work(&c, 100000);
	crash_pause(&c);
	end("few descriptors");
}

static unsigned long address_space(void)
{
	char path[64];
	unsigned long pages = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/statm", c.d.pid);
	f = fopen(path, "r");
	ck_assert(f && fscanf(f, "%lu", &pages) == 1);
	fclose(f);
	return pages * (unsigned long)sysconf(_SC_PAGESIZE);
}

TEST(without_memory_calls_fail_and_the_server_goes_on)
{
	on_tmpfs("size=64m");
	crash_start(&c);
	crash_pause(&c);
	if (address_space() > 1ul << 40) {
		printf("# a sanitizer needs its address space\n");
		end("much memory");
		return;
	}
	limit(RLIMIT_AS, address_space());
	for (int i = 0; i < 5; i++) {
		crash_work(&c, 100000);
		crash_settle(&c, 3000000);
		ck_assert(daemon_alive(&c.d));
	}
	limit(RLIMIT_AS, RLIM_INFINITY);
	crash_work(&c, 100000);
	crash_pause(&c);
	end("little memory");
}

TEST(a_tree_unmounted_underneath_is_served_until_the_restart)
{
	on_tmpfs("size=64m");
	crash_start(&c);
	crash_work(&c, 100000);
	crash_pause(&c);
	ck_assert_int_eq(umount2(mnt, MNT_DETACH), 0);
	crash_work(&c, 200000);
	crash_pause(&c);
	crash_report(&c, "unmounted underneath");
	crash_kill(&c);
	crash_disconnect(&c);
	daemon_clean(&c.d);
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
