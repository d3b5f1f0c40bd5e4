/* SPDX-License-Identifier: BSD-2-Clause */
/* fs - mounts a directory, and finds out its file system's properties. */
#include "vfs/posix/cache.h"
#include "vfs/posix/covered.h"
#include "vfs/posix/handle.h"
#include "vfs/posix/kinds.h"
#include "vfs/posix/mounts.h"
#include "vfs/posix/node.h"
#include "vfs/posix/ops.h"
#include "vfs/posix/own.h"
#include "vfs/posix/table/places.h"
#include "vfs/quotas.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "lib/log.h"
#include "lib/rcu.h"

/* The largest file of ext4 with blocks of 4 KiB. */
#define EXT4_MAX_SIZE	0xffffffff000ull

/* Changes at every start, and is unique. */
static uint64_t new_verf(void)
{
	struct timespec now;
	uint64_t noise = 0;

	clock_gettime(CLOCK_REALTIME, &now);
	if (getrandom(&noise, sizeof(noise), GRND_NONBLOCK) < 0)
		noise = getpid();
	return ((uint64_t)now.tv_sec << 32 | now.tv_nsec) ^ noise;
}

/* Of the path, without slashes at its end: the same after every restart. */
static uint64_t path_id(const char *path)
{
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	return hash_bytes(path, len);
}

