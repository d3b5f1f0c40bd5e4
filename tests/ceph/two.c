/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * two - changes files by one server and looks at them by another, with libnfs.
 * Its arguments are the ports of two servers of one file system.  It prints
 * each difference, and then ends with 1.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <nfsc/libnfs.h>

#define ROUNDS	50

static int status;

static void holds(int good, const char *what, int round)
{
	if (good)
		return;
	printf("not ok - %s (round %d)\n", what, round);
	status = 1;
}

static struct nfs_context *mount_at(const char *port)
{
	struct nfs_context *nfs = nfs_init_context();
	struct nfs_url *url;
	char text[100];

	snprintf(text, sizeof(text),
		 "nfs://127.0.0.1/?nfsport=%s&mountport=%s", port, port);
	url = nfs ? nfs_parse_url_dir(nfs, text) : NULL;
	if (!url || nfs_mount(nfs, url->server, url->path) < 0) {
		printf("not ok - a mount at port %s: %s\n", port,
		       nfs ? nfs_get_error(nfs) : "no memory");
		exit(1);
	}
	nfs_destroy_url(url);
	return nfs;
}

/* Writes @text at @off, and syncs it where asked. */
static int put_text(struct nfs_context *nfs, const char *path, int flags,
		    uint64_t off, const char *text)
{
	size_t len = strlen(text);
	struct nfsfh *fh;
	int err = nfs_open2(nfs, path, flags, 0644, &fh);

	if (err < 0)
		return err;
	err = nfs_pwrite(nfs, fh, off, len, text) == (int)len ? 0 : -EIO;
	if (err == 0)
		err = nfs_fsync(nfs, fh);
	nfs_close(nfs, fh);
	return err;
}

static int text_is(struct nfs_context *nfs, const char *path, const char *text)
{
	char buf[256] = "";
	struct nfsfh *fh;
	int n;

	if (nfs_open(nfs, path, O_RDONLY, &fh) < 0)
		return 0;
	n = nfs_pread(nfs, fh, 0, sizeof(buf) - 1, buf);
	nfs_close(nfs, fh);
	return n == (int)strlen(text) && strcmp(buf, text) == 0;
}

static int exists(struct nfs_context *nfs, const char *path)
{
	struct nfs_stat_64 st;

	return nfs_lstat64(nfs, path, &st) == 0;
}

static void try_names(struct nfs_context *a, struct nfs_context *b, int i)
{
	char one[64], two[64], dir[64];

	snprintf(dir, sizeof(dir), "/dir%d", i);
	snprintf(one, sizeof(one), "/one%d", i);
	snprintf(two, sizeof(two), "/dir%d/two", i);
	holds(put_text(a, one, O_CREAT | O_RDWR, 0, "hello") == 0,
	      "a file is made", i);
	holds(text_is(b, one, "hello"), "the other server has it", i);
	holds(nfs_mkdir(b, dir) == 0, "the other makes a directory", i);
	holds(nfs_rename(a, one, two) == 0, "the first moves it there", i);
	holds(!exists(b, one), "the old name is gone at the other", i);
	holds(text_is(b, two, "hello"), "the new name is there", i);
	holds(put_text(b, two, O_RDWR, 5, " back") == 0,
	      "the other writes to it", i);
	holds(text_is(a, two, "hello back"), "the first sees that", i);
	holds(nfs_truncate(a, two, 4) == 0, "the first cuts it", i);
	holds(text_is(b, two, "hell"), "the other sees the end", i);
	holds(nfs_unlink(b, two) == 0, "the other removes it", i);
	holds(!exists(a, two), "it is gone at the first", i);
	holds(nfs_rmdir(a, dir) == 0, "its directory can be removed", i);
	holds(!exists(b, dir), "and is gone at the other", i);
}

static int fh_text_is(struct nfs_context *nfs, struct nfsfh *fh,
		      const char *text)
{
	char buf[256] = "";
	int n = nfs_pread(nfs, fh, 0, sizeof(buf) - 1, buf);

	return n == (int)strlen(text) && strcmp(buf, text) == 0;
}

/* A handle of one server leads to the file, whatever the other calls it. */
static void try_handles(struct nfs_context *a, struct nfs_context *b, int i)
{
	char one[64], two[64], dir[64];
	struct nfsfh *fh;
	char byte;

	snprintf(dir, sizeof(dir), "/held%d", i);
	snprintf(one, sizeof(one), "/was%d", i);
	snprintf(two, sizeof(two), "/held%d/is", i);
	holds(put_text(a, one, O_CREAT | O_RDWR, 0, "hello") == 0 &&
	      put_text(a, "/over", O_CREAT | O_RDWR, 0, "over") == 0 &&
	      nfs_mkdir(a, dir) == 0, "files are made", i);
	if (nfs_open(b, one, O_RDWR, &fh) < 0) {
		holds(0, "the other opens one", i);
		return;
	}
	holds(nfs_rename(a, one, two) == 0, "the first moves it", i);
	holds(fh_text_is(b, fh, "hello"), "its old handle reads", i);
	holds(put_text(a, two, O_RDWR, 5, " again") == 0,
	      "the first writes by the new name", i);
	holds(fh_text_is(b, fh, "hello again"), "the old handle has it", i);
	holds(nfs_pwrite(b, fh, 0, 1, "H") == 1 && nfs_fsync(b, fh) == 0,
	      "the old handle writes", i);
	holds(text_is(a, two, "Hello again"), "the new name has it", i);
	holds(nfs_rename(a, "/over", two) == 0, "another takes its name", i);
	holds(nfs_pread(b, fh, 0, 1, &byte) < 0, "the handle is stale", i);
	holds(text_is(b, two, "over"), "the name leads to the other", i);
	nfs_close(b, fh);
	holds(nfs_unlink(b, two) == 0 && nfs_rmdir(a, dir) == 0,
	      "both can be removed", i);
}

int main(int argc, char **argv)
{
	struct nfs_context *a, *b;

	if (argc != 3)
		return 2;
	a = mount_at(argv[1]);
	b = mount_at(argv[2]);
	for (int i = 0; i < ROUNDS && status == 0; i++) {
		try_names(i % 2 ? b : a, i % 2 ? a : b, i);
		try_handles(i % 2 ? b : a, i % 2 ? a : b, i);
	}
	nfs_destroy_context(a);
	nfs_destroy_context(b);
	return status;
}
