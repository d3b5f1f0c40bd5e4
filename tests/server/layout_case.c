/* SPDX-License-Identifier: BSD-2-Clause */
/* layout_case - makes cases, makes them smaller, and prints them. */
#include "tests/server/layout.h"

#include "lib/util.h"

static const char *const procs[LAYOUT_PROCS] = {
	"LAYOUT_NULL", "LAYOUT_GETATTR", "LAYOUT_READ", "LAYOUT_READLINK",
	"LAYOUT_WRITE", "LAYOUT_SYMLINK", "LAYOUT_READDIR",
};

uint32_t layout_roll(struct layout_random *r, uint32_t below)
{
	uint64_t x = r->state;

	/* xorshift64*; never zero once seeded. */
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	r->state = x;
	return (uint32_t)(((x * 0x2545f4914f6cdd1dull) >> 32) * below >> 32);
}

static bool one_in(struct layout_random *r, uint32_t n)
{
	return layout_roll(r, n) == 0;
}

/* A size at a boundary, or just below it or above. */
static uint32_t any_size(struct layout_random *r)
{
	static const uint32_t small[] = { 0, 1, 3, 4, 5, 8, 31 };
	static const uint32_t edge[] = { 1024, 2048, 4096, 8192 };
	uint32_t kind = layout_roll(r, 64);

	if (kind < 24)
		return small[layout_roll(r, ARRAY_SIZE(small))];
	if (kind < 40)
		return edge[layout_roll(r, ARRAY_SIZE(edge))] - 1 +
		       layout_roll(r, 3);
	/* Where the whole message is as long as a threshold. */
	if (kind < 56)
		return (512u << layout_roll(r, 4)) - layout_roll(r, 420);
	if (kind < 60)
		return (16u << 10 << layout_roll(r, 3)) - 1 +
		       layout_roll(r, 3);
	if (kind < 61 && one_in(r, 2))
		return LAYOUT_DATA_MAX - 1 + layout_roll(r, 3);
	return layout_roll(r, 1u << layout_roll(r, 17));
}

static void cut_chunk(struct layout_chunk *c, struct layout_random *r)
{
	c->nsegs = one_in(r, 12) ? 0 : 1;
	if (c->nsegs == 1 && one_in(r, 2))
		c->nsegs += layout_roll(r, LAYOUT_SEGS);
	for (unsigned i = 0; i + 1 < c->nsegs; i++)
		c->cut[i] = any_size(r);
}

/* Mostly as long as it must be, or by little shorter or longer. */
static void size_chunk(struct layout_chunk *c, struct layout_random *r)
{
	if (one_in(r, 2))
		c->diff = (int32_t)layout_roll(r, 9) - 4;
	else if (one_in(r, 4))
		c->diff = (int32_t)any_size(r);
	else if (one_in(r, 16))
		c->diff = -(int32_t)any_size(r);
}

static void offer_reads(struct layout *l, struct layout_random *r)
{
	l->nreads = 1;
	l->mixed = one_in(r, 2);
	if (one_in(r, 24))
		l->nreads += 1 + layout_roll(r, LAYOUT_READS - 1);
	for (unsigned i = 0; i < l->nreads; i++) {
		cut_chunk(&l->read[i], r);
		if (i > 0)
			l->read[i].diff = (int32_t)any_size(r);
		else if (one_in(r, 3))
			l->read[i].diff = (int32_t)(-l->len & 3);
		else if (one_in(r, 8))
			size_chunk(&l->read[i], r);
		if (one_in(r, i > 0 ? 2 : 24))
			l->shift[i] = (int32_t)layout_roll(r, 33) - 16;
	}
}

static void offer_writes(struct layout *l, struct layout_random *r)
{
	l->nwrites = 1;
	if (one_in(r, 4))
		l->nwrites += layout_roll(r, LAYOUT_WRITES - 1);
	for (unsigned i = 0; i < l->nwrites; i++) {
		cut_chunk(&l->write[i], r);
		if (i == 0)
			size_chunk(&l->write[i], r);
		else
			l->write[i].diff = (int32_t)any_size(r);
	}
}

