/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * bench_vfs - the cost of the posix backend above its system calls.
 *
 *	bench_vfs [DIR [COUNT [THREADS]]]
 *
 * ns of wall time for each operation on one warm file, as posix does it and
 * as the bare system calls that it comes down to; with THREADS, also posix
 * from that many threads on the same file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <urcu.h>

#include "lib/log.h"
#include "lib/thread.h"
#include "tests/unit/vfs_do.h"
#include "vfs/posix/posix.h"

struct bench {
	struct vfs_fs *fs;
	struct vfs_node *root;
	struct vfs_handle h;		/* of the file */
	struct vfs_cred cred;
	int dir_fd, fd;
	long count;
};

static struct bench b;
static char data[4096];

static void check(long long rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(rc < -1 ? -rc : errno));
	exit(1);
}

static const struct vfs_name bench_file = { "bench-file", 10 };

static struct vfs_node *open_file(const struct vfs_op *who)
{
	struct vfs_node *n;

	check(GET(out, n, b.fs->ops->open_handle, who, NULL,
		  .open = { .fs = b.fs, .handle = &b.h }), "open_handle");
	return n;
}

/* Each of these is one operation as a server does it: from the handle. */
static void do_open(const struct vfs_op *who)
{
	vfs_node_put(open_file(who));
}

static void do_getattr(const struct vfs_op *who)
{
	struct vfs_node *n = open_file(who);
	struct vfs_attr attr;

	check(DO(b.fs->ops->getattr, who, n, .attr = &attr), "getattr");
	vfs_node_put(n);
}

static void do_access(const struct vfs_op *who)
{
	struct vfs_node *n = open_file(who);
	struct vfs_attr attr;

	check(DO(b.fs->ops->access, who, n, .access.want = 0x2d, .attr = &attr),
	      "access");
	vfs_node_put(n);
}

static void do_lookup(const struct vfs_op *who)
{
	struct vfs_attr attr, dir_attr;
	struct vfs_node *n;

	check(GET(out, n, b.fs->ops->lookup, who, b.root, .name = bench_file,
		  .attr = &attr, .lookup.dir_attr = &dir_attr), "lookup");
	vfs_node_put(n);
}

static void do_read(const struct vfs_op *who)
{
	struct iovec iov = { data, sizeof(data) };
	struct vfs_node *n = open_file(who);
	struct vfs_attr attr;

	check(DO(b.fs->ops->read, who, n, .read = { .iov = &iov, .niov = 1 },
		 .attr = &attr), "read");
	vfs_node_put(n);
}

static void do_write(const struct vfs_op *who)
{
	struct iovec iov = { data, sizeof(data) };
	struct vfs_node *n = open_file(who);
	struct vfs_wcc wcc;

	check(DO(b.fs->ops->write, who, n, .write = { .iov = &iov, .niov = 1 },
		 .wcc = &wcc), "write");
	vfs_node_put(n);
}

static void do_create_remove(const struct vfs_op *who)
{
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED,
				  .attr = { .set = VFS_SET_MODE,
					    .mode = 0644 } };
	char name[32];
	struct vfs_name s = { name, (uint32_t)snprintf(name, sizeof(name),
						       "new-%d", gettid()) };
	struct vfs_attr attr;
	struct vfs_node *n;
	struct vfs_wcc wcc;

	check(GET(out, n, b.fs->ops->create, who, b.root, .name = s,
		  .create = &how, .attr = &attr, .wcc = &wcc), "create");
	vfs_node_put(n);
	check(DO(b.fs->ops->remove, who, b.root, .name = s, .wcc = &wcc),
	      "remove");
}

static bool take(void *arg, const struct vfs_dirent *d)
{
	(*(long *)arg)++;
	return true;
}

static void do_readdirplus(const struct vfs_op *who)
{
	long entries = 0;

	check(DO(b.fs->ops->readdir, who, b.root,
		 .readdir = { .plus = true, .emit = take, .arg = &entries }),
	      "readdir");
}

static void raw_stat(const struct vfs_op *who)
{
	struct stat st;

	check(fstat(b.fd, &st), "fstat");
}

static void raw_lookup(const struct vfs_op *who)
{
	struct stat st;
	int fd = openat(b.dir_fd, "bench-file", O_PATH | O_NOFOLLOW);

	check(fd, "openat");
	check(fstat(fd, &st), "fstat");
	check(close(fd), "close");
	check(fstat(b.dir_fd, &st), "fstat");
}

static void raw_read(const struct vfs_op *who)
{
	struct stat st;

	check(pread(b.fd, data, sizeof(data), 0), "pread");
	check(fstat(b.fd, &st), "fstat");
}

