/* SPDX-License-Identifier: BSD-2-Clause */
/* Data: sizes, offsets, and the ways to read and write it. */
#include "tests/lab/fscheck/fscheck.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define KIB 1024
#define MIB (1024 * 1024)
#define GIB (1024L * MIB)

/* Sizes at and around a page, a chunk and a transfer. */
static const struct {
	size_t len;
	off_t offset;
} odd[] = {
	{ 1, 0 }, { 1, 4095 }, { 2, 4095 }, { 3, 1 }, { 4, 7 }, { 5, 8191 },
	{ 513, 511 }, { 3000, 0 }, { 3900, 0 }, { 4095, 1 }, { 4096, 4096 },
	{ 4097, 4095 }, { 32767, 3 }, { 32769, 1 }, { 65535, 65537 },
	{ 65536, 65536 }, { 131071, 5 }, { MIB - 1, 0 }, { MIB, 0 },
	{ MIB + 1, 0 }, { MIB, 1 }, { 2 * MIB + 3, 4093 },
};

#define ODD (sizeof(odd) / sizeof(odd[0]))

static bool odd_sizes_and_offsets_are_written(void)
{
	char *buf = malloc(3 * MIB);
	char name[16];
	struct stat st;

	for (size_t i = 0; i < ODD; i++) {
		int fd, fb;

		snprintf(name, sizeof(name), "f%zu", i);
		fd = openat(mnt, name, O_WRONLY | O_CREAT, 0644);
		pattern(buf, odd[i].len, odd[i].offset, 3);
		MUST(fd >= 0 && pwrite(fd, buf, odd[i].len, odd[i].offset) ==
		     (ssize_t)odd[i].len);
		MUST(fsync(fd) == 0 && close(fd) == 0);
		memset(buf, 0xee, 3 * MIB);
		fb = openat(back, name, O_RDONLY);
		MUST(fstat(fb, &st) == 0);
		MUST(st.st_size == odd[i].offset + (off_t)odd[i].len);
		MUST(pread(fb, buf, odd[i].len, odd[i].offset) ==
		     (ssize_t)odd[i].len);
		MUST(is_pattern(buf, odd[i].len, odd[i].offset, 3));
		MUST(pread(fb, buf, odd[i].offset, 0) == odd[i].offset);
		MUST(is_zero(buf, odd[i].offset));
		close(fb);
	}
	free(buf);
	return true;
}

/* O_DIRECT makes the READ on the wire as odd as the read. */
static bool odd_sizes_and_offsets_are_read(void)
{
	char *buf = malloc(3 * MIB);
	int fd;

	MUST(put_file(back, "f", 3 * MIB, 4));
	fd = openat(mnt, "f", O_RDONLY | O_DIRECT);
	MUST(fd >= 0);
	for (size_t i = 0; i < ODD; i++) {
		memset(buf, 0xee, odd[i].len + 1);
		MUST(pread(fd, buf, odd[i].len, odd[i].offset) ==
		     (ssize_t)odd[i].len);
		MUST(is_pattern(buf, odd[i].len, odd[i].offset, 4));
		MUST((unsigned char)buf[odd[i].len] == 0xee);
	}
	close(fd);
	free(buf);
	return true;
}

static bool reads_stop_at_the_end_of_file(void)
{
	char buf[8192];
	int fd;

	MUST(put_file(back, "f", 5001, 5));
	fd = openat(mnt, "f", O_RDONLY | O_DIRECT);
	MUST(fd >= 0);
	MUST(pread(fd, buf, sizeof(buf), 0) == 5001);
	MUST(is_pattern(buf, 5001, 0, 5));
	MUST(pread(fd, buf, sizeof(buf), 4999) == 2);
	MUST(pread(fd, buf, sizeof(buf), 5001) == 0);
	MUST(pread(fd, buf, sizeof(buf), 5 * GIB) == 0);
	close(fd);
	MUST(put_file(mnt, "empty", 0, 0) && has_file(mnt, "empty", 0, 0));
	return true;
}

static bool direct_writes_are_on_the_server_at_once(void)
{
	static const size_t sizes[] = { 4096, 65536, MIB, 2 * MIB, 1000, 1 };
	char *buf = malloc(2 * MIB);
	off_t at = 0;
	int fd, fb;

	fd = openat(mnt, "f", O_RDWR | O_CREAT | O_DIRECT, 0644);
	MUST(fd >= 0);
	fb = openat(back, "f", O_RDONLY);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		pattern(buf, sizes[i], at, 6);
		MUST(pwrite(fd, buf, sizes[i], at) == (ssize_t)sizes[i]);
		memset(buf, 0, sizes[i]);
		MUST(pread(fb, buf, sizes[i], at) == (ssize_t)sizes[i]);
		MUST(is_pattern(buf, sizes[i], at, 6));
		at += (off_t)sizes[i];
	}
	close(fd);
	close(fb);
	free(buf);
	return true;
}

static bool synchronous_writes_are_on_the_server_at_once(void)
{
	char buf[5000], got[5000];
	int fd, fb;

	fd = openat(mnt, "f", O_WRONLY | O_CREAT | O_SYNC, 0644);
	MUST(fd >= 0);
	fb = openat(back, "f", O_RDONLY);
	for (int i = 0; i < 10; i++) {
		pattern(buf, sizeof(buf), i, 7);
		MUST(write(fd, buf, sizeof(buf)) == sizeof(buf));
		MUST(read(fb, got, sizeof(got)) == sizeof(got));
		MUST(memcmp(buf, got, sizeof(buf)) == 0);
	}
	close(fd);
	close(fb);
	return true;
}

