/* SPDX-License-Identifier: BSD-2-Clause */
/* The share of the machine: limits of cgroups, as they stand in files. */
#include "lib/machine.h"

#include <errno.h>
#include <ftw.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/unit/runner.h"

#define MIB	(UINT64_C(1) << 20)

static char root[] = "/tmp/machine-XXXXXX";

static void setup(void)
{
	ck_assert_ptr_nonnull(mkdtemp(root));
}

static int drop(const char *path, const struct stat *st, int type,
		struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void teardown(void)
{
	nftw(root, drop, 16, FTW_DEPTH | FTW_PHYS);
}

TEST_CASE(.setup = setup, .teardown = teardown);

/* A file at @name below the root, with its directories. */
static void has(const char *name, const char *text)
{
	char path[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s%s", root, name);
	for (char *p = path + sizeof(root); (p = strchr(p, '/')); *p++ = '/') {
		*p = '\0';
		ck_assert(mkdir(path, 0755) == 0 || errno == EEXIST);
	}
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

/* Of a machine with 64 GiB and 32 processors. */
static struct machine limited(void)
{
	struct machine m = { 65536 * MIB, 32, MACHINE_NO_LIMIT };

	machine_limit(root, &m);
	return m;
}

static void is(uint64_t memory, uint64_t processors, uint64_t tasks)
{
	struct machine m = limited();

	ck_assert_uint_eq(m.memory, memory);
	ck_assert_uint_eq(m.processors, processors);
	ck_assert_uint_eq(m.tasks, tasks);
}

#define V2	"31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:9 - " \
		"cgroup2 cgroup2 rw,nsdelegate\n"

TEST(without_proc_there_are_no_limits)
{
	is(65536 * MIB, 32, MACHINE_NO_LIMIT);
}

TEST(a_cgroup_without_files_sets_no_limit)
{
	has("/proc/self/cgroup", "0::/a.slice/b.service\n");
	is(65536 * MIB, 32, MACHINE_NO_LIMIT);
	has("/proc/self/mountinfo", V2);
	is(65536 * MIB, 32, MACHINE_NO_LIMIT);
}

TEST(the_least_limit_on_the_way_up_holds)
{
	has("/proc/self/cgroup", "0::/a.slice/b.service\n");
	has("/proc/self/mountinfo",
	    "23 1 8:1 / / rw - ext4 /dev/sda1 rw\n" V2);
	has("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
	has("/sys/fs/cgroup/a.slice/b.service/cpu.max", "max 100000\n");
	has("/sys/fs/cgroup/a.slice/b.service/pids.max", "2048\n");
	is(65536 * MIB, 32, 2048);
	has("/sys/fs/cgroup/a.slice/memory.max", "268435456\n");
	has("/sys/fs/cgroup/a.slice/cpu.max", "350000 100000\n");
	has("/sys/fs/cgroup/a.slice/pids.max", "4096\n");
	is(256 * MIB, 4, 2048);
	has("/sys/fs/cgroup/a.slice/b.service/memory.max", "134217728\n");
	has("/sys/fs/cgroup/a.slice/b.service/cpu.max", "50000 100000\n");
	is(128 * MIB, 1, 2048);
	has("/sys/fs/cgroup/a.slice/memory.high", "67108864\n");
	is(64 * MIB, 1, 2048);
}

/* Another cgroup's limits are not ours, whatever its name begins with. */
TEST(the_limits_of_neighbours_do_not_hold)
{
	has("/proc/self/cgroup", "0::/a\n");
	has("/proc/self/mountinfo", V2);
	has("/sys/fs/cgroup/ab/memory.max", "1\n");
	has("/sys/fs/cgroup/a/c/memory.max", "1\n");
	has("/sys/fs/cgroup/a/memory.max", "268435456\n");
	is(256 * MIB, 32, MACHINE_NO_LIMIT);
}

/* A name space of cgroups shows the container's own as the root. */
TEST(the_root_that_a_container_sees_is_its_cgroup)
{
	has("/proc/self/cgroup", "0::/\n");
	has("/proc/self/mountinfo", V2);
	has("/sys/fs/cgroup/memory.max", "268435456\n");
	has("/sys/fs/cgroup/cpu.max", "150000 100000\n");
	has("/sys/fs/cgroup/pids.max", "max\n");
	is(256 * MIB, 2, MACHINE_NO_LIMIT);
}

TEST(a_path_outside_of_what_is_mounted_is_its_root)
{
	has("/proc/self/cgroup", "0::/../../other\n");
	has("/proc/self/mountinfo", V2);
	has("/sys/fs/cgroup/memory.max", "268435456\n");
	is(256 * MIB, 32, MACHINE_NO_LIMIT);
}

/* The visible mount is another cgroup next to ours. */
TEST(a_path_beside_what_is_mounted_leaves_no_mount)
{
	has("/proc/self/cgroup", "0::/../../x\n");
	has("/proc/self/mountinfo",
	    "31 23 0:28 /.. /sys/fs/cgroup/y rw - cgroup2 cgroup2 rw\n");
	has("/sys/fs/cgroup/x/memory.max", "1\n");
	has("/sys/fs/cgroup/y/memory.max", "268435456\n");
	is(256 * MIB, 32, MACHINE_NO_LIMIT);
}

TEST(a_name_may_begin_with_two_dots)
{
	has("/proc/self/cgroup", "0::/..a\n");
	has("/proc/self/mountinfo", V2);
	has("/sys/fs/cgroup/..a/memory.max", "268435456\n");
	is(256 * MIB, 32, MACHINE_NO_LIMIT);
}

/* As after unshare(1) --cgroup: the mount begins two cgroups above the root of
 * the name space, which mountinfo does not name. */
TEST(a_name_space_below_the_mount_is_found_by_its_process)
{
	char pid[16];

	has("/proc/self/cgroup", "0::/c\n");
	has("/proc/self/mountinfo",
	    "31 23 0:28 /../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	snprintf(pid, sizeof(pid), "%d\n", getpid());
	has("/sys/fs/cgroup/a/x/c/memory.max", "1\n");
	has("/sys/fs/cgroup/a/x/c/cgroup.procs", "1\n");
	has("/sys/fs/cgroup/a/b/memory.max", "268435456\n");
	has("/sys/fs/cgroup/a/b/c/cgroup.procs", "1\n");
	is(65536 * MIB, 32, MACHINE_NO_LIMIT);
	has("/sys/fs/cgroup/a/b/c/cgroup.procs", pid);
	has("/sys/fs/cgroup/a/b/c/pids.max", "64\n");
	is(256 * MIB, 32, 64);
}

TEST(of_several_mounts_the_one_with_our_cgroup_counts)
{
	has("/proc/self/cgroup", "0::/a/b\n");
	has("/proc/self/mountinfo",
	    "31 23 0:28 /x /mnt/x rw - cgroup2 cgroup2 rw\n"
	    "32 23 0:28 /.. /mnt/up rw - cgroup2 cgroup2 rw\n"
	    "33 23 0:28 /a /mnt/a rw - cgroup2 cgroup2 rw\n");
	has("/mnt/x/memory.max", "1\n");
	has("/mnt/up/memory.max", "1\n");
	has("/mnt/a/b/memory.max", "268435456\n");
	is(256 * MIB, 32, MACHINE_NO_LIMIT);
}

/* mountinfo writes a space as \040 and a backslash as \134; the list of cgroups
 * writes them as they are. */
TEST(names_with_spaces_and_backslashes_are_found)
{
	has("/proc/self/cgroup", "0::/a b/c\\d/e\n");
	has("/proc/self/mountinfo",
	    "31 23 0:28 /a\\040b/c\\134d /sys/my\\040cgroup rw - "
	    "cgroup2 cgroup2 rw\n");
	has("/sys/my cgroup/e/pids.max", "64\n");
	has("/sys/my cgroup/memory.max", "268435456\n");
	is(256 * MIB, 32, 64);
}

/* A backslash without three octal digits is an ordinary byte. */
TEST(a_backslash_without_digits_stands_for_itself)
{
	has("/proc/self/cgroup", "0::/\n");
	has("/proc/self/mountinfo",
	    "31 23 0:28 / /sys/a\\09b\\4 rw - cgroup2 cgroup2 rw\n");
	has("/sys/a\\09b\\4/memory.max", "268435456\n");
	is(256 * MIB, 32, MACHINE_NO_LIMIT);
}

/* As docker mounts it, without a name space. */
TEST(version_one_has_a_hierarchy_for_each_controller)
{
	has("/proc/self/cgroup",
	    "9:name=systemd:/x\n4:memory:/docker/12ab\n"
	    "3:cpu,cpuacct:/docker/12ab\n2:pids:/docker/12ab\n0::/\n");
	has("/proc/self/mountinfo",
	    "32 31 0:29 /docker/12ab /sys/fs/cgroup/cpu ro - cgroup cgroup "
	    "rw,cpu,cpuacct\n"
	    "35 31 0:32 /docker/12ab /sys/fs/cgroup/memory ro - cgroup cgroup "
	    "rw,memory\n"
	    "39 31 0:36 / /sys/fs/cgroup/pids ro - cgroup cgroup rw,pids\n"
	    "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
	has("/sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n");
	has("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "250000\n");
	has("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
	has("/sys/fs/cgroup/pids/docker/12ab/pids.max", "64\n");
	is(256 * MIB, 3, 64);
	has("/sys/fs/cgroup/memory/memory.limit_in_bytes",
	    "9223372036854771712\n");
	has("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
	is(65536 * MIB, 32, 64);
}

/* "cpu" is no limit of "cpuset". */
TEST(controllers_are_whole_words)
{
	has("/proc/self/cgroup", "3:cpu:/a\n");
	has("/proc/self/mountinfo",
	    "32 31 0:29 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
	    "33 31 0:30 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n");
	has("/sys/fs/cgroup/cpuset/a/cpu.max", "100000 100000\n");
	has("/sys/fs/cgroup/cpu/a/cpu.max", "200000 100000\n");
	is(65536 * MIB, 2, MACHINE_NO_LIMIT);
}

TEST_LOOP(nonsense_sets_no_limit, 0, 6)
{
	static const char *const text[] = { "", "\n", "what\n", "-5\n", "0 0\n",
					    "100000 0\n" };

	has("/proc/self/cgroup", "\nx\n::\n0:\n0::/a\n");
	has("/proc/self/mountinfo", "\n1 2 3\n" V2);
	has("/sys/fs/cgroup/a/cpu.max", text[_i]);
	has("/sys/fs/cgroup/a/memory.limit_in_bytes", "nonsense\n");
	has("/sys/fs/cgroup/a/memory.max", "268435456\n");
	is(256 * MIB, 32, MACHINE_NO_LIMIT);
}

TEST(processors_that_the_process_is_not_bound_to_do_not_count)
{
	cpu_set_t old, one;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(old), &old), 0);
	CPU_ZERO(&one);
	for (size_t i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
		if (CPU_ISSET(i, &old))
			CPU_SET(i, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	ck_assert_uint_eq(machine_share()->processors, 1);
	ck_assert_uint_gt(machine_share()->memory, MIB);
}
