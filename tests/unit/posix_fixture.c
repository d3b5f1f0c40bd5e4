/* SPDX-License-Identifier: BSD-2-Clause */
/* posix_fixture - a directory that the posix backend has mounted. */
#include "tests/unit/posix_fixture.h"

#include <ftw.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "lib/log.h"
#include "tests/unit/spread.h"

struct world w;

static char base[2][256];		/* on the build's file system, tmpfs */

void world_base(void)
{
	snprintf(base[0], sizeof(base[0]), "%s/posix-XXXXXX",
		 getenv("PWD") ? getenv("PWD") : ".");
	if (!mkdtemp(base[0])) {
		perror(base[0]);
		exit(1);
	}
	spread_subdirectories(base[0]);
	strcpy(base[1], "/dev/shm/gannet-XXXXXX");
	if (!mkdtemp(base[1]))
		snprintf(base[1], sizeof(base[1]), "%s", base[0]);
	chmod(base[0], 0755);
	chmod(base[1], 0755);
}

void world_base_give(uid_t uid)
{
	if (chown(base[0], uid, -1) < 0 || chown(base[1], uid, -1) < 0)
		exit(1);
}

static int remove_one(const char *path, const struct stat *st, int flag,
		      struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void world_base_remove(void)
{
	nftw(base[0], remove_one, 16, FTW_DEPTH | FTW_PHYS);
	nftw(base[1], remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int world_run(void)
{
	int rc;

	world_base();
	rc = run_tests();
	world_base_remove();
	return rc;
}

void world_mount(void)
{
	static bool registered;

	if (!registered)
		rcu_register_thread();
	registered = true;
	assert_ok(posix_vfs_ops.mount(&w.config, &w.fs));
	assert_ok(w.fs->ops->root(w.fs, &w.root));
}

void world_prepare(int i, const struct posix_options *options)
{
	log_threshold = LOG_LEVEL_WARN;
	memset(&w, 0, sizeof(w));
	if (options)
		w.options = *options;
	snprintf(w.dir, sizeof(w.dir), "%s/export-XXXXXX", base[i & 1]);
	ck_assert_ptr_nonnull(mkdtemp(w.dir));
	chmod(w.dir, 0777);
	snprintf(w.state, sizeof(w.state), "%s/state-XXXXXX", base[0]);
	ck_assert_ptr_nonnull(mkdtemp(w.state));
	w.config.path = w.dir;
	w.config.state_dir = w.state;
	w.config.options = &w.options;
	w.options.table = i & 2;
	w.cred.uid = geteuid();
	w.cred.gid = getegid();
	w.who.cred = &w.cred;
}

void world_open(int i, const struct posix_options *options)
{
	world_prepare(i, options);
	world_mount();
}

void world_restart(void)
{
	vfs_node_put(w.root);
	w.fs->ops->unmount(w.fs);
	world_mount();
}

void world_close(void)
{
	posix_cred_server(to_posix_fs(w.fs));
	vfs_node_put(w.root);
	w.fs->ops->unmount(w.fs);
	world_remove();
}

void world_remove(void)
{
	nftw(w.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	nftw(w.state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

bool world_on_tmpfs(void)
{
	return to_posix_fs(w.fs)->ram;
}

const char *local(const char *path)
{
	static char buf[2][1024];
	static int turn;

	turn ^= 1;
	snprintf(buf[turn], sizeof(buf[turn]), "%s/%s", w.dir, path);
	return buf[turn];
}

struct vfs_name name_of(const char *s)
{
	return (struct vfs_name){ s, strlen(s) };
}

int try_lookup(struct vfs_node *dir, const char *name)
{
	struct vfs_attr attr, dir_attr;
	struct vfs_node *n;
	int err;

	err = GET(out, n, posix_lookup, &w.who, dir, .name = name_of(name),
		  .attr = &attr, .lookup.dir_attr = &dir_attr);
	if (err == 0)
		vfs_node_put(n);
	return err;
}

struct vfs_node *must_lookup(struct vfs_node *dir, const char *name)
{
	struct vfs_node *n;

	assert_ok(GET(out, n, posix_lookup, &w.who, dir,
		      .name = name_of(name)));
	return n;
}

struct vfs_node *must_create(struct vfs_node *dir, const char *name)
{
	struct vfs_create how = { .how = VFS_CREATE_GUARDED,
				  .attr = { .set = VFS_SET_MODE,
					    .mode = 0644 } };
	struct vfs_node *n;

	assert_ok(GET(out, n, posix_create, &w.who, dir, .name = name_of(name),
		      .create = &how));
	return n;
}

struct vfs_node *must_mkdir(struct vfs_node *dir, const char *name)
{
	struct vfs_make what = { .type = VFS_DIR,
				 .attr = { .set = VFS_SET_MODE,
					   .mode = 0755 } };
	struct vfs_node *n;

	assert_ok(GET(out, n, posix_make, &w.who, dir, .name = name_of(name),
		      .make = &what));
	return n;
}

void must_remove(struct vfs_node *dir, const char *name, bool is_dir)
{
	assert_ok(DO(posix_remove, &w.who, dir, .name = name_of(name),
		     .is_dir = is_dir));
}

int try_open(const struct vfs_handle *h)
{
	struct vfs_node *n;
	int err = GET(out, n, posix_open_handle, &w.who, NULL,
		      .open = { .fs = w.fs, .handle = h });

	if (err == 0)
		vfs_node_put(n);
	return err;
}

void world_settle(const char *path)
{
	struct stat st;

	EVENTUALLY(stat(local(path), &st) == 0 && posix_settled(&st));
}

bool world_sync_waits(void)
{
	struct posix_disk *d = to_posix_fs(w.fs)->disk;
	bool waits;

	mutex_lock(&d->lock);
	waits = d->whole.first;
	mutex_unlock(&d->lock);
	return waits;
}

int try_open_again(const struct vfs_handle *h)
{
	int err;

	WAIT_WHILE((err = try_open(h)) == -ETIMEDOUT);
	return err;
}

struct vfs_node *must_open(const struct vfs_handle *h)
{
	struct vfs_node *n;

	assert_ok(GET(out, n, posix_open_handle, &w.who, NULL,
		      .open = { .fs = w.fs, .handle = h }));
	return n;
}

struct vfs_handle handle_of(struct vfs_node *n)
{
	struct vfs_handle h;

	posix_handle(n, &h);
	return h;
}

struct vfs_attr attr_of(struct vfs_node *n)
{
	struct vfs_attr attr;

	assert_ok(DO(posix_getattr, &w.who, n, .attr = &attr));
	return attr;
}

int64_t write_str(struct vfs_node *n, uint64_t off, const char *s,
		  enum vfs_stable *stable)
{
	struct iovec iov = { (void *)(uintptr_t)s, strlen(s) };
	enum vfs_stable file = VFS_FILE_SYNC;

	if (!stable)
		stable = &file;
	return GET(write.stable, *stable, posix_write, &w.who, n,
		   .write = { .off = off, .iov = &iov, .niov = 1,
			      .stable = *stable });
}

int64_t read_str(struct vfs_node *n, uint64_t off, char out[64], bool *eof)
{
	struct iovec iov[3] = { { out, 5 }, { out + 5, 0 }, { out + 5, 58 } };
	bool end;

	memset(out, 0, 64);
	return GET(eof, *(eof ? eof : &end), posix_read, &w.who, n,
		   .read = { .off = off, .iov = iov, .niov = 3 });
}
