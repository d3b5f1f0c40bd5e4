/* SPDX-License-Identifier: BSD-2-Clause */
/* crash - checks the server's files against the model. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/clock.h"
#include "tests/crash/crash.h"
#include "tests/unit/pause.h"

#define FILE_BYTES	(FILE_BLOCKS * FILE_BLOCK)

/* The visible state of a slot. */
struct seen {
	struct wire_attr name[SLOT_NAMES];
	bool	 child[SLOT_NAMES];	/* of a directory of that name */
	struct model_fh child_fh[SLOT_NAMES];
};

#define OWED(c, slot, expr, ...) do { \
		if (!(expr)) { \
			model_print(slot); \
			printf("after %lu ends, seed %llu, by the server at " \
			       "port %u: ", (c)->ends, \
			       (unsigned long long)(c)->seed, (c)->wire[ \
			       (slot)->index % CRASH_WIRES].port); \
			printf(__VA_ARGS__); \
			printf("\n"); \
			fflush(stdout); \
			ck_abort_msg(__VA_ARGS__); \
		} \
	} while (0)

static void look(struct crash *c, struct slot *slot, struct seen *seen)
{
	struct wire *w = &c->wire[slot->index % CRASH_WIRES];
	char name[32];

	memset(seen, 0, sizeof(*seen));
	for (int i = 0; i < SLOT_NAMES; i++) {
		struct wire_attr *a = &seen->name[i];
		struct wire_attr child;

		model_name(slot, i, name);
		*a = wire_lookup(w, &wire_dirs[model_dir(i)], name);
		OWED(c, slot, a->status == NFS3_OK ||
		     a->status == NFS3ERR_NOENT, "LOOKUP of %s: status %d",
		     name, a->status);
		if (a->status != NFS3_OK || a->type != NF3DIR)
			continue;
		child = wire_lookup(w, &a->fh, "child");
		seen->child[i] = child.status == NFS3_OK;
		seen->child_fh[i] = child.fh;
	}
}

static enum kind kind_of(const struct wire_attr *a)
{
	return a->type == NF3REG ? KIND_FILE : a->type == NF3DIR ? KIND_DIR :
	       a->type == NF3LNK ? KIND_LINK : KIND_NONE;
}

/* True if the visible state agrees with @s.  Fills in unknown fields of @s. */
static bool fits(struct state *s, const struct seen *seen)
{
	for (int i = 0; i < SLOT_NAMES; i++) {
		const struct wire_attr *a = &seen->name[i];
		struct object *o;

		if (s->name[i] < 0) {
			if (a->status == NFS3_OK)
				return false;
			continue;
		}
		o = &s->obj[s->name[i]];
		if (a->status != NFS3_OK || kind_of(a) != o->kind)
			return false;
		if (!o->fh.len) {
			o->fh = a->fh;
			o->fileid = a->fileid;
		}
		if (o->fileid != a->fileid)
			return false;
		if (o->kind == KIND_DIR && seen->child[i] != o->child)
			return false;
		if (o->child && !o->child_fh.len)
			o->child_fh = seen->child_fh[i];
	}
	return true;
}

/*
 * True if the server shows a file's old name beside the new one, after a RENAME
 * without success from one directory to the other, and else the state @after
 * it.  Then that is in @after.  With another name of the file in the old
 * directory btrfs renames it as a whole.
 */
static bool kept_old(struct crash *c, const struct slot *slot,
		     struct state *after, const struct seen *seen)
{
	const struct op *op = &slot->op;
	int dir = model_dir(op->name);

	if (!c->keeps_old || op->kind != OP_RENAME ||
	    model_dir(op->to) == dir || after->obj[op->obj].kind == KIND_DIR)
		return false;
	for (int i = 0; i < SLOT_NAMES; i++)
		if (model_dir(i) == dir && after->name[i] == op->obj)
			return false;
	after->name[op->name] = op->obj;
	if (!fits(after, seen))
		return false;
	c->both++;
	return true;
}

/* Sets slot->s to the names that the server shows: the state before the
 * unanswered operation, or after it. */
static void adopt(struct crash *c, struct slot *slot)
{
	static const struct ack nothing;
	struct state after = slot->s;
	struct seen seen;

	look(c, slot, &seen);
	if (fits(&slot->s, &seen)) {
		if (slot->frozen)
			model_doubt(&slot->s, &slot->op);
		return;
	}
	if (slot->frozen) {
		model_remember(slot, -1);
		if (slot->op.kind != OP_WRITE && slot->op.kind != OP_COMMIT)
			model_apply(&after, &slot->op, &nothing);
		if (fits(&after, &seen) || kept_old(c, slot, &after, &seen)) {
			slot->s = after;
			return;
		}
	}
	for (int i = 0; i < SLOT_NAMES; i++)
		printf("name %d: owed object %d (file %llu), found status %d "
		       "file %llu\n", i, slot->s.name[i],
		       slot->s.name[i] < 0 ? 0 : (unsigned long long)
		       slot->s.obj[slot->s.name[i]].fileid,
		       seen.name[i].status,
		       (unsigned long long)seen.name[i].fileid);
	OWED(c, slot, false, "the names are not those that are owed");
}

