/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFSACL version 3 by all doors of the server, on real files.
 *
 * They lie in shared memory, since a tmpfs takes lists of any length.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "wire/nfs3.h"
#include "tests/server/doors.h"
#include "tests/server/late_vfs.h"
#include "tests/unit/runner.h"

#define U	0x01
#define NU	0x02
#define G	0x04
#define NG	0x08
#define M	0x10
#define O	0x20
#define D	NFSACL_TYPE_DEFAULT
#define BOTH	(NFSACL_ACL | NFSACL_DFACL)
#define ACCESS_XATTR "system.posix_acl_access"
#define GARBAGE	0x10000

struct ace {
	uint32_t type, id, perm;
};

struct list {
	uint32_t   n;
	struct ace e[NFSACL_MAX_ENTRIES + 1];
};

static const struct list none;
static char dir[] = "/dev/shm/gannet-nfsacl-XXXXXX";
static char file[64], sub[64];
static struct doors d;
static struct caller c;
static struct caller_cred me;
static struct list access_list, default_list;	/* of the last GETACL */
static uint32_t counts[2];

/* The posix backend, perhaps behind the filter of late_vfs.h. */
static struct vfs_ops backend;

static int mount_filtered(const struct vfs_config *config, struct vfs_fs **out)
{
	int err = posix_vfs_ops.mount(config, out);

	if (err == 0)
		(*out)->ops = &backend;
	return err;
}

static void open_with(const char *options, enum door door)
{
	char exports[160];
	struct harness_config hc = { .exports = exports };

	snprintf(exports, sizeof(exports), "%s 127.0.0.1(insecure,"
		 "no_root_squash,%s)\nmem:/mem 127.0.0.1(insecure,rw)\n",
		 dir, options);
	backend = posix_vfs_ops;
	backend.mount = mount_filtered;
	late_wrap(&backend);
	hc.backend = &backend;
	doors_open(&d, &hc);
	caller_open(&c, &d, door, false);
	me.uid = geteuid();
	me.gid = getegid();
}

static void close_all(void)
{
	caller_close(&c);
	doors_close(&d);
}

static void begin_proc(uint32_t proc, const char *export, const char *name)
{
	struct nfs3_fh fh;

	harness_root(&d.srv, export, &fh);
	if (name) {
		caller_begin(&c, NFS3_PROGRAM, NFS3_VERSION, NFSPROC3_LOOKUP,
			     &me);
		xdr_put_opaque(&c.out, fh.data, fh.len);
		xdr_put_opaque(&c.out, name, (uint32_t)strlen(name));
		ck_assert_uint_eq(caller_send(&c), RPC_SUCCESS);
		ck_assert_uint_eq(xdr_get_u32(&c.in), NFS3_OK);
		fh = harness_get_fh(&c.in);
	}
	caller_begin(&c, NFSACL_PROGRAM, NFSACL_VERSION, proc, &me);
	xdr_put_opaque(&c.out, fh.data, fh.len);
}

/* The status; both results go on with the file's attributes. */
static uint32_t send_acl(void)
{
	uint32_t accepted = caller_send(&c), status;

	if (accepted != RPC_SUCCESS)
		return GARBAGE + accepted;
	status = xdr_get_u32(&c.in);
	ck_assert(xdr_get_bool(&c.in));
	xdr_get_fixed(&c.in, 84);
	return status;
}

static void get_list(struct list *l, uint32_t *count)
{
	*count = xdr_get_u32(&c.in);
	l->n = xdr_get_count(&c.in, NFSACL_MAX_ENTRIES);
	for (uint32_t i = 0; i < l->n; i++) {
		l->e[i].type = xdr_get_u32(&c.in);
		l->e[i].id = xdr_get_u32(&c.in);
		l->e[i].perm = xdr_get_u32(&c.in);
	}
}

