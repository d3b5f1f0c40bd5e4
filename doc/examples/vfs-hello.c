/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vfs-hello - a backend of gannetd: a read-only directory with one file,
 * "hello", whose text the exports file gives.
 *
 *	cc -shared -fPIC $(pkg-config --cflags gannet-vfs) vfs-hello.c \
 *		-o hello.so
 *	install -D -m 755 hello.so \
 *		$(pkg-config --variable=backenddir gannet-vfs)/hello.so
 *	gannetd --backend hello --export 'hello,text=hi:/hello *'
 *
 * Both nodes live as long as the tree, nothing blocks, and nothing changes: so
 * there is no lock, and ctx->nonblock does not matter.
 */
#include <gannet/vfs.h>

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX	200
#define FILE_NAME	"hello"

/* The block of the options below. */
struct hello_options {
	char text[TEXT_MAX + 1];
};

static const struct vfs_option options[] = {
	{ "text", VFS_TEXT, offsetof(struct hello_options, text), 1, TEXT_MAX },
};

enum { ROOT, HELLO, NODES };

struct hello_fs {
	struct vfs_fs	fs;
	struct vfs_node	node[NODES];
	struct timespec	made;
	char		text[TEXT_MAX + 2];	/* with a line's end */
};

static struct hello_fs *hello(struct vfs_node *n)
{
	return (struct hello_fs *)n->fs;	/* its first member */
}

static bool is_root(struct vfs_node *n)
{
	return n == &hello(n)->node[ROOT];
}

static struct vfs_node *get(struct vfs_node *n)
{
	vfs_node_get(n);
	return n;
}

/* ---- the tree */

static int hello_mount(const struct vfs_config *config, struct vfs_fs **out)
{
	const struct hello_options *o = config->options;
	struct hello_fs *h;

	if (!*o->text)
		return vfs_fail(config, "hello needs the option text=");
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->fs.ops = &gannet_backend;
	for (const char *p = config->path; *p; p++)
		h->fs.fsid = h->fs.fsid * 31 + (unsigned char)*p;
	clock_gettime(CLOCK_REALTIME, &h->made);
	atomic_init(&h->fs.verf, (uint64_t)h->made.tv_sec << 32 |
				 (uint64_t)h->made.tv_nsec);
	for (int i = 0; i < NODES; i++)
		vfs_node_init(&h->node[i], &h->fs);
	strcpy(h->text, o->text);
	strcat(h->text, "\n");
	*out = &h->fs;
	vfs_log(VFS_LOG_INFO, "%s says hello", config->path);
	return 0;
}

static void hello_unmount(struct vfs_fs *fs)
{
	free(fs);
}

static int hello_root(struct vfs_fs *fs, struct vfs_node **out)
{
	*out = get(&((struct hello_fs *)fs)->node[ROOT]);
	return 0;
}

static int hello_open_handle(const struct vfs_ctx *ctx, struct vfs_fs *fs,
			     const struct vfs_handle *h, struct vfs_node **out)
{
	if (h->len != 1 || h->data[0] >= NODES)
		return -EBADMSG;
	*out = get(&((struct hello_fs *)fs)->node[h->data[0]]);
	return 0;
}

static void hello_handle(struct vfs_node *n, struct vfs_handle *h)
{
	h->len = 1;
	h->data[0] = is_root(n) ? ROOT : HELLO;
}

/* Never called: the tree keeps a reference to each node. */
static void hello_node_free(struct vfs_node *n)
{
}

/* ---- reading */

static void fill(struct vfs_node *n, struct vfs_attr *attr)
{
	struct hello_fs *h = hello(n);

	if (!attr)
		return;
	*attr = (struct vfs_attr){
		.type = is_root(n) ? VFS_DIR : VFS_REG,
		.mode = is_root(n) ? 0555 : 0444,
		.nlink = is_root(n) ? 2 : 1,
		.size = is_root(n) ? 4096 : strlen(h->text),
		.used = 4096,
		.fileid = is_root(n) ? 1 : 2,
		.atime = h->made, .mtime = h->made, .ctime = h->made,
	};
}

static int hello_getattr(const struct vfs_ctx *ctx, struct vfs_node *n,
			 struct vfs_attr *attr)
{
	fill(n, attr);
	return 0;
}

static int hello_access(const struct vfs_ctx *ctx, struct vfs_node *n,
			uint32_t want, uint32_t *granted,
			struct vfs_attr *attr)
{
	*granted = want & (VFS_ACCESS_READ |
			   (is_root(n) ? VFS_ACCESS_LOOKUP : 0));
	fill(n, attr);
	return 0;
}

static int hello_lookup(const struct vfs_ctx *ctx, struct vfs_node *dir,
			struct vfs_name name, struct vfs_node **out,
			struct vfs_attr *attr, struct vfs_attr *dir_attr,
			bool *has_dir_attr)
{
	struct hello_fs *h = hello(dir);

	fill(dir, dir_attr);
	if (has_dir_attr)
		*has_dir_attr = true;
	if (!is_root(dir))
		return -ENOTDIR;
	if (name.len == 2 && memcmp(name.s, "..", 2) == 0)
		*out = get(dir);
	else if (name.len == strlen(FILE_NAME) &&
		 memcmp(name.s, FILE_NAME, name.len) == 0)
		*out = get(&h->node[HELLO]);
	else
		return -ENOENT;
	fill(*out, attr);
	return 0;
}

static int hello_readlink(const struct vfs_ctx *ctx, struct vfs_node *n,
			  char *buf, uint32_t size, struct vfs_attr *attr)
{
	fill(n, attr);
	return -EINVAL;
}

