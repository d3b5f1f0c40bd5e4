/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout - an NFS call with its chunks, as numbers; and a plain model of its
 * answer, made from the texts (RFC 8166 sections 3.4, 3.5, 4.3 and 4.5; RFC
 * 8267 section 4) without the server's code.
 *
 * The sizes of chunks are relative to the need, so a case stays the same case
 * ("one byte short") when a smaller one is looked for.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LAYOUT_SEGS	8
#define LAYOUT_READS	3
#define LAYOUT_WRITES	12
#define LAYOUT_PEERS	4
#define LAYOUT_TARGETS	8

enum layout_proc {
	LAYOUT_NULL,
	LAYOUT_GETATTR,
	LAYOUT_READ,
	LAYOUT_READLINK,
	LAYOUT_WRITE,
	LAYOUT_SYMLINK,
	LAYOUT_READDIR,
	LAYOUT_PROCS
};

/* Segment i has cut[i] bytes, or as many as are left; the last has the rest.
 * Without a segment the chunk is empty; a Read chunk is left out. */
struct layout_chunk {
	unsigned nsegs;
	int32_t	 diff;		/* bytes beyond the need */
	uint32_t cut[LAYOUT_SEGS - 1];
};

struct layout {
	enum layout_proc proc;
	unsigned target;	/* which link, or directory */
	unsigned peer;		/* which connection */
	unsigned place;		/* of segments in memory; 0: one by one */
	uint32_t len;		/* READ's count; bytes of WRITE, SYMLINK */
	uint32_t offset;
	/* The call, in a Position-Zero chunk or inline (diff alone counts). */
	bool	 nomsg;
	struct layout_chunk call;
	/* The first takes the data; the others need nothing. */
	unsigned nreads;
	bool	 mixed;		/* segments of the Read list in turns */
	int32_t	 shift[LAYOUT_READS];	/* of the position, from the data's */
	struct layout_chunk read[LAYOUT_READS];
	unsigned nwrites;	/* the first takes the data; as above */
	struct layout_chunk write[LAYOUT_WRITES];
	bool	 has_reply;
	struct layout_chunk reply;
};

/* Facts about the server's files, and about connections. */
struct layout_facts {
	uint32_t fh_len;
	uint32_t file_size;		/* of READ's file */
	uint32_t link_len[LAYOUT_TARGETS];
	uint32_t dir_reply[LAYOUT_TARGETS];	/* a whole RPC reply */
	uint32_t threshold[LAYOUT_PEERS];	/* for messages to the peer */
};

enum layout_answer { LAYOUT_ERR_CHUNK, LAYOUT_GARBAGE, LAYOUT_OK };

/* The model's word. */
struct layout_expect {
	enum layout_answer answer;
	bool	 done;		/* the call is carried out */
	bool	 nomsg;
	uint32_t result;	/* bytes of the result that is eligible */
	uint32_t written;	/* bytes in the first Write chunk */
	uint32_t rest;		/* bytes of the RPC reply elsewhere */
};

/* The longest READ, WRITE and call inline. */
#define LAYOUT_DATA_MAX		(1u << 20)
#define LAYOUT_INLINE		4096u
/* The header of a call with AUTH_SYS without a name and groups. */
#define LAYOUT_RPC_CALL		60u
#define LAYOUT_RPC_REPLY	24u

/* layout_model.c.  Pure. */
void layout_model(const struct layout *l, const struct layout_facts *f,
		  struct layout_expect *e);
/* Bytes of the call before its data, and with all parts that have no separate
 * chunk in this layout. */
uint32_t layout_call_head(const struct layout *l, const struct layout_facts *f);
uint32_t layout_call_len(const struct layout *l, const struct layout_facts *f);
/* Bytes of Read chunks. */
uint32_t layout_data_len(const struct layout *l);
/* The need of each chunk. */
uint32_t layout_result_len(const struct layout *l,
			   const struct layout_facts *f);
uint32_t layout_rest_len(const struct layout *l, const struct layout_facts *f);
/* The length of a chunk with this need, and of its segment @i. */
uint32_t layout_chunk_len(const struct layout_chunk *c, uint32_t need);
uint32_t layout_segment_len(const struct layout_chunk *c, uint32_t len,
			    unsigned i);
bool layout_has_data(const struct layout *l);	/* WRITE, SYMLINK */

/* layout_case.c */
struct layout_random {
	uint64_t state;
};

uint32_t layout_roll(struct layout_random *r, uint32_t below);
/* False: a path that no server takes; inline bytes behind a chunk that could be
 * taken for bytes that it lacks; or two chunks that are one, in turns. */
bool layout_valid(const struct layout *l);
void layout_random(struct layout *l, struct layout_random *r);
/* The next smaller variant of @l, number *@step from 0 on.  False: the end. */
bool layout_smaller(const struct layout *l, unsigned *step,
		    struct layout *out);
/* Prints the case as a row of a table. */
void layout_print(const struct layout *l, FILE *out);

/* layout_call.c: a server, and the connections to it. */
void layout_open(uint32_t seed);
void layout_close(void);
/* Asks; NULL when the answer is that of the model, or else the difference, in
 * static memory.  True in *@sent: the call could be sent. */
const char *layout_try(const struct layout *l, bool *sent);
