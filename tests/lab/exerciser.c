/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exerciser FILE SEED OPERATIONS [SECONDS]: random reads, writes, truncates,
 * mappings and reopens of one file, each checked against a copy in memory.
 * With SECONDS it goes on until they are over.  In the end the file and the
 * copy agree; prints the size.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define MAX_SIZE (768 * 1024)
#define MAX_OP (200 * 1024)

static unsigned char model[MAX_SIZE], buf[MAX_SIZE];
static size_t size;
static int fd = -1;
static const char *path;
static unsigned long step;
static const char *doing;

static void __attribute__((noreturn, format(printf, 1, 2)))
fail(const char *format, ...)
{
	va_list args;
	int err = errno;

	va_start(args, format);
	printf("# step %lu, %s: ", step, doing);
	vprintf(format, args);
	printf(" (errno %d, %s)\n", err, strerror(err));
	va_end(args);
	exit(1);
}

static size_t below(size_t limit)
{
	return limit ? (size_t)random() % limit : 0;
}

static void compare(const unsigned char *got, size_t at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (got[i] != model[at + i])
			fail("byte %zu is %#x instead of %#x", at + i, got[i],
			     model[at + i]);
}

static void reopen(void)
{
	int flags = O_RDWR | O_CREAT;

	if (fd >= 0 && close(fd) < 0)
		fail("close");
	if (step % 3 == 0)
		flags |= O_DIRECT;
	fd = open(path, flags, 0644);
	if (fd < 0)
		fail("open");
}

static void check_read(size_t at, size_t len)
{
	size_t want = at >= size ? 0 : len < size - at ? len : size - at;

	if (pread(fd, buf, len, (off_t)at) != (ssize_t)want)
		fail("read of %zu at %zu", len, at);
	compare(buf, at, want);
}

static void set_size(size_t now)
{
	if (now > size)
		memset(model + size, 0, now - size);
	size = now;
}

static void do_write(size_t at, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (unsigned char)random();
	if (pwrite(fd, buf, len, (off_t)at) != (ssize_t)len)
		fail("write of %zu at %zu", len, at);
	if (at + len > size)
		set_size(at + len);
	memcpy(model + at, buf, len);
}

static void do_truncate(size_t now)
{
	if (ftruncate(fd, (off_t)now) < 0)
		fail("truncate to %zu", now);
	set_size(now);
}

static void do_map(size_t at, size_t len)
{
	unsigned char *p;

	if (at >= size)
		return;
	if (len > size - at)
		len = size - at;
	p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		fail("mmap of %zu", size);
	compare(p + at, at, len);
	for (size_t i = 0; i < len; i += 1 + below(64))
		p[at + i] = model[at + i] = (unsigned char)random();
	if (msync(p, size, MS_SYNC) < 0 || munmap(p, size) < 0)
		fail("msync");
}

static void one_step(void)
{
	size_t len = 1 + below(MAX_OP), at = below(MAX_SIZE - len);

	switch (random() % 10) {
	case 0:
		doing = "truncate";
		do_truncate(below(MAX_SIZE));
		break;
	case 1:
		doing = "map";
		do_map(at, len);
		break;
	case 2:
		doing = "reopen";
		reopen();
		break;
	case 3:
		doing = "fsync";
		if (fsync(fd) < 0)
			fail("fsync");
		break;
	case 4:
	case 5:
	case 6:
		doing = "write";
		do_write(at, len);
		break;
	default:
		doing = "read";
		check_read(at, len);
	}
}

int main(int argc, char **argv)
{
	unsigned long steps;
	time_t end = 0;

	if (argc < 4) {
		fprintf(stderr, "exerciser FILE SEED OPERATIONS [SECONDS]\n");
		return 2;
	}
	path = argv[1];
	srandom((unsigned)atoi(argv[2]));
	steps = strtoul(argv[3], NULL, 10);
	if (argc > 4)
		end = time(NULL) + atoi(argv[4]);
	doing = "start";
	reopen();
	while (step < steps || time(NULL) < end) {
		step++;
		one_step();
	}
	doing = "end";
	if (fsync(fd) < 0)
		fail("fsync");
	reopen();
	check_read(0, MAX_SIZE);
	if (close(fd) < 0)
		fail("close");
	printf("# %lu steps, %zu bytes\n", step, size);
	return 0;
}