/* Fails.  Data that another READ finds right was not lost. */
static void refuse_data(struct crash *c, struct slot *slot, struct object *o,
			uint32_t b, const uint8_t *data)
{
	static uint8_t again[FILE_BYTES];
	struct wire *w = &c->wire[slot->index % CRASH_WIRES];
	int status = wire_read(w, &o->fh, again, FILE_BYTES);

	model_print_data(o, data);
	printf("another READ: status %d, %s data\n", status,
	       memcmp(again, data, FILE_BYTES) == 0 ? "the same" :
	       model_block_ok(o, b, again + b * FILE_BLOCK) ? "the right" :
	       "other wrong");
	OWED(c, slot, false, "block %u of object %ld (stable %u, %u pending) "
	     "has other data", b, (long)(o - slot->s.obj), o->block[b].stable,
	     o->block[b].npending);
}

static void check_data(struct crash *c, struct slot *slot, struct object *o,
		       uint64_t size)
{
	static uint8_t data[FILE_BYTES];
	struct wire *w = &c->wire[slot->index % CRASH_WIRES];
	int status = wire_read(w, &o->fh, data, FILE_BYTES);

	/* READ can overwrite a verifier that is kept as the time of access.  A
	 * client that reads has had CREATE's answer. */
	o->verifier = 0;
	OWED(c, slot, status == NFS3_OK, "READ: status %d", status);
	OWED(c, slot, size >= (uint64_t)o->min * FILE_BLOCK &&
	     size <= (uint64_t)o->max * FILE_BLOCK,
	     "the size is %llu, not between %u and %u blocks",
	     (unsigned long long)size, o->min, o->max);
	for (uint32_t b = 0; b < FILE_BLOCKS; b++)
		if (!model_block_ok(o, b, data + b * FILE_BLOCK))
			refuse_data(c, slot, o, b, data);
}

static void check_link(struct crash *c, struct slot *slot, struct object *o)
{
	struct wire *w = &c->wire[slot->index % CRASH_WIRES];
	char want[64], got[1025];
	int status = wire_readlink(w, &o->fh, got);

	model_target(o->tag, want);
	OWED(c, slot, status == NFS3_OK && strcmp(want, got) == 0,
	     "READLINK: status %d, '%s' not '%s'", status, got, want);
}

/* The handle leads to the file; where handles can go, it can also be stale, and
 * LOOKUP's handle replaces it. */
static struct wire_attr check_handle(struct crash *c, struct slot *slot,
				     struct model_fh *fh, uint64_t fileid)
{
	struct wire *w = &c->wire[slot->index % CRASH_WIRES];
	struct wire_attr a = wire_getattr(w, fh);

	OWED(c, slot, a.status == NFS3_OK, "GETATTR by handle: status %d",
	     a.status);
	OWED(c, slot, fileid == 0 || a.fileid == fileid,
	     "a handle leads to file %llu, not %llu",
	     (unsigned long long)a.fileid, (unsigned long long)fileid);
	c->checked++;
	return a;
}

static void renew_handle(struct crash *c, struct slot *slot, int obj)
{
	struct wire *w = &c->wire[slot->index % CRASH_WIRES];
	struct object *o = &slot->s.obj[obj];
	char name[32];

	if (wire_getattr(w, &o->fh).status != NFS3ERR_STALE)
		return;
	for (int i = 0; i < SLOT_NAMES; i++)
		if (slot->s.name[i] == obj) {
			model_name(slot, i, name);
			o->fh = wire_lookup(w, &wire_dirs[model_dir(i)],
					    name).fh;
		}
	c->lost_handles++;
}

static void check_object(struct crash *c, struct slot *slot, int obj)
{
	struct object *o = &slot->s.obj[obj];
	struct wire *w = &c->wire[slot->index % CRASH_WIRES];
	struct wire_attr a;

	if (c->handles_may_go)
		renew_handle(c, slot, obj);
	a = check_handle(c, slot, &o->fh, o->fileid);
	OWED(c, slot, kind_of(&a) == o->kind, "the type is %u", a.type);
	OWED(c, slot, o->mode < 0 || (int)a.mode == o->mode ||
	     (int)a.mode == o->old_mode, "the mode is %o, not %o", a.mode,
	     (unsigned)o->mode);
	if (o->mode >= 0)
		o->mode = (int)a.mode;
	o->old_mode = -1;
	if (o->kind == KIND_FILE)
		check_data(c, slot, o, a.size);
	else if (o->kind == KIND_LINK)
		check_link(c, slot, o);
	else if (o->child && c->handles_may_go &&
		 wire_getattr(w, &o->child_fh).status == NFS3ERR_STALE)
		o->child_fh = wire_lookup(w, &o->fh, "child").fh;
	if (o->child)
		check_handle(c, slot, &o->child_fh, 0);
}

/* CREATE EXCLUSIVE of @name, as a new call. */
static struct wire_attr create_again(struct crash *c, struct slot *slot,
				     int name, uint32_t tag)
{
	struct wire *w = &c->wire[slot->index % CRASH_WIRES];
	char text[32];

	model_name(slot, name, text);
	return wire_exclusive(w, &wire_dirs[model_dir(name)], text, tag);
}