bool layout_valid(const struct layout *l)
{
	if (l->proc == LAYOUT_SYMLINK && (l->len == 0 || l->len >= 4096))
		return false;
	for (unsigned i = 1; i < l->nreads && l->mixed; i++)
		for (unsigned k = 0; k < i; k++)
			if (l->shift[i] == l->shift[k])
				return false;
	return !layout_has_data(l) || l->nreads == 0 || l->call.diff <= 0 ||
	       layout_data_len(l) >= l->len;
}

void layout_random(struct layout *l, struct layout_random *r)
{
	bool eligible;

	*l = (struct layout){
		.proc = layout_roll(r, LAYOUT_PROCS),
		.target = layout_roll(r, LAYOUT_TARGETS),
		.peer = layout_roll(r, LAYOUT_PEERS),
		.place = one_in(r, 3) ? 0 : layout_roll(r, UINT32_MAX),
		.len = any_size(r),
		.offset = one_in(r, 2) ? 0 : any_size(r),
	};
	if (l->proc == LAYOUT_SYMLINK)
		l->len = 1 + l->len % 4095;
	if (layout_has_data(l) ? !one_in(r, 4) : one_in(r, 24))
		offer_reads(l, r);
	eligible = l->proc == LAYOUT_READ || l->proc == LAYOUT_READLINK;
	if (eligible ? !one_in(r, 4) : one_in(r, 4))
		offer_writes(l, r);
	l->has_reply = one_in(r, 2);
	if (l->has_reply) {
		cut_chunk(&l->reply, r);
		size_chunk(&l->reply, r);
	}
	l->nomsg = one_in(r, 4) || (layout_has_data(l) && l->nreads == 0 &&
				    l->len > LAYOUT_INLINE / 2);
	if (l->nomsg)
		cut_chunk(&l->call, r);
	if (one_in(r, 16))
		l->call.diff = (int32_t)layout_roll(r, 41) - 20;
}

/* ---- smaller */

static void drop_segment(struct layout_chunk *c, unsigned i)
{
	for (; i + 2 < c->nsegs; i++)
		c->cut[i] = c->cut[i + 1];
	c->nsegs--;
	if (c->nsegs > 0)
		c->cut[c->nsegs - 1] = 0;
}

/*
 * Variant number *@n of a number: itself towards zero, in large steps first.
 * True: it is made; else *@n is counted down by the number of variants.
 */
static bool less(unsigned *n, int64_t v, int64_t *out)
{
	const int64_t to[] = { 0, v / 2, v - v / 8, v > 0 ? v - 1 : v + 1 };

	for (unsigned i = 0; i < ARRAY_SIZE(to) && v != 0; i++) {
		if (to[i] == v || (i > 0 && to[i] == to[i - 1]))
			continue;
		if ((*n)-- == 0) {
			*out = to[i];
			return true;
		}
	}
	return false;
}

#define LESS(n, field) ({ \
		int64_t v_ = (field); \
		bool made_ = less((n), v_, &v_); \
		if (made_) \
			(field) = (__typeof__(field))v_; \
		made_; \
	})

static bool smaller_chunk(unsigned *n, struct layout_chunk *c)
{
	for (unsigned i = 0; i < c->nsegs; i++) {
		if ((*n)-- == 0) {
			drop_segment(c, i);
			return true;
		}
	}
	if (LESS(n, c->diff))
		return true;
	for (unsigned i = 0; i + 1 < c->nsegs; i++)
		if (LESS(n, c->cut[i]))
			return true;
	return false;
}