static int64_t hello_read(const struct vfs_ctx *ctx, struct vfs_node *n,
			  uint64_t off, const struct iovec *iov, int niov,
			  bool *eof, struct vfs_attr *attr)
{
	const char *text = hello(n)->text;
	size_t len = strlen(text), done = 0;

	if (is_root(n))
		return -EISDIR;
	fill(n, attr);
	for (int i = 0; i < niov && off + done < len; i++) {
		size_t part = len - off - done;

		if (part > iov[i].iov_len)
			part = iov[i].iov_len;
		memcpy(iov[i].iov_base, text + off + done, part);
		done += part;
	}
	*eof = off + done >= len;
	return (int64_t)done;
}

/* The cookie of an entry is its number; the one after has the next. */
static int hello_readdir(const struct vfs_ctx *ctx, struct vfs_node *dir,
			 uint64_t cookie, uint64_t *verf, bool plus,
			 vfs_emit_fn *emit, void *arg, bool *eof,
			 struct vfs_attr *attr)
{
	static const char *const names[] = { ".", "..", FILE_NAME };
	struct hello_fs *h = hello(dir);

	if (!is_root(dir))
		return -ENOTDIR;
	if (cookie > 3)
		return -EBADE;
	fill(dir, attr);
	*verf = 0;
	*eof = true;
	for (; cookie < 3; cookie++) {
		struct vfs_node *n = &h->node[cookie < 2 ? ROOT : HELLO];
		struct vfs_dirent d = {
			.fileid = cookie < 2 ? 1 : 2,
			.cookie = cookie + 1,
			.name = { names[cookie],
				  (uint32_t)strlen(names[cookie]) },
			.has_attr = plus, .has_handle = plus,
		};

		if (plus) {
			fill(n, &d.attr);
			hello_handle(n, &d.handle);
		}
		if (!emit(arg, &d)) {
			*eof = false;
			break;
		}
	}
	return 0;
}

static int hello_statfs(const struct vfs_ctx *ctx, struct vfs_node *n,
			struct vfs_statfs *st)
{
	*st = (struct vfs_statfs){ .tbytes = 4096, .tfiles = NODES };
	return 0;
}

static int hello_limits(const struct vfs_ctx *ctx, struct vfs_node *n,
			struct vfs_limits *l)
{
	*l = (struct vfs_limits){
		.max_file_size = TEXT_MAX + 1, .time_delta = { 0, 1 },
		.name_max = VFS_NAME_MAX, .link_max = 1, .no_trunc = true,
		.case_preserving = true, .homogeneous = true,
		.chown_restricted = true,
	};
	return 0;
}

/* ---- changes: there are none */

static int hello_setattr(const struct vfs_ctx *ctx, struct vfs_node *n,
			 const struct vfs_setattr *set, struct vfs_wcc *wcc)
{
	return -EROFS;
}

static int64_t hello_write(const struct vfs_ctx *ctx, struct vfs_node *n,
			   uint64_t off, const struct iovec *iov, int niov,
			   enum vfs_stable *stable, struct vfs_wcc *wcc)
{
	return -EROFS;
}

static int hello_commit(const struct vfs_ctx *ctx, struct vfs_node *n,
			uint64_t off, uint32_t count, struct vfs_wcc *wcc)
{
	return 0;
}

static int hello_create(const struct vfs_ctx *ctx, struct vfs_node *dir,
			struct vfs_name name, const struct vfs_create *how,
			struct vfs_node **out, struct vfs_attr *attr,
			struct vfs_wcc *wcc)
{
	return -EROFS;
}

static int hello_make(const struct vfs_ctx *ctx, struct vfs_node *dir,
		      struct vfs_name name, const struct vfs_make *what,
		      struct vfs_node **out, struct vfs_attr *attr,
		      struct vfs_wcc *wcc)
{
	return -EROFS;
}

static int hello_remove(const struct vfs_ctx *ctx, struct vfs_node *dir,
			struct vfs_name name, bool is_dir, struct vfs_wcc *wcc)
{
	return -EROFS;
}

static int hello_rename(const struct vfs_ctx *ctx, struct vfs_node *from,
			struct vfs_name from_name, struct vfs_node *to,
			struct vfs_name to_name, struct vfs_wcc *from_wcc,
			struct vfs_wcc *to_wcc)
{
	return -EROFS;
}

static int hello_link(const struct vfs_ctx *ctx, struct vfs_node *n,
		      struct vfs_node *dir, struct vfs_name name,
		      struct vfs_attr *attr, struct vfs_wcc *dir_wcc)
{
	return -EROFS;
}

const struct vfs_ops gannet_backend = {
	.version = GANNET_VFS_VERSION,
	.name = "hello",
	.options = options,
	.noptions = sizeof(options) / sizeof(options[0]),
	.options_size = sizeof(struct hello_options),
	.mount = hello_mount,
	.unmount = hello_unmount,
	.root = hello_root,
	.open_handle = hello_open_handle,
	.handle = hello_handle,
	.node_free = hello_node_free,
	.getattr = hello_getattr,
	.setattr = hello_setattr,
	.access = hello_access,
	.lookup = hello_lookup,
	.readlink = hello_readlink,
	.read = hello_read,
	.write = hello_write,
	.commit = hello_commit,
	.create = hello_create,
	.make = hello_make,
	.remove = hello_remove,
	.rename = hello_rename,
	.link = hello_link,
	.readdir = hello_readdir,
	.statfs = hello_statfs,
	.limits = hello_limits,
};
