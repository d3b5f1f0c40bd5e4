/* SPDX-License-Identifier: BSD-2-Clause */
/* work - the next call of a slot, and the check of its reply. */
#include "tools/bench/bench.h"

#include <errno.h>
#include <string.h>

enum { LIST_BYTES = 64 << 10, ALL_RIGHTS = 0x1f, STATUS_OK = 0,
       /* Where these lie in a call (RFC 5531 section 9). */
       AT_XID = 0, AT_PROCEDURE = 20 };

static const struct target *target_of(const struct slot *s)
{
	return s->conn->thread->run->target;
}

static const struct load_options *options_of(const struct slot *s)
{
	return target_of(s)->opt;
}

static uint64_t random_next(struct load_conn *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random;
}

/* ---- calls */

/* The beginning of all calls is made once, and patched. */
void load_call_init(struct target *t)
{
	const struct rpc_procedure any = { RPC_NFS, 3, 0 };
	struct xdr_out x;

	xdr_out_init(&x, t->head, sizeof(t->head));
	rpc_put_call(&x, 0, &any, &t->t->o->config);
	t->head_len = (uint32_t)xdr_out_len(&x);
}

static void put_head(const struct target *t, struct xdr_out *x, uint32_t xid,
		     enum nfsc_kind kind)
{
	uint8_t *p = xdr_reserve(x, t->head_len);

	memcpy(p, t->head, t->head_len);
	xdr_set_word(p + AT_XID, xid);
	xdr_set_word(p + AT_PROCEDURE, nfsc_procedure(kind));
}

/* ---- replies, after a status of NFS3_OK.  0 or -EBADMSG. */

static void pass_attr(struct xdr_in *x)
{
	if (xdr_get_bool(x))
		xdr_get_fixed(x, 84);
}

static void pass_wcc(struct xdr_in *x)
{
	if (xdr_get_bool(x))
		xdr_get_fixed(x, 24);
	pass_attr(x);
}

static int reply_getattr(struct slot *s, struct xdr_in *x, struct counts *n)
{
	xdr_get_fixed(x, 84);
	return 0;
}

static int reply_lookup(struct slot *s, struct xdr_in *x, struct counts *n)
{
	const struct nfs3_fh *want = &target_of(s)->meta[s->file];
	struct xdr_view v = xdr_get_opaque(x, NFS3_FHSIZE);

	return options_of(s)->b.verify &&
	       (v.len != want->len || memcmp(v.data, want->data, v.len)) ?
	       -EBADMSG : 0;
}

static int reply_access(struct slot *s, struct xdr_in *x, struct counts *n)
{
	pass_attr(x);
	xdr_get_u32(x);
	return 0;
}

static int reply_read(struct slot *s, struct xdr_in *x, struct counts *n)
{
	uint32_t count;

	pass_attr(x);
	count = xdr_get_u32(x);
	xdr_get_bool(x);
	/* A server can read less, but not nothing within a file. */
	if (xdr_get_u32(x) != count || count > s->op.count || count == 0 ||
	    (s->moved && s->moved_len != count))
		return -EBADMSG;
	n->bytes += count;
	/* Segments of a message can end in the data; here it is whole. */
	if (options_of(s)->b.verify) {
		const uint8_t *data = s->moved ? s->moved :
				      xdr_get_fixed(x, count).data;

		if (!data || memcmp(data, load_pattern(target_of(s),
						       s->op.offset), count))
			return -EBADMSG;
	}
	return 0;
}

static int reply_write(struct slot *s, struct xdr_in *x, struct counts *n)
{
	uint32_t count;

	pass_wcc(x);
	count = xdr_get_u32(x);
	if (count > s->op.count || count == 0)
		return -EBADMSG;
	n->bytes += count;
	return 0;
}

static int reply_create(struct slot *s, struct xdr_in *x, struct counts *n)
{
	s->created = true;
	return 0;
}

static int reply_remove(struct slot *s, struct xdr_in *x, struct counts *n)
{
	s->created = false;
	return 0;
}

/* Counts the entries, and continues behind the last; at the end, starts
 * again. */
