/* SPDX-License-Identifier: BSD-2-Clause */
/* Workloads: what a slot calls next, and what its reply must hold. */
#include "tests/bench/load/load.h"

#include <errno.h>

#define LIST_BYTES	(64u << 10)

const struct target *slot_target(const struct slot *s)
{
	return s->conn->thread->run->target;
}

static const struct load_options *opt(const struct slot *s)
{
	return slot_target(s)->opt;
}

static const struct fh *data_fh(const struct slot *s)
{
	return &slot_target(s)->data[s->conn->index];
}

static uint64_t random_next(struct load_conn *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random;
}

static void put_name(struct xdr_out *x, const char *fmt, unsigned a,
		     unsigned b)
{
	char name[32];
	int n = snprintf(name, sizeof(name), fmt, a, b);

	xdr_put_opaque(x, name, (uint32_t)n);
}

/* Calls. */

static void encode_getattr(struct slot *s, struct call *c)
{
	put_fh(&c->x, &slot_target(s)->meta[s->offset]);
}

static void encode_lookup(struct slot *s, struct call *c)
{
	put_fh(&c->x, &slot_target(s)->dir);
	put_name(&c->x, "m%u", (unsigned)s->offset, 0);
}

static void encode_access(struct slot *s, struct call *c)
{
	put_fh(&c->x, &slot_target(s)->meta[s->offset]);
	xdr_put_u32(&c->x, 0x1f);
}

static void encode_read(struct slot *s, struct call *c)
{
	put_fh(&c->x, data_fh(s));
	xdr_put_u64(&c->x, s->offset);
	xdr_put_u32(&c->x, s->len);
}

static void encode_write(struct slot *s, struct call *c)
{
	put_fh(&c->x, data_fh(s));
	xdr_put_u64(&c->x, s->offset);
	xdr_put_u32(&c->x, s->len);
	xdr_put_u32(&c->x, (uint32_t)opt(s)->stable);
	xdr_put_u32(&c->x, s->len);
	c->data = load_pattern(slot_target(s), s->offset);
	c->data_len = s->len;
}

static void encode_create(struct slot *s, struct call *c)
{
	put_fh(&c->x, &slot_target(s)->dir);
	put_name(&c->x, "c%u-%u", s->conn->index, s->index);
	xdr_put_u32(&c->x, 1);			/* GUARDED */
	xdr_put_bool(&c->x, true);
	xdr_put_u32(&c->x, 0644);
	for (int i = 0; i < 5; i++)
		xdr_put_u32(&c->x, 0);
}

static void encode_remove(struct slot *s, struct call *c)
{
	put_fh(&c->x, &slot_target(s)->dir);
	put_name(&c->x, "c%u-%u", s->conn->index, s->index);
}

static void encode_list(struct slot *s, struct call *c)
{
	put_fh(&c->x, &slot_target(s)->big);
	xdr_put_u64(&c->x, s->cookie);
	xdr_put_fixed(&c->x, s->cookieverf, NFS3_COOKIEVERFSIZE);
	xdr_put_u32(&c->x, LIST_BYTES / 8);
	xdr_put_u32(&c->x, LIST_BYTES);
}

static void encode_commit(struct slot *s, struct call *c)
{
	put_fh(&c->x, data_fh(s));
	xdr_put_u64(&c->x, 0);
	xdr_put_u32(&c->x, 0);
}

/* Replies, after a status of NFS3_OK.  0 or -EBADMSG. */

static int reply_getattr(struct slot *s, struct xdr_in *x, struct counts *n)
{
	xdr_get_fixed(x, 84);
	return 0;
}

static int reply_lookup(struct slot *s, struct xdr_in *x, struct counts *n)
{
	struct fh fh;

	get_fh(x, &fh);
	return opt(s)->verify &&
	       (fh.len != slot_target(s)->meta[s->offset].len ||
		memcmp(fh.data, slot_target(s)->meta[s->offset].data,
		       fh.len)) ? -EBADMSG : 0;
}