static bool has_openat2(int fd)
{
	struct open_how how = { .flags = POSIX_OPEN_NAME };

	fd = syscall(SYS_openat2, fd, ".", &how, sizeof(how));
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* A container's seccomp profile that is older than this system call makes it
 * fail with EPERM, as if every access were denied.  Don't ask a file system,
 * which can hang or itself answer EPERM (FUSE): without a filter this call
 * gives EBADF. */
static int learn_access(struct posix_fs *fs, const struct vfs_config *config)
{
	fs->no_faccessat2 = syscall(SYS_faccessat2, -1, "", F_OK,
				    AT_EACCESS | AT_EMPTY_PATH) < 0 &&
			    (errno == EPERM || errno == ENOSYS);
	if (!fs->no_faccessat2 || !fs->privileged)
		return 0;
	return vfs_fail(config, "this system refuses the call faccessat2, by "
			"which the server learns what its users may do: %s; "
			"the seccomp profile of a container may be too old",
			strerror(errno));
}

/* Refuses pseudo file systems, with -EINVAL. */
static int learn_kind(struct posix_fs *fs, const struct vfs_config *config,
		      const struct statfs *sf)
{
	struct posix_mounted m = { 0 };
	const char *name = posix_mounted_by_dev(fs->dev, &m) ? m.type : NULL;
	uint32_t magic = (uint32_t)sf->f_type;
	const struct posix_kind *kind = posix_kind_find(magic, name);
	enum posix_rights rights;

	rights = posix_kind_rights(magic, name, major(fs->dev) != 0,
				   posix_handle_can_be(fs->mount_fd));
	if (rights == POSIX_PSEUDO && kind)
		return vfs_fail(config, "%s is a pseudo file system, an "
				"interface of this machine's kernel",
				name ? name : kind->name);
	if (rights == POSIX_PSEUDO)
		return vfs_fail(config, "%s (type %x) is not known, and has "
				"neither a device nor handles: it may be a "
				"pseudo file system, and these are not served",
				name ? name : "this file system", magic);
	fs->as_caller = rights == POSIX_BY_OPEN && fs->privileged;
	fs->has_user = fs->as_caller && name && !m.others;
	fs->user = m.user;
	fs->group = m.group;
	fs->ram = kind && kind->ram;
	fs->remote = !kind || kind->remote;
	fs->ext4 = magic == EXT4_SUPER_MAGIC;
	fs->btrfs = magic == BTRFS_SUPER_MAGIC;
	fs->fat = kind && kind->fat;
	fs->limits.max_file_size = fs->ext4 ? EXT4_MAX_SIZE : INT64_MAX;
	return 0;
}

static long fs_limit(int fd, int which, long otherwise)
{
	long v = fpathconf(fd, which);

	return v > 0 ? v : otherwise;
}

static void learn_limits(struct posix_fs *fs, int fd, const struct statfs *sf)
{
	struct vfs_limits *l = &fs->limits;

	l->time_delta = fs->fat ? (struct timespec){ .tv_sec = 2 } :
		       (struct timespec){ .tv_nsec = 1 };
	l->name_max = MIN((uint32_t)sf->f_namelen, (uint32_t)VFS_NAME_MAX);
	l->link_max = fs_limit(fd, _PC_LINK_MAX, 32000);
	l->no_trunc = true;
	l->case_insensitive = fs->fat;
	l->case_preserving = true;
	l->symlinks = !fs->fat;
	l->hard_links = !fs->fat;
	l->homogeneous = true;
	l->can_set_time = true;
	l->chown_restricted = true;
}

static int fs_learn(struct posix_fs *fs, const struct vfs_config *config,
		    int fd)
{
	const struct posix_options *o = config->options;
	struct statfs sf;
	struct stat st;
	int err;

	err = posix_fstat(fd, &st);
	if (err < 0)
		return err;
	if (fstatfs(fd, &sf) < 0)
		return -errno;
	fs->dev = st.st_dev;
	fs->ino = st.st_ino;
	fs->uid = geteuid();
	fs->no_nlink = st.st_nlink == 0;
	fs->privileged = posix_cred_probe();
	err = learn_kind(fs, config, &sf);
	if (err == 0)
		err = learn_access(fs, config);
	if (err < 0)
		return err;
	fs->no_openat2 = !has_openat2(fd);
	fs->read_only = true;
	posix_flags_learn(fs);
	learn_limits(fs, fd, &sf);
	fs->sync_names = !fs->ram && !o->async;
	posix_handle_probe(fs, !o->table);
	return 0;
}

static int fs_learn_mount(struct posix_fs *fs, int fd, const char *path)
{
	struct posix_mounted m;
	struct statx sx;
	int err = posix_stat_mount(fd, "", &sx);

	if (err < 0)
		return err;
	fs->mount = posix_mount_id(&sx);
	if (posix_mounted_by_id(fs->mount, &m))
		fs->mount_dev = m.dev;
	fs->fs.mark = posix_mark(&sx);
	fs->fs.volume = posix_volume(fd, fs->ino, path);
	return 0;
}

/* All descriptors that stay open as long as their exports. */
static _Atomic long kept_fds;

/* For the root, and for a table of files. */
#define ROOT_FDS	1
#define TABLE_FDS	5

/* Counts @n more for @fs, if some are left for files of these exports. */
static int keep_fds(struct posix_fs *fs, const struct vfs_config *config,
		    long n)
{
	long before = atomic_fetch_add(&kept_fds, n);

	fds_count(FDS_FILES, n);
	if (fds_may(FDS_FILES, before)) {
		fs->kept_fds += n;
		return 0;
	}
	atomic_fetch_sub(&kept_fds, n);
	fds_count(FDS_FILES, -n);
	vfs_fail(config, "this process can open only %ld files, and other "
		 "exports take their share of these", fds_limit());
	return -ETIMEDOUT;
}

static void drop_fds(struct posix_fs *fs)
{
	atomic_fetch_sub(&kept_fds, fs->kept_fds);
	fds_count(FDS_FILES, (fs->root ? ROOT_FDS : 0) - fs->kept_fds);
}

/* The root is pinned for as long as the tree is mounted. */
static int fs_make_root(struct posix_fs *fs, int fd)
{
	struct vfs_handle h;
	struct stat st;
	int err;

	err = posix_fstat(fd, &st);
	if (err < 0) {
		close(fd);
		return err;
	}
	posix_handle_root(&h);
	err = posix_node_create(fs, fd, &st, &h, &fs->root);
	if (err == 0)
		fds_count(FDS_FILES, -ROOT_FDS);	/* its node counts it */
	return err;
}

/*
 * A user who mounts a FUSE file system chooses owners and set-id bits of its
 * files, which clients believe, and how long an open waits.  So only an entry
 * exports it.  Does not ask it.
 */
static int check_mounter(const struct vfs_config *config, int fd)
{
	struct posix_mounted m;
	struct statx sx;
	int err = posix_stat_mount(fd, "", &sx);
	uint64_t id;

	if (err < 0)
		return err;
	id = posix_mount_id(&sx);
	if (!(id ? posix_mounted_by_id(id, &m) :
		   posix_mounted_by_dev(makedev(sx.stx_dev_major,
						sx.stx_dev_minor), &m)))
		return !id ? 0 :		/* Linux before 5.8 */
		       posix_mounted_is_there(id) ? -ETIMEDOUT : -ESTALE;
	if (!m.has_user || m.user == 0 || m.user == geteuid())
		return 0;
	return vfs_fail(config, "user %u mounted it, and it is exported only "
			"by an entry for it", m.user);
}

static int open_root(struct posix_fs *fs, const struct vfs_config *config)
{
	struct open_how how = {
		.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
		.resolve = RESOLVE_NO_SYMLINKS,
	};
	int fd = config->no_links ?
		 (int)syscall(SYS_openat2, AT_FDCWD, config->path, &how,
			      sizeof(how)) :
		 open(config->path, (int)how.flags);
	int err = fd < 0 ? -errno : config->no_links ?
		  check_mounter(config, fd) : 0;
	int rd;

	if (err < 0 && fd >= 0)
		close(fd);
	if (err < 0)
		return err;
	/* open_by_handle_at() takes no O_PATH descriptor; a directory that the
	 * process can't read is served without it. */
	rd = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fs->mount_is_path = rd < 0;
	if (rd >= 0) {
		close(fd);
		fd = rd;
		atomic_store(&fs->whole_fd, fd);
	}
	fs->mount_fd = fd;
	return fd;
}

static void close_mount(struct posix_fs *fs)
{
	if (!fs->mount_is_path || fs->whole_fd < 0)
		return;
	close(fs->whole_fd);
	fds_count(FDS_FILES, -1);
}

static bool may_as_server(const struct posix_fs *fs, const char *path, int how)
{
	return fs->no_faccessat2 ? access(path, how) == 0 :
	       faccessat(AT_FDCWD, path, how, AT_EACCESS) == 0;
}

/* Warns if clients will be refused this directory.  Serves it anyway: they
 * might have access to a directory below it. */
static void warn_closed(const struct posix_fs *fs,
			const struct vfs_config *config)
{
	bool search = may_as_server(fs, config->path, X_OK);
	bool list = may_as_server(fs, config->path, R_OK);

	if (search && list)
		return;
	log_warn("%s%s'%s': user %u, as whom this server runs, may not %s "
		 "this directory, so clients will be refused; change its mode "
		 "or owner, or run the server as root",
		 config->where ? config->where : "", config->where ? ": " : "",
		 config->path, geteuid(), search ? "list" : "enter");
}

/* The error is about another directory than the exported one. */
static int open_table(struct posix_fs *fs, const struct vfs_config *config)
{
	const char *dir = config->state_dir;
	int err = keep_fds(fs, config, TABLE_FDS);

	if (err < 0)
		return err;
	err = posix_table_open(dir, fs->fs.fsid, &fs->table);
	if (err < 0)
		vfs_fail(config, "its table of files in %s: %s",
			 dir ? dir : "a temporary directory", strerror(-err));
	return err;
}

/* Keeps the server's own directories out of the tree whose root is @fd. */
static int fs_learn_own(struct posix_fs *fs, const struct vfs_config *config,
			int fd)
{
	const char *state = config->state_dir;
	char *around;
	int err = state ? posix_own_path_get(state, &fs->state) : 0;

	if (err < 0)
		return err;
	err = state ? posix_own_path_error(fs->state) : 0;
	if (err < 0 && err != -ENOENT)	/* nothing is there, for --check */
		return vfs_fail(config, "the state directory %s: %s", state,
				strerror(-err));
	around = posix_own_around(fd);
	if (!around)
		return 0;
	if (state && strcmp(around, state) == 0)
		err = vfs_fail(config, "it is in this server's state "
			       "directory, where the key of all filehandles "
			       "is");
	else
		err = vfs_fail(config, "it is in %s, which this server reads",
			       around);
	free(around);
	return err;
}

static struct posix_fs *fs_alloc(const char *path)
{
	struct posix_fs *fs = calloc(1, sizeof(*fs));

	if (!fs)
		return NULL;
	pthread_mutex_init(&fs->verfs.lock, NULL);
	pthread_mutex_init(&fs->opened_lock, NULL);
	atomic_init(&fs->whole_fd, -1);
	fs->fs.ops = &posix_vfs_ops;
	fs->covered.ops = &posix_covered_ops;
	fs->fs.fsid = path_id(path);
	atomic_init(&fs->fs.verf, new_verf());
	return fs;
}

static void fs_free(struct posix_fs *fs)
{
	drop_fds(fs);
	posix_own_path_put(fs->state);
	pthread_mutex_destroy(&fs->verfs.lock);
	pthread_mutex_destroy(&fs->opened_lock);
	free(fs);
}

static int posix_mount(const struct vfs_config *config, struct vfs_fs **out)
{
	struct posix_fs *fs = fs_alloc(config->path);
	int fd, err;

	if (!fs)
		return -ENOMEM;
	posix_cred_server(NULL);
	err = keep_fds(fs, config, ROOT_FDS);
	fd = err < 0 ? err : open_root(fs, config);
	if (fd < 0) {
		err = fd;
		goto fail;
	}
	err = fs_learn(fs, config, fd);
	if (err == 0)
		err = fs_learn_own(fs, config, fd);
	if (err == 0)
		err = fs_learn_mount(fs, fd, config->path);
	if (err == 0)
		err = posix_disk_get(fs->dev, &fs->disk);
	if (err < 0)
		goto fail_fd;
	if (!fs->by_handle)
		err = open_table(fs, config);
	if (err < 0)
		goto fail_disk;
	err = posix_dentries_create(&fs->dentries);
	if (err < 0)
		goto fail_table;
	err = posix_cache_init(&fs->cache, config->options);
	if (err < 0)
		goto fail_dentries;
	err = fs_make_root(fs, fd);
	if (err < 0)
		goto fail_cache;
	warn_closed(fs, config);
	umask(0);	/* modes are the clients' to choose */
	log_at(config->where ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG,
	       "%s: %s, %s", config->path,
	       fs->by_handle ? "system file handles" : "table of files",
	       fs->as_caller ? "opening files as their callers" :
	       fs->privileged ? "acting as its callers" :
	       "acting as one user for all callers");
	*out = &fs->fs;
	return 0;

fail_cache:
	fd = -1;
	posix_cache_fini(&fs->cache);
fail_dentries:
	posix_dentries_destroy(fs->dentries);
fail_table:
	if (fs->table)
		posix_table_close(fs->table);
fail_disk:
	posix_disk_put(fs->disk);
fail_fd:
	if (fd >= 0)
		close(fd);
	close_mount(fs);
fail:
	fs_free(fs);
	return err;
}

static void posix_unmount(struct vfs_fs *vfs)
{
	struct posix_fs *fs = to_posix_fs(vfs);

	posix_cache_fini(&fs->cache);
	vfs_node_put(&fs->root->node);
	posix_dentries_destroy(fs->dentries);
	if (fs->table)
		posix_table_close(fs->table);
	posix_disk_put(fs->disk);
	close_mount(fs);
	fs_free(fs);
}

/* The path can come back, so a missing one counts as there. */
static bool posix_is_at(struct vfs_fs *vfs, const char *path)
{
	struct posix_fs *fs = to_posix_fs(vfs);
	struct stat st;

	/* btrfs takes the device number from a subvolume that is deleted, and
	 * gives it to the next one. */
	if (posix_fstat(fs->root->fd, &st) == 0 && st.st_dev != fs->dev)
		return false;
	return stat(path, &st) < 0 ||
	       (st.st_dev == fs->dev && st.st_ino == fs->ino);
}

static int posix_statfs(struct vfs_op *op)
{
	struct posix_node *node = to_posix(op->node);
	struct vfs_statfs *out = op->statfs;
	struct statvfs st;
	uint64_t unit;
	int err;

	/* The file system might look up a quota. */
	err = posix_may_block(op, posix_fs_of(node)) ?
	      posix_begin(posix_fs_of(node), op) : -EAGAIN;
	if (err < 0)
		return err;
	posix_flags_learn(posix_fs_of(node));
	if (fstatvfs(node->fd, &st) < 0)
		return -errno;
	unit = st.f_frsize ? st.f_frsize : st.f_bsize;
	out->tbytes = st.f_blocks * unit;
	out->fbytes = st.f_bfree * unit;
	out->abytes = st.f_bavail * unit;
	out->tfiles = st.f_files;
	out->ffiles = st.f_ffree;
	out->afiles = st.f_favail;
	return 0;
}

static int posix_limits(struct vfs_op *op)
{
	*op->limits = posix_fs_of(to_posix(op->node))->limits;
	return 0;
}

static int posix_quota(struct vfs_op *op)
{
	return quota_ask(to_posix(op->node)->fd, op->quota);
}

static const struct vfs_option options[] = {
	{ "async", VFS_FLAG, offsetof(struct posix_options, async), 0, 0 },
	{ "table", VFS_FLAG, offsetof(struct posix_options, table), 0, 0 },
	{ "max-files", VFS_NUMBER, offsetof(struct posix_options, max_files),
	  1, INT32_MAX },
	{ "idle", VFS_NUMBER, offsetof(struct posix_options, idle_ms), 1,
	  INT32_MAX },
};

const struct vfs_ops posix_vfs_ops = {
	.version = GANNET_VFS_VERSION,
	.name = "posix",
	.options = options,
	.noptions = ARRAY_SIZE(options),
	.options_size = sizeof(struct posix_options),
	.mount = posix_mount,
	.unmount = posix_unmount,
	.is_at = posix_is_at,
	.root = posix_root,
	.open_handle = posix_open_handle,
	.handle = posix_handle,
	.node_free = posix_node_free,
	.getattr = posix_getattr,
	.setattr = posix_setattr,
	.access = posix_access,
	.lookup = posix_lookup,
	.readlink = posix_readlink,
	.read = posix_read,
	.read_pipe = posix_read_pipe,
	.write = posix_write,
	.commit = posix_commit,
	.create = posix_create,
	.make = posix_make,
	.remove = posix_remove,
	.rename = posix_rename,
	.link = posix_link,
	.readdir = posix_readdir,
	.statfs = posix_statfs,
	.limits = posix_limits,
	.lock = posix_lock,
	.getacl = posix_getacl,
	.setacl = posix_setacl,
	.quota = posix_quota,
	.path = posix_path,
};
