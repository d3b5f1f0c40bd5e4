/* SPDX-License-Identifier: BSD-2-Clause */
/* MOUNT arguments and results: RFC 1813 section 5, RFC 1094 appendix A.
 * Pure. */
#include "wire/mount.h"

/* A path that is too long gets its status, not GARBAGE_ARGS. */
#define STRING_MAX	(64u << 10)

bool mount_get_path(struct xdr_in *x, void *args)
{
	struct mount_path_args *a = args;

	a->path = xdr_get_opaque(x, STRING_MAX);
	return xdr_ok(x);
}

void mount_put_mnt3(struct xdr_out *x, const void *res)
{
	const struct mount_result *r = res;

	xdr_put_u32(x, r->status);
	if (r->status != MNT3_OK)
		return;
	xdr_put_opaque(x, r->fh.data, r->fh.len);
	xdr_put_u32(x, r->nflavors);
	for (unsigned i = 0; i < r->nflavors; i++)
		xdr_put_u32(x, r->flavors[i]);
}

void mount_put_mnt1(struct xdr_out *x, const void *res)
{
	const struct mount_result *r = res;

	xdr_put_u32(x, r->status);
}

/* A list that is cut short or too long is as none: the handle is of use
 * without it. */
static void get_flavors(struct xdr_in x, struct mount_result *r)
{
	uint32_t n = xdr_get_u32(&x);

	for (uint32_t i = 0; i < n && i < MOUNT_MAX_FLAVORS; i++)
		r->flavors[i] = xdr_get_u32(&x);
	r->nflavors = xdr_ok(&x) && n <= MOUNT_MAX_FLAVORS ? n : 0;
}

bool mount_get_mnt3(struct xdr_in *x, struct mount_result *r)
{
	r->nflavors = 0;
	r->status = (enum mountstat3)xdr_get_u32(x);
	if (r->status != MNT3_OK)
		return xdr_ok(x);
	r->fh = xdr_get_opaque(x, MOUNT_FH_MAX);
	get_flavors(*x, r);
	return xdr_ok(x) && r->fh.len > 0;
}

bool mount_get_item(struct xdr_in *x, struct xdr_view *text, uint32_t max)
{
	if (!xdr_get_bool(x))
		return false;
	*text = xdr_get_opaque(x, max);
	return xdr_ok(x);
}

void mount_put_item(struct xdr_out *x, const char *text, size_t len)
{
	xdr_put_bool(x, true);
	xdr_put_opaque(x, text, (uint32_t)len);
}
