/* SPDX-License-Identifier: BSD-2-Clause */
/* iwarp_world - FPDUs by hand, and a world around the state of rdmap. */
#pragma once

#include "transport/fabric/iwarp/rdmap.h"

/* Encodes a FPDU; returns its length.  No CRC: the field is zero. */
size_t fpdu_put(uint8_t *out, const struct ddp_header *h, const void *payload,
		bool crc);
/* "0a 0B.." without spaces; returns the length. */
size_t unhex(const char *hex, uint8_t *out);

enum { WORLD_RECVS = 4, WORLD_RECV = 600, WORLD_READS = 2, WORLD_READ = 5000,
       WORLD_OPEN = 4096 };
/* The peer has access to WORLD_OPEN bytes from this offset. */
#define WORLD_STAG	0x01020304u
#define WORLD_TO	0xfffffffffff00000ull

struct world {
	struct rdmap r;
	uint8_t	 recv[WORLD_RECVS][WORLD_RECV];
	uint32_t recv_len[WORLD_RECVS];
	int	 recv_status[WORLD_RECVS];
	bool	 recv_inv[WORLD_RECVS];
	unsigned nrecv;			/* that came */
	/* Reads under way: sinks are called 0x100, 0x200. */
	uint8_t	 sink[WORLD_READS][WORLD_READ];
	unsigned nreads;		/* that were answered */
	unsigned max_reads;		/* that were sent */
	uint8_t	 open[WORLD_OPEN];
	bool	 writable;
	unsigned requests;		/* Reads of the peer's */
	struct rdmap_request request;	/* the last one */
	unsigned invalidated;
	unsigned terminated;		/* its code */
};

void world_init(struct world *w, bool crc);
void world_fini(struct world *w);
