/* SPDX-License-Identifier: BSD-2-Clause */
/* Access control lists of files: the kernel's, and the rights that they
 * grant. */
#include <sys/stat.h>
#include <sys/xattr.h>

#include "tests/unit/posix_fixture.h"
#include "tests/unit/sync_faults.h"

#define ACCESS	"system.posix_acl_access"

static struct vfs_acls acls;
static struct vfs_cred alice = { .uid = 1001, .gid = 1001 };

static const struct vfs_acl_entry alice_reads[] = {
	{ VFS_ACL_USER_OBJ, 6, 0 }, { VFS_ACL_USER, 4, 1001 },
	{ VFS_ACL_GROUP_OBJ, 0, 0 }, { VFS_ACL_MASK, 4, 0 },
	{ VFS_ACL_OTHER, 0, 0 },
};

/* The same list as setfacl(1) writes it. */
static const uint8_t xattr[] = {
	2, 0, 0, 0,
	1, 0, 6, 0, 255, 255, 255, 255,
	2, 0, 4, 0, 0xe9, 3, 0, 0,
	4, 0, 0, 0, 255, 255, 255, 255,
	16, 0, 4, 0, 255, 255, 255, 255,
	32, 0, 0, 0, 255, 255, 255, 255,
};

/* False: the world's file system has no lists, and nothing is left open. */
static bool open_with_lists(int i)
{
	world_open(i, NULL);
	if (getxattr(local(""), ACCESS, NULL, 0) >= 0 || errno == ENODATA)
		return true;
	printf("skipped: no access control lists\n");
	world_close();
	return false;
}

static int get(struct vfs_node *n)
{
	memset(&acls, 0xee, sizeof(acls));
	for (int kind = 0; kind < VFS_ACL_KINDS; kind++) {
		acls.wanted[kind] = true;
		acls.n[kind] = 0;
	}
	return DO(posix_getacl, &w.who, n, .acls = &acls);
}

static int set(const struct vfs_op *who, struct vfs_node *n,
	       enum vfs_acl_kind kind, const struct vfs_acl_entry *e,
	       uint32_t count)
{
	memset(&acls, 0, sizeof(acls));
	acls.wanted[kind] = true;
	acls.n[kind] = count;
	if (count)
		memcpy(acls.entry[kind], e, count * sizeof(*e));
	return DO(posix_setacl, who, n, .acls = &acls);
}

