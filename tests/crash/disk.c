/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * disk - a FUSE file system of one file, and a loop device over it.
 *
 * Operation: a child serves the file from memory, one request at a time, and
 * takes orders of one letter between two requests.  It has two images: the
 * written data, which reads return, and the data that survives every power cut.
 */
#include "tests/crash/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/loop.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/pause.h"

#define DISK_BYTES	((size_t)512 << 20)
#define SECTOR		512u
#define WRITE_MAX	(128u << 10)
#define REQUEST_MAX	(WRITE_MAX + 65536)

struct unflushed {
	uint64_t offset;
	uint32_t len;
	uint8_t	 *data;
};

static struct {
	int	 fuse, command, answer;
	bool	 halted, failing;
	uint8_t	 *now;			/* all written data */
	uint8_t	 *safe;			/* the flushed data */
	struct unflushed *list;
	size_t	 n, room;
	uint64_t random;
	uint32_t sector;		/* that is written whole or not */
	uint64_t lost, kept;
} s;

/* ---- the child: requests */

static uint32_t next_random(void)
{
	s.random ^= s.random << 13;
	s.random ^= s.random >> 7;
	s.random ^= s.random << 17;
	return (uint32_t)(s.random >> 20);
}

static void reply(uint64_t unique, int err, const void *data, size_t len)
{
	struct fuse_out_header h = {
		.len = (uint32_t)(sizeof(h) + (err ? 0 : len)),
		.error = -err, .unique = unique,
	};
	struct iovec iov[2] = { { &h, sizeof(h) },
				{ (void *)(uintptr_t)data, len } };

	/* ENOENT: the caller has been told to forget it. */
	if (writev(s.fuse, iov, err || !len ? 1 : 2) < 0 && errno != ENOENT)
		_exit(3);
}

static void remember(uint64_t offset, const void *data, uint32_t len)
{
	struct unflushed *u;

	if (s.n == s.room) {
		s.room = s.room ? 2 * s.room : 1024;
		s.list = realloc(s.list, s.room * sizeof(*s.list));
		if (!s.list)
			_exit(3);
	}
	u = &s.list[s.n++];
	*u = (struct unflushed){ offset, len, malloc(len) };
	if (!u->data)
		_exit(3);
	memcpy(u->data, data, len);
	memcpy(s.now + offset, data, len);
}

static void forget_all(void)
{
	for (size_t i = 0; i < s.n; i++)
		free(s.list[i].data);
	s.n = 0;
}

/* A disk takes its time for it, and requests meanwhile wait. */
static void flush(void)
{
	if (next_random() % 4 == 0)	/* as a slow one */
		pause_on_purpose(next_random() % 3000);
	for (size_t i = 0; i < s.n; i++)
		memcpy(s.safe + s.list[i].offset, s.list[i].data,
		       s.list[i].len);
	forget_all();
}

static void do_init(uint64_t unique, const struct fuse_init_in *in)
{
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = in->max_readahead,
		.flags = in->flags & (FUSE_BIG_WRITES | FUSE_ASYNC_READ |
				      FUSE_MAX_PAGES),
		.max_write = WRITE_MAX, .max_pages = WRITE_MAX / 4096,
		.max_background = 64, .congestion_threshold = 64,
		.time_gran = 1,
	};

	reply(unique, 0, &out, sizeof(out));
}

static void do_getattr(uint64_t unique)
{
	struct fuse_attr_out out = { .attr_valid = 1000000,
		.attr = { .ino = 1, .size = DISK_BYTES, .nlink = 1,
			  .mode = S_IFREG | 0600, .blksize = 4096 } };

	reply(unique, 0, &out, sizeof(out));
}

static void do_read(uint64_t unique, const struct fuse_read_in *in)
{
	size_t len = in->size;

	if (in->offset >= DISK_BYTES)
		len = 0;
	else if (len > DISK_BYTES - in->offset)
		len = DISK_BYTES - in->offset;
	reply(unique, 0, s.now + in->offset, len);
}

static void do_write(uint64_t unique, const struct fuse_write_in *in)
{
	struct fuse_write_out out = { .size = in->size };

	if (in->offset > DISK_BYTES || in->size > DISK_BYTES - in->offset) {
		reply(unique, EFBIG, NULL, 0);
		return;
	}
	remember(in->offset, in + 1, in->size);
	reply(unique, 0, &out, sizeof(out));
}

