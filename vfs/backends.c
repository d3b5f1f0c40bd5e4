/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of backends: built-in ones, modules, and the tables of each filter
 * over each backend.
 *
 * A module stays loaded until the process ends, because its code can be on any
 * thread's stack.
 */
#include "vfs/backends.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/fail.h"
#include "lib/util.h"

#define NAME_MAX_LEN	32
#define NAME_CHARS	"abcdefghijklmnopqrstuvwxyz0123456789-_"

static const struct vfs_ops *const builtin[] = {
	&posix_vfs_ops,
	&mem_vfs_ops,
};

struct backends {
	const struct vfs_ops  **added;
	unsigned		nadded;
};

/* The table of a filter over a backend. */
struct over {
	struct vfs_ops		ops;
	const struct vfs_ops   *filter;
	char			name[2 * NAME_MAX_LEN + 2];
};

/* The backend makes the tree; the filter adds its operations, with its part of
 * the options. */
static int mount_over(const struct vfs_config *config, struct vfs_fs **out)
{
	const struct vfs_ops *ops = config->ops, *below = ops->below;
	struct vfs_config c = *config;
	int err;

	c.ops = below;
	err = below->mount(&c, out);
	if (err != 0 || !*out)
		return err;
	c.options = (const char *)config->options + backend_filter_at(below);
	(*out)->ops = ops;
	(*out)->filter = (void *)(uintptr_t)c.options;
	err = ops->attach(&c, *out);
	if (err != 0) {
		(*out)->ops = below;	/* no function of the filter's */
		below->unmount(*out);
	}
	return err;
}

/* @ops as the table of a filter over a backend; NULL: another kind of table. */
static struct over *over_of(const struct vfs_ops *ops)
{
	return ops->mount == mount_over ? container_of(ops, struct over, ops) :
					  NULL;
}

int backends_create(struct backends **out)
{
	struct backends *b = calloc(1, sizeof(*b));

	if (!b)
		return -ENOMEM;
	*out = b;
	return 0;
}

void backends_destroy(struct backends *b)
{
	if (!b)
		return;
	for (unsigned i = 0; i < b->nadded; i++)
		free(over_of(b->added[i]));
	free(b->added);
	free(b);
}

/* The backend number @i, or NULL behind the last one. */
static const struct vfs_ops *nth(const struct backends *b, unsigned i)
{
	if (i < ARRAY_SIZE(builtin))
		return builtin[i];
	i -= ARRAY_SIZE(builtin);
	return b && i < b->nadded ? b->added[i] : NULL;
}

const struct vfs_ops *backends_find(const struct backends *b,
				    const char *name, size_t len)
{
	const struct vfs_ops *ops;

	for (unsigned i = 0; (ops = nth(b, i)); i++)
		if (strlen(ops->name) == len &&
		    memcmp(ops->name, name, len) == 0)
			break;
	return ops;
}

void backends_names(const struct backends *b, char *buf, size_t size)
{
	const struct vfs_ops *ops;
	size_t len = 0;

	for (unsigned i = 0; (ops = nth(b, i)) && len < size; i++)
		if (!over_of(ops))
			len += (size_t)snprintf(buf + len, size - len, "%s%s",
						i ? ", " : "", ops->name);
}

const struct vfs_ops *backends_over(const struct backends *b,
				    const struct vfs_ops *filter,
				    const struct vfs_ops *below)
{
	const struct vfs_ops *ops;
	const struct over *o;

	for (unsigned i = 0; (ops = nth(b, i)); i++) {
		o = over_of(ops);
		if (o && o->filter == filter && ops->below == below)
			break;
	}
	return ops;
}

/* ---- adding */

/* Replaces the functions of @to by @filter's. */
static void replace_operations(struct vfs_ops *to, const struct vfs_ops *filter)
{
	void *ours, *theirs;

	for (size_t at = offsetof(struct vfs_ops, mount); at < sizeof(*to);
	     at += sizeof(ours)) {
		memcpy(&ours, (const char *)filter + at, sizeof(ours));
		memcpy(&theirs, (const char *)to + at, sizeof(theirs));
		if (ours && theirs)
			memcpy((char *)to + at, &ours, sizeof(ours));
	}
	/* Data must not go around the filter. */
	if (filter->read && !filter->read_pipe)
		to->read_pipe = NULL;
	/* The filter can give operations away even if the backend does not. */
	if (filter->cancel)
		to->cancel = filter->cancel;
}

