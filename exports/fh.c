/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filehandles, and the server's secret key.
 *
 * 	byte 0		version: 1, or 2 with the key of the tree
 * 	byte 1		length of the backend's handle
 * 	bytes 2-3	zero
 * 	bytes 4-7	export id, big endian
 * 	then		the backend's handle, zero padded to 4
 * 	last 8 bytes	SipHash-2-4 of all bytes before
 */
#include "exports/export_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sodium.h>

#include "lib/log.h"
#include "lib/rcu.h"
#include "lib/stats.h"
#include "lib/util.h"
#include "lib/xdr.h"

/* Byte 0: whose key the MAC is made with. */
#define FH_SERVER	1
#define FH_TREE		2
#define HEAD		8
#define MAC		crypto_shorthash_BYTES
#define KEY_FILE	"filehandle.key"

_Static_assert(HEAD + ALIGN_UP(VFS_HANDLE_MAX, 4) + MAC <= NFS3_FHSIZE,
	       "a backend's handle fits");
_Static_assert(EXPORT_KEY_LEN == crypto_shorthash_KEYBYTES, "key length");
_Static_assert(VFS_HANDLE_KEY == EXPORT_KEY_LEN, "a tree's key is one, too");

STAT(fh_forged, "filehandles refused: not made by this server");

bool export_same_id(struct export_table *t, uint32_t a, uint32_t b)
{
	const struct export_set *set;
	const struct export *e;
	bool same;

	if (likely(a == b))
		return true;
	rcu_enter();
	set = t->current;
	e = export_set_find_id(set, a);
	same = e && e == export_set_find_id(set, b);
	rcu_exit();
	return same;
}

void export_fh_make(struct export_table *t, const struct export_tree *e,
		    const struct export_opts *opts,
		    const struct vfs_handle *h, struct nfs3_fh *fh)
{
	/* No rule has the id of a file system below an export. */
	bool by_rule = opts->has_id && e->id == e->top;
	const uint8_t *key = e->fs->handle_key;
	uint32_t len = HEAD + ALIGN_UP(h->len, 4u);

	memset(fh->data, 0, sizeof(fh->data));
	fh->data[0] = key ? FH_TREE : FH_SERVER;
	fh->data[1] = (uint8_t)h->len;
	xdr_set_word(fh->data + 4, by_rule ? opts->id : e->id);
	memcpy(fh->data + HEAD, h->data, h->len);
	crypto_shorthash(fh->data + len, fh->data, len, key ? key : t->key);
	fh->len = len + MAC;
}

/*
 * Copies the key of the export's tree.  -ETIMEDOUT: the tree is not mounted, so
 * its key is not known yet; -ESTALE: no such export; -EBADMSG: its tree has no
 * key.
 */
static int tree_key(struct export_table *t, uint32_t id, uint8_t *key)
{
	const struct export *e;
	int err = 0;

	rcu_enter();
	e = export_set_find_id(t->current, id);
	if (!e || !e->tree)
		err = -ESTALE;
	else if (!e->tree->mounted)
		err = -ETIMEDOUT;
	else if (!e->tree->fs->handle_key)
		err = -EBADMSG;
	else
		memcpy(key, e->tree->fs->handle_key, EXPORT_KEY_LEN);
	rcu_exit();
	return err;
}

/* 0; -EBADMSG: the MAC is another one; or as tree_key(). */
static int check_mac(struct export_table *t, const uint8_t *fh, uint32_t len,
		     uint32_t id)
{
	uint8_t key[EXPORT_KEY_LEN];
	uint64_t mac, its;
	int err;

	static_assert(sizeof(mac) == MAC, "a MAC is one word");
	if (likely(fh[0] == FH_SERVER)) {
		crypto_shorthash((uint8_t *)&mac, fh, len, t->key);
	} else {
		err = tree_key(t, id, key);
		if (err < 0)
			return err;
		crypto_shorthash((uint8_t *)&mac, fh, len, key);
	}
	/* A single comparison, whose time reveals nothing about the MAC. */
	memcpy(&its, fh + len, MAC);
	return mac == its ? 0 : -EBADMSG;
}

