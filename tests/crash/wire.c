/* SPDX-License-Identifier: BSD-2-Clause */
/* wire - operations of slots by libnfs. */
#include "tests/crash/wire.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"

#define WAIT_MS		60000
#define CHILD		"child"

struct model_fh wire_dirs[SLOT_DIRS];
wire_done_fn *wire_done;

static nfs_fh3 to_nfs(const struct model_fh *fh)
{
	return (nfs_fh3){ .data = { fh->len,
				    (char *)(uintptr_t)fh->data } };
}

static struct model_fh from_nfs(const nfs_fh3 *fh)
{
	struct model_fh out = { .len = fh->data.data_len };

	if (out.len > sizeof(out.data))
		out.len = 0;
	memcpy(out.data, fh->data.data_val, out.len);
	return out;
}

static struct model_fh from_post(const post_op_fh3 *fh)
{
	if (!fh->handle_follows)
		return (struct model_fh){ .len = 0 };
	return from_nfs(&fh->post_op_fh3_u.handle);
}

/* ---- connections */

struct wait {
	bool	 done;
	int	 status;		/* RPC's */
	void	 (*take)(void *out, void *data);
	void	 *out;
};

static void one_done(struct rpc_context *rpc, int status, void *data,
		     void *arg)
{
	struct wait *wait = arg;

	(void)rpc;
	wait->done = true;
	wait->status = status;
	if (status == RPC_STATUS_SUCCESS && wait->take)
		wait->take(wait->out, data);
}

static bool wait_for(struct wire *w, struct wait *wait)
{
	while (!wait->done && !w->broken) {
		struct pollfd p = { .fd = rpc_get_fd(w->rpc),
			.events = (short)rpc_which_events(w->rpc) };

		if (poll(&p, 1, WAIT_MS) <= 0 ||
		    rpc_service(w->rpc, p.revents) < 0)
			w->broken = true;
	}
	return wait->done && wait->status == RPC_STATUS_SUCCESS;
}

bool wire_open(struct wire *w, uint16_t port, int program)
{
	struct wait wait = { .done = false };

	*w = (struct wire){ .nfs = nfs_init_context(), .port = port };
	if (!w->nfs)
		abort();
	nfs_set_autoreconnect(w->nfs, 0);
	w->rpc = nfs_get_rpc_context(w->nfs);
	rpc_set_uid(w->rpc, 0);
	rpc_set_gid(w->rpc, 0);
	if (rpc_connect_port_async(w->rpc, "127.0.0.1", port, program, 3,
				   one_done, &wait) == 0 && wait_for(w, &wait))
		return true;
	wire_close(w);
	return false;
}

void wire_close(struct wire *w)
{
	if (w->nfs)
		nfs_destroy_context(w->nfs);
	*w = (struct wire){ .broken = true };
}

void wire_serve(struct wire *w, unsigned n, int ms)
{
	struct pollfd p[64];

	for (unsigned i = 0; i < n; i++)
		p[i] = (struct pollfd){
			.fd = w[i].broken ? -1 : rpc_get_fd(w[i].rpc),
			.events = w[i].broken ? 0 :
				  (short)rpc_which_events(w[i].rpc) };
	if (poll(p, n, ms) <= 0)
		return;
	for (unsigned i = 0; i < n; i++)
		if (!w[i].broken && p[i].revents &&
		    rpc_service(w[i].rpc, p[i].revents) < 0)
			w[i].broken = true;
}

/* ---- operations of slots */

