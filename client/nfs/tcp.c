/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tcp - a session over TCP, on libnfs.
 *
 * Operation: everything happens in submit and wait.  An operation is in
 * flight or, when its connection ended before its reply, waits to be sent
 * again on the next one.
 */
#include "client/nfs/nfs.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <nfsc/libnfs-zdr.h>
#include <nfsc/libnfs.h>
#include <nfsc/libnfs-raw.h>
#include <nfsc/libnfs-raw-nfs.h>

#include "client/nfs/tcp.h"
#include "lib/log.h"
#include "lib/util.h"

enum { NFS_PORT = 2049 };

struct session {
	struct nfsc_session  base;
	struct nfsc_url	    url;
	struct rpc_context *rpc;	/* NULL: not connected */
	bool		    broken;
	unsigned	    failures;	/* to connect again, since a reply */
	struct cds_list_head flying;
	struct cds_list_head again;	/* not broken: what was refused */
	struct cds_list_head done;
};

/* ---- results */

static struct nfsc_attr from_attr(const struct fattr3 *a)
{
	return (struct nfsc_attr){
		.valid = true,
		.type = a->type, .mode = a->mode, .nlink = a->nlink,
		.uid = a->uid, .gid = a->gid, .size = a->size,
		.used = a->used, .major = a->rdev.specdata1,
		.minor = a->rdev.specdata2, .fsid = a->fsid,
		.fileid = a->fileid,
		.atime = { a->atime.seconds, a->atime.nseconds },
		.mtime = { a->mtime.seconds, a->mtime.nseconds },
		.ctime = { a->ctime.seconds, a->ctime.nseconds },
	};
}

static struct nfsc_attr from_post(const struct post_op_attr *a)
{
	if (!a->attributes_follow)
		return (struct nfsc_attr){ .valid = false };
	return from_attr(&a->post_op_attr_u.attributes);
}

static struct nfsc_fh from_fh(const struct nfs_fh3 *fh)
{
	struct nfsc_fh out = { .len = MIN(fh->data.data_len,
					 (unsigned)NFS_FH_MAX) };

	memcpy(out.data, fh->data.data_val, out.len);
	return out;
}

static struct nfsc_fh from_post_fh(const struct post_op_fh3 *fh)
{
	if (!fh->handle_follows)
		return (struct nfsc_fh){ .len = 0 };
	return from_fh(&fh->post_op_fh3_u.handle);
}

static void take_getattr(struct nfsc_op *op, const void *data)
{
	const struct GETATTR3res *r = data;

	op->attr = from_attr(&r->GETATTR3res_u.resok.obj_attributes);
}

static void take_lookup(struct nfsc_op *op, const void *data)
{
	const struct LOOKUP3resok *r =
		&((const struct LOOKUP3res *)data)->LOOKUP3res_u.resok;

	op->obj = from_fh(&r->object);
	op->attr = from_post(&r->obj_attributes);
}

static void take_readlink(struct nfsc_op *op, const void *data)
{
	const struct READLINK3resok *r =
		&((const struct READLINK3res *)data)->READLINK3res_u.resok;

	op->attr = from_post(&r->symlink_attributes);
	op->got = (uint32_t)strlen(r->data);
	if (op->got > op->count)
		op->err = -EBADMSG;
	else
		memcpy(op->data, r->data, op->got);
}

static void take_read(struct nfsc_op *op, const void *data)
{
	const struct READ3resok *r =
		&((const struct READ3res *)data)->READ3res_u.resok;

	op->attr = from_post(&r->file_attributes);
	op->eof = r->eof;
	op->got = r->data.data_len;
	if (op->got > op->count || r->count != op->got)
		op->err = -EBADMSG;
	else
		memcpy(op->data, r->data.data_val, op->got);
}

static void take_write(struct nfsc_op *op, const void *data)
{
	const struct WRITE3resok *r =
		&((const struct WRITE3res *)data)->WRITE3res_u.resok;

	op->attr = from_post(&r->file_wcc.after);
	op->got = r->count;
	op->stored = r->committed == FILE_SYNC;
	memcpy(&op->verf, r->verf, sizeof(op->verf));
	if (op->got > op->count)
		op->err = -EBADMSG;
}

static void take_create(struct nfsc_op *op, const void *data)
{
	const struct CREATE3resok *r =
		&((const struct CREATE3res *)data)->CREATE3res_u.resok;

	op->obj = from_post_fh(&r->obj);
	op->attr = from_post(&r->obj_attributes);
}

static struct nfsc_entry *from_entry(const struct entryplus3 *from)
{
	size_t len = strlen(from->name);
	struct nfsc_entry *e = calloc(1, sizeof(*e) + len + 1);

	if (!e)
		return NULL;
	e->cookie = from->cookie;
	e->fileid = from->fileid;
	e->attr = from_post(&from->name_attributes);
	e->fh = from_post_fh(&from->name_handle);
	memcpy(e->name, from->name, len + 1);
	return e;
}

