/* SPDX-License-Identifier: BSD-2-Clause */
/* Heads of calls and replies (RFC 5531), and what NFS replies share. */
#include "tests/bench/load/load.h"

#include <errno.h>

#define AUTH_SYS	1
#define AT_XID		0
#define AT_PROC		20

void load_call_init(struct target *t)
{
	static const char machine[] = "gannet-load";
	struct xdr_out x;
	uint32_t name_len = sizeof(machine) - 1;

	xdr_out_init(&x, t->head, sizeof(t->head));
	xdr_put_u32(&x, 0);			/* xid */
	xdr_put_u32(&x, 0);			/* CALL */
	xdr_put_u32(&x, 2);
	xdr_put_u32(&x, NFS3_PROGRAM);
	xdr_put_u32(&x, NFS3_VERSION);
	xdr_put_u32(&x, 0);			/* procedure */
	xdr_put_u32(&x, AUTH_SYS);
	xdr_put_u32(&x, 4 * 5 + name_len + xdr_pad(name_len));
	xdr_put_u32(&x, 0);			/* stamp */
	xdr_put_opaque(&x, machine, name_len);
	xdr_put_u32(&x, t->opt->uid);
	xdr_put_u32(&x, t->opt->gid);
	xdr_put_u32(&x, 0);			/* no further groups */
	xdr_put_u64(&x, 0);			/* no verifier */
	t->head_len = (uint32_t)xdr_out_len(&x);
}

static void patch(uint8_t *at, uint32_t v)
{
	v = htobe32(v);
	memcpy(at, &v, 4);
}

void load_call_head(const struct target *t, struct xdr_out *x, uint32_t xid,
		    uint32_t proc)
{
	uint8_t *p = xdr_reserve(x, t->head_len);

	memcpy(p, t->head, t->head_len);
	patch(p + AT_XID, xid);
	patch(p + AT_PROC, proc);
}

int load_reply_head(struct xdr_in *x)
{
	uint32_t denied, status;

	xdr_get_u32(x);				/* xid */
	if (xdr_get_u32(x) != 1)
		return -EBADMSG;
	denied = xdr_get_u32(x);
	xdr_get_u32(x);				/* verifier */
	xdr_get_opaque(x, 400);
	status = xdr_get_u32(x);
	if (!xdr_ok(x))
		return -EBADMSG;
	return denied || status ? -EREMOTEIO : 0;
}

void put_fh(struct xdr_out *x, const struct fh *fh)
{
	xdr_put_opaque(x, fh->data, fh->len);
}

void get_fh(struct xdr_in *x, struct fh *fh)
{
	struct xdr_view v = xdr_get_opaque(x, NFS3_FHSIZE);

	fh->len = v.len;
	if (v.len)
		memcpy(fh->data, v.data, v.len);
}

void skip_attr(struct xdr_in *x)
{
	if (xdr_get_bool(x))
		xdr_get_fixed(x, 84);
}

void skip_wcc(struct xdr_in *x)
{
	if (xdr_get_bool(x))
		xdr_get_fixed(x, 24);
	skip_attr(x);
}