static int reply_list(struct slot *s, struct xdr_in *x, struct counts *n)
{
	uint64_t cookie = 0, verf;

	pass_attr(x);
	verf = xdr_get_u64(x);
	while (xdr_get_bool(x)) {
		xdr_get_u64(x);
		xdr_get_opaque(x, UINT32_MAX);	/* the name */
		cookie = xdr_get_u64(x);
		pass_attr(x);
		if (xdr_get_bool(x))
			xdr_get_opaque(x, NFS3_FHSIZE);
		n->entries++;
	}
	s->op.cookie = xdr_get_bool(x) ? 0 : cookie;
	s->op.cookieverf = s->op.cookie ? verf : 0;
	return 0;
}

static const struct call_row {
	const char *name;
	int (*reply)(struct slot *s, struct xdr_in *x, struct counts *n);
} calls[NFS_NOPS] = {
	[NFS_OP_GETATTR] = { "GETATTR", reply_getattr },
	[NFS_OP_LOOKUP] = { "LOOKUP", reply_lookup },
	[NFS_OP_ACCESS] = { "ACCESS", reply_access },
	[NFS_OP_READ] = { "READ", reply_read },
	[NFS_OP_WRITE] = { "WRITE", reply_write },
	[NFS_OP_CREATE] = { "CREATE", reply_create },
	[NFS_OP_REMOVE] = { "REMOVE", reply_remove },
	[NFS_OP_READDIRPLUS] = { "READDIRPLUS", reply_list },
};

const char *workload_call_name(const struct slot *s)
{
	return calls[s->op.kind].name;
}

/* ---- workloads.  Each sets the call's object; false: nothing is left. */

struct workload {
	const char	*name;
	unsigned	 needs;
	bool		 (*pick)(struct slot *s);
};

/* One of the files that are only looked at. */
static void pick_file(struct slot *s, enum nfsc_kind kind)
{
	s->op.kind = kind;
	s->file = (unsigned)(s->conn->next++ % LOAD_META_FILES);
	s->op.fh = target_of(s)->meta[s->file];
}

static bool pick_data(struct slot *s, enum nfsc_kind kind, uint64_t offset,
		      uint32_t count)
{
	s->op.kind = kind;
	s->op.fh = target_of(s)->data[s->conn->index];
	s->op.offset = offset;
	s->op.count = count;
	s->op.stable = options_of(s)->b.stable;
	return count > 0;
}

static bool sequential(struct slot *s, enum nfsc_kind kind)
{
	uint32_t block = options_of(s)->block;
	uint64_t at = s->conn->next;

	if (at + block > options_of(s)->b.size)
		at = 0;
	s->conn->next = at + block;
	return pick_data(s, kind, at, block);
}

static bool random_block(struct slot *s, enum nfsc_kind kind)
{
	uint32_t block = options_of(s)->block;
	uint64_t blocks = options_of(s)->b.size / block;

	return pick_data(s, kind, random_next(s->conn) % blocks * block,
			 block);
}

static bool pick_getattr(struct slot *s)
{
	pick_file(s, NFS_OP_GETATTR);
	return true;
}

static bool pick_lookup(struct slot *s)
{
	pick_file(s, NFS_OP_LOOKUP);
	s->op.fh = target_of(s)->dir;
	snprintf(s->name, sizeof(s->name), "m%u", s->file);
	return true;
}

static bool pick_access(struct slot *s)
{
	pick_file(s, NFS_OP_ACCESS);
	s->op.count = ALL_RIGHTS;
	return true;
}

static bool pick_seqread(struct slot *s)
{
	return sequential(s, NFS_OP_READ);
}

static bool pick_seqwrite(struct slot *s)
{
	return sequential(s, NFS_OP_WRITE);
}

static bool pick_randread(struct slot *s)
{
	return random_block(s, NFS_OP_READ);
}

static bool pick_randwrite(struct slot *s)
{
	return random_block(s, NFS_OP_WRITE);
}

static bool pick_create(struct slot *s)
{
	s->op.kind = s->created ? NFS_OP_REMOVE : NFS_OP_CREATE;
	s->op.fh = target_of(s)->dir;
	s->op.mode = 0644;
	s->op.guarded = true;
	snprintf(s->name, sizeof(s->name), "c%u-%u", s->conn->index, s->index);
	return true;
}