static uint32_t getacl(const char *export, const char *name, uint32_t mask)
{
	uint32_t status;

	begin_proc(NFSACLPROC3_GETACL, export, name);
	xdr_put_u32(&c.out, mask);
	status = send_acl();
	if (status == NFS3_OK) {
		ck_assert_uint_eq(xdr_get_u32(&c.in), mask);
		get_list(&access_list, &counts[0]);
		get_list(&default_list, &counts[1]);
		ck_assert(xdr_ok(&c.in) && xdr_left(&c.in) == 0);
	}
	return status;
}

static void put_list(const struct list *l)
{
	xdr_put_u32(&c.out, l->n);
	xdr_put_u32(&c.out, l->n);
	for (uint32_t i = 0; i < l->n; i++) {
		xdr_put_u32(&c.out, l->e[i].type);
		xdr_put_u32(&c.out, l->e[i].id);
		xdr_put_u32(&c.out, l->e[i].perm);
	}
}

static uint32_t setacl(const char *export, const char *name, uint32_t mask,
		       const struct list *access, const struct list *dflt)
{
	begin_proc(NFSACLPROC3_SETACL, export, name);
	xdr_put_u32(&c.out, mask);
	put_list(access);
	put_list(dflt);
	return send_acl();
}

static void same(const struct list *a, const struct list *b)
{
	ck_assert_uint_eq(a->n, b->n);
	ck_assert_mem_eq(a->e, b->e, a->n * sizeof(a->e[0]));
}

/* @n entries as GETACL gives them back. */
static void fill(struct list *l, uint32_t n, uint32_t flag)
{
	uint32_t i = 0;

	l->n = n;
	l->e[i++] = (struct ace){ flag | U, me.uid, 7 };
	for (; i < n - 3; i++)
		l->e[i] = (struct ace){ flag | NU, 100000 + i, i & 7 };
	l->e[i++] = (struct ace){ flag | G, me.gid, 5 };
	l->e[i++] = (struct ace){ flag | M, 0, 7 };
	l->e[i++] = (struct ace){ flag | O, 0, 0 };
}

static void setup(void)
{
	mkdir(sub, 0750);
	chmod(sub, 0750);
	fclose(fopen(file, "w"));
	chmod(file, 0640);
}

static void teardown(void)
{
	unlink(file);
	rmdir(sub);
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST_LOOP(lists_of_any_length_go_by_every_door, DOOR_TCP, NDOORS)
{
	static const uint32_t lens[] = { 4, 5, 100, NFSACL_MAX_ENTRIES };
	static struct list access, dflt;

	open_with("rw", (enum door)_i);
	for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
		fill(&access, lens[i], 0);
		fill(&dflt, lens[i], D);
		ck_assert_uint_eq(setacl(dir, "sub", BOTH, &access, &dflt),
				  NFS3_OK);
		ck_assert_uint_eq(getacl(dir, "sub", NFSACL_ALL), NFS3_OK);
		same(&access_list, &access);
		same(&default_list, &dflt);
		ck_assert_uint_eq(counts[0], lens[i]);
		ck_assert_uint_eq(counts[1], lens[i]);
		/* The longest does not fit a Send. */
		if (_i != DOOR_TCP)
			ck_assert_int_eq(c.req.nomsg, lens[i] > 100);
	}
	/* A list of no entries takes it away, and the others stay. */
	ck_assert_uint_eq(setacl(dir, "sub", NFSACL_DFACL, &none, &none),
			  NFS3_OK);
	ck_assert_uint_eq(getacl(dir, "sub", NFSACL_ALL), NFS3_OK);
	same(&access_list, &access);
	same(&default_list, &none);
	close_all();
}

