/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A data server of pNFS, loosely coupled to its metadata server (RFC 8435),
 * which acts as root here, gives clients synthetic ids, and changes these to
 * keep clients out.  Over the memory backend and, as root, a directory.
 */
#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/server/nfs_client.h"
#include "tests/unit/runner.h"

#define WRITER		40001	/* synthetic, of a layout for READ and WRITE */
#define READERS		40002	/* the group of one for READ */
#define READER		40003
#define LATER_WRITER	40004
#define LATER_READERS	40005
#define NONE		UINT32_MAX

static char dir[] = "/tmp/gannet-flexfiles-XXXXXX";
static struct nfs_client writer, reader;
static nfs_fh3 file;

static void claim(struct nfs_client *c, uint32_t uid, uint32_t gid)
{
	rpc_set_auth(c->rpc, libnfs_authunix_create("client", uid, gid, 0,
						    NULL));
}

static nfsstat3 set(struct nfs_client *c, uint32_t uid, uint32_t gid,
		    uint32_t mode)
{
	SETATTR3args a = { .object = file };
	sattr3 *to = &a.new_attributes;
	SETATTR3res r;

	to->uid.set_it = uid != NONE;
	to->uid.set_uid3_u.uid = uid;
	to->gid.set_it = gid != NONE;
	to->gid.set_gid3_u.gid = gid;
	to->mode.set_it = mode != NONE;
	to->mode.set_mode3_u.mode = mode;
	nfs_call(c, setattr, &a, &r);
	return r.status;
}

static nfsstat3 put(struct nfs_client *c)
{
	WRITE3args a = { .file = file, .count = 4, .stable = UNSTABLE,
			 .data = { 4, (char *)(uintptr_t)"data" } };
	WRITE3res r;

	nfs_call(c, write, &a, &r);
	return r.status;
}

static nfsstat3 get(struct nfs_client *c)
{
	READ3args a = { .file = file, .count = 4 };
	READ3res r;

	nfs_call(c, read, &a, &r);
	return r.status;
}

static nfsstat3 sync_file(struct nfs_client *c)
{
	COMMIT3args a = { .file = file };
	COMMIT3res r;

	nfs_call(c, commit, &a, &r);
	return r.status;
}

static nfsstat3 look_up(struct nfs_client *c)
{
	LOOKUP3args a = { .what = { top, (char *)(uintptr_t)"f" } };
	LOOKUP3res r;

	nfs_call(c, lookup, &a, &r);
	return r.status;
}

/* A metadata server makes a file in a directory that clients can't search: they
 * get its filehandle in the layout. */
static void make_file(void)
{
	SETATTR3args a = { .object = top };
	static char copy[NFS3_FHSIZE];
	SETATTR3res r;

	a.new_attributes.mode.set_it = 1;
	a.new_attributes.mode.set_mode3_u.mode = 0700;
	nfs_call(&root, setattr, &a, &r);
	ck_assert_int_eq(r.status, NFS3_OK);
	file = nfs_make_file(top, "f", "");
	memcpy(copy, file.data.data_val, file.data.data_len);
	file.data.data_val = copy;
	ck_assert_int_eq(set(&root, WRITER, READERS, 0640), NFS3_OK);
}

/* @i: 0 for memory, 1 for a directory */
static void start(int i)
{
	static char exports[160];
	struct harness_config config = { .exports = exports };

	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(exports, sizeof(exports),
		 "mem:/mem 127.0.0.1(rw,insecure,no_root_squash)\n"
		 "posix:%s 127.0.0.1(rw,insecure,no_root_squash)\n", dir);
	nfs_setup_with(&config);
	if (i)
		ck_assert_int_eq(nfs_mnt(dir, &top), MNT3_OK);
	nfs_client_open(&writer, srv.port, NFS_PROGRAM, NFS_V3, WRITER);
	nfs_client_open(&reader, srv.port, NFS_PROGRAM, NFS_V3, READER);
	claim(&writer, WRITER, WRITER);
	claim(&reader, READER, READERS);
	make_file();
}

static int drop(const char *path, const struct stat *st, int type,
		struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void stop(void)
{
	nfs_client_close(&writer);
	nfs_client_close(&reader);
	nfs_teardown();
	nftw(dir, drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* The second kind is a directory: only root can change its owners. */
#define KINDS	(geteuid() == 0 ? 2 : 1)

/* RFC 8435 section 2.2: the owner may read and write, the group may read. */
TEST_LOOP(a_layouts_ids_give_the_rights_of_the_layout, 0, KINDS)
{
	start(_i);
	ck_assert_int_eq(put(&writer), NFS3_OK);
	ck_assert_int_eq(get(&writer), NFS3_OK);
	ck_assert_int_eq(sync_file(&writer), NFS3_OK);
	ck_assert_int_eq(get(&reader), NFS3_OK);
	ck_assert_int_eq(put(&reader), NFS3ERR_ACCES);
	ck_assert_int_eq(look_up(&writer), NFS3ERR_ACCES);
	ck_assert_int_eq(set(&reader, NONE, NONE, 0666), NFS3ERR_PERM);
	claim(&reader, READER, READER);
	ck_assert_int_eq(get(&reader), NFS3ERR_ACCES);
	stop();
}

/* RFC 8435 section 2.2: other owners fence all clients, for whose calls the
 * server has the file open. */
TEST_LOOP(other_ids_fence_clients_at_once, 0, KINDS)
{
	start(_i);
	ck_assert_int_eq(put(&writer), NFS3_OK);
	ck_assert_int_eq(get(&reader), NFS3_OK);
	ck_assert_int_eq(set(&root, LATER_WRITER, LATER_READERS, NONE),
			 NFS3_OK);
	ck_assert_int_eq(put(&writer), NFS3ERR_ACCES);
	ck_assert_int_eq(get(&writer), NFS3ERR_ACCES);
	ck_assert_int_eq(get(&reader), NFS3ERR_ACCES);
	ck_assert_int_eq(set(&writer, WRITER, NONE, NONE), NFS3ERR_PERM);

	claim(&writer, LATER_WRITER, LATER_WRITER);
	claim(&reader, READER, LATER_READERS);
	ck_assert_int_eq(put(&writer), NFS3_OK);
	ck_assert_int_eq(get(&reader), NFS3_OK);
	stop();
}

/* Of the group, not of the owner, whom servers of NFSv3 let pass (RFC 1813
 * section 4.4). */
TEST_LOOP(a_mode_fences_readers_and_not_the_writer, 0, KINDS)
{
	start(_i);
	ck_assert_int_eq(put(&writer), NFS3_OK);
	ck_assert_int_eq(get(&reader), NFS3_OK);
	ck_assert_int_eq(set(&root, NONE, NONE, 0), NFS3_OK);
	ck_assert_int_eq(get(&reader), NFS3ERR_ACCES);
	ck_assert_int_eq(put(&writer), NFS3_OK);
	stop();
}