#define FROM(data, type, field) \
	(((const type##res *)(data))->type##res_u.resok.field)

static void take_ack(enum op_kind kind, void *data, struct ack *ack)
{
	switch (kind) {
	case OP_CREATE: case OP_EXCLUSIVE: case OP_CHILD:
		ack->fh = from_post(&FROM(data, CREATE3, obj));
		ack->fileid = FROM(data, CREATE3, obj_attributes)
			.post_op_attr_u.attributes.fileid;
		break;
	case OP_MKDIR:
		ack->fh = from_post(&FROM(data, MKDIR3, obj));
		ack->fileid = FROM(data, MKDIR3, obj_attributes)
			.post_op_attr_u.attributes.fileid;
		break;
	case OP_SYMLINK:
		ack->fh = from_post(&FROM(data, SYMLINK3, obj));
		ack->fileid = FROM(data, SYMLINK3, obj_attributes)
			.post_op_attr_u.attributes.fileid;
		break;
	case OP_WRITE:
		ack->stable = FROM(data, WRITE3, committed) != UNSTABLE;
		memcpy(&ack->verf, FROM(data, WRITE3, verf), 8);
		break;
	case OP_COMMIT:
		memcpy(&ack->verf, FROM(data, COMMIT3, verf), 8);
		break;
	default:
		break;
	}
}

static void op_done(struct rpc_context *rpc, int status, void *data,
		    void *arg)
{
	struct slot *slot = arg;
	struct ack ack = { .fileid = 0 };
	int nfs = -1;

	(void)rpc;
	if (status == RPC_STATUS_SUCCESS) {
		nfs = *(int *)data;
		if (nfs == NFS3_OK)
			take_ack(slot->op.kind, data, &ack);
		/* A write can be short: only its beginning is there. */
		if (nfs == NFS3_OK && slot->op.kind == OP_WRITE &&
		    FROM(data, WRITE3, count) != slot->op.count * FILE_BLOCK)
			nfs = -2;
	}
	wire_done(slot, nfs, &ack);
}

static sattr3 with_mode(int mode)
{
	sattr3 s = { .mode.set_it = 1 };

	s.mode.set_mode3_u.mode = (unsigned)mode;
	return s;
}

static int start_write(struct rpc_context *rpc, struct slot *slot,
		       nfs_fh3 file)
{
	static uint8_t data[4 * FILE_BLOCK];
	const struct op *op = &slot->op;
	WRITE3args a = {
		.file = file, .offset = (uint64_t)op->block * FILE_BLOCK,
		.count = op->count * FILE_BLOCK, .stable = op->how,
		.data = { op->count * FILE_BLOCK, (char *)data },
	};

	for (uint32_t i = 0; i < op->count; i++)
		model_fill(op->tag, op->block + i, data + i * FILE_BLOCK);
	return rpc_nfs3_write_async(rpc, op_done, &a, slot);
}

static CREATE3args exclusive(diropargs3 where, uint32_t tag)
{
	CREATE3args a = { .where = where, .how.mode = EXCLUSIVE };
	uint64_t verf = tag;

	memcpy(a.how.createhow3_u.verf, &verf, sizeof(verf));
	return a;
}

static int start_create(struct rpc_context *rpc, struct slot *slot,
			diropargs3 where)
{
	CREATE3args a = { .where = where, .how.mode = slot->op.how };

	if (slot->op.kind == OP_EXCLUSIVE)
		a = exclusive(where, slot->op.tag);
	else
		a.how.createhow3_u.obj_attributes = with_mode(slot->op.mode);
	return rpc_nfs3_create_async(rpc, op_done, &a, slot);
}

static int start_mkdir(struct rpc_context *rpc, struct slot *slot,
		       diropargs3 where)
{
	MKDIR3args a = { where, with_mode(slot->op.mode) };

	return rpc_nfs3_mkdir_async(rpc, op_done, &a, slot);
}

static int start_symlink(struct rpc_context *rpc, struct slot *slot,
			 diropargs3 where)
{
	char target[64];
	SYMLINK3args a = { .where = where, .symlink.symlink_data = target };

	model_target(slot->op.tag, target);
	return rpc_nfs3_symlink_async(rpc, op_done, &a, slot);
}

static int start_setattr(struct rpc_context *rpc, struct slot *slot,
			 nfs_fh3 object)
{
	SETATTR3args a = { .object = object };

	if (slot->op.kind == OP_MODE) {
		a.new_attributes = with_mode(slot->op.mode);
	} else {
		a.new_attributes.size.set_it = 1;
		a.new_attributes.size.set_size3_u.size =
			(uint64_t)slot->op.block * FILE_BLOCK;
	}
	return rpc_nfs3_setattr_async(rpc, op_done, &a, slot);
}

/* The operations below the directory that the slot made. */
static int start_below(struct rpc_context *rpc, struct slot *slot,
		       nfs_fh3 dir)
{
	diropargs3 child = { dir, (char[]){ CHILD } };
	CREATE3args create = { .where = child,
		.how.createhow3_u.obj_attributes = with_mode(0644) };
	REMOVE3args remove = { child };

	if (slot->op.kind == OP_CHILD)
		return rpc_nfs3_create_async(rpc, op_done, &create, slot);
	return rpc_nfs3_remove_async(rpc, op_done, &remove, slot);
}

static int start_names(struct rpc_context *rpc, struct slot *slot,
		       diropargs3 from, diropargs3 to)
{
	LINK3args link = { to_nfs(&slot->s.obj[slot->op.obj].fh), to };
	RENAME3args rename = { from, to };
	REMOVE3args remove = { from };
	RMDIR3args rmdir = { from };

	switch (slot->op.kind) {
	case OP_LINK:
		return rpc_nfs3_link_async(rpc, op_done, &link, slot);
	case OP_RENAME:
		return rpc_nfs3_rename_async(rpc, op_done, &rename, slot);
	case OP_REMOVE:
		return rpc_nfs3_remove_async(rpc, op_done, &remove, slot);
	default:
		return rpc_nfs3_rmdir_async(rpc, op_done, &rmdir, slot);
	}
}

static int start(struct rpc_context *rpc, struct slot *slot)
{
	const struct op *op = &slot->op;
	char name[32], to[32];
	diropargs3 where = { to_nfs(&wire_dirs[model_dir(op->name)]), name };
	diropargs3 where_to = { to_nfs(&wire_dirs[model_dir(op->to)]), to };
	nfs_fh3 object = to_nfs(&slot->s.obj[op->obj].fh);
	COMMIT3args commit = { .file = object };

	model_name(slot, op->name, name);
	model_name(slot, op->to, to);
	switch (op->kind) {
	case OP_CREATE: case OP_EXCLUSIVE:
		return start_create(rpc, slot, where);
	case OP_MKDIR:
		return start_mkdir(rpc, slot, where);
	case OP_SYMLINK:
		return start_symlink(rpc, slot, where);
	case OP_MODE: case OP_SIZE:
		return start_setattr(rpc, slot, object);
	case OP_WRITE:
		return start_write(rpc, slot, object);
	case OP_COMMIT:
		return rpc_nfs3_commit_async(rpc, op_done, &commit, slot);
	case OP_CHILD: case OP_UNCHILD:
		return start_below(rpc, slot, object);
	default:
		return start_names(rpc, slot, where, where_to);
	}
}

void wire_start(struct wire *w, struct slot *slot)
{
	struct ack none = { .fileid = 0 };

	slot->busy = true;
	slot->began = clock_ms();
	if (start(w->rpc, slot) != 0)
		wire_done(slot, -1, &none);
}

/* ---- single calls */

/* Fails unless RPC gave an answer; then the result is in @w_. */
#define CALL(w, proc, args, taker, result) ({ \
	struct wait w_ = { .take = (taker), .out = (result) }; \
	!(w)->broken && \
	rpc_nfs3_##proc##_async((w)->rpc, one_done, args, &w_) == 0 && \
	wait_for(w, &w_); })

static void set_attr(struct wire_attr *out, const fattr3 *a)
{
	out->type = a->type;
	out->mode = a->mode & 07777;
	out->fileid = a->fileid;
	out->size = a->size;
}

static void take_getattr(void *out, void *data)
{
	GETATTR3res *r = data;
	struct wire_attr *a = out;

	a->status = r->status;
	if (r->status == NFS3_OK)
		set_attr(a, &r->GETATTR3res_u.resok.obj_attributes);
}

struct wire_attr wire_getattr(struct wire *w, const struct model_fh *fh)
{
	GETATTR3args a = { to_nfs(fh) };
	struct wire_attr out = { .status = -1 };

	CALL(w, getattr, &a, take_getattr, &out);
	return out;
}

static void take_lookup(void *out, void *data)
{
	LOOKUP3res *r = data;
	struct wire_attr *a = out;

	a->status = r->status;
	if (r->status != NFS3_OK)
		return;
	a->fh = from_nfs(&r->LOOKUP3res_u.resok.object);
	set_attr(a, &r->LOOKUP3res_u.resok.obj_attributes.post_op_attr_u
			 .attributes);
}

struct wire_attr wire_lookup(struct wire *w, const struct model_fh *dir,
			     const char *name)
{
	LOOKUP3args a = { { to_nfs(dir), (char *)(uintptr_t)name } };
	struct wire_attr out = { .status = -1 };

	CALL(w, lookup, &a, take_lookup, &out);
	return out;
}

static void take_create(void *out, void *data)
{
	CREATE3res *r = data;
	struct wire_attr *a = out;

	a->status = r->status;
	if (r->status != NFS3_OK)
		return;
	a->fh = from_post(&r->CREATE3res_u.resok.obj);
	set_attr(a, &r->CREATE3res_u.resok.obj_attributes.post_op_attr_u
			 .attributes);
}

struct wire_attr wire_exclusive(struct wire *w, const struct model_fh *dir,
				const char *name, uint32_t tag)
{
	diropargs3 where = { to_nfs(dir), (char *)(uintptr_t)name };
	CREATE3args a = exclusive(where, tag);
	struct wire_attr out = { .status = -1 };

	CALL(w, create, &a, take_create, &out);
	return out;
}

static void take_status(void *out, void *data)
{
	*(int *)out = *(int *)data;
}

bool wire_mkdir(struct wire *w, const struct model_fh *dir, const char *name,
		struct model_fh *out)
{
	MKDIR3args a = { { to_nfs(dir), (char *)(uintptr_t)name },
			 with_mode(0755) };
	struct wire_attr attr;
	int status = -1;

	if (!CALL(w, mkdir, &a, take_status, &status) ||
	    (status != NFS3_OK && status != NFS3ERR_EXIST))
		return false;
	attr = wire_lookup(w, dir, name);
	*out = attr.fh;
	return attr.status == NFS3_OK;
}

int wire_move(struct wire *w, const struct model_fh *from, const char *name,
	      const struct model_fh *to)
{
	RENAME3args a = { { to_nfs(from), (char *)(uintptr_t)name },
			  { to_nfs(to), (char *)(uintptr_t)name } };
	int status = -1;

	CALL(w, rename, &a, take_status, &status);
	return status;
}

struct reading {
	int	 status;
	uint8_t	 *data;
	uint32_t size, got;
};

static void take_read(void *out, void *data)
{
	READ3res *r = data;
	struct reading *reading = out;

	reading->status = r->status;
	reading->got = 0;
	if (r->status != NFS3_OK)
		return;
	reading->got = r->READ3res_u.resok.data.data_len;
	if (reading->got <= reading->size)
		memcpy(reading->data, r->READ3res_u.resok.data.data_val,
		       reading->got);
}

int wire_read(struct wire *w, const struct model_fh *fh, uint8_t *data,
	      uint32_t size)
{
	struct reading r = { .status = -1, .data = data, .size = size };
	READ3args a = { .file = to_nfs(fh), .count = size };

	memset(data, 0, size);
	while (r.size > 0) {
		if (!CALL(w, read, &a, take_read, &r) || r.status != NFS3_OK)
			break;
		if (r.got == 0 || r.got > r.size)
			break;
		r.data += r.got;
		r.size -= r.got;
		a.offset += r.got;
		a.count = r.size;
	}
	return r.status;
}

struct target {
	int	 status;
	char	 *text;
};

static void take_readlink(void *out, void *data)
{
	READLINK3res *r = data;
	struct target *t = out;

	t->status = r->status;
	if (r->status == NFS3_OK)
		strncpy(t->text, r->READLINK3res_u.resok.data, 1024);
}

int wire_readlink(struct wire *w, const struct model_fh *fh, char out[1025])
{
	READLINK3args a = { to_nfs(fh) };
	struct target t = { -1, out };

	memset(out, 0, 1025);
	CALL(w, readlink, &a, take_readlink, &t);
	return t.status;
}

struct listing {
	int	 status;
	void	 (*each)(void *arg, const char *name);
	void	 *arg;
	bool	 eof;
	uint64_t cookie;
	cookieverf3 verf;
};

static void take_listing(void *out, void *data)
{
	READDIRPLUS3res *r = data;
	READDIRPLUS3resok *ok = &r->READDIRPLUS3res_u.resok;
	struct listing *l = out;

	l->status = r->status;
	if (r->status != NFS3_OK)
		return;
	memcpy(l->verf, ok->cookieverf, sizeof(l->verf));
	l->eof = ok->reply.eof;
	/* libnfs does not align them. */
	for (entryplus3 *p = ok->reply.entries, e; p; p = e.nextentry) {
		memcpy(&e, p, sizeof(e));
		l->cookie = e.cookie;
		if (strcmp(e.name, ".") && strcmp(e.name, ".."))
			l->each(l->arg, e.name);
	}
}

int wire_list(struct wire *w, const struct model_fh *dir,
	      void (*each)(void *arg, const char *name), void *arg)
{
	struct listing l = { .status = -1, .each = each, .arg = arg };
	READDIRPLUS3args a = { .dir = to_nfs(dir), .dircount = 8192,
			       .maxcount = 8192 };

	do {
		a.cookie = l.cookie;
		memcpy(a.cookieverf, l.verf, sizeof(l.verf));
		l.status = -1;
		CALL(w, readdirplus, &a, take_listing, &l);
	} while (l.status == NFS3_OK && !l.eof);
	return l.status;
}

static void take_mount(void *out, void *data)
{
	mountres3 *r = data;
	struct model_fh *fh = out;

	if (r->fhs_status != MNT3_OK)
		return;
	fh->len = r->mountres3_u.mountinfo.fhandle.fhandle3_len;
	memcpy(fh->data, r->mountres3_u.mountinfo.fhandle.fhandle3_val,
	       fh->len);
}

bool wire_mount(struct wire *w, const char *path, struct model_fh *root)
{
	struct wait wait = { .take = take_mount, .out = root };

	root->len = 0;
	return rpc_mount3_mnt_async(w->rpc, one_done,
				    (char *)(uintptr_t)path, &wait) == 0 &&
	       wait_for(w, &wait) && root->len > 0;
}