static void serve_request(void)
{
	static uint8_t buf[REQUEST_MAX] __attribute__((aligned(8)));
	const struct fuse_in_header *h = (const void *)buf;
	struct fuse_open_out open = { .fh = 1,
				      .open_flags = FOPEN_DIRECT_IO };
	ssize_t n = read(s.fuse, buf, sizeof(buf));

	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOENT))
		return;
	if (n < (ssize_t)sizeof(*h))
		_exit(0);		/* unmounted */
	if (s.failing && (h->opcode == FUSE_READ || h->opcode == FUSE_WRITE ||
			  h->opcode == FUSE_FSYNC)) {
		reply(h->unique, EIO, NULL, 0);
		return;
	}
	switch (h->opcode) {
	case FUSE_INIT: do_init(h->unique, (const void *)(h + 1)); break;
	case FUSE_GETATTR: do_getattr(h->unique); break;
	case FUSE_OPEN: reply(h->unique, 0, &open, sizeof(open)); break;
	case FUSE_READ: do_read(h->unique, (const void *)(h + 1)); break;
	case FUSE_WRITE: do_write(h->unique, (const void *)(h + 1)); break;
	case FUSE_FSYNC: flush(); reply(h->unique, 0, NULL, 0); break;
	case FUSE_FLUSH: case FUSE_RELEASE: case FUSE_ACCESS:
		reply(h->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET: case FUSE_BATCH_FORGET: case FUSE_INTERRUPT: break;
	default: reply(h->unique, ENOSYS, NULL, 0);
	}
}

/* ---- the child: orders */

/* Of some cuts nothing is kept, of some nearly all, and of some single
 * sectors of a write. */
static void keep_some(void)
{
	uint32_t share = next_random() % 5 * 25, torn = next_random() % 3;

	for (size_t i = 0; i < s.n; i++) {
		struct unflushed *u = &s.list[i];
		bool keep = next_random() % 100 < share;

		for (uint32_t at = 0; at < u->len; at += s.sector) {
			uint32_t len = u->len - at < s.sector ? u->len - at :
				       s.sector;

			if (torn == 0)
				keep = next_random() % 100 < share;
			if (keep)
				memcpy(s.safe + u->offset + at, u->data + at,
				       len);
			*(keep ? &s.kept : &s.lost) += 1;
		}
	}
	for (size_t i = 0; i < s.n; i++)
		memcpy(s.now + s.list[i].offset, s.safe + s.list[i].offset,
		       s.list[i].len);
	forget_all();
}

static void take_order(void)
{
	uint64_t counts[2];
	char order;

	if (read(s.command, &order, 1) != 1)
		_exit(0);
	switch (order) {
	case 'c': s.halted = true; break;
	case 'f': s.failing = true; s.halted = false; break;
	case 'g': s.failing = s.halted = false; break;
	case 'p':
		if (read(s.command, &s.random, 8) != 8 ||
		    read(s.command, &s.sector, 4) != 4)
			_exit(0);
		s.random |= 1;
		keep_some();
		s.failing = s.halted = false;
		break;
	}
	counts[0] = s.lost;
	counts[1] = s.kept;
	if (write(s.answer, counts, sizeof(counts)) != sizeof(counts))
		_exit(0);
}

static void serve(void)
{
	struct pollfd p[2] = { { .fd = s.command, .events = POLLIN },
			       { .events = POLLIN } };

	for (;;) {
		p[1].fd = s.halted ? -1 : s.fuse;
		if (poll(p, 2, -1) < 0)
			continue;
		if (p[0].revents)
			take_order();
		else if (p[1].revents)
			serve_request();
	}
}

/* Not by Check: the lab also uses the disk. */
static void must(bool done, const char *what)
{
	if (done)
		return;
	fprintf(stderr, "disk: %s: %s\n", what, strerror(errno));
	abort();
}

