/* SPDX-License-Identifier: BSD-2-Clause */
/* The fixture and the helpers of the backends' common tests. */
#include "tests/unit/vfs_suite.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <urcu.h>

struct vfs_suite_state vt;

void vfs_suite_use(const struct vfs_suite_params *params)
{
	vt.params = params;
	vt.ops = params->ops;
}

void vfs_suite_begin(void)
{
	struct vfs_config config = { 0 };
	struct vfs_cred root = { 0 };
	struct vfs_op who = { .cred = &root };
	struct vfs_setattr open = { .set = VFS_SET_MODE, .mode = 0777 };

	rcu_register_thread();
	config.ops = vt.ops;
	vt.params->setup(&config);
	ck_assert_int_eq(vt.ops->mount(&config, &vt.fs), 0);
	ck_assert_int_eq(vt.ops->root(vt.fs, &vt.root), 0);
	vt.who = vt_as(&vt.params->me);
	if (vt.params->as_anyone)
		ck_assert_int_eq(DO(vt.ops->setattr, &who, vt.root,
				    .set = &open), 0);
}

void vfs_suite_end(void)
{
	vfs_node_put(vt.root);
	vt.ops->unmount(vt.fs);
	vt.params->teardown();
	rcu_unregister_thread();
}

void vfs_suite_add(Suite *suite, const struct vfs_suite_params *params)
{
	TCase *tc = tcase_create("any backend");

	vfs_suite_use(params);
	tcase_add_checked_fixture(tc, vfs_suite_begin, vfs_suite_end);
	tcase_set_timeout(tc, 60);
	vfs_suite_add_still(tc);
	suite_add_tcase(suite, tc);
	if (params->read_only)
		return;
	vfs_suite_add_names(tc);
	vfs_suite_add_data(tc);
	if (params->as_anyone)
		vfs_suite_add_users(tc);
	vfs_suite_add_threads(tc);
}

struct vfs_name vt_name(const char *s)
{
	return (struct vfs_name){ s, (uint32_t)strlen(s) };
}

struct vfs_op vt_as(const struct vfs_cred *cred)
{
	return (struct vfs_op){ .cred = cred };
}

struct vfs_cred vt_user(uint32_t uid, uint32_t gid)
{
	return (struct vfs_cred){ .uid = uid, .gid = gid };
}

int vt_create(const struct vfs_op *who, struct vfs_node *dir,
	      const char *name, const struct vfs_create *how,
	      struct vfs_node **out)
{
	return GET(out, *out, vt.ops->create, who, dir, .name = vt_name(name),
		   .create = how);
}

int vt_make(const struct vfs_op *who, struct vfs_node *dir,
	    const char *name, enum vfs_type type, const char *target)
{
	struct vfs_make what = {
		.type = type,
		.attr = { .set = VFS_SET_MODE, .mode = 0755 },
		.target = target,
		.target_len = target ? (uint32_t)strlen(target) : 0,
		.rdev_major = 4, .rdev_minor = 64,
	};
	struct vfs_node *n;
	int err = GET(out, n, vt.ops->make, who, dir, .name = vt_name(name),
		      .make = &what);

	if (err == 0)
		vfs_node_put(n);
	return err;
}

struct vfs_node *vt_find(struct vfs_node *dir, const char *name)
{
	struct vfs_node *n = NULL;

	ck_assert_int_eq(GET(out, n, vt.ops->lookup, &vt.who, dir,
			     .name = vt_name(name)), 0);
	return n;
}

struct vfs_node *vt_file(struct vfs_node *dir, const char *name)
{
	struct vfs_create how = {
		.how = VFS_CREATE_GUARDED,
		.attr = { .set = VFS_SET_MODE, .mode = 0644 },
	};
	struct vfs_node *n = NULL;

	ck_assert_int_eq(vt_create(&vt.who, dir, name, &how, &n), 0);
	return n;
}

struct vfs_node *vt_dir(struct vfs_node *dir, const char *name)
{
	ck_assert_int_eq(vt_make(&vt.who, dir, name, VFS_DIR, NULL), 0);
	return vt_find(dir, name);
}

