/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of NFS version 3 and MOUNT, of any arguments, to the whole server.
 *
 * An input is a sequence of calls: procedure, which of the handles known so
 * far it is about, which one it is about besides, number of bytes, and these
 * bytes, which follow the handle.  Handles that replies bring become known.
 * Each reply must have a status that RFC 1813 allows its procedure.
 */
#include <stdlib.h>

#include "lib/log.h"
#include "nfs3/proc.h"
#include "tests/server/fake_xprt.h"
#include "tests/server/harness.h"

#define MOUNT_MNT	NFS3_NPROC	/* and, after it, DUMP and EXPORT */
#define NPROCS		(NFS3_NPROC + 5)
#define HANDLES		16
#define ARGS_MAX	1024
#define CALLS_MAX	64
/* Inputs after which the server is recreated: its files stay till then. */
#define SERVER_LIFE	1000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static struct harness srv;
static struct fake_xprt conn;
static struct nfs3_fh handles[HANDLES];
static unsigned nhandles;
static uint32_t xid;

static void start(void)
{
	struct harness_config c = {
		.exports = "/mem *(rw,insecure,no_root_squash)\n",
		.nworkers = 2,
		.nfs3 = { .rtmax = 65536, .wtmax = 65536, .dtpref = 65536 },
	};

	log_threshold = LOG_LEVEL_ERR;
	harness_start(&srv, &c);
	fake_xprt_init(&conn, rpc_server_sink(srv.server), srv.pool,
		       "192.0.2.1", 1023);
}

struct input {
	const uint8_t *p;
	const uint8_t *end;
};

static uint8_t take(struct input *in)
{
	return in->p < in->end ? *in->p++ : 0;
}

static void put_handle(struct xdr_out *x, uint8_t which)
{
	const struct nfs3_fh *fh = &handles[which % HANDLES];

	xdr_put_opaque(x, fh->data, fh->len);
}

/* RFC 5531 section 9, with AUTH_SYS of uid 0 or another. */
static void put_header(struct xdr_out *x, unsigned proc, uint8_t who)
{
	bool mount = proc >= NFS3_NPROC;

	xdr_put_u32(x, ++xid);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 2);
	xdr_put_u32(x, mount ? 100005 : NFS3_PROGRAM);
	xdr_put_u32(x, 3);
	xdr_put_u32(x, mount ? proc - NFS3_NPROC + 1 : proc);
	xdr_put_u32(x, RPC_AUTH_SYS);
	xdr_put_u32(x, 20);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, who & 0x80 ? 1000 : 0);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 0);
	xdr_put_u64(x, 0);
}

static void put_args(struct xdr_out *x, unsigned proc, struct input *in)
{
	uint8_t first = take(in), second = take(in);
	uint32_t n = MIN((uint32_t)take(in), (uint32_t)(in->end - in->p));

	put_header(x, proc, first);
	if (proc < NFS3_NPROC)
		put_handle(x, first);
	if (proc == NFSPROC3_RENAME)
		xdr_put_opaque(x, in->p, n > 0);
	if (proc == NFSPROC3_RENAME || proc == NFSPROC3_LINK)
		put_handle(x, second);
	memcpy(xdr_reserve(x, ALIGN_UP(n, 4u)), in->p, n);
	in->p += n;
}

/* Of LOOKUP, CREATE, MKDIR, SYMLINK or MKNOD. */
static void learn(unsigned proc, struct xdr_in *x)
{
	struct xdr_view fh;

	if (proc != NFSPROC3_LOOKUP &&
	    (proc < NFSPROC3_CREATE || proc > NFSPROC3_MKNOD))
		return;
	if (proc != NFSPROC3_LOOKUP && !xdr_get_bool(x))
		return;
	fh = xdr_get_opaque(x, NFS3_FHSIZE);
	if (!xdr_ok(x) || fh.len == 0)
		abort();
	/* The first stays the root. */
	nhandles = nhandles % (HANDLES - 1) + 1;
	memcpy(handles[nhandles].data, fh.data, fh.len);
	handles[nhandles].len = fh.len;
}

static void check_reply(unsigned proc, const struct fake_call *c)
{
	struct xdr_in x;
	uint32_t words[6];
	enum nfsstat3 status;

	if (c->dropped || c->len % 4)
		abort();
	xdr_in_init(&x, c->reply, c->len);
	for (int i = 0; i < 6; i++)
		words[i] = xdr_get_u32(&x);
	if (!xdr_ok(&x) || words[0] != xid || words[2] != 0)
		abort();
	if (words[5] == RPC_GARBAGE_ARGS && c->len == 24)
		return;
	if (words[5] != RPC_SUCCESS)
		abort();
	if (proc == NFSPROC3_NULL || proc >= NFS3_NPROC)
		return;
	status = xdr_get_u32(&x);
	if (!xdr_ok(&x) || !nfs3_status_allowed(proc, status))
		abort();
	if (status == NFS3_OK)
		learn(proc, &x);
}

static void one_call(struct input *in)
{
	/* Aligned, as transports have it, and of the right length. */
	static uint8_t msg[ARGS_MAX];
	unsigned proc = take(in) % NPROCS;
	struct fake_call *c;
	struct xdr_out x;

	xdr_out_init(&x, msg, sizeof(msg));
	put_args(&x, proc, in);
	c = fake_send(&conn, msg, (uint32_t)xdr_out_len(&x));
	fake_wait(c);
	check_reply(proc, c);
	fake_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input in = { data, data + len };
	static unsigned age;

	if (age == 0)
		start();
	memset(handles, 0, sizeof(handles));
	nhandles = 0;
	harness_root(&srv, "/mem", &handles[0]);
	for (int i = 0; i < CALLS_MAX && in.p < in.end; i++)
		one_call(&in);
	if (++age == SERVER_LIFE) {
		harness_stop(&srv);
		age = 0;
	}
	return 0;
}
