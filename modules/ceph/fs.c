/* SPDX-License-Identifier: BSD-2-Clause */
/* fs - the module's table, its options, and the life of an export. */
#include "modules/ceph/servers.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "lib/clock.h"

#define TIDY_SECONDS	5
#define UUID_FILE	"ceph-uuid"
#define UUID_BYTES	16

#define TEXT(name) \
	{ #name, VFS_TEXT, offsetof(struct cfs_options, name), 1, \
	  CFS_TEXT_MAX }
#define NUMBER(name, min, max) \
	{ #name, VFS_NUMBER, offsetof(struct cfs_options, name), min, max }

static const struct vfs_option options[] = {
	TEXT(conf),
	TEXT(id),
	TEXT(fs),
	TEXT(uuid),
	NUMBER(mounts, 1, CFS_CLIENTS_MAX),
	NUMBER(timeout, 1, 3600),
	NUMBER(grace, 1, CFS_GRACE_MAX),
	NUMBER(session, CFS_SESSION_S, 3600),
	{ "async", VFS_FLAG, offsetof(struct cfs_options, async), 0, 0 },
};

/* ---- the name of this server */

static int read_uuid(int dir, char *out)
{
	int fd = openat(dir, UUID_FILE, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, out, 2 * UUID_BYTES);
	close(fd);
	out[2 * UUID_BYTES] = '\0';
	return n == 2 * UUID_BYTES && strlen(out) == 2 * UUID_BYTES ? 0 :
								     -EIO;
}

static int write_uuid(int dir, const char *text)
{
	const char *tmp = UUID_FILE ".new";
	int fd = openat(dir, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
			0600);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, 2 * UUID_BYTES) != 2 * UUID_BYTES ||
	    fsync(fd) < 0 || linkat(dir, tmp, dir, UUID_FILE, 0) < 0)
		err = errno ? -errno : -EIO;
	close(fd);
	unlinkat(dir, tmp, 0);
	if (err == 0 && fsync(dir) < 0)
		err = -errno;
	return err;
}

static int random_uuid(char *out)
{
	uint8_t raw[UUID_BYTES];

	if (getrandom(raw, sizeof(raw), 0) != sizeof(raw))
		return -EIO;
	for (unsigned i = 0; i < UUID_BYTES; i++)
		sprintf(out + 2 * i, "%02x", raw[i]);
	return 0;
}

/* The name in the state directory, or, without one, a new one.  Exports are
 * mounted at the same time. */
static int state_uuid(struct cfs_fs *fs, char *text)
{
	static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;
	const char *state = fs->config->state_dir;
	int dir, err;

	if (!state)
		return random_uuid(text);
	dir = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return vfs_fail(fs->config, "%s: %s", state, strerror(errno));
	mutex_lock(&making);
	err = read_uuid(dir, text);
	if (err == -ENOENT) {
		err = random_uuid(text);
		err = err < 0 ? err : write_uuid(dir, text);
	}
	mutex_unlock(&making);
	close(dir);
	return err < 0 ? vfs_fail(fs->config, "%s/%s: %s", state, UUID_FILE,
				  strerror(-err)) : 0;
}

static int find_uuid(struct cfs_fs *fs)
{
	char text[2 * UUID_BYTES + 1];
	int err;

	if (fs->check)
		return 0;
	if (*fs->options->uuid) {
		fs->uuid = strdup(fs->options->uuid);
		return fs->uuid ? 0 : -ENOMEM;
	}
	err = state_uuid(fs, text);
	if (err < 0)
		return err;
	return asprintf(&fs->uuid, "gannet-%s", text) < 0 ? -ENOMEM : 0;
}

/* ---- the keeper and the tidier */

static void renew_lost(struct cfs_fs *fs)
{
	for (unsigned i = 0; i < fs->nclients; i++)
		if (atomic_load(&fs->client[i].lost) &&
		    !atomic_load(&fs->client[i].succeeded))
			cfs_client_renew(&fs->client[i]);
}

/* Record the end of a grace period at once: a server that is killed before
 * can't prove which locks its clients have. */
static uint64_t next_tick(const struct cfs_fs *fs)
{
	uint64_t now = clock_ms(), next = now + TIDY_SECONDS * 1000;

	for (unsigned i = 0; i < fs->nclients; i++) {
		uint64_t end = atomic_load(&fs->client[i].grace_until);

		if (end > now && end < next)
			next = end;
	}
	return next;
}