static int append_table(struct backends *b, const struct vfs_ops *ops)
{
	const struct vfs_ops **grown = reallocarray(b->added, b->nadded + 1,
						    sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	b->added = grown;
	b->added[b->nadded++] = ops;
	return 0;
}

static int add_over(struct backends *b, const struct vfs_ops *filter,
		    const struct vfs_ops *below)
{
	struct over *o = calloc(1, sizeof(*o));
	int err = o ? append_table(b, &o->ops) : -ENOMEM;

	if (err < 0) {
		free(o);
		return err;
	}
	snprintf(o->name, sizeof(o->name), "%s:%s", filter->name, below->name);
	o->filter = filter;
	o->ops = *below;
	replace_operations(&o->ops, filter);
	o->ops.name = o->name;
	o->ops.options_size = backend_filter_at(below) + filter->options_size;
	o->ops.mount = mount_over;
	o->ops.attach = filter->attach;
	o->ops.below = below;
	return 0;
}

int backends_add(struct backends *b, const struct vfs_ops *ops)
{
	const struct vfs_ops *old;
	int err = append_table(b, ops);

	for (unsigned i = 0; err == 0 && (old = nth(b, i)) != ops; i++) {
		if (ops->attach && !old->attach)
			err = add_over(b, ops, old);
		else if (!ops->attach && old->attach && !over_of(old))
			err = add_over(b, old, ops);
	}
	return err;
}

/* Checks that only root and the process's user can change @path. */
static int check_owner(const char *path, bool is_dir, char **err)
{
	struct stat st;

	/* Don't follow links: the check is of the file that is loaded. */
	if ((is_dir ? stat(path, &st) : lstat(path, &st)) < 0)
		return fail_with(err, "%s: %s", path, strerror(errno));
	if (!is_dir && !S_ISREG(st.st_mode))
		return fail_with(err, "%s is not a regular file", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return fail_with(err, "%s belongs to user %u; a module and "
				   "its directory have to be root's", path,
				   st.st_uid);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return fail_with(err, "%s can be written by others than its "
				   "owner (mode %03o)", path,
				   st.st_mode & 0777u);
	return 0;
}

#define OPERATION(name)	{ #name, offsetof(struct vfs_ops, name) }

/* These must not be NULL. */
static const struct { const char *name; size_t offset; } operations[] = {
	OPERATION(mount), OPERATION(unmount), OPERATION(root),
	OPERATION(open_handle), OPERATION(handle), OPERATION(node_free),
	OPERATION(getattr), OPERATION(setattr), OPERATION(access),
	OPERATION(lookup), OPERATION(readlink), OPERATION(read),
	OPERATION(write), OPERATION(commit), OPERATION(create),
	OPERATION(make), OPERATION(remove), OPERATION(rename),
	OPERATION(link), OPERATION(readdir), OPERATION(statfs),
	OPERATION(limits),
};

/* True if the fields of all options lie in the block. */
static bool options_fit(const struct vfs_ops *ops)
{
	for (unsigned i = 0; i < ops->noptions; i++) {
		const struct vfs_option *row = ops->options + i;
		size_t room, need = sizeof(uint64_t);

		if (!ops->options || !row->name || row->type > VFS_TEXT ||
		    row->offset >= ops->options_size)
			return false;
		room = ops->options_size - row->offset;
		if (row->type == VFS_FLAG)
			need = sizeof(bool);
		/* A text ends with a null byte. */
		if (row->type == VFS_TEXT ? row->max >= room : need > room)
			return false;
	}
	return true;
}

static int check_module(const struct vfs_ops *ops, const char *path,
			const char *name, char **err)
{
	/* Fields after the version can be elsewhere in another version. */
	if (ops->version != GANNET_VFS_VERSION)
		return fail_with(err, "%s was built for version %u of "
				   "gannet/vfs.h; this gannetd has version %u",
				   path, ops->version, GANNET_VFS_VERSION);
	if (!ops->name || strcmp(ops->name, name) != 0)
		return fail_with(err, "%s says that its name is '%s'", path,
				   ops->name ? ops->name : "");
	for (unsigned i = 0; !ops->attach && i < ARRAY_SIZE(operations); i++) {
		void *op;

		memcpy(&op, (const char *)ops + operations[i].offset,
		       sizeof(op));
		if (!op)
			return fail_with(err, "%s has no operation %s", path,
					   operations[i].name);
	}
	if (!options_fit(ops))
		return fail_with(err, "%s has an option outside of its block",
				   path);
	return 0;
}

static int open_module(const char *path, const char *symbol, const void **out,
		       char **err)
{
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	int ret = 0;

	if (!module)
		return fail_with(err, "%s", dlerror());
	*out = dlsym(module, symbol);
	if (!*out)
		ret = fail_with(err, "%s has no %s", path, symbol);
	dlclose(module);		/* stays, for RTLD_NODELETE */
	return ret;
}

static int open_safely(const char *dir, const char *path, const char *symbol,
		       const void **out, char **err)
{
	int ret = check_owner(dir, true, err);

	if (ret == 0)
		ret = check_owner(path, false, err);
	return ret == 0 ? open_module(path, symbol, out, err) : ret;
}

int module_load(const char *dir, const char *name, const char *symbol,
		const void **out, char **err)
{
	char *path;
	int ret;

	*err = NULL;
	if (asprintf(&path, "%s/%s.so", dir, name) < 0)
		return -ENOMEM;
	ret = open_safely(dir, path, symbol, out, err);
	free(path);
	return ret;
}

int backends_load(struct backends *b, const char *dir, const char *name,
		  char **err)
{
	size_t len = strlen(name);
	const struct vfs_ops *ops;
	const void *found = NULL;
	char *path;
	int ret;

	*err = NULL;
	if (len == 0 || len > NAME_MAX_LEN || strspn(name, NAME_CHARS) < len)
		return fail_with(err, "'%s' is not a name: expected 1 to %d "
				   "of a to z, 0 to 9, '-' and '_'", name,
				   NAME_MAX_LEN);
	if (backends_find(b, name, len))
		return fail_with(err, "there is a backend '%s' already",
				   name);
	if (asprintf(&path, "%s/%s.so", dir, name) < 0)
		return -ENOMEM;
	ret = open_safely(dir, path, "gannet_backend", &found, err);
	ops = found;
	if (ret == 0)
		ret = check_module(ops, path, name, err);
	if (ret == 0)
		ret = backends_add(b, ops);
	free(path);
	return ret;
}