static void take_readdirplus(struct nfsc_op *op, const void *data)
{
	const struct READDIRPLUS3resok *r =
		&((const struct READDIRPLUS3res *)data)->
		READDIRPLUS3res_u.resok;
	struct nfsc_entry **tail = &op->entries;

	op->attr = from_post(&r->dir_attributes);
	memcpy(&op->cookieverf, r->cookieverf, sizeof(op->cookieverf));
	op->eof = r->reply.eof;
	op->entries = NULL;
	for (struct entryplus3 *e = r->reply.entries; e; e = e->nextentry) {
		*tail = from_entry(e);
		if (!*tail) {
			op->err = -ENOMEM;
			return;
		}
		tail = &(*tail)->next;
	}
}

static void take_fsinfo(struct nfsc_op *op, const void *data)
{
	const struct FSINFO3resok *r =
		&((const struct FSINFO3res *)data)->FSINFO3res_u.resok;

	op->attr = from_post(&r->obj_attributes);
	op->limits = (struct nfsc_limits){
		.rtmax = r->rtmax, .rtpref = r->rtpref,
		.wtmax = r->wtmax, .wtpref = r->wtpref,
		.dtpref = r->dtpref, .properties = r->properties,
		.maxfilesize = r->maxfilesize,
	};
}

static void take_commit(struct nfsc_op *op, const void *data)
{
	const struct COMMIT3resok *r =
		&((const struct COMMIT3res *)data)->COMMIT3res_u.resok;

	memcpy(&op->verf, r->verf, sizeof(op->verf));
}

static void (*const takes[NFS_NOPS])(struct nfsc_op *, const void *) = {
	[NFS_OP_GETATTR] = take_getattr, [NFS_OP_LOOKUP] = take_lookup,
	[NFS_OP_READLINK] = take_readlink, [NFS_OP_READ] = take_read,
	[NFS_OP_WRITE] = take_write, [NFS_OP_CREATE] = take_create,
	[NFS_OP_READDIRPLUS] = take_readdirplus,
	[NFS_OP_FSINFO] = take_fsinfo, [NFS_OP_COMMIT] = take_commit,
};

static void rpc_done(struct rpc_context *rpc, int status, void *data,
		     void *arg)
{
	struct nfsc_op *op = arg;
	struct session *s = op->session;

	cds_list_del(&op->link);
	if (status == RPC_STATUS_SUCCESS) {
		s->failures = 0;
		op->err = 0;
		op->status = 0;
		if (takes[op->kind]) {
			/* Every result starts with it. */
			memcpy(&op->status, data, sizeof(op->status));
			if (op->status == 0)
				takes[op->kind](op, data);
		}
		cds_list_add_tail(&op->link, &s->done);
		return;
	}
	if (status == RPC_STATUS_ERROR && data)
		log_debug("tcp: %s", (const char *)data);
	cds_list_add_tail(&op->link, &s->again);
}

/* ---- calls */

static struct nfs_fh3 to_fh(struct nfsc_op *op)
{
	struct nfs_fh3 fh = { .data = { op->fh.len, (char *)op->fh.data } };

	return fh;
}

static char *to_name(struct nfsc_op *op)
{
	char *name;

	/* libnfs only reads it. */
	memcpy(&name, &op->name, sizeof(name));
	return name;
}

static int send_io(struct rpc_context *rpc, struct nfsc_op *op)
{
	struct READ3args read = { to_fh(op), op->offset, op->count };
	struct COMMIT3args commit = { to_fh(op), op->offset, op->count };
	struct WRITE3args write = {
		.file = to_fh(op), .offset = op->offset, .count = op->count,
		.stable = op->stable ? FILE_SYNC : UNSTABLE,
		.data = { op->count, op->data },
	};

	switch (op->kind) {
	case NFS_OP_READ:
		return rpc_nfs3_read_async(rpc, rpc_done, &read, op);
	case NFS_OP_WRITE:
		return rpc_nfs3_write_async(rpc, rpc_done, &write, op);
	default:
		return rpc_nfs3_commit_async(rpc, rpc_done, &commit, op);
	}
}

static int send_create(struct rpc_context *rpc, struct nfsc_op *op)
{
	struct CREATE3args args = {
		.where = { to_fh(op), to_name(op) },
		.how.mode = UNCHECKED,
	};
	struct sattr3 *set = &args.how.createhow3_u.obj_attributes;

	set->mode.set_it = 1;
	set->mode.set_mode3_u.mode = op->mode;
	set->size.set_it = 1;
	return rpc_nfs3_create_async(rpc, rpc_done, &args, op);
}

static int send_readdirplus(struct rpc_context *rpc, struct nfsc_op *op)
{
	struct READDIRPLUS3args args = {
		.dir = to_fh(op), .cookie = op->cookie,
		.dircount = op->count, .maxcount = op->count,
	};

	memcpy(args.cookieverf, &op->cookieverf, sizeof(args.cookieverf));
	return rpc_nfs3_readdirplus_async(rpc, rpc_done, &args, op);
}