/* False: the export ends. */
static bool wait_for_work(struct cfs_fs *fs, struct cfs_chore *chore,
			  uint64_t until_ms)
{
	bool ending;

	mutex_lock(&fs->lock);
	while (!chore->awake && !fs->ending &&
	       cond_wait_until(&chore->wake, &fs->lock, until_ms * NS_PER_MS))
		;
	chore->awake = false;
	ending = fs->ending;
	mutex_unlock(&fs->lock);
	return !ending;
}

static void *keep_clients(void *arg)
{
	struct cfs_fs *fs = arg;

	while (wait_for_work(fs, &fs->keeper, next_tick(fs))) {
		if (!fs->check)
			cfs_grace_tick(fs);
		renew_lost(fs);
	}
	return NULL;
}

static void *keep_tidy(void *arg)
{
	struct cfs_fs *fs = arg;

	while (wait_for_work(fs, &fs->tidier,
			     clock_ms() + TIDY_SECONDS * 1000))
		cfs_nodes_tidy(fs, false);
	return NULL;
}

static void end_chores(struct cfs_fs *fs, bool tidies)
{
	mutex_lock(&fs->lock);
	fs->ending = true;
	pthread_cond_signal(&fs->keeper.wake);
	pthread_cond_signal(&fs->tidier.wake);
	mutex_unlock(&fs->lock);
	pthread_join(fs->keeper.thread, NULL);
	if (tidies)
		pthread_join(fs->tidier.thread, NULL);
}

static int start_chores(struct cfs_fs *fs)
{
	int err = -pthread_create(&fs->keeper.thread, NULL, keep_clients, fs);

	if (err < 0)
		return err;
	err = -pthread_create(&fs->tidier.thread, NULL, keep_tidy, fs);
	if (err < 0)
		end_chores(fs, false);
	return err;
}

/* ---- mount */

static struct cfs_fs *alloc_fs(const struct vfs_config *config)
{
	struct cfs_fs *fs = calloc(1, sizeof(*fs));

	if (!fs)
		return NULL;
	fs->fs.ops = &gannet_backend;
	fs->config = config;
	fs->options = config->options;
	fs->check = config->check;
	fs->path = strdup(config->path);
	fs->server = ceph_userperm_new(0, 0, 0, NULL);
	pthread_mutex_init(&fs->lock, NULL);
	pthread_mutex_init(&fs->moves, NULL);
	sem_init(&fs->fixed_reads, 0, CFS_FIXED_READS);
	for (unsigned i = 0; i < CFS_NAME_LOCKS; i++)
		cfs_lock_init(&fs->names[i]);
	pthread_mutex_init(&fs->grace.store, NULL);
	pthread_rwlock_init(&fs->grace.sets, NULL);
	pthread_cond_init(&fs->keeper.wake, NULL);
	pthread_cond_init(&fs->tidier.wake, NULL);
	for (unsigned i = 0; i < CFS_SHARDS; i++)
		pthread_mutex_init(&fs->shard[i].lock, NULL);
	for (unsigned i = 0; i < CFS_CLIENTS_ALL; i++) {
		fs->client[i].fs = fs;
		fs->client[i].slot = -1;
		pthread_rwlock_init(&fs->client[i].lock, NULL);
		pthread_mutex_init(&fs->client[i].record_lock, NULL);
	}
	return fs;
}

static void end_fs(struct cfs_fs *fs)
{
	if (fs->root_node)
		vfs_node_put(&fs->root_node->node);
	cfs_nodes_tidy(fs, true);
	for (unsigned i = 0; i < CFS_CLIENTS_ALL; i++)
		cfs_client_end(&fs->client[i]);
	cfs_notice_close(fs);
	for (unsigned i = 0; i < CFS_CLIENTS_ALL; i++) {
		pthread_rwlock_destroy(&fs->client[i].lock);
		pthread_mutex_destroy(&fs->client[i].record_lock);
	}
	for (unsigned i = 0; i < CFS_SHARDS; i++)
		pthread_mutex_destroy(&fs->shard[i].lock);
	pthread_cond_destroy(&fs->keeper.wake);
	pthread_cond_destroy(&fs->tidier.wake);
	pthread_mutex_destroy(&fs->lock);
	pthread_mutex_destroy(&fs->moves);
	sem_destroy(&fs->fixed_reads);
	for (unsigned i = 0; i < CFS_NAME_LOCKS; i++)
		pthread_rwlock_destroy(&fs->names[i]);
	pthread_rwlock_destroy(&fs->grace.sets);
	pthread_mutex_destroy(&fs->grace.store);
	if (fs->server)
		ceph_userperm_destroy(fs->server);
	free(fs->uuid);
	free(fs->path);
	free(fs);
}

