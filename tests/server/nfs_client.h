/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nfs_client - libnfs's raw calls, one at a time, and the harness that they
 * go to.
 *
 * A result is libnfs's struct.  The data that it points to (handles, data,
 * entries) was copied and stays until the client is closed.
 */
#pragma once

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-mount.h>
#include <nfsc/libnfs-raw-nfs.h>

#include "tests/server/harness.h"

#define NFS_CLIENT_KEEP	(8u << 20)

struct nfs_client {
	struct rpc_context *rpc;
	char	*kept;			/* the data that results point to */
	size_t	 used;
};

/* Connects to @port as @uid, gid 100.  @program is NFS or MOUNT. */
void nfs_client_open(struct nfs_client *c, uint16_t port, int program,
		     int version, int uid);
void nfs_client_close(struct nfs_client *c);

/* One call under way. */
struct nfs_wait {
	struct nfs_client *c;
	void	*res;
	size_t	 size;
	void	 (*keep)(struct nfs_client *c, void *res);
	bool	 done;
	int	 status;		/* RPC_STATUS_... */
};

void nfs_done(struct rpc_context *rpc, int status, void *data, void *arg);
/* Serves the connection until the call is over; returns its RPC status. */
int nfs_wait(struct nfs_wait *w);

void nfs_keep_none(struct nfs_client *c, void *res);
void nfs_keep_lookup(struct nfs_client *c, void *res);
void nfs_keep_create(struct nfs_client *c, void *res);
void nfs_keep_mkdir(struct nfs_client *c, void *res);
void nfs_keep_symlink(struct nfs_client *c, void *res);
void nfs_keep_mknod(struct nfs_client *c, void *res);
void nfs_keep_read(struct nfs_client *c, void *res);
void nfs_keep_readlink(struct nfs_client *c, void *res);
void nfs_keep_readdir(struct nfs_client *c, void *res);
void nfs_keep_readdirplus(struct nfs_client *c, void *res);
void nfs_keep_mnt(struct nfs_client *c, void *res);
void nfs_keep_dump(struct nfs_client *c, void *res);
void nfs_keep_export(struct nfs_client *c, void *res);

#define nfs_keeper(res) _Generic((res), \
	LOOKUP3res *: nfs_keep_lookup, \
	CREATE3res *: nfs_keep_create, \
	MKDIR3res *: nfs_keep_mkdir, \
	SYMLINK3res *: nfs_keep_symlink, \
	MKNOD3res *: nfs_keep_mknod, \
	READ3res *: nfs_keep_read, \
	READLINK3res *: nfs_keep_readlink, \
	READDIR3res *: nfs_keep_readdir, \
	READDIRPLUS3res *: nfs_keep_readdirplus, \
	mountres3 *: nfs_keep_mnt, \
	mountlist *: nfs_keep_dump, \
	exports *: nfs_keep_export, \
	default: nfs_keep_none)

/*
 * The call @fn of libnfs-raw.h with arguments.  Its RPC status.
 */
#define nfs_try(client, fn, args, out) ({ \
	struct nfs_wait w_ = { .c = (client), .res = (out), \
			       .size = sizeof(*(out)), \
			       .keep = nfs_keeper(out) }; \
	ck_assert_int_eq(fn((client)->rpc, nfs_done, args, &w_), 0); \
	nfs_wait(&w_); })

/* The NFS procedure @proc, which must be answered. */
#define nfs_call(client, proc, args, out) \
	ck_assert_int_eq(nfs_try(client, rpc_nfs3_##proc##_async, args, out), \
			 RPC_STATUS_SUCCESS)

/* The usual: a server on fault_vfs, a client that is root, and one that is
 * not.  Checked fixtures. */
extern struct harness srv;
extern struct nfs_client root, user;
extern nfs_fh3 top;			/* of the export /mem */
#define USER_UID	1000

void nfs_setup(void);
void nfs_teardown(void);
/* nfs_setup() with another harness. */
void nfs_setup_with(const struct harness_config *config);

/* Short ways to begin a test; each must succeed, as root. */
nfs_fh3 nfs_make_file(nfs_fh3 dir, const char *name, const char *data);
nfs_fh3 nfs_make_dir(nfs_fh3 dir, const char *name);
nfs_fh3 nfs_make_link(nfs_fh3 dir, const char *name, const char *target);
fattr3 nfs_attr(nfs_fh3 fh);
/* The status of LOOKUP. */
int nfs_exists(nfs_fh3 dir, const char *name);
bool nfs_same_fh(nfs_fh3 a, nfs_fh3 b);
/* True if the wcc data is whole: attributes before and after. */
bool nfs_full_wcc(const wcc_data *wcc);
/* MNT's status, and the handle, which lasts until the next call. */
int nfs_mnt(const char *path, nfs_fh3 *fh);
