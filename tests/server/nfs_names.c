/* SPDX-License-Identifier: BSD-2-Clause */
/* nfs_names - the procedures of names as functions. */
#include "tests/server/nfs_names.h"

#include "tests/server/module_vfs.h"

bool nfs_wcc;

/* A call that ends before a worker has it, for a bad name say, has the
 * attributes that need no waiting: none over a backend that always waits. */
static bool attributes_wait(void)
{
	return module_vfs();
}

int try_lookup(nfs_fh3 at, const char *name, nfs_fh3 *fh)
{
	LOOKUP3args a = { .what = { at, (char *)(uintptr_t)name } };
	LOOKUP3res r;
	LOOKUP3resok *ok = &r.LOOKUP3res_u.resok;
	fattr3 now;

	nfs_call(&root, lookup, &a, &r);
	if (r.status == NFS3_OK) {
		ck_assert(ok->obj_attributes.attributes_follow);
		ck_assert(ok->dir_attributes.attributes_follow);
		now = nfs_attr(ok->object);
		ck_assert_mem_eq(&ok->obj_attributes.post_op_attr_u.attributes,
				 &now, sizeof(now));
		now = nfs_attr(at);
		ck_assert_mem_eq(&ok->dir_attributes.post_op_attr_u.attributes,
				 &now, sizeof(now));
		*fh = ok->object;
	} else {
		ck_assert(r.LOOKUP3res_u.resfail.dir_attributes
			  .attributes_follow || attributes_wait());
	}
	return r.status;
}

int try_create(struct nfs_client *c, nfs_fh3 at, const char *name,
	       createmode3 mode, const char *verf)
{
	CREATE3args a = { .where = { at, (char *)(uintptr_t)name },
			  .how = { .mode = mode } };
	CREATE3res r;

	if (mode == EXCLUSIVE)
		memcpy(a.how.createhow3_u.verf, verf, NFS3_CREATEVERFSIZE);
	nfs_call(c, create, &a, &r);
	if (r.status == NFS3_OK) {
		ck_assert(r.CREATE3res_u.resok.obj.handle_follows);
		ck_assert(r.CREATE3res_u.resok.obj_attributes
			  .attributes_follow);
		nfs_wcc = nfs_full_wcc(&r.CREATE3res_u.resok.dir_wcc);
	} else {
		ck_assert(r.CREATE3res_u.resfail.dir_wcc.after
			  .attributes_follow || attributes_wait());
	}
	return r.status;
}

int try_mkdir(struct nfs_client *c, nfs_fh3 at, const char *name)
{
	MKDIR3args a = { .where = { at, (char *)(uintptr_t)name } };
	MKDIR3res r;

	nfs_call(c, mkdir, &a, &r);
	nfs_wcc = r.status == NFS3_OK &&
		  nfs_full_wcc(&r.MKDIR3res_u.resok.dir_wcc);
	return r.status;
}

int try_symlink(nfs_fh3 at, const char *name, const char *target)
{
	SYMLINK3args a = { .where = { at, (char *)(uintptr_t)name } };
	SYMLINK3res r;

	a.symlink.symlink_data = (char *)(uintptr_t)target;
	nfs_call(&root, symlink, &a, &r);
	nfs_wcc = r.status == NFS3_OK &&
		  nfs_full_wcc(&r.SYMLINK3res_u.resok.dir_wcc);
	return r.status;
}

int try_mknod(nfs_fh3 at, const char *name, ftype3 type)
{
	MKNOD3args a = { .where = { at, (char *)(uintptr_t)name },
			 .what = { .type = type } };
	MKNOD3res r;

	if (type == NF3CHR || type == NF3BLK) {
		a.what.mknoddata3_u.chr_device.spec.specdata1 = 8;
		a.what.mknoddata3_u.chr_device.spec.specdata2 = 1;
	}
	nfs_call(&root, mknod, &a, &r);
	nfs_wcc = r.status == NFS3_OK &&
		  nfs_full_wcc(&r.MKNOD3res_u.resok.dir_wcc);
	return r.status;
}

int try_remove(struct nfs_client *c, nfs_fh3 at, const char *name)
{
	REMOVE3args a = { .object = { at, (char *)(uintptr_t)name } };
	REMOVE3res r;

	nfs_call(c, remove, &a, &r);
	nfs_wcc = nfs_full_wcc(&r.REMOVE3res_u.resok.dir_wcc);
	return r.status;
}

int try_rmdir(nfs_fh3 at, const char *name)
{
	RMDIR3args a = { .object = { at, (char *)(uintptr_t)name } };
	RMDIR3res r;

	nfs_call(&root, rmdir, &a, &r);
	nfs_wcc = nfs_full_wcc(&r.RMDIR3res_u.resok.dir_wcc);
	return r.status;
}

int try_rename(nfs_fh3 from, const char *old, nfs_fh3 to,
	       const char *new)
{
	RENAME3args a = { .from = { from, (char *)(uintptr_t)old },
			  .to = { to, (char *)(uintptr_t)new } };
	RENAME3res r;

	nfs_call(&root, rename, &a, &r);
	nfs_wcc = nfs_full_wcc(&r.RENAME3res_u.resok.fromdir_wcc) &&
		  nfs_full_wcc(&r.RENAME3res_u.resok.todir_wcc);
	return r.status;
}

int try_link(nfs_fh3 fh, nfs_fh3 at, const char *name)
{
	LINK3args a = { .file = fh,
			.link = { at, (char *)(uintptr_t)name } };
	LINK3res r;

	nfs_call(&root, link, &a, &r);
	nfs_wcc = nfs_full_wcc(&r.LINK3res_u.resok.linkdir_wcc) &&
		  r.LINK3res_u.resok.file_attributes.attributes_follow;
	return r.status;
}