struct vfs_attr vt_attr(struct vfs_node *n)
{
	struct vfs_attr attr;

	ck_assert_int_eq(DO(vt.ops->getattr, &vt.who, n, .attr = &attr), 0);
	return attr;
}

void vt_write(struct vfs_node *n, uint64_t off, const char *text)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	enum vfs_stable stable = VFS_FILE_SYNC;

	ck_assert_int_eq(DO(vt.ops->write, &vt.who, n,
			    .write = { .off = off, .iov = &iov, .niov = 1,
				       .stable = stable }),
			 (int64_t)iov.iov_len);
}

void vt_chmod(struct vfs_node *n, uint32_t mode)
{
	struct vfs_setattr set = { .set = VFS_SET_MODE, .mode = mode };

	ck_assert_int_eq(DO(vt.ops->setattr, &vt.who, n, .set = &set), 0);
}

int vt_lookup(struct vfs_node *dir, const char *name)
{
	struct vfs_node *n;
	int err = GET(out, n, vt.ops->lookup, &vt.who, dir,
		      .name = vt_name(name));

	if (err == 0)
		vfs_node_put(n);
	return err;
}

int vt_remove(struct vfs_node *dir, const char *name)
{
	return DO(vt.ops->remove, &vt.who, dir, .name = vt_name(name));
}

int vt_rmdir(struct vfs_node *dir, const char *name)
{
	return DO(vt.ops->remove, &vt.who, dir, .name = vt_name(name),
		  .is_dir = true);
}

int vt_rename(struct vfs_node *from, const char *name, struct vfs_node *to,
	      const char *new_name)
{
	return DO(vt.ops->rename, &vt.who, from, .name = vt_name(name),
		  .to = { .dir = to, .name = vt_name(new_name) });
}

int vt_link(struct vfs_node *n, struct vfs_node *dir, const char *name)
{
	return DO(vt.ops->link, &vt.who, n,
		  .to = { .dir = dir, .name = vt_name(name) });
}

int vt_set_size(struct vfs_node *n, uint64_t size)
{
	struct vfs_setattr set = { .set = VFS_SET_SIZE, .size = size };

	return DO(vt.ops->setattr, &vt.who, n, .set = &set);
}

int64_t vt_read(struct vfs_node *n, uint64_t off, void *buf, size_t len,
		bool *eof)
{
	struct iovec iov = { buf, len };

	return GET(eof, *eof, vt.ops->read, &vt.who, n,
		   .read = { .off = off, .iov = &iov, .niov = 1 });
}

int vt_reopen(struct vfs_node *n, struct vfs_node **out)
{
	struct vfs_handle h;

	vt.ops->handle(n, &h);
	return GET(out, *out, vt.ops->open_handle, &vt.who, NULL,
		   .open = { .fs = vt.fs, .handle = &h });
}

int vt_number(const struct vfs_dirent *d)
{
	char name[VFS_NAME_MAX + 1];
	int i;

	snprintf(name, sizeof(name), "%.*s", (int)d->name.len, d->name.s);
	return sscanf(name, "e%d", &i) == 1 ? i : -1;
}

struct list_arg {
	unsigned  left;
	uint64_t  cookie;
	uint8_t	 *seen;
	unsigned  n;
};

static bool list_emit(void *argp, const struct vfs_dirent *d)
{
	struct list_arg *arg = argp;
	int i = vt_number(d);

	if (arg->left == 0)
		return false;
	arg->left--;
	ck_assert_uint_gt(d->cookie, 0);
	ck_assert_uint_lt(d->cookie, (uint64_t)1 << 63);
	arg->cookie = d->cookie;
	if (i >= 0 && (unsigned)i < arg->n)
		arg->seen[i]++;
	return true;
}

void vt_list(struct vfs_node *dir, unsigned step, uint8_t *seen, unsigned n)
{
	struct list_arg arg = { .seen = seen, .n = n };
	bool eof = false;

	while (!eof) {
		arg.left = step;
		ck_assert_int_eq(GET(eof, eof, vt.ops->readdir, &vt.who, dir,
				     .readdir = { .cookie = arg.cookie,
						  .emit = list_emit,
						  .arg = &arg }), 0);
	}
}
