/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tests of every backend of gannet/vfs.h.  tests/unit/test_backends.c has
 * the list of backends; tests of one backend can use the helpers.
 */
#pragma once

#include <check.h>

#include "lib/thread.h"
#include "tests/unit/vfs_do.h"
#include "vfs/backends.h"

struct vfs_suite_params {
	const struct vfs_ops *ops;
	/* Before each test: fills in the arguments of mount.  After it. */
	void (*setup)(struct vfs_config *config);
	void (*teardown)(void);
	/* The user of most tests, who may write to the root directory. */
	struct vfs_cred me;
	/* True if the backend can act for any user.  Else only me's tests
	 * run. */
	bool as_anyone;
	/* True for a backend that answers EROFS to each change. */
	bool read_only;
	/* True for a backend that takes holes for used. */
	bool used_is_size;
	unsigned runs;		/* with as many setups; 0: one */
	/* Do cookies change their meaning when entries come or go?  Known
	 * after setup; NULL: no. */
	const bool *counted_cookies;
	/* The root, for local processes; NULL: no access for them. */
	const char *dir;
};

/* @params is borrowed for good. */
void vfs_suite_add(Suite *suite, const struct vfs_suite_params *params);

/* The rest is for the tests: the mounted tree, and short ways to use it. */
struct vfs_suite_state {
	const struct vfs_suite_params *params;
	const struct vfs_ops *ops;
	struct vfs_fs	*fs;
	struct vfs_node	*root;
	struct vfs_op	 who;		/* me */
};

extern struct vfs_suite_state vt;

/* For the backend's own cases: tcase_add_checked_fixture(). */
void vfs_suite_begin(void);
void vfs_suite_end(void);
void vfs_suite_use(const struct vfs_suite_params *params);

#define VT_ALICE	1001u
#define VT_BOB		1002u
#define VT_GROUP	2001u

struct vfs_name vt_name(const char *s);
struct vfs_op vt_as(const struct vfs_cred *cred);
struct vfs_cred vt_user(uint32_t uid, uint32_t gid);
/* These insist; the node is the caller's. */
struct vfs_node *vt_file(struct vfs_node *dir, const char *name);
struct vfs_node *vt_dir(struct vfs_node *dir, const char *name);
struct vfs_node *vt_find(struct vfs_node *dir, const char *name);
struct vfs_attr vt_attr(struct vfs_node *n);
void vt_write(struct vfs_node *n, uint64_t off, const char *text);
void vt_chmod(struct vfs_node *n, uint32_t mode);
/* These return 0 or -errno. */
int vt_create(const struct vfs_op *who, struct vfs_node *dir,
	      const char *name, const struct vfs_create *how,
	      struct vfs_node **out);
int vt_make(const struct vfs_op *who, struct vfs_node *dir,
	    const char *name, enum vfs_type type, const char *target);
int vt_lookup(struct vfs_node *dir, const char *name);
int vt_remove(struct vfs_node *dir, const char *name);
int vt_rmdir(struct vfs_node *dir, const char *name);
int vt_rename(struct vfs_node *from, const char *name, struct vfs_node *to,
	      const char *new_name);
int vt_link(struct vfs_node *n, struct vfs_node *dir, const char *name);
int vt_set_size(struct vfs_node *n, uint64_t size);
int64_t vt_read(struct vfs_node *n, uint64_t off, void *buf, size_t len,
		bool *eof);
/* The file @n's handle names, or -errno. */
int vt_reopen(struct vfs_node *n, struct vfs_node **out);
/* 7 for the entry "e7"; -1 for another. */
int vt_number(const struct vfs_dirent *d);
/* Counts each of "e0".."e<n-1>" in @dir, read @step at a time. */
void vt_list(struct vfs_node *dir, unsigned step, uint8_t *seen, unsigned n);

/* The other files of cases. */
void vfs_suite_add_still(TCase *tc);
void vfs_suite_add_names(TCase *tc);
void vfs_suite_add_data(TCase *tc);
void vfs_suite_add_users(TCase *tc);
void vfs_suite_add_threads(TCase *tc);
