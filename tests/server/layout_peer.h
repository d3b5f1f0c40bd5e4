/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * layout_peer - the whole server on the loop fabric, with the files that
 * layouts are about, and peers that send one message at a time.
 */
#pragma once

#include "exports/export.h"
#include "lib/xdr.h"
#include "tests/server/layout.h"
#include "transport/fabric/fabric.h"

#define LAYOUT_HANDLES	3
#define LAYOUT_AREA	(6u << 20)	/* for the chunks of a layout */
#define LAYOUT_ATTRS	84u

/* The server's files, as they are known to be. */
struct layout_world {
	struct layout_facts facts;
	struct nfs3_fh top, file, copy;
	struct nfs3_fh link[LAYOUT_TARGETS], dir[LAYOUT_TARGETS];
	uint8_t	 *data;			/* of the file to read */
	uint8_t	 *shadow;		/* of the file to write */
	uint32_t  shadow_size;
	uint8_t	  file_attr[LAYOUT_ATTRS];
	uint8_t	  link_attr[LAYOUT_TARGETS][LAYOUT_ATTRS];
	uint8_t	 *dir_reply[LAYOUT_TARGETS];	/* from the status on */
	/* Memory that the server reaches by each of the handles. */
	uint8_t	 *area;
};

extern struct layout_world world;

/* The i-th byte of a link, or of data that is told apart by @salt. */
uint8_t layout_letter(uint32_t i);
uint8_t layout_byte(uint32_t i, uint32_t salt);

/* Sends @len bytes and waits for the answer; returns its length, or -errno:
 * -ETIMEDOUT, -ENOTCONN.  The next call has a new connection, then. */
int layout_ask(unsigned peer, const void *msg, uint32_t len,
	       const uint8_t **answer);
uint32_t layout_handle(unsigned i);
/* If the answer invalidated a handle: its number, which is valid again.  -1: it
 * did not.  -2: a foreign handle. */
int layout_invalidated(unsigned peer);
bool layout_may_invalidate(unsigned peer);

/*
 * The plainest way to ask: begin a call, add arguments to the cursor, send.
 * The reply, which is checked to be of success, is read from its status on.
 */
struct xdr_out *plain_begin(uint32_t proc, const struct nfs3_fh *fh);
struct xdr_in *plain_send(void);
/* READ into memory that is valid until the next plain_begin(). */
const uint8_t *plain_read(const struct nfs3_fh *fh, uint32_t offset,
			  uint32_t len);
uint32_t layout_xid(void);		/* a new one */

/* The RPC header of a call to NFS. */
void layout_put_header(struct xdr_out *x, uint32_t xid, uint32_t proc);
