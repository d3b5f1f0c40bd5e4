/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cell - the work of each cell of the table: whatever depends on the size of a
 * READ, a WRITE or a message.  Locks are not part of it: NLM never goes over
 * RDMA.
 */
#include "tests/lab/matrix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/lab/fscheck/fscheck.h"

/* ---- data */

enum { SIZES = 5 };

/* Around the ends of a transfer. */
static size_t size_of(unsigned transfer, unsigned i)
{
	const size_t sizes[SIZES] = { 1, transfer - 1, transfer, transfer + 1,
				      2 * (size_t)transfer + 3 };

	return sizes[i];
}

static const char *file_name(unsigned i)
{
	static char name[16];

	snprintf(name, sizeof(name), "file%u", i);
	return name;
}

static bool writes_files(const struct cell *c)
{
	for (unsigned i = 0; i < SIZES; i++) {
		size_t size = size_of(c->wsize, i);

		MUST(put_file(c->mnt, file_name(i), size, i));
		MUST(has_file(c->back, file_name(i), size, i));
	}
	return true;
}

static bool reads_files(const struct cell *c)
{
	for (unsigned i = 0; i < SIZES; i++)
		MUST(has_file(c->mnt, file_name(i), size_of(c->wsize, i), i));
	return true;
}

/* Past the page cache: at an odd offset, into odd memory, over the end. */
static bool reads_directly(const struct cell *c)
{
	size_t size = size_of(c->wsize, SIZES - 1), len = c->rsize + 2;
	unsigned char *buf = malloc(len + 1);
	int fd = openat(c->mnt, file_name(SIZES - 1), O_RDONLY | O_DIRECT);
	off_t end = (off_t)size - 5;
	bool held;

	held = fd >= 0 && pread(fd, buf + 1, len, 7) == (ssize_t)len &&
	       is_pattern(buf + 1, len, 7, SIZES - 1) &&
	       pread(fd, buf + 1, len, end) == 5 &&
	       is_pattern(buf + 1, 5, end, SIZES - 1);
	free(buf);
	if (fd >= 0)
		close(fd);
	return held;
}

/* ---- names */

enum { LINK = 4000 };

const char *cell_list_name(unsigned i)
{
	static char name[256];

	snprintf(name, sizeof(name), "%0*u",
		 (int)(4 + i * 251 / (CELL_LIST - 1)), i);
	return name;
}

bool cell_make_list(int top, const char *name)
{
	int dir;

	if (mkdirat(top, name, 0755) < 0)
		return errno == EEXIST;
	dir = openat(top, name, O_RDONLY | O_DIRECTORY);
	MUST(dir >= 0);
	for (unsigned i = 0; i < CELL_LIST; i++)
		MUST(symlinkat("x", dir, cell_list_name(i)) == 0);
	return close(dir) == 0;
}

/* Names of all lengths, once each. */
static bool lists(const struct cell *c)
{
	bool seen[CELL_LIST] = { false };
	int fd = openat(c->mnt, "../list", O_RDONLY | O_DIRECTORY);
	DIR *dir = fdopendir(fd);
	unsigned n = 0, i;
	struct dirent *e;

	MUST(dir);
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		i = (unsigned)strtoul(e->d_name, NULL, 10);
		MUST(i < CELL_LIST && !seen[i]);
		MUST(strcmp(e->d_name, cell_list_name(i)) == 0);
		seen[i] = true;
		n++;
	}
	closedir(dir);
	MUST(n == CELL_LIST);
	return true;
}

static const char *long_name(char letter)
{
	static char name[256];

	memset(name, letter, sizeof(name) - 1);
	return name;
}

static const char *long_target(void)
{
	static char target[LINK + 1];

	for (unsigned i = 0; i < LINK; i++)
		target[i] = i % 64 == 0 ? '/' : (char)('a' + i % 26);
	return target;
}

static bool makes_names(const struct cell *c)
{
	char old[256];
	struct stat st;

	strcpy(old, long_name('o'));
	MUST(put_file(c->mnt, old, 7, 0));
	MUST(renameat(c->mnt, old, c->mnt, long_name('n')) == 0);
	MUST(fstatat(c->back, long_name('n'), &st, 0) == 0 && st.st_size == 7);
	MUST(symlinkat(long_target(), c->mnt, "link") == 0);
	return true;
}

static bool finds_names(const struct cell *c)
{
	char target[LINK + 2];
	struct stat st;

	MUST(fstatat(c->mnt, long_name('n'), &st, 0) == 0 && st.st_size == 7);
	MUST(readlinkat(c->mnt, "link", target, sizeof(target)) == LINK);
	MUST(memcmp(target, long_target(), LINK) == 0);
	return true;
}

/* ---- access control lists: those calls have no DDP-eligible item */

enum { ACL_USERS = 300, ACL_ENTRIES = ACL_USERS + 4 };

struct acl {
	uint32_t version;
	struct {
		uint16_t tag, perm;
		uint32_t id;
	} entry[ACL_ENTRIES];
};

/* As Linux has it in the attribute: system.posix_acl_access. */
static void fill_acl(struct acl *acl)
{
	enum { USER_OBJ = 1, USER = 2, GROUP_OBJ = 4, MASK = 16, OTHER = 32 };
	unsigned n = 0;

	memset(acl, 0xff, sizeof(*acl));
	acl->version = 2;
	acl->entry[n].tag = USER_OBJ;
	acl->entry[n++].perm = 6;
	for (unsigned i = 0; i < ACL_USERS; i++) {
		acl->entry[n].tag = USER;
		acl->entry[n].id = 10001 + i;
		acl->entry[n++].perm = i % 8;
	}
	acl->entry[n].tag = GROUP_OBJ;
	acl->entry[n++].perm = 4;
	acl->entry[n].tag = MASK;
	acl->entry[n++].perm = 7;
	acl->entry[n].tag = OTHER;
	acl->entry[n++].perm = 0;
}

static const char attribute[] = "system.posix_acl_access";

static bool sets_list(const struct cell *c)
{
	int fd = openat(c->mnt, file_name(0), O_RDONLY);
	struct acl acl;

	fill_acl(&acl);
	MUST(fsetxattr(fd, attribute, &acl, sizeof(acl), 0) == 0);
	return close(fd) == 0;
}

static bool finds_list(const struct cell *c)
{
	int fd = openat(c->mnt, file_name(0), O_RDONLY);
	struct acl acl, got;

	fill_acl(&acl);
	MUST(fgetxattr(fd, attribute, &got, sizeof(got)) == sizeof(got));
	MUST(memcmp(&acl, &got, sizeof(got)) == 0);
	return close(fd) == 0;
}

const struct cell_step cell_steps[] = {
	{ "writes", false, writes_files },
	{ "makes names", false, makes_names },
	{ "sets an ACL", false, sets_list },
	{ "reads", true, reads_files },
	{ "reads directly", true, reads_directly },
	{ "lists", true, lists },
	{ "finds names", true, finds_names },
	{ "finds the ACL", true, finds_list },
	{ 0 }
};
