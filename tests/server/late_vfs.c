/* SPDX-License-Identifier: BSD-2-Clause */
/* late_vfs - operations that end later, or would wait at first. */
#include "tests/server/late_vfs.h"

#include <stdlib.h>
#include <string.h>

#include "lib/thread.h"

static struct vfs_ops base;
static bool late, shy;
static atomic_uint turn;

struct job {
	struct vfs_op	*op;
	vfs_op_fn	*fn;
};

static void end_later(void *arg)
{
	struct job *job = arg;
	struct vfs_op *op = job->op;
	int n = job->fn(op);

	free(job);
	pthread_detach(pthread_self());
	vfs_op_end(op, n);
}

static int give(struct vfs_op *op, vfs_op_fn *fn)
{
	struct job *job = malloc(sizeof(*job));
	pthread_t thread;

	if (!job || !vfs_op_give(op)) {
		free(job);
		return fn(op);
	}
	*job = (struct job){ op, fn };
	if (thread_start(&thread, "late", end_later, job) < 0) {
		free(job);
		vfs_op_end(op, fn(op));
	}
	return VFS_PENDING;
}

static int run(struct vfs_op *op, vfs_op_fn *fn)
{
	/* Incidental attributes are left out where they would wait. */
	if (shy && op->later && op->nonblock &&
	    atomic_fetch_add(&turn, 1) % 2)
		return -EAGAIN;
	return late ? give(op, fn) : fn(op);
}

#define OPS(X) \
	X(open_handle) X(getattr) X(setattr) X(access) X(lookup) X(readlink) \
	X(read) X(read_pipe) X(write) X(commit) X(create) X(make) X(remove) \
	X(rename) X(link) X(readdir) X(statfs) X(limits) \
	X(getacl) X(setacl)

#define LATE(name) \
static int late_##name(struct vfs_op *op) \
{ \
	return run(op, base.name); \
}

OPS(LATE)

bool late_is(void)
{
	return late || shy;
}

void late_wrap(struct vfs_ops *ops)
{
	const char *how = getenv("GANNET_TEST_LATER");

	late = how && strstr(how, "late");
	shy = how && strstr(how, "shy");
	if (!late && !shy)
		return;
	base = *ops;
#define WRAP(name) if (base.name) ops->name = late_##name;
	OPS(WRAP)
}