static void raw_write(const struct vfs_op *who)
{
	struct stat st;

	check(fstat(b.fd, &st), "fstat");
	check(pwrite(b.fd, data, sizeof(data), 0), "pwrite");
	check(fstat(b.fd, &st), "fstat");
}

static void raw_create_remove(const struct vfs_op *who)
{
	int fd = openat(b.dir_fd, "raw", O_RDWR | O_CREAT | O_EXCL, 0644);

	check(fd, "openat");
	check(unlinkat(b.dir_fd, "raw", 0), "unlinkat");
	check(close(fd), "close");
}

static const struct {
	const char *name;
	void (*run)(const struct vfs_op *who);
	void (*raw)(const struct vfs_op *who);
	int part;			/* of the count */
} ops[] = {
	{ "open by handle", do_open, NULL, 1 },
	{ "GETATTR", do_getattr, raw_stat, 1 },
	{ "ACCESS", do_access, raw_stat, 1 },
	{ "LOOKUP", do_lookup, raw_lookup, 1 },
	{ "READ 4 KiB", do_read, raw_read, 1 },
	{ "WRITE 4 KiB", do_write, raw_write, 1 },
	{ "CREATE+REMOVE", do_create_remove, raw_create_remove, 20 },
	{ "READDIRPLUS", do_readdirplus, NULL, 100 },
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double measure(void (*run)(const struct vfs_op *), long count)
{
	const struct vfs_op who = { .cred = &b.cred };
	double start;

	for (long i = 0; i < count / 10 + 1; i++)
		run(&who);
	start = now();
	for (long i = 0; i < count; i++)
		run(&who);
	return (now() - start) / count;
}

struct job {
	pthread_t thread;
	int op;
	double ns;
};

static void job_run(void *arg)
{
	struct job *j = arg;

	j->ns = measure(ops[j->op].run, b.count / ops[j->op].part);
}

static double measure_threads(int op, int threads)
{
	struct job *jobs = calloc(threads, sizeof(*jobs));
	double sum = 0;

	for (int i = 0; i < threads; i++) {
		jobs[i].op = op;
		check(thread_start(&jobs[i].thread, "bench", job_run,
				   &jobs[i]), "thread_start");
	}
	for (int i = 0; i < threads; i++) {
		pthread_join(jobs[i].thread, NULL);
		sum += 1 / jobs[i].ns;
	}
	free(jobs);
	return 1 / sum;
}

static void setup(const char *dir)
{
	const struct posix_options options = { .async = true };
	const struct vfs_config config = { .path = dir,
					   .options = &options };
	const struct vfs_op who = { .cred = &b.cred };
	struct vfs_create how = { .how = VFS_CREATE_UNCHECKED,
				  .attr = { .set = VFS_SET_MODE,
					    .mode = 0644 } };
	struct vfs_node *n;

	rcu_register_thread();
	b.cred = (struct vfs_cred){ .uid = geteuid(), .gid = getegid() };
	check(b.fs ? 0 : posix_vfs_ops.mount(&config, &b.fs), dir);
	check(b.fs->ops->root(b.fs, &b.root), "root");
	check(GET(out, n, b.fs->ops->create, &who, b.root, .name = bench_file,
		  .create = &how), "create");
	b.fs->ops->handle(n, &b.h);
	vfs_node_put(n);
	b.dir_fd = open(dir, O_RDONLY | O_DIRECTORY);
	b.fd = openat(b.dir_fd, "bench-file", O_RDWR);
	check(b.fd, "bench-file");
	check(pwrite(b.fd, data, sizeof(data), 0), "pwrite");
	usleep(100000);			/* until access is remembered */
}

int main(int argc, char **argv)
{
	char made[] = "/dev/shm/bench-XXXXXX";
	const char *dir = argc > 1 ? argv[1] : mkdtemp(made);
	int threads = argc > 3 ? atoi(argv[3]) : 0;

	b.count = argc > 2 ? atol(argv[2]) : 200000;
	log_threshold = LOG_LEVEL_WARN;
	setup(dir);
	printf("%-16s%10s%10s%10s", "ns", "posix", "syscalls", "above");
	printf(threads ? "   of %d threads\n" : "\n", threads);
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		long count = b.count / ops[i].part;
		double own = measure(ops[i].run, count);
		double raw = ops[i].raw ? measure(ops[i].raw, count) : 0;

		printf("%-16s%10.0f%10.0f%10.0f", ops[i].name, own, raw,
		       raw ? own - raw : 0);
		if (threads)
			printf("%10.0f", measure_threads(i, threads));
		printf("\n");
		if (i < 6)		/* let writes settle */
			usleep(60000);
	}
	unlinkat(b.dir_fd, "bench-file", 0);
	vfs_node_put(b.root);
	b.fs->ops->unmount(b.fs);
	if (argc <= 1)
		rmdir(dir);
	return 0;
}