static int send_op(struct rpc_context *rpc, struct nfsc_op *op)
{
	struct GETATTR3args getattr = { to_fh(op) };
	struct READLINK3args readlink = { to_fh(op) };
	struct FSINFO3args fsinfo = { to_fh(op) };
	struct LOOKUP3args lookup = { { to_fh(op), to_name(op) } };

	switch (op->kind) {
	case NFS_OP_NULL:
		return rpc_nfs3_null_async(rpc, rpc_done, op);
	case NFS_OP_GETATTR:
		return rpc_nfs3_getattr_async(rpc, rpc_done, &getattr, op);
	case NFS_OP_LOOKUP:
		return rpc_nfs3_lookup_async(rpc, rpc_done, &lookup, op);
	case NFS_OP_READLINK:
		return rpc_nfs3_readlink_async(rpc, rpc_done, &readlink, op);
	case NFS_OP_CREATE:
		return send_create(rpc, op);
	case NFS_OP_READDIRPLUS:
		return send_readdirplus(rpc, op);
	case NFS_OP_FSINFO:
		return rpc_nfs3_fsinfo_async(rpc, rpc_done, &fsinfo, op);
	default:
		return send_io(rpc, op);
	}
}

/* ---- the connection */

static void disconnect(struct session *s)
{
	/* Calls back for all that is in flight. */
	if (s->rpc)
		rpc_destroy_context(s->rpc);
	s->rpc = NULL;
	s->broken = false;
}

static int dial(struct session *s)
{
	uint16_t port = s->url.port ? s->url.port : NFS_PORT;

	return nfsc_rpc_connect(s->url.host, port, 100003, 3, &s->base.config,
			       &s->rpc);
}

static void pause_before_retry(unsigned failures)
{
	unsigned doublings = MIN(failures - 1, 10u);
	unsigned ms = MIN(100u << doublings, 5000u);

	nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000L }, NULL);
}

/* After an end: a new connection, with patience.  Until a reply has come it
 * may be in vain too. */
static int redial(struct session *s)
{
	int err = -ECONNRESET;

	disconnect(s);
	while (err < 0 && s->failures <= s->base.config.retries) {
		if (s->failures > 0)
			pause_before_retry(s->failures);
		s->failures++;
		err = dial(s);
	}
	return err;
}

static void fly(struct session *s, struct nfsc_op *op)
{
	cds_list_add_tail(&op->link, &s->flying);
	if (send_op(s->rpc, op) == 0)
		return;
	cds_list_del(&op->link);
	op->err = -ENOMEM;
	cds_list_add_tail(&op->link, &s->done);
}

/* What waits to be sent again is sent, or with @err is over. */
static void send_again(struct session *s, int err)
{
	struct nfsc_op *op, *next;

	cds_list_for_each_entry_safe(op, next, &s->again, link) {
		cds_list_del(&op->link);
		if (err == 0) {
			fly(s, op);
			continue;
		}
		op->err = err;
		cds_list_add_tail(&op->link, &s->done);
	}
}

static int submit(struct nfsc_session *base, struct nfsc_op *op)
{
	struct session *s = container_of(base, struct session, base);

	op->session = s;
	op->err = 0;
	if (s->broken || !s->rpc)
		cds_list_add_tail(&op->link, &s->again);
	else
		fly(s, op);
	return 0;
}

static struct nfsc_op *wait_one(struct nfsc_session *base)
{
	struct session *s = container_of(base, struct session, base);
	struct nfsc_op *op;

	while (cds_list_empty(&s->done)) {
		if (s->broken || !s->rpc)
			send_again(s, redial(s));
		else if (nfsc_rpc_service(s->rpc,
					 (int)s->base.config.timeout_ms) < 0)
			s->broken = true;
		else	/* answered, but without results: RFC 5531 section 9 */
			send_again(s, -EPROTO);
	}
	op = cds_list_first_entry(&s->done, struct nfsc_op, link);
	cds_list_del(&op->link);
	return op;
}

static void close_session(struct nfsc_session *base)
{
	struct session *s = container_of(base, struct session, base);

	disconnect(s);
	free(s);
}

static const struct nfsc_session_ops ops = {
	.submit = submit,
	.wait = wait_one,
	.close = close_session,
};

int nfsc_tcp_open(const struct nfsc_url *url, const struct nfsc_config *c,
		 struct nfsc_session **out)
{
	struct session *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->base.ops = &ops;
	s->base.config = *c;
	s->url = *url;
	CDS_INIT_LIST_HEAD(&s->flying);
	CDS_INIT_LIST_HEAD(&s->again);
	CDS_INIT_LIST_HEAD(&s->done);
	err = dial(s);
	if (err < 0) {
		free(s);
		return err;
	}
	*out = &s->base;
	return 0;
}