TEST(a_list_like_the_mode_is_the_mode)
{
	struct list l = { 4, { { U, 0, 6 }, { G, 0, 4 }, { M, 0, 4 },
			       { O, 0, 0 } } };
	struct stat st;

	open_with("rw", DOOR_TCP);
	l.e[0].id = me.uid;
	l.e[1].id = me.gid;
	ck_assert_uint_eq(getacl(dir, "file", NFSACL_ALL), NFS3_OK);
	same(&access_list, &l);
	same(&default_list, &none);
	ck_assert_uint_eq(getacl(dir, "file", NFSACL_ACLCNT), NFS3_OK);
	ck_assert_uint_eq(access_list.n, 0);
	ck_assert_uint_eq(counts[0], 4);
	l.e[3].perm = 1;
	ck_assert_uint_eq(setacl(dir, "file", NFSACL_ACL, &l, &none), NFS3_OK);
	ck_assert_int_eq(stat(file, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0641);
	ck_assert_int_lt(getxattr(file, ACCESS_XATTR, NULL, 0), 0);
	close_all();
}

TEST(lists_that_are_none_change_nothing)
{
	static struct list l, many;
	struct list wrong = { 3, { { U, 0, 6 }, { NU, 5, 4 }, { O, 0, 0 } } };

	open_with("rw", DOOR_TCP);
	fill(&l, 5, 0);
	fill(&many, NFSACL_MAX_ENTRIES + 1, 0);
	ck_assert_uint_eq(setacl(dir, "file", BOTH, &wrong, &none),
			  NFS3ERR_INVAL);
	ck_assert_uint_eq(setacl(dir, "file", 0x10, &l, &none), NFS3ERR_INVAL);
	ck_assert_uint_eq(getacl(dir, "file", 0x10), NFS3ERR_INVAL);
	ck_assert_uint_eq(setacl(dir, "file", BOTH, &many, &none),
			  GARBAGE + RPC_GARBAGE_ARGS);
	/* A default ACL is for directories. */
	ck_assert_uint_eq(setacl(dir, "file", NFSACL_DFACL, &none, &l),
			  NFS3ERR_ACCES);
	ck_assert_int_lt(getxattr(file, ACCESS_XATTR, NULL, 0), 0);
	close_all();
}

TEST(exports_say_whether_lists_may_be_seen_and_changed)
{
	static struct list l;

	open_with("ro", DOOR_TCP);
	fill(&l, 5, 0);
	ck_assert_uint_eq(setacl(dir, "file", BOTH, &l, &none), NFS3ERR_ROFS);
	ck_assert_uint_eq(getacl(dir, "file", NFSACL_ALL), NFS3_OK);
	close_all();
	open_with("rw,no_acl", DOOR_TCP);
	ck_assert_uint_eq(setacl(dir, "file", BOTH, &l, &none),
			  NFS3ERR_NOTSUPP);
	ck_assert_uint_eq(getacl(dir, "file", NFSACL_ALL), NFS3ERR_NOTSUPP);
	/* A backend without lists shows the mode. */
	ck_assert_uint_eq(setacl("/mem", NULL, BOTH, &l, &none),
			  NFS3ERR_NOTSUPP);
	ck_assert_uint_eq(getacl("/mem", NULL, NFSACL_ALL), NFS3_OK);
	ck_assert_uint_eq(access_list.n, 4);
	ck_assert_uint_eq(default_list.n, 0);
	close_all();
}

TEST(only_version_3_is_served)
{
	open_with("rw", DOOR_TCP);
	caller_begin(&c, NFSACL_PROGRAM, 2, 0, &me);
	ck_assert_uint_eq(caller_send(&c), RPC_PROG_MISMATCH);
	caller_begin(&c, NFSACL_PROGRAM, 3, 0, &me);
	ck_assert_uint_eq(caller_send(&c), RPC_SUCCESS);
	caller_begin(&c, NFSACL_PROGRAM, 3, NFSACL_NPROC, &me);
	ck_assert_uint_eq(caller_send(&c), RPC_PROC_UNAVAIL);
	close_all();
}

/* Asks for the list of the mode, which no file system keeps: an error other
 * than ENODATA means that this one has no lists. */
static bool has_lists(void)
{
	return getxattr(dir, ACCESS_XATTR, NULL, 0) >= 0 || errno == ENODATA;
}

int main(void)
{
	int status = 77;

	if (!mkdtemp(dir))
		return 77;
	snprintf(file, sizeof(file), "%s/file", dir);
	snprintf(sub, sizeof(sub), "%s/sub", dir);
	if (has_lists())
		status = run_tests();
	else
		printf("SKIP: no access control lists in /dev/shm\n");
	rmdir(dir);
	return status;
}
