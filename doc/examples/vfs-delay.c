/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vfs-delay - a filter of gannetd: each READ and WRITE takes some milliseconds
 * more than in the backend below it.
 *
 *	cc -shared -fPIC $(pkg-config --cflags gannet-vfs) vfs-delay.c \
 *		-o delay.so
 *	install -D -m 755 delay.so \
 *		$(pkg-config --variable=backenddir gannet-vfs)/delay.so
 *	gannetd --backend delay --export 'delay,ms=20:/srv/data *'
 */
#include <gannet/vfs.h>

/* The block of the options below. */
struct delay_options {
	uint64_t ms;
};

static const struct vfs_option delay_rows[] = {
	{ "ms", VFS_NUMBER, offsetof(struct delay_options, ms), 1, 60000 },
};

/* The tree's filter stays the block of options, which is all it needs. */
static int delay_attach(const struct vfs_config *config, struct vfs_fs *fs)
{
	const struct delay_options *o = config->options;

	return o->ms ? 0 : vfs_fail(config, "delay needs the option ms=");
}

/* Runs @fn, an operation of the backend below, after the delay. */
static int delay(struct vfs_op *op, vfs_op_fn *fn)
{
	const struct delay_options *o = op->node->fs->filter;
	struct timespec t = { (time_t)(o->ms / 1000),
			      (long)(o->ms % 1000) * 1000000 };

	/* On this thread nothing may wait; a worker calls again. */
	if (op->nonblock)
		return -EAGAIN;
	nanosleep(&t, NULL);
	return fn(op);
}

static int delay_read(struct vfs_op *op)
{
	return delay(op, op->node->fs->ops->below->read);
}

static int delay_write(struct vfs_op *op)
{
	return delay(op, op->node->fs->ops->below->write);
}

const struct vfs_ops gannet_backend = {
	.version = GANNET_VFS_VERSION,
	.name = "delay",
	.options = delay_rows,
	.noptions = sizeof(delay_rows) / sizeof(delay_rows[0]),
	.options_size = sizeof(struct delay_options),
	.attach = delay_attach,
	.read = delay_read,
	.write = delay_write,
};
