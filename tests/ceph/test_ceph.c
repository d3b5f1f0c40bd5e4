/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests of every backend, for the module ceph.so, in the cluster that
 * CEPH_CONF names: tests/ceph/run.  Each test has a separate directory, which a
 * child process made before: a process that has used the library can't fork.
 */
#include <cephfs/libcephfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/runner.h"
#include "tests/unit/vfs_suite.h"

#define DIRS	200

static unsigned *next_dir;		/* shared with the tests' processes */
static uint64_t nmounts;
static pid_t main_pid;

static int make_dirs(void)
{
	struct ceph_mount_info *cm;
	char path[32];
	int err = ceph_create(&cm, "admin");

	if (err == 0)
		err = ceph_conf_read_file(cm, NULL);
	if (err == 0)
		err = ceph_mount(cm, "/");
	for (int i = 0; err == 0 && i < DIRS; i++) {
		snprintf(path, sizeof(path), "/%d-%d", (int)main_pid, i);
		err = ceph_mkdir(cm, path, 0777);
	}
	return err ? err : ceph_unmount(cm);
}

static bool prepare(void)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(make_dirs() != 0);
	return waitpid(child, &status, 0) == child && status == 0;
}

/* The block of options, as the exports file's text makes it. */
static void *options(const struct vfs_ops *ops)
{
	static _Alignas(max_align_t) char block[4096];

	ck_assert_uint_le(ops->options_size, sizeof(block));
	for (unsigned i = 0; i < ops->noptions; i++)
		if (strcmp(ops->options[i].name, "mounts") == 0)
			memcpy(block + ops->options[i].offset, &nmounts,
			       sizeof(nmounts));
	return block;
}

static void ceph_setup(struct vfs_config *config)
{
	static char path[32];

	snprintf(path, sizeof(path), "/%d-%u", (int)main_pid, (*next_dir)++);
	config->path = path;
	config->options = options(config->ops);
}

static void ceph_teardown(void)
{
}

int main(int argc, char **argv)
{
	static struct vfs_suite_params params = {
		.setup = ceph_setup,
		.teardown = ceph_teardown,
		.me = { .uid = 1000, .gid = 1000 },
		.as_anyone = true,
		.used_is_size = true,
	};
	Suite *s = suite_create("ceph");
	struct backends *b;
	char *why = NULL;

	main_pid = getpid();
	umask(0);			/* as gannetd's */
	nmounts = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
	next_dir = mmap(NULL, sizeof(*next_dir), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (next_dir == MAP_FAILED || !prepare())
		return EXIT_FAILURE;
	if (backends_create(&b) < 0 ||
	    backends_load(b, "modules/ceph", "ceph", &why) < 0) {
		puts(why ? why : "no memory");
		return EXIT_FAILURE;
	}
	params.ops = backends_find(b, "ceph", 4);
	vfs_suite_add(s, &params);
	return run_suite(s);
}