static bool pick_list(struct slot *s)
{
	s->op.kind = NFS_OP_READDIRPLUS;
	s->op.fh = target_of(s)->big;
	s->op.count = LIST_BYTES;
	return true;
}

static bool pick_mixed(struct slot *s)
{
	unsigned n = random_next(s->conn) >> 32 & 63;

	if (s->op.cookie || n == 0)
		return pick_list(s);
	if (n < 4 || s->created)
		return pick_create(s);
	if (n < 12)
		return pick_randwrite(s);
	if (n < 28)
		return pick_randread(s);
	if (n < 36)
		return pick_access(s);
	return n < 48 ? pick_lookup(s) : pick_getattr(s);
}

static bool pick_fill(struct slot *s)
{
	uint64_t at = s->conn->next, left = options_of(s)->b.size - at;
	uint32_t count = (uint32_t)MIN(left, options_of(s)->block);

	s->conn->next += count;
	return pick_data(s, NFS_OP_WRITE, at, count);
}

static const struct workload fill = { "fill", NEED_DATA, pick_fill };

static const struct workload workloads[] = {
	{ "getattr", NEED_META, pick_getattr },
	{ "lookup", NEED_META, pick_lookup },
	{ "access", NEED_META, pick_access },
	{ "seqread", NEED_DATA | READS | SEQUENTIAL, pick_seqread },
	{ "seqwrite", NEED_DATA | WRITES | SEQUENTIAL, pick_seqwrite },
	{ "randread", NEED_DATA | READS, pick_randread },
	{ "randwrite", NEED_DATA | WRITES, pick_randwrite },
	{ "create", MAKES, pick_create },
	{ "readdirplus", NEED_BIG, pick_list },
	{ "mixed", NEED_META | NEED_DATA | NEED_BIG | WRITES | READS | MAKES,
	  pick_mixed },
};

const struct workload *workload_find(const char *name)
{
	for (unsigned i = 0; i < ARRAY_SIZE(workloads); i++)
		if (!strcmp(workloads[i].name, name))
			return &workloads[i];
	return NULL;
}

const struct workload *workload_fill(void)
{
	return &fill;
}

const char *workload_name(const struct workload *w)
{
	return w->name;
}

unsigned workload_needs(const struct workload *w)
{
	return w->needs;
}

/* A call with its connection's context.  False: it can't be made. */
static bool put_proven(struct slot *s, struct call *c)
{
	struct nfsc_flavor *f = s->conn->flavor;

	if (c->data_len)
		s->op.data = (void *)(uintptr_t)c->data;
	if (f->wraps)
		c->data_len = 0;
	return f->put(f, &c->x, s->xid, &s->op) == 0;
}

bool workload_next(const struct workload *w, struct slot *s, struct call *c)
{
	return w->pick(s) && workload_make(s, c);
}

bool workload_make(struct slot *s, struct call *c)
{
	const struct target *t = target_of(s);

	s->op.name = s->name;
	if (s->op.kind == NFS_OP_WRITE) {
		c->data = load_pattern(t, s->op.offset);
		c->data_len = s->op.count;
	}
	if (s->conn->flavor)
		return put_proven(s, c);
	put_head(t, &c->x, s->xid, s->op.kind);
	nfsc_put_args(&c->x, &s->op);
	return true;
}

int workload_reply(struct slot *s, struct xdr_in *x, struct counts *n)
{
	struct nfsc_flavor *f = s->conn->flavor;
	int err = f ? f->get(f, x, s->xid, &s->op) : rpc_get_reply(x, s->xid);

	s->op.status = STATUS_OK;
	if (err)
		return err;
	s->op.status = xdr_get_u32(x);
	if (s->op.status != STATUS_OK)
		return xdr_ok(x) ? -EREMOTEIO : -EBADMSG;
	/* Attributes, such as those in a reply to LOOKUP, need no check. */
	err = calls[s->op.kind].reply(s, x, n);
	return err ? err : xdr_ok(x) ? 0 : -EBADMSG;
}
