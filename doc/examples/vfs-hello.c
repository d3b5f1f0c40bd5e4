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
 * there is no lock, and op->nonblock does not matter.
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

static int hello_open_handle(struct vfs_op *op)
{
	const struct vfs_handle *h = op->open.handle;

	if (h->len != 1 || h->data[0] >= NODES)
		return -EBADMSG;
	op->out = get(&((struct hello_fs *)op->open.fs)->node[h->data[0]]);
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

static int hello_getattr(struct vfs_op *op)
{
	fill(op->node, op->attr);
	return 0;
}

static int hello_access(struct vfs_op *op)
{
	op->access.granted = op->access.want & (VFS_ACCESS_READ |
			   (is_root(op->node) ? VFS_ACCESS_LOOKUP : 0));
	fill(op->node, op->attr);
	return 0;
}

static int hello_lookup(struct vfs_op *op)
{
	struct vfs_node *dir = op->node;
	struct vfs_name name = op->name;
	struct hello_fs *h = hello(dir);

	fill(dir, op->lookup.dir_attr);
	op->lookup.has_dir_attr = true;
	if (!is_root(dir))
		return -ENOTDIR;
	if (name.len == 2 && memcmp(name.s, "..", 2) == 0)
		op->out = get(dir);
	else if (name.len == strlen(FILE_NAME) &&
		 memcmp(name.s, FILE_NAME, name.len) == 0)
		op->out = get(&h->node[HELLO]);
	else
		return -ENOENT;
	fill(op->out, op->attr);
	return 0;
}

static int hello_readlink(struct vfs_op *op)
{
	return -EINVAL;
}

static int hello_read(struct vfs_op *op)
{
	const char *text = hello(op->node)->text;
	size_t len = strlen(text), done = 0;

	if (is_root(op->node))
		return -EISDIR;
	fill(op->node, op->attr);
	for (int i = 0; i < op->read.niov && op->read.off + done < len; i++) {
		size_t part = len - op->read.off - done;

		if (part > op->read.iov[i].iov_len)
			part = op->read.iov[i].iov_len;
		memcpy(op->read.iov[i].iov_base, text + op->read.off + done,
		       part);
		done += part;
	}
	op->eof = op->read.off + done >= len;
	return (int)done;
}

/* The cookie of an entry is its number; the one after has the next. */
static int hello_readdir(struct vfs_op *op)
{
	static const char *const names[] = { ".", "..", FILE_NAME };
	struct hello_fs *h = hello(op->node);
	uint64_t cookie = op->readdir.cookie;

	if (!is_root(op->node))
		return -ENOTDIR;
	if (cookie > 3)
		return -EBADE;
	fill(op->node, op->attr);
	op->readdir.verf = 0;
	op->eof = true;
	for (; cookie < 3; cookie++) {
		struct vfs_node *n = &h->node[cookie < 2 ? ROOT : HELLO];
		struct vfs_dirent d = {
			.fileid = cookie < 2 ? 1 : 2,
			.cookie = cookie + 1,
			.name = { names[cookie],
				  (uint32_t)strlen(names[cookie]) },
			.has_attr = op->readdir.plus,
			.has_handle = op->readdir.plus,
		};

		if (op->readdir.plus) {
			fill(n, &d.attr);
			hello_handle(n, &d.handle);
		}
		if (!op->readdir.emit(op->readdir.arg, &d)) {
			op->eof = false;
			break;
		}
	}
	return 0;
}

static int hello_statfs(struct vfs_op *op)
{
	*op->statfs = (struct vfs_statfs){ .tbytes = 4096, .tfiles = NODES };
	return 0;
}

static int hello_limits(struct vfs_op *op)
{
	*op->limits = (struct vfs_limits){
		.max_file_size = TEXT_MAX + 1, .time_delta = { 0, 1 },
		.name_max = VFS_NAME_MAX, .link_max = 1, .no_trunc = true,
		.case_preserving = true, .homogeneous = true,
		.chown_restricted = true,
	};
	return 0;
}

/* ---- changes: there are none */

static int hello_refuse(struct vfs_op *op)
{
	return -EROFS;
}

static int hello_commit(struct vfs_op *op)
{
	return 0;
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
	.setattr = hello_refuse,
	.access = hello_access,
	.lookup = hello_lookup,
	.readlink = hello_readlink,
	.read = hello_read,
	.write = hello_refuse,
	.commit = hello_commit,
	.create = hello_refuse,
	.make = hello_refuse,
	.remove = hello_refuse,
	.rename = hello_refuse,
	.link = hello_refuse,
	.readdir = hello_readdir,
	.statfs = hello_statfs,
	.limits = hello_limits,
};