static bool fewer_reads(unsigned *n, struct layout *l)
{
	for (unsigned i = 0; i < l->nreads; i++) {
		if ((*n)-- > 0)
			continue;
		for (l->nreads--; i < l->nreads; i++) {
			l->read[i] = l->read[i + 1];
			l->shift[i] = l->shift[i + 1];
		}
		l->read[l->nreads] = (struct layout_chunk){ 0 };
		l->shift[l->nreads] = 0;
		return true;
	}
	return false;
}

static bool fewer_writes(unsigned *n, struct layout *l)
{
	for (unsigned i = 0; i < l->nwrites; i++) {
		if ((*n)-- > 0)
			continue;
		for (l->nwrites--; i < l->nwrites; i++)
			l->write[i] = l->write[i + 1];
		l->write[l->nwrites] = (struct layout_chunk){ 0 };
		return true;
	}
	return false;
}

static bool fewer_chunks(unsigned *n, struct layout *l)
{
	if (l->has_reply && (*n)-- == 0) {
		l->has_reply = false;
		l->reply = (struct layout_chunk){ 0 };
		return true;
	}
	if (l->nomsg && (*n)-- == 0) {
		l->nomsg = false;
		l->call.nsegs = 0;
		return true;
	}
	return fewer_reads(n, l) || fewer_writes(n, l);
}

bool layout_smaller(const struct layout *l, unsigned *step, struct layout *out)
{
	unsigned n = (*step)++;

	*out = *l;
	if (fewer_chunks(&n, out) || LESS(&n, out->len) ||
	    LESS(&n, out->offset) || LESS(&n, out->mixed) ||
	    LESS(&n, out->place) ||
	    LESS(&n, out->peer) || LESS(&n, out->target) ||
	    smaller_chunk(&n, &out->call) || smaller_chunk(&n, &out->reply))
		return true;
	for (unsigned i = 0; i < out->nreads; i++)
		if (smaller_chunk(&n, &out->read[i]) || LESS(&n, out->shift[i]))
			return true;
	for (unsigned i = 0; i < out->nwrites; i++)
		if (smaller_chunk(&n, &out->write[i]))
			return true;
	return false;
}

/* ---- printing */

static void print_chunk(const struct layout_chunk *c, FILE *out)
{
	fprintf(out, "{ %u, %d, {", c->nsegs, c->diff);
	for (unsigned i = 0; i + 1 < c->nsegs; i++)
		fprintf(out, " %u,", c->cut[i]);
	fprintf(out, " 0 } }");
}

static void print_chunks(const char *name, const struct layout_chunk *c,
			 unsigned n, FILE *out)
{
	if (n == 0)
		return;
	fprintf(out, "\t  .n%ss = %u, .%s = {", name, n, name);
	for (unsigned i = 0; i < n; i++) {
		fprintf(out, "%s ", i > 0 ? "," : "");
		print_chunk(&c[i], out);
	}
	fprintf(out, " },\n");
}

void layout_print(const struct layout *l, FILE *out)
{
	fprintf(out, "\t{ .proc = %s, .target = %u, .peer = %u,\n"
		"\t  .place = %u, .len = %u, .offset = %u, .nomsg = %s,\n"
		"\t  .call = ", procs[l->proc], l->target, l->peer, l->place,
		l->len, l->offset, l->nomsg ? "true" : "false");
	print_chunk(&l->call, out);
	fprintf(out, ",\n");
	print_chunks("read", l->read, l->nreads, out);
	if (l->nreads > 0) {
		fprintf(out, "\t  .mixed = %s, .shift = {",
			l->mixed ? "true" : "false");
		for (unsigned i = 0; i < l->nreads; i++)
			fprintf(out, " %d,", l->shift[i]);
		fprintf(out, " },\n");
	}
	print_chunks("write", l->write, l->nwrites, out);
	if (l->has_reply) {
		fprintf(out, "\t  .has_reply = true, .reply = ");
		print_chunk(&l->reply, out);
		fprintf(out, ",\n");
	}
	fprintf(out, "\t},\n");
}