int export_fh_parse(struct export_table *t, const void *data, uint32_t len,
		    uint32_t *export_id, struct vfs_handle *h)
{
	const uint8_t *fh = data;
	uint32_t id;
	int err = -EBADMSG;

	if (len < HEAD + MAC || len > NFS3_FHSIZE ||
	    (fh[0] != FH_SERVER && fh[0] != FH_TREE) ||
	    fh[1] > VFS_HANDLE_MAX ||
	    len != HEAD + ALIGN_UP((uint32_t)fh[1], 4u) + MAC)
		goto refused;
	id = xdr_word(fh + 4);
	err = check_mac(t, fh, len - MAC, id);
	if (err < 0)
		goto refused;
	*export_id = id;
	h->len = fh[1];
	memcpy(h->data, fh + HEAD, h->len);
	return 0;

refused:
	if (err == -EBADMSG)
		stat_inc(fh_forged);
	return err;
}

/* Reads the key.  0; -ENOENT: no key yet; or another -errno. */
static int key_read(int dir, const char *state_dir, uint8_t *key)
{
	struct stat st;
	int fd = openat(dir, KEY_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW |
			O_NONBLOCK);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0) {
		err = -errno;
	} else if (st.st_mode & 077) {
		log_err("%s/%s: other users may read it (mode %o) and could "
			"forge handles: remove it and let clients mount again, "
			"or chmod "
			"600", state_dir, KEY_FILE, st.st_mode & 07777);
		err = -EPERM;
	} else if (!S_ISREG(st.st_mode) || st.st_size != EXPORT_KEY_LEN ||
		   read(fd, key, EXPORT_KEY_LEN) != EXPORT_KEY_LEN) {
		log_err("%s/%s: not a key of %d bytes; remove it and let "
			"clients mount again", state_dir, KEY_FILE,
			EXPORT_KEY_LEN);
		err = -EINVAL;
	}
	close(fd);
	return err;
}

/*
 * Makes a new key.  It gets its name when it is complete, and never replaces
 * another one, so two servers that start at once end up with the same key.
 */
static int key_create(int dir)
{
	char name[] = KEY_FILE ".XXXXXXXXXXXXXXXX", id[8];
	uint8_t key[EXPORT_KEY_LEN];
	int fd, err = 0;

	randombytes_buf(id, sizeof(id));
	sodium_bin2hex(name + sizeof(KEY_FILE), 2 * sizeof(id) + 1,
		       (const uint8_t *)id, sizeof(id));
	randombytes_buf(key, sizeof(key));
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (write(fd, key, sizeof(key)) != sizeof(key) || fsync(fd) < 0)
		err = errno ? -errno : -EIO;
	close(fd);
	if (err == 0 && linkat(dir, name, dir, KEY_FILE, 0) < 0 &&
	    errno != EEXIST)
		err = -errno;
	unlinkat(dir, name, 0);
	if (err == 0 && fsync(dir) < 0)
		err = -errno;
	sodium_memzero(key, sizeof(key));
	return err;
}

int export_key_load(const char *state_dir, uint8_t key[EXPORT_KEY_LEN])
{
	int dir, err;

	if (!state_dir) {
		randombytes_buf(key, EXPORT_KEY_LEN);
		return 0;
	}
	dir = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0) {
		err = -errno;
		log_err("%s: the state directory can't be opened: %s",
			state_dir, strerror(-err));
		return err;
	}
	err = key_read(dir, state_dir, key);
	if (err == -ENOENT) {
		err = key_create(dir);
		if (err == 0)
			err = key_read(dir, state_dir, key);
		else
			log_err("%s/%s: can't be made: %s", state_dir,
				KEY_FILE, strerror(-err));
	} else if (err == -EACCES || err == -ELOOP) {
		log_err("%s/%s: can't be read: %s", state_dir, KEY_FILE,
			strerror(-err));
	}
	close(dir);
	return err;
}
