/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fsid of files of a path whose rules have different fsid= options: a
 * client sees its rule's fsid in every reply.
 *
 * Each test needs a mount name space.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "mountd/mountd.h"
#include "tests/server/mount_base.h"
#include "tests/server/nfs_ops.h"
#include "tests/unit/runner.h"
#include "wire/mount.h"

/* The smaller one is the tree's. */
#define OTHERS	0x27182818
#define ITS	0x31415926
#define TEXT_(x) #x
#define TEXT(x)	TEXT_(x)

static const struct caller_cred uid_0 = { .uid = 0 };
static struct doors d;
static struct caller c;

/* @options of the client, at two paths; NULL: the second is not exported. */
static void begin(const char *above, const char *child)
{
	static const char rules[] = "posix:%s%s 192.0.2.1(fsid=" TEXT(OTHERS)
		") 127.0.0.1(rw,insecure,no_root_squash,fsid=" TEXT(ITS)
		"%s)\n";
	static const char plain[] = "posix:%s%s 127.0.0.1(rw,insecure%s)\n";
	struct harness_config hc = { .backend = &posix_vfs_ops };
	char text[1024];
	int n;

	n = snprintf(text, sizeof(text), child ? plain : rules, space_base,
		     "/e", above);
	if (child)
		snprintf(text + n, sizeof(text) - (size_t)n, rules, space_base,
			 "/e/child", child);
	hc.exports = text;
	doors_open(&d, &hc);
	caller_open(&c, &d, DOOR_TCP, false);
}

static void setup(void)
{
	mkdir(space_at(""), 0755);
	mkdir(space_at("child"), 0755);
	ck_assert_int_eq(mount("none", space_at("child"), "tmpfs", 0, NULL),
			 0);
}

static void teardown(void)
{
	caller_close(&c);
	doors_close(&d);
	umount2(space_at("child"), MNT_DETACH);
}

static struct nfs3_fh mnt(const char *path)
{
	char text[128];

	snprintf(text, sizeof(text), "%s/%s", space_base, path);
	caller_begin(&c, MOUNT_PROGRAM, 3, MOUNTPROC_MNT, &uid_0);
	xdr_put_opaque(&c.out, text, (uint32_t)strlen(text));
	ck_assert_uint_eq(caller_send(&c), RPC_SUCCESS);
	ck_assert_uint_eq(xdr_get_u32(&c.in), MNT3_OK);
	return harness_get_fh(&c.in);
}

/* The reply has the number @fsid somewhere. */
static bool shows(uint32_t fsid)
{
	uint8_t text[8];
	struct xdr_out x;

	xdr_out_init(&x, text, sizeof(text));
	xdr_put_u64(&x, fsid);
	return memmem(c.in.p, xdr_left(&c.in), text, sizeof(text));
}

static uint32_t look_up(const struct nfs3_fh *dir, const char *name,
			struct nfs3_fh *fh)
{
	uint32_t status;

	nfs_begin(&c, NFSPROC3_LOOKUP, &uid_0);
	nfs_put_name(&c, dir, name);
	status = nfs_status(&c);
	ck_assert(!shows(OTHERS));
	if (status == NFS3_OK)
		*fh = harness_get_fh(&c.in);
	return status;
}

static void make(uint32_t proc, const struct nfs3_fh *dir, const char *name,
		 struct nfs3_fh *fh)
{
	nfs_begin(&c, proc, &uid_0);
	nfs_put_name(&c, dir, name);
	if (proc == NFSPROC3_CREATE)
		xdr_put_u32(&c.out, 0);
	nfs_put_attr(&c, 0644, -1, -1);
	if (proc == NFSPROC3_SYMLINK)
		xdr_put_opaque(&c.out, "x", 1);
	ck_assert_uint_eq(nfs_status(&c), NFS3_OK);
	ck_assert(nfs_take_fh(&c, fh));
}

TEST_CASE(.setup = setup, .teardown = teardown);

TEST(every_reply_has_the_fsid_of_the_callers_rule)
{
	struct nfs_cell cell;
	struct nfs3_fh fh;

	begin("", NULL);
	cell.dir = mnt("e");
	make(NFSPROC3_CREATE, &cell.dir, "file", &cell.file);
	make(NFSPROC3_CREATE, &cell.dir, "gone", &fh);
	make(NFSPROC3_CREATE, &cell.dir, "from", &fh);
	make(NFSPROC3_MKDIR, &cell.dir, "goner", &fh);
	make(NFSPROC3_SYMLINK, &cell.dir, "link", &cell.link);
	for (int i = 0; i < NFS_OPS; i++) {
		nfs_begin(&c, nfs_ops[i].proc, &uid_0);
		nfs_put_op(&c, &nfs_ops[i], &cell);
		ck_assert_msg(nfs_status(&c) == NFS3_OK, "%s",
			      nfs_ops[i].name);
		ck_assert_msg(shows(ITS) && !shows(OTHERS), "%s",
			      nfs_ops[i].name);
	}
	/* Also one that fails. */
	ck_assert_uint_eq(look_up(&cell.dir, "none", &fh), NFS3ERR_NOENT);
	ck_assert(shows(ITS));
}

TEST(a_lookup_that_comes_from_above_answers_by_the_callers_rule)
{
	struct nfs3_fh child, by_name;

	begin("", ",nohide");
	child = mnt("e/child");
	EVENTUALLY(({ struct nfs3_fh top_ = mnt("e");
		      look_up(&top_, "child", &by_name); }) == NFS3_OK);
	ck_assert(shows(ITS));
	ck_assert_mem_eq(&by_name, &child, sizeof(child));
}

TEST(a_lookup_that_comes_from_below_answers_by_the_callers_rule)
{
	struct nfs3_fh top_, child, by_name;

	begin(",crossmnt", NULL);
	top_ = mnt("e");
	EVENTUALLY(look_up(&top_, "child", &child) == NFS3_OK);
	/* The rules have no number for the file system that is mounted
	 * below. */
	nfs_begin(&c, NFSPROC3_GETATTR, &uid_0);
	nfs_put_fh(&c, &child);
	ck_assert_uint_eq(nfs_status(&c), NFS3_OK);
	ck_assert(!shows(ITS) && !shows(OTHERS));
	ck_assert_uint_eq(look_up(&child, "..", &by_name), NFS3_OK);
	ck_assert(shows(ITS));
	ck_assert_mem_eq(&by_name, &top_, sizeof(top_));
}

int main(void)
{
	return space_run_tests();
}
