/* SPDX-License-Identifier: BSD-2-Clause */
/* model - the state that a server acknowledged. */
#include "tests/crash/model.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"

int model_mode_always;
static uint64_t seed = 1;
static uint32_t last_tag;

static const char *const op_names[OP_KINDS] = {
	"CREATE", "EXCLUSIVE", "MKDIR", "SYMLINK", "LINK", "RENAME", "REMOVE",
	"RMDIR", "MODE", "SIZE", "WRITE", "COMMIT", "CREATE below",
	"REMOVE below",
};

static uint64_t mix(uint64_t v)
{
	v ^= v >> 30;
	v *= 0xbf58476d1ce4e5b9u;
	v ^= v >> 27;
	v *= 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

uint32_t model_random(void)
{
	seed += 0x9e3779b97f4a7c15u;
	return (uint32_t)(mix(seed) >> 16);
}

uint32_t model_tag(void)
{
	return ++last_tag;
}

void model_seed(uint64_t s)
{
	seed = s;
}

void model_init(struct slot *slot, unsigned index)
{
	memset(slot, 0, sizeof(*slot));
	slot->index = index;
	for (int i = 0; i < SLOT_NAMES; i++)
		slot->s.name[i] = -1;
}

void model_name(const struct slot *slot, int name, char out[32])
{
	snprintf(out, 32, "slot%u.%d", slot->index, name);
}

int model_dir(int name)
{
	return name % SLOT_DIRS;
}

void model_target(uint32_t tag, char out[64])
{
	snprintf(out, 64, "%0*u", (int)(1 + tag % 60), tag);
}

void model_fill(uint32_t tag, uint32_t block, uint8_t *out)
{
	uint64_t v = mix((uint64_t)tag << 32 | block);

	if (tag == 0) {
		memset(out, 0, FILE_BLOCK);
		return;
	}
	for (uint32_t i = 0; i < FILE_BLOCK; i += 8) {
		v ^= v << 13;
		v ^= v >> 7;
		v ^= v << 17;
		memcpy(out + i, &v, 8);
	}
}

/* ---- the choice of the next operation */

static int links(const struct state *s, int obj)
{
	int n = 0;

	for (int i = 0; i < SLOT_NAMES; i++)
		n += s->name[i] == obj;
	return n;
}

static bool pending(const struct object *o)
{
	for (int i = 0; i < FILE_BLOCKS; i++)
		if (o->block[i].npending)
			return true;
	return false;
}

static bool pending_full(const struct object *o)
{
	for (int i = 0; i < FILE_BLOCKS; i++)
		if (o->block[i].npending >= FILE_PENDING)
			return true;
	return false;
}

/* True if an object of this kind can replace or remove the object. */
static bool can_go(const struct object *o, bool is_dir)
{
	if (o->kind == KIND_DIR)
		return is_dir && !o->child;
	return !is_dir;
}

static bool choose_new(struct slot *slot, struct op *op)
{
	static const int modes[] = { 0644, 0600, 0400, 0755, 0000, 0666 };

	if (slot->s.name[op->name] >= 0)
		return false;
	op->obj = slot->s.obj[0].kind == KIND_NONE ? 0 : 1;
	op->tag = model_tag();
	op->how = (int)(model_random() % 2);	/* UNCHECKED, GUARDED */
	op->mode = op->kind == OP_MKDIR ? 0755 :
		   modes[model_random() % 6] | model_mode_always;
	return slot->s.obj[op->obj].kind == KIND_NONE;
}

static bool choose_rename(struct slot *slot, struct op *op)
{
	const struct state *s = &slot->s;
	int from = s->name[op->name], to = s->name[op->to];

	/* Between two names of one file it does nothing. */
	if (from < 0 || from == to)
		return false;
	op->obj = from;
	return to < 0 || (can_go(&s->obj[to], s->obj[from].kind == KIND_DIR) &&
			  (s->obj[from].kind == KIND_DIR) ==
			  (s->obj[to].kind == KIND_DIR));
}

static bool choose_data(struct slot *slot, struct op *op)
{
	const struct object *o = &slot->s.obj[op->obj];

	if (o->kind != KIND_FILE)
		return false;
	op->block = model_random() % FILE_BLOCKS;
	if (op->kind == OP_SIZE)
		return true;
	if (op->kind == OP_COMMIT)
		return pending(o) && !o->redo;
	op->count = 1 + model_random() % 3;
	if (op->block + op->count > FILE_BLOCKS)
		op->count = FILE_BLOCKS - op->block;
	/* UNSTABLE for the half, DATA_SYNC and FILE_SYNC. */
	op->how = model_random() % 2 ? 0 : 1 + (int)(model_random() % 2);
	op->tag = model_tag();
	return op->how || !pending_full(o);
}

/* The data that a client sends again, stable and block by block: the last that
 * it sent of each block. */
static bool choose_redo(struct slot *slot, struct op *op)
{
	for (int i = 0; i < SLOT_OBJECTS; i++) {
		struct object *o = &slot->s.obj[i];

		if (o->kind != KIND_FILE || !o->redo)
			continue;
		for (uint32_t b = 0; b < FILE_BLOCKS; b++) {
			if (!o->block[b].npending)
				continue;
			*op = (struct op){ .kind = OP_WRITE, .obj = i,
				.block = b, .count = 1, .how = 2,
				.tag = o->block[b].pending[
					o->block[b].npending - 1] };
			/* Zeros were cut off, not written. */
			if (op->tag == 0)
				op->tag = model_tag();
			return true;
		}
		o->redo = false;
	}
	return false;
}

static bool try_choose(struct slot *slot, struct op *op)
{
	const struct state *s = &slot->s;
	struct object *o = &slot->s.obj[op->obj];

	switch (op->kind) {
	case OP_CREATE: case OP_EXCLUSIVE: case OP_MKDIR: case OP_SYMLINK:
		return choose_new(slot, op);
	case OP_LINK:
		return o->kind != KIND_NONE && o->kind != KIND_DIR &&
		       s->name[op->to] < 0;
	case OP_RENAME:
		return choose_rename(slot, op);
	case OP_REMOVE: case OP_RMDIR:
		op->obj = s->name[op->name];
		return op->obj >= 0 && can_go(&s->obj[op->obj],
					      op->kind == OP_RMDIR);
	case OP_MODE:
		op->mode = o->kind == KIND_DIR ?
			0700 | (int)(model_random() & 077) :
			(int)(model_random() & 0777) | model_mode_always;
		return o->kind == KIND_FILE || o->kind == KIND_DIR;
	case OP_SIZE: case OP_WRITE: case OP_COMMIT:
		return choose_data(slot, op);
	case OP_CHILD:
		return o->kind == KIND_DIR && !o->child;
	case OP_UNCHILD:
		return o->kind == KIND_DIR && o->child;
	default:
		return false;
	}
}

void model_choose(struct slot *slot)
{
	static const enum op_kind often[] = {
		OP_CREATE, OP_EXCLUSIVE, OP_MKDIR, OP_SYMLINK, OP_LINK,
		OP_RENAME, OP_RENAME, OP_REMOVE, OP_RMDIR, OP_MODE, OP_SIZE,
		OP_WRITE, OP_WRITE, OP_WRITE, OP_WRITE, OP_WRITE, OP_COMMIT,
		OP_COMMIT, OP_CHILD, OP_UNCHILD,
	};
	struct op *op = &slot->op;

	if (choose_redo(slot, op))
		return;
	do {
		*op = (struct op){
			.kind = often[model_random() % (sizeof(often) /
							sizeof(often[0]))],
			.name = (int)(model_random() % SLOT_NAMES),
			.to = (int)(model_random() % SLOT_NAMES),
			.obj = (int)(model_random() % SLOT_OBJECTS),
		};
	} while (!try_choose(slot, op));
}

/* ---- the next operation */

static void let_go(struct state *s, int obj)
{
	if (links(s, obj) == 0) {
		s->dead = s->obj[obj].fh;
		s->obj[obj].kind = KIND_NONE;
	}
}

static void make(struct state *s, const struct op *op, const struct ack *ack)
{
	static const enum kind kinds[] = {
		[OP_CREATE] = KIND_FILE, [OP_EXCLUSIVE] = KIND_FILE,
		[OP_MKDIR] = KIND_DIR, [OP_SYMLINK] = KIND_LINK,
	};

	s->name[op->name] = op->obj;
	s->obj[op->obj] = (struct object){
		.kind = kinds[op->kind], .tag = op->tag, .fh = ack->fh,
		.fileid = ack->fileid, .old_mode = -1,
		.verifier = op->kind == OP_EXCLUSIVE ? op->tag : 0,
		.mode = ack->fh.len && (op->kind == OP_CREATE ||
					op->kind == OP_MKDIR) ? op->mode : -1,
	};
}

static void truncate_to(struct object *o, uint32_t blocks)
{
	for (uint32_t i = blocks; i < FILE_BLOCKS; i++)
		o->block[i] = (struct block){ 0 };
	o->min = o->max = blocks;
}

static void grow(struct object *o, uint32_t blocks, bool due)
{
	if (o->max < blocks)
		o->max = blocks;
	if (due && o->min < blocks)
		o->min = blocks;
}

static void take_write(struct object *o, const struct op *op,
		       const struct ack *ack)
{
	bool had = pending(o);

	for (uint32_t i = op->block; i < op->block + op->count; i++) {
		struct block *b = &o->block[i];

		if (ack->stable) {
			b->stable = op->tag;
			b->npending = 0;
		} else {
			b->pending[b->npending++] = op->tag;
		}
	}
	grow(o, op->block + op->count, ack->stable);
	if (!ack->stable && had && o->verf != ack->verf)
		o->redo = true;
	if (!ack->stable)
		o->verf = ack->verf;
}

static void take_commit(struct object *o, const struct ack *ack)
{
	if (o->verf != ack->verf) {
		o->redo = true;
		return;
	}
	for (int i = 0; i < FILE_BLOCKS; i++) {
		struct block *b = &o->block[i];

		if (b->npending)
			b->stable = b->pending[b->npending - 1];
		b->npending = 0;
	}
	o->min = o->max;
}

void model_apply(struct state *s, const struct op *op, const struct ack *ack)
{
	struct object *o = &s->obj[op->obj];
	int old;

	switch (op->kind) {
	case OP_CREATE: case OP_EXCLUSIVE: case OP_MKDIR: case OP_SYMLINK:
		make(s, op, ack);
		break;
	case OP_LINK:
		s->name[op->to] = op->obj;
		break;
	case OP_RENAME:
		old = s->name[op->to];
		s->name[op->to] = op->obj;
		s->name[op->name] = -1;
		if (old >= 0)
			let_go(s, old);
		break;
	case OP_REMOVE: case OP_RMDIR:
		s->name[op->name] = -1;
		let_go(s, op->obj);
		break;
	case OP_MODE:
		o->mode = op->mode;
		break;
	case OP_SIZE:
		truncate_to(o, op->block);
		break;
	case OP_WRITE:
		take_write(o, op, ack);
		break;
	case OP_COMMIT:
		take_commit(o, ack);
		break;
	case OP_CHILD:
		o->child = true;
		o->child_fh = ack->fh;
		break;
	case OP_UNCHILD:
		o->child = false;
		s->dead = o->child_fh;
		break;
	default:
		break;
	}
}

/* Adds one to the possible contents of a block. */
static void may_hold(struct block *b, uint32_t tag)
{
	for (unsigned i = 0; i < b->npending; i++)
		if (b->pending[i] == tag)
			return;
	assert(b->npending < FILE_ROOM);
	b->pending[b->npending++] = tag;
}

void model_doubt(struct state *s, const struct op *op)
{
	struct object *o = &s->obj[op->obj];

	switch (op->kind) {
	case OP_MODE:
		o->old_mode = o->mode;
		o->mode = o->mode < 0 ? -1 : op->mode;
		break;
	case OP_SIZE:
		for (uint32_t i = op->block; i < FILE_BLOCKS; i++)
			may_hold(&o->block[i], 0);
		if (op->block < o->min)
			o->min = op->block;
		grow(o, op->block, false);
		break;
	case OP_WRITE:
		for (uint32_t i = op->block; i < op->block + op->count; i++)
			may_hold(&o->block[i], op->tag);
		grow(o, op->block + op->count, false);
		break;
	default:
		break;
	}
}

void model_restarted(struct state *s)
{
	for (int i = 0; i < SLOT_OBJECTS; i++)
		if (s->obj[i].kind == KIND_FILE)
			s->obj[i].redo = pending(&s->obj[i]);
}

bool model_block_ok(const struct object *o, uint32_t block,
		    const uint8_t *data)
{
	uint8_t may[FILE_ROOM + 1][FILE_BLOCK + 8];
	const struct block *b = &o->block[block];
	unsigned n = b->npending;

	model_fill(b->stable, block, may[n]);
	if (memcmp(may[n], data, FILE_BLOCK) == 0)
		return true;
	for (unsigned k = 0; k < n; k++)
		model_fill(b->pending[k], block, may[k]);
	for (uint32_t i = 0; i < FILE_BLOCK; i++) {
		bool ok = false;

		for (unsigned k = 0; k <= n && !ok; k++)
			ok = may[k][i] == data[i];
		if (!ok)
			return false;
	}
	return true;
}

/* ---- the history */

void model_remember(struct slot *slot, int status)
{
	unsigned i = slot->nhistory++ % SLOT_HISTORY;

	slot->history[i].op = slot->op;
	slot->history[i].status = status;
	slot->history[i].began = slot->began;
	slot->history[i].ended = clock_ms();
}

void model_print(const struct slot *slot)
{
	unsigned n = slot->nhistory;

	printf("slot %u at %llu ms, its last operations:\n", slot->index,
	       (unsigned long long)clock_ms());
	for (unsigned i = n > SLOT_HISTORY ? n - SLOT_HISTORY : 0; i < n; i++) {
		const struct done *d = &slot->history[i % SLOT_HISTORY];
		const struct op *op = &d->op;

		printf("  %llu-%llu %s name %d to %d object %d how %d mode %o "
		       "block %u+%u tag %u: status %d\n",
		       (unsigned long long)d->began,
		       (unsigned long long)d->ended,
		       op_names[op->kind], op->name, op->to, op->obj, op->how,
		       (unsigned)op->mode, op->block, op->count, op->tag,
		       d->status);
	}
	fflush(stdout);
}

/* Counts the bytes at @at that match one tag, and puts that in @tag. */
static uint32_t same_bytes(uint32_t block, const uint8_t *data, uint32_t at,
			   uint32_t *tag)
{
	uint8_t fill[FILE_BLOCK + 8];
	uint32_t most = 0;

	for (uint32_t t = 0; t <= last_tag; t++) {
		uint32_t n = 0;

		model_fill(t, block, fill);
		while (at + n < FILE_BLOCK && fill[at + n] == data[at + n])
			n++;
		if (n > most) {
			most = n;
			*tag = t;
		}
	}
	return most;
}

/* Prints the pieces of a block by the tags of their WRITEs.  A few bytes can
 * match some tag by chance. */
static void print_content(uint32_t block, const uint8_t *data)
{
	uint32_t tag = 0, at = 0, n;

	printf(" holds");
	for (int i = 0; at < FILE_BLOCK && i < 8; i++) {
		n = same_bytes(block, data, at, &tag);
		if (n >= 8 || at + n == FILE_BLOCK) {
			printf(" %u bytes of tag %u,", n, tag);
			at += n;
			continue;
		}
		printf(" ");
		for (n = 0; n < 4 && at < FILE_BLOCK; n++)
			printf("%02x", data[at++]);
		printf(" of no tag,");
	}
	printf(" to byte %u\n", at);
}

void model_print_data(const struct object *o, const uint8_t *data)
{
	printf("file %llu, of %u to %u blocks%s:\n",
	       (unsigned long long)o->fileid, o->min, o->max,
	       o->redo ? ", to be written again" : "");
	for (uint32_t b = 0; b < FILE_BLOCKS; b++) {
		printf("  block %u: owed tag %u", b, o->block[b].stable);
		for (unsigned i = 0; i < o->block[b].npending; i++)
			printf(" or %u", o->block[b].pending[i]);
		print_content(b, data + b * FILE_BLOCK);
	}
	fflush(stdout);
}
