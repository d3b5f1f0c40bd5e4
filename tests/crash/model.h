/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model - the state that a server acknowledged, and so owes.
 *
 * The work is done in slots.  A slot has a few names, in two directories that
 * all slots share, and at most two objects behind them; it has one operation
 * under way at a time, so all but that one's effect is known exactly.  Slots
 * work at the same time.
 *
 * The data of a file is made from the tag of the WRITE that brought it, so
 * nothing of it is stored here.  Unstable data is pending until a COMMIT with
 * the same verifier: until then each byte of a block is the stable one or a
 * pending one.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOT_NAMES	4
#define SLOT_OBJECTS	2
#define SLOT_DIRS	2
#define SLOT_HISTORY	48
#define FILE_BLOCKS	12
/* Two blocks share a page, and a sector. */
#define FILE_BLOCK	5000u
#define FILE_PENDING	5		/* then a COMMIT is due */
#define FILE_ROOM	16		/* including data in doubt */

struct model_fh {
	uint32_t len;
	uint8_t	 data[64];
};

struct block {
	uint32_t stable;		/* a tag; 0: zeros */
	unsigned npending;
	uint32_t pending[FILE_ROOM];
};

enum kind { KIND_NONE, KIND_FILE, KIND_DIR, KIND_LINK };

struct object {
	enum kind kind;
	struct model_fh fh;		/* len 0: not known yet */
	uint64_t fileid;
	int	 mode;			/* -1: not known */
	int	 old_mode;		/* or this mode; -1: no */
	uint32_t tag;			/* of a symbolic link's target */
	uint32_t verifier;		/* of EXCLUSIVE CREATE; 0: forgotten */
	bool	 child;			/* of a directory */
	struct model_fh child_fh;
	uint32_t min, max;		/* bounds of its size in blocks */
	struct block block[FILE_BLOCKS];
	uint64_t verf;			/* of the pending data */
	bool	 redo;			/* the verifier changed: send again */
};

enum op_kind {
	OP_CREATE, OP_EXCLUSIVE, OP_MKDIR, OP_SYMLINK, OP_LINK, OP_RENAME,
	OP_REMOVE, OP_RMDIR, OP_MODE, OP_SIZE, OP_WRITE, OP_COMMIT,
	OP_CHILD, OP_UNCHILD, OP_KINDS
};

struct op {
	enum op_kind kind;
	int	 name, to;
	int	 obj;
	int	 mode;
	int	 how;			/* of CREATE, of WRITE */
	uint32_t tag;
	uint32_t block, count;		/* in blocks */
};

struct state {
	int	 name[SLOT_NAMES];	/* index of the object, or -1 */
	struct object obj[SLOT_OBJECTS];
	struct model_fh dead;		/* of an object that went last */
};

/* An operation that is over; its times are in ms. */
struct done {
	struct op op;
	int	 status;
	uint64_t began, ended;
};

struct slot {
	unsigned index;
	struct state s;
	struct op op;
	bool	 busy;			/* op is under way */
	bool	 frozen;		/* none until the next start */
	bool	 unanswered;		/* frozen, for want of an answer */
	unsigned nhistory;
	uint64_t began;			/* when op was sent, in ms */
	struct done history[SLOT_HISTORY];
};

/* The results in a reply, except its status. */
struct ack {
	struct model_fh fh;
	uint64_t fileid;
	uint64_t verf;
	bool	 stable;		/* WRITE: needs no COMMIT */
};

/* Bits that the mode of every file has. */
extern int model_mode_always;

uint32_t model_random(void);
void model_seed(uint64_t seed);
/* A new one. */
uint32_t model_tag(void);
void model_init(struct slot *slot, unsigned index);
/* The text of one of its names, and the directory that this is in. */
void model_name(const struct slot *slot, int name, char out[32]);
int model_dir(int name);
void model_target(uint32_t tag, char out[64]);
void model_fill(uint32_t tag, uint32_t block, uint8_t *out);
/* Chooses the next operation of @slot, into slot->op. */
void model_choose(struct slot *slot);
/* Applies @op to @s. */
void model_apply(struct state *s, const struct op *op, const struct ack *ack);
/* @op is in doubt: marks its effects that show in no name. */
void model_doubt(struct state *s, const struct op *op);
/* The server was restarted: pending data has to be sent again. */
void model_restarted(struct state *s);
/* True if @data (FILE_BLOCK bytes) is a possible content of @block of the
 * file. */
bool model_block_ok(const struct object *o, uint32_t block,
		    const uint8_t *data);
void model_remember(struct slot *slot, int status);
void model_print(const struct slot *slot);
/* The data that a file is to have, and which it has. */
void model_print_data(const struct object *o, const uint8_t *data);