/* The client repeats an unanswered exclusive CREATE: the file is its own, made
 * before or now.  Without room to make it, it stays in doubt. */
static void send_again(struct crash *c, struct slot *slot)
{
	struct wire *w = &c->wire[slot->index % CRASH_WIRES];
	struct wire_attr a;
	struct ack ack;
	char text[32];

	if (!slot->frozen || !slot->unanswered ||
	    slot->op.kind != OP_EXCLUSIVE)
		return;
	a = create_again(c, slot, slot->op.name, slot->op.tag);
	model_remember(slot, a.status);
	if (crash_may_refuse(c, a.status)) {
		model_name(slot, slot->op.name, text);
		a = wire_lookup(w, &wire_dirs[model_dir(slot->op.name)], text);
		OWED(c, slot, a.status == NFS3ERR_NOENT,
		     "EXCLUSIVE CREATE of a file that is there was refused");
		return;
	}
	OWED(c, slot, a.status == NFS3_OK,
	     "EXCLUSIVE CREATE without an answer, again: status %d", a.status);
	ack = (struct ack){ .fh = a.fh, .fileid = a.fileid };
	model_apply(&slot->s, &slot->op, &ack);
	slot->frozen = false;
	c->again++;
}

/* The creator of a file is known by its verifier, and no other is it. */
static void check_verifiers(struct crash *c, struct slot *slot)
{
	for (int i = 0; i < SLOT_NAMES; i++) {
		const struct object *o;
		struct wire_attr a;

		if (slot->s.name[i] < 0)
			continue;
		o = &slot->s.obj[slot->s.name[i]];
		if (!o->verifier)
			continue;
		a = create_again(c, slot, i, o->verifier);
		OWED(c, slot, a.status == NFS3_OK && a.fileid == o->fileid,
		     "EXCLUSIVE CREATE again: status %d, file %llu, not %llu",
		     a.status, (unsigned long long)a.fileid,
		     (unsigned long long)o->fileid);
		a = create_again(c, slot, i, ~o->verifier);
		OWED(c, slot, a.status == NFS3ERR_EXIST,
		     "another's EXCLUSIVE CREATE: status %d", a.status);
		c->again++;
	}
}

/* The final status of a handle.  Without the system's handles the server
 * searches for a lost file until its directory rests, and answers JUKEBOX until
 * then. */
static int status_in_the_end(struct wire *w, const struct model_fh *fh)
{
	int status;

	(void)AWAIT_EACH(5000, (status = wire_getattr(w, fh).status) !=
			       NFS3ERR_JUKEBOX);
	return status;
}

static void check_slot(struct crash *c, struct slot *slot)
{
	struct wire *w = &c->wire[slot->index % CRASH_WIRES];

	send_again(c, slot);
	adopt(c, slot);
	check_verifiers(c, slot);
	slot->frozen = false;
	for (int i = 0; i < SLOT_OBJECTS; i++)
		if (slot->s.obj[i].kind != KIND_NONE)
			check_object(c, slot, i);
	if (slot->s.dead.len) {
		int status = status_in_the_end(w, &slot->s.dead);

		OWED(c, slot, status == NFS3ERR_STALE,
		     "the handle of what was removed: status %d", status);
	}
	model_restarted(&slot->s);
}

/* ---- listings */

struct names {
	int	 dir;
	bool	 unknown;
	unsigned count[CRASH_SLOTS][SLOT_NAMES];
};

static void each_name(void *arg, const char *name)
{
	struct names *n = arg;
	unsigned slot;
	int i, used = 0;

	if (sscanf(name, "slot%u.%d%n", &slot, &i, &used) == 2 &&
	    !name[used] && slot < CRASH_SLOTS && i >= 0 && i < SLOT_NAMES &&
	    model_dir(i) == n->dir)
		n->count[slot][i]++;
	else
		n->unknown = true;
}

static void check_listing(struct crash *c, int dir)
{
	struct names n = { .dir = dir };

	ck_assert_int_eq(wire_list(&c->wire[0], &wire_dirs[dir], each_name,
				   &n), NFS3_OK);
	ck_assert(!n.unknown);
	for (unsigned i = 0; i < CRASH_SLOTS; i++)
		for (int k = 0; k < SLOT_NAMES; k++) {
			bool owed = model_dir(k) == dir &&
				c->slots[i].s.name[k] >= 0;

			OWED(c, &c->slots[i], n.count[i][k] == owed,
			     "a listing has name %d %u times", k,
			     n.count[i][k]);
			c->checked += owed;
		}
}

void crash_check(struct crash *c)
{
	for (int i = 0; i < SLOT_DIRS; i++)
		ck_assert_int_eq(wire_getattr(&c->wire[0],
					      &wire_dirs[i]).status, NFS3_OK);
	for (unsigned i = 0; i < CRASH_SLOTS; i++)
		check_slot(c, &c->slots[i]);
	for (int i = 0; i < SLOT_DIRS; i++)
		check_listing(c, i);
}
