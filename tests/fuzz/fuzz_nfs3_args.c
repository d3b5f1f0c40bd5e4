/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments of NFS version 3, of any bytes.  The first byte selects the
 * procedure, the second where the rest is cut in two segments.  Every byte of
 * the result is read, so a sanitizer finds one that is out of bounds.
 */
#include <stdlib.h>

#include "nfs3/proc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static bool (*const decode[NFS3_NPROC])(struct xdr_in *, void *) = {
	nfs3_get_void, nfs3_get_fh, nfs3_get_setattr, nfs3_get_dirop,
	nfs3_get_access, nfs3_get_fh, nfs3_get_read, nfs3_get_write,
	nfs3_get_create, nfs3_get_mkdir, nfs3_get_symlink, nfs3_get_mknod,
	nfs3_get_dirop, nfs3_get_dirop, nfs3_get_rename, nfs3_get_link,
	nfs3_get_readdir, nfs3_get_readdirplus, nfs3_get_fh, nfs3_get_fh,
	nfs3_get_fh, nfs3_get_commit,
};

union args {
	struct nfs3_fh_args fh;
	struct nfs3_dirop_args dirop;
	struct nfs3_setattr_args setattr;
	struct nfs3_write_args write;
	struct nfs3_create_args create;
	struct nfs3_make_args make;
	struct nfs3_rename_args rename;
	struct nfs3_link_args link;
	uint8_t room[RPC_ARGS_SIZE];
};

static volatile uint8_t sink;

static void read_all(const void *data, size_t len)
{
	const uint8_t *p = data;

	for (size_t i = 0; i < len; i++)
		sink ^= p[i];
}

static void read_view(struct xdr_view v)
{
	read_all(v.data, v.len);
}

static void check_write(const struct nfs3_write_args *a)
{
	size_t sum = 0;

	for (int i = 0; i < a->niov; i++) {
		read_all(a->iov[i].iov_base, a->iov[i].iov_len);
		sum += a->iov[i].iov_len;
	}
	if (sum != a->len || a->stable > VFS_FILE_SYNC)
		abort();
}

static void check(unsigned proc, const union args *a)
{
	if (a->fh.fh.len > NFS3_FHSIZE)
		abort();
	if (proc != NFSPROC3_NULL)
		read_view(a->fh.fh);
	switch (proc) {
	case NFSPROC3_LOOKUP:
	case NFSPROC3_REMOVE:
	case NFSPROC3_RMDIR:
	case NFSPROC3_CREATE:
	case NFSPROC3_MKDIR:
	case NFSPROC3_MKNOD:
		read_view(a->dirop.name);
		break;
	case NFSPROC3_SYMLINK:
		read_view(a->dirop.name);
		read_all(a->make.what.target, a->make.what.target_len);
		break;
	case NFSPROC3_WRITE:
		check_write(&a->write);
		break;
	case NFSPROC3_RENAME:
		read_view(a->rename.from.name);
		read_view(a->rename.to.fh);
		read_view(a->rename.to.name);
		break;
	case NFSPROC3_LINK:
		read_view(a->link.link.fh);
		read_view(a->link.link.name);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct xdr_seg segs[2];
	union args args = { 0 };
	struct xdr_in x;
	uint32_t cut;
	unsigned proc;

	if (len < 2 || len > 1 << 20)
		return 0;
	proc = data[0] % NFS3_NPROC;
	cut = MIN((uint32_t)data[1] * 4, (uint32_t)(len - 2) & ~3u);
	data += 2;
	len -= 2;
	segs[0] = (struct xdr_seg){ data, cut };
	segs[1] = (struct xdr_seg){ data + cut, (uint32_t)len - cut };
	xdr_in_init_segs(&x, segs, 2);
	if (decode[proc](&x, &args))
		check(proc, &args);
	return 0;
}
