/* SPDX-License-Identifier: BSD-2-Clause */
/* fuse_rights - the kernel's protocol (linux/fuse.h), one request at a time. */
#include "tests/server/fuse_rights.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/util.h"

#define DATA	"data"
#define TARGET	"all"

/* By inode number less one. */
static const struct {
	const char *name;
	mode_t mode;
	uid_t uid;
	gid_t gid;
} nodes[] = {
	{ "", S_IFDIR | 0755, 0, 0 },
	{ "own", S_IFREG | 0600, FUSE_RIGHTS_USER, 0 },
	{ "group", S_IFREG | 0640, 0, FUSE_RIGHTS_GROUP },
	{ "all", S_IFREG | 0666, 0, 0 },
	{ "dir", S_IFDIR | 0777, FUSE_RIGHTS_USER, 0 },
	{ "link", S_IFLNK | 0777, 0, 0 },
	{ "closed", S_IFREG | 0600, FUSE_RIGHTS_OTHER, 0 },
};

static int dev = -1;

static void reply(const struct fuse_in_header *in, int err, const void *data,
		  size_t len)
{
	struct fuse_out_header out = { .unique = in->unique, .error = err };
	struct iovec iov[2] = {
		{ &out, sizeof(out) }, { (void *)(uintptr_t)data, len },
	};

	out.len = (uint32_t)(sizeof(out) + len);
	if (writev(dev, iov, len ? 2 : 1) < 0 && errno != ENOENT)
		_exit(0);
}

static void fill_attr(uint64_t ino, struct fuse_attr *a)
{
	memset(a, 0, sizeof(*a));
	a->ino = ino;
	a->mode = nodes[ino - 1].mode;
	a->uid = nodes[ino - 1].uid;
	a->gid = nodes[ino - 1].gid;
	a->nlink = S_ISDIR(a->mode) ? 2 : 1;
	a->size = sizeof(DATA) - 1;
	a->mtime = a->ctime = 1700000000;
	a->blksize = 4096;
}

static void look_up(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out e = { 0 };

	for (uint64_t i = 2; in->nodeid == 1 && i <= ARRAY_SIZE(nodes); i++)
		if (strcmp(nodes[i - 1].name, name) == 0)
			e.nodeid = i;
	if (!e.nodeid) {
		reply(in, -ENOENT, NULL, 0);
		return;
	}
	fill_attr(e.nodeid, &e.attr);
	reply(in, 0, &e, sizeof(e));
}

static void get_attr(const struct fuse_in_header *in)
{
	struct fuse_attr_out a = { 0 };

	fill_attr(in->nodeid, &a.attr);
	reply(in, 0, &a, sizeof(a));
}

static void open_node(const struct fuse_in_header *in)
{
	struct fuse_open_out o = { .open_flags = FOPEN_DIRECT_IO };

	/* Of the root anyone reads the names. */
	if (in->nodeid == 1 || in->uid == 0 || in->uid == FUSE_RIGHTS_USER)
		reply(in, 0, &o, sizeof(o));
	else
		reply(in, -EACCES, NULL, 0);
}

static void read_dir(const struct fuse_in_header *in,
		     const struct fuse_read_in *r)
{
	_Alignas(8) char buf[1024] = { 0 };
	size_t len = 0;

	for (uint64_t i = r->offset + 2;
	     in->nodeid == 1 && i <= ARRAY_SIZE(nodes); i++) {
		struct fuse_dirent *d = (void *)(buf + len);

		d->ino = i;
		d->off = i - 1;
		d->type = nodes[i - 1].mode >> 12;
		d->namelen = (uint32_t)strlen(nodes[i - 1].name);
		memcpy(d->name, nodes[i - 1].name, d->namelen);
		len += FUSE_DIRENT_SIZE(d);
	}
	reply(in, 0, buf, len);
}

static void init(const struct fuse_in_header *in,
		 const struct fuse_init_in *i)
{
	struct fuse_init_out o = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = i->max_readahead, .max_write = 4096,
	};

	reply(in, 0, &o, sizeof(o));
}

static void answer(const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_read_in *r = arg;
	const struct fuse_write_in *w = arg;
	struct fuse_write_out written = { 0 };
	struct fuse_statfs_out st = { .st = { .namelen = 255 } };

	switch (in->opcode) {
	case FUSE_INIT:
		init(in, arg);
		break;
	case FUSE_LOOKUP:
		look_up(in, arg);
		break;
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		get_attr(in);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		open_node(in);
		break;
	case FUSE_READ:
		reply(in, 0, DATA, r->offset ? 0 :
		      MIN((size_t)r->size, sizeof(DATA) - 1));
		break;
	case FUSE_WRITE:
		written.size = w->size;
		reply(in, 0, &written, sizeof(written));
		break;
	case FUSE_READDIR:
		read_dir(in, r);
		break;
	case FUSE_READLINK:
		if (in->uid == 0 || in->uid == FUSE_RIGHTS_USER)
			reply(in, 0, TARGET, strlen(TARGET));
		else
			reply(in, -EACCES, NULL, 0);
		break;
	case FUSE_STATFS:
		reply(in, 0, &st, sizeof(st));
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
	case FUSE_FSYNC:
	case FUSE_FSYNCDIR:
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break;
	default:
		reply(in, -ENOSYS, NULL, 0);
	}
}

static _Noreturn void serve(void)
{
	static _Alignas(8) char buf[1 << 17];
	ssize_t n;

	for (;;) {
		n = read(dev, buf, sizeof(buf));
		if (n < 0 && (errno == EINTR || errno == ENOENT))
			continue;
		if (n < (ssize_t)sizeof(struct fuse_in_header))
			_exit(0);	/* it was unmounted */
		answer((const void *)buf,
		       buf + sizeof(struct fuse_in_header));
	}
}

int fuse_rights_mount(const char *path, const char *options)
{
	char text[256];
	int err = 0;

	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		return -errno;
	snprintf(text, sizeof(text),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0%s%s", dev,
		 *options ? "," : "", options);
	if (mount("test", path, "fuse", MS_NOSUID | MS_NODEV, text) < 0)
		err = -errno;
	else if (fork() == 0)
		serve();
	close(dev);
	return err;
}