TEST_LOOP(a_list_is_the_kernels_byte_for_byte, 0, WORLDS)
{
	uint8_t got[256];
	struct vfs_node *n;

	if (!open_with_lists(_i))
		return;
	n = must_create(w.root, "f");
	assert_ok(get(n));
	ck_assert_uint_eq(acls.n[VFS_ACL_ACCESS] + acls.n[VFS_ACL_DEFAULT], 0);
	assert_ok(set(&w.who, n, VFS_ACL_ACCESS, alice_reads,
		      ARRAY_SIZE(alice_reads)));
	ck_assert_int_eq(getxattr(local("f"), ACCESS, got, sizeof(got)),
			 sizeof(xattr));
	ck_assert_mem_eq(got, xattr, sizeof(xattr));
	ck_assert_uint_eq(attr_of(n).mode & 0777, 0640);
	assert_ok(get(n));
	ck_assert_uint_eq(acls.n[VFS_ACL_ACCESS], ARRAY_SIZE(alice_reads));
	for (size_t i = 0; i < ARRAY_SIZE(alice_reads); i++) {
		const struct vfs_acl_entry *e = &acls.entry[VFS_ACL_ACCESS][i];

		ck_assert_uint_eq(e->tag, alice_reads[i].tag);
		ck_assert_uint_eq(e->perm, alice_reads[i].perm);
		if (e->tag == VFS_ACL_USER)
			ck_assert_uint_eq(e->id, 1001);
	}
	/* The list goes, the mode stays. */
	assert_ok(set(&w.who, n, VFS_ACL_ACCESS, NULL, 0));
	assert_ok(set(&w.who, n, VFS_ACL_ACCESS, NULL, 0));
	assert_ok(set(&w.who, n, VFS_ACL_DEFAULT, NULL, 0));
	ck_assert_int_lt(getxattr(local("f"), ACCESS, NULL, 0), 0);
	assert_err(set(&w.who, n, VFS_ACL_DEFAULT, alice_reads,
		       ARRAY_SIZE(alice_reads)), EACCES);
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(a_list_that_is_not_durable_is_an_error, 0, WORLDS)
{
	struct posix_fs *fs;
	struct vfs_node *n;

	if (!open_with_lists(_i))
		return;
	fs = to_posix_fs(w.fs);
	fs->ram = false;
	fs->sync_names = true;
	n = must_create(w.root, "f");
	sync_faults.file_errno = EIO;
	assert_err(set(&w.who, n, VFS_ACL_ACCESS, alice_reads,
		       ARRAY_SIZE(alice_reads)), EIO);
	sync_faults.file_errno = 0;
	assert_ok(set(&w.who, n, VFS_ACL_ACCESS, NULL, 0));
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(links_have_no_list, 0, WORLDS)
{
	const struct vfs_make link = { .type = VFS_LNK, .target = "f",
				       .target_len = 1 };
	struct vfs_node *n;

	if (!open_with_lists(_i))
		return;
	assert_ok(GET(out, n, posix_make, &w.who, w.root,
		      .name = name_of("l"), .make = &link));
	assert_ok(get(n));
	ck_assert_uint_eq(acls.n[VFS_ACL_ACCESS], 0);
	assert_err(set(&w.who, n, VFS_ACL_ACCESS, alice_reads,
		       ARRAY_SIZE(alice_reads)), EOPNOTSUPP);
	vfs_node_put(n);
	world_close();
}

static bool may_read(struct vfs_node *n)
{
	const struct vfs_op as_alice = { .cred = &alice };
	uint32_t granted = 0;

	assert_ok(GET(access.granted, granted, posix_access, &as_alice, n,
		      .access.want = VFS_ACCESS_READ));
	return granted & VFS_ACCESS_READ;
}

TEST_LOOP(access_follows_each_change_of_a_list, 0, WORLDS)
{
	const struct vfs_op as_alice = { .cred = &alice };
	struct vfs_node *n;

	if (!open_with_lists(_i))
		return;
	if (!to_posix_fs(w.fs)->privileged) {
		printf("skipped: may not act as others\n");
		world_close();
		return;
	}
	n = must_create(w.root, "f");
	assert_ok(chmod(local("f"), 0600));
	for (int wait = 0; wait < 2; wait++) {
		/* The second time the answers are kept. */
		if (wait)
			world_settle("f");
		ck_assert(!may_read(n));
		ck_assert(!may_read(n));
		assert_ok(set(&w.who, n, VFS_ACL_ACCESS, alice_reads,
			      ARRAY_SIZE(alice_reads)));
		if (wait)
			world_settle("f");
		ck_assert(may_read(n));
		ck_assert(may_read(n));
		/* A list is its owner's to change. */
		assert_err(set(&as_alice, n, VFS_ACL_ACCESS, NULL, 0), EPERM);
		assert_ok(set(&w.who, n, VFS_ACL_ACCESS, NULL, 0));
	}
	ck_assert(!may_read(n));
	vfs_node_put(n);
	world_close();
}

TEST_LOOP(new_files_have_their_directorys_default_acl, 0, WORLDS)
{
	struct vfs_create how = { .attr = { .set = VFS_SET_MODE,
					    .mode = 0666 } };
	const struct vfs_make shared = {
		.type = VFS_DIR,
		.attr = { .set = VFS_SET_MODE, .mode = 02777 },
	};
	struct vfs_node *dir, *n;

	if (!open_with_lists(_i))
		return;
	dir = must_mkdir(w.root, "d");
	assert_ok(set(&w.who, dir, VFS_ACL_DEFAULT, alice_reads,
		      ARRAY_SIZE(alice_reads)));
	assert_ok(GET(out, n, posix_create, &w.who, dir,
		      .name = name_of("f"), .create = &how));
	assert_ok(get(n));
	ck_assert_uint_eq(acls.n[VFS_ACL_ACCESS], ARRAY_SIZE(alice_reads));
	ck_assert_uint_eq(attr_of(n).mode & 0777, 0640);
	vfs_node_put(n);
	n = must_mkdir(dir, "e");
	assert_ok(get(n));
	ck_assert_uint_eq(acls.n[VFS_ACL_DEFAULT], ARRAY_SIZE(alice_reads));
	vfs_node_put(n);
	/* A bit that the kernel leaves out of new directories. */
	assert_ok(GET(out, n, posix_make, &w.who, dir,
		      .name = name_of("shared"), .make = &shared));
	ck_assert_uint_eq(attr_of(n).mode, 02640);
	vfs_node_put(n);
	vfs_node_put(dir);
	world_close();
}

int main(void)
{
	return world_run();
}