static uint8_t *image(void)
{
	void *p = mmap(NULL, DISK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		       MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	must(p != MAP_FAILED, "memory for the disk");
	return p;
}

/* ---- the test's side */

static void answered(struct disk *d)
{
	uint64_t counts[2];

	must(read(d->answer, counts, sizeof(counts)) == sizeof(counts),
	     "the disk's answer");
	d->lost = counts[0];
	d->kept = counts[1];
}

static void order(struct disk *d, char what)
{
	must(write(d->command, &what, 1) == 1, "an order");
	answered(d);
}

void disk_cut(struct disk *d)
{
	order(d, 'c');
}

void disk_hang(struct disk *d)
{
	order(d, 'c');
}

void disk_fail(struct disk *d)
{
	order(d, 'f');
}

void disk_go(struct disk *d)
{
	order(d, 'g');
}

void disk_power(struct disk *d, uint64_t seed, uint32_t sector)
{
	must(write(d->command, "p", 1) == 1 &&
	     write(d->command, &seed, 8) == 8 &&
	     write(d->command, &sector, 4) == 4, "an order");
	answered(d);
}

/* The mounts that the process began with.  The child goes back to them: as
 * the last one in the new namespace it would, at its end, unmount the file
 * system on the disk that it serves. */
static int outside = -1;

static bool own_mounts(void)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

const char *disk_missing(void)
{
	static const char *const devices[] = { "/dev/fuse",
					       "/dev/loop-control" };

	if (geteuid() != 0)
		return "needs root";
	for (int i = 0; i < 2; i++) {
		int fd = open(devices[i], O_RDWR | O_CLOEXEC);

		if (fd < 0)
			return i ? "needs loop devices" : "needs /dev/fuse";
		close(fd);
	}
	outside = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (outside < 0 || !own_mounts())
		return "needs a mount namespace";
	return NULL;
}

void disk_own_mounts(void)
{
	must(own_mounts(), "a mount namespace");
}

/* Of the file: some look at all loop devices before they touch one. */
static void format(const char *file, const char *mkfs)
{
	char command[256];

	snprintf(command, sizeof(command), "set -- '%s'; %s >/dev/null", file,
		 mkfs);
	must(system(command) == 0, mkfs);
}

void disk_start(struct disk *d, const char *dir, const char *mkfs)
{
	char file[80], options[80];
	int command[2], answer[2], fuse, fd;

	memset(d, 0, sizeof(*d));
	must(own_mounts(), "a mount namespace");
	snprintf(d->dir, sizeof(d->dir), "%s", dir);
	snprintf(file, sizeof(file), "%s/disk", dir);
	fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	must(fd >= 0, file);
	close(fd);
	fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);
	must(fuse >= 0, "/dev/fuse");
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=100600,user_id=0,group_id=0", fuse);
	must(mount("disk", file, "fuse", MS_NODEV | MS_NOSUID, options) == 0,
	     "mount fuse");
	must(pipe2(command, O_CLOEXEC) == 0 && pipe2(answer, O_CLOEXEC) == 0,
	     "pipe");
	d->pid = fork();
	must(d->pid >= 0, "fork");
	if (d->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		s.fuse = fuse;
		s.random = (uint64_t)getpid() << 32 | 1;
		s.command = command[0];
		s.answer = answer[1];
		close(command[1]);
		/* A sanitizer's thread would share the working directory. */
		if (unshare(CLONE_FS) < 0 || setns(outside, CLONE_NEWNS) < 0)
			_exit(3);
		s.now = image();
		s.safe = image();
		serve();
	}
	close(fuse);
	close(command[0]);
	close(answer[1]);
	d->command = command[1];
	d->answer = answer[0];
	format(file, mkfs);
	disk_attach(d);
}

static bool attach_to(struct disk *d, int control, int backing)
{
	struct loop_config config = { .fd = (uint32_t)backing,
		.block_size = SECTOR,
		.info.lo_flags = LO_FLAGS_AUTOCLEAR };
	int number = ioctl(control, LOOP_CTL_GET_FREE);

	must(number >= 0, "a loop device");
	snprintf(d->device, sizeof(d->device), "/dev/loop%d", number);
	d->loop = open(d->device, O_RDWR | O_CLOEXEC);
	if (d->loop < 0)
		return false;
	if (ioctl(d->loop, LOOP_CONFIGURE, &config) == 0)
		return true;
	close(d->loop);			/* another process was faster */
	return false;
}

void disk_attach(struct disk *d)
{
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), backing;
	char file[80];

	snprintf(file, sizeof(file), "%s/disk", d->dir);
	backing = open(file, O_RDWR | O_CLOEXEC);
	must(control >= 0, "/dev/loop-control");
	must(backing >= 0, file);
	must(AWAIT(attach_to(d, control, backing)), "a loop device");
	close(backing);
	close(control);
}

/* The device lets go of the file when it is closed for the last time. */
void disk_detach(struct disk *d)
{
	close(d->loop);
	d->loop = -1;
}

void disk_stop(struct disk *d)
{
	char file[80];

	disk_detach(d);
	snprintf(file, sizeof(file), "%s/disk", d->dir);
	umount2(file, MNT_DETACH);
	close(d->command);
	close(d->answer);
	waitpid(d->pid, NULL, 0);
	unlink(file);
}

void disk_mount(struct disk *d, const char *type, const char *where)
{
	must(mount(d->device, where, type, MS_NODEV, NULL) == 0, type);
}

void disk_unmount(const char *where)
{
	int err = 0;

	/* A killed process closes its files last. */
	(void)AWAIT((err = umount(where) < 0 ? errno : 0) != EBUSY);
	must(err == 0, where);
}