static int reply_access(struct slot *s, struct xdr_in *x, struct counts *n)
{
	skip_attr(x);
	xdr_get_u32(x);
	return 0;
}

static int reply_read(struct slot *s, struct xdr_in *x, struct counts *n)
{
	uint32_t count;

	skip_attr(x);
	count = xdr_get_u32(x);
	xdr_get_bool(x);
	if (xdr_get_u32(x) != count || count != s->len)
		return -EBADMSG;
	n->bytes += count;
	/* Segments of a message may end in the data; it comes whole. */
	if (opt(s)->verify) {
		const uint8_t *data = s->moved ? s->moved :
				      xdr_get_fixed(x, count).data;

		if (!data || memcmp(data, load_pattern(slot_target(s),
						       s->offset), count))
			return -EBADMSG;
	}
	return 0;
}

static int reply_write(struct slot *s, struct xdr_in *x, struct counts *n)
{
	skip_wcc(x);
	if (xdr_get_u32(x) != s->len)
		return -EBADMSG;
	n->bytes += s->len;
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

static int reply_list(struct slot *s, struct xdr_in *x, struct counts *n)
{
	struct xdr_view v;
	uint64_t cookie = 0;

	skip_attr(x);
	v = xdr_get_fixed(x, NFS3_COOKIEVERFSIZE);
	if (v.data)
		memcpy(s->cookieverf, v.data, NFS3_COOKIEVERFSIZE);
	while (xdr_get_bool(x)) {
		xdr_get_u64(x);
		xdr_get_opaque(x, 255);
		cookie = xdr_get_u64(x);
		skip_attr(x);
		if (xdr_get_bool(x))
			xdr_get_opaque(x, NFS3_FHSIZE);
		n->entries++;
	}
	s->cookie = xdr_get_bool(x) ? 0 : cookie;
	if (!s->cookie)
		memset(s->cookieverf, 0, sizeof(s->cookieverf));
	return 0;
}

static int reply_commit(struct slot *s, struct xdr_in *x, struct counts *n)
{
	skip_wcc(x);
	return 0;
}

static const struct call_row {
	uint32_t proc;
	void (*encode)(struct slot *s, struct call *c);
	int (*reply)(struct slot *s, struct xdr_in *x, struct counts *n);
} calls[] = {
	[CALL_GETATTR] = { NFSPROC3_GETATTR, encode_getattr, reply_getattr },
	[CALL_LOOKUP] = { NFSPROC3_LOOKUP, encode_lookup, reply_lookup },
	[CALL_ACCESS] = { NFSPROC3_ACCESS, encode_access, reply_access },
	[CALL_READ] = { NFSPROC3_READ, encode_read, reply_read },
	[CALL_WRITE] = { NFSPROC3_WRITE, encode_write, reply_write },
	[CALL_CREATE] = { NFSPROC3_CREATE, encode_create, reply_create },
	[CALL_REMOVE] = { NFSPROC3_REMOVE, encode_remove, reply_remove },
	[CALL_READDIRPLUS] = { NFSPROC3_READDIRPLUS, encode_list, reply_list },
	[CALL_COMMIT] = { NFSPROC3_COMMIT, encode_commit, reply_commit },
};

/* Workloads.  Each sets what the call is about; false: nothing is left. */

struct workload {
	const char	*name;
	const char	*help;
	unsigned	 needs;
	bool		 (*pick)(struct slot *s);
};

static bool meta(struct slot *s, enum call_kind kind)
{
	s->kind = kind;
	s->offset = s->conn->next++ % LOAD_META_FILES;
	return true;
}

static bool sequential(struct slot *s, enum call_kind kind)
{
	s->kind = kind;
	s->len = opt(s)->block;
	if (s->conn->next + s->len > opt(s)->size)
		s->conn->next = 0;
	s->offset = s->conn->next;
	s->conn->next += s->len;
	return true;
}

static bool random_block(struct slot *s, enum call_kind kind)
{
	s->kind = kind;
	s->len = opt(s)->block;
	s->offset = random_next(s->conn) % (opt(s)->size / s->len) * s->len;
	return true;
}

static bool pick_getattr(struct slot *s)
{
	return meta(s, CALL_GETATTR);
}

static bool pick_lookup(struct slot *s)
{
	return meta(s, CALL_LOOKUP);
}

static bool pick_access(struct slot *s)
{
	return meta(s, CALL_ACCESS);
}

static bool pick_seqread(struct slot *s)
{
	return sequential(s, CALL_READ);
}

static bool pick_seqwrite(struct slot *s)
{
	return sequential(s, CALL_WRITE);
}

static bool pick_randread(struct slot *s)
{
	return random_block(s, CALL_READ);
}

static bool pick_randwrite(struct slot *s)
{
	return random_block(s, CALL_WRITE);
}

static bool pick_create(struct slot *s)
{
	s->kind = s->created ? CALL_REMOVE : CALL_CREATE;
	return true;
}

static bool pick_list(struct slot *s)
{
	s->kind = CALL_READDIRPLUS;
	return true;
}

static bool pick_mixed(struct slot *s)
{
	unsigned n = random_next(s->conn) >> 32 & 63;

	if (s->cookie || n == 0)
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
	uint64_t left = opt(s)->size - s->conn->next;

	s->kind = CALL_WRITE;
	s->len = (uint32_t)MIN(left, 256u << 10);
	s->offset = s->conn->next;
	s->conn->next += s->len;
	return s->len > 0;
}

static const struct workload fill = { "fill", "", NEED_DATA, pick_fill };

static const struct workload workloads[] = {
	{ "getattr", "GETATTR, round 64 files", NEED_META, pick_getattr },
	{ "lookup", "LOOKUP of 64 names", NEED_META, pick_lookup },
	{ "access", "ACCESS of 64 files", NEED_META, pick_access },
	{ "seqread", "READ from the start to the end, again and again",
	  NEED_DATA | READS, pick_seqread },
	{ "seqwrite", "WRITE from the start to the end, then COMMIT",
	  NEED_DATA | WRITES, pick_seqwrite },
	{ "randread", "READ at random blocks", NEED_DATA | READS,
	  pick_randread },
	{ "randwrite", "WRITE at random blocks, COMMIT at the end",
	  NEED_DATA | WRITES, pick_randwrite },
	{ "create", "CREATE and REMOVE a file, again and again", MAKES,
	  pick_create },
	{ "readdirplus", "READDIRPLUS through a large directory", NEED_BIG,
	  pick_list },
	{ "mixed", "some of each", NEED_META | NEED_DATA | NEED_BIG | WRITES |
	  READS | MAKES, pick_mixed },
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

void workload_list(FILE *out)
{
	for (unsigned i = 0; i < ARRAY_SIZE(workloads); i++)
		fprintf(out, "  %-14s%s\n", workloads[i].name,
			workloads[i].help);
}

unsigned workload_needs(const struct workload *w)
{
	return w->needs;
}

bool workload_next(const struct workload *w, struct slot *s, struct call *c)
{
	if (!w->pick(s))
		return false;
	load_call_head(slot_target(s), &c->x, s->xid, calls[s->kind].proc);
	calls[s->kind].encode(s, c);
	return true;
}

int workload_reply(struct slot *s, struct xdr_in *x, struct counts *n)
{
	int err;

	if (xdr_get_u32(x) != NFS3_OK)
		return xdr_ok(x) ? -EREMOTEIO : -EBADMSG;
	/* Attributes of what was looked up and the like need no look. */
	err = calls[s->kind].reply(s, x, n);
	return err ? err : xdr_ok(x) ? 0 : -EBADMSG;
}