/* Learns the root. */
static int learn_root(struct cfs_fs *fs)
{
	struct ceph_mount_info *cm = fs->client[0].cm;
	struct ceph_statx sx;
	struct Inode *in;
	int err = ceph_ll_lookup_root(cm, &in);

	if (err < 0)
		return err;
	err = ceph_ll_getattr(cm, in, &sx, CFS_WANT, 0, fs->server);
	ceph_ll_put(cm, in);
	if (err < 0)
		return err;
	fs->root = cfs_vino(&sx);
	/* Two exports are two file systems to clients, whose handles differ. */
	fs->fs.fsid = hash_mix(fs->which, fs->root.ino.val);
	if (!S_ISDIR(sx.stx_mode))
		return -ENOTDIR;
	return cfs_node_find(fs, fs->root, false, &fs->root_node);
}

/* Opens the objects that the servers share, and reads their key. */
static int join_servers(struct cfs_fs *fs)
{
	int err = cfs_store_open(fs->options, &fs->store);

	if (err == 0) {
		fs->cluster = fs->store.cluster_hash;
		fs->which = hash_mix(fs->cluster, fs->store.fscid);
		err = cfs_identity_key(&fs->store, !fs->check, fs->key);
		if (err == -ENOENT && fs->check)
			err = 0;
	}
	if (err == 0 && !fs->check)
		err = cfs_notice_open(fs);
	if (err < 0)
		return vfs_fail(fs->config, "CephFS %s, as client.%s: can't "
				"%s: %s", fs->path, cfs_id(fs->options),
				fs->store.step, strerror(-err));
	fs->fs.handle_key = fs->key;
	return 0;
}

static int mount_clients(struct cfs_fs *fs)
{
	uint64_t wanted = MAX(fs->options->mounts, (uint64_t)1) +
			  CFS_NODELESS;
	int err = 0;

	for (unsigned i = 1; i <= CFS_NODELESS; i++)
		fs->client[wanted - i].nodeless = true;
	while (err == 0 && fs->nclients < wanted) {
		err = cfs_client_make(&fs->client[fs->nclients]);
		fs->nclients += err == 0;
	}
	if (err < 0 || fs->check)
		return err;
	err = cfs_client_end_left_over(fs);
	return err == 0 ? cfs_grace_learn(fs) : err;
}

static int cfs_mount(const struct vfs_config *config, struct vfs_fs **out)
{
	struct cfs_fs *fs = alloc_fs(config);
	int err = fs && fs->path && fs->server ? find_uuid(fs) : -ENOMEM;

	if (err == 0)
		err = join_servers(fs);
	if (err == 0)
		err = mount_clients(fs);
	if (err == 0)
		err = learn_root(fs);
	if (err == 0) {
		cfs_verf_change(fs);
		err = start_chores(fs);
	}
	if (err < 0) {
		if (fs)
			end_fs(fs);
		return err;
	}
	fs->config = NULL;
	*out = &fs->fs;
	return 0;
}

static void cfs_unmount(struct vfs_fs *base)
{
	struct cfs_fs *fs = cfs_fs(base);

	end_chores(fs, true);
	end_fs(fs);
}

static int cfs_root(struct vfs_fs *fs, struct vfs_node **out)
{
	*out = &cfs_fs(fs)->root_node->node;
	vfs_node_get(*out);
	return 0;
}

const struct vfs_ops gannet_backend = {
	.version = GANNET_VFS_VERSION,
	.name = "ceph",
	.options = options,
	.noptions = ARRAY_SIZE(options),
	.options_size = sizeof(struct cfs_options),
	.mount = cfs_mount,
	.unmount = cfs_unmount,
	.root = cfs_root,
	.handle = cfs_handle,
	.node_free = cfs_node_free,
	.open_handle = cfs_open_handle,
	.getattr = cfs_getattr,
	.setattr = cfs_setattr,
	.access = cfs_access,
	.lookup = cfs_lookup,
	.readlink = cfs_readlink,
	.read = cfs_read,
	.write = cfs_write,
	.commit = cfs_commit,
	.create = cfs_create,
	.make = cfs_make,
	.remove = cfs_remove,
	.rename = cfs_rename,
	.link = cfs_link,
	.readdir = cfs_readdir,
	.statfs = cfs_statfs,
	.limits = cfs_limits,
	.getacl = cfs_getacl,
	.setacl = cfs_setacl,
	.lock = cfs_lock,
};