static bool holes_read_as_zeros(void)
{
	char *buf = malloc(4 * MIB);
	struct stat st;
	int fd;

	fd = openat(mnt, "f", O_RDWR | O_CREAT, 0644);
	MUST(fd >= 0);
	MUST(pwrite(fd, "a", 1, 0) == 1 && pwrite(fd, "b", 1, MIB) == 1);
	MUST(pwrite(fd, "c", 1, 4 * MIB - 1) == 1);
	MUST(fsync(fd) == 0);
	close(fd);
	MUST(fstatat(back, "f", &st, 0) == 0 && st.st_blocks * 512 < MIB);
	MUST(renameat(back, "f", back, "g") == 0);
	fd = openat(mnt, "g", O_RDONLY | O_DIRECT);
	MUST(fd >= 0 && pread(fd, buf, 4 * MIB, 0) == 4 * MIB);
	close(fd);
	MUST(buf[0] == 'a' && buf[MIB] == 'b' && buf[4 * MIB - 1] == 'c');
	MUST(is_zero(buf + 1, MIB - 1));
	MUST(is_zero(buf + MIB + 1, 3 * MIB - 2));
	free(buf);
	return true;
}

static bool offsets_past_four_gib_are_kept(void)
{
	off_t at = 5 * GIB + 3;
	char buf[10000];
	struct stat st;
	int fd, fb;

	fd = openat(mnt, "f", O_RDWR | O_CREAT, 0644);
	pattern(buf, sizeof(buf), at, 8);
	MUST(fd >= 0 && pwrite(fd, buf, sizeof(buf), at) == sizeof(buf));
	MUST(fsync(fd) == 0 && both_stat("f", &st));
	MUST(st.st_size == at + (off_t)sizeof(buf));
	fb = openat(back, "f", O_RDWR);
	memset(buf, 0, sizeof(buf));
	MUST(pread(fb, buf, sizeof(buf), at) == sizeof(buf));
	MUST(is_pattern(buf, sizeof(buf), at, 8));
	MUST(pread(fb, buf, sizeof(buf), at - 4 * GIB) == sizeof(buf));
	MUST(is_zero(buf, sizeof(buf)));
	MUST(pwrite(fb, "end", 3, 6 * GIB) == 3);
	close(fd);
	fd = openat(mnt, "f", O_RDONLY | O_DIRECT);
	MUST(pread(fd, buf, sizeof(buf), 6 * GIB) == 3);
	MUST(memcmp(buf, "end", 3) == 0);
	MUST(pread(fd, buf, sizeof(buf), at) == sizeof(buf));
	MUST(is_pattern(buf, sizeof(buf), at, 8));
	return true;
}

static bool shared_mappings_are_written_back(void)
{
	const size_t len = 300 * KIB + 17;
	struct stat st;
	char *p;
	int fd;

	fd = openat(mnt, "f", O_RDWR | O_CREAT, 0644);
	MUST(fd >= 0 && ftruncate(fd, (off_t)len) == 0);
	p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(p != MAP_FAILED && is_zero(p, len));
	pattern(p, len, 0, 9);
	MUST(msync(p, len, MS_SYNC) == 0);
	MUST(has_file(back, "f", len, 9) && both_stat("f", &st));
	munmap(p, len);
	close(fd);
	return true;
}

static bool mappings_show_the_servers_data(void)
{
	const size_t len = 2 * MIB + 17;
	char *p;
	int fd;

	MUST(put_file(back, "f", len, 10));
	fd = openat(mnt, "f", O_RDONLY);
	MUST(fd >= 0);
	p = mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);
	MUST(p != MAP_FAILED);
	MUST(is_pattern(p, len, 0, 10));
	MUST(is_zero(p + len, 4096 - 17));
	munmap(p, len);
	close(fd);
	return true;
}

/* The client removes an unlinked file when its work queue has let go of the
 * last request for it, perhaps shortly after close(). */
static bool is_removed_soon(const char *path)
{
	for (int i = 0; i < 1000; i++) {
		if (unlinkat(AT_FDCWD, path, AT_REMOVEDIR) == 0)
			return true;
		if (errno != ENOTEMPTY)
			return false;
		usleep(10000);
	}
	return false;
}

static bool an_unlinked_open_file_lives_until_it_is_closed(void)
{
	char buf[4096];
	struct stat st;
	int fd;

	MUST(put_file(mnt, "f", 4096, 11));
	fd = openat(mnt, "f", O_RDWR);
	MUST(fd >= 0 && unlinkat(mnt, "f", 0) == 0);
	MUST_FAIL(fstatat(mnt, "f", &st, 0), ENOENT);
	MUST(pread(fd, buf, sizeof(buf), 0) == sizeof(buf));
	MUST(is_pattern(buf, sizeof(buf), 0, 11));
	MUST(pwrite(fd, buf, sizeof(buf), 8192) == sizeof(buf));
	MUST(fsync(fd) == 0 && fstat(fd, &st) == 0);
	MUST(st.st_size == 12288);
	MUST(close(fd) == 0);
	MUST(is_removed_soon(mnt_path));
	return true;
}

#define CHECK(f) { #f, f, 0 }
const struct fscheck io_checks[] = {
	CHECK(odd_sizes_and_offsets_are_written),
	CHECK(odd_sizes_and_offsets_are_read),
	CHECK(reads_stop_at_the_end_of_file),
	CHECK(direct_writes_are_on_the_server_at_once),
	CHECK(synchronous_writes_are_on_the_server_at_once),
	CHECK(holes_read_as_zeros),
	CHECK(offsets_past_four_gib_are_kept),
	CHECK(shared_mappings_are_written_back),
	CHECK(mappings_show_the_servers_data),
	CHECK(an_unlinked_open_file_lives_until_it_is_closed),
	{ .name = NULL },
};
