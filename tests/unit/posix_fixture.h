/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * posix_fixture - a directory that the posix backend has mounted.
 *
 * Each test runs in four worlds: on the build's file system and on tmpfs, with
 * the system's handles (where the process may open them) and with the table of
 * files.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/runner.h"
#include "tests/unit/vfs_do.h"
#include "vfs/posix/cache.h"
#include "vfs/posix/change.h"
#include "vfs/posix/handle.h"
#include "vfs/posix/node.h"
#include "vfs/posix/ops.h"
#include "vfs/posix/table/places.h"

#define WORLDS 4

struct world {
	char dir[512];			/* the exported directory */
	char state[512];
	struct vfs_config config;
	struct posix_options options;	/* config's */
	struct vfs_fs *fs;
	struct vfs_node *root;
	struct vfs_cred cred;		/* whose calls the helpers make */
	struct vfs_op who;
};

/* The world that the tests of this process are in. */
extern struct world w;

/* Opens world @i with an empty directory; @options or NULL. */
void world_open(int i, const struct posix_options *options);
/* As after the server's restart. */
void world_restart(void);
void world_close(void);
/* Runs all tests, and removes leftovers of failed ones. */
int world_run(void);
/* Of all these: makes the directories, but mounts nothing; removes them. */
void world_base(void);
void world_base_give(uid_t uid);
void world_base_remove(void);
void world_prepare(int i, const struct posix_options *options);
void world_mount(void);
void world_remove(void);
bool world_on_tmpfs(void);

/* "a/b/c" below the exported directory, for the local process's doings. */
const char *local(const char *path);
/* Waits until names and verdicts of that file or directory, which were learned
 * now, would be kept. */
void world_settle(const char *path);
struct vfs_name name_of(const char *s);
/* A thread waits for its turn to sync the whole file system. */
bool world_sync_waits(void);

/* Each of these asserts success unless it returns an error. */
struct vfs_node *must_lookup(struct vfs_node *dir, const char *name);
int  try_lookup(struct vfs_node *dir, const char *name);
struct vfs_node *must_create(struct vfs_node *dir, const char *name);
struct vfs_node *must_mkdir(struct vfs_node *dir, const char *name);
void must_remove(struct vfs_node *dir, const char *name, bool is_dir);
int  try_open(const struct vfs_handle *h);
/* The same, but comes again as long as it is told to. */
int  try_open_again(const struct vfs_handle *h);
struct vfs_node *must_open(const struct vfs_handle *h);
struct vfs_handle handle_of(struct vfs_node *n);
struct vfs_attr attr_of(struct vfs_node *n);
int64_t write_str(struct vfs_node *n, uint64_t off, const char *s,
		  enum vfs_stable *stable);
/* Reads at most 63 bytes as a string. */
int64_t read_str(struct vfs_node *n, uint64_t off, char out[64], bool *eof);

#define assert_ok(x)	ck_assert_int_eq((x), 0)
#define assert_err(x, e) ck_assert_int_eq((x), -(e))
